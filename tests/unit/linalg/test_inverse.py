"""The paper's formulas: eqs. (6)-(9) as corrected, its two ways to update, and the watch kept."""

from __future__ import annotations

import numpy as np
import pytest
from tolerance import assert_solves

from knowmore.errors import NotPositiveDefinite
from knowmore.linalg import Inverse
from knowmore.linalg.inverse import _woodbury

RNG = np.random.default_rng(2)


def kernel(A, B):
    return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=-1))


X = RNG.normal(size=(40, 3))
A = kernel(X, X) + 0.1 * np.eye(40)
S = np.array([2, 9, 30])


def inverse_of(A, **settings):
    return Inverse(**settings).append(np.empty((0, len(A))), A)


def changed():
    """The matrix after three examples have other features."""
    Z = X.copy()
    Z[S] = RNG.normal(size=(3, 3))
    return kernel(Z, Z) + 0.1 * np.eye(40)


def literal(P, A, target, rows, inner):
    """Eqs. (6), (7) and (9) word for word, with the factor `inner` for q in S."""
    a = np.zeros((len(A), len(rows)))
    E = np.zeros_like(a)
    for c, i in enumerate(rows):
        E[i, c] = 1
        for q in range(len(A)):
            a[q, c] = (inner if q in rows else 1.0) * (target[i, q] - A[i, q])
    U, V = np.hstack([a, E]), np.vstack([E.T, a.T])
    core = np.eye(2 * len(rows)) + V @ P @ U
    return P - P @ U @ np.linalg.solve(core, V @ P)


def test_the_symmetric_form_is_the_paper_s_with_one_half():
    target = changed()
    P = inverse_of(A).P
    want = literal(P, A, target, S, inner=0.5)
    got = P.copy()
    _woodbury(got, (target[S] - A[S]).T, S)
    assert_solves(got, want, target, np.eye(40), solver="inverse")
    assert_solves(got, np.linalg.inv(target), target, np.eye(40), solver="inverse")
    assert (got == got.T).all()


def test_the_misprint_of_one_edition_is_not_followed():
    target = changed()
    wrong = literal(np.linalg.inv(A), A, target, S, inner=1.0)
    assert abs(wrong - np.linalg.inv(target)).max() > 0.1


@pytest.mark.parametrize("update", ["direct", "iterative", "auto"])
def test_changing_rows(update):
    target = changed()
    factor = inverse_of(A, update=update).change(S, target[S])
    np.testing.assert_array_equal(factor.A, target)
    assert_solves(factor.P, np.linalg.inv(target), target, np.eye(40), solver="inverse")


def test_direct_and_iterative_are_the_same_for_one_row():
    one = [
        inverse_of(A[:39, :39], update=update).append(A[:39, 39:], A[39:, 39:])
        for update in ("direct", "iterative")
    ]
    np.testing.assert_array_equal(one[0].P, one[1].P)


def test_a_drifted_inverse_refreshes_itself():
    factor = inverse_of(A)
    spoilt = Inverse(A=factor.A, P=factor.P + 1e-9 * RNG.normal(size=(40, 40)))
    assert spoilt.residual() > 1e-10
    healed = spoilt.change(S, A[S])
    assert healed.refreshes == 1
    assert_solves(healed.P, np.linalg.inv(A), A, np.eye(40), solver="inverse")


def test_without_patience_it_is_left_as_the_paper_has_it():
    factor = inverse_of(A, patience=float("inf"))
    spoilt = Inverse(A=factor.A, P=factor.P + 1e-9 * RNG.normal(size=(40, 40)), patience=np.inf)
    assert spoilt.change(S, A[S]).refreshes == 0


def test_a_large_change_inverts_afresh_only_where_it_may_choose():
    rows = np.arange(20)
    assert not inverse_of(A, update="direct")._is_dear(20, 40)
    assert inverse_of(A, update="auto")._is_dear(20, 40)
    for update in ("direct", "auto"):
        kept = inverse_of(A, update=update).delete(rows)
        want = np.linalg.inv(A[20:, 20:])
        assert_solves(kept.P, want, A[20:, 20:], np.eye(20), solver="inverse")


def singular(n, gap, rng):
    """A covariance matrix without noise, whose condition is about 1 / gap."""
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    A = (Q * np.geomspace(1, gap, n)) @ Q.T
    return (A + A.T) / 2


@pytest.mark.parametrize("update", ["direct", "iterative", "auto"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_it_accepts_it_can_answer_and_what_it_cannot_it_refuses(update, dtype):
    eps = np.finfo(dtype).eps
    for exponent in range(1, 20):
        B = singular(12, eps ** (exponent / 20), np.random.default_rng(exponent))
        factor = Inverse(np.dtype(dtype), update)
        try:
            for i in range(0, 12, 3):
                factor = factor.append(B[:i, i : i + 3], B[i : i + 3, i : i + 3])
        except NotPositiveDefinite:
            # It bears less than a factor does, but not much.
            assert np.linalg.cond(B) * eps > factor.bears / 100
            continue
        # A factor that was accepted is one: P is positive definite and nearly the inverse.
        assert factor.half_solve(np.eye(12)).shape == (12, 12)
        assert np.isfinite(factor.logdet())
        assert abs(factor.A.astype(float) @ factor.P - np.eye(12)).max() <= 2 * factor.bears
        rest = factor.delete(np.array([1, 5]))
        assert np.isfinite(rest.logdet())


def test_a_fresh_inverse_is_as_good_from_the_left_as_from_the_right():
    B = singular(30, 1e-11, RNG)
    P = inverse_of(B).P
    size = 30 * np.finfo(float).eps * np.linalg.cond(B)
    for product in (B @ P, P @ B):
        assert abs(product - np.eye(30)).max() <= size
