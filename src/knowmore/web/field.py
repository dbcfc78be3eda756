"""The field: the answers of a model for every place of a plane, as bytes for a page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from time import perf_counter
from typing import Any, final

import numpy as np

from knowmore._base import Array, Frozen
from knowmore.models import Following
from knowmore.web.plane import FieldGrid
from knowmore.web.snapshot import Snapshot


@final
@dataclass(frozen=True, eq=False, repr=False)
class FieldAnswers(Frozen):
    """Scores (m, M) and variances (m,) of rows X (m, d) by a frozen model.

    variance : None if the kind of model has none
    following : what the next answers start from; None if the model is asked anew each time
    """

    X: Array
    scores: Array
    variance: Array | None
    following: Following | None = None

    @classmethod
    def of(cls, estimator: Any, X: Array, before: Following | None = None) -> FieldAnswers:
        """By the model of a fitted estimator, from earlier answers as far as they last."""
        model = estimator.model_
        if not model.has_gram or model.targets.prior is not None:
            return cls.anew(estimator, X)
        following = Following(model, X) if before is None else before.follow(model)
        return cls(X, following.scores, following.variance, following)

    def follow(self, estimator: Any) -> FieldAnswers:
        """Answers for the same rows by the model that an estimator has now."""
        return FieldAnswers.of(estimator, self.X, self.following)

    @classmethod
    def anew(cls, estimator: Any, X: Array) -> FieldAnswers:
        """By any model, which is asked as if for the first time."""
        scores, variance = np.asarray(estimator.model_.mean(estimator.model_inputs(X))), None
        if hasattr(estimator, "predict_variance"):
            variance = np.asarray(estimator.predict_variance(X))
        return cls(X, scores, variance)


def checked(_: Any, parts: tuple[Snapshot, Array, FieldAnswers, float]) -> dict[str, Any]:
    """How long a fit from scratch takes, and how far its scores are from those that followed.

    All is frozen: it may take its time in another thread.
    """
    now, X, answers, update_ms = parts
    begin = perf_counter()
    fresh = FieldAnswers.anew(now.refitted(), X)
    took = (perf_counter() - begin) * 1e3
    return {
        "number": now.number,
        "update_ms": update_ms,
        "refit_ms": took,
        "difference": float(abs(fresh.scores - answers.scores).max(initial=0)),
    }


def layers(now: Snapshot, answers: FieldAnswers) -> tuple[Array, ...]:
    """The winning class, its score, the variance, what is unknown and the second score; (m,)."""
    names = np.searchsorted(np.array(now.labels), now.estimator.model_.names)
    best = answers.scores.argmax(axis=1)
    score = answers.scores[np.arange(len(best)), best]
    # A single class is compared with its opposite.
    second = -score
    if answers.scores.shape[1] > 1:
        second = np.partition(answers.scores, -2, axis=1)[:, -2]
    variance, unknown = np.zeros(len(best)), np.zeros(len(best), dtype=bool)
    if answers.variance is not None:
        variance = answers.variance
    if now.judge is not None:
        rows = now.estimator.model_inputs(answers.X)
        unknown = now.judge.unknown(now.estimator.model_, rows, answers.scores, variance)
    return (
        np.minimum(names[best], 255).astype(np.uint8),
        score.astype("<f4"),
        variance.astype("<f4"),
        unknown.astype(np.uint8),
        second.astype("<f4"),
    )


def header(now: Snapshot, grid: FieldGrid) -> dict[str, Any]:
    """The header of a field."""
    return {
        "number": now.number,
        "w": grid.w,
        "h": grid.h,
        "bounds": grid.bounds.shown(),
        "classes": now.labels,
        "update_ms": None,
    }


def packed(first: dict[str, Any], *arrays: Array) -> bytes:
    """A header and layers as bytes.

    The length of the header comes first (4 bytes, the lowest first), then the header as JSON, then
    the number of the winning class (1 byte each), its score and the variance (4 bytes each,
    floats), whether the place is unknown (1 byte) and the score of the second class (a float).
    """
    text = json.dumps(first).encode()
    parts = (array.tobytes() for array in arrays)
    return len(text).to_bytes(4, "little") + text + b"".join(parts)
