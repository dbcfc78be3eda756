"""The demonstration on scikit-learn's digits: grow, find wrong labels, forget, say "unknown".

It uses `GPClassifier()` with its defaults: the examples choose kernel and noise.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from pathlib import Path
from shlex import quote
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import knowmore
from knowmore import GPClassifier
from knowmore._base import BLUE, GREY, VERMILION, Array, quiet_axes
from knowmore.cli import experiments
from knowmore.cli.experiments import Progress, Report, ResultTable, as_time, timed
from knowmore.insight import Suspects, novelty, suspects

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Classes known at the start.
_FIRST = 3
# People who sent in the training images; "ann/0007" is Ann's eighth.
_CONTRIBUTORS = "ann ben cleo dora emil fay gus hana ivo jana karl lena".split()  # noqa: SIM905
# An image is unknown if its variance is above this quantile of the leave-one-out variances.
_QUANTILE = 0.95
# Suspects of each kind in the figure.
_SHOWN = 6


class Digits(NamedTuple):
    """Images (., 64), their digits, and the ids of the training images."""

    X: Array
    y: Array
    ids: Array
    X_test: Array
    y_test: Array

    def chosen(self, rows: Array) -> tuple[Array, Array, Array]:
        """The images, digits and ids in these rows, a mask or indices."""
        return self.X[rows], self.y[rows], self.ids[rows]


class Step(NamedTuple):
    """The number of known classes and of examples, the accuracy over all ten digits, and the times
    of the update that led here and of a refit."""

    classes: int
    examples: int
    accuracy: float
    update: float | None
    refit: float


class Growth(NamedTuple):
    """The steps, the last example alone, and the largest difference from a refit at the end."""

    steps: tuple[Step, ...]
    one: Step
    difference: float


class Audit(NamedTuple):
    """Wrong labels that were planted, and the suspects that leave-one-out found in `seconds`.

    `is_planted` and `is_right` are masks of the suspects: a wrong label was planted, and the
    preferred label is the true one. Accuracies: with the wrong labels, and after the suspects were
    relabelled.
    """

    planted: int
    suspects: Suspects
    is_planted: Array
    is_right: Array
    before: float
    after: float
    seconds: float


class Forgetting(NamedTuple):
    """The number of images that Ann withdrew, and the difference from a model without them.

    `seconds` is the time to remove all of them, `one` to remove one of them.
    """

    withdrawn: int
    seconds: float
    one: float
    refit: float
    difference: float


class Demo(NamedTuple):
    """The measurements of the four parts.

    The last was done for each digit in turn: `variances` (10, m) are those of the test images after
    a digit was unlearnt, divided by the threshold; above one, the model says that it does not know.
    `is_stranger` (10, m) marks the images of that digit. `digits` is what it learnt from.
    """

    growth: Growth
    audit: Audit
    forgetting: Forgetting
    variances: Array
    is_stranger: Array
    digits: Digits


# -- the four parts ------------------------------------------------------------------------------


def run(*, seed: int = 0, quick: bool = False, progress: Progress = experiments.silent) -> Demo:
    """Run the four parts on one thread; `quick` learns from a quarter of the images."""
    examples = 300 if quick else 1200
    with experiments.one_thread():
        digits = load(seed, examples)
        clf, growth = grow(digits, lambda share, name: progress(0.5 * share, name))
        progress(0.5, "looking for wrong labels")
        audited = audit(clf, digits, examples // 10, np.random.default_rng(seed))
        progress(0.6, "forgetting a contributor")
        clf, forgetting = forget(clf, digits)
        variances = []
        for digit in range(10):
            progress(0.7 + 0.03 * digit, f"unlearning digit {digit} and meeting it as a stranger")
            variances.append(unlearn(clf, digits, digit))
        is_stranger = digits.y_test == np.arange(10)[:, None]
        return Demo(growth, audited, forgetting, np.array(variances), is_stranger, digits)


def load(seed: int, examples: int) -> Digits:
    """scikit-learn's digits: `examples` to learn from, sent in by the contributors in turn."""
    X, y = load_digits(return_X_y=True)
    split = train_test_split(X, y, train_size=examples, random_state=seed, stratify=y)
    X, X_test, y, y_test = split
    people = len(_CONTRIBUTORS)
    ids = [f"{_CONTRIBUTORS[i % people]}/{i // people:04d}" for i in range(examples)]
    return Digits(X, y, np.array(ids), X_test, y_test)


