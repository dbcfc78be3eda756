"""Ten thousand random edits, and the model is still the batch fit."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from sklearn.gaussian_process.kernels import RBF
from tolerance import assert_solves

from knowmore.edits import Add, Relabel, Remove, Replace
from knowmore.examples import Examples
from knowmore.linalg import Cholesky, Inverse
from knowmore.models import KernelModel, one_vs_all

pytestmark = pytest.mark.slow

EDITS = 10_000


def random_edit(examples, rng, i):
    """Apply an edit that keeps about forty examples, a tenth of them near-duplicates."""
    ids = examples.ids
    one = (ids[rng.integers(len(ids))].item(),)
    x = rng.normal(size=(1, 4))
    if rng.random() < 0.1:
        x = examples.X[rng.integers(len(ids))][None] + 1e-3 * x
    label = rng.integers(0, 3, 1)
    kind = rng.integers(4)
    if kind == 0 and len(ids) > 30:
        return Remove(one)
    if kind == 1:
        return Replace(one, x)
    if kind == 2:
        return Relabel(one, label)
    return Add(x, label) if len(ids) < 50 else Remove(one)


@pytest.mark.parametrize(
    ("factor", "noise"), [(Cholesky(), 1e-6), (Cholesky(), 1e-2), (Inverse(), 1e-4)]
)
def test_ten_thousand_edits(factor, noise):
    rng = np.random.default_rng(11)
    kernel = RBF(2.0)
    examples = Examples.of(rng.normal(size=(40, 4)), rng.integers(0, 3, 40))
    gp = KernelModel.of(kernel, noise, examples, one_vs_all, factor)
    queries = rng.normal(size=(20, 4))
    solver = type(factor).__name__.lower()
    for i in range(1, EDITS + 1):
        examples = examples.apply(random_edit(examples, rng, i))
        gp = gp.follow(examples)
        if i % (EDITS // 10) == 0:
            _, T = oracle.one_vs_all(examples.labels.tolist())
            K = oracle.covariance(kernel, examples.X, noise)
            k = kernel(examples.X, queries)
            want = k.T @ oracle.solve(K, T)
            assert_solves(gp.mean(queries), want, K, T, solver=solver, left=k)
