"""The estimators of one kernel model: Gaussian processes, and least-squares SVMs."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, final

import numpy as np

from knowmore._base import Array, flag, number
from knowmore._living import Living
from knowmore.errors import InvalidInput
from knowmore.estimators import checks
from knowmore.estimators.living import (
    EditableClassifier,
    EditableRegressor,
    LivingEstimator,
    checked_mode,
    empty_factor,
    own_kernel,
)
from knowmore.examples import Examples
from knowmore.models import (
    Coding,
    Covariance,
    KernelModel,
    ModelSettings,
    SettingsRule,
    Weighting,
    joint,
    normalised_values,
    one_vs_all,
    real_values,
    score_temperature,
    unknown_rows,
)


@final
@dataclass(eq=False, repr=False)
class GPClassifier(EditableClassifier[Living[KernelModel]], LivingEstimator[KernelModel]):
    """A multi-class Gaussian-process classifier that keeps learning and forgets exactly.

    One-vs-all regression on labels of -1 and 1 (Lütz, Rodner and Denzler): the score of class c is
    mu_*^(c) = k_*' (K + sigma^2 I)^-1 t^(c) (eq. 4), the prediction the class of the largest
    score (eq. 5). After any history of edits it equals a fresh fit of the examples it holds.

    Parameters
    ----------
    kernel : a scikit-learn Kernel; a callable of X (n, d) and Y (m, d) that returns (n, m); a list
        of kernels, for the best weighted sum of them, where `On(columns)` without a kernel is the
        best kernel of these columns; or None, for the best kernel by leave-one-out of those that
        suit the features, see `settings_`. `kernel_` is the one in use.
    noise : sigma^2, the variance of the noise on the labels; may be zero. None is the best by
        leave-one-out. Or "loo": the noise with the most examples right by leave-one-out, of all
        examples given to `fit`, of which those with the same features are left out together.
        `noise_` is the one in use.
    settings : when the examples choose a kernel or noise that is None. "first": after every edit,
        until there are 128 examples of several classes; then the choice stays, that of the first
        128 or of all examples of a first fit. "living": after every edit, so that they are always
        those that a fresh fit would choose. "median": an RBF kernel as wide as the median distance
        (`ChiSquared` for histograms), and a noise of 0.1; likewise, until there are 32 examples
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

    kernel: Any = None
    noise: float | str | None = None
    _: KW_ONLY
    solver: str = "cholesky"
    update: str = "auto"
    dtype: str = "float64"
    class_weight: dict[Any, float] | str | None = None
    loss: str = "squared"
    probability: str = "calibrated"
    settings: str = "first"

    def rule_for(self, examples: Examples) -> SettingsRule:
        """How examples choose the settings that are not given."""
        _, weighting = _checked(self, examples)
        noise: Any = self.noise
        if noise is not None and not (isinstance(noise, str) and noise == "loo"):
            hint = "It is a variance, usually from 1e-6 to 1; None chooses it by leave-one-out."
            noise = number("noise", noise, "[0, inf)", hint)
        kernel = None if self.kernel is None else own_kernel(self.kernel)
        return SettingsRule(kernel, noise, checked_mode(self), one_vs_all, weighting)

    def _batch(self, settings: ModelSettings, examples: Examples) -> KernelModel:
        loss, weighting = _checked(self, examples)
        kernel, noise = settings.kernel, settings.noise
        if loss != "squared" and not noise > 0:
            raise InvalidInput(
                f"loss={loss!r} weighs errors by 1 / noise. Give a noise above zero."
            )
        factor = empty_factor(self)
        covariance = Covariance.of(kernel, noise, examples, factor, weighting, self.update)
        return KernelModel.on(covariance, one_vs_all, loss=loss)

    def _settings(self, model: KernelModel) -> dict[str, Any]:
        settings = {"noise": model.covariance.noise, "loss": model.loss}
        return super()._settings(model) | settings

    @property
    def noise_(self) -> float:
        """The noise in use."""
        return self.editable_.choice.settings.noise

    def predict_variance(self, X: Any) -> Array:
        """sigma_*^2 of eq. (3), noise included, (m,): how far each row is from all examples.

        All classes share it.
        """
        return np.asarray(self.frozen_model().variance(self.model_inputs(X)))

    def log_marginal_likelihood(self) -> float:
        """log p(T | X), summed over the target columns."""
        return float(self.frozen_model().log_marginal_likelihood())

    def predict(self, X: Any, unknown: Any = None, rate: float = 0.05) -> Array:
        """The class of the largest score, (m,). Eq. (5). `unknown`: a label for rows of no class.

        These are rows more novel than all but a fraction `rate` of the model's own examples, each
        left out: the method "combined" of `knowmore.insight.novelty`.
        """
        model, X = self.frozen_model(), self.model_inputs(X)
        predicted = self._prediction(model, model.mean(X))
        if unknown is None:
            return predicted
        label = checks.unknown_label(unknown, model.names)
        return np.where(unknown_rows(model, X, rate), label, predicted)


