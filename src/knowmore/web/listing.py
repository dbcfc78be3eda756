"""The examples of a file as a table: sorted, searched and filtered here, and read page by page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from knowmore._base import Array, Id, cached_property
from knowmore.errors import InvalidInput
from knowmore.web.bodies import TableBody
from knowmore.web.snapshot import Snapshot

# Features that are shown at a time.
_SHOWN = 8
# Characters that are shown of a text.
_CHARACTERS = 300
# Verdicts of the others on an example, in order.
_UNSEEN = ("wrong", "silent", "right")


@dataclass(frozen=True)
class TableRow:
    """An example; `predicted` is the label that the others predict, None if they cannot.

    unseen : whether the others predict it as it is labelled: "wrong", "silent" or "right"
    text : the beginning of its text, if it is one; then it has no values, and neither has a picture
    """

    id: Id
    label: Any
    contributor: str | None
    predicted: Any
    unseen: str | None
    values: list[Any]
    text: str | None = None


@dataclass(frozen=True)
class TablePage:
    """A page of the examples that were asked for: `found` of `total`.

    columns : the names of the features that are shown; features : the number of all
    contributors : of all examples; "" at the end, if some are of nobody but not all
    """

    number: int
    total: int
    found: int
    columns: list[str]
    features: int
    contributors: list[str]
    rows: list[TableRow]


def _ranks(cells: list[Any]) -> Array:
    """The place of each cell of a column in their order, equal for equal cells; blanks first."""
    known = sorted({one for one in cells if one is not None})
    place = {one: i for i, one in enumerate(known)}
    return np.array([-1 if one is None else place[one] for one in cells])


@final
class ExampleTable:
    """The examples of one state of a file, with the last order and selection."""

    def __init__(self, now: Snapshot) -> None:
        self.now, self.contributors = now, now.store.contributors()
        self.ids: list[Any] = [] if now.examples is None else [*now.examples.names]
        self._orders: dict[Any, Array] = {}
        self._last: tuple[TableBody, Array] | None = None

    def page(self, asked: TableBody) -> TablePage:
        """The part of the table that was asked for."""
        now, order = self.now, self._chosen(asked)
        shown = slice(asked.first, asked.first + _SHOWN)
        names = self._columns["contributor"][0]
        names = sorted(names, key=lambda one: (not one, one)) if any(names) else []
        some = order[asked.offset : asked.offset + asked.limit]
        texts = now.texts([self.ids[i] for i in some.tolist()])
        rows = [self._row(i, shown, text) for i, text in zip(some.tolist(), texts, strict=True)]
        every = now.columns if now.table is None else now.table.names
        # A page shows pictures; their features say nothing to anybody.
        columns = () if any(texts) or now.of_pictures else every
        counts = now.number, len(now), len(order)
        return TablePage(*counts, [*columns[shown]], len(columns), names, rows)

    def _row(self, i: int, shown: slice, text: str | None) -> TableRow:
        left, examples, said, unseen = self.now.left, self.now.examples, None, None
        assert examples is not None
        if left is not None:
            said, unseen = left.predicted[i].tolist(), _UNSEEN[self._columns["unseen"][1][i]]
        label, by = examples.labels[i].tolist(), self.contributors[i]
        own = self.ids[i], label, by, said, unseen
        if text is not None:
            return TableRow(*own, [], text[:_CHARACTERS])
        if self.now.of_pictures:
            return TableRow(*own, [])
        values = (
            examples.X[i, shown].tolist() if self.now.cells is None else self.now.cells[i][shown]
        )
        return TableRow(*own, [*values])

    @cached_property
    def _columns(self) -> dict[str, tuple[list[Any], Array]]:
        """The values of each column, in order, and which of them each example has, (n,).

        "" is nobody, and no prediction.
        """
        now, n, values = self.now, len(self.ids), [one or "" for one in self.contributors]
        # Numbers come before texts.
        by_id = sorted(range(n), key=lambda i: (isinstance(self.ids[i], str), self.ids[i]))
        names = sorted({*values})
        place = {one: code for code, one in enumerate(names)}
        labels, codes = now.labels, now.codes
        if now.examples is not None and not now.is_classifier:
            labels, codes = now.examples.labels.tolist(), np.arange(n)
        said: tuple[list[Any], Array] = [""], np.zeros(n, dtype=int)
        if now.left is not None:
            predicted, which = np.unique(now.left.predicted, return_inverse=True)
            said = predicted.tolist(), which
        unseen = np.where(now.silent, 1, np.where(now.wrong, 0, 2))
        return {
            "id": ([self.ids[i] for i in by_id], np.argsort(by_id)),
            "contributor": (names, np.array([place[one] for one in values], dtype=int)),
            "label": (labels, codes),
            "predicted": said,
            "unseen": ([*_UNSEEN], unseen),
        }

    @cached_property
    def _texts(self) -> list[str]:
        """The texts of all examples, to search; none if they are no texts."""
        texts = self.now.texts(self.ids)
        return [(one or "").casefold() for one in texts] if any(texts) else []

    # -- which, in what order ------------------------------------------------------------------

    def _chosen(self, asked: TableBody) -> Array:
        """The numbers of the examples that were asked for, in order."""
        key = asked.model_copy(update={"offset": 0, "limit": 1, "first": 0})
        if self._last is None or self._last[0] != key:
            order = self._order(asked.sort, asked.down)
            self._last = key, order[self._mask(asked)[order]]
        return self._last[1]

    def _order(self, sort: Any, down: bool) -> Array:
        """All examples by a column, or by a feature."""
        examples = self.now.examples
        if sort is None or examples is None:
            return np.arange(len(self.ids))
        if (sort, down) not in self._orders:
            if sort == "label" and not self.now.is_classifier:
                # By the first of several values.
                ranks = np.asarray(examples.labels.reshape(len(self.ids), -1)[:, 0], dtype=float)
            elif isinstance(sort, str):
                ranks = self._columns[sort][1]
            elif self.now.cells is not None and sort < len(self.now.cells[0]):
                ranks = _ranks([row[sort] for row in self.now.cells])
            elif self.now.cells is None and sort < examples.X.shape[1]:
                ranks = np.asarray(examples.X[:, sort], dtype=float)
            else:
                count = examples.X.shape[1] if self.now.cells is None else len(self.now.cells[0])
                raise InvalidInput(f"There is no feature {sort}: there are {count}.")
            self._orders[sort, down] = np.argsort(-ranks if down else ranks, kind="stable")
        return self._orders[sort, down]

    def _mask(self, asked: TableBody) -> Array:
        """Which examples were asked for, (n,)."""
        now, found = self.now, np.ones(len(self.ids), dtype=bool)
        if asked.label is not None:
            wanted = [type(one) is type(asked.label) and one == asked.label for one in now.labels]
            found &= np.array([*wanted, False])[now.codes]
        if asked.contributor is not None:
            name = asked.contributor or None
            found &= np.array([one == name for one in self.contributors], dtype=bool)
        if asked.unseen is not None:
            verdicts = self._columns["unseen"][1] == _UNSEEN.index(asked.unseen)
            found &= verdicts & (now.left is not None)
        if asked.search:
            part, shown = asked.search.casefold(), np.zeros(len(self.ids), dtype=bool)
            for name in ("id", "label", "predicted", "contributor"):
                values, codes = self._columns[name]
                has = np.array([part in str(one).casefold() for one in values], dtype=bool)
                shown |= has[codes]
            texts = self._texts
            shown |= np.array([part in one for one in texts], dtype=bool) if texts else False
            found &= shown
        return found
