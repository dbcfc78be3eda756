"""What every estimator does around its frozen value."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from sklearn.base import BaseEstimator

from knowmore.columns import Names, is_count
from knowmore.concurrency import moment
from knowmore.errors import InvalidInput
from knowmore.unfitted import Unfitted

E = TypeVar("E", bound=BaseEstimator)


def held(estimator: BaseEstimator, name: str) -> Any:
    """The frozen value `name`, or an error if the estimator never learnt one.

    A question takes it once: another thread may exchange it at any time.
    """
    try:
        return vars(estimator)[name]
    except KeyError as error:
        raise Unfitted(
            f"This {type(estimator).__name__} has learnt nothing yet. Call fit first."
        ) from error


def exchange(estimator: BaseEstimator, name: str, change: Callable[[Any], Any]) -> Any:
    """Replace the frozen value `name` by what `change` makes of it, which is returned.

    If another thread's change came first, this one is done again on top of it.
    """
    while True:
        before = getattr(estimator, name)
        after = change(before)
        with moment:
            if getattr(estimator, name) is before:
                setattr(estimator, name, after)
                return after


def learnt(estimator: E, learn: Callable[[E], object], *, unless: str | None = None) -> bool:
    """Let a double of the estimator learn, and give the estimator all that it learnt at once.

    So scikit-learn, which notes features before it looks at values, writes to the double, and
    after an error, or while others ask, the estimator is as it was. With `unless`, the name of an
    attribute, nothing is given to an estimator that has it by now. Returns whether it was given.
    """
    double = object.__new__(type(estimator))
    double.__dict__.update(vars(estimator))
    learn(double)
    parameters = estimator.get_params(deep=False)
    found = {name: value for name, value in vars(double).items() if name not in parameters}
    with moment:
        now = vars(estimator)
        if unless in now:
            return False
        estimator.__dict__ = {name: now[name] for name in now if name in parameters} | found
        return True


def same_kind(one: BaseEstimator, other: object) -> None:
    """Complain unless both are estimators of one class."""
    if not isinstance(other, type(one)):
        raise InvalidInput(f"A {type(one).__name__} cannot merge with a {type(other).__name__}.")


def same_features(one: BaseEstimator, other: BaseEstimator) -> None:
    """Complain unless both learnt from the same columns."""
    here, there = _features(one), _features(other)
    if here != there:
        raise InvalidInput(
            f"The two models differ in their features: {here} here, {there} there. "
            f"Models merge only if these are the same, in the same order."
        )


def names_in(estimator: BaseEstimator) -> Names:
    """What the table that it learnt from calls its columns, None if it was no table.

    scikit-learn's `feature_names_in_` knows strings alone.
    """
    names: Names = vars(estimator).get("_names_in")
    return names


def _features(estimator: BaseEstimator) -> list[Hashable] | int:
    """The names of the features if they have any, else their number."""
    names = names_in(estimator)
    return int(estimator.n_features_in_) if names is None or is_count(names) else list(names)
