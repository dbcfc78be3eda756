"""Features of unequal scale: each is known as well as if it were alone."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from tolerance import assert_models_each_feature, assert_rounded

from knowmore import Eigenspace, EigenspaceLDA, EigenspacePCA, SubspaceMonitor, Truncation
from knowmore.errors import LostVariance
from knowmore.subspaces.monitor import Window, leading
from knowmore.subspaces.spectrum import orthogonal_rows

EPS = np.finfo(float).eps


def table(rng, n, scales, offset=0.0):
    """Correlated columns of these scales."""
    D = len(scales)
    mixed = np.eye(D) + 0.5 * rng.normal(size=(D, D)) * rng.integers(2)
    return (rng.normal(size=(n, D)) @ mixed + offset) * scales


def edited(model, rows, forget, rng):
    if rng.random() < 0.5:
        return model.remove_rows(rows) if forget else model.add_rows(rows)
    other = Eigenspace.of(rows)
    return model - other if forget else model + other


def history(X, rng, edits, least):
    """Models and the rows that they hold, `least` at least."""
    inside, outside, model = list(range(len(X))), [], Eigenspace.of(X)
    for _ in range(edits):
        forget = len(inside) > least and (not outside or rng.random() < 0.5)
        source, target = (inside, outside) if forget else (outside, inside)
        most = len(source) - least if forget else len(source)
        if most < 1:
            continue
        moved = rng.choice(source, rng.integers(1, most + 1), replace=False).tolist()
        model = edited(model, X[moved], forget, rng)
        source[:] = [i for i in source if i not in moved]
        target += moved
        yield model, X[inside]


@pytest.mark.slow(fast=1)
@pytest.mark.parametrize("block", range(4))
def test_histories_at_full_rank(block):
    """Two thousand in all: never refused, never a direction less, right in each feature."""
    for seed in range(500 * block, 500 * (block + 1)):
        rng = np.random.default_rng(seed)
        D = int(rng.integers(1, 6))
        scales = 10 ** rng.uniform(-3, 7, D)
        X = table(rng, int(rng.integers(D + 2, 30)), scales, rng.choice([0, 1, 100]))
        models = list(history(X, rng, 5, least=D + 1))
        assert all(len(model.variances) == D for model, _ in models)
        assert_models_each_feature(*models[-1], X, edits=6)


@pytest.mark.slow(fast=1)
@pytest.mark.filterwarnings("ignore::knowmore.errors.LostVariance")
@pytest.mark.parametrize("decay", [0, 4, 7])
def test_rows_that_are_held_can_be_taken_out_down_to_the_last(decay):
    """Few rows span few directions, and what is wrong with these is lost at the next removal."""
    for seed in range(150):
        rng = np.random.default_rng(seed)
        D = int(rng.integers(2, 6))
        X = rng.normal(size=(6, D)) * np.logspace(0, -decay, D)
        X = X @ np.linalg.qr(rng.normal(size=(D, D)))[0] * 10 ** rng.uniform(-3, 7, D)
        for model, rows in history(X, rng, 12, least=1):
            _, S = oracle.precise_scatter(rows)
            error = abs(len(rows) * model.covariance() - S)
            known = np.sqrt(np.broadcast_to(model.rounding.scatters, D))
            size = np.sqrt(np.diag(S).astype(float))
            assert (error <= 64 * np.outer(known, known) + 100 * EPS * np.outer(size, size)).all()


@pytest.mark.parametrize("way", ["of", "merge", "rows", "split"])
@pytest.mark.parametrize("scales", [(1e12, 1, 1e-6), (1, 1e12, 0.5), (1e12, 1e12, 1)])
def test_a_trillion_to_one_against_fractions(scales, way):
    rng = np.random.default_rng(0)
    X = table(rng, 12, np.array(scales))
    model = {
        "of": lambda: Eigenspace.of(X),
        "merge": lambda: Eigenspace.of(X[:5]) + Eigenspace.of(X[5:]),
        "rows": lambda: Eigenspace.of(X[:1]).add_rows(X[1:7]).add_rows(X[7:]),
        "split": lambda: Eigenspace.of(np.vstack([X, -X])).remove_rows(-X),
    }[way]()
    _, S = oracle.exact_scatter(X)
    lengths = np.sqrt(np.diag(S))
    got = 12 * model.covariance() / lengths / lengths[:, None]
    assert_rounded(got, S / lengths / lengths[:, None], 2 * (100 + 32**2))
    P = model.components
    assert_rounded(P @ P.T, np.eye(3), 32**2, 1.0)


def test_rows_are_made_orthogonal_by_turning_them():
    rng = np.random.default_rng(0)
    B = rng.normal(size=(8, 12)) * np.logspace(9, -9, 12)
    rows = orthogonal_rows(B)
    lengths = np.linalg.norm(rows, axis=1)
    assert (np.diff(lengths) <= 0).all()
    P = rows / lengths[:, None]
    assert_rounded(P @ P.T, np.eye(8), 32**2, 1.0)
    columns = np.linalg.norm(B, axis=0)
    scaled, wanted = rows / columns, B / columns
    assert_rounded(scaled.T @ scaled, wanted.T @ wanted, 1000)
    assert orthogonal_rows(B[:0]).shape == (0, 12)


# -- what users met --------------------------------------------------------------------------------


def test_forgetting_most_rows_keeps_small_features():
    X = np.random.default_rng(0).normal(size=(2000, 3)) * [1e6, 1, 0.5]
    pca = EigenspacePCA().fit(X).forget(X[:1900])
    assert_models_each_feature(pca.eigenspace_, X[1900:], X, edits=2)


def test_a_table_of_salary_age_and_a_flag():
    rng = np.random.default_rng(0)
    n = 100_000
    X = np.column_stack(
        [rng.lognormal(11, 0.5, n), rng.integers(18, 70, n), rng.random(n) < 0.01]
    ).astype(float)
    pca = EigenspacePCA().fit(X).forget(X[1000:])
    assert_models_each_feature(pca.eigenspace_, X[:1000], X, edits=2)


def test_discriminants_of_unequal_features_survive_forgetting():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=2000)
    X = (rng.normal(size=(2000, 3)) + np.outer(y, [0, 0, 3])) * [1e6, 1, 0.5]
    lda = EigenspaceLDA().fit(X, y).forget(X[:1900], y[:1900])
    fresh = EigenspaceLDA().fit(X[1900:], y[1900:])
    np.testing.assert_array_equal(lda.predict(X), fresh.predict(X))
    assert lda.score(X, y) > 0.9
    scores = fresh.decision_function(X)
    assert_rounded(lda.decision_function(X), scores, 20 * 32**2)


def outlier(size, names=None):
    """A model of a hundred rows that met a typing error and forgot it."""
    X = np.random.default_rng(0).normal(size=(100, 3))
    wrong = np.array([[size, 0.0, 0.0]])
    return X, Eigenspace.of(X).with_names(names).add_rows(wrong), wrong


@pytest.mark.parametrize("size", [1e4, 1e6])
def test_a_typing_error_that_is_not_too_large_leaves_all_features(size):
    X, model, wrong = outlier(size)
    assert_models_each_feature(model.remove_rows(wrong), X, np.vstack([X, wrong]), edits=3)


@pytest.mark.parametrize(
    ("names", "word"), [(None, r"feature\(s\) 0:"), ([*"abc"], r"feature\(s\) 'a':")]
)
@pytest.mark.parametrize("size", [1e10, 1e13])
def test_a_typing_error_that_swallows_a_feature_is_reported_and_counted(size, names, word):
    X, model, wrong = outlier(size, names)
    for take in (lambda: model.remove_rows(wrong), lambda: model - Eigenspace.of(wrong)):
        with pytest.warns(LostVariance, match=rf"The variance of the 100 rows .* in {word}"):
            left = take()
        assert len(left.variances) == 2
        missing = np.trace(np.cov(X.T, bias=True)) - left.total_variance
        assert 0 < missing < left.lost
        assert f"lost {left.lost:.3g}" in repr(left)
        # The other two are as they were.
        S = np.cov(X.T, bias=True)[1:, 1:]
        assert_rounded(left.covariance()[1:, 1:], S, 4 * (100 + 32**2))
        more = left + left
        assert_rounded(more.lost, left.lost)
        assert len(left.add_rows(X).variances) == 3


@pytest.mark.filterwarnings("error::knowmore.errors.LostVariance")
def test_a_warning_that_is_an_error_leaves_the_estimator_as_it_was():
    X, _, wrong = outlier(1e10)
    pca = EigenspacePCA().fit(np.vstack([X, wrong]))
    before = pca.eigenspace_
    with pytest.raises(LostVariance):
        pca.forget(wrong)
    assert pca.eigenspace_ is before


@pytest.mark.filterwarnings("error::knowmore.errors.LostVariance")
def test_a_count_that_is_zero_in_all_remaining_rows_gives_no_warning():
    rng = np.random.default_rng(0)
    X = rng.poisson(1, size=(60, 5)).astype(float)
    X[10:, 2] = 0
    left = Eigenspace.of(X).remove_rows(X[:10])
    assert len(left.variances) == 4
    assert not left.components[:, 2].any() or abs(left.components[:, 2]).max() < np.sqrt(EPS)


def test_a_feature_that_became_constant_gives_a_warning_unless_it_is_zero():
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[10:, 2] = 0.3
    with pytest.warns(LostVariance, match=r"up to .* \(`lost`\) in feature\(s\) 2: that"):
        left = Eigenspace.of(X).remove_rows(X[:10])
    assert len(left.variances) == 2


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 / 3])
@pytest.mark.parametrize("n", [3, 5000])
def test_a_constant_feature_is_no_direction_however_small_the_others(value, n):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=n) * 1e-9, np.full(n, value), rng.normal(size=n) * 1e5])
    model = Eigenspace.of(X)
    for _ in range(3):
        assert len(model.variances) == 2
        assert not model.components[:, 1].any()
        model = model.merge(Eigenspace.of(X[: n // 2])).add_rows(X[-1:]).remove_rows(X[-1:])


def test_a_truncated_model_keeps_its_small_directions():
    X = np.random.default_rng(0).normal(size=(2000, 4)) * [1e7, 10, 1, 1e-3]
    few = Eigenspace.of(X, 3)
    left = few.remove_rows(X[:1900], 3)
    whole = Eigenspace.of(X[1900:])
    assert len(left.variances) == 3
    # What was dropped is a part of the variance that is kept; the rest is roundings.
    part = few.discarded / few.variances[-1] * 2000 / 100
    assert (abs(left.variances / whole.variances[:3] - 1) <= 2 * part + 2000 * 32**2 * EPS).all()
    merged = Eigenspace.of(X[:1000], 3).merge(Eigenspace.of(X[1000:], 3), 3)
    assert (abs(merged.variances / few.variances - 1) <= 2 * part + 2000 * EPS).all()


def test_rows_that_were_never_in_are_refused_by_a_small_feature():
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1e9, 1, 1e-3]
    odd = np.array([0, 0, 1e-3])
    with pytest.raises(ValueError, match="not all in the model"):
        Eigenspace.of(X).remove_rows(X[:1] + 1000 * odd)
    few = Eigenspace.of(X[:2])
    with pytest.raises(ValueError, match="not all in the model"):
        few.remove_rows(X[:1] + odd)


# -- streams ---------------------------------------------------------------------------------------


def test_a_window_of_unequal_features_slides_without_being_rebuilt(monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 4)) * [1e7, 1e3, 1, 1e-3]
    window, built = Window.of(X[:50], 50), []
    of = Eigenspace.of.__func__
    monkeypatch.setattr(
        Eigenspace, "of", classmethod(lambda cls, *args: built.append(1) or of(cls, *args))
    )
    for i in range(50, 300):
        window = window.push(X[i : i + 1])
    assert not built
    assert_models_each_feature(window.eigenspace, X[250:], X, edits=np.sqrt(500))


def test_a_monitor_keeps_the_directions_of_small_features():
    X = np.random.default_rng(0).normal(size=(600, 4)) * [1e8, 1e7, 1, 0.5]
    monitor = SubspaceMonitor(3, 40).fit(X)
    assert len(monitor.reference_.eigenspace.variances) == 3
    assert len(leading(Eigenspace.of(X), 4).variances) == 4
    assert not monitor.observe(X[:60]).changes.any()


def test_a_tolerance_is_still_relative_to_the_largest_variance():
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1e6, 1, 0.5]
    assert len(Eigenspace.of(X, Truncation(tolerance=1e-6)).variances) == 1


# -- what an oracle of others found ----------------------------------------------------------------


def test_rows_learnt_after_a_forget_are_not_mixed_with_rounding():
    """Two features that are zero in all rows left had 1e-15 there, and took another along."""
    X = np.array([[0, 1, 1], [0, 0, 0], [1, 0, 0], [1, 0, 0.0]])
    pca = EigenspacePCA().fit(X[:3]).forget(X[:1]).partial_fit(X[3:])
    assert_rounded(pca.get_covariance(), np.cov(X[1:].T), 3, 1.0)


def test_a_feature_that_comes_late_is_kept():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    flag = (np.arange(2000) >= 1000) * np.where(rng.random(2000) < 0.9, y, 1 - y)
    X = np.column_stack([rng.normal(5e8, 1.5e8, 2000), flag])
    held = np.r_[0:1000, 1500:2000]
    lda = EigenspaceLDA().fit(X[:1000], y[:1000]).partial_fit(X[1000:], y[1000:])
    lda.forget(X[1000:1500], y[1000:1500])
    fresh = EigenspaceLDA().fit(X[held], y[held])
    np.testing.assert_array_equal(lda.predict(X), fresh.predict(X))


def test_few_rows_for_a_moment_lose_no_feature():
    for seed in range(50):
        X = np.random.default_rng(seed).normal(size=(60, 5)) * [1e6, 3e5, 1e3, 1, 1e-2]
        pca = EigenspacePCA().fit(X[:20]).forget(X[3:20]).forget(X[2:3])
        pca.partial_fit(X[20:]).forget(X[:2])
        sizes = X.std(axis=0)
        units = np.outer(sizes, sizes)
        # The rows that came and went are as many as those that stay.
        assert_rounded(pca.get_covariance() / units, np.cov(X[20:].T) / units, 60**2, 1.0)


@pytest.mark.parametrize(("rows", "spread"), [(1000, 100), (1000, 3600), (40, 1000)])
def test_rows_with_a_time_stamp_can_be_forgotten(rows, spread):
    for seed in range(30):
        X = np.random.default_rng(seed).normal(size=(rows, 3)) * [spread, 1, 1] + [1.7e9, 0, 0]
        assert EigenspacePCA().fit(X).forget(X[1:]).n_samples_ == 1
        assert EigenspacePCA().fit(X).forget(X[2:]).n_samples_ == 2


def table_of(kind, rng):
    columns, n = int(rng.integers(2, 9)), int(rng.integers(3, 60))
    X = rng.normal(size=(n, columns))
    if kind == "constant":
        X[:, rng.integers(columns)] = rng.normal()
    if kind == "repeated rows":
        X = X[rng.integers(0, max(2, n // 2), n)]
    if kind == "equal columns":
        X[:, 0] = X[:, 1]
    if kind == "flags":
        X = (abs(X) > 1.2).astype(float)
    scales = 10 ** rng.uniform(-3, 7, columns)
    offset = 10 ** rng.uniform(0, 6, columns) if kind == "offsets" else 0.0
    return (X + offset) * scales


@pytest.mark.slow(fast=2)
@pytest.mark.parametrize(
    "kind", ["constant", "repeated rows", "equal columns", "flags", "offsets"], ids=str
)
@pytest.mark.filterwarnings("ignore::knowmore.errors.LostVariance")
def test_histories_of_tables_as_they_are(kind):
    """Scatters in units of the largest that each feature ever had; nothing is refused."""
    for seed in range(60):
        rng = np.random.default_rng([seed, 11])
        X = table_of(kind, rng)
        n = len(X)
        held = rng.permutation(n)[: max(2, int(rng.integers(2, n + 1)))].tolist()
        space, peak = Eigenspace.of(X[held]), np.zeros(X.shape[1])
        for _ in range(6):
            Y = X[held].astype(np.longdouble)
            peak = np.maximum(peak, ((Y - Y.mean(axis=0)) ** 2).sum(axis=0))
            out = np.setdiff1d(np.arange(n), held).tolist()
            if rng.random() < 0.55 and len(held) > 1:
                gone = rng.choice(held, int(rng.integers(1, len(held))), replace=False)
                space, held = space.remove_rows(X[gone]), np.setdiff1d(held, gone).tolist()
            elif out:
                new = rng.choice(out, int(rng.integers(1, len(out) + 1)), replace=False)
                space, held = space.add_rows(X[new]), held + new.tolist()
            Y = X[held].astype(np.longdouble)
            Y -= Y.mean(axis=0)
            scatter = (Y.T @ Y).astype(float)
            sizes = np.sqrt(np.maximum(peak, np.diag(scatter)).astype(float))
            sizes[sizes == 0] = np.inf
            units = np.outer(sizes, sizes)
            # Each of the edits rounds sums of up to n rows.
            rounding = 6 * n**2 * (1 + abs(X).max(axis=0) / np.where(sizes > 0, sizes, 1)).max()
            assert_rounded(len(held) * space.covariance() / units, scatter / units, rounding, 1.0)
