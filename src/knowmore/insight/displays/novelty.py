"""What is new, against what is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from knowmore.drawing import BLUE, VERMILION, quiet_axes
from knowmore.insight.displays.display import Display
from knowmore.insight.novelty import Novelty, novelty

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@final
@dataclass(eq=False)
class NoveltyDisplay(Display):
    """How new the rows of X are, beside the examples held when each is left out.

    What lies above the threshold, below which a part `quantile` of the examples lie, is unknown.
    """

    found: Novelty
    quantile: float = 0.95

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        method: str = "probability",
        quantile: float = 0.95,
        ax: Axes | None = None,
    ) -> Self:
        """Ask a fitted Gaussian process how new the rows of X (m, d) are, and draw."""
        return cls(novelty(estimator, X, method), quantile).plot(ax)

    def _draw(self, ax: Axes) -> None:
        held, values = self.found.left_out, self.found.values
        threshold = self.found.threshold(self.quantile)
        bins = np.histogram_bin_edges(np.concatenate([held, values]), 40).tolist()
        rows = ((held, BLUE, "examples, left out"), (values, VERMILION, "rows of X"))
        for sample, colour, name in rows:
            ax.hist(
                sample,
                bins,
                weights=np.full(len(sample), 100 / len(sample)),
                color=colour,
                alpha=0.6,
                label=f"{name}: {(sample > threshold).mean():.0%} above",
            )
        ax.axvline(threshold, color="black", linewidth=1, label=f"threshold {threshold:.3g}")
        ax.set(
            title=f"What is above the {self.quantile:.0%} quantile of the examples is new",
            xlabel=f"novelty by {self.found.method}",
            ylabel="share (%)",
        )
        ax.legend(loc="best", frameon=False)
        quiet_axes(ax)
