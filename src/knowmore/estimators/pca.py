"""Principal components that learn, forget and merge."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from knowmore.errors import InvalidInput, NotFitted
from knowmore.estimators.checks import table
from knowmore.estimators.shell import exchange, same_features, same_kind, unchanged_on_error
from knowmore.linalg import Eigenspace, Truncation

Array = npt.NDArray[Any]


@final
class EigenspacePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Principal component analysis that adds, forgets and merges, with scikit-learn's names.

    With all components kept it equals scikit-learn's `PCA` of the rows it holds now, to rounding.
    With fewer it says how much it dropped: `eigenspace_.discarded`.

    Parameters
    ----------
    n_components : how many components to keep at most; between 0 and 1, the fraction of the
        variance that they hold; a `Truncation`; None keeps all
    whiten : whether `transform` divides each component by its standard deviation

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> pca = EigenspacePCA().fit(X[:60]).partial_fit(X[60:]).forget(X[:30])
    >>> pca.n_samples_, pca.components_.shape
    (70, (5, 5))
    >>> bool(np.allclose(pca.get_covariance(), np.cov(X[30:].T)))
    True
    """

    def __init__(
        self, n_components: int | float | Truncation | None = None, *, whiten: bool = False
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten

    # -- learning ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn X (n, D), dense or sparse, from scratch. y is ignored."""
        with unchanged_on_error(self):
            rule = self._rule()
            self.eigenspace_ = Eigenspace.of(table(self, X, reset=True), rule)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn more rows: any number, one alone or fewer than there are components too."""
        if not self.__sklearn_is_fitted__():
            return self.fit(X)
        X = table(self, X, reset=False)
        rule = self._rule()
        exchange(self, "eigenspace_", lambda held: held.add_rows(X, rule))
        return self

    def forget(self, X: Any) -> Self:
        """Take out rows that were learnt before, as if they had never been there."""
        self._check_fitted()
        X = table(self, X, reset=False)
        rule = self._rule()
        exchange(self, "eigenspace_", lambda held: held.remove_rows(X, rule))
        return self

    def merge(self, other: EigenspacePCA) -> Self:
        """Learn all that another one has learnt."""
        same_kind(self, other)
        other._check_fitted()
        self._check_fitted()
        same_features(self, other)
        joining, rule = other.eigenspace_, self._rule()
        exchange(self, "eigenspace_", lambda held: held.merge(joining, rule))
        return self

    # -- asking ------------------------------------------------------------------------------

    def transform(self, X: Any) -> Array:
        """The coordinates of X (m, D) along the components, (m, d)."""
        self._check_fitted()
        X = table(self, X, reset=False)
        Z = np.asarray(X @ self.components_.T) - self.mean_ @ self.components_.T
        return np.asarray(Z / np.sqrt(self.explained_variance_)) if self.whiten else Z

    def inverse_transform(self, X: Any) -> Array:
        """The points (m, D) that have the coordinates X (m, d)."""
        self._check_fitted()
        Z = np.asarray(X, dtype=float)
        if Z.ndim != 2 or Z.shape[1] != self.n_components_:
            raise InvalidInput(
                f"X has shape {Z.shape}, but coordinates along {self.n_components_} components "
                f"are needed, as transform returns them."
            )
        Z = Z * np.sqrt(self.explained_variance_) if self.whiten else Z
        return self.eigenspace_.reconstruct(Z)

    def score_samples(self, X: Any) -> Array:
        """The log-density of each row of X (m, D) under probabilistic PCA, (m,).

        Where no variance is left outside the components (`noise_variance_` is zero) and they do
        not span all features, there is no density: -inf, as scikit-learn has it.
        """
        self._check_fitted()
        X = table(self, X, reset=False)
        X = X if isinstance(X, np.ndarray) else X.toarray()
        D, d = self.n_features_in_, self.n_components_
        noise, variances = self.noise_variance_, self.explained_variance_
        if d < D and noise == 0:
            return np.full(len(X), -np.inf)
        # (x - mu)' C^-1 (x - mu) and log |C|, C = P' (variances - noise) P + noise I.
        Z = self.eigenspace_.project(X)
        distances = (Z**2 / variances).sum(axis=1)
        volume = np.log(variances).sum()
        if d < D:
            distances = distances + self.eigenspace_.distances(X) ** 2 / noise
            volume = volume + (D - d) * np.log(noise)
        return np.asarray(-0.5 * (distances + volume + D * np.log(2 * np.pi)))

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`. y is ignored."""
        return float(self.score_samples(X).mean())

    def get_covariance(self) -> Array:
        """The covariance of probabilistic PCA, (D, D), with 1/(n - 1)."""
        P, noise = self.components_, self.noise_variance_
        return (P.T * (self.explained_variance_ - noise)) @ P + noise * np.eye(P.shape[1])

    def get_precision(self) -> Array:
        """Its inverse, (D, D); the pseudo-inverse where it has none."""
        P, noise = self.components_, self.noise_variance_
        rest = 1 / noise if noise else 0.0
        return (P.T * (1 / self.explained_variance_ - rest)) @ P + rest * np.eye(P.shape[1])

    # -- scikit-learn's names for what the eigenspace holds ------------------------------------

    @property
    def components_(self) -> Array:
        """The principal directions, (d, D), largest variance first."""
        return self._held.components

    @property
    def mean_(self) -> Array:
        """The mean, (D,)."""
        return self._held.mean

    @property
    def explained_variance_(self) -> Array:
        """The variance along each component with 1/(n - 1), (d,)."""
        return self._held.variances * self._unbiased

    @property
    def explained_variance_ratio_(self) -> Array:
        """The part of the whole variance along each component, (d,)."""
        return self._held.variances / (self._held.total_variance or 1.0)

    @property
    def singular_values_(self) -> Array:
        """The singular values of the centred rows, (d,)."""
        return np.asarray(np.sqrt(self.n_samples_ * self._held.variances))

    @property
    def noise_variance_(self) -> float:
        """The mean variance along the directions that were dropped."""
        return self._held.noise * self._unbiased

    @property
    def n_components_(self) -> int:
        """How many components there are now."""
        return len(self._held.components)

    @property
    def n_samples_(self) -> int:
        """How many rows it holds now."""
        return self._held.n_samples

    # -- inside ------------------------------------------------------------------------------

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    @property
    def _held(self) -> Eigenspace:
        self._check_fitted()
        return self.eigenspace_

    @property
    def _unbiased(self) -> float:
        return self.n_samples_ / max(self.n_samples_ - 1, 1)

    def _rule(self) -> Truncation:
        """What is kept, in the words of `Truncation`."""
        wanted = self.n_components
        if wanted is None or isinstance(wanted, (Truncation, Integral)):
            return Truncation.by(wanted)
        if not (isinstance(wanted, Real) and 0 < wanted < 1):
            raise InvalidInput(
                f"n_components={wanted!r} is not known. Give a whole number, a fraction of the "
                f"variance between 0 and 1, a Truncation, or None for all."
            )
        return Truncation(fraction=float(wanted))

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFitted(
                f"This {type(self).__name__} has learnt nothing yet. Call fit or partial_fit first."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "eigenspace_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags
