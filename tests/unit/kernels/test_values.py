"""The values of a user's own kernel are checked before they are used."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.gaussian_process.kernels import (
    RBF,
    CompoundKernel,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Kernel,
    Matern,
    PairwiseKernel,
    RationalQuadratic,
    WhiteKernel,
)
from tolerance import assert_rounded

from knowmore import GPClassifier
from knowmore.errors import InvalidInput
from knowmore.kernels import (
    AdditiveChiSquared,
    ChiSquared,
    ExponentialIntersection,
    HistogramIntersection,
    On,
    Task,
    corner,
    cross,
    diagonal,
    is_positive,
)

X = abs(np.random.default_rng(0).normal(size=(30, 3)))
Y = np.arange(30) % 2


def rbf(A, B):
    return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))


def test_sparse_values_are_values():
    dense = GPClassifier(lambda A, B: np.where(rbf(A, B) > 0.5, rbf(A, B), 0), noise=9.0)
    thin = GPClassifier(
        lambda A, B: sparse.csr_array(np.where(rbf(A, B) > 0.5, rbf(A, B), 0)), noise=9.0
    )
    for clf in (dense, thin):
        clf.fit(X[:20], Y[:20]).add(X[20:], Y[20:])
    np.testing.assert_array_equal(thin.decision_function(X), dense.decision_function(X))
    np.testing.assert_array_equal(thin.predict_variance(X), dense.predict_variance(X))


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda K: K + 1j, "gave values of type complex128, but covariances are real numbers"),
        (lambda K: K + 0j, "gave values of type complex128, but covariances are real numbers"),
        (
            lambda K: np.ma.masked_greater(K, 0.5),
            "gave masked values, but covariances are real numbers",
        ),
        (lambda K: K.astype(str), "gave values of type <U32, but covariances are real numbers"),
        (lambda K: None, r"was asked for a block of shape \(30, 30\) and gave \(\)"),
        (lambda K: [["a"]], "gave values of type <U1, but covariances are real numbers"),
        (lambda K: K[0], r"was asked for a block of shape \(30, 30\) and gave \(30,\)"),
        (lambda K: sparse.csr_array(K + 1j), "gave values of type complex128"),
    ],
)
def test_what_is_no_block_of_real_numbers_is_refused(spoil, words):
    def kernel(A, B):
        return spoil(rbf(A, B))

    with pytest.raises(InvalidInput, match=words):
        GPClassifier(kernel).fit(X, Y)


def test_values_that_turn_bad_later_raise_at_the_call():
    def kernel(A, B):
        K = rbf(A, B)
        return K + 0j if (B > 9).any() else K

    clf = GPClassifier(kernel).fit(X, Y)
    before = clf.decision_function(X)
    for call in (
        lambda: clf.add(X[:1] + 10, Y[:1]),
        lambda: clf.replace([3], X[:1] + 10),
        lambda: clf.predict(X + 10),
        lambda: clf.predict_variance(X + 10),
    ):
        with pytest.raises(InvalidInput, match="complex128"):
            call()
    np.testing.assert_array_equal(clf.decision_function(X), before)


def test_other_numbers_are_taken_as_floats():
    for kind in (np.float32, np.longdouble, object, int):
        K = cross(lambda A, B, kind=kind: np.ones((len(A), len(B)), kind), X, X[:2])
        assert K.dtype == float
        np.testing.assert_array_equal(K, np.ones((30, 2)))
    unmasked = cross(lambda A, B: np.ma.array(rbf(A, B)), X, X)
    assert_rounded(unmasked, rbf(X, X))


def test_several_kernels_at_once_are_no_kernel():
    several = CompoundKernel([RBF(), RBF(2.0)])
    with pytest.raises(InvalidInput, match=r"block of shape \(30, 30\) and gave \(30, 30, 2\)"):
        GPClassifier(several).fit(X, Y)


class WrongDiagonal(RBF):
    """A kernel whose diagonal is a matrix."""

    def diag(self, X):
        return np.eye(len(X))


def test_a_diagonal_of_another_shape_is_refused():
    with pytest.raises(InvalidInput, match=r"a block of shape \(30,\) and gave \(30, 30\)"):
        diagonal(WrongDiagonal(), X)


# -- one value, wherever it stands ---------------------------------------------------------------

KERNELS = [
    RBF(0.7),
    RBF([0.5, 1.0, 2.0]),
    *[Matern(1.3, nu=nu) for nu in (0.01, 0.05, 0.5, 0.9, 1.5, 2.5, 8.0, 20.0, 100.0, np.inf)],
    RationalQuadratic(1.5, 0.7),
    ExpSineSquared(1.0, 1e-3),
    DotProduct(0.3),
    DotProduct(0.3) ** 3,
    ConstantKernel(2.0) * RBF(1.0) + Matern(nu=0.05) ** 2,
    *[PairwiseKernel(metric=name) for name in ("linear", "polynomial", "laplacian", "cosine")],
    *[PairwiseKernel(metric=name) for name in ("chi2", "additive_chi2", "sigmoid", "rbf")],
    HistogramIntersection(),
    AdditiveChiSquared(),
    ChiSquared(0.5),
    ExponentialIntersection(0.5),
    On(slice(0, 2), Matern(nu=0.05)),
    On(slice(0, 2), RBF()) * Task(0.5),
    rbf,
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: getattr(k, "__name__", str(k)))
def test_block_corner_and_diagonal_have_the_same_values(kernel):
    # Rows that are there twice, and rows that are next to each other.
    rows = np.vstack([X, X[:5], X[:5] * (1 + 1e-15), np.zeros((2, 3))])
    K = corner(kernel, rows)
    # A scikit-learn kernel that is asked itself may take |x - y|^2 from products.
    roundings = 1000 if isinstance(kernel, PairwiseKernel) else 100
    scale = abs(K).max()
    assert_rounded(cross(kernel, rows, rows.copy()), K, roundings, scale)
    assert_rounded(diagonal(kernel, rows), np.diagonal(K), roundings, scale)
    for i in (0, 30, 35, 40):
        assert_rounded(corner(kernel, rows[[i]])[0, 0], K[i, i], roundings, scale)
        assert_rounded(cross(kernel, rows, rows[[i]])[:, 0], K[:, i], roundings, scale)
    assert diagonal(kernel, rows[:0]).shape == (0,)


@pytest.mark.parametrize("kernel", [k for k in KERNELS if isinstance(k, Kernel)], ids=str)
def test_kernels_known_to_be_positive_are(kernel):
    if is_positive(kernel):
        for scale in (1e-6, 1.0, 30.0):
            K = corner(kernel, X * scale)
            least = np.linalg.eigvalsh(K).min()
            assert least >= -len(K) * 10 * np.finfo(float).eps * abs(K).max()


def test_positivity_is_not_claimed_where_it_does_not_hold():
    assert not is_positive(RationalQuadratic(alpha=-1.0))
    assert not is_positive(WhiteKernel(-1.0))
    assert not is_positive(ChiSquared(-0.5))
    # In the plane a periodic kernel of Euclidean distances is indefinite.
    assert not is_positive(ExpSineSquared())
    grid = np.random.default_rng(1).normal(size=(60, 2)) * 3
    assert np.linalg.eigvalsh(corner(ExpSineSquared(), grid)).min() < -0.01
