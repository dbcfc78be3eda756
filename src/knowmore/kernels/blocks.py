"""Gram blocks: from a kernel and two sets of inputs to a matrix.

Any scikit-learn `Kernel` works, and so does any callable f(X, Y) -> (n, m). The kernels named
below are evaluated by matrix products instead of scikit-learn's loops over pairs; each formula is
scikit-learn's own, so the values are equal to rounding. All others are asked themselves; ours are
known to be symmetric, so that this is not looked into.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Kernel,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from knowmore.errors import InvalidInput
from knowmore.kernels.columns import On
from knowmore.kernels.distances import squared_distances
from knowmore.kernels.histograms import (
    AdditiveChiSquared,
    ChiSquared,
    ExponentialIntersection,
    HistogramIntersection,
)
from knowmore.kernels.task import Task

Array = npt.NDArray[Any]
AnyKernel: TypeAlias = Kernel | Callable[[Array, Array], Array]

# Rows that a callable is asked for at once when only its diagonal is wanted.
_DIAGONAL = 32


def cross(kernel: AnyKernel, X: Array, Y: Array) -> Array:
    """The block kappa(X, Y), (n, m), between two sets of different examples.

    >>> cross(RBF(), np.zeros((2, 3)), np.zeros((1, 3)))
    array([[1.],
           [1.]])
    """
    return np.asarray(_exactly(_cross, kernel)(kernel, X, Y))


def corner(kernel: AnyKernel, X: Array) -> Array:
    """The matrix kappa(X, X), (n, n), of one set; here a WhiteKernel is on the diagonal."""
    return np.asarray(_exactly(_corner, kernel)(kernel, X))


def diagonal(kernel: AnyKernel, X: Array) -> Array:
    """kappa(x, x) for each row, (n,); no matrix is made for a scikit-learn kernel."""
    if isinstance(kernel, Kernel):
        return np.asarray(kernel.diag(X), dtype=float)
    blocks = [X[i : i + _DIAGONAL] for i in range(0, len(X), _DIAGONAL)]
    return np.concatenate([np.diagonal(corner(kernel, block)) for block in blocks] or [X[:0, 0]])


def is_positive(kernel: AnyKernel) -> bool:
    """Is the kernel known to be positive semidefinite whatever the inputs? False: not known."""
    return bool(_exactly(_is_positive, kernel)(kernel))


def _exactly(function: Any, kernel: AnyKernel) -> Callable[..., Any]:
    """What is registered for the very type of the kernel: a subclass may compute another thing."""
    rule: Callable[..., Any] = function.registry.get(type(kernel), function.registry[object])
    return rule


@singledispatch
def _cross(kernel: Any, X: Array, Y: Array) -> Array:
    return _checked(kernel, kernel(X, Y), (len(X), len(Y)))


@singledispatch
def _corner(kernel: Any, X: Array) -> Array:
    K = kernel(X) if isinstance(kernel, Kernel) else kernel(X, X)
    return _symmetric(kernel, _checked(kernel, K, (len(X), len(X))))


@singledispatch
def _is_positive(kernel: Any) -> bool:
    return False


def _checked(kernel: Any, values: Any, shape: tuple[int, int]) -> Array:
    K = np.asarray(values, dtype=float)
    if K.shape != shape:
        raise InvalidInput(
            f"The kernel {kernel!r} was asked for a block of shape {shape} and gave {K.shape}. "
            f"A callable kernel takes X (n, d) and Y (m, d) and returns all n x m values at once."
        )
    return K


def _symmetric(kernel: Any, K: Array) -> Array:
    scale = abs(K).max(initial=0)
    uneven = abs(K - K.T).max(initial=0)
    # A hundred roundings: a sum over features in another order, not another value.
    if uneven > 100 * np.finfo(float).eps * scale:
        raise InvalidInput(
            f"The kernel {kernel!r} is not symmetric: k(x, y) and k(y, x) differ by {uneven:.1e}. "
            f"A covariance function must not depend on the order of its arguments."
        )
    return np.asarray((K + K.T) / 2)


# -- scikit-learn's kernels by matrix products ---------------------------------------------------


@_cross.register
def _(kernel: RBF, X: Array, Y: Array) -> Array:
    """exp(-|x - y|^2 / 2) in units of the length scale."""
    return _gaussian(squared_distances(X, Y, kernel.length_scale))


@_cross.register
def _(kernel: RationalQuadratic, X: Array, Y: Array) -> Array:
    """(1 + |x - y|^2 / (2 a))^-a in units of the length scale."""
    a = kernel.alpha
    return np.asarray((1 + squared_distances(X, Y, kernel.length_scale) / (2 * a)) ** -a)


@_cross.register
def _(kernel: Matern, X: Array, Y: Array) -> Array:
    """The Matern family at nu = 1/2, 3/2, 5/2 and infinity; other orders are scikit-learn's."""
    if kernel.nu not in (0.5, 1.5, 2.5, np.inf):
        return np.asarray(kernel(X, Y))
    D2 = squared_distances(X, Y, kernel.length_scale)
    if kernel.nu == np.inf:
        return _gaussian(D2)
    r = np.sqrt(2 * kernel.nu * D2)
    if kernel.nu == 0.5:
        return np.asarray(np.exp(-r))
    if kernel.nu == 1.5:
        return np.asarray((1 + r) * np.exp(-r))
    return np.asarray((1 + r + r**2 / 3) * np.exp(-r))


@_cross.register
def _(kernel: DotProduct, X: Array, Y: Array) -> Array:
    """x . y + sigma_0^2."""
    return np.asarray(X @ Y.T + kernel.sigma_0**2)


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


@_is_positive.register(HistogramIntersection)
@_is_positive.register(AdditiveChiSquared)
@_is_positive.register(RBF)
@_is_positive.register(RationalQuadratic)
@_is_positive.register(Matern)
@_is_positive.register(DotProduct)
def _(kernel: Any) -> bool:
    return True


@_is_positive.register
def _(kernel: WhiteKernel) -> bool:
    return bool(kernel.noise_level >= 0)


@_is_positive.register
def _(kernel: ConstantKernel) -> bool:
    return bool(kernel.constant_value >= 0)


@_is_positive.register(Sum)
@_is_positive.register(Product)
def _(kernel: Any) -> bool:
    """Schur: sums and products of positive kernels are positive."""
    return is_positive(kernel.k1) and is_positive(kernel.k2)


@_is_positive.register
def _(kernel: Exponentiation) -> bool:
    power = float(kernel.exponent)
    return is_positive(kernel.kernel) and power.is_integer() and power >= 0


@_is_positive.register(ChiSquared)
@_is_positive.register(ExponentialIntersection)
def _(kernel: Any) -> bool:
    """D is conditionally negative, so that exp(-gamma D) is positive."""
    return bool(kernel.gamma >= 0)


@_is_positive.register
def _(kernel: Task) -> bool:
    """rho 11' + (1 - rho) for pairs of the same task: a sum of positive kernels."""
    return bool(0 <= kernel.rho <= 1)


@_is_positive.register
def _(kernel: On) -> bool:
    return is_positive(kernel.kernel)


def _gaussian(D2: Array) -> Array:
    D2 *= -0.5
    return np.asarray(np.exp(D2, out=D2))
