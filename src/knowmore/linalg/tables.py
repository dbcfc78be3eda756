"""Tables of rows, and their keys: dense or sparse, in memory or mapped, read in dense blocks."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final

import numpy as np
from scipy import sparse

from knowmore._base import Array, check_sparse, one_each, real_numbers, some, unmasked
from knowmore.errors import InvalidInput
from knowmore.linalg.counting import READ

Key = Hashable

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
    """Rows of X, dense, in a type that is read as it is."""
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


def coded(keys: Any, n: int) -> tuple[list[Key], Array]:
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
