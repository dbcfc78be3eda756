"""The kernel of estimators that are given none: what it is, and that it follows the examples."""

from __future__ import annotations

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.gaussian_process.kernels import RBF
from tolerance import assert_rounded

import knowmore
from knowmore import (
    ForestGPClassifier,
    GPClassifier,
    GPRegressor,
    Landmarks,
    LSSVMClassifier,
)
from knowmore.errors import InvalidInput, KnowmoreWarning
from knowmore.estimators.checks import warn_of_scales
from knowmore.kernels import ChiSquared, cross, default_kernel, median_rbf, spreads
from knowmore.kernels.default import are_histograms

rng = np.random.default_rng(0)
COUNTS = rng.gamma(0.3, size=(60, 12))
HISTOGRAMS = COUNTS / COUNTS.sum(axis=1, keepdims=True)
LABELS = rng.choice(["a", "b", "c"], 60)


def naive_median(X):
    D = [
        sum((a - b) ** 2 / (a + b) for a, b in zip(X[i], X[j], strict=True) if a + b > 0)
        for i in range(len(X))
        for j in range(i)
    ]
    return np.median([d for d in D if d > 0])


def test_histograms_have_the_kernel_of_their_median_distance():
    kernel = default_kernel(HISTOGRAMS)
    assert type(kernel) is ChiSquared
    assert_rounded(kernel.gamma, 1 / naive_median(HISTOGRAMS))


def test_the_unit_of_counts_does_not_matter():
    one, many = default_kernel(HISTOGRAMS), default_kernel(1024 * HISTOGRAMS)
    want = cross(one, HISTOGRAMS, HISTOGRAMS)
    np.testing.assert_array_equal(cross(many, 1024 * HISTOGRAMS, 1024 * HISTOGRAMS), want)


def test_yes_and_no_are_the_same_to_both_kernels():
    """Of zeros and ones every distance is the number of differences."""
    X = np.eye(4)[rng.integers(0, 4, (31, 5))].reshape(31, 20)
    assert type(default_kernel(X)) is ChiSquared
    D = ((X[:, None] - X) ** 2).sum(axis=2)
    median = np.median(D[D > 0])
    assert_rounded(cross(default_kernel(X), X, X), np.exp(-D / median))


ARE = {
    "float32": HISTOGRAMS.astype(np.float32).astype(float),
    "float16": HISTOGRAMS.astype(np.float16).astype(float),
    "counts of one sum": rng.multinomial(500, [1 / 9] * 9, 20).astype(float),
    "one row": HISTOGRAMS[:1],
    "some empty": np.vstack([HISTOGRAMS, np.zeros((3, 12))]),
}
ARE_NOT = {
    "negative": np.vstack([HISTOGRAMS, np.eye(12)[0] + np.eye(12)[1] - np.eye(12)[2]]),
    "other sums": COUNTS,
    "one row of any sum": COUNTS[:1],
    "few columns": HISTOGRAMS[:, :7] / HISTOGRAMS[:, :7].sum(axis=1, keepdims=True),
    "zeros": np.zeros((9, 9)),
    "tiny": HISTOGRAMS * 1e-200,
    "huge": HISTOGRAMS * 1e200,
    "pixels": load_digits().data,
    "no rows": np.zeros((0, 12)),
}


@pytest.mark.parametrize("rows", ARE.values(), ids=ARE)
def test_are_histograms(rows):
    assert are_histograms(rows)


@pytest.mark.parametrize("rows", ARE_NOT.values(), ids=ARE_NOT)
def test_are_no_histograms(rows):
    assert not are_histograms(rows)
    assert default_kernel(rows) == median_rbf(rows)


KINDS = [
    partial(kind, settings="median") for kind in (GPClassifier, LSSVMClassifier, ForestGPClassifier)
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.func.__name__)
def test_a_stream_of_histograms_has_the_kernel_of_its_first(kind):
    stream = kind()
    for i in range(40):
        stream.add(HISTOGRAMS[i : i + 1], LABELS[i : i + 1])
        assert stream.kernel_ == default_kernel(HISTOGRAMS[: min(i + 1, 32)])
    stream.remove(stream.ids_[:20])
    assert stream.kernel_ == default_kernel(HISTOGRAMS[:32])
    assert kind().fit(HISTOGRAMS, LABELS).kernel_ == default_kernel(HISTOGRAMS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.func.__name__)
def test_the_kernel_changes_when_a_row_is_no_histogram_and_back(kind):
    model = kind().fit(HISTOGRAMS[:10], LABELS[:10])
    (new,) = model.add(HISTOGRAMS[10:11] - 0.5, "a")
    assert isinstance(model.kernel_, RBF)
    rows = np.vstack([HISTOGRAMS[:10], HISTOGRAMS[10:11] - 0.5])
    want = kind().fit(rows, [*LABELS[:10], "a"]).decision_function(rows)
    np.testing.assert_array_equal(model.decision_function(rows), want)
    model.remove(new)
    assert model.kernel_ == default_kernel(HISTOGRAMS[:10])
    model.add(-HISTOGRAMS[:2], "b")
    model.add(-HISTOGRAMS[2:4], "b")
    assert isinstance(model.kernel_, RBF)


REFUSED = "A histogram kernel was given a value that is negative"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.func.__name__)
def test_a_row_of_weight_zero_that_the_kernel_refuses_is_refused_at_once(kind):
    """Leave-one-out would predict it: a model that holds it would fail later."""
    X, y, w = np.vstack([HISTOGRAMS[:5], -HISTOGRAMS[:1]]), list("aabbba"), [1, 1, 1, 1, 1, 0]
    told = rf"^Example 5 has weight zero, but leave-one-out predicts it like a new row. {REFUSED}"
    with pytest.raises(InvalidInput, match=told):
        kind().fit(X, y, sample_weight=w)
    with pytest.raises(InvalidInput, match=REFUSED):
        kind().fit(X[:5], y[:5]).add(X[5:], "a", sample_weight=[0])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.func.__name__)
