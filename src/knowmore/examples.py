"""Examples: the only place where ids become rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, assert_never, final

import numpy as np

from knowmore._base import Array, Id, cached_property, moment, some
from knowmore.edits import Add, Edit, Relabel, Remove, Replace
from knowmore.errors import InvalidInput, RepeatedId, UnknownId

__all__ = ["Examples"]


# Up to this many rows are cut out by copying what stands between them.
_FEW = 8


@dataclass
class _Buffer:
    """An array whose first `filled` rows are taken; the caller that claims a row writes it."""

    array: Array
    filled: int

    def claim(self, begin: int, end: int) -> bool:
        """Take rows [begin, end) for the caller to write. False if they are taken or too many."""
        with moment:
            free = self.filled == begin and end <= len(self.array)
            if free:
                self.filled = end
            return free


@final
class Rows:
    """An immutable array that shares its leading rows with the arrays it grew from.

    view : the rows, read-only
    buffer : the memory that they share

    >>> one = Rows(np.zeros((2, 3)))
    >>> two = one.append(np.ones((1, 3)))
    >>> one.view.shape, two.view.shape
    ((2, 3), (3, 3))
    """

    __slots__ = ("buffer", "view")

    def __init__(self, array: Array, buffer: _Buffer | None = None) -> None:
        self.view = array.view()
        self.view.flags.writeable = False
        self.buffer = _Buffer(array, len(array)) if buffer is None else buffer

    def __reduce__(self) -> tuple[type[Rows], tuple[Array]]:
        return Rows, (np.array(self.view),)

    def append(self, rows: Array) -> Rows:
        """The rows of this array, then `rows`."""
        begin, end = len(self.view), len(self.view) + len(rows)
        if begin == end:
            return self
        buffer, dtype = self.buffer, rows.dtype
        if begin and dtype is not self.view.dtype:
            dtype = np.result_type(self.view, rows)
        if buffer.array.dtype != dtype or not buffer.claim(begin, end):
            buffer = _room_for(end, self.view, dtype)
            buffer.array[:begin] = self.view
        buffer.array[begin:end] = rows
        return Rows(buffer.array[:end], buffer)

    def extends(self, earlier: Rows) -> bool | None:
        """Whether these are the `earlier` rows and none or more behind them; None: not known."""
        return len(self.view) >= len(earlier.view) if self.buffer is earlier.buffer else None

    def without(self, rows: Array) -> Rows:
        """All but these rows (k,), which ascend, in a buffer of their own."""
        end = len(self.view) - len(rows)
        buffer = _room_for(end, self.view, self.view.dtype)
        if len(rows) > _FEW:
            buffer.array[:end] = np.delete(self.view, rows, axis=0)
            return Rows(buffer.array[:end], buffer)
        begin = 0
        for i, stop in enumerate((*rows.tolist(), len(self.view))):
            if stop > begin:
                buffer.array[begin - i : stop - i] = self.view[begin:stop]
            begin = stop + 1
        return Rows(buffer.array[:end], buffer)


def _room_for(end: int, like: Array, dtype: Any) -> _Buffer:
    """A buffer for `end` rows and some that may follow: a window loses one and gets one."""
    array = np.empty((end + end // 8 + 8, *like.shape[1:]), dtype=dtype)
    # Memory that is used again may have values of rows that were forgotten.
    array[end:] = np.zeros((), dtype)
    return _Buffer(array, end)


class _Columns(NamedTuple):
    """The columns of the examples, with a row for each example."""

    ids: Rows
    X: Rows
    labels: Rows
    weights: Rows
    serials: Rows


# Every row that is ever written has a number; a replaced example gets a new one. So two sets of
# examples can tell what they share without comparing features. The next number:
_following = [0]


def new_serials(k: int, least: int = 0) -> Array:
    """k serial numbers that no row has, (k,), ascending, none below `least`."""
    with moment:
        begin = max(_following[0], least)
        _following[0] = begin + k
    return np.arange(begin, begin + k)


def reserve_serials(serials: Array) -> None:
    """Keep new rows from getting these numbers (n,), which a pickle may bring along."""
    new_serials(0, least=int(serials.max(initial=-1)) + 1)


@final
@dataclass(frozen=True, eq=False)
class Examples:
    """Rows of (id, x, label, weight), immutable; edits return new sets that share rows.

    columns : the columns, with a row for each example
    next_id : the first of the ids that the next examples get unless they are given some
    labelling : sets with the same one of these have the same label for the same row

    The index maps ids to serial numbers. Successive sets share it: only ids that it never had are
    written in place, and an id whose serial number a set does not hold is not in that set.

    >>> some = Examples.of(np.eye(2), np.array(["a", "b"]))
    >>> some = some.apply(Remove((0,))).apply(Add(np.zeros((1, 2)), np.array(["c"]), ("third",)))
    >>> some.ids, some.labels.tolist(), some.rows(("third",)).tolist()
    (array([1, 'third'], dtype=object), ['b', 'c'], [1])
    """

    columns: _Columns
    _index: dict[Id, int]
    next_id: int
    # Whether all weights are known to be one.
    _alike: bool = False
    labelling: object = field(default_factory=object)

    @classmethod
    def of(
        cls,
        X: Array,
        labels: Array,
        ids: tuple[Id, ...] | None = None,
        weights: Array | None = None,
    ) -> Examples:
        """A first set: X (n, d), labels (n,) or (n, q), weights (n,), by default ones."""
        nothing = np.empty(0, dtype=object), X[:0], labels[:0], np.empty(0)
        no_serials = np.empty(0, dtype=np.int64)
        empty = cls(_Columns(*map(Rows, (*nothing, no_serials))), {}, 0, True)
        return empty.apply(Add(X, labels, ids, weights)) if len(X) else empty

    def __len__(self) -> int:
        return len(self.serials)

    def __repr__(self) -> str:
        return f"Examples({len(self)} rows of {self.X.shape[1]})"

    def __getstate__(self) -> dict[str, Any]:
        """The rows, without any trace of earlier ones: text as Python has it, all else arrays."""
        ids = self.ids if self.ids.dtype.kind == "i" else list(self.names)
        rows = ids, self.X, self.labels, self.weights, self.serials
        return dict(zip(_Columns._fields, rows, strict=True)) | {"next_id": self.next_id}

    def __setstate__(self, state: dict[str, Any]) -> None:
        next_id = state.pop("next_id")
        names = _names(np.asarray(state.pop("ids"), dtype=object).tolist())
        columns = _Columns(Rows(names), **{name: Rows(one) for name, one in state.items()})
        reserve_serials(columns.serials.view)
        vars(self).update(vars(Examples(columns, _index_of(columns), next_id)))

    @classmethod
    def restored(
        cls,
        ids: Sequence[Id],
        X: Array,
        labels: Array,
        weights: Array,
        serials: Array,
        next_id: int = 0,
    ) -> Examples:
        """Rows that were in a set before, with their serial numbers, which must ascend."""
        columns = _Columns(*map(Rows, (_names(ids), X, labels, weights, serials)))
        reserve_serials(serials)
        return cls(columns, _index_of(columns), next_id)

    @property
    def ids(self) -> Array:
        """The ids, (n,), in the order of the rows; of dtype object if types are mixed."""
        return array_of_ids(self.names)

    @property
    def names(self) -> tuple[Id, ...]:
        """The ids as they were given."""
        return tuple(self.columns.ids.view)

    @property
    def X(self) -> Array:
        """The inputs, (n, d), read-only."""
        return self.columns.X.view

    @property
    def labels(self) -> Array:
        """The labels, (n,) or (n, q), read-only."""
        return self.columns.labels.view

    @property
    def weights(self) -> Array:
        """The weight of each example, (n,), read-only; one by default."""
        return self.columns.weights.view

    @cached_property
    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest weight, one among them."""
        if self._alike:
            return 1.0, 1.0
        return float(self.weights.min(initial=1)), float(self.weights.max(initial=1))

    @property
    def serials(self) -> Array:
        """The serial numbers of the rows, (n,), ascending."""
        return self.columns.serials.view

    def rows(self, ids: tuple[Id, ...]) -> Array:
        """The rows of these examples, (k,)."""
        if len(ids) == 1 and (row := self._row(ids[0])) is not None:
            return np.array([row])
        serials, held = self._find(ids)
        if not held.all():
            raise unknown_ids([ids[i] for i in np.flatnonzero(~held)], self.names)
        return np.searchsorted(self.serials, serials)

    def _row(self, one: Id) -> int | None:
        """The row of an example; None if it is not held."""
        serial, serials = self._index.get(one, -1), self.serials
        row = int(serials.searchsorted(serial))
        return row if row < len(serials) and serials[row] == serial else None

    def _find(self, ids: tuple[Id, ...]) -> tuple[Array, Array]:
        """The serial numbers of these ids, (k,), and which of the ids are held, (k,)."""
        serials = np.array([self._index.get(one, -1) for one in ids], dtype=np.int64)
        return serials, among(serials, self.serials)

    @cached_property
    def counted(self) -> Examples:
        """The examples whose weight is above zero; the others are held but have no influence."""
        if self._alike:
            return self
        counted = self.weights > 0
        return self if counted.all() else self.without(np.flatnonzero(~counted))

    def apply(self, edit: Edit) -> Examples:
        """The examples after an edit; an edit that is impossible raises and changes nothing."""
        match edit:
            case Add():
                return self._with(edit)
            case Remove(ids):
                return self.without(self.rows(ids))
            case Replace(ids, X, labels):
                rows = self.rows(ids)
                labels = self.labels[rows] if labels is None else labels
                weights = None if self._alike else self.weights[rows]
                return self.without(rows)._with(Add(X, labels, ids, weights))
            case Relabel(ids, labels):
                rows = self.rows(ids)
                changed = self.labels.astype(np.result_type(self.labels, labels))
                changed[rows] = labels
                columns = self.columns.ids, self.columns.X, Rows(changed), *self.columns[3:]
                return replace(self, columns=_Columns(*columns), labelling=object())
        assert_never(edit)

    def with_rows(self, X: Array) -> Examples:
        """A copy with other features X, (n, any)."""
        return replace(self, columns=_Columns(self.columns.ids, Rows(X), *self.columns[2:]))

    def part(self, ids: tuple[Id, ...]) -> Examples:
        """Some of the examples, in this order."""
        rows = self.rows(ids)
        return Examples.of(self.X[rows], self.labels[rows], ids, self.weights[rows])

    def labelled_as(self, earlier: Examples) -> bool:
        """Whether it is known without a look that rows of both have the same label in both."""
        return self.labelling is earlier.labelling

    def extend(self, earlier: Examples) -> bool:
        """Whether these are the `earlier` ones and none or more behind them."""
        if (known := self.columns.serials.extends(earlier.columns.serials)) is not None:
            return known
        mine, theirs = self.serials, earlier.serials
        return len(mine) >= len(theirs) and bool((mine[: len(theirs)] == theirs).all())

    def since(self, earlier: Examples) -> tuple[Array, int]:
        """How to get from `earlier` to these: its rows to delete, and how many of ours to append.

        Rows of both that precede the first row of ours alone are kept.
        """
        mine, theirs = self.serials, earlier.serials
        if self.extend(earlier):
            return np.empty(0, dtype=np.int64), len(mine) - len(theirs)
        if 0 < len(theirs) <= len(mine) + 1:
            # A window has lost one row: the first that differs, or the last.
            last = len(theirs) - 1
            differs = mine[:last] != theirs[:last]
            row = int(differs.argmax()) if differs.any() else last
            if (mine[row:last] == theirs[row + 1 :]).all():
                return np.array([row]), len(mine) - last
        shared = among(mine, theirs)
        kept = len(mine) if shared.all() else int(shared.argmin())
        return np.flatnonzero(~among(theirs, mine[:kept])), len(mine) - kept

    def _with(self, new: Add) -> Examples:
        k, ids = len(new.X), new.ids
        if ids is None:
            ids = tuple(range(self.next_id, self.next_id + k))
        held: list[Id] = []
        if len(self) and not (k == len(ids) == 1 and self._row(ids[0]) is None):
            held = [ids[i] for i in np.flatnonzero(self._find(ids)[1])]
        check_new_ids(ids, k, held)
        weights = np.ones(k) if new.weights is None else new.weights
        serials = new_serials(k)
        rows = _names(ids), new.X, new.labels, weights, serials
        columns = [old.append(more) for old, more in zip(self.columns, rows, strict=True)]
        index = _extended(self._index, dict(zip(ids, serials.tolist(), strict=True)))
        largest = max((one for one in ids if isinstance(one, int)), default=-1)
        alike = self._alike and new.weights is None
        next_id = max(self.next_id, largest + 1)
        return Examples(_Columns(*columns), index, next_id, alike, self.labelling)

    def without(self, rows: Array) -> Examples:
        """The examples without these rows, by position."""
        rows = np.unique(rows) if len(rows) > 1 else rows
        columns = _Columns(*[column.without(rows) for column in self.columns])
        # The index keeps the ids of removed examples until they are the larger part of it.
        crowded = len(self._index) > 2 * (len(self) - len(rows)) + 100
        index = _index_of(columns) if crowded else self._index
        return Examples(columns, index, self.next_id, self._alike, self.labelling)


