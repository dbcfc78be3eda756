"""Columns far from zero: models are as exact as if the columns were near it, and say what is lost.

A Unix time with a resolution of milliseconds is 1.7e9 +- 1e-3. A mean in one double, which is
rounded by 1e-7, once left variances wrong by any factor, and `lost` at zero.
"""

from __future__ import annotations

import warnings

import numpy as np
import oracle
import pytest
from tolerance import assert_models_each_feature, assert_rounded

from knowmore import Eigenspace, EigenspaceLDA, EigenspacePCA
from knowmore.errors import LostVariance
from knowmore.subspaces.scatter import without_noise

SECONDS, SPREAD = 1.7e9, 1.5e-3


def own(rng, X):
    """The small spread is in the column far from zero."""
    X[:, 0] = SECONDS + SPREAD * X[:, 0]


def beside(rng, X):
    """The small spread is in the column beside it."""
    X[:, 0] = SECONDS + 10 ** rng.uniform(0, 6) * X[:, 0]
    X[:, 1] *= SPREAD


def any_distance(rng, X):
    scales = 10 ** rng.uniform(-3, 3, X.shape[1])
    X[:] = (X + 10 ** rng.uniform(0, 13, X.shape[1])) * scales


def outlier(rng, X):
    own(rng, X)
    X[rng.integers(len(X)), rng.integers(X.shape[1])] *= 10 ** rng.uniform(3, 11)


def wide_outlier(rng, X):
    X *= 10 ** rng.uniform(-4, 6, X.shape[1])
    X[rng.integers(len(X))] *= 10 ** rng.uniform(3, 9)


def history(seed, make, least):
    """The rows, and after each of some edits the model and the rows that it holds."""
    rng = np.random.default_rng([seed, 77])
    n, D = int(rng.integers(8, 40)), int(rng.integers(2, 5))
    X = rng.normal(size=(n, D))
    make(rng, X)
    held = list(range(int(rng.integers(least(D), n))))
    pca = EigenspacePCA().fit(X[held])
    for _ in range(int(rng.integers(2, 9))):
        out = [i for i in range(n) if i not in held]
        way = rng.random()
        if way < 0.5 and len(held) > least(D):
            moved = rng.choice(held, int(rng.integers(1, len(held) - least(D) + 1)), replace=False)
            pca.forget(X[moved])
            held = [i for i in held if i not in moved]
        elif out:
            moved = rng.choice(out, int(rng.integers(1, len(out) + 1)), replace=False)
            pca.partial_fit(X[moved]) if way < 0.75 else pca.merge(EigenspacePCA().fit(X[moved]))
            held += moved.tolist()
        yield X, pca.eigenspace_, X[held]


@pytest.mark.slow(fast=1)
@pytest.mark.filterwarnings("error::knowmore.errors.LostVariance")
@pytest.mark.parametrize("make", [own, beside, any_distance])
def test_each_feature_is_as_exact_as_near_zero(make):
    for seed in range(100):
        for edit, (X, model, rows) in enumerate(history(seed, make, lambda D: D + 1)):
            assert_models_each_feature(model, rows, X, edits=edit + 2)


@pytest.mark.slow(fast=2)
@pytest.mark.filterwarnings("ignore::knowmore.errors.LostVariance")
@pytest.mark.parametrize("make", [own, beside, any_distance, outlier, wide_outlier])
def test_a_variance_is_right_to_a_hundredth_or_its_error_is_in_lost(make):
    """Down to two rows; with outliers, whose rounding error may be more than all that is left."""
    lost = 0
    for seed in range(100):
        for _, model, rows in history(seed, make, lambda D: 2):
            _, S = oracle.exact_scatter(rows)
            want = np.diag(S) / len(rows)
            error = abs(model.variances @ np.square(model.components) - want)
            assert error[error > want / 100].sum() <= model.lost
            lost += model.lost > 0
    assert (lost > 0) == ("outlier" in make.__name__)


