"""Leaving examples out, in closed form.

P = K~^-1, A = PT (n, M). The prediction for the examples of a group g by a model without g
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

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np

from knowmore._base import Array, Frozen, TableAnswer, remembered
from knowmore.editable import Model
from knowmore.errors import InvalidInput
from knowmore.examples import Examples
from knowmore.linalg import Border, eliminated
from knowmore.models.hinge import expansion, hinge
from knowmore.models.probabilities import Trial
from knowmore.models.targets import Targets, Units, in_squares
from knowmore.models.unrelated import members, unrelated_left_out

if TYPE_CHECKING:
    from knowmore.models.kernel_model import KernelModel

# A variance left out includes the noise sigma^2 / w of the example. Below this weight only rounding
# is left after the noise is taken off: the example is asked about as a new row instead.
_LIGHT = 1e-6
EPS = float(np.finfo(float).eps)


@final
@dataclass(frozen=True, eq=False, repr=False)
class LeftOut(TableAnswer):
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
) -> LooMoments:
    """Each example by the examples of other groups, `codes` (n,); the prior is zero.

    P : the diagonal of the inverse, (n,), if each example is its own group; else a function that
        gives the inverse's rows and columns g (k,), (k, k)

    With a bias, P and A are blocks of the bordered inverse and solution: see `with_bias`.
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
    # of K~, in which the units of its rows cancel.
    with np.errstate(divide="ignore", over="ignore"):
        by_noise = float((scale.diagonal / scale.noise).max())
    condition = min(float(scale.diagonal @ diagonal), by_noise)
    size = np.linalg.norm(np.sqrt(scale.diagonal)[:, None] * A, axis=0)
    error = bound(T, mean, variance[:, None], condition, size, sum_rounding(len(T), scale.eps))
    return LooMoments(mean, variance, error, np.zeros_like(T))


def with_bias(
    left: LooMoments, T: Array, codes: Array, border: Border, offsets: Array
) -> LooMoments:
    """The closed form with a bias: the prior (n, M) is the offset without the example's group."""
    prior = border.without(offsets, T - left.mean, codes)
    return LooMoments(left.mean, left.variance, left.error, prior)


# -- what is rounding ----------------------------------------------------------------------------


def bound(
    t: Array,
    mean: Array,
    variance: Array,
    condition: Array | float,
    size: Array,
    rounding: float,
) -> Array:
    """The bound of the rounding of each mean, from arrays that broadcast.

    condition : |D^1/2 P D^1/2| for the diagonal D of K~, or more
    size : |D^1/2 a| for the coefficients a that the targets t were solved with
    rounding : the `sum_rounding` of the rows of K~

    What is computed is exact for some K~ + E. A factor's E is about eps sqrt(K~_jj K~_kk) in each
    entry (Higham, Accuracy and Stability, theorem 10.3), so that |x'Ey| is about
    eps |D^1/2 x| |D^1/2 y|. E moves the mean of example i by -x'Ea, where x = P_i / P_ii: one at i,
    and minus the weights of the others elsewhere. Now x'K~x = 1 / P_ii is the variance v_i, and

        |D^1/2 x|^2 <= |D^1/2 P D^1/2| x'K~x.

    Besides, t_i, the difference from it, and their difference are rounded.
    """
    # With a bias a variance is a difference, which rounding may turn negative.
    moved = np.sqrt(condition) * np.sqrt(np.maximum(variance, 0)) * size
    return np.asarray(rounding * (abs(t) + abs(t - mean) + moved))


def sum_rounding(n: int, eps: float = EPS) -> float:
    """The rounding of a sum of n terms, which grows like sqrt(n).

    Twice that bounds all that was measured: the errors of a factor are an eighth of it, the errors
    of an inverse after edits two thirds.
    """
    return float(2 * np.sqrt(n) * eps)


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


