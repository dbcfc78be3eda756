"""Map and merge: a model of each shard of the rows, and a tree that merges them all into one.

A forest is no sum of models of shards: see `forests`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

from sklearn.base import clone, is_regressor
from sklearn.utils.validation import has_fit_parameter

from knowmore._base import a_type, flag, shape_of, whole_number
from knowmore.distributed.forests import fit_forest
from knowmore.distributed.reading import (
    Load,
    Reader,
    Shard,
    is_file,
    read,
    read_examples,
    shards_of,
)
from knowmore.distributed.running import (
    computed,
    in_this_process,
    located,
    quiet_threads,
    task,
    tasks_of,
)
from knowmore.distributed.sums import has_sums, load_sums
from knowmore.errors import InvalidInput, InvalidType, NoExamples
from knowmore.estimators import (
    ForestEstimator,
    LinearGP,
    LivingEstimator,
    Survey,
    grids_are_given,
)
from knowmore.subspaces import Eigenspace, Truncation

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

    def learn(X: Any, *_: None) -> Eigenspace:
        return Eigenspace.of(X, rule)

    def merge(one: Eigenspace, other: Eigenspace) -> Eigenspace:
        return one.merge(other, rule)

    return merged(
        learn, merge, Reader(load, {}), shards_of(X), split_every=split_every, progress=progress
    )


def fit(
    estimator: T,
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    ids: Any = None,
    load: Load | None = None,
    split_every: int = 2,
    progress: bool = False,
) -> T:
    """A fitted copy of the `estimator`, equal to one that has learnt all of X and y in one place.

    A clone learns each shard, and the clones are merged; so it serves any estimator with
    `fit(X, y)` and `merge(other)` whose model of a shard is small: `EigenspacePCA`,
    `EigenspaceLDA`, linear models, your own. Forests and linear models have ways of their own, see
    the package. Kernel models (`GPClassifier`, `LSSVMClassifier`, ...) hold a matrix of all pairs
    of examples, so they are refused. The estimator itself does not change.

    X : as for `eigenspace`; also files of tables (`.parquet`), or tuples (X, y),
        (X, y, sample_weight) or (X, y, sample_weight, ids), delayed or futures
    y : shards like those of X; or the name of the column, or of the array in an `.npz` file, that
        has the targets; None: `.npz` files have the arrays X and y
    sample_weight, ids : shards or a name, like y, for estimators whose `fit` takes them. A weight
        may be zero, but not all of them. No two rows of all shards may have the same id
    load : reads a file. It gets its `Path`, or the item of a list as it is, and returns such a
        tuple, or what is in the file if y is given. The default knows `.npy`, `.npz` and
        `.parquet`, of one kind: arrays have no names of columns, so they do not go with tables.
        For both, give a function that returns pairs of arrays.
    split_every, progress : as for `eigenspace`

    Examples
    --------
    >>> from knowmore import EigenspaceLDA
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> lda = fit(EigenspaceLDA(), [X[:90], X[90:]], [y[:90], y[90:]])   # no shard has all classes
    >>> lda.classes_, lda.score(X, y)
    (array([0, 1, 2]), 0.98)
    """
    beside = {"y": y, "sample_weight": sample_weight, "ids": ids}
    return cast("T", _fit(estimator, X, beside, load, split_every, progress))


def _fit(
    estimator: Any,
    X: Any,
    beside: dict[str, Any],
    load: Load | None,
    split_every: int,
    progress: bool,
) -> Any:
    """The fitted copy; beside : shards, or the name, of y, sample_weight and ids."""
    _check_learnable(estimator, beside)
    names = {role: one for role, one in beside.items() if isinstance(one, str)}
    shards = shards_of(X, *(None if role in names else one for role, one in beside.items()))
    default = load is None
    read_rows = Reader(partial(read_examples, wanted=names) if load is None else load, names)
    sums = [name for name, X, *_ in shards if is_file(X) and Path(X).suffix == ".kms"]
    linear = has_sums(estimator)
    if sums and default and not linear:
        raise InvalidInput(
            f"{sums[0]} holds sums of rows, which serve linear models; {a_type(estimator)} needs "
            f"the rows. Give their files."
        )
    if isinstance(estimator, ForestEstimator):
        return fit_forest(estimator, shards, read_rows, progress=progress)
    tree = partial(merged, shards=shards, split_every=split_every, progress=progress)
    if not linear:
        return tree(partial(_fitted, estimator), _merge, read_rows)
    for role in ("y", "sample_weight"):
        if sums and beside[role] is not None:
            raise InvalidInput(
                f"{role} was given, but .kms files hold sums of rows, with their targets "
                f"and weights. Leave it out, or give the files of the rows."
            )
    with in_this_process():
        if sums:
            load_sum = partial(load_sums, estimator=estimator, fresh=True)
            whole = tree(_with_rows, _merge_on_one_grid, Reader(load_sum, {}))
        elif grids_are_given(estimator):
            whole = tree(partial(_fitted_on_grid, estimator), _merge, read_rows)
        else:
            survey = tree(partial(surveyed, estimator), Survey.merge, read_rows)
            whole = tree(partial(_started, survey), _merge, read_rows)
        if not whole.n_samples_:
            raise InvalidInput("All weights are zero. Give some example a weight above zero.")
        return whole


def _check_learnable(estimator: Any, given: dict[str, Any]) -> None:
    """Raise InvalidType if the estimator cannot be learnt in parts, or not with these keywords."""
    if isinstance(estimator, type) or not all(hasattr(estimator, v) for v in ("fit", "merge")):
        needed = "an estimator with fit and merge, such as EigenspacePCA()"
        raise InvalidType(f"{estimator!r} cannot be learnt in parts: that needs {needed}.")
    if isinstance(estimator, LivingEstimator):
        kind = "Regressor" if is_regressor(estimator) else "Classifier"
        raise InvalidType(
            f"{type(estimator).__name__} compares each example with those of all other shards, so "
            f"it cannot be learnt in parts. Give a ForestGP{kind} or a LinearGP{kind}; or bring "
            f"the rows to one place, and call its own fit."
        )
    if given["ids"] is not None and isinstance(estimator, LinearGP):
        raise InvalidType("ids was given, but sums of shards keep no rows. Leave it out.")
    for name in ("sample_weight", "ids"):
        if given[name] is not None and not has_fit_parameter(estimator, name):
            kind = type(estimator).__name__
            raise InvalidType(f"{name} was given, but {kind}.fit takes none. Leave it out.")


def _merge(one: Any, other: Any) -> Any:
    """The merged estimator, of the type of the first."""
    whole = one.merge(other)
    if not isinstance(whole, type(one)):
        name = type(one).__name__
        raise InvalidType(f"{name}.merge returned {whole!r}. It must return the merged {name}.")
    return whole


def _merge_on_one_grid(one: LinearGP, other: LinearGP) -> Any:
    """The merged estimator; raises InvalidInput if its sums are on different grids."""
    if one.model_.sums.grid != other.model_.sums.grid:
        raise InvalidInput(
            "These sums are on different grids. If the rows of one of them are gone, its sums "
            "cannot be brought to the grid of the others: delete the file, or move it "
            "elsewhere. Otherwise compute all sums of the folder again: knowmore sums --again."
        )
    return _merge(one, other)


def surveyed(estimator: LinearGP, X: Any, y: Any, sample_weight: Any, _: None = None) -> Survey:
    """The survey of a shard."""
    return Survey.of(estimator, X, y, sample_weight)


def _fitted(estimator: Any, X: Any, y: Any, sample_weight: Any, ids: Any) -> Any:
    given = {"sample_weight": sample_weight, "ids": ids}
    given = {name: value for name, value in given.items() if value is not None}
    return clone(estimator, safe=False).fit(X, y, **given)


def _fitted_on_grid(estimator: LinearGP, *rows: Any) -> LinearGP:
    return _started(surveyed(estimator, *rows), *rows)


def _started(survey: Survey, X: Any, y: Any, sample_weight: Any, _: None) -> LinearGP:
    # It starts where it learns: an empty estimator is as large as a full one.
    started: LinearGP = survey.start()
    started.partial_fit(X, y, sample_weight=sample_weight)
    return started


def _with_rows(held: LinearGP, *_: None) -> LinearGP | None:
    return held if held.n_samples_ else None


# -- the tree ------------------------------------------------------------------------------------


def merged(
    learn: Callable[..., T | None],
    merge: Callable[[T, T], T],
    read_rows: Reader,
    shards: list[Shard],
    *,
    split_every: int = 2,
    progress: bool = False,
) -> T:
    """The model of all shards: a leaf for each, merged `split_every` at a time, in order.

    learn : the model of the rows of a shard, X, y, sample_weight, ids
    """
    whole_number("split_every", split_every, 2)
    flag("progress", progress)
    quiet = quiet_threads()

    # A part is the name of the first of some shards, and the model of all of them; None if they
    # have no rows.
    def leaf(name: str, *shard: Any) -> tuple[str, T] | None:
        rows = read_rows(*shard)
        model = None if shape_of("X", rows[0])[:1] == (0,) else learn(*rows)
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

    level = leaves = tasks_of(leaf, shards)
    while len(level) > 1:
        starts = range(0, len(level), split_every)
        level = [task(node)(level[k : k + split_every]) for k in starts]
    root: tuple[str, T] | None = computed(level, progress, first=leaves)[0]
    if root is None:
        raise NoExamples(f"None of the {len(shards)} shards has a row. A model needs at least one.")
    return root[1]
