"""Map and merge: a model of each shard, and a tree that makes one of them all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from dask.delayed import Delayed, delayed
from dask.diagnostics.progress import ProgressBar
from sklearn.base import clone

from knowmore.distributed.shards import Load, Shard, read, rows, shards_of
from knowmore.errors import InvalidInput, InvalidType, KnowmoreError, NoExamples
from knowmore.linalg import Eigenspace, Truncation


@runtime_checkable
class Mergeable(Protocol):
    """An estimator that learns rows, and all that another one has learnt."""

    def fit(self, X: Any, y: Any) -> Self:
        """Learn X (n, D), and y (n,) or None, from scratch."""

    def merge(self, other: Any) -> Self:
        """The estimator that learnt both sets of rows; it may be this one, changed."""


Estimator = TypeVar("Estimator", bound=Mergeable)
Learn = Callable[[Any, Any], Any]
Merge = Callable[[Any, Any], Any]


def eigenspace(
    X: Any,
    rank: int | Truncation | None = None,
    *,
    load: Load = read,
    split_every: int = 2,
    progress: bool = False,
) -> Eigenspace:
    """The `Eigenspace` of all rows of X, which are in many places.

    X : a Dask array (N, D) in any chunks, a Dask data frame, or a list of arrays or data frames
        (n, D), delayed ones, or files; shards without rows add nothing
    rank : how many directions to keep, or a `Truncation`. They are dropped in each shard and after
        each merge, so that no model is larger. `eigenspace(X).truncate(rank)` drops once, at the
        end: it needs the memory, and does not depend on the tree.
    load : reads a file; the default knows `.npy` and `.npz`, see `read`
    split_every : how many models are merged at a time
    progress : whether a bar is drawn meanwhile

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> whole = eigenspace([X[:10], X[10:45], X[45:]])
    >>> bool(np.allclose(whole.covariance(), np.cov(X.T, bias=True)))
    True
    >>> rest = whole - Eigenspace.of(X[10:45])
    >>> bool(np.allclose(rest.mean, np.delete(X, np.s_[10:45], axis=0).mean(axis=0)))
    True
    """
    rule = Truncation.by(rank)
    whole: Eigenspace = _reduced(
        shards_of(X),
        lambda X, y: Eigenspace.of(X, rule),
        lambda one, other: one.merge(other, rule),
        load,
        split_every,
        progress,
    )
    return whole


def fit(
    estimator: Estimator,
    X: Any,
    y: Any = None,
    *,
    load: Load = read,
    split_every: int = 2,
    progress: bool = False,
) -> Estimator:
    """A fitted copy of the `estimator`, as if it had learnt all of X and y in one place.

    Each shard is learnt by a clone, and the clones are merged; so it serves any estimator with
    `fit(X, y)` and `merge(other)`. The estimator itself is left alone. X is what `eigenspace`
    takes; y is sharded alike, and files of it are read by `load` too. `fit(...).forget(X, y)` takes
    a shard out again.

    Examples
    --------
    >>> from knowmore import EigenspaceLDA
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> lda = fit(EigenspaceLDA(), np.split(X, 5), np.split(y, 5))   # sorted: no shard has all
    >>> lda.classes_, lda.score(X, y)
    (array([0, 1, 2]), 0.98)

    Files that hold both are read by name:

    >>> from dask import delayed
    >>> from knowmore.distributed import read
    >>> files = []                                                  # 1.npz, 2.npz, ...
    >>> Xs, ys = ([delayed(read)(file, name) for file in files] for name in ("X", "y"))
    """
    if not isinstance(estimator, Mergeable) or isinstance(estimator, type):
        raise InvalidType(
            f"{estimator!r} cannot be learnt in parts: that needs an estimator with fit and merge, "
            f"such as EigenspacePCA() or EigenspaceLDA()."
        )
    learn = partial(_fitted, estimator)
    whole: Estimator = _reduced(shards_of(X, y), learn, _joined, load, split_every, progress)
    return whole


def _fitted(estimator: Any, X: Any, y: Any) -> Any:
    return clone(estimator, safe=False).fit(X, y)


def _joined(one: Any, other: Any) -> Any:
    whole = one.merge(other)
    if not isinstance(whole, type(one)):
        raise InvalidType(
            f"{type(one).__name__}.merge returned a {type(whole).__name__}, but the merged "
            f"{type(one).__name__} is needed."
        )
    return whole


# -- the tree ----------------------------------------------------------------------------------


class _Part(NamedTuple):
    """The model of one or more shards, and the name of the first: all of them fit together."""

    name: str
    model: Any


def _reduced(
    shards: list[Shard],
    learn: Learn,
    merge: Merge,
    load: Load,
    split_every: int,
    progress: bool,
) -> Any:
    """The model of all shards: a leaf for each, merged `split_every` at a time, in their order."""
    if not isinstance(split_every, Integral) or split_every < 2:
        raise InvalidInput(f"split_every={split_every!r}, but at least 2 models make a merge.")
    leaf, node = delayed(partial(_learnt, learn, load)), delayed(partial(_merged, merge))
    level = [leaf(*shard) for shard in shards]
    while len(level) > 1:
        level = [node(level[k : k + split_every]) for k in range(0, len(level), split_every)]
    whole = _computed(level[0], progress)
    if whole is None:
        raise NoExamples(f"None of the {len(shards)} shards has a row. A model needs at least one.")
    return whole.model


def _learnt(learn: Learn, load: Load, name: str, X: Any, y: Any) -> _Part | None:
    """The model of one shard; None if it has no rows."""
    with _told(name):
        X, y = rows(X, load), rows(y, load)
        sizes = [np.shape(data)[:1] for data in (X, y)]
        if y is not None and sizes[0] != sizes[1]:
            raise InvalidInput(
                f"X has shape {np.shape(X)}, but y has {np.shape(y)}. Shard both alike; for Dask "
                f"arrays: y.rechunk({{0: X.chunks[0]}})."
            )
        return None if sizes[0] == (0,) else _Part(name, learn(X, y))


def _merged(merge: Merge, parts: list[_Part | None]) -> _Part | None:
    """The model of all parts. None of them is changed: Dask may ask for them again."""
    held = [part for part in parts if part is not None]
    if len(held) < 2:
        return held[0] if held else None
    first, *others = held
    whole = deepcopy(first.model)
    for other in others:
        with _told(f"{first.name} and {other.name} do not go together"):
            whole = merge(whole, other.model)
    return _Part(first.name, whole)


@contextmanager
def _told(where: str) -> Iterator[None]:
    """Errors that say where they happened, and stay of their type."""
    try:
        yield
    except KnowmoreError as error:
        error.args = (f"{where}: {error}", *error.args[1:])
        raise
    except Exception as error:
        error.add_note(f"{where}.")
        raise


def _computed(root: Delayed, progress: bool) -> Any:
    if progress:
        from distributed import futures_of
        from distributed import progress as watch

        # The local scheduler computes here and now, under its own bar; a cluster in the background.
        with ProgressBar():
            root = root.persist()
        if futures_of(root):
            watch(root, notebook=False)
    return root.compute()