@final
@dataclass(eq=False, repr=False)
class GPRegressor(EditableRegressor[Living[KernelModel]], LivingEstimator[KernelModel]):
    """Gaussian-process regression that keeps learning and forgets exactly.

    mu_* = k_*' (K + sigma^2 I)^-1 t (eq. 2, Lütz, Rodner and Denzler) for targets t (n,) or (n, q);
    the prior mean is zero. The verbs are those of `GPClassifier`; `relabel` gives examples other
    target values.

    Parameters
    ----------
    kernel, solver, update, dtype : as for `GPClassifier`; a kernel that is chosen has an amplitude
    noise : sigma^2, the variance of the noise on the (normalised) targets; may be zero. None is the
        best by leave-one-out
    settings : as for `GPClassifier`
    normalize_y : subtract the mean of each column of targets and divide by its standard deviation,
        both weighted and of the examples held now; predictions and variances are in the units of
        y. So kernel and noise are relative: a noise of 0.1 is a tenth of the variance of y.
        `log_marginal_likelihood` is that of the normalised targets. All as in scikit-learn, but
        mean and deviation follow every edit. Equal values have a deviation of one.

    Examples
    --------
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> reg = GPRegressor(RBF(1.0), 0.01).fit([[0.0], [1.0], [2.0]], [100.0, 101.0, 104.0])
    >>> reg.remove([2]).predict([[1.0]]).round(2)
    array([100.99])
    >>> mean, deviation = reg.predict([[1.0], [50.0]], return_std=True)
    >>> mean.round(2), deviation.round(2)
    (array([100.99, 100.5 ]), array([0.07, 0.5 ]))
    """

    kernel: Any = None
    noise: float | None = None
    _: KW_ONLY
    solver: str = "cholesky"
    update: str = "auto"
    dtype: str = "float64"
    normalize_y: bool = True
    settings: str = "first"

    def rule_for(self, examples: Examples) -> SettingsRule:
        """How examples choose the settings that are not given."""
        noise: Any = self.noise
        if noise is not None:
            hint = "It is a variance, usually 1e-6 to 1; None chooses it by leave-one-out."
            noise = number("noise", noise, "[0, inf)", hint)
        kernel = None if self.kernel is None else own_kernel(self.kernel)
        return SettingsRule(kernel, noise, checked_mode(self), self._coding)

    @property
    def _coding(self) -> Coding:
        return normalised_values if flag("normalize_y", self.normalize_y) else real_values

    def _batch(self, settings: ModelSettings, examples: Examples) -> KernelModel:
        given, factor = (settings.kernel, settings.noise), empty_factor(self)
        covariance = Covariance.of(*given, examples, factor, None, self.update)
        return KernelModel.on(covariance, self._coding)

    def _settings(self, model: KernelModel) -> dict[str, Any]:
        normalised = model.targets.units is not None
        settings = {"noise": model.covariance.noise, "normalize_y": normalised}
        return super()._settings(model) | settings

    @property
    def noise_(self) -> float:
        """The noise in use."""
        return self.editable_.choice.settings.noise

    def log_marginal_likelihood(self) -> float:
        """log p(T | X), summed over the target columns."""
        return float(self.frozen_model().log_marginal_likelihood())

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """The posterior mean mu_*, (m,) or (m, q) as the targets are. Eq. (2).

        return_std : and the standard deviation of a target there, of the same shape
        return_cov : and the covariance of the targets there, (m, m) or (m, m, q)

        Both are of observations: the noise is included, as in `predict_variance`.
        """
        with_std, with_cov = flag("return_std", return_std), flag("return_cov", return_cov)
        if with_std and with_cov:
            raise InvalidInput("Ask for return_std or return_cov: std**2 is the diagonal of cov.")
        model, X = self.frozen_model(), self.model_inputs(X)
        mean = self._prediction(model, model.mean(X))
        if with_std:
            return mean, np.sqrt(self._variances(model, model.variance(X)))
        if with_cov:
            return mean, self._variances(model, joint(model, X))
        return mean

    def _variances(self, model: KernelModel, variance: Array) -> Array:
        """Variances (..., q), or (...) if the columns share them, in the shape of the targets."""
        labels = model.examples.labels
        columns = variance[..., None] if model.targets.units is None else variance
        if labels.ndim == 1:
            return np.asarray(columns[..., 0])
        return np.array(np.broadcast_to(columns, (*columns.shape[:-1], labels.shape[1])))


