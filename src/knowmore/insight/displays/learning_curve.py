"""Accuracy as examples came in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
import numpy.typing as npt

from knowmore.edits import Remove
from knowmore.errors import InvalidInput
from knowmore.insight.asking import asked, inputs, of_classes
from knowmore.insight.displays.display import BLUE, Display, quiet_axes
from knowmore.models import GP

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = npt.NDArray[Any]


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
        """The curve of a fitted GPClassifier at about so many points, drawn.

        X (m, d), y (m,): test data; default: leave-one-out. Examples come in the order of `ids_`.
        Nothing is fitted: the factor of the first examples is the beginning of the factor of all.
        """
        gp = asked(estimator)
        of_classes(estimator, "LearningCurveDisplay", "leave_one_out()")
        n = len(gp.examples)
        if n < 2:
            raise InvalidInput("The model holds one example, which makes no curve. Add some more.")
        if points < 2:
            raise InvalidInput(f"points={points!r}, but a curve has at least two points.")
        if (X is None) != (y is None):
            raise InvalidInput("Of the test data X and y only one was given. Give both, or none.")
        share = _left_out if X is None else _on(inputs(estimator, X), np.asarray(y))
        measure = "leave-one-out" if X is None else f"{len(y)} test examples"
        sizes = np.unique(np.linspace(max(n // points, 2), n, points).astype(int))
        accuracy = np.array([share(_beginning(gp, int(m))) for m in sizes])
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


def _beginning(gp: GP, m: int) -> GP:
    """The model of the first m examples."""
    examples = gp.examples
    return gp.follow(examples.apply(Remove(examples.names[m:])))


def _right(gp: GP, scores: Array, labels: Array) -> float:
    return float((gp.targets.names[scores.argmax(axis=1)] == labels).mean())


def _left_out(gp: GP) -> float:
    return _right(gp, gp.leave_one_out()[0], gp.examples.labels)


def _on(X: Array, y: Array) -> Callable[[GP], float]:
    if y.shape != (len(X),):
        raise InvalidInput(f"X has {len(X)} rows, but y has shape {y.shape}. Give one label each.")
    return lambda gp: _right(gp, gp.mean(X), y)
