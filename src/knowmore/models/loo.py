"""Leaving examples out, in closed form.

P = K~^-1, A = PT (n, M). What a model without the examples of g says of them (Rasmussen and
Williams, section 5.4.2, for one; block inversion gives the same for many):

    mean      T_g - P_gg^-1 A_g
    variance  diag(P_gg^-1), the noise included

For g = {i} that is t_i - A_i / P_ii and 1 / P_ii.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from knowmore.linalg import Factor

Array = npt.NDArray[Any]


def leave_one_out(factor: Factor, A: Array, T: Array) -> tuple[Array, Array]:
    """Means (n, M) and variances (n,) of each example by all the others."""
    variance = 1 / factor.inverse_diagonal().astype(float)
    return T - A * variance[:, None], variance


def leave_group_out(factor: Factor, A: Array, T: Array, groups: Array) -> tuple[Array, Array]:
    """Means (n, M) and variances (n,) of each example by all that are not of its group."""
    mean, variance = np.empty_like(T), np.empty(len(T))
    names, codes = np.unique(groups, return_inverse=True)
    for code in range(len(names)):
        g = np.flatnonzero(codes == code)
        E = np.zeros((len(T), len(g)))
        E[g, np.arange(len(g))] = 1
        H = factor.half_solve(E).astype(float)
        covariance = np.linalg.inv(H.T @ H)
        mean[g] = T[g] - covariance @ A[g]
        variance[g] = np.diagonal(covariance)
    return mean, variance
