"""Frozen feature maps: rows whose dot products are a kernel, for the linear Gaussian process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from hashlib import blake2b, sha256
from heapq import nsmallest
from typing import Any, Self, final

import numpy as np
from scipy.linalg import lapack, solve_triangular
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import Tags
from sklearn.utils.multiclass import type_of_target

from knowmore._base import (
    Array,
    Frozen,
    Id,
    Savable,
    as_ids,
    bounded,
    check_free,
    ids_of,
    whole_number,
)
from knowmore.edits import Remove
from knowmore.errors import InvalidInput, NoExamples, NotPositiveDefinite
from knowmore.estimators import checks
from knowmore.estimators.living import own_kernel
from knowmore.estimators.shell import fit_copy, fitted, update_fitted
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel, corner, cross
from knowmore.linalg import BLOCK, blocks, evaluated, extremes
from knowmore.models import SettingsRule, normalised_values, one_vs_all

# Rows that are transformed at once: enough for fast products, few enough for one to be asked about.
_ROWS = 32
# Values that are compared with levels at a time.
_NUMBERS = 2**20
# The largest value of a histogram: sums of a few more are still numbers.
_LARGEST = 2.0**1000


@final
@dataclass(eq=False, repr=False)
class Landmarks(Savable, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Features whose dot products approximate a kernel, from its values at a few rows (Nystroem).

    With landmarks Z (r, D) and k(Z, Z) = L L', L lower triangular,

        phi(x) = L^-1 k(Z, x),    phi(x)'phi(y) = k(x, Z) k(Z, Z)^-1 k(Z, y),

    which is k(x, y) itself wherever x or y is a landmark. Before a `LinearGPClassifier` in a
    `Pipeline` it makes a Gaussian process with nearly that kernel, for any number of rows.

    The landmarks are the rows with the smallest hashes of their values and the seed: a random
    sample of the different rows that is the same in any order. Forgetting other rows would not
    change it, and the map without a landmark is the map that would have been fitted to the rest,
    with one landmark less. Equal rows count as one, under the id of the first.

    Parameters
    ----------
    kernel : as for `GPClassifier`. None: by leave-one-out over the landmarks, as a GPClassifier or
        GPRegressor of them chooses it; without y as wide as their median distance
    n_landmarks : how many; None makes every row a landmark, for those who have chosen the rows
    seed : another one chooses other rows

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from knowmore import LinearGPClassifier, living
    >>> X, y = load_digits(return_X_y=True)
    >>> pipe = make_pipeline(Landmarks(n_landmarks=200), LinearGPClassifier())
    >>> alive = living(pipe.fit(X[:1000], y[:1000])).partial_fit(X[1000:1500], y[1000:1500])
    >>> round(alive.score(X[1500:], y[1500:]), 2)
    0.94

    Notes
    -----
    A landmark that is a combination of others, to rounding, adds no feature: see `n_components_`.
    The features of a row have the same bits whether it is transformed alone or among others, so a
    linear model forgets it to the last bit. That holds on one machine; on another the last bits may
    differ. A map of scikit-learn does not promise it: at 16 bits, one value in about 10^11 may be
    read as its neighbour on the grid.
    """

    kernel: Any = None
    n_landmarks: int | None = 100
    _: KW_ONLY
    seed: int = 0

    def fit(self, X: Any, y: Any = None, ids: Any = None) -> Self:
        """Choose landmarks among X (n, D), dense, sparse, or mapped from a file.

        y : labels or targets, which choose the kernel if none is given
        ids: as for `GPClassifier`; by default the index of a table, or the numbers of the rows.
        """
        fit_copy(self, lambda copy: copy._learn(X, y, ids))
        return self

    def _learn(self, X: Any, y: Any, ids: Any) -> None:
        names = ids_of(ids, X=X)
        X = checks.rows(self, X, reset=True, finite=True)
        if names is not None and len(names) != X.shape[0]:
            raise InvalidInput(f"{len(names)} ids were given for {X.shape[0]} rows. Give one each.")
        chosen = list(self._first(X).values())
        found = tuple(chosen if names is None else (names[row] for row in chosen))
        kernel = None if self.kernel is None else own_kernel(self.kernel)
        labels = None if self.kernel is not None or y is None else _labels(y, X.shape[0])
        said = np.zeros(len(chosen)) if labels is None else labels[chosen]
        examples = Examples.of(_table(X[chosen]), said, found)
        self.map_ = LandmarkMap.of(kernel, examples, labelled=labels is not None)

    def _first(self, X: Any) -> dict[bytes, int]:
        """The smallest hashes of rows of X, in order, and the first row that has each."""
        limit = self.n_landmarks
        n = X.shape[0] if limit is None else whole_number("n_landmarks", limit, 1)
        found: dict[bytes, int] = {}
        for row, code in enumerate(_hashes(self, X)):
            found.setdefault(code, row)
            if len(found) == 2 * n + BLOCK:
                found = dict(nsmallest(n, found.items()))
        return dict(nsmallest(n, found.items()))

    def forget(self, X: Any = None, *, ids: Any = None) -> Self:
        """Withdraw landmarks: those equal to rows of X (k, D), or those with these ids.

        Rows that are no landmarks left nothing here, and change nothing; ids must be in `ids_`.
        Without a landmark the map is another one, with other names of features and often one less.
        Whatever has learnt its features would give wrong answers: `transform` refuses until `renew`
        is called, and then what follows must be fitted again.
        """
        if (X is None) == (ids is None):
            raise InvalidInput("Give either rows X or ids of landmarks.")
        withdrawn = landmarks_among(self, X) if ids is None else as_ids(ids, ordered=False)
        update_fitted(self, "map_", lambda held: held.without(withdrawn))
        return self

    def renew(self) -> Self:
        """Use the map without the withdrawn landmarks. Fit all later steps again.

        In a pipeline: `pipe[0].renew()`, then `pipe[-1].fit(pipe[:-1].transform(X), y)` on the rows
        that are left.
        """
        update_fitted(self, "map_", lambda held: replace(held, changed=False))
        return self

    def transform(self, X: Any) -> Array:
        """The features phi of X (m, D), (m, r)."""
        held, X = self._held, checks.rows(self, X, reset=False, finite=True)
        if held.changed:
            raise InvalidInput(
                "Landmarks were withdrawn, so the map is another one: a model that has learnt its "
                "features would give wrong answers. Call renew() and fit again what follows."
            )
        parts = (held.features(_table(rows)) for rows in blocks(X, _ROWS))
        return bounded(lambda: np.vstack([*parts]))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """landmarks_3f0c5a91_0, ...: with the first digits of the map's digest.

        With `set_output(transform="pandas")` a model refuses the features of another map.
        """
        count, digest = len(super().get_feature_names_out(input_features)), self.digest()
        return np.array([f"landmarks_{digest[:8]}_{j}" for j in range(count)], dtype=object)

    def digest(self) -> str:
        """The SHA-256 of the landmarks and their kernel values: the same for the same map."""
        return self._held.digest()

    @property
    def ids_(self) -> Array:
        """The ids of the landmarks, (n,), those that add no feature included."""
        return self._held.examples.ids

    @property
    def landmarks_(self) -> Array:
        """The landmarks, (n, D), in the order of `ids_`."""
        return self._held.examples.X

    @property
    def kernel_(self) -> AnyKernel:
        """A copy of the kernel in use."""
        return own_kernel(self._held.kernel)

    @property
    def n_components_(self) -> int:
        """The number of features, r: landmarks that are no combination of others."""
        return len(self._held.used)

    _n_features_out = n_components_

    @property
    def _held(self) -> LandmarkMap:
        held: LandmarkMap = fitted(self, "map_")
        return held

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def landmarks_among(step: Landmarks, X: Any) -> tuple[Id, ...]:
    """The ids of the landmarks that are equal to rows of X (k, D)."""
    held = fitted(step, "map_").examples
    given = set(_hashes(step, checks.rows(step, X, reset=False, finite=True)))
    own = zip(held.names, _hashes(step, held.X), strict=True)
    return tuple(name for name, code in own if code in given)


