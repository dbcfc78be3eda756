"""The laws of a living estimator. `laws_for` yields every one that applies to a class.

Each law takes `make`, which gives a fresh unfitted estimator, and a seeded generator.
"""

from __future__ import annotations

import pickle
from copy import deepcopy
from dataclasses import replace

import numpy as np
import oracle
import strategies
from sklearn.base import is_classifier
from sklearn.gaussian_process.kernels import Kernel
from tolerance import assert_rounded, assert_solves, tolerance

from knowmore import LinearGPClassifier, LinearGPRegressor
from knowmore.kernels import On, Task
from knowmore.models import Transfer, max_variance, one_vs_all
from knowmore.transfer.coding import Hinges

LAWS = []

_NO_VARIANCE = "a least-squares SVM has no predictive variance"
_ALL_CLASSES = "it needs examples of the N known classes and of one more at all times"
_TWO_CLASSES = "it needs positive and negative examples, and no others, at all times"

_NO_FACTOR = "it has sums instead of a factor"
_ROWS_ALONE = "test_linear compares it with refits in fractions"

# (estimator, law) -> why it does not apply
EXEMPT: dict[tuple[str, str], str] = {
    ("LSSVMClassifier", "variance_ignores_labels"): _NO_VARIANCE,
    ("LSSVMClassifier", "the_likelihood_is_the_gaussian_density"): _NO_VARIANCE,
    ("NPlusOneClassifier", "variance_ignores_labels"): _NO_VARIANCE,
    ("NPlusOneClassifier", "the_likelihood_is_the_gaussian_density"): _NO_VARIANCE,
    ("NPlusOneClassifier", "it_shrinks_to_nothing_and_grows_again"): _ALL_CLASSES,
    (
        "NPlusOneClassifier",
        "classes_that_come_and_go_between_others_keep_the_columns_in_order",
    ): _ALL_CLASSES,
    (
        "NPlusOneClassifier",
        "relabelling_after_a_question_is_fitting_the_new_labels",
    ): "the law brings a second new class",
    ("OneShotClassifier", "variance_ignores_labels"): "labels choose the support task and rho",
    ("OneShotClassifier", "the_likelihood_is_the_gaussian_density"): "rho is not chosen by it",
    (
        "OneShotClassifier",
        "an_example_does_not_answer_for_itself_when_left_out",
    ): "rho is chosen by the labels of all",
    (
        "NPlusOneClassifier",
        "an_example_does_not_answer_for_itself_when_left_out",
    ): "beta is chosen by the labels of all",
    (
        "OneShotClassifier",
        "an_example_of_weight_two_is_two_examples",
    ): "the criteria for rho count each example once",
    ("OneShotClassifier", "it_shrinks_to_nothing_and_grows_again"): _TWO_CLASSES,
    (
        "OneShotClassifier",
        "classes_that_come_and_go_between_others_keep_the_columns_in_order",
    ): _TWO_CLASSES,
    (
        "OneShotClassifier",
        "relabelling_after_a_question_is_fitting_the_new_labels",
    ): _TWO_CLASSES,
    **{
        (name, law): reason
        for name in ("LinearClassifierWithIds", "LinearRegressorWithIds")
        for law, reason in {
            "adding_and_removing_between_two_questions_touches_nothing": _NO_FACTOR,
            "relabelling_touches_no_matrix": _NO_FACTOR,
            "leaving_out_is_refitting_without": _ROWS_ALONE,
            "what_weighs_nothing_is_judged_by_those_that_count": _ROWS_ALONE,
            "the_likelihood_is_the_gaussian_density": _ROWS_ALONE,
        }.items()
    },
}


class LinearClassifierWithIds(LinearGPClassifier):
    """A linear classifier with rows; `fit` has the order of arguments of kernel models."""

    def fit(self, X, y, ids=None, sample_weight=None):
        return super().fit(X, y, sample_weight, ids=range(len(X)) if ids is None else ids)


class LinearRegressorWithIds(LinearGPRegressor):
    """A linear regressor with rows; `fit` has the order of arguments of kernel models."""

    def fit(self, X, y, ids=None, sample_weight=None):
        return super().fit(X, y, sample_weight, ids=range(len(X)) if ids is None else ids)


def law(function):
    LAWS.append(function)
    return function


def laws_for(estimator_class):
    for function in LAWS:
        if (estimator_class.__name__, function.__name__) not in EXEMPT:
            yield function


def data(estimator, rng, n):
    """Inputs and labels that fit the estimator."""
    classes = 2 if hasattr(estimator, "supports") else 4
    X, y = strategies.examples(rng, n, classes=classes)
    # The first few have all classes, in turn.
    y[:classes] = np.arange(classes)
    return (X, y) if is_classifier(estimator) else (X, y + rng.normal(size=n))


def batch(make, estimator):
    """A fresh fit of the examples that the estimator holds, in another order."""
    held = counted(estimator)
    order = np.random.default_rng(0).permutation(len(held))
    ids = held.ids[order].tolist()
    fresh = alike(make, estimator)
    return fresh.fit(features(estimator)[order], held.labels[order], ids, held.weights[order])


def counted(estimator):
    """The examples of a weight above zero."""
    return estimator.editable_.examples.counted


def is_linear(estimator):
    """Is it a linear model that keeps its rows?"""
    return isinstance(estimator, (LinearGPClassifier, LinearGPRegressor))


def chooses(estimator):
    """Do the labels choose the kernel or the noise of an unfitted estimator?"""
    given = estimator.get_params(deep=False)
    noise = given["C" if "C" in given else "noise"]
    if is_linear(estimator):
        return not isinstance(noise, float)
    modes = given.get("settings", "median") in ("first", "living")
    return modes and (noise is None or not isinstance(given["kernel"], Kernel))


def label_matters_to_others(estimator):
    """Do labels choose the settings, or the weights of classes, and so the variance of others?"""
    return getattr(estimator, "class_weight", None) is not None or chooses(estimator)


def alike(make, estimator):
    """An unfitted estimator with the settings of a fitted one, if they stay, or on its grids.

    A choice that follows the examples is made anew.
    """
    if not is_linear(estimator):
        fresh, settled = make(), estimator.editable_.choice.settled
        if not settled:
            return fresh
        noise = {"noise": estimator.noise_} if chooses(fresh) and hasattr(fresh, "noise") else {}
        return fresh.set_params(kernel=estimator.kernel_, **noise)
    grids = {"resolution": estimator.grid_}
    if not is_classifier(estimator):
        grids["y_resolution"] = estimator.y_grid_
    return make().set_params(**grids)


def features(estimator):
    """The inputs that the estimator was given, (n, d)."""
    return estimator.as_given(counted(estimator)).X


def helped(estimator):
    """Does it learn from a support task?"""
    return getattr(estimator, "support_", None) is not None


def process(estimator):
    """The kernel, inputs (n, d) and noises (n,) of the Gaussian process that the estimator is.

    With a support task it is that of both tasks' examples, the target's first, under the kernel of
    eq. (3), Rodner and Denzler.
    """
    covariance = estimator.model_.covariance
    kernel, X, noises = (
        estimator.kernel_,
        features(estimator),
        covariance.noise / covariance.weights,
    )
    if not helped(estimator):
        return kernel, X, noises
    S = estimator.supports_[estimator.support_]
    X = np.vstack([of_task(X, 0), of_task(S, 1)])
    kernel = On(slice(0, -1), kernel) * Task(estimator.rho_)
    return kernel, X, np.append(noises, np.full(len(S), covariance.noise))


def of_task(X, task):
    return np.column_stack([X, np.full(len(X), task)])


def asked_of(estimator, queries):
    """Queries as inputs of the process of the target task."""
    return of_task(queries, 0) if helped(estimator) else queries


def told(estimator, T):
    """Targets T of the examples; examples of a support task count as the class to learn."""
    if not helped(estimator):
        return T
    model, n = estimator.model_, len(estimator.supports_[estimator.support_])
    return np.vstack([T, np.tile(np.where(model.names == model.positive, 1.0, -1.0), (n, 1))])


def matrix(estimator):
    """K~ of the process, (n, n)."""
    return oracle.covariance(*process(estimator))


def machine(estimator):
    """The frozen value that solves: with a source, that for beta = 0, and without its scores."""
    model = estimator.model_
    if isinstance(getattr(model, "coding", None), Transfer):
        return replace(model, coding=one_vs_all)
    return model


