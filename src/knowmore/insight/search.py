"""Parameters as a vector of logarithms, and the way uphill from where a model stands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, final

import numpy as np
import numpy.typing as npt
from scipy.linalg import lapack
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import Kernel

from knowmore.errors import InvalidInput
from knowmore.insight.gradients import Gram, prepared
from knowmore.insight.objectives import Objective, Solved
from knowmore.kernels import AnyKernel
from knowmore.linalg import Border
from knowmore.linalg.threads import threads_for

Array = npt.NDArray[Any]
Bounds = tuple[float, float] | Literal["fixed"]

# A slope per target below this leads nowhere; it is the optimiser's own bound.
_FLAT = 1e-5
# How much worse than the best a place counts where there is no value.
_WALL = 10
# The logarithm of a bound is rounded, and that of a parameter that stands on it.
_SLACK = 4 * np.finfo(float).eps * np.log(np.finfo(float).max)


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
    def names(self) -> list[str]:
        """What an estimator's `get_params` calls them; numbered if one has several values."""
        names = [] if self.noise_bounds == "fixed" else ["noise"]
        if not isinstance(self.kernel, Kernel):
            return names
        free = [(f"kernel__{h.name}", h) for h in self.kernel.hyperparameters if not h.fixed]
        return [
            name if h.n_elements == 1 else f"{name}[{i}]"
            for name, h in free
            for i in range(h.n_elements)
        ] + names

    @property
    def values(self) -> Array:
        """The parameters themselves, (p,), to the last digit."""
        noise = [] if self.noise_bounds == "fixed" else [self.noise]
        if not isinstance(self.kernel, Kernel):
            return np.array(noise)
        held = self.kernel.get_params()
        free = [held[h.name] for h in self.kernel.hyperparameters if not h.fixed]
        return np.hstack([*free, noise])

    @property
    def theta(self) -> Array:
        """Where the search starts."""
        if self.noise_bounds == "fixed":
            return self._own
        with np.errstate(divide="ignore"):
            return np.append(self._own, np.log(self.noise))

    @property
    def _own(self) -> Array:
        """The part of theta that is the kernel's."""
        return np.asarray(self.kernel.theta) if isinstance(self.kernel, Kernel) else np.empty(0)

    @property
    def bounds(self) -> Array:
        """The least and the largest theta, (p, 2)."""
        own = self.kernel.bounds if isinstance(self.kernel, Kernel) else np.empty((0, 2))
        own = np.reshape(own, (-1, 2))
        if self.noise_bounds == "fixed":
            return own
        return np.vstack([own, np.log(self.noise_bounds)])

    def at(self, theta: Array) -> Space:
        """The same with the kernel and the noise at theta; what stays is not rounded."""
        own, kernel, noise = len(self._own), self.kernel, self.noise
        if isinstance(kernel, Kernel) and not np.array_equal(theta[:own], self._own):
            kernel = kernel.clone_with_theta(theta[:own])
        if not np.array_equal(theta[own:], self.theta[own:]):
            noise = float(np.exp(theta[-1]))
        return replace(self, kernel=kernel, noise=noise)

    def check(self) -> None:
        """Complain if there is nothing to tune, or if the start is out of bounds."""
        if not self.names:
            raise InvalidInput(
                f"The kernel {self.kernel!r} has no free parameter, and the noise is fixed: there "
                f"is nothing to tune. Multiply the kernel by a ConstantKernel, or free the noise."
            )
        theta, (low, high) = self.theta, self.bounds.T
        outside = np.flatnonzero(~((low - _SLACK <= theta) & (theta <= high + _SLACK)))
        if len(outside):
            i = int(outside[0])
            raise InvalidInput(
                f"{self.names[i]} is {np.exp(theta[i]):.6g}, which is not within its bounds "
                f"{np.exp(low[i]):.6g} to {np.exp(high[i]):.6g}: the search has no start. "
                f"{self._remedy(self.names[i])}"
            )

    def _remedy(self, name: str) -> str:
        if name == "noise":
            return 'Give other noise_bounds, or noise_bounds="fixed".'
        return "Give the kernel other bounds, or fit the model with another value."

    def random(self, rng: np.random.Generator) -> Array:
        """Any theta, each logarithm as likely as another."""
        low, high = self.bounds.T
        if not np.isfinite(self.bounds).all():
            raise InvalidInput(
                "Restarts begin anywhere within the bounds, but some bounds are not finite. "
                "Give the kernel finite bounds, or no restarts."
            )
        return np.asarray(rng.uniform(low, high))


