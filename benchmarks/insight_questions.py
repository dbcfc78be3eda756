"""What is new, and what to label next: on digits, against others in the same run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.svm import OneClassSVM

from benchmarks.scene import Array, Scale, classifier, data
from benchmarks.table import Benchmark, Row, Target
from benchmarks.timing import REST, Samples, interleaved
from knowmore import GPClassifier
from knowmore.datasets import digits
from knowmore.insight import novelty, suggest, tune
from knowmore.kernels import median_rbf

METHODS = ("variance", "score", "probability", "null_space")
CRITERIA = ("margin", "uncertainty", "variance", "emoc", "weight", "impact", "random")
NOISE = 0.01


@cache
def _digits() -> tuple[Array, Array]:
    examples = digits()
    return examples.X, examples.labels


# -- novelty -------------------------------------------------------------------------------------

# What `novelty` does unless told otherwise: it stands for all of ours.
OURS = "probability"
# What is tried in hindsight. Widths of an RBF kernel are in median distances.
WIDTHS = (1 / 2, 1, 1 / 3, 1 / 5, 1 / 8, 1 / 10)
NEIGHBOURS = (20, 10, 5, 3, 2)
TREES = (100, 500)


def unknown_class(scale: Scale) -> Iterator[Row]:
    """Each class in turn is left out: the area under the curve that tells it from the others.

    Nothing is chosen by that area. Our classifier has the parameters that `tune` finds on the
    labelled rows of the known classes, the others have scikit-learn's defaults. What the best
    parameters would have been is said beside it, for all alike, and held to no target.
    """
    (X, y), areas = _digits(), dict[str, list[list[float]]]()
    classes, settings = (10, None) if scale.name == "full" else (2, 2)
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
            f"class left out: {name}",
            mean,
            "AUROC",
            target=Target(">=", 0.97) if name == OURS else None,
            note=f"{plain}; {hindsight}",
            raw={"areas": areas[name]},
        )
    leader = max(METHODS, key=best.__getitem__)
    yield _missing("no setting chosen by it", OURS, first, peers, Target("<", 1))
    yield _missing("all in hindsight", leader, best, peers, None)


def _missing(
    words: str, mine: str, areas: dict[str, float], peers: list[str], target: Target | None
) -> Row:
    """How much of the whole area ours misses, against the best of the others."""
    other = max(peers, key=areas.__getitem__)
    missed, theirs = 1 - areas[mine], 1 - areas[other]
    name = f"class left out, 1 - AUROC, {words}: {mine}"
    return Row(name, missed, "", other, theirs, missed / theirs, target=target)


def _novelties(X: Array, y: Array, queries: Array, settings: int | None) -> dict[str, list[Array]]:
    """Values (m,) by method and by setting, larger is newer; the first stands for the method."""
    median = median_rbf(X).length_scale
    widths = [median * width for width in WIDTHS[:settings]]
    plain = GPClassifier().fit(X, y)
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


def labels_needed(scale: Scale) -> Iterator[Row]:
    """How many labels until the accuracy is 95 % of that with all labels; mean of ten runs."""
    runs, most = (10, 300) if scale.name == "full" else (1, 25)
    found: dict[str, list[list[float]]] = {name: [] for name in CRITERIA}
    needed: dict[str, list[int]] = {name: [] for name in CRITERIA}
    for seed in range(runs):
        start, pool, test = _split(seed)
        goal = 0.95 * _accuracy(_learnt(np.concatenate([start, pool])), test)
        for criterion in CRITERIA:
            curve = list(_course(criterion, start, pool, test, most, seed))
            reached = [START + STEP * i for i, accuracy in enumerate(curve) if accuracy >= goal]
            found[criterion].append(curve)
            needed[criterion].append(reached[0] if reached else most)
    means = {name: float(np.mean(each)) for name, each in needed.items()}
    best = min(means, key=means.__getitem__)
    for name, mean in means.items():
        yield Row(
            f"labels to 95 % of the final accuracy: {name}",
            mean,
            "labels",
            "" if name == "random" else "random",
            None if name == "random" else means["random"],
            None if name == "random" else mean / means["random"],
            target=Target("<=", 0.75) if name == best else None,
            note=_stopped(needed[name], most),
            raw={"needed": needed[name], "curves": found[name], "start": START, "step": STEP},
        )


def _stopped(needed: list[int], most: int) -> str:
    short = needed.count(most)
    return f"{short} of {len(needed)} runs stopped short of it, at {most} labels" if short else ""


def _split(seed: int) -> tuple[Array, Array, Array]:
    """Rows of digits that are labelled at the start, that may be, and that are tested on."""
    order = np.random.default_rng(seed).permutation(len(_digits()[0]))
    return order[TEST : TEST + START], order[TEST + START :], order[:TEST]


def _learnt(rows: Array) -> GPClassifier:
    X, y = _digits()
    return GPClassifier(RBF(median_rbf(X).length_scale / 2), NOISE).fit(X[rows], y[rows])


def _accuracy(clf: GPClassifier, rows: Array) -> float:
    X, y = _digits()
    return float((clf.predict(X[rows]) == y[rows]).mean())


def _course(
    criterion: str, start: Array, pool: Array, test: Array, most: int, seed: int
) -> Iterator[float]:
    """The accuracy at the start and after each step."""
    (X, y), clf = _digits(), _learnt(start)
    yield _accuracy(clf, test)
    for step in range((most - START) // STEP):
        found = suggest(clf, X[pool], STEP, criterion, random_state=1000 * seed + step)
        rows = pool[found.indices]
        clf.add(X[rows], y[rows])
        pool = np.delete(pool, found.indices)
        yield _accuracy(clf, test)


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


BENCHMARKS: list[Benchmark] = [unknown_class, labels_needed, picking]
