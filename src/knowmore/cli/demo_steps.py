"""The four parts of the demonstration; each takes a model and returns what was measured."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from time import perf_counter
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from knowmore import GPClassifier
from knowmore.arrays import Array
from knowmore.cli.experiments import Progress, timed
from knowmore.insight import Suspects, novelty, suspects

_Edit = Callable[[GPClassifier], object]

# People who sent in the training images; "ann/0007" is Ann's eighth.
CONTRIBUTORS = (
    *("ann", "ben", "cleo", "dora", "emil", "fay"),
    *("gus", "hana", "ivo", "jana", "karl", "lena"),
)
# An image is unknown if its variance is above this quantile of the leave-one-out variances.
QUANTILE = 0.95


class Digits(NamedTuple):
    """Images (., 64), their digits, and the ids of those to learn from."""

    X: Array
    y: Array
    ids: Array
    X_test: Array
    y_test: Array


class Step(NamedTuple):
    """The number of known classes and of examples, the accuracy over all ten digits, and the times
    of the update that led here and of a refit."""

    classes: int
    examples: int
    accuracy: float
    update: float | None
    refit: float


class Growth(NamedTuple):
    """The steps, the last example alone, and the largest difference from a refit at the end."""

    steps: tuple[Step, ...]
    one: Step
    difference: float


class Audit(NamedTuple):
    """Wrong labels that were planted, and the suspects that leave-one-out found in `seconds`.

    `is_planted` and `is_right` are masks of the suspects: a wrong label was planted, and the
    preferred label is the true one. Accuracies: of the clean model, with the wrong labels, and
    after the suspects were relabelled.
    """

    planted: int
    suspects: Suspects
    is_planted: Array
    is_right: Array
    clean: float
    before: float
    after: float
    seconds: float


class Forgetting(NamedTuple):
    """A contributor who withdrew, and the difference from a model that never saw the images.

    `seconds` is the time to remove all of them, `one` to remove one of them.
    """

    contributor: str
    withdrawn: int
    left: int
    seconds: float
    one: float
    refit: float
    difference: float


class Unlearnt(NamedTuple):
    """A digit that the model unlearnt, and the variances of test images of `known` digits and of
    this one, divided by the threshold: above one, the model says that it does not know."""

    digit: int
    known: Array
    unknown: Array

    @property
    def caught(self) -> float:
        """The share of its images that were called unknown."""
        return float((self.unknown > 1).mean())


def load(seed: int, examples: int) -> Digits:
    """scikit-learn's digits: `examples` to learn from, sent in by the contributors in turn."""
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(
        X, y, train_size=examples, random_state=seed, stratify=y
    )
    people = len(CONTRIBUTORS)
    ids = [f"{CONTRIBUTORS[i % people]}/{i // people:04d}" for i in range(examples)]
    return Digits(X, y, np.array(ids), X_test, y_test)


def grow(digits: Digits, known: int, progress: Progress) -> tuple[GPClassifier, Growth]:
    """Start with `known` classes and add the others one at a time."""
    first = digits.y < known
    clf = GPClassifier().fit(digits.X[first], digits.y[first], digits.ids[first])
    steps = [_step(clf, digits, None)]
    for digit in range(known, 10):
        progress((digit - known) / (10 - known), f"meeting digit {digit}")
        clf, update = _timed_edit(clf, digits, _adding(digits, digits.y == digit))
        steps.append(_step(clf, digits, update))
    last = np.arange(len(digits.y)) == len(digits.y) - 1
    _, one = _timed_edit(copy(clf).remove(digits.ids[last]), digits, _adding(digits, last))
    difference = _difference(clf, _refit(clf), digits)
    return clf, Growth(tuple(steps), _step(clf, digits, one), difference)