def grow(digits: Digits, progress: Progress) -> tuple[GPClassifier, Growth]:
    """Start with three classes and add the others one at a time."""
    clf = GPClassifier().fit(*digits.chosen(digits.y < _FIRST))
    steps = [_step(clf, digits, None)]
    for digit in range(_FIRST, 10):
        progress((digit - _FIRST) / (10 - _FIRST), f"meeting digit {digit}")
        new = digits.chosen(digits.y == digit)
        clf, update = _timed(clf, digits, GPClassifier.add, *new)
        steps.append(_step(clf, digits, update))
    last = digits.chosen(np.array([-1]))
    others, _ = _timed(clf, digits, GPClassifier.remove, last[2])
    _, one = _timed(others, digits, GPClassifier.add, *last)
    difference = _difference(clf, _refit(clf, digits)[0], digits)
    return clf, Growth(tuple(steps), steps[-1]._replace(update=one), difference)


def audit(clf: GPClassifier, digits: Digits, planted: int, rng: np.random.Generator) -> Audit:
    """Give some examples wrong labels, find them by leave-one-out, and correct the suspects."""
    truth = dict(zip(digits.ids.tolist(), digits.y.tolist(), strict=True))
    victims = rng.choice(digits.ids, planted, replace=False)
    wrong = [(truth[one] + rng.integers(1, 10)) % 10 for one in victims.tolist()]
    spoilt = copy(clf).relabel(victims, wrong)
    before = spoilt.score(digits.X_test, digits.y_test)
    begin = perf_counter()
    found = suspects(spoilt)
    seconds = perf_counter() - begin
    # Looking at a suspect gives it its true label, which may be the label it has.
    true = np.array([truth[one] for one in found.ids.tolist()])
    after = copy(spoilt).relabel(found.ids, true).score(digits.X_test, digits.y_test)
    is_planted, is_right = np.isin(found.ids, victims), found.preferred == true
    return Audit(planted, found, is_planted, is_right, before, after, seconds)


def forget(clf: GPClassifier, digits: Digits) -> tuple[GPClassifier, Forgetting]:
    """Remove all images of Ann, and compare with a model that never saw them."""
    is_hers = np.char.startswith(digits.ids, "ann/")
    withdrawn = digits.ids[is_hers]
    rest, seconds = _timed(clf, digits, GPClassifier.remove, withdrawn)
    _, one = _timed(clf, digits, GPClassifier.remove, withdrawn[:1])
    # Fitted to the images that were loaded, not to those that the model says it holds.
    kept = digits.chosen(~is_hers)
    never, refit = _timed(GPClassifier(clf.kernel_, clf.noise_), digits, GPClassifier.fit, *kept)
    return rest, Forgetting(len(withdrawn), seconds, one, refit, _difference(rest, never, digits))


def unlearn(clf: GPClassifier, digits: Digits, digit: int) -> Array:
    """The variances (m,) of the test images after a digit was unlearnt, over the threshold."""
    examples = clf.model_.examples
    others = copy(clf).remove(examples.ids[examples.labels == digit])
    found = novelty(others, digits.X_test, "variance")
    return found.values / found.threshold(_QUANTILE)


def _step(clf: GPClassifier, digits: Digits, update: float | None) -> Step:
    accuracy, (_, refit) = clf.score(digits.X_test, digits.y_test), _refit(clf, digits)
    return Step(len(clf.classes_), len(clf.ids_), accuracy, update, refit)


def _refit(clf: GPClassifier, digits: Digits) -> tuple[GPClassifier, float]:
    """A model of the same settings and examples, from scratch, and its time."""
    held = clf.model_.examples
    return _timed(
        GPClassifier(clf.kernel_, clf.noise_), digits, GPClassifier.fit, held.X, held.labels
    )


def _difference(one: GPClassifier, other: GPClassifier, digits: Digits) -> float:
    """The largest difference in a score over all test images."""
    X = digits.X_test
    return float(abs(one.decision_function(X) - other.decision_function(X)).max())


