"""An amplitude and an offset for a kernel that has none: amplitude * kernel + offset.

A kernel of fixed height, and without a constant, can only say of targets of another height, or
with another mean, that they are noise, or that everything is near to everything else. Where
parameters are sought it gets both, as far as it has none of its own.
"""

from __future__ import annotations

import numpy as np
from sklearn.gaussian_process.kernels import (
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    Exponentiation,
    Kernel,
    Product,
    Sum,
    WhiteKernel,
)

from knowmore.arrays import Array
from knowmore.kernels import AnyKernel, On

_AMPLITUDES = (1e-5, 1e5)
# In units of the mean square of the targets. More than a hundred times that is as good as infinite,
# but not for the condition of the matrix.
_OFFSETS = (1e-5, 1e2)


def has_amplitude(kernel: AnyKernel) -> bool:
    """Does a parameter of its own, free or fixed, say how high the kernel is?

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> has_amplitude(RBF()), has_amplitude(ConstantKernel(2.0) * RBF() + WhiteKernel())
    (False, True)
    """
    match kernel:
        case ConstantKernel() | WhiteKernel() | CompoundKernel():
            return True
        case Sum():
            return has_amplitude(kernel.k1) and has_amplitude(kernel.k2)
        case Product():
            return has_amplitude(kernel.k1) or has_amplitude(kernel.k2)
        case Exponentiation() | On():
            return has_amplitude(kernel.kernel)
        case _:
            # A plain function cannot be multiplied.
            return not isinstance(kernel, Kernel)


def has_offset(kernel: AnyKernel) -> bool:
    """Is a constant one of its terms?

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> has_offset(ConstantKernel(2.0) * RBF()), has_offset(DotProduct(1.0))
    (False, True)
    """
    match kernel:
        case ConstantKernel() | DotProduct() | CompoundKernel():
            return True
        case Sum():
            return has_offset(kernel.k1) or has_offset(kernel.k2)
        case Product():
            return has_offset(kernel.k1) and has_offset(kernel.k2)
        case Exponentiation() | On():
            return has_offset(kernel.kernel)
        case _:
            return not isinstance(kernel, Kernel)


def with_amplitude(kernel: AnyKernel) -> AnyKernel:
    """1 * kernel, if it has no amplitude: the same values."""
    return kernel if has_amplitude(kernel) else ConstantKernel(1.0, _AMPLITUDES) * kernel


def with_offset(kernel: AnyKernel, T: Array) -> AnyKernel:
    """kernel + offset, if it has none, as high as the targets T (n, M) are, squared."""
    if has_offset(kernel):
        return kernel
    square = float(np.einsum("ij,ij->", T, T)) / max(T.size, 1) or 1.0
    return kernel + ConstantKernel(square, (_OFFSETS[0] * square, _OFFSETS[1] * square))
