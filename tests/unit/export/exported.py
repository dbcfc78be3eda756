"""Shared by the tests of all exports: models of every kind, and their answers."""

from __future__ import annotations

import json
import shutil
import subprocess

import numpy as np
import onnxruntime
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    WhiteKernel,
)

from knowmore import (
    GPClassifier,
    GPRegressor,
    LinearGPClassifier,
    LinearGPRegressor,
    LSSVMClassifier,
)
from knowmore.export import to_javascript, to_onnx
from knowmore.kernels import ChiSquared, ExponentialIntersection, HistogramIntersection

NODE = shutil.which("node")
# Of the largest value, or of one: how far a graph may be from its estimator.
CLOSE = 1e-10

KERNELS = [
    None,
    RBF([0.5, 1.0, 2.0]),
    Matern(1.0, nu=0.5),
    Matern([1.0, 2.0, 0.5], nu=1.5),
    Matern(2.0, nu=2.5),
    Matern(2.0, nu=np.inf),
    DotProduct(1.0),
    HistogramIntersection(),
    ChiSquared(0.5),
    ExponentialIntersection(0.3),
    2.0 * RBF(1.0) + WhiteKernel(0.01),
    RBF(1.0) * DotProduct(0.5) + ConstantKernel(0.1),
    HistogramIntersection() * Matern(3.0, nu=1.5) + 0.5 * RBF(1.0),
    ConstantKernel(2.0),
]
LABELS = {
    "many classes": lambda rng, n: rng.integers(0, 7, n),
    "two classes": lambda rng, n: np.where(rng.random(n) < 0.5, "yes", "no"),
    "one class": lambda rng, n: np.full(n, "only"),
    "awkward words": lambda rng, n: rng.choice(['</script>"', "é\u2028\n", "", "a,b"], n),
    "large numbers": lambda rng, n: rng.choice([-(2**62), 2**62 + 1], n),
    "truth values": lambda rng, n: rng.random(n) < 0.5,
}


def rows(rng, n, d=3):
    """Rows (n, d) that every kernel takes: none is negative."""
    return abs(rng.normal(size=(n, d)))


def questions(rng, X):
    """Rows to ask about: new ones, some of X, and some far away."""
    return np.vstack([3 * rows(rng, 12, X.shape[1]), X[:3], rows(rng, 2, X.shape[1]) * 1e3])


def classifiers(rng, X, y):
    """Fitted classifiers of all kinds that can be exported, after some edits."""
    for kernel in KERNELS:
        for solver in ("cholesky", "inverse"):
            clf = GPClassifier(kernel, noise=0.01, solver=solver).fit(X, y)
            clf.add(X[:2] + 0.1, y[:2], ids=["later", "gone"])
            yield clf.remove("gone")
    yield GPClassifier(class_weight="balanced").fit(X, y, sample_weight=rng.random(len(X)))
    yield LinearGPClassifier().fit(X, y)
    yield LinearGPClassifier(intercept=False).fit(X, y)


def machines(rng, X, y):
    """Fitted least-squares SVMs, which have scores alone."""
    yield from (
        LSSVMClassifier(kernel, C=5.0, bias=bias).fit(X, y)
        for kernel in KERNELS[:4]
        for bias in (True, False)
    )


def regressors(rng, X):
    """Fitted regressors of one target and of several, in units and without."""
    for y in (1000 + 30 * X[:, 0], X @ rng.normal(size=(3, 2)), X[:, :1]):
        for normalize_y in (True, False):
            for kernel in KERNELS[:4]:
                yield GPRegressor(kernel, normalize_y=normalize_y).fit(X, y)
            yield LinearGPRegressor(normalize_y=normalize_y).fit(X, y)


def scores_of(clf, Q):
    """The scores (m, M) of a classifier, also of two classes."""
    return clf.model_.mean(clf.model_inputs(Q))


def vanishing():
    """A classifier, rows (m, 1) far out, and the probabilities there, of which many vanish."""
    clf = GPClassifier(DotProduct(1.0), noise=1e-6, probability="raw")
    clf.fit([[-1.0], [0.0], [1.0]], [0, 1, 2])
    Q = [[-1e4], [-1e3], [0.5], [1e3], [1e4]]
    return clf, Q, clf.predict_proba(Q)


# -- their answers -------------------------------------------------------------------------------


def answers(estimator, Q, path, **options):
    """Answers of the model's graph by the names of its outputs: Q (m, d), or a dict of inputs."""
    to_onnx(estimator, path, **options)
    session = onnxruntime.InferenceSession(path)
    names = [one.name for one in session.get_outputs()]
    given = Q if isinstance(Q, dict) else {"X": np.asarray(Q, dtype=options.get("dtype", float))}
    return dict(zip(names, session.run(None, given), strict=True))


def assert_close(got, want):
    """To 1e-10 of the largest value, or of one."""
    assert got.shape == want.shape
    assert got.dtype == np.float64
    assert abs(got - want).max() <= CLOSE * max(abs(want).max(), 1)


ASK = """
import {readFileSync} from "node:fs";
const tasks = JSON.parse(readFileSync(0, "utf8")), answers = [];
for (const [path, rows] of tasks) {
  const {predict, columns, classes} = await import(path);
  try { answers.push({columns, classes, answers: predict(rows)}); }
  catch (error) { answers.push({error: error.message}); }
}
console.log(JSON.stringify(answers));
"""


def ask(folder, tasks):
    """Answers of the models' modules to these rows, from one process of node."""
    paths = []
    for number, (estimator, asked) in enumerate(tasks):
        path = folder / f"model{number}.mjs"
        to_javascript(estimator, path)
        paths.append([str(path), asked])
    command = [NODE, "--input-type=module", "-e", ASK]
    run = subprocess.run(command, input=json.dumps(paths), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)
