"""Threads, forks and Ctrl-C: one lock, a cached property without a lock, uninterruptible work.

If a process forks while another of its threads holds a lock, the child inherits a lock that is
never released. So there is one lock, `moment`, for everything that several threads write. It is
held for a comparison and an assignment, never during a computation, and a fork waits for it: in the
child it is free, and what it guards is consistent.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import Future
from threading import RLock, Thread, current_thread
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


_at_work: list[Thread] = []


def uninterrupted(work: Callable[[], T]) -> T:
    """The result of `work`, computed in its own thread, which Ctrl-C cannot interrupt.

    Ctrl-C interrupts the waiting caller. A fork waits until the work is done.

    >>> uninterrupted(lambda: 6 * 7)
    42
    """
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work())
        except BaseException as error:
            result.set_exception(error)
        finally:
            _at_work.remove(thread)

    thread = Thread(target=run, name="knowmore")
    _at_work.append(thread)
    try:
        thread.start()
    except RuntimeError:
        # No more threads can be started, as when the process is about to end.
        _at_work.remove(thread)
        return work()
    return result.result()


def _finish() -> None:
    for thread in list(_at_work):
        if thread is not current_thread() and thread.is_alive():
            thread.join()


os.register_at_fork(before=_finish, after_in_child=_at_work.clear)
