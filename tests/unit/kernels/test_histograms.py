"""Histogram kernels against one pair and one bin at a time."""

from __future__ import annotations

import copy
import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import oracle
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.metrics.pairwise import laplacian_kernel
from tolerance import assert_rounded, assert_solves

from knowmore import GPClassifier
from knowmore.errors import InvalidInput
from knowmore.kernels import (
    AdditiveChiSquared,
    ChiSquared,
    ExponentialIntersection,
    HistogramIntersection,
    On,
    column_weights,
    corner,
    cross,
    diagonal,
    is_positive,
)

GAMMA = 0.7
DECAYS = [ChiSquared(GAMMA), ExponentialIntersection(GAMMA)]
KERNELS = [HistogramIntersection(), AdditiveChiSquared(), *DECAYS]
EPS = np.finfo(float).eps
# Over several strips, blocks of bins and tiles, all with a remainder; and less than one of each.
SHAPES = [(130, 50, 530), (1, 5, 3), (4, 1, 600), (3, 0, 4), (2, 2, 0)]


def histograms(n, d, seed=0, dtype=float):
    """Many bins are empty, some rows are, and some rows are equal."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)) * (rng.random((n, d)) < 0.4)
    X[1::7] = X[: len(X[1::7])]
    X[3::50] = 0
    return X.astype(dtype)


def smaller(x, y):
    return np.minimum(x, y)


def harmonic(x, y):
    return 2 * x * y / np.where(x + y > 0, x + y, 1)


def distance(x, y):
    return (x - y) ** 2 / np.where(x + y > 0, x + y, 1)


def difference(x, y):
    return abs(x - y)


DISTANCES = {ChiSquared: distance, ExponentialIntersection: difference}


def loop(term, X, Y):
    """The sum over bins, row by row, with digits to spare."""
    X, Y = X.astype(np.longdouble), Y.astype(np.longdouble)
    sums = [term(x, Y).sum(axis=1) for x in X]
    return np.array(sums, dtype=float).reshape(len(X), len(Y))


def sizes(X, Y):
    """|x| + |y| for all pairs."""
    return X.sum(axis=1, dtype=float)[:, None] + Y.sum(axis=1, dtype=float)


def naive(kernel, X, Y):
    """The value, and how much one rounding of every term and every sum may move it."""
    d = X.shape[1]
    if type(kernel) in DISTANCES:
        D = loop(DISTANCES[type(kernel)], X, Y)
        K = np.exp(-kernel.gamma * D)
        # The difference is what |x| + |y| and the intersection leave of each other.
        whole = isinstance(kernel, ExponentialIntersection)
        return K, K * (kernel.gamma * (d + 8) * (sizes(X, Y) if whole else D) + 4)
    K = loop(smaller if isinstance(kernel, HistogramIntersection) else harmonic, X, Y)
    return K, (d + 4) * K


def assert_within(got, want, roundings, dtype=float):
    assert got.shape == want.shape
    assert got.dtype == dtype
    facts = np.finfo(dtype)
    excess = abs(got.astype(float) - want) - (facts.eps * roundings + facts.tiny)
    assert excess.max(initial=0) <= 0


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_values_are_those_of_the_loop(kernel, dtype, shape):
    n, m, d = shape
    X, Y = histograms(n, d, 1, dtype), histograms(m, d, 2, dtype)
    for A, B in [(X, Y), (Y, X)]:
        assert_within(kernel(A, B), *naive(kernel, A, B), dtype)
    K = kernel(X)
    assert_within(K, *naive(kernel, X, X), dtype)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(kernel.diag(X), np.diagonal(K))


@pytest.mark.slow(fast=8)
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_sparse_rows_are_the_same_histograms(kernel, dtype, kind):
    X, Y = histograms(131, 200, 1, dtype), histograms(70, 200, 2, dtype)
    for A, B in [(X, Y), (Y, X)]:
        want, roundings = naive(kernel, A, B)
        if type(kernel) in DISTANCES:
            # D is what |x| + |y| and the shared bins leave of each other.
            roundings = want * (kernel.gamma * (A.shape[1] + 8) * sizes(A, B) + 4)
        assert_within(kernel(kind(A), kind(B)), want, roundings, dtype)
        assert_within(kernel(kind(A), B), want, roundings, dtype)
    K = kernel(kind(X))
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(kernel.diag(kind(X)), np.diagonal(K))
    assert K.dtype == dtype


def test_a_bin_that_is_listed_twice_counts_as_its_sum():
    twice = sparse.csr_array(([1.0, 2.0, 1.0], [2, 2, 0], [0, 3]), shape=(1, 4))
    before = twice.data.copy()
    K = HistogramIntersection()(twice, sparse.csr_array(np.array([[5.0, 5.0, 5.0, 5.0]])))
    np.testing.assert_array_equal(K, [[4.0]])
    np.testing.assert_array_equal(twice.data, before)


def test_bins_that_are_empty_in_both_add_nothing():
    X = np.array([[0.0, 3.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
    for kernel in HistogramIntersection(), AdditiveChiSquared():
        np.testing.assert_array_equal(kernel(X), np.diag([3.0, 2.0, 0.0]))
        np.testing.assert_array_equal(kernel(X, X), np.diag([3.0, 2.0, 0.0]))
    D = np.array([[0, 5, 3], [5, 0, 2], [3, 2, 0]])
    for kernel in ChiSquared(1.0), ExponentialIntersection(1.0):
        np.testing.assert_array_equal(kernel(X, X), np.exp(-1.0 * D))


@pytest.mark.parametrize("scale", [2.0**-600, 2.0**600])
def test_counts_of_any_size_are_compared_alike(scale):
    X = histograms(20, 30)
    for kernel in HistogramIntersection(), AdditiveChiSquared():
        np.testing.assert_array_equal(kernel(scale * X), scale * kernel(X))
    for kind in DISTANCES:
        np.testing.assert_array_equal(kind(GAMMA / scale)(scale * X), kind(GAMMA)(X))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_other_layouts_and_types_are_read_as_they_are(kernel):
    X = histograms(80, 30)
    wide = np.zeros((80, 60))
    wide[:, ::2] = X
    X.flags.writeable = False
    for same in np.asfortranarray(X), wide[:, ::2], X.tolist():
        np.testing.assert_array_equal(kernel(same, X), kernel(X, X))
    counts = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(kernel(counts), kernel(counts.astype(float)))
    np.testing.assert_array_equal(kernel.diag(counts), np.diagonal(kernel(counts)))
    assert kernel.diag(counts).dtype == float
    assert kernel(X.astype(np.float32), X).dtype == float


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_positive_semidefinite_on_histograms(kernel):
    X = histograms(100, 40)
    K = kernel(X)
    # Weyl: an error moves an eigenvalue by no more than its norm.
    assert np.linalg.eigvalsh(K).min() >= -len(X) * 44 * EPS * abs(K).max()


@pytest.mark.parametrize("kernel", DECAYS, ids=str)
def test_the_gradient_is_that_of_the_logarithm_of_gamma(kernel):
    X = histograms(30, 12)
    K, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_array_equal(K, kernel(X))
    D = loop(DISTANCES[type(kernel)], X, X)
    assert_rounded(gradient, (-GAMMA * D * np.exp(-GAMMA * D))[:, :, None])
    step = np.cbrt(EPS)
    up, down = (kernel.clone_with_theta(kernel.theta + s)(X) for s in (step, -step))
    # A central difference is off by step^2 / 6 times the third derivative, which here is below
    # (1 + u)^3 K for u = gamma D, and by the rounding of K over the step.
    u = GAMMA * D
    bound = ((1 + u) ** 3 * np.exp(-u)).max() * step**2 + EPS * X.shape[1] / step
    assert abs((up - down) / (2 * step) - gradient[:, :, 0]).max() <= bound


@pytest.mark.parametrize(
    "kernel",
    [HistogramIntersection(), AdditiveChiSquared(), *(kind(1.0, "fixed") for kind in DISTANCES)],
    ids=str,
)
def test_without_free_parameters_the_gradient_is_empty(kernel):
    X = histograms(9, 5)
    K, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_array_equal(K, kernel(X))
    assert gradient.shape == (9, 9, 0)
    assert len(kernel.theta) == 0


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_what_is_no_histogram_is_refused(kernel):
    X = histograms(70, 4)
    for value, word in [(-0.5, "negative: -0.5"), (np.nan, "not finite: nan"), (np.inf, "inf")]:
        bad = X.copy()
        bad[66, 2] = value
        for A, B, name in [(bad, None, "X"), (bad, X, "X"), (X, bad, "Y"), (X[:3], bad, "Y")]:
            with pytest.raises(InvalidInput, match=rf"{word} in row 66, column 2 of {name}"):
                kernel(A, B)
        with pytest.raises(InvalidInput, match=f"{word} in row 66, column 2 of X"):
            kernel(sparse.csr_array(bad))
        with pytest.raises(InvalidInput, match=f"{word} in row 66, column 2 of Y"):
            kernel(X, sparse.csr_array(bad))
    with pytest.raises(InvalidInput, match="X has 4 columns, but Y has 3"):
        kernel(X, X[:, :3])
    with pytest.raises(InvalidInput, match=r"X has shape \(4,\) .* Give a table \(n, d\)"):
        kernel(X[0])
    with pytest.raises(InvalidInput, match="rows of numbers"):
        kernel(np.array([["a"]]))
    with pytest.raises(InvalidInput, match=r"gradient is that of .* but Y was given"):
        kernel(X, X, eval_gradient=True)


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_the_variance_of_what_is_no_histogram_is_refused(kernel):
    for X in np.array([[1.0, -1.0]]), sparse.csr_array(np.array([[1.0, -1.0]])):
        with pytest.raises(InvalidInput, match=r"negative: -1\.0 in row 0, column 1 of X"):
            kernel.diag(X)


def test_the_exponential_is_the_laplacian_kernel_and_that_of_the_intersection():
    X, Y = histograms(40, 30, 1), histograms(20, 30, 2)
    kernel, inner = ExponentialIntersection(GAMMA), HistogramIntersection()
    assert_rounded(kernel(X, Y), laplacian_kernel(X, Y, GAMMA), roundings=X.shape[1])
    D = inner.diag(X)[:, None] + inner.diag(Y) - 2 * inner(X, Y)
    assert_rounded(kernel(X, Y), np.exp(-GAMMA * D), roundings=X.shape[1] * GAMMA * D.max())
    assert kernel.is_stationary()
    assert not ChiSquared(GAMMA).is_stationary()


# -- columns -------------------------------------------------------------------------------------

X60 = histograms(40, 60)
LEFT, RIGHT = slice(0, 40), slice(40, None)
BOTH = 0.5 * On(LEFT, HistogramIntersection()) + 0.5 * On(RIGHT, ChiSquared(GAMMA))
COMPOSED = [BOTH, On(RIGHT, RBF(2.0) + WhiteKernel(0.1)) * On(LEFT, AdditiveChiSquared())]


def test_an_average_over_descriptors():
    left, right = X60[:, :40], X60[:, 40:]
    want = 0.5 * loop(smaller, left, left) + 0.5 * np.exp(-GAMMA * loop(distance, right, right))
    assert_rounded(BOTH(X60), want, roundings=X60.shape[1])
    assert_rounded(BOTH.diag(X60), np.diagonal(want), roundings=X60.shape[1])
    table = sparse.csr_array(X60)
    assert_rounded(BOTH(table), want, roundings=X60.shape[1])
    assert_rounded(BOTH.diag(table), np.diagonal(want), roundings=X60.shape[1])


@pytest.mark.parametrize("kernel", [*KERNELS, *COMPOSED], ids=str)
def test_blocks_are_the_kernel_itself(kernel):
    X, Y = X60[:25], X60[25:]
    assert is_positive(kernel)
    assert_rounded(cross(kernel, X, Y), kernel(X, Y))
    assert_rounded(corner(kernel, X), kernel(X))
    assert_rounded(diagonal(kernel, X), np.diagonal(kernel(X)))
    K = corner(kernel, X)
    np.testing.assert_array_equal(K, K.T)


def test_what_is_not_known_to_be_positive():
    assert not is_positive(ChiSquared(-1.0))
    assert not is_positive(ExponentialIntersection(-1.0))
    assert not is_positive(On(LEFT, ChiSquared(-1.0)))


def test_the_levels_of_a_pyramid():
    bins, levels, gamma = 3, 2, 0.4
    X, D = histograms(20, bins * 21), 0.0
    sizes = np.array([bins * 4**level for level in range(levels + 1)])
    for level, end in enumerate(np.cumsum(sizes)):
        part = X[:, end - sizes[level] : end]
        D = D + loop(distance, part, part) / 2 ** (levels - level)
    weights = column_weights(bins, levels + 1)
    kernel = On(slice(0, X.shape[1]), ChiSquared(gamma), weights)
    assert_rounded(kernel(X), np.exp(-gamma * D))
    assert_rounded(kernel(sparse.csr_array(X)), np.exp(-gamma * D), roundings=X.shape[1])
    assert kernel(X.astype(np.float32)).dtype == np.float32
    counts = np.arange(2 * X.shape[1]).reshape(2, -1)
    np.testing.assert_array_equal(kernel(counts), kernel(counts.astype(float)))


@pytest.mark.parametrize("kind", [sparse.lil_array, sparse.dok_array, sparse.coo_array])
def test_sparse_tables_of_any_kind(kind):
    X = histograms(6, 8)
    for kernel in (HistogramIntersection(), AdditiveChiSquared(), ChiSquared()):
        assert_rounded(kernel(kind(X)), kernel(X))
    # The same bin twice is their sum, for all who look at it.
    twice = sparse.csr_array(([3.0, -1.0, 2.0], [0, 0, 1], [0, 3]), shape=(1, 2))
    kernel = HistogramIntersection()
    assert kernel(twice, twice).tolist() == kernel(twice).tolist() == [[4.0]]
    assert kernel.diag(twice).tolist() == [4.0]


def test_columns_that_are_not_there_are_refused():
    with pytest.raises(InvalidInput, match=r"On\(4:2, .* has no columns"):
        On(slice(4, 2), RBF())(histograms(3, 5))
    with pytest.raises(InvalidInput, match=r"On\(0:2, .* needs a table"):
        On(slice(0, 2), RBF())(np.ones(5))
    X = histograms(3, 5)
    with pytest.raises(InvalidInput, match=r"On\(2:9, .* was given a table of 5 columns"):
        On(slice(2, 9), RBF())(X)
    with pytest.raises(InvalidInput, match=r"On\(-9:, .* was given a table of 5 columns"):
        On(slice(-9, None), RBF()).diag(X)
    with pytest.raises(InvalidInput, match=r"weights of shape \(2,\) for 3 columns"):
        On(slice(0, 3), RBF(), np.ones(2))(X)
    with pytest.raises(InvalidInput, match=r"columns=\[1, 2\] is not a slice"):
        On([1, 2], RBF())(X)


def test_a_kernel_on_columns_has_the_parameters_of_the_inner_one():
    kernel = On(LEFT, ChiSquared(2.0) * RBF(3.0))
    np.testing.assert_array_equal(kernel.theta, np.log([2.0, 3.0]))
    np.testing.assert_array_equal(kernel.bounds, np.log([[1e-5, 1e5]] * 2))
    names = [h.name for h in kernel.hyperparameters]
    assert names == ["kernel__k1__gamma", "kernel__k2__length_scale"]
    assert kernel.set_params(kernel__k1__gamma=5.0).kernel.k1.gamma == 5.0
    other = kernel.clone_with_theta(np.zeros(2))
    assert (other.kernel.k1.gamma, kernel.kernel.k1.gamma) == (1.0, 5.0)
    K, gradient = kernel(X60, eval_gradient=True)
    inner, inner_gradient = kernel.kernel(X60[:, LEFT], eval_gradient=True)
    np.testing.assert_array_equal(K, inner)
    np.testing.assert_array_equal(gradient, inner_gradient)
    assert not kernel.is_stationary()
    assert On(LEFT, RBF()).is_stationary()
    assert kernel.requires_vector_input


@pytest.mark.parametrize(
    "kernel", [*KERNELS, *COMPOSED, On(slice(0, 2), RBF(), np.array([1.0, 2.0]))], ids=str
)
def test_kernels_are_values(kernel):
    for twin in clone(kernel), copy.deepcopy(kernel), type(kernel)(**kernel.get_params(deep=False)):
        assert twin == kernel
        assert repr(twin) == repr(kernel)
        np.testing.assert_array_equal(twin.theta, kernel.theta)
    assert kernel != RBF()


def test_kernels_that_differ_are_not_equal():
    assert ChiSquared(1.0) != ChiSquared(2.0)
    assert ChiSquared(1.0) != ExponentialIntersection(1.0)
    assert On(LEFT, RBF()) != On(RIGHT, RBF())
    assert On(LEFT, RBF(1.0)) != On(LEFT, RBF(2.0))
    assert On(slice(0, 2), RBF(), np.ones(2)) != On(slice(0, 2), RBF())
    assert On(slice(0, 2), RBF(), np.ones(2)) != On(slice(0, 2), RBF(), np.zeros(2))
    assert (
        repr(On(slice(4, None, 2), RBF(), np.ones(2))) == "On(4::2, RBF(length_scale=1), weighted)"
    )


# -- in use --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [*KERNELS, BOTH], ids=str)
def test_a_classifier_is_the_batch_fit_of_what_it_holds(kernel):
    noise, Z = 0.1, histograms(10, 60, 5)
    y = np.arange(40) % 3
    clf = GPClassifier(kernel, noise).fit(X60[:20], y[:20], ids=range(20))
    clf.add(X60[20:], y[20:], ids=range(20, 40))
    clf.remove([0, 7, 25]).replace([30], Z[:1]).relabel([2], [1])
    held = np.setdiff1d(np.arange(40), [0, 7, 25])
    X, y = X60.copy(), y.copy()
    X[30], y[2] = Z[0], 1
    T = oracle.one_vs_all(y[held])[1]
    K = oracle.covariance(kernel, X[held], noise)
    order = np.argsort(clf.ids_)
    np.testing.assert_array_equal(clf.ids_[order], held)
    want = oracle.scores(kernel, noise, X[held], T, Z)
    assert_solves(clf.decision_function(Z), want, K, T, left=kernel(X[held], Z))
    bad = X60[:2].copy()
    bad[1, 3] = -1
    with pytest.raises(InvalidInput, match=r"negative: -1\.0 in row 1, column 3"):
        clf.add(bad, [0, 1])
    assert_solves(clf.decision_function(Z), want, K, T, left=kernel(X[held], Z))


@pytest.mark.filterwarnings("ignore:The optimal value found:sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_learns_the_parameters():
    y = X60[:, :20].sum(axis=1) - X60[:, 50:].sum(axis=1)
    start = GaussianProcessRegressor(BOTH, alpha=0.1, optimizer=None).fit(X60, y)
    model = GaussianProcessRegressor(BOTH, alpha=0.1).fit(X60, y)
    assert model.log_marginal_likelihood_value_ > start.log_marginal_likelihood_value_
    assert model.kernel_ != BOTH
    assert len(model.kernel_.theta) == 3
    mean, deviation = model.predict(X60[:3], return_std=True)
    assert mean.shape == deviation.shape == (3,)
    # The gradient at the start against the likelihood's own change.
    value, slope = start.log_marginal_likelihood(BOTH.theta, eval_gradient=True)
    step = np.cbrt(EPS)
    for i, direction in enumerate(np.eye(3) * step):
        up = start.log_marginal_likelihood(BOTH.theta + direction)
        down = start.log_marginal_likelihood(BOTH.theta - direction)
        cond = np.linalg.cond(BOTH(X60) + 0.1 * np.eye(40))
        assert abs((up - down) / (2 * step) - slope[i]) <= 4 * EPS * cond * abs(value) / step


def _intersections(X):
    return HistogramIntersection()(X)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_processes_and_threads_compute_the_same():
    X = histograms(200, 100)
    want = _intersections(X)
    with ThreadPoolExecutor(3) as pool:
        for got in pool.map(_intersections, [X] * 6):
            np.testing.assert_array_equal(got, want)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for got in pool.map(_intersections, [X] * 4):
            np.testing.assert_array_equal(got, want)
