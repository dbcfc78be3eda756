"""The kernel of tasks, and what it makes of two Gaussian processes."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from tolerance import assert_rounded, assert_solves

from knowmore import GPClassifier
from knowmore.errors import InvalidInput
from knowmore.kernels import On, Task, corner, cross, diagonal, is_positive

NOISE = 0.01


def table(n, tasks, seed=0):
    """Three features and the task, drawn from so many."""
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.normal(size=(n, 3)), rng.integers(tasks, size=n)])


def dependent(rho):
    return On(slice(0, -1), RBF(1.5)) * Task(rho)


@pytest.mark.parametrize("rho", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("column", [-1, 0, 2])
def test_values_are_those_of_the_loop(rho, column):
    X, Y = (np.roll(table(n, 3, n), column + 1, axis=1) for n in (9, 5))
    want = [[1.0 if x[column] == y[column] else rho for y in Y] for x in X]
    kernel = Task(rho, column)
    for A, B in [(X, Y), (sparse.csr_array(X), sparse.csr_array(Y)), (X.astype(np.float32), Y)]:
        np.testing.assert_array_equal(kernel(A, B), want)
    np.testing.assert_array_equal(kernel(X), kernel(X, X))
    np.testing.assert_array_equal(kernel.diag(X), np.ones(9))
    np.testing.assert_array_equal(cross(kernel, X, Y), want)
    np.testing.assert_array_equal(corner(kernel, X), kernel(X))
    np.testing.assert_array_equal(diagonal(kernel, X), np.ones(9))


def test_it_is_known_to_be_positive():
    assert is_positive(Task(0.0))
    assert is_positive(dependent(1.0))
    assert not is_positive(Task(1.1))
    assert np.linalg.eigvalsh(Task(0.4)(table(20, 4)))[0] > -100 * np.finfo(float).eps


def test_rho_is_a_parameter_by_its_logarithm():
    X, kernel = table(12, 3), Task(0.3)
    K, gradient = kernel(X, eval_gradient=True)
    np.testing.assert_array_equal(K, kernel(X))
    # K is linear in rho, so that rho dK / drho = K(rho) - K(0).
    np.testing.assert_array_equal(gradient[:, :, 0], kernel(X) - Task(0.0)(X))
    assert_rounded(kernel.clone_with_theta(np.log([0.7])).rho, 0.7)
    assert clone(Task(0.3, 2)) == Task(0.3, 2)
    assert repr(dependent(0.5)) == "On(0:-1, RBF(length_scale=1.5)) * Task(rho=0.5)"
    assert repr(Task(0.5, 2)) == "Task(rho=0.5, column=2)"
    assert kernel.is_stationary()


@pytest.mark.parametrize("kernel", [Task(0.0), Task(0.3, rho_bounds="fixed")])
def test_what_is_fixed_has_no_gradient(kernel):
    X = table(5, 2)
    assert kernel.theta.size == 0
    assert kernel(X, eval_gradient=True)[1].shape == (5, 5, 0)


def test_scikit_learn_finds_rho():
    """Two tasks that have one of two terms in common: neither the same nor independent."""
    X = table(30, 1)
    X = np.vstack([X, X + np.eye(4)[3]])
    y = np.sin(X[:, 0]) + X[:, 3] * np.sin(2 * X[:, 1])
    gp = GaussianProcessRegressor(dependent(0.1), alpha=NOISE).fit(X, y)
    (length, rho), best = gp.kernel_.theta, gp.log_marginal_likelihood_value_
    assert 0.2 < np.exp(rho) < 0.9
    for step in (-0.1, 0.1):
        assert gp.log_marginal_likelihood([length, rho + step]) < best


def halves(seed=1):
    """Examples of two tasks, labels, and queries of the first."""
    X = table(40, 2, seed)
    y = X[:, 0] + 0.3 * X[:, 3] > 0
    queries = np.column_stack([np.random.default_rng(seed).normal(size=(7, 3)), np.zeros(7)])
    return X, y, queries


def test_rho_zero_is_independent_learning():
    X, y, Z = halves()
    one = X[:, 3] == 0
    clf = GPClassifier(dependent(0.0), NOISE).fit(X, y)
    K = oracle.covariance(RBF(1.5), X[one, :3], NOISE)
    T = np.where(y[one], 1.0, -1.0)[:, None]
    want = oracle.scores(RBF(1.5), NOISE, X[one, :3], T, Z[:, :3])
    k = RBF(1.5)(X[one, :3], Z[:, :3])
    assert_solves(clf.decision_function(Z)[:, None], want, K, T, left=k)


def test_rho_one_pools_the_examples():
    X, y, Z = halves()
    clf = GPClassifier(dependent(1.0), NOISE).fit(X, y)
    T = np.where(y, 1.0, -1.0)[:, None]
    K = oracle.covariance(RBF(1.5), X[:, :3], NOISE)
    want = oracle.scores(RBF(1.5), NOISE, X[:, :3], T, Z[:, :3])
    k = RBF(1.5)(X[:, :3], Z[:, :3])
    assert_solves(clf.decision_function(Z)[:, None], want, K, T, left=k)


def test_it_goes_on_living():
    X, y, Z = halves()
    clf = GPClassifier(dependent(0.6), NOISE).fit(X[:25], y[:25])
    clf.decision_function(Z)
    clf.add(X[25:], y[25:])
    clf.remove([3, 17, 30])
    kept = np.delete(np.arange(40), [3, 17, 30])
    T = np.where(y[kept], 1.0, -1.0)[:, None]
    K = oracle.covariance(dependent(0.6), X[kept], NOISE)
    want = oracle.scores(dependent(0.6), NOISE, X[kept], T, Z)
    k = dependent(0.6)(X[kept], Z)
    assert_solves(clf.decision_function(Z)[:, None], want, K, T, left=k)


@pytest.mark.parametrize("rho", [-0.1, 1.01, np.nan])
def test_a_rho_that_is_none(rho):
    with pytest.raises(InvalidInput, match=r"rho=.* must be a number in \[0, 1\]. Tasks have"):
        Task(rho)(table(3, 2))


def test_a_table_without_that_column():
    with pytest.raises(InvalidInput, match="the task in column 4, but was given a table of 4 col"):
        Task(0.5, 4)(table(3, 2))
    with pytest.raises(InvalidInput, match=r"gradient is that of .* but Y was given"):
        Task(0.5)(table(3, 2), table(3, 2), eval_gradient=True)
