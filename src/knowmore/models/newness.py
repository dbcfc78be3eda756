"""How new a row is to a kernel model of classes, by all that the model knows of it.

Three numbers say so, each larger for what is newer: the distance to the nearest class in the null
space, minus |m| for the scores m of the classes (see `null_space`), and the deviation sigma_*. They
are added in units of their spread over the examples, each left out.

The first two are about classes, and count alike. How much the third counts depends on the data: it
finds what is unlike all examples, but in some spaces classes differ in it more than what is new
does. So each class in turn plays the unknown one: left out with all its examples, against the
examples left out alone. Fisher's discriminant between the two weighs sigma_* against the others.
All of it is a closed form of the examples held.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np
from scipy.special import log_ndtr

from knowmore._base import Array, Frozen, number, remembered
from knowmore.errors import InvalidInput, KnowmoreWarning
from knowmore.models.null_space import NullSpace, Removed
from knowmore.models.unrelated import raised

if TYPE_CHECKING:
    from knowmore.models.kernel_model import KernelModel

# How much of the distance to the mean of all counts: one part of these.
_KEPT: Final = 32
# Values that differ by less than this fraction of the largest are equal.
_EQUAL: Final = 64 * float(np.finfo(float).eps)
# More classes than these do not weigh the parts any better: this many are left out, evenly spaced.
_CLASSES: Final = 32
# Parts are square roots of differences. What is below this fraction of the size of the terms may be
# rounding, which the order of the examples decides.
_ROUNDINGS: Final = 64 * float(np.sqrt(np.finfo(float).eps))


@final
@dataclass(frozen=True, eq=False, repr=False)
class Newness(Frozen):
    """The scale of newness, from the examples of a model, each left out.

    weights : of the three parts, (3,), not negative
    left_out : the newness of each example by the others, (n,); empty for a single example
    """

    weights: Array
    left_out: Array

    def values(self, gp: KernelModel, X: Array) -> Array:
        """How new the rows X (m, d) are, (m,)."""
        return weighed(gp, X, gp.variance(X), self.weights)


def newness_left_out(gp: KernelModel, groups: Array | None = None) -> Array:
    """The newness of each example by those of other groups, (n,); groups (n,).

    The weights of the parts stay those of all examples, each left out.
    """
    found = newness_of(gp)
    return found.left_out if groups is None else _parts_left_out(gp, groups) @ found.weights


@remembered
def newness_of(gp: KernelModel) -> Newness:
    """The newness of rows to a model of classes, by all that it knows of them."""
    if not gp.classes:
        raise InvalidInput("A model of values has no classes to be new to. Ask for 'variance'.")
    space, n = null_space(gp), len(gp.examples)
    if n < 2:
        return Newness(np.ones(3), np.empty(0))
    alone = _parts_left_out(gp)
    sizes = np.maximum(abs(alone).max(axis=0), [space.size, 1.0, 0.0])
    E, X = gp.targets.basis, gp.covariance.X
    weights = _weights(alone, sizes, E, X, lambda c: _parts_without(gp, space, c))
    return Newness(weights, alone @ weights)


def weighed(gp: KernelModel, X: Array, variance: Array, weights: Array) -> Array:
    """The parts of rows X (m, d) of these variances (m,), added with these weights (3,); (m,)."""
    m, rows = gp.covariance.expansion(X, gp.solved), gp.unrelated(X)
    m[rows] = 0
    variance = raised(variance, rows, gp.largest_variance)
    return np.asarray(_parts(null_space(gp), m, variance) @ weights)


def null_space(gp: KernelModel) -> NullSpace:
    """The null space of the classes of a model."""
    G = gp.targets.basis.T @ gp.solved
    return NullSpace((G + G.T) / 2)


def nearest(gp: KernelModel, X: Array) -> Array:
    """The distance of rows X (m, d) to the nearest class in the null space, (m,)."""
    return null_space(gp).nearest(gp.covariance.expansion(X, gp.solved))


def removed(gp: KernelModel) -> Removed:
    """All examples of a model, to be left out in turn."""
    E = gp.targets.basis
    codes = E.argmax(axis=1)
    return Removed(gp.solved, codes, 1 / gp.left_out.inverse_diagonal(), E.sum(axis=0)[codes] == 1)


def distance_left_out(gp: KernelModel, groups: Array | None = None) -> Array:
    """The distance of each example to the nearest class in the null space of the others, (n,)."""
    return _by_others(gp, groups)[1]


def _by_others(gp: KernelModel, groups: Array | None) -> tuple[Array, Array]:
    """The scores (n, M) and distances (n,) of the examples by those of other groups."""
    space, E = null_space(gp), gp.targets.basis
    if groups is None:
        gone = removed(gp)
        return gone.m, space.left_out(gone)
    return space.left_out_groups(
        E, gp.solved, E.sum(axis=0), groups, lambda g: np.linalg.inv(gp.left_out.inverse_block(g))
    )


def _parts(space: NullSpace, m: Array, variance: Array) -> Array:
    """The parts (u, 3) of rows with scores m (u, M) and variances (u,)."""
    size = np.linalg.norm(m, axis=1)
    return np.column_stack([space.nearest(m), -size, np.sqrt(variance)])


def _parts_left_out(gp: KernelModel, groups: Array | None = None) -> Array:
    """The parts (n, 3) of each example by those of other groups.

    An example that shares nothing with the others is as new as a row far from all.
    """
    (m, distance), (_, variance, silent) = _by_others(gp, groups), gp.left_out.unseen(groups)
    alone, space = gp.left_out.unrelated(groups), null_space(gp)
    silent, variance = silent | alone, raised(variance, alone, gp.largest_variance)
    size = np.linalg.norm(np.where(silent[:, None], 0, m), axis=1)
    far = space.nearest(np.zeros((1, len(space.G))))
    distance = np.where(silent, far, distance)
    return np.column_stack([distance, -size, np.sqrt(variance)])


def _parts_without(gp: KernelModel, space: NullSpace, c: int) -> Array:
    """The parts (k, 3) of each example of class c by the other classes."""
    E, others = gp.targets.basis, np.arange(len(space.G)) != c
    g = np.flatnonzero(E[:, c])
    V = np.linalg.inv(gp.left_out.inverse_block(g))
    m, rest = space.without(E[g], gp.solved[g], V, others)
    # As if they were new rows, which weigh one. For an example of nearly no weight only rounding is
    # left, so the variance is kept between the noise and the variance of a row far from all.
    noise, w = gp.covariance.noise, gp.covariance.weights[g]
    most = gp.covariance.diagonal[g] + noise * (1 - 1 / w)
    variance = np.clip(np.diagonal(V) + noise * (1 - 1 / w), noise, np.maximum(most, noise))
    return _parts(rest, m, variance)


def _weights(
    alone: Array, sizes: Array, E: Array, X: Array, without: Callable[[int], Array]
) -> Array:
    """The weights of the parts, (3,): one over each spread, the last times Fisher's weight.

    alone : the parts of each example by the others, (n, 3)
    sizes : of the terms of which these are differences, (3,)
    E, X : the indicators of the classes, (n, M), and the examples, (n, d)
    without : the parts of the examples of a class by the other classes
    """
    scale = 1 / _spreads(alone, sizes)
    counts = E.sum(axis=0)
    several = np.flatnonzero(counts > 1)
    # Of two classes one is left, and that is compared with the origin.
    if len(counts) < 3 or len(several) == 0:
        return scale
    chosen = _some_classes(several, E, X)

    def joined(parts: Array) -> Array:
        z = parts * scale
        return np.column_stack([z[:, 0] + z[:, 1], z[:, 2]])

    known = [joined(alone[E[:, c] > 0]) for c in chosen]
    new = [joined(without(int(c))) for c in chosen]
    first, second, third = sizes * scale
    w = _discriminant(known, new, np.array([max(first, second), third]))
    w = np.where(w > _ROUNDINGS * abs(w).max(), w, 0.0)
    if not w.any():
        return scale
    return np.asarray(scale * (w / w.max())[[0, 0, 1]])


def _some_classes(several: Array, E: Array, X: Array) -> Array:
    """At most 32 of these classes, evenly spaced in an order by their examples.

    The names of the classes do not matter, nor does the order of the examples.
    """
    if len(several) <= _CLASSES:
        return several

    def examples_of(c: int) -> list[bytes]:
        # -0.0 and 0.0 are one number.
        return sorted(row.tobytes() for row in X[E[:, c] > 0] + 0.0)

    order = sorted(several.tolist(), key=examples_of)
    return np.asarray(np.array(order)[np.linspace(0, len(order) - 1, _CLASSES).astype(int)])


def _discriminant(known: list[Array], new: list[Array], sizes: Array) -> Array:
    """Fisher's S^+ (mean of `new` - mean of `known`), (q,), of arrays (k, q) for each class.

    S has the spread within the classes and that of their means: what differs between classes
    anyway tells little of an unknown one. A direction in which nothing differs tells nothing.

    sizes : of the terms of which the columns are differences, (q,)
    """
    sizes = np.maximum(sizes, abs(np.vstack([*known, *new])).max(axis=0))
    difference = np.zeros(len(sizes))
    S = np.zeros((len(difference), len(difference)))
    for side, sign in ((known, -1), (new, 1)):
        means = np.array([rows.mean(axis=0) for rows in side])
        apart = np.vstack([rows - mean for rows, mean in zip(side, means, strict=True)])
        between = means - means.mean(axis=0)
        difference += sign * means.mean(axis=0)
        S += apart.T @ apart / len(apart) + between.T @ between / len(between)
    # In units of the sizes, in which what is rounding is so in all columns alike.
    values, V = np.linalg.eigh(S / np.outer(sizes, sizes))
    differs = values > _ROUNDINGS**2
    V, values = V[:, differs] / sizes[:, None], values[differs]
    return np.asarray(V @ (V.T @ difference / values))


def _spreads(values: Array, sizes: Array) -> Array:
    """The standard deviation of each column, (q,); one where it is no more than rounding."""
    sizes = np.where(sizes > 0, sizes, 1.0)
    spread = (values / sizes).std(axis=0)
    return np.asarray(np.where(spread > _ROUNDINGS, spread * sizes, 1.0))


# -- by a method ---------------------------------------------------------------------------------


def improbability(mean: Array, variance: Array) -> Array:
    """log Phi(-max_c mu^(c) / sigma), (m,): the chance that no class's target is above zero.

    The logarithm does not underflow where the noise is small.
    """
    best = mean.max(axis=1, keepdims=True)
    return np.asarray(log_ndtr(-_standardised(best, variance))[:, 0])


def _standardised(mean: Array, variance: Array) -> Array:
    """mu^(c) / sigma, (m, M); mean (m, M), variance (m,) with noise.

    A variance is a difference, so below the rounding of mu^2 it is noise: that is its lower limit.
    An example that is held without noise is therefore almost certain, but not infinitely so.
    """
    eps, tiny = np.finfo(float).eps, np.finfo(float).tiny
    # In units of mu: its square may be beyond the range.
    least = np.sqrt(eps) * abs(mean).max(axis=1) + np.sqrt(tiny)
    return np.asarray(mean / np.maximum(np.sqrt(variance), least)[:, None])


def excess(distance: Array, variance: Array) -> Array:
    """distance^2 + sigma_*^2 / 32, (m,), for distances in the null space (m,) and variances (m,).

    That is the squared Mahalanobis distance to the nearest class, times the noise, less 31 of 32
    parts of that to the mean of all: what it exceeds the latter by says most, but a row far out
    along a direction in which classes do not differ is new, too.
    """
    return np.asarray(distance**2 + variance / _KEPT)


def values_by(
    method: str,
    mean: Callable[[], Array],
    variance: Callable[[], Array],
    distance: Callable[[], Array],
    unrelated: Array,
    largest: Callable[[], Array],
) -> Array:
    """The newness of m rows by a method, (m,); an unrelated row is of no class, for certain.

    The answers of a model are computed on demand: mean (m, M), variance (m,) or (m, M), and
    distance (m,) to the nearest class in the null space.

    unrelated : which rows have nothing in common with what was learnt, (m,)
    largest : the variance that these count with, () or (M,)
    """

    def spread() -> Array:
        return raised(variance(), unrelated, largest() if unrelated.any() else 0.0)

    match method:
        case "variance":
            found = spread()
            return found if found.ndim == 1 else np.asarray(found.mean(axis=1))
        case "null_space":
            return distance()
        case "mahalanobis":
            return excess(distance(), spread())
        case _:
            return np.where(unrelated, 0.0, improbability(mean(), variance()))


def separates(values: Array, silent: Array, q: float) -> bool:
    """Whether the q-quantile of the examples' left-out values (n,) tells new rows from known."""
    heard = silent.sum() <= (1 - q) * len(values)
    return bool(heard or np.quantile(values, q) < values.max() - _EQUAL * abs(values).max())


