"""Classifiers that learn the same rows: how accurate they are, and how long they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, final

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from papers.arrays import Array
from papers.data import Split
from papers.findings import (
    BLUE,
    GREY,
    Table,
    as_time,
    new_figure,
    quiet_axes,
    save_figure,
    write_csv,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")


class Entry(NamedTuple):
    """How one method did.

    method, features : what learnt, and from what
    ours : whether it is one of knowmore's
    rows : how many it learnt
    accuracy : the part of the test rows that is right
    choose, fit, predict : wall times in seconds: to choose its parameters, to learn, and to answer
        for all test rows
    """

    method: str
    features: str
    ours: bool
    rows: int
    accuracy: float
    choose: float
    fit: float
    predict: float

    @property
    def seconds(self) -> float:
        """To learn and to answer: some models do half of the work when they are first asked."""
        return self.fit + self.predict


@final
@dataclass(frozen=True, eq=False)
class Method:
    """A method with the parameters it may take: the best on validation rows is taken.

    features : what it learns from, the name of one of the splits
    rows : it learns no more than so many
    """

    name: str
    features: str
    candidates: Sequence[Any]
    ours: bool = False
    rows: int | None = None


def forests(trees: int, features: str, seed: int) -> Iterator[Method]:
    """Peers: forests of so many trees, on all cores."""
    peers = {"RandomForest": RandomForestClassifier, "ExtraTrees": ExtraTreesClassifier}
    for name, kind in peers.items():
        yield Method(name, features, [kind(trees, n_jobs=-1, random_state=seed)])


# So many training rows choose parameters; a fifth of them validates.
_CHOICE = 10_000


def enter(method: Method, split: Split) -> tuple[Entry, Array]:
    """Choose, learn and test; and which test rows are right, (m,).

    The rows of the split are in random order.
    """
    X, y = split.X[: method.rows], split.y[: method.rows]
    model, choose = method.candidates[0], 0.0
    if len(method.candidates) > 1:
        model, choose = clocked(lambda: _best(method.candidates, X[:_CHOICE], y[:_CHOICE]))
    model, fit = clocked(lambda: clone(model).fit(X, y))
    answers, predict = clocked(lambda: model.predict(split.X_test))
    right = np.asarray(answers == split.y_test)
    accuracy, times = float(right.mean()), (choose, fit, predict)
    return Entry(method.name, method.features, method.ours, len(y), accuracy, *times), right


def clocked(act: Callable[[], T]) -> tuple[T, float]:
    """The value of `act()`, run once, and its wall time in seconds."""
    began = perf_counter()
    found = act()
    return found, perf_counter() - began


def _best(candidates: Sequence[Any], X: Array, y: Array) -> Any:
    n = len(y) - len(y) // 5
    rates = [clone(one).fit(X[:n], y[:n]).score(X[n:], y[n:]) for one in candidates]
    return candidates[int(np.argmax(rates))]


def standard_error(a: Array, b: Array) -> float:
    """The standard error of the difference of two accuracies.

    a, b : whether each of the same test rows is right, (m,)
    """
    return float((a.astype(float) - b).std() / np.sqrt(len(a)))


def no_faster_peer(entries: Sequence[Entry], one: Entry) -> tuple[bool, str]:
    """Whether all peers that are at least as accurate take longer, and in words who they are."""
    better = [e for e in entries if not e.ours and e.accuracy >= one.accuracy]

    def words(e: Entry) -> str:
        return f"{e.method} {e.accuracy:.4f} in {as_time(e.seconds)}"

    faster = any(e.seconds <= one.seconds for e in better)
    found = ", ".join(map(words, better)) or "none"
    return not faster, f"{words(one)} (learning and answering); at least as accurate: {found}"


def table(title: str, entries: Sequence[Entry]) -> Table:
    """All entries, the most accurate first."""
    named = any(e.features for e in entries)
    return Table(
        title,
        ("method", *["features"] * named, "rows", "accuracy", "choose", "fit", "answer"),
        tuple(
            (
                e.method,
                *[e.features] * named,
                f"{e.rows:,}",
                f"{e.accuracy:.4f}",
                *(as_time(t) if t else "-" for t in (e.choose, e.fit, e.predict)),
            )
            for e in sorted(entries, key=lambda e: -e.accuracy)
        ),
    )


def saved(contests: Mapping[str, Sequence[Entry]], out: Path, name: str) -> tuple[Path, Path]:
    """The picture and the numbers of all contests, by their titles, as files of that name."""
    entries = [entry for each in contests.values() for entry in each]
    numbers = write_csv(out / f"{name}.csv", Entry._fields, entries)
    return save_figure(_draw(contests), out / f"{name}.png"), numbers


def _draw(contests: Mapping[str, Sequence[Entry]]) -> Figure:
    """Accuracy over the time to learn and to answer, one panel for each contest."""
    figure = new_figure(7.5 * len(contests), 5.2)
    panels = figure.subplots(1, len(contests), squeeze=False)[0]
    for ax, (title, entries) in zip(panels, contests.items(), strict=True):
        middle = np.median([e.seconds for e in entries])
        for e in entries:
            colour, left = BLUE if e.ours else GREY, e.seconds > middle
            ax.plot(e.seconds, e.accuracy, "o" if e.ours else "s", color=colour, markersize=6)
            name = e.method + f" ({e.features})" * bool(e.features)
            ax.annotate(
                name,
                (e.seconds, e.accuracy),
                # Towards the middle, above for ours and below for the others.
                xytext=(-6 if left else 6, 3 if e.ours else -10),
                textcoords="offset points",
                ha="right" if left else "left",
                color=colour,
                fontsize=8,
            )
        ax.set_xscale("log")
        ax.margins(x=0.25, y=0.1)
        ax.set_xlabel("seconds to learn and to answer")
        ax.set_ylabel("accuracy")
        ax.set_title(title)
        quiet_axes(ax)
    return figure
