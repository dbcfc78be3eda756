"""The laws of eigenspaces: of the union = merge, of the difference = split, in any order."""

from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import oracle
import pytest
import strategies
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tolerance import assert_models, assert_rounded, rounded, scatter_error

from knowmore import Eigenspace, Truncation
from knowmore.subspaces import spectrum

# Rows that are left may be all alike; then the model says that it could not tell if they weren't.
pytestmark = pytest.mark.filterwarnings("ignore::knowmore.errors.LostVariance")


def parts_of(X, rng):
    """X cut into consecutive parts of random sizes, at least one row each."""
    cuts = np.sort(rng.choice(np.arange(1, len(X)), rng.integers(0, len(X)), replace=False))
    return np.split(X, cuts) if len(X) > 1 else [X]


def merged_by_a_random_tree(models, rng):
    models = list(models)
    while len(models) > 1:
        i, j = rng.choice(len(models), 2, replace=False)
        one, other = models[i], models[j]
        models = [m for k, m in enumerate(models) if k not in (i, j)] + [one + other]
    return models[0]


@given(strategies.row_tables())
def test_the_model_of_rows_is_their_scatter(X):
    assert_models(Eigenspace.of(X), X)


@pytest.mark.parametrize("route", ["squares", "values"])
@pytest.mark.parametrize("shape", [(40, 6), (6, 40), (20, 20)])
def test_both_routes_give_the_same(route, shape, monkeypatch):
    # Where nothing is well above what squaring loses, or everything is.
    monkeypatch.setattr(spectrum, "_SQUARED", 2.0 if route == "values" else 0.0)
    X = np.random.default_rng(0).normal(size=shape) * np.logspace(0, -2, shape[1])
    few = Eigenspace.of(X, 4)
    _, S = oracle.scatter(X)
    variances = np.linalg.eigvalsh(S)[::-1] / len(X)
    assert_rounded(few.variances, variances[:4], 100)
    assert_rounded(few.discarded, variances[4:].sum(), 100, variances.sum())
    if route == "values":
        assert_models(Eigenspace.of(X), X)


@given(strategies.row_tables(), strategies.seeds)
def test_any_tree_and_any_order_is_the_batch(X, seed):
    rng = np.random.default_rng(seed)
    parts = parts_of(X[rng.permutation(len(X))], rng)
    assert_models(merged_by_a_random_tree(map(Eigenspace.of, parts), rng), X, edits=1 + len(parts))


@given(strategies.row_tables(), strategies.seeds)
def test_any_batch_size_is_the_batch(X, seed):
    first, *others = parts_of(X, np.random.default_rng(seed))
    model = Eigenspace.of(first)
    for part in others:
        model = model.add_rows(part)
    assert_models(model, X, edits=1 + len(others))


@given(strategies.row_tables())
def test_one_row_at_a_time_is_the_batch(X):
    model = Eigenspace.of(X[:1])
    for x in X[1:]:
        model = model.add_rows(x[None])
    assert_models(model, X, edits=len(X))


def test_merging_commutes_to_the_last_bit_in_count_and_mean():
    X = np.random.default_rng(0).normal(size=(30, 4))
    a, b = Eigenspace.of(X[:10]), Eigenspace.of(X[10:])
    np.testing.assert_array_equal((a + b).mean, (b + a).mean)
    assert_models(a + b, X, edits=2)
    assert_models(b + a, X, edits=2)


@given(strategies.row_tables(), strategies.seeds)
def test_splitting_undoes_merging(X, seed):
    rng = np.random.default_rng(seed)
    parts = parts_of(X, rng)
    models = [Eigenspace.of(part) for part in parts]
    whole = merged_by_a_random_tree(models, rng)
    left, rows = whole, X
    for model, part in zip(models[:-1], parts[:-1], strict=True):
        left, rows = left - model, rows[len(part) :]
        assert_models(left, rows, held=X, edits=2 * len(parts))


