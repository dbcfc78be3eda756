"""Principal components that learn, forget and merge."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self, cast, final

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags

from knowmore._base import Array, Savable, bounded, flag, number, whole_number
from knowmore.errors import InvalidInput
from knowmore.estimators import (
    check_mergeable,
    dense,
    fit_copy,
    fitted,
    names_in,
    numbers,
    table,
    update_fitted,
)
from knowmore.subspaces.eigenspace import Eigenspace
from knowmore.subspaces.spectrum import Truncation


@final
@dataclass(eq=False, repr=False)
class EigenspacePCA(Savable, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Principal component analysis that adds, forgets and merges, with scikit-learn's names.

    With all components kept it equals scikit-learn's `PCA` of the rows it holds now, to rounding.
    With fewer, `eigenspace_.discarded` is the variance that was dropped.

    Parameters
    ----------
    n_components : the maximum number of components; between 0 and 1, the fraction of the variance
        to keep; a `Truncation`; None keeps all
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

    n_components: int | float | Truncation | None = None
    _: KW_ONLY
    whiten: bool = False

    # -- learning ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn X (n, D), dense or sparse, from scratch. y is ignored."""
        fit_copy(self, lambda copy: copy._learn(X))
        return self

    def _learn(self, X: Any) -> None:
        space = Eigenspace.of(table(self, X, reset=True), self._rank())
        self.eigenspace_ = space.with_names(names_in(self))

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn more rows: any number, even one, or fewer than there are components."""
        if fit_copy(self, lambda copy: copy.fit(X), unless="eigenspace_"):
            return self
        X, rank = table(self, X, reset=False), self._rank()
        update_fitted(self, "eigenspace_", lambda space: space.add_rows(X, rank))
        return self

    def forget(self, X: Any) -> Self:
        """Remove rows that were learnt before, as if they had never been there."""
        fitted(self, "eigenspace_")
        X, rank = table(self, X, reset=False), self._rank()
        update_fitted(self, "eigenspace_", lambda space: space.remove_rows(X, rank))
        return self

    def merge(self, other: EigenspacePCA) -> Self:
        """Learn all that another one has learnt."""
        check_mergeable(self, other, "eigenspace_")
        joining, rank = other.eigenspace_, self._rank()
        update_fitted(self, "eigenspace_", lambda space: space.merge(joining, rank))
        return self

    # -- asking ------------------------------------------------------------------------------

    def transform(self, X: Any) -> Array:
        """The coordinates of X (m, D) along the components, (m, d)."""
        space = self._held
        X, P, unit = table(self, X, reset=False), space.components, self._unit(space)
        if sparse.issparse(X):
            return bounded(lambda: (np.asarray(X @ P.T) - space.mean @ P.T) / unit)
        return bounded(lambda: space.project(X) / unit)

    def inverse_transform(self, X: Any) -> Array:
        """The points (m, D) with the coordinates X (m, d)."""
        space, Z = self._held, numbers("X", X, ensure_2d=True)
        if Z.shape[1] != len(space.variances):
            need = f"(m, {len(space.variances)}) is needed, as transform returns it"
            raise InvalidInput(f"X has shape {Z.shape}, but {need}.")
        return bounded(lambda: space.reconstruct(Z * self._unit(space)))

    def score_samples(self, X: Any) -> Array:
        """The log-density of each row of X (m, D) under probabilistic PCA, (m,).

        Where no variance is left outside the components (`noise_variance_` is zero) and they do
        not span all features, there is no density: -inf, as in scikit-learn.
        """
        space, X = self._held, dense(self, X, reset=False)
        D, d, (variances, noise) = len(space.mean), len(space.variances), _unbiased(space)
        if d < D and noise == 0:
            return np.full(len(X), -np.inf)
        # (x - mu)' C^-1 (x - mu) and log |C|, C = P' (variances - noise) P + noise I.
        volume = np.log(variances).sum() + ((D - d) * np.log(noise) if d < D else 0.0)

        def density() -> Array:
            distances = (space.project(X) ** 2 / variances).sum(axis=1)
            if d < D:
                distances = distances + space.distances(X) ** 2 / noise
            return np.asarray(-0.5 * (distances + volume + D * np.log(2 * np.pi)))

        return bounded(density)

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`. y is ignored."""
        return float(self.score_samples(X).mean())

    def get_covariance(self) -> Array:
        """The covariance of probabilistic PCA, (D, D), with 1/(n - 1)."""
        space = self._held
        return _matrix(space, *_unbiased(space))

    def get_precision(self) -> Array:
        """Its inverse, (D, D); the pseudo-inverse where it has none."""
        space = self._held
        variances, noise = _unbiased(space)
        return _matrix(space, 1 / variances, 1 / noise if noise else 0.0)

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
        return _unbiased(self._held)[0]

    @property
    def explained_variance_ratio_(self) -> Array:
        """The fraction of the total variance along each component, (d,)."""
        space = self._held
        return np.asarray(space.variances / (space.total_variance or 1.0))

    @property
    def singular_values_(self) -> Array:
        """The singular values of the centred rows, (d,)."""
        space = self._held
        return np.asarray(np.sqrt(space.n_samples * space.variances))

    @property
    def noise_variance_(self) -> float:
        """The mean variance along the directions that were dropped, with 1/(n - 1)."""
        return _unbiased(self._held)[1]

    @property
    def n_components_(self) -> int:
        """The number of components now."""
        return len(self._held.components)

    @property
    def n_samples_(self) -> int:
        """The number of rows held now."""
        return self._held.n_samples

    # -- internals ---------------------------------------------------------------------------

    _n_features_out = n_components_

    @property
    def _held(self) -> Eigenspace:
        return cast("Eigenspace", fitted(self, "eigenspace_"))

    def _unit(self, space: Eigenspace) -> Any:
        """The standard deviations along the components, (d,), if whitening; else 1."""
        return np.sqrt(_unbiased(space)[0]) if flag("whiten", self.whiten) else 1.0

    def _rank(self) -> Truncation:
        flag("whiten", self.whiten)
        wanted = self.n_components
        if wanted is None or isinstance(wanted, Truncation):
            return Truncation.by(wanted)
        if isinstance(wanted, Integral):
            return Truncation(whole_number("n_components", wanted, 0))
        hint = "Or give a whole number, a Truncation, or None for all."
        return Truncation(fraction=number("n_components", wanted, "(0, 1)", hint))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _unbiased(space: Eigenspace) -> tuple[Array, float]:
    """The variances (d,) and the noise, with 1/(N - 1) instead of 1/N."""
    scale = space.n_samples / max(space.n_samples - 1, 1)
    return scale * space.variances, scale * space.noise


def _matrix(space: Eigenspace, values: Array, rest: float) -> Array:
    """The symmetric (D, D) with these values (d,) along the components, and `rest` elsewhere."""
    P = space.components
    return np.asarray((P.T * (values - rest)) @ P + rest * np.eye(P.shape[1]))
