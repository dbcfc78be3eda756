"""Scores over the plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from knowmore.arguments import whole_number
from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.insight.asking import asked, of_classes
from knowmore.insight.displays.display import Display, colours_of
from knowmore.models import GP, LSSVM

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "os^Dvp*"
# Classes that the legend has room for.
_NAMED = 20
# How far the plane reaches beyond the examples, in parts of their spread.
_BEYOND = 0.15


@final
@dataclass(eq=False)
class ScoreFieldDisplay(Display):
    """The scores of a classifier of two features, and its examples.

    Each point has the colour of the class that wins there, the paler the lower its score; it is
    white at zero and below.

    across, down : (g,), the grid in the first and in the second feature
    scores : (g, g, M), the second feature along the first axis
    X, labels : (n, 2) and (n,), the examples
    classes : (M,)
    features : the names of the two
    """

    across: Array
    down: Array
    scores: Array
    X: Array
    labels: Array
    classes: Array
    features: tuple[str, str]

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, grid_resolution: int = 150, ax: Axes | None = None
    ) -> Self:
        """Ask a GPClassifier or LSSVMClassifier of two features on a grid, and draw."""
        model: GP | LSSVM = asked(estimator, GP, LSSVM, classes=True)
        of_classes(estimator, "ScoreFieldDisplay", "predict() on a grid")
        X, g = model.examples.X, whole_number("grid_resolution", grid_resolution, 2)
        if X.shape[1] != 2:
            raise InvalidInput(
                f"The model learnt from {X.shape[1]} feature(s), but a field is drawn over two. "
                f"Fit one to two features, such as the first two of a PCA."
            )
        low, high = X.min(axis=0), X.max(axis=0)
        beyond = np.where(high > low, _BEYOND * (high - low), 1.0)
        across, down = np.linspace(low - beyond, high + beyond, g).T
        points = np.stack(np.meshgrid(across, down), axis=-1)
        scores = model.mean(points.reshape(-1, 2)).reshape(g, g, -1)
        first, second = getattr(estimator, "feature_names_in_", ("x₁", "x₂"))
        names, labels = model.targets.names, model.examples.labels
        return cls(across, down, scores, X, labels, names, (str(first), str(second))).plot(ax)

    def _draw(self, ax: Axes) -> None:
        colours, best = colours_of(len(self.classes)), self.scores.max(axis=-1)
        shade = best.clip(0, 1)[..., None]
        extent = (self.across[0], self.across[-1], self.down[0], self.down[-1])
        ax.imshow(
            1 - shade * (1 - colours[self.scores.argmax(axis=-1)]),
            origin="lower",
            extent=extent,
            aspect="auto",
            interpolation="bilinear",
        )
        levels = [level for level in (0.25, 0.5, 0.75) if best.min() < level < best.max()]
        if levels:
            ax.contour(self.across, self.down, best, levels, colors="0.25", linewidths=0.5)
        marks = []
        for c, name in enumerate(self.classes):
            x, y = self.X[self.labels == name].T
            one = ax.scatter(
                x,
                y,
                s=26,
                marker=_MARKERS[c % len(_MARKERS)],
                color=[colours[c]],
                edgecolors="black",
                linewidths=0.8,
                label=str(name),
            )
            marks.append(one)
        self._name(ax, marks[:_NAMED])
        ax.set_title("Class scores (contours at 0.25, 0.5, 0.75)")
        ax.set_xlabel(self.features[0], parse_math=False)
        ax.set_ylabel(self.features[1], parse_math=False)

    def _name(self, ax: Axes, marks: list[Any]) -> None:
        """A legend of these. A name is no formula, and may begin with an underscore."""
        more = len(self.classes) - len(marks)
        legend = ax.legend(
            marks,
            ["?"] * len(marks),
            title=f"{more} more not named" if more else None,
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            frameon=False,
        )
        for text, name in zip(legend.get_texts(), self.classes, strict=False):
            text.set(text=str(name), parse_math=False)
