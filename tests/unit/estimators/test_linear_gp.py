"""Linear Gaussian processes on sums: what they refuse, in which words, and what they stand."""

from __future__ import annotations

import pickle
import warnings
from copy import deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tolerance import assert_rounded

from knowmore import (
    GPClassifier,
    Grid,
    KnowmoreError,
    LinearGPClassifier,
    LinearGPRegressor,
)

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3)) * [1, 2, 10]
Y = np.append([0, 1, 2], rng.integers(0, 3, 37))
NAMES = np.array(["ant", "bee", "cow"])
Q = rng.normal(size=(6, 3))


def classifier(noise=0.1, labels=Y, **words):
    return LinearGPClassifier(noise, **words).fit(X, labels)


def regressor(noise=0.1, targets=X[:, 0], **words):
    return LinearGPRegressor(noise, **words).fit(X, targets)


BOTH = {"classifier": (classifier, Y), "regressor": (regressor, X[:, 0])}
both = pytest.mark.parametrize("name", BOTH)


def assert_refused(model, act, words):
    """Does the act raise our error with these words, and leave the model as it was?"""
    digest, state = model.digest(), vars(model).copy()
    with pytest.raises(KnowmoreError, match=words):
        act(model)
    assert model.digest() == digest
    assert vars(model) == state


# -- rows -----------------------------------------------------------------------------------------

ROWS = {
    "NaN": ([np.nan, 0, 0], r"^Input X contains NaN or infinity: row 1, column 0 \(nan\)\. Remove"),
    "infinite": ([0, np.inf, 0], r"^Input X contains NaN or infinity: row 1, column 1 \(inf\)\."),
    "huge": ([0, -1e308, 0], r"^Row 1 of X has -1e\+308 in column 1, but the squares of values"),
    "wide": ([0, 0, 0, 0], r"^X has 4 features, but LinearGP\w+ is expecting 3 features"),
    "text": (["a", "b", "c"], r"Encode them with a OneHotEncoder\.$|not compatible with arrays of"),
}


@both
@pytest.mark.parametrize("row", ROWS)
def test_rows_that_cannot_be_read_are_refused_and_change_nothing(name, row):
    make, y = BOTH[name]
    values, words = ROWS[row]
    first = np.zeros(len(values)).tolist() if row != "text" else values
    for verb in ("partial_fit", "forget", "leave_one_out"):
        assert_refused(
            make(), lambda model, v=verb: getattr(model, v)([first, values], y[:2]), words
        )


@both
def test_a_first_fit_that_fails_leaves_nothing(name):
    make, y = BOTH[name]
    for bad in ([[np.nan]], [[1e300]], np.empty((0, 1)), [["a"]]):
        model = clone(make())
        with pytest.raises(KnowmoreError):
            model.fit(bad, y[: len(bad)])
        with pytest.raises(KnowmoreError):
            model.partial_fit(bad, y[: len(bad)])
        assert not hasattr(model, "model_")
        assert not hasattr(model, "n_features_in_")
        with pytest.raises(KnowmoreError, match=r"is not fitted yet\. Call fit first\.$"):
            model.forget(X, y)


@both
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_questions_that_are_not_finite_are_refused(name, bad):
    model = BOTH[name][0]()
    asked = np.vstack([np.zeros((3000, 3)), [[0, bad, 0]]])
    for table in (asked, asked.astype(np.float32), sparse.csr_array(asked)):
        with pytest.raises(KnowmoreError) as refused:
            model.predict(table)
        assert str(refused.value) == (
            "Input X contains NaN or infinity, first in row 3000. Remove these rows, or fill in "
            "the values."
        )


@both
def test_questions_off_the_grid_are_answered_until_they_are_no_numbers(name):
    model = BOTH[name][0]()
    far = np.array([[1e100, -1e50, 3.3]])
    assert np.isfinite(model.predict_variance(far)).all()
    np.testing.assert_array_equal(model.predict_variance(np.vstack([Q, far]))[:6].shape, (6,))
    with pytest.raises(KnowmoreError, match=r"^What is asked of row 1 of X is beyond the range"):
        model.predict_variance([[0, 0, 0], [1e200, 0, 0]])


