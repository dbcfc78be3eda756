"""Labels as numbers, the columns that a kernel model solves for; and weights of the examples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, update_wrapper
from typing import Any, ClassVar, Literal, final

import numpy as np

from knowmore._base import Array, Frozen, bounded, number, read_only
from knowmore.errors import InvalidInput
from knowmore.examples import Examples

# Labels below this are counted, which is faster than sorting them.
_COUNTED = 1000
# The square of a smaller spread underflows.
_LEAST_SPREAD = 1e-150
# The size of the blocks of weights from which the spread of the others is computed.
_NUMBERS = 2**21


@final
@dataclass(frozen=True, eq=False)
class Units(Frozen):
    """The location and scale of normalised targets T: the values are mean + scale * T.

    mean, scale : (M,), or (n, M) where each example has its own
    """

    mean: Array
    scale: Array

    @classmethod
    def of(cls, Y: Array, weights: Array) -> Units:
        """The weighted mean and standard deviation of values Y (n, M)."""
        mean, scale = _moments(Y, weights[None])
        return cls(mean[0], scale[0])

    @classmethod
    def of_others(cls, Y: Array, weights: Array, groups: Array, shift: Array) -> Units:
        """For each example the units of Y + shift without the example's group, from scratch."""
        names, codes = np.unique(groups, return_inverse=True)
        others = np.arange(len(names))[:, None]
        step = max(_NUMBERS // max(len(Y), 1), 1)
        parts = [
            _moments(Y, weights * (codes != others[begin : begin + step]), shift)
            for begin in range(0, len(names), step)
        ]
        mean, scale = (np.concatenate(one)[codes] for one in zip(*parts, strict=True))
        return cls(mean, scale)


def _moments(Y: Array, W: Array, shift: Any = 0.0) -> tuple[Array, Array]:
    """Mean and standard deviation (g, M) of Y + shift, (n, M), under each row of weights W (g, n).

    A spread that is only rounding counts as one, as in scikit-learn. The mean of nothing is zero.
    """
    total = W.sum(axis=1, keepdims=True)
    shares = np.divide(W, total, out=np.zeros(W.shape), where=total > 0)
    mean = shares @ Y
    scale = np.empty_like(mean)
    for c, y in enumerate(Y.T):
        # The mean of the remainders corrects the rounding of a sum of values far from zero.
        mean[:, c] += np.einsum("ij,ij->i", shares, y - mean[:, c, None]) * (total[:, 0] > 0)
        apart = y - mean[:, c, None]
        scale[:, c] = np.sqrt(np.einsum("ij,ij,ij->i", shares, apart, apart))
    mean += shift * (total > 0)
    rounding = 8 * np.finfo(float).eps * abs(mean)
    return mean, np.where(scale > np.maximum(rounding, _LEAST_SPREAD), scale, 1.0)


@final
@dataclass(frozen=True, eq=False)
class Targets(Frozen):
    """T = basis @ mix, (n, M), one column for each of `names` (M,), which ascend.

    The basis (n, M + r) is what is solved for: a column for each name, then r others. Its columns
    change neither when a class comes or goes nor with the mix.

    classes : whether the columns are scores of classes, which compare
    prior : (q, M), the slopes of a prior mean in the last q columns of the inputs, which no kernel
        sees; T is what is left to learn. None if the prior mean is zero
    units : the units of T if it is normalised. The basis then is [Y - shift, 1], for values
        Y (n, M), examples of `weights` (n,), and a shift (M,) that seldom changes.
    """

    names: Array
    basis: Array
    mix: Array
    classes: bool = False
    prior: Array | None = None
    units: Units | None = None
    shift: Array | None = None
    weights: Array | None = None

    @property
    def T(self) -> Array:
        """The targets, (n, M)."""
        return np.asarray(self.basis @ self.mix)

    def carry(self, earlier: Targets, H: Array) -> Array:
        """Columns of H, made for the `earlier` basis, in the order of this one.

        A name that is new had no example before: its column was zero.
        """
        if self.shift is not None and np.any(self.shift != earlier.shift):
            return H[:0]
        if len(self.names) == len(earlier.names) and (self.names == earlier.names).all():
            return H
        M, others = len(self.names), H[:, len(earlier.names) :]
        carried = np.hstack([np.zeros((len(H), M), dtype=H.dtype), others])
        _, here, there = np.intersect1d(self.names, earlier.names, return_indices=True)
        carried[:, here] = H[:, there]
        return carried

    def edited(self, deleted: Array, labels: Array) -> Targets | None:
        """One-vs-all targets after rows are deleted, and `labels` (k,) appended.

        None if classes would come or go.
        """
        if not len(self.names):
            return None
        index = self.names.searchsorted(labels)
        if len(labels) and (index.max() >= len(self.names) or (self.names[index] != labels).any()):
            return None
        basis, new = self.basis, _indicators(len(self.names))[0][index]
        if len(deleted) == 1:
            row = int(deleted[0])
            parts, gone = [basis[:row], basis[row + 1 :], new], {int(basis[row].argmax())}
        else:
            parts = [np.delete(basis, deleted, axis=0), new]
            gone = {*basis[deleted].argmax(axis=1).tolist()}
        basis = np.concatenate(parts)
        # A class may have lost its last example.
        if not all(basis[:, c].any() for c in gone):
            return None
        return Targets(self.names, basis, self.mix, classes=True)

    def rest(self, groups: Array | None = None) -> Units | None:
        """For each example the units of the examples of other groups, (n, M)."""
        if self.shift is None or self.weights is None:
            return None
        groups = np.arange(len(self.basis)) if groups is None else groups
        Y = self.basis[:, : len(self.names)]
        return Units.of_others(Y, self.weights, groups, self.shift)

    def mixed(self, B: Array, units: Units) -> Array:
        """Columns B (n, M + 1), of the basis or solved for it, as columns of T in these units."""
        M = len(self.names)
        return np.asarray((B[:, :M] - (units.mean - self.shift) * B[:, M:]) / units.scale)

    def prior_mean(self, X: Array) -> Array | float:
        """The prior mean of inputs X (m, D), (m, M)."""
        if self.prior is None:
            return 0.0
        return np.ascontiguousarray(X[:, -len(self.prior) :]) @ self.prior

    def values(self, T: Array, X: Array) -> Array:
        """Targets T (m, M) predicted for inputs X (m, D), as values."""
        units = self.units
        if self.prior is not None:
            return bounded(lambda: T + self.prior_mean(X))
        return T if units is None else bounded(lambda: units.mean + units.scale * T)

    @property
    def square(self) -> float:
        """The square of the units, in the mean of all columns."""
        return 1.0 if self.units is None else float((self.units.scale**2).mean())


def in_squares(variance: Array, units: Units | None) -> Array:
    """Variances of targets T as variances of values; with units, one for each column."""
    return variance if units is None else bounded(lambda: variance[..., None] * units.scale**2)


class Coding(ABC):
    """From examples to targets; a coding may leave a choice to the solved model.

    chooses : whether there is a choice, such as the beta of a transfer
    """

    chooses: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, examples: Examples) -> Targets:
        """The targets, before the choice if there is one."""

    def check_examples(self, examples: Examples) -> None:
        """Raise InvalidInput if there can be no model of these examples."""
        return

    def minimum(self, model: Any) -> Any:
        """The best choice for a solved model, by its leave-one-out scores; None without one."""
        return None

    def chosen(self, coded: Targets, examples: Examples, minimum: Any) -> Targets:
        """The targets after the choice `minimum`, from the targets before it, `coded`."""
        return coded


