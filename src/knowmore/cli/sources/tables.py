"""What tables share: which column is what, and numbers that must be numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, final

import numpy as np

from knowmore.arguments import some
from knowmore.arrays import Array
from knowmore.cli.sources.records import Wanted
from knowmore.edits import Id
from knowmore.errors import InvalidInput

CONTRIBUTOR = "contributor"
# How many columns at each end of a wide table an error names.
_END = 10


@final
@dataclass(frozen=True)
class Layout:
    """Which columns hold what; None for what the table does not have."""

    label: str | None
    id: str | None
    contributor: str | None
    features: tuple[str, ...]
    ignored: tuple[str, ...]


def layout(name: str, header: Sequence[str], wanted: Wanted) -> Layout:
    """Which of the columns of a table hold what."""
    twice = [column for column, times in Counter(header).items() if times > 1]
    if twice:
        raise InvalidInput(f"{name!r} has two columns {twice[0]!r}. Give each a name of its own.")
    if "" in header:
        place = list(header).index("") + 1
        raise InvalidInput(
            f"{name!r} has no name for column {place}. Give it one in the first line."
        )
    label = _role(name, header, wanted.label, (wanted.usual_label, "label"), "--label")
    id_ = _role(name, header, wanted.id, (wanted.usual_id, "id"), "--id")
    if wanted.labelled and label is None:
        raise InvalidInput(
            f"{name!r} has no column {wanted.usual_label or 'label'!r}. Name the one that holds "
            f"the labels: --label COLUMN. "
            f"There are {_columns(header)}."
        )
    contributor = CONTRIBUTOR if CONTRIBUTOR in header else None
    taken = {label, id_, contributor}
    there = [column for column in header if column not in taken]
    known = wanted.columns
    if known is None:
        if not there:
            raise InvalidInput(f"{name!r} has no columns of features, only {_columns(header)}.")
        return Layout(label, id_, contributor, tuple(there), ())
    missing = [column for column in known if column not in header]
    if missing:
        raise InvalidInput(
            f"{name!r} has no column {missing[0]!r}, which the model has learnt from. The model "
            f"knows {some(known)}; the file has {_columns(header)}."
        )
    unknown = tuple(column for column in there if column not in known)
    if unknown and wanted.labelled:
        raise InvalidInput(
            f"{name!r} has a column {unknown[0]!r}, which the model does not know. It has learnt "
            f"from {some(known)}. Take the column out."
        )
    return Layout(label, id_, contributor, known, unknown)


def _columns(header: Sequence[str]) -> str:
    """All columns for an error; of very many, those at both ends."""
    shown = [repr(column) for column in header]
    if len(shown) > 2 * _END:
        shown[_END:-_END] = [f"{len(shown) - 2 * _END} more"]
    return ", ".join(shown)


def _role(
    name: str, header: Sequence[str], asked: str | None, usual: tuple[str | None, ...], option: str
) -> str | None:
    """The column with the labels or ids, if there is one."""
    if asked is None:
        return next((one for one in usual if one in header), None)
    if asked not in header:
        raise InvalidInput(
            f"{name!r} has no column {asked!r} for {option}. There are {_columns(header)}."
        )
    return asked


def numbers(
    name: str,
    rows: Sequence[Sequence[Any]],
    features: Sequence[str],
    places: Any,
    convert: Callable[[Any], float] = float,
    *,
    gaps: bool = False,
) -> Array:
    """Cells of rows as float64 (k, d); text and what is not finite is refused, by its place.

    gaps : text is NaN instead, and what is not finite stays
    """
    try:
        X = np.array([[convert(cell) for cell in row] for row in rows])
    except (TypeError, ValueError, OverflowError):
        if not gaps:
            _refuse_first(name, rows, features, places, convert)
        X = np.array([[_or_nan(convert, cell) for cell in row] for row in rows])
    X = X.reshape(len(rows), len(features))
    if not gaps:
        check_finite(name, X, features, places)
    return X


def _or_nan(convert: Callable[[Any], float], cell: Any) -> float:
    try:
        return convert(cell)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def check_finite(name: str, X: Array, features: Sequence[Any], places: Any) -> None:
    """Raise InvalidInput at the first NaN or infinity."""
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        i, j = np.argwhere(~np.isfinite(X))[0]
        value = "NaN, not a number" if np.isnan(X[i, j]) else "infinite"
        raise InvalidInput(
            f"{name!r}, {places[i]}, column {features[j]!r}: the value is {value}. Fill it in, or "
            f"leave the row out."
        )


def _refuse_first(
    name: str,
    rows: Sequence[Sequence[Any]],
    features: Sequence[str],
    places: Any,
    convert: Callable[[Any], float],
) -> NoReturn:
    for row, place in zip(rows, places, strict=True):
        for cell, column in zip(row, features, strict=True):
            try:
                convert(cell)
            except (TypeError, ValueError, OverflowError):
                where = f"{name!r}, {place}, column {column!r}"
                if cell is None or (isinstance(cell, str) and not cell.strip()):
                    problem = "there is no value. Fill it in, or leave the row out."
                elif isinstance(cell, str) and _is_decimal_comma(cell):
                    problem = f"{_short(cell)} has a decimal comma. Write a point."
                else:
                    problem = (
                        f"{_short(cell)} is not a number. Features are numbers: take the column "
                        f"out, or say what it is by --label or --id."
                    )
                raise InvalidInput(f"{where}: {problem}") from None
    raise AssertionError("one of the cells is not a number")


def _is_decimal_comma(cell: str) -> bool:
    whole, _, rest = cell.strip().lstrip("+-").partition(",")
    return whole.isdecimal() and rest.isdecimal()


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def ids_of(name: str, values: Sequence[Any], places: Sequence[str]) -> list[Id]:
    """Ids, each a text that is not empty or a whole number."""
    for value, place in zip(values, places, strict=True):
        if value is None or value == "":
            raise InvalidInput(f"{name!r}, {place}: there is no id. Give every row one, or none.")
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise InvalidInput(
                f"{name!r}, {place}: the id {_short(value)} is neither text nor a whole number."
            )
    return list(values)


def labels_of(name: str, values: Sequence[Any], places: Sequence[str]) -> list[Any]:
    """Labels, each a text that is not empty, a number, or true or false."""
    for value, place in zip(values, places, strict=True):
        if value is None or value != value or (isinstance(value, str) and not value.strip()):
            raise InvalidInput(
                f"{name!r}, {place}: there is no label. Fill it in, or leave the row out."
            )
        if not isinstance(value, (str, int, float)):
            raise InvalidInput(
                f"{name!r}, {place}: {_short(value)} cannot be a label. Give text or a number."
            )
    return list(values)


def contributors_of(name: str, values: Sequence[Any], places: Sequence[str]) -> list[str | None]:
    """Contributors, each a text; None where it is empty."""
    for value, place in zip(values, places, strict=True):
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"{name!r}, {place}: the contributor {_short(value)} is not text.")
    return [value or None for value in values]
