"""The Gaussian process as scikit-learn estimators."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin

from knowmore.errors import InvalidInput
from knowmore.estimators.checks import inputs, noise_level, real_values
from knowmore.estimators.classifier import LivingClassifier
from knowmore.estimators.living import LivingEstimator
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel
from knowmore.linalg import Factor
from knowmore.models import GP, class_probabilities, targets
from knowmore.models.targets import Coding

Array = npt.NDArray[Any]

# Coefficients are targets over the noise, and the likelihood has products of both.
_LARGEST_TARGET = {"float32": 1e18, "float64": 1e100}


class GaussianProcess(LivingEstimator[GP]):
    """The parameters and questions that classification and regression have in common."""

    _coding: Coding

    def __init__(
        self,
        kernel: AnyKernel | None = None,
        noise: float = 0.1,
        *,
        solver: str = "cholesky",
        update: str = "auto",
        dtype: str = "float64",
    ) -> None:
        self.kernel = kernel
        self.noise = noise
        self.solver = solver
        self.update = update
        self.dtype = dtype

    def _batch(self, kernel: AnyKernel, examples: Examples, empty: Factor) -> GP:
        return GP.of(kernel, noise_level(self.noise), examples, type(self)._coding, empty)

    def _settings(self, model: GP) -> dict[str, Any]:
        return {"kernel": model.covariance.kernel, "noise": model.covariance.noise}

    def predict_variance(self, X: Any) -> Array:
        """sigma_*^2 of eq. (3), (m,), noise included: how unlike all examples each row of X is."""
        return self._asked().variance(inputs(self, X, reset=False))

    def log_marginal_likelihood(self) -> float:
        """log p(T | X), summed over the target columns."""
        return self._asked().log_marginal_likelihood()


@final
class GPClassifier(LivingClassifier[GP], GaussianProcess):
    """A multi-class Gaussian-process classifier that keeps learning and forgets exactly.

    One-vs-all regression on labels of -1 and 1 (Lütz, Rodner and Denzler): the score of class c is
    mu_*^(c) = k_*' (K + sigma^2 I)^-1 t^(c) (eq. 4), the prediction the class of the largest
    score (eq. 5). After any history of edits it equals a fresh fit of the examples it holds.

    Parameters
    ----------
    kernel : a scikit-learn Kernel, a callable of X (n, d) and Y (m, d) that returns (n, m), or None
        None is an RBF kernel as wide as the median distance of the first examples, kept from then.
    noise : sigma^2, the variance of the noise on the labels; may be zero
    solver : "cholesky", or "inverse" for the explicit inverse of the paper
    update : "direct", a block of examples at once; "iterative", one after the other; "auto"
    dtype : "float64", or "float32" for twice the examples in memory. Scores are then good to
        about 1e-7 times the condition of K + sigma^2 I, at most n max k(x, x) / sigma^2 + 1.

    Examples
    --------
    >>> import numpy as np
    >>> clf = GPClassifier().fit([[0.0], [1.0], [2.0]], ["cold", "mild", "mild"])
    >>> clf.add([[9.0]], ["hot"], ids=["noon"])
    array(['noon'], dtype='<U4')
    >>> clf.predict([[8.5]]), clf.classes_
    (array(['hot'], dtype='<U4'), array(['cold', 'hot', 'mild'], dtype='<U4'))
    >>> clf.remove("noon").predict([[8.5]])
    array(['mild'], dtype='<U4')
    """

    _coding = staticmethod(targets.one_vs_all)

    def predict_proba(self, X: Any) -> Array:
        """Phi(mu_*^(c) / sigma_*), scaled to sum to one, (m, M), columns as in `classes_`.

        Phi is the chance that the noisy target is above zero; the scaling is a convention.
        """
        model, X = self._asked(), inputs(self, X, reset=False)
        return class_probabilities(model.mean(X), model.variance(X))


@final
class GPRegressor(RegressorMixin, GaussianProcess):
    """Gaussian-process regression that keeps learning and forgets exactly.

    mu_* = k_*' (K + sigma^2 I)^-1 t (eq. 2, Lütz, Rodner and Denzler) for targets t (n,) or (n, q);
    the prior mean is zero. The parameters and verbs are those of `GPClassifier`; `relabel` gives
    examples other target values.

    >>> reg = GPRegressor(noise=0.01).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
    >>> reg.remove([2]).predict([[1.0]]).round(2)
    array([0.98])
    """

    _coding = staticmethod(targets.real_values)

    def _labels(self, y: Any, k: int, held: Array | None) -> Array:
        values = real_values(y, k, held)
        most = _LARGEST_TARGET.get(self.dtype, np.inf)
        if abs(values).max(initial=0) > most:
            raise InvalidInput(
                f"y has values up to {abs(values).max():.3g}, but with dtype={self.dtype!r} what "
                f"is solved for them has room only up to {most:g}. Scale the targets."
            )
        return values

    def _prediction(self, model: GP, scores: Array) -> Array:
        return scores[:, 0] if model.examples.labels.ndim == 1 else scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """scikit-learn's word for `add`."""
        self.add(X, y, sample_weight=sample_weight)
        return self

    def predict(self, X: Any) -> Array:
        """The posterior mean mu_*, (m,) or (m, q) as the targets are. Eq. (2)."""
        model = self._asked()
        return self._prediction(model, model.mean(inputs(self, X, reset=False)))
