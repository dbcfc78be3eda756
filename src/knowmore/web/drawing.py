"""How a page draws a model: its plane, the field of its answers, the colours of its classes.

The plane is two features, or two directions through the examples. The field is the answer of the
model for every place of the plane.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, final

import numpy as np

from knowmore._base import Array, Frozen
from knowmore.errors import InvalidInput
from knowmore.models import Following
from knowmore.subspaces import EigenspaceLDA, EigenspacePCA
from knowmore.web.snapshot import Snapshot
from knowmore.workbench import Judge

# -- the plane -----------------------------------------------------------------------------------
# It is chosen once and kept while examples come and go: a map that moves cannot be read. When some
# are forgotten it is chosen again from the others, since its axes were computed from all.

# Rows that a plane is chosen from, and numbers in these rows: more would take seconds.
_ENOUGH, _NUMBERS = 2000, 2**20
# Examples that are asked how well a plane shows the model, and the least part that must agree.
_JUDGED, _AGREES = 400, 0.75
# Fewer examples than this may have been taught a moment ago.
_FEW = 32


@final
@dataclass(frozen=True)
class Bounds:
    """The visible part of a plane."""

    x0: float
    x1: float
    y0: float
    y1: float


@final
@dataclass(frozen=True)
class FieldGrid:
    """The middles of w times h cells that fill the bounds, row by row from y0 up."""

    bounds: Bounds
    w: int
    h: int

    def places(self) -> Array:
        """(h w, 2)."""
        b = self.bounds
        x = b.x0 + (np.arange(self.w) + 0.5) / self.w * (b.x1 - b.x0)
        y = b.y0 + (np.arange(self.h) + 0.5) / self.h * (b.y1 - b.y0)
        return np.column_stack([np.tile(x, self.h), np.repeat(y, self.w)])


@final
@dataclass(frozen=True, eq=False)
class ViewPlane(Frozen):
    """origin + z axes units, for places z (m, 2); origin (d,), axes (2, d), orthonormal.

    by : "features", "eigenspace" or "discriminants"
    names : of the two axes
    units : of the features, (d,): a plane of mass in grams beside shares of one shows mass alone
    least : features below it are that, such as those of histograms below zero
    """

    origin: Array
    axes: Array
    by: str
    names: tuple[str, str]
    units: Array
    least: float = -np.inf

    def same_as(self, other: ViewPlane) -> bool:
        """Whether both show the same at the same place."""
        mine, theirs = (
            (self.origin, self.axes, self.units),
            (other.origin, other.axes, other.units),
        )
        return self.least == other.least and all(map(np.array_equal, mine, theirs))

    def places(self, X: Array) -> Array:
        """The places (n, 2) of examples X (n, d)."""
        return np.asarray((X - self.origin) / self.units @ self.axes.T)

    def rows(self, places: Array) -> Array:
        """The features (m, d) of places (m, 2) in the plane."""
        return np.asarray(np.maximum(self.origin + places @ self.axes * self.units, self.least))

    def moved(self, X: Array, places: Array) -> Array:
        """Examples X (n, d) such that they are seen at places (n, 2); what is not seen stays."""
        moves = (places - self.places(X)) @ self.axes * self.units
        return np.asarray(np.maximum(X + moves, self.least))


def plane_of(
    X: Array,
    labels: Array,
    names: tuple[str, ...],
    least: float = -np.inf,
    units: Array | None = None,
) -> ViewPlane | None:
    """The plane of examples X (n, d) with labels (n,), or None if they have none.

    units : (d,), in which the model sees the features; None: as they are

    Two features are a plane. Of more there are the two leading discriminants, if there are three
    classes or more, or the two leading directions of the eigenspace.
    """
    n, d = X.shape
    if d == 2:
        names_of = (names[0], names[1])
        return ViewPlane(np.zeros(2), np.eye(2), "features", names_of, np.ones(2), least)
    if d < 2 or n < 3:
        return None
    some = np.linspace(0, n - 1, min(n, _ENOUGH, max(_NUMBERS // d, 100))).astype(int)
    units = np.ones(d) if units is None else units
    X, labels = X[some] / units, labels[some]
    origin, by = X.mean(axis=0), "eigenspace"
    # All rows are in the span of V, which has fewer columns if there are more features than rows.
    V = np.linalg.qr((X - origin).T)[0] if d > len(X) else np.eye(d)
    Z = (X - origin) @ V
    if labels.ndim == 1 and 3 <= len(set(labels.tolist())) < len(X) // 2:
        directions = EigenspaceLDA(n_components=2).fit(Z, labels).scalings_.T
        by = "discriminants"
    else:
        directions = np.asarray(EigenspacePCA(n_components=2).fit(Z).components_)
    axes = np.linalg.qr(V @ directions.T)[0].T
    if axes.shape != (2, d) or not np.isfinite(axes).all():
        return None
    word = "differences between classes," if by == "discriminants" else "direction"
    return ViewPlane(origin * units, axes, by, (f"{word} 1", f"{word} 2"), units, least)


@final
@dataclass(frozen=True)
class Slice:
    """How much of a model its plane shows.

    share : the part of the variance of the examples that lies in the plane, in its units
    agreement : the part of the examples of which the model says in the plane, where all that is
        not seen is at its mean, what it says of them themselves
    unsure : the part that is unknown to the model there, and known in truth
    """

    share: float
    agreement: float
    unsure: float

    @property
    def misleads(self) -> bool:
        """Whether the colours of the plane are often not what the model says."""
        return self.agreement < _AGREES

    @property
    def hatching_misleads(self) -> bool:
        """Whether the plane often calls unknown what the model knows."""
        return self.unsure > 1 - _AGREES


def slice_of(plane: ViewPlane, estimator: Any, X: Array, judge: Judge | None = None) -> Slice:
    """How much of a model is seen in a plane through its examples X (n, d), or through some.

    judge : of unknown rows; None if the model cannot tell
    """
    some = X[np.linspace(0, len(X) - 1, min(len(X), _JUDGED)).astype(int)]
    places, centred = plane.places(some), (some - some.mean(axis=0)) / plane.units
    total = float((centred**2).sum())
    seen = float(((places - places.mean(axis=0)) ** 2).sum())
    there = plane.rows(places)
    said = estimator.predict(there) == estimator.predict(some)
    unsure = 0.0
    if judge is not None:
        model, rows = estimator.model_, map(estimator.model_inputs, (there, some))
        new, known = (judge.unknown(model, X, model.mean(X), model.variance(X)) for X in rows)
        unsure = float((new & ~known).mean())
    return Slice(seen / total if total > 0 else 1.0, float(said.mean()), unsure)


def bounds_of(places: Array, reach: float | None, *, square: bool) -> Bounds:
    """Bounds around places (n, 2), with room for more.

    reach : the length scale of the kernel: the model has something to say so far around examples
    square : whether both axes have the same unit
    """
    begun = len(places) < _FEW and not square
    if not len(places) or (begun and abs(places).max() <= 1):
        # A plane that was empty a moment ago looks as it did then.
        return Bounds(-1.0, 1.0, -1.0, 1.0)
    low, high = places.min(axis=0), places.max(axis=0)
    span = high - low
    room = np.maximum(0.15 * span, np.minimum(1.5 * (reach or 0.0), 0.4 * span))
    room = np.where(span > 0, room, 1.5 * (reach or 0.0) or np.maximum(abs(high), 1.0))
    if square:
        room += (max(span + 2 * room) - span - 2 * room) / 2
    (x0, y0), (x1, y1) = (low - room).tolist(), (high + room).tolist()
    return Bounds(x0, x1, y0, y1)


# -- the field -----------------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False, repr=False)
class FieldAnswers(Frozen):
    """Scores (m, M) and variances (m,) of rows X (m, d) by the model of a snapshot.

    variance : None if the kind of model has none
    following : where the next answers start; None if the model is asked anew each time
    update_ms : how long the answers took
    """

    now: Snapshot
    X: Array
    scores: Array
    variance: Array | None
    following: Following | None
    update_ms: float

    @classmethod
    def of(
        cls, now: Snapshot, X: Array, before: Following | None = None, *, anew: bool = False
    ) -> FieldAnswers:
        """Answers from earlier ones as far as they last, or `anew`."""
        begin, model = perf_counter(), now.estimator.model_
        variance, following = None, None
        if model.has_gram and model.targets.prior is None and not anew:
            following = Following(model, X) if before is None else before.follow(model)
            scores, variance = following.scores, following.variance
        else:
            scores = np.asarray(model.mean(now.estimator.model_inputs(X)))
            if hasattr(now.estimator, "predict_variance"):
                variance = np.asarray(now.estimator.predict_variance(X))
        return cls(now, X, scores, variance, following, (perf_counter() - begin) * 1e3)

    def follow(self, now: Snapshot) -> FieldAnswers:
        """Answers for the same rows by the model of another snapshot."""
        return self if now is self.now else FieldAnswers.of(now, self.X, self.following)


def checked(_: Any, answers: FieldAnswers) -> dict[str, Any]:
    """How long a fit from scratch takes, and how far its scores are from those that followed.

    All is frozen: it may take its time in another thread.
    """
    now, begin = answers.now, perf_counter()
    fresh = FieldAnswers.of(now.with_estimator(now.refitted(), now.examples), answers.X, anew=True)
    took = (perf_counter() - begin) * 1e3
    return {
        "number": now.number,
        "update_ms": answers.update_ms,
        "refit_ms": took,
        "difference": float(abs(fresh.scores - answers.scores).max(initial=0)),
    }


def field_bytes(now: Snapshot, grid: FieldGrid, answers: FieldAnswers | None, **more: Any) -> bytes:
    """A header and layers of answers, if there are examples, as bytes.

    The length of the header comes first (4 bytes, the lowest first), then the header as JSON, then
    the number of the winning class (1 byte each), its score and the variance (4 bytes each,
    floats), whether the place is unknown (1 byte) and the score of the second class (a float).

    more : further parts of the header
    """
    size = {"number": now.number, "w": grid.w, "h": grid.h, "bounds": vars(grid.bounds)}
    text = json.dumps(size | {"classes": now.labels, "update_ms": None} | more).encode()
    parts = () if answers is None else _layers(answers)
    return len(text).to_bytes(4, "little") + text + b"".join(part.tobytes() for part in parts)


def _layers(answers: FieldAnswers) -> tuple[Array, ...]:
    """The winning class, its score, the variance, what is unknown and the second score; (m,)."""
    now = answers.now
    names = np.searchsorted(np.array(now.labels), now.estimator.model_.names)
    best = answers.scores.argmax(axis=1)
    score = answers.scores[np.arange(len(best)), best]
    # A single class is compared with its opposite.
    second = -score
    if answers.scores.shape[1] > 1:
        second = np.partition(answers.scores, -2, axis=1)[:, -2]
    variance, unknown = np.zeros(len(best)), np.zeros(len(best), dtype=bool)
    if answers.variance is not None:
        variance = answers.variance
    if now.judge is not None:
        rows = now.estimator.model_inputs(answers.X)
        unknown = now.judge.unknown(now.estimator.model_, rows, answers.scores, variance)
    return (
        np.minimum(names[best], 255).astype(np.uint8),
        score.astype("<f4"),
        variance.astype("<f4"),
        unknown.astype(np.uint8),
        second.astype("<f4"),
    )


# -- the colours ---------------------------------------------------------------------------------
# The studio keeps them, and no browser does: a browser's store outlives what is forgotten.

# Classes without examples that may be offered.
_MOST = 100
# An empty plane begins with these.
_FIRST = ("A", "B")


@final
class Palette:
    """The colours and keys of classes: a number each, which stays while others come and go."""

    def __init__(self) -> None:
        self._slots: dict[Any, int] = {}
        # By label: whether the class has had an example.
        self._offered: dict[Any, bool] = {}
        # Those that nobody asked for.
        self._first: set[Any] = set()

    def offer(self, label: Any) -> None:
        """Offer a class that has no example yet."""
        if len(self._offered) >= _MOST and label not in self._offered:
            raise InvalidInput(
                f"{_MOST} classes wait for an example already. Give some of them one."
            )
        self._offered.setdefault(label, False)
        self._number(label)

    def begin(self, held: Sequence[Any], plane: bool = True) -> None:
        """Offer two classes as long as the model has none, or one of these two.

        They are let go of when it has others.

        plane : whether examples are taught by a click on the plane
        """
        if not plane or (held and not {*held}.intersection(_FIRST)):
            first = [one for one in self._first if one not in held]
            self._offered = {one: used for one, used in self._offered.items() if one not in first}
            self._first.clear()
            return
        known = {*held, *self._offered}
        if len(known) < 2 and known.issubset(_FIRST):
            for label in _FIRST:
                if label not in self._offered:
                    self._first.add(label)
                self.offer(label)

    def let_go(self, held: Sequence[Any]) -> None:
        """Something was forgotten: let go of classes that had examples and have none now."""
        self._offered = {
            one: used for one, used in self._offered.items() if not used or one in held
        }

    def slots(self, held: Sequence[Any]) -> dict[Any, int]:
        """The numbers of the classes that have examples, and of offered classes."""
        for one in held:
            if one in self._offered:
                self._offered[one] = True
        named = dict.fromkeys([*held, *self._offered])
        # A class that is gone leaves its number to the next.
        self._slots = {one: slot for one, slot in self._slots.items() if one in named}
        for one in named:
            self._number(one)
        return dict(self._slots)

    def _number(self, label: Any) -> None:
        """Give a class the lowest number that is free, unless it has one."""
        used = set(self._slots.values())
        self._slots.setdefault(label, next(i for i in range(len(used) + 1) if i not in used))

    def offered(self, held: Sequence[Any]) -> list[Any]:
        """The classes that are offered and have no example."""
        return [one for one in self._offered if one not in held]
