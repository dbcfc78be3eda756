"""Where tasks run, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import dask
from dask.base import compute, get_scheduler, persist
from dask.delayed import Delayed
from dask.diagnostics.progress import ProgressBar
from dask.local import get_sync

from knowmore.errors import KnowmoreError
from knowmore.linalg.products import one_thread


def in_this_process() -> AbstractContextManager[Any]:
    """Within it, work that no client or scheduler was chosen for is done by this thread.

    BLAS has all cores then.
    """
    chosen = get_scheduler() is not None
    return nullcontext() if chosen else dask.config.set(scheduler="synchronous")


def quiet_threads() -> Callable[[], AbstractContextManager[None]]:
    """What a task runs in: with one BLAS thread if other tasks run beside it."""
    return nullcontext if get_scheduler() in (None, get_sync) else one_thread


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
