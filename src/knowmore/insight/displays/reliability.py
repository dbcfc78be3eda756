"""What probabilities promise, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

from knowmore.drawing import BLUE, GREY, quiet_axes
from knowmore.insight.calibration import Reliability, reliability
from knowmore.insight.displays.display import Display

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@final
@dataclass(eq=False)
class ReliabilityDisplay(Display):
    """The part that is right against the probability it was said with; the diagonal is honest.

    The larger a mark, the more predictions it stands for.
    """

    found: Reliability

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, bins: int = 15, ax: Axes | None = None
    ) -> Self:
        """Compare the probabilities of a fitted or calibrated classifier with the truth, and draw.

        X (m, d), y (m,): test data; default: leave-one-out.
        """
        return cls(reliability(estimator, X, y, bins=bins)).plot(ax)

    def _draw(self, ax: Axes) -> None:
        found = self.found
        ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle="--")
        ax.plot(found.confidence, found.accuracy, color=BLUE, linewidth=1)
        size = 10 + 190 * found.count / found.count.max()
        ax.scatter(found.confidence, found.accuracy, size, color=BLUE, alpha=0.8)
        ax.set(
            title=f"Expected calibration error {found.error:.3f}, {found.count.sum()} predictions",
            xlabel="probability of the predicted class",
            ylabel="part that is right",
            xlim=(0, 1.05),
            ylim=(-0.05, 1.05),
        )
        quiet_axes(ax)
