"""Grids: reading values, the choice of a grid, and refusals."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from knowmore import Grid, KnowmoreError
from knowmore.linalg.counting import READ, loops
from knowmore.linalg.grid import LAYOUTS, limbs
from knowmore.linalg.sketch import Sketch
from knowmore.linalg.tables import blocks

BITS = [8, 16, 21, 42]
every = pytest.mark.parametrize("bits", BITS)


def whole(grid, X):
    """X in steps from the centres, in Python's integers: the nearest to a difference of doubles."""
    units = [Fraction(2) ** int(e) for e in grid.exponents]
    rows = (np.asarray(X).astype(float) - grid.centres).tolist()
    return [[round(Fraction(x) / u) for x, u in zip(row, units, strict=True)] for row in rows]


def read(grid, X):
    """X on the grid, in Python's integers."""
    return [[int(q) for q in row] for row in grid.multiples(np.asarray(X))]


def put_together(parts, bits, shape):
    """Limbs as whole numbers, in Python's integers."""
    found = np.zeros(shape, dtype=object)
    for k, (rows, columns, Z) in enumerate(parts):
        assert abs(Z).max(initial=0) <= 2 ** (bits - 1)
        found[np.ix_(rows, columns)] += np.frompyfunc(int, 1, 1)(Z) * 2 ** (bits * k)
    return found.tolist()


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
    np.testing.assert_array_equal(grid.offsets(X), rounded)
    np.testing.assert_array_equal(grid.rounded(X), grid.centres + rounded)
    np.testing.assert_array_equal(grid.rounded(grid.rounded(X)), grid.rounded(X))


@every
def test_limbs_and_their_products_stay_exact(bits):
    rng = np.random.default_rng(bits)
    layout = LAYOUTS[bits]
    sizes = 2.0 ** rng.integers(0, 900, (40, 3))
    edges = [[2.0 ** (layout.limb - 1), -(2.0 ** (layout.limb - 1)), 2.0**layout.limb - 1]]
    Q = np.vstack([edges, np.rint(rng.normal(size=(40, 3)) * sizes), np.zeros((1, 3))])
    assert put_together(limbs(Q, layout.limb), layout.limb, Q.shape) == [
        [int(q) for q in row] for row in Q
    ]
    # Rows and columns without far cells have no other limb.
    far = np.array([[1.0, 2], [3, 2.0**60], [0, 1]])
    (all_rows, all_columns, _), *others = limbs(far, layout.limb)
    assert (all_rows.tolist(), all_columns.tolist()) == ([0, 1, 2], [0, 1])
    assert {(*rows, *columns) for rows, columns, _ in others} == {(1, 1)}
    assert len(limbs(far[::2], layout.limb)) == 1
    most = layout.rows_at_once * 2 ** (2 * layout.limb - 2)
    assert most == 2 ** (np.finfo(layout.dtype).nmant + 1)


@every
def test_the_steps_are_as_much_finer_than_the_spread_as_the_bits_say(bits):
    rng = np.random.default_rng(bits)
    sizes = np.array([1.0, 1e-20, 1e20, 300])
    X = rng.normal(size=(400, 4)) * sizes + sizes * [0, 3, -5, 1e6]
    grid = Grid.covering(X, bits)
    centre = np.sort(X, axis=0)[199]
    spread = np.sort(abs(X - centre), axis=0)[199]
    finer = spread / grid.steps
    assert (finer >= 2 ** LAYOUTS[bits].below).all()
    assert (finer < 2 ** (LAYOUTS[bits].below + 1)).all()
    # To the size of a spread: the centre is no value of a row.
    assert (abs(grid.centres - centre) <= spread / 2).all()
    size = grid.steps * 2 ** LAYOUTS[bits].below
    assert (grid.centres == np.rint(grid.centres / size) * size).all()


