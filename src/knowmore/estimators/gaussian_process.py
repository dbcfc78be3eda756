"""The Gaussian process as scikit-learn estimators."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, final

import numpy as np
from sklearn.base import RegressorMixin

from knowmore._base import Array, flag, number
from knowmore._living import Living
from knowmore.errors import InvalidInput
from knowmore.estimators import checks
from knowmore.estimators.living import (
    EditableClassifier,
    LivingEstimator,
    factor_dtype,
    factorised,
)
from knowmore.estimators.scoring import check_loss, check_meaning
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel
from knowmore.models import (
    KernelModel,
    noise_by_loo,
    normalised_values,
    one_vs_all,
    real_values,
    unknown_rows,
)

# Coefficients are targets over the noise, and the likelihood has products of both.
_LARGEST_TARGET = {"float32": 1e18, "float64": 1e100}


@final
@dataclass(eq=False, repr=False)
class GPClassifier(EditableClassifier[Living[KernelModel]], LivingEstimator[KernelModel]):
    """A multi-class Gaussian-process classifier that keeps learning and forgets exactly.

    One-vs-all regression on labels of -1 and 1 (Lütz, Rodner and Denzler): the score of class c is
    mu_*^(c) = k_*' (K + sigma^2 I)^-1 t^(c) (eq. 4), the prediction the class of the largest
    score (eq. 5). After any history of edits it equals a fresh fit of the examples it holds.

    Parameters
    ----------
    kernel : a scikit-learn Kernel, a callable of X (n, d) and Y (m, d) that returns (n, m), or None
        None is an RBF kernel as wide as the median distance of the examples; for histograms, rows
        of at least 8 values that are not negative and have the same sum, it is `ChiSquared`. While
        fewer than 32 are held, or all are equal, it follows every edit. Then it is fixed: by all
        examples given to `fit`, or by the first 32 of a stream. `kernel_` is the one in use.
    noise : sigma^2, the variance of the noise on the labels; may be zero. Or "loo": the noise with
        the best leave-one-out predictions for the examples given to `fit`, of which those with the
        same features are left out together; see `noise_`
    class_weight : None, "balanced" (all classes have the same total weight), or a dict of class
        and weight. An example of weight w has the noise sigma^2 / w. Balanced weights change with
        every example, so each edit costs as much as a fit.
    loss : "squared", or "squared_hinge": examples that are on the right side by a margin do not
        count. The scores are then those of support vector machines, one class against all others,
        with C = 1 / noise. Use it for many classes of histograms, where it often recognises more;
        not for embeddings, where it does not. Edits cost the same, but the first question after
        one takes twenty solves more; variances stay as they are. `leave_one_out` is then exact
        unless leaving an example out makes another one active or inactive, so it is approximate;
        and so is the `score_without` of `explain`, which takes off what least squares would lose
    probability : "calibrated", or "raw": see `predict_proba`
    solver : "cholesky", or "inverse" for the explicit inverse of the paper
    update : "direct", a block of examples at once; "iterative", one after the other; "auto"
    dtype : "float64", or "float32" for twice the examples in memory. Scores are then accurate to
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

    kernel: AnyKernel | None = None
    noise: float | str = 0.1
    _: KW_ONLY
    solver: str = "cholesky"
    update: str = "auto"
    dtype: str = "float64"
    class_weight: dict[Any, float] | str | None = None
    loss: str = "squared"
    probability: str = "calibrated"

    def _batch(self, kernel: AnyKernel, examples: Examples) -> KernelModel:
        check_meaning(self.probability)
        loss = check_loss(self.loss)
        weighting = checks.class_weights(self.class_weight, examples.labels)
        if isinstance(self.noise, str) and self.noise == "loo":
            noise = noise_by_loo("noise", kernel, examples, weighting, bias=False)
        else:
            hint = "It is a variance, usually from 1e-6 to 1; 'loo' chooses it by leave-one-out."
            noise = number("noise", self.noise, "[0, inf)", hint)
        if loss != "squared" and not noise > 0:
            raise InvalidInput(
                f"loss={loss!r} weighs errors by 1 / noise. Give a noise above zero."
            )
        covariance = factorised(self, kernel, noise, examples, weighting)
        return KernelModel.on(covariance, one_vs_all, loss=loss)

    def _settings(self, model: KernelModel) -> dict[str, Any]:
        settings = {"noise": model.covariance.noise, "loss": model.loss}
        return super()._settings(model) | settings

    @property
    def noise_(self) -> float:
        """The noise in use."""
        return float(self.editable_.model.covariance.noise)

    def predict_variance(self, X: Any) -> Array:
        """sigma_*^2 of eq. (3), noise included, (m,): how far each row is from all examples.

        All classes share it.
        """
        return self._fitted.nonempty.variance(self.model_inputs(X))

    def log_marginal_likelihood(self) -> float:
        """log p(T | X), summed over the target columns."""
        return self._fitted.nonempty.log_marginal_likelihood()

    def predict(self, X: Any, unknown: Any = None, rate: float = 0.05) -> Array:
        """The class of the largest score, (m,). Eq. (5). `unknown`: a label for rows of no class.

        These are rows more novel than all but a fraction `rate` of the model's own examples, each
        left out: the method "combined" of `knowmore.insight.novelty`.
        """
        model, X = self._fitted.nonempty, self.model_inputs(X)
        predicted = self._prediction(model, model.mean(X))
        if unknown is None:
            return predicted
        label = checks.unknown_label(unknown, model.names)
        return np.where(unknown_rows(model, X, rate), label, predicted)


