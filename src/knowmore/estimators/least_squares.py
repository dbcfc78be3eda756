"""The least-squares support vector machine as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, final

from knowmore.arguments import flag, number
from knowmore.estimators.checks import class_weights
from knowmore.estimators.living import LivingClassifier
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel
from knowmore.linalg import Factor
from knowmore.models import KernelModel, Weighting, one_vs_all
from knowmore.models.noise import noise_by_loo
from knowmore.models.targets import Coding


class LeastSquares(LivingClassifier[KernelModel]):
    """A classifier with the parameters C and bias."""

    C: float | str
    bias: bool

    def _least_squares(
        self,
        kernel: AnyKernel,
        examples: Examples,
        empty: Factor,
        coding: Coding,
        weighting: Weighting,
    ) -> KernelModel:
        """The batch fit with C and bias as the parameters say."""
        bias = flag("bias", self.bias)
        if isinstance(self.C, str) and self.C == "loo":
            noise = noise_by_loo("C", kernel, examples, weighting, bias=bias)
        else:
            noise = 1 / number("C", self.C, "(0, inf)", "'loo' chooses it by leave-one-out.")
        return KernelModel.of(kernel, noise, examples, coding, empty, weighting, bias=bias)

    def _settings(self, model: KernelModel) -> dict[str, Any]:
        return super()._settings(model) | {"C": model.C, "bias": model.bias}

    @property
    def C_(self) -> float:
        """The C in use."""
        return float(self._fitted.model.C)


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
    kernel : a scikit-learn Kernel, a callable of X (n, d) and Y (m, d) that returns (n, m), or None
        None is an RBF kernel as wide as the median distance of the examples. While fewer than 32
        are held, or all are the same, the width follows them with every edit; then it stays, by
        all that were given to `fit`, or by the first 32 of a stream. `kernel_` is the one in use.
    C : the weight of the squared errors, or "loo": that of the best leave-one-out predictions of
        the examples given to `fit`, kept from then; see `C_`
    bias : whether each class has an offset b
    class_weight : None, "balanced" (all classes count the same in sum), or a dict of class and
        weight. Balanced weights change with every example, so that edits cost as much as a fit.
    solver, update, dtype : as in `GPClassifier`

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
    class_weight: dict[Any, float] | str | None = None
    solver: str = "cholesky"
    update: str = "auto"
    dtype: str = "float64"

    def _batch(self, kernel: AnyKernel, examples: Examples, empty: Factor) -> KernelModel:
        weighting = class_weights(self.class_weight, examples.labels)
        return self._least_squares(kernel, examples, empty, one_vs_all, weighting)
