"""Kernels that read columns by position: `On` a block of them, `Task` the one that names the task.

So one table can hold several descriptors, or the examples of several tasks.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np
from scipy import sparse
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel, StationaryKernelMixin

from knowmore._base import Array, check_sparse, is_whole, number, real_numbers, whole_number
from knowmore.errors import InvalidInput
from knowmore.kernels import rules
from knowmore.kernels.rules import RULES, KernelRule


def column_weights(bins: int, levels: int) -> Array:
    """A weight for each column of a pyramid of levels 0 ... L, `levels` in all: a_l = 2^(l - L).

    Level l has 4^l cells of `bins` columns each. Bosch, Zisserman, Munoz (2007).

    >>> column_weights(bins=1, levels=2)
    array([0.5, 1. , 1. , 1. , 1. ])
    """
    bins, levels = whole_number("bins", bins, 1), whole_number("levels", levels, 1)
    level = np.arange(levels)
    return np.repeat(2.0 ** (level - levels + 1), bins * 4**level)


@final
class On(Kernel):
    """k(w * x[columns], w * y[columns]); without weights w = 1.

    Without a kernel it is for the list of kernels of an estimator, which then chooses one.
    The average over two descriptors is `0.5 * On(slice(0, 40), k) + 0.5 * On(slice(40, 60), l)`.
    The pyramid kernel exp(-gamma sum_l a_l D_l) of Bosch et al. on columns 0 ... 1699 is
    `On(slice(0, 1700), ChiSquared(gamma), column_weights(20, 4))`.

    >>> from sklearn.gaussian_process.kernels import DotProduct
    >>> 2.0 * On(slice(1, 3), DotProduct(1.0))
    1.41**2 * On(1:3, DotProduct(sigma_0=1))
    """

    def __init__(
        self, columns: slice, kernel: Kernel | None = None, weights: Array | None = None
    ) -> None:
        self.columns = columns
        self.kernel: Any = kernel
        self.weights = weights

    def of(self, X: Any) -> Any:
        """The weighted columns of X (n, d), on which the inner kernel is evaluated."""
        if not isinstance(self.columns, slice):
            raise InvalidInput(
                f"columns={self.columns!r} is not a slice: give slice(begin, end), the positions "
                f"of columns side by side. A kernel is given numbers, not the names of columns."
            )
        if self.kernel is None:
            raise InvalidInput(
                f"{self!r} has no kernel. It stands for the kernel that suits its columns where it "
                f"is one of a list, as in kernel=[On(slice(0, 2)), On(slice(2, 5))]; in a sum or a "
                f"product give it one, such as RBF()."
            )
        if not isinstance(self.kernel, Kernel):
            raise InvalidInput(f"kernel={self.kernel!r} is not a scikit-learn kernel, like RBF().")
        check_sparse("X", X)
        X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
        if X.ndim != 2:
            raise InvalidInput(f"The kernel {self!r} needs a table (n, d), but got {X.shape}.")
        if max(abs(self.columns.start or 0), abs(self.columns.stop or 0)) > X.shape[1]:
            raise InvalidInput(
                f"The kernel {self!r} was given a table of {X.shape[1]} columns. "
                f"Give it the table that its columns refer to."
            )
        part = X[:, self.columns]
        if part.shape[1] == 0:
            raise InvalidInput(f"The kernel {self!r} has no columns: give it at least one.")
        if self.weights is None:
            return part
        w = real_numbers("weights", self.weights)
        if w.shape != part.shape[1:]:
            raise InvalidInput(
                f"The kernel {self!r} has weights of shape {w.shape} for "
                f"{part.shape[1]} columns. Give one weight for each column."
            )
        w = w.astype(part.dtype if part.dtype.kind == "f" else float, copy=False)
        return sparse.csr_array(part.multiply(w)) if sparse.issparse(part) else part * w

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """K(X, Y), (n, m), and on request the gradient of the inner kernel's parameters."""
        return self.kernel(self.of(X), None if Y is None else self.of(Y), eval_gradient)

    def diag(self, X: Any) -> Array:
        """k(x, x) for each row, (n,)."""
        return np.asarray(self.kernel.diag(self.of(X)))

    def is_stationary(self) -> bool:
        """As the inner kernel is."""
        return bool(self.kernel.is_stationary())

    # -- parameters: the inner kernel has them -----------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; parameters of the inner kernel as kernel__name."""
        inner = self.kernel.get_params() if deep and isinstance(self.kernel, Kernel) else {}
        return {**super().get_params(), **{f"kernel__{name}": inner[name] for name in inner}}

    @property
    def hyperparameters(self) -> list[Hyperparameter]:
        """Hyperparameters of the inner kernel, as kernel__name."""
        inner = self.kernel.hyperparameters if isinstance(self.kernel, Kernel) else []
        return [Hyperparameter(f"kernel__{name}", *settings) for name, *settings in inner]

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, On)
            and (self.columns, self.kernel) == (other.columns, other.kernel)
            and np.array_equal(self.weights, other.weights)  # type: ignore[arg-type]
        )

    def __repr__(self) -> str:
        at = self.columns
        block = repr(at)
        if isinstance(at, slice):
            block = ":".join("" if end is None else str(end) for end in (at.start, at.stop))
            block += "" if at.step is None else f":{at.step}"
        kernel = "" if self.kernel is None else f", {self.kernel!r}"
        return f"On({block}{kernel}{'' if self.weights is None else ', weighted'})"


