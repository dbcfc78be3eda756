"""The noise with the best leave-one-out predictions, and a model with more of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from knowmore._base import Array, leading, remembered
from knowmore.errors import InvalidInput
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel, corner
from knowmore.linalg import Border, eigh, product
from knowmore.models.kernel_model import KernelModel
from knowmore.models.loo import EPS, LooMoments, Scale, leave_out, silenced, tied, with_bias
from knowmore.models.targets import Weighting

# The noise as a multiple of the mean kappa(x, x): two values for each power of ten.
_NOISES = 10.0 ** np.arange(5, -5.5, -0.5)


def noise_by_loo(
    name: str,
    kernel: AnyKernel,
    examples: Examples,
    weighting: Weighting,
    *,
    bias: bool,
    width: int | None = None,
) -> float:
    """The noise, 1 / C of a least-squares SVM, with the best leave-one-out predictions.

    name : the parameter that was given as "loo"
    width : the number of leading columns that the kernel sees, None for all
    """
    n = len(examples)
    if n < 2:
        raise InvalidInput(
            f"{name}='loo' leaves each example out in turn, but n_samples=1. Give a number."
        )
    # A twin would answer for an example that is left out.
    X, row = np.unique(leading(examples.X, width), axis=0, return_inverse=True)
    votes = np.zeros((len(X), len(np.unique(examples.labels))))
    codes = np.unique(examples.labels, return_inverse=True)[1]
    np.add.at(votes, (row.reshape(-1), codes), weighting(examples))
    K = corner(kernel, X)
    if not (np.isfinite(K.sum()) and np.trace(K) > 0):
        raise InvalidInput(
            f"{name}='loo' needs finite kernel values with a positive diagonal, but {kernel!r} "
            f"gave others. Scale the features, or give a number."
        )
    noise = best_noise(K, votes, bias=bias)
    if noise is None and n > 2 and votes.shape[1] > 1:
        raise InvalidInput(
            f"{name}='loo' predicts each example from the others, but under the kernel {kernel!r} "
            f"none of these {n} says anything of another. Either it is too narrow: widen it, or "
            f"scale the features; or all examples are the same to it. Or give a number."
        )
    # With a single class, or two examples, any noise is as good as another.
    return float(np.diagonal(K).mean()) if noise is None else noise


def best_noise(K: Array, votes: Array, *, bias: bool) -> float | None:
    """The noise whose leave-one-out predictions are wrong for the least weight of examples.

    K : (n, n) without noise, of rows that all differ
    votes : (n, M), the weight of the examples of each class at each row

    A row is left out with all its examples. Ties go to the least squared error, then to the largest
    noise. Silence about a row counts as wrong, and so does a tie of classes: which of them is named
    first says nothing. None if the rows are silent about each other whatever the noise.

    Examples at one row count like one of their weight w and their mean target.

    >>> x = np.arange(20.0)
    >>> K = np.exp(-np.abs(np.subtract.outer(x, x)) / 10)
    >>> t = np.isin(x, [3, 10, 11, 12, 13, 15, 16, 17, 18, 19])
    >>> round(best_noise(K, np.column_stack([~t, t]).astype(float), bias=True), 3)
    0.316
    """
    if len(K) < 2:
        return None
    noises = _NOISES * float(np.diagonal(K).mean())
    tried, all_silent = [], True
    weights = votes.sum(axis=1)
    T = 2 * votes / weights[:, None] - 1
    for left in left_out_by_noise(K, T, weights, noises, bias=bias):
        silent, loss = _judged(left, T, votes)
        all_silent &= silent
        tried.append(loss)
    return float(noises[min(range(len(noises)), key=tried.__getitem__)]) if not all_silent else None


def left_out_by_noise(
    K: Array, T: Array, weights: Array, noises: Array, *, bias: bool
) -> Iterator[LooMoments]:
    """Leave-one-out for targets T (n, M) at each noise, from one eigendecomposition.

    With W = diag(w)^1/2 and W K W = U diag(l) U',

        (K + sigma^2 diag(1 / w))^-1 = W U diag(1 / (l + sigma^2)) U' W.

    K : (n, n) without noise
    weights : (n,), of the examples
    """
    # Weights and noises in a unit of both, so that W K W is not beyond the range. The root of a
    # power of four is exact: no rounding changes.
    unit = 4.0 ** max(np.ceil(np.log2(weights.max()) / 2), 0)
    weights, noises = weights / unit, noises / unit
    root = np.sqrt(weights)
    values, U = eigh(K * np.outer(root, root))
    U *= root[:, None]
    ones, rows = np.ones(len(K)), np.arange(len(K))
    projected, squares = product(U.T, np.column_stack([T, ones])), U**2
    for noise in noises:
        # A tiny negative eigenvalue is rounding of zero.
        shrunk = 1 / (np.maximum(values, 0) + noise)
        solved = product(U, shrunk[:, None] * projected)
        # Eigenvectors are good to a rounding of the largest eigenvalue, not of each entry.
        scale = Scale((values[-1] + noise) / weights, noise / weights, EPS)
        A, P = solved[:, :-1], product(squares, shrunk)
        if bias:
            border = Border(ones, solved[:, -1])
            (A, offsets), P = border.eliminated(T, A), border.inverse_diagonal(P)
            yield with_bias(leave_out(P, A, T, rows, scale), T, rows, border, offsets)
        else:
            yield leave_out(P, A, T, rows, scale)


def _judged(left: LooMoments, T: Array, votes: Array) -> tuple[bool, tuple[float, float]]:
    """Whether all rows are silent, and the loss: minus the weight that is right, squared error."""
    scores, silent = silenced(left)
    scores = tied(scores, left.error)
    best = scores == scores.max(axis=1, keepdims=True)
    told = ~silent & (best.sum(axis=1) == 1)
    right = float(votes[told][best[told]].sum())
    error = float(votes.sum(axis=1) @ ((T - scores) ** 2).sum(axis=1))
    return bool(silent.all()), (-right, error)


@remembered
def robust_model(model: KernelModel) -> KernelModel:
    """Least squares of the same examples at ten times the noise: it trusts each label less.

    A model of other labels of the same examples has the same factor for it. The model itself,
    if there is no covariance with more noise.
    """
    robust = model.covariance.robust
    if robust is model.covariance:
        return model
    return KernelModel.on(robust, model.coding, bias=model.bias)
