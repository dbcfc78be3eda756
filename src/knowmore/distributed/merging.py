"""Map and merge: a model of each shard of the rows, and a tree that merges them all into one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import dask
from dask.base import get_scheduler
from dask.delayed import Delayed, delayed
from dask.diagnostics.progress import ProgressBar
from dask.local import get_sync
from sklearn.base import clone

from knowmore.arguments import flag, shape_of, whole_number
from knowmore.distributed.reading import (
    Load,
    Shard,
    examples,
    is_file,
    read,
    read_examples,
    shards_of,
)
from knowmore.distributed.sums import load_sums
from knowmore.errors import InvalidType, KnowmoreError, NoExamples
from knowmore.estimators.linear import LinearGP, LinearGPRegressor, Survey
from knowmore.linalg import Eigenspace, Grid, Truncation
from knowmore.linalg.products import one_thread

T = TypeVar("T")


def eigenspace(
    X: Any,
    rank: int | Truncation | None = None,
    *,
    load: Load = read,
    split_every: int = 2,
    progress: bool = False,
) -> Eigenspace:
    """The `Eigenspace` of all rows of X, which are in many places.

    X : a Dask array (N, D) in any chunks, a Dask data frame, a list of arrays or data frames
        (n, D), delayed ones, futures or files, or a folder or pattern of files such as "day-*.npy";
        shards without rows add nothing
    rank : how many directions to keep, or a `Truncation`. They are dropped in each shard and after
        each merge, so that no model is larger. `eigenspace(X).truncate(rank)` drops once, at the
        end: it needs more memory, and does not depend on the tree.
    load : reads a file: gets its `Path`, or the item of a list as it is, and returns the rows. The
        default knows `.npy` and `.npz`, see `read`.
    split_every : how many models to merge at a time
    progress : whether to draw a progress bar

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> whole = eigenspace([X[:10], X[10:45], X[45:]])
    >>> bool(np.allclose(whole.covariance(), np.cov(X.T, bias=True)))
    True
    >>> rest = whole - Eigenspace.of(X[10:45])
    >>> bool(np.allclose(rest.mean, np.delete(X, np.s_[10:45], axis=0).mean(axis=0)))
    True
    """
    rule = Truncation.by(rank)

    def learn(X: Any, y: Any) -> Eigenspace:
        return Eigenspace.of(X, rule)

    def merge(one: Eigenspace, other: Eigenspace) -> Eigenspace:
        return one.merge(other, rule)

    return merged(
        learn, merge, shards_of(X, None), load, split_every=split_every, progress=progress
    )


def fit(
    estimator: T,
    X: Any,
    y: Any = None,
    *,
    load: Load | None = None,
    split_every: int = 2,
    progress: bool = False,
) -> T:
    """A fitted copy of the `estimator`, as if it had learnt all of X and y in one place.

    A clone learns each shard, and the clones are merged; so it serves any estimator with
    `fit(X, y)` and `merge(other)`. The estimator itself does not change.

    A `LinearGPClassifier` or `LinearGPRegressor` reads the shards twice, first for the grid, unless
    `resolution` is one: the result is that of one `fit`, to the bit. It can also be given the
    `.kms` files of `refresh_sums`, which hold what it needs of the rows. They count even if the
    file of the rows is gone: to forget a shard, delete its `.kms` file too. A fitted model forgets
    it by `forget`, or by `split(load_sums(path))`.

    X : as for `eigenspace`; also files of tables (`.parquet`), or pairs (X, y), delayed or futures
    y : shards like those of X; or the name of the column, or of the array in an `.npz` file, that
        has the targets; None: `.npz` files have the arrays X and y
    load : reads a file. It gets its `Path`, or the item of a list as it is, and returns a pair
        (X, y), or what is in the file if y is given. The default knows `.npy`, `.npz` and
        `.parquet`, of one kind: arrays have no names of columns, so they do not go with tables.
        For both, give a function that returns pairs of arrays.
    split_every, progress : as for `eigenspace`

    Examples
    --------
    >>> import numpy as np
    >>> from knowmore import EigenspaceLDA
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> lda = fit(EigenspaceLDA(), np.split(X, 5), np.split(y, 5))   # sorted: no shard has all
    >>> lda.classes_, lda.score(X, y)
    (array([0, 1, 2]), 0.98)

    >>> from knowmore import LinearGPClassifier
    >>> clf = fit(LinearGPClassifier(), [(X[:90], y[:90]), (X[90:], y[90:])])
    >>> clf.digest() == LinearGPClassifier().fit(X, y).digest()
    True
    """
    if isinstance(estimator, type) or not all(hasattr(estimator, v) for v in ("fit", "merge")):
        needed = "an estimator with fit and merge, such as EigenspacePCA()"
        raise InvalidType(f"{estimator!r} cannot be learnt in parts: that needs {needed}.")
    label = y if isinstance(y, str) else None
    shards = shards_of(X, None if label else y)
    load = partial(read_examples, label=label) if load is None else load

    def merge(one: Any, other: Any) -> Any:
        whole = one.merge(other)
        if not isinstance(whole, type(one)):
            name = type(one).__name__
            raise InvalidType(f"{name}.merge returned {whole!r}. It must return the merged {name}.")
        return whole

    tree = partial(merged, label=label, split_every=split_every, progress=progress)
    learn: Callable[[Any, Any], Any] = partial(_fitted, estimator)
    if not isinstance(estimator, LinearGP):
        return cast("T", tree(learn, merge, shards, load))
    with in_this_process():
        if any(is_file(shard.X) and Path(shard.X).suffix == ".kms" for shard in shards):
            load, learn = partial(load_sums, estimator=estimator, fresh=True), _with_rows
        elif isinstance(estimator, LinearGPRegressor) or not isinstance(estimator.resolution, Grid):
            survey = tree(partial(Survey.of, estimator), Survey.merge, shards, load)
            learn = partial(_started, survey.checked())
        return cast("T", tree(learn, merge, shards, load))


def _fitted(estimator: Any, X: Any, y: Any) -> Any:
    return clone(estimator, safe=False).fit(X, y)


def _started(survey: Survey, X: Any, y: Any) -> LinearGP:
    # It starts where it learns: an empty estimator is as large as a full one.
    started: LinearGP = survey.start().partial_fit(X, y)
    return started


def _with_rows(held: LinearGP, y: Any) -> LinearGP | None:
    return held if held.n_samples_ else None


# -- the tree ------------------------------------------------------------------------------------


def merged(
    learn: Callable[[Any, Any], T | None],
    merge: Callable[[T, T], T],
    shards: list[Shard],
    load: Load,
    *,
    label: str | None = None,
    split_every: int = 2,
    progress: bool = False,
) -> T:
    """The model of all shards: a leaf for each, merged `split_every` at a time, in order.

    A part is the name of the first of some shards, and the model of all of them; None if they have
    no rows.
    """
    quiet = quiet_threads()

    def leaf(name: str, X: Any, y: Any) -> tuple[str, T] | None:
        with located(name), quiet():
            X, y = examples(X, y, load, label)
            model = None if shape_of("X", X)[:1] == (0,) else learn(X, y)
            return None if model is None else (name, model)

    def node(parts: list[tuple[str, T] | None]) -> tuple[str, T] | None:
        held = [part for part in parts if part is not None]
        if not held:
            return None
        (first, whole), *others = held
        # Dask may ask for a part again: a merge must not change it.
        whole = deepcopy(whole) if others else whole
        for name, model in others:
            with located(f"{first} and {name} do not go together"), quiet():
                whole = merge(whole, model)
        return first, whole

    whole_number("split_every", split_every, 2)
    progress = flag("progress", progress)
    if not callable(load):
        raise InvalidType(
            f"load={load!r} cannot be called. Give a function that reads a file: it gets its path, "
            f"and returns the rows."
        )
    level = [delayed(leaf)(*shard) for shard in shards]
    while len(level) > 1:
        starts = range(0, len(level), split_every)
        level = [delayed(node)(level[k : k + split_every]) for k in starts]
    root: tuple[str, T] | None = computed(level[0], progress)
    if root is None:
        raise NoExamples(f"None of the {len(shards)} shards has a row. A model needs at least one.")
    return root[1]


# -- where tasks run -----------------------------------------------------------------------------


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
        error.args = (f"{where}: {error}", *error.args[1:])
        raise
    except Exception as error:
        error.add_note(f"{where}.")
        raise


def computed(root: Delayed, progress: bool) -> Any:
    """The value, after a progress bar if one is wanted."""
    if progress:
        from distributed import futures_of
        from distributed import progress as watch

        # The local scheduler computes here and now, under its own bar; a cluster in the background.
        with ProgressBar():
            root = root.persist()
        if futures_of(root):
            watch(root, notebook=False)
    return root.compute()
