"""Places where tasks run, and reports of their errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import dask
from dask.base import compute, get_scheduler, persist
from dask.delayed import Delayed, delayed
from dask.diagnostics.progress import ProgressBar
from dask.local import get_sync
from distributed import Client, as_completed, futures_of
from distributed import progress as watch

from knowmore.errors import KnowmoreError
from knowmore.linalg import one_thread

T = TypeVar("T")


def in_this_process() -> AbstractContextManager[Any]:
    """Within it, work that no client or scheduler was chosen for is done by this thread.

    BLAS has all cores then.
    """
    chosen = get_scheduler() is not None
    return nullcontext() if chosen else dask.config.set(scheduler="synchronous")


def quiet_threads() -> Callable[[], AbstractContextManager[None]]:
    """The context of a task: one BLAS thread if other tasks run beside it."""
    return nullcontext if _one_by_one() else one_thread


def tasks_of(work: Callable[..., T], shards: Iterable[Sequence[Any]]) -> list[Delayed]:
    """The task work(*shard) for each shard, which begins with a name; errors have that name.

    Where tasks are done one by one, it is in this order, so that the error is that of the first bad
    shard: Dask would begin anywhere.
    """
    quiet = quiet_threads()

    def after(_: Any, name: str, *data: Any) -> T:
        with located(name), quiet():
            return work(name, *data)

    tasks = list[Delayed]()
    for shard in shards:
        before = tasks[-1] if tasks and _one_by_one() else None
        tasks.append(task(after)(before, *shard))
    return tasks


def _one_by_one() -> bool:
    return get_scheduler() in (None, get_sync)


@contextmanager
def located(where: str) -> Iterator[None]:
    """Add to errors where they happened, and keep their type."""
    try:
        yield
    except KnowmoreError as error:
        if where not in str(error):
            error.args = (f"{where}: {error}", *error.args[1:])
        raise
    except Exception as error:
        error.add_note(f"In {where}.")
        raise


class Failed(NamedTuple):
    """The result of a task on a cluster that stands for an error of ours.

    If it were raised, the worker would print its traceback before the user reads the message.
    """

    error: KnowmoreError


def task(work: Callable[..., Any]) -> Callable[..., Delayed]:
    """`delayed(work)`; on a cluster errors of ours are values, which later tasks pass on."""

    @wraps(work)
    def quiet(*given: Any) -> Any:
        parts = (one for each in given for one in (each if isinstance(each, list) else [each]))
        if failed := next((one for one in parts if isinstance(one, Failed)), None):
            return failed
        try:
            return work(*given)
        except KnowmoreError as error:
            return Failed(error)

    made: Callable[..., Delayed] = delayed(work if _client() is None else quiet)
    return made


def computed(
    tasks: Sequence[Delayed], progress: bool = False, *, first: Sequence[Delayed] = ()
) -> Sequence[Any]:
    """The values, after a progress bar if one is wanted; raises the error of one that failed.

    first : tasks that these need. On a cluster the error of one of them ends the work at once.
    """
    if progress:
        tasks = persisted(tasks, progress)
    client, values = _client(), list[Any]()
    if client is None:
        values.extend(compute(*tasks))
    else:
        futures = client.compute([*tasks, *map(delayed(_failure), first)])
        try:
            for _, failed in as_completed(futures[len(tasks) :], with_results=True):
                _raised(failed)
            values.extend(client.gather(futures[: len(tasks)]))
        finally:
            client.cancel(futures)
    for value in values:
        _raised(value)
    return values


def _client() -> Client | None:
    """The client whose cluster does the work, if there is one."""
    owner = getattr(get_scheduler(), "__self__", None)
    return owner if isinstance(owner, Client) else None


def _failure(value: Any) -> Failed | None:
    return value if isinstance(value, Failed) else None


def _raised(value: Any) -> None:
    if isinstance(value, Failed):
        raise value.error


def persisted(tasks: Sequence[Delayed], progress: bool = False) -> Sequence[Delayed]:
    """The tasks, done and kept where they were done, under a progress bar if one is wanted."""
    # The local scheduler computes here and now, under its own bar; a cluster in the background.
    with ProgressBar() if progress else nullcontext():
        kept: Sequence[Delayed] = persist(*tasks)
    if progress and futures_of(kept):
        watch(kept, notebook=False)
    return kept
