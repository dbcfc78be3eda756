"""Three million flights in the order of time: is one more than 15 minutes late, and how late?

Models learn day by day and are asked about the flights of the next day, of which they know origin,
destination, distance, hour, weekday, and how late flights were the day before. The linear Gaussian
processes hold the last four weeks: a day is learnt, the oldest one forgotten. Delays are read as no
less than -60 and no more than 240 minutes, for all methods. Columns for all airports are there from
the start, as in a timetable.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import Ridge, RidgeClassifier, SGDClassifier, SGDRegressor
from sklearn.metrics import roc_auc_score

from knowmore import LinearGPClassifier, LinearGPRegressor
from papers.arrays import Array
from papers.data import flights
from papers.findings import Progress, silent
from papers.scale.flights_report import EXACT, GROWING, Checked, Course, Delays, Flown, report
from papers.scale.followers import (
    Exact,
    Follower,
    Online,
    Refit,
    River,
    Stream,
    follow,
    river_is_there,
)

__all__ = ["report", "run"]

T = TypeVar("T")

# Minutes: more than that is late, and the range of delays.
_LATE, _LEAST, _MOST = 15, -60.0, 240.0
# Numbers of days: in the window, between fits of a ridge, and between fits of boosting.
_WINDOW, _WEEK, _MONTH = 28, 7, 28
_BEGIN = np.datetime64("2001-01-01")
_PENALTIES = (1.0, 10.0, 100.0)
_STEPS: tuple[dict[str, Any], ...] = (
    {"average": True},
    {"learning_rate": "constant", "eta0": 0.01},
    {"learning_rate": "constant", "eta0": 0.001},
)
# The mean delay of an airport counts so many average flights besides its own.
_SHRUNK = 10


class Question(NamedTuple):
    """A question about flights, with models that answer it.

    error : a function of true values and answers, (m,) each; its unit is `unit`
    exact, ridge : make a model with a penalty
    sgd : makes a model with options
    boosting : makes a model
    """

    title: str
    unit: str
    error: Callable[[Array, Array], float]
    exact: Callable[[float], Any]
    ridge: Callable[[float], Any]
    sgd: Callable[..., Any]
    boosting: Any


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Flown:
    """Follow all flights; `quick`: some of them, for eight weeks."""
    progress(0.0, "reading")
    late, minutes = _streams(100, 2 * _WINDOW) if quick else _streams()
    one, other = _questions(seed)
    weeks = _BEGIN + np.arange(_WINDOW, late.days, _WEEK)
    return Flown(
        _asked(one, late, lambda share, step: progress(0.05 + share / 2, step)),
        _asked(other, minutes, lambda share, step: progress(0.5 + share / 2, step)),
        weeks=weeks,
        flights=int(late.starts[-1]),
        columns=late.sparse.shape[1],
        river=river_is_there(),
    )


def _questions(seed: int) -> tuple[Question, Question]:
    late = Question(
        "More than 15 minutes late?",
        "1 - area under the ROC curve",
        lambda y, found: 1 - float(roc_auc_score(y, found)),
        LinearGPClassifier,
        RidgeClassifier,
        partial(SGDClassifier, "log_loss", random_state=seed),
        HistGradientBoostingClassifier(categorical_features=[0, 1], random_state=seed),
    )
    minutes = Question(
        "How late?",
        "root mean square error, minutes",
        lambda y, found: float(np.sqrt(np.mean((y - found) ** 2))),
        LinearGPRegressor,
        Ridge,
        partial(SGDRegressor, random_state=seed),
        HistGradientBoostingRegressor(categorical_features=[0, 1], random_state=seed),
    )
    return late, minutes


def _streams(every: int = 1, most: int | None = None) -> tuple[Stream, Stream]:
    """The flights with whether they were late, and with their delays; of so many days at most."""
    data = flights(every)
    n, airports = len(data.delay), len(data.airports)
    minutes = (data.departure - _BEGIN).astype(int)
    # What departs in the last minute belongs to the day before.
    days, hours = np.minimum(minutes, minutes[-1] - 1) // 1440, minutes // 60 % 24
    codes = np.column_stack([data.origin, data.destination, hours, days % 7])
    firsts = np.cumsum([0, airports, airports, 24, 7])
    late, delay = (data.delay > _LATE).astype(int), np.clip(data.delay, _LEAST, _MOST)
    # The logarithm of the distance, and half hours, are about as large as the other columns.
    numbers = np.column_stack(
        [np.log(data.distance / data.distance.mean()) / 2, day_before(days, codes, delay) / 30]
    )
    places = np.column_stack(
        [codes + firsts[:4], np.tile(firsts[4] + np.arange(numbers.shape[1]), (n, 1))]
    )
    entries = np.column_stack([np.ones((n, 4)), numbers])
    ends = np.arange(0, entries.size + 1, entries.shape[1])
    # scikit-learn's SGD takes 32 bits only.
    indices = places.ravel().astype(np.int32), ends.astype(np.int32)
    table = sparse.csr_array((entries.ravel(), *indices), shape=(n, firsts[4] + numbers.shape[1]))
    dense = np.column_stack([codes, numbers])
    starts = np.searchsorted(days, np.arange(days[-1] + 2))[: None if most is None else most + 1]
    return Stream(table, dense, late, starts), Stream(table, dense, delay, starts)


def day_before(days: Array, codes: Array, delay: Array) -> Array:
    """The mean delay of the day before, and by how much that from the origin of each flight, and
    that to its destination, were above it, (n, 3). Nothing is known before the first day."""
    last, before = days[-1] + 1, np.maximum(days - 1, 0)
    overall = np.bincount(days, delay) / np.bincount(days)
    columns = [overall[before]]
    for airport in codes[:, :2].T:
        many = airport.max() + 1
        cells = days * many + airport
        excess = np.bincount(cells, delay - overall[days], last * many)
        counts = np.bincount(cells, minlength=last * many)
        columns.append((excess / (counts + _SHRUNK))[before * many + airport])
    return np.where(days[:, None] > 0, np.column_stack(columns), 0.0)


def _asked(question: Question, stream: Stream, progress: Progress) -> Delays:
    """All methods on one question."""
    classifies = is_classifier(question.boosting)
    classes = {"classes": [0, 1]} if classifies else {}
    followed = partial(_chosen, question, stream)
    penalty = followed(_PENALTIES, lambda value: Refit(question.ridge(value), _WEEK))
    steps = followed(_STEPS, lambda options: Online(question.sgd(**options), classes))
    exact = Exact(question.exact(penalty), forgets=True)
    followers: dict[str, Follower] = {
        EXACT: exact,
        GROWING: Exact(question.exact(penalty), forgets=False),
        "ridge, each week": Refit(question.ridge(penalty), _WEEK),
        "SGD": Online(question.sgd(**steps), classes),
        "boosting, each 4 weeks": Refit(question.boosting, _MONTH, dense=True),
    }
    if river_is_there():
        followers["river"] = River.of(classifies=classifies)
    courses, checks = [], []
    for i, (name, follower) in enumerate(followers.items()):
        progress(0.5 * i / len(followers), f"{question.title} {name}")
        days = []
        for day in follow(follower, stream, _WINDOW):
            days.append(day)
            if follower is exact and len(days) % _MONTH == 0:
                checks.append(exact.equals_fit(stream, day.window))
        answers = np.concatenate([day.answers for day in days])
        errors, overall = _errors(question, stream, answers)
        courses.append(
            Course(
                name,
                errors,
                overall,
                # Before the first day a whole window is learnt.
                first=days[0].learn,
                day=sum(day.learn for day in days[1:]) / (len(days) - 1),
                answer=sum(day.answer for day in days),
            )
        )
    same, seconds = zip(*checks, strict=True)
    return Delays(
        question.title,
        question.unit,
        tuple(courses),
        constant=_errors(question, stream, _means(stream, classifies))[0],
        checked=Checked(len(same), sum(same), median(seconds)),
    )


def _chosen(
    question: Question, stream: Stream, values: Sequence[T], make: Callable[[T], Follower]
) -> T:
    """The value with which a follower predicts the fourth week best, day by day."""
    month = replace(stream, starts=stream.starts[: _WINDOW + 1])
    asked = stream.rows(_WINDOW - _WEEK, _WINDOW)

    def error(value: T) -> float:
        days = follow(make(value), month, _WINDOW - _WEEK)
        return question.error(stream.y[asked], np.concatenate([day.answers for day in days]))

    return min(values, key=error)


def _means(stream: Stream, classifies: bool) -> Array:
    """The mean of the window, for each row after the first window.

    For classes the score is a constant, so that days are not ranked.
    """
    days = range(_WINDOW, stream.days)
    windows = [stream.y[stream.rows(day - _WINDOW, day)] for day in days]
    means = [0.0 if classifies else window.mean() for window in windows]
    return np.repeat(means, np.diff(stream.starts[_WINDOW:]))


def _errors(question: Question, stream: Stream, answers: Array) -> tuple[Array, float]:
    """The error of each week, (weeks,), and of all at once."""
    begin = stream.starts[_WINDOW]
    cuts = [*stream.starts[_WINDOW:-1:_WEEK], stream.starts[-1]]
    errors = [
        question.error(stream.y[first:last], answers[first - begin : last - begin])
        for first, last in pairwise(cuts)
    ]
    return np.array(errors), question.error(stream.y[begin : cuts[-1]], answers)
