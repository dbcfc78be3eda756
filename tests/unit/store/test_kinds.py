"""Values as text and back."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as standard

from knowmore.errors import InvalidInput
from knowmore.kernels import (
    AdditiveChiSquared,
    ChiSquared,
    ExponentialIntersection,
    HistogramIntersection,
    On,
    Task,
)
from knowmore.linalg import Grid
from knowmore.store import kinds
from knowmore.subspaces import Truncation

KERNELS = [
    standard.RBF([0.1, 2.0], length_scale_bounds="fixed"),
    standard.Matern(0.3, (1e-3, 1e9), nu=np.inf),
    standard.RationalQuadratic(),
    standard.ExpSineSquared(2.0, 3.0),
    standard.DotProduct(0.0),
    standard.PairwiseKernel(metric="laplacian"),
    2.0 * standard.RBF() + standard.WhiteKernel(0.1) ** 2,
    standard.CompoundKernel([standard.RBF(), standard.ConstantKernel(3.0)]),
    HistogramIntersection(),
    AdditiveChiSquared(),
    ChiSquared(0.25),
    ExponentialIntersection(3.0),
    On(slice(0, 2), standard.RBF(), np.array([0.5, 1.0])) * Task(0.25),
    On(slice(None, -1), standard.RBF(0.1 + 0.2)),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_kernels(kernel):
    again = kinds.valued(json.loads(json.dumps(kinds.plain(kernel))))
    assert type(again) is type(kernel)
    assert repr(again.get_params()) == repr(kernel.get_params())


def test_every_kernel_has_a_name():
    assert {type(part) for part in KERNELS} >= set(kinds.KERNELS.values()) - {
        standard.ConstantKernel,
        standard.WhiteKernel,
        standard.Exponentiation,
        Task,
        On,
        standard.Product,
    }


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        0.1 + 0.2,
        -0.0,
        "naïve\0\ud800",
        [1, "a", None],
        (1, (2.5, "b")),
        {"a": 1.0, 2: 0.5, True: 3.0},
        slice(1, None, 2),
        Truncation(3, 0.5),
        np.float64(2.5),
    ],
    ids=repr,
)
def test_settings(value):
    assert repr(kinds.valued(json.loads(json.dumps(kinds.plain(value))))) in (
        repr(value),
        repr(getattr(value, "item", lambda: None)()),
    )


def test_grids():
    grid = Grid(np.array([-3, 150]), 42)
    assert kinds.valued(json.loads(json.dumps(kinds.plain(grid)))) == grid


class Own(standard.RBF):
    pass


@pytest.mark.parametrize("value", [Own(), len, lambda X, Y: X @ Y.T])
def test_what_has_no_name_is_refused(value):
    with pytest.raises(InvalidInput, match="must not run anybody's code"):
        kinds.plain(value)


def test_other_types_are_refused():
    with pytest.raises(InvalidInput, match="A setting is an object"):
        kinds.plain(object())


@pytest.mark.parametrize(
    "found",
    [
        {"kernel": "rbf", "with": {}},
        {"kernel": "rbf", "with": {"length_scale": 1, "length_scale_bounds": 1, "more": 1}},
        {"kernel": "Own", "with": {}},
        {"kernel": "rbf"},
        {"array": [1], "type": "O"},
        {"array": ["x"], "type": "<f8"},
        {"grid": ["x"], "bits": 21},
        {"truncation": [1]},
        {"other": 1},
        [1],
    ],
)
def test_what_makes_no_sense(found):
    with pytest.raises((LookupError, TypeError, ValueError)):
        kinds.valued(found)


def test_rows_of_other_lengths():
    with pytest.raises(ValueError, match="another length"):
        kinds.read_rows([b"1234567"], 2)
    with pytest.raises(LookupError):
        kinds.read_rows([bytes(6)], 2)
    with pytest.raises(ValueError, match="not finite"):
        kinds.read_rows([np.array([np.nan, 1.0]).tobytes()], 2)


def test_rows_of_mixed_types():
    rows = [np.array([1, 2], "<u1").tobytes(), np.array([0.5, 2], "<f4").tobytes()]
    np.testing.assert_array_equal(kinds.read_rows(rows, 2), [[1, 2], [0.5, 2]])
