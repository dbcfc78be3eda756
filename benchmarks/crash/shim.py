"""Faults at the system calls of this process, by a small library that is loaded before all others.

The process must be started with it: `environment` says how. Without a C compiler, or elsewhere than
on Linux, there is none.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir

COUNT, KILL, TEAR, FAIL_ONCE, FAIL_FROM = range(5)
_SOURCE = Path(__file__).with_name("shim.c")
_LOADED = "KNOWMORE_SHIM"


def missing() -> str | None:
    """Why there can be no faults here; None if there can."""
    if not sys.platform.startswith("linux"):
        return "faults need Linux"
    return None if shutil.which("gcc") else "faults need gcc"


def environment() -> dict[str, str]:
    """The environment of a process in which faults can happen."""
    name = sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    library = Path(gettempdir()) / f"knowmore-shim-{os.getuid()}-{name}.so"
    if not library.exists():
        part = library.with_suffix(f".{os.getpid()}")
        command = ["gcc", "-O1", "-shared", "-fPIC", "-o", str(part), str(_SOURCE), "-ldl"]
        subprocess.run(command, check=True)
        part.replace(library)
    # BLAS threads do not survive a fork.
    one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    return os.environ | one | {"LD_PRELOAD": str(library), _LOADED: str(library)}


def loaded() -> bool:
    """Whether faults can happen in this process."""
    return _LOADED in os.environ


def arm(folder: Path, action: int, at: int = 0, error: int = 0) -> None:
    """From now on count the calls that change files in the folder; something happens at one."""
    ctypes.CDLL(None).arm(os.fsencode(folder), action, ctypes.c_long(at), error)


def disarm() -> int:
    """No more faults; how many calls there were."""
    count = ctypes.CDLL(None).disarm
    count.restype = ctypes.c_long
    return int(count())


def take_notes(descriptor: int) -> None:
    """Write down all calls, with their bytes, to an open file; -1 for no more."""
    ctypes.CDLL(None).take_notes(descriptor)
