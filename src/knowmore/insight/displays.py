"""Pictures of answers, each from an estimator in one line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np

from knowmore._base import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    Array,
    optional,
    quiet_axes,
    whole_number,
)
from knowmore.edits import Remove
from knowmore.errors import InvalidInput
from knowmore.insight.asking import FORESTS, TUNABLE, asked, check_both, inputs, true_labels
from knowmore.insight.calibration import Reliability, reliability
from knowmore.insight.explain import Transfer, transfer
from knowmore.insight.novelty import Novelty, novelty
from knowmore.insight.suspects import Suspects, suspects
from knowmore.models import KernelModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CLASS_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, GREY)
_MARKERS = "os^Dvp*"
# How many classes the legend has room for.
_NAMED = 20
# How far the plane extends beyond the examples, as a fraction of their range.
_BEYOND = 0.15
# What to do with a forest.
_FOREST = "Fit a GPClassifier to some thousand of its examples, and ask that."


class Display(ABC):
    """A picture of an answer, like scikit-learn's Displays.

    `from_estimator` asks and draws in one line; `plot` draws again, elsewhere. `figure_` and `ax_`
    are where it was drawn last.
    """

    @abstractmethod
    def _draw(self, ax: Axes) -> None:
        """Draw all of it on these axes."""

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on these axes; default: the axes of a new figure."""
        if ax is None:
            _, ax = optional("matplotlib.pyplot", "plots").subplots(layout="constrained")
        self._draw(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _bars(ax: Axes, values: Array, names: list[str], colour: str) -> None:
    """Horizontal bars with a name each, the first at the top."""
    at = np.arange(len(values))
    ax.barh(at, values, color=colour, height=0.7)
    # A name may hold dollar signs, which would begin a formula.
    ax.set_yticks(at, names, parse_math=False)
    ax.set_ylim(max(len(values), 1) - 0.5, -0.5)
    quiet_axes(ax)
    ax.grid(visible=False, axis="y")


def _label(ax: Axes, title: str, xlabel: str, ylabel: str) -> None:
    """Set the title and the axis labels; a dollar sign in them does not begin a formula."""
    ax.set_title(title, parse_math=False)
    ax.set_xlabel(xlabel, parse_math=False)
    ax.set_ylabel(ylabel, parse_math=False)


@final
@dataclass(eq=False)
class SuspectsDisplay(Display):
    """The most suspicious labels of `found`, `shown` of them, by their margins."""

    found: Suspects
    shown: int = 15

    @classmethod
    def from_estimator(cls, estimator: Any, *, shown: int = 15, ax: Axes | None = None) -> Self:
        """Audit the labels of a fitted living classifier, and draw."""
        return cls(suspects(estimator), whole_number("shown", shown, 1)).plot(ax)

    def _draw(self, ax: Axes) -> None:
        found, k = self.found, self.shown
        table = zip(found.ids[:k], found.labels[:k], found.preferred[:k], strict=True)
        names = [f"{id_}:  {label} → {other}" for id_, label, other in table]
        _bars(ax, found.margin[:k], names, VERMILION)
        margin = "margin of the preferred class in leave-one-out"
        _label(ax, found._summary(), margin, "id:  label → preferred class")


@final
@dataclass(eq=False)
class TransferDisplay(Display):
    """The `shown` known classes of `found` that gave most to a new one."""

    found: Transfer
    shown: int = 15

    @classmethod
    def from_estimator(cls, estimator: Any, *, shown: int = 15, ax: Axes | None = None) -> Self:
        """Ask a fitted NPlusOneClassifier, and draw."""
        return cls(transfer(estimator), whole_number("shown", shown, 1)).plot(ax)

    def _draw(self, ax: Axes) -> None:
        found, k = self.found, self.shown
        _bars(ax, found.weights[:k], [str(name) for name in found.classes[:k]], BLUE)
        title = f"What {found.new} was built from"
        _label(ax, title, "weight in the new class (beta)", "known class")


@final
@dataclass(eq=False)
class NoveltyDisplay(Display):
    """How new the rows of X are, beside the examples held when each is left out.

    Rows above the threshold, below which a fraction `quantile` of the examples lie, are unknown.
    """

    found: Novelty
    quantile: float = 0.95

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        method: str | None = None,
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
            label = f"{name}: {(sample > threshold).mean():.0%} above"
            weights = np.full(len(sample), 100 / len(sample))
            ax.hist(sample, bins, weights=weights, color=colour, alpha=0.6, label=label)
        ax.axvline(threshold, color="black", linewidth=1, label=f"threshold {threshold:.3g}")
        title = f"Rows above the {self.quantile:.0%} quantile of the examples are new"
        _label(ax, title, f"novelty by {self.found.method}", "share (%)")
        ax.legend(loc="best", frameon=False)
        quiet_axes(ax)


@final
@dataclass(eq=False)
class ReliabilityDisplay(Display):
    """Accuracy against predicted probability; calibrated probabilities lie on the diagonal.

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
        ax.set(xlim=(0, 1.05), ylim=(-0.05, 1.05))
        title = f"Expected calibration error {found.error:.3f}, {found.count.sum()} predictions"
        _label(ax, title, "probability of the predicted class", "fraction that is right")
        quiet_axes(ax)


@final
@dataclass(eq=False)
class LearningCurveDisplay(Display):
    """The accuracy of models of the first examples, as many as `sizes` (s,) says.

    accuracy : (s,), the fraction that is right
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
        Kernel and noise are those of the whole model. Nothing is fitted: the factor of the first
        examples is the leading part of the whole factor.
        """
        model = asked(estimator, TUNABLE, "LearningCurveDisplay", "leave_one_out()", forest=_FOREST)
        n, points = len(model.examples), whole_number("points", points, 2)
        if n < 2:
            raise InvalidInput("The model holds one example, which makes no curve. Add some more.")
        check_both(X, y)
        rows = None if X is None else inputs(estimator, X)
        labels = None if rows is None else true_labels(y, len(rows), model.names)
        measure = "leave-one-out" if labels is None else f"{len(labels)} test examples"
        sizes = np.unique(np.linspace(max(n // points, 2), n, min(points, n)).astype(int))
        accuracy = np.array([_accuracy(model, int(m), rows, labels) for m in sizes])
        return cls(sizes, accuracy, measure).plot(ax)

    def _draw(self, ax: Axes) -> None:
        ax.plot(self.sizes, 100 * self.accuracy, "o-", color=BLUE, markersize=4)
        ax.set_xlim(left=0)
        title = f"{self.accuracy[-1]:.1%} right with {self.sizes[-1]} examples"
        _label(ax, title, "examples, in the order of the model", f"accuracy, {self.measure} (%)")
        quiet_axes(ax)


def _accuracy(model: KernelModel, m: int, X: Array | None, labels: Array | None) -> float:
    """Accuracy of the model of the first m examples, on test data or by leave-one-out."""
    examples = model.examples
    model = model.follow(examples.apply(Remove(examples.names[m:])))
    scores = model.left_out.scores().scores if X is None else model.mean(X)
    labels = model.examples.labels if labels is None else labels
    return float((model.names[scores.argmax(axis=1)] == labels).mean())


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
        """Ask a GPClassifier, LSSVMClassifier or ForestGPClassifier of two features, and draw."""
        kinds = (*TUNABLE, *FORESTS)
        model = asked(estimator, kinds, "ScoreFieldDisplay", "predict() on a grid")
        examples, g = model.examples.counted, whole_number("grid_resolution", grid_resolution, 2)
        X, labels = examples.X, examples.labels
        if X.shape[1] != 2:
            raise InvalidInput(f"A field needs 2 features, the model has {X.shape[1]}. Try a PCA.")
        low, high = X.min(axis=0), X.max(axis=0)
        beyond = np.where(high > low, _BEYOND * (high - low), 1.0)
        across, down = np.linspace(low - beyond, high + beyond, g).T
        points = np.stack(np.meshgrid(across, down), axis=-1)
        scores = model.mean(points.reshape(-1, 2)).reshape(g, g, -1)
        # A pipeline may make two features of others.
        features: Any = getattr(estimator, "feature_names_in_", ())
        first, second = features if len(features) == 2 else ("x₁", "x₂")
        shown = (str(first), str(second))
        return cls(across, down, scores, X, labels, model.names, shown).plot(ax)

    def _draw(self, ax: Axes) -> None:
        colours, best = _colours(len(self.classes)), self.scores.max(axis=-1)
        shade = best.clip(0, 1)[..., None]
        extent = (self.across[0], self.across[-1], self.down[0], self.down[-1])
        image = 1 - shade * (1 - colours[self.scores.argmax(axis=-1)])
        ax.imshow(image, origin="lower", extent=extent, aspect="auto", interpolation="bilinear")
        levels = [level for level in (0.25, 0.5, 0.75) if best.min() < level < best.max()]
        if levels:
            ax.contour(self.across, self.down, best, levels, colors="0.25", linewidths=0.5)
        look: dict[str, Any] = {"s": 26, "edgecolors": "black", "linewidths": 0.8}
        marks = []
        for c, name in enumerate(self.classes):
            x, y = self.X[self.labels == name].T
            marker, colour = _MARKERS[c % len(_MARKERS)], [colours[c]]
            marks.append(ax.scatter(x, y, marker=marker, color=colour, label=str(name), **look))
        self._add_legend(ax, marks[:_NAMED])
        _label(ax, "Class scores (contours at 0.25, 0.5, 0.75)", *self.features)

    def _add_legend(self, ax: Axes, marks: list[Any]) -> None:
        """A legend of these. A name is not a formula, and may begin with an underscore."""
        names = ["?"] * len(marks)
        legend = ax.legend(marks, names, loc="center left", bbox_to_anchor=(1.0, 0.5))
        legend.set_frame_on(False)
        if more := len(self.classes) - len(marks):
            legend.set_title(f"{more} more not named")
        for text, name in zip(legend.get_texts(), self.classes, strict=False):
            text.set(text=str(name), parse_math=False)


def _colours(classes: int) -> Array:
    """A colour for each class, (M, 3), red, green and blue between 0 and 1."""
    matplotlib = optional("matplotlib", "plots")
    if classes <= len(_CLASS_COLOURS):
        return np.asarray(matplotlib.colors.to_rgba_array(_CLASS_COLOURS[:classes])[:, :3])
    return np.asarray(matplotlib.colormaps["turbo"](np.linspace(0, 1, classes))[:, :3])
