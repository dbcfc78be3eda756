"""The answers of a model about rows as requests have them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, final

import numpy as np
from fastapi import HTTPException
from sklearn.base import is_classifier

from knowmore._base import Array, is_real, some
from knowmore.errors import InvalidInput, NoExamples
from knowmore.export import column_names
from knowmore.images import WORDS, PictureDescriber, check_pixels
from knowmore.web.questions import SEND_PICTURE, SentPicture
from knowmore.workbench import (
    TEXT,
    Describer,
    Predictor,
    RowPrediction,
    Source,
    Wanted,
    describer_of,
    describing,
    noted,
    read_rows,
    wanted,
)

# Rows, and pictures, between two looks at the clock: the largest picture takes four seconds.
_AT_ONCE, _PICTURES_AT_ONCE = 256, 4


@final
class Answering:
    """A model at one moment, which answers about rows and pictures from any thread.

    store : an open file
    rate : the fraction of known examples that may be called unknown; 0: none is
    records : whether it is asked by records, such as pictures, too
    """

    def __init__(self, store: Any, rate: float, records: bool = False) -> None:
        entries = store.log()
        self.version, self.count = entries[-1].number if entries else 0, len(store.ids_)
        self.is_classifier = bool(is_classifier(store))
        self.columns: tuple[str, ...] = ()
        # Clients need not know in which folder the file is.
        note = store.notes.get("pictures")
        self._way = describing(Path(store.path.name)) if note else None
        # Made when the first picture is sent: its libraries may not be there.
        made = partial(PictureDescriber.stored, note, store.arrays(WORDS))
        self._describer = cache(made) if note else None
        self._predictor: Predictor | None = None
        self._table = store.table if self.count else None
        notes = noted(store)
        self._text = notes.get("text", TEXT) if "texts" in notes else None
        self._texts = describer_of(store) if self._text is not None else None
        if self.count:
            self.columns = column_names(store)
            # A service writes nothing.
            self._predictor = Predictor(store, rate, keep=False)
        self.needs = Wanted(labelled=False)
        self._of_records: Describer | None = None
        if records and self.count:
            self.needs, self._of_records = wanted(store, labelled=False), describer_of(store)
            if self.needs.holds == "numbers":
                self.needs = replace(self.needs, columns=self.columns)

    def __call__(self, given: Sequence[Any], seconds: float = np.inf) -> list[RowPrediction]:
        """An answer for each row or picture; status 503 if all take longer than so many seconds."""
        self._check()
        if given and isinstance(given[0], SentPicture):
            return self._answers(given, seconds, self._described)
        return self._answers(self._rows(given), seconds)

    def _answers(
        self,
        given: Any,
        seconds: float = np.inf,
        describe: Callable[[Sequence[SentPicture]], Array] | None = None,
    ) -> list[RowPrediction]:
        """The answers for rows (m, d), or for what is described as such."""
        deadline = time.monotonic() + seconds
        what, at_once = ("rows", _AT_ONCE) if describe is None else ("pictures", _PICTURES_AT_ONCE)
        assert self._predictor is not None
        answers: list[RowPrediction] = []
        for begin in range(0, len(given), at_once):
            if time.monotonic() > deadline:
                words = f"{len(given)} {what} take longer than {seconds:g} s."
                raise HTTPException(503, f"{words} Ask about fewer at a time.")
            part = given[begin : begin + at_once]
            answers += self._predictor(part if describe is None else describe(part))
        return answers

    def of_records(self, source: Source) -> dict[str, RowPrediction]:
        """An answer for each record of a source that can be used, by its place."""
        self._check()
        answers: dict[str, RowPrediction] = {}
        for block in source.blocks():
            X: Any = block.X
            if self._of_records is not None:
                X = self._of_records.vectors(X)
            known = dict(zip(block.places, X, strict=True))
            source.skipped.update((one, row) for one, row in known.items() if isinstance(row, str))
            usable = {one: row for one, row in known.items() if not isinstance(row, str)}
            found = self._answers(np.array([*usable.values()])) if usable else []
            answers |= zip(usable, found, strict=True)
        return answers

    def _check(self) -> None:
        """Raise NoExamples if there is nothing to answer from."""
        if not self.count:
            raise NoExamples("The model holds no examples yet. Teach it: knowmore learn.")

    def _described(self, pictures: Sequence[SentPicture]) -> Array:
        """The vectors of pictures (m, d), as the model describes pictures."""
        if self._describer is None:
            raise HTTPException(
                415,
                'This model has learnt numbers, not pictures. Send {"rows": [[5.1, 3.5, ...], '
                "...]}, with Content-Type: application/json.",
            )
        for picture in pictures:
            check_pixels(picture.content, repr(picture.name))
        vectors = self._describer().vectors(pictures)
        for picture, vector in zip(pictures, vectors, strict=True):
            if isinstance(vector, str):
                raise InvalidInput(f"{picture.name!r} {vector}")
        return np.array(vectors)

    def _rows(self, given: Sequence[Any]) -> Array:
        """Rows of numbers, or of values by the names of columns, as an array (m, d)."""
        if self._table is not None:
            X: Array = self._table.vectors(read_rows(self._table, given))
            return X
        d = len(self.columns)
        if self._texts is not None:
            return self._of_texts(given, self._texts)
        rows = [
            self._by_name(one, i) if isinstance(one, dict) else one for i, one in enumerate(given)
        ]
        for i, row in enumerate(rows):
            if isinstance(row, str) and self._way:
                raise InvalidInput(
                    f"Row {i} is a text, and the model has learnt pictures. Send the picture "
                    f"itself: {SEND_PICTURE}"
                )
            if isinstance(row, str):
                raise InvalidInput(
                    f"Row {i} is a text, and the model has learnt numbers. Give its {d} features."
                )
            if len(row) != d:
                way = f" They are those of a picture: {self._way}" if self._way else ""
                raise InvalidInput(
                    f"Row {i} has {len(row)} numbers, but the model has {d} features.{way}"
                )
        try:
            return np.array(rows, dtype=float).reshape(len(rows), d)
        except OverflowError as error:
            raise InvalidInput("A number is too large: none may exceed 1.8e308.") from error

    def _of_texts(self, given: Sequence[Any], describer: Describer) -> Array:
        """The vectors (m, d) of texts."""
        names = dict.fromkeys(filter(None, (self._text, TEXT)))
        texts = [
            next((row[name] for name in names if name in row), None)
            if isinstance(row, dict)
            else row
            for row in given
        ]
        for i, text in enumerate(texts):
            if not isinstance(text, str):
                row, what = given[i], "is no text"
                if isinstance(row, dict) and not names.keys() & row.keys():
                    there = f", only {some([*row])}" if row else ""
                    what = f"has no {self._text!r}{there}"
                raise InvalidInput(
                    f"Row {i} {what}, and the model has learnt texts. Give a text, or an object: "
                    f"{{{json.dumps(self._text)}: ...}}."
                )
        found = describer.vectors(texts)
        wrong = next(((i, one) for i, one in enumerate(found) if isinstance(one, str)), None)
        if wrong is not None:
            raise InvalidInput(f"Row {wrong[0]} {wrong[1]}")
        return np.array(found, dtype=float).reshape(len(found), len(self.columns))

    def _by_name(self, row: dict[str, Any], i: int) -> list[Any]:
        if missing := [name for name in self.columns if name not in row]:
            raise InvalidInput(
                f"Row {i} lacks {some(missing)}. Give a number for each feature: "
                f"{some(self.columns)}."
            )
        for name in self.columns:
            if not is_real(row[name]):
                shown = repr(row[name])[:50]
                raise InvalidInput(f"Row {i}, {name!r}: {shown} is not a number.")
        return [row[name] for name in self.columns]
