"""An open file with all that a page asks of it. One thread at a time may call it."""

from __future__ import annotations

import json
from collections import OrderedDict
from contextlib import suppress
from copy import copy
from hashlib import blake2b
from secrets import token_bytes
from time import perf_counter
from typing import Any, NamedTuple, final

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import knowmore
from knowmore.arrays import Array
from knowmore.errors import InvalidInput, KnowmoreError, NoExamples
from knowmore.store.past import past
from knowmore.studio.edits import Parts, Scene, applied
from knowmore.studio.events import Event, Events
from knowmore.studio.field import Answers
from knowmore.studio.palette import Palette
from knowmore.studio.pictures import Pictures
from knowmore.studio.plane import Bounds, Grid, Plane, bounds_of, plane_of
from knowmore.studio.pool import Questions
from knowmore.studio.snapshot import Snapshot

# Answers to edits that are kept, for those that come again.
_KEPT = 1000
# Grids that are followed: one for each size of a page.
_GRIDS = 3


class Trial(NamedTuple):
    """Settings to look at before they are made."""

    noise: float | None = None
    length_scale: float | None = None


class _Followed(NamedTuple):
    """Answers for a grid, of a state of the file."""

    answers: Answers
    snapshot: Snapshot
    update_ms: float


@final
class Studio:
    """An open file, or what stands for one.

    events : what happened to it since it was opened
    pictures : those that wait to be learnt
    questions : about a pool, if somebody gave one
    palette : the colours of the classes

    When something is forgotten, here or by another process, all that was derived from it is let go
    of: see `_let_go`.
    """

    def __init__(self, store: Any, questions: Questions | None = None) -> None:
        self.store, self.questions = store, questions or Questions()
        self.events, self.pictures = Events(), Pictures(store)
        self.palette = Palette()
        self._now = Snapshot(self.store)
        self._plane: Plane | None = None
        self._bounds: Bounds | None = None
        self._followed: OrderedDict[Grid, _Followed] = OrderedDict()
        self._past: tuple[int, int, Snapshot] | None = None
        # Edits by their keys: a digest of each, which says nothing without the secret, and answers.
        self._answered: OrderedDict[str, tuple[bytes, dict[str, Any]]] = OrderedDict()
        self._secret = token_bytes(32)

    def close(self) -> None:
        """Let go of the file."""
        self.store.close()

    def now(self) -> Snapshot:
        """The state of the file, after whatever others have written to it."""
        return self._renewed() if self.store.refresh() else self._now

    def _renewed(self) -> Snapshot:
        before, self._now = self._now, Snapshot(self.store, self._now)
        self.events.note(before, self._now)
        self._past = None
        self.palette.slots(self._now.labels)
        if self._now.forgotten > before.forgotten:
            self._let_go(before, self._now)
        return self._now

    def _let_go(self, before: Snapshot, now: Snapshot) -> None:
        """Keep nothing of what was forgotten, nor what was chosen by it."""
        held = set() if now.examples is None else set(now.examples.names)
        for key, (asked, answer) in self._answered.items():
            ids = [one for one in answer["ids"] if one in held]
            self._answered[key] = asked, answer | {"ids": ids}
        self.palette.let_go(now.labels)
        self.pictures.let_go(before, now)
        self.questions.let_go(before, now)
        self._bounds = None
        old, self._plane = self._plane, None
        grid, followed = next(reversed(self._followed.items()), (None, None))
        self._followed.clear()
        if grid is None or followed is None or old is None or now.examples is None:
            return
        plane = self.plane(now)
        if plane is not None and plane.same_as(old):
            # What is looked at follows at once: until then it holds the state before.
            self._followed[grid] = followed
            with suppress(KnowmoreError):
                self._followed_to(now, grid)

    def missed(self, number: int | None) -> tuple[list[Event], int]:
        """What a page that last knew this number has missed, and how many events there were."""
        now = self.now()
        return [] if number is None else self.events.since(number, now), self.events.count

    # -- the plane ---------------------------------------------------------------------------

    def plane(self, now: Snapshot) -> Plane | None:
        """The plane that examples are drawn in, chosen from those that were there at first.

        Or from those that were left when something was forgotten.
        """
        if self._plane is None:
            if now.examples is not None:
                X = now.examples.X
                self._plane = plane_of(X, now.examples.labels, now.columns, now.least_value)
            else:
                # Whatever is learnt first by a click has two features.
                return Plane(np.zeros(2), np.eye(2), "features", ("x0", "x1"))
        elif now.examples is not None and now.examples.X.shape[1] != self._plane.axes.shape[1]:
            self._plane = self._bounds = None
            self._followed.clear()
            return self.plane(now)
        return self._plane

    def places(self, now: Snapshot) -> Array:
        """Where the examples are in the plane, (n, 2)."""
        plane = self.plane(now)
        if plane is None or now.examples is None:
            return np.empty((0, 2))
        return plane.places(now.examples.X)

    def bounds(self, now: Snapshot) -> Bounds:
        """What is seen of the plane at first: chosen when there is something to see, and kept."""
        if self._bounds is None:
            plane = self.plane(now)
            square = plane is not None and plane.by != "features"
            found = bounds_of(self.places(now), now.length_scale, square=square)
            if not len(now):
                return found
            self._bounds = found
        return self._bounds

    def state(self) -> dict[str, Any]:
        """What the page shows of the file as a whole."""
        now = self.now()
        plane, kernel = self.plane(now), now.kernel
        possible = plane is not None and now.is_classifier
        if possible:
            self.palette.begin(now.labels)
        slots = self.palette.slots(now.labels)
        return {
            "number": now.number,
            "n": len(now),
            "name": now.name,
            "kind": now.kind,
            "forgotten": now.forgotten,
            "classes": [one | {"slot": slots[one["label"]]} for one in now.classes()],
            "offered": [
                {"label": one, "slot": slots[one]} for one in self.palette.offered(now.labels)
            ],
            "features": None if now.examples is None else now.examples.X.shape[1],
            "columns": [*now.columns[:100]],
            "pictures": bool(self.store.notes.get("pictures")) and now.is_classifier,
            "pool": self.questions.pool is not None,
            "plane": {
                "possible": possible,
                "by": plane.by if plane is not None else None,
                "axes": [*plane.names] if plane is not None else None,
                "bounds": self.bounds(now)._asdict() if possible else None,
            },
            "loo_accuracy": now.accuracy,
            "log_evidence": now.evidence,
            "settings": {
                "noise": now.noise,
                "length_scale": now.length_scale,
                "kernel": None if kernel is None else repr(kernel),
            },
            "undo": entry_of(now.undo),
            "redo": entry_of(now.redo),
        }

    def points(self) -> dict[str, Any]:
        """Every example in the plane."""
        return self.points_of(self.now())

    def points_of(self, now: Snapshot) -> dict[str, Any]:
        """The same in any state of the file."""
        places = self._seen(now)
        return {
            "number": now.number,
            "labels": now.labels,
            "ids": [] if now.examples is None else now.examples.ids.tolist(),
            "x": places[:, 0].tolist(),
            "y": places[:, 1].tolist(),
            "class": now.codes.tolist(),
            "wrong": now.wrong.astype(int).tolist(),
            "silent": now.silent.astype(int).tolist(),
            "predicted": [] if now.examples is None else self._predicted(now),
        }

    def _predicted(self, now: Snapshot) -> list[int]:
        """The class that the others predict for each example, by its number."""
        return [*np.searchsorted(np.array(now.labels), now.predicted).tolist()]

    def _seen(self, now: Snapshot) -> Array:
        if self.plane(now) is None or not now.is_classifier:
            raise InvalidInput(
                "This model has no plane: that takes classes and at least two features."
            )
        return self.places(now)

    # -- the field ---------------------------------------------------------------------------

    def field(self, grid: Grid, trial: Trial, at: int | None = None) -> bytes:
        """The field of scores, variances and the unknown over a grid, as bytes.

        trial : settings to try; at : the entry of the journal after which the field was such

        A header as JSON, with its length before it (4 bytes, the lowest first); then the number of
        the winning class (1 byte each), its score and the variance (4 bytes each, floats), whether
        the place is unknown (1 byte) and the score of the second class (a float).
        """
        now = self.now()
        self._seen(now)
        if at is not None:
            return self._judged(self.at(now, at), grid, {"number": at})
        if trial != Trial() and now.examples is not None:
            other = now.refitted(**now.with_settings(*trial))
            return self._judged(now.with_estimator(other, now.examples), grid, {"trial": True})
        return self._followed_field(now, grid)

    def _followed_field(self, now: Snapshot, grid: Grid, **more: Any) -> bytes:
        """The field as it is now, without what takes every example left out: see `state`."""
        if now.examples is None:
            return _packed(_header(now, grid) | more)
        found = self._followed_to(now, grid)
        more = {"update_ms": found.update_ms} | more
        return _packed(_header(now, grid) | more, *_layers(now, found.answers))

    def _judged(self, then: Snapshot, grid: Grid, more: dict[str, Any]) -> bytes:
        """The field of another state, with what `state` says of this one."""
        if then.examples is None:
            return _packed(_header(then, grid) | more)
        answers = Answers.of(then.estimator, self._rows(then, grid))
        judged = {
            "loo_accuracy": then.accuracy,
            "log_evidence": then.evidence,
        }
        return _packed(_header(then, grid) | judged | more, *_layers(then, answers))

    def _followed_to(self, now: Snapshot, grid: Grid) -> _Followed:
        """Answers for the grid by the model as it is now."""
        before = self._followed.pop(grid, None)
        if before is None or before.snapshot is not now:
            begin = perf_counter()
            if before is None:
                answers = Answers.of(now.estimator, self._rows(now, grid))
            else:
                answers = before.answers.follow(now.estimator)
            before = _Followed(answers, now, (perf_counter() - begin) * 1e3)
        self._followed[grid] = before
        while len(self._followed) > _GRIDS:
            self._followed.popitem(last=False)
        return before

    def _rows(self, now: Snapshot, grid: Grid) -> Array:
        plane = self.plane(now)
        assert plane is not None
        return plane.rows(grid.places())

    def moved(self, grid: Grid, ids: list[Any], places: list[tuple[float, float]]) -> bytes:
        """The field, had these examples other places in the plane; nothing is written."""
        now = self.now()
        plane, _ = self.plane(now), self._seen(now)
        if now.examples is None or plane is None or not hasattr(now.estimator, "replace"):
            raise InvalidInput("There are no examples to move in a model of this kind.")
        if len(ids) != len(places):
            raise InvalidInput(f"{len(places)} places were given for {len(ids)} examples.")
        other = copy(now.estimator)
        old = now.examples.X[now.examples.rows(tuple(ids))]
        other.replace(ids, plane.moved(old, np.array(places, dtype=float)))
        then = now.with_estimator(other, now.examples)
        answers = self._followed_to(now, grid).answers.follow(then.estimator)
        return _packed(_header(then, grid) | {"trial": True}, *_layers(then, answers))

    def at(self, now: Snapshot, number: int) -> Snapshot:
        """The file as it was after an entry of the journal."""
        if self._past is None or self._past[:2] != (now.number, number):
            then = past(self.store, number)
            found = now.with_estimator(then.estimator or now.estimator, then.examples)
            self._past = now.number, number, found
        return self._past[2]

    def to_check(self, grid: Grid) -> tuple[Snapshot, Array, Answers, float]:
        """What `checked` takes: the state, the rows of the grid, the answers for these, a time."""
        now = self.now()
        self._seen(now)
        if now.examples is None:
            raise NoExamples("The model holds no examples yet. Add some first.")
        followed = self._followed_to(now, grid)
        return now, self._rows(now, grid), followed.answers, followed.update_ms

    # -- edits -------------------------------------------------------------------------------

    def edit(self, key: str, edit: Any) -> dict[str, Any]:
        """Apply an edit once, however often it comes with this key; durable when it returns."""
        asked = blake2b(edit.model_dump_json().encode(), key=self._secret).digest()
        if key in self._answered:
            before, answer = self._answered[key]
            if before != asked:
                raise InvalidInput(
                    "This idempotency key was used for another edit. Make a new one."
                )
            return answer
        now = self.now()
        begin = perf_counter()
        try:
            parts = Parts(self.store, now, self.plane(now), self.pictures, self.questions.pool)
            done = applied(edit, parts)
        finally:
            # A scene may have been cleared before it failed.
            now = self._renewed()
        if isinstance(edit, Scene):
            self.palette = Palette()
        answer = {
            "number": now.number,
            "n": len(now),
            "ids": done.ids,
            "warning": done.warning,
            "update_ms": (perf_counter() - begin) * 1e3,
        }
        self._answered[key] = asked, answer
        while len(self._answered) > _KEPT:
            self._answered.popitem(last=False)
        return answer

    def edited(self, key: str, edit: Any, grid: Grid) -> bytes:
        """The same, and the field that came of it, with the answer in its header."""
        self._seen(self.now())
        answer = self.edit(key, edit)
        return self._followed_field(self._now, grid, edit=answer)


