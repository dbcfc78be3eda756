"""What is read on a grid, and what is refused."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from knowmore import Grid, KnowmoreError
from knowmore.linalg.counting import READ, loops
from knowmore.linalg.grid import LAYOUTS, blocks

BITS = [8, 16, 21, 42]
every = pytest.mark.parametrize("bits", BITS)


def whole(grid, X):
    """X in multiples of the steps, in Python's integers: the nearest, half to even."""
    units = [Fraction(2) ** int(e) for e in grid.exponents]
    rows = np.asarray(X).astype(float).tolist()
    return [[round(Fraction(x) / u) for x, u in zip(row, units, strict=True)] for row in rows]


def read(grid, X):
    """What the grid makes of X, put together from its slices in Python's integers."""
    D = len(grid)
    Z = [[int(z) for z in row] for row in grid.multiples(np.asarray(X))]
    if LAYOUTS[grid.bits].slices == 1:
        return Z
    return [[row[j] * 2 ** LAYOUTS[grid.bits].shift + row[D + j] for j in range(D)] for row in Z]


@every
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
def test_values_are_read_as_the_nearest_multiple(bits, dtype):
    rng = np.random.default_rng(bits)
    X = (200 * rng.random((50, 4)) * [1, 0.1, 1, 0.5]).astype(dtype)
    if dtype != np.uint8:
        X *= np.array([1, -1e-3, 1e4, 1], dtype) * rng.choice([-1, 1], X.shape).astype(dtype)
    grid = Grid.covering(X, bits)
    assert read(grid, X) == whole(grid, X)
    rounded = np.array(whole(grid, X), dtype=float) * grid.steps
    np.testing.assert_array_equal(grid.rounded(X), rounded)
    np.testing.assert_array_equal(grid.rounded(rounded), rounded)


@every
def test_slices_and_their_products_stay_exact(bits):
    grid = Grid(np.zeros(3, int), bits)
    largest = 2 ** (bits - 1)
    X = np.array([[largest, -largest, largest - 1], [0, 1, 2**20 % largest]], dtype=float)
    Z = grid.multiples(X)
    assert abs(Z).max() <= 2 ** (LAYOUTS[grid.bits].shift - 1)
    assert read(grid, X) == X.astype(int).tolist()
    most = LAYOUTS[grid.bits].rows_at_once * 2 ** (2 * LAYOUTS[grid.bits].shift - 2)
    assert most == 2 ** (np.finfo(LAYOUTS[grid.bits].dtype).nmant + 1)


@every
def test_a_grid_fits_the_rows_it_was_made_for(bits):
    rng = np.random.default_rng(bits)
    # Just below a power of two, rounding goes up to it.
    edges = [np.nextafter(1, 0), np.nextafter(2, 0), 1.0, 255.0, 0.99885, 1e-20]
    X = np.vstack([edges, rng.uniform(-1, 1, (30, 6)) * edges])
    grid = Grid.covering(X, bits)
    assert read(grid, X) == whole(grid, X)
    room = 1 if bits == 8 else 8
    assert read(grid, room * X) == whole(grid, room * X)
    with pytest.raises(KnowmoreError, match=r"^Row 31 of X has .* in column 2, but values there"):
        grid.multiples(np.vstack([X, edges * grid.limits * [0, 0, 1.01, 2, 0, 0]]))


def test_the_limits_are_inside_and_what_is_beyond_is_named():
    grid = Grid([0, -15], 16)
    assert grid.limits.tolist() == [32768.0, 1.0]
    assert grid.multiples(np.array([[-32768.0, 1.0]])).tolist() == [[-32768.0, 32768.0]]
    with pytest.raises(KnowmoreError) as refused:
        grid.rounded(np.array([[0.0, 0.0]] * 2000 + [[1.0, -1.1]]))
    assert str(refused.value) == (
        "Row 2000 of X has -1.1 in column 1, but values there must be between -1 and 1: the model "
        "reads rows on a grid that the first rows decided. Leave the row out or clip it, or fit "
        "again with resolution=Grid.covering(X) for an X that reaches as far."
    )
    with pytest.raises(KnowmoreError, match=r"^Row 0 of X has 1e\+308 in column 1, but"):
        grid.rounded([[0.0, 1e308]])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused(value):
    X = np.array([[1.0, 2.0], [3.0, value]])
    with pytest.raises(KnowmoreError, match=r"^Column 1 of X contains NaN or infinity\. Remove"):
        Grid.covering(X)
    grid = Grid.covering(X[:1])
    with pytest.raises(KnowmoreError, match=rf"^Input X contains .*: row 1, column 1 \({value}\)"):
        grid.multiples(X)


