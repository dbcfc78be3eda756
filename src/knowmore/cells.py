"""Cells of tables: text that no spreadsheet takes for a formula, and digits that tell rows apart.

A spreadsheet runs a cell that begins with =, +, - or @, some also behind a tab or a line break.
With an apostrophe before it the cell is text (OWASP, CSV injection). Such text that has apostrophes
already gets one more, so that reading gives back what was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import floor, isfinite, log10
from typing import Any

# Wide characters count where they are typed instead of the others.
_FORMULA = re.compile("'*[=+\\-@\uff1d\uff0b\uff0d\uff20\t\r\n]")
_NUMBER = re.compile(r"[+-]?[0-9]+\.?[0-9]*(e[+-]?[0-9]+)?", re.IGNORECASE)
# The significant digits of a float in a table; the most of a float; a spread that may be rounding.
DIGITS, _MOST, _ROUNDING = 4, 16, 1e-12


def written_cell(value: Any) -> Any:
    """The value for a cell: text that may be run has an apostrophe before it, numbers stay.

    >>> [written_cell(one) for one in ("=1+1", "-7", -1.5, "O'Hara", "'=1+1")]
    ["'=1+1", '-7', -1.5, "O'Hara", "''=1+1"]
    """
    runs = isinstance(value, str) and _FORMULA.match(value) and not _NUMBER.fullmatch(value)
    return f"'{value}" if runs else value


def read_cell(text: str) -> str:
    """The text that `written_cell` made this of.

    >>> [read_cell(one) for one in ("'=1+1", "-7", "'quoted'")]
    ['=1+1', '-7', "'quoted'"]
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def digits_of(values: Iterable[Any]) -> int:
    """The number of significant digits that shows floats to 1/100 of their spread, at least four.

    Targets may be far from zero and close together. A spread of less than 1e-12 of the values may
    be rounding, and a single number has none: then the whole part is shown.

    >>> digits_of([0.25, 3.0]), digits_of([1.7e9, 1.7e9 + 0.25]), digits_of([1.7e9])
    (4, 13, 10)
    """
    floats = [float(one) for one in values if isinstance(one, float) and isfinite(one)]
    largest = max(map(abs, floats), default=0.0)
    if not largest:
        return DIGITS
    place = floor(log10(largest))
    # Halves do not overflow.
    spread = max(floats) / 2 - min(floats) / 2
    if spread < _ROUNDING * largest:
        return min(max(DIGITS, place + 1), _MOST)
    return max(DIGITS, place - floor(log10(spread) + log10(2)) + 3)
