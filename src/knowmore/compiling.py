"""Functions compiled by numba, with a cache on disk where there can be one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
