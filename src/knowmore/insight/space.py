"""The parameters that tuning moves, as a vector of logarithms.

A kernel of fixed height without a constant can explain targets of another height or mean only as
noise, or by making all examples neighbours. So it is tuned as amplitude * kernel + offset, unless
it has these already.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np
from sklearn.gaussian_process import kernels
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Sum, WhiteKernel

from knowmore._base import Array
from knowmore.errors import InvalidInput
from knowmore.kernels import AnyKernel, On

Bounds = tuple[float, float] | Literal["fixed"]

# The logarithms of a bound and of a parameter at this bound are rounded.
_SLACK = 4 * np.finfo(float).eps * np.log(np.finfo(float).max)
_AMPLITUDES = (1e-5, 1e5)
# In units of the mean square of the targets. More than a hundred times that is as good as infinite,
# but not for the condition of the matrix.
_OFFSETS = (1e-5, 1e2)


def has_amplitude(kernel: AnyKernel) -> bool:
    """Does a parameter, free or fixed, set the height of the kernel?

    >>> from sklearn.gaussian_process.kernels import RBF, WhiteKernel
    >>> has_amplitude(RBF()), has_amplitude(2.0 * RBF() + WhiteKernel())
    (False, True)
    """
    return _has(kernel, (ConstantKernel, WhiteKernel, kernels.CompoundKernel), Sum)


def has_offset(kernel: AnyKernel) -> bool:
    """Is one of its terms a constant?

    >>> from sklearn.gaussian_process.kernels import RBF, DotProduct
    >>> has_offset(2.0 * RBF()), has_offset(DotProduct(1.0))
    (False, True)
    """
    leaves = ConstantKernel, kernels.DotProduct, kernels.CompoundKernel
    return _has(kernel, leaves, kernels.Product)


def _has(kernel: AnyKernel, leaves: tuple[type, ...], strict: type) -> bool:
    """Whether a kernel is made of leaves of these types: all parts of a `strict` operation must be.

    One part of any other operation is enough.
    """
    match kernel:
        case Sum() | kernels.Product():
            enough = all if isinstance(kernel, strict) else any
            return enough(_has(part, leaves, strict) for part in (kernel.k1, kernel.k2))
        case kernels.Exponentiation() | On():
            return _has(kernel.kernel, leaves, strict)
        case _:
            # A plain function cannot be multiplied or added to.
            return isinstance(kernel, leaves) or not isinstance(kernel, Kernel)


@final
@dataclass(frozen=True, eq=False)
class Space:
    """The free parameters around a kernel and a noise: theta (p,), their logarithms.

    The kernel's own come first, in scikit-learn's order, then the noise unless it is fixed.
    """

    kernel: AnyKernel
    noise: float
    noise_bounds: Bounds

    @property
    def _whole(self) -> Kernel:
        """A scikit-learn kernel with the same free parameters. A plain function has none."""
        own = self.kernel if isinstance(self.kernel, Kernel) else ConstantKernel(1.0, "fixed")
        return Sum(own, WhiteKernel(self.noise, self.noise_bounds))

    @property
    def _free(self) -> list[kernels.Hyperparameter]:
        return [h for h in self._whole.hyperparameters if not h.fixed]

    @property
    def has_noise(self) -> bool:
        """Is the noise free?"""
        return self.noise_bounds != "fixed"

    @property
    def names(self) -> list[str]:
        """Their names in an estimator's `get_params`; numbered if one has several values."""
        names: list[str] = []
        for h in self._free:
            own = h.name.startswith("k1__")
            name = "kernel__" + h.name.removeprefix("k1__") if own else "noise"
            several = [f"{name}[{i}]" for i in range(h.n_elements)]
            names += several if h.n_elements > 1 else [name]
        return names

    @property
    def values(self) -> Array:
        """The parameters themselves, (p,), to the last digit."""
        values = self._whole.get_params()
        return np.hstack([[], *(values[h.name] for h in self._free)])

    @property
    def theta(self) -> Array:
        """The logarithms of the parameters, (p,): where the search starts."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self._whole.theta)

    @property
    def bounds(self) -> Array:
        """The least and the largest theta, (p, 2)."""
        return np.reshape(self._whole.bounds, (-1, 2))

    def at(self, theta: Array) -> Space:
        """The space around theta; what does not change is not rounded."""
        here, own, kernel, noise = self.theta, len(theta) - self.has_noise, self.kernel, self.noise
        if isinstance(kernel, Kernel) and not np.array_equal(theta[:own], here[:own]):
            kernel = kernel.clone_with_theta(theta[:own])
        if not np.array_equal(theta[own:], here[own:]):
            noise = float(np.exp(theta[-1]))
        return replace(self, kernel=kernel, noise=noise)

    def affine(self, T: Array, *, offset: bool) -> Space:
        """With an amplitude, which is one, and perhaps an offset, where the kernel has none.

        The offset is as large as the mean square of the targets T (n, M).
        """
        kernel = self.kernel
        if not has_amplitude(kernel):
            kernel = ConstantKernel(1.0, _AMPLITUDES) * kernel
        if offset and not has_offset(kernel):
            square = float(np.einsum("ij,ij->", T, T)) / max(T.size, 1) or 1.0
            kernel += ConstantKernel(square, (_OFFSETS[0] * square, _OFFSETS[1] * square))
        return replace(self, kernel=kernel)

    def moved_to_bounds(self, theta: Array) -> Array:
        """Which parameters went to a bound or beyond, (p,)."""
        low, high = self.bounds.T
        at_bound = (theta <= low + _SLACK) | (theta >= high - _SLACK)
        return np.asarray(at_bound & (theta != self.theta))

    def check(self) -> None:
        """Raise InvalidInput if there is nothing to tune, or if the start is out of bounds."""
        if not self.names:
            raise InvalidInput(f"Nothing to tune: noise and {self.kernel!r} are fixed. Free one.")
        theta, (low, high) = self.theta, self.bounds.T
        outside = np.flatnonzero(~((low - _SLACK <= theta) & (theta <= high + _SLACK)))
        if len(outside):
            i = int(outside[0])
            name, value, (least, most) = self.names[i], self.values[i], np.exp([low[i], high[i]])
            raise InvalidInput(
                f"{name} is {value:.6g}, not within {least:.6g} to {most:.6g}. {remedy(name)}"
            )

    def random(self, rng: np.random.Generator) -> Array:
        """A theta, uniform within the bounds."""
        if not np.isfinite(self.bounds).all():
            raise InvalidInput("Restarts need finite bounds. Bound the kernel, or do not restart.")
        return np.asarray(rng.uniform(*self.bounds.T))


def remedy(name: str) -> str:
    """Advice for a parameter at or beyond a bound."""
    if name in ("noise", "C"):
        return 'Give other noise_bounds, or noise_bounds="fixed".'
    return "Give the kernel other bounds, or fit the model with another value."
