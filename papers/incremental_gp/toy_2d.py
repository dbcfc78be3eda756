"""Fig. 1 of Lütz, Rodner and Denzler: a problem in the plane whose classes grow and appear.

Three classes are learnt; then one of them gets examples in another place; then a new class turns
up. After each step the updated model is held against the batch fit of the same examples.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from knowmore import GPClassifier
from papers.arrays import Array
from papers.findings import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    Progress,
    Report,
    Verdict,
    new_figure,
    save_figure,
    silent,
    write_csv,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KERNEL, NOISE = RBF(0.8), 0.1
# The plane shown is [-REACH, REACH]^2.
REACH = 4.0
_COLOURS, _MARKERS = (BLUE, ORANGE, GREEN, PURPLE), ("o", "s", "^", "D")
# (title, class, centre, spread, examples): the clusters that arrive at each step.
_STEPS: tuple[tuple[str, tuple[tuple[int, tuple[float, float], float, int], ...]], ...] = (
    (
        "three classes",
        ((0, (-2.0, 1.2), 0.55, 14), (1, (0.6, -2.0), 0.5, 14), (2, (0.3, 2.2), 0.45, 14)),
    ),
    ("more of a known class", ((0, (-2.2, -2.2), 0.5, 14),)),
    ("a new class", ((3, (2.5, 0.3), 0.5, 14),)),
)


@final
@dataclass(frozen=True, eq=False)
class Stage:
    """The model after one step.

    X (n, 2) and labels (n,) are the examples it holds, the last `added` of them new.
    scores (g, g, M) and variance (g, g) are its fields over `axis` x `axis`; the differences are
    the largest ones from the batch fit, `tolerance` is what rounding allows them.
    """

    title: str
    X: Array
    labels: Array
    added: int
    axis: Array
    scores: Array
    variance: Array
    score_difference: float
    variance_difference: float
    tolerance: float


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> tuple[Stage, ...]:
    """Grow the model step by step; `quick` looks at fewer points of the plane."""
    rng = np.random.default_rng(seed)
    axis = np.linspace(-REACH, REACH, 41 if quick else 201)
    clf = GPClassifier(KERNEL, noise=NOISE)
    stages = []
    for i, (title, clusters) in enumerate(_STEPS):
        progress(i / len(_STEPS), title)
        X = np.concatenate([rng.normal(at, spread, (k, 2)) for _, at, spread, k in clusters])
        y = np.concatenate([np.full(k, label) for label, _, _, k in clusters])
        clf.add(X, y)
        stages.append(_stage(title, clf, len(X), axis))
    return tuple(stages)


def _stage(title: str, clf: GPClassifier, added: int, axis: Array) -> Stage:
    examples = clf.model_.examples
    batch = GPClassifier(KERNEL, noise=NOISE).fit(examples.X, examples.labels)
    points = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    scores, variance = clf.decision_function(points), clf.predict_variance(points)
    condition = np.linalg.cond(KERNEL(examples.X) + NOISE * np.eye(len(examples)))
    return Stage(
        title=title,
        X=examples.X,
        labels=examples.labels,
        added=added,
        axis=axis,
        scores=scores.reshape(len(axis), len(axis), -1),
        variance=variance.reshape(len(axis), len(axis)),
        score_difference=float(abs(scores - batch.decision_function(points)).max()),
        variance_difference=float(abs(variance - batch.predict_variance(points)).max()),
        tolerance=float(4 * np.finfo(float).eps * condition),
    )


def report(result: tuple[Stage, ...], out: Path) -> Report:
    """The picture, the check as a table, and a sentence."""
    check = write_csv(
        out / "toy-2d.csv",
        ("stage", "examples", "classes", "score_difference", "variance_difference", "tolerance"),
        [
            (
                stage.title,
                len(stage.X),
                stage.scores.shape[-1],
                stage.score_difference,
                stage.variance_difference,
                stage.tolerance,
            )
            for stage in result
        ],
    )
    picture = save_figure(_draw(result), out / "toy-2d.png")
    worst = max(result, key=lambda stage: stage.score_difference / stage.tolerance)
    variance = max(stage.variance_difference for stage in result)
    last = result[-1]
    return Report(
        parts=(
            f"The model grew from {len(result[0].X)} examples of {result[0].scores.shape[-1]} "
            f"classes to {len(last.X)} examples of {last.scores.shape[-1]}.",
            Verdict(
                claim="The updated model is the batch model.",
                holds=all(stage.score_difference <= stage.tolerance for stage in result),
                measured=(
                    f"over {last.variance.size} points the largest difference in a score is "
                    f"{worst.score_difference:.1e} (rounding allows {worst.tolerance:.1e}), "
                    f"in a variance {variance:.1e}"
                ),
            ),
        ),
        files=(picture, check),
    )


# -- the picture ---------------------------------------------------------------------------------


def _draw(stages: tuple[Stage, ...]) -> Figure:
    figure = new_figure(11, 7.2)
    # Square panels would leave gaps in a plain constrained layout.
    figure.set_layout_engine("compressed")
    axes = figure.subplots(2, len(stages), sharex=True, sharey=True)
    for j, stage in enumerate(stages):
        _draw_scores(axes[0, j], stage)
        axes[0, j].set_title(f"{stage.title} (n = {len(stage.X)})")
        field = _draw_variance(axes[1, j], stage)
        axes[1, j].set_xlabel("$x_1$")
    for row in axes:
        row[0].set_ylabel("$x_2$")
    scale = figure.colorbar(_score_scale(), ax=list(axes[0]), shrink=0.9)
    scale.set_label("class score $\\max_c\\,\\mu^{(c)}$, hue = winning class")
    figure.colorbar(field, ax=list(axes[1]), shrink=0.9).set_label("variance $\\sigma_*^2$")
    _legend(figure, len(set(stages[-1].labels)))
    return figure


def _draw_scores(ax: Axes, stage: Stage) -> None:
    """The colour of the winning class, the paler the lower its score; white at zero and below."""
    from matplotlib.colors import to_rgb

    best = stage.scores.max(axis=-1, keepdims=True).clip(0, 1)
    colours = np.array([to_rgb(colour) for colour in _COLOURS])[stage.scores.argmax(axis=-1)]
    extent = (-REACH, REACH, -REACH, REACH)
    ax.imshow(1 - best * (1 - colours), origin="lower", extent=extent, interpolation="bilinear")
    ax.contour(
        stage.axis, stage.axis, best[..., 0], [0.25, 0.5, 0.75], colors="0.25", linewidths=0.5
    )
    _draw_examples(ax, stage)


def _draw_variance(ax: Axes, stage: Stage) -> Any:
    """White where the model knows, grey where it does not."""
    from matplotlib.colors import LinearSegmentedColormap

    field = ax.imshow(
        stage.variance,
        origin="lower",
        extent=(-REACH, REACH, -REACH, REACH),
        cmap=LinearSegmentedColormap.from_list("unknown", ["white", "0.45"]),
        vmin=NOISE,
        vmax=1 + NOISE,
    )
    _draw_examples(ax, stage)
    return field


def _draw_examples(ax: Axes, stage: Stage) -> None:
    new = np.arange(len(stage.X)) >= len(stage.X) - stage.added
    for label in np.unique(stage.labels):
        for chosen, face, edge, size in (
            (~new, "white", "0.3", 20),
            (new, _COLOURS[label], "black", 36),
        ):
            x, y = stage.X[chosen & (stage.labels == label)].T
            marker = _MARKERS[label]
            ax.scatter(x, y, s=size, marker=marker, color=face, edgecolors=edge, linewidths=0.9)


def _score_scale() -> Any:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    return ScalarMappable(Normalize(0, 1), cmap="Greys")


def _legend(figure: Figure, classes: int) -> None:
    from matplotlib.lines import Line2D

    def entry(label: str, marker: str, colour: str, edge: str) -> Line2D:
        return Line2D(
            [], [], linestyle="", marker=marker, color=colour, markeredgecolor=edge, label=label
        )

    entries = [
        entry(f"class {c + 1}, just added", _MARKERS[c], _COLOURS[c], "black")
        for c in range(classes)
    ]
    entries.append(entry("learnt before", "o", "white", "0.3"))
    figure.legend(handles=entries, loc="outside lower center", ncols=len(entries), frameon=False)
