"""What is chosen at `fit` from the examples: the noise by leave-one-out, and weights by class."""

from __future__ import annotations

from typing import Any

import numpy as np

from knowmore.errors import InvalidInput
from knowmore.estimators.checks import class_labels
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel, corner
from knowmore.models import one_vs_all
from knowmore.models.penalty import best_noise
from knowmore.models.weights import Weighting, class_weighting


def noise_by_loo(
    name: str, kernel: AnyKernel, examples: Examples, weighting: Weighting, *, bias: bool
) -> float:
    """The noise, 1 / C of a least-squares SVM, that leave-one-out likes best.

    name : of the parameter that was "loo"
    """
    n = len(examples)
    if n < 2:
        raise InvalidInput(
            f"{name}='loo' leaves each example out in turn, but n_samples=1. Add one, or give a "
            f"number."
        )
    K, T = corner(kernel, examples.X), one_vs_all(examples).T
    if not (np.isfinite(K.sum()) and np.trace(K) > 0):
        raise InvalidInput(
            f"{name}='loo' is measured by the kernel's values, but {kernel!r} gave some that are "
            f"not finite, or none above zero on its diagonal. Look at the features, or give a "
            f"number."
        )
    noise = best_noise(K, weighting(examples), T, bias=bias)
    if noise is None and n > 2 and T.shape[1] > 1:
        raise InvalidInput(
            f"{name}='loo' asks what the examples say of each other, but under the kernel "
            f"{kernel!r} none of these {n} says anything of another that is more than rounding. "
            f"Either (a) the kernel is too narrow for the scale of the features: widen it, or "
            f"scale them; or (b) all examples are the same to it. Or give a number."
        )
    # Of a single class, or of two examples, nothing need be said: any noise will do.
    return float(np.diagonal(K).mean()) if noise is None else noise


def class_weights(class_weight: Any, examples: Examples) -> Weighting:
    """scikit-learn's `class_weight`, with names of classes that can be compared to the labels."""
    weighting = class_weighting(class_weight)
    if isinstance(weighting.classes, tuple):
        names = [name for name, _ in weighting.classes]
        class_labels(names, len(names), examples.labels)
    return weighting


def class_weight_of(weighting: Weighting) -> Any:
    """The `class_weight` that makes this weighting."""
    return dict(weighting.classes) if isinstance(weighting.classes, tuple) else weighting.classes
