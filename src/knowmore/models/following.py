"""Fixed questions whose answers follow a model through its edits.

A page or a pool asks about the same rows after every edit. With W = L^-1 k(X_held, X), (n, m), and
the half-solved targets H = L^-1 B

    scores    W'H,    variance    k(x, x) - sum_i W_ix^2 + sigma^2.

An append adds a row to W and to both sums: O(nm) instead of the O(n^2 m) of asking anew. A deletion
turns W by the same rotations as L, [L; W'], and sums again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from knowmore._base import Array, Frozen, a_type, bounded, cached_property, derived, real_numbers
from knowmore.errors import InvalidInput, InvalidType
from knowmore.examples import Examples, Rows
from knowmore.kernels import cross
from knowmore.linalg import product
from knowmore.models.covariance import finite
from knowmore.models.kernel_model import KernelModel, mean_of
from knowmore.models.targets import in_squares


class _Known(NamedTuple):
    """Leading rows of W, and if known the sums over them: W'H, (m, M + r), and of squares, (m,)."""

    W: Rows
    sums: tuple[Array, Array] | None


@final
@dataclass(frozen=True, eq=False, repr=False)
class Following(Frozen):
    """The answers of a model for rows X; `follow` moves on to another model at less cost.

    model : a kernel model. One with an explicit inverse is asked anew each time, and one of the
        squared hinge for its scores.
    X : the rows that are asked about, (m, d)

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from knowmore.edits import Add, Remove
    >>> from knowmore.examples import Examples
    >>> from knowmore.linalg import Cholesky
    >>> from knowmore.models import one_vs_all
    >>> some = Examples.of(np.array([[0.0], [1.0]]), np.array(["no", "yes"]))
    >>> model = KernelModel.of(RBF(), 0.1, some, one_vs_all, Cholesky())
    >>> pool = Following(model, np.array([[0.2], [3.0]]))
    >>> some = some.apply(Add(np.array([[3.0]]), np.array(["no"]))).apply(Remove((0,)))
    >>> pool = pool.follow(model.follow(some))
    >>> pool.scores.round(2), pool.variance.round(2)
    (array([[-0.73,  0.73],
           [ 0.9 , -0.9 ]]), array([0.62, 0.19]))
    """

    model: KernelModel
    X: Array
    _known: _Known | None = None

    def __post_init__(self) -> None:
        if not hasattr(self.model, "covariance"):
            raise InvalidType(
                f"Following takes a frozen model, not {a_type(self.model)}. Give its model_, and "
                f"call follow(model_) after an edit."
            )
        vars(self)["X"] = real_numbers("X", self.X)
        d = self.model.examples.X.shape[1]
        if self.X.ndim != 2 or self.X.shape[1] != d:
            raise InvalidInput(
                f"X has shape {self.X.shape}, but the examples of the model have {d} features. "
                f"Give rows of as many."
            )
        super().__post_init__()

    def __repr__(self) -> str:
        return f"Following({len(self.X)} rows, {self.model!r})"

    @derived
    def scores(self) -> Array:
        """The scores of the rows, (m, M): `model.mean(X)`."""
        # The coefficients of a hinge are not linear in the targets.
        if not self._follows or self.model.loss != "squared":
            return self.model.mean(self.X)
        return mean_of(self.model, self._sums[0] * self._unit[:, None], self.X)

    @derived
    def variance(self) -> Array:
        """The variances of the rows, noise included, (m,), or (m, M): `model.variance(X)`."""
        covariance = self.model.covariance
        if not self._follows:
            return self.model.variance(self.X)
        known = bounded(lambda: self._sums[1] * self._unit**2)
        variance = np.maximum(self._prior - known, 0) + covariance.noise
        return in_squares(variance, self.model.targets.units)

    def covariance(self, rows: Array) -> Array:
        """The posterior covariance (m, k) of all rows with the rows of these numbers (k,).

        Without noise, and in the units of the targets that the model learns.
        """
        covariance, X = self.model.covariance, self.X[rows]
        pairs = covariance.seen(self.X), covariance.seen(X)
        prior = finite(covariance.kernel, cross(covariance.kernel, *pairs))
        if not self._follows:
            solved = covariance.solve(covariance.cross(X))
            return np.asarray(prior - product(covariance.cross(self.X).T, solved))
        W, unit = self._complete.W.view.astype(float, copy=False), self._unit
        return np.asarray(prior - unit[:, None] * product(W.T, W[:, rows]) * unit[rows])

    def among(self, rows: Array) -> Following:
        """The answers for the rows of these numbers (k,) alone."""
        if not self._follows:
            return Following(self.model, self.X[rows])
        products, squares = self._sums
        known = _Known(Rows(self._complete.W.view[:, rows]), (products[rows], squares[rows]))
        return Following(self.model, self.X[rows], known)

    def follow(self, model: KernelModel) -> Following:
        """The answers of this model, from ours as far as the two share examples."""
        earlier, covariance = self.model, self.model.covariance
        known = vars(self).get("_complete", self._known)
        same = model.covariance.kernel is covariance.kernel
        same = same and model.covariance.noise == covariance.noise and self._follows
        if known is None or not same or not _share(earlier.examples, model.examples):
            return Following(model, self.X)
        W = covariance.reduced(model.examples, known.W.view)[1]
        if len(W) < len(known.W.view) or model.covariance.factor.size < len(covariance.X):
            return Following(model, self.X, _Known(Rows(W), None))
        h, carried = len(W), known.sums
        if carried is None or not np.array_equal(model.half[:h], earlier.half[:h]):
            carried = None
        return Following(model, self.X, _Known(known.W, carried))

    # -- inside ------------------------------------------------------------------------------

    @property
    def _follows(self) -> bool:
        """Whether the factor has rows that stay when others come or go."""
        return self.model.covariance.factor.traits.nested

    @derived
    def _unit(self) -> Array:
        """A power of two near sqrt(k(x, x)) for each row, (m,), by which columns of W are divided.

        That is exact, and no kernel value is beyond the range of a float32 factor then.
        """
        _, exponent = np.frexp(np.sqrt(abs(self._prior)))
        return np.asarray(2.0**exponent)

    @derived
    def _prior(self) -> Array:
        return self.model.covariance.prior(self.X)

    @cached_property
    def _complete(self) -> _Known:
        covariance, H, m = self.model.covariance, self.model.half, len(self.X)
        factor = covariance.factor
        nothing = _Known(Rows(np.empty((0, m), dtype=factor.dtype)), None)
        W, sums = nothing if self._known is None else self._known
        h = len(W.view)
        K = covariance.cross(self.X, first=h)
        new = factor.extend(W.view, K / self._unit)
        W = W.append(new)
        if sums is None:
            return _Known(W, _summed(W.view, H))
        products, squares = _summed(new, H[h:])
        return _Known(W, (sums[0] + products, sums[1] + squares))

    @property
    def _sums(self) -> tuple[Array, Array]:
        sums = self._complete.sums
        assert sums is not None
        return sums


def _share(earlier: Examples, later: Examples) -> bool:
    """Whether examples that go by the same number are the same.

    They are if one came from the other by edits; a model that was read from a file has numbers of
    its own.
    """
    deleted, appended = later.since(earlier)
    stay = len(later) - appended
    return np.array_equal(np.delete(earlier.X, deleted, axis=0)[:stay], later.X[:stay])


def _summed(W: Array, H: Array) -> tuple[Array, Array]:
    """W'H and the squares of W (h, m), summed over the rows; H (h, M + r)."""
    W = W.astype(float, copy=False)
    return product(W.T, H.astype(float, copy=False)), np.einsum("ij,ij->j", W, W)
