"""Exact moments of rows on a grid: the same bits for the same rows, whatever the history.

Rows are read as whole numbers (see `Grid`), so their count, their sums and their sums of products
are whole numbers too. BLAS computes them exactly: a product in floating point is exact, in any
order and on any number of threads, while no partial sum exceeds the precision. Numbers that are too
large for that are cut into limbs, whose products are summed apart. Between blocks of rows all are
added as integers of as many words as they need. So sums can be added and subtracted for ever, and
nothing is left of a row that came and went, however far it was from the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType
from typing import Any, Final, NamedTuple, final

import numpy as np

from knowmore._base import (
    Array,
    Frozen,
    a_type,
    available_memory,
    check_free,
    derived,
    enough_memory,
    one_each,
    read_only,
    real_numbers,
    report,
    some,
)
from knowmore.errors import InvalidInput, InvalidType, NoExamples, UnknownId
from knowmore.linalg.counting import HALF, added, approximate, in_words, loops, padded, trimmed
from knowmore.linalg.grid import LAYOUTS, Grid, limbs
from knowmore.linalg.tables import BLOCK, block, height, table
from knowmore.linalg.tasks import side_by_side
from knowmore.linalg.threads import FEW, blas_threads
from knowmore.linalg.totals import HEAVIEST, UNIT, WORDS, Batch, Firsts, Total, combined

Key = Hashable

# The largest weight of a row, in units.
_MOST: Final = 2**16 - 1
# Logarithms of weights are read on a grid of 2**-32.
LOG_UNIT: Final = 2.0**32
# The largest logarithm of a weight, up or down, on that grid.
_LONGEST: Final = int(np.ceil(LOG_UNIT * np.log(UNIT)))
# The squares of no rows.
_NOTHING: Final = read_only(np.zeros((1, 1), np.int64))
# Rows that wait to be summed: a few at a time would cost as much as many.
_WAITING: Final = 128
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
    """What is known of the rows of one group: their number, weight in units, and sums.

    first : the sums in words, (U, P)
    """

    rows: int
    weight: int
    first: Array

    def combined(self, other: Group, sign: int) -> Group:
        """The group with the rows of another one, or with sign -1 without them."""
        return Group(
            self.rows + sign * other.rows,
            self.weight + sign * other.weight,
            read_only(added(self.first, other.first, sign)),
        )

    @property
    def is_empty(self) -> bool:
        """Whether this is the group of no rows."""
        return not (self.rows or self.weight or self.first.any())


class _Products(NamedTuple):
    """Sums of products: those of many rows in words, (W, P, P), and rows still to be summed.

    squares : the sums of squares of all of them, (U, P), in words
    length : the number of the latter
    """

    words: Array | None
    waiting: tuple[Batch, ...] = ()
    squares: Array = _NOTHING
    length: int = 0

    @classmethod
    def summed(cls, words: Array) -> _Products:
        """These sums; no row waits."""
        # Compiled loops return a type of their own, which would show in pickles.
        words = read_only(trimmed(words, WORDS).view(np.int64))
        return cls(words, squares=words.diagonal(axis1=1, axis2=2))

    def without_pairs(self) -> _Products:
        """The same sums, if no row was summed yet, without waiting rows that came and went."""
        if self.words is not None:
            return self
        net, rows = dict[bytes, int](), list[tuple[bytes, Batch]]()
        for Q, units, sign in self.waiting:
            for i in range(len(Q)):
                # -0.0 and 0.0 are one number.
                row = (Q[i] + 0).tobytes()
                net[row] = net.get(row, 0) + sign * int(units[i])
                rows.append((row, Batch(Q[i : i + 1], units[i : i + 1], sign)))
        left = tuple(batch for row, batch in rows if net[row])
        return self._replace(waiting=left, length=len(left))


@final
@dataclass(frozen=True, eq=False, repr=False)
class Sums(Frozen):
    """The moments of a multiset of rows, each of some group; `+` and `-` are exact.

    grid : what rows are read on; P is its number of columns
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
        n = height(X)
        names, codes = _coded(keys, n)
        units = in_units(weights, n)
        # A few rows wait until more have come, or a question.
        if n <= _WAITING:
            batch = Batch(grid.multiples(block(X, slice(n))), units, 1)
            parts = limbs(batch.Q, LAYOUTS[grid.bits].limb)
            firsts = Firsts(grid, len(names)).count(parts, codes, units).words
            waiting = (batch,) if n else ()
            products = _Products(None, waiting=waiting, squares=_squares(batch), length=n)
        else:
            firsts, words = _swept(grid, X, len(names), codes, units)
            products = _Products.summed(words)
        counts = np.bincount(codes, units > 0, len(names)).astype(int)
        heavy = np.bincount(codes, units, len(names)).astype(int)
        groups = {
            name: Group(rows, weight, read_only(trimmed(firsts[:, i])))
            for i, (name, rows, weight) in enumerate(
                zip(names, counts.tolist(), heavy.tolist(), strict=True)
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
        """Sums from their parts, as they were stored; words : (W, P, P), lower triangle.

        Raises InvalidInput unless rows can have such sums, as far as single sums tell.
        """
        found = cls(grid, groups, log_weights, _Products.summed(words))._checked()
        counted = all(
            group.rows > 0 and _proper(group.first) and _possible(group, found._squares)
            for group in groups.values()
        )
        alike = len({*map(type, groups)}) <= 1
        if not counted or not alike or abs(log_weights) > _LONGEST * found.rows:
            raise InvalidInput(NO_ROWS)
        whole = not groups or _possible(found._whole, found._squares)
        if not (whole and found._products_suffice()):
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
        nothing = Group(0, 0, np.zeros((1, len(self.grid)), np.int64))
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
        """The sum of all rows, in multiples of the steps, in words, (U, P)."""
        return self._whole.first

    @property
    def words(self) -> Array:
        """The sums of products in words, (W, P, P), lower triangle: see `counting`."""
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

    @property
    def length(self) -> int:
        """How many words the sums of products have, or will have when waiting rows are summed."""
        return max(WORDS, len(self._products.squares))

    def mean(self) -> Array:
        """The mean of all rows, (P,)."""
        return np.asarray(self.grid.centres + self.offset())

    def offset(self) -> Array:
        """The mean of all rows, minus the centres of the grid, (P,). It is rounded once."""
        if not self.rows:
            raise NoExamples("These are the sums of no rows, so they have no mean. Add rows first.")
        (total,) = self._about(self.first[:, None], np.zeros(1, np.int64))
        return np.asarray(total * UNIT / self.weight)

    def weights(self, keys: list[Key]) -> Array:
        """The weights of these groups, in units of 1 / UNIT, (G,)."""
        return np.array([self._group(key).weight for key in keys])

    def _group(self, key: Key) -> Group:
        """The group with this key, which must have rows."""
        with suppress(KeyError, TypeError):
            return self.groups[key]
        raise UnknownId(f"No row has the key {key!r}. Give one of {some([*self.groups])}.")

    def scatter(self, *, centred: bool = True) -> Array:
        """sum w (x - mean) (x - mean)', or sum w x x', (P, P).

        About the mean, or about the centres of the grid, each entry is rounded once.
        """
        first = self.first if centred else np.zeros_like(self.first)
        up = self.grid.exponents
        S = loops().difference(self.words, max(self.weight, 1), first, first, up, up - 8, True)
        if (np.diagonal(S) < 0).any():
            raise InvalidInput(NO_ROWS)
        if not centred and self.rows and (c := self.grid.centres).any():
            N, cs = self.weight / UNIT, np.outer(self.grid.centres, self.offset())
            S = S + N * (np.outer(c, c) + cs + cs.T)
        return np.asarray(S)

    def cross(self, keys: list[Key], *, centred: bool = True) -> Array:
        """sum w x over each group, minus its weight times the mean of all rows if centred, (G, P).

        About the mean, or about the centres of the grid, each entry is rounded once.
        """
        firsts = [self._group(key).first for key in keys]
        length = max(map(len, firsts), default=1)
        sums = np.array([padded(first, length) for first in firsts])
        weights = self.weights(keys)
        C = self._about(sums.swapaxes(0, 1), weights * centred)
        return C if centred else C + np.outer(weights / UNIT, self.grid.centres)

    def _about(self, sums: Array, weights: Array) -> Array:
        """Sums in words (U, G, P) minus weights (G,) times the mean of all rows, (G, P)."""
        length = len(self.first)
        a = read_only(padded(weights[None].astype(np.int64), length))
        words, zero = read_only(np.ascontiguousarray(sums)), np.zeros(len(weights), np.int64)
        up = self.grid.exponents - 8
        return np.asarray(loops().difference(words, self.weight, a, self.first, zero, up, False))

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
            old = groups.get(key) or Group(0, 0, np.zeros_like(new.first[:1]))
            groups[key] = old.combined(new, sign)
            if not groups[key].rows:
                if not groups[key].is_empty:
                    raise _not_learnt(key, old.rows)
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
        if sign < 0:
            result._check_possible(self, other.groups)
        return result._checked()

    def _check_possible(self, before: Sums, keys: Iterable[Key]) -> None:
        """Raise InvalidInput unless the rows that are left in these groups may have their sums."""
        squares = self._squares
        for key in keys:
            if key in self.groups and not _possible(self.groups[key], squares):
                raise _not_learnt(key, before.groups[key].rows if key in before.groups else 0)
        if not _possible(self._whole, squares):
            raise _not_learnt(None, before.rows)

    def _products_with(self, other: Sums, sign: int) -> _Products:
        mine, theirs = self._products, other._products
        if theirs.words is not None:
            return _Products.summed(combined(self.words, other.words, sign))
        joined = _Products(
            mine.words,
            mine.waiting + tuple(b._replace(sign=sign * b.sign) for b in theirs.waiting),
            added(mine.squares, theirs.squares, sign),
            mine.length + theirs.length,
        )
        if joined.length > _WAITING:
            joined = joined.without_pairs()
        return joined if joined.length <= _WAITING else _settled(self.grid, joined)

    @property
    def _squares(self) -> Array:
        """The sums of squares, to 64 bits, (P,)."""
        return approximate(self._products.squares)

    def _products_suffice(self) -> bool:
        """Whether products of two columns agree with their squares, in the one form of words."""
        words, roots = self.words, np.sqrt(self._squares)
        for i in range(words.shape[1]):
            row = words[:, i, : i + 1]
            most = roots[i] * roots[: i + 1] * (1 + _ROUNDING)
            if not _proper(row) or (abs(approximate(row)) > most).any():
                return False
        return True

    def _cancels(self) -> bool:
        """Whether all sums of products are zero; the words are computed only if they must be."""
        products = self._products.without_pairs()
        if products.words is None and (not products.waiting or products.squares.any()):
            return not products.waiting
        return not self.words.any()

    @property
    def _kind(self) -> str:
        """The type of all keys: Python takes 1 and True for the same key."""
        return next((type(key).__name__ for key in self.groups), "")

    def _checked(self) -> Sums:
        if self.weight >= HEAVIEST:
            raise InvalidInput(
                f"The total weight would be {self.weight / UNIT:g}, but sums are exact only below "
                f"{HEAVIEST / UNIT:g}. Fit fewer rows, or give them smaller weights."
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
                one[:2] == other.groups[key][:2]
                and np.array_equal(one.first, other.groups[key].first)
                for key, one in self.groups.items()
            )
            and np.array_equal(self.words, other.words)
        )

    __hash__ = None  # type: ignore[assignment]

    def digest(self) -> str:
        """The SHA-256 of grid, groups and sums, in hexadecimal: that of the multiset of rows."""
        sha = hashlib.sha256(b"knowmore sums 2")
        for part in self._canonical():
            sha.update(len(part).to_bytes(8, "little"))
            sha.update(part)
        # A copy of the lower triangle would need as much memory again.
        words, P = self.words.astype("<i8", copy=False), len(self.grid)
        sha.update((4 * len(words) * P * (P + 1)).to_bytes(8, "little"))
        for word in words:
            for i in range(P):
                sha.update(word[i, : i + 1])
        return sha.hexdigest()

    def _canonical(self) -> Iterator[bytes]:
        yield np.append(self.grid.bits, self.grid.exponents).astype("<i8").tobytes()
        yield (self.grid.centres + 0.0).astype("<f8").tobytes()
        yield str(self.log_weights).encode()
        for name, key in sorted((_name(key), key) for key in self.groups):
            yield name
            yield f"{self.groups[key].rows} {self.groups[key].weight}".encode()
            yield self.groups[key].first.astype("<i8", copy=False).tobytes()


def _swept(grid: Grid, X: Any, many: int, codes: Array, units: Array) -> tuple[Array, Array]:
    """The sums of rows X (n, D) of each of many groups, (U, G, P), and of products, (W, P, P).

    Each thread takes totals that no other has, and puts them back.
    """
    _check_room(grid)
    n = len(codes)
    totals: list[tuple[Firsts, Total]] = []

    def learn(start: int) -> None:
        try:
            firsts, total = totals.pop()
        except IndexError:
            firsts, total = Firsts(grid, many), Total(grid)
        part = slice(start, start + BLOCK)
        Q = grid.multiples(block(X, part), start)
        parts = limbs(Q, LAYOUTS[grid.bits].limb)
        firsts.count(parts, codes[part], units[part])
        total.add(Batch(Q, units[part], 1), parts)
        totals.append((firsts, total))
        report(min(start + BLOCK, n) / n)

    starts = range(0, n, BLOCK)
    # Each thread has a total of its own.
    needed, free = blas_threads() * _bytes_of_a_total(grid), None
    if needed > MANY_BYTES:
        free = available_memory()
    if n * len(grid) > FEW and (free is None or needed < free):
        side_by_side(learn, starts)
    else:
        for start in starts:
            learn(start)
    firsts = reduce(lambda a, b: added(a, b, 1), (one.words for one, _ in totals))
    words = reduce(lambda a, b: combined(a, b, 1), (total.words for _, total in totals))
    return firsts, words


def _settled(grid: Grid, products: _Products) -> _Products:
    """The same sums after the rows that wait were summed."""
    _check_room(grid)
    total = Total(grid, products.words)
    for sign in (1, -1):
        # Together: a product of each row alone would cost as much as one of all.
        if alike := [batch for batch in products.waiting if batch.sign == sign]:
            Q, units = (np.concatenate(part) for part in [*zip(*alike, strict=True)][:2])
            total.add(Batch(Q, units, sign))
    return _Products.summed(total.words)


def _squares(batch: Batch) -> Array:
    """The sums of squares of a few rows, times their weights, in words, (U, P)."""
    Q, units, _ = batch
    # Not squared: that may be beyond the range of numbers.
    far = abs(Q).max(axis=0, initial=0) > 2.0**30 / np.sqrt(max(units.sum(), 1))
    if not far.any():
        return (units @ Q.astype(np.int64) ** 2)[None]
    squares = units @ np.where(far, 0, Q).astype(np.int64) ** 2
    long = in_words(units.astype(object) @ np.frompyfunc(int, 1, 1)(Q[:, far]) ** 2)
    words = np.zeros((len(long), len(squares)), np.int64)
    words[0], words[:, far] = squares, long
    return words


def _check_room(grid: Grid) -> None:
    """Raise NotEnoughMemory if there is none for the words of one total and a product of rows."""
    if (needed := _bytes_of_a_total(grid)) > MANY_BYTES:
        what = f"The sums of products of {len(grid):,} columns take"
        check_free(needed, what, FEWER_COLUMNS)


def _bytes_of_a_total(grid: Grid) -> int:
    """The bytes of two words and a product; numbers of more limbs than one may need more."""
    return 24 * len(grid) ** 2


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


def in_units(weights: Array | None, n: int) -> Array:
    """The weights of n rows in units of 1 / UNIT, (n,); None: one each."""
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


def _possible(group: Group, squares: Array) -> bool:
    """Whether some of the rows with these squares (P,) may have this number, weight and sum.

    By Cauchy and Schwarz for each column: the sides are equal if all rows are, and are in the
    group.
    """
    rows, weight, first = group
    most = squares * (np.longdouble(weight) * (1 + _ROUNDING))
    return 0 <= rows <= weight <= _MOST * rows and bool((most >= approximate(first) ** 2).all())


def _proper(words: Array) -> bool:
    """Whether words are in the range that gives each number one form."""
    return bool(((words >= -HALF) & (words < HALF)).all())


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