@both
@pytest.mark.parametrize("scale", [1e-35, 1e35])
@pytest.mark.parametrize("noise", [None, 0.1, "loo", "evidence"])
def test_huge_and_tiny_rows_are_learnt(name, scale, noise):
    make, y = BOTH[name]
    model = clone(make(noise)).fit(scale * X, y if name == "classifier" else scale * y)
    for answer in (model.predict(scale * Q), model.predict_variance(scale * Q), model.coef_):
        assert np.isfinite(answer).all()
    assert np.isfinite(model.log_marginal_likelihood())
    assert np.isfinite(
        model.leave_one_out(scale * X, y if name == "classifier" else scale * y).scores
    ).all()


@both
def test_rows_whose_squares_are_no_numbers_are_refused(name):
    make, y = BOTH[name]
    words = r"^Row 0 of X has .* in column 0, but the squares of values beyond 3e\+144 are no"
    assert_refused(make(), lambda model: model.fit(1e200 * X, y), words)
    tiny = clone(make()).fit(1e-200 * X, y)
    assert np.isfinite(tiny.predict(1e-200 * X)).all()


@both
@pytest.mark.parametrize("noise", [None, 1e-9, 0.1, "loo", "evidence"])
@pytest.mark.parametrize("shape", ["one row", "constant", "wide", "twins", "one column"])
def test_degenerate_tables_are_learnt(name, noise, shape):
    make, y = BOTH[name]
    rows = {
        "one row": X[:1],
        "constant": np.column_stack([X, np.full(40, 3.0), np.zeros(40)]),
        "wide": np.random.default_rng(1).normal(size=(5, 30)),
        "twins": np.repeat(X[:2], 20, axis=0),
        "one column": X[:, :1],
    }[shape]
    for intercept in (True, False):
        model = clone(make(noise)).set_params(intercept=intercept).fit(rows, y[: len(rows)])
        assert np.isfinite(model.predict(rows)).all()
        assert (model.predict_variance(rows) > 0).all()
        assert np.isfinite(model.log_marginal_likelihood())
        assert model.noise_ > 0
        if shape == "one row" and intercept:
            continue
        left = model.leave_one_out(rows, y[: len(rows)])
        assert np.isfinite(left.scores).all()


def test_the_largest_noise_is_the_prior():
    model = classifier(1e300)
    share = np.bincount(Y) / len(Y)
    np.testing.assert_allclose(model.decision_function(Q), np.tile(2 * share - 1, (6, 1)))


def test_one_class_is_learnt():
    model = classifier(labels=np.full(40, "only"))
    assert model.predict(Q).tolist() == ["only"] * 6
    assert model.predict_proba(Q).tolist() == [[1.0]] * 6
    assert model.decision_function(Q).shape == (6, 1)


def test_leaving_all_rows_out_needs_no_intercept():
    words = r"^Leaving all rows out at once leaves none to compute an intercept from\. Learn more"
    model = LinearGPClassifier().fit(X[:1], Y[:1])
    assert_refused(model, lambda model: model.leave_one_out(X[:1], Y[:1]), words)
    model = LinearGPRegressor().fit(X, X[:, 0])
    everything = np.zeros(40, int)
    assert_refused(model, lambda m: m.leave_one_out(X, X[:, 0], groups=everything), words)
    left = LinearGPClassifier(intercept=False).fit(X, Y).leave_one_out(X, Y, groups=everything)
    assert left.silent.all()
    assert not left.scores.any()


# -- labels and targets ---------------------------------------------------------------------------


def test_labels_of_another_kind_are_refused():
    words = r"^The new labels are of type str, but those held are of type int, such as 0\. Convert"
    for verb in ("partial_fit", "forget"):
        assert_refused(classifier(), lambda m, v=verb: getattr(m, v)(X[:1], ["a"]), words)
    other = classifier(labels=NAMES[Y])
    for verb in ("merge", "split"):
        assert_refused(classifier(), lambda m, v=verb: getattr(m, v)(other), words)
    for mixed in ([1, "a"], [True, 2], [None, 1]):
        assert_refused(classifier(), lambda m, y=mixed: m.fit(X[:2], y), "type|missing")