def _timed(
    clf: GPClassifier, digits: Digits, change: Callable[..., object], *arguments: Array
) -> tuple[GPClassifier, float]:
    """The changed model, and the seconds until it has answered its first question.

    `clf` must have answered one, or else be new: earlier edits are folded in by the next answer.
    """

    def act() -> GPClassifier:
        # A copy shares the frozen model, so that each repeat starts from the same state.
        changed = copy(clf)
        change(changed, *arguments)
        changed.predict(digits.X_test[:1])
        return changed

    return timed(act)


# -- the report ----------------------------------------------------------------------------------


def report(result: Demo, out: Path) -> Report:
    """The growth as a table, a few sentences on each part, one figure, and a model to try."""
    figure = experiments.save_figure(_figure(result), out / "demo.png")
    model = _write_model(result.digits, out / "digits.km")
    name = quote(str(model))
    commands = (
        f"knowmore evaluate {name}",
        f"knowmore explain {name} ann/0000",
        f"knowmore forget {name} --contributor ann",
        f"knowmore verify {name}",
    )
    return Report((_growth_table(result), *_sentences(result)), (figure, model), commands)


def _write_model(digits: Digits, path: Path) -> Path:
    """A living model of all these digits; one from an earlier run is replaced."""
    for old in (path, path.with_name(f"{path.name}-journal")):
        old.unlink(missing_ok=True)
    contributors = [name.partition("/")[0] for name in digits.ids.tolist()]
    with knowmore.open(path, GPClassifier()) as store:
        store.add(
            digits.X,
            digits.y,
            digits.ids,
            contributor=contributors,
            origins="scikit-learn's digits",
        )
    return path


def _growth_table(result: Demo) -> ResultTable:
    rows = []
    for step in (*result.growth.steps, result.growth.one):
        name = "the last image alone" if step is result.growth.one else str(step.classes)
        # The first step is a fit, not an update.
        update = "" if step.update is None else as_time(step.update)
        ratio = "" if step.update is None else f"{step.refit / step.update:.0f} x"
        accuracy, refit = f"{step.accuracy:.1%}", as_time(step.refit)
        rows.append((name, str(step.examples), accuracy, update, refit, ratio))
    images = result.variances.shape[1]
    title = f"Digits, class by class. Accuracy on {images} test images of all ten."
    header = ("known classes", "examples", "accuracy", "update", "full refit", "faster")
    return ResultTable(title, header, tuple(rows))


def _sentences(result: Demo) -> tuple[str, ...]:
    growth, audit, forgetting = result.growth, result.audit, result.forgetting
    first, last = growth.steps[0], growth.steps[-1]
    examples, found = last.examples, audit.is_planted
    unknown, stranger = result.variances > 1, result.is_stranger
    caught = np.mean(unknown, axis=1, where=stranger)
    return (
        f"Growing. It started with {first.classes} digits and met the others one at a time. "
        f"Accuracy went from {first.accuracy:.1%} to {last.accuracy:.1%}. Its scores differ from "
        f"those of a full refit by at most {growth.difference:.0e}.",
        f"Wrong labels. {audit.planted} of {examples} labels were made wrong. Leaving each example "
        f"out took {as_time(audit.seconds)}; {examples} refits would take about "
        f"{as_time(examples * growth.one.refit)}. For {len(found)} examples the others prefer "
        f"another label, and {found.sum()} of the {audit.planted} planted ones are among them; for "
        f"{(found & audit.is_right).sum()} of these the preferred label is the true one. With the "
        f"flagged images looked at and relabelled, accuracy is {audit.after:.1%}. It was "
        f"{audit.before:.1%} with the wrong labels and {last.accuracy:.1%} before.",
        f"Forgetting. Ann withdrew {forgetting.withdrawn} images. Removing them took "
        f"{as_time(forgetting.seconds)}, one alone would take {as_time(forgetting.one)}, a refit "
        f"on the other {examples - forgetting.withdrawn} takes {as_time(forgetting.refit)}. Scores "
        f"differ from those of a model that never saw them by at most {forgetting.difference:.0e}.",
        f"Not knowing. Each digit in turn was unlearnt and met as a stranger. By its variance the "
        f"model called {unknown[stranger].mean():.0%} of the strangers unknown, and "
        f"{unknown[~stranger].mean():.0%} of the digits it knew. The easiest stranger was "
        f"{caught.argmax()} ({caught.max():.0%}), the hardest {caught.argmin()} "
        f"({caught.min():.0%}).",
    )


