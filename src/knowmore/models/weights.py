"""How much each example counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

import numpy as np

from knowmore.arguments import number
from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.examples import Examples


@final
@dataclass(frozen=True)
class Weighting:
    """The weight of an example: its own, times that of its class.

    `classes`: None, all alike; "balanced", all classes have the same weight in sum; or pairs of a
    class and its weight, one for those not named. An example of weight w has the noise sigma^2 / w:
    it counts like w examples at the same place.

    >>> some = Examples.of(np.zeros((3, 1)), np.array(["a", "b", "b"]))
    >>> Weighting("balanced")(some), Weighting((("b", 2.0),))(some)
    (array([1.5 , 0.75, 0.75]), array([1., 2., 2.]))
    """

    classes: Literal["balanced"] | tuple[tuple[Any, float], ...] | None = None

    def __call__(self, examples: Examples) -> Array:
        """The weights, (n,)."""
        if self.classes is None or not len(examples):
            return examples.weights
        names, index = np.unique(examples.labels, return_inverse=True)
        if self.classes == "balanced":
            sums = np.bincount(index, examples.weights)
            factors = sums.sum() / (len(names) * sums)
        else:
            factors = np.ones(len(names))
            for name, weight in self.classes:
                factors[names == name] = weight
        return np.asarray(examples.weights * factors[index])


def class_weighting(class_weight: Any) -> Weighting:
    """scikit-learn's `class_weight`: None, "balanced", or a dict of weights."""
    if class_weight is None:
        return Weighting()
    if isinstance(class_weight, str) and class_weight == "balanced":
        return Weighting("balanced")
    if not isinstance(class_weight, dict):
        raise InvalidInput(
            f"class_weight={class_weight!r} must be None, 'balanced', or a dict of weights."
        )
    for name, weight in class_weight.items():
        number(f"class_weight[{name!r}]", weight, "(0, inf)", "Remove a class that must not count.")
    return Weighting(tuple(class_weight.items()))
