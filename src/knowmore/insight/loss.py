"""How wrong the others are about each example: what parameters may not make worse."""

from __future__ import annotations

import numpy as np

from knowmore.arrays import Array
from knowmore.models import GP, LSSVM


def left_out_loss(T: Array, error: Array, *, classes: bool) -> float:
    """Of targets T (n, M) and errors (n, M), T less the leave-one-out means: the mean loss.

    Classes: the share of examples whose own class has not the largest score. Scores that differ
    by rounding alone are no opinion, and so not right: where an example has no neighbours T - mu is
    T up to rounding. Values: the mean square.

    >>> T, mu = np.array([[1.0, -1.0], [-1.0, 1.0]]), np.array([[0.3, 0.1], [0.2, -0.2]])
    >>> left_out_loss(T, T - mu, classes=True), left_out_loss(T, T - T, classes=True)
    (0.5, 0.0)
    >>> left_out_loss(T, T * (1 - 1e-16), classes=True)
    1.0
    """
    if not classes:
        return float(np.einsum("ij,ij->", error, error)) / error.size
    n, M = T.shape
    if M == 1:
        return 0.0
    rows, own = np.arange(n), T.argmax(axis=1)
    mean = T - error
    others = mean.copy()
    others[rows, own] = -np.inf
    rounding = 8 * np.finfo(float).eps * (abs(T) + abs(error)).max(axis=1)
    return float(np.mean(mean[rows, own] - others.max(axis=1) <= rounding))


def model_loss(model: GP | LSSVM, groups: Array | None, *, classes: bool) -> float:
    """The loss of a model by its own leave-one-out; of values in units of their spread."""
    scores, _, silent = model.verdicts(groups)
    T, units = model.targets.T, model.targets.units
    if units is not None:
        scores = (scores - units.mean) / units.scale
    loss = left_out_loss(T, T - scores, classes=classes)
    gp, bias = (model, False) if isinstance(model, GP) else (model.gp, model.bias)
    if not classes or groups is not None or bias:
        return loss
    rows = np.flatnonzero(silent)
    faint, own = faint_scores(gp, rows), T[rows].argmax(axis=1)
    best = faint[np.arange(len(rows)), own]
    faint[np.arange(len(rows)), own] = -np.inf
    return loss - float((best > faint.max(axis=1, initial=-np.inf)).sum()) / len(T)


def faint_scores(gp: GP, rows: Array) -> Array:
    """What the others say of these examples (s,), however faintly: (s, M).

    The closed form takes the example's own part off its target, and what is far below the target's
    rounding is lost. Put together from kernel values instead, it is not: for the coefficients
    without example i are A - P_i A_i / P_ii, and

        mu_-i = sum_{j != i} k_ij A_j - (sum_{j != i} k_ij P_ji) A_i / P_ii.

    It costs a solve for each of them. A prediction goes by such values, so parameters are not to be
    judged as if it did not; as an opinion they are worth nothing.
    """
    covariance, at = gp.covariance, np.arange(len(rows))
    E = np.zeros((len(gp.examples), len(rows)))
    E[rows, at] = 1
    P = covariance.factor.solve(E).astype(float)
    K = np.array(covariance.cross(covariance.X[rows]))
    K[rows, at] = 0
    shared = np.einsum("ij,ij->j", K, P) / P[rows, at]
    return np.asarray(K.T @ gp.coefficients - shared[:, None] * gp.coefficients[rows])
