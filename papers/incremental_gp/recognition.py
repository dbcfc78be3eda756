"""How well pictures are recognised: the Fifteen Scenes and Caltech-101 by several features.

The protocols are those of Lazebnik, Schmid and Ponce (2006). In each random split some pictures of
every class are learnt and others tested; the rate is the mean over the classes. All choices are
made on the pictures learnt: the visual words are theirs, and the width of the kernel and the noise
are those under which closed-form leave-one-out recognises most of them. Our classifier has the
squared loss of the paper, and with the same noise and an offset the squared hinge. Beside it stands
scikit-learn's SVC on the same kernel values, its C chosen by cross-validation, and as it is: one
class against one; and with that C one class against all others, as in their paper. The few pictures
that the Fifteen Scenes hold twice are left in, and may fall on both sides of a split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import NamedTuple, final

import numpy as np
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Kernel
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from knowmore import GPClassifier
from knowmore.examples import Examples
from knowmore.images import Descriptors
from knowmore.kernels import (
    ChiSquared,
    ExponentialIntersection,
    HistogramIntersection,
    corner,
    cross,
)
from papers.arrays import Array
from papers.data import caltech101, fifteen_scenes
from papers.findings import Progress, Report, save_figure, silent, write_csv
from papers.incremental_gp.recognition_figure import draw
from papers.incremental_gp.recognition_report import (
    BAG,
    CALTECH,
    EDGES,
    LEFT_OUT,
    NETWORK,
    PLAIN,
    PYRAMID,
    SCENES,
    Outcome,
    Recognition,
    Task,
    preface,
    rates,
    verdicts,
)
from papers.picture_features import (
    FINE_STEP,
    LEVELS,
    STEP,
    bag,
    codebook,
    edges,
    features,
    lacking,
    network,
    sift,
    unit,
)

# Where the pictures come from, and the step at which they are looked at.
_SOURCES: dict[str, tuple[Callable[[], Examples], int]] = {
    SCENES: (fifteen_scenes, STEP),
    CALTECH: (partial(caltech101, LEFT_OUT), FINE_STEP),
}
_TASKS, _SPLITS = (Task(SCENES, 100, None), Task(CALTECH, 15, 50), Task(CALTECH, 30, 50)), 5
_QUICK_TASKS, _QUICK_SPLITS = (Task(SCENES, 10, 10), Task(CALTECH, 10, 10)), 2
# Of so many classes that many pictures.
_QUICK_CLASSES, _QUICK_PICTURES = 10, 20

# The part of the time that looking takes, for the progress bar.
_LOOKING = 0.2
# The noise on labels of -1 and 1 where k(x, x) = 1, and the exponent at the mean distance.
_NOISES, _EXPONENTS = (1e-3, 1e-2, 1e-1, 1.0), (0.5, 1.0, 2.0)
_COSTS, _FOLDS = (1.0, 10.0, 100.0), 3

# exp(-D); its powers are exp(-gamma D). The plain intersection has no width.
_KERNELS: dict[str, Kernel] = {
    BAG: ExponentialIntersection(),
    PLAIN: HistogramIntersection(),
    PYRAMID: ExponentialIntersection(),
    EDGES: ChiSquared(),
    NETWORK: RBF(),
}


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> Recognition:
    """All tasks in some splits; `quick`: in two splits of few pictures."""
    rng = np.random.default_rng(seed)
    tasks, splits = (_QUICK_TASKS, _QUICK_SPLITS) if quick else (_TASKS, _SPLITS)
    outcomes: list[Outcome] = []
    for i, (source, (load, step)) in enumerate(_SOURCES.items()):
        told = _part(progress, source, i / len(_SOURCES), (i + 1) / len(_SOURCES))
        turns = list(product([task for task in tasks if task.source == source], range(splits)))
        outcomes += _recognised(_few(load()) if quick else load(), step, turns, rng, told)
    return Recognition(tuple(outcomes), lacking())


def _recognised(
    examples: Examples,
    step: int,
    turns: list[tuple[Task, int]],
    rng: np.random.Generator,
    progress: Progress,
) -> Iterator[Outcome]:
    seen = _look(examples, step, _part(progress, "looking", 0.0, _LOOKING))
    for i, (task, split) in enumerate(turns):
        share = _LOOKING + (1 - _LOOKING) * i / len(turns)
        progress(share, f"{task.learnt} a class, split {split + 1}")
        yield from _outcomes(seen, task, split, rng)


def report(result: Recognition, out: Path) -> Report:
    """The picture, all numbers, a table and a verdict on each target."""
    numbers = write_csv(out / "recognition.csv", Outcome._fields, result.outcomes)
    picture = save_figure(draw(result), out / "recognition.png")
    return Report(
        parts=(preface(result), rates(result), *verdicts(result)), files=(picture, numbers)
    )


# -- looking -------------------------------------------------------------------------------------


class _Feature(NamedTuple):
    """A feature of the pictures learnt, X (n, D), and of the pictures tested, Z (m, D)."""

    name: str
    X: Array
    Z: Array


@final
@dataclass(frozen=True, eq=False)
class _Seen:
    """The n pictures of a data set, described as far as that needs no learning.

    labels (n,), n descriptors, and tables (n, D) by feature
    """

    labels: Array
    descriptors: list[Descriptors]
    tables: dict[str, Array]

    def split(self, task: Task, rng: np.random.Generator) -> tuple[Array, Array]:
        """Rows to learn from and rows to be tested."""
        learnt, tested = [], []
        for name in np.unique(self.labels):
            rows = rng.permutation(np.flatnonzero(self.labels == name))
            learnt.append(rows[: task.learnt])
            tested.append(rows[task.learnt :][: task.tested])
        return np.concatenate(learnt), np.concatenate(tested)

    def features(self, learnt: Array, tested: Array, seed: int) -> Iterator[_Feature]:
        """Every feature; the words are learnt from the pictures learnt, and from no others."""
        mine, others = ([self.descriptors[row] for row in rows] for rows in (learnt, tested))
        book = codebook(seed).fit(mine)
        words = [book.transform(some) for some in (mine, others)]
        yield _Feature(BAG, *(_single(bag(1).transform(some)) for some in words))
        X, Z = (_single(bag(LEVELS).transform(some)) for some in words)
        yield _Feature(PLAIN, X, Z)
        yield _Feature(PYRAMID, X, Z)
        for name, table in self.tables.items():
            yield _Feature(name, table[learnt], table[tested])


def _few(examples: Examples) -> Examples:
    """The first pictures of the first classes."""
    names = np.unique(examples.labels)[:_QUICK_CLASSES]
    rows = [np.flatnonzero(examples.labels == name)[:_QUICK_PICTURES] for name in names]
    chosen = np.concatenate(rows)
    return Examples.of(examples.X[chosen], examples.labels[chosen])


def _single(X: Array) -> Array:
    """In single precision: the kernels of histograms take half the time."""
    return X.astype(np.float32)


def _look(examples: Examples, step: int, progress: Progress) -> _Seen:
    pictures, tables = list(examples.X), {}
    progress(0.0, "edges")
    told = _part(progress, "edges", 0.0, 0.1)
    tables[EDGES] = _single(features(pictures, (edges(),), told))
    if lacking() is None:
        told = _part(progress, "network", 0.1, 0.7)
        tables[NETWORK] = unit(features(pictures, (network(),), told))
    progress(0.7, "local descriptors")
    return _Seen(examples.labels, sift(step).transform(pictures), tables)


def _part(progress: Progress, what: str, begin: float, end: float) -> Progress:
    """Progress within a part of the whole."""

    def told(share: float, step: str) -> None:
        progress(begin + share * (end - begin), f"{what}: {step}" if step else what)

    return told


# -- learning and testing ------------------------------------------------------------------------


def _outcomes(seen: _Seen, task: Task, split: int, rng: np.random.Generator) -> Iterator[Outcome]:
    learnt, tested = seen.split(task, rng)
    y, wanted = seen.labels[learnt], seen.labels[tested]
    for name, X, Z in seen.features(learnt, tested, split):
        kernel, n = _KERNELS[name], len(X)
        K = np.concatenate([corner(kernel, X), cross(kernel, Z, X)]).astype(float)
        choice = _choice(K[:n], y, has_width=name != PLAIN)
        K **= choice.gamma
        svc = GridSearchCV(SVC(kernel="precomputed"), {"C": _COSTS}, cv=_FOLDS).fit(K[:n], y)
        against_all = OneVsRestClassifier(clone(svc.best_estimator_)).fit(K[:n], y)
        squared = _learnt(K, y, choice.noise).predict(_numbers(n, len(K)))
        # A constant in the kernel is an offset, which an SVM has.
        hinge = _learnt(K + 1, y, choice.noise, "squared_hinge").predict(_numbers(n, len(K)))
        yield Outcome(
            *task,
            feature=name,
            split=split,
            n=n,
            asked=len(Z),
            gamma=choice.gamma,
            noise=choice.noise,
            left_out=choice.accuracy,
            ours=balanced_accuracy_score(wanted, squared),
            hinge=balanced_accuracy_score(wanted, hinge),
            C=svc.best_params_["C"],
            svc=balanced_accuracy_score(wanted, svc.predict(K[n:])),
            svc_against_all=balanced_accuracy_score(wanted, against_all.predict(K[n:])),
        )


class _Choice(NamedTuple):
    """Compared from the left: of two that are as good the one with more noise is larger."""

    accuracy: float
    noise: float
    gamma: float


def _choice(K: Array, y: Array, *, has_width: bool) -> _Choice:
    """The noise, and the power of K (n, n), under which most are recognised by the others."""
    gammas = [exponent / -np.log(K).mean() for exponent in _EXPONENTS] if has_width else [1.0]
    found = []
    for gamma, noise in product(gammas, _NOISES):
        left = _learnt(K**gamma, y, noise).leave_one_out()
        found.append(_Choice(float((left.predicted == left.labels).mean()), noise, gamma))
    return max(found)


def _learnt(K: Array, y: Array, noise: float, loss: str = "squared") -> GPClassifier:
    """A classifier of pictures by their numbers, given K (n + m, n): how alike each picture, those
    learnt and then those tested, is to each of the n learnt."""

    def alike(A: Array, B: Array) -> Array:
        learnt, others = (numbers[:, 0].astype(int) for numbers in (A, B))
        return np.asarray(K[np.ix_(others, learnt)].T)

    return GPClassifier(alike, noise=noise, loss=loss).fit(_numbers(0, len(y)), y)


def _numbers(begin: int, end: int) -> Array:
    return np.arange(begin, end)[:, None]
