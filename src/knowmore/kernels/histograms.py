"""Kernels of histograms, as scikit-learn has kernels: intersection, chi-squared, exponentials.

All are positive semidefinite for values that are not negative, and refuse others. They take dense
or sparse rows, and compute in float32 where all rows are float32; else in float64.

Intersection and chi-squared are homogeneous: w min(x, y) = min(w x, w y), and likewise for
(x - y)^2 / (x + y) and |x - y|. So a weighted sum over the levels of a pyramid is one kernel of
weighted histograms; see `On` and `column_weights`.
"""

from __future__ import annotations

from abc import ABC
from typing import Any, ClassVar, final

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.kernels.sums import Term, pair_sums, row_sums


@final
class HistogramIntersection(Kernel):
    """sum_i min(x_i, y_i). With the pyramid's weights: Lazebnik, Schmid, Ponce (2006).

    >>> HistogramIntersection()(np.array([[1.0, 2.0], [3.0, 1.0]]))
    array([[3., 2.],
           [2., 4.]])
    """

    def __init__(self) -> None:
        pass

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """K(X, Y), (n, m), and on request its empty gradient."""
        _may_differentiate(Y, eval_gradient)
        K = pair_sums(Term.SMALLER, X, Y)
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X: Any) -> Array:
        """sum_i x_i for each row, (n,)."""
        return row_sums(X)

    def is_stationary(self) -> bool:
        """No: it grows with the counts."""
        return False


@final
class AdditiveChiSquared(Kernel):
    """sum_i 2 x_i y_i / (x_i + y_i), where bins that are empty in both add nothing.

    >>> AdditiveChiSquared()(np.array([[1.0, 0.0], [1.0, 1.0]]))
    array([[1., 1.],
           [1., 2.]])
    """

    def __init__(self) -> None:
        pass

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """K(X, Y), (n, m), and on request its empty gradient."""
        _may_differentiate(Y, eval_gradient)
        K = pair_sums(Term.HARMONIC, X, Y)
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X: Any) -> Array:
        """sum_i x_i for each row, (n,)."""
        return row_sums(X)

    def is_stationary(self) -> bool:
        """No: it grows with the counts."""
        return False


class _Decay(Kernel, ABC):
    """exp(-gamma D), D the distance of two histograms."""

    _distance: ClassVar[Term]

    def __init__(
        self, gamma: float = 1.0, gamma_bounds: tuple[float, float] | str = (1e-5, 1e5)
    ) -> None:
        self.gamma = gamma
        self.gamma_bounds = gamma_bounds

    @property
    def hyperparameter_gamma(self) -> Hyperparameter:
        """How scikit-learn's optimisers see gamma: by its logarithm."""
        return Hyperparameter("gamma", "numeric", self.gamma_bounds)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """K(X, Y), (n, m), and on request dK / d log(gamma) = -gamma D K, (n, n, 1)."""
        _may_differentiate(Y, eval_gradient)
        exponent = pair_sums(self._distance, X, Y)
        # A Python float: one of NumPy's would make a float32 array float64.
        exponent *= -float(self.gamma)
        if not eval_gradient:
            return np.exp(exponent, out=exponent)
        K = np.exp(exponent)
        gradient = (exponent * K)[:, :, None]
        return K, gradient[:, :, :0] if self.hyperparameter_gamma.fixed else gradient

    def diag(self, X: Any) -> Array:
        """One for each row, (n,)."""
        # Summed only to be looked at: who asks for no more than this must hear of a bad row too.
        return np.ones_like(row_sums(X))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(gamma={self.gamma:.3g})"


@final
class ChiSquared(_Decay):
    """exp(-gamma D), D = sum_i (x_i - y_i)^2 / (x_i + y_i), where empty bins add nothing.

    A usual gamma is one over the mean D of the training data (Bosch, Zisserman, Munoz, 2007).

    >>> ChiSquared(gamma=0.5)(np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([[1.        , 0.36787944],
           [0.36787944, 1.        ]])
    """

    _distance = Term.DISTANCE

    def is_stationary(self) -> bool:
        """No: a difference counts less where there is more."""
        return False


@final
class ExponentialIntersection(_Decay):
    """exp(-gamma D), D = sum_i |x_i - y_i| = k(x, x) + k(y, y) - 2 k(x, y), k the intersection.

    So it is to the intersection what an RBF kernel is to the dot product. Positive definite, since
    D is of negative type. A usual gamma is one over the mean D of the training data.

    >>> ExponentialIntersection(gamma=0.5)(np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([[1.        , 0.36787944],
           [0.36787944, 1.        ]])
    """

    _distance = Term.DIFFERENCE

    def is_stationary(self) -> bool:
        """Yes: only differences count."""
        return True


def _may_differentiate(Y: Any, eval_gradient: bool) -> None:
    if eval_gradient and Y is not None:
        raise InvalidInput(
            "The gradient was asked for with Y given, but it is that of K(X, X): leave Y out."
        )
