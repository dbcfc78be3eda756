"""Leaving examples out, in closed form.

P = K~^-1, A = PT (n, M). The prediction for the examples of a group g by a model without them
(Rasmussen and Williams, section 5.4.2, for one; block inversion gives the same for many):

    mean      T_g - P_gg^-1 A_g
    variance  diag(P_gg^-1), the noise included

For g = {i} that is t_i - A_i / P_ii and 1 / P_ii. With a bias P is the leading block of the inverse
of the bordered matrix, and the same holds (Cawley 2006).

The mean is a difference. If the others carry no information on an example, only rounding is left,
likely with the sign of the example's own target. This module alone decides what is rounding
(`bound`), and treats it as such: the prior is predicted (`silenced`), or classes tie (`tied`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from knowmore.answers import Answer
from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel, corner
from knowmore.linalg import Border
from knowmore.linalg.products import eigh, product
from knowmore.models.weights import Weighting

# The noise as a multiple of the mean kappa(x, x): two values for each power of ten.
_NOISES = 10.0 ** np.arange(5, -5.5, -0.5)
_EPS = float(np.finfo(float).eps)


@final
@dataclass(frozen=True, eq=False, repr=False)
class LeftOut(Answer):
    """Predictions for each example by the model without that example, or without its group.

    scores (n, M), variance (n,) with the noise included, in the order of ids and labels; a
    regressor with several targets has a variance for each, (n, M). silent (n,): whether the others
    carry no information on the example beyond rounding, as when none is near: its scores and
    `predicted` are then those of a row infinitely far from all (zero, or the offsets of a bias),
    which is evidence neither for its label nor against it. Classes whose scores differ by no more
    than rounding have the same; of these the first is predicted. `names` (M,) are the columns of
    scores: the classes, or the numbers of a regressor's targets.
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


class LooScores(NamedTuple):
    """The scores (n, M), variance (n,) and silent (n,) of `LeftOut`."""

    scores: Array
    variance: Array
    silent: Array


class LooMoments(NamedTuple):
    """The closed form, all (n, M) but the variance (n,).

    error : a bound of the rounding of the mean
    prior : the prediction for a row infinitely far from all but the example
    """

    mean: Array
    variance: Array
    error: Array
    prior: Array


class Scale(NamedTuple):
    """How large K~ is, and how precisely it is kept.

    diagonal, noise : of K~ and its part that is noise, (n,)
    eps : the rounding of its factor
    """

    diagonal: Array
    noise: Array
    eps: float


def leave_out(
    P: Array | Callable[[Array], Array],
    A: Array,
    T: Array,
    codes: Array,
    scale: Scale,
    border: Border | None,
    offsets: Array,
) -> LooMoments:
    """Each example by all that are not of its group, `codes` (n,).

    P : the diagonal of the inverse, (n,), if each example is its own group; else a function that
        gives the inverse's rows and columns g (k,), (k, k)
    border, offsets : those of a bias; P and A are then those of the bordered matrix
    """
    if callable(P):
        mean, variance, diagonal = np.empty_like(T), np.empty(len(T)), np.empty(len(T))
        for code in range(int(codes.max(initial=-1)) + 1):
            g = np.flatnonzero(codes == code)
            block = P(g)
            covariance = np.linalg.inv(block)
            mean[g] = T[g] - covariance @ A[g]
            variance[g], diagonal[g] = np.diagonal(covariance), np.diagonal(block)
    else:
        mean, variance, diagonal = T - A / P[:, None], 1 / P, P
    # |D^1/2 P D^1/2|, D = diag K~, by its trace, or by the noise, which K~ exceeds: the condition
    # of K~ that counts, whatever the units of its rows.
    with np.errstate(divide="ignore", over="ignore"):
        by_noise = float((scale.diagonal / scale.noise).max())
    condition = min(float(scale.diagonal @ diagonal), by_noise)
    size = np.linalg.norm(np.sqrt(scale.diagonal)[:, None] * A, axis=0)
    error = bound(T, mean, variance[:, None], condition, size, len(T), scale.eps)
    prior = np.zeros_like(T) if border is None else border.without(offsets, T - mean, codes)
    return LooMoments(mean, variance, error, prior)


# -- what is rounding ----------------------------------------------------------------------------


