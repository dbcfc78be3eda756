"""Freed panels wait for the next of their shape, within limits."""

import numpy as np
from tolerance import rounded

from knowmore.linalg import Cholesky, panels


def test_a_freed_panel_is_used_again_and_a_first_one_is_not_kept() -> None:
    panels._spare.clear()
    shapes = [panels.Panel(start, np.dtype(float), 1).columns.shape for start in (0, 128, 0, 128)]
    assert shapes == [(16, 16), (256, 128), (16, 16), (256, 128)]
    assert {key: len(kept) for key, kept in panels._spare.items()} == {(256, "d"): 1}


def test_freed_panels_keep_no_more_than_the_limit(monkeypatch) -> None:
    panels._spare.clear()
    monkeypatch.setattr(panels, "_SPARE_BYTES", 3 * 256 * 128 * 8)
    some = [panels.Panel(128, np.dtype(float), 1) for _ in range(5)]
    some.clear()
    assert [len(kept) for kept in panels._spare.values()] == [3]


def test_a_small_first_panel_grows_and_the_factor_before_keeps_its_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 150))
    A = X @ X.T + np.eye(150)
    factor, sizes = Cholesky(), []
    for i in range(150):
        before = factor
        factor = factor.append(A[:i, i : i + 1], A[i : i + 1, i : i + 1])
        sizes.append(len(factor.panels[0].diagonal))
        assert before.size == i
    assert sizes == [16] * 16 + [32] * 16 + [64] * 32 + [128] * 86
    error = abs(factor.lower() @ factor.lower().T - A).max()
    assert error <= 4 * np.finfo(float).eps * 150 * np.linalg.norm(A, 2)
    half = factor.delete(np.arange(140))
    assert half.lower() @ half.lower().T == rounded(A[140:, 140:])
    assert len(half.panels[0].diagonal) == 16