@final
@dataclass(frozen=True, eq=False)
class Slope:
    """An objective as a function of theta, for fixed inputs X (n, d) and targets T (n, M).

    weights : (n,), of the examples
    bias : whether each column of T has an offset of its own, as in a least-squares SVM
    eps : the rounding of the factor that is to hold K~ in the end
    """

    space: Space
    objective: Objective
    T: Array
    gram: Gram
    weights: Array
    bias: bool
    eps: float

    @classmethod
    def of(
        cls,
        space: Space,
        objective: Objective,
        X: Array,
        T: Array,
        *,
        weights: Array | None = None,
        bias: bool = False,
        dtype: Any = np.float64,
    ) -> Slope:
        """With all that does not depend on theta computed once."""
        w = np.ones(len(T)) if weights is None else weights
        gram, eps = prepared(space.kernel, X), float(np.finfo(dtype).eps)
        return cls(space, objective, T, gram, w, bias, eps)

    def part(self, X: Array, rows: Array) -> Slope:
        """The same of some rows alone."""
        gram = prepared(self.space.kernel, X[rows])
        return replace(self, T=self.T[rows], gram=gram, weights=self.weights[rows])

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """F and dF / d theta, (p,); -infinity and zeros where one of them is not finite."""
        found = self._evaluated(theta)
        if found is None or not (np.isfinite(found[0]) and np.isfinite(found[1]).all()):
            return -np.inf, np.zeros_like(theta)
        return found

    def start(self) -> tuple[float, Array]:
        """The same where the model stands, or an error that says what is wrong there."""
        kernel, noise = self.space.kernel, self.space.noise
        found = self._evaluated(self.space.theta)
        if found is None:
            raise InvalidInput(
                f"The covariance matrix is not positive definite at noise={noise:g}, where the "
                f"search would start. Fit the model with more noise."
            )
        value, gradient = found
        wrong = [n for n, g in zip(self.space.names, gradient, strict=True) if not np.isfinite(g)]
        if np.isfinite(value) and not wrong:
            return found
        what = f"The slope in {', '.join(wrong)}" if wrong else f"The objective ({value})"
        raise InvalidInput(
            f"{what} is not finite at the kernel {kernel!r} and noise={noise:g}, where the search "
            f"would start. The features may be too large for the kernel: scale them. "
            f"Nothing was changed."
        )

    def _evaluated(self, theta: Array) -> tuple[float, Array] | None:
        """F and dF / d theta, (p,), finite or not; None where K~ is not positive definite."""
        there = self.space.at(theta)
        # Where the model stands it has a factor, however little is left of a pivot.
        eps = 0.0 if np.array_equal(theta, self.space.theta) else self.eps
        with np.errstate(over="ignore", invalid="ignore"):
            K, pull = self.gram(there.kernel)
            diagonal = there.noise / self.weights
            solved = _solved(K, diagonal, self.T, self.bias, eps)
            if solved is None:
                return None
            value, W = self.objective.slope(solved)
            gradient = pull(W)
            if self.space.noise_bounds != "fixed":
                # dK~ / d log sigma^2 is the part of the diagonal that the noise makes up.
                gradient = np.append(gradient, np.diagonal(W) @ diagonal)
        return value, gradient

    def is_flat(self, theta: Array, gradient: Array) -> bool:
        """Does every way uphill end at a bound, or has none a slope worth the name?"""
        low, high = self.space.bounds.T
        step = np.clip(theta + gradient / self.T.size, low, high) - theta
        return bool(abs(step).max() <= _FLAT)

    def climb(self, theta: Array) -> tuple[float, Array]:
        """The best value on the way uphill from theta, and where. L-BFGS-B, as scikit-learn's.

        First to as much noise as there should be, then in all parameters. Where there is too little
        noise, slopes are so steep that the first step in all of them may leap over every hill, to
        where the kernel is zero between any two examples: a plain that nothing leads back from.
        """
        best, place = -np.inf, theta

        def downhill(theta: Array) -> tuple[float, Array]:
            nonlocal best, place
            value, gradient = self(theta)
            if value > best:
                best, place = value, theta.copy()
            if not np.isfinite(value):
                # A wall that is finite lets the line search turn back; at an infinite one it ends.
                # Within the wall there is no slope, and a search that starts there ends at once.
                value = best - _WALL * (abs(best) + self.T.size) if np.isfinite(best) else 0.0
            return -value / self.T.size, -gradient / self.T.size

        boxes, options = [self.space.bounds], {"gtol": _FLAT}
        if self.space.noise_bounds != "fixed" and len(theta) > 1:
            up = np.column_stack([theta, theta])
            up[-1, 1] = max(theta[-1], boxes[0][-1, 1])
            boxes.insert(0, up)
        for box in boxes:
            minimize(downhill, place, method="L-BFGS-B", jac=True, bounds=box, options=options)
        return best, place


def _solved(K: Array, diagonal: Array, T: Array, bias: bool, eps: float) -> Solved | None:
    """K~ = K + diag(diagonal), solved for T; None if it is not positive definite.

    A pivot that is lost in the rounding of its row counts as none, as in `Cholesky`. With a bias P
    is the leading block of the inverse of the bordered matrix. That changes by -P dK~ P too.
    """
    n = len(T)
    Kt = np.array(np.broadcast_to(K, (n, n)))
    Kt.flat[:: n + 1] += diagonal
    floor = 2 * n * eps * np.diagonal(Kt)
    with threads_for(n**2, n):
        # The transpose of a symmetric matrix is itself, and in the order that LAPACK wants.
        L, info = lapack.dpotrf(Kt.T, lower=1, clean=1, overwrite_a=1)
        pivots = np.diagonal(L)
        if info or not (pivots**2 > floor).all():
            return None
        logdet = 2 * float(np.log(pivots).sum())
        P, _ = lapack.dpotri(L, lower=1, overwrite_c=1)
    P = P + P.T
    P.flat[:: n + 1] /= 2
    if bias:
        P = Border(np.ones(n), P.sum(axis=1)).inverse_block(np.arange(n), P)
    return Solved.of(P, T, logdet)
