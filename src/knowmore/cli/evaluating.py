"""`knowmore evaluate`: how good a model is, by leave-one-out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from knowmore.arrays import Array
from knowmore.cli.left_out import fitted, rows_of
from knowmore.cli.model import Model
from knowmore.cli.showing import show_table
from knowmore.errors import InvalidInput
from knowmore.insight.asking import WITH_VARIANCE
from knowmore.insight.calibration import Reliability, reliability

# With more classes the confusion is told as the pairs that are confused most.
_MATRIX = 12
_PAIRS = 10
# A probability, or the share of values within one deviation, that is wrong by more is far off.
_OFF = 0.1
# The share of values of a normal distribution within one standard deviation.
_WITHIN_ONE = 0.683


class Evaluation(ABC):
    """An answer that can be printed and drawn."""

    @abstractmethod
    def as_json(self) -> dict[str, Any]:
        """All of it."""

    @property
    @abstractmethod
    def is_off(self) -> bool:
        """Whether the model is surer, or less sure, than it should be."""

    @abstractmethod
    def show(self) -> None:
        """Print it as tables."""

    @abstractmethod
    def draw(self, path: Path) -> None:
        """Write a figure as PNG."""


def evaluate(model: Model) -> Evaluation:
    """Leave each example out, and compare what the others say with what it is."""
    estimator = fitted(model)
    rows = rows_of(model, estimator)
    left = estimator.leave_one_out(*rows)
    if model.is_regression:
        return Values(np.asarray(left.labels, dtype=float), left.predicted, np.sqrt(left.variance))
    names, judged = left.names, ~left.silent
    truth, said = (np.searchsorted(names, labels) for labels in (left.labels, left.predicted))
    counts = np.zeros((len(names), len(names)), dtype=int)
    np.add.at(counts, (truth[judged], said[judged]), 1)
    calibration = None
    if isinstance(estimator, WITH_VARIANCE):
        calibration = reliability(estimator, reference=rows or None)
    return Classes(names, np.bincount(truth, minlength=len(names)), counts, calibration)


@final
@dataclass(frozen=True, eq=False)
class Classes(Evaluation):
    """Of a classifier.

    names, held : the classes, and how many examples each has, (M,)
    counts : how many examples of each class, in rows, were taken for each, (M, M); without those
        of which the others say nothing
    calibration : probabilities against accuracy, if the model has probabilities
    """

    names: Array
    held: Array
    counts: Array
    calibration: Reliability | None

    @property
    def accuracy(self) -> float:
        """The share of examples that the others recognise."""
        return float(np.trace(self.counts) / self.held.sum())

    def _by_class(self) -> list[tuple[Any, int, float, float | None]]:
        right, said = np.diag(self.counts), self.counts.sum(axis=0)
        return [
            (name, int(n), float(r / n), float(r / s) if s else None)
            for name, n, r, s in zip(self.names.tolist(), self.held, right, said, strict=True)
            if n
        ]

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        found: dict[str, Any] = {
            "examples": int(self.held.sum()),
            "accuracy": self.accuracy,
            "silent": int(self.held.sum() - self.counts.sum()),
            "classes": [
                dict(zip(("label", "examples", "recall", "precision"), row, strict=True))
                for row in self._by_class()
            ],
            "confusion": {"labels": self.names, "counts": self.counts},
            "calibration": None,
        }
        if self.calibration is not None:
            bins = self.calibration.confidence, self.calibration.accuracy, self.calibration.count
            found["calibration"] = {
                "error": self.calibration.error,
                "bins": [
                    dict(zip(("confidence", "accuracy", "count"), each, strict=True))
                    for each in zip(*(column.tolist() for column in bins), strict=True)
                ],
            }
        return found

    @property
    def is_off(self) -> bool:
        """Whether probabilities are far from the shares that are right."""
        return self.calibration is not None and bool(self.calibration.error > _OFF)

    def show(self) -> None:
        """Print it as tables."""
        n, right = int(self.held.sum()), int(np.trace(self.counts))
        silent = n - int(self.counts.sum())
        said = f" Of {silent} the others say nothing." if silent else ""
        print(f"{self.accuracy:.1%} right: {right} of {n}, each predicted by the others.{said}\n")
        show_table(("class", "examples", "recall", "precision"), self._by_class())
        print()
        self._show_confusion()
        if self.calibration is not None:
            print(
                f"\nCalibration: on average, probabilities are off by {self.calibration.error:.3f}."
            )
            bins = self.calibration
            columns = bins.confidence.tolist(), bins.accuracy.tolist(), bins.count.tolist()
            show_table(("probability", "right", "examples"), list(zip(*columns, strict=True)))

    def _show_confusion(self) -> None:
        names = [str(name) for name in self.names.tolist()]
        if len(names) <= _MATRIX:
            print("Confusion: a row for each class, a column for what it was taken for.")
            rows = [[name, *row] for name, row in zip(names, self.counts.tolist(), strict=True)]
            show_table(("", *names), rows)
            return
        wrong = self.counts - np.diag(np.diag(self.counts))
        order = np.argsort(-wrong, axis=None, kind="stable")[:_PAIRS]
        pairs = [divmod(int(at), len(names)) for at in order]
        print("What was confused most:")
        rows = [[names[i], names[j], int(wrong[i, j])] for i, j in pairs if wrong[i, j]]
        show_table(("class", "taken for", "examples"), rows)

    def draw(self, path: Path) -> None:
        """Write a figure as PNG."""
        from knowmore.cli.experiments import new_figure, save_figure
        from knowmore.insight.displays import ReliabilityDisplay

        figure = new_figure(10 if self.calibration else 5.5, 4.8)
        axes: Any = figure.subplots(1, 2 if self.calibration else 1, squeeze=False)
        ax, names = axes[0, 0], [str(name) for name in self.names.tolist()]
        share = self.counts / np.maximum(self.counts.sum(axis=1, keepdims=True), 1)
        ax.imshow(share, cmap="Blues", vmin=0, vmax=1)
        at = range(len(names))
        ax.set_xticks(at, names, rotation=90, parse_math=False)
        ax.set_yticks(at, names, parse_math=False)
        ax.set(
            xlabel="taken for", ylabel="class", title=f"{self.accuracy:.1%} right, leave-one-out"
        )
        if len(names) <= _MATRIX:
            for i in at:
                for j in at:
                    colour = "white" if share[i, j] > 0.5 else "black"
                    ax.text(j, i, self.counts[i, j], ha="center", va="center", color=colour)
        if self.calibration is not None:
            ReliabilityDisplay(self.calibration).plot(axes[0, 1])
        save_figure(figure, path)


@final
@dataclass(frozen=True, eq=False)
class Values(Evaluation):
    """Of a regressor: targets, predictions and standard deviations, (n,) each."""

    truth: Array
    predicted: Array
    std: Array

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        if self.truth.ndim != 1:
            raise InvalidInput("Only models of one target are evaluated here. Ask leave_one_out().")
        error = self.predicted - self.truth
        variance = float(np.var(self.truth))
        return {
            "examples": len(self.truth),
            "rmse": float(np.sqrt(np.mean(error**2))),
            "mean_absolute_error": float(np.mean(abs(error))),
            "r2": 1 - float(np.mean(error**2)) / variance if variance else None,
            "within_one_std": float(np.mean(abs(error) <= self.std)),
            "within_two_std": float(np.mean(abs(error) <= 2 * self.std)),
        }

    @property
    def is_off(self) -> bool:
        """Whether far more, or far fewer, values than expected are within one deviation."""
        return abs(float(self.as_json()["within_one_std"]) - _WITHIN_ONE) > _OFF

    def show(self) -> None:
        """Print it as tables."""
        found = self.as_json()
        print(f"{found['examples']} examples, each predicted by all others.\n")
        names = {
            "rmse": "root of the mean squared error",
            "mean_absolute_error": "mean absolute error",
            "r2": "share of variance explained (R²)",
            "within_one_std": "within one standard deviation (68 % expected)",
            "within_two_std": "within two (95 % expected)",
        }
        show_table(("measure", "value"), [(words, found[name]) for name, words in names.items()])

    def draw(self, path: Path) -> None:
        """Write a figure as PNG."""
        from knowmore.cli.experiments import new_figure, save_figure
        from knowmore.drawing import BLUE, GREY, quiet_axes

        rmse = self.as_json()["rmse"]
        figure = new_figure(5.5, 5)
        ax: Any = figure.subplots()
        ends = [self.truth.min(), self.truth.max()]
        ax.plot(ends, ends, color=GREY, linewidth=1, linestyle="--")
        ax.errorbar(
            self.truth, self.predicted, self.std, fmt="o", color=BLUE, ms=3, lw=0.5, alpha=0.7
        )
        ax.set(xlabel="value", ylabel="predicted by all others", title=f"Error {rmse:.4g}")
        quiet_axes(ax)
        save_figure(figure, path)