def values(model):
    """The targets (n, M) in the units of what is predicted, as far as rounding is concerned."""
    targets = model.targets
    return targets.T if targets.units is None else targets.T * targets.units.scale


def solver(estimator):
    """The engine behind it; that of a one-shot classifier is not to be chosen."""
    return getattr(estimator, "solver", "cholesky")


def scores(estimator, X):
    """All columns of scores, (m, M)."""
    return estimator.model_.mean(estimator.model_inputs(X))


def assert_equal_models(one, other, queries):
    """Do the two say the same of these queries, (m, d), to the accuracy of their matrix?"""
    if is_linear(one):
        assert one.digest() == other.digest()
        np.testing.assert_array_equal(one.model_.names, other.model_.names)
        np.testing.assert_array_equal(scores(one, queries), scores(other, queries))
        np.testing.assert_array_equal(
            one.predict_variance(queries), other.predict_variance(queries)
        )
        return
    mine, theirs = machine(one), machine(other)
    assert one.kernel_ == other.kernel_
    if "settings" in one.get_params(deep=False):
        assert one.settings_.agree(other.settings_)
    if hasattr(one, "rho_"):
        assert (one.support_, one.rho_) == (other.support_, other.rho_)
        assert_rounded(one.noise_, other.noise_, len(one.ids_))
    kernel, X, _ = process(one)
    K, k = matrix(one), kernel(X, asked_of(one, queries))
    both = {"solver": solver(one), "left": k}
    np.testing.assert_array_equal(mine.targets.names, theirs.targets.names)
    bias, T = getattr(one, "bias", False), told(one, values(mine))
    Q = one.model_inputs(queries)
    assert_solves(mine.mean(Q), theirs.mean(Q), K, T, bias=bias, **both)
    if hasattr(one, "predict_variance"):
        # In the units of the targets; what these are is a function of the labels.
        units = mine.targets.units
        square = np.ones(1) if units is None else units.scale**2
        for c in range(len(square)):
            columns = (
                each.predict_variance(queries).reshape(len(queries), -1) for each in (one, other)
            )
            ours, other_s = (np.diag(each[:, c] / square[c]) for each in columns)
            assert_solves(ours, other_s, K, k, **both)
    if hasattr(one, "beta_"):
        assert_equal_mixtures(one, other, K)


def assert_equal_mixtures(one, other, K):
    """Is beta the same, as far as rounding of the leave-one-out scores moves it?"""
    model = one.model_
    hinges, beta = model.coding.hinges(model, model.minimum.share), model.minimum.beta
    rng, moved = np.random.default_rng(0), 0.0
    scale = tolerance(K, solver(one)) * (abs(hinges.offsets).max() + abs(hinges.slopes).max())
    for _ in range(5):
        nearby = Hinges(
            hinges.offsets + scale * rng.normal(size=hinges.offsets.shape),
            hinges.slopes + scale * rng.normal(size=hinges.slopes.shape),
        )
        moved = max(moved, abs(model.coding.optimiser(nearby, one.positive).beta - beta).max())
    assert abs(other.model_.minimum.beta - beta).max() <= 10 * moved + np.finfo(float).eps


@law
def any_history_equals_the_fit_of_the_survivors(make, rng):
    clf = make()
    X, y = data(clf, rng, 60)
    clf.fit(X[:30], y[:30])
    clf.add(X[30:50], y[30:50], sample_weight=rng.uniform(0.5, 2, 20))
    clf.remove([2, 3, 40]).relabel([5, 6], y[:2])
    clf.predict(X[:1])
    clf.replace([7, 31], X[50:52], y[50:52]).remove([0])
    clf.add(X[52:], y[52:])
    assert_equal_models(clf, batch(make, clf), X)


@law
def adding_and_removing_leaves_the_model_as_it_was(make, rng):
    clf = make()
    X, y = data(clf, rng, 50)
    clf.fit(X[:40], y[:40])
    before = deepcopy(clf)
    clf.predict(X[:1])
    ids = clf.add(X[40:], y[40:])
    clf.predict(X[:1])
    clf.remove(ids)
    assert_equal_models(clf, before, X)