@final
@dataclass(eq=False, repr=False)
class GPRegressor(RegressorMixin, LivingEstimator[KernelModel]):
    """Gaussian-process regression that keeps learning and forgets exactly.

    mu_* = k_*' (K + sigma^2 I)^-1 t (eq. 2, Lütz, Rodner and Denzler) for targets t (n,) or (n, q);
    the prior mean is zero. The verbs are those of `GPClassifier`; `relabel` gives examples other
    target values.

    Parameters
    ----------
    kernel, solver, update, dtype : as for `GPClassifier`
    noise : sigma^2, the variance of the noise on the (normalised) targets; may be zero
    normalize_y : subtract the mean of each column of targets and divide by its standard deviation,
        both weighted and of the examples held now; predictions and variances are in the units of
        y. So kernel and noise are relative: a noise of 0.1 is a tenth of the variance of y.
        `log_marginal_likelihood` is that of the normalised targets. All as in scikit-learn, but
        mean and deviation follow every edit. Equal values have a deviation of one.

    Examples
    --------
    >>> reg = GPRegressor(noise=0.01).fit([[0.0], [1.0], [2.0]], [100.0, 101.0, 104.0])
    >>> reg.remove([2]).predict([[1.0]]).round(2)
    array([100.99])
    >>> mean, deviation = reg.predict([[1.0], [50.0]], return_std=True)
    >>> mean.round(2), deviation.round(2)
    (array([100.99, 100.5 ]), array([0.07, 0.5 ]))
    """

    kernel: AnyKernel | None = None
    noise: float = 0.1
    _: KW_ONLY
    solver: str = "cholesky"
    update: str = "auto"
    dtype: str = "float64"
    normalize_y: bool = True

    def _batch(self, kernel: AnyKernel, examples: Examples) -> KernelModel:
        coding = normalised_values if flag("normalize_y", self.normalize_y) else real_values
        noise = number("noise", self.noise, "[0, inf)", "It is a variance, usually 1e-6 to 1.")
        return KernelModel.on(factorised(self, kernel, noise, examples), coding)

    def _settings(self, model: KernelModel) -> dict[str, Any]:
        normalised = model.targets.units is not None
        settings = {"noise": model.covariance.noise, "normalize_y": normalised}
        return super()._settings(model) | settings

    @property
    def noise_(self) -> float:
        """The noise in use."""
        return float(self.editable_.model.covariance.noise)

    def predict_variance(self, X: Any) -> Array:
        """sigma_*^2 of eq. (3), noise included, (m,): how far each row is from all examples.

        A regressor with q columns of targets has one for each, (m, q).
        """
        model = self._fitted.nonempty
        return self._variances(model, model.variance(self.model_inputs(X)))

    def log_marginal_likelihood(self) -> float:
        """log p(T | X), summed over the target columns."""
        return self._fitted.nonempty.log_marginal_likelihood()

    def _labels(self, y: Any, k: int, held: Array | None) -> Array:
        return target_values(y, k, held, factor_dtype(self))

    def _prediction(self, model: KernelModel, scores: Array) -> Array:
        return scores[:, 0] if model.examples.labels.ndim == 1 else scores

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """scikit-learn's word for `add`."""
        self.add(X, y, sample_weight=sample_weight)
        return self

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """The posterior mean mu_*, (m,) or (m, q) as the targets are. Eq. (2).

        return_std : and the standard deviation of a target there, of the same shape
        return_cov : and the covariance of the targets there, (m, m) or (m, m, q)

        Both are of observations: the noise is included, as in `predict_variance`.
        """
        with_std, with_cov = flag("return_std", return_std), flag("return_cov", return_cov)
        if with_std and with_cov:
            raise InvalidInput("Ask for return_std or return_cov: std**2 is the diagonal of cov.")
        model, X = self._fitted.nonempty, self.model_inputs(X)
        mean = self._prediction(model, model.mean(X))
        if with_std:
            return mean, np.sqrt(self._variances(model, model.variance(X)))
        if with_cov:
            return mean, self._variances(model, model.joint(X))
        return mean

    def _variances(self, model: KernelModel, variance: Array) -> Array:
        """Variances (..., q), or (...) if the columns share them, in the shape of the targets."""
        labels = model.examples.labels
        columns = variance[..., None] if model.targets.units is None else variance
        if labels.ndim == 1:
            return np.asarray(columns[..., 0])
        return np.array(np.broadcast_to(columns, (*columns.shape[:-1], labels.shape[1])))


def target_values(y: Any, k: int, held: Array | None, dtype: str = "float64") -> Array:
    """y as targets of k examples, (k,) or (k, q) as those held; the factor is of this dtype."""
    values = checks.real_values(y, k, held)
    most = _LARGEST_TARGET.get(dtype, np.inf)
    if (largest := abs(values).max(initial=0)) > most:
        raise InvalidInput(f"y reaches {largest:.3g}; {dtype} takes {most:g}. Scale it.")
    return values