def test_columns_of_zeros_are_read_like_the_others():
    grid = Grid.covering([[0.0, 4.0, 64.0, 1.0]])
    assert grid.exponents.tolist() == [-9, -9, -5, -11]
    assert Grid.covering(np.zeros((2, 3))).limits.tolist() == [2.0] * 3


@every
def test_every_kind_of_table_gives_the_same_grid_and_the_same_rows(bits, tmp_path):
    X = np.random.default_rng(1).integers(0, 200, (3000, 3)).astype(np.uint8)
    np.save(tmp_path / "X.npy", X)
    tables = [
        X.astype(float),
        X.astype(np.float32),
        np.asfortranarray(X.astype(float)),
        X.astype(np.int16),
        X.astype(">f8"),
        X[::-1][::-1],
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        sparse.csr_array(X),
        sparse.csc_array(X.astype(float)),
    ]
    grid = Grid.covering(X, bits)
    want = grid.rounded(X)
    for table in tables:
        assert Grid.covering(table, bits) == grid
        np.testing.assert_array_equal(grid.rounded(table), want)
    half = np.hstack([*blocks((X[:, :1], sparse.csr_array(X[:, 1:])), 5000)])
    np.testing.assert_array_equal(half, X)


def test_no_type_of_rows_is_compiled_late():
    # A compilation that Ctrl-C interrupts would be stuck.
    X = np.arange(12).reshape(4, 3)
    made = [len(each.signatures) for each in loops()]
    for bits in BITS:
        for dtype in (*READ, bool, np.int16, np.float16, ">f4"):
            table = X.astype(dtype)
            for one in (table, table[:1], table[:, :1], np.asfortranarray(table), table.T):
                Grid.covering(one, bits).rounded(one)
            table.flags.writeable = False
            Grid.covering(table, bits).rounded(table)
    assert [len(each.signatures) for each in loops()] == made


def test_grids_are_values():
    grid = Grid([1, -2])
    assert grid == Grid(np.array([1, -2], np.int8)) == pickle.loads(pickle.dumps(grid))
    assert hash(grid) == hash(Grid([1, -2]))
    assert grid != Grid([1, -2], 8)
    assert grid != Grid([1, -3])
    assert grid != "grid"
    assert grid + Grid([7]) == Grid([1, -2, 7])
    assert repr(grid) == "Grid(2 columns in steps of 2**-2 to 2**1, bits=21)"
    with pytest.raises(ValueError, match="read-only"):
        grid.exponents[0] = 3


@pytest.mark.parametrize("bits", [12, 16.0, True, "16", None, [16]])
def test_other_bits_are_refused(bits):
    for make in (Grid.covering, Grid):
        with pytest.raises(KnowmoreError, match=r"^bits=.* Choose one of 8, 16, 21, 42\.$"):
            make([[1.0]] if make == Grid.covering else [0], bits)


@pytest.mark.parametrize("exponents", [[], 3, [[1]], [1.5], ["a"]])
def test_what_is_no_list_of_exponents_is_refused(exponents):
    with pytest.raises(KnowmoreError, match=r"Give a whole number for each column"):
        Grid(exponents)


@pytest.mark.parametrize("exponent", [151, -151, -(2**63), 2**63])
def test_exponents_whose_products_are_no_numbers_are_refused(exponent):
    with pytest.raises(KnowmoreError) as refused:
        Grid([0, exponent] if exponent < 2**63 else np.array([0, exponent], np.uint64))
    assert str(refused.value) == (
        f"Column 1 would be read in multiples of 2**{exponent}, but the exponents of a grid are "
        f"between -150 and 150: beyond, products are no numbers. Scale the features and targets."
    )
    with pytest.raises(KnowmoreError, match=r"^Column 0 would be read"):
        Grid.covering([[1e200]])


@pytest.mark.parametrize("X", [[1.0, 2.0], 3.0, np.zeros((2, 2, 2)), np.zeros((2, 0))])
def test_what_is_no_table_is_refused(X):
    for act in (Grid.covering, Grid([0]).rounded):
        with pytest.raises(KnowmoreError, match=r"Give rows and columns, \(n, D\)\.$"):
            act(X)


def test_rows_of_another_width_are_refused():
    with pytest.raises(KnowmoreError, match=r"^X has 3 columns, but the grid has 2\.$"):
        Grid([0, 0]).rounded(np.zeros((1, 3)))


@pytest.mark.parametrize("name", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
def test_sparse_rows_of_any_format_are_read_like_dense_ones(name):
    X = np.arange(12.0).reshape(6, 2)
    Z = getattr(sparse, f"{name}_array")(X)
    grid = Grid.covering(X)
    assert Grid.covering(Z) == grid
    assert (grid.rounded(Z) == grid.rounded(X)).all()
    assert (grid.multiples(Z) == grid.multiples(X)).all()