def audit(clf: GPClassifier, digits: Digits, planted: int, rng: np.random.Generator) -> Audit:
    """Give some examples wrong labels, find them by leave-one-out, and correct the suspects."""
    truth = dict(zip(digits.ids.tolist(), digits.y.tolist(), strict=True))
    victims = rng.choice(digits.ids, planted, replace=False)
    wrong = [(truth[one] + rng.integers(1, 10)) % 10 for one in victims.tolist()]
    spoilt = copy(clf).relabel(victims, wrong)
    before = _accuracy(spoilt, digits)
    begin = perf_counter()
    found = suspects(spoilt)
    seconds = perf_counter() - begin
    # Whoever looks at a suspect gives it its true label, be it another one or the same.
    true = np.array([truth[one] for one in found.ids.tolist()])
    mended = copy(spoilt).relabel(found.ids, true)
    return Audit(
        planted=planted,
        suspects=found,
        is_planted=np.isin(found.ids, victims),
        is_right=found.preferred == true,
        clean=_accuracy(clf, digits),
        before=before,
        after=_accuracy(mended, digits),
        seconds=seconds,
    )


def forget(clf: GPClassifier, digits: Digits, contributor: str) -> tuple[GPClassifier, Forgetting]:
    """Remove all images of a contributor, and compare with a model that never saw them."""
    mine = np.char.startswith(digits.ids, f"{contributor}/")
    withdrawn = digits.ids[mine]
    rest, seconds = _timed_edit(clf, digits, lambda model: model.remove(withdrawn))
    _, one = _timed_edit(clf, digits, lambda model: model.remove(withdrawn[:1]))
    # Fitted to the images that were loaded, not to those that the model says it holds.
    never = GPClassifier(clf.kernel_).fit(digits.X[~mine], digits.y[~mine])
    return rest, Forgetting(
        contributor=contributor,
        withdrawn=len(withdrawn),
        left=int((~mine).sum()),
        seconds=seconds,
        one=one,
        refit=_time_of_refit(rest, digits),
        difference=_difference(rest, never, digits),
    )


def unlearn(clf: GPClassifier, digits: Digits, digit: int) -> Unlearnt:
    """Unlearn a digit, and see whether the variance tells it from the digits that are known."""
    examples = clf.model_.examples
    others = copy(clf).remove(examples.ids[examples.labels == digit])
    found = novelty(others, digits.X_test, "variance")
    ratio = found.values / found.threshold(QUANTILE)
    unknown = digits.y_test == digit
    return Unlearnt(digit, known=ratio[~unknown], unknown=ratio[unknown])


def _step(clf: GPClassifier, digits: Digits, update: float | None) -> Step:
    refit = _time_of_refit(clf, digits)
    return Step(len(clf.classes_), len(clf.ids_), _accuracy(clf, digits), update, refit)


def _accuracy(clf: GPClassifier, digits: Digits) -> float:
    return float((clf.predict(digits.X_test) == digits.y_test).mean())


def _refit(clf: GPClassifier) -> GPClassifier:
    """A model of the same kernel and examples, from scratch."""
    examples = clf.model_.examples
    return GPClassifier(clf.kernel_).fit(examples.X, examples.labels)


def _difference(one: GPClassifier, other: GPClassifier, digits: Digits) -> float:
    """The largest difference in a score over all test images."""
    X = digits.X_test
    return float(abs(one.decision_function(X) - other.decision_function(X)).max())


def _adding(digits: Digits, new: Array) -> _Edit:
    return lambda model: model.add(digits.X[new], digits.y[new], digits.ids[new])


def _timed_edit(clf: GPClassifier, digits: Digits, edit: _Edit) -> tuple[GPClassifier, float]:
    """The edited model, and the seconds until it has answered its first question."""

    def act() -> GPClassifier:
        # A copy shares the frozen model, so that each repeat starts from the same state.
        edited = copy(clf)
        edit(edited)
        edited.predict(digits.X_test[:1])
        return edited

    # Earlier edits are folded in by the next answer, which must not be timed.
    clf.predict(digits.X_test[:1])
    return timed(act)


def _time_of_refit(clf: GPClassifier, digits: Digits) -> float:
    return timed(lambda: _refit(clf).predict(digits.X_test[:1]))[1]
