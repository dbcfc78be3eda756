"""What every estimator does around its frozen value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from sklearn.base import BaseEstimator

from knowmore.errors import InvalidInput, NotFitted

# For a comparison and an assignment, by all estimators: a lock of their own could not be copied.
publishing = Lock()


# Of several threads that all bring the first examples, one begins and the others add.
beginning = Lock()


def held(estimator: BaseEstimator, name: str) -> Any:
    """The frozen value `name`, or an error if the estimator never learnt one.

    A question takes it once: another thread may exchange it at any time.
    """
    try:
        return vars(estimator)[name]
    except KeyError as error:
        raise NotFitted(
            f"This {type(estimator).__name__} has learnt nothing yet. Call fit first."
        ) from error


def exchange(estimator: BaseEstimator, name: str, change: Callable[[Any], Any]) -> None:
    """Replace the frozen value `name` by what `change` makes of it.

    If another thread's change came first, this one is done again on top of it.
    """
    while True:
        before = getattr(estimator, name)
        after = change(before)
        with publishing:
            if getattr(estimator, name) is before:
                setattr(estimator, name, after)
                return


@contextmanager
def unchanged_on_error(estimator: BaseEstimator) -> Iterator[None]:
    """scikit-learn notes feature names before it looks at the values: take that back too.

    What was learnt is in private attributes and set in one assignment, after all that may fail;
    another thread's edit of it stays.
    """
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        learnt = {name: value for name, value in vars(estimator).items() if name.startswith("_")}
        estimator.__dict__ = before | learnt
        raise


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


def _features(estimator: BaseEstimator) -> list[str] | int:
    """The names of the features if they have any, else their number."""
    names = getattr(estimator, "feature_names_in_", None)
    return int(estimator.n_features_in_) if names is None else [str(name) for name in names]
