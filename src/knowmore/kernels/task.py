"""The kernel of tasks: how much of what one task taught holds for another."""

from __future__ import annotations

from typing import Any, final

import numpy as np
from scipy import sparse
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from knowmore.arrays import Array
from knowmore.errors import InvalidInput


@final
class Task(Kernel):
    """1 for rows of the same task, rho for rows of two; one column of X says the task.

    The product with a kernel of the other columns is the dependent Gaussian process of eq. (3),
    Rodner and Denzler: rho = 0 learns the tasks independently, rho = 1 pools their examples.
    Any number that names a task will do: only equality counts. rho = 0 is held fixed, since
    scikit-learn's optimisers see parameters by their logarithms.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from knowmore.kernels import On
    >>> kernel = On(slice(0, -1), RBF()) * Task(0.5)
    >>> kernel(np.array([[2.0, 0], [2.0, 0], [2.0, 1]]))
    array([[1. , 1. , 0.5],
           [1. , 1. , 0.5],
           [0.5, 0.5, 1. ]])
    """

    def __init__(
        self,
        rho: float = 0.5,
        column: int = -1,
        rho_bounds: tuple[float, float] | str = (1e-5, 1.0),
    ) -> None:
        self.rho = rho
        self.column = column
        self.rho_bounds = rho_bounds

    @property
    def hyperparameter_rho(self) -> Hyperparameter:
        """How scikit-learn's optimisers see rho: by its logarithm, which zero has not."""
        return Hyperparameter("rho", "numeric", self.rho_bounds if self.rho else "fixed")

    def of(self, X: Any) -> Array:
        """The task of each row, (n,)."""
        if not 0 <= self.rho <= 1:
            raise InvalidInput(
                f"The kernel {self!r} has rho={self.rho!r}, but tasks are related by 0 (nothing in "
                f"common) to 1 (the same). Give a rho between them."
            )
        if not -X.shape[1] <= self.column < X.shape[1]:
            raise InvalidInput(
                f"The kernel {self!r} reads the task in column {self.column}, but was given a "
                f"table of {X.shape[1]} columns. Add the column that names the task of each row."
            )
        if sparse.issparse(X):
            return np.asarray(X.tocsr()[:, [self.column]].toarray()[:, 0])
        return np.asarray(X)[:, self.column]

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """K(X, Y), (n, m), and on request dK / d log(rho), (n, n, 1): rho between two tasks."""
        if eval_gradient and Y is not None:
            raise InvalidInput(
                "The gradient was asked for with Y given, but it is that of K(X, X): leave Y out."
            )
        tasks = self.of(X)
        same = tasks[:, None] == (tasks if Y is None else self.of(Y))
        K = np.where(same, 1.0, self.rho)
        if not eval_gradient:
            return K
        gradient = np.where(same, 0.0, self.rho)[:, :, None]
        return K, gradient[:, :, :0] if self.hyperparameter_rho.fixed else gradient

    def diag(self, X: Any) -> Array:
        """One for each row, (n,)."""
        return np.ones(len(self.of(X)))

    def is_stationary(self) -> bool:
        """Yes: it only matters whether two tasks are one."""
        return True

    def __repr__(self) -> str:
        return f"Task(rho={self.rho:.3g}{'' if self.column == -1 else f', column={self.column}'})"
