"""Pictures that were brought and wait to be decided upon, and small pictures of all examples.

An upload is described and made small, and then let go of: only Pillow's copy of it is ever shown,
or learnt. A picture that was learnt is kept, so that it waits again if that is undone; when
anything is forgotten, pictures that the file knew and does not hold are let go of.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import count
from pathlib import PurePosixPath
from typing import Any, final

import numpy as np
from pydantic import BaseModel

from knowmore._base import Array, Id, some
from knowmore.errors import InvalidInput, NoExamples
from knowmore.images import WORDS, PictureDescriber, digest
from knowmore.insight import Explanation, explain, grounds, has_grounds
from knowmore.store import Record, Store
from knowmore.web.bodies import MOST_PICTURES
from knowmore.web.doubting import chances_but
from knowmore.web.snapshot import RATE, Snapshot
from knowmore.workbench import Predictor, made_small

# Examples that are named beside a picture, and characters of the name of one.
_NAMED, _LONGEST = 4, 80
_SAID = ("label", "probability", "std", "unknown")
_EMPTY = "The model holds no examples yet. Teach it: knowmore learn."


@final
@dataclass(frozen=True, eq=False)
class Brought:
    """A picture that somebody brought.

    content : the SHA-256 of what was sent
    vector : its features (d,)
    small : a small picture of it, as JPEG
    refused : labels that somebody has said it has not
    learnt : the id of its example and the number of its entry in the journal, once it is learnt
    """

    number: int
    name: str
    content: bytes
    vector: Array
    small: bytes
    refused: tuple[Any, ...] = ()
    learnt: tuple[Id, int] | None = None


class WaitingPicture(BaseModel):
    """A picture that waits, and what the model says of it; what it cannot say is null."""

    picture: int
    name: str
    label: Any = None
    probability: float | None = None
    std: float | None = None
    unknown: bool | None = None


@dataclass(frozen=True)
class BoardExample:
    """An example, and what the others say of it."""

    id: Id
    label: Any
    predicted: Any
    wrong: bool
    silent: bool


@dataclass(frozen=True)
class Board:
    """All examples, and the pictures that wait: at most `most`."""

    number: int
    examples: list[BoardExample]
    waiting: list[WaitingPicture]
    most: int


@dataclass(frozen=True)
class ExampleInfluence:
    """An example that a score would be another one without."""

    id: Id
    label: Any
    similarity: float
    score_without: float


@dataclass(frozen=True)
class PictureGround:
    """Examples that a score rests on, and the score without them and all before."""

    ids: list[Id]
    label: Any
    score_left: float


@dataclass(frozen=True)
class PictureExplanation:
    """The score of a label, the nearest examples, and those that speak most against it.

    grounds : what the score rests on, empty with a squared hinge; instead : the label that is
        predicted without these
    """

    number: int
    label: Any
    score: float
    nearest: list[ExampleInfluence]
    against: list[ExampleInfluence]
    grounds: list[PictureGround]
    instead: Any


@final
class Pictures:
    """The pictures of one file. One thread at a time may call it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._numbers = count(1)
        self._brought: dict[int, Brought] = {}
        self._note: Any = None
        self._made: PictureDescriber | None = None

    # -- pictures that wait ------------------------------------------------------------------

    def take(self, now: Snapshot, data: bytes, name: str) -> Any:
        """Describe a picture, which waits from now on; the same one again is the same."""
        waiting, describer = self.waiting(now), self._describer(now)
        made_from, name = digest(data), _plain(name)
        if same := [one for one in waiting if one.content == made_from]:
            return self._told(now, same)[0]
        if len(waiting) >= MOST_PICTURES:
            raise InvalidInput(
                f"{MOST_PICTURES} pictures wait already, and no more can. Learn or dismiss some "
                f"first."
            )
        shown = made_small(data, repr(name))
        (vector,) = describer.vectors([data])
        if isinstance(vector, str):
            raise InvalidInput(f"{name!r} {vector}")
        found = Brought(next(self._numbers), name, made_from, vector, shown)
        told = self._told(now, [found])[0]
        self._brought[found.number] = found
        return told

    def waiting(self, now: Snapshot) -> list[Brought]:
        """Pictures that nobody has decided upon, or whose learning was undone."""
        if self.store.notes.get("pictures") != self._note:
            # Others are described in another way.
            self._brought.clear()
        stands = {entry.number for entry in now.entries if not entry.undone}
        waiting = []
        for one in [*self._brought.values()]:
            if one.learnt is None or one.learnt[1] not in stands:
                waiting.append(one)
            elif one.learnt[0] not in now.held:
                # It was learnt, and that is not undone: it has been forgotten.
                del self._brought[one.number]
        return waiting

    def vectors(self, now: Snapshot) -> dict[int, Array]:
        """The features (d,) of the pictures that wait, by their numbers."""
        return {one.number: one.vector for one in self.waiting(now)}

    def chosen(self, now: Snapshot, numbers: Sequence[int]) -> list[Brought]:
        """The waiting pictures of these numbers."""
        waiting = {one.number: one for one in self.waiting(now)}
        if strange := [one for one in numbers if one not in waiting]:
            raise InvalidInput(f"No picture {some(strange)} waits. It may be decided upon already.")
        if len(set(numbers)) < len(numbers):
            raise InvalidInput("A picture is named twice. Name each once.")
        return [waiting[one] for one in numbers]

    def learn(self, now: Snapshot, numbers: Sequence[int], labels: list[Any]) -> list[Id]:
        """Learn pictures that wait, one edit of all; their ids are their names."""
        chosen = self.chosen(now, numbers)
        ids: list[Id] = []
        for one in chosen:
            ids.append(_free(one.name, now.held.union(ids)))
        self.store.add(
            np.stack([one.vector for one in chosen]),
            labels,
            ids,
            contributor="studio",
            contents=[one.content for one in chosen],
            thumbnails=[one.small for one in chosen],
        )
        number = self.store.log(after=now.number)[-1].number
        for one, name in zip(chosen, ids, strict=True):
            self._brought[one.number] = replace(one, learnt=(name, number))
        waiting = {one.number for one in self.waiting(now)} - {*numbers}
        learnt = [one for one in self._brought if one not in waiting]
        for old in learnt[: max(len(learnt) - MOST_PICTURES, 0)]:
            del self._brought[old]
        return ids

    def let_go(self, before: Snapshot, now: Snapshot) -> None:
        """Something was forgotten: let go of what the file knew before, and does not hold now."""
        known, labels = {entry.number for entry in before.entries}, {*now.labels}
        for one in [*self._brought.values()]:
            left = tuple(label for label in one.refused if label in labels)
            self._brought[one.number] = replace(one, refused=left)
        for one in [*self._brought.values()]:
            if one.learnt is not None and one.learnt[1] in known and one.learnt[0] not in now.held:
                del self._brought[one.number]

    def dismiss(self, now: Snapshot, numbers: Sequence[int]) -> None:
        """Let go of pictures that wait."""
        for one in self.chosen(now, numbers):
            del self._brought[one.number]

    def refuse(self, now: Snapshot, number: int, label: Any) -> None:
        """Note that a picture that waits is not of this class: it is not named so any more."""
        (one,) = self.chosen(now, [number])
        self._brought[number] = replace(one, refused=(*one.refused, label))

    def _describer(self, now: Snapshot) -> PictureDescriber:
        note = self.store.notes.get("pictures")
        if note is None or not now.is_classifier:
            raise InvalidInput("This is no model of classes of pictures: it cannot read any.")
        if not len(now):
            raise NoExamples(_EMPTY)
        if self._made is None or note != self._note:
            self._made, self._note = PictureDescriber.stored(note, self.store.arrays(WORDS)), note
        return self._made

    # -- what the model says -----------------------------------------------------------------

    def board(self, now: Snapshot) -> Board:
        """Every example with what the others say of it, and the pictures that wait."""
        examples: list[BoardExample] = []
        if now.examples is not None and now.is_classifier:
            columns = (now.examples.labels, now.predicted, now.wrong, now.silent)
            rows = zip(now.examples.names, *(each.tolist() for each in columns), strict=True)
            examples = [BoardExample(*row) for row in rows]
        return Board(now.number, examples, self._told(now, self.waiting(now)), MOST_PICTURES)

    def _told(self, now: Snapshot, pictures: list[Brought]) -> list[Any]:
        """The predictions for pictures, as `knowmore predict` prints them: `WaitingPicture`."""
        told: list[dict[str, Any]] = [{"picture": one.number, "name": one.name} for one in pictures]
        if pictures and len(now):
            answers = now.once(_predictor)(np.stack([one.vector for one in pictures]))
            for one, answer in zip(told, answers, strict=True):
                one |= {name: getattr(answer, name) for name in _SAID}
            for picture, one in zip(pictures, told, strict=True):
                if one["label"] in picture.refused:
                    one |= _otherwise(now, picture)
        return told

    def explained(self, now: Snapshot, one: Id | None, picture: int | None) -> PictureExplanation:
        """The examples that are nearest to one or to a picture, and those that speak most against
        its label, or the predicted one; an example is explained by the others."""
        _check_one(one, picture)
        if now.examples is None:
            raise NoExamples(_EMPTY)
        if picture is not None:
            row = self.chosen(now, [picture])[0].vector[None]
            return _explained(now, now.estimator, row, None)
        assert one is not None
        at = now.examples.rows((one,))
        if not now.is_classifier:
            raise InvalidInput("A model of values has no classes to explain.")
        if not hasattr(now.estimator, "remove"):
            raise InvalidInput("A model of this kind holds no examples to explain this one by.")
        others, label = copy(now.estimator).remove([one]), now.examples.labels[at[0]].item()
        known = label in others.classes_.tolist()
        return _explained(now, others, now.examples.X[at], label if known else None)

    def shown(self, now: Snapshot, one: Id | None, picture: int | None) -> bytes | Record:
        """The small picture of one that waits, or what `small_picture` takes of an example."""
        _check_one(one, picture)
        if picture is not None:
            return self.chosen(now, [picture])[0].small
        assert one is not None
        return now.record(one)