# -- the examples of a model ----------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """The examples of a kernel model, each predicted by the model without it, in closed form."""

    model: KernelModel

    def scores(self, groups: Array | None = None) -> LooScores:
        """Predictions for the examples by the examples of other groups; groups (n,).

        The variances are (n, M) if the columns have units, and the units are then computed without
        the group. What a coding chose stays: it was chosen on these very scores.
        """
        model = self.model
        left, found = self.for_targets(model.targets, groups), hinge(model)
        if found is None:
            return left
        if groups is not None:
            raise InvalidInput(
                "Groups are left out in closed form of least squares alone. Use loss='squared', or "
                "leave out one example at a time."
            )
        scores = np.where(left.silent[:, None], left.scores, found.left)
        return LooScores(scores, left.variance, left.silent)

    def unseen(self, groups: Array | None = None) -> LooScores:
        """Predictions for each example by other groups, as if it were a new row of weight one.

        The variances of `scores` include the noise sigma^2 / w of an example of weight w.
        """
        model = self.model
        scores, variance, silent = self.scores(groups)
        noise, w = np.asarray(model.covariance.noise), model.covariance.weights
        light = np.flatnonzero(w < _LIGHT)
        if (rest := model.targets.rest()) is not None:
            noise, w = noise * rest.scale**2, w[:, None]
        variance = np.maximum(variance + noise * (1 - 1 / w), noise)
        if len(light) and groups is not None:
            new = self.on_rows(model.covariance.X[light], (groups[light], groups))
            variance[light] = new.variance
        elif len(light) and rest is None and noise > 0:
            # s / (1 - s w / sigma^2) for the posterior variance s without noise.
            s = np.maximum(model.covariance.variance(model.covariance.X[light]) - noise, 0)
            # It is no more than sigma^2 / w, but for rounding.
            variance[light] = noise + s / (1 - np.minimum(s * w[light] / noise, 1 - EPS))
        return LooScores(scores, variance, silent)

    def on_rows(self, X: Array, groups: tuple[Array, Array] | None) -> LooScores:
        """Predictions for new rows X (m, d), each from the examples of other groups.

        With P = K~^-1, A = PT and q = (P k_x)_g, leaving out g by block inversion gives

            mean      mu_x - q' P_gg^-1 A_g
            variance  sigma_x^2 + q' P_gg^-1 q

        at weight one. With a bias P and k_x belong to the bordered matrix.

        groups : the groups of the rows, (m,), and of the examples, (n,)
        """
        model = self.model
        k, variance = model.covariance.cross(X), model.covariance.variance(X)
        W, units = model.covariance.solve(k), model.targets.units
        # Units change with the group that is left out: what they are mixed from is predicted.
        A = model.coefficients if units is None else model.solved
        if units is None:
            B, b = expansion(model)
            mean = k.T @ B + b
        else:
            mean = k.T @ A
        if model.border is not None:
            # What the bias adds: P [k; 1] = K~^-1 k + v (1 - v'k) / s.
            v, s = model.border.v, model.border.s
            open_ = 1 - v @ k
            W += np.outer(v, open_ / s)
            variance = variance + open_**2 / s
        near = k != 0
        for g, rows in _shared(groups):
            Q = W[np.ix_(g, rows)]
            taken = np.linalg.solve(self.inverse_block(g), Q)
            mean[rows] -= taken.T @ A[g]
            variance[rows] += np.einsum("ij,ij->j", Q, taken)
            near[np.ix_(g, rows)] = False
        silent = ~near.any(axis=0)
        if units is None:
            return LooScores(model.targets.values(mean, X), variance, silent)
        rest = _units_without(model.targets, len(X), units, groups)
        mean = rest.mean + rest.scale * model.targets.mixed(mean, rest)
        return LooScores(mean, in_squares(variance, rest), silent)

    def class_support(self) -> Array:
        """The score of each example by the others of its class alone, (n,): see `Trial`."""
        model = self.model
        labels = model.examples.labels
        at, own = np.arange(len(labels)), np.searchsorted(model.names, labels)
        if (found := hinge(model)) is not None:
            return np.asarray(found.said[at, own])
        M = len(model.names)
        A, _ = eliminated(model.border, model.coded.basis[:, :M], model.solved[:, :M])
        return np.asarray(1 - A[at, own] / self.inverse_diagonal())

    def temperature(self, *, with_variance: bool = True) -> float:
        """tau of the probabilities, from a trial of the examples.

        One for a model of values, and for a single example, which leaves none to judge it by.
        """
        if not self.model.classes or len(self.model.examples) < 2:
            return 1.0
        return unseen(self.model).trial(gaussian=with_variance).temperature

    def unrelated(self, groups: Array | None = None) -> Array:
        """Which examples have nothing in common with any other (of another group), (n,)."""
        return unrelated_left_out(self.model, groups)

    def of_targets(self, groups: Array | None = None) -> tuple[Array, Array]:
        """Means (n, M) and variances (n,) of the targets T, normalised by all examples."""
        model = self.model
        return self.for_targets(replace(model.targets, units=None, shift=None), groups)[:2]

    def for_targets(self, targets: Targets, groups: Array | None = None) -> LooScores:
        """`scores` for other targets on the same basis, such as targets before a choice."""
        model = self.model
        rest, T = targets.rest(groups), targets.T
        A, offsets = eliminated(model.border, T, model.solved @ targets.mix)
        if rest is not None:
            A, T = (targets.mixed(B, rest) for B in (model.solved, targets.basis))
        left = self.moments(A, T, offsets, groups)
        (scores, silent), variance = silenced(left), left.variance
        if rest is not None:
            scores, variance = rest.mean + rest.scale * scores, in_squares(variance, rest)
        if targets.prior is not None:
            # A prior mean always carries information.
            scores = scores + targets.prior_mean(model.examples.X)
            silent = np.zeros_like(silent)
        return LooScores(tied(scores, left.error) if targets.classes else scores, variance, silent)

    def moments(
        self, A: Array, T: Array, offsets: Array, groups: Array | None = None
    ) -> LooMoments:
        """The closed form for T (n, M) with coefficients A (n, M) and offsets (M,).

        Y_i - A_i / M_ii is the last equation of the supplement's section 1.
        """
        model = self.model
        codes = np.arange(len(T)) if groups is None else np.unique(groups, return_inverse=True)[1]
        if model.border is not None and len(np.unique(codes)) < 2:
            raise InvalidInput(
                "Leaving all examples out at once leaves none to compute a bias from. Add "
                "examples, or use smaller groups or bias=False."
            )
        P = self.inverse_diagonal() if groups is None else self.inverse_block
        covariance = model.covariance
        eps = float(np.finfo(covariance.factor.dtype).eps)
        scale = Scale(covariance.diagonal, covariance.noise / covariance.weights, eps)
        left = leave_out(P, A, T, codes, scale)
        return left if model.border is None else with_bias(left, T, codes, model.border, offsets)

    def inverse_diagonal(self) -> Array:
        """The diagonal (n,) of the inverse of the (bordered) matrix; the paper's M_ii."""
        model = self.model
        diagonal = model.covariance.factor.inverse_diagonal().astype(float)
        return diagonal if model.border is None else model.border.inverse_diagonal(diagonal)

    def inverse_block(self, rows: Array) -> Array:
        """Rows and columns `rows` (k,) of the inverse of the (bordered) matrix, (k, k)."""
        model = self.model
        E = np.zeros((len(model.examples), len(rows)))
        E[rows, np.arange(len(rows))] = 1
        H = model.covariance.factor.half_solve(E).astype(float)
        block = H.T @ H
        return block if model.border is None else model.border.inverse_block(rows, block)


