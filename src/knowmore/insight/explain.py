"""Explanations: a prediction by its examples or features, a new class by its sources.

k_* = kappa(X_held, x) (n,), P = K~^-1, A = PT (n, M). The score of class c is a sum over the
examples, mu^(c)(x) = sum_i A_ic k_*i (eq. 4, Lütz et al.): its terms are their contributions.

Without example i the coefficients of the others are A_j - P_ji A_i / P_ii (block inversion, as in
leave-one-out), so that

    mu_-i^(c)(x) = mu^(c)(x) - (P k_*)_i A_ic / P_ii

With a bias the inverse is that of the bordered matrix, [[P - vv' / s, v / s], [v' / s, -1 / s]]
(see `Border`), and k_* has a one at its end.

The score of a forest is the mean of its trees', and that of a tree is such a sum in one leaf.

The score of a linear model is a sum over the features j, mu^(c)(x) = sum_j W_jc (x_j - m_j) + tbar.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from sklearn.base import is_classifier

from knowmore._base import Array, TableAnswer, a_type, choice, shape_of, some
from knowmore.errors import InvalidInput
from knowmore.examples import array_of_ids
from knowmore.insight.asking import EXPLAINABLE, asked, feature_names, inputs, last_step, processes
from knowmore.linalg import blocks, eliminated
from knowmore.models import KernelModel, LinearModel, columns_in, expansion
from knowmore.transfer import NPlusOneClassifier


@final
@dataclass(frozen=True, eq=False, repr=False)
class Explanation(TableAnswer):
    """Contributions of the examples to the score of `label` at one x, the strongest first.

    ids, labels, contributions and score_without are (n,), of all examples, or in a forest of those
    in the leaves that x falls into. The contributions and `offset` sum to
    `score`; score_without is what it would be had the model never seen that example. They differ:
    of two similar examples both contribute, and without one of them the other takes its place.
    Without the only example there is nothing to score with: score_without is zero.

    offset : what no example contributes: the bias, a known source's score, or the mean of the
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
        columns = self.ids, self.labels, self.contributions, self.score_without
        return dict(zip(("id", "label", "contribution", "score_without"), columns, strict=True))

    def _summary(self) -> str:
        return f"{self.label!r} has score {self.score:.4g}, from {len(self.ids)} examples"


@final
@dataclass(frozen=True, eq=False, repr=False)
class FeatureExplanation(TableAnswer):
    """Contributions of the features to the score of `label` at one x, the strongest first.

    features : (D,), their names in the table that was learnt, or their numbers
    values, means : (D,), at x and of all rows learnt; without an intercept means are zero
    contributions : (D,), the feature's weight times value - mean. They and `offset` sum to `score`
    offset : the score at the mean: that of a model that has no features; zero without an intercept
    """

    label: Any
    score: float
    offset: float
    features: Array
    values: Array
    means: Array
    contributions: Array

    def _columns(self) -> dict[str, Array]:
        columns = self.features, self.values, self.means, self.contributions
        return dict(zip(("feature", "value", "mean", "contribution"), columns, strict=True))

    def _summary(self) -> str:
        return f"{self.label!r} has score {self.score:.4g}, from {len(self.features)} features"


