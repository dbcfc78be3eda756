"""Fixed questions follow a model through appends, deletions, relabelling and new classes."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct
from tolerance import assert_rounded, assert_solves

from knowmore import GPClassifier
from knowmore.edits import Add, Relabel, Remove
from knowmore.errors import InvalidInput, InvalidType
from knowmore.examples import Examples
from knowmore.linalg import Cholesky, Inverse
from knowmore.models import (
    Covariance,
    Following,
    KernelModel,
    ModelSettings,
    Weighting,
    normalised_values,
    one_vs_all,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = RNG.integers(0, 3, 400)
ASKED = RNG.normal(size=(17, 3))


def fitted(n, *, kernel=None, coding=one_vs_all, dtype="float64", labels=Y, **settings):
    some = Examples.of(X[:n], labels[:n])
    factor = settings.pop("factor", Cholesky)(dtype=np.dtype(dtype))
    kernel = RBF(1.5) if kernel is None else kernel
    covariance = Covariance.of(kernel, 0.1, some, factor, settings.pop("weighting", None))
    return KernelModel.on(covariance, coding, **settings)


def history(seed, n, steps=25):
    """Edits of examples of these ids: mostly a window, at times a block, a relabel, a new class."""
    rng, held, new = np.random.default_rng(seed), list(range(n)), n
    for _ in range(steps):
        k = int(rng.choice([1, 1, 1, 5]))
        label = rng.integers(0, 5, k)
        yield Add(X[new : new + k], label, tuple(range(new, new + k)))
        held += range(new, new + k)
        new += k
        if rng.uniform() < 0.7:
            gone = rng.choice(len(held), size=k, replace=False) if k > 1 else [0]
            names = tuple(held[i] for i in gone)
            held = [one for one in held if one not in names]
            yield Remove(names)
        if rng.uniform() < 0.2:
            yield Relabel((held[-3],), np.array([1]))


def assert_answers(pool, model, bias=False):
    """Are the answers those that the definition gives?"""
    kernel, dtype = model.covariance.kernel, model.covariance.factor.dtype
    noises, held = model.covariance.noise / model.covariance.weights, model.examples.X
    K, k = oracle.covariance(kernel, held, noises), kernel(held, pool.X)
    units, T = model.targets.units, model.targets.T
    scale = 1.0 if units is None else units.scale
    want = oracle.scores(kernel, noises, held, T, pool.X, bias)
    got = pool.scores if units is None else (pool.scores - units.mean) / units.scale
    assert_solves(got, want, K, T, left=k, dtype=dtype, bias=bias)
    m = len(pool.X)
    own = np.full(m, model.covariance.noise)
    want = oracle.variance(kernel, noises, held, pool.X, noise_new=own)
    got = (pool.variance / scale**2).reshape(m, -1)[:, 0]
    for x in range(m):
        # The part that is explained, each row by itself: k' K^-1 k.
        prior = kernel.diag(pool.X[x : x + 1]) + own[x]
        explained = (prior - got[x])[:, None], (prior - want[x])[:, None]
        assert_solves(*explained, K, k[:, x : x + 1], left=k[:, x : x + 1], dtype=dtype)

    # And between rows: k' K^-1 k_x.
    explained = kernel(pool.X, pool.X[:3]) - pool.covariance(np.arange(3))
    want = k.T @ np.linalg.solve(K, k[:, :3])
    assert_solves(explained, want, K, k[:, :3], left=k, dtype=dtype)
    some = np.array([5, 2, 9])
    part = pool.among(some)
    np.testing.assert_array_equal(part.scores, pool.scores[some])
    np.testing.assert_array_equal(part.variance, pool.variance[some])
    want = pool.covariance(some[:2])[some]
    assert_rounded(part.covariance(np.arange(2)), want, 1000, kernel.diag(pool.X).max())


def assert_follows(model, bias=False, edits=()):
    """Follow the edits, and compare with the definition after each of them."""
    pool, examples = Following(model, ASKED), model.examples
    first, before = pool, (pool.scores.copy(), pool.variance.copy())
    for edit in edits:
        examples = examples.apply(edit)
        model = model.follow(examples)
        pool = pool.follow(model)
        assert_answers(pool, model, bias)
    np.testing.assert_array_equal(first.scores, before[0])
    np.testing.assert_array_equal(first.variance, before[1])


@pytest.mark.slow(fast=["gp-float64-20", "gp-float32-20", "svm-float64-150", "svm-float32-20"])
@pytest.mark.parametrize("n", [20, 150])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("bias", [False, True], ids=["gp", "svm"])
def test_answers_follow_any_history(n, dtype, bias):
    assert_follows(fitted(n, dtype=dtype, bias=bias), bias, history(n, n))


@pytest.mark.parametrize("k", [3, 70])
def test_answers_follow_a_block_that_goes(k):
    gone = tuple(range(5, 5 + k))
    assert_follows(fitted(300), edits=[Remove(gone), Add(X[300:310], Y[300:310]), Remove((299,))])


def test_answers_follow_targets_with_units():
    values = X[:, 0] ** 2 + 0.1 * RNG.normal(size=400)
    edits = [Add(X[40:42], values[40:42]), Remove((0,)), Relabel((7,), np.array([50.0]))]
    assert_follows(fitted(40, coding=normalised_values, labels=values), edits=edits)


def test_answers_follow_weights_that_change_with_the_classes():
    model = fitted(40, weighting=Weighting("balanced"))
    assert_follows(model, edits=[Add(X[40:41], Y[40:41]), Remove((3, 4))])


def test_answers_of_kernel_values_beyond_float32_follow():
    model = fitted(12, kernel=DotProduct(1.0), dtype="float32")
    pool = Following(model, 1e30 * ASKED)
    more = model.follow(model.examples.apply(Add(X[12:13], Y[12:13])))
    assert_answers(pool.follow(more), more)


def test_an_append_evaluates_the_new_rows_alone_and_copies_none(monkeypatch):
    model = fitted(100)
    pool = Following(model, ASKED)
    assert pool.scores.shape == (17, 3)
    asked = []
    plain = KernelModel.of.__globals__["Covariance"].cross

    def spied(covariance, rows, begin=0, first=0):
        asked.append(len(covariance.X) - first)
        return plain(covariance, rows, begin, first)

    examples = model.examples.apply(Add(X[100:102], Y[100:102]))
    grown = model.follow(examples)
    monkeypatch.setattr(type(model.covariance), "cross", spied)
    after = pool.follow(grown)
    assert after.scores.shape == (17, 3)
    assert asked == [2]
    more = after.follow(grown.follow(examples.apply(Add(X[102:103], Y[102:103]))))
    assert more.variance.shape == (17,)
    assert asked == [2, 1]
    assert np.shares_memory(after._complete.W.view, more._complete.W.view)


def test_a_model_with_another_kernel_or_an_inverse_is_asked_anew():
    model = fitted(30)
    pool = Following(model, ASKED)
    other = model.follow(model.examples, ModelSettings(RBF(0.7), 0.1))
    assert_answers(pool.follow(other), other)
    inverse = fitted(30, factor=Inverse)
    answers = Following(inverse, ASKED).follow(inverse)
    np.testing.assert_array_equal(answers.scores, inverse.mean(ASKED))
    np.testing.assert_array_equal(answers.variance, inverse.variance(ASKED))


def test_rows_with_other_features_are_refused():
    message = (
        r"^X has shape \(17, 2\), but the examples of the model have 3 features. "
        r"Give rows of as many.$"
    )
    with pytest.raises(InvalidInput, match=message):
        Following(fitted(10), ASKED[:, :2])


def test_an_estimator_is_told_to_give_its_model():
    clf = GPClassifier(RBF(1.5)).fit(X[:10], Y[:10])
    with pytest.raises(InvalidType, match=r"not a GPClassifier\. Give its model_, and call follow"):
        Following(clf, ASKED)
    assert_rounded(Following(clf.model_, ASKED).scores, clf.decision_function(ASKED), 1000)


def test_it_says_what_it_holds():
    words = "Following(17 rows, KernelModel(10 examples, 3 columns, RBF(length_scale=1.5), "
    assert repr(Following(fitted(10), ASKED)).startswith(words)


def test_a_squared_hinge_is_asked_anew_for_its_scores():
    model = fitted(60, loss="squared_hinge")
    pool = Following(model, ASKED)
    after = model.follow(model.examples.apply(Add(X[60:62], Y[60:62])).apply(Remove((3,))))
    for each, its in ((pool, model), (pool.follow(after), after)):
        assert_rounded(each.scores, its.mean(ASKED), 1000)
        assert_rounded(each.variance, its.variance(ASKED), 1000)


def test_one_row_is_followed_where_nothing_was_added():
    model = fitted(10)
    pool = Following(model, ASKED[:1])
    alone = pool.scores.copy(), pool.variance.copy()
    relabelled = model.follow(model.examples.apply(Relabel((2,), np.array([1]))))
    again = pool.follow(relabelled)
    K = oracle.covariance(RBF(1.5), X[:10], np.full(10, 0.1))
    k, T = RBF(1.5)(X[:10], ASKED[:1]), relabelled.targets.T
    assert_solves(again.scores, k.T @ np.linalg.solve(K, T), K, T, left=k)
    part = Following(model, ASKED).among(np.array([0]))
    for got, want in zip((part.scores, part.variance), alone, strict=True):
        assert_rounded(got, want, 1000, 1.0)
