"""Adapted LS-SVM against the bordered system, its objective, and refits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from tolerance import assert_rounded, tolerance

from knowmore.transfer.choice import balanced, squashed
from papers.adapted import BETAS, Adapted, Prior

C = 5.0


def made(n=18, positives=3, priors=4, seed=0, d=4):
    """Inputs (n, d), labels, and hyperplanes of known categories (d, P)."""
    rng = np.random.default_rng(seed)
    y = np.repeat([1.0, -1.0], [positives, n - positives])
    X = rng.normal(size=(n, d))
    X[y > 0] += 1
    return X, y, rng.normal(size=(d, priors))


def system(K, zeta):
    n = len(K)
    return np.block([[K + np.diag(1 / (C * zeta)), np.ones((n, 1))], [np.ones((1, n)), 0.0]])


def solved(K, y, t, beta, zeta):
    """a (n,) and b, by a solve of the bordered system."""
    solution = np.linalg.solve(system(K, zeta), np.append(y - beta * t, 0.0))
    return solution[:-1], solution[-1]


def assert_close(got, want, K, y):
    """To the tolerance of a solve with the bordered matrix."""
    M = system(K, balanced(y))
    scale = np.linalg.norm(np.linalg.inv(M), 2) * np.linalg.norm(y) + abs(want).max()
    assert_rounded(got, want, tolerance(M) / np.finfo(float).eps, scale)


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("beta", [0.0, 0.4, 1.0])
def test_coefficients_and_scores_are_those_of_the_bordered_system(which, beta):
    X, y, W = made()
    K, Z = X @ X.T, np.random.default_rng(1).normal(size=(5, 4))
    adapted = Adapted.of(K, y, C, X @ W)
    along = Prior(which, beta, 0.0).along(4)
    a, b = solved(K, y, X @ W[:, which], beta, balanced(y))
    got_a, got_b = adapted.coefficients(along)
    assert_close(got_a, a, K, y)
    assert_close(got_b, np.asarray(b), K, y)
    got = adapted.mean(X @ Z.T, Z @ W, along)
    assert_close(got, beta * Z @ W[:, which] + Z @ X.T @ a + b, K, y)


def test_it_is_the_minimum_of_the_objective():
    X, y, W = made()
    zeta, beta, prior = balanced(y), 0.6, W[:, 1]

    def objective(wb):
        w, b = wb[:-1], wb[-1]
        r = y - X @ w - b
        value = 0.5 * ((w - beta * prior) ** 2).sum() + C / 2 * (zeta * r**2).sum()
        gradient = np.append(w - beta * prior - C * X.T @ (zeta * r), -C * (zeta * r).sum())
        return value, gradient

    a, b = Adapted.of(X @ X.T, y, C, X @ W).coefficients(Prior(1, beta, 0.0).along(4))
    w = beta * prior + X.T @ a
    value, gradient = objective(np.append(w, b))
    # The gradient vanishes as far as its terms cancel.
    terms = C * (abs(X).T @ (zeta * abs(y - X @ w - b))).max()
    assert_rounded(gradient, np.zeros(5), 1000, scale=terms)
    found = minimize(objective, np.zeros(5), jac=True).fun
    assert value <= found * (1 + 100 * np.finfo(float).eps)


def test_leaving_one_out_is_a_refit_with_the_same_weights():
    X, y, W = made()
    K, zeta = X @ X.T, balanced(y)
    betas = np.array([0.0, 0.3, 1.0])
    got = Adapted.of(K, y, C, X @ W).leave_one_out(betas)
    assert got.shape == (3, 4, 18)
    want = np.empty_like(got)
    for i in range(18):
        rest = np.delete(np.arange(18), i)
        for g, beta in enumerate(betas):
            for which in range(4):
                t = X @ W[:, which]
                inner = K[np.ix_(rest, rest)]
                a, b = solved(inner, y[rest], t[rest], beta, zeta[rest])
                want[g, which, i] = beta * t[i] + K[i, rest] @ a + b
    assert_close(got, want, K, y)


def test_a_constant_in_the_prior_is_the_biass():
    X, y, W = made()
    K = X @ X.T
    plain = Adapted.of(K, y, C, X @ W).leave_one_out(BETAS)
    assert_close(Adapted.of(K, y, C, X @ W + 7.0).leave_one_out(BETAS), plain, K, 7 * y)


def test_without_transfer_all_priors_are_one():
    X, y, W = made()
    scores = Adapted.of(X @ X.T, y, C, X @ W).leave_one_out(BETAS[:1])[0]
    np.testing.assert_array_equal(scores, np.broadcast_to(scores[0], scores.shape))


def test_the_best_prior_and_beta_of_all():
    X, y, W = made()
    adapted = Adapted.of(X @ X.T, y, C, X @ W)
    scores = adapted.leave_one_out(BETAS)
    values = {
        (which, beta): squashed(y, scores[g, which], balanced(y))
        for g, beta in enumerate(BETAS)
        for which in range(4)
    }
    best = adapted.best()
    # One call for all priors may sum in another order than one call for each.
    assert_rounded(best.value, max(values.values()))
    assert_rounded(values[best[:2]], best.value)


def test_the_hyperplane_of_the_task_itself_is_followed():
    """With one positive example of many; beside it, priors of chance."""
    rng = np.random.default_rng(4)
    X, y, W = made(n=41, positives=1, d=20, seed=4)
    W[:, 2] = 2 * (X[0] - X[1:].mean(axis=0)) / np.linalg.norm(X[0])
    W[:, [0, 1, 3]] = 0.1 * rng.normal(size=(20, 3))
    best = Adapted.of(X @ X.T, y, 0.1, X @ W).best()
    assert (best.which, best.beta > 0) == (2, True)


def test_of_equal_ones_the_less_transfer_and_the_first_prior():
    X, y, _ = made()
    best = Adapted.of(X @ X.T, y, C, np.zeros((18, 3))).best()
    assert best[:2] == (0, 0.0)