class LeastSquares(EditableClassifier[Living[KernelModel]], LivingEstimator[KernelModel]):
    """A classifier with the parameters C and bias."""

    C: float | str | None
    bias: bool
    solver: str
    update: str
    dtype: str
    class_weight: dict[Any, float] | str | None = None
    loss: str = "squared"
    probability: str = "calibrated"

    def _coding(self, examples: Examples) -> Coding:
        """How labels become targets."""
        return one_vs_all

    def rule_for(self, examples: Examples) -> SettingsRule:
        """How examples choose the settings that are not given."""
        C, weighting = self.C, _checked(self, examples)[1]
        noise: Any = C
        if C is not None and not (isinstance(C, str) and C == "loo"):
            noise = 1 / number("C", C, "(0, inf)", "None chooses it by leave-one-out.")
        kernel = None if self.kernel is None else own_kernel(self.kernel)
        mode = checked_mode(self) if hasattr(self, "settings") else "median"
        bias, width = flag("bias", self.bias), self.width_for(examples)
        rule = SettingsRule(kernel, noise, mode, one_vs_all, weighting, bias)
        return replace(rule, usual=1.0, width=width, name="C")

    def _batch(self, settings: ModelSettings, examples: Examples) -> KernelModel:
        loss, weighting = _checked(self, examples)
        coding, bias = self._coding(examples), flag("bias", self.bias)
        width, factor = self.width_for(examples), empty_factor(self)
        given = settings.kernel, settings.noise
        covariance = Covariance(*given, examples, factor, weighting, self.update, width)
        return KernelModel.on(covariance.anew(examples), coding, bias=bias, loss=loss)

    def _settings(self, model: KernelModel) -> dict[str, Any]:
        return super()._settings(model) | {"C": _C(model), "bias": model.bias, "loss": model.loss}

    @property
    def C_(self) -> float:
        """The C in use."""
        return 1 / self.editable_.choice.settings.noise

    def model_temperature(self, model: KernelModel) -> float:
        """The temperature of a frozen model of this estimator, which may have been edited since."""
        return score_temperature(model) if checks.is_calibrated(self) else 1.0

    def _score_variance(self, model: KernelModel, X: Any) -> Array:
        return np.zeros(len(X))


@final
@dataclass(eq=False, repr=False)
class LSSVMClassifier(LeastSquares):
    """A multi-class least-squares SVM that keeps learning and forgets exactly.

    One-vs-all on labels of -1 and 1: the least 1/2 |w|^2 + C/2 sum_i (w'x_i + b - y_i)^2 for each
    class (Suykens and Vandewalle 1999). The scores are k_*' A + b' with A and b from
    [[K + I/C, 1], [1', 0]] [A; b'] = [T; 0]. After any history of edits it equals a fresh fit of
    the examples it holds.

    Parameters
    ----------
    kernel : as in `GPClassifier`
    C : the weight of the squared errors; None for the best by leave-one-out, or "loo", as the noise
        of `GPClassifier`; see `C_`
    settings : as in `GPClassifier`; for "median" C is one
    bias : whether each class has an offset b
    class_weight, probability, solver, update, dtype : as in `GPClassifier`
    loss : as in `GPClassifier`; with "squared_hinge" what is said of an example left out, by
        `leave_one_out` and by `explain`, is approximate here too

    Examples
    --------
    >>> clf = LSSVMClassifier(C=10).fit([[0.0], [1.0], [2.0]], ["cold", "mild", "mild"])
    >>> clf.add([[9.0]], ["hot"], ids=["noon"])
    array(['noon'], dtype='<U4')
    >>> clf.predict([[8.5]])
    array(['hot'], dtype='<U4')
    >>> clf.remove("noon").leave_one_out().predicted
    array(['mild', 'cold', 'mild'], dtype='<U4')
    """

    kernel: Any = None
    C: float | str | None = None
    bias: bool = True
    _: KW_ONLY
    solver: str = "cholesky"
    update: str = "auto"
    dtype: str = "float64"
    class_weight: dict[Any, float] | str | None = None
    loss: str = "squared"
    probability: str = "calibrated"
    settings: str = "first"


def _checked(estimator: Any, examples: Examples) -> tuple[str, Weighting]:
    """The loss and the weights of a classifier, whose `probability` is checked too."""
    checks.check_meaning(estimator.probability)
    loss = checks.check_loss(estimator.loss)
    return loss, checks.class_weights(estimator.class_weight, examples.labels)


def _C(model: KernelModel) -> float:
    """The weight of the squared errors beside the norm, 1 / sigma^2; infinite without noise."""
    noise = model.covariance.noise
    return 1 / noise if noise else np.inf
