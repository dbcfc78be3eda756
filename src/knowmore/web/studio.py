"""An open file with all that a page asks of it. One thread at a time may call it."""

from __future__ import annotations

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
from knowmore._base import Array
from knowmore.errors import InvalidInput, KnowmoreError, NoExamples
from knowmore.store import past
from knowmore.web.bodies import SceneBody
from knowmore.web.edits import EditContext, applied
from knowmore.web.field import FieldAnswers, header, layers, packed
from knowmore.web.following import FileEvent, FileEvents, FollowedFile
from knowmore.web.listing import ExampleTable
from knowmore.web.palette import Palette
from knowmore.web.pictures import Pictures
from knowmore.web.plane import Bounds, FieldGrid, ViewPlane, bounds_of, plane_of
from knowmore.web.pool import PoolQuestions
from knowmore.web.snapshot import Snapshot

# Answers to edits that are kept, for edits that come again.
_KEPT = 1000
# Grids that are followed: one for each size of a page.
_GRIDS = 3


class TrialSettings(NamedTuple):
    """Settings to look at before they are made."""

    noise: float | None = None
    length_scale: float | None = None


class _Followed(NamedTuple):
    """Answers for a grid, of a state of the file."""

    answers: FieldAnswers
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

    def __init__(self, store: Any, questions: PoolQuestions | None = None) -> None:
        self.store, self.questions = store, questions or PoolQuestions()
        self.events, self.pictures = FileEvents(), Pictures(store)
        self.palette = Palette()
        self._file: FollowedFile[Snapshot] = FollowedFile(store, Snapshot)
        self._file.renew()
        self._plane: ViewPlane | None = None
        self._bounds: Bounds | None = None
        self._followed: OrderedDict[FieldGrid, _Followed] = OrderedDict()
        self._past: tuple[int, int, Snapshot] | None = None
        # Edits by their keys: a digest of each, which says nothing without the secret, and answers.
        self._answered: OrderedDict[str, tuple[bytes, dict[str, Any]]] = OrderedDict()
        self._secret = token_bytes(32)

    def close(self) -> None:
        """Let go of the file."""
        self.store.close()

    def now(self) -> Snapshot:
        """The state of the file, including edits by others."""
        return self._renewed() if self.store.refresh() else self._now

    @property
    def _now(self) -> Snapshot:
        assert self._file.value is not None
        return self._file.value

    def _renewed(self) -> Snapshot:
        before, now = self._now, self._file.renew()
        self.events.note(before, now)
        self._past = None
        self.palette.slots(now.labels)
        if now.forgotten > before.forgotten:
            self._let_go(before, now)
        return now

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

    def missed(self, number: int | None) -> tuple[list[FileEvent], int]:
        """The events that a page missed which last knew this number, and the count of all."""
        now = self.now()
        return [] if number is None else self.events.since(number, now), self.events.count

    def table(self, now: Snapshot) -> ExampleTable:
        """The examples of a state as a table."""
        return ExampleTable(now, self.store.contributors())

    # -- the plane ---------------------------------------------------------------------------

    def plane(self, now: Snapshot) -> ViewPlane | None:
        """The plane that examples are drawn in, chosen from those that were there at first.

        Or from those that were left when something was forgotten.
        """
        if self._plane is None:
            if now.examples is not None:
                X = now.examples.X
                self._plane = plane_of(X, now.examples.labels, now.columns, now.least_value)
            else:
                # The first example that a click adds has two features.
                return ViewPlane(np.zeros(2), np.eye(2), "features", ("x0", "x1"))
        elif now.examples is not None and now.examples.X.shape[1] != self._plane.axes.shape[1]:
            self._plane = self._bounds = None
            self._followed.clear()
            return self.plane(now)
        return self._plane

    def places(self, now: Snapshot) -> Array:
        """The places of the examples in the plane, (n, 2)."""
        plane = self.plane(now)
        if plane is None or now.examples is None:
            return np.empty((0, 2))
        return plane.places(now.examples.X)

    def bounds(self, now: Snapshot) -> Bounds:
        """The visible part of the plane: chosen when there is something to see, and kept."""
        if self._bounds is None:
            plane = self.plane(now)
            square = plane is not None and plane.by != "features"
            found = bounds_of(self.places(now), now.length_scale, square=square)
            if not len(now):
                return found
            self._bounds = found
        return self._bounds

    def state(self) -> dict[str, Any]:
        """The model as a whole: classes, settings, how often it is right, what undo would undo."""
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
                "bounds": self.bounds(now).shown() if possible else None,
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

    def points_of(self, now: Snapshot) -> dict[str, Any]:
        """Every example in the plane, in any state of the file."""
        places, predicted = self._seen(now), []
        if now.examples is not None:
            # The class that the others predict for each example, by its number.
            predicted = np.searchsorted(np.array(now.labels), now.predicted).tolist()
        return {
            "number": now.number,
            "labels": now.labels,
            "ids": [] if now.examples is None else now.examples.ids.tolist(),
            "x": places[:, 0].tolist(),
            "y": places[:, 1].tolist(),
            "class": now.codes.tolist(),
            "wrong": now.wrong.astype(int).tolist(),
            "silent": now.silent.astype(int).tolist(),
            "predicted": predicted,
        }

    def _seen(self, now: Snapshot) -> Array:
        if self.plane(now) is None or not now.is_classifier:
            raise InvalidInput(
                "This model has no plane: that takes classes and at least two features."
            )
        return self.places(now)

    # -- the field ---------------------------------------------------------------------------

    def field(self, grid: FieldGrid, trial: TrialSettings, at: int | None = None) -> bytes:
        """The field of scores, variances and the unknown over a grid, as bytes.

        trial : settings to try; at : an entry of the journal, for the field after it
        """
        now = self.now()
        self._seen(now)
        if at is not None:
            return self._judged(self.at(now, at), grid, {"number": at})
        if trial != TrialSettings() and now.examples is not None:
            other = now.refitted(**now.with_settings(*trial))
            return self._judged(now.with_estimator(other, now.examples), grid, {"trial": True})
        return self._followed_field(now, grid)

    def _followed_field(self, now: Snapshot, grid: FieldGrid, **more: Any) -> bytes:
        """The field as it is now, without what takes every example left out: see `state`."""
        if now.examples is None:
            return packed(header(now, grid) | more)
        found = self._followed_to(now, grid)
        more = {"update_ms": found.update_ms} | more
        return packed(header(now, grid) | more, *layers(now, found.answers))

    def _judged(self, then: Snapshot, grid: FieldGrid, more: dict[str, Any]) -> bytes:
        """The field of another state, with what `state` says of this one."""
        if then.examples is None:
            return packed(header(then, grid) | more)
        answers = FieldAnswers.of(then.estimator, self._rows(then, grid))
        judged = {
            "loo_accuracy": then.accuracy,
            "log_evidence": then.evidence,
        }
        return packed(header(then, grid) | judged | more, *layers(then, answers))

    def _followed_to(self, now: Snapshot, grid: FieldGrid) -> _Followed:
        """Answers for the grid by the model as it is now."""
        before = self._followed.pop(grid, None)
        if before is None or before.snapshot is not now:
            begin = perf_counter()
            if before is None:
                answers = FieldAnswers.of(now.estimator, self._rows(now, grid))
            else:
                answers = before.answers.follow(now.estimator)
            before = _Followed(answers, now, (perf_counter() - begin) * 1e3)
        self._followed[grid] = before
        while len(self._followed) > _GRIDS:
            self._followed.popitem(last=False)
        return before

    def _rows(self, now: Snapshot, grid: FieldGrid) -> Array:
        plane = self.plane(now)
        assert plane is not None
        return plane.rows(grid.places())

    def moved(self, grid: FieldGrid, ids: list[Any], places: list[tuple[float, float]]) -> bytes:
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
        return packed(header(then, grid) | {"trial": True}, *layers(then, answers))

    def at(self, now: Snapshot, number: int) -> Snapshot:
        """The file as it was after an entry of the journal."""
        if self._past is None or self._past[:2] != (now.number, number):
            then = past(self.store, number)
            found = now.with_estimator(then.estimator or now.estimator, then.examples)
            self._past = now.number, number, found
        return self._past[2]

    def to_check(self, grid: FieldGrid) -> tuple[Snapshot, Array, FieldAnswers, float]:
        """The arguments of `checked`: the state, the rows of the grid, their answers, a time."""
        now = self.now()
        self._seen(now)
        if now.examples is None:
            raise NoExamples("The model holds no examples yet. Add some first.")
        followed = self._followed_to(now, grid)
        return now, self._rows(now, grid), followed.answers, followed.update_ms

    def context(self, now: Snapshot) -> EditContext:
        """The parts that an edit may need."""
        pool = self.questions.pool
        return EditContext(self.store, now, self.plane(now), self.pictures, pool)

    # -- edits -------------------------------------------------------------------------------

    def edit(self, key: str, body: Any) -> dict[str, Any]:
        """Apply an edit once, however often it comes with this key; durable when it returns."""
        asked = blake2b(body.model_dump_json().encode(), key=self._secret).digest()
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
            done = applied(body, self.context(now))
        finally:
            # A scene may have been cleared before it failed.
            now = self._renewed()
        if isinstance(body, SceneBody):
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

    def edited(self, key: str, body: Any, grid: FieldGrid) -> bytes:
        """Apply an edit; the field after it, with the answer of `edit` in its header."""
        self._seen(self.now())
        answer = self.edit(key, body)
        return self._followed_field(self._now, grid, edit=answer)


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
