"""Histogram kernels with scikit-learn's interface: intersection, chi-squared, exponentials.

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
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel, StationaryKernelMixin

from knowmore.arrays import Array
from knowmore.kernels.rules import RULES, Rule, always, by_pairs, own_corner, with_gradient
from knowmore.kernels.sums import Term, pair_sums, row_sums


class _Overlap(Kernel, ABC):
    """The sum over bins of a term that is zero unless both bins hold something."""

    _term: ClassVar[Term]

    def __init__(self) -> None:
        pass

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """K(X, Y), (n, m), and on request its empty gradient."""
        K = pair_sums(self._term, X, Y)
        return with_gradient(self, K, Y, {}) if eval_gradient else K

    def diag(self, X: Any) -> Array:
        """sum_i x_i for each row, (n,)."""
        return row_sums(X)

    def is_stationary(self) -> bool:
        """No: it grows with the counts."""
        return False


@final
class HistogramIntersection(_Overlap):
    """sum_i min(x_i, y_i). With the pyramid's weights: Lazebnik, Schmid, Ponce (2006).

    >>> HistogramIntersection()(np.array([[1.0, 2.0], [3.0, 1.0]]))
    array([[3., 2.],
           [2., 4.]])
    """

    _term = Term.MINIMUM


@final
class AdditiveChiSquared(_Overlap):
    """sum_i 2 x_i y_i / (x_i + y_i), where bins that are empty in both add nothing.

    >>> AdditiveChiSquared()(np.array([[1.0, 0.0], [1.0, 1.0]]))
    array([[1., 1.],
           [1., 2.]])
    """

    _term = Term.HARMONIC


class _Decay(Kernel, ABC):
    """exp(-gamma D), D the distance between two histograms."""

    _distance: ClassVar[Term]

    def __init__(
        self, gamma: float = 1.0, gamma_bounds: tuple[float, float] | str = (1e-5, 1e5)
    ) -> None:
        self.gamma = gamma
        self.gamma_bounds = gamma_bounds

    @property
    def hyperparameter_gamma(self) -> Hyperparameter:
        """gamma, which scikit-learn optimises by its logarithm."""
        return Hyperparameter("gamma", "numeric", self.gamma_bounds)

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """K(X, Y), (n, m), and on request dK / d log(gamma) = -gamma D K, (n, n, 1)."""
        D = pair_sums(self._distance, X, Y)
        if not eval_gradient:
            return _decay(self, D, out=D)
        K = _decay(self, D)
        return with_gradient(self, K, Y, _decay_slopes(self, D, K))

    def diag(self, X: Any) -> Array:
        """One for each row, (n,)."""
        # The sums are not used, but computing them checks the rows.
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

    _distance = Term.CHI_SQUARED

    def is_stationary(self) -> bool:
        """No: a difference counts less where the counts are larger."""
        return False


@final
class ExponentialIntersection(StationaryKernelMixin, _Decay):
    """exp(-gamma D), D = sum_i |x_i - y_i| = k(x, x) + k(y, y) - 2 k(x, y), k the intersection.

    So it is to the intersection what an RBF kernel is to the dot product. Positive definite, since
    D is of negative type. A usual gamma is one over the mean D of the training data.

    >>> ExponentialIntersection(gamma=0.5)(np.array([[1.0, 0.0], [0.0, 1.0]]))
    array([[1.        , 0.36787944],
           [0.36787944, 1.        ]])
    """

    _distance = Term.CITY_BLOCK


def _decay(kernel: _Decay, D: Array, out: Array | None = None) -> Array:
    # A Python float: one of NumPy's would make a float32 array float64.
    exponent = np.multiply(D, -float(kernel.gamma), out=out)
    return np.asarray(np.exp(exponent, out=exponent))


def _decay_slopes(kernel: _Decay, D: Array, K: Array) -> dict[str, Array]:
    return {"gamma": -float(kernel.gamma) * D * K}


def _decay_rule(distance: Term) -> Rule:
    """D is conditionally negative definite, so exp(-gamma D) is positive."""
    return Rule(
        corner=own_corner,
        prepare=lambda kernel, X: pair_sums(distance, X),
        gradient=by_pairs(_decay, _decay_slopes),
        is_positive=lambda kernel: kernel.gamma >= 0,
    )


RULES[HistogramIntersection] = Rule(corner=own_corner, is_positive=always)
RULES[AdditiveChiSquared] = Rule(corner=own_corner, is_positive=always)
RULES[ChiSquared] = _decay_rule(Term.CHI_SQUARED)
RULES[ExponentialIntersection] = _decay_rule(Term.CITY_BLOCK)