def _labels(y: Any, n: int) -> Array:
    """Labels or targets of n rows: numbers with fractions are targets."""
    if type_of_target(y, "y").startswith("continuous"):
        return checks.target_values(y, n, None, "float64")
    return checks.class_labels(y, n, None)


def _hashes(step: Landmarks, X: Any) -> Iterator[bytes]:
    """A hash of the values of each row of X and the seed."""
    salt = whole_number("seed", step.seed, 0, 2**64 - 1).to_bytes(16, "little")
    for rows in blocks(X):
        for x in _table(rows).astype("<f8", copy=False):
            yield blake2b(x.tobytes(), digest_size=16, salt=salt).digest()


@final
@dataclass(frozen=True, eq=False)
class LandmarkMap(Frozen):
    """The map of a set of landmarks, which is all that it depends on.

    given : the kernel, or None if the landmarks choose it
    examples : the landmarks; their labels mean nothing unless they are `labelled`
    kernel : the kernel in use
    used : the rows of the landmarks that add a feature, (r,), that which adds most first
    L : the Cholesky factor of their kernel values, (r, r)
    changed : whether it became another map that nobody has agreed to yet
    """

    given: Any
    examples: Examples
    kernel: AnyKernel
    used: Array
    L: Array
    changed: bool = False
    labelled: bool = False

    @classmethod
    def of(cls, given: Any, examples: Examples, *, labelled: bool = False) -> LandmarkMap:
        """The map of these landmarks."""
        Z, kernel = examples.X, given
        if not isinstance(kernel, Kernel) and not callable(kernel):
            values = examples.labels.dtype.kind == "f"
            mode = "living" if labelled else "median"
            rule = SettingsRule(kernel, None, mode, normalised_values if values else one_vs_all)
            kernel = rule.chosen(examples).settings.kernel
        K = bounded(lambda: corner(kernel, Z))
        # It stops where no pivot is left that is larger than the rounding of the largest.
        C, order, rank, _ = evaluated(partial(lapack.dpstrf, K, lower=1), K.size, len(K))
        rows, L = order - 1, np.tril(C)[:, :rank]
        left = np.diagonal(K)[rows] - (L**2).sum(axis=1)
        # A hundred times what rounding leaves.
        if left.min() < -100 * len(K) * np.finfo(float).eps * abs(np.diagonal(K)).max():
            row = int(rows[left.argmin()])
            raise NotPositiveDefinite(
                f"The kernel {kernel!r} is not positive semidefinite at the landmark "
                f"{examples.names[row]!r}: no features have its values as dot products. Use a "
                f"positive kernel, such as RBF.",
                row,
            )
        if not rank:
            raise InvalidInput("The kernel is zero at all landmarks. Give other rows or a kernel.")
        used, L = rows[:rank], np.ascontiguousarray(L[:rank])
        return cls(given, examples, kernel, used, L, labelled=labelled)

    def without(self, ids: tuple[Id, ...]) -> LandmarkMap:
        """The map without these landmarks."""
        rest = self.examples.apply(Remove(ids))
        if not len(rest):
            raise NoExamples("That would leave no landmark. Fit the map to other rows instead.")
        after = LandmarkMap.of(self.given, rest, labelled=self.labelled)
        return replace(after, changed=self.changed or after.digest() != self.digest())

    def features(self, X: Array) -> Array:
        """phi of each row of X (m, D), (m, r), for at most `_ROWS` of them.

        Fewer are filled up. BLAS rounds differently in products of different shapes; in products
        of one shape a row has the same bits wherever it stands.
        """
        filled = np.resize(X, (_ROWS, X.shape[1]))
        K = cross(self.kernel, filled, self.examples.X[self.used])
        solve = partial(solve_triangular, self.L, K.T, lower=True, check_finite=False)
        return np.asarray(evaluated(solve, self.L.size, _ROWS).T[: len(X)])

    def digest(self) -> str:
        """The SHA-256 of the landmarks in use and of L."""
        return sha256(self.examples.X[self.used].tobytes() + self.L.tobytes()).hexdigest()


