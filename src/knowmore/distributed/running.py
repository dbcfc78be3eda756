"""Where tasks run, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import dask
from dask.base import compute, get_scheduler, persist
from dask.delayed import Delayed, delayed
from dask.diagnostics.progress import ProgressBar
from dask.local import get_sync

from knowmore.errors import KnowmoreError
from knowmore.linalg.products import one_thread

T = TypeVar("T")


def in_this_process() -> AbstractContextManager[Any]:
    """Within it, work that no client or scheduler was chosen for is done by this thread.

    BLAS has all cores then.
    """
    chosen = get_scheduler() is not None
    return nullcontext() if chosen else dask.config.set(scheduler="synchronous")


def quiet_threads() -> Callable[[], AbstractContextManager[None]]:
    """What a task runs in: with one BLAS thread if other tasks run beside it."""
    return nullcontext if _one_by_one() else one_thread


def tasks_of(work: Callable[..., T], parts: Iterable[Sequence[Any]]) -> list[Delayed]:
    """The task work(*part) for each part.

    Where tasks are done one by one, it is in this order, so that the error is that of the first bad
    part: Dask would begin anywhere.
    """

    def after(_: Any, *part: Any) -> T:
        return work(*part)

    tasks = list[Delayed]()
    for part in parts:
        before = tasks[-1] if tasks and _one_by_one() else None
        tasks.append(delayed(after)(before, *part))
    return tasks


def _one_by_one() -> bool:
    return get_scheduler() in (None, get_sync)


@contextmanager
def located(where: str) -> Iterator[None]:
    """Add to errors where they happened, and keep their type."""
    try:
        yield
    except KnowmoreError as error:
        error.args = (f"{where}: {error}", *error.args[1:])
        raise
    except Exception as error:
        error.add_note(f"{where}.")
        raise


def computed(tasks: Sequence[Delayed], progress: bool = False) -> Sequence[Any]:
    """The values, after a progress bar if one is wanted."""
    if progress:
        tasks = persisted(tasks, progress)
    values: Sequence[Any] = compute(*tasks)
    return values


def persisted(tasks: Sequence[Delayed], progress: bool = False) -> Sequence[Delayed]:
    """The tasks, done and kept where they were done, under a progress bar if one is wanted."""
    # The local scheduler computes here and now, under its own bar; a cluster in the background.
    with ProgressBar() if progress else nullcontext():
        kept: Sequence[Delayed] = persist(*tasks)
    if progress:
        from distributed import futures_of
        from distributed import progress as watch

        if futures_of(kept):
            watch(kept, notebook=False)
    return kept