def test_digests_tell_labels_of_different_kinds_apart():
    ones = [Y > 0, (Y > 0).astype(int), (Y > 0).astype(int).astype(str), (Y > 0).astype(float)]
    assert len({classifier(labels=y).digest() for y in ones}) == 4
    minus = np.where(Y == 0, -0.0, Y)
    assert classifier(labels=minus).digest() == classifier(labels=Y.astype(float)).digest()


@pytest.mark.parametrize("verb", ["partial_fit", "forget"])
def test_targets_whose_squares_are_no_numbers_are_refused(verb):
    words = r"^y has -1e\+308 in row 0, but the squares of values beyond 3e\+144 are no numbers\."
    for targets, given in ((X[:, 0], [-1e308]), (X[:, :2], [[0.0, -1e308]])):
        model = regressor(targets=targets)
        assert_refused(model, lambda m, y=given: getattr(m, verb)(X[:1], y), words)


@pytest.mark.parametrize("given", [[np.nan], [[1.0, 2.0]], ["a"], [1.0, 2.0], None])
def test_targets_that_are_none_are_refused(given):
    words = r"^(Input y|y has|Expected array-like)"
    assert_refused(regressor(), lambda m: m.partial_fit(X[:1], given), words)


def test_a_class_that_was_never_learnt_is_not_left_out():
    words = r"^No row of class 7 was learnt\.$"
    assert_refused(classifier(), lambda m: m.leave_one_out(X[:1], [7]), words)


@both
def test_rows_that_were_not_learnt_are_not_left_out(name):
    make, y = BOTH[name]
    far = np.array([[5.0, 5.0, 50.0], [0.0, 0.0, 0.0]])
    for groups in (None, [1, 1]):
        for noise in (1e-3, 0.1):
            assert_refused(
                make(noise),
                lambda m, g=groups: m.leave_one_out(far, y[:2], groups=g),
                r"^Some of these rows were not learnt, so they cannot be left out\. Give rows that",
            )


