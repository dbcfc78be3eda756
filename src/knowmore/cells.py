"""Text in cells of CSV files that no spreadsheet takes for a formula.

A spreadsheet runs a cell that begins with =, +, - or @, some also behind a tab or a line break.
With an apostrophe before it the cell is text (OWASP, CSV injection). Such text that has apostrophes
already gets one more, so that reading gives back what was written.
"""

from __future__ import annotations

import re
from typing import Any

# Wide characters count where they are typed instead of the others.
_FORMULA = re.compile("'*[=+\\-@\uff1d\uff0b\uff0d\uff20\t\r\n]")
_NUMBER = re.compile(r"[+-]?[0-9]+\.?[0-9]*(e[+-]?[0-9]+)?", re.IGNORECASE)


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