@final
class Task(StationaryKernelMixin, Kernel):
    """1 for rows of the same task, rho for rows of two tasks; one column of X names the task.

    The product with a kernel of the other columns is the dependent Gaussian process of eq. (3),
    Rodner and Denzler: rho = 0 learns the tasks independently, rho = 1 pools their examples.
    Any number that names a task will do: only equality counts. rho = 0 is held fixed, since
    scikit-learn optimises the logarithms of parameters.

    >>> from sklearn.gaussian_process.kernels import RBF
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
        """rho, which scikit-learn optimises by its logarithm; so it is fixed if zero."""
        return Hyperparameter("rho", "numeric", self.rho_bounds if self.rho else "fixed")

    def of(self, X: Any) -> Array:
        """The task of each row, (n,)."""
        number("rho", self.rho, "[0, 1]", "Tasks have from nothing (0) to all (1) in common.")
        if not is_whole(self.column) or not -X.shape[1] <= self.column < X.shape[1]:
            raise InvalidInput(
                f"The kernel {self!r} reads the task in column {self.column!r}, but was given a "
                f"table of {X.shape[1]} columns. Add the column that names the task of each row."
            )
        if sparse.issparse(X):
            check_sparse("X", X)
            return np.asarray(X.tocsr()[:, [self.column]].toarray()[:, 0])
        return np.asarray(X)[:, self.column]

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """K(X, Y), (n, m), and on request dK / d log(rho), (n, n, 1): rho between two tasks."""
        tasks = self.of(X)
        same = tasks[:, None] == (tasks if Y is None else self.of(Y))
        K = np.where(same, 1.0, self.rho)
        if not eval_gradient:
            return K
        return rules.with_gradient(self, K, Y, {"rho": np.where(same, 0.0, self.rho)})

    def diag(self, X: Any) -> Array:
        """The diagonal of the Gram matrix: ones, (n,)."""
        return np.ones(len(self.of(X)))

    def __repr__(self) -> str:
        last = is_whole(self.column) and self.column == -1
        return f"Task(rho={self.rho:.3g}{'' if last else f', column={self.column}'})"


RULES[On] = rules.composite(
    parts=lambda kernel: (kernel.kernel,),
    operate=lambda kernel, K: K,
    weights=lambda kernel, W, K: (W,),
    inputs=lambda kernel, X: kernel.of(X),
)

# rho 11' + (1 - rho) for pairs of the same task: a sum of positive kernels.
RULES[Task] = KernelRule(corner=rules.own_corner, is_positive=lambda kernel: 0 <= kernel.rho <= 1)
