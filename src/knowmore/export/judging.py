"""What tells a page that a row is of no class of a model, as `knowmore predict` tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

from knowmore._base import Array, Frozen
from knowmore.estimators import GPClassifier
from knowmore.models import FEW, are_of_one_length, newness_of, null_space, separates, threshold

# The fraction of known examples that may be called unknown: what `knowmore predict` begins with.
_RATE: Final = 0.05


@final
@dataclass(frozen=True, eq=False)
class ExportedJudge(Frozen):
    """A row with kernel values k = kappa(x, X), (n,), and this variance is unknown if

        (min_c |Q (m - e_c)|, -|m|, sqrt(variance)) weights > threshold,    m = S'k, (M,)

    A row that has nothing in common with any example counts with m = 0 and the largest variance:
    its k is zero, or kappa(x, x) alone, and kappa(x, x) is less than `least`, if there is one; or
    it is zero, where `empty` says so.

    S : (n, M)
    Q : (M, M)
    weights : (3,)
    """

    S: Array
    Q: Array
    weights: Array
    threshold: float
    largest: float
    least: float | None
    empty: bool


def judge_of(estimator: Any) -> ExportedJudge | None:
    """The judge of a fitted GPClassifier; None of others, and where no threshold tells anything."""
    if type(estimator) is not GPClassifier:
        return None
    gp = estimator.frozen_model()
    if len(gp.examples) < 2:
        return None
    found, silent = newness_of(gp), gp.left_out.unseen().silent
    if not separates(found.left_out, silent, 1 - _RATE):
        return None
    X, own = gp.covariance.X, gp.covariance.own
    several = X.shape[1] >= FEW
    return ExportedJudge(
        gp.solved,
        null_space(gp).projection,
        found.weights,
        threshold(found.left_out, silent, 1 - _RATE),
        float(gp.largest_variance),
        float(own.min()) if several else None,
        several and are_of_one_length(X),
    )
