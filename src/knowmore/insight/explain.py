"""The examples that make a prediction.

k_* = kappa(X_held, x) (n,), P = K~^-1, A = PT (n, M). The score of class c is a sum over the
examples, mu^(c)(x) = sum_i A_ic k_*i (eq. 4, Lütz et al.): its terms are their contributions.

Without example i the coefficients of the others are A_j - P_ji A_i / P_ii (block inversion, as in
leave-one-out), so that

    mu_-i^(c)(x) = mu^(c)(x) - (P k_*)_i A_ic / P_ii

With a bias the inverse is that of the bordered matrix, [[P - vv' / s, v / s], [v' / s, -1 / s]]
(see `Border`), and k_* has a one at its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from sklearn.base import is_classifier

from knowmore.answers import Answer
from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.insight.asking import AnyModel, asked, inputs, machine
from knowmore.models import GP, LSSVM, NPlusOne
from knowmore.models.targets import Units


@final
@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Answer):
    """What each example does to the score of `label` at one x, the strongest first.

    ids, labels, contributions and score_without are (n,). The contributions and `offset` sum to
    `score`; score_without is what it would be had the model never seen that example. They differ:
    where two examples are alike both contribute, and without one of them the other stands in.
    Without the only example nothing is left to score with: score_without is zero.

    offset : what no example contributes: the bias, what a known source says, or the mean of the
        values that a regressor normalises; else zero
    """

    label: Any
    score: float
    offset: float
    ids: Array
    labels: Array
    contributions: Array
    score_without: Array

    def _columns(self) -> dict[str, Array]:
        return {
            "id": self.ids,
            "label": self.labels,
            "contribution": self.contributions,
            "score_without": self.score_without,
        }

    def _summary(self) -> str:
        return f"{self.label!r} has score {self.score:.4g}, from {len(self.ids)} examples"


def explain(model: Any, x: Any, label: Any = None) -> Explanation:
    """The contribution of each example to the score at x, and the score without it; exact.

    Weights by class, and what an `NPlusOneClassifier` takes from its source, stay as they are.

    Parameters
    ----------
    model : a fitted GPClassifier, GPRegressor, LSSVMClassifier or NPlusOneClassifier
    x : one row of features, (d,) or (1, d)
    label : the class whose score is explained; default: the one that is predicted. Of a regressor
        with several targets, the number of the target.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from knowmore import GPClassifier
    >>> clf = GPClassifier(RBF(1.0)).fit([[0.0], [1.0], [2.5]], ["cold", "cold", "hot"])
    >>> explain(clf, [0.5])
    Explanation: 'cold' has score 1.103, from 3 examples
    id  label  contribution  score_without
     1   cold        0.9467         0.7075
     0   cold         0.324         0.9636
     2    hot       -0.1679          1.034
    """
    frozen: AnyModel = asked(model, GP, LSSVM, NPlusOne)
    row, svm = _one_row(model, x), machine(frozen)
    scores = frozen.mean(row)[0]
    known = scores - svm.mean(row)[0]
    c = _column(svm, label, scores if is_classifier(model) else None)
    units, k = svm.targets.units, svm.covariance.cross(row)
    a = svm.coefficients[:, c] * (1.0 if units is None else units.scale[c])
    contributions = a * k[:, 0]
    order = np.argsort(-abs(contributions), kind="stable")
    examples = svm.examples
    if svm.bias and len(examples) == 1:
        without = np.zeros(1)
    elif (rest := svm.targets.rest()) is None:
        without = scores[c] - _felt(svm, k) * a * svm.leave_one_out()[1]
    else:
        without = _normalised_without(svm, k, rest)[:, c]
    labels = examples.labels if examples.labels.ndim == 1 else examples.labels[:, c]
    return Explanation(
        label=svm.targets.names[c].item(),
        score=float(scores[c]),
        offset=float(svm.offsets[c] + known[c] if units is None else units.mean[c]),
        ids=examples.ids[order],
        labels=labels[order],
        contributions=contributions[order],
        score_without=without[order],
    )


def _normalised_without(svm: LSSVM, k: Array, rest: Units) -> Array:
    """The values (n, M) at x without each example, in the units of the others.

    In units that stay the same, mu_-i = k_*' A - (P k_*)_i A_i / P_ii; but the units, and so the A
    of all, are different for each i.
    """
    targets, solved = svm.targets, svm.gp.solved
    whole = np.broadcast_to(k.T @ solved, solved.shape)
    lost = (_felt(svm, k) / svm.inverse_diagonal())[:, None]
    left = targets.mixed(whole, rest) - lost * targets.mixed(solved, rest)
    return np.asarray(rest.mean + rest.scale * left)


def _felt(svm: LSSVM, k: Array) -> Array:
    """The inverse times k_* (n, 1), or with a bias times [k_*; 1]: the rows of examples, (n,)."""
    q, _ = svm.eliminated(k, svm.covariance.solve(k))
    return q[:, 0] if svm.border is None else q[:, 0] + svm.border.v / svm.border.s


def _one_row(model: Any, x: Any) -> Array:
    """x as (1, d)."""
    if hasattr(x, "to_frame") and hasattr(x, "index"):
        # A row of a pandas table, which knows its columns.
        x = x.to_frame().T
    elif np.ndim(x) == 1:
        x = np.asarray(x)[None]
    X = inputs(model, x, "x")
    if len(X) != 1:
        raise InvalidInput(f"x has {len(X)} rows, but one prediction is explained. Give one row.")
    return X


def _column(svm: LSSVM, label: Any, scores: Array | None) -> int:
    """The column of T that is asked about; `scores` (M,) if the largest is the prediction."""
    names = svm.targets.names
    if label is None and len(names) == 1:
        return 0
    if label is None and scores is not None:
        return int(scores.argmax())
    choices = f"Choose one of {', '.join(map(repr, names.tolist()))}."
    if label is None:
        raise InvalidInput(f"The model has {len(names)} targets: which is label? {choices}")
    found = [c for c, name in enumerate(names.tolist()) if np.ndim(label) == 0 and name == label]
    if not found:
        raise InvalidInput(f"label={label!r} is none of those that the model scores. {choices}")
    return found[0]
