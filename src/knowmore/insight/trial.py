"""Whether other parameters are better for examples that the search has not seen.

A search that climbs leave-one-out has seen all targets: many parameters may fit a few targets that
are far off, and predict all others worse. So a search is tried on a part of the examples, and
others judge it, by leave-one-out among all.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from knowmore._base import Array
from knowmore.models import KernelModel, keys_of, log_density, log_losses

# Into so many parts examples are split.
PARTS = 4
# A gain counts if it is more than so many times its standard error: what one example gains, however
# much, is about one standard error.
_SURE = 2.0


@final
class Gain(NamedTuple):
    """What unseen examples gain by other parameters.

    density : the mean gain in log density; of classes, the gain in log loss
    error : its standard error
    loss : the mean gain in squared error; of classes, in the share that is not recognised
    """

    density: float = 0.0
    error: float = 0.0
    loss: float = 0.0

    @property
    def is_sure(self) -> bool:
        """Whether both are better, and the density not by chance or by a single example."""
        return self.density > _SURE * self.error and self.loss >= 0

    @classmethod
    def of(cls, gains: Array, weights: Array, codes: Array) -> Gain:
        """Of gains (2, n) in density and loss, weights (n,) and the groups of examples, (n,)."""
        codes = np.unique(codes, return_inverse=True)[1]
        density, loss = (np.bincount(codes, weights * row) / weights.sum() for row in gains)
        error = np.sqrt(len(density)) * density.std(ddof=1)
        return cls(float(density.sum()), float(error), float(loss.sum()))


def together(model: KernelModel, groups: Array | None) -> Array | None:
    """The groups (n,) that stay in one part: those given, or else equal rows, if there are any.

    The squared hinge leaves out single examples alone.
    """
    if groups is not None or model.loss != "squared":
        return groups
    rows = np.unique(model.examples.X, axis=0, return_inverse=True)[1].reshape(-1)
    return rows if len(rows) and rows.max() + 1 < len(rows) else None


def codes_of(model: KernelModel, groups: Array | None) -> Array:
    """The number of each example's group, (n,)."""
    n = len(model.examples)
    return np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]


def parts_of(model: KernelModel, codes: Array) -> Array:
    """The part of each example, (n,): each group in one part, each class in all if it can be.

    The hashes of ids decide: the parts depend on the examples held, not on how they came.
    """
    order = np.argsort(keys_of(model.examples.names), kind="stable")
    leaders = order[np.sort(np.unique(codes[order], return_index=True)[1])]
    if model.targets.classes:
        leaders = leaders[np.argsort(model.examples.labels[leaders], kind="stable")]
    part = np.empty(len(leaders), dtype=int)
    part[codes[leaders]] = np.arange(len(leaders)) % PARTS
    return np.asarray(part[codes])


def losses(model: KernelModel, groups: Array | None, *, gaussian: bool) -> Array:
    """Minus the log density of each example by the others, and the squared error, (2, n).

    Of classes: the log loss at the best temperature, and whether another class is recognised.

    gaussian : whether scores have variances
    """
    if not model.targets.classes:
        T, (mean, variance) = model.targets.T, model.left_out.of_targets(groups)
        squares = ((T - mean) ** 2).sum(axis=1)
        return np.stack([-log_density(T, mean, variance[:, None]).sum(axis=1), squares])
    codes = np.searchsorted(model.names, model.examples.labels)
    scores, variance, _ = model.left_out.scores(groups)
    wrong = (scores.argmax(axis=1) != codes).astype(float)
    weights = model.covariance.weights
    return np.stack([log_losses(scores, gaussian * variance, codes, weights), wrong])
