"""Labels that are not believed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from knowmore.arguments import whole_number
from knowmore.drawing import VERMILION, quiet_axes
from knowmore.insight.displays.display import Display
from knowmore.insight.suspects import Suspects, suspects

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@final
@dataclass(eq=False)
class SuspectsDisplay(Display):
    """The most suspicious labels by their margins; `shown` of those that were `found`."""

    found: Suspects
    shown: int = 15

    @classmethod
    def from_estimator(cls, estimator: Any, *, shown: int = 15, ax: Axes | None = None) -> Self:
        """Audit the labels of a fitted living classifier, and draw."""
        return cls(suspects(estimator), whole_number("shown", shown, 1)).plot(ax)

    def _draw(self, ax: Axes) -> None:
        found, k = self.found, min(self.shown, len(self.found.ids))
        at = np.arange(k)
        ax.barh(at, found.margin[:k], color=VERMILION, height=0.7)
        table = zip(found.ids[:k], found.labels[:k], found.preferred[:k], strict=True)
        names = [f"{id_}:  {label} → {other}" for id_, label, other in table]
        # An id may hold dollar signs, which would begin a formula.
        ax.set_yticks(at, names, parse_math=False)
        ax.set(
            title=found._summary(),
            xlabel="margin of the preferred class in leave-one-out",
            ylabel="id:  label → preferred class",
            ylim=(max(k, 1) - 0.5, -0.5),
        )
        quiet_axes(ax)
        ax.grid(visible=False, axis="y")