def threshold(values: Array, silent: Array, q: float) -> float:
    """The q-quantile of the examples' left-out values (n,); warns where it separates nothing."""
    n, mute = len(values), int(silent.sum())
    if not separates(values, silent, q):
        warnings.warn(
            f"For {mute} of {n} examples the others say nothing, so no threshold separates known "
            f"from new. The kernel is too narrow: widen it, tune it, or scale the features.",
            KnowmoreWarning,
            stacklevel=3,
        )
    return float(np.quantile(values, q))


def check_several(n: int) -> None:
    """Raise InvalidInput if only one example is held: nothing is left when it is left out."""
    if n < 2:
        raise InvalidInput("A threshold needs two examples, but the model holds one. Add more.")


def unknown_rows(gp: KernelModel, X: Array, rate: float) -> Array:
    """Which rows of X (m, d) belong to no class of the model, (m,), by its `newness`.

    rate : the fraction of the examples held that would also be called unknown if left out
    """
    hint = "It is the fraction of known examples that may be called unknown."
    q = 1 - number("rate", rate, "[0, 1]", hint)
    check_several(len(gp.examples))
    found = newness_of(gp)
    least = threshold(found.left_out, gp.left_out.unseen().silent, q)
    return np.asarray(found.values(gp, X) > least)
