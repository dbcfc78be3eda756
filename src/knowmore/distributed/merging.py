"""Map and merge: a model of each shard of the rows, and a tree that merges them all into one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.delayed import Delayed, delayed
from dask.diagnostics.progress import ProgressBar
from sklearn.base import clone

from knowmore.arguments import whole_number
from knowmore.arrays import Array
from knowmore.errors import InvalidInput, InvalidType, KnowmoreError, NoExamples
from knowmore.files import Arrays, array_in
from knowmore.linalg import Eigenspace, Truncation

T = TypeVar("T")
Load = Callable[[Any], Any]
_ALIKE = "Shard both alike; for Dask arrays: y.rechunk({0: X.chunks[0]})."


def read(path: str | PathLike[str], name: str | None = None) -> Array:
    """The array in a NumPy file: `.npy`, or `.npz` with one array or the one called `name`.

    Nothing in the file is run: arrays of Python objects, which are pickles, are refused.
    """
    try:
        with Path(path).open("rb") as file:
            is_archive = file.read(2) == b"PK"
            file.seek(0)
            if not is_archive:
                return array_in(file)
        with Arrays(path) as arrays:
            names = list(arrays)
            if name in names or (name is None and len(names) == 1):
                return arrays[names[0] if name is None else name]
    # A damaged file can make NumPy, zipfile and tokenize raise anything.
    except Exception as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        problem = f"The file {str(path)!r} cannot be read as an array: {why}."
        raise InvalidInput(f"{problem} Put it where workers find it, or give load=...") from error
    problem = f"The file {str(path)!r} holds the arrays {names}, but name={name!r} is none of them."
    raise InvalidInput(f"{problem} Say which one: load=functools.partial(read, name=...).")


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
        end: it needs more memory, and does not depend on the tree.
    load : reads a file; the default knows `.npy` and `.npz`, see `read`
    split_every : how many models to merge at a time
    progress : whether to draw a progress bar

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

    def learn(X: Any, y: Any) -> Eigenspace:
        return Eigenspace.of(X, rule)

    def merge(one: Eigenspace, other: Eigenspace) -> Eigenspace:
        return one.merge(other, rule)

    return _merged(learn, merge, _shards(X, None), load, split_every, progress)


def fit(
    estimator: T,
    X: Any,
    y: Any = None,
    *,
    load: Load = read,
    split_every: int = 2,
    progress: bool = False,
) -> T:
    """A fitted copy of the `estimator`, as if it had learnt all of X and y in one place.

    A clone learns each shard, and the clones are merged; so it serves any estimator with
    `fit(X, y)` and `merge(other)`. The estimator itself does not change. X is what `eigenspace`
    takes; y is sharded alike, and `load` reads files of it too. `fit(...).forget(X, y)` removes a
    shard again.

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
    if isinstance(estimator, type) or not all(hasattr(estimator, v) for v in ("fit", "merge")):
        needed = "an estimator with fit and merge, such as EigenspacePCA()"
        raise InvalidType(f"{estimator!r} cannot be learnt in parts: that needs {needed}.")

    def learn(X: Any, y: Any) -> Any:
        return clone(estimator, safe=False).fit(X, y)

    def merge(one: Any, other: Any) -> Any:
        whole = one.merge(other)
        if not isinstance(whole, type(one)):
            name = type(one).__name__
            raise InvalidType(f"{name}.merge returned {whole!r}. It must return the merged {name}.")
        return whole

    whole: T = _merged(learn, merge, _shards(X, y), load, split_every, progress)
    return whole


# -- the tree ------------------------------------------------------------------------------------


def _merged(
    learn: Callable[[Any, Any], T],
    merge: Callable[[T, T], T],
    shards: list[tuple[str, Any, Any]],
    load: Load,
    split_every: int,
    progress: bool,
) -> T:
    """The model of all shards: a leaf for each, merged `split_every` at a time, in order.

    A part is the name of the first of some shards, and the model of all of them; None if they have
    no rows.
    """

    def leaf(name: str, X: Any, y: Any) -> tuple[str, T] | None:
        with _located(name):
            X, y = (load(data) if _is_file(data) else data for data in (X, y))
            if y is not None and np.shape(X)[:1] != np.shape(y)[:1]:
                raise InvalidInput(f"X has shape {np.shape(X)}, but y has {np.shape(y)}. {_ALIKE}")
            return None if np.shape(X)[:1] == (0,) else (name, learn(X, y))

    def node(parts: list[tuple[str, T] | None]) -> tuple[str, T] | None:
        held = [part for part in parts if part is not None]
        if not held:
            return None
        (first, whole), *others = held
        # Dask may ask for a part again: a merge must not change it.
        whole = deepcopy(whole) if others else whole
        for name, model in others:
            with _located(f"{first} and {name} do not go together"):
                whole = merge(whole, model)
        return first, whole

    whole_number("split_every", split_every, 2)
    level = [delayed(leaf)(*shard) for shard in shards]
    while len(level) > 1:
        starts = range(0, len(level), split_every)
        level = [delayed(node)(level[k : k + split_every]) for k in starts]
    root: tuple[str, T] | None = _computed(level[0], progress)
    if root is None:
        raise NoExamples(f"None of the {len(shards)} shards has a row. A model needs at least one.")
    return root[1]


@contextmanager
def _located(where: str) -> Iterator[None]:
    """Add to errors where they happened, and keep their type."""
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


# -- shards --------------------------------------------------------------------------------------


def _shards(X: Any, y: Any) -> list[tuple[str, Any, Any]]:
    """The name, rows and targets of each shard: values, files, or delayed values of Dask."""
    parts = _parts("X", X)
    if not parts:
        raise NoExamples("X has no shards: a model needs rows. Was the list of files empty?")
    targets = [None] * len(parts) if y is None else _parts("y", y)
    if len(targets) != len(parts):
        raise InvalidInput(f"X has {len(parts)} shards, but y has {len(targets)}. {_ALIKE}")
    names = [f"Shard {k}" + f" ({str(X)!r})" * _is_file(X) for k, X in enumerate(parts)]
    return list(zip(names, parts, targets, strict=True))


def _parts(name: str, data: Any) -> list[Any]:
    # By its methods, of which a delayed value claims to have any: importing Dask's module of data
    # frames takes seconds.
    is_other = not is_dask_collection(data) or isinstance(data, (Delayed, da.Array))
    is_frame = not is_other and hasattr(data, "partitions")
    if isinstance(data, da.Array) and data.ndim:
        data = data.rechunk(dict.fromkeys(range(1, data.ndim), -1)).to_delayed()
    elif is_frame:
        data = data.to_delayed()
    elif _is_single(data):
        shards = "a Dask array or frame with rows, or a list of arrays, delayed values or files"
        raise InvalidType(f"{name} is a single {type(data).__name__}. Give shards: {shards}.")
    if isinstance(data, np.ndarray):
        if data.ndim > 1 and data.shape[1] > 1:
            problem = (
                f"{name} has shards in {data.shape[1]} columns, but each must hold whole rows."
            )
            raise InvalidInput(f"{problem} Give the Dask array itself.")
        data = data.ravel()
    return list(data)


def _is_file(data: Any) -> bool:
    return isinstance(data, (str, PathLike))


def _is_single(data: Any) -> bool:
    if isinstance(data, np.ndarray):
        # An array of objects is a list, such as Dask's to_delayed returns.
        return bool(data.dtype.kind != "O")
    if is_dask_collection(data) or isinstance(data, (str, bytes, PathLike, Mapping)):
        return True
    return not isinstance(data, Iterable) or hasattr(data, "shape")
