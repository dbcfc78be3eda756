"""The examples of a file as a table: sorted, searched and filtered here, and read page by page."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from knowmore._base import Array, cached_property
from knowmore.errors import InvalidInput
from knowmore.web.bodies import TableBody
from knowmore.web.snapshot import Snapshot

# Features that are shown at a time.
_SHOWN = 8
# Verdicts of the others on an example, in order.
_UNSEEN = ("wrong", "silent", "right")


@final
class ExampleTable:
    """The examples of one state of a file, with the last order and selection.

    contributors : of each example
    """

    def __init__(self, now: Snapshot, contributors: list[str | None]) -> None:
        self.now, self.contributors = now, contributors
        self.ids: list[Any] = [] if now.examples is None else [*now.examples.names]
        self._orders: dict[Any, Array] = {}
        self._last: tuple[TableBody, Array] | None = None

    def page(self, asked: TableBody) -> dict[str, Any]:
        """The part of the table that was asked for."""
        now, order = self.now, self._chosen(asked)
        some = order[asked.offset : asked.offset + asked.limit]
        shown = slice(asked.first, asked.first + _SHOWN)
        return {
            "number": now.number,
            "total": len(now),
            "found": len(order),
            "columns": [*now.columns[shown]],
            "features": len(now.columns),
            "contributors": self._whose,
            "rows": [self._row(i, shown) for i in some.tolist()],
        }

    def _row(self, i: int, shown: slice) -> dict[str, Any]:
        now = self.now
        assert now.examples is not None
        return {
            "id": self.ids[i],
            "label": now.examples.labels[i].tolist(),
            "contributor": self.contributors[i],
            "predicted": None if now.left is None else now.left.predicted[i].tolist(),
            "unseen": None if now.left is None else _UNSEEN[self._unseen[i]],
            "values": now.examples.X[i, shown].tolist(),
        }

    # -- which, in what order ------------------------------------------------------------------

    def _chosen(self, asked: TableBody) -> Array:
        """The numbers of the examples that were asked for, in order."""
        same = {"offset": 0, "limit": 1, "first": 0}
        key = asked.model_copy(update=same)
        if self._last is None or self._last[0] != key:
            order = self._order(asked.sort, asked.down)
            self._last = key, order[self._mask(asked)[order]]
        return self._last[1]

    def _order(self, sort: Any, down: bool) -> Array:
        if sort is None:
            return np.arange(len(self.ids))
        if (sort, down) not in self._orders:
            ranks = self._ranks(sort)
            self._orders[sort, down] = np.argsort(-ranks if down else ranks, kind="stable")
        return self._orders[sort, down]

    def _ranks(self, sort: Any) -> Array:
        """Numbers (n,) by which a column is sorted."""
        now = self.now
        if not self.ids or now.examples is None:
            return np.zeros(0)
        match sort:
            case "id":
                order = sorted(range(len(self.ids)), key=lambda i: _comparable(self.ids[i]))
                return np.argsort(order)
            case "contributor":
                return self._who[1]
            case "label":
                return now.codes if now.is_classifier else _column(now.examples.labels)
            case "predicted":
                return self._said[1]
            case "unseen" if now.left is not None:
                return self._unseen
            case "unseen":
                return np.zeros(len(self.ids))
            case _ if sort < now.examples.X.shape[1]:
                return np.asarray(now.examples.X[:, sort], dtype=float)
        raise InvalidInput(f"There is no feature {sort}: there are {now.examples.X.shape[1]}.")

    def _mask(self, asked: TableBody) -> Array:
        """Which examples were asked for, (n,)."""
        found = np.ones(len(self.ids), dtype=bool)
        if asked.label is not None:
            found &= self._of_class(asked.label)
        if asked.contributor is not None:
            name = asked.contributor or None
            found &= np.array([one == name for one in self.contributors], dtype=bool)
        if asked.unseen is not None:
            judged = self.now.left is not None
            found &= judged & (self._unseen == _UNSEEN.index(asked.unseen))
        if asked.search:
            found &= self._searched(asked.search.casefold())
        return found

    def _searched(self, part: str) -> Array:
        """Which examples have this in one of the texts that are shown of them, (n,)."""
        found = np.array([part in one for one in self._names], dtype=bool)
        for values, codes in (self._labels, self._said, self._who):
            has = np.array([part in str(one).casefold() for one in values], dtype=bool)
            found |= has[codes]
        return found

    def _of_class(self, label: Any) -> Array:
        same = [type(one) is type(label) and one == label for one in self.now.labels]
        if not any(same):
            return np.zeros(len(self.ids), dtype=bool)
        return np.asarray(self.now.codes == same.index(True))

    # -- columns as a few values, and which of these each example has, (n,) --------------------

    @cached_property
    def _labels(self) -> tuple[list[Any], Array]:
        now = self.now
        if now.examples is None or now.is_classifier:
            return now.labels, now.codes
        return now.examples.labels.tolist(), np.arange(len(self.ids))

    @cached_property
    def _said(self) -> tuple[list[Any], Array]:
        """The labels that the others predict."""
        if self.now.left is None:
            return [""], np.zeros(len(self.ids), dtype=int)
        values, codes = np.unique(self.now.left.predicted, return_inverse=True)
        return values.tolist(), codes

    @cached_property
    def _who(self) -> tuple[list[str], Array]:
        """The contributors; "" is nobody."""
        values = sorted({one or "" for one in self.contributors})
        place = {one: code for code, one in enumerate(values)}
        return values, np.array([place[one or ""] for one in self.contributors], dtype=int)

    @cached_property
    def _whose(self) -> list[str]:
        """All contributors, and "" at the end if some examples are of nobody but not all."""
        names = sorted(self._who[0], key=lambda one: (not one, one))
        return [] if names == [""] else names

    @cached_property
    def _unseen(self) -> Array:
        """The index of each example's verdict in `_UNSEEN`, (n,)."""
        return np.where(self.now.silent, 1, np.where(self.now.wrong, 0, 2))

    @cached_property
    def _names(self) -> list[str]:
        """The ids, as they are searched."""
        return [str(one).casefold() for one in self.ids]


def _comparable(one: Any) -> tuple[bool, Any]:
    """Numbers come before texts."""
    return isinstance(one, str), one


def _column(values: Array) -> Array:
    """Values, or the first of several, (n,)."""
    return np.asarray(values if values.ndim == 1 else values[:, 0], dtype=float)
