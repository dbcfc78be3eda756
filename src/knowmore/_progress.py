"""How far a long piece of work has come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["progress"]

Callback = Callable[[float], object]

_callback: ContextVar[Callback | None] = ContextVar("knowmore progress", default=None)


@contextmanager
def progress(callback: Callback) -> Iterator[None]:
    """Call `callback` with the fraction done, 0 to 1, from time to time, while the block runs.

    Fits, adds, passes over many rows and the search of `knowmore.insight.tune` report; each starts
    from zero. How long a search takes is not known beforehand: it slows down on the way to 1, and
    ends before. An exception in the callback ends the work, and leaves everything as it was.

    >>> import numpy as np
    >>> from knowmore import LinearGPClassifier, progress
    >>> X, y = np.random.default_rng(0).normal(size=(3000, 4)), np.arange(3000) % 2
    >>> with progress(lambda done: print(f"{done:.0%}")):
    ...     clf = LinearGPClassifier().fit(X, y)
    34%
    68%
    100%
    """
    token = _callback.set(callback)
    try:
        yield
    finally:
        _callback.reset(token)


def report(done: float) -> None:
    """Tell whoever listens that this fraction is done."""
    callback = _callback.get()
    if callback is not None:
        callback(done)
