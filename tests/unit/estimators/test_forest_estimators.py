"""The estimators around forests of leaf GPs."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import oracle
import pandas as pd
import pytest
import trees_oracle
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tolerance import assert_rounded

import knowmore
from knowmore import ForestGPClassifier, ForestGPRegressor, GPClassifier, GPRegressor
from knowmore.errors import InvalidInput, NotPositiveDefinite
from knowmore.kernels import median_rbf

KINDS = [ForestGPClassifier, ForestGPRegressor]
rng = np.random.default_rng(1)
X = rng.normal(size=(150, 3))
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 1)


def answers(estimator, rows=X[:20]):
    ask = getattr(estimator, "decision_function", estimator.predict)
    return ask(rows), estimator.predict_variance(rows)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"capacity": 1}, "capacity=1. Give a whole number of at least 2."),
        ({"capacity": 2.5}, "capacity=2.5. Give a whole number of at least 2."),
        ({"n_trees": 0}, "n_trees=0. Give a whole number from 1 to 65536."),
        ({"seed": -1}, "seed=-1. Give a whole number of at least 0."),
        ({"seed": None}, "seed=None. Give a whole number of at least 0."),
        ({"noise": "loo"}, "noise='loo' must be a number in [0, inf)."),
        ({"noise": -0.1}, "noise=-0.1 must be a number in [0, inf)."),
        ({"kernel": RBF}, "kernel=RBF is a class, not a kernel. Give an instance: RBF()."),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_parameters_are_checked(kind, parameters, message):
    with pytest.raises(InvalidInput) as error:
        kind(**parameters).fit(X, Y)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize("kind", KINDS)
def test_bad_edits_change_nothing(kind):
    estimator = kind(capacity=10).fit(X, Y)
    before, value = answers(estimator), estimator.model_
    bad = [
        lambda: estimator.add(X[:2, :2], Y[:2]),
        lambda: estimator.add(X[:2], Y[:3]),
        lambda: estimator.add(X[:2] * np.nan, Y[:2]),
        lambda: estimator.add(X[:2], ["one", "two"]),
        lambda: estimator.add(X[:2], Y[:2], ids=[0, 900]),
        lambda: estimator.add(X[:2], Y[:2], sample_weight=[1, -1]),
        lambda: estimator.remove([0, "nobody"]),
        lambda: estimator.replace([0, 1], X[:1]),
        lambda: estimator.relabel([0], ["text"]),
        lambda: estimator.merge(GPClassifier().fit(X, Y)),
        lambda: estimator.merge(kind(capacity=10).fit(X, Y)),
    ]
    for edit in bad:
        with pytest.raises(knowmore.KnowmoreError):
            edit()
    assert estimator.model_ is value
    for now, then in zip(answers(estimator), before, strict=True):
        assert np.array_equal(now, then)


@pytest.mark.parametrize("name", ["capacity", "n_trees", "seed", "noise", "kernel"])
def test_forests_merge_only_if_they_agree(name):
    settings = {"capacity": 9, "n_trees": 2, "seed": 5, "noise": 0.5, "kernel": RBF(3.0)}
    one = ForestGPClassifier(RBF(1.0), 0.1, capacity=8).fit(X[:50], Y[:50])
    other = clone(one).set_params(**{name: settings[name]}).fit(X[50:], Y[50:], ids=range(50, 150))
    with pytest.raises(InvalidInput, match=f"differ in {name}: .*Fit both with the same {name}"):
        one.merge(other)
    alike = clone(one).fit(X[50:], Y[50:], ids=range(50, 150))
    whole = clone(one).fit(X, Y)
    for got, want in zip(answers(one.merge(alike)), answers(whole), strict=True):
        assert_rounded(got, want, 4 * 8 / 0.1)


@pytest.mark.parametrize(
    ("forest", "gp"), [(ForestGPClassifier, GPClassifier), (ForestGPRegressor, GPRegressor)]
)
def test_with_a_single_leaf_it_is_the_gaussian_process(forest, gp):
    weights = rng.choice([0.0, 1.0, 2.0], 150)
    groups = rng.integers(0, 40, 150)
    a = forest(n_trees=2).fit(X, Y, sample_weight=weights)
    b = gp().fit(X, Y, sample_weight=weights)
    assert a.kernel_ == b.kernel_
    # The condition is at most 150 max w / noise + 1.
    roundings = 4 * 150 * 2 / b.noise_
    for got, want in zip(answers(a), answers(b), strict=True):
        assert_rounded(got, want, roundings)
    for given in (None, groups):
        got, want = a.leave_one_out(given), b.leave_one_out(given)
        assert got.ids.tolist() == want.ids.tolist()
        assert np.array_equal(got.names, want.names)
        assert np.array_equal(got.silent, want.silent)
        assert_rounded(got.scores, want.scores, roundings)
        assert_rounded(got.variance, want.variance, roundings)
    if forest is ForestGPClassifier:
        assert np.array_equal(a.classes_, b.classes_)
        assert_rounded(a.predict_proba(X), b.predict_proba(X), roundings)


@pytest.mark.parametrize("n_trees", [1, 3])
def test_leave_one_out_refits_the_leaves_and_keeps_the_shape(n_trees):
    clf = ForestGPClassifier(Matern(1.0), 0.1, capacity=15, n_trees=n_trees).fit(X, Y)
    left, T = clf.leave_one_out(), trees_oracle.targets(Y, clf.classes_)
    mean, variance = np.zeros_like(T), np.zeros(150)
    for number in range(n_trees):
        tree = trees_oracle.grown(dict(enumerate(X.tolist())), 15, 0, number)
        for leaf in map(sorted, trees_oracle.leaves(tree)):
            refit = oracle.left_out(Matern(1.0), 0.1, X[leaf], T[leaf], np.arange(len(leaf)))
            mean[leaf] += refit[0] / n_trees
            variance[leaf] += refit[1] / n_trees
    assert_rounded(left.scores, mean, 4 * 15 / 0.1)
    assert_rounded(left.variance, variance, 4 * 15 / 0.1)
    assert np.array_equal(left.predicted, clf.classes_[left.scores.argmax(axis=1)])


def test_the_default_kernel_follows_few_examples_and_is_kept_with_many():
    clf = ForestGPClassifier(noise=0.1, capacity=4, settings="median").fit(X[:5], Y[:5])
    assert clf.kernel_ == median_rbf(X[:5])
    clf.add(X[5:20], Y[5:20])
    assert clf.kernel_ == median_rbf(X[:20])
    clf.remove([0]).add(X[20:60], Y[20:60])
    kept = median_rbf(X[1:33])
    assert clf.kernel_ == kept
    clf.add(9 * X[60:], Y[60:])
    assert clf.kernel_ == kept
    fresh = clone(clf).set_params(kernel=kept)
    fresh.fit(clf.model_.examples.X, clf.model_.examples.labels, ids=clf.ids_)
    for got, want in zip(answers(clf), answers(fresh), strict=True):
        assert_rounded(got, want, 4 * 4 / 0.1)


@pytest.mark.parametrize("settings", ["first", "median"])
def test_a_merge_into_few_examples_takes_the_settings_of_many(settings):
    few = ForestGPClassifier(capacity=20, settings=settings).fit(X[:5], Y[:5])
    many = clone(few).fit(X[5:], Y[5:], ids=range(5, 150))
    assert few.merge(many).settings_.agree(many.settings_)
    assert len(few.ids_) == 150


def test_a_duplicate_without_noise_is_refused_at_once():
    clf = ForestGPClassifier(RBF(0.5), noise=0, capacity=20).fit(X, Y)
    value = clf.model_
    with pytest.raises(NotPositiveDefinite, match="remove one of them, or set noise above zero"):
        clf.add(X[:1], Y[:1])
    assert clf.model_ is value
    clf.remove([0, 1]).add(X[:1], Y[:1])
    assert clf.predict(X[:1]) == Y[:1]


def test_a_relabelling_changes_no_factor():
    clf = ForestGPClassifier(capacity=20, n_trees=2).fit(X, Y)
    clf.predict(X)
    before = [leaf.model.covariance.factor for t in clf.model_.trees for leaf in t.leaves()]
    clf.relabel(range(50), 7)
    assert clf.classes_.tolist() == [0, 1, 2, 7]
    clf.predict(X)
    after = [leaf.model.covariance.factor for t in clf.model_.trees for leaf in t.leaves()]
    assert all(one is other for one, other in zip(before, after, strict=True))


def test_variance_ignores_labels():
    make = partial(ForestGPClassifier, RBF(1.0), 0.1, capacity=20, n_trees=2)
    one, other = (make().fit(X, y) for y in (Y, Y[::-1]))
    assert np.array_equal(one.predict_variance(X), other.predict_variance(X))


def test_several_columns_of_targets():
    values = np.column_stack([X[:, 0], 100 + X[:, 1]])
    make = partial(ForestGPRegressor, RBF(1.0), 0.1, capacity=30, n_trees=2)
    reg = make().fit(X, values)
    mean, deviation = reg.predict(X[:7], return_std=True)
    assert mean.shape == deviation.shape == reg.predict_variance(X[:7]).shape == (7, 2)
    assert_rounded(deviation**2, reg.predict_variance(X[:7]))
    left = reg.leave_one_out()
    assert left.scores.shape == left.variance.shape == left.predicted.shape == (150, 2)
    single = make().fit(X, values[:, 1])
    assert_rounded(single.predict(X), reg.predict(X)[:, 1])
    assert single.predict_variance(X).shape == (150,)


def test_tables_pipelines_and_masks():
    table = pd.DataFrame(X, columns=list("abc"), index=[f"row {i}" for i in range(150)])
    clf = ForestGPClassifier(capacity=20).fit(table, Y)
    assert clf.ids_[3] == "row 3"
    clf.remove(clf.ids_ == "row 3")
    assert len(clf.ids_) == 149
    pipe = make_pipeline(StandardScaler(), ForestGPClassifier(capacity=20)).fit(X, Y)
    assert knowmore.living(pipe).add(X[:1], [9]).tolist() == [150]
    assert 9 in pipe.classes_


def test_pickles_and_clones():
    clf = ForestGPClassifier(RBF(2.0), 0.2, capacity=20, n_trees=2, seed=3).fit(X, Y)
    clf.predict(X)
    clf.remove([5, 6])
    text = pickle.dumps(clf)
    assert X[5].tobytes() not in text
    for got, want in zip(answers(pickle.loads(text)), answers(clf), strict=True):
        assert np.array_equal(got, want)
    copy = clone(clf)
    assert copy.get_params() == clf.get_params()
    assert not copy.__sklearn_is_fitted__()
    names = ["capacity", "kernel", "n_trees", "noise", "probability", "seed", "settings"]
    assert list(copy.get_params(deep=False)) == names


@pytest.mark.slow
def test_edits_of_several_threads_all_arrive():
    clf = ForestGPClassifier(RBF(1.0), 0.1, capacity=10, n_trees=2).fit(X, Y)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(8) as pool:
            jobs = [pool.submit(clf.add, X[i : i + 1] + 0.5, [3], [1000 + i]) for i in range(40)]
            jobs += [pool.submit(clf.remove, [i]) for i in range(40)]
            jobs += [pool.submit(clf.predict, X[:30]) for _ in range(40)]
            for job in jobs:
                job.result()
    finally:
        sys.setswitchinterval(interval)
    assert set(clf.ids_.tolist()) == {*range(40, 150), *range(1000, 1040)}
    examples = clf.model_.examples
    fresh = clone(clf).fit(examples.X, examples.labels, ids=examples.ids)
    for got, want in zip(answers(clf), answers(fresh), strict=True):
        assert_rounded(got, want, 4 * 10 / 0.1)


@pytest.mark.slow
def test_many_categories_do_not_make_a_deep_tree():
    categories = np.eye(1200)[np.arange(3600) % 1200]
    clf = ForestGPClassifier(RBF(1.0), capacity=5).fit(categories, np.arange(3600) % 2)

    def depth(node):
        return 1 + max(depth(node.left), depth(node.right)) if hasattr(node, "cut") else 0

    assert depth(clf.model_.trees[0].root) < 40
    # The rows of a category stay together.
    shared = [leaf.members.X.max(axis=0).sum() for leaf in clf.model_.trees[0].leaves()]
    assert sum(shared) == 1200
