"""What a kernel gave, looked at before it is believed."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from knowmore.arrays import Array
from knowmore.errors import InvalidInput


def checked(kernel: Any, values: Any, shape: tuple[int, ...]) -> Array:
    """The values as an array of floats of this shape. Sparse ones are filled up with zeros."""
    if sparse.issparse(values):
        values = values.toarray()
    if np.ma.is_masked(values):
        raise InvalidInput(
            f"The kernel {kernel!r} gave a masked array, in which values are missing. "
            f"A kernel has a value for each pair of rows: fill them in."
        )
    try:
        K = np.asarray(values)
        K = K.astype(float) if K.dtype.kind in "O" else K
    except (TypeError, ValueError) as error:
        raise _no_numbers(kernel, f"a {type(values).__name__}") from error
    if K.dtype.kind not in "fiub":
        raise _no_numbers(kernel, f"values of type {K.dtype}")
    if K.shape != shape:
        raise InvalidInput(
            f"The kernel {kernel!r} was asked for a block of shape {shape} and gave {K.shape}. "
            f"A callable kernel takes X (n, d) and Y (m, d) and returns all n x m values at once."
        )
    return np.asarray(K, dtype=float)


def symmetric(kernel: Any, K: Array) -> Array:
    """K (n, n) to the last bit symmetric, if it is so but for rounding."""
    scale = abs(K).max(initial=0)
    uneven = abs(K - K.T).max(initial=0)
    # A hundred roundings: a sum over features in another order, not another value.
    if uneven > 100 * np.finfo(float).eps * scale:
        raise InvalidInput(
            f"The kernel {kernel!r} is not symmetric: k(x, y) and k(y, x) differ by {uneven:.1e}. "
            f"A covariance function must not depend on the order of its arguments."
        )
    return np.asarray((K + K.T) / 2)


def _no_numbers(kernel: Any, got: str) -> InvalidInput:
    return InvalidInput(
        f"The kernel {kernel!r} gave {got}, but covariances are real numbers. "
        f"Return an array of floats (of complex numbers, their real part if that is meant)."
    )
