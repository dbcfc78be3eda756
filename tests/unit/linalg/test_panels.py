"""Freed panels wait for the next of their shape, within limits."""

import numpy as np

from knowmore.linalg import panels


def test_a_freed_panel_is_used_again_and_one_without_bytes_is_not_kept() -> None:
    panels._spare.clear()
    shapes = [panels.Panel(start, np.dtype(float), 1).left.shape for start in (0, 128, 0, 128)]
    assert shapes == [(128, 0), (128, 128), (128, 0), (128, 128)]
    assert {key: len(kept) for key, kept in panels._spare.items()} == {(128, "d"): 1}


def test_freed_panels_keep_no_more_than_the_limit(monkeypatch) -> None:
    panels._spare.clear()
    monkeypatch.setattr(panels, "_SPARE_BYTES", 3 * 128 * 128 * 8)
    some = [panels.Panel(128, np.dtype(float), 1) for _ in range(5)]
    some.clear()
    assert [len(kept) for kept in panels._spare.values()] == [3]
