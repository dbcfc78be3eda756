"""The search for better parameters: gradient ascent from the parameters of the model.

A kernel of fixed height without a constant can explain targets of another height or mean only as
noise, or by making all examples neighbours. So it is tuned as amplitude * kernel + offset, unless
it has these already.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Literal, NamedTuple, final

import numpy as np
from scipy.optimize import minimize
from sklearn.gaussian_process import kernels
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel, Sum, WhiteKernel

from knowmore._base import Array, cached_property, report
from knowmore.errors import InvalidInput
from knowmore.insight.objectives import Objective, Solved, left_out_loss
from knowmore.kernels import AnyKernel, Gram, On, cross, is_positive, prepared
from knowmore.linalg import Border
from knowmore.linalg.products import evaluated, inverse

Bounds = tuple[float, float] | Literal["fixed"]

# A gain or loss per target below this counts as none: parameters that hardly matter are left alone.
NOTHING = 1e-6
# What a parameter may cost, per target, when it comes back from a bound: the density of a target
# falls by a thousandth. A heuristic: far out most objectives are flat, and the optimiser drifts.
_RETURN = 1e-3
# A step uphill per target below this is none; it is the optimiser's default, too.
_FLAT = 1e-5
# How much worse than the best point one without a value counts, relative to the best.
_WALL = 10
_HALVINGS = 6
# Kernel values and the factorisation are rounded: an eigenvalue this far below zero, in units of
# n eps times the largest variance, may be zero.
_ROUNDINGS = 64
# How many points a search tries is not known beforehand. A heuristic for `progress`: it is half
# done after so many.
_HALFWAY = 20
# Fractions of the straight line to an optimum that is not allowed.
_STRAIGHT = (0.8, 0.6, 0.4, 0.2)
# The logarithms of a bound and of a parameter at this bound are rounded.
_SLACK = 4 * np.finfo(float).eps * np.log(np.finfo(float).max)
_AMPLITUDES = (1e-5, 1e5)
# In units of the mean square of the targets. More than a hundred times that is as good as infinite,
# but not for the condition of the matrix.
_OFFSETS = (1e-5, 1e2)


# -- the parameters ------------------------------------------------------------------------------


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
    """The free parameters around a kernel and a noise, as a vector theta (p,) of logarithms.

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


# -- the search ----------------------------------------------------------------------------------


class Point(NamedTuple):
    """A theta (p,), the objective's value there, its gradient (p,), and the leave-one-out loss."""

    theta: Array
    value: float
    gradient: Array
    loss: float