@pytest.mark.parametrize("noise", [1e-14, 1e-16, 1e-20])
@pytest.mark.parametrize("shape", [(6, 30), (30, 6), (12, 12)])
def test_leaving_out_with_next_to_no_noise_is_silent_or_finite(noise, shape):
    rows = np.random.default_rng(3).normal(size=shape)
    labels = np.arange(shape[0]) % 3
    for intercept in (True, False):
        model = LinearGPClassifier(noise, intercept=intercept).fit(rows, labels)
        for groups in (None, labels, np.arange(shape[0]) // 2):
            left = model.leave_one_out(rows, labels, groups=groups)
            assert np.isfinite(left.scores).all()
            assert (left.variance > 0).all()


# -- forgetting -----------------------------------------------------------------------------------

NEVER = {
    "more rows than the class has": (np.vstack([X] * 2), np.append(Y, Y)),
    "an unknown class": (X[:1], [7]),
    "other values of a class's last row": (X[:1], [9]),
}


@pytest.mark.parametrize("what", NEVER)
def test_forgetting_what_was_never_learnt_is_refused(what):
    model = classifier().partial_fit(X[5:6], [9])
    rows, labels = NEVER[what]
    words = r"^These rows of \d cannot all have been learnt: \d+ are held, and no rows could"
    assert_refused(model, lambda m: m.forget(rows, labels), words)


def test_forgetting_a_last_row_twice_is_refused():
    model = classifier().partial_fit(X[5:6], [9]).forget(X[5:6], [9])
    assert model.digest() == classifier().digest()
    assert_refused(
        model, lambda m: m.forget(X[5:6], [9]), "cannot all have been learnt: 0 are held"
    )


def test_forgetting_with_another_weight_is_refused_where_sums_can_tell():
    weights = np.where(Y == 2, 2.0, 1.0)
    model = LinearGPClassifier().fit(X, Y, sample_weight=weights)
    two = Y == 2
    assert_refused(model, lambda m: m.forget(X[two], Y[two]), "with the same labels and weights")
    model.forget(X[two], Y[two], sample_weight=weights[two])
    assert model.classes_.tolist() == [0, 1]


def test_all_rows_are_forgotten_and_learnt_again():
    for make, y in BOTH.values():
        model, fresh = make(), make()
        model.predict(X)
        model.forget(X[::-1], y[::-1])
        assert model.n_samples_ == 0
        for ask in (model.predict, model.predict_variance):
            with pytest.raises(
                KnowmoreError, match=r"^The model holds no rows: all were forgotten"
            ):
                ask(X)
        with pytest.raises(KnowmoreError, match="holds no rows"):
            model.log_marginal_likelihood()
        emptied = deepcopy(model)
        assert fresh.merge(emptied).digest() == make().digest()
        assert emptied.merge(fresh).digest() == make().digest()
        assert model.partial_fit(X, y).digest() == make().digest()


def test_all_rows_but_others_in_their_place_are_not_forgotten():
    model = LinearGPClassifier().fit([[1.0], [-1.0]], [0, 0])
    words = r"^These rows cannot all have been learnt: 2 are held"
    assert_refused(model, lambda m: m.forget([[0.5], [-0.5]], [0, 0]), words)


def test_a_question_to_the_sums_of_no_rows_gives_the_remedy_which_works():
    rows = np.array([[1.0, 1], [-1, -1], [2, 2], [-2, -2], [0, 0], [0, 0]])
    wrong = np.array([[1.0, -1], [-1, 1]]), [0, 1]
    model = LinearGPClassifier(1e-3).fit(rows, [0, 1, 0, 1, 0, 1])
    want = model.decision_function(rows)
    model.forget(*wrong)
    for ask in (model.predict, model.predict_variance):
        with pytest.raises(KnowmoreError) as refused:
            ask(rows)
        assert str(refused.value) == (
            "No rows could have these sums: some were forgotten twice, or were never learnt. "
            "Sums are exact: learn the same rows again, and the model is as it was before."
        )
    np.testing.assert_array_equal(model.partial_fit(*wrong).decision_function(rows), want)


def test_rows_that_could_not_have_been_there_are_refused_at_once():
    digits, labels = load_digits(return_X_y=True)
    model = LinearGPClassifier().fit(digits, labels)
    for wrong in (np.full((1, 64), 100.0), np.ones((5, 64))):
        words = r"^These rows of 3 cannot all have been learnt: 183 are held"
        assert_refused(model, lambda m, X=wrong: m.forget(X, [3] * len(X)), words)


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e5, 1e7, 1e9])
def test_leaving_out_does_not_depend_on_units(scale):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = np.column_stack([scale * rng.normal(size=60), 2 * y - 1 + 0.5 * rng.normal(size=60)])
    model = LinearGPClassifier(0.1).fit(X, y)
    left = model.leave_one_out(X, y)
    assert not left.silent.any()
    for i in range(60):
        rest = LinearGPClassifier(0.1, resolution=model.grid_).fit(
            np.delete(X, i, 0), np.delete(y, i)
        )
        got = rest.model_.mean(model.grid_.rounded(X[i : i + 1]))[0]
        assert_rounded(got, left.scores[i], 1000)


def test_a_regressor_without_the_history_has_the_same_digest():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 3))
    t = Z.sum(axis=1) * np.repeat([1.0, 9.0], 100)
    model = LinearGPRegressor().fit(Z[:100], t[:100]).partial_fit(Z[100:], t[100:])
    model.forget(Z[:100], t[:100])
    fresh = LinearGPRegressor(resolution=model.grid_, y_resolution=model.y_grid_)
    assert fresh.fit(Z[100:], t[100:]).digest() == model.digest()
    for wrong in (0, "x", [1.0, 2.0]):
        with pytest.raises(KnowmoreError, match=r"^y_resolution=.* Give a Grid"):
            LinearGPRegressor(y_resolution=wrong).fit(Z, t)
    with pytest.raises(KnowmoreError, match=r"^y_resolution has 2 columns, but y has 1 columns\."):
        LinearGPRegressor(y_resolution=Grid([0, 0])).fit(Z, t)
    with pytest.raises(KnowmoreError, match=r"^The grids have 21 and 8 bits"):
        LinearGPRegressor(y_resolution=Grid([0], 8)).fit(Z, t)


