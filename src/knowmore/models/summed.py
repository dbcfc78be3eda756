"""A linear model beside its rows by id: in memory, in a file, or nowhere.

The model needs no rows, only their sums. Rows are kept for edits by id: the sums of the rows after
an edit are the sums before, plus those of the new rows, less those of the old ones. Sums are whole
numbers, so the model equals a fresh fit on the same grid, to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, final

import numpy as np
from sklearn.gaussian_process.kernels import DotProduct

from knowmore._base import Array, Id, enough_memory
from knowmore.edits import Add, Edit, Relabel, Replace, check_kind
from knowmore.errors import NoRows
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel
from knowmore.linalg import FEWER_COLUMNS, UNIT, Sums
from knowmore.models.linear import LinearModel, check_room_of


class RowsById(Protocol):
    """Rows that a linear model has learnt: `Examples`, or the reader of a file."""

    @property
    def names(self) -> tuple[Id, ...]:
        """The ids, in the order of the rows."""

    def part(self, ids: tuple[Id, ...]) -> Examples:
        """Some of the rows; raises UnknownId."""

    def apply(self, edit: Edit) -> RowsById | None:
        """The rows after an edit, None if they must be read anew; raises if it is impossible."""


@final
@dataclass(frozen=True, eq=False)
class Summed:
    """A linear model, and the rows that it has learnt if they are kept; frozen.

    >>> from knowmore.edits import Remove
    >>> from knowmore.linalg import Grid
    >>> X, y = np.array([[0.0], [1.0], [1.5]]), np.array(["no", "yes", "yes"])
    >>> model = LinearModel.of_classes(Sums.of(Grid.covering(X), X, y), 0.1)
    >>> Summed(model, Examples.of(X, y)).apply(Remove((0,))).model.names
    array(['yes'], dtype='<U3')
    """

    # The kernel x'y, which no edit changes.
    kernel: ClassVar[AnyKernel] = DotProduct(0.0)
    # It chooses its noise by the sums, at every question.
    choice: ClassVar[None] = None

    model: LinearModel
    rows: RowsById | None = None

    def of(self, sums: Sums) -> Summed:
        """The model of other sums, whose rows are not kept."""
        return Summed(self.model.of(sums))

    def plus(self, sums: Sums) -> Summed:
        """The model that has learnt other rows, too, and keeps none."""
        check_room_of(self.model, sums)
        return self.of(self.model.sums + sums)

    def minus(self, sums: Sums) -> Summed:
        """The model without rows that were learnt, which keeps none.

        To forget must not fail for memory that the next question needs.
        """
        return self.of(self.model.sums - sums)

    @property
    def keeps_rows(self) -> bool:
        """Whether edits by id are possible."""
        return self.rows is not None

    @property
    def examples(self) -> Any:
        """The rows, also rows of weight zero; raises NoRows if they are not kept."""
        if self.rows is None:
            raise NoRows(
                "This linear model keeps no rows and no ids, only the sums of its rows. Let it "
                "keep them: fit(X, y, ids=...)."
            )
        return self.rows

    @property
    def counted(self) -> Examples:
        """The rows that the sums count: the others have a weight of almost zero."""
        rows: Examples = self.examples
        return rows.without(np.flatnonzero(np.rint(rows.weights * UNIT) == 0))

    @property
    def labels(self) -> Array:
        """A label of each class; of a regressor, as many targets as it takes to tell their type."""
        if self.model.classes:
            return self.model.names
        shape = () if self.model.flat else (len(self.model.names),)
        return np.zeros((min(self.model.count, 1), *shape))

    @property
    def next_id(self) -> int:
        """The id of the next example that is given none."""
        number: int = self.examples.next_id
        return number

    @property
    def nonempty(self) -> LinearModel:
        """The model. One of no rows raises NoExamples at the first question."""
        return self.model

    def apply(self, edit: Edit, choice: None = None) -> Summed:
        """The value after an edit. An error that could come later is raised now."""
        check_kind(edit, np.empty((0, len(self.model.grid))), self.labels)
        rows = self.examples
        with enough_memory("apply this edit", FEWER_COLUMNS):
            after = rows.apply(edit)
            return Summed(self.model.of(self._sums(edit, rows)), after)

    def _sums(self, edit: Edit, rows: RowsById) -> Sums:
        """The sums after an edit: the new rows are added first, since they may be refused."""
        model, sums = self.model, self.model.sums
        if isinstance(edit, Add):
            return self.plus(model.summed(edit.X, edit.labels, edit.weights)).model.sums
        old = rows.part(edit.ids)
        match edit:
            case Replace(_, X, labels):
                labels = old.labels if labels is None else labels
                sums = sums + model.summed(X, labels, old.weights)
            case Relabel(_, labels):
                sums = sums + model.summed(old.X, labels, old.weights)
        return sums - model.summed(old.X, old.labels, old.weights)


def beside_rows(value: Any, rows: RowsById) -> Any:
    """The fitted value of an estimator, with these rows if it keeps none itself."""
    return value if value.keeps_rows else replace(value, rows=rows)
