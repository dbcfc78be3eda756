"""What a new class was built from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from knowmore.answers import Answer
from knowmore.arrays import Array
from knowmore.insight.asking import asked
from knowmore.models import NPlusOne


@final
@dataclass(frozen=True, eq=False, repr=False)
class Transfer(Answer):
    """How much of each known class went into the new one, most first.

    new : the new class
    classes, weights : the known classes and beta, (N,) each
    loss, gap : of beta on leave-one-out scores, and at most how far that is above the least loss
    """

    new: Any
    classes: Array
    weights: Array
    loss: float
    gap: float

    def _columns(self) -> dict[str, Array]:
        return {"class": self.classes, "weight": self.weights}

    def _summary(self) -> str:
        length = float(np.linalg.norm(self.weights))
        return f"{self.new!r} from {len(self.classes)} known classes, |beta| = {length:.2g}"


def transfer(model: Any) -> Transfer:
    """Which known classes a fitted NPlusOneClassifier built its new class from.

    >>> from knowmore import NPlusOneClassifier, Scores
    >>> known = Scores(["cat", "dog"], lambda X: np.column_stack([X[:, 0], -X[:, 0]]))
    >>> X = [[1.0, 0.0], [-1.0, 0.0], [0.8, 2.0], [0.9, 2.5]]
    >>> clf = NPlusOneClassifier(known, C=0.1).fit(X, ["cat", "dog", "lynx", "lynx"])
    >>> found = transfer(clf)
    >>> found.new, found.classes.tolist(), found.weights.round(2)
    ('lynx', ['cat', 'dog'], array([1., 0.]))
    """
    frozen: NPlusOne = asked(model, NPlusOne)
    names, known = frozen.plain.targets.names, np.array(frozen.coding.known)
    (new,) = np.setdiff1d(names, known).tolist()
    found = frozen.minimum
    order = np.argsort(-found.beta, kind="stable")
    return Transfer(new, known[order], found.beta[order], found.value, found.gap)
