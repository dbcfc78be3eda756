"""Gram blocks: from a kernel and two sets of inputs to a matrix.

Any scikit-learn `Kernel` works, and so does any callable f(X, Y) -> (n, m). The kernels named
below are evaluated by matrix products instead of scikit-learn's loops over pairs; each formula is
scikit-learn's own, so the values are equal to rounding. All others are asked themselves; ours are
known to be symmetric, so that this is not looked into.

A value depends on its two rows alone, and is one and the same in a cross block, in a corner and on
the diagonal (but for a WhiteKernel's). What overflows is infinite or NaN here, without a warning:
who uses the values says what that means.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    ExpSineSquared,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from knowmore.arrays import Array
from knowmore.kernels.columns import On
from knowmore.kernels.distances import distances, products, squared_distances
from knowmore.kernels.histograms import (
    AdditiveChiSquared,
    ChiSquared,
    ExponentialIntersection,
    HistogramIntersection,
)
from knowmore.kernels.matern import matern
from knowmore.kernels.task import Task
from knowmore.kernels.values import checked, symmetric

AnyKernel: TypeAlias = Kernel | Callable[[Array, Array], Array]

# Rows that a callable is asked for at once when only its diagonal is wanted.
_DIAGONAL = 32


def cross(kernel: AnyKernel, X: Array, Y: Array) -> Array:
    """The block kappa(X, Y), (n, m), between two sets of different examples.

    >>> cross(RBF(), np.zeros((2, 3)), np.zeros((1, 3)))
    array([[1.],
           [1.]])
    """
    with np.errstate(all="ignore"):
        return np.asarray(exactly(_cross, kernel)(kernel, X, Y))


def corner(kernel: AnyKernel, X: Array) -> Array:
    """The matrix kappa(X, X), (n, n), of one set; here a WhiteKernel is on the diagonal."""
    with np.errstate(all="ignore"):
        return np.asarray(exactly(_corner, kernel)(kernel, X))


def diagonal(kernel: AnyKernel, X: Array) -> Array:
    """kappa(x, x) for each row, (n,); no matrix is made for a scikit-learn kernel."""
    with np.errstate(all="ignore"):
        return np.asarray(exactly(_diagonal, kernel)(kernel, X))


def exactly(function: Any, kernel: AnyKernel) -> Callable[..., Any]:
    """What is registered for the very type of the kernel: a subclass may compute another thing."""
    rule: Callable[..., Any] = function.registry.get(type(kernel), function.registry[object])
    return rule


@singledispatch
def _cross(kernel: Any, X: Array, Y: Array) -> Array:
    return checked(kernel, kernel(X, Y), (len(X), len(Y)))


@singledispatch
def _corner(kernel: Any, X: Array) -> Array:
    K = kernel(X) if isinstance(kernel, Kernel) else kernel(X, X)
    return symmetric(kernel, checked(kernel, K, (len(X), len(X))))


@singledispatch
def _diagonal(kernel: Any, X: Array) -> Array:
    if isinstance(kernel, Kernel) and len(X):
        return checked(kernel, kernel.diag(X), (len(X),))
    blocks = [X[i : i + _DIAGONAL] for i in range(0, len(X), _DIAGONAL)]
    return np.concatenate([np.diagonal(corner(kernel, block)) for block in blocks] or [X[:0, 0]])


# -- scikit-learn's kernels by matrix products ---------------------------------------------------


@_cross.register
def _(kernel: RBF, X: Array, Y: Array) -> Array:
    """exp(-|x - y|^2 / 2) in units of the length scale."""
    return _gaussian(squared_distances(X, Y, kernel.length_scale))


@_cross.register
def _(kernel: RationalQuadratic, X: Array, Y: Array) -> Array:
    """(1 + |x - y|^2 / (2 a))^-a in units of the length scale."""
    a = kernel.alpha
    r = distances(X, Y, kernel.length_scale)
    return np.asarray(np.hypot(1, r / np.sqrt(2 * a)) ** (-2 * a))


@_cross.register
def _(kernel: Matern, X: Array, Y: Array) -> Array:
    if kernel.nu == np.inf:
        return _gaussian(squared_distances(X, Y, kernel.length_scale))
    # Below 1/2 the slope at zero is so steep that distances count whose squares underflow.
    if kernel.nu < 0.5:
        return matern(distances(X, Y, kernel.length_scale), kernel.nu)
    return matern(np.sqrt(squared_distances(X, Y, kernel.length_scale)), kernel.nu)


@_cross.register
def _(kernel: ExpSineSquared, X: Array, Y: Array) -> Array:
    """exp(-2 sin^2(pi |x - y| / p) / l^2).

    Many periods away a rounding of the distance counts: it is taken in one way only.
    """
    turns = cdist(X, Y) / kernel.periodicity
    return np.asarray(np.exp(-2 * (np.sin(np.pi * turns) / kernel.length_scale) ** 2))


@_cross.register
def _(kernel: DotProduct, X: Array, Y: Array) -> Array:
    """x . y + sigma_0^2."""
    return np.asarray(products(X, Y) + kernel.sigma_0**2)


@_cross.register
def _(kernel: ConstantKernel, X: Array, Y: Array) -> Array:
    return np.full((len(X), len(Y)), kernel.constant_value, dtype=float)


@_cross.register
def _(kernel: WhiteKernel, X: Array, Y: Array) -> Array:
    """Nothing: different examples have independent noise."""
    return np.zeros((len(X), len(Y)))


@_cross.register
def _(kernel: Sum, X: Array, Y: Array) -> Array:
    return cross(kernel.k1, X, Y) + cross(kernel.k2, X, Y)


@_cross.register
def _(kernel: Product, X: Array, Y: Array) -> Array:
    return cross(kernel.k1, X, Y) * cross(kernel.k2, X, Y)


@_cross.register
def _(kernel: Exponentiation, X: Array, Y: Array) -> Array:
    return np.asarray(cross(kernel.kernel, X, Y) ** kernel.exponent)


@_cross.register
def _(kernel: On, X: Array, Y: Array) -> Array:
    return cross(kernel.kernel, kernel.of(X), kernel.of(Y))


@_corner.register(RBF)
@_corner.register(RationalQuadratic)
@_corner.register(Matern)
@_corner.register(ExpSineSquared)
@_corner.register(DotProduct)
@_corner.register(ConstantKernel)
def _(kernel: Any, X: Array) -> Array:
    if len(X) == 1:
        return diagonal(kernel, X)[:, None]
    K = cross(kernel, X, X)
    return (K + K.T) / 2


@_corner.register
def _(kernel: WhiteKernel, X: Array) -> Array:
    return np.asarray(kernel.noise_level * np.eye(len(X)))


@_corner.register
def _(kernel: Sum, X: Array) -> Array:
    return corner(kernel.k1, X) + corner(kernel.k2, X)


@_corner.register
def _(kernel: Product, X: Array) -> Array:
    return corner(kernel.k1, X) * corner(kernel.k2, X)


@_corner.register
def _(kernel: Exponentiation, X: Array) -> Array:
    return np.asarray(corner(kernel.kernel, X) ** kernel.exponent)


@_corner.register
def _(kernel: On, X: Array) -> Array:
    return corner(kernel.kernel, kernel.of(X))


@_corner.register(HistogramIntersection)
@_corner.register(AdditiveChiSquared)
@_corner.register(ChiSquared)
@_corner.register(ExponentialIntersection)
@_corner.register(Task)
def _(kernel: Any, X: Array) -> Array:
    """Symmetric to the last bit already."""
    return np.asarray(kernel(X))


@_diagonal.register(RBF)
@_diagonal.register(Matern)
@_diagonal.register(RationalQuadratic)
def _(kernel: Any, X: Array) -> Array:
    """One; but who asks for no more than this must hear of a bad parameter too."""
    return cross(kernel, X[:1], X[:1])[:, 0].repeat(len(X)) if len(X) else np.empty(0)


@_diagonal.register
def _(kernel: Sum, X: Array) -> Array:
    return diagonal(kernel.k1, X) + diagonal(kernel.k2, X)


@_diagonal.register
def _(kernel: Product, X: Array) -> Array:
    return diagonal(kernel.k1, X) * diagonal(kernel.k2, X)


@_diagonal.register
def _(kernel: Exponentiation, X: Array) -> Array:
    return np.asarray(diagonal(kernel.kernel, X) ** kernel.exponent)


@_diagonal.register
def _(kernel: On, X: Array) -> Array:
    return diagonal(kernel.kernel, kernel.of(X))


def _gaussian(D2: Array) -> Array:
    D2 *= -0.5
    return np.asarray(np.exp(D2, out=D2))
