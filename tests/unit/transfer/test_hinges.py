"""beta is the least sum of hinges on the ball, and the certificate is one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint, minimize
from tolerance import GAP

from knowmore import KnowmoreError
from knowmore.transfer.coding import Hinges, interior, projected, subgradient


def problem(seed, m, N, centre=0.0):
    rng = np.random.default_rng(seed)
    return Hinges(rng.normal(centre, 1, size=m), rng.normal(size=(m, N)) / np.sqrt(N))


def reference(hinges, positive):
    """The least value by SciPy's SLSQP: slacks above each hinge, the ball as a constraint."""
    m, N = hinges.slopes.shape
    start = np.r_[np.full(N, 0.1 / N), np.maximum(hinges.offsets, 0) + 1]
    cost = np.r_[np.zeros(N), np.ones(m)]
    above = np.hstack([-hinges.slopes, np.eye(m)])
    found = minimize(
        lambda x: cost @ x,
        start,
        jac=lambda x: cost,
        method="SLSQP",
        bounds=[(0 if positive else -1, 1)] * N + [(0, None)] * m,
        constraints=[
            {"type": "ineq", "fun": lambda x: above @ x - hinges.offsets, "jac": lambda x: above},
            {
                "type": "ineq",
                "fun": lambda x: 1 - x[:N] @ x[:N],
                "jac": lambda x: np.r_[-2 * x[:N], np.zeros(m)],
            },
        ],
        options={"ftol": 1e-11, "maxiter": 500},
    )
    return hinges.value(projected(found.x[:N], positive))


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize(("seed", "m", "N"), [(0, 20, 3), (1, 40, 6), (2, 10, 12), (3, 60, 5)])
def test_the_interior_optimum_is_that_of_a_reference_solver(seed, m, N, positive):
    hinges = problem(seed, m, N)
    found = interior(hinges, positive)
    best = reference(hinges, positive)
    assert abs(found.value - best) <= GAP * best
    assert found.value - found.gap <= best * (1 + 1e-12)
    assert found.gap <= GAP * best


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize(("seed", "m", "N"), [(0, 20, 3), (1, 200, 20), (2, 10, 12), (3, 900, 50)])
def test_the_gap_bounds_what_any_other_point_could_gain(seed, m, N, positive):
    hinges = problem(seed, m, N)
    exact, steps = interior(hinges, positive), subgradient(hinges, positive)
    for found in (exact, steps):
        beta = found.beta
        assert beta @ beta <= 1 + 4 * np.finfo(float).eps
        assert not positive or (beta >= 0).all()
        assert found.value == hinges.value(beta)
        assert found.gap >= -1e-12 * found.value
    assert exact.gap <= 1e-7 * exact.value
    # The paper's steps end above the bound, and not far above the optimum.
    assert exact.value - exact.gap <= steps.value <= exact.value * (1 + 1e-2)
    rng = np.random.default_rng(9)
    for _ in range(100):
        other = projected(rng.normal(size=N), positive)
        assert hinges.value(other) >= exact.value - exact.gap


def test_the_order_of_the_hinges_does_not_matter():
    hinges = problem(5, 150, 10)
    order = np.random.default_rng(0).permutation(150)
    other = interior(Hinges(hinges.offsets[order], hinges.slopes[order]), True)
    # Rounding of sums of 150 terms, magnified by the weight that the gap asks for.
    assert abs(other.beta - interior(hinges, True).beta).max() <= 150 * np.finfo(float).eps / 1e-8


def test_nothing_to_gain_is_no_transfer():
    closed = Hinges(np.full(4, -2.0), np.ones((4, 3)))
    flat = Hinges(np.ones(4), np.zeros((4, 3)))
    for hinges in (closed, flat):
        found = interior(hinges, True)
        assert found.beta.tolist() == [0, 0, 0]
        assert found.gap == 0


def test_extreme_scales_end_and_are_no_worse_than_no_transfer():
    rng = np.random.default_rng(0)
    for scale in (1e-150, 1e-30, 1e30, 1e100):
        hinges = Hinges(rng.normal(size=9), scale * rng.normal(size=(9, 3)))
        for positive in (True, False):
            found = interior(hinges, positive)
            assert found.value <= hinges.value(np.zeros(3))
            assert found.gap >= 0
    tiny = Hinges(np.array([1e-160, -1, -0.5, -0.2, -2]), rng.normal(size=(5, 3)))
    assert interior(tiny, True).value <= 1e-160
    with pytest.raises(KnowmoreError, match="not finite"):
        interior(Hinges(np.array([np.nan]), np.ones((1, 2))), True)


def test_the_projection_is_the_nearest_point_of_the_ball():
    rng = np.random.default_rng(0)
    ball = NonlinearConstraint(lambda x: x @ x, -np.inf, 1)
    for positive in (True, False):
        for _ in range(5):
            point = 2 * rng.normal(size=4)
            inside = [(0 if positive else None, None)] * 4
            found = minimize(
                lambda x, p=point: ((x - p) ** 2).sum(),
                np.full(4, 0.1),
                bounds=inside,
                constraints=[ball],
                method="SLSQP",
                options={"ftol": 1e-15},
            )
            np.testing.assert_allclose(projected(point, positive), found.x, atol=GAP)
