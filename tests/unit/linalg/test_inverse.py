"""The paper's formulas: eqs. (6)-(9) as corrected, and the check of the residual."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tolerance import assert_solves

from knowmore.errors import NotPositiveDefinite
from knowmore.linalg import Inverse, inverse
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


def test_replacing_rows():
    target, kept = changed(), np.delete(np.arange(40), S)
    factor = inverse_of(A).delete(S)
    np.testing.assert_array_equal(factor.A, A[np.ix_(kept, kept)])
    factor = factor.append(target[np.ix_(kept, S)], target[np.ix_(S, S)])
    order = np.append(kept, S)
    target = target[np.ix_(order, order)]
    np.testing.assert_array_equal(factor.A, target)
    assert_solves(factor.P, np.linalg.inv(target), target, np.eye(40), solver="inverse")
    assert factor.refreshes == 0


def drifted(**settings):
    """The inverse of all rows but the last three, with errors in it."""
    factor = inverse_of(A[:37, :37], **settings)
    return replace(factor, P=factor.P + 1e-9 * RNG.normal(size=(37, 37)))


def test_a_drifted_inverse_refreshes_itself():
    assert drifted().residual() > 1e-10
    healed = drifted().append(A[:37, 37:], A[37:, 37:])
    assert healed.refreshes == 1
    assert_solves(healed.P, np.linalg.inv(A), A, np.eye(40), solver="inverse")
    healed = drifted().delete(S)
    assert healed.refreshes == 1
    assert_solves(healed.P, np.linalg.inv(healed.A), healed.A, np.eye(34), solver="inverse")


def test_without_patience_it_is_left_as_the_paper_has_it():
    assert drifted(patience=np.inf).append(A[:37, 37:], A[37:, 37:]).refreshes == 0
    assert drifted(patience=np.inf).delete(S).refreshes == 0


def test_a_large_deletion_inverts_what_is_left(monkeypatch):
    factor, rows, updates = inverse_of(A), np.arange(25), []
    monkeypatch.setattr(inverse, "_woodbury", lambda P, a, S: updates.append(len(S)))
    left = factor.delete(rows)
    assert updates == []
    np.testing.assert_array_equal(left.A, A[25:, 25:])
    assert_solves(left.P, np.linalg.inv(left.A), left.A, np.eye(15), solver="inverse")
    replace(factor, patience=np.inf).delete(rows)
    factor.delete(rows[:10])
    assert updates == [25, 10]


def singular(n, gap, rng):
    """A covariance matrix without noise, whose condition is about 1 / gap."""
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    A = (Q * np.geomspace(1, gap, n)) @ Q.T
    return (A + A.T) / 2


@pytest.mark.parametrize("step", [1, 3, 12])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_what_it_accepts_it_can_answer_and_what_it_cannot_it_refuses(step, dtype):
    eps = np.finfo(dtype).eps
    for exponent in range(1, 20):
        B = singular(12, eps ** (exponent / 20), np.random.default_rng(exponent))
        factor = Inverse(np.dtype(dtype))
        try:
            for i in range(0, 12, step):
                factor = factor.append(B[:i, i : i + step], B[i : i + step, i : i + step])
        except NotPositiveDefinite:
            # It refuses sooner than a Cholesky factor, but not much.
            assert np.linalg.cond(B) * eps > factor.traits.rounding / 100
            continue
        # A factor that was accepted is one: P is positive definite and nearly the inverse.
        assert factor.half_solve(np.eye(12)).shape == (12, 12)
        assert np.isfinite(factor.logdet())
        assert (
            abs(factor.A.astype(float) @ factor.P - np.eye(12)).max() <= 2 * factor.traits.rounding
        )
        rest = factor.delete(np.array([1, 5]))
        assert np.isfinite(rest.logdet())


def test_a_fresh_inverse_is_as_good_from_the_left_as_from_the_right():
    B = singular(30, 1e-11, RNG)
    P = inverse_of(B).P
    size = 30 * np.finfo(float).eps * np.linalg.cond(B)
    for product in (B @ P, P @ B):
        assert abs(product - np.eye(30)).max() <= size