def check_new_ids(ids: tuple[Id, ...], k: int, held: list[Id]) -> None:
    """Raise InvalidInput unless there is one id for each of k examples, and none is held."""
    if len(ids) != k:
        raise InvalidInput(f"{len(ids)} ids were given for {k} examples. Give one each.")
    if held:
        raise RepeatedId(
            f"The model already holds {some(held)}. Use replace() to change them, or give new "
            f"examples other ids, by ids=... (to merge: in the second fit) or by the index of "
            f"their table (reset_index(drop=True) numbers rows instead)."
        )


def unknown_ids(ids: Sequence[Id], held: Iterable[Id], gone: str = "removed") -> UnknownId:
    """The error for ids that are not `held`; gone: what may have become of the examples."""
    kinds, they = set(map(type, held)), "It" if len(ids) == 1 else "They"
    hint = f"{they} may have been {gone} before; ids_ lists those that are there."
    if len(kinds) == 1 and all(type(one) not in kinds for one in ids):
        (kind,) = kinds
        hint = f"All its ids are of type {kind.__name__}: 1 and '1' are different ids."
    return UnknownId(f"The model holds no example {some(ids)}. {hint}")


def array_of_ids(ids: Sequence[Id]) -> Array:
    """The ids as an array, (n,); of dtype object if types are mixed."""
    if len(set(map(type, ids))) == 1:
        natural = np.array(ids)
        # NumPy cannot store integers beyond 64 bits and strings that end in NUL exactly.
        if natural.dtype.kind in "iuU" and natural.tolist() == list(ids):
            return natural
    return _names(ids)


def _names(ids: Sequence[Id]) -> Array:
    """The ids as an array of objects, (n,)."""
    names = np.empty(len(ids), dtype=object)
    names[:] = ids
    return names


def _index_of(columns: _Columns) -> dict[Id, int]:
    return dict(zip(columns.ids.view.tolist(), columns.serials.view.tolist(), strict=True))


def _extended(index: dict[Id, int], new: dict[Id, int]) -> dict[Id, int]:
    """The index with new ids, in place if it never had any of them."""
    with moment:
        if index.keys().isdisjoint(new):
            index.update(new)
            return index
    return index | new


def among(some: Array, others: Array) -> Array:
    """Which of `some` are in `others`, which ascend."""
    at = np.searchsorted(others, some)
    found = at < len(others)
    found[found] = others[at[found]] == some[found]
    return found
