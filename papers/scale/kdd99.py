"""Event monitoring, an application of Lütz, Rodner and Denzler: attacks that nobody has seen yet.

The test part of KDD Cup 1999 has attacks of seventeen kinds that the training part lacks. What is
found of them, and how many false alarms does it cost? Detectors of what is new learn normal
connections, or all; classifiers tell normal ones from known attacks. Then a few connections of each
late kind are labelled and learnt. Duplicates are left out, of which the published files have many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.special import log_ndtr
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from knowmore import LinearGPClassifier, SubspaceMonitor
from knowmore.subspaces.monitor import distances
from papers.arrays import Array
from papers.data import WORDS, Split, kdd99
from papers.findings import Progress, silent
from papers.scale.contest import clocked
from papers.scale.kdd99_report import (
    KNOWN,
    MONITOR,
    NORMAL,
    RATE,
    SCORE,
    UNLIKELY,
    VARIANCE,
    Alarm,
    Relearnt,
    Watched,
    report,
)

__all__ = ["report", "run"]

_NOISE = 1.0
# No feature is larger.
_LARGEST = 30.0
# The monitor's directions, and how many rows a window holds.
_DIRECTIONS, _WINDOW = 20, 500
# Connections of each late kind that are labelled.
_LABELLED = 10


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Watched:
    """Watch all test connections; `quick`: every fifteenth."""
    progress(0.0, "reading")
    data, every = kdd99(), 15 if quick else 1
    late = tuple(sorted(set(data.y_test) - set(data.y)))
    data = Split(*(part[::every] for part in data))
    X, X_test = _features(data.X, data.X_test)
    held = (data.y == NORMAL) & (np.random.default_rng(seed).random(len(data.y)) < 0.2)
    learnt = Split(X[~held], data.y[~held], X_test, data.y_test)
    asked = np.concatenate([X[held], X_test])
    n, alarms = int(held.sum()), []
    window = _WINDOW // 2 if quick else _WINDOW
    monitor = SubspaceMonitor(_DIRECTIONS, window, false_alarms=RATE)
    for i, (methods, act) in enumerate(_ways(learnt, monitor, 20 if quick else 100, seed)):
        progress(0.1 + 0.8 * i / 7, ", ".join(methods))
        values, seconds = clocked(partial(act, asked))
        alarms += [
            Alarm(method, column[:n], column[n:], seconds)
            for method, column in zip(methods, values, strict=True)
        ]
    progress(0.95, "learning late kinds")
    return Watched(
        alarms=tuple(alarms),
        labels=data.y_test,
        late=late,
        learnt=len(learnt.y),
        promised=1.0,
        relearnt=_relearn(learnt, late),
    )


def _features(X: Array, X_test: Array) -> tuple[Array, Array]:
    """Logarithms of numbers, on one scale, and a column for each word, (n, 118) in all.

    Nothing is further than `_LARGEST` standard deviations from the mean.
    """
    numbers = [i for i in range(X.shape[1]) if i not in WORDS]
    map_ = make_column_transformer(
        (make_pipeline(FunctionTransformer(np.log1p), StandardScaler()), numbers),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), list(WORDS)),
    )
    one, other = map_.fit_transform(X), map_.transform(X_test)
    return np.clip(one, -_LARGEST, _LARGEST), np.clip(other, -_LARGEST, _LARGEST)


_Act = Callable[[Array], list[Array]]


def _ways(
    learnt: Split, monitor: SubspaceMonitor, trees: int, seed: int
) -> Iterator[tuple[tuple[str, ...], _Act]]:
    """Names of methods, and what learns and gives the values of rows (m,) for each."""
    X, usual = learnt.X, learnt.y == NORMAL

    def variance(rows: Array) -> list[Array]:
        model = LinearGPClassifier(_NOISE).fit(X[usual], learnt.y[usual])
        return [model.predict_variance(rows)]

    def of_all(rows: Array) -> list[Array]:
        model = LinearGPClassifier(_NOISE).fit(X, learnt.y)
        scores, variances = model.decision_function(rows), model.predict_variance(rows)
        unlikely = log_ndtr(-scores.max(axis=1) / np.sqrt(variances))
        return [variances, unlikely, -scores[:, list(model.classes_).index(NORMAL)]]

    def distance(rows: Array) -> list[Array]:
        """The larger of the two distances, in parts of its limit."""
        reference = monitor.fit(X[usual]).reference_
        both = distances(reference.eigenspace, rows)
        return [
            np.maximum(
                *(one / limit for one, limit in zip(both, reference.limits[:2], strict=True))
            )
        ]

    def isolated(rows: Array) -> list[Array]:
        model = IsolationForest(n_jobs=-1, random_state=seed).fit(X[usual])
        return [-model.score_samples(rows)]

    def classified(model: Any) -> _Act:
        return lambda rows: [1 - model.fit(X, usual).predict_proba(rows)[:, 1]]

    yield (VARIANCE,), variance
    yield (KNOWN, UNLIKELY, SCORE), of_all
    yield (MONITOR,), distance
    yield ("IsolationForest",), isolated
    forest = RandomForestClassifier(trees, n_jobs=-1, random_state=seed)
    yield ("RandomForest",), classified(forest)
    boosting = HistGradientBoostingClassifier(max_iter=trees, random_state=seed)
    yield ("HistGradientBoost",), classified(boosting)
    yield ("LogisticRegression",), classified(LogisticRegression(max_iter=1000))


def _relearn(learnt: Split, late: tuple[str, ...]) -> Relearnt:
    """Learn the first connections of each late kind, so heavy that the kinds are balanced."""
    model = LinearGPClassifier(_NOISE).fit(learnt.X, learnt.y)
    kinds = [np.flatnonzero(learnt.y_test == kind)[:_LABELLED] for kind in late]
    rows = np.concatenate(kinds)
    rest = np.setdiff1d(np.arange(len(learnt.y_test)), rows)
    X, y, X_rest, y_rest = learnt.X_test[rows], learnt.y_test[rows], *_take(learnt, rest)
    new = np.isin(y_rest, late)
    balanced = len(learnt.y) / (len(model.classes_) + len(late)) / _LABELLED
    weights = np.full(len(y), min(balanced, 255.0))

    def rates() -> tuple[float, float]:
        right = model.predict(X_rest) == y_rest
        return float(right[new].mean()), float(right[~new].mean())

    before = rates()
    _, seconds = clocked(lambda: model.partial_fit(X, y, sample_weight=weights))
    after = rates()
    batch = LinearGPClassifier(_NOISE, resolution=model.grid_).fit(
        np.concatenate([X, learnt.X]),
        np.concatenate([y, learnt.y]),
        sample_weight=np.concatenate([weights, np.ones(len(learnt.y))]),
    )
    late_rates, other_rates = zip(before, after, strict=True)
    same = model.digest() == batch.digest()
    return Relearnt(late_rates, other_rates, same, len(rows), seconds)


def _take(split: Split, rows: Array) -> tuple[Array, Array]:
    return split.X_test[rows], split.y_test[rows]
