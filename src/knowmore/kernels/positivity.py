"""Which kernels are known to be positive semidefinite, whatever the inputs."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Matern,
    Product,
    RationalQuadratic,
    Sum,
    WhiteKernel,
)

from knowmore.kernels.blocks import AnyKernel, exactly
from knowmore.kernels.columns import On
from knowmore.kernels.histograms import (
    AdditiveChiSquared,
    ChiSquared,
    ExponentialIntersection,
    HistogramIntersection,
)
from knowmore.kernels.task import Task


def is_positive(kernel: AnyKernel) -> bool:
    """Is the kernel known to be positive semidefinite whatever the inputs? False: not known.

    (ExpSineSquared is not: of distances in a plane it can be indefinite.)

    >>> is_positive(RBF() + WhiteKernel()), is_positive(ConstantKernel(-1.0))
    (True, False)
    """
    return bool(exactly(_is_positive, kernel)(kernel))


@singledispatch
def _is_positive(kernel: Any) -> bool:
    return False


@_is_positive.register(HistogramIntersection)
@_is_positive.register(AdditiveChiSquared)
@_is_positive.register(RBF)
@_is_positive.register(DotProduct)
def _(kernel: Any) -> bool:
    return True


@_is_positive.register
def _(kernel: Matern) -> bool:
    return bool(kernel.nu > 0)


@_is_positive.register
def _(kernel: RationalQuadratic) -> bool:
    """A mixture of Gaussian kernels of many widths."""
    return bool(kernel.alpha > 0)


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