@law
def adding_and_removing_between_two_questions_touches_nothing(make, rng):
    clf = make()
    X, y = data(clf, rng, 50)
    clf.fit(X[:40], y[:40])
    factor = clf.model_.covariance.factor
    clf.remove(clf.add(X[40:], y[40:]))
    held = clf.model_.covariance
    if held.is_well_conditioned(held.examples, max_variance(held.kernel, held.X)):
        assert clf.model_.covariance.factor.size == factor.size
        assert clf.model_.covariance.factor.solve(X[:40]).tolist() == factor.solve(X[:40]).tolist()


@law
def the_order_of_adding_does_not_matter(make, rng):
    clf = make()
    X, y = data(clf, rng, 40)
    clf.fit(X[:10], y[:10])
    clf.add(X[10:], y[10:])
    order = np.r_[0:10, rng.permutation(np.arange(10, 40))]
    other = alike(make, clf).fit(X[order[:25]], y[order[:25]], order[:25])
    other.add(X[order[25:]], y[order[25:]], order[25:])
    assert_equal_models(clf, other, X)


@law
def replacing_is_removing_and_adding(make, rng):
    clf = make()
    X, y = data(clf, rng, 40)
    clf.fit(X[:30], y[:30])
    other = deepcopy(clf)
    clf.replace([1, 17], X[30:32], y[30:32])
    other.remove([1, 17])
    other.add(X[30:32], y[30:32], [1, 17])
    assert_equal_models(clf, other, X)
    np.testing.assert_array_equal(clf.ids_, other.ids_)


@law
def adding_many_is_adding_one_by_one(make, rng):
    clf = make()
    X, y = data(clf, rng, 40)
    clf.fit(X[:20], y[:20])
    other = deepcopy(clf)
    clf.add(X[20:], y[20:])
    for i in range(20, 40):
        other.add(X[i : i + 1], y[i : i + 1])
        other.predict(X[:1])
    assert_equal_models(clf, other, X)


@law
def merging_is_fitting_the_union(make, rng):
    clf = make()
    X, y = data(clf, rng, 40)
    clf.fit(X[:25], y[:25])
    other = alike(make, clf).fit(X[25:], y[25:], range(100, 115))
    clf.merge(other)
    union = alike(make, clf).fit(X, y)
    assert_equal_models(clf, union, X)
    # Taking the merged ones out again undoes it.
    clf.remove(other.ids_)
    assert_equal_models(clf, alike(make, clf).fit(X[:25], y[:25]), X)


@law
def leaving_out_is_refitting_without(make, rng):
    clf = make()
    if getattr(clf, "members", 1) > 1:
        return  # Of averages see test_one_shot_average.
    X, y = data(clf, rng, 30)
    clf.fit(X, y).remove([4]).add(X[:3] + 0.1, y[:3])
    held, (kernel, inputs, noises) = clf.model_.examples, process(clf)
    T, bias = told(clf, values(clf.model_)), getattr(clf, "bias", False)
    K, given, n = matrix(clf), oracle_of_the_source(clf), len(held)
    normalised = clf.model_.targets.units is not None
    groups = rng.integers(0, 6, n)
    for g, left in [
        (np.arange(len(held)), clf.leave_one_out()),
        (groups, clf.leave_one_out(groups)),
    ]:
        # A support task is never left out: it is a group of its own.
        g = np.append(g, np.full(len(K) - n, -1))
        mean, variance = oracle.left_out(kernel, noises, inputs, T, g, bias)
        square = 1.0
        if normalised:
            Y, weights = held.labels[:, None], held.weights
            mean, each = oracle.normalised_left_out(kernel, noises, inputs, Y, g, weights)
            # Units come from the other examples, so they differ for each.
            square = each[:, 0] / variance
        both = {"solver": solver(clf), "left": K[:, :n], "bias": bias}
        assert_solves(left.scores, mean[:n] + given, K, T, **both)
        want, unit = np.diag(variance[:n]), np.eye(len(K))[:, :n]
        assert_solves(np.diag(left.variance / square), want, K, unit, **both)
        np.testing.assert_array_equal(left.ids, clf.ids_)
        np.testing.assert_array_equal(left.labels, held.labels)


