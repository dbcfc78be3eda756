"""Exact moments of rows on a grid: equal rows, equal bits, in any history.

Rows are read as whole numbers (see `Grid`), so their count, their sums and their sums of products
are whole numbers too. BLAS computes them exactly: a product in floating point is exact, in any
order and on any number of threads, while no partial sum exceeds the precision. Numbers that are too
large for that are cut into limbs, whose products are summed apart. Between blocks of rows all are
added as integers of as many words as they need. So sums can be added and subtracted for ever, and
nothing is left of a row that came and went, however far it was from the others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
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
    derived,
    enough_memory,
    read_only,
    report,
    some,
)
from knowmore.errors import InvalidInput, InvalidType, NoExamples, UnknownId
from knowmore.linalg.counting import HALF, added, approximate, loops, padded, trimmed
from knowmore.linalg.grid import LAYOUTS, Grid, limbs
from knowmore.linalg.tables import BLOCK, Key, block, coded, height, table
from knowmore.linalg.tasks import side_by_side
from knowmore.linalg.threads import FEW, blas_threads
from knowmore.linalg.totals import (
    FEWER_COLUMNS,
    HEAVIEST,
    MANY_BYTES,
    MOST,
    NO_PRODUCTS,
    UNIT,
    WAITING,
    WORDS,
    Batch,
    Firsts,
    Products,
    Total,
    bytes_of_a_total,
    check_room,
    combined,
    in_units,
)

# Logarithms of weights are read on a grid of 2**-32.
LOG_UNIT: Final = 2.0**32
# The largest logarithm of a weight, up or down, on that grid.
_LONGEST: Final = int(np.ceil(LOG_UNIT * np.log(UNIT)))
# What rounding may do to a sum of squares of 64 bits.
_ROUNDING: Final = 32 * np.finfo(np.longdouble).eps
NO_ROWS: Final = (
    "No rows could have these sums: some were forgotten twice, or were never learnt. Sums are "
    "exact: learn the same rows again, and the model is as it was before."
)


class Group(NamedTuple):
    """The number of rows in a group, their weight in units, and their sums.

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
    products: Products = NO_PRODUCTS

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
        names, codes = coded(keys, n)
        units = in_units(weights, n)
        if n <= WAITING:
            batch = Batch(grid.multiples(block(X, slice(n))), units, 1)
            parts = limbs(batch.Q, LAYOUTS[grid.bits].limb)
            firsts = Firsts(grid, len(names)).count(parts, codes, units).words
            products = Products.of_few(batch)
        else:
            firsts, words = _swept(grid, X, len(names), codes, units)
            products = Products.summed(words)
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
        return _checked(cls(grid, groups, logs, products))

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
        found = _checked(cls(grid, groups, log_weights, Products.summed(words)))
        squares = approximate(found.products.squares)
        counted = all(
            group.rows > 0 and _proper(group.first) and _possible(group, squares)
            for group in groups.values()
        )
        alike = len({*map(type, groups)}) <= 1
        if not counted or not alike or abs(log_weights) > _LONGEST * found.rows:
            raise InvalidInput(NO_ROWS)
        whole = not groups or _possible(found.whole, squares)
        if not (whole and _suffice(found.words, np.sqrt(squares))):
            raise InvalidInput(NO_ROWS)
        return found

    def __repr__(self) -> str:
        return f"Sums({self.rows} rows in {len(self.groups)} groups, {self.grid!r})"

    def __getstate__(self) -> dict[str, Any]:
        """For pickles: no single row is in them, and nothing that depends on the history."""
        # Sums of no rows need no words.
        words = self.words if self.groups else None
        # Pairs: in some formats only text can be a key.
        held = self.grid, [*self.groups.items()], self.log_weights, words
        return dict(zip(("grid", "groups", "log_weights", "words"), held, strict=True))

    def __setstate__(self, state: dict[str, Any]) -> None:
        words = state.pop("words")
        products = Products() if words is None else Products.summed(words)
        locked = {key: read_only(group) for key, group in state["groups"]}
        super().__setstate__(state | {"groups": MappingProxyType(locked), "products": products})

    # -- facts about the rows -----------------------------------------------------------------

    @derived
    def whole(self) -> Group:
        """All groups in one. An edit passes it on: to add up all groups would take longer."""
        nothing = Group(0, 0, np.zeros((1, len(self.grid)), np.int64))
        groups = [*self.groups.values()] or [nothing]
        return reduce(lambda one, other: one.combined(other, 1), groups)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.whole.rows

    @property
    def weight(self) -> int:
        """The total weight, in units of 1 / UNIT."""
        return self.whole.weight

    @property
    def first(self) -> Array:
        """The sum of all rows, in multiples of the steps, in words, (U, P)."""
        return self.whole.first

    @property
    def words(self) -> Array:
        """The sums of products in words, (W, P, P), lower triangle: see `counting`."""
        products = self.products
        if products.words is None or products.waiting:
            # At once, so that another thread never counts the rows twice.
            with enough_memory("sum the products of the columns", FEWER_COLUMNS):
                products = products.settled(self.grid)
            object.__setattr__(self, "products", products)
        return np.asarray(products.words)

    @property
    def nbytes(self) -> int:
        """The memory that the words take now: rows that wait have none."""
        return 0 if self.products.words is None else self.products.words.nbytes

    @property
    def length(self) -> int:
        """The number of words of the sums of products, as soon as waiting rows are summed."""
        return max(WORDS, len(self.products.squares))

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
        first = self.first if centred else read_only(np.zeros_like(self.first))
        # A copy: read-only exponents are a type of their own, to be compiled for.
        up = self.grid.exponents.copy()
        S = loops().difference(self.words, max(self.weight, 1), first, first, (up, up - 8), True)
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
        return np.asarray(loops().difference(words, self.weight, a, self.first, (zero, up), False))

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
        mine, theirs = _kind(self.groups), _kind(other.groups)
        if mine and theirs and mine != theirs:
            raise InvalidInput(
                f"The groups have keys of type {mine} here and {theirs} there. Convert them first."
            )
        groups = dict(self.groups)
        for key, new in other.groups.items():
            old = groups.get(key) or Group(0, 0, np.zeros_like(new.first[:1]))
            groups[key] = old.combined(new, sign)
            if not groups[key].rows:
                if not groups[key].is_empty:
                    raise _not_learnt(key, old.rows)
                del groups[key]
        if other.products.words is None:
            products = self.products.plus(other.products, sign, self.grid)
        else:
            products = Products.summed(combined(self.words, other.words, sign))
        logs = self.log_weights + sign * other.log_weights
        result = Sums(self.grid, groups, logs, products)
        vars(result)["whole"] = self.whole.combined(other.whole, sign)
        if not groups:
            if result.log_weights or not _cancels(result):
                raise _not_learnt(None, self.rows)
            return Sums(self.grid)
        if sign < 0:
            _check_possible(result, self, other.groups)
        return _checked(result)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sums):
            return NotImplemented
        return (
            self.grid == other.grid
            and self.log_weights == other.log_weights
            and _kind(self.groups) == _kind(other.groups)
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
        """The SHA-256 of grid, groups and sums, in hexadecimal: a digest of the rows."""
        sha, grid = hashlib.sha256(b"knowmore sums 2"), self.grid
        parts = [
            np.append(grid.bits, grid.exponents).astype("<i8").tobytes(),
            (grid.centres + 0.0).astype("<f8").tobytes(),
            str(self.log_weights).encode(),
        ]
        for name, key in sorted((_name(key), key) for key in self.groups):
            group = self.groups[key]
            first = group.first.astype("<i8", copy=False).tobytes()
            parts += [name, f"{group.rows} {group.weight}".encode(), first]
        for part in parts:
            sha.update(len(part).to_bytes(8, "little"))
            sha.update(part)
        # A copy of the lower triangle would need as much memory again.
        words, P = self.words.astype("<i8", copy=False), len(self.grid)
        sha.update((4 * len(words) * P * (P + 1)).to_bytes(8, "little"))
        for word in words:
            for i in range(P):
                sha.update(word[i, : i + 1])
        return sha.hexdigest()


def _swept(grid: Grid, X: Any, many: int, codes: Array, units: Array) -> tuple[Array, Array]:
    """The sums of rows X (n, D) of each of many groups, (U, G, P), and of products, (W, P, P).

    Each thread takes totals that no other has, and puts them back.
    """
    check_room(grid)
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
    needed, free = blas_threads() * bytes_of_a_total(grid), None
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


def _logarithms(units: Array) -> int:
    """The sum of the logarithms of weights in units, in units of 2**-32."""
    # As integers: a sum of so many in floating point would be rounded.
    logs = np.rint(LOG_UNIT * np.log(units[units > 0] / UNIT)).astype(np.int64)
    return int(logs.sum())


def _possible(group: Group, squares: Array) -> bool:
    """Whether some of the rows with these squares (P,) may have this number, weight and sum.

    By Cauchy and Schwarz for each column: the sides are equal if all rows are, and are in the
    group.
    """
    rows, weight, first = group
    most = squares * (np.longdouble(weight) * (1 + _ROUNDING))
    return 0 <= rows <= weight <= MOST * rows and bool((most >= approximate(first) ** 2).all())


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


# -- checks ----------------------------------------------------------------------------------------


def _checked(sums: Sums) -> Sums:
    """The sums, if their weights are not too large for exact ones."""
    if sums.weight >= HEAVIEST:
        raise InvalidInput(
            f"The total weight would be {sums.weight / UNIT:g}, but sums are exact only below "
            f"{HEAVIEST / UNIT:g}. Fit fewer rows, or give them smaller weights."
        )
    return sums


def _check_possible(sums: Sums, before: Sums, keys: Iterable[Key]) -> None:
    """Raise InvalidInput unless the rows that are left in these groups may have their sums."""
    squares = approximate(sums.products.squares)
    for key in keys:
        if key in sums.groups and not _possible(sums.groups[key], squares):
            raise _not_learnt(key, before.groups[key].rows if key in before.groups else 0)
    if not _possible(sums.whole, squares):
        raise _not_learnt(None, before.rows)


def _suffice(words: Array, roots: Array) -> bool:
    """Whether products of two columns agree with the roots of their squares, in one form."""
    for i in range(words.shape[1]):
        row = words[:, i, : i + 1]
        most = roots[i] * roots[: i + 1] * (1 + _ROUNDING)
        if not _proper(row) or (abs(approximate(row)) > most).any():
            return False
    return True


def _cancels(sums: Sums) -> bool:
    """Whether all sums of products are zero; the words are computed only if they must be."""
    products = sums.products.without_pairs()
    if products.words is None and (not products.waiting or products.squares.any()):
        return not products.waiting
    return not sums.words.any()


def _kind(groups: Mapping[Key, Group]) -> str:
    """The type of the keys, or '' without any: to Python 1 and True are one key."""
    return next((type(key).__name__ for key in groups), "")
