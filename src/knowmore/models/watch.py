"""A stream of rows held against its normal state: rows that are odd, windows that have drifted.

All models come from merges and splits. The thresholds do too: blocks of the reference rows are
split off in turn, and the model of the others shows what a row or a window that it has not seen
looks like.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from scipy.special import stdtrit

from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.linalg import Eigenspace
from knowmore.linalg.eigenspace import ROUNDINGS
from knowmore.linalg.spectrum import EPS
from knowmore.models.window import Window


def leading(eigenspace: Eigenspace, directions: int) -> Eigenspace:
    """So many leading directions of a model, or as many as there are.

    A variance of a few roundings may be made of these alone.
    """
    there = eigenspace.variances > ROUNDINGS * eigenspace.unsure()
    return eigenspace.truncate(min(directions, int(there.sum())))


def drift(one: Eigenspace, other: Eigenspace) -> float:
    """The root mean square sine of the principal angles between two subspaces, 0 to 1.

    With k directions each it is |P_1' P_1 - P_2' P_2|_F / sqrt(2 k), a metric. The largest angle
    alone would jump to a right one whenever the last direction kept and the first one dropped
    have nearly the same variance and change places, which means nothing; in the mean that is one
    part of k. A direction that the other subspace has no partner for is at a right angle to it.
    """
    k = max(len(one.variances), len(other.variances))
    sines = np.sin(one.angles(other))
    return float(np.sqrt((np.square(sines).sum() + k - len(sines)) / max(k, 1)))


class HeldOut(NamedTuple):
    """Blocks of rows under the model of all the other rows.

    errors (m, window): the distance of each row to the others' subspace
    drifts (m,): the drift of each block's own subspace from it
    """

    errors: Array
    drifts: Array


def held_out(X: Array, directions: int, window: int) -> HeldOut:
    """Split each block of `window` neighbouring rows off the model of X (n, D) in turn.

    A block is just like a window that the model has not seen. It is whole because neighbours in
    time are alike: one left behind would give the others away. The first n mod window rows are in
    no block.
    """
    whole = Eigenspace.of(X)
    errors, drifts = [], []
    for begin in range(len(X) % window, len(X), window):
        block = X[begin : begin + window]
        own, rest = Eigenspace.of(block), whole.left_by(block)
        if rest.faded:
            rest = Eigenspace.of(np.delete(X, np.s_[begin : begin + window], axis=0))
        others = leading(rest, directions)
        errors.append(others.distances(block))
        drifts.append(drift(leading(own, directions), others))
    return HeldOut(np.array(errors), np.array(drifts))


def rank_bound(values: Array, exceeded: float) -> float:
    """What one more value like these (n,) exceeds with probability `exceeded` at most.

    Each of n + 1 values is as likely as any other to be the last. So it is the k-th smallest,
    k = (n + 1)(1 - exceeded) rounded up, whatever the distribution.
    """
    k = int(np.ceil((len(values) + 1) * (1 - exceeded) * (1 - EPS)))
    if k > len(values):
        raise InvalidInput(
            f"false_alarms={exceeded:g} cannot be learnt from {len(values)} rows in whole windows: "
            f"that is less than one of them. Give at least {1 / exceeded - 1:.0f} rows, or allow "
            f"more false alarms."
        )
    return float(np.sort(values)[k - 1])


def student_bound(values: Array, exceeded: float) -> float:
    """The same for positive values (m,) too few to be ranked: the fewer, the wider the bound.

    Their logarithms are taken as normal, mean and spread unknown, as Student did.
    """
    m, logs = len(values), np.log(np.maximum(values, np.sqrt(EPS)))
    spread = logs.std(ddof=1) * np.sqrt(1 + 1 / m)
    return float(np.exp(logs.mean() + stdtrit(m - 1, 1 - exceeded) * spread))


@final
@dataclass(frozen=True, eq=False)
class Reference:
    """The normal state of a stream.

    eigenspace : the leading directions of the reference rows
    error_threshold : for the distance of a row to the subspace
    drift_threshold : for the drift of a window; above one if the rows were too few to say
    """

    eigenspace: Eigenspace
    error_threshold: float
    drift_threshold: float

    @classmethod
    def of(cls, X: Array, directions: int, window: int, false_alarms: float) -> Reference:
        """Learn the rows X (n, D), at least two windows of them."""
        errors, drifts = held_out(X, directions, window)
        whole = leading(Eigenspace.of(X), directions)
        error = max(rank_bound(errors.ravel(), false_alarms), _rounding(whole))
        return cls(whole, error, student_bound(drifts, false_alarms))


def _rounding(eigenspace: Eigenspace) -> float:
    """How far rounding alone may take a row from the subspace: that is no anomaly."""
    N, rounding = eigenspace.n_samples, eigenspace.rounding
    return float(np.hypot(np.sqrt(ROUNDINGS * rounding.scatter / N), ROUNDINGS * rounding.sum / N))


@final
@dataclass(frozen=True, eq=False)
class Observation:
    """What m rows of a stream looked like as they came.

    errors : the distance of each row to the reference subspace, (m,)
    drifts : the drift of the window that ends with the row from the reference, (m,)
    error_threshold, drift_threshold : what they may be
    """

    errors: Array
    drifts: Array
    error_threshold: float
    drift_threshold: float

    @property
    def anomalies(self) -> Array:
        """Which rows are odd, (m,)."""
        return np.asarray(self.errors > self.error_threshold)

    @property
    def changes(self) -> Array:
        """After which rows the window is unlike the reference, (m,)."""
        return np.asarray(self.drifts > self.drift_threshold)


@final
@dataclass(frozen=True, eq=False)
class Watch:
    """A reference, and the window that slides along the stream and is held against it."""

    reference: Reference
    window: Window

    def observe(self, X: Array) -> tuple[Watch, Observation]:
        """The watch after the rows X (m, D), and what it saw.

        One row after another goes through the window, so that it does not matter in which pieces
        the stream comes.
        """
        normal, window = self.reference.eigenspace, self.window
        directions = len(normal.variances)
        errors, drifts = np.empty(len(X)), np.empty(len(X))
        for i, x in enumerate(X[:, None]):
            window = window.push(x)
            errors[i] = normal.distances(x)[0]
            drifts[i] = drift(leading(window.eigenspace, directions), normal)
        thresholds = self.reference.error_threshold, self.reference.drift_threshold
        return Watch(self.reference, window), Observation(errors, drifts, *thresholds)