@final
@dataclass(frozen=True, eq=False, repr=False)
class Unseen(Frozen):
    """Examples, each predicted as a new row by the others.

    ids, labels : (n,)
    names : (M,), the columns of scores
    scores : (n, M)
    variance : (n,), or (n, M) if the columns have units
    silent : (n,), whether the others carry no information on the example
    counts : (M,), the examples that the model has of each class; zero if columns are values
    class_support : (n,), the score by the others of its class, see `Trial`; zero for values
    distance : (n,), to the nearest class in the null space, of rows of a linear model of classes
    groups : (n,), of examples that were left out together; None: each alone
    """

    ids: Array
    labels: Array
    names: Array
    scores: Array
    variance: Array
    silent: Array
    counts: Array
    class_support: Array
    distance: Array | None = None
    groups: Array | None = None

    @property
    def codes(self) -> Array:
        """The columns of the labels, (n,)."""
        return np.searchsorted(self.names, self.labels)

    def trial(self, *, gaussian: bool = True) -> Trial:
        """The trial of the examples; without a variance if the model is no Gaussian process."""
        variance = self.variance if gaussian else np.zeros(len(self.ids))
        codes, silent = self.codes, self.silent
        counts = self.counts - np.bincount(codes[silent], minlength=len(self.counts))
        return Trial(self.scores, variance, silent, self.class_support, codes, counts)

    def without_classes(self) -> Array:
        """The scores, but the last examples of a class take the class with them: -infinity."""
        gone = (self.labels[:, None] == self.names).astype(int)
        for g in [] if self.groups is None else members(self.groups):
            gone[g] = gone[g].sum(axis=0)
        return np.where(gone == self.counts, -np.inf, self.scores)


