"""Answers as tables: cells, digits, a short repr, and the style of figures.

A spreadsheet runs a cell that begins with =, +, - or @, some also behind a tab or a line break.
With an apostrophe before it the cell is text (OWASP, CSV injection). Text of this kind that has
apostrophes already gets one more, so that reading gives back what was written.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from math import floor, isfinite, log10
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from knowmore._base.arrays import Array, Frozen
from knowmore._base.machine import optional

# Wide characters count where they are typed instead of the others.
_FORMULA = re.compile("'*[=+\\-@\uff1d\uff0b\uff0d\uff20\t\r\n]")
_NUMBER = re.compile(r"[+-]?[0-9]+\.?[0-9]*(e[+-]?[0-9]+)?", re.IGNORECASE)
# The significant digits of a float in a table; the most of a float; a spread that may be rounding.
DIGITS, _MOST, _ROUNDING = 4, 16, 1e-12
# Control characters would be commands to a terminal.
_VISIBLE = {i: f"\\x{i:02x}" for i in (*range(32), *range(127, 160)) if i != ord("\n")}


def visible(text: str) -> str:
    """A text as a terminal may print it: its lines, without what the terminal would obey.

    >>> visible("a rose\\nis \\x1b[2Ja rose")
    'a rose\\nis \\\\x1b[2Ja rose'
    """
    return text.translate(_VISIBLE)


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


if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The palette of Okabe and Ito, which colour-blind people can tell apart; in the order of use.
BLUE, ORANGE, GREEN, VERMILION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, GREY = "#CC79A7", "#56B4E9", "#666666"


def quiet_axes(ax: Axes) -> None:
    """Remove the upper and right frame, and make the grid faint."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)


class TableAnswer(Frozen, ABC):
    """An answer to a question about a model, with one row for each example, class or candidate.

    Subclasses are frozen dataclasses; their arrays are read-only.
    """

    # How many of the first and of the last rows a repr shows.
    _shown: ClassVar[tuple[int, int]] = 5, 0

    @abstractmethod
    def _columns(self) -> dict[str, Array]:
        """The columns of the table by name, each (m,)."""

    @abstractmethod
    def _summary(self) -> str:
        """The answer in one line."""

    def to_pandas(self) -> Any:
        """The answer as a pandas DataFrame.

        Ids are a column and the index, so that `relabel(table["preferred"])` and
        `remove(table.index)` act on the examples that the rows are about.
        """
        columns = self._columns()
        return optional("pandas", "tables").DataFrame(columns, index=columns.get("id"))

    def __len__(self) -> int:
        """The number of rows."""
        return max(map(len, self._columns().values()), default=0)

    def __repr__(self) -> str:
        columns, rows, (head, tail) = self._columns(), len(self), self._shown
        if not rows:
            return f"{type(self).__name__}: {self._summary()}"
        hidden = max(rows - head - tail, 0)
        picked = [row for row in range(rows) if not head <= row < head + hidden]
        shown = [[name, *_cells(name, values[picked])] for name, values in columns.items()]
        widths = [max(map(len, cells)) for cells in shown]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            for line in zip(*shown, strict=True)
        ]
        if hidden:
            lines.insert(1 + head, f"... {hidden} more")
        return "\n".join([f"{type(self).__name__}: {self._summary()}", *lines])


def _cells(name: str, column: Array) -> list[str]:
    # Only targets have an offset: equal variances differ by rounding.
    digits = digits_of(column) if name.startswith(("label", "predicted")) else DIGITS
    return [
        f"{value:.{digits}g}" if isinstance(value, (float, np.floating)) else str(value)
        for value in column
    ]
