"""A window's model equals the fit of its rows, in any pieces they came."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tolerance import assert_models

from knowmore.errors import InvalidInput, NoExamples
from knowmore.subspaces import Eigenspace, Window, lagged


def stream(n, D, seed=0, offset=0.0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)) * rng.uniform(0.5, 4, D) + offset


@given(
    size=st.integers(2, 12),
    D=st.integers(1, 8),
    first=st.integers(1, 20),
    pieces=st.lists(st.integers(1, 30), max_size=12),
    offset=st.sampled_from([0.0, 100.0]),
    seed=st.integers(0, 1000),
)
def test_it_is_the_model_of_its_rows(size, D, first, pieces, offset, seed):
    X = stream(first + sum(pieces), D, seed, offset)
    window, end = Window.of(X[:first], size), first
    for piece in pieces:
        window, end = window.push(X[end : end + piece]), end + piece
        np.testing.assert_array_equal(window.rows, X[max(0, end - size) : end])
        assert_models(window.eigenspace, window.rows, held=X[:end], edits=len(pieces) + 1)


def test_a_long_stream_goes_by():
    X = stream(1000, 5)
    window = Window.of(X[:20], 20)
    for x in X[20:, None]:
        window = window.push(x)
    assert_models(window.eigenspace, X[-20:], edits=2 * len(X))


def test_it_merges_and_splits_and_is_not_rebuilt(monkeypatch):
    X = stream(300, 5)
    window, built = Window.of(X[:50], 50), []
    of = Eigenspace.of.__func__
    monkeypatch.setattr(
        Eigenspace, "of", classmethod(lambda cls, *args: built.append(1) or of(cls, *args))
    )
    for x in X[50:, None]:
        window = window.push(x)
    assert not built


@pytest.mark.parametrize("size", [1e3, 1e5, 1e7, 1e9, 1e13])
def test_an_outlier_leaves_no_trace(size):
    X = stream(100, 6)
    X[30] = size
    window = Window.of(X[:20], 20)
    for i, x in enumerate(X[20:, None], start=21):
        window = window.push(x)
        assert_models(window.eigenspace, X[i - 20 : i], held=X[:i], edits=i)
    # All that is left of it is beyond half the digits of the smallest variance.
    want = np.cov(X[-20:].T, bias=True)
    error = abs(window.eigenspace.covariance() - want).max()
    assert error <= np.sqrt(np.finfo(float).eps) * np.linalg.eigvalsh(want)[0]


@pytest.mark.parametrize("value", [0.0, 3.3, 1e8])
def test_rows_that_are_all_alike_have_no_directions(value):
    window = Window.of(np.full((3, 4), value), 3).push(np.full((5, 4), value))
    for _ in range(5):
        window = window.push(np.full((1, 4), value))
    assert len(window.eigenspace.variances) == 0
    window = window.push(np.full((1, 4), value) + np.eye(4)[:1])
    assert len(window.eigenspace.variances) == 1


def test_the_old_window_and_the_rows_given_stay_as_they_were():
    X = stream(30, 3)
    before, copy = Window.of(X[:10], 10), X.copy()
    after = before.push(X[10:15])
    X[:] = 0
    np.testing.assert_array_equal(before.rows, copy[:10])
    np.testing.assert_array_equal(after.rows, copy[5:15])
    with pytest.raises(ValueError, match="read-only"):
        after.rows[0] = 0


@pytest.mark.parametrize("size", [1, 0, -3, 2.5, None])
def test_a_window_of_less_than_two_rows(size):
    with pytest.raises(InvalidInput, match=r"size=.*\. Give a whole number of at least 2\."):
        Window.of(stream(5, 2), size)


def test_bad_rows():
    window = Window.of(stream(5, 3), 4)
    with pytest.raises(InvalidInput, match="The model has 3 columns and the other 2"):
        window.push(stream(1, 2))
    with pytest.raises(InvalidInput, match="NaN or infinity, first at row 1, column 0"):
        window.push([[1.0, 2.0, 3.0], [np.nan, 1.0, 1.0]])
    with pytest.raises(InvalidInput, match=r"A single row x is x\[None\]"):
        window.push([1.0, 2.0, 3.0])
    with pytest.raises(NoExamples, match="it holds no numbers"):
        window.push(np.empty((0, 3)))


@pytest.mark.parametrize("bad", [np.ma.masked_less(stream(5, 3), 0), stream(5, 3) + 1j])
def test_masked_and_complex_rows_are_refused(bad):
    for ask in (
        lambda: Window.of(bad, 4),
        lambda: Window.of(stream(5, 3), 4).push(bad),
        lambda: lagged(bad, 2),
    ):
        with pytest.raises(InvalidInput, match=r"masked value|type complex128"):
            ask()


def test_columns_by_name():
    frame = pd.DataFrame(stream(20, 3), columns=[*"abc"])
    window = Window.of(frame[:8], 5).push(frame[8:9]).push(frame[9:])
    assert window.eigenspace.names == (*"abc",)
    with pytest.raises(InvalidInput, match="Column 0 is 'a' in the model and 'c' in the other"):
        window.push(frame[[*"cba"]])


# -- rows of a series ----------------------------------------------------------------------------


@given(T=st.integers(1, 20), q=st.integers(1, 3), data=st.data())
def test_lagged_rows_are_stretches_of_the_series(T, q, data):
    length = data.draw(st.integers(1, T))
    series = stream(T, q)
    rows = lagged(series, length)
    assert rows.shape == (T - length + 1, length * q)
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(row, series[i : i + length].ravel())
    np.testing.assert_array_equal(lagged(series[:, 0], length), lagged(series[:, :1], length))


def test_lagged_by_too_much():
    with pytest.raises(InvalidInput, match=r"length=5\. Give a whole number from 1 to 4\."):
        lagged([1, 2, 3, 4], 5)
    with pytest.raises(InvalidInput, match="length=0"):
        lagged([1, 2, 3, 4], 0)
    with pytest.raises(InvalidInput, match="series contains NaN or infinity, first at row 1"):
        lagged([1, np.nan, 2], 2)
    with pytest.raises(InvalidInput, match=r"shape \(2, 2, 2\), not \(T,\) or \(T, q\)"):
        lagged(np.zeros((2, 2, 2)), 1)