@final
class PlainCoding(Coding):
    """A function of the examples alone, as a coding: nothing is chosen."""

    __name__: str

    def __init__(self, function: Callable[[Examples], Targets]) -> None:
        self._function = function
        update_wrapper(self, function)

    def __call__(self, examples: Examples) -> Targets:
        """The targets."""
        return self._function(examples)

    def __repr__(self) -> str:
        return self.__name__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlainCoding) and self.__name__ == other.__name__

    def __hash__(self) -> int:
        return hash(self.__name__)

    def __reduce__(self) -> str:
        # Pickles name it, like a function.
        return self.__name__

    def __getstate__(self) -> dict[str, Any]:
        """Its name, for formats that know no names of values; it then is an equal coding."""
        return {"name": self.__name__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        known = {one.__name__: one for one in globals().values() if isinstance(one, PlainCoding)}
        vars(self).update(vars(known[state["name"]]))


@PlainCoding
def one_vs_all(examples: Examples) -> Targets:
    """t^(c)_i = 1 where example i is of class c, else -1; classes in sorted order. Eq. (4).

    The basis is the indicators e^(c), which a new class does not touch. They sum to one, so
    t^(c) = 2 e^(c) - sum_c' e^(c').

    >>> one_vs_all(Examples.of(np.zeros((3, 1)), np.array(["b", "a", "b"]))).T
    array([[-1.,  1.],
           [ 1., -1.],
           [-1.,  1.]])
    """
    classes, index = _classes(examples.labels)
    identity, mix = _indicators(len(classes))
    return Targets(classes, identity[index], mix, classes=True)


def _classes(labels: Array) -> tuple[Array, Array]:
    """The different labels, (M,), ascending, and which of them each of the labels (n,) is, (n,)."""
    if labels.dtype == np.int64 and len(labels) and 0 <= labels.min() <= labels.max() < _COUNTED:
        counts = np.bincount(labels)
        (classes,) = counts.nonzero()
        counts[classes] = _indices(len(classes))
        return classes, counts[labels]
    return np.unique(labels, return_inverse=True)


@cache
def _indices(M: int) -> Array:
    return read_only(np.arange(M))


@cache
def _indicators(M: int) -> tuple[Array, Array]:
    """The identity (M, M), and what makes one-vs-all targets of indicators."""
    identity = np.eye(M)
    return read_only((identity, 2 * identity - 1))


@PlainCoding
def one_vs_all_and_absent(examples: Examples) -> Targets:
    """`one_vs_all`, and a last column of -1 for any class without an example.

    `names` are the classes alone.

    >>> one_vs_all_and_absent(Examples.of(np.zeros((2, 1)), np.array(["b", "a"]))).T
    array([[-1.,  1., -1.],
           [ 1., -1., -1.]])
    """
    here = one_vs_all(examples)
    return replace(here, mix=np.hstack([here.mix, -np.ones((len(here.names), 1))]))


@PlainCoding
def real_values(examples: Examples) -> Targets:
    """The values themselves, (n,) or (n, M)."""
    Y = _columns(examples)
    return Targets(np.arange(Y.shape[1]), Y, np.eye(Y.shape[1]))


@PlainCoding
def normalised_values(examples: Examples) -> Targets:
    """The values, (n,) or (n, M), less their mean, over their standard deviation, by columns.

    Mean and deviation follow every edit; what is solved for does not change with them. The basis is
    centred too, to avoid the rounding of values far from zero, but at the mean rounded to a grid as
    coarse as the spread, which most edits do not change.

    >>> normalised_values(Examples.of(np.zeros((2, 1)), np.array([99.0, 101.0]))).T
    array([[-1.],
           [ 1.]])
    """
    Y, weights = _columns(examples), examples.weights
    units, M = Units.of(Y, weights), Y.shape[1]
    grid = 2.0 ** np.ceil(np.log2(units.scale))
    shift = grid * np.round(units.mean / grid)
    basis = np.column_stack([Y - shift, np.ones(len(Y))])
    mix = np.vstack([np.eye(M), shift - units.mean]) / units.scale
    return Targets(np.arange(M), basis, mix, units=units, shift=shift, weights=weights)


def _columns(examples: Examples) -> Array:
    """The values as columns, (n, M); there may be no examples."""
    values = examples.labels.astype(float)
    return values[:, None] if values.ndim == 1 else values


# -- how much each example counts -----------------------------------------------------------------


@final
@dataclass(frozen=True)
class Weighting:
    """The weight of an example: its own, times the weight of its class.

    `classes`: None, all alike; "balanced", all classes have the same weight in sum; or pairs of a
    class and its weight, one for those not named. An example of weight w has the noise sigma^2 / w:
    it counts like w examples at the same place.

    >>> some = Examples.of(np.zeros((3, 1)), np.array(["a", "b", "b"]))
    >>> Weighting("balanced")(some), Weighting((("b", 2.0),))(some)
    (array([1.5 , 0.75, 0.75]), array([1., 2., 2.]))
    """

    classes: Literal["balanced"] | tuple[tuple[Any, float], ...] | None = None

    def __call__(self, examples: Examples) -> Array:
        """The weights, (n,)."""
        if self.classes is None or not len(examples):
            return examples.weights
        names, index = np.unique(examples.labels, return_inverse=True)
        if self.classes == "balanced":
            sums = np.bincount(index, examples.weights)
            factors = sums.sum() / (len(names) * sums)
        else:
            factors = np.ones(len(names))
            for name, weight in self.classes:
                factors[names == name] = weight
        return np.asarray(examples.weights * factors[index])


def class_weighting(class_weight: Any) -> Weighting:
    """scikit-learn's `class_weight`: None, "balanced", or a dict of weights."""
    if class_weight is None:
        return Weighting()
    if isinstance(class_weight, str) and class_weight == "balanced":
        return Weighting("balanced")
    if not isinstance(class_weight, dict):
        raise InvalidInput(
            f"class_weight={class_weight!r} must be None, 'balanced', or a dict of weights."
        )
    for name, weight in class_weight.items():
        number(f"class_weight[{name!r}]", weight, "(0, inf)", "Remove a class that must not count.")
    return Weighting(tuple(class_weight.items()))
