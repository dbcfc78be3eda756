"""Optional libraries, compiled functions, and the memory of this machine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from knowmore.errors import MissingExtra, NotEnoughMemory


def require(library: str, extra: str) -> None:
    """Raise MissingExtra unless the library is installed, without importing it."""
    try:
        found = find_spec(library) is not None
    except ValueError:
        found = False
    if not found:
        raise missing_extra(library, extra)


def optional(library: str, extra: str) -> Any:
    """Import the library, or raise MissingExtra if it is not installed."""
    try:
        return import_module(library)
    except ModuleNotFoundError as error:
        # A library that is installed may lack one of its own dependencies.
        if (error.name or "").partition(".")[0] != library.partition(".")[0]:
            raise
        raise missing_extra(library, extra) from error


def missing_extra(library: str, extra: str) -> MissingExtra:
    """The error that tells how to install the library.

    >>> print(missing_extra("matplotlib", "plots"))
    matplotlib is not installed. It comes with the extra 'plots': pip install ".[plots]" in a clone
    of knowmore, or pip install "knowmore[plots]" if knowmore came from a package index.
    """
    return MissingExtra(
        f"{library} is not installed. It comes with the extra {extra!r}: pip install "
        f'".[{extra}]" in a clone of knowmore, or pip install "knowmore[{extra}]" if knowmore '
        f"came from a package index."
    )


Function = Callable[..., Any]


def compiled(
    trial: Callable[..., object], *functions: Function, **options: Any
) -> tuple[Function, ...]:
    """The functions compiled by numba, after `trial(*compiled)` has run.

    The trial calls each function with arguments of the types that it will get, so that whatever can
    fail fails here. The cache on disk may fail (a read-only installation without a writable home, a
    full disk, a damaged file); then the functions are compiled without one. Call this through
    `uninterrupted`: neither numba's import nor a compilation survives a Ctrl-C.
    """
    from numba import njit

    try:
        made = tuple(njit(cache=True, **options)(each) for each in functions)
        trial(*made)
    except Exception:
        made = tuple(njit(**options)(each) for each in functions)
        trial(*made)
    return made


_UNLIMITED = 2**60


def available_memory() -> int | None:
    """The bytes that can be used now without swapping; None where that cannot be found out."""
    found = [_free_of_machine(), _free_of_container()]
    known = [one for one in found if one is not None]
    return min(known, default=None)


def check_free(needed: int, what: str, remedy: str) -> None:
    """Raise NotEnoughMemory if so many bytes are not free.

    what : a clause on what needs them, which ends before their number
    """
    free = available_memory()
    if free is not None and needed >= free:
        raise NotEnoughMemory(
            f"{what} {needed / 2**30:.1f} GB, but {free / 2**30:.1f} GB of memory are free. "
            f"{remedy} Nothing was changed."
        )


def _free_of_machine() -> int | None:
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "MemAvailable":
                return int(value.split()[0]) * 1024
    return None


def _free_of_container() -> int | None:
    """Free memory under the limit of a container, by version two or one of control groups."""
    root = Path("/sys/fs/cgroup")
    for limit, used in (
        (root / "memory.max", root / "memory.current"),
        (root / "memory/memory.limit_in_bytes", root / "memory/memory.usage_in_bytes"),
    ):
        with suppress(OSError, ValueError):
            most = int(limit.read_text())
            if most < _UNLIMITED:
                return max(most - int(used.read_text()), 0)
    return None
