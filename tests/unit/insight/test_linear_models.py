"""Questions to linear models about rows given again: answers equal refits."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref

import numpy as np
import oracle
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import expit, log_ndtr, ndtri_exp
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_digits
from sklearn.gaussian_process.kernels import DotProduct
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from tolerance import assert_rounded, assert_solves

from knowmore import (
    GPClassifier,
    GPRegressor,
    KnowmoreError,
    LinearGPClassifier,
    LinearGPRegressor,
    LSSVMClassifier,
    living,
)
from knowmore.errors import InvalidInput, InvalidType, NoExamples, NotFitted
from knowmore.insight import (
    SuggestQuery,
    calibrate,
    due,
    explain,
    novelty,
    reliability,
    suggest,
    suspects,
    transfer,
    tune,
)
from knowmore.kernels import default_kernel
from knowmore.linalg import Grid
from knowmore.models import class_probabilities
from knowmore.models.probabilities import best_temperature, mislabelling

X, Y = load_digits(return_X_y=True)
NOISE, N = 20.0, 150
# Pixels are whole numbers, so the grid changes none of them.
GRID = Grid.covering(X)
ROWS, LABELS = X[:N], Y[:N].copy()
LABELS[[17, 90]] = 3, 6
WEIGHTS = np.random.default_rng(0).integers(1, 5, N) / 2


def linear(intercept=True, noise=NOISE):
    return LinearGPClassifier(noise, resolution=GRID, intercept=intercept)


def system(weights, intercept, rows=ROWS):
    """A, (D, D), of the rows about their mean, and these rows, (D, n)."""
    mean = np.average(rows, axis=0, weights=weights) if intercept else 0
    Z = (rows - mean).T
    return (Z * weights) @ Z.T + NOISE * np.eye(len(Z)), Z


def refits(intercept, weights):
    """Scores (n, M) and variances (n,) of the rows, each by a model that never saw it."""
    scores, variance = np.empty((N, 10)), np.empty(N)
    for i in range(N):
        others = np.arange(N) != i
        clf = linear(intercept).fit(ROWS[others], LABELS[others], weights[others])
        scores[i] = clf.decision_function(ROWS[[i]])[0]
        variance[i] = clf.predict_variance(ROWS[[i]])[0]
    return scores, variance


@pytest.fixture(scope="module", params=["plain", "without intercept", "weighted"])
def told(request):
    """A model, the weights of its rows, and what refits say."""
    weights = WEIGHTS if request.param == "weighted" else np.ones(N)
    intercept = request.param != "without intercept"
    clf = linear(intercept).fit(ROWS, LABELS, weights)
    return clf, weights, refits(intercept, weights)


def assert_left_out(got, want, clf, weights):
    """Are these scores, variances or functions of them equal, as far as leaving out allows?"""
    A, Z = system(weights, clf.intercept)
    # Leaving a row out divides by one minus its leverage.
    free = 1 - weights * clf.model_.leverage(ROWS)
    B = np.tile(np.linalg.norm(Z * weights, axis=1)[:, None], got.shape[1])
    assert_solves(got * free[:, None], want * free[:, None], A, B, left=Z)


def logs_of(scores, variance):
    """Moderated left-out scores in which the others of its class stand in for each row."""
    class_support = (scores + 1) / 2
    return oracle.moderated(oracle.completed(scores, class_support, LABELS), variance)


# -- suspects --------------------------------------------------------------------------------------


def test_suspects_are_those_of_refits(told):
    clf, weights, (scores, variance) = told
    found = suspects(clf, ROWS, LABELS, sample_weight=weights)
    assert_left_out(found.scores, scores, clf, weights)
    assert_left_out(found.variance[:, None] / NOISE, variance[:, None] / NOISE, clf, weights)
    margin = scores.max(axis=1) - scores[np.arange(N), LABELS]
    logs = logs_of(scores, variance)
    odds = mislabelling(logs, LABELS).odds(logs, LABELS)
    ranked = [i for i in np.argsort(-odds) if expit(odds[i]) >= 0.2 and margin[i] > 0]
    assert set(ranked[:2]) == {17, 90}
    assert found.ids.tolist() == found.rows.tolist() == ranked
    assert found.labels.tolist() == LABELS[ranked].tolist()
    assert found.preferred.tolist() == scores[ranked].argmax(axis=1).tolist()
    assert len(found.silent) == 0
    assert found.for_cleanlab()["labels"].tolist() == LABELS.tolist()
    np.testing.assert_array_equal(found.for_cleanlab()["pred_probs"], found.probabilities)
    assert repr(found).startswith(f"Suspects: {len(ranked)} of {N} labels are suspect\n")


def test_suspects_of_some_rows_are_among_those_of_all():
    clf = linear().fit(ROWS, LABELS)
    found, some = suspects(clf, ROWS, LABELS), suspects(clf, ROWS[:50], LABELS[:50])
    assert 17 in some.ids
    assert_rounded(some.scores, found.scores[:50])


def test_rows_may_be_sparse_mapped_or_a_table_with_names(tmp_path):
    big, labels = np.tile(X, (3, 1)), np.tile(Y, 3)
    clf = linear().fit(big, labels)
    want = suspects(clf, big, labels)
    mapped = np.lib.format.open_memmap(tmp_path / "rows.npy", "w+", np.uint8, big.shape)
    mapped[:] = big
    for rows in (sparse.csr_matrix(big), mapped):
        found = suspects(clf, rows, labels)
        np.testing.assert_array_equal(found.ids, want.ids)
        reference = novelty(clf, rows[:9], reference=(rows, labels))
        assert reference.threshold() == novelty(clf, X[:9], reference=(big, labels)).threshold()
        picked, wanted = (suggest(clf, pool, 3) for pool in (rows[:3000], big[:3000]))
        assert picked.indices.tolist() == wanted.indices.tolist()
        assert calibrate(clf, rows, labels).temperature == calibrate(clf, big, labels).temperature
        exact = explain(clf, rows[[5]] if sparse.issparse(rows) else rows[5])
        np.testing.assert_array_equal(exact.contributions, explain(clf, big[5]).contributions)
    names = [f"row {i}" for i in range(len(big))]
    for found in (
        suspects(clf, big, labels, ids=names),
        suspects(clf.fit(pd.DataFrame(big, names), labels), pd.DataFrame(big, names), labels),
    ):
        assert found.ids.tolist() == [names[i] for i in want.ids]
        table = found.to_pandas()
        assert table.index.tolist() == found.ids.tolist()
        assert "contradicting" not in table
    mixed = suspects(clf, pd.DataFrame(big), labels, ids=["a", *range(1, len(big))])
    assert mixed.ids.tolist() == want.ids.tolist()


# -- novelty ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["variance", "probability"])
def test_thresholds_are_those_of_refits(told, method):
    clf, weights, (scores, variance) = told
    found = novelty(clf, X[N : N + 40], method, reference=(ROWS, LABELS, weights))

    def values(mean, variance):
        if method == "variance":
            return variance
        return log_ndtr(-mean.max(axis=1) / np.sqrt(variance))

    rows = X[N : N + 40]
    want = values(clf.decision_function(rows), clf.predict_variance(rows))
    assert_rounded(found.values, want)
    usual = values(scores, variance)
    assert_left_out(found.left_out[:, None] / NOISE, usual[:, None] / NOISE, clf, weights)
    assert found.threshold(0.9) == np.quantile(found.left_out, 0.9)
    np.testing.assert_array_equal(found.unknown(0.9), found.values > found.threshold(0.9))
    assert found.to_pandas(0.9)["unknown"].tolist() == found.unknown(0.9).tolist()


def spread_within(rows, labels, weights, Q):
    """The squared distances (m,) of Q to the nearest class mean, and to the mean of all.

    The first in the spread within the classes, the second in that of all, each with the noise
    added; both with the uncertainty of the mean.
    """
    names = np.unique(labels)
    means = np.array(
        [np.average(rows[labels == c], axis=0, weights=weights[labels == c]) for c in names]
    )
    counts = np.array([weights[labels == c].sum() for c in names])

    def squared(S, Z, n):
        P = np.linalg.inv(S + NOISE * np.eye(S.shape[0]))
        return np.einsum("ij,jk,ik->i", Z, P, Z) + 1 / n

    apart = rows - means[np.searchsorted(names, labels)]
    within = (apart.T * weights) @ apart
    near = [squared(within, Q - m, n) for m, n in zip(means, counts, strict=True)]
    centre = np.average(rows, axis=0, weights=weights)
    total = ((rows - centre).T * weights) @ (rows - centre)
    return np.min(near, axis=0), squared(total, Q - centre, weights.sum())


@pytest.mark.parametrize("weights", [np.ones(N), WEIGHTS], ids=["plain", "weighted"])
def test_the_default_is_the_excess_of_a_mahalanobis_distance(weights):
    clf, rows = linear().fit(ROWS, LABELS, weights), X[N : N + 40]
    near, total = spread_within(ROWS, LABELS, weights, rows)
    found = novelty(clf, rows, reference=(ROWS, LABELS, weights))
    want = NOISE * (near - total + (1 + total) / 32)
    A, _ = system(weights, True)
    assert_rounded(found.values, want, 100 * np.linalg.cond(A), abs(want).max())
    for i in range(0, N, 19):
        others = np.arange(N) != i
        near, total = spread_within(ROWS[others], LABELS[others], weights[others], ROWS[[i]])
        (want,) = NOISE * (near - total + (1 + total) / 32)
        assert_rounded(found.left_out[i], want, 1000 * np.linalg.cond(A), want)


@pytest.mark.parametrize("method", ["variance", "probability", "null_space", "mahalanobis"])
def test_groups_of_rows_are_left_out_together(told, method):
    clf, weights, _ = told
    groups = np.random.default_rng(1).integers(0, 12, N)
    # A class leaves with its group.
    groups[LABELS == 3] = 20
    found = novelty(clf, X[:5], method, reference=(ROWS, LABELS, weights), groups=groups)
    kept = linear(clf.intercept).fit(ROWS, LABELS, weights, ids=range(N))
    np.testing.assert_array_equal(
        novelty(kept, X[:5], method, groups=groups).left_out, found.left_out
    )
    A, _ = system(weights, clf.intercept)
    for name in (0, 5, 11, 20):
        g, r = groups == name, groups != name
        refit = linear(clf.intercept).fit(ROWS[r], LABELS[r], weights[r])
        want = novelty(refit, ROWS[g], method).values
        assert_rounded(found.left_out[g], want, 1000 * np.linalg.cond(A), abs(want).max())


@pytest.mark.parametrize("method", ["null_space", "mahalanobis"])
def test_without_an_intercept_distances_are_those_of_the_kernel_model(method):
    labels = LABELS.copy()
    labels[5] = 99
    clf = linear(intercept=False).fit(ROWS, labels)
    gp = GPClassifier(DotProduct(0.0, "fixed"), NOISE).fit(ROWS, labels)
    got = novelty(clf, X[N : N + 40], method, reference=(ROWS, labels))
    want = novelty(gp, X[N : N + 40], method)
    A, _ = system(np.ones(N), False)
    factor = 1000 * np.linalg.cond(A)
    assert_rounded(got.values, want.values, factor, want.values.max())
    assert_rounded(got.left_out, want.left_out, factor, want.left_out.max())


def test_the_only_row_of_a_class_takes_the_class_with_it():
    rows, labels = X[:60], Y[:60].copy()
    labels[7] = 99
    clf = linear().fit(rows, labels)
    found = novelty(clf, rows[:1], "probability", reference=(rows, labels))
    # The best score, in units of the deviation, is what the chance is of.
    left = ndtri_exp(found.left_out) * np.sqrt(found.reference.variance)
    others = np.arange(60) != 7
    refit = linear().fit(rows[others], labels[others])
    want = -refit.decision_function(rows[[7]]).max()
    (A, _), (free,) = system(np.ones(60), True, rows), 1 - clf.model_.leverage(rows[[7]])
    assert_rounded(left[7] * free, want * free, 4 * np.linalg.cond(A), 1.0)
    assert np.median(left) < left[7] < np.inf


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("q", [1, 2])
def test_thresholds_of_a_regressor_are_those_of_refits(normalize, q):
    targets = np.column_stack([ROWS[:, 20] * 3, ROWS[:, 30]])[:, :q].squeeze()
    rows = np.delete(ROWS, [20, 30], axis=1)
    new = LinearGPRegressor(NOISE, resolution="exact", normalize_y=normalize)
    reg = new.fit(rows, targets, WEIGHTS)
    found = novelty(reg, rows[:3], "variance", reference=(rows, targets, WEIGHTS))
    assert_rounded(found.values, reg.predict_variance(rows[:3]).reshape(3, -1).mean(axis=1))
    want = np.empty(N)
    for i in range(N):
        others = np.arange(N) != i
        refit = LinearGPRegressor(NOISE, resolution=reg.grid_, normalize_y=normalize)
        refit.fit(rows[others], targets[others], WEIGHTS[others])
        want[i] = refit.predict_variance(rows[[i]]).mean()
    free = 1 - WEIGHTS * reg.model_.leverage(rows)
    A, _ = system(WEIGHTS, True, rows)
    assert_rounded(found.left_out * free, want * free, 4 * np.linalg.cond(A))


def test_without_a_reference_there_are_values_but_no_threshold():
    clf = linear().fit(ROWS, LABELS)
    found = novelty(clf, X[:5], "variance")
    assert_rounded(found.values, clf.predict_variance(X[:5]))
    assert "threshold" not in found.to_pandas()
    assert pickle.loads(pickle.dumps(found)).values.tolist() == found.values.tolist()


@pytest.mark.slow(fast=5)
@pytest.mark.parametrize("scale", [1e8, 1e12, 1e16, 1e30])
@pytest.mark.parametrize("n", [4, 5, 12])
def test_classes_that_only_rounding_keeps_apart_have_finite_distances(scale, n):
    """With next to no noise, few rows leave nothing of G but rounding."""
    for seed in range(18, 23):
        rows, y = scale * np.random.default_rng(seed).random((n, 3)), np.arange(n) % 3
        for w in (np.ones(n), np.minimum(np.arange(n), 1.0)):
            clf = LinearGPClassifier().fit(rows, y, w)
            learnt = w > 0
            reference = rows[learnt], y[learnt]
            for method in ("mahalanobis", "null_space"):
                found = novelty(clf, rows, method, reference=reference)
                assert np.isfinite(found.values).all()
                assert np.isfinite(found.left_out).all()
            assert set(suspects(clf, *reference).ids) <= set(range(n))


# -- suggest ---------------------------------------------------------------------------------------


def brute_values(clf, pool, criterion, first):
    """The criterion's value of each row, from predictions and refits of the classifier.

    first : the scores before any pick
    """
    mean, variance = clf.decision_function(pool), clf.predict_variance(pool)
    if criterion == "variance":
        return variance
    if criterion == "margin":
        return -np.diff(np.sort(mean, axis=1)[:, -2:], axis=1)[:, 0] / np.sqrt(variance)
    # What a label, of any class, takes off the variances of all rows in doubt: reduction.
    apart = np.diff(np.sort(first, axis=1)[:, -2:], axis=1)[:, 0]
    doubt, values = np.maximum(1 - apart / 2, 1e-3), np.zeros(len(pool))
    for i in range(len(pool)):
        taught = copy.deepcopy(clf).partial_fit(pool[[i]], clf.classes_[:1])
        values[i] = doubt[i] * doubt @ (variance - taught.predict_variance(pool))
    return values


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("criterion", ["variance", "margin", "reduction"])
def test_a_batch_is_what_refits_pick(criterion, intercept):
    count = 12 if criterion == "reduction" else 80
    pool = X[N : N + count]
    clf = linear(intercept).fit(ROWS, LABELS)
    found, (A, _) = suggest(clf, pool, 5, criterion), system(np.ones(N), intercept)
    left, first = np.ones(count, dtype=bool), clf.decision_function(pool)
    for index, value in zip(found.indices, found.values, strict=True):
        values = brute_values(clf, pool, criterion, first)
        assert index == np.flatnonzero(left)[values[left].argmax()]
        assert_rounded(value, values[index], 4 * np.linalg.cond(A), abs(values).max())
        left[index] = False
        label = clf.classes_[clf.decision_function(pool[[index]]).argmax()]
        clf = clf.partial_fit(pool[[index]], [label])


@pytest.mark.parametrize("normalize", [True, False])
def test_a_batch_for_a_regressor_is_what_refits_pick(normalize):
    targets, rows, pool = ROWS[:, [20, 30]], ROWS, X[N : N + 60]
    reg = LinearGPRegressor(NOISE, resolution="exact", normalize_y=normalize).fit(rows, targets)
    found = suggest(reg, pool, 3, "variance")
    first = reg.predict_variance(pool).mean(axis=1)
    assert found.indices[0] == first.argmax()
    assert_rounded(found.values[0], first.max())
    # Variances do not depend on targets, but their units do: these stay.
    held = np.vstack([rows, pool[found.indices[:2]]])
    last = LinearGPRegressor(NOISE, resolution="exact", normalize_y=False)
    last.fit(held, np.zeros(len(held)))
    variance = last.predict_variance(pool) * (reg.model_.scale**2).mean()
    variance[found.indices[:2]] = 0
    assert found.indices[2] == variance.argmax()
    A, _ = system(np.ones(N), True)
    assert_rounded(found.values[2], variance.max(), 4 * np.linalg.cond(A))


def test_twins_wait_and_strategies_take_linear_models():
    clf = linear().fit(ROWS, LABELS)
    pool = np.repeat(X[N : N + 3], 2, axis=0)
    for rows in (pool, sparse.csr_matrix(pool)):
        assert sorted(suggest(clf, rows, 3, "variance").indices // 2) == [0, 1, 2]
        assert len(suggest(clf, rows, 6, "random", random_state=0)) == 6
    labels = np.where(np.arange(N) < 100, LABELS, np.nan)
    picked = SuggestQuery().query(ROWS, labels, linear(), batch_size=2)
    taught = linear().fit(ROWS[:100], LABELS[:100])
    assert picked.tolist() == (100 + suggest(taught, ROWS[100:], 2).indices).tolist()


# -- calibrate -------------------------------------------------------------------------------------


def test_the_temperature_is_that_of_refits(told):
    clf, weights, (scores, variance) = told
    calibrated = calibrate(clf, ROWS, LABELS, sample_weight=weights)
    A, _ = system(weights, clf.intercept)
    want = best_temperature(logs_of(scores, variance), LABELS)
    assert_rounded(calibrated.temperature, want, 4 * np.linalg.cond(A))
    raw = copy.copy(clf).set_params(probability="raw")
    before, after = (reliability(one, X[N:], Y[N:]).error for one in (raw, calibrated))
    assert after < before / 4
    # What the sums let expect is not far off.
    assert reliability(clf, X[N:], Y[N:]).error < before / 3
    np.testing.assert_array_equal(calibrated.predict(X), clf.predict(X))
    assert repr(calibrated).endswith(f"temperature {calibrated.temperature:.4g}")


def test_after_an_edit_it_must_be_calibrated_again():
    clf = linear().fit(ROWS, LABELS)
    calibrated = calibrate(clf, ROWS, LABELS)
    again, twin = pickle.loads(pickle.dumps(calibrated)), copy.copy(calibrated)
    for one in (again, twin):
        np.testing.assert_array_equal(one.predict_proba(X), calibrated.predict_proba(X))
    before = weakref.ref(clf.model_)
    clf.forget(ROWS[:1], LABELS[:1])
    gc.collect()
    assert before() is None
    for one in (calibrated, twin, pickle.loads(pickle.dumps(calibrated))):
        with pytest.raises(InvalidInput, match=r"again after each edit: calibrate\(model, X, y\)"):
            one.predict_proba(X)
        assert repr(one).endswith("the model has changed since, calibrate it again")
    assert again.temperature > 0
    assert calibrate(clf, ROWS[1:], LABELS[1:]).temperature > 0


# -- explain ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("label", [None, 4])
def test_features_sum_to_the_score(intercept, label):
    clf, x = linear(intercept).fit(ROWS, LABELS), X[N]
    found = explain(clf, x, label, by="features")
    c = clf.decision_function([x])[0].argmax() if label is None else label
    assert found.label == c
    score, offset = clf.decision_function([x])[0, c], 2 * np.mean(c == LABELS) - 1
    assert found.score == score
    assert_rounded(found.offset, offset if intercept else 0, 4, 1.0)
    size = abs(found.contributions).sum()
    assert_rounded(found.contributions.sum(), score - found.offset, scale=size)
    mean = ROWS.mean(axis=0) if intercept else np.zeros(64)
    each = clf.coef_[c] * (x - mean)
    assert_rounded(found.contributions, each[found.features])
    assert (np.diff(abs(found.contributions)) <= 0).all()
    assert_rounded(found.means, mean[found.features])
    np.testing.assert_array_equal(found.values, x[found.features])
    lines = repr(found).splitlines()
    assert lines[0] == f"FeatureExplanation: {c} has score {score:.4g}, from 64 features"
    assert lines[1].split() == ["feature", "value", "mean", "contribution"]
    assert len(found.to_pandas()) == len(found) == 64


def test_features_have_their_names():
    table = pd.DataFrame(ROWS[:, [20, 21, 30]], columns=["top", "left", "right"])
    reg = LinearGPRegressor().fit(table[["top", "left"]], table["right"])
    found = explain(reg, table[["top", "left"]].iloc[3])
    assert set(found.features) == {"top", "left"}
    assert found.label == 0
    assert_rounded(found.contributions.sum() + found.offset, reg.predict(table.iloc[[3], :2])[0])
    two = LinearGPRegressor().fit(table[["top"]], table[["left", "right"]])
    assert_rounded(explain(two, table[["top"]].iloc[0], 1).offset, table["right"].mean(), 4)
    with pytest.raises(InvalidInput, match=r"^label=None is not scored. Choose one of 0, 1\.$"):
        explain(two, table[["top"]].iloc[0])


# -- pipelines -------------------------------------------------------------------------------------


def test_rows_pass_through_the_earlier_steps():
    scaler = StandardScaler().fit(ROWS)
    pipe = make_pipeline(scaler, LinearGPClassifier(NOISE)).fit(ROWS, LABELS)
    last, rows, new = pipe[-1], pipe[:-1].transform(ROWS), pipe[:-1].transform(X[N:])
    model, table = living(pipe), pd.DataFrame(ROWS, [f"row {i}" for i in range(N)])
    found, want = suspects(model, table, LABELS), suspects(last, rows, LABELS)
    assert found.ids.tolist() == [f"row {i}" for i in want.ids]
    weighted = (table, LABELS, np.ones(N))
    threshold = novelty(model, X[N:], reference=weighted).threshold()
    assert_rounded(threshold, novelty(last, new, reference=(rows, LABELS)).threshold())
    assert suggest(model, X[N:], 3).indices.tolist() == suggest(last, new, 3).indices.tolist()
    temperature = calibrate(model, ROWS, LABELS).temperature
    assert temperature == calibrate(last, rows, LABELS).temperature
    assert explain(model, X[N]).score == model.decision_function(X[[N]]).max()
    with pytest.raises(InvalidType, match=r"not Pipeline\. Ask knowmore\.living\(pipeline\)\.$"):
        suspects(pipe, ROWS, LABELS)


# -- mistakes --------------------------------------------------------------------------------------

ROWLESS = "A linear model holds no rows, so it has none to leave out. "


def fitted():
    return linear().fit(ROWS, LABELS)


MISTAKES = {
    "suspects without rows": (
        lambda: suspects(fitted()),
        InvalidInput,
        ROWLESS + "Give rows that it has learnt: suspects(model, X, y).",
    ),
    "suspects without labels": (
        lambda: suspects(fitted(), ROWS),
        InvalidInput,
        ROWLESS + "Give rows that it has learnt: suspects(model, X, y).",
    ),
    "rows for a model that holds its own": (
        lambda: suspects(GPClassifier().fit(ROWS, LABELS), ROWS, LABELS),
        InvalidInput,
        "GPClassifier holds its own examples. Leave out X and y, or reference.",
    ),
    "reference for a model that holds its own": (
        lambda: novelty(GPClassifier().fit(ROWS, LABELS), ROWS, reference=(ROWS, LABELS)),
        InvalidInput,
        "GPClassifier holds its own examples. Leave out X and y, or reference.",
    ),
    "a label that was not learnt": (
        lambda: suspects(fitted(), ROWS[:1], [77]),
        InvalidInput,
        "No row of class 77 was learnt.",
    ),
    "too few ids": (
        lambda: suspects(fitted(), ROWS, LABELS, ids=["a"]),
        InvalidInput,
        f"ids has shape (1,), but there are {N} examples. Give one value for each, in the same "
        f"order.",
    ),
    "contradicting": (
        lambda: suspects(fitted(), ROWS, LABELS).contradicting,
        InvalidInput,
        "A linear model holds no rows to name. Fit a GPClassifier to some, and ask that.",
    ),
    "duplicates": (
        lambda: suspects(fitted(), ROWS, LABELS).duplicates,
        InvalidInput,
        "A linear model holds no rows to name. Fit a GPClassifier to some, and ask that.",
    ),
    "suspects of a regressor": (
        lambda: suspects(LinearGPRegressor().fit(ROWS, LABELS), ROWS, LABELS),
        InvalidInput,
        "suspects() is about classes, but a LinearGPRegressor has none. Ask for leave_one_out().",
    ),
    "a threshold without reference": (
        lambda: novelty(fitted(), ROWS).threshold(),
        InvalidInput,
        ROWLESS
        + "Give rows that it has learnt: novelty(model, X, reference=(X_learnt, y_learnt)).",
    ),
    "a reference that is no pair": (
        lambda: novelty(fitted(), ROWS, reference=ROWS),
        InvalidInput,
        "reference must be a pair, (X, y), or (X, y, sample_weight).",
    ),
    "combined": (
        lambda: novelty(fitted(), ROWS, "combined"),
        InvalidInput,
        "method='combined' is about examples, and a linear model holds none. Ask for "
        "'mahalanobis'.",
    ),
    "reliability without test data": (
        lambda: reliability(calibrate(fitted(), ROWS, LABELS)),
        InvalidInput,
        ROWLESS
        + "Give rows that it has learnt, reliability(model, reference=(X, y)), or test data.",
    ),
    "by examples": (
        lambda: explain(fitted(), X[0], by="examples"),
        InvalidInput,
        "by='examples', but the score of a LinearGPClassifier is a sum over features. Ask "
        "by='features'. To see rows like x, ask a GPClassifier of some.",
    ),
    "by features": (
        lambda: explain(GPRegressor().fit(ROWS, LABELS), X[0], by="features"),
        InvalidInput,
        "by='features', but the score of a GPRegressor is a sum over examples. Ask by='examples'.",
    ),
    "by something else": (
        lambda: explain(fitted(), X[0], by="pixels"),
        InvalidInput,
        "by='pixels' is not known. Choose one of 'examples', 'features'.",
    ),
    "tune": (
        lambda: tune(fitted()),
        InvalidType,
        "This question is for a fitted GPClassifier, GPRegressor or LSSVMClassifier, not "
        "LinearGPClassifier. It has no kernel to tune; noise='evidence' or noise='loo' chooses its "
        "noise.",
    ),
    "due": (
        lambda: due(
            tune(LSSVMClassifier(default_kernel(ROWS), 10).fit(ROWS, LABELS)), fitted(), every=1
        ),
        InvalidType,
        "This question is for a fitted GPClassifier, GPRegressor or LSSVMClassifier, not "
        "LinearGPClassifier. It has no kernel to tune; noise='evidence' or noise='loo' chooses its "
        "noise.",
    ),
    "transfer": (
        lambda: transfer(fitted()),
        InvalidType,
        "This question is for a fitted NPlusOneClassifier, not LinearGPClassifier.",
    ),
    "not fitted": (
        lambda: suspects(linear(), ROWS, LABELS),
        NotFitted,
        "This LinearGPClassifier is not fitted yet. Call fit first.",
    ),
    "emptied": (
        lambda: novelty(fitted().forget(ROWS, LABELS), ROWS),
        NoExamples,
        "The model holds no examples: all were removed. Add some before asking.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_explained(name):
    act, error, text = MISTAKES[name]
    with pytest.raises(error) as caught:
        act()
    assert isinstance(caught.value, KnowmoreError)
    assert str(caught.value) == text


@pytest.mark.parametrize(("noise", "weight"), [(1e-4, 16.0), (1e-2, 255.0), (1e-6, 2.0)])
def test_weighted_rows_are_asked_about_as_they_were_read(noise, weight):
    rows, labels = np.random.default_rng(0).normal(size=(6, 20)), [0, 1] * 3
    weights = np.full(6, weight)
    clf = LinearGPClassifier(noise).fit(rows, labels, weights)
    found = suspects(clf, rows, labels, sample_weight=weights)
    assert found.variance.min() > noise
    assert np.isfinite(found.probabilities).all()
    assert calibrate(clf, rows, labels, sample_weight=weights).temperature > 0


def test_features_have_the_names_of_the_steps_before():
    frame = pd.DataFrame({"colour": ["red", "blue", "red", "green"], "size": [1.0, 2.0, 3.0, 4.0]})
    encoded = make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough")
    pipe = make_pipeline(encoded, LinearGPClassifier()).fit(frame, list("abab"))
    found = explain(living(pipe), frame[:1])
    assert {*found.features} == {*pipe[:-1].get_feature_names_out()}
    nameless = make_pipeline(FunctionTransformer(np.tanh), LinearGPClassifier())
    nameless.fit(np.eye(3), list("aba"))
    assert {*explain(living(nameless), np.ones(3)).features} == {0, 1, 2}


def test_reliability_of_learnt_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = (3 * X[:, 0] + rng.normal(size=80) > 0).astype(int)
    w = rng.uniform(0.5, 2, 80)
    clf = LinearGPClassifier().fit(X, y, w)
    left = novelty(clf, X[:1], reference=(X, y, w)).reference
    P = class_probabilities(left.trial().completed, left.variance, clf.temperature_)
    found = reliability(clf, reference=(X, y, w))
    assert found.count.sum() == 80
    assert_rounded(found.count @ found.confidence, P.max(axis=1).sum(), 80)
    calibrated = calibrate(clf, X, y, sample_weight=w)
    assert reliability(calibrated, reference=(X, y, w)).error < found.error
    for asking, words in (
        (
            lambda: reliability(clf),
            "A linear model holds no rows, so it has none to leave out. Give rows that it has "
            "learnt, reliability(model, reference=(X, y)), or test data.",
        ),
        (
            lambda: reliability(clf, X, y, reference=(X, y)),
            "Test data and a reference were given. Give one of them.",
        ),
        (
            lambda: reliability(GPClassifier().fit(X, y), reference=(X, y)),
            "GPClassifier holds its own examples. Leave out X and y, or reference.",
        ),
    ):
        with pytest.raises(KnowmoreError) as caught:
            asking()
        assert str(caught.value) == words


def test_all_bins_are_shown():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), np.arange(200) % 10
    found = reliability(GPClassifier().fit(X, y), bins=25)
    assert len(repr(found).splitlines()) == 2 + len(found)


# -- with ids --------------------------------------------------------------------------------------


def test_rows_that_are_kept_answer_like_rows_that_are_given():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 5))
    y, weights = (X[:, 0] + X[:, 1] > 0).astype(int), rng.uniform(0.5, 2, 60)
    y[7] = 1 - y[7]
    ids = [f"row {i}" for i in range(60)]
    bare = LinearGPClassifier(0.5).fit(X, y, weights)
    kept = LinearGPClassifier(0.5).fit(X, y, weights, ids=ids)
    one, other = suspects(kept), suspects(bare, X, y, sample_weight=weights, ids=ids)
    np.testing.assert_array_equal(one.ids, other.ids)
    np.testing.assert_array_equal(one.doubts, other.doubts)
    Q = np.vstack([X + 1, np.zeros((1, 5))])
    one, other = novelty(kept, Q), novelty(bare, Q, reference=(X, y, weights))
    np.testing.assert_array_equal(one.values, other.values)
    assert one.threshold(0.9) == other.threshold(0.9)
    assert one.to_pandas().equals(other.to_pandas())
    one, other = calibrate(kept), calibrate(bare, X, y, sample_weight=weights)
    assert one.temperature == other.temperature
    assert reliability(kept).error == reliability(bare, reference=(X, y, weights)).error
    # It follows edits; so the rows are asked for no more.
    found, before = novelty(kept, Q), one.temperature
    threshold = novelty(kept, Q).threshold()
    kept.remove(ids[:20])
    assert found.threshold() == threshold
    assert one.temperature == calibrate(kept).temperature != before
    with pytest.raises(KnowmoreError) as caught:
        suspects(kept, X, y)
    assert str(caught.value) == (
        "LinearGPClassifier holds its own examples. Leave out X and y, or reference."
    )
    pipeline = make_pipeline(StandardScaler(), LinearGPClassifier(0.5))
    alive = living(pipeline.fit(X, y, lineargpclassifier__ids=ids))
    assert set(suspects(alive).ids) <= set(ids)
    assert np.isfinite(novelty(alive, Q).threshold())
