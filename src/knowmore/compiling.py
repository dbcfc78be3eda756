"""Compiled functions: loaded whole, tried, and with a cache on disk only where one can be had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]


def compiled(
    trial: Callable[..., object], *functions: Function, **options: Any
) -> tuple[Function, ...]:
    """The functions as numba compiles them, after `trial(*them)` ran.

    The trial calls each as it will be called: whatever can go wrong, goes wrong here. A cache on
    disk may (a read-only installation without a writable home, a full disk, a damaged file); then
    there is none. Called by `uninterrupted`: neither numba nor a compilation stands a Ctrl-C.
    """
    from numba import njit

    try:
        made = tuple(njit(cache=True, **options)(each) for each in functions)
        trial(*made)
    except Exception:
        made = tuple(njit(**options)(each) for each in functions)
        trial(*made)
    return made
