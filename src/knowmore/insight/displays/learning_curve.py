"""Accuracy as examples came in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from knowmore.arguments import whole_number
from knowmore.arrays import Array
from knowmore.drawing import BLUE, quiet_axes
from knowmore.edits import Remove
from knowmore.errors import InvalidInput
from knowmore.insight.asking import asked, inputs, of_classes, true_labels
from knowmore.insight.displays.display import Display
from knowmore.models import GP, LSSVM, Model

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@final
@dataclass(eq=False)
class LearningCurveDisplay(Display):
    """The accuracy of a model of the first examples, as many as `sizes` (s,) says.

    accuracy : (s,), the part that is right
    measure : on what
    """

    sizes: Array
    accuracy: Array
    measure: str

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        *,
        points: int = 20,
        ax: Axes | None = None,
    ) -> Self:
        """The curve of a fitted GPClassifier or LSSVMClassifier at about so many points, drawn.

        X (m, d), y (m,): test data; default: leave-one-out. Examples come in the order of `ids_`.
        Nothing is fitted: the factor of the first examples is the beginning of the factor of all.
        """
        model: GP | LSSVM = asked(estimator, GP, LSSVM, classes=True)
        of_classes(estimator, "LearningCurveDisplay", "leave_one_out()")
        n = len(model.examples)
        if n < 2:
            raise InvalidInput("The model holds one example, which makes no curve. Add some more.")
        points = whole_number("points", points, 2)
        if (X is None) != (y is None):
            raise InvalidInput("Of the test data X and y only one was given. Give both, or none.")
        share = _left_out if X is None else _on(inputs(estimator, X), y, model.targets.names)
        measure = "leave-one-out" if X is None else f"{len(y)} test examples"
        sizes = np.unique(np.linspace(max(n // points, 2), n, points).astype(int))
        accuracy = np.array([share(_beginning(model, int(m))) for m in sizes])
        return cls(sizes, accuracy, measure).plot(ax)

    def _draw(self, ax: Axes) -> None:
        ax.plot(self.sizes, 100 * self.accuracy, "o-", color=BLUE, markersize=4)
        ax.set(
            title=f"{self.accuracy[-1]:.1%} right with {self.sizes[-1]} examples",
            xlabel="examples, in the order of the model",
            ylabel=f"accuracy, {self.measure} (%)",
        )
        ax.set_xlim(left=0)
        quiet_axes(ax)


def _beginning(model: Model, m: int) -> Model:
    """The model of the first m examples."""
    examples = model.examples
    return model.follow(examples.apply(Remove(examples.names[m:])))


def _right(model: Model, scores: Array, labels: Array) -> float:
    return float((model.targets.names[scores.argmax(axis=1)] == labels).mean())


def _left_out(model: Model) -> float:
    return _right(model, model.leave_one_out()[0], model.examples.labels)


def _on(X: Array, y: Any, classes: Array) -> Callable[[Model], float]:
    labels = true_labels(y, len(X), classes)
    return lambda model: _right(model, model.mean(X), labels)