@settings(max_examples=50)
@given(strategies.row_tables(), strategies.seeds)
def test_any_history_of_rows_is_the_batch_of_those_left(X, seed):
    rng = np.random.default_rng(seed)
    inside, outside = list(range(len(X))), []
    model = Eigenspace.of(X)
    for edit in range(20):
        forget = len(inside) > 1 and (not outside or rng.random() < 0.5)
        pool = inside if forget else outside
        if not pool:
            continue
        most = len(inside) - 1 if forget else len(outside)
        moved = rng.choice(pool, rng.integers(1, most + 1), replace=False).tolist()
        model = model.remove_rows(X[moved]) if forget else model.add_rows(X[moved])
        source, target = (inside, outside) if forget else (outside, inside)
        source[:] = [i for i in source if i not in moved]
        target += moved
        assert_models(model, X[inside], held=X, edits=edit + 2)


def truncated(X, rng, rank):
    """A model kept at `rank` while parts of X arrive."""
    first, *others = parts_of(X, rng)
    model = Eigenspace.of(first, rank)
    for i, part in enumerate(others):
        model = (
            model.merge(Eigenspace.of(part, rank), rank) if i % 2 else model.add_rows(part, rank)
        )
    return model


@given(strategies.row_tables(), strategies.seeds, st.integers(0, 4))
def test_what_was_discarded_is_the_trace_error_of_merging(X, seed, rank):
    model = truncated(X, np.random.default_rng(seed), rank)
    _, S = oracle.scatter(X)
    missing = S - len(X) * model.covariance()
    bound = X.shape[1] * scatter_error(X, edits=1 + len(X))
    assert abs(np.trace(missing) - len(X) * model.discarded) <= bound
    assert np.linalg.eigvalsh(missing).min() >= -bound
    assert len(model.components) <= rank


# The mean of a constant feature is exact: it must not cost a direction of 1e-4 of the largest.
_CONSTANT = np.array([[0.715, 0.625], [-0.808, -0.697], [0.715, 0.625], [-0.95, -0.82]])


@pytest.mark.slow
@settings(max_examples=200)
@example(np.insert(_CONSTANT, 0, 3.0, axis=1), 65, 2)
@given(strategies.row_tables(), strategies.seeds, st.integers(0, 4))
def test_rows_that_are_in_a_truncated_model_can_always_be_taken_out(X, seed, rank):
    """Any history keeps count, mean and whole variance of the rows, without a false alarm."""
    rng = np.random.default_rng(seed)
    inside, outside = list(range(len(X))), []
    model = Eigenspace.of(X, rank)
    for edit in range(12):
        forget = len(inside) > 1 and (not outside or rng.random() < 0.5)
        pool = inside if forget else outside
        if not pool:
            continue
        most = len(inside) - 1 if forget else len(outside)
        moved = rng.choice(pool, rng.integers(1, most + 1), replace=False).tolist()
        part = Eigenspace.of(X[moved], None if edit % 2 else rank)
        model = model.split(part, rank) if forget else model.merge(part, rank)
        source, target = (inside, outside) if forget else (outside, inside)
        source[:] = [i for i in source if i not in moved]
        target += moved
        _, S = oracle.scatter(X[inside])
        error = abs(np.trace(S) - model.n_samples * model.total_variance)
        assert error <= X.shape[1] * scatter_error(X[inside], X, edits=edit + 2)
        assert (model.variances > 0).all()
        assert len(model.variances) <= rank


@given(strategies.row_tables(), strategies.seeds, st.integers(0, 4))
def test_splitting_a_truncated_model_keeps_count_mean_and_whole_variance(X, seed, rank):
    rng = np.random.default_rng(seed)
    model = truncated(X, rng, rank)
    k = rng.integers(len(X))
    left = model.remove_rows(X[:k], rank) if k else model
    mean, S = oracle.scatter(X[k:])
    assert left.n_samples == len(X) - k
    assert_rounded(left.mean, mean, 8 * len(X) * len(X) / len(S), abs(X).max())
    error = abs(np.trace(S) - left.n_samples * left.total_variance)
    assert error <= X.shape[1] * scatter_error(X[k:], X, edits=2 + len(X))


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("columns", [4, 40])
def test_huge_and_tiny_scales_are_as_good_as_one(scale, columns):
    X = np.random.default_rng(0).normal(size=(30, columns)) * np.logspace(0, -2, columns) + 1
    a, b = Eigenspace.of(scale * X[:20]), Eigenspace.of(scale * X[20:])
    for model, rows in (
        (a + b, X),
        (a + b - b, X[:20]),
        ((a + b).remove_rows(scale * X[:9]), X[9:]),
    ):
        natural = Eigenspace(
            model.n_samples, model.mean / scale, model.components, model.variances / scale / scale
        )
        assert_models(natural, rows, held=X, edits=4)