@final
@dataclass(eq=False, repr=False)
class IntersectionMap(Savable, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Codes of zeros and ones whose dot products are histogram intersections, exactly.

    A value is rounded to a multiple l of one step and written as l ones. Two codes share the
    smaller number of ones, so with values rounded like that, as in `rounded`,

        phi(x)'phi(y) = sum_j min(x_j, y_j) / step.

    A linear model sums codes exactly on any grid; with `resolution=8` it is fastest.

    Parameters
    ----------
    levels : how many steps make the largest value of all; the step is the next power of two. A
        column has as many codes as its largest value needs, and one at least. A value above the
        largest that its column had in the fit counts as that one.

    Examples
    --------
    >>> X = np.array([[0.5, 0.0], [0.25, 1.0]])
    >>> codes = IntersectionMap(levels=4).fit(X)
    >>> codes.transform(X)
    array([[1, 1, 0, 0, 0, 0],
           [1, 0, 1, 1, 1, 1]], dtype=uint8)
    >>> codes.step_ * (codes.transform(X).astype(int) @ codes.transform(X).T)
    array([[0.5 , 0.25],
           [0.25, 1.25]])
    """

    levels: int = 16

    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the step for histograms like X (n, D), dense or sparse. y is ignored."""
        fit_copy(self, lambda copy: copy._learn(X))
        return self

    def _learn(self, X: Any) -> None:
        levels = whole_number("levels", self.levels, 1, 2**31 - 1)
        X = _histograms(checks.rows(self, X, reset=True, finite=True))
        largest = extremes(X)[1]
        if (most := largest.max()) > _LARGEST:
            raise InvalidInput(
                f"X has {most:g}, but values are coded only up to {_LARGEST:g}. Scale them."
            )
        self.step_ = float(2.0 ** np.ceil(np.log2(most / levels or 1.0)))
        self.levels_ = np.maximum(np.rint(largest / self.step_), 1).astype(int)
        self._check_room(1)

    def transform(self, X: Any) -> Array:
        """The codes of X (m, D), (m, sum of `levels_`), of type uint8."""
        counts, width = self._counts(X), self._n_features_out
        self._check_room(len(counts))
        first = np.cumsum(self.levels_) - self.levels_
        level = np.arange(width) - np.repeat(first, self.levels_)
        codes = np.empty((len(counts), width), np.uint8)
        step = max(_NUMBERS // width, 1)
        for begin in range(0, len(counts), step):
            rows = slice(begin, begin + step)
            codes[rows] = np.repeat(counts[rows], self.levels_, axis=1) > level
        return codes

    def _check_room(self, m: int) -> None:
        """Raise NotEnoughMemory if there is none for the codes of m rows and what they take."""
        width = self._n_features_out
        what = f"levels={self.levels} makes {width:,} codes of a row: {m:,} row(s) take"
        work = 8 * (3 * width + 2 * max(_NUMBERS, width))
        check_free(m * width + work, what, "Use fewer levels, or transform fewer rows at a time.")

    def rounded(self, X: Any) -> Array:
        """The histograms X (m, D) as they are coded, (m, D)."""
        return np.asarray(self._counts(X) * self.step_)

    def _counts(self, X: Any) -> Array:
        """X in multiples of the step, (m, D)."""
        fitted(self, "levels_")
        X = _histograms(checks.rows(self, X, reset=False, finite=True))
        most = self.levels_ * self.step_
        return np.vstack([np.rint(np.minimum(rows, most) / self.step_) for rows in blocks(X)])

    @property
    def _n_features_out(self) -> int:
        return int(fitted(self, "levels_").sum())

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _table(rows: Any) -> Array:
    """Rows as float64, dense; zero has no sign, so that equal rows have equal bytes."""
    dense = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
    return np.asarray(dense.astype(float) + 0.0)


def _histograms(X: Any) -> Any:
    """X, if no value is negative."""
    if X.min() < 0:
        # scikit-learn's checks look for the first words.
        raise InvalidInput(
            f"Negative values in data: X has {X.min():g}, but histograms have none. Give counts, "
            f"or use Landmarks with a kernel such as RBF."
        )
    return X
