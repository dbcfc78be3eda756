"""Timing of something that can be repeated."""

from __future__ import annotations

from collections.abc import Callable

from knowmore.cli.experiments import one_thread, timed

__all__ = ["median_seconds", "one_thread", "timed"]


def median_seconds(act: Callable[[], object]) -> float:
    """The median time of `act`, see `timed`."""
    return timed(act)[1]