@pytest.mark.parametrize("scale", [1e160, 1e-160])
def test_scales_whose_squares_do_not_exist_are_an_error(scale):
    X = scale * np.random.default_rng(0).normal(size=(5, 3))
    with pytest.raises(ValueError, match=r"The data vary by .*beyond double precision\. Scale"):
        Eigenspace.of(X)


def test_overflowing_sums_are_an_error():
    with pytest.raises(ValueError, match="beyond double precision"):
        Eigenspace.of(np.ones((3, 2))).add_rows(np.full((1, 2), 1e300))
    with pytest.raises(ValueError, match="too large for double precision"):
        Eigenspace.of(np.full((3, 2), 1e308))


@pytest.mark.parametrize("rows", [1, 5])
def test_rows_that_are_all_alike_have_a_mean_and_no_direction(rows):
    model = Eigenspace.of(np.full((rows, 3), 7.0))
    assert (model.n_samples, model.mean.tolist(), len(model.components)) == (rows, [7] * 3, 0)
    two = model + Eigenspace.of(np.full((1, 3), 8.0))
    assert_models(two, np.array([[7.0] * 3] * rows + [[8.0] * 3]))
    back = two - Eigenspace.of(np.full((1, 3), 8.0))
    assert_models(back, np.full((rows, 3), 7.0), held=np.full((rows + 1, 3), 8.0), edits=3)


def test_values_are_frozen_and_inputs_are_neither_changed_nor_kept():
    X = np.random.default_rng(0).normal(size=(20, 4))
    before = X.copy()
    model = Eigenspace.of(X)
    kept = model.covariance()
    other = model.add_rows(X + 1).remove_rows(X[:5]).merge(model).truncate(2)
    np.testing.assert_array_equal(X, before)
    X[:] = 0
    np.testing.assert_array_equal(model.covariance(), kept)
    for array in (model.mean, model.components, model.variances, other.components):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    for copy in deepcopy(model), pickle.loads(pickle.dumps(model)):
        np.testing.assert_array_equal(copy.covariance(), kept)
        assert copy.discarded == model.discarded
        for mine, theirs in zip(copy.rounding, model.rounding, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        assert not copy.components.flags.writeable
        assert not np.shares_memory(copy.components, model.components)
    mine = np.zeros(2)
    Eigenspace(1, mine, np.zeros((0, 2)), np.zeros(0))
    mine[0] = 1


@pytest.mark.slow
def test_a_window_of_many_steps_stays_at_rounding():
    X = np.random.default_rng(0).normal(size=(1100, 6)) @ np.diag([9, 3, 1, 1, 0.1, 0.01]) + 2
    model = Eigenspace.of(X[:100])
    for i in range(100, 1100):
        model = model.add_rows(X[i : i + 1]).remove_rows(X[i - 100 : i - 99])
    # Errors of a thousand steps add up like a random walk.
    assert_models(model, X[1000:], held=X[999:], edits=np.sqrt(2000))


def test_truncation_rules_take_the_fewest():
    variances = np.array([8.0, 1.0, 0.6, 0.4])
    for rule, count in (
        (Truncation(), 4),
        (Truncation(rank=2), 2),
        (Truncation(rank=0), 0),
        (Truncation(rank=9), 4),
        (Truncation(fraction=0.9), 2),
        (Truncation(fraction=0.91), 3),
        (Truncation(fraction=1.0), 4),
        (Truncation(tolerance=0.1), 2),
        (Truncation(rank=3, fraction=0.99, tolerance=0.06), 3),
    ):
        assert rule.count(variances) == count
    assert Truncation(fraction=0.9).count(variances, dropped=10.0) == 4


def test_a_fraction_counts_what_was_dropped_before():
    X = np.random.default_rng(0).normal(size=(200, 6)) * [5, 4, 3, 2, 1, 1]
    model = Eigenspace.of(X).truncate(4)
    part = Truncation(fraction=0.6)
    assert len(model.truncate(part).variances) == len(Eigenspace.of(X).truncate(part).variances)
    assert model.truncate(part).total_variance == rounded(model.total_variance)
