"""The C of a least-squares SVM, chosen by leave-one-out from one eigendecomposition.

With weights w, W = diag(w)^1/2 and W K W = U diag(l) U', the inverse for every C is

    (K + diag(1 / (C w)))^-1 = W U diag(1 / (l + 1 / C)) U' W.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from knowmore.linalg import Border
from knowmore.linalg.threads import threads_for
from knowmore.models.loo import leave_one_out

Array = npt.NDArray[Any]

# 1 / C as a multiple of the mean kappa(x, x): two values for each power of ten.
_NOISES = 10.0 ** np.arange(5, -5.5, -0.5)


def best_C(K: Array, weights: Array, T: Array, *, bias: bool) -> float:
    """The C whose leave-one-out predictions are wrong for the least weight of examples.

    K (n, n) without noise, weights (n,), one-vs-all targets T (n, M). Of several such C the one
    of the least squared error; of these the smallest.

    >>> x = np.arange(20.0)
    >>> K = np.exp(-np.abs(np.subtract.outer(x, x)) / 10)
    >>> t = np.where(np.isin(x, [3, 10, 11, 12, 13, 15, 16, 17, 18, 19]), 1.0, -1.0)
    >>> round(best_C(K, np.ones(20), np.column_stack([-t, t]), bias=True), 3)
    3.162
    """
    grid = 1 / (_NOISES * float(np.diagonal(K).mean()))
    tried = []
    with threads_for(len(K) ** 2, len(K)):
        root = np.sqrt(weights)
        values, U = linalg.eigh(K * np.outer(root, root), check_finite=False)
        U *= root[:, None]
        ones = np.ones((len(K), 1))
        projected = U.T @ np.hstack([T, ones])
        for C in grid:
            # A tiny negative eigenvalue is rounding of zero.
            shrunk = 1 / (np.maximum(values, 0) + 1 / C)
            solved = U @ (shrunk[:, None] * projected)
            A, diagonal = solved[:, :-1], (U**2) @ shrunk
            if bias:
                border = Border(ones[:, 0], solved[:, -1])
                A, diagonal = border.eliminated(T, A)[0], border.inverse_diagonal(diagonal)
            scores, _ = leave_one_out(diagonal, A, T)
            wrong = weights[scores.argmax(axis=1) != T.argmax(axis=1)].sum()
            tried.append((float(wrong), float(weights @ ((T - scores) ** 2).sum(axis=1))))
    return float(grid[min(range(len(grid)), key=tried.__getitem__)])
