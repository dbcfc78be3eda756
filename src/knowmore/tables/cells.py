"""Cells of a table, read as a number, a truth value, a date or a category.

Each reader takes a cell as a file has it, a text or a value, and returns the cell as a model keeps
it: None for a blank, a float, a bool, or a text. It raises ValueError with a reason if the cell is
something else.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isfinite, isinf, isnan
from numbers import Integral, Real
from typing import Any, Final, Literal

import numpy as np

from knowmore._base import is_missing

# A cell as a model keeps it.
Cell = float | bool | str | None

# Texts that stand for no value, as they are written.
BLANKS: Final = frozenset(["", "-", "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null"])
_TRUTH: Final = {"true": True, "false": False}
# How dates are written beside ISO 8601: day first or month first.
Form = Literal["iso", "d.m.y", "d/m/y", "m/d/y"]
_ISO: Final = re.compile(r"\d{4}[-/]\d{1,2}[-/]\d{1,2}([T ]\d{1,2}:\d{2}.*)?")
_PARTS: Final[dict[str, tuple[re.Pattern[str], tuple[int, int, int]]]] = {
    "d.m.y": (re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})"), (2, 1, 0)),
    "d/m/y": (re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})"), (2, 1, 0)),
    "m/d/y": (re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})"), (2, 0, 1)),
}
_GROUPED: Final = re.compile(r"[+-]?\d{1,3}([,' ]\d{3})+(\.\d+)?")
# Points separate thousands, and a comma the decimals, as much of Europe writes.
_POINTED: Final = re.compile(r"[+-]?\d{1,3}(\.\d{3}){1,9},\d{1,15}")
_DAY: Final = 86400.0
_START: Final = datetime(1970, 1, 1)


class Infinite(ValueError):
    """A cell that is a number, but none that a model can learn."""


def is_blank(cell: Any) -> bool:
    """Whether a cell has no value.

    >>> [is_blank(one) for one in (None, " ", "NA", float("nan"), 0, "0", "none")]
    [True, True, True, True, False, False, False]
    """
    if isinstance(cell, str):
        return cell.strip() in BLANKS
    return cell is None or is_missing(cell)


def number(cell: Any) -> float | None:
    """A cell as a finite number.

    >>> number(" 4.5 "), number("n/a"), number(3)
    (4.5, None, 3.0)
    """
    if is_blank(cell):
        return None
    if isinstance(cell, (bool, np.bool_)):
        raise ValueError(f"{str(bool(cell)).lower()} is not a number")
    if isinstance(cell, str):
        found = _number(cell)
    elif isinstance(cell, (Real, Decimal)):
        try:
            found = float(cell)
        except OverflowError:
            raise Infinite(f"{short(cell)} is too large for a number") from None
    else:
        raise ValueError(f"{short(cell)} is not a number")
    if not isfinite(found):
        raise Infinite("the value is infinite. Fill it in, or leave the row out")
    return found


def _number(text: str) -> float:
    text = text.strip()
    try:
        # Python reads 1_000, which nobody means.
        found = float(text.replace("_", "x"))
    except ValueError:
        raise ValueError(not_a_number(text)) from None
    if isinf(found) and "inf" not in text.lower():
        raise Infinite(f"{short(text)} is too large for a number")
    if isnan(found):
        raise ValueError(not_a_number(text))
    return found


def not_a_number(text: str) -> str:
    """Why a text is no number, and what to do if it nearly is one.

    >>> not_a_number("4.020,25")
    "'4.020,25' has points between thousands and a decimal comma. Write 4020.25"
    """
    if _POINTED.fullmatch(text.strip()):
        plain = text.strip().replace(".", "").replace(",", ".")
        return f"{short(text)} has points between thousands and a decimal comma. Write {plain}"
    if has_comma(text):
        whole, _, rest = text.strip().lstrip("+-").partition(",")
        if _GROUPED.fullmatch(text.strip()) and len(rest) != 3:
            return f"{short(text)} has thousands separators. Leave them out"
        if len(rest) == 3 and whole.isdecimal() and len(whole) <= 3:
            return f"{short(text)} has a comma. Write a decimal point, or no thousands separator"
        return f"{short(text)} has a decimal comma. Write a point"
    if _GROUPED.fullmatch(text.strip()):
        return f"{short(text)} has thousands separators. Leave them out"
    return f"{short(text)} is not a number"


def has_comma(text: Any) -> bool:
    """Whether a text would be a number but for commas, blanks or apostrophes among its digits.

    >>> has_comma("3,5"), has_comma("1,234,567.5"), has_comma("a,b")
    (True, True, False)
    """
    if not isinstance(text, str):
        return False
    text = text.strip()
    whole, comma, rest = text.lstrip("+-").replace(".", "").partition(",")
    decimal = bool(comma) and whole.isdecimal() and rest.isdecimal()
    return decimal or _GROUPED.fullmatch(text) is not None


def truth(cell: Any) -> bool | None:
    """A cell as a truth value: true or false, as JSON has them or as a text in any case.

    >>> truth("TRUE"), truth(False), truth("?")
    (True, False, None)
    """
    if is_blank(cell):
        return None
    if isinstance(cell, (bool, np.bool_)):
        return bool(cell)
    found = _TRUTH.get(cell.strip().lower()) if isinstance(cell, str) else None
    if found is None:
        raise ValueError(f"{short(cell)} is neither true nor false")
    return found


def category(cell: Any) -> str | None:
    """A cell as the name of a level; a whole number is written without a point.

    >>> category(" Biscoe "), category(94110.0), category("007"), category(True)
    ('Biscoe', '94110', '007', 'true')
    """
    if is_blank(cell):
        return None
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, (bool, np.bool_)):
        return str(bool(cell)).lower()
    if isinstance(cell, Integral):
        return str(int(cell))
    if isinstance(cell, (Real, Decimal)):
        value = float(cell)
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(cell, (date, np.datetime64)):
        return moment(cell, "iso")
    raise ValueError(f"{short(cell)} is neither text nor a number")


def moment(cell: Any, form: str) -> str | None:
    """A cell as a date in ISO 8601, with its time if it has one; time zones become UTC.

    >>> moment("1.3.2024", "d.m.y"), moment("2024-03-01 12:30", "iso")
    ('2024-03-01', '2024-03-01T12:30:00')
    """
    if is_blank(cell):
        return None
    found: Any = None
    if isinstance(cell, np.datetime64):
        cell = cell.astype("datetime64[us]").item()
    if isinstance(cell, str):
        found = _moment(cell.strip(), form)
    elif isinstance(cell, datetime):
        found = cell
    elif isinstance(cell, date):
        found = datetime(cell.year, cell.month, cell.day)
    if found is None:
        raise ValueError(f"{short(cell)} is not a date. Write it as 2024-03-01")
    if found.tzinfo is not None:
        try:
            found = found.astimezone(UTC).replace(tzinfo=None)
        except OverflowError:
            raise ValueError(f"{short(cell)} is not in the years 1 to 9999 of UTC") from None
    # Those of pandas have nanoseconds.
    found = datetime.combine(found.date(), found.time())
    plain = not (found.hour or found.minute or found.second or found.microsecond)
    return str(found.date().isoformat() if plain else found.isoformat())


def _moment(text: str, form: str) -> datetime | None:
    try:
        if _ISO.fullmatch(text):
            day, _, time = text.replace("/", "-").replace(" ", "T", 1).partition("T")
            year, month, at = day.split("-")
            hour, _, rest = time.strip().partition(":")
            time = f"T{int(hour):02}:{rest}" if time else ""
            return datetime.fromisoformat(f"{year}-{int(month):02}-{int(at):02}{time}")
        if form in _PARTS and (match := _PARTS[form][0].fullmatch(text)):
            year, month, at = (match[1 + i] for i in _PARTS[form][1])
            return datetime(int(year), int(month), int(at))
    except ValueError:
        pass
    return None


def forms_of(cell: Any) -> frozenset[str]:
    """The forms in which a cell that is not blank can be a date.

    >>> sorted(forms_of("2024-03-01")), sorted(forms_of("25/3/2024")), sorted(forms_of("4/3/2024"))
    (['d.m.y', 'd/m/y', 'iso', 'm/d/y'], ['d/m/y'], ['d/m/y', 'm/d/y'])
    """
    if isinstance(cell, (date, np.datetime64)):
        return frozenset(["iso", *_PARTS])
    if not isinstance(cell, str):
        return frozenset()
    return frozenset(form for form in ("iso", *_PARTS) if _moment(cell.strip(), form) is not None)


def days(moment: str) -> float:
    """Days since 1970 of a date as `moment` writes it.

    >>> days("1970-01-02T12:00:00")
    1.5
    """
    return (datetime.fromisoformat(moment) - _START).total_seconds() / _DAY


def is_padded(cell: Any) -> bool:
    """Whether a text has a leading zero that a number would lose.

    >>> [is_padded(one) for one in ("01067", " 007", "0", "0.5", "-01", 1067)]
    [True, True, False, False, False, False]
    """
    if not isinstance(cell, str):
        return False
    text = cell.strip()
    return text[:1] == "0" and len(text) > 1 and text.isdecimal()


def short(value: Any) -> str:
    """A value as Python writes it, but not very long."""
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