@law
def an_example_does_not_answer_for_itself_when_left_out(make, rng):
    clf = make()
    X, y = data(clf, rng, 30)
    # Some that are near to nobody: what is said of them must not be their own label.
    X[20:] += 1e3 * rng.normal(size=(10, X.shape[1]))
    clf.fit(X, y)
    if label_matters_to_others(clf):
        return
    before = clf.leave_one_out()
    for i in (3, 21, 25):
        held = counted(clf).labels[i]
        for other in np.setdiff1d(y[:4], held)[:2]:
            after = clf.relabel([i], [other]).leave_one_out()
            assert after.silent[i] == before.silent[i]
            if after.silent[i] or is_classifier(clf):
                assert after.predicted[i] == before.predicted[i]
        clf.relabel([i], [held])


def oracle_of_the_source(clf, X=None):
    """Scores (n, M) that classes take from a classifier's source; zeros without a source."""
    if not hasattr(clf, "beta_"):
        return 0.0
    X, names = features(clf) if X is None else X, clf.classes_.tolist()
    S = clf.source_.decision_function(X)
    given = np.empty((len(X), len(names)))
    for column, name in enumerate(names):
        known = clf.source_.classes_.tolist()
        given[:, column] = S[:, known.index(name)] if name in known else S @ clf.beta_
    return scale_of_the_source(clf) * given


def scale_of_the_source(clf):
    """The slope of the labels of the known classes by its scores, all columns together."""
    if not clf.scaled:
        return 1.0
    held, known = clf.model_.examples, np.sort(clf.source_.classes_)
    rows = np.isin(held.labels, known)
    S, y = held.X[rows, -len(known) :], held.labels[rows]
    counts = {name: held.weights[held.labels == name].sum() for name in known}
    weights = held.weights[rows] / np.array([counts[name] for name in y])
    columns = [np.where(y == name, 1.0, -1.0) for name in known]
    both = square = 0.0
    middle = np.average(S.mean(axis=1), weights=weights)
    for s, t in zip(S.T, columns, strict=True):
        s = s - middle
        both, square = both + weights @ (s * t), square + weights @ s**2
    return max(both / square, 0)


@law
def an_example_of_weight_two_is_two_examples(make, rng):
    other = make()
    X, y = data(other, rng, 24)
    twice = np.r_[0:24, 5, 9]
    weights = np.ones(24)
    weights[[5, 9]] = 2
    # A choice counts the rows.
    if chooses(other):
        return
    other.fit(X[twice], y[twice])
    clf = alike(make, other)
    if not is_linear(clf):
        clf.set_params(kernel=other.kernel_)
    clf.fit(X, y, sample_weight=weights)
    if is_linear(clf):
        np.testing.assert_array_equal(scores(clf, X), scores(other, X))
        return
    K, k = matrix(other), other.kernel_(features(other), X)
    T, bias = values(machine(other)), getattr(clf, "bias", False)
    Q = clf.model_inputs(X)
    got, want = machine(clf).mean(Q), machine(other).mean(Q)
    assert_solves(got, want, K, T, solver=solver(clf), left=k, bias=bias)


@law
def an_example_of_weight_zero_is_held_and_says_nothing(make, rng):
    clf, other = make(), make()
    X, y = data(clf, rng, 40)
    weights = np.where(np.arange(40) % 5 == 4, 0.0, rng.uniform(0.5, 2, 40))
    # No other example has this class: it is one of those that there is nothing of.
    labels = y.copy()
    if is_classifier(clf):
        labels[weights == 0] = 99
    clf.fit(X[:30], labels[:30], sample_weight=weights[:30])
    clf.predict(X[:1])
    clf.add(X[30:], labels[30:], sample_weight=weights[30:])
    clf.relabel([4, 9], labels[4]).replace([14], X[:1]).remove([3, 19, 24])
    first, then = np.flatnonzero(weights[:30]), 30 + np.flatnonzero(weights[30:])
    other.fit(X[first], y[first], first, weights[first])
    other.add(X[then], y[then], then, weights[then])
    other.remove([3])
    assert is_linear(clf) or other.kernel_ == clf.kernel_
    assert_equal_models(clf, other, X)
    assert set(clf.ids_) == set(range(40)) - {3, 19, 24}
    if is_classifier(clf):
        np.testing.assert_array_equal(clf.classes_, other.classes_)
    copy = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(copy.ids_, clf.ids_)
    np.testing.assert_array_equal(scores(copy, X), scores(clf, X))
    assert_equal_models(clf.remove(np.flatnonzero(weights == 0)[:1]), other, X)


