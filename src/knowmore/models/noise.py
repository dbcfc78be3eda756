"""The noise (1 / C of a least-squares SVM), chosen by leave-one-out from one eigendecomposition.

With weights w, W = diag(w)^1/2 and W K W = U diag(l) U', the inverse for every noise is

    (K + sigma^2 diag(1 / w))^-1 = W U diag(1 / (l + sigma^2)) U' W.
"""

from __future__ import annotations

import numpy as np
from scipy import linalg

from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel, corner
from knowmore.linalg import Border
from knowmore.linalg.threads import threads_for
from knowmore.models.loo import Scale, leave_out, rounding, silenced, tied
from knowmore.models.targets import one_vs_all
from knowmore.models.weights import Weighting

# The noise as a multiple of the mean kappa(x, x): two values for each power of ten.
_NOISES = 10.0 ** np.arange(5, -5.5, -0.5)
_EPS = float(np.finfo(float).eps)


def noise_by_loo(
    name: str, kernel: AnyKernel, examples: Examples, weighting: Weighting, *, bias: bool
) -> float:
    """The noise, 1 / C of a least-squares SVM, with the best leave-one-out predictions.

    name : the parameter that was given as "loo"
    """
    n = len(examples)
    if n < 2:
        raise InvalidInput(
            f"{name}='loo' leaves each example out in turn, but n_samples=1. Add one, or give a "
            f"number."
        )
    K, T = corner(kernel, examples.X), one_vs_all(examples).T
    if not (np.isfinite(K.sum()) and np.trace(K) > 0):
        raise InvalidInput(
            f"{name}='loo' is measured by the kernel's values, but {kernel!r} gave some that are "
            f"not finite, or none above zero on its diagonal. Look at the features, or give a "
            f"number."
        )
    noise = best_noise(K, weighting(examples), T, bias=bias)
    if noise is None and n > 2 and T.shape[1] > 1:
        raise InvalidInput(
            f"{name}='loo' asks what the examples say of each other, but under the kernel "
            f"{kernel!r} none of these {n} says anything of another that is more than rounding. "
            f"Either (a) the kernel is too narrow for the scale of the features: widen it, or "
            f"scale them; or (b) all examples are the same to it. Or give a number."
        )
    # Of a single class, or of two examples, nothing need be said: any noise will do.
    return float(np.diagonal(K).mean()) if noise is None else noise


def best_noise(K: Array, weights: Array, T: Array, *, bias: bool) -> float | None:
    """The noise whose leave-one-out predictions are wrong for the least weight of examples.

    K (n, n) without noise, weights (n,), one-vs-all targets T (n, M). Of several such the one of
    the least squared error; of these the largest. Silence about an example counts as wrong. None if
    the examples are silent about each other whatever the noise.

    >>> x = np.arange(20.0)
    >>> K = np.exp(-np.abs(np.subtract.outer(x, x)) / 10)
    >>> t = np.where(np.isin(x, [3, 10, 11, 12, 13, 15, 16, 17, 18, 19]), 1.0, -1.0)
    >>> round(best_noise(K, np.ones(20), np.column_stack([-t, t]), bias=True), 3)
    0.316
    """
    noises = _NOISES * float(np.diagonal(K).mean())
    tried, all_silent = [], True
    with threads_for(len(K) ** 2, len(K)):
        root = np.sqrt(weights)
        values, U = linalg.eigh(K * np.outer(root, root), check_finite=False)
        U *= root[:, None]
        projected = U.T @ np.hstack([T, np.ones((len(K), 1))])
        for noise in noises:
            # A tiny negative eigenvalue is rounding of zero.
            shrunk = 1 / (np.maximum(values, 0) + noise)
            solved = U @ (shrunk[:, None] * projected)
            # Eigenvectors are good to a rounding of the largest eigenvalue, not of each entry.
            scale = Scale((values[-1] + noise) / weights, noise / weights, _EPS)
            scores, silent = _left_out(solved, (U**2) @ shrunk, T, scale, bias=bias)
            all_silent &= bool(silent.all())
            wrong = weights[silent | (scores.argmax(axis=1) != T.argmax(axis=1))].sum()
            tried.append((float(wrong), float(weights @ ((T - scores) ** 2).sum(axis=1))))
    return float(noises[min(range(len(noises)), key=tried.__getitem__)]) if not all_silent else None


def _left_out(
    solved: Array, diagonal: Array, T: Array, scale: Scale, *, bias: bool
) -> tuple[Array, Array]:
    """Scores (n, M) and silences (n,), from K~^-1 [T, 1] and the diagonal of K~^-1."""
    A, prior = solved[:, :-1], np.zeros_like(T)
    if bias:
        border = Border(np.ones(len(T)), solved[:, -1])
        (A, offsets), diagonal = border.eliminated(T, A), border.inverse_diagonal(diagonal)
    left = leave_out(diagonal, A, T, rows := np.arange(len(T)))
    if bias:
        prior = border.without(offsets, T - left.mean, rows)
    error = rounding(left, A, T, scale)
    scores, silent = silenced(left, error, prior)
    return tied(scores, error), silent
