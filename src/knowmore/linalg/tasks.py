"""Work cut into tasks that threads of our own take one after the other, each with one BLAS thread.

OpenBLAS cuts a product into equal parts, whose threads wait for each other by spinning: when
another program takes a core, all wait for the part on that core, and spin on the others meanwhile.
Here whoever is free takes the next task, and who waits sleeps. The threads are started for one call
and gone after it: none is left that a forked process would miss. They are plain threads, without
the objects of `threading`, whose start waits.
"""

from __future__ import annotations

from _thread import start_new_thread
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from threading import Condition
from typing import TypeVar

from knowmore._base import apart
from knowmore.linalg.threads import FEW, TINY, blas_threads, threads_for

P = TypeVar("P")
T = TypeVar("T")
Ended = Callable[[int], None]


def workers(numbers: int, columns: int) -> int:
    """The number of threads for a matrix of `numbers` entries times `columns`."""
    return 1 if columns == 1 or numbers * columns < FEW else blas_threads()


def one_thread() -> AbstractContextManager[None]:
    """Within it BLAS has one thread, in all of the process: for tasks that run side by side."""
    return threads_for(TINY, 1)


def side_by_side(work: Callable[[P], T], parts: Sequence[P]) -> list[T]:
    """work(part) for each part, in their order, on as many threads as BLAS may use.

    If some raise, the error of the first part is raised, after the others have ended.
    """
    done: dict[int, T] = {}

    def step(i: int, _: Ended) -> None:
        done[i] = work(parts[i])

    in_turn(step, len(parts), blas_threads())
    return [done[i] for i in range(len(parts))]


def in_turn(step: Callable[[int, Ended], None], count: int, threads: int) -> None:
    """step(i, ended) for i = 0 ... count - 1, begun in this order on several threads.

    ended(j) waits until step j has ended; a step may wait for earlier ones alone. If some raise,
    the error of the first is raised, after all that were begun have ended. After Ctrl-C no more are
    begun, and the caller does not wait for those that were: what they write must be theirs.
    """
    with one_thread():
        if min(threads, count) < 2:
            for i in range(count):
                step(i, _already)
            return
        stopped: list[bool] = []
        try:
            apart(lambda: _shared(step, count, min(threads, count), stopped))
        except BaseException:
            stopped.append(True)
            raise


def done_before(start: int, i: int, threads: int, ended: Ended, size: int) -> Iterator[int]:
    """Columns before the i-th panel, the one from `start` on, that are done: more and more.

    Other threads are still at work on the panels just before it, each of `size` columns.
    """
    for j in range(max(i - threads, -1), i):
        ended(j)
        yield start - (i - 1 - j) * size


def _shared(
    step: Callable[[int, Ended], None], count: int, threads: int, stopped: list[bool]
) -> None:
    """The steps on this thread and others, until one raises or somebody says that all is stopped.

    The thread is one of ours, which no Ctrl-C interrupts.
    """
    waiting, news = iter(range(count)), Condition()
    done: set[int] = set()
    failed: dict[int, BaseException] = {}

    def ended(j: int) -> None:
        if j >= 0 and j not in done:
            with news:
                news.wait_for(lambda: j in done or failed or stopped)
            if j not in done:
                raise _Stopped

    def run() -> None:
        for i in waiting:
            try:
                if failed or stopped:
                    return
                step(i, ended)
                done.add(i)
            except _Stopped:
                return
            except BaseException as error:
                failed[i] = error
            finally:
                # A step that waits for another one, never begun, looks again.
                with news:
                    news.notify_all()

    _together(run, threads, news)
    if failed:
        raise failed[min(failed)]


def _together(run: Callable[[], None], threads: int, news: Condition) -> None:
    """Call `run` on this thread and on others, and wait for all of them."""
    started, over = 0, []

    def other() -> None:
        try:
            run()
        finally:
            with news:
                over.append(True)
                news.notify_all()

    # Where no more threads can be started, this one does it all.
    with suppress(RuntimeError):
        for _ in range(threads - 1):
            start_new_thread(other, ())
            started += 1
    run()
    with news:
        news.wait_for(lambda: len(over) == started)


class _Stopped(Exception):
    """Another step has failed."""


def _already(step: int) -> None:
    """On one thread every earlier step has ended."""