@pytest.mark.parametrize("value", [1e5, 1e30, -1e30, 1e-30])
def test_a_single_row_moves_the_steps_by_a_power_of_two_at_most(value):
    rng = np.random.default_rng(0)
    for n in (5, 50, 2000):
        X = rng.normal((0, 1e4, -3), size=(n, 3))
        grid = Grid.covering(X)
        spoilt = Grid.covering(np.vstack([X, np.full((1, 3), value)]))
        assert abs(spoilt.exponents - grid.exponents).max() <= (1 if n > 5 else 3)


def test_columns_with_few_values_keep_them():
    X = np.zeros((5000, 5))
    X[:, 0] = np.arange(5000) % 2
    X[::50, 1] = 0.25
    X[7, 2] = 2.0**-30
    X[8, 2] = 1e9
    X[:, 3] = 7.0
    X[9, 3] = np.nextafter(7, 8)
    grid = Grid.covering(X)
    np.testing.assert_array_equal(grid.rounded(X)[:, :4], X[:, :4])
    # Nothing is known of the last one, which is read finer than the others.
    assert grid.exponents[4] < np.median(grid.exponents[:4])


@pytest.mark.parametrize("outliers", [3, 100, 1000])
@pytest.mark.parametrize("values", [2, 5, 20])
def test_a_few_far_rows_do_not_outvote_many_equal_ones(values, outliers):
    rng = np.random.default_rng(0)
    X = rng.integers(0, values, (20_000, 1)).astype(float)
    far = 1e12 * rng.random((outliers, 1))
    grid = Grid.covering(np.vstack([X, far]))
    np.testing.assert_array_equal(grid.rounded(X), X)


def test_one_row_that_is_there_often_does_not_outvote_the_others():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 2))
    steps = Grid.covering(X).steps
    hashes = Sketch.of(X).hashes
    # A row of the sketch stands for six; copies of one that is in it must not stand for more.
    for far in 1e9 + np.arange(100.0):
        row = np.full((1, 2), far)
        if Sketch.of(row).hashes[0] < hashes[500]:
            break
    grid = Grid.covering(np.vstack([X, *[row] * 2500]))
    assert (grid.steps <= 2 * steps).all()


