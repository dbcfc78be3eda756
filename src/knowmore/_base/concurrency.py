"""Threads, forks and Ctrl-C: one lock, a cached property without a lock, uninterruptible work.

If a process forks while another of its threads holds a lock, the child inherits a lock that is
never released. So there is one lock, `moment`, for everything that several threads write. It is
held for a comparison and an assignment, never during a computation, and a fork waits for it: in the
child it is free, and what it guards is consistent.
"""

from __future__ import annotations

import atexit
import functools
import os
from _thread import LockType, allocate_lock, get_ident, start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

# Reentrant: the garbage collector may run a finaliser that needs the lock while it is held.
moment = RLock()
os.register_at_fork(
    before=moment.acquire, after_in_parent=moment.release, after_in_child=moment.release
)


if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801  it reads as a decorator
        """`functools.cached_property` without the lock that it has before Python 3.12.

        That lock is shared by all instances and held while the value is computed: other threads
        wait for it, and a forked child may wait forever. Without it, two threads may compute the
        value twice.
        """

        def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
            """The value, computed on first access."""
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]


# Of work that a fork must wait for: the thread, and a lock that is held until the work is done.
_at_work: list[tuple[int, LockType]] = []


def apart(work: Callable[[], T]) -> T:
    """The result of `work`, computed in a thread of its own. Ctrl-C interrupts the caller alone.

    The caller waits for a lock and for nothing else: an interrupt finds nothing half done. Python's
    own threads, conditions and futures are not safe from one while they are started or waited for.

    >>> apart(lambda: 6 * 7)
    42
    """
    outcome: list[tuple[Any, BaseException | None]] = []
    ended = allocate_lock()
    ended.acquire()

    def run() -> None:
        try:
            outcome.append((work(), None))
        except BaseException as error:
            outcome.append((None, error))
        finally:
            ended.release()

    try:
        start_new_thread(run, ())
    except RuntimeError:
        # No more threads can be started, as when the process is about to end.
        return work()
    ended.acquire()
    value, error = outcome.pop()
    if error is not None:
        raise error
    return value  # type: ignore[no-any-return]


def uninterrupted(work: Callable[[], T]) -> T:
    """The result of `work`, like `apart`, for work that must not be left in the middle.

    A fork, and the end of the process, wait until it is done.
    """

    def run() -> T:
        done = allocate_lock()
        done.acquire()
        _at_work.append(mine := (get_ident(), done))
        try:
            return work()
        finally:
            _at_work.remove(mine)
            done.release()

    return apart(run)


def _finish() -> None:
    for thread, done in list(_at_work):
        if thread != get_ident():
            with done:
                pass


os.register_at_fork(before=_finish, after_in_child=_at_work.clear)
atexit.register(_finish)


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
    """Call the callback of `progress`, if there is one, with the fraction that is done."""
    callback = _callback.get()
    if callback is not None:
        callback(done)
