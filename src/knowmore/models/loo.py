"""Leaving examples out, in closed form.

P = K~^-1, A = PT (n, M). What a model without the examples of g says of them (Rasmussen and
Williams, section 5.4.2, for one; block inversion gives the same for many):

    mean      T_g - P_gg^-1 A_g
    variance  diag(P_gg^-1), the noise included

For g = {i} that is t_i - A_i / P_ii and 1 / P_ii. With a bias P is the leading block of the inverse
of the bordered matrix, and the same holds (Cawley 2006).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import numpy.typing as npt

from knowmore.answers import Answer
from knowmore.linalg import Factor

Array = npt.NDArray[Any]


@final
@dataclass(frozen=True, eq=False, repr=False)
class LeftOut(Answer):
    """What the model says of each example when that example, or its group, is left out.

    scores (n, M), variance (n,) with the noise included, in the order of ids and labels; `names`
    (M,) are the columns of scores: the classes, or the numbers of a regressor's targets.
    """

    ids: Array
    labels: Array
    scores: Array
    variance: Array
    predicted: Array
    names: Array

    def to_pandas(self) -> Any:
        """A pandas DataFrame, one row for each example, with the scores of all classes."""
        scores = {
            f"score {name}": column for name, column in zip(self.names, self.scores.T, strict=True)
        }
        return super().to_pandas().assign(**scores)

    def _columns(self) -> dict[str, Array]:
        said = {**_by_column("label", self.labels), **_by_column("predicted", self.predicted)}
        return {"id": self.ids, **said, "variance": self.variance}

    def _summary(self) -> str:
        n = len(self.ids)
        # Targets of a regressor have numbers for names, and are no whole numbers themselves.
        if self.labels.ndim == 1 and self.labels.dtype.kind == self.names.dtype.kind:
            right = int((self.predicted == self.labels).sum())
            return f"{right} of {n} examples are predicted as labelled by the others"
        error = np.sqrt(np.mean((self.predicted - self.labels) ** 2))
        return f"{n} examples are predicted by the others with an error of {error:.4g} (rms)"


def _by_column(name: str, values: Array) -> dict[str, Array]:
    """Values (n,) as one column, (n, q) as q."""
    if values.ndim == 1:
        return {name: values}
    return {f"{name} {i}": column for i, column in enumerate(values.T)}


def leave_one_out(P_diagonal: Array, A: Array, T: Array) -> tuple[Array, Array]:
    """Means (n, M) and variances (n,) of each example by all the others."""
    variance = 1 / P_diagonal.astype(float)
    return T - A * variance[:, None], variance


def leave_group_out(
    P_block: Callable[[Array], Array], A: Array, T: Array, groups: Array
) -> tuple[Array, Array]:
    """Means (n, M) and variances (n,) of each example by all that are not of its group."""
    mean, variance = np.empty_like(T), np.empty(len(T))
    names, codes = np.unique(groups, return_inverse=True)
    for code in range(len(names)):
        g = np.flatnonzero(codes == code)
        covariance = np.linalg.inv(P_block(g))
        mean[g] = T[g] - covariance @ A[g]
        variance[g] = np.diagonal(covariance)
    return mean, variance


def inverse_block(factor: Factor, rows: Array) -> Array:
    """Rows and columns `rows` (k,) of P, (k, k)."""
    E = np.zeros((factor.size, len(rows)))
    E[rows, np.arange(len(rows))] = 1
    H = factor.half_solve(E).astype(float)
    return np.asarray(H.T @ H)
