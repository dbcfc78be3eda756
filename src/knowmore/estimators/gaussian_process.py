"""The Gaussian process as scikit-learn estimators."""

from __future__ import annotations

from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from scipy.special import log_ndtr, logsumexp
from sklearn.base import ClassifierMixin, RegressorMixin

from knowmore.estimators.checks import among, class_labels, inputs, real_values
from knowmore.estimators.living import LivingEstimator
from knowmore.models import GP, targets
from knowmore.models.targets import Coding

Array = npt.NDArray[Any]


@final
class GPClassifier(ClassifierMixin, LivingEstimator):
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

    @property
    def _coding(self) -> Coding:
        return targets.one_vs_all

    def _labels(self, y: Any, k: int, held: Array | None) -> Array:
        return class_labels(y, k, held)

    def _prediction(self, model: GP, scores: Array) -> Array:
        return np.asarray(model.targets.names[scores.argmax(axis=1)])

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """scikit-learn's word for `add`. Classes that are declared bind y; none need be."""
        among(y, classes)
        self.add(X, y)
        return self

    @property
    def classes_(self) -> Array:
        """The classes that have examples now, (M,), sorted."""
        self._check_fitted()
        return np.unique(self._state.examples.labels)

    def predict(self, X: Any) -> Array:
        """The class of the largest score, (m,). Eq. (5)."""
        model = self._asked()
        return self._prediction(model, model.mean(inputs(self, X, reset=False)))

    def decision_function(self, X: Any) -> Array:
        """The scores mu_*^(c), (m, M), columns as in `classes_`; (m,), the second's, if two."""
        scores = self._asked().mean(inputs(self, X, reset=False))
        return scores[:, 1] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> Array:
        """Phi(mu_*^(c) / sigma_*), scaled to sum to one, (m, M), columns as in `classes_`.

        Phi is the chance that the noisy target is above zero; the scaling is a convention.
        """
        model, X = self._asked(), inputs(self, X, reset=False)
        logs = log_ndtr(model.mean(X) / np.sqrt(model.variance(X))[:, None])
        return np.asarray(np.exp(logs - logsumexp(logs, axis=1, keepdims=True)))


@final
class GPRegressor(RegressorMixin, LivingEstimator):
    """Gaussian-process regression that keeps learning and forgets exactly.

    mu_* = k_*' (K + sigma^2 I)^-1 t (eq. 2, Lütz, Rodner and Denzler) for targets t (n,) or (n, q);
    the prior mean is zero. The parameters and verbs are those of `GPClassifier`; `relabel` gives
    examples other target values.

    >>> reg = GPRegressor(noise=0.01).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
    >>> reg.remove([2]).predict([[1.0]]).round(2)
    array([0.98])
    """

    @property
    def _coding(self) -> Coding:
        return targets.real_values

    def _labels(self, y: Any, k: int, held: Array | None) -> Array:
        return real_values(y, k, held)

    def _prediction(self, model: GP, scores: Array) -> Array:
        return scores[:, 0] if model.examples.labels.ndim == 1 else scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def partial_fit(self, X: Any, y: Any) -> Self:
        """scikit-learn's word for `add`."""
        self.add(X, y)
        return self

    def predict(self, X: Any) -> Array:
        """The posterior mean mu_*, (m,) or (m, q) as the targets are. Eq. (2)."""
        model = self._asked()
        return self._prediction(model, model.mean(inputs(self, X, reset=False)))
