"""What answers share: a table, a short repr, and immutability."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from knowmore.arrays import Array, Frozen
from knowmore.cells import DIGITS, digits_of
from knowmore.extras import optional


class Answer(Frozen, ABC):
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
