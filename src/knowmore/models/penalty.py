"""The noise (1 / C of a least-squares SVM), chosen by leave-one-out from one eigendecomposition.

With weights w, W = diag(w)^1/2 and W K W = U diag(l) U', the inverse for every noise is

    (K + sigma^2 diag(1 / w))^-1 = W U diag(1 / (l + sigma^2)) U' W.
"""

from __future__ import annotations

import numpy as np

from knowmore.arrays import Array
from knowmore.linalg import Border
from knowmore.linalg.products import eigh, product
from knowmore.models.loo import Scale, leave_one_out, rounding, verdicts

# The noise as a multiple of the mean kappa(x, x): two values for each power of ten.
_NOISES = 10.0 ** np.arange(5, -5.5, -0.5)
_EPS = float(np.finfo(float).eps)


def best_noise(K: Array, weights: Array, T: Array, *, bias: bool) -> float | None:
    """The noise whose leave-one-out predictions are wrong for the least weight of examples.

    K (n, n) without noise, weights (n,), one-vs-all targets T (n, M). Of several such the one of
    the least squared error; of these the largest. To say nothing of an example is wrong, whatever
    is predicted then. None if nothing is said of any example, whatever the noise.

    >>> x = np.arange(20.0)
    >>> K = np.exp(-np.abs(np.subtract.outer(x, x)) / 10)
    >>> t = np.where(np.isin(x, [3, 10, 11, 12, 13, 15, 16, 17, 18, 19]), 1.0, -1.0)
    >>> round(best_noise(K, np.ones(20), np.column_stack([-t, t]), bias=True), 3)
    0.316
    """
    noises = _NOISES * float(np.diagonal(K).mean())
    tried, told = [], False
    root = np.sqrt(weights)
    values, U = eigh(K * np.outer(root, root))
    U *= root[:, None]
    projected = product(U.T, np.hstack([T, np.ones((len(K), 1))]))
    for noise in noises:
        # A tiny negative eigenvalue is rounding of zero.
        shrunk = 1 / (np.maximum(values, 0) + noise)
        solved = product(U, shrunk[:, None] * projected)
        # Eigenvectors are good to a rounding of the largest eigenvalue, not of each entry.
        scale = Scale((values[-1] + noise) / weights, noise / weights, _EPS)
        scores, silent = _left_out(solved, product(U**2, shrunk), T, scale, bias=bias)
        told |= not silent.all()
        wrong = weights[silent | (scores.argmax(axis=1) != T.argmax(axis=1))].sum()
        tried.append((float(wrong), float(weights @ ((T - scores) ** 2).sum(axis=1))))
    return float(noises[min(range(len(noises)), key=tried.__getitem__)]) if told else None


def _left_out(
    solved: Array, diagonal: Array, T: Array, scale: Scale, *, bias: bool
) -> tuple[Array, Array]:
    """Scores (n, M) and silences (n,), from K~^-1 [T, 1] and the diagonal of K~^-1."""
    A, prior = solved[:, :-1], np.zeros_like(T)
    if bias:
        border = Border(np.ones(len(T)), solved[:, -1])
        (A, offsets), diagonal = border.eliminated(T, A), border.inverse_diagonal(diagonal)
    left = leave_one_out(diagonal, A, T)
    if bias:
        prior = border.without(offsets, T - left.mean, np.arange(len(T)))
    scores, _, silent = verdicts(left, rounding(left, A, T, scale), prior, classes=True)
    return scores, silent
