"""Leaving examples out, in closed form.

P = K~^-1, A = PT (n, M). What a model without the examples of g says of them (Rasmussen and
Williams, section 5.4.2, for one; block inversion gives the same for many):

    mean      T_g - P_gg^-1 A_g
    variance  diag(P_gg^-1), the noise included

For g = {i} that is t_i - A_i / P_ii and 1 / P_ii. With a bias P is the leading block of the inverse
of the bordered matrix, and the same holds (Cawley 2006).

The mean is a difference. Where the others say nothing of an example, what is left is rounding,
likely with the sign of the example's own target. So this is the one place that decides what is
rounding (`bound`), and treats it as such: no opinion (`silenced`), or a tie of classes (`tied`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from knowmore.answers import Answer
from knowmore.arrays import Array
from knowmore.linalg import Factor
from knowmore.models.covariance import Covariance


@final
@dataclass(frozen=True, eq=False, repr=False)
class LeftOut(Answer):
    """What the model says of each example when that example, or its group, is left out.

    scores (n, M), variance (n,) with the noise included, in the order of ids and labels; a
    regressor with several targets has a variance for each, (n, M). silent (n,): whether the others
    say nothing of the example, as when none is near: its scores are then those of a row infinitely
    far from all (zero, or the offsets that a bias makes of the others' labels), and `predicted` is
    what is predicted there. That is no opinion of its label, for or against. Classes whose scores
    differ by no more than rounding have the same; of these the first is predicted. `names` (M,) are
    the columns of scores: the classes, or the numbers of a regressor's targets.
    """

    ids: Array
    labels: Array
    scores: Array
    variance: Array
    predicted: Array
    silent: Array
    names: Array

    def to_pandas(self) -> Any:
        """A pandas DataFrame, one row for each example, with the scores of all classes."""
        scores = {
            f"score {name}": column for name, column in zip(self.names, self.scores.T, strict=True)
        }
        return super().to_pandas().assign(silent=self.silent, **scores)

    def _columns(self) -> dict[str, Array]:
        said = {**_by_column("label", self.labels), **_by_column("predicted", self.predicted)}
        return {"id": self.ids, **said, **_by_column("variance", self.variance)}

    def _summary(self) -> str:
        n, silent = len(self.ids), int(self.silent.sum())
        nothing = f"; of {silent} nothing is said" if silent else ""
        # Targets of a regressor have numbers for names, and are no whole numbers themselves.
        if self.labels.ndim == 1 and self.labels.dtype.kind == self.names.dtype.kind:
            right = int(((self.predicted == self.labels) & ~self.silent).sum())
            return f"{right} of {n} examples are predicted as labelled by the others{nothing}"
        error = np.sqrt(np.mean((self.predicted - self.labels) ** 2))
        return (
            f"{n} examples are predicted by the others with an error of {error:.4g} (rms){nothing}"
        )


def _by_column(name: str, values: Array) -> dict[str, Array]:
    """Values (n,) as one column, (n, q) as q."""
    if values.ndim == 1:
        return {name: values}
    return {f"{name} {i}": column for i, column in enumerate(values.T)}


class Verdicts(NamedTuple):
    """The scores (n, M), variances (n,) and silences (n,) of `LeftOut`."""

    scores: Array
    variance: Array
    silent: Array


class Left(NamedTuple):
    """Means (n, M) and variances (n,) as the closed form gives them, and the diagonal of P (n,)."""

    mean: Array
    variance: Array
    P_diagonal: Array


def leave_out(P: Array | Callable[[Array], Array], A: Array, T: Array, codes: Array) -> Left:
    """The mean and variance of each example by all that are not of its group, `codes` (n,).

    P : the diagonal of the inverse, (n,), if each example is its own group; else a function that
        gives the inverse's rows and columns g (k,), (k, k)
    """
    if not callable(P):
        return Left(T - A / P[:, None], 1 / P, P)
    left = Left(np.empty_like(T), np.empty(len(T)), np.empty(len(T)))
    for code in range(int(codes.max(initial=-1)) + 1):
        g = np.flatnonzero(codes == code)
        block = P(g)
        covariance = np.linalg.inv(block)
        left.mean[g] = T[g] - covariance @ A[g]
        left.variance[g] = np.diagonal(covariance)
        left.P_diagonal[g] = np.diagonal(block)
    return left


def inverse_block(factor: Factor, rows: Array) -> Array:
    """Rows and columns `rows` (k,) of P, (k, k)."""
    E = np.zeros((factor.size, len(rows)))
    E[rows, np.arange(len(rows))] = 1
    H = factor.half_solve(E).astype(float)
    return np.asarray(H.T @ H)


# -- what is rounding ----------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class Scale:
    """How large K~ is, and how precisely it is kept.

    diagonal, noise : of K~ and its part that is noise, (n,)
    eps : the rounding of its factor
    """

    diagonal: Array
    noise: Array
    eps: float

    @classmethod
    def of(cls, covariance: Covariance) -> Scale:
        """That of the covariance of examples."""
        noise = covariance.noise / covariance.weights
        return cls(covariance.diagonal, noise, float(np.finfo(covariance.factor.dtype).eps))

    def condition(self, P_diagonal: Array) -> float:
        """A bound of |D^1/2 P D^1/2|, D = diag K~: by its trace, or by the noise, which K~ exceeds.

        The condition of K~ that counts, whatever the units of its rows.
        """
        with np.errstate(divide="ignore", over="ignore"):
            by_noise = float((self.diagonal / self.noise).max())
        return min(float(self.diagonal @ P_diagonal), by_noise)


def rounding(left: Left, A: Array, T: Array, scale: Scale) -> Array:
    """How far the means may be from those of a model that never saw the examples, (n, M)."""
    size = np.linalg.norm(np.sqrt(scale.diagonal)[:, None] * A, axis=0)
    condition = scale.condition(left.P_diagonal)
    return bound(T, left.mean, left.variance[:, None], condition, size, len(T), scale.eps)


def bound(
    t: Array,
    mean: Array,
    variance: Array,
    condition: Array | float,
    size: Array,
    n: int,
    eps: float = float(np.finfo(float).eps),
) -> Array:
    """The bound of the rounding of each mean, from arrays that broadcast.

    condition : |D^1/2 P D^1/2| for the diagonal D of K~, or more
    size : |D^1/2 a| for the coefficients a that the targets t were solved with
    n : the rows of K~

    What is computed is exact for some K~ + E. A factor's E is about eps sqrt(K~_jj K~_kk) in each
    entry (Higham, Accuracy and Stability, theorem 10.3), so that |x'Ey| is about
    eps |D^1/2 x| |D^1/2 y|. E moves the mean of example i by -x'Ea, where x = P_i / P_ii: one at i,
    and minus the weights of the others elsewhere. Now x'K~x = 1 / P_ii is the variance v_i, and

        |D^1/2 x|^2 <= |D^1/2 P D^1/2| x'K~x.

    Besides, t_i, the difference from it, and their difference are rounded. Sums of n roundings grow
    like sqrt(n). Two of these bound all that was measured: a factor's errors are an eighth of this,
    those of an inverse after edits two thirds.
    """
    # With a bias a variance is a difference, of which rounding may leave less than nothing.
    moved = np.sqrt(condition) * np.sqrt(np.maximum(variance, 0)) * size
    return np.asarray(2 * np.sqrt(n) * eps * (abs(t) + abs(t - mean) + moved))


def silenced(left: Left, error: Array, prior: Array | float) -> tuple[Array, Array]:
    """The means (n, M), the prior where they are no more than rounding from it; and where, (n,).

    error (n, M) : the bound of the rounding
    prior : the prediction for a row infinitely far from all but the example, (n, M) or one number

    >>> left = Left(np.array([[1e-17, -1e-17], [0.3, -0.3]]), np.ones(2), np.ones(2))
    >>> silenced(left, np.full((2, 2), 1e-15), 0.0)
    (array([[ 0. ,  0. ],
           [ 0.3, -0.3]]), array([ True, False]))
    """
    silent = np.all(abs(left.mean - prior) <= error, axis=1)
    return np.where(silent[:, None], prior, left.mean), silent


def tied(scores: Array, error: Array) -> Array:
    """Scores (n, M) of which those that are as good as the best of their row are the best.

    Whatever rounding makes of a tie may follow the example's own label.
    """
    best = scores.argmax(axis=1)[:, None]
    top, slack = (np.take_along_axis(values, best, axis=1) for values in (scores, error))
    return np.where(scores >= top - slack - error, top, scores)
