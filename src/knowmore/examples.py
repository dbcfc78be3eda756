"""Examples: the only place where an id becomes a row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, assert_never, final

import numpy as np
import numpy.typing as npt

from knowmore.arguments import some
from knowmore.arrays import Array
from knowmore.concurrency import cached_property, moment
from knowmore.edits import Add, Edit, Id, Relabel, Remove, Replace
from knowmore.errors import InvalidInput, RepeatedId, UnknownId

__all__ = ["Examples"]


class _Buffer:
    """Rows taken so far, and room for more. Who moves `filled` on writes the rows in between."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.filled = len(array)

    def claim(self, begin: int, end: int) -> bool:
        """Are rows [begin, end) the caller's to write? Not if another came first."""
        with moment:
            free = self.filled == begin and end <= len(self.array)
            if free:
                self.filled = end
            return free


@final
class Rows:
    """An immutable array that shares its leading rows with the arrays it grew from.

    >>> one = Rows(np.zeros((2, 3)))
    >>> two = one.append(np.ones((1, 3)))
    >>> one.view.shape, two.view.shape
    ((2, 3), (3, 3))
    """

    __slots__ = ("_buffer", "_length")

    def __init__(self, array: npt.ArrayLike) -> None:
        self._buffer = _Buffer(np.array(array, order="C"))
        self._length = self._buffer.filled

    def __len__(self) -> int:
        return self._length

    def __reduce__(self) -> tuple[type[Rows], tuple[Array]]:
        return Rows, (np.array(self.view),)

    @property
    def view(self) -> Array:
        """The rows, read-only."""
        view = self._buffer.array[: self._length]
        view.flags.writeable = False
        return view

    def append(self, rows: Array) -> Rows:
        """These rows and `rows` behind them."""
        begin, end = self._length, self._length + len(rows)
        dtype = np.result_type(self._buffer.array, rows) if begin else rows.dtype
        buffer = self._buffer
        if buffer.array.dtype != dtype or not buffer.claim(begin, end):
            array = np.empty((max(end, begin + begin // 2 + 8), *rows.shape[1:]), dtype=dtype)
            array[:begin] = buffer.array[:begin]
            buffer = _Buffer(array)
            buffer.filled = end
        buffer.array[begin:end] = rows
        return Rows._of(buffer, end)

    def keep(self, kept: Array) -> Rows:
        """The rows that the mask or index array `kept` names, in a buffer of their own."""
        array = np.ascontiguousarray(self.view[kept])
        return Rows._of(_Buffer(array), len(array))

    @classmethod
    def _of(cls, buffer: _Buffer, length: int) -> Rows:
        rows = object.__new__(cls)
        rows._buffer = buffer
        rows._length = length
        return rows


class _Serials:
    """Numbers every row that is ever written; a replaced example gets a new number.

    So two sets of examples can tell what they share without comparing features.
    """

    def __init__(self) -> None:
        self.next = 0

    def take(self, k: int) -> Array:
        with moment:
            end = self.next = self.next + k
        return np.arange(end - k, end)

    def pass_over(self, serial: int) -> None:
        """Never issue a number that a pickle brought from another process."""
        with moment:
            self.next = max(self.next, serial + 1)


_serials = _Serials()


class _Index:
    """Looks up id -> serial number, shared by successive sets of examples.

    Only ids that it never held are written in place, so an older set still finds what it always
    did: a serial number that it does not hold means that the id is not its own.
    """

    def __init__(self, serials: dict[Id, int]) -> None:
        self.serials = serials

    @classmethod
    def of(cls, ids: Rows, serials: Rows) -> _Index:
        return cls(dict(zip(ids.view.tolist(), serials.view.tolist(), strict=True)))

    def extended(self, new: dict[Id, int]) -> _Index:
        with moment:
            if self.serials.keys().isdisjoint(new):
                self.serials.update(new)
                return self
        return _Index(self.serials | new)


@final
@dataclass(frozen=True, eq=False)
class Examples:
    """Rows of (id, x, label, weight, side), immutable; edits give new values and share what stays.

    `side` is what else is known of each example, such as the scores of another classifier.

    >>> some = Examples.of(np.eye(2), np.array(["a", "b"]))
    >>> some = some.apply(Remove((0,))).apply(Add(np.zeros((1, 2)), np.array(["c"]), ("third",)))
    >>> some.ids, some.labels.tolist(), some.rows(("third",)).tolist()
    (array([1, 'third'], dtype=object), ['b', 'c'], [1])
    """

    _ids: Rows
    _X: Rows
    _labels: Rows
    _weights: Rows
    _side: Rows
    _serials: Rows
    _index: _Index
    _next_id: int

    @classmethod
    def of(
        cls,
        X: Array,
        labels: Array,
        ids: tuple[Id, ...] | None = None,
        weights: Array | None = None,
        side: Array | None = None,
    ) -> Examples:
        """A first set: X (n, d), labels (n,) or (n, q), weights (n,) or None for one each."""
        ids0, serials0 = Rows(np.empty(0, dtype=object)), Rows(np.empty(0, dtype=np.int64))
        side0 = Rows(np.empty((0, 0 if side is None else side.shape[1])))
        rows = Rows(X[:0]), Rows(labels[:0]), Rows(np.empty(0)), side0
        empty = cls(ids0, *rows, serials0, _Index({}), 0)
        return empty.apply(Add(X, labels, ids, weights, side)) if len(X) else empty

    def __len__(self) -> int:
        return len(self._ids)

    def __repr__(self) -> str:
        return f"Examples({len(self)} rows of {self.X.shape[1]})"

    def __reduce__(self) -> tuple[Any, ...]:
        rows = self._ids, self._X, self._labels, self._weights, self._side, self._serials
        return _restore, (*rows, self._next_id)

    @property
    def ids(self) -> Array:
        """The ids, (n,), in the order of the rows; of dtype object where kinds are mixed."""
        return self.last_ids(len(self))

    def last_ids(self, k: int) -> Array:
        """The ids of the last k rows, (k,)."""
        ids = self._ids.view[len(self) - k :]
        if len(set(map(type, ids))) == 1:
            natural = np.array(ids.tolist())
            # Integers beyond 64 bits (of both signs: floats) and strings that end in NUL would not
            # come out again.
            if natural.dtype.kind in "iuU" and natural.tolist() == ids.tolist():
                return natural
        return ids.copy()

    @property
    def names(self) -> tuple[Id, ...]:
        """The ids as they were given."""
        return tuple(self._ids.view)

    @property
    def X(self) -> Array:
        """The inputs, (n, d), read-only."""
        return self._X.view

    @property
    def labels(self) -> Array:
        """The labels, (n,) or (n, q), read-only."""
        return self._labels.view

    @property
    def weights(self) -> Array:
        """How much each example counts, (n,), read-only; one by default."""
        return self._weights.view

    @property
    def side(self) -> Array:
        """What else is known of the examples, (n, q), read-only; q is zero if nothing is."""
        return self._side.view

    @property
    def serials(self) -> Array:
        """The serial numbers of the rows, (n,), ascending."""
        return self._serials.view

    def rows(self, ids: tuple[Id, ...]) -> Array:
        """The rows of these examples, (k,)."""
        mine = self.serials
        found = np.array([self._index.serials.get(one, -1) for one in ids], dtype=np.int64)
        held = _among(found, mine)
        if not held.all():
            raise UnknownId(self._unknown([ids[i] for i in np.flatnonzero(~held)]))
        return np.searchsorted(mine, found)

    @cached_property
    def counted(self) -> Examples:
        """The examples whose weight is above zero; the others are held but have no influence."""
        counted = self.weights > 0
        return self if counted.all() else self._without(np.flatnonzero(~counted))

    def apply(self, edit: Edit) -> Examples:
        """The examples after one edit; an edit that cannot be done raises and nothing changes."""
        match edit:
            case Add():
                return self._with(edit)
            case Remove(ids):
                return self._without(self.rows(ids))
            case Replace(ids, X, labels, side):
                rows = self.rows(ids)
                labels = self.labels[rows] if labels is None else labels
                return self._without(rows)._with(Add(X, labels, ids, self.weights[rows], side))
            case Relabel(ids, labels):
                rows = self.rows(ids)
                changed = self.labels.astype(np.result_type(self.labels, labels))
                changed[rows] = labels
                return replace(self, _labels=Rows(changed))
        assert_never(edit)

    def since(self, earlier: Examples) -> tuple[Array, int]:
        """What leads from `earlier` to these: its rows to delete, and how many of ours to append.

        Rows that both have and that stand before the first row that is only ours are kept.
        """
        mine, theirs = self.serials, earlier.serials
        if len(mine) >= len(theirs) and (mine[: len(theirs)] == theirs).all():
            return np.empty(0, dtype=np.int64), len(mine) - len(theirs)
        shared = _among(mine, theirs)
        kept = len(mine) if shared.all() else int(shared.argmin())
        return np.flatnonzero(~_among(theirs, mine[:kept])), len(mine) - kept

    def _with(self, new: Add) -> Examples:
        k, ids = len(new.X), new.ids
        if ids is None:
            ids = tuple(range(self._next_id, self._next_id + k))
        if len(ids) != k:
            raise InvalidInput(f"{len(ids)} ids were given for {k} examples. Give one each.")
        held = [one for one in ids if self._holds(one)]
        if held:
            raise RepeatedId(
                f"The model already holds {some(held)}. "
                f"Use replace() to change an example, or give the new one another id."
            )
        serials = _serials.take(k)
        names = np.empty(k, dtype=object)
        names[:] = ids
        integers = [one + 1 for one in ids if isinstance(one, int)]
        return Examples(
            self._ids.append(names),
            self._X.append(new.X),
            self._labels.append(new.labels),
            self._weights.append(np.ones(k) if new.weights is None else new.weights),
            self._side.append(np.empty((k, 0)) if new.side is None else new.side),
            self._serials.append(serials),
            self._index.extended(dict(zip(ids, serials.tolist(), strict=True))),
            max([self._next_id, *integers]),
        )

    def _without(self, rows: Array) -> Examples:
        kept = np.ones(len(self), dtype=bool)
        kept[rows] = False
        ids, serials = self._ids.keep(kept), self._serials.keep(kept)
        # The index keeps the names of what was removed, until they are the larger part of it.
        crowded = len(self._index.serials) > 2 * len(ids) + 100
        index = _Index.of(ids, serials) if crowded else self._index
        columns = self._X, self._labels, self._weights, self._side
        X, labels, weights, side = (each.keep(kept) for each in columns)
        return Examples(ids, X, labels, weights, side, serials, index, self._next_id)

    def _holds(self, one: Id) -> bool:
        serial = self._index.serials.get(one)
        if serial is None:
            return False
        row = int(np.searchsorted(self.serials, serial))
        return row < len(self) and int(self.serials[row]) == serial

    def _unknown(self, ids: list[Id]) -> str:
        kinds = {type(one) for one in self._ids.view}
        they = "It" if len(ids) == 1 else "They"
        hint = f"{they} may have been removed before; ids_ lists those that are there."
        if len(kinds) == 1 and all(type(one) not in kinds for one in ids):
            (kind,) = kinds
            hint = f"All its ids are of type {kind.__name__}: 1 and '1' are different ids."
        return f"The model holds no example {some(ids)}. {hint}"


def _restore(
    ids: Rows, X: Rows, labels: Rows, weights: Rows, side: Rows, serials: Rows, next_id: int
) -> Examples:
    """Examples as they were pickled, without any trace of earlier ones."""
    _serials.pass_over(int(serials.view.max(initial=-1)))
    return Examples(ids, X, labels, weights, side, serials, _Index.of(ids, serials), next_id)


def _among(some: Array, others: Array) -> Array:
    """Which of `some` are in `others`, which ascend."""
    at = np.searchsorted(others, some)
    found = at < len(others)
    found[found] = others[at[found]] == some[found]
    return found
