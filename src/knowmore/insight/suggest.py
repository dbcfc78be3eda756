"""Active learning: which rows to label next, by a Gaussian process.

The covariance of a Gaussian process does not depend on labels. So what a pick does to the variance
of the others is known before its label is: it is the append of a row to the factor, seen from the
pool. The means move with the label; until it is known, a plausible one takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, final

import numpy as np

from knowmore._base import (
    Array,
    TableAnswer,
    a_type,
    cached_property,
    choice,
    whole_number,
)
from knowmore.errors import InvalidInput, InvalidType
from knowmore.insight.asking import WITH_VARIANCE, asked, generator, inputs, processes
from knowmore.kernels import cross
from knowmore.linalg import blocks, product
from knowmore.models import Following, KernelModel, answered, columns_in, finite

# How many rows of the pool stand for all of it, at most, and how many numbers may go into that.
_SOME = 1024
_NUMBERS = 2**24
# Where no class is in doubt, variances alone decide.
_LEAST_DOUBT = 1e-3
_CRITERIA = ("reduction", "margin", "variance", "random")
# Criteria that earlier versions had: a user who still asks for one is told what replaces it.
_WITHDRAWN = ("uncertainty", "emoc", "weight", "impact")


@final
@dataclass(frozen=True, eq=False, repr=False)
class Suggestion(TableAnswer):
    """Which rows of a pool to label, the most useful first.

    indices : (n,), rows of the pool
    values : (n,), the criterion's value when each was picked, larger is better
    reasons : a few words on each
    criterion : what they were picked by
    """

    indices: Array
    values: Array
    reasons: tuple[str, ...]
    criterion: str

    def _columns(self) -> dict[str, Array]:
        reasons = np.array(self.reasons, dtype=object)
        return {"index": self.indices, "value": self.values, "reason": reasons}

    def _summary(self) -> str:
        return f"{len(self.indices)} to label by {self.criterion}"


def suggest(
    model: Any,
    X_pool: Any,
    n: int = 1,
    criterion: str | None = None,
    *,
    random_state: int | None = None,
    following: Following | None = None,
) -> Suggestion:
    """The n rows of X_pool (u, d) whose labels would teach a fitted Gaussian process most.

    By variance and at random it may also be one of values. The rows are picked one after the other,
    the first by the criterion alone. From then on each pick counts as an example with its most
    plausible label: the variances around it fall, the means move towards that label, and similar
    rows become less useful. By "variance" and "reduction" only the variances fall: the first labels
    may all be of classes yet unknown. A row with exactly the same features waits until no others
    are left. In a forest a pick joins one leaf of each tree, and the trees keep their shape.

    Parameters
    ----------
    criterion : None is "reduction", for a forest "margin", for values "variance". mu^(c) are the
        scores, sigma_*^2 is the variance with the noise
        "reduction": d(x) sum_j d(x_j) c(x, x_j)^2 / sigma_*^2, how much the variances in the pool
        would fall, where classes are in doubt: c is the posterior covariance, and the doubt d is
        1 - (mu_(1) - mu_(2)) / 2, at least 0.001. Of a large pool about a thousand rows, evenly
        spaced, stand for all x_j. Forests have other covariances in each tree.
        "margin": how far the two best classes are apart, (mu_(1) - mu_(2)) / sigma_*, the smallest
        first.
        "variance": sigma_*^2, the least known.
        "random": drawn at random.
    random_state : a seed for "random"
    following : the answers of this model for X_pool, if they were followed through its edits: most
        of the work is done then

    >>> from knowmore import GPClassifier
    >>> clf = GPClassifier().fit([[0.0], [1.0], [5.0], [6.0]], ["low", "low", "high", "high"])
    >>> suggest(clf, [[0.5], [3.1], [9.0], [9.1], [-3.0]], n=2, criterion="variance")
    Suggestion: 2 to label by variance
    index   value                                         reason
        3  0.4226  unlike what is known: standard deviation 0.65
        4  0.4111  unlike what is known: standard deviation 0.64
    """
    gp, criterion = criterion_for(model, criterion)
    X = inputs(model, X_pool, "X_pool")
    _check_following(following, gp, X)
    count = whole_number("n", n, 1, X.shape[0])
    found = picks(gp, X, count, criterion, random_state, following)
    rows, values, reasons = zip(*((i, v[i], reason) for i, v, reason in found), strict=True)
    return Suggestion(np.array(rows), np.array(values), reasons, criterion)


def _check_following(following: Following | None, gp: Any, X: Any) -> None:
    """Raise InvalidInput if these are answers of another model than gp or for other rows than X."""
    if not isinstance(following, Following | None):
        raise InvalidType(f"following is {a_type(following)}. Give a Following of X_pool, or None.")
    if following is not None and not (following.model is gp and np.array_equal(following.X, X)):
        raise InvalidInput("following is of another model or of other rows. Let it follow first.")


def criterion_for(model: Any, criterion: str | None) -> tuple[Any, str]:
    """The Gaussian process of a fitted estimator, and the criterion, if it applies to it."""
    if isinstance(criterion, str) and criterion in _WITHDRAWN:
        raise InvalidInput(
            f"criterion={criterion!r} is gone: in our measurements it took more labels than "
            f"'reduction' and 'margin'. Ask for one of these."
        )
    if criterion is not None:
        choice("criterion", criterion, _CRITERIA)
    about = "" if criterion in (None, "variance", "random") else f"criterion={criterion!r}"
    gp = asked(model, WITH_VARIANCE, about, "criterion='variance' or 'random'")
    if criterion is None:
        if gp.classes and gp.one_covariance:
            return gp, "reduction"
        return gp, "margin" if gp.classes and len(gp.names) > 1 else "variance"
    if criterion == "margin" and len(gp.names) < 2:
        raise InvalidInput("criterion='margin' needs two classes, not one. Ask for 'variance'.")
    if criterion == "reduction" and not gp.one_covariance:
        raise InvalidInput(
            f"criterion={criterion!r} is about the covariances of one Gaussian process, and each "
            f"leaf of a forest has its own. Ask for 'margin'."
        )
    return gp, criterion


def picks(
    gp: Any,
    X: Any,
    n: int,
    criterion: str,
    random_state: Any,
    following: Following | None = None,
) -> Iterator[tuple[int, Array, str]]:
    """Choose greedily, one row of X (u, d) after the other: yield the row, all values, the reason.

    The values (u,) are NaN for rows picked before, and for their twins while others are left.
    """
    if criterion == "random":
        values = generator(random_state).random(X.shape[0])
        for row in np.argsort(-values)[:n].tolist():
            yield row, values.copy(), "drawn at random"
            values[row] = np.nan
        return
    pool = _Pool(gp, X, following)
    picked, twins = np.zeros((2, X.shape[0]), dtype=bool)
    for count in range(n):
        values = np.where(picked if twins.all() else twins, np.nan, _values(criterion, pool))
        row = int(np.nanargmax(values))
        yield row, values, _reason(criterion, pool, row)
        picked[row] = True
        (x,) = next(blocks(X[row : row + 1]))
        twins |= np.concatenate([(x == block).all(axis=1) for block in blocks(X)])
        if count < n - 1:
            # A label of a known class would be wrong for most rows if few classes are known.
            pool.pick(row, int(pool.mean[row].argmax()) if criterion == "margin" else None)


def _values(criterion: str, pool: _Pool) -> Array:
    """The values of all rows, (u,), larger is better."""
    if criterion == "variance":
        return pool.variance
    apart = _apart(pool.mean)
    if criterion == "margin":
        return np.asarray(-apart / np.sqrt(pool.variance))
    doubt = np.maximum(1 - apart / 2, _LEAST_DOUBT)
    # `criterion_for` refuses this criterion for forests.
    assert pool.only is not None
    return np.asarray(doubt * pool.only.reduction(doubt))


def _apart(mean: Array) -> Array:
    """How far the two best scores of each row are apart, (u,); of one class, the score from -1."""
    if mean.shape[1] == 1:
        return mean[:, 0] + 1
    second, first = np.partition(mean, -2, axis=1)[:, -2:].T
    return np.asarray(first - second)


def _reason(criterion: str, pool: _Pool, row: int) -> str:
    """Why the criterion picks this row, in a few words."""
    deviation = f"standard deviation {np.sqrt(pool.variance[row]):.2g}"
    if criterion == "variance":
        return f"unlike what is known: {deviation}"
    mean, names = pool.mean[row], pool.names.tolist()
    if len(mean) == 1:
        return f"like others in the pool: score {mean[0]:.2g}, {deviation}"
    second, first = np.argsort(mean, kind="stable")[-2:]
    alike = ", and like others in the pool" if criterion == "reduction" else ""
    scores = f"scores {mean[first]:.2g} and {mean[second]:.2g}"
    return f"{names[first]!r} or {names[second]!r}{alike}: {scores}, {deviation}"


# -- the pool ------------------------------------------------------------------------------------


@final
class _Process:
    """The pool X (u, d) of one Gaussian process, as if picked rows were examples.

    noise : sigma^2
    square : the square of the units of the targets, in the mean of the columns
    rounding : (u,), how much of a variance may be rounding alone
    variance : (u,), sigma_*^2 of all, noise included, and at least `rounding`; of targets as the
        model learns them, normalised if they are
    names : (M,), the columns of scores
    R : (k, u), what the k picks added to the factor of the model: they take R'R off the covariance
        of the pool
    """

    def __init__(self, gp: Any, X: Any, names: Array, following: Following | None = None) -> None:
        self.gp, self.X, self.names, self.following = gp, X, names, following
        u = X.shape[0]
        if gp.keeps_rows:
            held, eps = gp.covariance, float(np.finfo(gp.covariance.factor.dtype).eps)
            self.noise, self.square = held.noise, gp.targets.square
            self.rounding = (len(gp.examples) + u) * eps * held.prior(X)
            # The variances that are followed are in the units of the targets.
            known = following is not None and gp.targets.units is None
            variance = following.variance if following and known else held.variance(X)
        else:
            # A sum of positive terms: nothing of it is rounding alone.
            self.noise, self.square, self.rounding = gp.noise, (gp.scale**2).mean(), np.zeros(u)
            variance = gp.noise * (1 + gp.leverage(X))
        self.variance = np.maximum(variance, self.rounding)
        self.R = np.empty((0, u))

    @cached_property
    def mean(self) -> Array:
        """mu^(c), (u, M), with the expected labels of the picks."""
        scores = self.gp.mean(self.X) if self.following is None else self.following.scores
        return np.asarray(scores[:, columns_in(self.gp, self.names)])

    @cached_property
    def _covariance(self) -> Callable[[Array], Array]:
        """The posterior covariance with rows of these numbers (k,), (u, k), without noise or picks.

        It is O(n^2 + nu) for one row.
        """
        gp, X = self.gp, self.X
        if not gp.keeps_rows:
            return lambda rows: np.asarray(gp.covariance(X, X[rows]))
        if self.following is not None:
            return self.following.covariance
        held, K = gp.covariance, gp.covariance.cross(X)
        half = cache(lambda: held.half_solve(K))

        def posterior(rows: Array) -> Array:
            prior = finite(held.kernel, cross(held.kernel, X, X[rows]))
            if len(rows) == 1:
                return np.asarray(prior - (held.solve(K[:, rows])[:, 0] @ K)[:, None])
            return np.asarray(prior - product(half().T, half()[:, rows]))

        return posterior

    def pick(self, p: int, label: int | None) -> None:
        """C <- C - cc' / s and mu <- mu + c (t - mu_p)' / s, s = C_pp + sigma^2.

        c is the column of the pick p, and t (M,) the target of its expected label: the number of
        its class, or None if the means do not move.
        """
        s = self.variance[p]
        if s <= self.rounding[p]:
            return
        c = self._covariance(np.array([p]))[:, 0] - self.R[:, p] @ self.R
        c[p] = s - self.noise
        r = c / np.sqrt(s)
        if label is not None:
            t = np.full(self.mean.shape[1], -1.0)
            t[label] = 1.0
            self.mean = self.mean + np.outer(r, (t - self.mean[p]) / np.sqrt(s))
        least = np.maximum(self.rounding, self.noise)
        self.variance = np.maximum(self.variance - r**2, least)
        self.R = np.vstack([self.R, r])

    @cached_property
    def _some(self) -> tuple[Array, Array]:
        """Rows that stand for the pool, (k,), and the posterior covariance with them, (u, k)."""
        u = len(self.variance)
        k = min(u, _SOME, max(_NUMBERS // u, 1))
        at = np.linspace(0, u - 1, k).astype(int)
        return at, self._covariance(at)

    def reduction(self, doubt: Array) -> Array:
        """sum_j d_j c(x, x_j)^2 / sigma_*^2, (u,): what the label of x takes off the variances.

        doubt : d, (u,)

        The row itself counts once, and others for all that they stand for: rows that happen to
        stand for others would be picked for their own sake.
        """
        at, C = self._some
        u, own, deviation = len(doubt), np.zeros(len(doubt)), np.sqrt(self.variance)
        own[at] = 1
        # Divided first: a square alone may be beyond the range of numbers.
        squares = ((C - self.R.T @ self.R[:, at]) / deviation[:, None]) ** 2
        squares[at, np.arange(len(at))] = 0
        others = (squares @ doubt[at]) * (u - 1) / np.maximum(len(at) - own, 1)
        itself = doubt * ((self.variance - self.noise) / deviation) ** 2
        return np.where(self.variance > self.rounding, others + itself, 0.0)


@final
class _Pool:
    """The pool X (u, d) of a model: in each tree, the pools of the leaves that its rows fall into.

    A model that is one Gaussian process is one tree of one leaf. What the trees of a regressor
    disagree on is part of its variance, and stays: the means do not move there.

    only : the pool of a model that is one Gaussian process, else None
    trees : of each the leaves, each with the numbers of its rows
    """

    def __init__(self, gp: Any, X: Any, following: Following | None) -> None:
        self.names = gp.names
        self.apart: Array | float = 0.0
        self.only = _Process(gp, X, gp.names, following) if gp.one_covariance else None
        if self.only is not None:
            self.trees = [[(self.only, np.arange(X.shape[0]))]]
            return
        self.trees = [
            [(answered(self._leaf(leaf), X, rows), rows) for leaf, rows in tree]
            for tree in processes(gp, X)
        ]
        if not gp.classes:
            self.apart = gp.disagreement(X).mean(axis=1)

    def _leaf(self, leaf: KernelModel) -> Callable[[Array], _Process]:
        return lambda X: _Process(leaf, X, self.names)

    @property
    def mean(self) -> Array:
        """mu^(c), (u, M), with the expected labels of the picks."""
        return self._averaged(lambda leaf: leaf.mean)

    @property
    def variance(self) -> Array:
        """sigma_*^2, (u,), in the units of the values; of several targets, the mean."""
        return self._averaged(lambda leaf: leaf.variance * leaf.square) + self.apart

    def _averaged(self, ask: Callable[[_Process], Array]) -> Array:
        """The mean over the trees of the answers of their leaves for each row, (u,) or (u, M)."""
        if self.only is not None:
            return ask(self.only)
        trees = []
        for tree in self.trees:
            order = np.concatenate([rows for _, rows in tree]).argsort()
            trees.append(np.concatenate([ask(leaf) for leaf, _ in tree])[order])
        return np.asarray(np.mean(trees, axis=0))

    def pick(self, p: int, label: int | None) -> None:
        """Row p is as if held from now on, with the number of its expected class as label.

        None: the means do not move.
        """
        for tree in self.trees:
            for leaf, rows in tree:
                for here in np.flatnonzero(rows == p).tolist():
                    leaf.pick(here, label)
