"""Rows share what they have and never change."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from knowmore.examples import Rows


def test_appending_to_the_newest_copies_nothing():
    rows = Rows(np.zeros((2, 3))).append(np.ones((1, 3)))
    more = rows.append(np.full((1, 3), 2.0))
    assert np.shares_memory(rows.view, more.view)
    assert more.view[:, 0].tolist() == [0, 0, 1, 2]


def test_appending_to_an_older_one_leaves_the_newer_alone():
    old = Rows(np.zeros((2, 1)))
    first = old.append(np.array([[1.0]]))
    second = old.append(np.array([[2.0]]))
    assert first.view.ravel().tolist() == [0, 0, 1]
    assert second.view.ravel().tolist() == [0, 0, 2]
    assert old.view.ravel().tolist() == [0, 0]


def test_views_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        Rows(np.zeros(2)).view[0] = 1


def test_longer_strings_are_kept_whole():
    assert Rows(np.array(["a"])).append(np.array(["long"])).view.tolist() == ["a", "long"]


def test_many_threads_may_grow_one_value():
    start = Rows(np.arange(3))
    with ThreadPoolExecutor(8) as pool:
        grown = list(pool.map(lambda i: start.append(np.array([i])), range(200)))
    assert [rows.view.tolist() for rows in grown] == [[0, 1, 2, i] for i in range(200)]
