"""Every question to every estimator: a finite answer for each row, or a clear error.

One hostile row among ordinary ones must not change what is said of these.
"""

from __future__ import annotations

import inspect
import warnings
from copy import deepcopy
from dataclasses import fields, is_dataclass
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, RationalQuadratic

import knowmore
from knowmore import (
    EigenspaceLDA,
    EigenspacePCA,
    ForestGPClassifier,
    ForestGPRegressor,
    GPClassifier,
    GPRegressor,
    KnowmoreError,
    LSSVMClassifier,
    NPlusOneClassifier,
    OneShotClassifier,
    SubspaceMonitor,
    insight,
)
from knowmore.estimators.living import LivingEstimator
from knowmore.kernels import ChiSquared, HistogramIntersection

rng = np.random.default_rng(5)
X = abs(rng.normal(size=(36, 3)))
Y = np.arange(36) % 3
ORDINARY = abs(rng.normal(size=(24, 3)))
HOSTILE = {
    "large": [1e20, 0.0, 1.0],
    "1e150": [1e150, 1e150, 0.0],
    "huge": [1e160, 0.0, 0.0],
    "largest": [1e308, 1e300, 1e300],
    "opposite": [-1e308, 1e308, -1e300],
    "tiny": [1e-300, 1e-160, 0.0],
    "denormal": [5e-324, 5e-324, 5e-324],
    "zero": [0.0, 0.0, 0.0],
}
REFUSED = {"NaN": [np.nan, 0.0, 0.0], "infinite": [0.0, np.inf, 0.0], "minus": [0, 0, -np.inf]}


def undefined(A, B):
    """A kernel of the user's own that has no value for large rows."""
    K = np.exp(-abs(A[:, None] - B[None]).sum(axis=2))
    K[abs(A).max(axis=1) > 1e3] = np.nan
    K[:, abs(B).max(axis=1) > 1e3] = np.nan
    return K


KERNELS = {
    "default": None,
    "rbf": RBF(1.0),
    "matern": Matern(nu=1.5),
    "matern-0.05": Matern(nu=0.05),
    "rational": RationalQuadratic(1.0, 0.05),
    "dot": DotProduct(1.0),
    "square": DotProduct(1.0) ** 2 + RBF(),
    "histograms": HistogramIntersection(),
    "chi-squared": ChiSquared(0.5),
    "callable": undefined,
}
# All go through one covariance: for the others a few of each sort will do.
FEW = ("default", "rbf", "dot", "histograms", "callable")
SOURCE = LSSVMClassifier(RBF(1.0)).fit(X[Y < 2], Y[Y < 2])


def living(kind, **words):
    if kind is NPlusOneClassifier:
        words["source"] = SOURCE
    if kind is OneShotClassifier:
        words |= {"supports": {"one": X[:5] + 0.1, "two": X[5:9] + 0.3}}
    return kind(**words)


def labels(kind):
    return Y > 1 if kind is OneShotClassifier else Y.astype(float) if kind is GPRegressor else Y


def unfitted():
    """Each public estimator by name, with every kernel where it has one."""
    for name in knowmore.__all__:
        kind = getattr(knowmore, name)
        if not (isinstance(kind, type) and issubclass(kind, BaseEstimator)):
            continue
        if not issubclass(kind, LivingEstimator):
            yield (
                name,
                partial(kind, window=4, false_alarms=0.2) if kind is SubspaceMonitor else kind,
            )
            continue
        for word in KERNELS if kind is GPClassifier else FEW:
            yield f"{name}-{word}", partial(living, kind, kernel=KERNELS[word])
        if "solver" in inspect.signature(kind).parameters:
            yield f"{name}-inverse", partial(living, kind, kernel=DotProduct(), solver="inverse")
            yield f"{name}-float32", partial(living, kind, kernel=DotProduct(), dtype="float32")


MAKE = dict(unfitted())
CHANGES = {"fit", "fit_transform", "fit_predict", "partial_fit", "forget", "absorb", "add"}
# A hook: how X would be handed to the model. It asks nothing.
HOOKS = {"model_inputs"}


