"""Functions of every estimator: fit, exchange and merge the frozen value inside it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import copy
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator

from knowmore._base import Array, Names, Unfitted, is_count, moment, read_only, some
from knowmore.errors import InvalidInput

E = TypeVar("E", bound=BaseEstimator)
T = TypeVar("T")
Function = Callable[[Any], Any]


def fitted(estimator: BaseEstimator, name: str) -> Any:
    """The frozen value `name` of a fitted estimator; raises NotFitted if there is none.

    Take it once for each query: another thread may replace it at any time.
    """
    if name not in vars(estimator):
        verbs = "fit or add" if hasattr(estimator, "add") else "fit"
        raise Unfitted(f"This {type(estimator).__name__} is not fitted yet. Call {verbs} first.")
    return vars(estimator)[name]


def update_fitted(estimator: E, name: str, change: Function, answer: Function | None = None) -> Any:
    """Replace the frozen value `name` by `change` of it, and return `answer` of the new value.

    Both are computed first: if one raises, nothing has changed. If another thread replaced the
    value in the meantime, the change is applied again to what is there.
    """
    while True:
        before = fitted(estimator, name)
        after = change(before)
        result = answer(after) if answer else None
        with moment:
            if getattr(estimator, name) is before:
                setattr(estimator, name, after)
                return result


def fit_copy(estimator: E, fit: Callable[[E], T], unless: str | None = None) -> T | None:
    """Fit a copy of the estimator, then pass its fitted attributes on at once; returns `fit(copy)`.

    scikit-learn notes features before it checks values. It does so on the copy: after an error, or
    while other threads query it, the estimator is unchanged. With `unless`, the name of a fitted
    attribute, nothing happens to an estimator that has it, and None is returned.
    """
    if unless in vars(estimator):
        return None
    copy = object.__new__(type(estimator))
    copy.__dict__.update(vars(estimator))
    vars(copy).pop("_declared", None)
    result = fit(copy)
    parameters = estimator.get_params(deep=False)
    attributes = {name: value for name, value in vars(copy).items() if name not in parameters}
    with moment:
        now = vars(estimator)
        if unless in now:
            return None
        if unless is not None and "_declared" in now:
            # The first rows that are learnt; a fit from scratch declares nothing.
            attributes["_declared"] = now["_declared"]
        estimator.__dict__ = {name: now[name] for name in now if name in parameters} | attributes
        return result


def holding(estimator: E, name: str, value: Any) -> E:
    """A copy of the estimator whose frozen value `name` is this one."""
    other = copy(estimator)
    setattr(other, name, value)
    return other


def check_mergeable(one: BaseEstimator, other: Any, name: str) -> None:
    """Raise InvalidInput unless both are of one class and fitted to the same columns.

    name : the attribute that only a fitted estimator has
    """
    if not isinstance(other, type(one)):
        raise InvalidInput(f"{type(one).__name__} cannot merge with {type(other).__name__}.")
    fitted(one, name)
    fitted(other, name)
    here, there = _features(one), _features(other)
    if here != there:
        problem = f"The two models differ in their features: {_shown(here)} here, {_shown(there)}"
        remedy = "Models merge only if these are the same, in the same order."
        if isinstance(here, int) != isinstance(there, int):
            remedy += (
                " One knows its columns by name, the other does not: fit both to tables with the "
                "same columns, or both to arrays, table.to_numpy()."
            )
        raise InvalidInput(f"{problem} there. {remedy}")


def names_in(estimator: BaseEstimator) -> Names:
    """The column names of the table it was fitted to; None if that was no table.

    scikit-learn's `feature_names_in_` has strings only.
    """
    return cast("Names", vars(estimator).get("_names_in"))


def note_names(estimator: BaseEstimator, names: Names) -> None:
    """Note the names of the columns of X, of any type, as `fit` does."""
    vars(estimator)["_names_in"] = names
    if names is not None and all(isinstance(name, str) for name in names):
        vars(estimator)["feature_names_in_"] = np.array(names, dtype=object)


def declared(estimator: BaseEstimator) -> Array | None:
    """The classes that were declared, sorted, whether they have examples or not; None: none."""
    return cast("Array | None", vars(estimator).get("_declared"))


def declare(estimator: BaseEstimator, classes: Array | None) -> None:
    """Declare these classes, too, until the next `fit`."""
    if classes is not None and len(classes):
        vars(estimator)["_declared"] = read_only(joint_classes(estimator, classes))


class declared_too:  # noqa: N801  it is used like a function
    """A block in which an estimator learns: these classes are declared, too, unless it raises."""

    __slots__ = ("_before", "_classes", "_estimator")

    def __init__(self, estimator: BaseEstimator, classes: Array | None) -> None:
        self._estimator, self._classes = estimator, classes
        self._before = declared(estimator)

    def __enter__(self) -> None:
        declare(self._estimator, self._classes)

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None and self._classes is not None:
            vars(self._estimator).pop("_declared", None)
            if self._before is not None:
                vars(self._estimator)["_declared"] = self._before


def joint_classes(estimator: BaseEstimator, names: Array) -> Array:
    """These classes and those that were declared, (C,), sorted.

    Once no example was left, labels may have come to be of another type. Then none is declared.
    """
    known = declared(estimator)
    if known is None or (len(names) and known.dtype.kind != names.dtype.kind):
        return np.unique(names)
    return np.union1d(known, names) if len(names) else known.copy()


def in_classes(estimator: BaseEstimator, names: Array, values: Array, absent: Any) -> Array:
    """Values (m, M) in the order of the classes `names` as columns of all classes, (m, C).

    absent : what a class without an example has, a number or (m,)
    """
    classes = joint_classes(estimator, names)
    if len(classes) == len(names):
        return values
    found = np.empty((len(values), len(classes)))
    found.T[:] = absent
    found[:, np.searchsorted(classes, names)] = values
    return found


def note_as(estimator: BaseEstimator, like: BaseEstimator) -> None:
    """Note the columns that another estimator was fitted to, and the classes declared to it."""
    noted = ("n_features_in_", "feature_names_in_", "_names_in", "_declared")
    vars(estimator).update({name: vars(like)[name] for name in noted if name in vars(like)})


def unnamed(estimator: E) -> E:
    """A copy that knows its columns by position alone: it takes arrays without a warning.

    Living estimators share what they learnt with their copies, which later edits do not reach.
    """
    other = copy(estimator)
    for name in ("feature_names_in_", "_names_in"):
        vars(other).pop(name, None)
    return other


def _features(estimator: BaseEstimator) -> list[Hashable] | int:
    """The names of the features if they have any, otherwise their number."""
    names = names_in(estimator)
    return int(estimator.n_features_in_) if names is None or is_count(names) else list(names)


def _shown(features: list[Hashable] | int) -> str:
    return str(features) if isinstance(features, int) else f"[{some(features)}]"
