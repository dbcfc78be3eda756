"""Taking the time of something that can be done again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from time import perf_counter
from typing import TypeVar

from threadpoolctl import threadpool_limits

T = TypeVar("T")

# The median of three bears one disturbance by other programs.
_FEWEST = 3


def timed(act: Callable[[], T], repeats: int = 5, patience: float = 1.0) -> tuple[T, float]:
    """What `act` gives, and its median time in seconds.

    It is run `repeats` times, or as often as `patience` seconds allow, but at least three times.
    """
    times: list[float] = []
    while len(times) < _FEWEST or (len(times) < repeats and sum(times) < patience):
        begin = perf_counter()
        result = act()
        times.append(perf_counter() - begin)
    return result, median(times)


def median_seconds(act: Callable[[], object], repeats: int = 5, patience: float = 1.0) -> float:
    """The median time of `act` alone."""
    return timed(act, repeats, patience)[1]


@contextmanager
def one_thread() -> Iterator[None]:
    """Run the block on one BLAS thread.

    OpenBLAS threads wait for each other by spinning: while another program takes one of two
    cores, a solve on two threads was measured to take fifty times as long as on one. Times are
    worth comparing only where that cannot happen.
    """
    with threadpool_limits(limits=1, user_api="blas"):
        yield