# -- the figure ----------------------------------------------------------------------------------


def _figure(result: Demo) -> Figure:
    figure = experiments.new_figure(11, 7.6)
    parts: Any = figure.subfigures(2, 2, hspace=0.04, wspace=0.02)
    accuracy, times, suspects, variances = parts.flat
    _draw_accuracy(accuracy.subplots(), result.growth)
    _draw_times(times.subplots(), result.growth)
    _draw_suspects(suspects, result.audit)
    _draw_variances(variances.subplots(), result)
    return figure


def _draw_accuracy(ax: Axes, growth: Growth) -> None:
    classes = [step.classes for step in growth.steps]
    accuracy = [100 * step.accuracy for step in growth.steps]
    best = [10 * c for c in classes]
    ax.plot(classes, accuracy, "o-", color=BLUE, label="measured")
    ax.plot(classes, best, "--", color=GREY, label="all images of known classes right")
    ax.set(ylim=(0, 105), xticks=classes)
    title = "It can only be right about digits it has met"
    _explain(ax, title, "known classes", "accuracy over all ten digits (%)")


def _draw_times(ax: Axes, growth: Growth) -> None:
    examples = [step.examples for step in growth.steps]
    steps = [*growth.steps, growth.one]
    # The first step is a fit, not an update: its time is missing, and becomes NaN.
    milliseconds = 1e3 * np.array([(step.update, step.refit) for step in steps], dtype=float)
    updates, refits = milliseconds.T
    ax.plot(examples, updates[:-1], "o-", color=BLUE, label="update by a class")
    ax.plot(examples[-1], updates[-1], "D", color=BLUE, mfc="white", label="update by one image")
    ax.plot(examples, refits[:-1], "s-", color=VERMILION, label="full refit")
    ax.set_yscale("log")
    decades = np.log10(ax.get_ylim())
    ax.set_ylim(10 ** np.floor(decades[0]), 10 ** np.ceil(decades[1]))
    ax.yaxis.set_major_formatter("{x:g}")
    title = "Time until the model answers again"
    _explain(ax, title, "examples held after the update", "time (ms)")


def _draw_suspects(figure: SubFigure, audit: Audit) -> None:
    figure.suptitle("Labels that the other examples doubt most", fontsize="large")
    found = audit.suspects
    kinds = (VERMILION, "planted", audit.is_planted), (BLUE, "not planted", ~audit.is_planted)
    for (colour, name, mask), row in zip(kinds, figure.subplots(2, _SHOWN), strict=True):
        row[0].set_ylabel(f"{name} ({mask.sum()})", color=colour)
        for ax in row:
            ax.set(xticks=[], yticks=[])
            ax.spines[:].set_visible(False)
        for ax, i in zip(row, np.flatnonzero(mask), strict=False):
            image = found.model.examples.X[found.rows[i]].reshape(8, 8)
            ax.imshow(image, cmap="Greys", interpolation="nearest")
            ax.set_title(f"label {found.labels[i]}\nothers say {found.preferred[i]}", fontsize=8)


def _draw_variances(ax: Axes, result: Demo) -> None:
    bins = np.histogram_bin_edges(result.variances, 49).tolist()
    known, unknown = result.variances[~result.is_stranger], result.variances[result.is_stranger]
    for values, colour, name in (known, BLUE, "known"), (unknown, VERMILION, "unknown"):
        label = f"{name}: {(values > 1).mean():.0%} called unknown"
        weights = np.full(len(values), 100 / len(values))
        ax.hist(values, bins, weights=weights, color=colour, alpha=0.6, label=label)
    ax.axvline(1, color="black", linewidth=1)
    # Below the legend, which has the upper right corner.
    ax.annotate("I don't know this", (1, 0.76), (6, 0), ("data", "axes fraction"), "offset points")
    x = f"variance / threshold ({_QUANTILE:.0%} quantile of leave-one-out)"
    _explain(ax, "Digits it knows, and one it never met", x, "images (%)")


def _explain(ax: Axes, title: str, x: str, y: str) -> None:
    """Give the axes a title, labels and a legend."""
    ax.set(title=title, xlabel=x, ylabel=y)
    ax.legend(frameon=False)
    quiet_axes(ax)