def _otherwise(now: Snapshot, one: Brought) -> dict[str, Any]:
    """The label and probability of a picture among the classes that were not refused for it."""
    left = chances_but(now.estimator, one.vector, one.refused)
    if not left:
        return {"label": None, "probability": None, "unknown": True}
    label, chance = left[0]
    return {"label": label, "probability": chance}


def _predictor(now: Snapshot) -> Predictor:
    return Predictor(now.store, RATE, keep=False)


def _check_one(one: Id | None, picture: int | None) -> None:
    if (one is None) == (picture is None):
        raise InvalidInput("Give either the id of an example or the number of a picture.")


def _explained(now: Snapshot, estimator: Any, row: Array, label: Any) -> PictureExplanation:
    """The score of a row (1, d) by an estimator, and the examples that matter most."""
    assert now.examples is not None
    found = explain(estimator, row, label, by="examples")
    assert isinstance(found, Explanation)
    X, seen = now.examples.X[now.examples.rows(tuple(found.ids.tolist()))], row
    if (model := estimator.model_).has_gram:
        seen, X = map(model.covariance.seen, (row, X))
    near = np.asarray(estimator.kernel_(seen, X))[0]
    columns = found.ids, found.labels, near, found.score_without
    rows = [
        ExampleInfluence(*each)
        for each in zip(*(column.tolist() for column in columns), strict=True)
    ]
    nearest, against = (
        [rows[i] for i in np.argsort(by, kind="stable")[:_NAMED].tolist()]
        for by in (-near, -found.score_without)
    )
    against = [one for one in against if one.score_without > found.score]
    said, instead = [], None
    if has_grounds(estimator):
        why = grounds(estimator, row, label, _NAMED)
        each = zip(why.ids, why.labels.tolist(), why.score_left.tolist(), strict=True)
        said, instead = [PictureGround([*ids], name, left) for ids, name, left in each], why.instead
    return PictureExplanation(now.number, found.label, found.score, nearest, against, said, instead)


def _plain(name: str) -> str:
    """The last part of a path, without what cannot be shown.

    >>> _plain("C:\\\\a\\\\rose.jpg"), _plain("../../etc/passwd"), _plain("\\x00/")
    ('rose.jpg', 'passwd', 'picture')
    """
    last = PurePosixPath(name.replace("\\", "/")).name
    return "".join(one for one in last if one.isprintable())[-_LONGEST:].strip() or "picture"


def _free(name: str, held: frozenset[Any]) -> str:
    """The name, or with a number if it is held.

    >>> _free("rose.jpg", frozenset({"rose.jpg", "rose (2).jpg"}))
    'rose (3).jpg'
    """
    path = PurePosixPath(name)
    others = (f"{path.stem} ({i}){path.suffix}" for i in count(2))
    return name if name not in held else next(one for one in others if one not in held)
