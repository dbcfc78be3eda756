"""From N to N+1 classes: targets that start from a known classifier (MULTIpLE).

Kuzborskij, Orabona and Caputo take the known classes' hyperplanes W' and look for the W, w_{N+1}
and b of the least

    1/2 |W - W'|^2 + 1/2 |w_{N+1} - W' beta|^2 + C/2 sum_i sum_n (w_n'x_i + b_n - Y_in)^2.

That is a least-squares SVM on shifted targets, Y - [S, S beta]: S (n, N) are the scores that the
known classifier gives the examples, the last N columns of their inputs, which the kernel does not
see. beta is the minimum of a multi-class hinge loss on leave-one-out scores,

    f(beta) = sum_i |c_i + g_i' beta|_+    over    |beta| <= 1, and beta >= 0 if asked,

which is convex. For any 0 <= l_i <= 1 the dual value l'c - |G'l| is a lower bound of the least f
(with beta >= 0 only the negative part of G'l counts), so that every answer carries a certificate:
the gap between its own f and the best bound known.

That takes S as it is, and asks the same C of N classes that are known well and of one that is not
known at all. `scaled` departs from the paper in two numbers, both a function of the examples:

    B_n = a S_n + o        the scores in the units of the labels: of all a and o the least squares
                           sum_i w_i sum_n (Y_in - a S_in - o)^2 over examples of known classes
    B_n + g (F_n - B_n)    what is predicted for a known class, where F_n is MULTIpLE's score: of
                           all g the least squares of leave-one-out, 0 <= g <= 1

All classes weigh the same, in the hinge loss too. g is near zero as long as the few examples tell
less of the known classes than the source does, and grows with them. a and o are of all known
classes alike, so that with g = 0 they keep the order in which the source has them: an offset for
each, of few examples, changes it wherever the source's scores are close, like the ranks of an SVC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, final

import numpy as np

from knowmore._base import Array, Frozen, some
from knowmore.errors import InvalidInput
from knowmore.examples import Examples
from knowmore.linalg import eliminated, evaluated
from knowmore.models import Coding, KernelModel, Targets, Weighting, one_vs_all

# Parts of f(0): what the barrier may cost, and twice what |beta|^2 = 1 does. The latter decides
# between several best beta; rounding of sums is magnified by its inverse, so it is not smaller.
_GAP = 1e-10
_NORM = 1e-7
_STEPS = 2000
_NEWTON = 50
_GROWTH = 5
_LEAST = 1e-12
# Scores that differ by less, as a part of their size, are the same. Rounding of scores is magnified
# by its inverse, so it is not smaller.
_ROUNDING = float(np.sqrt(np.finfo(float).eps))


@final
@dataclass(frozen=True, eq=False)
class Hinges(Frozen):
    """offsets c (m,) and slopes G (m, N)."""

    offsets: Array
    slopes: Array

    def value(self, beta: Array) -> float:
        """f(beta)."""
        return float(np.maximum(self.offsets + self.slopes @ beta, 0).sum())

    def bound(self, multipliers: Array, *, positive: bool) -> float:
        """A lower bound of f from multipliers l in [0, 1], (m,)."""
        pull = multipliers @ self.slopes
        if positive:
            pull = np.minimum(pull, 0)
        return float(multipliers @ self.offsets - np.linalg.norm(pull))


@final
@dataclass(frozen=True, eq=False)
class Minimum(Frozen):
    """beta (N,), its value f(beta), and at most how far above the least value that is.

    share : how far the known classes move from the source to MULTIpLE's scores
    """

    beta: Array
    value: float
    gap: float
    share: float = 1.0


Optimiser = Callable[[Hinges, bool], Minimum]


def projected(beta: Array, positive: bool) -> Array:
    """The nearest point of the ball, or of its part with beta >= 0.

    >>> projected(np.array([3.0, -4.0]), False), projected(np.array([3.0, -4.0]), True)
    (array([ 0.6, -0.8]), array([1., 0.]))
    """
    if positive:
        beta = np.maximum(beta, 0)
    return np.asarray(beta / max(1.0, float(np.linalg.norm(beta))))


def subgradient(hinges: Hinges, positive: bool) -> Minimum:
    """Projected subgradient descent from zero, steps 1 / sqrt(t) as long as the ball is wide.

    The paper's way; the best of 2000 iterates. The multipliers of the bound are averages of which
    hinges were open.
    """
    G = hinges.slopes
    width = float(np.sqrt(np.einsum("ij,ij->i", G, G)).sum()) or 1.0
    best = beta = np.zeros(G.shape[1])
    value, open_for, taken = hinges.value(beta), np.zeros(len(G)), 0.0
    for t in range(1, _STEPS + 1):
        is_open = hinges.offsets + G @ beta > 0
        step = 1 / np.sqrt(t)
        open_for += step * is_open
        taken += step
        beta = projected(beta - step / width * (is_open @ G), positive)
        if (reached := hinges.value(beta)) < value:
            best, value = beta, reached
    return Minimum(best, value, value - hinges.bound(open_for / taken, positive=positive))


def interior(hinges: Hinges, positive: bool) -> Minimum:
    """Newton steps on a barrier: exact to a known gap, for any order of the hinges.

    A hinge |z|_+ is the least x >= 0 with x >= z. With the barrier -log x - log(x - z) and weight
    t on x, x can be eliminated; what is left is smooth in z, its slope t l with 0 < l < 1 the
    multiplier of the bound. At the minimum for t the gap is (2 m + N + 2) / t or less. Several beta
    may be best, as when no hinge need be open: a little of |beta|^2 picks a short one, that of
    little transfer. The barrier of beta >= 0 leaves 0.03 / (2 m + N + 2)^1/2 where zero is best.
    """
    m, N = hinges.slopes.shape
    start = hinges.value(np.zeros(N))
    reach = float(np.linalg.norm(hinges.slopes, axis=1).sum())
    if not np.isfinite(start + reach):
        raise InvalidInput(
            "The leave-one-out scores are not finite. The scores of the source, or weights, are "
            "too large: scale them."
        )
    # Nothing to gain, flat, or slopes so steep that the steps would underflow.
    if start <= 1e-60 * reach or reach <= m * np.finfo(float).eps * start:
        bound = hinges.bound((hinges.offsets > 0).astype(float), positive=positive)
        return Minimum(np.zeros(N), start, start - bound)
    # For t = 0 the middle is this; from there on t grows so slowly that the middle is not lost.
    beta = np.full(N, 1 / np.sqrt(N + 2)) if positive else np.zeros(N)
    first, last = 1 / (1 + reach / start), (2 * m + N + 2) / _GAP
    unit = Hinges(hinges.offsets / start, hinges.slopes / start)
    path = np.geomspace(first, last, 2 + int(np.log(last / first) / np.log(_GROWTH)))
    beta, bound = evaluated(lambda: _end_of(path, unit, beta, positive), m * N, N)
    value = hinges.value(beta)
    if not value <= start:
        beta, value = np.zeros(N), start
    return Minimum(beta, value, value - start * bound)


def _end_of(path: Array, hinges: Hinges, beta: Array, positive: bool) -> tuple[Array, float]:
    """The minimum for the last weight t of the path, and the best bound on the way."""
    bound = 0.0
    for t in path:
        beta = _centred(hinges, t, beta, positive)
        bound = max(bound, hinges.bound(_smooth(hinges, t, beta)[0], positive=positive))
    return beta, bound


def _smooth(hinges: Hinges, t: float, beta: Array) -> tuple[Array, Array]:
    """l of the smoothed hinges and its derivatives by u = t z, (m,) each."""
    u = t * (hinges.offsets + hinges.slopes @ beta)
    r = np.hypot(u, 2)
    # r - u, without cancellation.
    rest = np.where(u > 0, 4 / (r + abs(u)), r - u)
    return 2 / (2 + rest), 2 * rest / (r * (2 + rest) ** 2)


def _centred(hinges: Hinges, t: float, beta: Array, positive: bool) -> Array:
    """The minimum of the barrier for a weight t, by Newton steps from `beta` inside.

    The barrier is t (f + norm / 2 |beta|^2) with smooth hinges, and those of ball and orthant.

    The barrier is self-concordant: a step shortened by 1 + its length in the Hessian's norm stays
    inside and descends (Nesterov and Nemirovskii). A longer one is taken if it stays inside too
    and ends before the lowest point of its ray, or just behind it.
    """
    G = hinges.slopes

    def is_inside(beta: Array) -> bool:
        return bool(beta @ beta < 1 and not (positive and beta.min() <= 0))

    def gradient_at(beta: Array) -> Array:
        gradient = t * (_smooth(hinges, t, beta)[0] @ G + _NORM * beta)
        gradient += 2 * beta / (1 - beta @ beta)
        return np.asarray(gradient - 1 / beta if positive else gradient)

    for _ in range(_NEWTON):
        gradient, room = gradient_at(beta), 1 - beta @ beta
        rates = _smooth(hinges, t, beta)[1]
        hessian = (G.T * (t**2 * rates)) @ G + 4 / room**2 * np.outer(beta, beta)
        corners = 1 / beta**2 if positive else 0.0
        hessian[np.diag_indices(len(beta))] += t * _NORM + 2 / room + corners
        try:
            step = np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:
            # At a corner, to rounding: there is nowhere left to go.
            return beta
        descent = float(gradient @ step)
        safe, size = 1 / (1 + np.sqrt(max(descent, 0))), 1.0
        while size > safe:
            there = beta - size * step
            if is_inside(there) and gradient_at(there) @ step >= -min(descent, 1) / 10:
                break
            size /= 2
        size = max(size, safe)
        while size > _LEAST and not is_inside(beta - size * step):
            size /= 2
        if size <= _LEAST:
            break
        beta = beta - size * step
        if descent <= 1e-8:
            break
    return beta


# -- the coding ----------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class TransferCoding(Coding):
    """The coding of N known classes, `known`, and one more: Y - [S, S beta].

    The basis is the indicators of the classes and S itself: beta is a matter of the mix alone, and
    so are the gauge of S and the share of the known classes.

    scaled : whether these two are chosen by the examples; else S is taken as it is
    """

    chooses: ClassVar[bool] = True

    known: tuple[Any, ...]
    positive: bool = True
    optimiser: Optimiser = interior
    scaled: bool = False

    def __call__(self, examples: Examples) -> Targets:
        """The targets for beta = 0."""
        plain = one_vs_all(examples)
        mix = np.vstack([plain.mix, np.zeros((len(self.known), len(plain.names)))])
        coded = replace(plain, basis=np.hstack([plain.basis, self.scores(examples)]), mix=mix)
        return self.shifted(coded, examples, np.zeros(len(self.known)))

    def scores(self, examples: Examples) -> Array:
        """The source's scores S of examples, (n, N): the last columns of their inputs."""
        return np.ascontiguousarray(examples.X[:, -len(self.known) :])

    def shifted(
        self, coded: Targets, examples: Examples, beta: Array, share: float = 1.0
    ) -> Targets:
        """The targets for this beta (N,) and share, from those for none and one.

        With the gauge a, o of S the classes take J = a [I, beta] from it, (N, N + 1). What is
        left to learn for a known class is g (Y - a S) + (1 - g) o: the constant is predicted as it
        is, by the bias.
        """
        new, N = self._is_new(coded), len(self.known)
        (scale, offset), J = self.gauge(examples), np.zeros((N, len(coded.names)))
        J[:, ~new] = scale * np.eye(N)
        J[:, new] = scale * beta[:, None]
        mix = np.vstack([coded.mix[:-N], -J])
        mix[:, ~new] *= share
        # The indicators of the classes sum to one.
        mix[:-N, ~new] += (1 - share) * offset
        return replace(coded, mix=mix, prior=J)

    def gauge(self, examples: Examples) -> tuple[float, float]:
        """a and o with which a S + o is nearest to the labels of the known classes.

        Scores that are all the same, but for rounding, tell nothing: their scale is zero. Those of
        a single known class are only moved.
        """
        N = len(self.known)
        if not self.scaled:
            return 1.0, 0.0
        rows = np.isin(examples.labels, self.known)
        S, weights = self.scores(examples)[rows], Weighting("balanced")(examples)[rows]
        Y = 2.0 * (examples.labels[rows, None] == np.array(self.known)) - 1
        middle, level = (float(np.average(V.mean(axis=1), weights=weights)) for V in (S, Y))
        both, square = (
            float(np.einsum("i,ij,ij->", weights, V, S - middle)) for V in (Y - level, S - middle)
        )
        if square == 0 or abs(S - middle).max() <= _ROUNDING * abs(S).max():
            return 0.0, level
        scale = max(both / square, 0.0) if N > 1 else 1.0
        return scale, level - scale * middle

    def share(self, model: KernelModel) -> float:
        """g of the least squared leave-one-out error of the known classes, in [0, 1].

        B + g (F - B) is a line through the source's scores B and the left-out ones F.
        """
        if not self.scaled:
            return 1.0
        examples, is_known = model.examples, ~self._is_new(model.coded)
        scale, offset = self.gauge(examples)
        B = scale * self.scores(examples) + offset
        away = model.left_out.for_targets(model.coded).scores[:, is_known] - B
        wanted = one_vs_all(examples).T[:, is_known] - B
        weights = self._weights(model)
        along, square = (float(np.einsum("i,ij,ij->", weights, away, V)) for V in (wanted, away))
        return min(max(along / square, 0.0), 1.0) if square > 0 else 0.0

    def hinges(self, model: KernelModel, share: float) -> Hinges:
        """The loss of beta on leave-one-out scores, a hinge for each example.

        Only the new class's score moves with beta: Y^_i(beta) = Y^_i(0) + a A''_i beta / M_ii,
        where A'' solves for S. An example of a known class asks that this stay one below its own
        class's score; one of the new class, that it be one above all others.
        """
        examples, names, N = model.examples, model.coded.names, len(self.known)
        coded = self.shifted(model.coded, examples, np.zeros(N), share)
        scores, variance, _ = model.left_out.for_targets(coded)
        A, _ = eliminated(model.border, self.scores(examples), model.solved[:, -N:])
        new = self._is_new(coded)
        own = np.searchsorted(names, examples.labels)
        is_new = new[own]
        theirs = scores[np.arange(len(examples)), own]
        rival = np.where(is_new, scores[:, ~new].max(axis=1), -theirs)
        sign = np.where(is_new, -1.0, 1.0)
        weights = self._weights(model)
        offsets = weights * (1 + rival + sign * scores[:, new][:, 0])
        moves = self.gauge(examples)[0] * weights * sign * variance
        return Hinges(offsets, moves[:, None] * A)

    def minimum(self, model: KernelModel) -> Minimum:
        """beta (N,) with its loss, how far that is at most above the least, and the share."""
        share = self.share(model)
        return replace(self.optimiser(self.hinges(model, share), self.positive), share=share)

    def chosen(self, coded: Targets, examples: Examples, minimum: Minimum) -> Targets:
        """The targets for the beta and share of a minimum, from those for none and one."""
        return self.shifted(coded, examples, minimum.beta, minimum.share)

    def _weights(self, model: KernelModel) -> Array:
        """How much each example counts in a choice, (n,)."""
        return Weighting("balanced")(model.examples) if self.scaled else model.covariance.weights

    def _is_new(self, coded: Targets) -> Array:
        """Which columns are not of a known class, (N + 1,)."""
        return ~np.isin(coded.names, self.known)

    def check_examples(self, examples: Examples) -> None:
        """Raise InvalidInput unless there are the N known classes and one new one."""
        known, held = np.array(self.known), np.unique(examples.labels)
        missing, new = np.setdiff1d(known, held).tolist(), np.setdiff1d(held, known).tolist()
        if len(missing) == 0 and len(new) == 1:
            return
        if len(new) == 0:
            remedy = "Without a new class, use source_."
        elif len(missing):
            remedy = "Add examples of the known ones, or use a source that does not know them."
        else:
            remedy = "Learn one after the other: this classifier can be the source of the next."
        without = f", and the known {some(missing)} would have no examples" * bool(missing)
        raise InvalidInput(
            f"The examples must cover all {len(known)} classes of the source and exactly one more, "
            f"but {some(new) or 'none'} would be new{without}. {remedy} Nothing was changed."
        )