@law
def what_weighs_nothing_is_judged_by_those_that_count(make, rng):
    clf = make()
    if getattr(clf, "members", 1) > 1:
        return  # Of averages see test_one_shot_average.
    X, y = data(clf, rng, 30)
    silent = np.arange(30) % 6 == 5
    clf.fit(X, y, sample_weight=np.where(silent, 0.0, rng.uniform(0.5, 2, 30)))
    (kernel, inputs, noises), K = process(clf), matrix(clf)
    T, bias = told(clf, clf.model_.targets.T), getattr(clf, "bias", False)
    normalised = clf.model_.targets.units is not None
    given, noise = oracle_of_the_source(clf, X[silent]), clf.model_.covariance.noise
    queries, n = asked_of(clf, X[silent]), (~silent).sum()
    own = np.full(silent.sum(), noise)
    groups = rng.integers(0, 6, 30)
    for g, left in [(np.arange(30), clf.leave_one_out()), (groups, clf.leave_one_out(groups))]:
        mean, variance = np.empty((len(queries), T.shape[1])), np.empty(len(queries))
        square = np.ones(len(queries))
        for i, name in enumerate(g[silent]):
            # A support task is never left out.
            kept = np.append(g[~silent] != name, np.ones(len(K) - n, dtype=bool))
            rest = kernel, noises[kept], inputs[kept]
            targets, m, s = T[kept], 0.0, 1.0
            if normalised:
                held = clf.model_.examples
                m, s = oracle.units(held.labels[kept, None], held.weights[kept])
                targets = (held.labels[kept, None] - m) / s
            mean[i] = m + s * oracle.scores(*rest, targets, queries[[i]], bias)[0]
            variance[i] = oracle.variance(*rest, queries[[i]], bias, own[:1])[0]
            square[i] = np.squeeze(s) ** 2
        k = kernel(inputs, queries)
        both = {"solver": solver(clf), "left": k, "bias": bias}
        assert_solves(left.scores[silent], mean + given, K, T, **both)
        got = left.variance[silent] / square
        assert_solves(np.diag(got), np.diag(variance), K, k, **both)
        np.testing.assert_array_equal(left.ids, np.arange(30))
        np.testing.assert_array_equal(left.labels, y)


@law
def variance_ignores_labels(make, rng):
    clf, other = make(), make()
    if label_matters_to_others(clf):
        return
    X, y = data(clf, rng, 30)

    def variance(estimator):
        """In the units of the targets, which labels have a say in if they are normalised."""
        model = estimator.model_
        return model.leverage(X) if is_linear(estimator) else model.covariance.variance(X)

    clf.fit(X, y)
    other.fit(X, rng.permutation(y))
    before = variance(clf)
    np.testing.assert_array_equal(before, variance(other))
    np.testing.assert_array_equal(variance(clf.relabel([3], y[:1])), before)
    if is_linear(clf):
        return
    square = clf.model_.targets.square
    assert_rounded(clf.predict_variance(X), square * before)


@law
def relabelling_touches_no_matrix(make, rng):
    clf = make()
    X, y = data(clf, rng, 30)
    clf.fit(X, y)
    factor = clf.model_.covariance.factor
    clf.relabel([3, 9], y[:2]).predict(X)
    if label_matters_to_others(make()):
        return
    assert clf.model_.covariance.factor is factor


@law
def relabelling_after_a_question_is_fitting_the_new_labels(make, rng):
    clf = make()
    X, y = data(clf, rng, 30)
    clf.fit(X, y).predict(X)
    changed = y.copy()
    changed[[3, 20]] = y[[20, 3]] + 1
    clf.relabel([3, 20], changed[[3, 20]])
    assert_equal_models(clf, alike(make, clf).fit(X, changed), X)


