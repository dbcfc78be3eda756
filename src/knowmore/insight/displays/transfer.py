"""What a new class was built from, as bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from knowmore.arguments import whole_number
from knowmore.drawing import BLUE, quiet_axes
from knowmore.insight.displays.display import Display
from knowmore.insight.transfer import Transfer, transfer

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@final
@dataclass(eq=False)
class TransferDisplay(Display):
    """The known classes that gave most to a new one; `shown` of those that were `found`."""

    found: Transfer
    shown: int = 15

    @classmethod
    def from_estimator(cls, estimator: Any, *, shown: int = 15, ax: Axes | None = None) -> Self:
        """Ask a fitted NPlusOneClassifier, and draw."""
        return cls(transfer(estimator), whole_number("shown", shown, 1)).plot(ax)

    def _draw(self, ax: Axes) -> None:
        k = min(self.shown, len(self.found.classes))
        at = np.arange(k)
        ax.barh(at, self.found.weights[:k], color=BLUE, height=0.7)
        # A name may hold dollar signs, which would begin a formula.
        ax.set_yticks(at, [str(name) for name in self.found.classes[:k]], parse_math=False)
        ax.set(xlabel="weight in the new class (beta)", ylabel="known class", ylim=(k - 0.5, -0.5))
        ax.set_title(f"What {self.found.new} was built from", parse_math=False)
        quiet_axes(ax)
        ax.grid(visible=False, axis="y")