@final
@dataclass(frozen=True, eq=False)
class Slope:
    """An objective as a function of theta, for fixed inputs X (n, d) and targets T (n, M).

    weights : (n,), of the examples
    bias : whether each column of T has its own offset, as in a least-squares SVM
    classes : whether T are classes or values
    dtype : of the factor that will hold K~ in the end
    groups : (n,), those that are left out together; None: each example alone
    tried : counts the points, for `progress`
    """

    space: Space
    objective: Objective
    X: Array
    T: Array
    weights: Array | float = 1.0
    bias: bool = False
    classes: bool = False
    dtype: Any = np.float64
    groups: Array | None = None
    tried: Iterator[int] = field(default_factory=lambda: count(1), repr=False)

    @cached_property
    def _gram(self) -> Gram:
        """Intermediate values that do not depend on theta, computed once."""
        return prepared(self.space.kernel, self.X)

    @cached_property
    def _parts(self) -> tuple[Array, ...] | None:
        """The rows of each group."""
        if self.groups is None:
            return None
        return tuple(np.flatnonzero(self.groups == group) for group in np.unique(self.groups))

    def __call__(self, theta: Array) -> Point:
        """The value and more at theta; -infinity and zeros where value or slope are not finite.

        A kernel that is not positive definite has no value. The noise can hide that from the
        examples, and even lets them fit perfectly, but new rows are predicted far off.
        """
        tried = next(self.tried)
        report(tried / (tried + _HALFWAY))
        if is_indefinite(self.space.at(theta).kernel, self.X):
            return _no_value(theta)
        found = self._evaluated(theta)
        finite = np.isfinite(found.value) and np.isfinite(found.gradient).all()
        return found if finite else _no_value(theta)

    def start(self) -> Point:
        """The point at the model's own parameters; raises InvalidInput if it is not finite."""
        found, space = self._evaluated(self.space.theta), self.space
        wrong = np.flatnonzero(~np.isfinite(found.gradient)).tolist()
        if not wrong and np.isfinite(found.value):
            return found
        slopes = f"slope in {', '.join(space.names[i] for i in wrong)}"
        raise InvalidInput(
            f"The {slopes if wrong else f'objective ({found.value})'} is not finite at "
            f"{space.kernel!r} and noise={space.noise:g}. Scale the features, or raise the noise."
        )

    def _evaluated(self, theta: Array) -> Point:
        """The point at theta, finite or not; without a value if K~ is not positive definite."""
        there = self.space.at(theta)
        # The model has a factor at its own parameters, however small the pivots are.
        at_start = np.array_equal(theta, self.space.theta)
        eps = 0.0 if at_start else float(np.finfo(self.dtype).eps)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            K, pull = self._gram(there.kernel)
            noise = np.broadcast_to(there.noise / self.weights, len(self.T))
            solved = self._solved(K, noise, eps)
            if solved is None:
                return _no_value(theta)
            value, W = self.objective.slope(solved)
            gradient = pull(W)
            if self.space.has_noise:
                # dK~ / d log sigma^2 is the part of the diagonal that the noise makes up.
                gradient = np.append(gradient, np.diagonal(W) @ noise)
        loss = left_out_loss(self.T, solved.error, classes=self.classes)
        return Point(theta, value, gradient, loss)

    def _solved(self, K: Array, noise: Array, eps: float) -> Solved | None:
        """K~ = K + diag(noise), inverted; None if it is not positive definite.

        A pivot that is lost in the rounding of its row counts as none, as in `Cholesky`. With a
        bias P is the leading block of the inverse of the bordered matrix. That changes by -P dK~ P
        too.
        """
        n = len(self.T)
        Kt = np.array(np.broadcast_to(K, (n, n)))
        Kt.flat[:: n + 1] += noise
        floor = 2 * n * eps * np.diagonal(Kt)
        found = inverse(Kt)
        if found is None or not (found[1] > floor).all():
            return None
        P, logdet = found[0], float(np.log(found[1]).sum())
        if self.bias:
            P = Border(np.ones(n), P.sum(axis=1)).inverse_block(np.arange(n), P)
        return Solved(P, self.T, logdet, self._parts)


def is_indefinite(kernel: AnyKernel, X: Array) -> bool:
    """Whether kappa(X, X) (n, n) has an eigenvalue that is clearly below zero.

    A WhiteKernel does not count: like the noise, it is not part of a prediction.

    >>> from sklearn.gaussian_process.kernels import ExpSineSquared
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> is_indefinite(ExpSineSquared(), X), is_indefinite(ExpSineSquared(), X[:, :1])
    (True, False)
    """
    if is_positive(kernel):
        return False
    n, K = len(X), np.array(cross(kernel, X, X))
    K.flat[:: n + 1] += _ROUNDINGS * n * np.finfo(float).eps * abs(np.diagonal(K)).max()
    try:
        evaluated(lambda: np.linalg.cholesky(K), K.size, n)
    except np.linalg.LinAlgError:
        return True
    return False


def _no_value(theta: Array) -> Point:
    return Point(theta, -np.inf, np.zeros_like(theta), np.inf)


def _best(*points: Point) -> Point:
    return max(points, key=lambda point: point.value)


