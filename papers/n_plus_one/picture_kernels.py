"""Every kind of picture feature alone, by several kernels, and all kinds together.

The non-linear setting of the supplement averages kernels over many kinds of features. Here each
kind of features of Caltech-256 is tested alone, by the default kernel of an estimator, by the RBF
kernel and by the intersection of histograms. Then all kinds are tested together, by the mean of
their kernels, and by weights that `tune` finds on the training pictures. Features and kernels were
not chosen on the test pictures.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from knowmore import GPClassifier
from knowmore.insight import tune
from knowmore.kernels import ChiSquared, HistogramIntersection, On, default_kernel, median_rbf
from papers.arrays import Array
from papers.data import caltech256
from papers.findings import Progress, Report, Table, Verdict, silent, write_csv
from papers.held_out import in_order, pyramid_steps
from papers.n_plus_one.features import part
from papers.picture_features import FINE_STEP, features, patches, wholes

# Classes, and pictures of each that are learnt and tested: no class has fewer than twenty.
CLASSES, LEARNT, TESTED = 24, 12, 8
# Pixels between patches: all pictures are about 200 pixels wide.
STEP = 2 * FINE_STEP


class Alone(NamedTuple):
    """A kind of features, how many numbers it has, and the share of pictures recognised.

    intersection : None where the features are no histograms
    """

    name: str
    numbers: int
    default: float
    rbf: float
    intersection: float | None


@final
@dataclass(frozen=True, eq=False)
class Seen:
    """Each kind alone, and the rates of the mean of their kernels and of tuned weights."""

    alone: tuple[Alone, ...]
    mean: float
    tuned: float


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Seen:
    """Learn some pictures of each class and recognise others; `quick`: few, by three kinds."""
    n_classes, learnt, tested = (4, 6, 4) if quick else (CLASSES, LEARNT, TESTED)
    examples, rng = caltech256(), np.random.default_rng(seed)
    names = in_order(np.unique(examples.labels))
    chosen, others = names[:n_classes], names[-n_classes if quick else n_classes :]
    rows = np.array(
        [
            rng.permutation(np.flatnonzero(examples.labels == name))[: learnt + tested]
            for name in chosen
        ]
    )
    aside = [in_order(np.flatnonzero(examples.labels == name))[0] for name in others]
    ways: dict[str, tuple[Any, ...]] = {name: (one,) for name, one in wholes().items()}
    local = patches(STEP)
    if quick:
        ways, local = {"LBP": ways["LBP"]}, {"SURF": local["SURF"]}
    progress(0.0, "visual words")
    for name, one in local.items():
        ways[name] = pyramid_steps(list(examples.X[aside]), STEP, one)
    pictures, tables = list(examples.X[rows.ravel()]), {}
    for i, (name, steps) in enumerate(ways.items()):
        told = part(progress, name, 0.1 + 0.7 * i / len(ways), 0.1 + 0.7 * (i + 1) / len(ways))
        tables[name] = features(pictures, steps, told)
    is_train = np.tile(np.arange(learnt + tested) < learnt, n_classes)
    labels = examples.labels[rows.ravel()]
    progress(0.85, "all kinds together")
    return _compared(tables, labels, is_train)


def _compared(tables: dict[str, Array], y: Array, is_train: Array) -> Seen:
    def rate(kernel: Kernel, X: Array) -> float:
        clf = GPClassifier(kernel).fit(X[is_train], y[is_train])
        return float(clf.score(X[~is_train], y[~is_train]))

    alone, kernels = [], []
    ends = np.cumsum([X.shape[1] for X in tables.values()])
    for (name, X), end in zip(tables.items(), ends.tolist(), strict=True):
        kernel = default_kernel(X[is_train])
        counted = isinstance(kernel, ChiSquared)
        crossed = rate(HistogramIntersection(), X) if counted else None
        rbf = rate(median_rbf(X[is_train]), X)
        alone.append(Alone(name, X.shape[1], rate(kernel, X), rbf, crossed))
        # The widths stay: only the weights of the kinds, and the noise, are tuned.
        bounds = "gamma_bounds" if counted else "length_scale_bounds"
        kernels.append(On(slice(end - X.shape[1], end), kernel.set_params(**{bounds: "fixed"})))
    mean = reduce(add, (1 / len(kernels) * each for each in kernels))
    whole = np.hstack(list(tables.values()))
    tuned = tune(GPClassifier(mean).fit(whole[is_train], y[is_train])).estimator
    right = float(tuned.score(whole[~is_train], y[~is_train]))
    return Seen(tuple(alone), rate(mean, whole), right)


def report(result: Seen, out: Path) -> Report:
    """The rates, and whether many kinds are better than the best of them."""
    numbers = write_csv(
        out / "picture-kernels.csv",
        ("features", "numbers", "default", "rbf", "intersection"),
        result.alone,
    )
    rows = tuple(
        (one.name, f"{one.numbers}", *(_percent(rate) for rate in one[2:])) for one in result.alone
    )
    best = max(result.alone, key=lambda one: one.default)
    counted = [one for one in result.alone if one.intersection is not None]
    gain = float(np.mean([one.default - one.rbf for one in counted]))
    return Report(
        parts=(
            Table(
                "Pictures of Caltech-256 recognised, in percent",
                ("features", "numbers", "default", "RBF", "intersection"),
                rows,
            ),
            Verdict(
                "Histograms are recognised better by the kernel that is taken without asking",
                gain > 0,
                f"{100 * gain:+.1f} points against RBF on average",
            ),
            Verdict(
                "All kinds together are better than the best of them",
                max(result.mean, result.tuned) > best.default,
                f"{_percent(result.mean)} by the mean of the kernels, {_percent(result.tuned)} "
                f"by tuned weights, {_percent(best.default)} by {best.name} alone",
            ),
        ),
        files=(numbers,),
    )


def _percent(rate: float | None) -> str:
    return "" if rate is None else f"{100 * rate:.1f}"
