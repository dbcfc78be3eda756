"""Evaluations of a model, printed as tables and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from knowmore._base import some
from knowmore.cli.showing import show_table, talk
from knowmore.workbench import ClassEvaluation, SourceEvaluation, ValueEvaluation

# With more classes the confusion is told as the pairs that are confused most.
_MATRIX = 12
_PAIRS = 10


def show(answer: ClassEvaluation | ValueEvaluation, how: str) -> None:
    """Print an evaluation as tables; how : examples were predicted, in words."""
    if isinstance(answer, ClassEvaluation):
        _show_classes(answer, how)
    else:
        _show_values(answer, how)


def draw(answer: ClassEvaluation | ValueEvaluation, path: Path, how: str) -> None:
    """Write a figure of an evaluation as PNG; how : examples were predicted, in words."""
    if isinstance(answer, ClassEvaluation):
        _draw_classes(answer, path, how)
    else:
        _draw_values(answer, path, how)


def show_left_out(tested: SourceEvaluation) -> None:
    """Say which records of a test set the model holds, and which it cannot get right."""
    if tested.held:
        talk(f"Left out: {tested.held} that the model holds.")
    if tested.strangers:
        count = "1 record is" if tested.strangers == 1 else f"{tested.strangers} records are"
        talk(
            f"{count} of classes that the model does not know, and counted as wrong: "
            f"{some(tested.unknown)}."
        )


def _show_classes(answer: ClassEvaluation, how: str) -> None:
    """Print it as tables."""
    n, right = int(answer.held.sum()), int(np.trace(answer.counts))
    silent = n - int(answer.counts.sum())
    said = f" Of {silent} the others say nothing." if silent else ""
    print(f"{answer.accuracy:.1%} right: {right} of {n}, each {how}.{said}")
    print(f"Balanced accuracy, the mean recall of the classes: {answer.balanced:.1%}.\n")
    show_table(("class", "examples", "recall", "precision"), answer.by_class())
    print()
    _show_confusion(answer)
    if answer.calibration is not None:
        print(
            f"\nCalibration: on average, probabilities are off by {answer.calibration.error:.3f}."
        )
        bins = answer.calibration
        columns = bins.confidence.tolist(), bins.accuracy.tolist(), bins.count.tolist()
        show_table(("probability", "right", "examples"), list(zip(*columns, strict=True)))


def _show_confusion(answer: ClassEvaluation) -> None:
    names = [str(name) for name in answer.names.tolist()]
    if len(names) <= _MATRIX:
        print("Confusion: a row for each class, a column for what it was taken for.")
        rows = [[name, *row] for name, row in zip(names, answer.counts.tolist(), strict=True)]
        show_table(("", *names), rows)
        return
    wrong = answer.counts - np.diag(np.diag(answer.counts))
    order = np.argsort(-wrong, axis=None, kind="stable")[:_PAIRS]
    pairs = [divmod(int(at), len(names)) for at in order]
    print("What was confused most:")
    rows = [[names[i], names[j], int(wrong[i, j])] for i, j in pairs if wrong[i, j]]
    show_table(("class", "taken for", "examples"), rows)


def _draw_classes(answer: ClassEvaluation, path: Path, how: str) -> None:
    """Write a figure as PNG."""
    from knowmore.cli.experiments import new_figure, save_figure
    from knowmore.insight import ReliabilityDisplay

    figure = new_figure(10 if answer.calibration else 5.5, 4.8)
    axes: Any = figure.subplots(1, 2 if answer.calibration else 1, squeeze=False)
    ax, names = axes[0, 0], [str(name) for name in answer.names.tolist()]
    share = answer.counts / np.maximum(answer.counts.sum(axis=1, keepdims=True), 1)
    ax.imshow(share, cmap="Blues", vmin=0, vmax=1)
    at = range(len(names))
    ax.set_xticks(at, names, rotation=90, parse_math=False)
    ax.set_yticks(at, names, parse_math=False)
    ax.set(xlabel="taken for", ylabel="class", title=f"{answer.accuracy:.1%} right, each {how}")
    if len(names) <= _MATRIX:
        for i in at:
            for j in at:
                colour = "white" if share[i, j] > 0.5 else "black"
                ax.text(j, i, answer.counts[i, j], ha="center", va="center", color=colour)
    if answer.calibration is not None:
        ReliabilityDisplay(answer.calibration).plot(axes[0, 1])
    save_figure(figure, path)


def _show_values(answer: ValueEvaluation, how: str) -> None:
    """Print it as tables."""
    found = answer.as_json()
    print(f"{found['examples']} examples, each {how}.\n")
    names = {
        "rmse": "root of the mean squared error",
        "mean_absolute_error": "mean absolute error",
        "r2": "share of variance explained (R²)",
        "within_one_std": "within one standard deviation (68 % expected)",
        "within_two_std": "within two (95 % expected)",
    }
    show_table(("measure", "value"), [(words, found[name]) for name, words in names.items()])


def _draw_values(answer: ValueEvaluation, path: Path, how: str) -> None:
    """Write a figure as PNG."""
    from knowmore._base import BLUE, GREY, quiet_axes
    from knowmore.cli.experiments import new_figure, save_figure

    rmse = answer.as_json()["rmse"]
    figure = new_figure(5.5, 5)
    ax: Any = figure.subplots()
    ends = [answer.truth.min(), answer.truth.max()]
    ax.plot(ends, ends, color=GREY, linewidth=1, linestyle="--")
    ax.errorbar(
        answer.truth, answer.predicted, answer.std, fmt="o", color=BLUE, ms=3, lw=0.5, alpha=0.7
    )
    ax.set(xlabel="value", ylabel="predicted", title=f"Error {rmse:.4g}, each {how}")
    quiet_axes(ax)
    save_figure(figure, path)