def test_a_likelihood_beyond_numbers_is_refused():
    Z = np.random.default_rng(0).normal(size=(20, 2))
    model = LinearGPRegressor(1e-300, normalize_y=False).fit(Z, 1e9 * Z[:, 0] ** 2)
    with pytest.raises(KnowmoreError, match="beyond the range of numbers at noise=1e-300"):
        model.log_marginal_likelihood()


def test_dates_are_refused():
    dates = np.array([["2020-01-01"], ["NaT"]], "datetime64[D]")
    for table in (dates, dates - dates[0]):
        with pytest.raises(KnowmoreError, match=r"^X has dates or durations\. Give numbers"):
            LinearGPClassifier().fit(table, [0, 1])
    table = pd.DataFrame(dates, columns=["when"])
    table.insert(0, "length", 1.0)
    with pytest.raises(KnowmoreError) as caught:
        LinearGPClassifier().fit(table, [0, 1])
    assert str(caught.value) == (
        "The column 'when' of X has dates or durations. Give numbers, such as days since a date: "
        "(dates - dates.min()) / np.timedelta64(1, 'D')."
    )


# -- weights --------------------------------------------------------------------------------------

WEIGHTS = {
    "negative": (-1.0, r"^sample_weight\[1\]=-1\.0 is below zero"),
    "heavy": (256.0, r"^The weight of row 1 is 256\.0\. Weights are read in multiples of 1/256"),
    "light": (0.001, r"^The weight of row 1 is 0\.001\."),
    "NaN": (np.nan, r"^Input sample_weight contains NaN or infinity"),
}


@both
@pytest.mark.parametrize("weight", WEIGHTS)
def test_weights_out_of_range_are_refused(name, weight):
    make, y = BOTH[name]
    value, words = WEIGHTS[weight]
    for verb in ("fit", "partial_fit", "forget"):
        assert_refused(
            make(), lambda m, v=verb: getattr(m, v)(X[:2], y[:2], sample_weight=[1, value]), words
        )
    assert_refused(
        make(), lambda m: m.partial_fit(X[:2], y[:2], sample_weight=[1]), "^sample_weight"
    )


def test_too_much_weight_is_refused_before_anything_changes():
    model = LinearGPClassifier().fit(X, Y, sample_weight=np.full(40, 255.0))
    while 2 * model.model_.sums.weight < 2**41:
        model.merge(model)
    words = (
        r"^The total weight would be .*, but sums are exact only below 8\.58993e\+09\. Fit fewer"
    )
    assert_refused(model, lambda m: m.merge(m), words)
    assert np.isfinite(model.decision_function(Q)).all()


@both
def test_rows_of_weight_zero_are_not_there(name):
    make, y = BOTH[name]
    weights = np.where(np.arange(40) < 20, 1.0, 0.0)
    model = clone(make()).set_params(resolution=Grid.covering(X)).fit(X, y, sample_weight=weights)
    assert model.n_samples_ == 20
    digest = model.digest()
    assert model.partial_fit(X, y, sample_weight=np.zeros(40)).digest() == digest
    assert model.forget(X, y, sample_weight=np.zeros(40)).digest() == digest
    words = r"^Rows of weight zero were not learnt\. Leave them out here too\.$"
    assert_refused(model, lambda m: m.leave_one_out(X, y, sample_weight=weights), words)
    words = r"^All weights are zero\. Give some example a weight above zero\.$"
    assert_refused(model, lambda m: m.fit(X, y, sample_weight=np.zeros(40)), words)


# -- merging --------------------------------------------------------------------------------------