def test_an_edit_does_not_leave_a_row_of_weight_zero_to_a_kernel_that_refuses_it(kind):
    X, y = np.vstack([HISTOGRAMS[:5], -HISTOGRAMS[:2]]), list("aabbbab")
    model = kind().fit(X, y, sample_weight=[1, 1, 1, 1, 1, 1, 0])
    settled = kind().fit(HISTOGRAMS[:40], LABELS[:40], ids=[f"{i}." for i in range(40)])
    for edit in (lambda: model.replace(5, HISTOGRAMS[5:6]), lambda: model.merge(settled)):
        with pytest.raises(InvalidInput, match=REFUSED):
            edit()
    # Forgetting succeeds all the same, with the kernel that there was.
    assert isinstance(model.remove(5).kernel_, RBF)
    assert len(model.leave_one_out().scores) == 6
    assert model.remove(6).kernel_ == default_kernel(HISTOGRAMS[:5])


def test_values_and_landmarks_have_it_too():
    y = HISTOGRAMS @ np.arange(12)
    assert GPRegressor(settings="median").fit(HISTOGRAMS, y).kernel_ == default_kernel(HISTOGRAMS)
    features = Landmarks(n_landmarks=60).fit(HISTOGRAMS).transform(HISTOGRAMS)
    K = default_kernel(HISTOGRAMS)(HISTOGRAMS)
    assert abs(features @ features.T - K).max() < np.sqrt(np.finfo(float).eps)


def test_a_file_keeps_it(tmp_path):
    with knowmore.open(tmp_path / "model.km", GPClassifier(settings="median")) as store:
        store.add(HISTOGRAMS, LABELS)
        want = store.decision_function(HISTOGRAMS)
    with knowmore.open(tmp_path / "model.km") as store:
        assert store.kernel_ == default_kernel(HISTOGRAMS)
        np.testing.assert_array_equal(store.decision_function(HISTOGRAMS), want)


# -- columns of different scales -----------------------------------------------------------------


def test_a_column_that_drowns_the_others_is_named_once():
    wine = load_wine(as_frame=True)
    with pytest.warns(KnowmoreWarning) as caught:
        clf = GPClassifier(settings="median").fit(wine.data, wine.target)
    clf.add(wine.data[:3], wine.target[:3], ids=["x", "y", "z"])
    assert [str(one.message) for one in caught] == [
        "Column 'proline' has a standard deviation of 314, a quarter of the columns one of at most "
        "0.571: in the distances of the default kernel these have no say. Scale the columns first, "
        "as by make_pipeline(StandardScaler(), ...), or give a kernel with a length scale for each "
        "column; `tune` finds better ones."
    ]


@pytest.mark.parametrize("wide", [1, 2, 3], ids=["one wide", "half", "all but one wide"])
def test_columns_that_are_drowned_are_told_however_many_drown_them(wide):
    X = rng.normal(size=(50, 4)) * np.where(np.arange(4) < wide, 1000, 1)
    with pytest.warns(KnowmoreWarning, match="has a standard deviation of .* no say"):
        GPRegressor(settings="median").fit(X, X[:, 0])


@pytest.mark.parametrize(
    "X",
    [
        load_digits().data,
        HISTOGRAMS,
        rng.normal(size=(50, 3)) * [1, 10, 60],
        rng.normal(size=(50, 3)) * [0, 0, 1e9],
        rng.normal(size=(31, 2)) * [1, 1e9],
        rng.normal(size=(50, 1)),
        np.zeros((50, 2)),
        np.c_[rng.integers(0, 256, size=(50, 6)), np.full((50, 6), 26)] / 255,
    ],
    ids=["digits", "histograms", "60", "constant", "few", "one column", "all the same", "border"],
)
def test_columns_of_like_scales_give_no_warning(X):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GPRegressor().fit(X, X[:, 0])


@pytest.mark.parametrize("scales", [[1, 1e-170], [1e150, 1e160], [1e-300, 1.0]])
def test_scales_whose_squares_are_no_numbers_are_told(scales):
    X = rng.normal(size=(50, 2)) * scales
    with pytest.warns(KnowmoreWarning, match=r"deviation of \d\S*, a quarter .* at most \d"):
        warn_of_scales(GPRegressor(), X)


def test_a_kernel_that_was_given_gives_no_warning():
    X = rng.normal(size=(50, 2)) * [1, 1000]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GPRegressor(RBF([1.0, 1000.0])).fit(X, X[:, 0])
        # A kernel that is chosen has units of its own for the columns.
        GPRegressor().fit(X, X[:, 0])
    with pytest.warns(KnowmoreWarning, match="^Column 1 has a standard deviation of"):
        GPRegressor(settings="median").fit(X, X[:, 0])


def test_a_unit_is_the_power_of_two_nearest_to_the_deviation():
    # The unit does not depend on the largest number of the column.
    rng = np.random.default_rng(100)
    X = rng.normal(size=(30, 500)) * 10.0 ** rng.uniform(-3, 3, 500) + rng.normal(size=500)
    np.testing.assert_array_equal(spreads(X), 2.0 ** np.round(np.log2(X.std(axis=0))))


def test_a_unit_follows_the_scale_of_its_column_at_any_scale():
    rng = np.random.default_rng(100)
    X = rng.uniform(-1, 1, (30, 5))
    for exponent in (-990, -300, 0, 300, 1000):
        np.testing.assert_array_equal(
            spreads(np.ldexp(X, exponent)), np.ldexp(spreads(X), exponent)
        )