def asked_with_X(kind):
    """The public methods that need X and nothing else, and do not learn from it."""
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        first, *others = [*inspect.signature(method).parameters.values()][1:] or [None]
        if first is None or first.name != "X" or name.startswith("_") or name in CHANGES | HOOKS:
            continue
        if all(one.default is not inspect.Parameter.empty for one in others):
            yield name


def by_method(name):
    def ask(estimator, Q):
        # A monitor remembers what it was asked.
        estimator = deepcopy(estimator) if name == "observe" else estimator
        return getattr(estimator, name)(Q)

    return ask


def by_insight(estimator):
    """Questions of knowmore.insight that take rows."""
    if not isinstance(estimator, LivingEstimator):
        return
    if isinstance(estimator, GPClassifier):
        for method in (None, "mahalanobis", "variance", "probability", "null_space"):
            yield f"novelty by {method}", partial(_novelty, method)
        for criterion in (None, "variance", "margin", "reduction"):
            yield f"suggest by {criterion}", partial(_suggest, criterion)
        yield "calibrated", lambda clf, Q: insight.calibrate(clf).predict_proba(Q)
        yield "reliability", lambda clf, Q: insight.reliability(clf, Q, np.arange(len(Q)) % 3)
    if isinstance(estimator, (GPClassifier, LSSVMClassifier, NPlusOneClassifier)):
        yield "explain", lambda clf, Q: insight.explain(clf, Q[min(20, len(Q) - 1)])
        yield "grounds", lambda clf, Q: insight.grounds(clf, Q[min(20, len(Q) - 1)], n=3)


def _novelty(method, clf, Q):
    return insight.novelty(clf, Q, method).values


def _suggest(criterion, clf, Q):
    return insight.suggest(clf, Q, 3, criterion)


# What has no rows to be asked about; hostile examples that are held are the last test's.
NO_ROWS = {"due", "suspects", "transfer", "tune"}


def questions(estimator):
    yield from ((name, by_method(name)) for name in asked_with_X(type(estimator)))
    yield from by_insight(estimator)


def numbers(answer):
    """All arrays of floats in an answer."""
    if isinstance(answer, (float, np.ndarray, np.floating)):
        values = np.asarray(answer)
        if values.dtype.kind == "f":
            yield values
    elif isinstance(answer, (tuple, list)):
        for one in answer:
            yield from numbers(one)
    elif is_dataclass(answer):
        for field in fields(answer):
            yield from numbers(getattr(answer, field.name))