def explain(
    model: Any, x: Any, label: Any = None, *, by: str | None = None
) -> Explanation | FeatureExplanation:
    """The contribution of each example to the score at x, and the score without it; exact.

    For a linear model, the contribution of each feature. Weights by class, and what an
    `NPlusOneClassifier` takes from its source, are kept fixed. The score of a forest is the mean of
    one leaf in each tree: only the examples of these contribute, and trees keep their shape.

    Parameters
    ----------
    model : a fitted GPClassifier, GPRegressor, LSSVMClassifier, NPlusOneClassifier,
        ForestGPClassifier or ForestGPRegressor; by features, a LinearGPClassifier or
        LinearGPRegressor
    x : one row of features, (d,) or (1, d)
    label : the class whose score is explained; default: the predicted one. For a regressor with
        several targets, the number of the target.
    by : "examples" or "features"; default: what the model can be explained by

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
    svm = asked(model, EXPLAINABLE)
    parts = "examples" if svm.keeps_rows else "features"
    if by is not None and choice("by", by, ("examples", "features")) != parts:
        more = " To see rows like x, ask a GPClassifier of some." if parts == "features" else ""
        raise InvalidInput(
            f"by={by!r}, but the score of {a_type(last_step(model))} is a sum over {parts}. Ask "
            f"by={parts!r}.{more}"
        )
    row = one_row(model, x)
    if parts == "features":
        return _by_features(model, svm, row, label)
    return _by_examples(model, svm, row, label)


def _by_examples(estimator: Any, svm: Any, row: Array, label: Any) -> Explanation:
    """Contributions of the examples to the score of one row (1, D)."""
    scores = svm.mean(row)[0]
    c = column_of(estimator, svm.names, scores, label)
    answering = [gp for ((gp, _),) in processes(svm, row)]
    terms = [_terms(gp, row, int(columns_in(gp, svm.names[[c]])[0])) for gp in answering]
    offsets, contributions, lost = zip(*terms, strict=True)
    # An example may contribute in several trees.
    serials = np.concatenate([gp.examples.serials for gp in answering])
    _, first, at = np.unique(serials, return_index=True, return_inverse=True)
    total, loss = (
        np.bincount(at, np.concatenate(each)) / len(answering) for each in (contributions, lost)
    )
    order = np.argsort(-abs(total), kind="stable")
    names = [name for gp in answering for name in gp.examples.names]
    labels = np.concatenate([gp.examples.labels for gp in answering])[first[order]]
    return Explanation(
        label=svm.names[c].item(),
        score=float(scores[c]),
        offset=float(np.mean(offsets)),
        ids=array_of_ids([names[i] for i in first[order]]),
        labels=labels if labels.ndim == 1 else labels[:, c],
        contributions=total[order],
        score_without=scores[c] - loss[order],
    )


def _terms(gp: KernelModel, row: Array, c: int) -> tuple[float, Array, Array]:
    """The offset of the score in column c, the contributions (n,), and the losses without each."""
    scores, units, k = gp.mean(row)[0], gp.targets.units, gp.covariance.cross(row)
    A, offsets = expansion(gp)
    offset = offsets[c] if units is None else units.mean[c]
    if gp.targets.prior is not None:
        # What the prior mean adds.
        offset += scores[c] - (gp.covariance.expansion(row, A) + offsets)[0, c]
    a = A[:, c] * (1.0 if units is None else units.scale[c])
    return float(offset), a * k[:, 0], scores[c] - _scores_without(gp, k, scores)[:, c]


def column_of(model: Any, columns: Array, scores: Array, label: Any) -> int:
    """The column of the scores (M,) to explain."""
    if label is None and (len(scores) == 1 or is_classifier(model)):
        return int(scores.argmax())
    names = columns.tolist()
    if len(shape_of("label", label)) or label not in names:
        raise InvalidInput(f"label={label!r} is not scored. Choose one of {some(names)}.")
    return int(names.index(label))


def _by_features(estimator: Any, model: LinearModel, row: Any, label: Any) -> FeatureExplanation:
    """Contributions of the features to the score of one row (1, D)."""
    scores, (x,) = model.mean(row)[0], np.vstack([*blocks(row)])
    c, (mean, offsets) = column_of(estimator, model.names, scores, label), model.moments.means
    contributions = model.weights[:, c] * (x - mean)
    order = np.argsort(-abs(contributions), kind="stable")
    table = feature_names(estimator, len(x)), x, mean, contributions
    label, columns = model.names[c].item(), (column[order] for column in table)
    return FeatureExplanation(label, float(scores[c]), float(offsets[c]), *columns)


def weights_of(svm: KernelModel, k: Array) -> Array:
    """The weights P k_* (n, m) that the targets have in the scores of rows, for k_* (n, m)."""
    q, _ = eliminated(svm.border, k, svm.covariance.solve(k))
    return q if svm.border is None else q + svm.border.v[:, None] / svm.border.s


def _scores_without(svm: KernelModel, k: Array, scores: Array) -> Array:
    """The scores (n, M) at x without each example, for k_* (n, 1) and the scores (M,) with all.

    In units that stay the same, mu_-i = k_*' A - (P k_*)_i A_i / P_ii; but the units of normalised
    values, and so the A of all, are different ones without each i.
    """
    if svm.bias and len(svm.examples) == 1:
        return np.zeros((1, len(scores)))
    lost = weights_of(svm, k) / svm.left_out.inverse_diagonal()[:, None]
    targets, rest = svm.targets, svm.targets.rest()
    if rest is None:
        return np.asarray(scores - lost * svm.coefficients)
    solved = svm.solved
    mean = targets.mixed(np.broadcast_to(k.T @ solved, solved.shape), rest)
    return np.asarray(rest.mean + rest.scale * (mean - lost * targets.mixed(solved, rest)))


def one_row(model: Any, x: Any) -> Array:
    """x as (1, d)."""
    if hasattr(x, "to_frame") and hasattr(x, "index"):
        # A row of a pandas table, which knows its columns.
        x = x.to_frame().T
    elif len(shape_of("x", x)) == 1:
        x = np.asarray(x)[None]
    X = inputs(model, x, "x")
    if X.shape[0] != 1:
        raise InvalidInput(
            f"x has {X.shape[0]} rows, but one prediction is explained. Give one row."
        )
    return X


# -- a new class ---------------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False, repr=False)
class Transfer(TableAnswer):
    """How much of each known class went into the new one, most first.

    new : the new class
    classes, weights : the known classes and beta, (N,) each
    loss, gap : of beta on leave-one-out scores, and a bound on how far that is above the minimum
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
    >>> clf = NPlusOneClassifier(known, C=0.1, scaled=False).fit(X, ["cat", "dog", "lynx", "lynx"])
    >>> found = transfer(clf)
    >>> found.new, found.classes.tolist(), found.weights.round(2)
    ('lynx', ['cat', 'dog'], array([1., 0.]))
    """
    frozen: Any = asked(model, (NPlusOneClassifier,))
    known, found = np.array(frozen.coding.known), frozen.minimum
    (new,) = np.setdiff1d(frozen.targets.names, known).tolist()
    order = np.argsort(-found.beta, kind="stable")
    return Transfer(new, known[order], found.beta[order], found.value, found.gap)
