"""Criteria of active learning that `knowmore.insight.suggest` had and no longer has.

On digits and on embeddings all of them take more labels than "reduction" and "margin"; on
embeddings all but "emoc" take more than rows drawn at random.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, softmax
from sklearn.base import clone

from knowmore import GPClassifier
from knowmore.models import KernelModel, joint
from papers.arrays import Array

CRITERIA = ("uncertainty", "weight", "impact", "emoc")


def suggested(clf: GPClassifier, X: Array, n: int, criterion: str) -> Array:
    """Numbers of the n rows of X (u, D) to label, (n,), picked one after the other.

    Each pick counts as an example with its most plausible label from then on. A row with the
    features of a pick waits until no others are left.

    criterion : "uncertainty", min_c |mu^(c)| / sigma_*, the smallest first (Kapoor et al. 2007);
        "weight", mean |t - mu| / sigma_*^2, the coefficient of the row under its most plausible
        label t; "impact", the same times 1 + |K~^-1 k_*|_1, the change of all coefficients
        (Freytag, Rodner, Bodesheim and Denzler 2013); or "emoc", the expected change of the scores
        in the pool (Freytag, Rodner and Denzler 2014): mean |t - mu| expected under the present
        probabilities, over sigma_*^2, times the mean absolute covariance with the pool
    """
    # The kernel and the noise stay as they are while picks are added.
    fixed = {"kernel": clf.kernel_, "noise": clf.model_.covariance.noise}
    examples = clf.model_.examples
    held = clone(clf).set_params(**fixed)
    held.fit(examples.X, examples.labels, sample_weight=examples.weights)
    picked, twins = np.zeros((2, len(X)), dtype=bool)
    rows: list[int] = []
    while len(rows) < n:
        values = _values(held.model_, X, criterion)
        values[picked if twins.all() else twins] = -np.inf
        row = int(values.argmax())
        rows.append(row)
        picked[row] = True
        twins |= (X[row] == X).all(axis=1)
        if len(rows) < n:
            held.add(X[[row]], held.predict(X[[row]]))
    return np.array(rows)


def _values(model: KernelModel, X: Array, criterion: str) -> Array:
    """The criterion for each row of X (u, D), (u,); larger is better."""
    mean, variance = model.mean(X), model.variance(X)
    if criterion == "uncertainty":
        return np.asarray(-abs(mean).min(axis=1) / np.sqrt(variance))
    if criterion == "emoc":
        return _expected_change(model, X, mean, variance)
    t = np.where(np.arange(mean.shape[1]) == mean.argmax(axis=1)[:, None], 1.0, -1.0)
    weight = abs(t - mean).mean(axis=1) / variance
    if criterion == "weight":
        return np.asarray(weight)
    B = model.covariance.solve(model.covariance.cross(X))
    return np.asarray(weight * (1 + abs(B).sum(axis=0)))


def _expected_change(model: KernelModel, X: Array, mean: Array, variance: Array) -> Array:
    """The mean change of the scores of X (u, D), expected over the labels of each row, (u,).

    The label t of a row x_* changes the score of x_j by (t - mu) / sigma_*^2 c(x_*, x_j); c is the
    posterior covariance.
    """
    # Mean |t - mu| for each class that the label may be, (u, M).
    apart, near = abs(1 + mean), abs(1 - mean)
    surprise = (apart.sum(axis=1, keepdims=True) - apart + near) / mean.shape[1]
    # The chances that the targets of the classes are above zero, as the paper has it.
    chances = softmax(log_ndtr(mean / np.sqrt(variance)[:, None]), axis=1)
    expected = np.einsum("ij,ij->i", chances, surprise)
    C = joint(model, X) - model.covariance.noise * np.eye(len(X))
    return np.asarray(expected / variance * abs(C).mean(axis=1))