def checked(now: Snapshot, X: Array, answers: Answers, update_ms: float) -> dict[str, Any]:
    """How long a fit from scratch takes, and how far its scores are from those that followed.

    All is frozen: it may take its time in another thread.
    """
    begin = perf_counter()
    fresh = Answers.anew(now.refitted(), X)
    took = (perf_counter() - begin) * 1e3
    return {
        "number": now.number,
        "update_ms": update_ms,
        "refit_ms": took,
        "difference": float(abs(fresh.scores - answers.scores).max(initial=0)),
    }


def warm() -> None:
    """Load what an edit may need, so that the first one takes no longer than the others."""
    gp = knowmore.GPClassifier(RBF(1.0)).fit([[0.0], [1.0], [2.0]], ["a", "b", "b"])
    gp.remove([0]).leave_one_out()


def entry_of(entry: Any) -> dict[str, Any] | None:
    """An entry of the journal for JSON."""
    if entry is None:
        return None
    return {
        "number": entry.number,
        "at": entry.at.isoformat(),
        "verb": entry.verb,
        "count": entry.count,
        "undone": entry.undone,
        "contributor": entry.contributor,
        "id": entry.id,
        "label": entry.label,
    }


def _layers(now: Snapshot, answers: Answers) -> tuple[Array, ...]:
    """The winning class, its score, the variance, what is unknown and the second score; (m,)."""
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
        rows = now.estimator.model_inputs(answers.X)[0]
        unknown = now.judge.unknown(now.estimator.model_, rows, answers.scores, variance)
    return (
        np.minimum(names[best], 255).astype(np.uint8),
        score.astype("<f4"),
        variance.astype("<f4"),
        unknown.astype(np.uint8),
        second.astype("<f4"),
    )


def _header(now: Snapshot, grid: Grid) -> dict[str, Any]:
    return {
        "number": now.number,
        "w": grid.w,
        "h": grid.h,
        "bounds": grid.bounds._asdict(),
        "classes": now.labels,
        "update_ms": None,
    }


def _packed(header: dict[str, Any], *arrays: Array) -> bytes:
    text = json.dumps(header).encode()
    parts = (one.tobytes() for one in arrays)
    return len(text).to_bytes(4, "little") + text + b"".join(parts)
