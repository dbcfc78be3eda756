"""An open file with all that a page asks of it. One thread at a time may call it."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from copy import copy
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from secrets import token_bytes
from time import perf_counter
from typing import Any, final

import numpy as np
from sklearn.gaussian_process.kernels import RBF

import knowmore
from knowmore._base import Array, Id
from knowmore.errors import InvalidInput, KnowmoreError, NoExamples
from knowmore.store import Entry, past
from knowmore.tables import Encoding
from knowmore.web import bodies
from knowmore.web.drawing import (
    Bounds,
    FieldAnswers,
    FieldGrid,
    Palette,
    ViewPlane,
    bounds_of,
    field_bytes,
    plane_of,
    slice_of,
)
from knowmore.web.edits import applied
from knowmore.web.following import FileEvents, FollowedFile
from knowmore.web.pictures import Pictures
from knowmore.web.pool import PoolQuestions
from knowmore.web.snapshot import Snapshot
from knowmore.workbench import TUNABLE

# Answers to edits that are kept, for edits that come again.
_KEPT = 1000
# Grids that are followed: one for each size of a page.
_GRIDS = 3


@dataclass(frozen=True)
class EditResult:
    """The result of an edit: the examples of the edit that the file holds now, and a warning.

    warning : why bytes of forgotten examples may be left, and which settings stay; or ""
    """

    number: int
    n: int
    ids: list[Id]
    warning: str
    update_ms: float


@final
@dataclass
class WorkProgress:
    """What is being done that takes long; `words` are "" if nothing is.

    share : how much of it is done, 0 to 1; None if nobody knows
    """

    words: str = ""
    share: float | None = None

    def tell(self, words: str) -> None:
        """Begin something else."""
        self.words, self.share = words, None


@final
class Studio:
    """An open file, or what stands for one.

    progress : what is being done, for whoever waits
    file : the file, and the snapshot of its last state
    events : the edits of the file since it was opened
    pictures : pictures that wait to be learnt
    questions : about a pool, if somebody gave one
    palette : the colours of the classes

    When something is forgotten, here or by another process, all that was derived from it is let go
    of: see `_let_go`.
    """

    def __init__(
        self,
        store: Any,
        questions: PoolQuestions | None = None,
        progress: WorkProgress | None = None,
    ) -> None:
        self.store, self.questions = store, questions or PoolQuestions()
        self.progress = progress or WorkProgress()
        # How many examples there were when better settings were last looked for.
        self.searched = 0
        self.events, self.pictures = FileEvents(), Pictures(store)
        self.palette = Palette()
        self.file = FollowedFile(store, Snapshot)
        self.file.look()
        self._plane: ViewPlane | None = None
        # The encoding of the examples when the plane was chosen.
        self._table: Encoding | None = None
        self._bounds: Bounds | None = None
        self._followed: OrderedDict[FieldGrid, FieldAnswers] = OrderedDict()
        self._past: tuple[int, int, Snapshot] | None = None
        # Edits by their keys: a digest of each, which says nothing without the secret, and answers.
        self._answered: OrderedDict[str, tuple[bytes, EditResult]] = OrderedDict()
        self._secret = token_bytes(32)

    def now(self) -> Snapshot:
        """The state of the file, including edits by others."""
        before: Snapshot = self.file.value
        if not self.file.look():
            return before
        now: Snapshot = self.file.value
        self.events.note(before, now)
        self._past = None
        self.palette.slots(now.labels)
        if now.forgotten > before.forgotten:
            self._let_go(before, now)
        return now

    def _let_go(self, before: Snapshot, now: Snapshot) -> None:
        """Keep nothing of what was forgotten, nor what was chosen by it."""
        for key, (asked, answer) in self._answered.items():
            ids = [one for one in answer.ids if one in now.held]
            self._answered[key] = asked, replace(answer, ids=ids)
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
                self._answers(now, grid)

    # -- the plane ---------------------------------------------------------------------------

    def plane(self, now: Snapshot) -> ViewPlane | None:
        """The plane that examples are drawn in, chosen from those that were there at first.

        Or from those that were left when something was forgotten.
        """
        if self._plane is None:
            if now.examples is not None:
                X, self._table = now.examples.X, now.table
                self._plane = plane_of(
                    X, now.examples.labels, now.columns, now.least_value, now.units
                )
            else:
                # The first example that a click adds has two features.
                return ViewPlane(np.zeros(2), np.eye(2), "features", ("x0", "x1"), np.ones(2))
        elif now.examples is not None and (
            now.examples.X.shape[1] != self._plane.axes.shape[1] or now.table != self._table
        ):
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
            self.palette.begin(now.labels, plane=now.takes_places)
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
            "pictures": now.of_pictures,
            "tunable": now.in_file and now.kind in TUNABLE and now.examples is not None,
            "refuses": now.in_file and now.is_classifier,
            "pool": self.questions.pool is not None,
            "plane": {
                "possible": possible,
                "by": plane.by if plane is not None else None,
                "axes": [*plane.names] if plane is not None else None,
                "slice": now.once(self._slice),
                "bounds": vars(self.bounds(now)) if possible else None,
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

    def _slice(self, now: Snapshot) -> dict[str, Any] | None:
        """How much the plane shows of a model of more features; None if that is all of it."""
        plane = self.plane(now)
        if plane is None or plane.by == "features" or now.examples is None:
            return None
        if not now.is_classifier:
            return None
        found = slice_of(plane, now.estimator, now.examples.X, now.judge)
        hatching = found.hatching_misleads
        return asdict(found) | {"misleads": found.misleads, "hatching_misleads": hatching}

    def points_of(self, now: Snapshot) -> dict[str, Any]:
        """Every example in the plane, in any state of the file."""
        places, predicted = self.seen(now), []
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

    def seen(self, now: Snapshot) -> Array:
        """The places of the examples, (n, 2); raises InvalidInput if the model has no plane."""
        if self.plane(now) is None or not now.is_classifier:
            raise InvalidInput(
                "This model has no plane: that takes classes and at least two features."
            )
        return self.places(now)

    # -- the field ---------------------------------------------------------------------------

    def field(
        self,
        grid: bodies.Seen,
        noise: bodies.TrialNoise = None,
        length_scale: bodies.TrialScale = None,
        at: bodies.Number = None,
    ) -> bytes:
        """Scores, variances and what is unknown over a grid, as bytes.

        With other settings on trial, or as they were after an entry of the journal.
        """
        now = self.now()
        self.seen(now)
        more: dict[str, Any] = {"number": at}
        if at is not None:
            then = self.at(now, at)
        elif (noise, length_scale) != (None, None) and now.examples is not None:
            other = now.refitted(**now.with_settings(noise, length_scale))
            then, more = now.with_estimator(other, now.examples), {"trial": True}
        else:
            return self._field(now, grid)
        if then.examples is None:
            return field_bytes(then, grid, None, **more)
        answers = FieldAnswers.of(then, self._rows(then, grid))
        more = {"loo_accuracy": then.accuracy, "log_evidence": then.evidence} | more
        return field_bytes(then, grid, answers, **more)

    def _field(self, now: Snapshot, grid: FieldGrid, **more: Any) -> bytes:
        """The field as it is now, without what takes every example left out: see `state`."""
        if now.examples is None:
            return field_bytes(now, grid, None, **more)
        answers = self._answers(now, grid)
        return field_bytes(now, grid, answers, update_ms=answers.update_ms, **more)

    def _answers(self, now: Snapshot, grid: FieldGrid) -> FieldAnswers:
        """Answers for the grid by the model as it is now."""
        before = self._followed.pop(grid, None)
        if before is None:
            answers = FieldAnswers.of(now, self._rows(now, grid))
        else:
            answers = before.follow(now)
        self._followed[grid] = answers
        while len(self._followed) > _GRIDS:
            self._followed.popitem(last=False)
        return answers

    def _rows(self, now: Snapshot, grid: FieldGrid) -> Array:
        plane = self.plane(now)
        assert plane is not None
        return plane.rows(grid.places())

    def check(self, grid: bodies.Seen) -> Any:
        """How far the field is from the field of a fit from scratch, and how long that takes."""
        now = self.now()
        self.seen(now)
        if now.examples is None:
            raise NoExamples("The model holds no examples yet. Add some first.")
        return self._answers(now, grid)

    def moved(self, asked: bodies.MoveBody) -> bytes:
        """The field, had examples other places; nothing is written."""
        grid = bodies.bounded(asked.x0, asked.x1, asked.y0, asked.y1, asked.w, asked.h)
        now = self.now()
        plane, _ = self.plane(now), self.seen(now)
        if now.examples is None or plane is None or not hasattr(now.estimator, "replace"):
            raise InvalidInput("There are no examples to move in a model of this kind.")
        if len(asked.ids) != len(asked.plane):
            raise InvalidInput(
                f"{len(asked.plane)} places were given for {len(asked.ids)} examples."
            )
        other = copy(now.estimator)
        old = now.examples.X[now.examples.rows(tuple(asked.ids))]
        other.replace(asked.ids, plane.moved(old, np.array(asked.plane, dtype=float)))
        answers = self._answers(now, grid).follow(now.with_estimator(other, now.examples))
        return field_bytes(answers.now, grid, answers, trial=True)

    def at(self, now: Snapshot, number: int) -> Snapshot:
        """The file as it was after an entry of the journal."""
        if self._past is None or self._past[:2] != (now.number, number):
            then = past(self.store, number)
            found = now.with_estimator(then.estimator or now.estimator, then.examples)
            self._past = now.number, number, found
        return self._past[2]

    # -- edits -------------------------------------------------------------------------------

    def edit(self, key: bodies.Key, asked: bodies.EditBody) -> EditResult:
        """Edit the file; the edit is durable when the answer comes.

        It is applied once, however often it comes with this key.
        """
        digest = blake2b(asked.model_dump_json().encode(), key=self._secret).digest()
        if key in self._answered:
            before, answer = self._answered[key]
            if before != digest:
                raise InvalidInput(
                    "This idempotency key was used for another edit. Make a new one."
                )
            return answer
        now, begin = self.now(), perf_counter()
        try:
            ids, warning = applied(asked, self, now)
        finally:
            # A scene may have been cleared before it failed.
            self.file.stale = True
            now = self.now()
        if isinstance(asked, bodies.SceneBody):
            self.palette = Palette()
        took = (perf_counter() - begin) * 1e3
        answer = EditResult(now.number, len(now), ids, warning, took)
        self._answered[key] = digest, answer
        while len(self._answered) > _KEPT:
            self._answered.popitem(last=False)
        return answer

    def edit_seen(self, asked: bodies.EditBody, key: bodies.Key, grid: bodies.Seen) -> bytes:
        """Edit the file, as `/api/edit` does; the field after it, with that answer."""
        self.seen(self.now())
        answer = self.edit(key, asked)
        return self._field(self.file.value, grid, edit=vars(answer))


def warm() -> None:
    """Load what an edit may need, so that the first one takes no longer than the others."""
    gp = knowmore.GPClassifier(RBF(1.0)).fit([[0.0], [1.0], [2.0]], ["a", "b", "b"])
    gp.remove([0]).leave_one_out()


def entry_of(entry: Entry | None) -> dict[str, Any] | None:
    """An entry of the journal for JSON."""
    return None if entry is None else asdict(entry) | {"at": entry.at.isoformat()}
