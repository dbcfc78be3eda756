"""Parameters as a vector of logarithms, and what an objective says of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, final

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.insight.gradients import Gram, prepared
from knowmore.insight.loss import left_out_loss
from knowmore.insight.objectives import Objective, Solved
from knowmore.kernels import AnyKernel
from knowmore.linalg import Border
from knowmore.linalg.products import inverse

Bounds = tuple[float, float] | Literal["fixed"]

# A slope per target below this leads nowhere; it is the optimiser's own bound.
FLAT = 1e-5
# The logarithm of a bound is rounded, and that of a parameter that stands on it.
SLACK = 4 * np.finfo(float).eps * np.log(np.finfo(float).max)


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
        outside = np.flatnonzero(~((low - SLACK <= theta) & (theta <= high + SLACK)))
        if len(outside):
            i = int(outside[0])
            raise InvalidInput(
                f"{self.names[i]} is {np.exp(theta[i]):.6g}, which is not within its bounds "
                f"{np.exp(low[i]):.6g} to {np.exp(high[i]):.6g}: the search has no start. "
                f"{remedy(self.names[i])}"
            )

    def random(self, rng: np.random.Generator) -> Array:
        """Any theta, each logarithm as likely as another."""
        low, high = self.bounds.T
        if not np.isfinite(self.bounds).all():
            raise InvalidInput(
                "Restarts begin anywhere within the bounds, but some bounds are not finite. "
                "Give the kernel finite bounds, or no restarts."
            )
        return np.asarray(rng.uniform(low, high))


def remedy(name: str) -> str:
    """What to do about a parameter that is at a bound or beyond."""
    if name in ("noise", "C"):
        return 'Give other noise_bounds, or noise_bounds="fixed".'
    return "Give the kernel other bounds, or fit the model with another value."


class Place(NamedTuple):
    """A theta (p,), what the objective is there, its slope (p,), and the loss (see `loss`)."""

    theta: Array
    value: float
    gradient: Array
    loss: float


@final
@dataclass(frozen=True, eq=False)
class Slope:
    """An objective as a function of theta, for fixed inputs X (n, d) and targets T (n, M).

    weights : (n,), of the examples
    bias : whether each column of T has an offset of its own, as in a least-squares SVM
    classes : whether T are classes or values
    eps : the rounding of the factor that is to hold K~ in the end
    parts : the rows of each group that is left out together; None: each example alone
    """

    space: Space
    objective: Objective
    X: Array
    T: Array
    gram: Gram
    weights: Array
    bias: bool
    classes: bool
    eps: float
    parts: tuple[Array, ...] | None

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
        classes: bool = False,
        dtype: Any = np.float64,
        groups: Array | None = None,
    ) -> Slope:
        """With all that does not depend on theta computed once."""
        w = np.ones(len(T)) if weights is None else weights
        gram, eps = prepared(space.kernel, X), float(np.finfo(dtype).eps)
        parts = None if groups is None else _parts(groups)
        return cls(space, objective, X, T, gram, w, bias, classes, eps, parts)

    def of_space(self, space: Space) -> Slope:
        """The same for another kernel."""
        return replace(self, space=space, gram=prepared(space.kernel, self.X))

    def __call__(self, theta: Array) -> Place:
        """What is there; -infinity and zeros where value or slope are not finite."""
        found = self._evaluated(theta)
        if found is None or not (np.isfinite(found.value) and np.isfinite(found.gradient).all()):
            return Place(theta, -np.inf, np.zeros_like(theta), np.inf)
        return found

    def start(self) -> Place:
        """The same where the model stands, or an error that says what is wrong there."""
        kernel, noise = self.space.kernel, self.space.noise
        found = self._evaluated(self.space.theta)
        if found is None:
            raise InvalidInput(
                f"The covariance matrix is not positive definite at noise={noise:g}, where the "
                f"search would start. Fit the model with more noise."
            )
        names = zip(self.space.names, found.gradient, strict=True)
        wrong = [name for name, slope in names if not np.isfinite(slope)]
        if np.isfinite(found.value) and not wrong:
            return found
        what = f"The slope in {', '.join(wrong)}" if wrong else f"The objective ({found.value})"
        raise InvalidInput(
            f"{what} is not finite at the kernel {kernel!r} and noise={noise:g}, where the search "
            f"would start. The features may be too large for the kernel: scale them. "
            f"Nothing was changed."
        )

    def _evaluated(self, theta: Array) -> Place | None:
        """What is there, finite or not; None where K~ is not positive definite."""
        there = self.space.at(theta)
        # Where the model stands it has a factor, however little is left of a pivot.
        eps = 0.0 if np.array_equal(theta, self.space.theta) else self.eps
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            K, pull = self.gram(there.kernel)
            diagonal = there.noise / self.weights
            solved = _solved(K, diagonal, self.T, self.bias, eps, self.parts)
            if solved is None:
                return None
            value, W = self.objective.slope(solved)
            gradient = pull(W)
            if self.space.noise_bounds != "fixed":
                # dK~ / d log sigma^2 is the part of the diagonal that the noise makes up.
                gradient = np.append(gradient, np.diagonal(W) @ diagonal)
        loss = left_out_loss(self.T, solved.error, classes=self.classes)
        return Place(theta, value, gradient, loss)

    def is_flat(self, place: Place) -> bool:
        """Does every way uphill end at a bound, or has none a slope worth the name?"""
        low, high = self.space.bounds.T
        step = np.clip(place.theta + place.gradient / self.T.size, low, high) - place.theta
        return bool(abs(step).max() <= FLAT)


def _parts(groups: Array) -> tuple[Array, ...]:
    """The rows of each group."""
    _, codes = np.unique(groups, return_inverse=True)
    order = np.argsort(codes, kind="stable")
    return tuple(np.split(order, np.flatnonzero(np.diff(codes[order])) + 1))


def _solved(
    K: Array,
    diagonal: Array,
    T: Array,
    bias: bool,
    eps: float,
    parts: tuple[Array, ...] | None,
) -> Solved | None:
    """K~ = K + diag(diagonal), solved for T; None if it is not positive definite.

    A pivot that is lost in the rounding of its row counts as none, as in `Cholesky`. With a bias P
    is the leading block of the inverse of the bordered matrix. That changes by -P dK~ P too.
    """
    n = len(T)
    Kt = np.array(np.broadcast_to(K, (n, n)))
    Kt.flat[:: n + 1] += diagonal
    floor = 2 * n * eps * np.diagonal(Kt)
    found = inverse(Kt)
    if found is None or not (found[1] > floor).all():
        return None
    P, logdet = found[0], float(np.log(found[1]).sum())
    if bias:
        P = Border(np.ones(n), P.sum(axis=1)).inverse_block(np.arange(n), P)
    return Solved.of(P, T, logdet, parts)
