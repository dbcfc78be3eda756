"""What answers share: a table, a short repr, and immutability."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from knowmore.arrays import Array, Frozen
from knowmore.extras import optional

# Rows that a repr shows.
_SHOWN = 5


class Answer(Frozen, ABC):
    """An answer to a question about a model, with one row for each example, class or candidate.

    Subclasses are frozen dataclasses; their arrays are read-only.
    """

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
        columns, rows = self._columns(), len(self)
        shown = [[name, *map(_cell, values[:_SHOWN])] for name, values in columns.items()]
        widths = [max(map(len, cells)) for cells in shown]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
            for line in zip(*shown, strict=True)
        ]
        more = [f"... {rows - _SHOWN} more"] if rows > _SHOWN else []
        return "\n".join([f"{type(self).__name__}: {self._summary()}", *lines, *more])


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)