def test_copies_are_counted_whatever_the_order_and_the_shards():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(3000, 2)), rng.integers(1, 9, 3000), axis=0)
    X[::3] = X[:5].repeat(len(X[::3]) // 5 + 1, axis=0)[: len(X[::3])]
    whole = Sketch.of(X)
    rows, counts = np.unique(X, axis=0, return_counts=True)
    known = dict(zip(map(tuple, rows.tolist()), counts.tolist(), strict=True))
    assert whole.counts.tolist() == [known[tuple(row)] for row in whole.rows.tolist()]
    shuffled = X[rng.permutation(len(X))]
    parts = [Sketch.of(part) for part in np.split(shuffled, [1, 700, 5000])]
    again = parts[3].merge(parts[1], parts[0], parts[2])
    for name in ("hashes", "rows", "counts", "least"):
        np.testing.assert_array_equal(getattr(again, name), getattr(whole, name))


def test_the_weight_of_a_row_counts_like_copies():
    rng = np.random.default_rng(0)
    X, counts = rng.standard_t(1, size=(2000, 3)), rng.integers(1, 9, 2000)
    exponents, centres = Sketch.of(X, 256 * counts).columns(14)
    assert Grid(exponents, 21, centres) == Grid.covering(X.repeat(counts, axis=0))


def test_a_grid_does_not_depend_on_the_order_or_the_shards():
    rng = np.random.default_rng(0)
    X = rng.standard_t(1, size=(5000, 3)) * [1, 1e-9, 1e9] + [0, 1, 5e9]
    X[3000:3100] = X[7]
    grid = Grid.covering(X)
    assert Grid.covering(X[rng.permutation(5000)]) == grid
    for cuts in ([1], [2500], [10, 11, 4000]):
        parts = [Sketch.of(part) for part in np.split(X, cuts)]
        for order in (parts, parts[::-1]):
            exponents, centres = order[0].merge(*order[1:]).columns(LAYOUTS[21].below)
            assert Grid(exponents, 21, centres) == grid
    # A sketch draws its rows as if at random: their medians equal the medians of all.
    spread = np.median(abs(X - np.median(X, axis=0)), axis=0)
    assert (abs(grid.centres - np.median(X, axis=0)) < spread).all()


def test_what_no_grid_can_read_is_named():
    grid = Grid([0, -15], 16)
    assert grid.multiples(np.array([[-1e6, 1.0]])).tolist() == [[-1e6, 32768.0]]
    with pytest.raises(KnowmoreError) as refused:
        grid.rounded(np.array([[0.0, 0.0]] * 2000 + [[1.0, -1e145]]))
    assert str(refused.value) == (
        "Row 2000 of X has -1e+145 in column 1, but the squares of values beyond 3e+144 are no "
        "numbers. Leave the row out, or scale the column."
    )
    with pytest.raises(KnowmoreError, match=r"^Row 1 of X has 1e\+308 in column 1, but"):
        Grid.covering([[0.0, 0.0], [0.0, 1e308]])
    largest = np.array([[2.0**480, -(2.0**480)]])
    assert read(Grid([-480, 480]), largest) == [[2**960, -1]]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused(value):
    X = np.array([[1.0, 2.0], [3.0, value]])
    wanted = rf"^Input X contains .*: row 1, column 1 \({value}\)"
    with pytest.raises(KnowmoreError, match=wanted):
        Grid.covering(X)
    grid = Grid.covering(X[:1])
    with pytest.raises(KnowmoreError, match=wanted):
        grid.multiples(X)


def test_the_grid_of_largest_values_is_about_zero():
    grid = Grid.reaching([0.0, 4.0, 64.0, 1.0])
    assert grid.exponents.tolist() == [-9, -9, -5, -11]
    assert not grid.centres.any()


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
    made = [len(each.signatures) for each in vars(loops()).values()]
    for bits in BITS:
        for dtype in (*READ, bool, np.int16, np.float16, ">f4"):
            table = X.astype(dtype)
            for one in (table, table[:1], table[:, :1], np.asfortranarray(table), table.T):
                Grid.covering(one, bits).rounded(one)
            table.flags.writeable = False
            Grid.covering(table, bits).rounded(table)
    assert [len(each.signatures) for each in vars(loops()).values()] == made


def test_grids_are_values():
    grid = Grid([1, -2])
    assert grid == Grid(np.array([1, -2], np.int8)) == pickle.loads(pickle.dumps(grid))
    assert hash(grid) == hash(Grid([1, -2]))
    assert grid != Grid([1, -2], 8)
    assert grid != Grid([1, -3])
    assert grid != "grid"
    assert grid + Grid([7]) == Grid([1, -2, 7])
    assert repr(grid) == "Grid(2 columns in steps of 2**-2 to 2**1, bits=21)"
    centred = Grid([1, -2], 21, [7.1, 0.2])
    assert centred.centres.tolist() == [8.0, 0.25]
    assert centred != grid
    assert centred == pickle.loads(pickle.dumps(centred))
    assert centred[:1] + centred[1:] == centred
    assert repr(centred[1:]) == "Grid(1 columns in steps of 2**-2 about 0.25, bits=21)"
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


@pytest.mark.parametrize("exponent", [481, -481, -(2**63), 2**63])
def test_exponents_whose_products_are_no_numbers_are_refused(exponent):
    with pytest.raises(KnowmoreError) as refused:
        Grid([0, exponent] if exponent < 2**63 else np.array([0, exponent], np.uint64))
    assert str(refused.value) == (
        f"Column 1 would be read in multiples of 2**{exponent}, but the exponents of a grid are "
        f"between -480 and 480: beyond, squares are no numbers. Scale the features and targets."
    )


@pytest.mark.parametrize("centres", [[1.0], [[1.0, 2.0]], [np.nan, 0.0], [1e200, 0.0]])
def test_what_are_no_centres_is_refused(centres):
    with pytest.raises(KnowmoreError, match=r"^centres=.* Give a number for each of 2 columns"):
        Grid([0, 0], 21, centres)


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
