"""The label audit: does it find labels that were planted, and how long does it take?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import cycle
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression

from benchmarks import vectors
from benchmarks.scene import NOISE, Array, Scale, data, facts, kernel
from benchmarks.table import Benchmark, Row, Target, faster
from benchmarks.timing import REST, interleaved
from knowmore import GPClassifier
from knowmore.insight import suspects

# The part of the labels that are made wrong.
_WRONG = 0.05
_FOLDS = 5


@dataclass(frozen=True)
class Sizes:
    """How large. `digits` images for each of `seeds`, `n` examples for the times."""

    digits: int
    seeds: int
    n: int
    rounds: int


_SIZES = {"full": Sizes(1797, 10, 2000, 7), "quick": Sizes(300, 2, 100, 2)}


def digits(scale: Scale) -> Iterator[Row]:
    """Planted labels among handwritten digits."""
    size = _SIZES[scale.name]
    X, y = vectors.digits()
    yield from _found("digits", X[: size.digits], y[: size.digits], size.seeds, Target(">=", 0.95))


def scenes(scale: Scale) -> Iterator[Row]:
    """Planted labels among pictures of scenes, which are often mistaken without them too."""
    if missing := vectors.lacking():
        yield Row("scenes: precision at planted", note=missing)
        return
    yield from _found("scenes", *vectors.scenes(scale), min(3, _SIZES[scale.name].seeds), None)


def _found(name: str, X: Array, y: Array, seeds: int, target: Target | None) -> Iterator[Row]:
    """The part of planted labels among as many that are suspected most; the worst of all seeds."""
    ours: list[float] = []
    for seed in range(seeds):
        labels, planted = spoilt(y, seed)
        found = suspects(GPClassifier().fit(X, labels))
        ours.append(_precision(np.argsort(-found.doubts, kind="stable"), planted))
    yield Row(
        f"{name}: precision at {planted.sum()} planted of {len(y)}, worst of {seeds}",
        min(ours),
        "",
        target=target,
        note=f"mean {np.mean(ours):.3f}",
        raw={"n": len(y), "planted": int(planted.sum()), "precision": ours},
    )
    if find_spec("cleanlab") is None:
        yield Row(f"{name}: the same by five folds", note=_MISSING)
        return
    labels, planted = spoilt(y, 0)
    issues = five_fold(GPClassifier(), X, labels)()
    quality = issues["label_quality"].to_numpy()
    yield Row(
        f"{name}: the same by five folds and label quality, cleanlab, first seed",
        _precision(np.argsort(quality), planted),
        "",
        note=f"the same classifier; ours {ours[0]:.3f}",
        raw={"n": len(y), "ours": ours[0]},
    )


def times(scale: Scale) -> Iterator[Row]:
    """A model that is there, against five fits of one and what cleanlab makes of them.

    The target is held twice: by the first audit against the Gaussian process that there is without
    knowmore, and by every further one, after a label was mended, against the same classifier. The
    first audit of that is a few times faster than its folds, and no more: all three are shown.
    """
    size = _SIZES[scale.name]
    n = size.n
    X, y = data(n)
    labels, planted = spoilt(y, 0)
    clf = GPClassifier(kernel(), NOISE).fit(X, labels)
    wrong = cycle(np.flatnonzero(planted).tolist())

    def again() -> object:
        one = next(wrong)
        return suspects(clf.relabel([one], y[[one]]))

    # A separate model for each first audit: a factor may keep something of it.
    fresh = iter([GPClassifier(kernel(), NOISE).fit(X, labels) for _ in range(size.rounds)])
    operations: dict[str, Callable[[], object]] = {
        "first": lambda: suspects(next(fresh)),
        "again": again,
        "fit": lambda: suspects(GPClassifier(kernel(), NOISE).fit(X, labels)),
    }
    # scikit-learn's Gaussian process takes minutes: once must do. The others have a median.
    often = dict.fromkeys([*operations, "GPClassifier", "LogisticRegression"], size.rounds)
    if find_spec("cleanlab") is None:
        yield Row(f"first audit, n = {n}", note=_MISSING)
        return
    peers = {
        "GaussianProcessClassifier": GaussianProcessClassifier(kernel(), optimizer=None),
        "GPClassifier": GPClassifier(kernel(), NOISE),
        "LogisticRegression": LogisticRegression(),
    }
    operations |= {name: five_fold(peer, X, labels) for name, peer in peers.items()}
    found = interleaved(1, operations, times=often, rest=REST, warm=0)
    for mine, words in _OURS.items():
        for name in peers:
            yield faster(
                f"{words}, n = {n}",
                found[mine],
                f"cleanlab, {_FOLDS} folds of {_AT_HOME[name]}",
                found[name],
                _TARGETS.get((mine, name)),
                _NOTES[name],
                **facts(n),
            )


_MISSING = 'not installed: pip install ".[bench]"'
_OURS = {
    "first": "first audit",
    "again": "mend a label, audit again",
    "fit": "fit, then audit",
}
_TARGETS = {("first", "GaussianProcessClassifier"): 50, ("again", "GPClassifier"): 50}
_AT_HOME = {
    "GaussianProcessClassifier": "scikit-learn's GPC",
    "GPClassifier": "our GPClassifier",
    "LogisticRegression": "LogisticRegression",
}
_NOTES = {
    "GaussianProcessClassifier": "the Gaussian process that there is without knowmore",
    "GPClassifier": "the same classifier: what closed forms gain by themselves",
    "LogisticRegression": "cleanlab's default: another classifier, linear",
}


def spoilt(y: Array, seed: int) -> tuple[Array, Array]:
    """Labels (n,) with a part of them wrong, and whether each is wrong, (n,)."""
    rng, classes = np.random.default_rng(seed), len(np.unique(y))
    victims = rng.choice(len(y), round(_WRONG * len(y)), replace=False)
    planted, labels = np.zeros(len(y), dtype=bool), y.copy()
    planted[victims] = True
    labels[victims] = (y[victims] + rng.integers(1, classes, len(victims))) % classes
    return labels, planted


def five_fold(classifier: Any, X: Array, labels: Array) -> Callable[[], Any]:
    """cleanlab's own way: probabilities by cross-validation, then its search for label issues."""
    cleanlab = import_module("cleanlab.classification")

    def act() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            learning = cleanlab.CleanLearning(classifier, cv_n_folds=_FOLDS, seed=0)
            return learning.find_label_issues(X, labels)

    return act


def _precision(ranked: Array, planted: Array) -> float:
    return float(planted[ranked[: planted.sum()]].mean())


BENCHMARKS: list[Benchmark] = [digits, scenes, times]