def bound(
    t: Array,
    mean: Array,
    variance: Array,
    condition: Array | float,
    size: Array,
    n: int,
    eps: float = _EPS,
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


def silenced(left: LooMoments) -> tuple[Array, Array]:
    """The means (n, M), the prior where they are no more than rounding from it; and where, (n,).

    >>> mean, error = np.array([[1e-17, -1e-17], [0.3, -0.3]]), np.full((2, 2), 1e-15)
    >>> silenced(LooMoments(mean, np.ones(2), error, np.zeros((2, 2))))
    (array([[ 0. ,  0. ],
           [ 0.3, -0.3]]), array([ True, False]))
    """
    silent = np.all(abs(left.mean - left.prior) <= left.error, axis=1)
    if not silent.any():
        return left.mean, silent
    return np.where(silent[:, None], left.prior, left.mean), silent


def tied(scores: Array, error: Array) -> Array:
    """Scores (n, M), where those within rounding of the best of their row are set to the best.

    Otherwise rounding would break the tie, perhaps in favour of the example's own label.
    """
    best = scores.argmax(axis=1)[:, None]
    top, slack = (np.take_along_axis(values, best, axis=1) for values in (scores, error))
    return np.where(scores >= top - slack - error, top, scores)


# -- the noise with the best predictions ---------------------------------------------------------


def noise_by_loo(
    name: str, kernel: AnyKernel, examples: Examples, weighting: Weighting, *, bias: bool
) -> float:
    """The noise, 1 / C of a least-squares SVM, with the best leave-one-out predictions.

    name : the parameter that was given as "loo"
    """
    n = len(examples)
    if n < 2:
        raise InvalidInput(
            f"{name}='loo' leaves each example out in turn, but n_samples=1. Give a number."
        )
    # A twin would answer for an example that is left out.
    X, row = np.unique(examples.X, axis=0, return_inverse=True)
    votes = np.zeros((len(X), len(np.unique(examples.labels))))
    codes = np.unique(examples.labels, return_inverse=True)[1]
    np.add.at(votes, (row.reshape(-1), codes), weighting(examples))
    K = corner(kernel, X)
    if not (np.isfinite(K.sum()) and np.trace(K) > 0):
        raise InvalidInput(
            f"{name}='loo' needs finite kernel values with a positive diagonal, but {kernel!r} "
            f"gave others. Scale the features, or give a number."
        )
    noise = best_noise(K, votes, bias=bias)
    if noise is None and n > 2 and votes.shape[1] > 1:
        raise InvalidInput(
            f"{name}='loo' predicts each example from the others, but under the kernel {kernel!r} "
            f"none of these {n} says anything of another. Either it is too narrow: widen it, or "
            f"scale the features; or all examples are the same to it. Or give a number."
        )
    # With a single class, or two examples, any noise is as good as another.
    return float(np.diagonal(K).mean()) if noise is None else noise


def best_noise(K: Array, votes: Array, *, bias: bool) -> float | None:
    """The noise whose leave-one-out predictions are wrong for the least weight of examples.

    K : (n, n) without noise, of rows that all differ
    votes : (n, M), the weight of the examples of each class at each row

    A row is left out with all its examples. Ties go to the least squared error, then to the largest
    noise. Silence about a row counts as wrong, and so does a tie of classes: which of them is named
    first says nothing. None if the rows are silent about each other whatever the noise.

    Examples at one row count like one of their weight w and their mean target. One
    eigendecomposition gives the inverse for every noise: with W = diag(w)^1/2 and
    W K W = U diag(l) U',

        (K + sigma^2 diag(1 / w))^-1 = W U diag(1 / (l + sigma^2)) U' W.

    >>> x = np.arange(20.0)
    >>> K = np.exp(-np.abs(np.subtract.outer(x, x)) / 10)
    >>> t = np.isin(x, [3, 10, 11, 12, 13, 15, 16, 17, 18, 19])
    >>> round(best_noise(K, np.column_stack([~t, t]).astype(float), bias=True), 3)
    0.316
    """
    if len(K) < 2:
        return None
    noises = _NOISES * float(np.diagonal(K).mean())
    tried, all_silent = [], True
    weights = votes.sum(axis=1)
    T, root = 2 * votes / weights[:, None] - 1, np.sqrt(weights)
    values, U = eigh(K * np.outer(root, root))
    U *= root[:, None]
    ones, rows = np.ones(len(K)), np.arange(len(K))
    projected = product(U.T, np.column_stack([T, ones]))
    for noise in noises:
        # A tiny negative eigenvalue is rounding of zero.
        shrunk = 1 / (np.maximum(values, 0) + noise)
        solved = product(U, shrunk[:, None] * projected)
        # Eigenvectors are good to a rounding of the largest eigenvalue, not of each entry.
        scale = Scale((values[-1] + noise) / weights, noise / weights, _EPS)
        A, P = solved[:, :-1], product(U**2, shrunk)
        border, offsets = None, np.zeros(T.shape[1])
        if bias:
            border = Border(ones, solved[:, -1])
            (A, offsets), P = border.eliminated(T, A), border.inverse_diagonal(P)
        left = leave_out(P, A, T, rows, scale, border, offsets)
        scores, silent = silenced(left)
        scores = tied(scores, left.error)
        all_silent &= bool(silent.all())
        best = scores == scores.max(axis=1, keepdims=True)
        told = ~silent & (best.sum(axis=1) == 1)
        right = float(votes[told][best[told]].sum())
        tried.append((-right, float(weights @ ((T - scores) ** 2).sum(axis=1))))
    return float(noises[min(range(len(noises)), key=tried.__getitem__)]) if not all_silent else None
