"""Mean and spread of the targets are learnt too, and forgotten: a living quantity."""

from __future__ import annotations

import pickle

import numpy as np
import oracle
import pytest
from sklearn.gaussian_process.kernels import RBF
from tolerance import assert_rounded, assert_solves, tolerance

from knowmore import GPRegressor
from knowmore.errors import InvalidInput
from knowmore.insight import explain, novelty, suggest

KERNEL, NOISE = RBF(0.8), 0.05


def scene(n=40, columns=None, seed=0):
    """Inputs (n, 2) and values far from zero, of different units if there are several columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    Y = 100 + np.sin(X @ rng.normal(size=(2, 3))) + 0.1 * rng.normal(size=(n, 3))
    Y *= [1.0, 1000.0, 1e-3]
    return X, Y[:, 0] if columns is None else Y[:, :columns]


def make(**words):
    return GPRegressor(KERNEL, NOISE, **words)


def assert_same(one, other, Q):
    """Do both predict the same, means and deviations, in units of the spread of what they hold?"""
    held = one.model_.examples
    K, k = oracle.covariance(KERNEL, held.X, NOISE / held.weights), KERNEL(held.X, Q)
    T = np.reshape(held.labels, (len(K), -1))
    T = T - T.mean(axis=0)
    (mean, std), (want, want_std) = (each.predict(Q, return_std=True) for each in (one, other))
    shape = len(Q), -1
    assert_solves(mean.reshape(shape), want.reshape(shape), K, T, left=k)
    # A root has half the relative error of its square, which is at least the noise.
    assert_rounded(std / want_std, np.ones_like(std), tolerance(K) / NOISE / np.finfo(float).eps)


@pytest.mark.parametrize("solver", ["cholesky", "inverse"])
@pytest.mark.parametrize("columns", [None, 1, 3])
def test_mean_and_spread_follow_every_edit(columns, solver):
    X, Y = scene(60, columns)
    reg = make(solver=solver).fit(X[:30], Y[:30])
    for edit in (
        lambda: reg.add(X[30:45], Y[30:45] + 50),
        lambda: reg.remove([0, 7, 31]),
        lambda: reg.relabel([3, 33], Y[[4, 5]] - 30),
        lambda: reg.replace([8, 9], X[50:52], Y[50:52] * 2),
        lambda: reg.remove(reg.ids_[30:]),
        lambda: reg.merge(make(solver=solver).fit(X[45:], Y[45:] * 3, ids=range(100, 115))),
    ):
        edit()
        held = reg.model_.examples
        assert_same(reg, make().fit(held.X, held.labels), X)


def test_values_huge_and_forgotten_leave_no_trace():
    """A typing error of 1e12 moves mean and spread by far; without it all is as it was."""
    X, y = scene()
    reg, untouched = make().fit(X, y), make().fit(X, y)
    for value in 1e12, -1e90:
        reg.remove(reg.add(X[:1] + 5, [value])).predict(X)
        ids = reg.add(X[:1] + 5, [value])
        assert np.isfinite(reg.predict(X, return_std=True)).all()
        reg.remove(ids)
        np.testing.assert_array_equal(reg.model_.targets.T, untouched.model_.targets.T)
        assert_same(reg, untouched, X)


def test_what_was_forgotten_is_in_no_pickle():
    X, y = scene()
    y[5] = 123.456789012345
    reg = make().fit(X, y)
    reg.predict(X)
    reg.remove([5])
    assert np.float64(y[5]).tobytes() not in pickle.dumps(reg)
    # Nor is anything else that the removed value has a part in.
    never = make().fit(np.delete(X, 5, 0), np.delete(y, 5))
    np.testing.assert_array_equal(reg.model_.targets.shift, never.model_.targets.shift)
    np.testing.assert_array_equal(reg.model_.targets.mix, never.model_.targets.mix)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e9])
def test_an_offset_of_all_values_is_added_to_all_predictions(offset):
    """It is not solved for: what is lost is the rounding of the values themselves."""
    X, y = scene()
    y = np.round(2**20 * (y - 100)) / 2**20
    y[-1] -= np.ceil(y.sum() * 2**20) / 2**20
    plain, moved = make().fit(X[:30], y[:30]), make().fit(X[:30], y[:30] + offset)
    for reg, values in (plain, y), (moved, y + offset):
        reg.add(X[30:], values[30:])
        reg.predict(X)
        reg.remove([3, 4])
    K = oracle.covariance(KERNEL, moved.model_.examples.X, NOISE)
    error = abs(moved.predict(X) - offset - plain.predict(X)).max()
    rounding = 8 * np.finfo(float).eps * offset
    bound = tolerance(K) * len(K) * abs(y).max() + rounding / NOISE
    assert error <= bound


def test_most_edits_extend_what_was_solved():
    X, y = scene(60)
    reg = make().fit(X[:40], y[:40])
    reg.predict(X)
    shift = reg.model_.targets.shift
    for i in range(40, 60):
        reg.add(X[i : i + 1], y[i : i + 1])
        np.testing.assert_array_equal(reg.model_.targets.shift, shift)
        assert len(reg.model_.head) == i
        reg.predict(X)


@pytest.mark.parametrize("columns", [None, 1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_left_out_is_refitted_with_the_units_of_the_others(columns, weighted):
    X, Y = scene(25, columns)
    # Without this one the spread is another.
    Y[3] += 40 * Y.std(axis=0)
    rng = np.random.default_rng(1)
    weights = rng.uniform(0.2, 4, 25) if weighted else np.ones(25)
    reg = make().fit(X, Y, sample_weight=weights)
    K = oracle.covariance(KERNEL, X, NOISE / weights)
    groups = rng.integers(0, 4, 25)
    for g, left in (np.arange(25), reg.leave_one_out()), (groups, reg.leave_one_out(groups)):
        assert left.predicted.shape == left.variance.shape == Y.shape
        columns_of = np.reshape(Y, (25, -1))
        mean, variance = oracle.normalised_left_out(
            KERNEL, NOISE / weights, X, columns_of, g, weights
        )
        T = columns_of - columns_of.mean(axis=0)
        assert_solves(left.scores, mean, K, T, left=K)
        ratio = left.variance.reshape(variance.shape) / variance
        assert_rounded(ratio, np.ones_like(ratio), tolerance(K) / NOISE / np.finfo(float).eps)


def test_left_out_is_a_fresh_fit_of_the_others():
    X, y = scene(12)
    reg = make().fit(X, y)
    left = reg.leave_one_out()
    K = oracle.covariance(KERNEL, X, NOISE)
    for i in range(12):
        fresh = make().fit(np.delete(X, i, 0), np.delete(y, i))
        mean, std = fresh.predict(X[[i]], return_std=True)
        bound = tolerance(K) * np.linalg.norm(np.linalg.solve(K, y - y.mean())) * len(K)
        assert abs(left.predicted[i] - mean[0]) <= bound + 8 * np.finfo(float).eps * abs(mean[0])
        assert_rounded(left.variance[i], std[0] ** 2, tolerance(K) / NOISE / np.finfo(float).eps)


def test_constant_values_have_a_spread_of_one():
    X, _ = scene()
    for value in 0.0, 0.1, 1e9 / 3:
        reg = make().fit(X, np.full(40, value))
        mean, std = reg.predict(np.vstack([X, X + 99]), return_std=True)
        assert_rounded(mean, np.full(80, value))
        assert_rounded(std[-1], np.sqrt(1 + NOISE))
        left = reg.leave_one_out()
        assert_rounded(left.predicted, np.full(40, value))
        assert (left.variance <= (1 + NOISE) * (1 + 4 * np.finfo(float).eps)).all()


def test_one_example_is_its_own_mean():
    reg = make().fit([[0.0, 0.0]], [7.0])
    mean, std = reg.predict([[0.0, 0.0], [99.0, 0.0]], return_std=True)
    assert mean.tolist() == [7.0, 7.0]
    assert_rounded(std[1], np.sqrt(1 + NOISE))
    # Nothing is left without it.
    left = reg.leave_one_out()
    assert left.predicted.tolist() == [0.0]
    assert_rounded(left.variance, [1 + NOISE])


def test_an_emptied_model_lives_on():
    for columns in None, 2:
        X, Y = scene(10, columns)
        reg = make().fit(X, Y)
        reg.remove(reg.ids_)
        copy = pickle.loads(pickle.dumps(reg))
        copy.add(X, Y)
        assert_same(copy, make().fit(X, Y), X)


def test_single_precision_is_in_the_units_of_the_values():
    X, y = scene()
    single, double = make(dtype="float32").fit(X, y), make().fit(X, y)
    K, k = oracle.covariance(KERNEL, X, NOISE), KERNEL(X, X)
    T = (y - y.mean())[:, None]
    got, want = single.predict(X)[:, None], double.predict(X)[:, None]
    assert_solves(got - y.mean(), want - y.mean(), K, T, left=k, dtype=np.float32)


def test_the_choice_is_checked_and_merged_models_agree_in_it():
    X, y = scene()
    for wrong in "no", 1, None:
        with pytest.raises(
            InvalidInput, match=rf"^normalize_y={wrong!r} is neither True nor False.$"
        ):
            make(normalize_y=wrong).fit(X, y)
    one, other = make().fit(X[:20], y[:20]), make(normalize_y=False)
    other.fit(X[20:], y[20:], ids=range(20, 40))
    with pytest.raises(
        InvalidInput, match=r"^The two models differ in normalize_y: True here, False there."
    ):
        one.merge(other)
    assert len(one.ids_) == 20


def test_values_beyond_the_range_are_refused_by_every_verb():
    X, y = scene()
    for words in {}, {"normalize_y": False}:
        reg = make(**words).fit(X, y)
        before = reg.predict(X)
        for verb in (
            lambda reg=reg: reg.add(X[:1], [1e200]),
            lambda reg=reg: reg.relabel([0], [-1e200]),
            lambda reg=reg: reg.replace([0], X[:1], [1e200]),
            lambda words=words: make(**words).fit(X[:1], [1e200]),
        ):
            with pytest.raises(InvalidInput, match=r"y reaches 1e\+200; float64"):
                verb()
        np.testing.assert_array_equal(reg.predict(X), before)


@pytest.mark.parametrize("least", [5e-324, 1e-310, 1e-200, 1e-140])
def test_values_however_small_have_finite_answers(least):
    X, _ = scene(10)
    reg = make().fit(X, least * np.arange(10))
    for answer in (*reg.predict(X, return_std=True), *reg.predict(X, return_cov=True)):
        assert np.isfinite(answer).all()
    assert np.isfinite(reg.log_marginal_likelihood())
    left = reg.leave_one_out()
    assert np.isfinite(left.predicted).all()
    assert np.isfinite(left.variance).all()


def test_one_answer_at_a_time():
    X, y = scene()
    with pytest.raises(InvalidInput, match=r"^Ask for return_std or return_cov: "):
        make().fit(X, y).predict(X, return_std=True, return_cov=True)


# -- questions to a model whose targets have units ------------------------------------------------


@pytest.mark.parametrize("columns", [None, 3])
def test_contributions_and_the_mean_sum_to_the_prediction(columns):
    X, Y = scene(20, columns)
    reg, x = make().fit(X, Y), np.array([0.3, -0.2])
    found = explain(reg, x, label=None if columns is None else 1)
    y = Y if columns is None else Y[:, 1]
    want = make().fit(X, y).predict(x[None])[0]
    assert_rounded(found.score, want)
    assert_rounded(found.offset, y.mean())
    assert_rounded(found.contributions.sum() + found.offset, found.score)
    K, k = oracle.covariance(KERNEL, X, NOISE), KERNEL(X, x[None])
    without = [
        make().fit(np.delete(X, i, 0), np.delete(y, i)).predict(x[None])[0] for i in found.ids
    ]
    got = found.score_without[:, None] - y.mean()
    T = (y - y.mean())[:, None]
    assert_solves(got, np.array(without)[:, None] - y.mean(), K, T, left=np.repeat(k, 20, axis=1))


def test_variances_of_answers_are_those_of_values():
    X, y = scene(20)
    weights = np.random.default_rng(2).uniform(0.3, 3, 20)
    reg = make().fit(X, y, sample_weight=weights)
    Q = np.vstack([X[:3], X[:2] + 9])
    assert_rounded(novelty(reg, Q, "variance").values, reg.predict_variance(Q))
    # A new row weighs one; the weight of the example it is compared with does not matter.
    left, others = reg.leave_one_out().variance, ~np.eye(20, dtype=bool)
    units = [oracle.units(y[rest, None], weights[rest])[1][0] for rest in others]
    want = left + NOISE * np.square(units) * (1 - 1 / weights)
    K = oracle.covariance(KERNEL, X, NOISE / weights)
    roundings = tolerance(K) / NOISE / np.finfo(float).eps
    assert_rounded(novelty(reg, Q, "variance").left_out, want, roundings)
    found = suggest(reg, Q, 1, "variance")
    assert_rounded(found.values[0], reg.predict_variance(Q).max())
    deviation = reg.predict(Q, return_std=True)[1].max()
    assert found.reasons[0].endswith(f"standard deviation {deviation:.2g}")


def test_of_several_targets_the_mean_variance_counts():
    X, Y = scene(20, 3)
    reg = make().fit(X, Y)
    Q = np.vstack([X[:3], X[:2] + 9])
    found = novelty(reg, Q, "variance")
    assert_rounded(found.values, reg.predict_variance(Q).mean(axis=1))
    assert_rounded(found.left_out, reg.leave_one_out().variance.mean(axis=1))
    largest = reg.predict_variance(Q).mean(axis=1).max()
    assert_rounded(suggest(reg, Q, 1, "variance").values, [largest])
