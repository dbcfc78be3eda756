"""The answers of a model about rows as requests have them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, final

import numpy as np
from fastapi import HTTPException
from sklearn.base import is_classifier

from knowmore._base import Array, is_real, some
from knowmore.errors import InvalidInput, NoExamples
from knowmore.export import column_names
from knowmore.workbench import (
    Describer,
    Predictor,
    RowPrediction,
    Source,
    Wanted,
    describer_of,
    describing,
    wanted,
)

# Rows between two looks at the clock.
_AT_ONCE = 256


@final
class Answering:
    """A model at one moment, which answers from any thread.

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
        self._way = describing(Path(store.path.name)) if store.notes.get("pictures") else None
        self._predictor: Predictor | None = None
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
        """An answer for each row; status 503 if all take longer than so many seconds."""
        return self._answers(self._rows(given), seconds)

    def _answers(self, X: Array, seconds: float = np.inf) -> list[RowPrediction]:
        deadline = time.monotonic() + seconds
        assert self._predictor is not None
        answers: list[RowPrediction] = []
        for begin in range(0, len(X), _AT_ONCE):
            if time.monotonic() > deadline:
                words = f"{len(X)} rows take longer than {seconds:g} s. Ask about fewer at a time."
                raise HTTPException(503, words)
            answers += self._predictor(X[begin : begin + _AT_ONCE])
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

    def _rows(self, given: Sequence[Any]) -> Array:
        """Rows of numbers, or of numbers by the names of columns, as an array (m, d)."""
        self._check()
        d = len(self.columns)
        X = [self._by_name(row, i) if isinstance(row, dict) else row for i, row in enumerate(given)]
        for i, row in enumerate(X):
            if len(row) != d:
                way = f" They are those of a picture: {self._way}" if self._way else ""
                raise InvalidInput(
                    f"Row {i} has {len(row)} numbers, but the model has {d} features.{way}"
                )
        try:
            return np.array(X, dtype=float).reshape(len(X), d)
        except OverflowError as error:
            raise InvalidInput("A number is too large: none may exceed 1.8e308.") from error

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
