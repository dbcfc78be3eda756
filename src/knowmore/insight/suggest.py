"""Active learning: which rows to label next, by a Gaussian process.

The covariance of a Gaussian process does not depend on labels. So what a pick does to the variance
of the others is known before its label is: it is the append of a row to the factor, seen from the
pool. The means move with the label; until it is known, a plausible one takes its place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, final

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing

from knowmore._base import (
    Answer,
    Array,
    a_type,
    as_array,
    cached_property,
    choice,
    flag,
    is_missing,
    one_each,
    shape_of,
    whole_number,
)
from knowmore.errors import InvalidInput, InvalidType
from knowmore.insight.asking import WITH_VARIANCE, asked, generator, inputs, processes
from knowmore.kernels import corner, cross
from knowmore.linalg import blocks, product
from knowmore.models import (
    Following,
    Forest,
    KernelModel,
    LinearModel,
    answered,
    class_probabilities,
    columns_in,
    finite,
)

# How many rows of a matrix of the whole pool are processed at a time.
_ROWS = 256
# How many rows of the pool stand for all of it, at most, and how many numbers may go into that.
_SOME = 1024
_NUMBERS = 2**24
# Where no class is in doubt, variances alone decide.
_LEAST_DOUBT = 1e-3
_CRITERIA = ("reduction", "margin", "uncertainty", "variance", "emoc", "random")
# Criteria that earlier versions had: a user who still asks for one is told what replaces it.
_WITHDRAWN = ("weight", "impact")
AnyModel = KernelModel | LinearModel | Forest


@final
@dataclass(frozen=True, eq=False, repr=False)
class Suggestion(Answer):
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

    It is a GPClassifier, ForestGPClassifier or LinearGPClassifier; by variance or at random, also
    one of values.

    They are picked one after the other. From then on each pick counts as an example with its most
    plausible label: the variances around it fall, the means move towards that label, and similar
    rows become less useful. By "variance" and "reduction" only the variances fall: the first labels
    may all be of classes yet unknown. A row with exactly the same features waits until no others
    are left. No label is asked for. The first pick is by the criterion alone. In a forest a pick
    joins one leaf of each tree, and the trees keep their shape.

    Parameters
    ----------
    criterion : None is "reduction", for a forest "margin", for values "variance". mu^(c) are the
        scores, sigma_*^2 the variance with the noise; t^(c') is 1 for the class in question and -1
        for the others, and means are over c'
        "reduction": d(x) sum_j d(x_j) c(x, x_j)^2 / sigma_*^2, how much the variances in the pool
        would fall, where classes are in doubt: c is the posterior covariance, and the doubt d is
        1 - (mu_(1) - mu_(2)) / 2, at least 0.001. Of a large pool about a thousand rows, evenly
        spaced, stand for all x_j. Forests have other covariances in each tree.
        "variance": sigma_*^2, the least known.
        "uncertainty": min_c |mu^(c)| / sigma_*, the smallest first (Kapoor et al.).
        "margin": how far the two best classes are apart, (mu_(1) - mu_(2)) / sigma_*, the smallest
        first.
        "emoc": the expected change of the scores in the pool (Freytag, Rodner and Denzler): mean
        |t - mu| expected under the present probabilities, over sigma_*^2, times the mean absolute
        covariance with the pool. It takes the memory of a matrix (u, u), at first of two; a linear
        model takes none of it, but the time to compute that matrix anew for each pick. Forests
        have other covariances in each tree.
        "random": drawn at random.
    random_state : a seed for "random"
    following : the answers of this model for X_pool, if they were followed through its edits: most
        of the work is done then

    Examples
    --------
    >>> from knowmore import GPClassifier
    >>> clf = GPClassifier().fit([[0.0], [1.0], [5.0], [6.0]], ["low", "low", "high", "high"])
    >>> suggest(clf, [[0.5], [3.1], [9.0], [9.1], [-3.0]], n=2, criterion="variance")
    Suggestion: 2 to label by variance
    index   value                                         reason
        3  0.4912   unlike what is known: standard deviation 0.7
        4  0.4672  unlike what is known: standard deviation 0.68
    >>> suggest(clf, [[0.5], [3.1], [5.5]], criterion="margin").reasons
    ("'high' or 'low': scores 0.041 and -0.041, standard deviation 0.41",)
    """
    gp, criterion = _asked(model, criterion)
    X = inputs(model, X_pool, "X_pool")
    if not isinstance(following, Following | None):
        raise InvalidType(f"following is {a_type(following)}. Give a Following of X_pool, or None.")
    if following is not None and not (following.model is gp and np.array_equal(following.X, X)):
        raise InvalidInput("following is of another model or of other rows. Let it follow first.")
    n = whole_number("n", n, 1, X.shape[0])
    found = _picks(gp, X, n, criterion, random_state, following)
    rows, values, reasons = zip(*((i, v[i], reason) for i, v, reason in found), strict=True)
    return Suggestion(np.array(rows), np.array(values), reasons, criterion)


