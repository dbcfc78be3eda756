"""From scores to the probabilities of classes, and how sharp these should be.

Scores of one class against the others are no chances, and how sharp these should be is open. One
number says it, a temperature tau (Guo, Pleiss, Sun and Weinberger, On Calibration of Modern Neural
Networks, 2017): p_c ~ exp(mu^(c) / (tau sqrt(1 + sigma^2))), so that classes are the more equal the
less is known. It needs no held-out data: leave-one-out predicts every example by a model that never
saw it.

Left out, an example's class has one example less than a new row will find. With p of them that is
1 / p of what the class says, much if p is small: of two examples of each of fifteen scenes, 42 %
are recognised by the others, and 75 % of new pictures. So the others of its class stand in for it.
The score is 2 s_c - s, where s_c is what the examples of class c say, and s what all say; what is
left of the own class's part counts p / (p - 1) times (`Trial.completed`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log, pi
from typing import Any, NamedTuple, final

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gammaincinv, logsumexp, ndtri

from knowmore._base import Array
from knowmore.linalg import eigh

# Logarithms of chances are no further from the best one's: beside such, others have no digits left.
_FAR = 1 / np.finfo(float).eps
# Temperatures between exp(-50) and exp(50): beyond, chances are the same up to rounding.
_REACH = 50.0
# The prior on tau: log tau has this standard deviation.
_SPREAD = 2.0
# How far from one the logarithm of a temperature is sought if labels may be wrong.
_STEPS, _PRECISELY = 8, {"xatol": 1e-6}
# The part of examples with right labels that the others take for another class as surely as if the
# label were wrong. A heuristic: 0.000 to 0.015 on clean data whose classes lie apart.
_HARD = 0.015
# Newton's method ends where a step would lower the loss by less; it takes about ten.
_SETTLED, _TURNS = 1e-16, 100
# How precisely the logarithm of a temperature is sought to compare candidates.
_ROUGHLY = 1e-3
# Of drawn scores: the degrees of freedom of Student's t, for tails longer than those of a Gaussian,
# and the least p (1 - p) that tells how they vary. Both are choices by experience.
_FREEDOM, _LEAST = 8.0, 0.02
# Scores that are drawn, and the rows of them at most.
_DRAWN, _ROWS = 2**19, 8192
_SEED = 0


def log_chances(mean: Array, variance: Array) -> Array:
    """mu^(c) / sqrt(1 + sigma^2), less the largest of each row, (m, M): the moderated scores.

    mean (m, M), variance (m,) with noise, both in units of the labels -1 and 1. MacKay (The
    evidence framework applied to classification networks, 1992): the less is known of a score, the
    less it counts, and the one is the size of a label.
    """
    moderated = _beside_the_best(mean) / np.sqrt(1 + variance)[:, None]
    return np.asarray(np.maximum(moderated, -_FAR))


def class_probabilities(mean: Array, variance: Array, temperature: float = 1.0) -> Array:
    """exp(mu^(c) / (temperature sqrt(1 + sigma^2))), scaled to sum to one, (m, M).

    variance : (m,) with noise; zeros if the model has none

    A temperature above one levels the classes, below one sharpens. At one, two classes of scores
    z and -z, moderated, have the chances 1 / (1 + exp(-2 z)) and the rest: Phi(z), which a probit
    model would give, differs by less than 0.05.

    >>> class_probabilities(np.array([[1.0, -1.0], [0.0, 0.0]]), np.ones(2)).round(2)
    array([[0.8, 0.2],
           [0.5, 0.5]])
    """
    chances = np.exp(log_chances(mean, variance) / temperature)
    chances /= chances.sum(axis=1, keepdims=True)
    # Chances may be equal in all digits where scores are not: the largest score is to win.
    best = mean.argmax(axis=1)
    rows = np.flatnonzero(chances.argmax(axis=1) != best)
    chances[rows, best[rows]] = np.nextafter(chances[rows].max(axis=1, initial=0), 2)
    return np.asarray(chances)


# -- how sharp -----------------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class Trial:
    """Predictions for n examples, each left out, as if they were new rows.

    scores : (n, M)
    variance : (n,), noise included; zeros if the model has none
    silent : (n,), whether the others carry no information on the example
    class_support : (n,), the score by the others of its class: the prediction for targets of one
        for its class and zero for all others
    codes : (n,), the columns of the labels
    counts : (M,), the examples of each class, but those that are silent: they say nothing either
    """

    scores: Array
    variance: Array
    silent: Array
    class_support: Array
    codes: Array
    counts: Array

    @property
    def telling(self) -> Array:
        """Which examples show how sure to be, (n,).

        Of a silent one nothing is said. The only example of a class takes the class with it, which
        is not what happens to new rows of that class.
        """
        return np.asarray(~self.silent & (self.counts[self.codes] > 1))

    @property
    def completed(self) -> Array:
        """The scores (n, M), in which the others of its class stand in for each example."""
        at, p = np.arange(len(self.codes)), self.counts[self.codes]
        scores = self.scores.copy()
        scores[at, self.codes] += 2 * self.class_support / np.maximum(p - 1, 1) * (p > 1)
        return scores

    @property
    def logs(self) -> Array:
        """The logarithms of the chances of these scores, but for tau, (n, M)."""
        return log_chances(self.completed, self.variance)

    @property
    def temperature(self) -> float:
        """The temperature under which the examples that tell are most likely.

        One if these are of fewer than two classes: any sharpness would do for them.
        """
        rows = np.flatnonzero(self.telling)
        if len(np.unique(self.codes[rows])) < 2:
            return 1.0
        return best_temperature(self.logs[rows], self.codes[rows])


def best_temperature(logs: Array, classes: Array, weights: Array | None = None) -> float:
    """The temperature under which the true classes (n,) are most likely, logs (n, M).

    With u = -log tau the loss is sum_i w_i [log sum_c exp(e^u l_ic) - e^u l_iy] + u^2 / 8. The last
    term, a prior on log tau with a standard deviation of two, weighs less than one example; it
    keeps tau above zero where leave-one-out makes no mistake at all.

    weights : (n,), how much each counts; default: one

    >>> logs = np.log([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]])
    >>> round(best_temperature(logs, np.array([0, 1, 1])), 2)
    2.19
    """
    logs = _beside_the_best(logs)
    true = logs[np.arange(len(logs)), classes]

    def slope(u: float) -> float:
        s = np.exp(u)
        p = np.exp(s * logs)
        excess = np.einsum("ij,ij->i", p, logs) / np.einsum("ij->i", p) - true
        total = excess.sum() if weights is None else weights @ excess
        return float(s * total + u / _SPREAD**2)

    if slope(-_REACH) >= 0:
        return float(np.exp(_REACH))
    if slope(_REACH) <= 0:
        return float(np.exp(-_REACH))
    return float(np.exp(-brentq(slope, -_REACH, _REACH)))


def log_losses(mean: Array, variance: Array, codes: Array, weights: Array) -> Array:
    """Minus the log chance of each class `codes` (n,), at the best temperature for all, (n,).

    mean (n, M), variance (n,), weights (n,)

    >>> scores = np.array([[1.0, -1.0], [1.0, -1.0], [-0.5, 0.5]])
    >>> log_losses(scores, np.ones(3), np.array([0, 1, 1]), np.ones(3)).round(2)
    array([0.37, 1.17, 0.51])
    """
    logs = log_chances(mean, variance)
    logs = logs / best_temperature(logs, codes, weights)
    return np.asarray(logsumexp(logs, axis=1) - logs[np.arange(len(codes)), codes])


def sharpest(logs: Array, codes: Array, weights: Array) -> tuple[Array, Array]:
    """The mean log loss under the best temperature, and the temperature, (s,) each.

    For s sets of logarithms at once: logs (s, n, M), codes (n,), weights (n,). The temperature is
    that of `best_temperature`, found by Newton's method to a thousandth; the loss leaves the prior
    out.

    >>> logs = np.log([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]])
    >>> loss, temperature = sharpest(logs[None], np.array([0, 1, 1]), np.ones(3))
    >>> loss.round(3), temperature.round(2)
    (array([0.647]), array([2.19]))
    """
    logs = logs - logs.max(axis=2, keepdims=True)
    own = logs[:, np.arange(len(codes)), codes]
    u = np.zeros(len(logs))
    low, high = np.full(len(logs), -_REACH), np.full(len(logs), _REACH)
    for _ in range(_TURNS):
        s = np.exp(u)[:, None]
        p = np.exp(s[:, :, None] * logs)
        total, first, second = p.sum(axis=2), (p * logs).sum(axis=2), (p * logs**2).sum(axis=2)
        mean = first / total
        slope = (s * (mean - own)) @ weights + u / _SPREAD**2
        bend = (s**2 * (second / total - mean**2)) @ weights + slope - u / _SPREAD**2
        bend += 1 / _SPREAD**2
        low, high = np.where(slope <= 0, u, low), np.where(slope > 0, u, high)
        step = np.where(bend > 0, -slope / np.where(bend > 0, bend, 1.0), -np.sign(slope))
        new = u + step.clip(-2, 2)
        # What has settled stays, however near to the ends of its interval.
        inside = (abs(step) < _ROUGHLY) | ((new > low) & (new < high))
        new = np.where(inside, new, (low + high) / 2)
        done, u = abs(new - u).max() < _ROUGHLY, new
        if done:
            break
    s = np.exp(u)[:, None]
    loss = np.log(np.exp(s[:, :, None] * logs).sum(axis=2)) - s * own
    return loss @ weights / weights.sum(), np.exp(-u)


# -- rows that are not there --------------------------------------------------------------------


def expected_trial(means: Array, scatter: Array, counts: Array, h: float, noise: float) -> Trial:
    """Scores as rows of a linear model would have them if each were left out.

    means : (M, M), row c the mean scores of the rows of class c
    scatter : (M, M), that of the scores about these means, over its degrees of freedom
    counts : (M,), the rows of each class; those of a single row are left out
    h : the mean leverage of the rows, below one
    noise : sigma^2

    A linear model holds sums of its rows. They give the mean score of every class and the scatter
    of scores within classes, all that a Gaussian needs. How much a row has pulled its own score is
    known on average, as in generalised cross-validation: left out, a row of target t and score s
    has the score (s - ht) / (1 - h).

    The scatter is that of all classes. But scores for targets of 1 and 0 are near chances p, and
    these vary like p (1 - p): the score of a class varies most among its own rows, of which some
    say much and some nothing. Besides, scores of real rows have longer tails than a Gaussian, most
    of all those that are confused: they are drawn from Student's t. The draws are always the same,
    and classes are drawn as often as they have rows.
    """
    M = len(means)
    chances = ((means - h * (2 * np.eye(M) - 1)) / (1 - h) + 1) / 2
    spread = np.maximum(chances * (1 - chances), _LEAST)
    spread /= counts @ spread / counts.sum()
    R = int(np.clip(_DRAWN // M, 1, _ROWS))
    several = np.where(counts > 1, counts, 0).cumsum()
    codes = np.searchsorted(several, (np.arange(R) + 0.5) / R * several[-1], side="right")
    U = np.random.default_rng(_SEED).random((R, M + 1))
    # Of the roots of a matrix the symmetric one does not depend on signs of eigenvectors.
    values, V = eigh(scatter)
    root = (V * np.sqrt(np.maximum(values, 0))) @ V.T
    stretch = np.sqrt(_FREEDOM / (2 * gammaincinv(_FREEDOM / 2, U[:, M:])))
    scores = means[codes] + (ndtri(U[:, :M]) * stretch) @ root * np.sqrt(spread)[codes]
    own = np.arange(R), codes
    T = np.full((R, M), -1.0)
    T[own] = 1.0
    scores = (scores - h * T) / (1 - h)
    class_support = (scores[own] + 1) / 2
    nothing = np.zeros(R, dtype=bool)
    return Trial(scores, np.full(R, noise / (1 - h)), nothing, class_support, codes, counts)


# -- wrong labels --------------------------------------------------------------------------------


class Mislabelling(NamedTuple):
    """Chances of wrong labels, by two kinds of mistakes.

    A blind mistake draws any of the M labels. A likely mistake takes the true class c for another
    class y, with the chance p_y / (1 - p_c): classes that are alike are taken for each other. A
    hard example looks like a likely mistake, but its label is right.

    temperature : of the probabilities p of the true labels
    blind, likely, hard : the chances of the two mistakes, and of hard examples
    classes : the number of labels, M
    """

    temperature: float
    blind: float
    likely: float
    hard: float
    classes: int

    @property
    def rate(self) -> float:
        """The part of the labels that is wrong: one of M that are drawn blindly is right."""
        return self.blind * (1 - 1 / self.classes) + self.likely

    def odds(self, logs: Array, codes: Array) -> Array:
        """The logarithm of how much likelier each label is wrong than right, (n,); logs (n, M).

        With q_y, the chance that a likely mistake ends at y, label y is wrong with the chance
        (1 - p_y) blind / M + q_y likely, and right with p_y (1 - rate - hard) + q_y hard.
        """
        true, q = _Chances(logs, codes).at(1 / self.temperature)
        wrong = -np.expm1(true) * self.blind / self.classes + q * self.likely
        with np.errstate(divide="ignore"):
            right = np.logaddexp(true + np.log(1 - self.rate - self.hard), np.log(q * self.hard))
        return np.asarray(np.log(np.maximum(wrong, np.finfo(float).tiny)) - right)


def mislabelling(logs: Array, codes: Array) -> Mislabelling:
    """The temperature and chances under which these labels (n,) are most likely, logs (n, M).

    Labels do not tell likely mistakes from hard examples: up to `_HARD` of all count as hard. The
    prior on the chances is the square root of their product, the prior on the temperature as in
    `best_temperature`: a single wrong label among few can be found.
    """
    chances, M = _Chances(logs, codes), logs.shape[1]

    def fitted(u: float) -> tuple[float, Array]:
        """The loss at the best shares, and these shares: no mistake, blind, likely or hard."""
        true, q = chances.at(np.exp(u))
        loss, shares = _mixed(np.stack([np.exp(true), np.full(len(q), 1 / M), q]))
        return loss + u**2 / (2 * _SPREAD**2), shares

    # The loss may be flat far from its minimum: a coarse search comes first.
    coarse = np.linspace(-_STEPS, _STEPS, 4 * _STEPS + 1)
    u = coarse[np.argmin([fitted(one)[0] for one in coarse])]
    best = minimize_scalar(
        lambda u: fitted(u)[0], bounds=(u - 0.5, u + 0.5), method="bounded", options=_PRECISELY
    )
    blind, contradicted = fitted(best.x)[1][1:].tolist()
    hard = min(contradicted, _HARD)
    return Mislabelling(float(np.exp(-best.x)), blind, contradicted - hard, hard, M)


class _Chances:
    """The chances of labels (n,) by log chances (n, M), at any temperature."""

    def __init__(self, logs: Array, codes: Array) -> None:
        # By columns: sums over the classes then run along the examples.
        self.rest, at = np.ascontiguousarray(_beside_the_best(logs).T), np.arange(len(logs))
        best = self.rest.argmax(axis=0)
        self.wins, self.own = best == codes, self.rest[codes, at]
        self.rest[best, at] = -np.inf
        self.second = self.rest.max(axis=0)
        # Beside the second best, so that not all shares of the others underflow.
        self.rest -= self.second

    def at(self, s: float) -> tuple[Array, Array]:
        """log p_y (n,), and the chance q_y (n,) that a likely mistake ends at y.

        s : one over the temperature

        q_y = sum_c p_c p_y / (1 - p_c) over the other classes c. With the best class a, 1 - p_a may
        vanish, but p_y / (1 - p_a) is the share of y among all but a.
        """
        rest = np.exp(s * self.rest)
        among, second = rest.sum(axis=0), np.exp(s * self.second)
        total = 1 + among * second
        true = s * self.own - np.log(total)
        p = np.exp(true)
        rest *= second / total
        others = (rest / (1 - rest)).sum(axis=0)
        p_below = np.where(self.wins, 0.0, p)
        share = np.where(self.wins, 0.0, np.exp(s * np.minimum(self.own - self.second, 0))) / among
        return true, share / total + p * (others - p_below / (1 - p_below))


def _mixed(kinds: Array) -> tuple[float, Array]:
    """The shares (3,) of three kinds under which these chances (3, n) are most likely; the loss.

    By Newton's method: -sum_i log sum_k share_k kind_ki - 1/2 sum_k log share_k is convex.
    """
    a, D = kinds[0], kinds[1:] - kinds[0]

    def derivatives(x: Array) -> tuple[Array, Array]:
        G, none = D / (a + x @ D), 1 - x.sum()
        slope = -G.sum(axis=1) + 0.5 / none - 0.5 / x
        return slope, G @ G.T + 0.5 / none**2 + np.diag(0.5 / x**2)

    x = np.full(2, 0.1)
    for _ in range(_TURNS):
        slope, curvature = derivatives(x)
        step = -np.linalg.solve(curvature, slope)
        if -slope @ step <= _SETTLED:
            break
        # Too far: outside, or where the loss rises more steeply than it falls here.
        while (
            (x + step).min() <= 0
            or (x + step).sum() >= 1
            or derivatives(x + step)[0] @ step > -slope @ step
        ):
            step /= 2
        x = x + step
    shares = np.array([1 - x.sum(), *x])
    return -float(np.log(a + x @ D).sum() + np.log(shares).sum() / 2), shares


def _beside_the_best(logs: Array) -> Array:
    """Logarithms (n, M) less the largest of each row: their exponentials have a sum above one."""
    # A difference beyond the range is minus infinity, which has the exponential zero.
    with np.errstate(over="ignore"):
        return np.asarray(logs - logs.max(axis=1, keepdims=True))


# -- densities of targets ------------------------------------------------------------------------


def log_marginal_likelihood(fit: Any, logdet: Any, n: int, columns: int = 1) -> Any:
    """log N(T | 0, K~) for n rows, summed over the columns: numbers, or arrays of them.

    -1/2 tr(T'A) - M/2 log |K~| - nM/2 log 2 pi, where `fit` is tr(T'A), A = K~^-1 T.
    """
    return -0.5 * (fit + columns * (logdet + n * log(2 * pi)))


def log_density(t: Array, mean: Array, variance: Array) -> Array:
    """log N(t | mean, variance), element by element, of arrays that broadcast."""
    return np.asarray(-0.5 * ((t - mean) ** 2 / variance + np.log(2 * pi * variance)))
