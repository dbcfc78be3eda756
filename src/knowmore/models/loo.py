"""Leaving examples out, in closed form.

P = K~^-1, A = PT (n, M). What a model without the examples of g says of them (Rasmussen and
Williams, section 5.4.2, for one; block inversion gives the same for many):

    mean      T_g - P_gg^-1 A_g
    variance  diag(P_gg^-1), the noise included

For g = {i} that is t_i - A_i / P_ii and 1 / P_ii. With a bias P is the leading block of the inverse
of the bordered matrix, and the same holds (Cawley 2006).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from knowmore.linalg import Factor

Array = npt.NDArray[Any]


@final
@dataclass(frozen=True, eq=False)
class LeftOut:
    """What the model says of each example when that example, or its group, is left out.

    scores (n, M), variance (n,) with the noise included, in the order of ids and labels. A
    regressor with several targets has a variance for each, (n, M).
    """

    ids: Array
    labels: Array
    scores: Array
    variance: Array
    predicted: Array


def leave_one_out(P_diagonal: Array, A: Array, T: Array) -> tuple[Array, Array]:
    """Means (n, M) and variances (n,) of each example by all the others."""
    variance = 1 / P_diagonal.astype(float)
    return T - A * variance[:, None], variance


def leave_group_out(
    P_block: Callable[[Array], Array], A: Array, T: Array, groups: Array
) -> tuple[Array, Array]:
    """Means (n, M) and variances (n,) of each example by all that are not of its group."""
    mean, variance = np.empty_like(T), np.empty(len(T))
    names, codes = np.unique(groups, return_inverse=True)
    for code in range(len(names)):
        g = np.flatnonzero(codes == code)
        covariance = np.linalg.inv(P_block(g))
        mean[g] = T[g] - covariance @ A[g]
        variance[g] = np.diagonal(covariance)
    return mean, variance


def inverse_block(factor: Factor, rows: Array) -> Array:
    """Rows and columns `rows` (k,) of P, (k, k)."""
    E = np.zeros((factor.size, len(rows)))
    E[rows, np.arange(len(rows))] = 1
    H = factor.half_solve(E).astype(float)
    return np.asarray(H.T @ H)
