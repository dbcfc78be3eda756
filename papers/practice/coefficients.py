"""Which rows to label by the coefficients that they would get.

The criteria of Freytag, Rodner, Bodesheim and Denzler, Labeling Examples That Matter (2013). They
save no labels over rows drawn at random, so `knowmore.insight.suggest` lacks them.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from knowmore import GPClassifier
from papers.arrays import Array

CRITERIA = ("weight", "impact")


def suggested(clf: GPClassifier, X: Array, n: int, criterion: str) -> Array:
    """Numbers of the n rows of X (u, D) to label, (n,), picked one after the other.

    Each pick counts as an example with its most plausible label from then on. A row with the
    features of a pick waits until no others are left.

    criterion : "weight", mean |t - mu| / sigma_*^2, the coefficient of the row under its most
        plausible label t; or "impact", the same times 1 + |K~^-1 k_*|_1, the change of all
        coefficients
    """
    # The kernel and the noise stay as they are while picks are added.
    fixed = {"kernel": clf.kernel_, "noise": clf.model_.covariance.noise}
    examples = clf.model_.examples
    held = clone(clf).set_params(**fixed)
    held.fit(examples.X, examples.labels, sample_weight=examples.weights)
    picked, twins = np.zeros((2, len(X)), dtype=bool)
    rows: list[int] = []
    while len(rows) < n:
        values = _values(held, X, criterion)
        values[picked if twins.all() else twins] = -np.inf
        row = int(values.argmax())
        rows.append(row)
        picked[row] = True
        twins |= (X[row] == X).all(axis=1)
        if len(rows) < n:
            held.add(X[[row]], held.predict(X[[row]]))
    return np.array(rows)


def _values(clf: GPClassifier, X: Array, criterion: str) -> Array:
    """The criterion for each row of X (u, D), (u,); larger is better."""
    model = clf.model_
    mean = model.mean(X)
    t = np.where(np.arange(mean.shape[1]) == mean.argmax(axis=1)[:, None], 1.0, -1.0)
    weight = abs(t - mean).mean(axis=1) / model.variance(X)
    if criterion == "weight":
        return np.asarray(weight)
    B = model.covariance.solve(model.covariance.cross(X))
    return np.asarray(weight * (1 + abs(B).sum(axis=0)))
