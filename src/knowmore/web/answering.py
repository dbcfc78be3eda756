"""The answers of a model about rows as requests have them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from fastapi import HTTPException
from sklearn.base import is_classifier

from knowmore._base import Array, is_real, some
from knowmore.errors import InvalidInput, NoExamples
from knowmore.export import column_names
from knowmore.workbench import (
    TEXT,
    Describer,
    Predictor,
    RowPrediction,
    describer_of,
    describing,
    noted,
)

# Rows between two looks at the clock.
_AT_ONCE = 256


@final
class Answering:
    """A model at one moment, which answers from any thread.

    store : an open file
    rate : the fraction of known examples that may be called unknown; 0: none is
    """

    def __init__(self, store: Any, rate: float) -> None:
        entries = store.log()
        self.version, self.count = entries[-1].number if entries else 0, len(store.ids_)
        self.is_classifier = bool(is_classifier(store))
        self.columns: tuple[str, ...] = ()
        # Clients need not know in which folder the file is.
        self._way = describing(Path(store.path.name)) if store.notes.get("pictures") else None
        self._predictor: Predictor | None = None
        notes = noted(store)
        self._text = notes.get("text", TEXT) if "texts" in notes else None
        self._describer = describer_of(store) if self._text is not None else None
        if self.count:
            self.columns = column_names(store)
            # A service writes nothing.
            self._predictor = Predictor(store, rate, keep=False)

    def __call__(self, given: Sequence[Any], seconds: float = np.inf) -> list[RowPrediction]:
        """An answer for each row; status 503 if all take longer than so many seconds."""
        X, deadline = self._rows(given), time.monotonic() + seconds
        assert self._predictor is not None
        answers: list[RowPrediction] = []
        for begin in range(0, len(X), _AT_ONCE):
            if time.monotonic() > deadline:
                words = f"{len(X)} rows take longer than {seconds:g} s. Ask about fewer at a time."
                raise HTTPException(503, words)
            answers += self._predictor(X[begin : begin + _AT_ONCE])
        return answers

    def _rows(self, given: Sequence[Any]) -> Array:
        """Rows of numbers, or of numbers by the names of columns, as an array (m, d)."""
        if not self.count:
            raise NoExamples("The model holds no examples yet. Teach it: knowmore learn.")
        d = len(self.columns)
        if self._describer is not None:
            return self._of_texts(given, self._describer)
        X = [self._by_name(row, i) if isinstance(row, dict) else row for i, row in enumerate(given)]
        for i, row in enumerate(X):
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
            return np.array(X, dtype=float).reshape(len(X), d)
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
                raise InvalidInput(
                    f"Row {i} is no text, and the model has learnt texts. Give a string, or "
                    f'{{"{self._text}": "..."}}.'
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
