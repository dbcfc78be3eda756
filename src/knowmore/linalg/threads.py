"""How many BLAS threads a piece of work deserves.

NumPy and SciPy each bring an OpenBLAS with a pool of busy-waiting threads of its own. Two things
follow, both measured on two cores. Small matrices lose more to waking a second thread than it
gives. And a loop that alternates between the two libraries makes their threads fight for the same
cores: a panelled forward substitution with eleven right-hand sides took 480 ms so, and 35 ms with
SciPy's library held to one thread. So the large products run in NumPy's library on all threads,
the small triangular solves in SciPy's on one, and work that is small as a whole on one in both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any, Literal

import scipy.linalg.blas  # noqa: F401  loads SciPy's library, so that the controller finds it
from threadpoolctl import ThreadpoolController

# A product over fewer numbers than this is faster on one thread (measured: the factor of a
# thousand examples is 4 MB, and both routes take about the same time there).
SMALL = 500_000

_lock = Lock()
_users: list[Level] = []
_before: list[int] = []

Level = Literal["one", "numpy"]


@cache
def _libraries() -> list[Any]:
    found = ThreadpoolController().lib_controllers
    return [library for library in found if library.user_api == "blas"]


def _is_numpy(library: Any) -> bool:
    return "numpy" in str(library.filepath)


def _limit() -> None:
    """Give every library what the strictest of the present users asks for."""
    for library, threads in zip(_libraries(), _before, strict=True):
        alone = "one" in _users or ("numpy" in _users and not _is_numpy(library))
        library.set_num_threads(1 if alone else threads)


@contextmanager
def threads_for(numbers: int) -> Iterator[None]:
    """Run the block with the threads that work over `numbers` matrix entries deserves.

    The setting is the process's, so overlapping users in several threads are counted: the first
    notes what was set, the last restores it.
    """
    level: Level = "one" if numbers < SMALL else "numpy"
    with _lock:
        if not _users:
            _before[:] = [library.get_num_threads() for library in _libraries()]
        _users.append(level)
        _limit()
    try:
        yield
    finally:
        with _lock:
            _users.remove(level)
            _limit()
