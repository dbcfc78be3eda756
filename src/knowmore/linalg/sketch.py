"""The centres and spreads of the columns of many rows, in one pass and in any order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from knowmore.arrays import Array, Frozen, mixed, read_only
from knowmore.linalg.counting import loops
from knowmore.linalg.tables import FARTHEST, LARGEST, beyond, blocks

# Rows that a sketch keeps: a median of so many is right to a twentieth of the spread.
_KEPT: Final = 1024
# How many powers of two a column of which nothing is known is read finer than the others.
_UNKNOWN: Final = 28


@final
@dataclass(frozen=True, eq=False, repr=False)
class Sketch(Frozen):
    """Some rows of a table, chosen by their content: the same whatever their order and shards.

    The rows with the smallest hashes are kept, all if there are few. Equal rows count once.

    hashes : (k,), ascending
    rows : (k, D)
    least : of each column the smallest absolute value but zero, (D,), of all rows; infinity if
        there is none
    """

    hashes: Array
    rows: Array
    least: Array

    @classmethod
    def of(cls, X: Any) -> Sketch:
        """The sketch of rows X (n, D), read in blocks."""
        D = X.shape[1]
        kept = cls(np.empty(0, np.uint64), np.empty((0, D)), np.full(D, np.inf))
        multipliers = mixed(np.arange(D, dtype=np.uint64)) | np.uint64(1)
        begin, waiting, least = 0, [kept], kept.least.copy()
        for part in blocks(X):
            rows = read_only(np.ascontiguousarray(part, dtype=float))
            codes = np.empty(len(rows), np.uint64)
            bad = loops().hashed(rows, rows.view(np.uint64), multipliers, LARGEST, codes, least)
            if bad >= 0:
                raise beyond(rows[bad], begin + bad)
            hashes = mixed(codes)
            low = hashes < waiting[0]._most
            waiting.append(cls(hashes[low], rows[low], least))
            begin += len(rows)
            if sum(len(one.hashes) for one in waiting[1:]) > _KEPT:
                waiting = [kept.merge(*waiting)]
        return kept.merge(*waiting)

    @property
    def _most(self) -> np.uint64:
        """The hash that a row must be below to be kept."""
        full = len(self.hashes) == _KEPT
        return np.uint64(self.hashes[-1] if full else np.iinfo(np.uint64).max)

    def merge(self, *others: Sketch) -> Sketch:
        """The sketch of all rows of these."""
        parts = (self, *others)
        hashes, first = np.unique(np.concatenate([one.hashes for one in parts]), return_index=True)
        rows = np.concatenate([one.rows for one in parts])[first[:_KEPT]]
        return Sketch(hashes[:_KEPT], rows, np.min([one.least for one in parts], axis=0))

    def columns(self, below: int) -> tuple[Array, Array]:
        """The exponents of steps, at least 2**below finer than the spreads, and the centres; (D,).

        The centre of a column is its median. Its spread is the median distance from the centre; if
        most values are equal, the median distance of those that are not. If all rows of the sketch
        agree, the smallest value of the column tells its size, or, where all are alike but zero,
        the last digit of the centre. Steps that are too fine cost time, but no precision.
        """
        D = len(self.least)
        if not len(self.rows):
            return np.full(D, -below), np.zeros(D)
        centres = _median(self.rows)
        apart = abs(self.rows - centres)
        spreads = _median(apart)
        for j in np.flatnonzero(spreads == 0):
            others = apart[apart[:, j] > 0, j]
            if len(others):
                spreads[j] = _median(others[:, None])[0]
            elif centres[j]:
                spreads[j] = np.ldexp(np.spacing(abs(centres[j])), below)
            elif np.isfinite(self.least[j]):
                spreads[j] = self.least[j]
        known = spreads > 0
        exponents = np.frexp(spreads)[1] - 1 - below
        usual = int(np.median(exponents[known])) if known.any() else -below
        exponents = np.where(known, exponents, usual - _UNKNOWN)
        return np.clip(exponents, -FARTHEST, FARTHEST).astype(np.int64), centres


def _median(values: Array) -> Array:
    """The lower median of each column, (D,): one of its values."""
    middle = (len(values) - 1) // 2
    # Along the rows of a copy it takes a third of the time.
    return np.asarray(np.partition(np.ascontiguousarray(values.T), middle)[:, middle])
