"""How new an input is to a Gaussian process, measured against the examples it holds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from scipy.special import log_ndtr

from knowmore._base import Array, Frozen, number
from knowmore.errors import InvalidInput, KnowmoreWarning
from knowmore.models.forest import Forest
from knowmore.models.kernel_model import KernelModel
from knowmore.models.probabilities import Trial, standardised
from knowmore.models.unrelated import raised

# How much of the distance to the mean of all counts: one part of these.
_KEPT = 32
# Values that differ by less than this fraction of the largest are equal.
_ROUNDINGS = 64 * float(np.finfo(float).eps)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Unseen(Frozen):
    """Examples, each predicted as a new row by the others.

    ids, labels : (n,)
    names : (M,), the columns of scores
    scores : (n, M)
    variance : (n,), or (n, M) if the columns have units
    silent : (n,), whether the others carry no information on the example
    counts : (M,), the examples that the model has of each class; zero if columns are values
    backing : (n,), the score by the others of its class: see `Trial`; zero if columns are values
    distance : (n,), to the nearest class in the null space, of rows of a linear model of classes
    """

    ids: Array
    labels: Array
    names: Array
    scores: Array
    variance: Array
    silent: Array
    counts: Array
    backing: Array
    distance: Array | None = None

    @property
    def codes(self) -> Array:
        """The columns of the labels, (n,)."""
        return np.searchsorted(self.names, self.labels)

    def trial(self, *, gaussian: bool = True) -> Trial:
        """The trial of the examples; without a variance if the model is no Gaussian process."""
        variance = self.variance if gaussian else np.ones(len(self.ids))
        codes, silent = self.codes, self.silent
        counts = self.counts - np.bincount(codes[silent], minlength=len(self.counts))
        return Trial(self.scores, variance, silent, self.backing, codes, counts)

    def without_classes(self) -> Array:
        """The scores, but the only example of a class takes the class with it: -infinity."""
        only = (self.labels[:, None] == self.names) & (self.counts == 1)
        return np.where(only, -np.inf, self.scores)


def unseen(model: KernelModel | Forest) -> Unseen:
    """The examples of a model whose weight is above zero."""
    examples, names = model.examples.counted, model.names
    of = np.searchsorted(names, examples.labels) if model.classes else np.empty(0, dtype=int)
    counts = np.bincount(of, minlength=len(names))
    backing = model.left_out.backing() if model.classes else np.zeros(len(examples))
    return Unseen(examples.ids, examples.labels, names, *model.left_out.unseen(), counts, backing)


def improbability(mean: Array, variance: Array) -> Array:
    """log Phi(-max_c mu^(c) / sigma), (m,): the chance that no class's target is above zero.

    The logarithm does not underflow where the noise is small.
    """
    best = mean.max(axis=1, keepdims=True)
    return np.asarray(log_ndtr(-standardised(best, variance))[:, 0])


def excess(distance: Array, variance: Array) -> Array:
    """distance^2 + sigma_*^2 / 32, (m,), for distances in the null space (m,) and variances (m,).

    That is the squared Mahalanobis distance to the nearest class, times the noise, less 31 of 32
    parts of that to the mean of all: what it exceeds the latter by says most, but a row far out
    along a direction in which classes do not differ is new, too.
    """
    return np.asarray(distance**2 + variance / _KEPT)


class Told(NamedTuple):
    """The answers of a model for m rows, each part computed on demand.

    mean : (m, M); variance : (m,) or (m, M)
    distance : to the nearest class in the null space, (m,)
    unrelated : which rows have nothing in common with what was learnt, (m,)
    largest : the variance that these count with, () or (M,)
    """

    mean: Callable[[], Array]
    variance: Callable[[], Array]
    distance: Callable[[], Array]
    unrelated: Array
    largest: Callable[[], Array]

    def values(self, method: str) -> Array:
        """How new the rows are by a method, (m,); an unrelated row is of no class, for certain."""
        match method:
            case "variance":
                found = self._raised()
                return found if found.ndim == 1 else np.asarray(found.mean(axis=1))
            case "null_space":
                return self.distance()
            case "mahalanobis":
                return excess(self.distance(), self._raised())
            case _:
                found = improbability(self.mean(), self.variance())
                return np.where(self.unrelated, 0.0, found)

    def _raised(self) -> Array:
        largest = self.largest() if self.unrelated.any() else 0.0
        return raised(self.variance(), self.unrelated, largest)


def separates(values: Array, silent: Array, q: float) -> bool:
    """Whether the q-quantile of the examples' left-out values (n,) tells new rows from known."""
    heard = silent.sum() <= (1 - q) * len(values)
    return bool(heard or np.quantile(values, q) < values.max() - _ROUNDINGS * abs(values).max())


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
    left = gp.newness.left_out
    return np.asarray(gp.newness.values(gp, X) > threshold(left, gp.left_out.unseen().silent, q))