def climb(
    slope: Slope, theta: Array, limit: float, held: Array | None = None
) -> tuple[Point, float]:
    """The best point uphill from theta whose loss is at most `limit`, and the value at the top.

    By L-BFGS-B, as in scikit-learn: first in the noise alone, upwards, then in all parameters but
    those `held` (p,). With too little noise, slopes are so steep that the first step in all
    parameters may leap over every hill, to where the kernel is zero between any two examples: a
    plateau without a way back.
    """
    size = slope.T.size
    best = top = _no_value(theta)

    def downhill(theta: Array) -> tuple[float, Array]:
        nonlocal best, top
        here = slope(theta.copy())
        top, value = _best(top, here), here.value
        if here.loss <= limit:
            best = _best(best, here)
        if not np.isfinite(value):
            # A wall that is finite lets the line search turn back; at an infinite one it ends.
            # Within the wall there is no slope, and a search that starts there ends at once.
            wall = top.value - _WALL * (abs(top.value) + size)
            value = wall if np.isfinite(wall) else 0.0
        return -value / size, -here.gradient / size

    box = slope.space.bounds
    boxes = [box]
    if held is not None:
        box[held] = theta[held, None]
    elif slope.space.has_noise and len(theta) > 1:
        noise_alone = np.column_stack([theta, theta])
        noise_alone[-1, 1] = max(theta[-1], box[-1, 1])
        boxes.insert(0, noise_alone)
    for bounds in boxes:
        minimize(downhill, top.theta, method="L-BFGS-B", jac=True, bounds=bounds)
    if top.value > best.value:
        # The top is not allowed; a point on the straight line to it may beat those on the path.
        for part in _STRAIGHT:
            downhill(theta + part * (top.theta - theta))
    return best, top.value


def _back_from_bounds(slope: Slope, point: Point, limit: float) -> Point:
    """The point after parameters that gained next to nothing at a bound have come back from it.

    Each moves back towards its start as far as that costs no more than a thousandth per target;
    then the others are optimised again.
    """
    least = point.value - _RETURN * slope.T.size
    outside = slope.space.moved_to_bounds(point.theta)
    back = point
    for i in np.flatnonzero(outside):
        # Bisection; the whole way back is tried first.
        way = np.where(np.arange(len(outside)) == i, slope.space.theta - point.theta, 0.0)
        origin, near, far, part = back.theta, 0.0, 1.0, 1.0
        for _ in range(_HALVINGS):
            here = slope(origin + part * way)
            if here.value >= least and here.loss <= limit:
                near, back = part, here
            else:
                far = part
            if near == far:
                break
            part = (near + far) / 2
    if back is point:
        return point
    return _best(back, climb(slope, back.theta, limit, held=outside)[0])


class SearchResult(NamedTuple):
    """The end of a search, with the parameters changed: none if there was nothing to gain."""

    space: Space
    changes: tuple[tuple[str, float, float], ...] = ()
    held_back: bool = False
    at_bounds: tuple[str, ...] = ()


def search(
    slope: Slope, affine: bool, restarts: int, rng: np.random.Generator, limited: bool
) -> SearchResult:
    """The best parameters; if limited, among those whose leave-one-out loss is not larger.

    affine : with an amplitude and an offset; the latter only if it gains a thousandth per target
    """
    start, bare, size = slope.start(), slope.space, slope.T.size
    limit = start.loss if limited else np.inf
    offset = affine and not slope.bias and not has_offset(bare.kernel)
    wide = replace(slope, space=bare.affine(slope.T, offset=offset)) if affine else slope
    low, high = bare.bounds.T
    step = np.clip(start.theta + start.gradient / size, low, high) - start.theta
    if restarts == 0 and wide.space.kernel is bare.kernel and abs(step).max() <= _FLAT:
        return SearchResult(bare)
    starts = [wide.space.theta, *(wide.space.random(rng) for _ in range(restarts))]
    points, tops = zip(*(climb(wide, theta, limit) for theta in starts), strict=True)
    point = _best(*points)
    held_back = max(tops) - max(point.value, start.value) > _RETURN * size
    if point.value - start.value <= NOTHING * max(abs(start.value), size):
        return SearchResult(bare, held_back=held_back)
    # The offset is the last of the kernel's parameters; the noise comes after them.
    last = len(point.theta) - 1 - bare.has_noise
    if offset:
        narrow = replace(slope, space=bare.affine(slope.T, offset=False))
        without = narrow(np.delete(point.theta, last))
        if without.value >= point.value - _RETURN * size and without.loss <= limit:
            wide, point, offset = narrow, climb(narrow, without.theta, limit)[0], False
    point = _back_from_bounds(wide, point, limit)
    end, before = wide.space.at(point.theta), wide.space.values
    if offset:
        before[last] = 0.0
    changes = zip(end.names, before.tolist(), end.values.tolist(), strict=True)
    changed = tuple(change for change in changes if change[1] != change[2])
    at_bounds = np.flatnonzero(wide.space.moved_to_bounds(point.theta))
    return SearchResult(end, changed, held_back, tuple(end.names[i] for i in at_bounds))
