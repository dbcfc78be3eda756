"""Least-squares support vector machines."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, final

import numpy as np

from knowmore._base import Array, flag, number
from knowmore._living import Living
from knowmore.estimators.checks import class_weights
from knowmore.estimators.living import EditableClassifier, LivingEstimator, factorised
from knowmore.estimators.scoring import check_loss, check_meaning, is_calibrated
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel
from knowmore.models import Coding, KernelModel, noise_by_loo, one_vs_all


class LeastSquares(EditableClassifier[Living[KernelModel]], LivingEstimator[KernelModel]):
    """A classifier with the parameters C and bias."""

    C: float | str
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

    def _batch(self, kernel: AnyKernel, examples: Examples) -> KernelModel:
        check_meaning(self.probability)
        loss = check_loss(self.loss)
        coding, bias = self._coding(examples), flag("bias", self.bias)
        weighting = class_weights(self.class_weight, examples.labels)
        if isinstance(self.C, str) and self.C == "loo":
            width = self.width_for(examples)
            noise = noise_by_loo("C", kernel, examples, weighting, bias=bias, width=width)
        else:
            noise = 1 / number("C", self.C, "(0, inf)", "'loo' chooses it by leave-one-out.")
        covariance = factorised(self, kernel, noise, examples, weighting)
        return KernelModel.on(covariance, coding, bias=bias, loss=loss)

    def _settings(self, model: KernelModel) -> dict[str, Any]:
        return super()._settings(model) | {"C": model.C, "bias": model.bias, "loss": model.loss}

    @property
    def C_(self) -> float:
        """The C in use."""
        return float(self._fitted.model.C)

    def model_temperature(self, model: KernelModel) -> float:
        """The temperature of a frozen model of this estimator, which may have been edited since."""
        return model.score_temperature if is_calibrated(self) else 1.0

    def _score_variance(self, model: KernelModel, X: Any) -> Array:
        return np.ones(len(X))


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
    C : the weight of the squared errors, or "loo": the C with the best leave-one-out predictions
        for the examples given to `fit`, as the noise of `GPClassifier`; see `C_`
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

    kernel: AnyKernel | None = None
    C: float | str = 1.0
    bias: bool = True
    _: KW_ONLY
    solver: str = "cholesky"
    update: str = "auto"
    dtype: str = "float64"
    class_weight: dict[Any, float] | str | None = None
    loss: str = "squared"
    probability: str = "calibrated"
