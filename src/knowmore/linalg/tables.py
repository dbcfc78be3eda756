"""Tables of rows: dense or sparse, in memory or mapped from a file, read in dense blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from scipy import sparse

from knowmore._base import Array, check_sparse, real_numbers, some, unmasked
from knowmore.errors import InvalidInput
from knowmore.linalg.counting import READ

# Rows that are read at a time: enough for a fast product, few enough to stay in the cache.
BLOCK: Final = 1024
# The largest value is 2 to this power: its square, summed over all rows, is still a number. The
# exponents of a grid reach as far down: the square of a step is a number, too.
FARTHEST: Final = 480
LARGEST: Final = 2.0**FARTHEST


def table(X: Any) -> Any:
    """X as it is if it is an array or a table, otherwise as an array; it has rows and columns.

    A sparse one is in CSR format, in which rows are found.
    """
    unmasked("X", X)
    check_sparse("X", X)
    X = X if hasattr(X, "shape") else real_numbers("X", X)
    if len(X.shape) != 2 or not X.shape[1]:
        raise InvalidInput(f"X has shape {X.shape}. Give rows and columns, (n, D).")
    return X.tocsr() if sparse.issparse(X) else X


def extremes(X: Any) -> Array:
    """The lowest and the highest value of each column of X (n, D), (2, D); zeros of no rows."""
    if not height(X):
        return np.zeros((2, X.shape[1]))
    low, high = np.full((2, X.shape[1]), [[np.inf], [-np.inf]])
    for rows in blocks(X):
        np.minimum(low, rows.min(axis=0), out=low)
        np.maximum(high, rows.max(axis=0), out=high)
    return np.array([low, high])


def blocks(X: Any, size: int = BLOCK) -> Iterator[Array]:
    """X (n, D), dense or sparse, in memory or mapped, as dense blocks of rows, one at a time.

    Several tables in a tuple stand side by side.
    """
    X = X.tocsr() if sparse.issparse(X) else X
    for start in range(0, height(X), size):
        yield block(X, slice(start, start + size))


def block(X: Any, rows: slice) -> Array:
    """These rows of X, dense, in a type that is read as it is."""
    if isinstance(X, tuple):
        return np.hstack([block(one, rows) for one in X])
    part = X[rows]
    part = part.toarray() if sparse.issparse(part) else np.ascontiguousarray(part)
    return part if part.dtype in READ else real_numbers("X", part)


def height(X: Any) -> int:
    """The number of rows of X, or of tables in a tuple, which must agree."""
    if not isinstance(X, tuple):
        return int(X.shape[0])
    heights = [height(one) for one in X]
    if len({*heights}) != 1:
        raise InvalidInput(
            f"Tables side by side must have as many rows each, but these have {some(heights)}. "
            f"Give one table at least, and a row of each for every example."
        )
    return heights[0]


def beyond(x: Array, row: int) -> InvalidInput:
    """The error for a row x (D,) that has a value which no grid can read."""
    column = int((~(abs(x) <= LARGEST)).argmax())
    if not np.isfinite(x[column]):
        return InvalidInput(
            f"Input X contains NaN or infinity: row {row}, column {column} ({x[column]}). "
            f"Remove these rows, or fill in the values."
        )
    return InvalidInput(
        f"Row {row} of X has {x[column]:g} in column {column}, but the squares of values beyond "
        f"{LARGEST:.0e} are no numbers. Leave the row out, or scale the column."
    )