def test_models_that_differ_do_not_merge():
    assert_refused(
        classifier(),
        lambda m: m.merge(regressor()),
        r"^LinearGPClassifier cannot merge with LinearGPRegressor\.$",
    )
    assert_refused(classifier(), lambda m: m.merge(GPClassifier().fit(X, Y)), "cannot merge with")
    other = LinearGPClassifier().fit(100 * X, Y)
    words = (
        "The two models read their features on different grids: the first rows of each decided "
        r"these, or its settings. Fit both with the grids of one of them, a: resolution=a\.grid_\. "
        "Or learn all rows with one: partial_fit."
    )
    assert_refused(classifier(), lambda m: m.merge(other), f"^{words}$")
    assert_refused(classifier(), lambda m: m.split(other), f"^{words}$")
    cured = LinearGPClassifier(resolution=other.grid_).fit(X, Y).merge(other)
    assert cured.n_samples_ == 80
    narrow = LinearGPClassifier().fit(X[:, :2], Y)
    assert_refused(classifier(), lambda m: m.merge(narrow), r"differ in their features: 3 here, 2")
    assert_refused(classifier(), lambda m: m.merge(LinearGPClassifier()), "is not fitted yet")
    two = regressor(targets=X[:, :2])
    assert_refused(regressor(), lambda m: m.merge(two), r"number of targets: 1 here, 2 there")


def test_regressors_with_other_grids_of_targets_do_not_merge_and_say_how_they_would():
    grid, small, large = Grid.covering(X), X[:, 0], 100 * X[:, 0]
    model = regressor(resolution=grid, targets=large)
    other = regressor(resolution=grid, targets=small)
    assert_refused(
        model,
        lambda m: m.merge(other),
        r"^The two models read their targets on different grids: .* resolution=a\.grid_, "
        r"y_resolution=a\.y_grid_\. ",
    )
    both = regressor(targets=small)
    wide = LinearGPRegressor().fit(100 * X, large)
    words = r"^The two models read their features and targets on different grids: .* y_resolution="
    assert_refused(wide, lambda m: m.merge(both), words)
    fitted = LinearGPRegressor(resolution=wide.grid_, y_resolution=wide.y_grid_).fit(X, small)
    assert wide.merge(fitted).n_samples_ == 80
    copy = deepcopy(model).forget(X, large).partial_fit(X, small)
    want = deepcopy(model).partial_fit(X, small).digest()
    assert model.merge(copy).digest() == want


def test_merging_and_splitting_with_oneself():
    model = classifier()
    assert model.merge(model).n_samples_ == 80
    assert model.split(classifier()).digest() == classifier().digest()
    assert model.split(model).n_samples_ == 0


# -- settings -------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("resolution", ["x", 12, 16.0, True, [8], 42, np.array([1, 2])])
def test_a_resolution_that_is_not_known_is_refused(name, resolution):
    with pytest.raises(KnowmoreError, match=r"^resolution=.* is not known\. Give a Grid, 8, 16"):
        BOTH[name][0](resolution=resolution)


@both
@pytest.mark.parametrize("noise", ["x", 0, -1, np.nan, np.inf, True, [0.1]])
def test_a_noise_that_is_none_is_refused(name, noise):
    with pytest.raises(KnowmoreError, match=r"^noise=.*(must be a number in|is not known)"):
        BOTH[name][0](noise)


def test_other_settings_of_the_wrong_kind_are_refused():
    with pytest.raises(KnowmoreError, match=r"^intercept='no' is neither True nor False\.$"):
        classifier(intercept="no")
    with pytest.raises(KnowmoreError, match=r"^normalize_y=1 is neither True nor False\.$"):
        regressor(normalize_y=1)
    words = r"^resolution has 2 columns, but X has 3 features\. Give the grid of rows like these: "
    with pytest.raises(KnowmoreError, match=words):
        classifier(resolution=Grid([0, 0]))


def test_resolutions_from_numpy_are_known():
    assert classifier(resolution=np.int64(8)).digest() == classifier(resolution=8).digest()


