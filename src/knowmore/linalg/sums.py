"""Exact moments of rows on a grid: the same bits for the same rows, whatever the history.

Rows are read as whole numbers (see `Grid`), so their count, their sums and their sums of products
are whole numbers too. BLAS computes them exactly: a product in floating point is exact, in any
order and on any number of threads, while no partial sum exceeds the precision. Between blocks of
rows they are added as integers. So sums can be added and subtracted for ever, and nothing is left
of a row that came and went.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType
from typing import Any, Final, NamedTuple, final

import numpy as np

from knowmore._progress import report
from knowmore.arguments import a_type, one_each, real_numbers, some
from knowmore.arrays import Array, Frozen, derived, enough_memory, read_only
from knowmore.errors import InvalidInput, InvalidType, NoExamples, UnknownId
from knowmore.linalg.counting import HALF, loops
from knowmore.linalg.grid import LAYOUTS, Grid, block, height, table
from knowmore.linalg.tasks import side_by_side
from knowmore.linalg.threads import FEW, blas_threads, threads_for
from knowmore.memory import available_memory, check_free

Key = Hashable

# Weights are counted in units of 1 / 256, with 16 bits.
UNIT: Final = 256
_MOST: Final = 2**16 - 1
# The total weight, in units, up to which no sum overflows: 8.5 billion rows of weight one.
_HEAVIEST: Final = 2**41
# Logarithms of weights are read on a grid of 2**-32.
LOG_UNIT: Final = 2.0**32
# The largest logarithm of a weight, up or down, on that grid.
_LONGEST: Final = int(np.ceil(LOG_UNIT * np.log(UNIT)))
# The squares of no rows. A float would round those of waiting rows to its own precision.
_NOTHING: Final = np.longdouble(0)
# Rows that wait to be summed: a few at a time would cost as much as many.
_WAITING: Final = 128
# Rows that are read and multiplied at a time.
_ROWS: Final = 1024
# What rounding may do to a sum of squares of 64 bits.
_ROUNDING: Final = 32 * np.finfo(np.longdouble).eps
# Whether so many bytes are free is looked up before they are taken.
MANY_BYTES: Final = 2**28
FEWER_COLUMNS: Final = (
    "Give fewer columns: through a feature map, hashed to fewer, or by TruncatedSVD. For few rows, "
    "a GPClassifier or GPRegressor with the kernel DotProduct() holds n^2 / 2 numbers instead."
)
NO_ROWS: Final = (
    "No rows could have these sums: some were forgotten twice, or were never learnt. Sums are "
    "exact: learn the same rows again, and the model is as it was before."
)


class Group(NamedTuple):
    """What is known of the rows of one group: their number, weight in units, and sums (P,)."""

    rows: int
    weight: int
    first: Array

    def combined(self, other: Group, sign: int) -> Group:
        """The group with the rows of another one, or with sign -1 without them."""
        return Group(
            self.rows + sign * other.rows,
            self.weight + sign * other.weight,
            read_only(self.first + sign * other.first),
        )


class _Batch(NamedTuple):
    """Rows (n, P) to add or, with sign -1, to remove, and their weights in units (n,)."""

    Z: Array
    units: Array
    sign: int


class _Products(NamedTuple):
    """Sums of products: those of many rows in two words, (2, P, P), and rows still to be summed.

    diagonal : the sums of squares of the former, (P,), to 64 bits
    squares : the sums of squares of the latter, (P,), whole numbers: so few rows fit into 63 bits
    length : the number of the latter
    """

    words: Array | None
    diagonal: Array | np.longdouble = _NOTHING
    waiting: tuple[_Batch, ...] = ()
    squares: Array | int = 0
    length: int = 0

    @classmethod
    def summed(cls, words: Array) -> _Products:
        """These sums; no row waits."""
        high, low = (word.diagonal().astype(np.longdouble) for word in words)
        # Compiled loops return a type of their own, which would show in pickles.
        return cls(read_only(words.view(np.int64)), high * 2.0**62 + low)

    def without_pairs(self) -> _Products:
        """The same sums, if no row was summed yet, without waiting rows that came and went."""
        if self.words is not None:
            return self
        net, rows = dict[bytes, int](), list[tuple[bytes, _Batch]]()
        for Z, units, sign in self.waiting:
            for i in range(len(Z)):
                # -0.0 and 0.0 are one number.
                row = (Z[i] + 0).tobytes()
                net[row] = net.get(row, 0) + sign * int(units[i])
                rows.append((row, _Batch(Z[i : i + 1], units[i : i + 1], sign)))
        left = tuple(batch for row, batch in rows if net[row])
        return self._replace(waiting=left, length=len(left))


@final
@dataclass(frozen=True, eq=False, repr=False)
class Sums(Frozen):
    """The moments of a multiset of rows, each of some group; `+` and `-` are exact.

    grid : what rows are read on; P is its number of columns times its slices
    groups : the rows, weight and sums of each group that has rows, by its key
    log_weights : the sum of the logarithms of the weights, in units of 2**-32

    >>> X = np.random.default_rng(0).normal(size=(1000, 3))
    >>> grid = Grid.covering(X)
    >>> everything = Sums.of(grid, X)
    >>> Sums.of(grid, X[700:]) + Sums.of(grid, X[:700]) == everything
    True
    >>> (everything - Sums.of(grid, X[700:])).digest() == Sums.of(grid, X[:700]).digest()
    True
    """

    grid: Grid
    groups: Mapping[Key, Group] = field(default_factory=dict)
    log_weights: int = 0
    _products: _Products = field(default_factory=lambda: _Products(None))

    @classmethod
    def of(cls, grid: Grid, X: Any, keys: Any = None, weights: Array | None = None) -> Sums:
        """The sums of rows X (n, D), dense, sparse or mapped; one block at a time is in memory.

        X : or several tables in a tuple, side by side
        keys : the group of each row, (n,); None: all are of one group, None
        weights : (n,), below 256, rounded to multiples of 1/256; None: one each. A row of weight
            zero is left out.
        """
        if not isinstance(grid, Grid):
            raise InvalidType(f"The grid is {a_type(grid)}. Give a Grid, such as Grid.covering(X).")
        X = tuple(map(table, X)) if isinstance(X, tuple) else table(X)
        n, P = height(X), width(grid)
        names, codes = _coded(keys, n)
        units = _in_units(weights, n)
        firsts = np.zeros((len(names), P), np.int64)
        # A few rows wait until more have come, or a question.
        if n <= _WAITING:
            batch = _Batch(grid.multiples(block(X, slice(n))), units, 1)
            loops().count(batch.Z, codes, units, firsts)
            squares = units @ batch.Z.astype(np.int64) ** 2
            products = _Products(None, waiting=(batch,) if n else (), squares=squares, length=n)
        else:
            totals = _swept(grid, X, codes, units, firsts)
            products = _Products.summed(reduce(_sum, totals))
        counts = np.bincount(codes, units > 0, len(names)).astype(int)
        heavy = np.bincount(codes, units, len(names)).astype(int)
        groups = {
            name: Group(rows, weight, read_only(first))
            for name, rows, weight, first in zip(
                names, counts.tolist(), heavy.tolist(), firsts, strict=True
            )
            if rows
        }
        logs = 0 if weights is None else _logarithms(units)
        return cls(grid, groups, logs, products)._checked()

    def __post_init__(self) -> None:
        # Their arrays were locked when they were made: to go through all would cost at every edit.
        object.__setattr__(self, "groups", MappingProxyType(self.groups))

    @classmethod
    def restored(
        cls, grid: Grid, groups: Mapping[Key, Group], log_weights: int, words: Array
    ) -> Sums:
        """Sums from their parts, as they were stored; words : (2, P, P), lower triangle.

        Raises InvalidInput unless rows can have such sums, as far as single sums tell.
        """
        found = cls(grid, groups, log_weights, _Products.summed(words))._checked()
        counted = all(group.rows > 0 and _possible(group, grid) for group in groups.values())
        alike = len({*map(type, groups)}) <= 1
        if not counted or not alike or abs(log_weights) > _LONGEST * found.rows:
            raise InvalidInput(NO_ROWS)
        if not (found._squares_suffice() and found._products_suffice()):
            raise InvalidInput(NO_ROWS)
        return found

    def __repr__(self) -> str:
        return f"Sums({self.rows} rows in {len(self.groups)} groups, {self.grid!r})"

    def __getstate__(self) -> dict[str, Any]:
        """For pickles: no single row is in them, and nothing that depends on the history."""
        # Those of no rows need no words.
        words = self.words if self.groups else None
        held = self.grid, dict(self.groups), self.log_weights, words
        return dict(zip(("grid", "groups", "log_weights", "words"), held, strict=True))

    def __setstate__(self, state: dict[str, Any]) -> None:
        words = state.pop("words")
        products = _Products(None) if words is None else _Products.summed(words)
        locked = {key: read_only(group) for key, group in state["groups"].items()}
        super().__setstate__(state | {"groups": MappingProxyType(locked), "_products": products})

    # -- what is known ------------------------------------------------------------------------

    @derived
    def _whole(self) -> Group:
        """All groups in one. An edit passes it on: to add up all groups would take longer."""
        nothing = Group(0, 0, np.zeros(width(self.grid), np.int64))
        groups = [*self.groups.values()] or [nothing]
        return reduce(lambda one, other: one.combined(other, 1), groups)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._whole.rows

    @property
    def weight(self) -> int:
        """The total weight, in units of 1 / UNIT."""
        return self._whole.weight

    @property
    def first(self) -> Array:
        """The sum of all rows, in multiples of the steps, (P,)."""
        return self._whole.first

    @property
    def words(self) -> Array:
        """The sums of products in two words, (2, P, P), lower triangle: see `counting`."""
        products = self._products
        if products.words is None or products.waiting:
            # At once, so that another thread never counts the rows twice.
            with enough_memory("sum the products of the columns", FEWER_COLUMNS):
                products = _settled(self.grid, products)
            object.__setattr__(self, "_products", products)
        return np.asarray(products.words)

    @property
    def nbytes(self) -> int:
        """The memory that the words take now: rows that wait have none."""
        return 0 if self._products.words is None else self._products.words.nbytes

    def mean(self) -> Array:
        """The mean of all rows, (D,)."""
        if not self.rows:
            raise NoExamples("These are the sums of no rows, so they have no mean. Add rows first.")
        return self._joined(self.first / self.weight)

    def weights(self, keys: list[Key]) -> Array:
        """The weights of these groups, in units of 1 / UNIT, (G,)."""
        return np.array([self._group(key).weight for key in keys])

    def _group(self, key: Key) -> Group:
        """The group with this key, which must have rows."""
        with suppress(KeyError, TypeError):
            return self.groups[key]
        raise UnknownId(f"No row has the key {key!r}. Give one of {some([*self.groups])}.")

    def scatter(self, *, centred: bool = True) -> Array:
        """sum w (x - mean) (x - mean)', or without the means, (D, D). Each entry is rounded once.

        Two slices are put together in floating point.
        """
        first = self.first if centred else np.zeros_like(self.first)
        S = loops().difference(self.words, max(self.weight, 1), first, first, True)
        if (np.diagonal(S) < 0).any():
            raise InvalidInput(NO_ROWS)
        if len(S) == len(self.grid):
            S *= self.grid.steps[:, None] / UNIT
            S *= self.grid.steps
            return np.asarray(S)
        S = self._joined(self._joined(S).T)
        # Two slices join in one order above the diagonal, and in another below it.
        return np.asarray((S + S.T) / (2 * UNIT))

    def cross(self, keys: list[Key], *, centred: bool = True) -> Array:
        """sum w x over each group, minus its weight times the mean of all rows if centred, (G, D).

        Each entry is rounded once; two slices are put together in floating point.
        """
        sums = np.array([self._group(key).first for key in keys])
        weights = self.weights(keys) * centred
        words = read_only(np.array([np.zeros_like(sums), sums]))
        C = loops().difference(words, self.weight, weights, self.first, False)
        return self._joined(C) / UNIT

    def _joined(self, A: Array) -> Array:
        """Multiples of the steps in slices, (..., P), as values, (..., D)."""
        D = len(self.grid)
        shift = LAYOUTS[self.grid.bits].shift
        whole = A if A.shape[-1] == D else np.ldexp(A[..., :D], shift) + A[..., D:]
        return np.asarray(whole * self.grid.steps)

    # -- algebra ------------------------------------------------------------------------------

    def __add__(self, other: Sums) -> Sums:
        return self._combined(other, 1)

    def __sub__(self, other: Sums) -> Sums:
        return self._combined(other, -1)

    def _combined(self, other: Sums, sign: int) -> Sums:
        if not isinstance(other, Sums):
            raise InvalidType(
                f"Sums are combined with {a_type(other)}. Give Sums: Sums.of(grid, X) of rows X."
            )
        if self.grid != other.grid:
            raise InvalidInput(
                f"The grids differ: {self.grid!r} here, {other.grid!r} there. Sums add up only on "
                f"one grid. Give both models the same resolution=Grid(...)."
            )
        if self.groups and other.groups and self._kind != other._kind:
            raise InvalidInput(
                f"The groups have keys of type {self._kind} here and {other._kind} there. Convert "
                f"them first."
            )
        groups = dict(self.groups)
        for key, new in other.groups.items():
            old = groups.get(key) or Group(0, 0, np.zeros_like(new.first))
            group = old.combined(new, sign)
            if not _possible(group, self.grid):
                raise _not_learnt(key, old.rows)
            groups[key] = group
            if not group.rows:
                del groups[key]
        result = Sums(
            self.grid,
            groups,
            self.log_weights + sign * other.log_weights,
            self._products_with(other, sign),
        )
        vars(result)["_whole"] = self._whole.combined(other._whole, sign)
        if not groups:
            if result.log_weights or not result._cancels():
                raise _not_learnt(None, self.rows)
            return Sums(self.grid)
        if sign < 0 and not result._squares_suffice():
            raise _not_learnt(None, self.rows)
        return result._checked()

    def _products_with(self, other: Sums, sign: int) -> _Products:
        mine, theirs = self._products, other._products
        if theirs.words is not None:
            return _Products.summed(loops().combine(self.words, other.words, sign))
        joined = _Products(
            mine.words,
            mine.diagonal,
            mine.waiting + tuple(b._replace(sign=sign * b.sign) for b in theirs.waiting),
            mine.squares + sign * theirs.squares,
            mine.length + theirs.length,
        )
        if joined.length > _WAITING:
            joined = joined.without_pairs()
        return joined if joined.length <= _WAITING else _settled(self.grid, joined)

    def _squares_suffice(self) -> bool:
        """Whether rows can have these squares and sums, by Cauchy and Schwarz for each column.

        The sides are equal if all rows are.
        """
        squares = self._products.diagonal + self._products.squares
        most = squares * (np.longdouble(self.weight) * (1 + _ROUNDING))
        return bool((most >= self.first.astype(np.longdouble) ** 2).all())

    def _products_suffice(self) -> bool:
        """The same for products of two columns, whose words have the one form that they can."""
        (high, low), roots = self.words, np.sqrt(self._products.diagonal)
        for i in range(len(high)):
            tail, part = low[i, : i + 1], np.longdouble(2.0**62) * high[i, : i + 1]
            most = roots[i] * roots[: i + 1] * (1 + _ROUNDING)
            if (abs(part + tail) > most).any() or not ((tail >= -HALF) & (tail < HALF)).all():
                return False
        return True

    def _cancels(self) -> bool:
        """Whether all sums of products are zero; the words are computed only if they must be."""
        products = self._products.without_pairs()
        if products.words is None and (not products.waiting or np.any(products.squares)):
            return not products.waiting
        return not self.words.any()

    @property
    def _kind(self) -> str:
        """The type of all keys: Python takes 1 and True for the same key."""
        return next((type(key).__name__ for key in self.groups), "")

    def _checked(self) -> Sums:
        if self.weight >= _HEAVIEST:
            raise InvalidInput(
                f"The total weight would be {self.weight / UNIT:g}, but sums are exact only below "
                f"{_HEAVIEST / UNIT:g}. Fit fewer rows, or give them smaller weights."
            )
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sums):
            return NotImplemented
        return (
            self.grid == other.grid
            and self.log_weights == other.log_weights
            and self._kind == other._kind
            and self.groups.keys() == other.groups.keys()
            and all(
                one[:2] == other.groups[key][:2] and (one.first == other.groups[key].first).all()
                for key, one in self.groups.items()
            )
            and bool((self.words == other.words).all())
        )

    __hash__ = None  # type: ignore[assignment]

    def digest(self) -> str:
        """The SHA-256 of grid, groups and sums, in hexadecimal: that of the multiset of rows."""
        sha = hashlib.sha256(b"knowmore sums 1")
        for part in self._canonical():
            sha.update(len(part).to_bytes(8, "little"))
            sha.update(part)
        # A copy of the lower triangle would need as much memory again.
        words, P = self.words.astype("<i8", copy=False), width(self.grid)
        sha.update((8 * P * (P + 1)).to_bytes(8, "little"))
        for word in words:
            for i in range(P):
                sha.update(word[i, : i + 1])
        return sha.hexdigest()

    def _canonical(self) -> Iterator[bytes]:
        yield np.append(self.grid.bits, self.grid.exponents).astype("<i8").tobytes()
        yield str(self.log_weights).encode()
        for name, key in sorted((_name(key), key) for key in self.groups):
            yield name
            yield f"{self.groups[key].rows} {self.groups[key].weight}".encode()
            yield self.groups[key].first.astype("<i8", copy=False).tobytes()


def _swept(grid: Grid, X: Any, codes: Array, units: Array, firsts: Array) -> list[Array]:
    """The sums of products of X (n, D) in parts, (2, P, P) each; its rows go to `firsts` (G, P).

    Each thread takes totals that no other has, and puts them back.
    """
    _check_room(grid)
    n = len(codes)
    totals: list[tuple[Array, _Total]] = []

    def learn(start: int) -> None:
        try:
            own, total = totals.pop()
        except IndexError:
            own, total = np.zeros_like(firsts), _Total(grid)
        part = slice(start, start + _ROWS)
        Z = grid.multiples(block(X, part), start)
        loops().count(Z, codes[part], units[part], own)
        total.add(_Batch(Z, units[part], 1))
        totals.append((own, total))
        report(min(start + _ROWS, n) / n)

    starts = range(0, n, _ROWS)
    # Each thread has a total of its own.
    needed, free = blas_threads() * _bytes_of_a_total(grid), None
    if needed > MANY_BYTES:
        free = available_memory()
    if n * width(grid) > FEW and (free is None or needed < free):
        side_by_side(learn, starts)
    else:
        for start in starts:
            learn(start)
    for own, _ in totals:
        firsts += own
    return [total.words for _, total in totals]


def _settled(grid: Grid, products: _Products) -> _Products:
    """The same sums after the rows that wait were summed."""
    _check_room(grid)
    total = _Total(grid, products.words)
    for sign in (1, -1):
        # Together: a product of each row alone would cost as much as one of all.
        if alike := [batch for batch in products.waiting if batch.sign == sign]:
            Z, units = (np.concatenate(part) for part in [*zip(*alike, strict=True)][:2])
            total.add(_Batch(Z, units, sign))
    return _Products.summed(total.words)


def _sum(a: Array, b: Array) -> Array:
    """The words of a + b, (2, P, P)."""
    words: Array = loops().combine(read_only(a), read_only(b), 1)
    return words


class _Total:
    """Sums of products that rows are added to: the only thing here that changes."""

    def __init__(self, grid: Grid, words: Array | None = None) -> None:
        self._layout, P = LAYOUTS[grid.bits], width(grid)
        self._words = np.zeros((2, P, P), np.int64) if words is None else words.copy()
        self._C: Array | None = None
        self._rows = 0

    @property
    def words(self) -> Array:
        """The sums of products of all rows that were added, (2, P, P)."""
        self._flush()
        return self._words

    def add(self, batch: _Batch) -> None:
        """Add the products of these rows.

        A weight is a sum of powers of two: for each of these the rows that have it are summed once,
        and shifted. A weight of one is a single power.
        """
        Z, units, sign = batch
        if sign == 1 and (units == UNIT).all():
            if self._rows + len(Z) > self._layout.rows_at_once:
                self._flush()
            C = _gram(Z)
            self._C = C if self._C is None else np.add(self._C, C, out=self._C)
            self._rows += len(Z)
            return
        for bit in range(int(units.max(initial=0)).bit_length()):
            chosen = units >> bit & 1 == 1
            if chosen.any():
                some_rows = Z if chosen.all() else Z[chosen]
                loops().accumulate(self._words, _gram(some_rows), bit, sign)

    def _flush(self) -> None:
        if self._C is not None:
            loops().accumulate(self._words, self._C, UNIT.bit_length() - 1, 1)
            self._C, self._rows = None, 0


def _check_room(grid: Grid) -> None:
    """Raise NotEnoughMemory if there is none for the words of one total and a product of rows."""
    if (needed := _bytes_of_a_total(grid)) > MANY_BYTES:
        what = f"The sums of products of {width(grid):,} columns take"
        check_free(needed, what, FEWER_COLUMNS)


def _bytes_of_a_total(grid: Grid) -> int:
    return 24 * width(grid) ** 2


def width(grid: Grid) -> int:
    """P, the columns of rows in slices."""
    return LAYOUTS[grid.bits].slices * len(grid)


def _gram(Z: Array) -> Array:
    """Z' Z, (P, P), which NumPy computes as a symmetric product."""
    # It has half of the products, and then copies the other half on one thread: for a few rows a
    # second one gains little, and loses much while another program takes a core.
    with threads_for(Z.size // 4, Z.shape[1]):
        return np.asarray(Z.T @ Z)


def _coded(keys: Any, n: int) -> tuple[list[Key], Array]:
    """The different keys, and which of them each of n rows has, (n,)."""
    if keys is None:
        return [None], np.zeros(n, np.int64)
    keys = _alike(keys)
    one_each("keys", keys.shape, n)
    # -0.0 and 0.0 are one key, so they need one name.
    keys = keys + 0.0 if keys.dtype.kind == "f" else keys
    if n == 1:
        return keys.tolist(), np.zeros(1, np.int64)
    names, codes = np.unique(keys, return_inverse=True)
    return names.tolist(), codes.astype(np.int64, copy=False)


def _alike(keys: Any) -> Array:
    """Keys as an array of one type, none of them missing."""
    if not isinstance(keys, np.ndarray) or keys.dtype.kind not in "biufUS":
        try:
            found = np.asarray(keys, dtype=object)
            keys = np.array(found.tolist())
        except ValueError:
            # Lists of different lengths.
            found, keys = np.array([keys], dtype=object), np.empty((0, 0))
        types = {type(key).__name__ for key in found.flat}
        # NumPy reads some integers as floats, and strings without NULs at their end.
        rounded = types == {"int"} and keys.dtype.kind not in "iu"
        if rounded or (len(types) == 1 and keys.dtype.kind in "US" and (keys != found).any()):
            raise InvalidInput(
                "Integers beyond 64 bits and strings that end in NUL cannot be keys. Rename them."
            )
        if len(types) > 1 or keys.dtype.kind not in "biufUS":
            raise InvalidInput(
                f"keys are of the types {', '.join(sorted(types))}. Give all of one type: only "
                f"str, only int or only bool."
            )
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        raise InvalidInput("keys has NaN, which equals nothing. Leave these rows out.")
    return np.asarray(keys)


def _logarithms(units: Array) -> int:
    """The sum of the logarithms of weights in units, in units of 2**-32."""
    # As integers: a sum of so many in floating point would be rounded.
    logs = np.rint(LOG_UNIT * np.log(units[units > 0] / UNIT)).astype(np.int64)
    return int(logs.sum())


def _in_units(weights: Array | None, n: int) -> Array:
    """The weights of n rows in units, (n,)."""
    if weights is None:
        return np.full(n, UNIT, np.int64)
    weights = real_numbers("weights", weights)
    one_each("weights", weights.shape, n)
    units = np.rint(weights * UNIT)
    wrong = ~((units >= 0) & (units <= _MOST)) | ((units == 0) & (weights > 0))
    if wrong.any():
        row = int(wrong.argmax())
        raise InvalidInput(
            f"The weight of row {row} is {weights[row]}. Weights are read in multiples of "
            f"1/{UNIT}, from 1/{UNIT} to {_MOST / UNIT:g}, or zero to leave a row out: scale them."
        )
    return np.asarray(units, dtype=np.int64)


def _possible(group: Group, grid: Grid) -> bool:
    """Whether any rows have this number, weight and sum."""
    rows, weight, first = group
    most = weight * 2 ** (LAYOUTS[grid.bits].shift - 1)
    return 0 <= rows <= weight <= _MOST * rows and bool((abs(first) <= most).all())


def _not_learnt(key: Key, held: int) -> InvalidInput:
    of = "" if key is None else f" of {key!r}"
    return InvalidInput(
        f"These rows{of} cannot all have been learnt: {held} are held, and no rows could have the "
        f"sums that would be left. Forget only rows that were learnt, each once, with the same "
        f"labels and weights. Nothing was changed."
    )


def _name(key: Key) -> bytes:
    """A key as bytes: the same in every process, different for keys of different types."""
    # Which characters repr escapes depends on the version of Python; ascii escapes all others.
    return f"{type(key).__name__} {key!a}".encode()