def unseen(model: Any, groups: Array | None = None) -> Unseen:
    """The examples of a model whose weight is above zero; groups (n,) are left out together."""
    examples, names = model.examples.counted, model.names
    of = np.searchsorted(names, examples.labels) if model.classes else np.empty(0, dtype=int)
    counts = np.bincount(of, minlength=len(names))
    class_support = model.left_out.class_support() if model.classes else np.zeros(len(examples))
    left: LooScores = model.left_out.unseen(groups)
    labels = examples.labels
    return Unseen(examples.ids, labels, names, *left, counts, class_support, groups=groups)


@remembered
def score_temperature(model: KernelModel) -> float:
    """tau of the probabilities exp(mu^(c) / tau), in which the variance plays no part."""
    return LeaveOneOut(model).temperature(with_variance=False)


def _shared(groups: tuple[Array, Array] | None) -> Iterator[tuple[Array, Array]]:
    """For each group of new rows and examples: its examples, and its rows."""
    if groups is not None:
        theirs, ours = groups
        for name in np.intersect1d(theirs, ours):
            yield np.flatnonzero(ours == name), np.flatnonzero(theirs == name)


def _units_without(
    targets: Targets, m: int, units: Units, groups: tuple[Array, Array] | None
) -> Units:
    """The units for m new rows, (m, M) each, by the examples of other groups."""
    means, scales = (np.tile(each, (m, 1)) for each in (units.mean, units.scale))
    if groups is not None and (rest := targets.rest(groups[1])) is not None:
        for g, rows in _shared(groups):
            means[rows], scales[rows] = rest.mean[g[0]], rest.scale[g[0]]
    return Units(means, scales)


def loo_scores(model: Model, examples: Examples, groups: Array | None) -> LooScores:
    """Predictions for all `examples`; the model holds the examples of a weight above zero.

    groups : (n,), examples of a group are left out together; None: each by itself
    """
    if model.examples is examples:
        alone: LooScores = model.left_out.scores(groups)
        return alone
    counts = examples.weights > 0
    both = None if groups is None else (groups[~counts], groups[counts])
    known = model.left_out.scores(None if both is None else both[1])
    new = model.left_out.on_rows(examples.X[~counts], both)
    rows = np.append(np.flatnonzero(counts), np.flatnonzero(~counts)).argsort()
    return LooScores(*(np.concatenate(parts)[rows] for parts in zip(known, new, strict=True)))