def test_pixels_are_learnt_with_eight_bits():
    pixels = np.random.default_rng(2).integers(0, 256, (40, 3)).astype(np.uint8)
    pixels[0] = 255
    model = LinearGPClassifier(resolution=8).fit(pixels, Y)
    assert (model.grid_.steps <= 8).all()
    assert model.forget(pixels[:3], Y[:3]).n_samples_ == 37


# -- tables ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@both
def test_tables_bring_their_feature_names(name, frame):
    make, y = BOTH[name]
    table = frame(dict(zip("abc", X.T, strict=True)))
    model = clone(make()).fit(table[:30], y[:30]).partial_fit(table[30:], y[30:])
    assert model.feature_names_in_.tolist() == [*"abc"]
    assert model.digest() == clone(make()).fit(X[:30], y[:30]).partial_fit(X[30:], y[30:]).digest()
    words = "feature names should match"
    for verb in ("partial_fit", "forget"):
        assert_refused(model, lambda m, v=verb: getattr(m, v)(table[["c", "b", "a"]], y), words)
    assert_refused(model, lambda m: m.predict(table[["c", "b", "a"]]), words)


def test_groups_of_a_table_go_with_its_rows():
    table = pd.DataFrame(X, index=[f"row {i}" for i in range(40)])
    groups = pd.Series(np.arange(40) % 4, index=table.index)
    labels = pd.Series(Y, index=table.index)
    model = classifier()
    left = model.leave_one_out(table, labels, groups=groups)
    want = model.leave_one_out(X, Y, groups=np.arange(40) % 4)
    np.testing.assert_array_equal(left.scores, want.scores)
    with pytest.raises(KnowmoreError, match="have the same index in different orders"):
        model.leave_one_out(table, labels, groups=groups[::-1])
    with pytest.raises(KnowmoreError) as refused:
        model.leave_one_out(X, Y, groups=[1, 2])
    assert str(refused.value) == (
        "groups has shape (2,), but there are 40 examples. Give one value for each, in the same "
        "order."
    )


# -- scikit-learn's tools -------------------------------------------------------------------------


@both
def test_clones_parameters_and_pickles(name):
    make, y = BOTH[name]
    model = make("evidence", resolution=8, intercept=False)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert not hasattr(copy, "model_")
    model.predict(Q)
    for copy in (pickle.loads(pickle.dumps(model)), deepcopy(model)):
        assert copy.digest() == model.digest()
        np.testing.assert_array_equal(copy.predict(Q), model.predict(Q))
        copy.forget(X[:3], y[:3])
        assert copy.n_samples_ == 37
    assert model.n_samples_ == 40


def test_pickles_hold_no_row_that_was_forgotten():
    secret = np.array([[0.123456789, 1.23456789, 12.3456789]])
    model = classifier().partial_fit(secret, [0]).forget(secret, [0])
    data = pickle.dumps(model)
    read = model.grid_.multiples(secret)
    assert not any(row.tobytes() in data for row in (secret, read, read.astype(np.int64)))


def test_they_work_in_pipelines_and_searches():
    flowers, kinds = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), LinearGPClassifier())
    assert cross_val_score(pipeline, flowers, kinds, cv=5).mean() > 0.8
    grid = {"lineargpclassifier__resolution": np.array([8, 16])}
    search = GridSearchCV(pipeline, grid, cv=3).fit(flowers, kinds)
    assert search.best_score_ > 0.7


def test_no_verb_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make, y in BOTH.values():
            for noise in (1e-12, "loo", "evidence"):
                model = make(noise)
                model.leave_one_out(X, y, groups=np.arange(40) % 3)
                model.forget(X[:39], y[:39]).predict(Q)
                model.log_marginal_likelihood()


def test_categories_are_refused_by_the_name_of_their_column():
    table = pd.DataFrame({"size": [1.0, 2.0], "kind": pd.Categorical(["x", "y"])})
    with pytest.raises(KnowmoreError, match=r"^The column 'kind' of X has values that are not num"):
        LinearGPClassifier().fit(table, [0, 1])