def test_a_direction_is_right_to_a_hundredth_or_its_error_is_in_lost():
    """Two columns that are nearly the same have all but one variance; their difference has none."""
    X = np.random.default_rng(0).normal(size=(50, 2))
    X[:, 1] = X[:, 0] + 1e-3 * X[:, 1]
    left = np.cov(X.T, bias=True)
    for size in 10.0 ** np.arange(0, 8):
        wrong = size * np.array([[1.0, 1.0], [-1.0, -1.0]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LostVariance)
            model = Eigenspace.of(np.vstack([X, wrong])).remove_rows(wrong)
        want = np.linalg.eigvalsh(left)[0]
        error = abs(np.linalg.eigvalsh(model.covariance())[0] - want)
        assert error <= max(model.lost, want / 100)


def test_a_feature_that_is_wiped_out_takes_no_other_along():
    """Of two rows there is one direction: most of it is noise of one feature, the rest is real."""
    P = np.array([[1.0, 1e-3, 2e-3]]) / np.linalg.norm([1.0, 1e-3, 2e-3])
    squares, known = np.array([1e4]), np.array([1e9, 1e-12, 1e-12])
    directions, left, removed = without_noise(P, squares, known)
    assert directions[0, 0] == 0
    assert_rounded(left @ directions**2, (squares @ P**2) * [0, 1, 1])
    assert not removed.any()


def test_a_variance_that_is_poorly_known_is_reported():
    X = np.random.default_rng(0).normal(size=(100, 3))
    wrong = np.array([[1e8, 0.0, 0.0]])
    model = Eigenspace.of(np.vstack([X, wrong])).with_names([*"abc"])
    words = r"^The variance of the 100 rows that remain may be off by up to \S+ \(`lost`\) in "
    with pytest.warns(LostVariance, match=words + r"feature\(s\) 'a': that is the rounding error"):
        left = model.remove_rows(wrong)
    assert len(left.variances) == 3
    # It is said once: the next rows that go cost nothing more.
    with warnings.catch_warnings():
        warnings.simplefilter("error", LostVariance)
        assert left.remove_rows(X[:3]).lost > 0
    assert model.remove_rows(wrong, warn=False).lost == left.lost


@pytest.mark.parametrize("shrinkage", [None, 0.2, "ledoit-wolf"])
def test_discriminants_do_not_depend_on_the_distance_to_zero(shrinkage):
    """Differences of the rows are exact, so all rows moved by an offset are the same table."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        y = rng.integers(3, size=60)
        X = rng.normal(size=(60, 4)) + 2 * np.eye(3, 4)[y]
        X[:, 0] = SECONDS + SPREAD * X[:, 0]
        near = X - [SECONDS, 0, 0, 0]
        lda = EigenspaceLDA(shrinkage=shrinkage).fit(X[:30], y[:30])
        lda.partial_fit(X[30:50], y[30:50]).forget(X[:20], y[:20])
        lda.merge(EigenspaceLDA(shrinkage=shrinkage).fit(X[50:], y[50:]))
        fresh = EigenspaceLDA(shrinkage=shrinkage).fit(near[20:], y[20:])
        # Five decompositions, of features of unequal scale.
        assert_rounded(lda.decision_function(X), fresh.decision_function(near), 5 * 32**2)


def test_soft_labels_do_not_depend_on_the_distance_to_zero():
    rng = np.random.default_rng(0)
    Y = rng.dirichlet(np.ones(3), 60)
    X = rng.normal(size=(60, 4)) + 2 * np.eye(3, 4)[Y.argmax(axis=1)]
    X[:, 0] = SECONDS + SPREAD * X[:, 0]
    near = X - [SECONDS, 0, 0, 0]
    lda = EigenspaceLDA().fit(X[:40], Y[:40], [0, 1, 2]).partial_fit(X[40:], Y[40:])
    lda.forget(X[:20], Y[:20])
    fresh = EigenspaceLDA().fit(near[20:], Y[20:], [0, 1, 2])
    assert_rounded(lda.decision_function(X), fresh.decision_function(near), 3 * 32**2)


def test_coordinates_far_from_zero_are_those_near_it():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) * [SPREAD, 1, 10] - [-SECONDS, 0, 0]
    near = X - [SECONDS, 0, 0]
    far, close = Eigenspace.of(X), Eigenspace.of(near)
    assert_rounded(abs(far.project(X)), abs(close.project(near)), 100 * 32)
    few = far.truncate(2)
    assert_rounded(few.distances(X), close.truncate(2).distances(near), 100 * 32, abs(near).max())
    pca = EigenspacePCA(whiten=True)
    fresh = pca.fit(near).transform(near)
    assert_rounded(abs(pca.fit(X).transform(X)), abs(fresh), 100 * 32**2)


def test_a_poorly_known_feature_is_named_also_if_its_sum_is_zero():
    X = np.random.default_rng(0).normal(size=(50, 3))
    X = np.vstack([X, -X])
    wrong = np.array([[1e8, 0.0, 0.0], [-1e8, 0.0, 0.0]])
    with pytest.warns(LostVariance, match=r"in feature\(s\) 0: that is the rounding error"):
        Eigenspace.of(np.vstack([X, wrong])).remove_rows(wrong)
