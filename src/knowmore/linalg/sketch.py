"""The centres and spreads of the columns of many rows, in one pass and in any order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from knowmore._base import Array, Frozen, mixed, read_only
from knowmore.linalg.counting import loops
from knowmore.linalg.tables import FARTHEST, LARGEST, beyond, blocks

# Rows that a sketch keeps: a median of so many is right to a twentieth of the spread.
_KEPT: Final = 1024
# Binary digits of the centre of a column whose values agree.
_DIGITS: Final = 12
# A column of unknown spread is read finer than the others, by so many powers of two.
_UNKNOWN: Final = 28


@final
@dataclass(frozen=True, eq=False, repr=False)
class Sketch(Frozen):
    """Some rows of a table, chosen by their content: order and shards do not matter.

    The rows with the smallest hashes are kept, all if there are few. Equal rows are kept once.

    hashes : (k,), ascending
    rows : (k, D)
    counts : how often each of them occurs in the table, or their weight, (k,)
    least : of each column the smallest absolute value but zero, (D,), of all rows; infinity if
        there is none
    """

    hashes: Array
    rows: Array
    counts: Array
    least: Array

    @classmethod
    def of(cls, X: Any, counts: Array | None = None) -> Sketch:
        """The sketch of rows X (n, D), read in blocks.

        counts : how often each row counts, whole numbers (n,); None: once
        """
        n, D = X.shape
        counts = np.ones(n, np.int64) if counts is None else counts
        nothing = np.empty(0, np.int64)
        kept = cls(nothing.astype(np.uint64), np.empty((0, D)), nothing, np.full(D, np.inf))
        multipliers = mixed(np.arange(D, dtype=np.uint64)) | np.uint64(1)
        begin, waiting, least = 0, [kept], kept.least.copy()
        for part in blocks(X):
            rows = read_only(np.ascontiguousarray(part, dtype=float))
            codes = np.empty(len(rows), np.uint64)
            bad = loops().hashed(rows, rows.view(np.uint64), multipliers, LARGEST, codes, least)
            if bad >= 0:
                raise beyond(rows[bad], begin + bad)
            hashes = mixed(codes)
            low = hashes <= waiting[0]._most
            often = counts[begin : begin + len(rows)][low]
            waiting.append(cls(hashes[low], rows[low], often, least))
            begin += len(rows)
            if sum(len(one.hashes) for one in waiting[1:]) > _KEPT:
                waiting = [kept.merge(*waiting)]
        return kept.merge(*waiting)

    @property
    def _most(self) -> np.uint64:
        """The largest hash of a row that may be kept."""
        full = len(self.hashes) == _KEPT
        return np.uint64(self.hashes[-1] if full else np.iinfo(np.uint64).max)

    def merge(self, *others: Sketch) -> Sketch:
        """The sketch of all rows of these."""
        parts = (self, *others)
        all_hashes = np.concatenate([one.hashes for one in parts])
        hashes, first, codes = np.unique(all_hashes, return_index=True, return_inverse=True)
        rows = np.concatenate([one.rows for one in parts])[first[:_KEPT]]
        counts = np.zeros(len(hashes), np.int64)
        np.add.at(counts, codes, np.concatenate([one.counts for one in parts]))
        least = np.min([one.least for one in parts], axis=0)
        return Sketch(hashes[:_KEPT], rows, counts[:_KEPT], least)

    def columns(self, below: int) -> tuple[Array, Array]:
        """The exponents of steps, at least 2**below finer than the spreads, and the centres; (D,).

        The centre of a column is its median, to the size of its spread. The spread is the median
        distance from the centre; if most values are equal, the median distance of those that are
        not. Both are taken of the rows as often as they occur, and of different rows: a few far
        rows may be most of the latter, and copies of one far row most of the former. The smaller
        spread is right.
        If all rows of the sketch agree, the smallest value of the column tells its size, or, where
        all are alike but zero, the last digit of the centre. Steps that are too fine cost time, but
        no precision.
        """
        D = len(self.least)
        if not len(self.rows):
            return np.full(D, -below), np.zeros(D)
        centres, spreads = self._about(np.ones_like(self.counts))
        if self.counts.min() < self.counts.max():
            others, narrower = self._about(self.counts)
            centres = np.where(narrower < spreads, others, centres)
            spreads = np.minimum(spreads, narrower)
        agree = spreads == 0
        for j in np.flatnonzero(agree):
            if centres[j]:
                spreads[j] = np.ldexp(np.spacing(abs(centres[j])), below)
            elif np.isfinite(self.least[j]):
                spreads[j] = self.least[j]
        known = spreads > 0
        exponents = np.frexp(spreads)[1] - 1 - below
        # To the size of a spread: a centre shall not be the value of a row that may be forgotten.
        places = np.where(agree, np.frexp(centres)[1] - _DIGITS, exponents + below)
        centres = np.ldexp(np.rint(np.ldexp(centres, -places)), places)
        usual = int(np.median(exponents[known])) if known.any() else -below
        exponents = np.where(known, exponents, usual - _UNKNOWN)
        return np.clip(exponents, -FARTHEST, FARTHEST).astype(np.int64), centres

    def _about(self, counts: Array) -> tuple[Array, Array]:
        """The centres and spreads of the columns, (D,), of rows that occur so often, (k,).

        A spread is zero only if all rows agree.
        """
        centres = _median(self.rows, counts)
        apart = abs(self.rows - centres)
        spreads = _median(apart, counts)
        for j in np.flatnonzero(spreads == 0):
            others = apart[:, j] > 0
            if others.any():
                spreads[j] = _median(apart[others, j][:, None], counts[others])[0]
        return centres, spreads


def _median(values: Array, counts: Array) -> Array:
    """The lower median of each column, (D,), of rows that occur so often: one of its values."""
    # Along the rows of a copy it takes a third of the time.
    columns = np.ascontiguousarray(values.T)
    if counts.min() == counts.max():
        middle = (len(counts) - 1) // 2
        return np.asarray(np.partition(columns, middle)[:, middle])
    order = columns.argsort()
    before = counts[order].cumsum(axis=1)
    place = (2 * before >= counts.sum()).argmax(axis=1)
    return np.asarray(np.take_along_axis(columns, order, axis=1)[np.arange(len(columns)), place])