def _asked(model: Any, criterion: str | None) -> tuple[AnyModel, str]:
    """The Gaussian process of a fitted estimator, and the criterion, if it applies to it."""
    if isinstance(criterion, str) and criterion in _WITHDRAWN:
        raise InvalidInput(
            f"criterion={criterion!r} is gone: in our measurements it saved no labels over "
            f"rows drawn at random. Ask for 'reduction' or 'margin'."
        )
    if criterion is not None:
        choice("criterion", criterion, _CRITERIA)
    about = "" if criterion in (None, "variance", "random") else f"criterion={criterion!r}"
    gp: AnyModel = asked(model, WITH_VARIANCE, about, "criterion='variance' or 'random'")
    if criterion is None:
        return gp, _best(gp)
    if criterion == "margin" and len(gp.names) < 2:
        raise InvalidInput("criterion='margin' needs two classes, not one. Ask for 'uncertainty'.")
    if criterion in ("reduction", "emoc") and not gp.one_covariance:
        raise InvalidInput(
            f"criterion={criterion!r} is about the covariances of one Gaussian process, and each "
            f"leaf of a forest has its own. Ask for 'margin'."
        )
    return gp, criterion


def _best(gp: AnyModel) -> str:
    """The criterion that a model is asked by unless told otherwise."""
    if not gp.classes:
        return "variance"
    if gp.one_covariance:
        return "reduction"
    return "margin" if len(gp.names) > 1 else "uncertainty"


