"""What all Displays share: how they are drawn, and in which colours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Self

import numpy as np

from knowmore.arrays import Array
from knowmore.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION
from knowmore.extras import optional

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_OF_CLASSES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, GREY)


class Display(ABC):
    """A picture of an answer, in the manner of scikit-learn's Displays.

    `from_estimator` asks and draws in one line; `plot` draws once more, elsewhere. Where it was
    drawn last is in `figure_` and `ax_`.
    """

    figure_: Figure | SubFigure
    ax_: Axes

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw all of it on these axes."""

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on these axes; default: those of a new figure."""
        if ax is None:
            _, ax = optional("matplotlib.pyplot", "plots").subplots(layout="constrained")
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def colours_of(classes: int) -> Array:
    """A colour for each class, (M, 3), red, green and blue between 0 and 1."""
    colors = optional("matplotlib.colors", "plots")
    if classes <= len(_OF_CLASSES):
        return np.array([colors.to_rgb(name) for name in _OF_CLASSES[:classes]])
    turbo = optional("matplotlib", "plots").colormaps["turbo"]
    return np.asarray(turbo(np.linspace(0, 1, classes))[:, :3])
