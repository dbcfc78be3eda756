"""A `TableEncoder` before a model: cells of all types go in, and become the model's features."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, final

import numpy as np

from knowmore._base import Array
from knowmore.errors import InvalidInput
from knowmore.export.stages import Field, Input, Operations, Stage, distinct
from knowmore.tables import BLANKS, CategoryColumn, Column, DateColumn, Encoding, TruthColumn
from knowmore.tables.cells import days

# What a graph calls its results, and the types of inputs that are no plain numbers.
_TAKEN = ("label", "scores", "probabilities", "variance", "value")
_MEANING = {"truth": "0 or 1", "date": "days since 1970", "category": "text", "number": "number"}
_START = datetime(1970, 1, 1, tzinfo=UTC)


@final
@dataclass(frozen=True, eq=False)
class Encoded(Stage):
    """The features (m, D) of cells in the columns of a table.

    A graph takes one input (m, 1) for each column: text for a category, without blanks around it,
    "" where it is blank; a float for a number, a truth value (0 or 1) or a date (days since 1970),
    NaN where it is blank.
    """

    encoding: Encoding

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that count: others need not be given."""
        return self.encoding.names

    def inputs(self, columns: tuple[str, ...]) -> tuple[Input, ...]:
        """One for each column, under its name; those that a result has get an underscore."""
        for name in columns:
            try:
                name.encode()
            except UnicodeEncodeError as error:
                raise InvalidInput(
                    f"The column {name!r} is no valid Unicode. Rename it to write it to a file."
                ) from error
        names = distinct([name or "_" for name in columns], _TAKEN)
        return tuple(
            Input(name, "str" if isinstance(column, CategoryColumn) else "float64", (1,))
            for name, column in zip(names, self.encoding.columns, strict=True)
        )

    def about(self) -> dict[str, Any]:
        """What each column is, for the metadata of a graph."""
        return {"types": {one.name: _MEANING[one.kind] for one in self.encoding.columns}}

    def fields(self, columns: tuple[str, ...]) -> tuple[Field, ...]:
        """What a form asks for: any cell may be blank."""
        return tuple(
            Field(
                one.kind,
                one.levels if isinstance(one, CategoryColumn) else None,
                True,
                one.form if isinstance(one, DateColumn) else None,
            )
            for one in self.encoding.columns
        )

    def nodes(self, write: Operations, *given: str) -> str:
        """The features of each column, side by side."""
        parts: list[str] = []
        for column, x in zip(self.encoding.columns, given, strict=True):
            if isinstance(column, CategoryColumn):
                # -1 is a level that was never seen, and has no feature.
                count = len(column.levels)
                at = write(
                    "LabelEncoder",
                    x,
                    domain="ai.onnx.ml",
                    keys_strings=[*column.levels, *sorted(BLANKS)],
                    values_int64s=[*range(count), *[count] * len(BLANKS)],
                    default_int64=-1,
                )
                places = np.arange(count + column.blank)
                parts.append(write.double(write("Equal", at, places)))
                continue
            blank = write("IsNaN", x)
            parts.append(write("Where", blank, _fill(column), x))
            if column.blank:
                parts.append(write.double(blank))
        return write("Concat", *parts, axis=1)

    def to_dict(self) -> dict[str, Any]:
        """The columns with their types, levels and fills."""
        columns = [
            {
                "kind": one.kind,
                "blank": one.blank,
                "levels": one.levels if isinstance(one, CategoryColumn) else None,
                "fill": None if isinstance(one, CategoryColumn) else _fill(one),
            }
            for one in self.encoding.columns
        ]
        return {"kind": "encoded", "columns": columns}

    def back(self, x: Array) -> Array:
        """The cells that are nearest to these features."""
        row, at = np.empty(len(self.encoding.columns), dtype=object), 0
        for j, column in enumerate(self.encoding.columns):
            count = len(column.features)
            values, at = x[at : at + count + column.blank], at + count + column.blank
            row[j] = _cell(column, values)
        return row


def _fill(column: Any) -> float:
    """What a blank counts as."""
    return days(column.fill) if isinstance(column, DateColumn) else float(column.fill)


def _cell(column: Column, values: Array) -> Any:
    """The cell with about these features, the last of which may say that it is blank."""
    if isinstance(column, CategoryColumn):
        best = int(values.argmax()) if len(values) else 0
        return column.levels[best] if best < len(column.levels) else None
    if column.blank and values[1] > 0.5:
        return None
    if isinstance(column, TruthColumn):
        return str(bool(values[0] > 0.5)).lower()
    if isinstance(column, DateColumn):
        return (_START + timedelta(days=round(values[0]))).date().isoformat()
    return float(values[0])
