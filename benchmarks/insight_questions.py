"""`novelty` and `suggest` on digits and scenes, against peers in the same run."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import IsolationForest
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

from benchmarks import vectors
from benchmarks.scene import Array, Scale, classifier, data
from benchmarks.table import Benchmark, Row, Target
from benchmarks.timing import REST, Samples, interleaved
from knowmore import GPClassifier
from knowmore.errors import KnowmoreWarning
from knowmore.insight import novelty, suggest, tune
from knowmore.kernels import median_rbf

METHODS = ("combined", "mahalanobis", "probability", "variance", "null_space")
CRITERIA = ("reduction", "margin", "variance", "random")
NOISE = 0.01


# -- novelty -------------------------------------------------------------------------------------

# What `novelty` does unless told otherwise: it stands for all of ours.
OURS = "combined"
# What is tried in hindsight. Widths of an RBF kernel are in median distances.
WIDTHS = (1 / 2, 1, 1 / 3, 1 / 5, 1 / 8, 1 / 10)
NEIGHBOURS = (20, 10, 5, 3, 2)
TREES = (100, 500)


def unknown_class(scale: Scale) -> Iterator[Row]:
    """Each digit in turn is left out."""
    n, classes, settings = (None, 10, None) if scale.name == "full" else (400, 2, 2)
    targets = Target(">=", 0.97), Target("<", 1)
    X, y = vectors.digits()
    yield from _left_out("digits", X[:n], y[:n], classes, settings, targets)


def unknown_scene(scale: Scale) -> Iterator[Row]:
    """Each kind of scene in turn is left out."""
    if missing := vectors.lacking():
        yield Row("scenes: class left out", note=missing)
        return
    classes = 15 if scale.name == "full" else 2
    yield from _left_out("scenes", *vectors.scenes(scale), classes, 2, (None, None))


def _left_out(
    of: str,
    X: Array,
    y: Array,
    classes: int,
    settings: int | None,
    targets: tuple[Target | None, Target | None],
) -> Iterator[Row]:
    """Each class in turn is left out: the area under the curve that tells it apart from the others.

    Nothing is chosen by that area. Our classifier has the parameters that `tune` finds on the
    labelled rows of the known classes, the others have scikit-learn's defaults. What the best
    parameters would have been is said beside it, for all alike, and held to no target. The targets
    are of our area, and of what it misses against the best of the others.
    """
    areas = dict[str, list[list[float]]]()
    held = np.random.default_rng(0).permutation(len(X)) < len(X) // 2
    for c in range(classes):
        known, new = held & (y != c), y[~held] == c
        for name, values in _novelties(X[known], y[known], X[~held], settings).items():
            areas.setdefault(name, []).append([float(roc_auc_score(new, v)) for v in values])
    first = {name: float(np.mean(each, axis=0)[0]) for name, each in areas.items()}
    best = {name: float(np.mean(each, axis=0).max()) for name, each in areas.items()}
    peers = [name for name in areas if name not in METHODS]
    for name, mean in first.items():
        plain = "scikit-learn's defaults"
        if name in METHODS:
            plain = f"tuned on the known classes; {np.mean(areas[name], axis=0)[1]:.4f} as it comes"
        hindsight = f"{best[name]:.4f} at the best of {len(areas[name][0])} settings, in hindsight"
        yield Row(
            f"{of}: class left out: {name}",
            mean,
            "AUROC",
            target=targets[0] if name == OURS else None,
            note=f"{plain}; {hindsight}",
            raw={"areas": areas[name]},
        )
    leader = max(METHODS, key=best.__getitem__)
    yield _missing(of, "no setting chosen by it", OURS, first, peers, targets[1])
    yield _missing(of, "all in hindsight", leader, best, peers, None)


def _missing(
    of: str, words: str, mine: str, areas: dict[str, float], peers: list[str], target: Target | None
) -> Row:
    """How much of the whole area ours misses, against the best of the others."""
    other = max(peers, key=areas.__getitem__)
    missed, theirs = 1 - areas[mine], 1 - areas[other]
    name = f"{of}: class left out, 1 - AUROC, {words}: {mine}"
    return Row(name, missed, "", other, theirs, missed / theirs, target=target)


def _novelties(X: Array, y: Array, queries: Array, settings: int | None) -> dict[str, list[Array]]:
    """Values (m,) by method and by setting, larger is newer; the first stands for the method."""
    median = median_rbf(X).length_scale
    widths = [median * width for width in WIDTHS[:settings]]
    plain = GPClassifier().fit(X, y)
    with warnings.catch_warnings():
        # It says that it did not go where leave-one-out would be worse.
        warnings.simplefilter("ignore", KnowmoreWarning)
        ours = [tune(plain).estimator, plain]
    ours += [GPClassifier(RBF(width), NOISE).fit(X, y) for width in widths]
    peers = {
        "OneClassSVM": [OneClassSVM(), *(OneClassSVM(gamma=0.5 / w**2) for w in widths)],
        "LocalOutlierFactor": [LocalOutlierFactor(k, novelty=True) for k in NEIGHBOURS[:settings]],
        "IsolationForest": [IsolationForest(n_estimators=n, random_state=0) for n in TREES],
    }
    return {m: [novelty(clf, queries, m).values for clf in ours] for m in METHODS} | {
        name: [-peer.fit(X).score_samples(queries) for peer in some] for name, some in peers.items()
    }


# -- active learning -----------------------------------------------------------------------------

START, STEP, TEST = 10, 5, 600


@dataclass(frozen=True)
class _Task:
    """Rows X (n, d) with labels y (n,), a classifier, and the number of test rows."""

    X: Array
    y: Array
    classifier: GPClassifier
    test: int = TEST

    def split(self, seed: int) -> tuple[Array, Array, Array]:
        """Rows that are labelled at the start, that may be, and that are tested on."""
        order = np.random.default_rng(seed).permutation(len(self.X))
        test, start = self.test, self.test + START
        return order[test:start], order[start:], order[:test]

    def learnt(self, rows: Array) -> GPClassifier:
        clf: GPClassifier = clone(self.classifier)
        return clf.fit(self.X[rows], self.y[rows])

    def accuracy(self, clf: GPClassifier, rows: Array) -> float:
        return float((clf.predict(self.X[rows]) == self.y[rows]).mean())


def labels_needed(scale: Scale) -> Iterator[Row]:
    """Labels of digits, by every criterion, in ten runs."""
    runs, most = (10, 300) if scale.name == "full" else (1, 25)
    X, y = vectors.digits()
    clf = GPClassifier(RBF(median_rbf(X).length_scale / 2), NOISE)
    yield from _needed("digits", _Task(X, y, clf), CRITERIA, runs, most, Target("<=", 0.75))


def scenes_needed(scale: Scale) -> Iterator[Row]:
    """Labels of scenes, by margin and at random, with the noise that comes unasked."""
    if missing := vectors.lacking():
        yield Row("scenes: labels to 95 % of the final accuracy", note=missing)
        return
    runs, most, test = (3, 1000, TEST) if scale.name == "full" else (1, 25, 30)
    X, y = vectors.scenes(scale)
    task = _Task(X, y, GPClassifier(median_rbf(X)), test)
    yield from _needed("scenes", task, ("reduction", "margin", "random"), runs, most, None)


def _needed(
    of: str, task: _Task, criteria: Sequence[str], runs: int, most: int, target: Target | None
) -> Iterator[Row]:
    """Labels needed for 95 % of the accuracy with all labels, mean of the runs."""
    found: dict[str, list[list[float]]] = {name: [] for name in criteria}
    needed: dict[str, list[int]] = {name: [] for name in criteria}
    for seed in range(runs):
        start, pool, test = task.split(seed)
        goal = 0.95 * task.accuracy(task.learnt(np.concatenate([start, pool])), test)
        for criterion in criteria:
            curve = list(_course(task, criterion, start, pool, test, most, seed))
            reached = [START + STEP * i for i, accuracy in enumerate(curve) if accuracy >= goal]
            found[criterion].append(curve)
            needed[criterion].append(reached[0] if reached else most)
    means = {name: float(np.mean(each)) for name, each in needed.items()}
    best = min(means, key=means.__getitem__)
    for name, mean in means.items():
        yield Row(
            f"{of}: labels to 95 % of the final accuracy: {name}",
            mean,
            "labels",
            "" if name == "random" else "random",
            None if name == "random" else means["random"],
            None if name == "random" else mean / means["random"],
            target=target if name == best else None,
            note=_stopped(needed[name], most),
            raw={"needed": needed[name], "curves": found[name], "start": START, "step": STEP},
        )


def _stopped(needed: list[int], most: int) -> str:
    short, runs = needed.count(most), f"mean of {len(needed)} runs"
    return f"{runs}; {short} stopped short of it, at {most} labels" if short else runs


def _course(
    task: _Task, criterion: str, start: Array, pool: Array, test: Array, most: int, seed: int
) -> Iterator[float]:
    """The accuracy at the start and after each step."""
    clf = task.learnt(start)
    yield task.accuracy(clf, test)
    for step in range((most - START) // STEP):
        found = suggest(clf, task.X[pool], STEP, criterion, random_state=1000 * seed + step)
        rows = pool[found.indices]
        clf.add(task.X[rows], task.y[rows])
        pool = np.delete(pool, found.indices)
        yield task.accuracy(clf, test)


def picking(scale: Scale) -> Iterator[Row]:
    """The first pick from a pool, and each further one of the same batch."""
    n, u, more, rounds = (1000, 5000, 10, 3) if scale.name == "full" else (100, 60, 2, 1)
    clf, pool = classifier(n), data(u, seed=4)[0]
    for criterion in CRITERIA:
        operations = {
            str(k): partial(suggest, clf, pool, k, criterion, random_state=0) for k in (1, 1 + more)
        }
        times = interleaved(rounds, operations, rest=REST, warm=0)
        first, batch = times["1"], times[str(1 + more)]
        pairs = zip(batch.seconds, first.seconds, strict=True)
        each = Samples(tuple((b - a) / more for b, a in pairs))
        facts = {"n": n, "pool": u, "batch": 1 + more, "first": first.raw(), "all": batch.raw()}
        of = f"pool of {u}, n = {n}"
        yield Row(f"first pick by {criterion}, {of}", first.median, raw=facts)
        yield Row(f"each further pick by {criterion}, {of}", each.median, raw=facts)


BENCHMARKS: list[Benchmark] = [
    unknown_class,
    unknown_scene,
    labels_needed,
    scenes_needed,
    picking,
]
