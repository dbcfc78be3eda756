"""What threads, forks and Ctrl-C share: one lock, a derived value, and work that is never cut off.

A process that forks while another of its threads holds a lock leaves the child with a lock that
nobody will ever release. So there is one lock, `moment`, for all that several threads may write.
It is held for a comparison and an assignment, never while anything is computed, and a fork waits
for it: the child finds it free and what it guards whole.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import Future
from threading import RLock, Thread, current_thread
from typing import TYPE_CHECKING, Any, TypeVar

T = TypeVar("T")

# It may be asked for twice by one thread: by a finaliser that the garbage collector runs inside.
moment = RLock()
os.register_at_fork(
    before=moment.acquire, after_in_parent=moment.release, after_in_child=moment.release
)


if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801  it reads as a decorator
        """That of functools without the lock that it has before Python 3.12.

        That lock is one for all instances and held while the value is computed: others would wait
        for it, and so would a forked child, for ever. Here two threads may compute one value.
        """

        def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
            """The value, computed when first asked for."""
            if instance is None:
                return self
            values = instance.__dict__
            if self.attrname not in values:
                values[self.attrname] = self.func(instance)
            return values[self.attrname]


_at_work: list[Thread] = []


def uninterrupted(work: Callable[[], T]) -> T:
    """What `work` returns, done in a thread of its own, which no Ctrl-C can reach.

    It interrupts those who wait for the result, not the work. A fork waits until it is done.

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
        # There is no more thread to be had, as at the end of the process.
        _at_work.remove(thread)
        return work()
    return result.result()


def _finish() -> None:
    for thread in list(_at_work):
        if thread is not current_thread() and thread.is_alive():
            thread.join()


os.register_at_fork(before=_finish, after_in_child=_at_work.clear)
