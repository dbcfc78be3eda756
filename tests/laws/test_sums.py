"""After any history the sums equal the survivors' sums, to the bit."""

from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import pytest
from benchmarks.histories import History
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from strategies import seeds

from knowmore import KnowmoreError, LinearGPClassifier, LinearGPRegressor

KINDS = {
    "classifier": (LinearGPClassifier(), False),
    "8 bits": (LinearGPClassifier("evidence", resolution=8, intercept=False), False),
    "exact": (LinearGPClassifier("loo", resolution="exact"), False),
    "weighted": (LinearGPClassifier(), True),
    "exact weighted": (LinearGPClassifier(0.01, resolution="exact"), True),
    "regressor": (LinearGPRegressor(), False),
    "regressor 8 bits weighted": (LinearGPRegressor("evidence", resolution=8), True),
    "regressor exact": (LinearGPRegressor(resolution="exact", intercept=False), False),
}
QUERIES = np.random.default_rng(9).normal(size=(5, 4))


def history(estimator, weighted, rng, **words):
    X = rng.normal(size=(300, 4)) * 10.0 ** rng.integers(-2, 3, 4) + rng.normal(size=4)
    if isinstance(estimator, LinearGPRegressor):
        # Few different values, so that they come and go as classes do.
        y = rng.integers(-3, 4, (300, 2)) * [1.5, 1e3]
    else:
        y = np.array(["ant", "bee", "cow", "doe"])[rng.choice(4, 300, p=[0.5, 0.3, 0.19, 0.01])]
    weights = rng.integers(1, 2**16, 300) / 256 if weighted else None
    empty = deepcopy(estimator).fit(X, y).forget(X, y)
    return History(empty, X, y, weights, rng, **words)


def answers(estimator):
    """Answers of a model as arrays; None if it has no rows."""
    if not estimator.n_samples_:
        return None
    classifier = isinstance(estimator, LinearGPClassifier)
    ask = estimator.decision_function if classifier else estimator.predict
    return [ask(QUERIES), estimator.predict_variance(QUERIES), estimator.coef_, estimator.noise_]


def assert_same(shard, fresh):
    assert shard.estimator.digest() == fresh.digest()
    assert shard.estimator.n_samples_ == len(shard.rows) == fresh.n_samples_
    for one, other in zip(answers(shard.estimator) or (), answers(fresh) or (), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.slow(fast=6)
@pytest.mark.parametrize("name", KINDS)
def test_hundreds_of_edits_merges_and_splits_without_one_mismatch(name):
    past = history(*KINDS[name], np.random.default_rng([*name.encode()]))
    for turn, shard in enumerate(past.edits(400)):
        if turn % 6 == 0:
            assert_same(shard, past.fresh(shard))
    for shard in past.shards:
        assert_same(shard, past.fresh(shard))
    # Shards merged by any tree equal one fit of all their rows.
    while len(past.shards) > 1:
        one, other = past.rng.permutation(len(past.shards))[:2]
        past.shards[one].estimator.merge(past.shards[other].estimator)
        past.shards[one].rows = np.append(past.shards[one].rows, past.shards[other].rows)
        del past.shards[other]
    assert_same(past.shards[0], past.fresh(past.shards[0]))


@settings(max_examples=20)
@given(seeds, st.sampled_from(sorted(KINDS)), st.integers(1, 25))
def test_any_short_history_is_the_fit_of_the_survivors(seed, name, edits):
    past = history(*KINDS[name], np.random.default_rng(seed), most=30)
    for _ in past.edits(edits):
        pass
    for shard in past.shards:
        assert_same(shard, past.fresh(shard))


@pytest.mark.parametrize("name", KINDS)
def test_learning_and_forgetting_leaves_the_very_model(name):
    past = history(*KINDS[name], np.random.default_rng(3))
    shard = [*past.edits(20)][-1]
    model, rows = shard.estimator, past.rng.integers(300, size=200)
    before, given = answers(model), past._given(rows)
    data = pickle.dumps(model.model_.sums)
    model.partial_fit(given[0], given[1], sample_weight=given[2]).forget(*given)
    assert pickle.dumps(model.model_.sums) == data
    for one, other in zip(answers(model) or (), before or (), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["classifier", "regressor"])
def test_sparse_tables_have_the_same_histories(name):
    estimator, weighted = KINDS[name]
    digests = set()
    for kind in (np.asarray, sparse.csr_array):
        past = history(estimator, weighted, np.random.default_rng(4))
        past.X = kind(past.X)
        for _ in past.edits(60):
            pass
        digests.add(tuple(shard.estimator.digest() for shard in past.shards))
    assert len(digests) == 1


@pytest.mark.parametrize("name", KINDS)
def test_inputs_are_neither_changed_nor_kept(name):
    past = history(*KINDS[name], np.random.default_rng(5))
    X, y, weights = past._given(np.arange(50))
    copies = X.copy(), y.copy()
    model = deepcopy(past.empty).partial_fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(X, copies[0])
    X[:], y[:] = 0, y[0]
    want = deepcopy(past.empty).partial_fit(*copies, sample_weight=weights)
    assert model.digest() == want.digest()


def test_old_values_do_not_change():
    past = history(*KINDS["classifier"], np.random.default_rng(6))
    seen = [(shard.estimator.model_, shard.estimator.digest()) for shard in past.edits(100)]
    assert all(model.sums.digest() == digest for model, digest in seen)


def test_a_copy_lives_its_own_life():
    past = history(*KINDS["weighted"], np.random.default_rng(7))
    shard = [*past.edits(30)][-1]
    for copy in (deepcopy(shard.estimator), pickle.loads(pickle.dumps(shard.estimator))):
        assert copy.digest() == shard.estimator.digest()
        before = shard.estimator.digest()
        copy.partial_fit(past.X[:3], past.y[:3])
        assert shard.estimator.digest() == before != copy.digest()


def test_an_edit_that_is_refused_in_the_middle_of_a_history_changes_nothing():
    past = history(*KINDS["classifier"], np.random.default_rng(8))
    for shard in past.edits(60):
        if not len(shard.rows):
            continue
        before = shard.estimator.digest()
        for X, y in (
            (np.full((1, 4), np.nan), ["ant"]),
            (np.full((1, 4), 1e200), ["ant"]),
            (past.X[:1], [1]),
            (past.X[:1, :3], ["ant"]),
        ):
            for act in (shard.estimator.partial_fit, shard.estimator.forget):
                with pytest.raises(KnowmoreError):
                    act(X, y)
        with pytest.raises(KnowmoreError):
            shard.estimator.forget(np.repeat(past.X, 3, axis=0), np.repeat(past.y, 3))
        assert shard.estimator.digest() == before