def answer_or_error(ask, estimator, Q):
    """The answer, or None for an error of ours; another error or a warning fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return ask(estimator, Q)
        except KnowmoreError:
            return None


@pytest.fixture(scope="module", params=MAKE)
def estimator(request):
    make = MAKE[request.param]()
    kind = type(make)
    if kind in (EigenspacePCA, SubspaceMonitor):
        return make.fit(X)
    return make.fit(X, labels(kind))


def test_a_hostile_row_gets_a_finite_answer_or_an_error(estimator):
    for row, x in (HOSTILE | REFUSED).items():
        Q = np.vstack([ORDINARY[:20], [x], ORDINARY[20:]])
        for name, ask in questions(estimator):
            for rows in (Q, Q[20:21]):
                answer = answer_or_error(ask, estimator, rows)
                assert answer is None or row not in REFUSED, f"{name} accepted a {row} row"
                for values in numbers(answer):
                    assert np.isfinite(values).all(), f"{name} of a {row} row is not finite"


def test_a_hostile_row_does_not_change_what_is_said_of_others(estimator):
    for name in asked_with_X(type(estimator)):
        if name in {"score", "observe"}:
            continue
        ask = by_method(name)
        alone = answer_or_error(ask, estimator, ORDINARY)
        for row, x in HOSTILE.items():
            among = answer_or_error(ask, estimator, np.vstack([ORDINARY, [x]]))
            if among is not None:
                assert_alike(estimator, among[:-1], alone, f"{name} beside a {row} row")


def assert_alike(estimator, got, want, message):
    """Are these the same, as far as roundings of kernel values show in what is solved with them?"""
    if got.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, err_msg=message)
        return
    condition = 1.0
    if isinstance(estimator, LivingEstimator):
        factor = estimator.model_.covariance.factor
        condition = np.linalg.cond(factor.solve(np.eye(factor.size)))
    elif isinstance(estimator, ForestGPClassifier | ForestGPRegressor):
        condition = 1 + len(estimator.ids_) / estimator.noise_
    eps = np.finfo(getattr(estimator, "dtype", "float64")).eps
    bound = 100 * eps * condition * abs(want).max()
    np.testing.assert_allclose(got, want, 0, bound, err_msg=message)


# An explicit inverse of a matrix with numbers from 1 to 1e300 is singular to working precision.
LIVING = [
    name
    for name, make in MAKE.items()
    if isinstance(make(), LivingEstimator) and not name.endswith("inverse")
]


@pytest.mark.slow(
    fast=[
        "GPClassifier-default",
        "GPClassifier-dot",
        "GPRegressor-default",
        "GPRegressor-rbf",
        "GPRegressor-dot",
        "GPRegressor-histograms",
        "GPRegressor-callable",
        "GPRegressor-float32",
        "LSSVMClassifier-default",
        "LSSVMClassifier-rbf",
        "LSSVMClassifier-dot",
        "LSSVMClassifier-histograms",
        "LSSVMClassifier-callable",
        "LSSVMClassifier-float32",
        "NPlusOneClassifier-dot",
        "NPlusOneClassifier-callable",
        "NPlusOneClassifier-float32",
        "OneShotClassifier-default",
        "OneShotClassifier-rbf",
        "OneShotClassifier-dot",
        "OneShotClassifier-histograms",
        "OneShotClassifier-callable",
    ]
)
@pytest.mark.parametrize("name", LIVING)
def test_a_hostile_example_is_refused_or_leaves_a_model_that_answers(name):
    make = MAKE[name]
    y = labels(type(make()))
    clf = make().fit(X, y)
    whole = make().set_params(kernel=clf.kernel_)
    before = clf.predict(ORDINARY)
    for row, values in (HOSTILE | REFUSED).items():
        x = np.array([values], dtype=float)
        more, told = np.vstack([X, x]), np.append(y, y[:1])
        added = answer_or_error(lambda one, x: one.partial_fit(x, y[:1]), deepcopy(clf), x)
        replaced = answer_or_error(lambda one, x: one.replace([5], x), deepcopy(clf), x)
        fitted = answer_or_error(lambda one, X, told=told: one.fit(X, told), deepcopy(whole), more)
        assert (added is None) == (fitted is None), f"add and fit disagree on a {row} example"
        for one in (added, replaced, fitted):
            assert one is None or row not in REFUSED
            for name, ask in about_examples(one):
                for values in numbers(answer_or_error(ask, one, ORDINARY)):
                    assert np.isfinite(values).all(), f"{name} with a {row} example"
    np.testing.assert_array_equal(clf.predict(ORDINARY), before)


def about_examples(estimator):
    """Questions whose answers must be there for every example that was accepted."""
    if estimator is None:
        return
    yield from ((name, certainly(by_method(name))) for name in asked_with_X(type(estimator)))
    for name in ("leave_one_out", "residual", "log_marginal_likelihood"):
        if hasattr(estimator, name):
            yield name, certainly(lambda one, _, name=name: getattr(one, name)())
    if isinstance(estimator, GPClassifier):
        yield "suspects", certainly(lambda one, _: insight.suspects(one))


def certainly(ask):
    """The question, by which an error of ours is a failure too."""

    def asked(estimator, Q):
        try:
            return ask(estimator, Q)
        except KnowmoreError as error:
            raise AssertionError(f"An example that was accepted fails later: {error}") from error

    return asked


def test_every_question_that_takes_rows_is_asked():
    public = {name for name in insight.__all__ if name.islower()}
    asked = {name.split()[0] for name, _ in by_insight(GPClassifier())}
    assert public == NO_ROWS | (asked - {"calibrated"}) | {"calibrate"}
    questions = {"predict", "decision_function", "predict_proba", "predict_variance"}
    assert questions == set(asked_with_X(GPClassifier))
    assert {"transform", "predict_log_proba"} <= set(asked_with_X(EigenspaceLDA))