@law
def classes_that_come_and_go_between_others_keep_the_columns_in_order(make, rng):
    clf = make()
    X, y = data(clf, rng, 40)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    outer, inner = np.r_[0:8, 32:40], np.r_[8:32]
    clf.fit(X[outer], y[outer]).predict(X)
    ids = clf.add(X[inner], y[inner])
    assert_equal_models(clf, batch(make, clf), X)
    clf.remove(ids)
    assert_equal_models(clf, alike(make, clf).fit(X[outer], y[outer]), X)


@law
def the_likelihood_is_the_gaussian_density(make, rng):
    clf = make()
    X, y = data(clf, rng, 30)
    clf.fit(X, y).remove([3, 4])
    held, covariance = clf.model_.examples, clf.model_.covariance
    noise = covariance.noise / covariance.weights
    T = clf.model_.targets.T
    want = oracle.log_marginal_likelihood(clf.kernel_, noise, held.X, T)
    K = oracle.covariance(clf.kernel_, held.X, noise)
    fit = (T * oracle.solve(K, T)).sum()
    scale = abs(fit) + T.shape[1] * abs(np.log(np.linalg.eigvalsh(K))).sum()
    assert_rounded(clf.log_marginal_likelihood(), want, 100 * np.linalg.cond(K), scale)


@law
def it_shrinks_to_nothing_and_grows_again(make, rng):
    clf = make()
    X, y = data(clf, rng, 20)
    clf.fit(X, y)
    clf.remove(clf.ids_)
    assert len(clf.ids_) == 0
    ids = clf.add(X, y)
    assert ids.tolist() == list(range(20, 40))
    other = alike(make, clf).fit(X, y)
    assert_equal_models(clf, other, X)


@law
def inputs_are_neither_changed_nor_kept(make, rng):
    clf = make()
    X, y = data(clf, rng, 20)
    X0, y0 = X.copy(), y.copy()
    clf.fit(X, y)
    clf.add(X, y)
    clf.replace([0], X[5:6]).relabel([1], y[:1])
    queries = X + 1
    before = scores(clf, queries)
    np.testing.assert_array_equal(X, X0)
    np.testing.assert_array_equal(y, y0)
    X[:], y[:] = 0, y[0]
    clf.relabel([1], y0[:1])
    np.testing.assert_array_equal(scores(clf, queries), before)


@law
def old_values_do_not_change(make, rng):
    clf = make()
    X, y = data(clf, rng, 40)
    clf.fit(X[:20], y[:20])
    old, Q = clf.model_, clf.model_inputs(X)
    has_variance = hasattr(old, "variance")
    value, ids = clf.editable_, clf.ids_.tolist()
    before = old.mean(Q), old.variance(Q) if has_variance else 0
    clf.add(X[20:], y[20:])
    clf.remove([0, 5]).replace([1], X[:1]).relabel([2], y[:1]).predict(X)
    vars(old).pop("solution", None)
    np.testing.assert_array_equal(old.mean(Q), before[0])
    np.testing.assert_array_equal(old.variance(Q) if has_variance else 0, before[1])
    assert value.examples.ids.tolist() == ids
    assert is_linear(clf) or old.examples.ids.tolist() == ids


@law
def a_copy_lives_its_own_life(make, rng):
    clf = make()
    X, y = data(clf, rng, 40)
    clf.fit(X[:20], y[:20])
    clf.add(X[20:22], y[20:22])
    for copy in (deepcopy(clf), pickle.loads(pickle.dumps(clf))):
        np.testing.assert_array_equal(scores(copy, X), scores(clf, X))
        before = scores(clf, X)
        copy.add(X[30:], y[30:])
        copy.remove([0, 21]).predict(X)
        np.testing.assert_array_equal(scores(clf, X), before)
        assert_equal_models(copy, batch(make, copy), X)


@law
def the_residual_is_a_few_roundings(make, rng):
    clf = make()
    X, y = data(clf, rng, 60)
    clf.fit(X[:40], y[:40])
    clf.add(X[40:], y[40:])
    clf.remove([3, 50])
    K = np.eye(len(clf.ids_)) if is_linear(clf) else matrix(clf)
    # A factor solves a nearby system; a product with an inverse need not (hence the condition).
    roundings = 4 * len(K) if solver(clf) == "cholesky" else 4 * np.linalg.cond(K, 1)
    assert clf.residual() <= roundings * np.finfo(float).eps