def _picks(
    gp: AnyModel,
    X: Any,
    n: int,
    criterion: str,
    random_state: int | None,
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
    pool = _pool_of(gp, X, following)
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
            still = criterion in ("variance", "reduction")
            pool.pick(row, None if still else int(pool.mean[row].argmax()))


def _values(criterion: str, pool: _Pool) -> Array:
    """The values of all rows, (u,), larger is better."""
    if criterion == "variance":
        # In the units of the values; of several targets, the mean.
        return np.asarray(pool.variance * pool.square)
    mean, deviation = pool.mean, np.sqrt(pool.variance)
    if criterion == "uncertainty":
        # Noise is counted once: sigma_*^2 includes it already.
        return np.asarray(-abs(mean).min(axis=1) / deviation)
    if criterion == "margin":
        return np.asarray(-_apart(mean) / deviation)
    # `_asked` refuses the other criteria for forests.
    assert isinstance(pool, _Process)
    if criterion == "reduction":
        doubt = np.maximum(1 - _apart(mean) / 2, _LEAST_DOUBT)
        return np.asarray(doubt * pool.reduction(doubt))
    # mean_c' |t^(c') - mu^(c')| for each class c that the label may be, (u, M).
    apart, near = abs(1 + mean), abs(1 - mean)
    surprise = (apart.sum(axis=1, keepdims=True) - apart + near) / mean.shape[1]
    # delta f(x_j) = (t - mu) / sigma_*^2 c(x_*, x_j), c the posterior covariance.
    expected = np.einsum("ij,ij->i", class_probabilities(mean, pool.variance), surprise)
    return np.asarray(expected * pool.precision * pool.reach())


def _apart(mean: Array) -> Array:
    """How far the two best scores of each row are apart, (u,); of one class, the score from -1."""
    if mean.shape[1] == 1:
        return mean[:, 0] + 1
    second, first = np.partition(mean, -2, axis=1)[:, -2:].T
    return np.asarray(first - second)


def _reason(criterion: str, pool: _Pool, row: int) -> str:
    """Why the criterion picks this row, in a few words."""
    deviation = f"standard deviation {np.sqrt(_values('variance', pool)[row]):.2g}"
    if criterion == "variance":
        return f"unlike what is known: {deviation}"
    mean = pool.mean[row]
    names = [repr(name) for name in pool.names.tolist()]
    match criterion:
        case "uncertainty":
            c = int(abs(mean).argmin())
            reason = f"{names[c]} or not: score {mean[c]:.2g}"
        case "reduction" if len(mean) == 1:
            reason = f"like others in the pool: score {mean[0]:.2g}"
        case "reduction":
            second, first = np.argsort(mean, kind="stable")[-2:]
            scores = f"scores {mean[first]:.2g} and {mean[second]:.2g}"
            reason = f"{names[first]} or {names[second]}, and like others in the pool: {scores}"
        case "margin":
            second, first = np.argsort(mean, kind="stable")[-2:]
            scores = f"scores {mean[first]:.2g} and {mean[second]:.2g}"
            reason = f"{names[first]} or {names[second]}: {scores}"
        case _:
            p = class_probabilities(pool.mean[[row]], pool.variance[[row]])[0]
            reason = f"would change scores across the pool: {names[p.argmax()]} at {p.max():.0%}"
    return f"{reason}, {deviation}"


# -- the pool ------------------------------------------------------------------------------------


class _Pool(ABC):
    """A pool of rows X (u, d): the model counts picked rows as examples with expected labels.

    names : (M,), the columns of scores
    square : of the units of the targets, in the mean of the columns
    rounding : (u,), how much of a variance may be rounding alone
    variance : (u,), sigma_*^2 of all, noise included, and at least `rounding`; of targets as the
        model learns them, normalised if they are
    mean : mu^(c), (u, M), with the expected labels of the picks
    """

    names: Array
    square: float
    rounding: Any
    variance: Any
    mean: Any

    @abstractmethod
    def pick(self, p: int, label: int | None) -> None:
        """Row p is as if held from now on, with the number of its expected class as label.

        None: the means do not move.
        """


class _Process(_Pool):
    """The pool of one Gaussian process.

    noise : sigma^2
    R : (k, u), what the k picks added to the factor of the model: they take R'R off the covariance
        of the pool
    """

    noise: float

    def __init__(self, model: Any, X: Any, variance: Array, rounding: Array) -> None:
        self.model, self.X, self.rounding = model, X, rounding
        self.variance = np.maximum(variance, rounding)
        self.R = np.empty((0, len(variance)))

    @abstractmethod
    def _column(self, p: int) -> Array:
        """The posterior covariance with row p, (u,), without noise or picks."""

    @abstractmethod
    def _rows(self, part: slice) -> Array:
        """The posterior covariance with several rows, (k, u), without noise or picks."""

    @abstractmethod
    def _with(self, rows: Array) -> Array:
        """The posterior covariance with rows of these numbers (k,), (u, k)."""

    def pick(self, p: int, label: int | None) -> None:
        """C <- C - cc' / s and mu <- mu + c (t - mu_p)' / s, s = C_pp + sigma^2.

        c is the column of the pick p, and t (M,) the target of its expected label.
        """
        s = self.variance[p]
        if s <= self.rounding[p]:
            return
        c = self._column(p) - self.R[:, p] @ self.R
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
        return at, self._with(at)

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

    @property
    def precision(self) -> Array:
        """1 / sigma_*^2, (u,); zero for a twin of an example held if there is no noise.

        Nothing can be learnt from such a row: it could not even be added.
        """
        variance = self.variance
        return np.asarray(np.where(variance > self.rounding, 1 / variance, 0.0))

    def reach(self) -> Array:
        """The mean of |C| over the pool, (u,): how far the label of each has an effect."""
        parts = (slice(a, a + _ROWS) for a in range(0, len(self.variance), _ROWS))
        means = [abs(self._rows(i) - self.R[:, i].T @ self.R).mean(axis=1) for i in parts]
        return np.concatenate(means)


@final
class _KernelPool(_Process):
    """The pool of a kernel model; of a leaf, in the columns of all `names` (M,) of the forest.

    With picks, the half-solved columns of the pool are [L^-1 K; R]. A pick is O(n^2 + nu).
    """

    model: KernelModel

    def __init__(
        self, model: KernelModel, X: Array, names: Array, following: Following | None = None
    ) -> None:
        covariance = model.covariance
        self.following = following
        self.noise, self.names, self.square = covariance.noise, names, model.targets.square
        eps = float(np.finfo(covariance.factor.dtype).eps)
        rounding = (len(model.examples) + len(X)) * eps * covariance.prior(X)
        variance = covariance.variance(X) if following is None else following.variance
        super().__init__(model, X, variance, rounding)

    @cached_property
    def mean(self) -> Array:
        scores = self.model.mean(self.X) if self.following is None else self.following.scores
        return np.asarray(scores[:, columns_in(self.model, self.names)])

    @cached_property
    def _K(self) -> Array:
        """kappa(X_held, X), (n, u)."""
        return self.model.covariance.cross(self.X)

    @cached_property
    def _C(self) -> Array:
        """The posterior covariance kappa(X, X) - K' K~^-1 K, (u, u), without noise or picks."""
        covariance = self.model.covariance
        V = covariance.half_solve(self._K)
        C = finite(covariance.kernel, corner(covariance.kernel, self.X))
        C -= product(V.T, V)
        return C

    def _column(self, p: int) -> Array:
        if self.following is not None:
            return np.asarray(self.following.covariance(np.array([p]))[:, 0])
        covariance = self.model.covariance
        b = covariance.solve(self._K[:, [p]])[:, 0]
        k = finite(covariance.kernel, cross(covariance.kernel, self.X, self.X[[p]])[:, 0])
        return np.asarray(k - b @ self._K)

    def _rows(self, part: slice) -> Array:
        return self._C[part]

    def _with(self, rows: Array) -> Array:
        if self.following is not None:
            return self.following.covariance(rows)
        covariance = self.model.covariance
        V = covariance.half_solve(self._K)
        C = finite(covariance.kernel, cross(covariance.kernel, self.X, self.X[rows]))
        return np.asarray(C - product(V.T, V[:, rows]))


@final
class _LinearPool(_Process):
    """The pool of a linear model, which is read in blocks; a pick is O(D^2 + Du)."""

    def __init__(self, model: LinearModel, X: Any) -> None:
        self.noise, self.names, self.square = model.noise, model.names, (model.scale**2).mean()
        variance = model.noise * (1 + model.leverage(X))
        # A sum of positive terms: nothing of it is rounding alone.
        super().__init__(model, X, variance, np.zeros(len(variance)))

    @cached_property
    def mean(self) -> Array:
        return np.asarray(self.model.mean(self.X))

    def _column(self, p: int) -> Array:
        return np.asarray(self._rows(slice(p, p + 1))[0])

    def _rows(self, part: slice) -> Array:
        return np.asarray(self.model.covariance(self.X, self.X[part]).T)

    def _with(self, rows: Array) -> Array:
        return np.asarray(self.model.covariance(self.X, self.X[rows]))


@final
class _ForestPool(_Pool):
    """The pool of a forest: in each tree the pools of the leaves that the rows fall into.

    What the trees of a regressor disagree on is part of its variance, and stays: the means do not
    move there.
    """

    # Each leaf has units of its own: variances are averaged in the units of the values.
    square = 1.0

    def __init__(self, forest: Forest, X: Array) -> None:
        self.names = forest.names
        self.trees = [
            [(answered(self._leaf(gp), X, rows), rows) for gp, rows in tree]
            for tree in processes(forest, X)
        ]
        self.apart = 0.0 if forest.classes else forest.disagreement(X).mean(axis=1)

    def _leaf(self, gp: KernelModel) -> Callable[[Array], _KernelPool]:
        return lambda X: _KernelPool(gp, X, self.names)

    @property
    def mean(self) -> Array:
        return self._averaged(lambda pool: pool.mean)

    @property
    def variance(self) -> Array:
        return self._averaged(lambda pool: pool.variance * pool.square) + self.apart

    @property
    def rounding(self) -> Array:
        return self._averaged(lambda pool: pool.rounding * pool.square)

    def _averaged(self, ask: Callable[[_KernelPool], Array]) -> Array:
        """The mean over the trees of what their leaves say of each row, (u,) or (u, M)."""
        trees = []
        for tree in self.trees:
            order = np.concatenate([rows for _, rows in tree]).argsort()
            trees.append(np.concatenate([ask(pool) for pool, _ in tree])[order])
        return np.asarray(np.mean(trees, axis=0))

    def pick(self, p: int, label: int | None) -> None:
        for tree in self.trees:
            for pool, rows in tree:
                for here in np.flatnonzero(rows == p).tolist():
                    pool.pick(here, label)


def _pool_of(model: Any, X: Any, following: Following | None) -> _Pool:
    if not model.keeps_rows:
        return _LinearPool(model, X)
    if not model.has_gram:
        return _ForestPool(model, X)
    return _KernelPool(model, X, model.names, following)


# -- for scikit-activeml -------------------------------------------------------------------------


@final
@dataclass(eq=False, repr=False)
class SuggestQuery(BaseEstimator):
    """A pool-based query strategy as scikit-activeml calls them: `query(X, y, clf, ...)`.

    `clf` is an estimator of knowmore itself, without a wrapper. Wrappers around strategies that
    insist on scikit-activeml's own class take it after
    `skactiveml.base.SingleAnnotatorPoolQueryStrategy.register(SuggestQuery)`.

    Parameters
    ----------
    criterion : one of `suggest`; None is the best that the model has
    missing_label : what y holds where there is no label yet: NaN or None, which are the same here,
        a string or a number
    random_state : a seed for the criterion "random"

    Examples
    --------
    >>> from knowmore import GPClassifier
    >>> X, y = np.array([[0.0], [1.0], [2.0], [9.0]]), np.array([0.0, 1.0, np.nan, np.nan])
    >>> SuggestQuery("variance").query(X, y, GPClassifier())
    array([3])
    """

    criterion: str | None = None
    missing_label: Any = np.nan
    random_state: int | None = None

    def query(
        self,
        X: Any,
        y: Any,
        clf: Any,
        fit_clf: bool = True,
        candidates: Any = None,
        batch_size: int = 1,
        return_utilities: bool = False,
    ) -> Array | tuple[Array, Array]:
        """Which samples to label next, (batch_size,), the most useful first.

        X (n, d) and y (n,) are all samples and their labels where known. `clf` is fitted to these,
        or used as given. `candidates`: row numbers of X, by default those without a label; or
        separate inputs (u, d), to which the answer then refers. The utilities (batch_size, n) or
        (batch_size, u) are the values at each pick, NaN where there is none.
        """
        labels, n = as_array("y", y), (*shape_of("X", X), 0)[0]
        one_each("y", labels.shape, n)
        missing = _missing(labels, self.missing_label)
        model, with_utilities = clf, flag("return_utilities", return_utilities)
        if flag("fit_clf", fit_clf):
            if not isinstance(clf, BaseEstimator):
                raise InvalidType(f"clf is {a_type(clf)}. Give an estimator, as GPClassifier().")
            if missing.all():
                raise InvalidInput("y has no label yet. Label a first example by hand.")
            held = np.flatnonzero(~missing)
            model = clone(clf).fit(_safe_indexing(X, held), np.array(labels[held].tolist()))
        gp, criterion = _asked(model, self.criterion)
        if len(shape_of("candidates", candidates)) > 1:
            X, n = candidates, np.shape(candidates)[0]
            rows = np.arange(n)
        else:
            rows = _rows(np.flatnonzero(missing) if candidates is None else candidates, n)
            X = _safe_indexing(X, rows)
        pool = inputs(model, X, "The set of candidates")
        count = whole_number("batch_size", batch_size, 1, pool.shape[0])
        found = _picks(gp, pool, count, criterion, self.random_state)
        picked, values, _ = zip(*found, strict=True)
        indices = rows[list(picked)]
        if not with_utilities:
            return indices
        utilities = np.full((count, n), np.nan)
        utilities[:, rows] = values
        return indices, utilities


def _rows(candidates: Any, n: int) -> Array:
    """Candidates as row numbers of X, (u,)."""
    rows = np.asarray(candidates)
    if rows.size == 0:
        raise InvalidInput("The set of candidates is empty. Give rows, or leave labels missing.")
    is_rows = rows.ndim == 1 and np.issubdtype(rows.dtype, np.integer)
    if not is_rows or len(np.unique(rows)) < len(rows) or rows.min() < 0 or rows.max() >= n:
        found = f"{np.array2string(rows, threshold=6)}, {rows.dtype} of shape {rows.shape}"
        raise InvalidInput(
            f"candidates are {found}. Give inputs (u, d), or row numbers (u,) of X, each once, "
            f"from 0 to {n - 1}; for a mask np.flatnonzero(mask)."
        )
    return rows


def _missing(labels: Array, label: Any) -> Array:
    """A mask of the rows without a label, (n,)."""
    if is_missing(label):
        found = [is_missing(one) for one in labels.tolist()]
    elif isinstance(label, (str, Real)):
        found = [not is_missing(one) and one == label for one in labels.tolist()]
    else:
        raise InvalidInput(f"missing_label={label!r}. Give NaN, None, a string or a number.")
    return np.array(found, dtype=bool)
