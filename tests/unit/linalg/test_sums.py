"""Sums against Python's integers and fractions: every bit, at every size, by every way."""

from __future__ import annotations

import hashlib
import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from copy import deepcopy
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import reduce
from io import StringIO

import numpy as np
import oracle
import pytest
from alone import assert_runs
from scipy import sparse
from threadpoolctl import threadpool_limits

from knowmore import KnowmoreError
from knowmore._base import read_only
from knowmore.linalg import Grid, Sums
from knowmore.linalg.counting import (
    added,
    approximate,
    from_words,
    in_words,
    loops,
    padded,
    shifted,
    trimmed,
)
from knowmore.linalg.sums import LOG_UNIT, UNIT

BITS = [8, 16, 21, 42]
every = pytest.mark.parametrize("bits", BITS)
EPS = np.finfo(float).eps
# A sum is written in three digits, one after the other, and divided once.
ROUNDINGS = 4


def draw(rng, n, D=3, bits=16):
    """Rows (n, D) of unequal columns, keys and weights in units of 1/256, some of them zero.

    Some cells are far from all others, up and down.
    """
    X = rng.normal(size=(n, D)) * 10.0 ** rng.integers(-3, 4, D) + 10.0 ** rng.integers(-5, 6, D)
    X *= np.where(rng.random((n, D)) < 0.02, 10.0 ** rng.integers(-20, 20, (n, D)), 1.0)
    return X, rng.integers(0, 3, n), rng.integers(0, 2**16, n) * (rng.random(n) > 0.1)


def whole(grid, X):
    apart = np.asarray(X, dtype=float) - grid.centres
    return [[int(k) for k in row] for row in np.rint(apart / grid.steps)]


def words(sums):
    """The sums of products, lower triangle, in Python's integers."""
    assert not np.triu(sums.words, 1).any()
    assert (abs(sums.words) <= 2**61).all()
    # No more words than are needed.
    assert len(sums.words) == 2 or sums.words[-1].any()
    return from_words(sums.words).tolist()


def lower(A):
    return [[a if j <= i else 0 for j, a in enumerate(row)] for i, row in enumerate(A)]


def assert_exact(sums, rows, units, times=1):
    """Are these the sums of so many times the whole rows of these weights?"""
    first, second = oracle.whole_sums(rows, units)
    assert sums.weight == times * sum(units)
    assert from_words(sums.first).tolist() == [times * a for a in first]
    assert words(sums) == lower([[times * a for a in row] for row in second])


def assert_scatter(sums, rows, units, times=1):
    """Does the scatter equal the fractions' scatter, to a few roundings of each entry?"""
    first, second = oracle.whole_sums(rows, units)
    total, steps = sum(units), [Fraction(step) for step in sums.grid.steps]
    want, got = oracle.whole_scatter(total, first, second), sums.scatter()
    np.testing.assert_array_equal(got, got.T)
    for i, row in enumerate(want):
        for j, value in enumerate(row):
            exact = Fraction(value) * times * steps[i] * steps[j] / UNIT
            assert abs(Fraction(got[i, j]) - exact) <= ROUNDINGS * Fraction(EPS) * abs(exact)
    # About zero, columns have the error of their lengths.
    centres = [Fraction(c) for c in sums.grid.centres.tolist()]
    far = [[k * g + c for k, g, c in zip(row, steps, centres, strict=True)] for row in rows]
    _, second = oracle.whole_sums(far, units)
    got = sums.scatter(centred=False)
    for i, row in enumerate(second):
        for j, value in enumerate(row):
            size = Fraction(np.sqrt(float(second[i][i])) * np.sqrt(float(second[j][j])))
            error = abs(Fraction(got[i, j]) - Fraction(value) * times / UNIT)
            assert error <= 4 * ROUNDINGS * Fraction(EPS) * size * times / UNIT


@every
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 7, 128, 129, 1500])
def test_sums_are_those_of_python_s_integers(bits, weighted, n):
    rng = np.random.default_rng([bits, n])
    X, y, units = draw(rng, n)
    units = units if weighted else np.full(n, UNIT)
    grid = Grid.covering(X, bits)
    rows = whole(grid, X)
    sums = Sums.of(grid, X, y, units / UNIT if weighted else None)
    assert sums.rows == (units > 0).sum()
    assert_exact(sums, rows, units.tolist())
    if units.any():
        assert_scatter(sums, rows, units.tolist())
    for key, group in sums.groups.items():
        mine = np.flatnonzero(y == key)
        first, _ = oracle.whole_sums([rows[i] for i in mine], units[mine].tolist())
        assert group.rows == (units[mine] > 0).sum()
        assert group.weight == units[mine].sum()
        assert from_words(group.first).tolist() == first


@every
@pytest.mark.parametrize("weighted", [False, True])
def test_means_and_cross_sums_are_those_of_fractions(bits, weighted):
    rng = np.random.default_rng(bits)
    X, y, units = draw(rng, 200)
    units = np.maximum(units, 1) if weighted else np.full(200, UNIT)
    grid = Grid.covering(X, bits)
    rows = whole(grid, X)
    sums = Sums.of(grid, X, y, units / UNIT)
    keys, steps, total = sorted(sums.groups), grid.steps.tolist(), int(units.sum())
    all_first, _ = oracle.whole_sums(rows, units.tolist())
    for j in range(3):
        exact = Fraction(all_first[j], total) * Fraction(steps[j])
        assert abs(Fraction(sums.offset()[j]) - exact) <= ROUNDINGS * EPS * abs(exact)
        mean = exact + Fraction(grid.centres[j])
        size = abs(exact) + abs(Fraction(grid.centres[j]))
        assert abs(Fraction(sums.mean()[j]) - mean) <= ROUNDINGS * EPS * size
    for centred in (True, False):
        C = sums.cross(keys, centred=centred)
        for key, row in zip(keys, C, strict=True):
            mine = np.flatnonzero(y == key)
            first, _ = oracle.whole_sums([rows[i] for i in mine], units[mine].tolist())
            weight = int(units[mine].sum())
            for j in range(3):
                exact = Fraction(first[j] * total - centred * weight * all_first[j], total)
                exact *= Fraction(steps[j])
                about = 0 if centred else weight * Fraction(grid.centres[j])
                error = abs(Fraction(row[j]) - (exact + about) / UNIT)
                assert error <= ROUNDINGS * EPS * (abs(exact) + abs(about)) / UNIT


@every
@pytest.mark.parametrize("spread", [1.0, 1e-2, 1e-4])
def test_a_scatter_far_from_zero_loses_nothing(bits, spread):
    rng = np.random.default_rng(bits)
    X = 1 + spread * rng.normal(size=(300, 3)) * [1, -0.1, 3] + [0, 2.0**-18, -1.5]
    # About zero, where with few bits a narrow spread is a handful of steps.
    grid = Grid(np.frexp(abs(X).max(axis=0))[1] - (bits - 1), bits)
    units = rng.integers(1, 2**16, 300)
    sums = Sums.of(grid, X, None, units / UNIT)
    assert_scatter(sums, whole(grid, X), units.tolist())


@every
@pytest.mark.parametrize("sign", [1, -1])
def test_doubling_carries_into_the_second_word_up_to_the_refused_weight(bits, sign):
    # The largest values of both signs, so that sums of products are as large as they can be.
    grid, top = Grid(np.zeros(3, int), bits), 2.0 ** (bits - 1)
    X = np.array([[top, sign * top, top], [top, sign * (top - 1), -top], [top, sign * top, 1.0]])
    units = [2**16 - 1, 2**16 - 3, 255]
    sums, rows, times = Sums.of(grid, X, [0, 1, 1], np.divide(units, UNIT)), whole(grid, X), 1
    first = sums
    while 2 * sums.weight < 2**41:
        sums, times = sums + sums, 2 * times
        assert_exact(sums, rows, units, times)
        assert_scatter(sums, rows, units, times)
    assert sums.weight > 2**40
    digest = sums.digest()
    with pytest.raises(
        KnowmoreError, match=r"^The total weight would be 8\.6.*e\+09, but sums are"
    ):
        sums + sums
    assert sums.digest() == digest
    # And back again, through all carries.
    assert sums - (sums - first) == first
    for _ in range(50):
        sums = sums - first
        times -= 1
    assert_exact(sums, rows, units, times)


def test_numbers_and_their_words():
    rng = np.random.default_rng(0)
    edges = [2**e + d for e in (0, 31, 60, 61, 62, 63, 123, 124, 900) for d in (-1, 0, 1)]
    values = np.array([0, *edges, *(-edge for edge in edges)], dtype=object)
    assert from_words(in_words(values)).tolist() == values.tolist()
    for one in values:
        few = in_words(np.array([one], dtype=object))
        assert trimmed(padded(few, 9)).tolist() == few.tolist()
        assert (few >= -(2**61)).all()
        assert (few < 2**61).all()
        assert float(approximate(few)[0]) == pytest.approx(float(one), rel=4 * EPS)
    for shift in (0, 21, 42, 61, 62, 63, 147):
        small = np.array([0, 1, -1, 2**60, -(2**60), 2**61 - 1])
        want = small.astype(object) * 2**shift
        assert from_words(shifted(small, shift)).tolist() == want.tolist()
        assert shifted(small, shift).tolist() == in_words(want).tolist()
    order = rng.permutation(len(values))
    for sign in (1, -1):
        total = added(in_words(values), in_words(values[order]), sign)
        assert from_words(total).tolist() == (values + sign * values[order]).tolist()


@pytest.mark.parametrize("W", [2, 3, 6])
def test_words_carry_at_their_edges(W):
    rng = np.random.default_rng(W)
    edges = [2**e + d for e in (0, 31, 53, 60, 61, 62, 63, 80) for d in (-1, 0, 1)]
    edges += [2 ** (62 * w - 1) + d for w in range(3, W) for d in (-1, 0, 1)]
    values = [0, *edges, *(-edge for edge in edges)]
    values += [int(a) * 2**20 + int(b) for a, b in rng.integers(-(2**60), 2**60, (20, 2))]
    n = len(values)

    def words_of(A):
        return padded(in_words(np.array(lower(A), dtype=object), 2), W)

    rows = [[value] * n for value in values]
    A, B = words_of(rows), words_of([values] * n)
    for sign in (1, -1):
        want = words_of([[a + sign * b for b in values] for a in values])
        np.testing.assert_array_equal(loops().combine(A, B, sign), want)
    summands = [2**53, -(2**53), 2**53 - 1, 1, -1, 0]
    summands = (summands + rng.integers(-(2**53), 2**53, n).tolist())[:n]
    C, places = np.array([summands] * n, dtype=float), np.arange(n)
    for shift in (0, 8, 15, *range(50, 62 * (W - 2), 17)):
        got = words_of(rows)
        loops().accumulate(got, C, (places, places), shift, -1, False)
        want = [[a - (int(c) << shift) for c in C[0]] for a in values]
        np.testing.assert_array_equal(got, words_of(want))
        # Products of two limbs are added with their transposes.
        some = np.array([1, 4, 5])
        got = words_of([[0] * n] * n)
        loops().accumulate(got, C[:3], (some, places), shift, 1, True)
        want = [[0] * n for _ in range(n)]
        for a, i in enumerate(some):
            for j in range(n):
                want[i][j] += int(C[a, j]) << shift
                want[j][i] += int(C[a, j]) << shift
        np.testing.assert_array_equal(got, words_of(want))


@pytest.mark.parametrize("far", [0, 300])
def test_differences_are_rounded_only_at_the_end(far):
    rng = np.random.default_rng(0)
    sizes = (0, 30, 61, 62, 80, *((123, 200, far) if far else ()))
    values = [s * (2**e + d) for e in sizes for d in (-1, 0, 1) for s in (1, -1)]
    b = [2**60, -(2**60), 2**31 - 1, -(2**31), 0, 1, *rng.integers(-(2**60), 2**60, 4).tolist()]
    b += [2**far // 3, -(2**far) // 7] if far else []
    a = (b * len(values))[: len(values)]
    A = in_words(np.array([[value] * len(b) for value in values], dtype=object), 2)
    A, a_words, b_words = (
        read_only(one) for one in (A, *(in_words(np.array(c, dtype=object)) for c in (a, b)))
    )
    up, across = rng.integers(-400, 5, len(a)), rng.integers(-400, 5, len(b))
    for total in (1, 3, 2**31, 2**31 - 1, 2**41 - 1):
        got = loops().difference(A, total, a_words, b_words, (up, across), False)
        for i, value in enumerate(values):
            for j in range(len(b)):
                exact = Fraction(total * value - a[i] * b[j], total)
                exact *= Fraction(2) ** int(up[i] + across[j])
                assert abs(Fraction(got[i, j]) - exact) <= ROUNDINGS * EPS * abs(exact)


@pytest.mark.parametrize("power", np.arange(53, 55.1, 0.25).tolist())
def test_words_grow_and_shrink_with_the_numbers(power):
    """Far rows bring sums of products to the edge of a word; one more row takes them beyond."""
    grid = Grid([0, 0])
    far = np.rint(2.0**power)
    rows = [[far, 1], [-far, 2], [3, far]]
    batches = [np.array(rows[:1]), np.array(rows), np.array([rows[1]] * 130), np.ones((130, 2))]
    sums, all_rows = Sums(grid), []
    for _ in range(3):
        for X in batches:
            sums, all_rows = sums + Sums.of(grid, X), [*all_rows, *whole(grid, X)]
            assert_exact(sums, all_rows, [UNIT] * len(all_rows))
    for _ in range(3):
        for X in batches:
            sums, all_rows = sums - Sums.of(grid, X), all_rows[len(X) :]
            if all_rows:
                assert_exact(sums, all_rows, [UNIT] * len(all_rows))
    assert sums == Sums(grid)


# -- algebra --------------------------------------------------------------------------------------


def parts(rng, bits, weighted=True):
    """A grid and the sums of twenty parts of one table, of all sizes; and those of all of it."""
    X, y, units = draw(rng, 2000)
    grid, weights = Grid.covering(X, bits), units / UNIT if weighted else None
    cuts = np.sort(rng.choice(np.arange(1, 2000), 19, replace=False))
    of = [
        Sums.of(grid, X[i], y[i], None if weights is None else weights[i])
        for i in np.split(np.arange(2000), [1, 2, *cuts])
    ]
    return grid, of, Sums.of(grid, X, y, weights)


@every
def test_sums_add_up_in_any_order_and_grouping(bits):
    rng = np.random.default_rng(bits)
    grid, some, everything = parts(rng, bits)
    for _ in range(5):
        left = list(rng.permutation(np.array(some, dtype=object)))
        while len(left) > 1:
            i = rng.integers(len(left) - 1)
            left[i : i + 2] = [left[i] + left[i + 1]]
        assert left[0] == everything
        assert left[0].digest() == everything.digest()
    assert reduce(Sums.__sub__, some[1:], everything) == some[0]
    assert everything - everything == Sums(grid)
    assert (everything - everything).digest() == Sums(grid).digest()
    assert everything + Sums(grid) == everything
    assert everything != some[0]
    assert everything != "sums"


@every
@pytest.mark.parametrize("weighted", [False, True])
def test_single_rows_are_a_block(bits, weighted):
    rng = np.random.default_rng(bits)
    X, y, units = draw(rng, 300)
    grid, weights = Grid.covering(X, bits), np.maximum(units, 1) / UNIT
    one = [Sums.of(grid, X[[i]], y[[i]], weights[[i]] if weighted else None) for i in range(300)]
    sums = reduce(Sums.__add__, one)
    assert sums == Sums.of(grid, X, y, weights if weighted else None)
    for i in rng.permutation(299):
        sums = sums - one[i]
    assert sums == one[299]
    assert sums.digest() == one[299].digest()
    assert sums.log_weights == one[299].log_weights


@every
def test_every_kind_of_table_has_one_digest(bits, tmp_path):
    rng = np.random.default_rng(bits)
    X, y = rng.integers(0, 2, (2500, 4)), rng.integers(0, 3, 2500)
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    tables = [
        X.astype(float),
        X.astype(np.float32),
        X.astype(np.uint8),
        X.astype(np.int16),
        X.astype(bool),
        np.asfortranarray(X.astype(float)),
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        sparse.csr_array(X.astype(float)),
        sparse.csc_matrix(X),
        (X[:, :1].astype(np.uint8), sparse.csr_array(X[:, 1:].astype(float))),
    ]
    grid = Grid.covering(X, bits)
    assert len({Sums.of(grid, table, y).digest() for table in tables}) == 1
    order = rng.permutation(2500)
    assert Sums.of(grid, X[order], y[order]) == Sums.of(grid, X, y)


@every
def test_one_and_two_blas_threads_have_one_digest(bits):
    # Large enough that the products are shared out.
    X = np.random.default_rng(bits).normal(size=(3000, 150))
    grid, digests = Grid.covering(X, bits), set()
    for threads in (1, 2):
        with threadpool_limits(threads):
            digests.add(Sums.of(grid, X).digest())
    assert len(digests) == 1


@pytest.mark.slow(fast=1)
@every
def test_threads_that_add_and_ask_at_once_get_the_same_bits(bits):
    rng = np.random.default_rng(bits)
    X, y, units = draw(rng, 60, 20)
    grid, weights = Grid.covering(X, bits), np.maximum(units, 1) / UNIT
    want = Sums.of(grid, X, y, weights)
    digest, twice, scatter = want.digest(), (want + want).digest(), want.scatter()

    def ask(turn, sums):
        match turn % 4:
            case 0:
                return sums.digest() == digest
            case 1:
                return (sums + sums).digest() == twice
            case 2:
                return (sums.scatter() == scatter).all()
            case _:
                return (sums + sums - sums).digest() == digest

    with ThreadPoolExecutor(8) as threads:
        for _ in range(10):
            # Its rows still wait to be summed when the threads ask.
            waiting = Sums.of(grid, X, y, weights)
            assert all(threads.map(ask, range(16), [waiting] * 16))


@pytest.mark.slow
def test_a_digest_is_the_same_in_every_process():
    script = """
import numpy as np
from knowmore.linalg import Grid, Sums
X = np.arange(12.0).reshape(4, 3)
for keys in (["b", "a", "ü\\U0001fae8", "b"], [2, 1, 2, 3], [True, False, True, True], None):
    print(Sums.of(Grid.covering(X), X, keys, np.array([1, 2, 0.5, 3])).digest())
"""
    elsewhere = assert_runs(script, env={"PYTHONHASHSEED": "2"}).split()
    printed = StringIO()
    with redirect_stdout(printed):
        exec(script, {})
    assert elsewhere == printed.getvalue().split()
    assert len(set(elsewhere)) == 4
    # So that no release changes it unnoticed.
    assert elsewhere[1].startswith("0d164694352b65f7")


def test_keys_of_different_types_never_share_a_digest():
    X = np.ones((2, 1))
    grid = Grid.covering(X)
    keys = [None, [1, 0], [True, False], ["1", "0"], [1.0, 0.0], ["True", "False"], [1, 1]]
    sums = [Sums.of(grid, X, each) for each in keys]
    assert len({each.digest() for each in sums}) == len(keys)
    assert all((a == b) == (a is b) for a in sums for b in sums)
    for each in (sums[2], sums[4]):
        with pytest.raises(KnowmoreError) as refused:
            sums[1] + each
        kind = type(next(iter(each.groups))).__name__
        assert str(refused.value) == (
            f"The groups have keys of type int here and {kind} there. Convert them first."
        )


def test_minus_zero_is_zero():
    X = np.ones((2, 1))
    grid = Grid.covering(X)
    assert Sums.of(grid, X, [0.0, 1.0]).digest() == Sums.of(grid, X, [-0.0, 1.0]).digest()
    assert Sums.of(grid, 0 * X).digest() == Sums.of(grid, -0.0 * X).digest()


# -- weights --------------------------------------------------------------------------------------


def test_logarithms_of_weights_do_not_depend_on_who_rounds_them():
    # Those that are nearest to the middle of two whole numbers, in forty digits.
    units = np.arange(1, 2**16)
    logs = LOG_UNIT * np.log(units / UNIT)
    near = units[abs(logs - np.floor(logs) - 0.5).argsort()[:100]]
    grid = Grid([0])
    with localcontext() as context:
        context.prec = 40
        exact = [(Decimal(int(u)) / UNIT).ln() * 2**32 for u in near]
    # An error of four units in the last place of the logarithm does not change one of them.
    error = 4 * np.spacing(np.log(2**16 / UNIT)) * LOG_UNIT
    for unit, log in zip(near, exact, strict=True):
        whole = int(log.to_integral_value())
        assert abs(abs(log - whole) - Decimal("0.5")) > error
        assert Sums.of(grid, np.zeros((1, 1)), None, [unit / UNIT]).log_weights == whole


def test_logarithms_of_very_many_weights_add_up_exactly():
    weights = np.full(380_001, 255.0)
    weights[::2] = 254.99609375
    X, grid = np.zeros((len(weights), 1), np.uint8), Grid([0], 8)
    whole = Sums.of(grid, X, None, weights)
    assert whole.log_weights > 2**53
    halves = Sums.of(grid, X[::2], None, weights[::2]) + Sums.of(grid, X[1::2], None, weights[1::2])
    assert whole == halves


@pytest.mark.parametrize("weight", [-1.0, 256.0, 1e150, 0.001, np.nan, np.inf])
def test_weights_out_of_range_are_refused(weight):
    with pytest.raises(KnowmoreError) as refused:
        Sums.of(Grid([0]), np.zeros((2, 1)), None, np.array([1.0, weight]))
    assert str(refused.value) == (
        f"The weight of row 1 is {weight}. Weights are read in multiples of 1/256, from 1/256 to "
        f"255.996, or zero to leave a row out: scale them."
    )


def test_rows_of_weight_zero_are_left_out():
    X = np.arange(6.0).reshape(3, 2)
    grid = Grid.covering(X)
    sums = Sums.of(grid, X, ["a", "b", "a"], [1, 0, 0.5])
    assert sums == Sums.of(grid, X[[0, 2]], ["a", "a"], [1, 0.5])
    assert Sums.of(grid, X, None, np.zeros(3)) == Sums(grid) == Sums.of(grid, X[:0])


@pytest.mark.parametrize("given", [{"keys": [1, 2]}, {"weights": [1.0] * 4}, {"keys": [[1, 2, 3]]}])
def test_another_number_of_keys_or_weights_is_refused(given):
    # Compiled loops would read beyond the end.
    with pytest.raises(KnowmoreError, match=r"has shape .*, but there are 3 examples\."):
        Sums.of(Grid([0]), np.zeros((3, 1)), **given)


# -- what cannot be -------------------------------------------------------------------------------


def test_what_would_be_the_sums_of_no_rows_is_refused_and_nothing_changes():
    X, y = np.array([[1.0], [2.0], [3.0], [9.0]]), ["a", "a", "b", "c"]
    grid = Grid.covering(X, 16)
    sums = Sums.of(grid, X, y)
    digest = sums.digest()
    refused = {
        "more rows than there are": Sums.of(grid, X[[0, 1, 1]], ["a", "a", "a"]),
        "an unknown group": Sums.of(grid, X[:1], ["d"]),
        "other values of the last row": Sums.of(grid, X[:1], ["c"]),
        "more weight": Sums.of(grid, X[:1], ["b"], [2.0]),
        "less weight of the last row": Sums.of(grid, X[2:3], ["b"], [0.5]),
        "weights that single rows cannot have": Sums.of(grid, X[:1], ["a"], [1 / 256]) + sums,
        "sums that the squares of the others forbid": Sums.of(grid, X[:1] - 127, ["a"]),
    }
    for what, other in refused.items():
        with pytest.raises(
            KnowmoreError, match=r"^These rows of '.' cannot all have been learnt: \d "
        ):
            pytest.fail(what) if sums - other else None
    with pytest.raises(KnowmoreError) as error:
        sums - refused["an unknown group"]
    assert str(error.value) == (
        "These rows of 'd' cannot all have been learnt: 0 are held, and no rows could have the "
        "sums that would be left. Forget only rows that were learnt, each once, with the same "
        "labels and weights. Nothing was changed."
    )
    assert sums.digest() == digest


def test_rows_whose_squares_are_beyond_the_range_of_numbers_are_summed_without_a_warning():
    X = np.array([[1.0], [2.0**300]])
    grid = Grid([-300])
    assert Sums.of(grid, X) - Sums.of(grid, X[1:]) == Sums.of(grid, X[:1])
    assert Sums.of(grid, X, weights=np.zeros(2)) == Sums(grid)


def test_all_rows_are_forgotten_only_with_their_products():
    grid = Grid([-8])
    sums = Sums.of(grid, np.array([[1.0], [-1.0]]))
    with pytest.raises(KnowmoreError, match=r"^These rows cannot all have been learnt: 2 are held"):
        sums - Sums.of(grid, np.array([[0.5], [-0.5]]))
    weighted = Sums.of(grid, np.array([[0.0], [0.0]]), None, [1.0, 4.0])
    with pytest.raises(KnowmoreError, match=r"^These rows cannot all have been learnt: 2 are held"):
        weighted - Sums.of(grid, np.array([[0.0], [0.0]]), None, [2.0, 3.0])


def test_squares_that_no_rows_have_are_refused_at_once():
    grid = Grid([-8, -8])
    rows = np.array([[0.1, 0.0], [-0.1, 0.0], [0.1, 1.0]])
    many = np.repeat(rows, 100, axis=0)
    for sums in (
        Sums.of(grid, rows),
        Sums.of(grid, many),
        Sums.of(grid, many[::-1]) - Sums.of(grid, rows),
    ):
        before = sums.digest()
        for wrong in ([[9.5, 0.0], [-9.5, 0.0]], [[0.1, 99.0]]):
            with pytest.raises(
                KnowmoreError, match=r"^These rows cannot all have been learnt: .* are held"
            ):
                _ = sums - Sums.of(grid, np.array(wrong))
        assert sums.digest() == before
        assert sums - Sums.of(grid, rows[1:]) + Sums.of(grid, rows[1:]) == sums


def test_a_column_that_is_the_same_in_a_billion_rows_can_be_forgotten():
    """Its square of sums is as large as can be, and neither has a form in 64 bits."""
    grid, row = Grid([0]), np.array([[792271.0]])
    sums = Sums.of(grid, np.repeat(row, 253, axis=0))
    for _ in range(22):
        sums = sums + sums
    assert (sums - Sums.of(grid, row)).rows == 253 * 2**22 - 1
    with pytest.raises(KnowmoreError, match=r"^These rows cannot all have been learnt"):
        sums - Sums.of(grid, -row)


def test_a_scatter_of_no_rows_is_seen_by_the_next_question():
    """Each column alone is possible; together the columns are not."""
    grid = Grid([-8, -8])
    rows = np.array([[1.0, 1], [-1, -1], [2, 2], [-2, -2], [0, 0], [0, 0]])
    damaged = Sums.of(grid, rows) - Sums.of(grid, np.array([[1.0, -1], [-1, 1]]))
    assert np.linalg.eigvalsh(damaged.scatter())[0] < 0
    assert damaged + Sums.of(grid, np.array([[1.0, -1], [-1, 1]])) == Sums.of(grid, rows)


def test_sums_on_different_grids_are_refused():
    with pytest.raises(KnowmoreError) as refused:
        Sums(Grid([0])) + Sums(Grid([1]))
    assert str(refused.value) == (
        "The grids differ: Grid(1 columns in steps of 2**0, bits=21) here, Grid(1 columns in steps "
        "of 2**1, bits=21) there. Sums add up only on one grid. Give both models the same "
        "resolution=Grid(...)."
    )


# -- values ---------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("n", [3, 400])
def test_copies_and_pickles_are_equal_and_locked(bits, n):
    X, y, units = draw(np.random.default_rng(bits), n)
    sums = Sums.of(Grid.covering(X, bits), X, y, units / UNIT)
    sums = sums + sums
    for copy in (pickle.loads(pickle.dumps(sums)), deepcopy(sums), sums):
        assert copy == sums
        assert copy.digest() == sums.digest()
        assert copy + sums == sums + copy
        for array in (copy.words, *(group.first for group in copy.groups.values())):
            assert not array.flags.writeable
        with pytest.raises(TypeError):
            copy.groups["new"] = next(iter(copy.groups.values()))


@every
def test_a_pickle_has_no_row(bits):
    rng = np.random.default_rng(bits)
    X = rng.normal(size=(100, 30))
    grid = Grid.covering(X, bits)
    sums = Sums.of(grid, X) - Sums.of(grid, X[:1]) - Sums.of(grid, X[1:4])
    data = pickle.dumps(sums)
    Z = grid.multiples(X)
    assert not any(row.tobytes() in data for kind in (Z, Z.astype(np.int64), X) for row in kind)
    # The pickle equals a pickle of the rows that are left: the history is not in it.
    fresh = pickle.loads(pickle.dumps(Sums.of(grid, X[4:])))
    assert hashlib.sha256(pickle.dumps(pickle.loads(data))).digest() == (
        hashlib.sha256(pickle.dumps(fresh)).digest()
    )


def test_they_say_what_they_are():
    X = np.zeros((3, 2))
    assert repr(Sums.of(Grid.covering(X), X, [1, 1, 2])) == (
        "Sums(3 rows in 2 groups, Grid(2 columns in steps of 2**-42, bits=21))"
    )
    with pytest.raises(TypeError, match="unhashable"):
        hash(Sums(Grid([0])))


BEYOND = "Integers beyond 64 bits and strings that end in NUL cannot be keys. Rename them."


@pytest.mark.parametrize(
    "keys",
    [
        ["a", "a\0"],
        [b"a", b"a\0"],
        np.array(["a", "a\0"], dtype=object),
        [2**63 + 1, -1],
        [2**63, -1],
        [2**64, 2**64 + 1],
    ],
)
def test_keys_that_numpy_would_join_are_refused(keys):
    X = np.eye(2)
    with pytest.raises(KnowmoreError) as caught:
        Sums.of(Grid.covering(X), X, keys)
    assert str(caught.value) == BEYOND


def test_keys_up_to_64_bits_stay_apart():
    X = np.eye(3)
    keys = [2**63, 2**63 + 1, 2**64 - 1]
    assert [*Sums.of(Grid.covering(X), X, keys).groups] == keys


FORMATS = ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"]


@pytest.mark.parametrize("name", FORMATS)
def test_a_sparse_table_of_any_format_stands_beside_others(name):
    X = np.arange(12.0).reshape(6, 2)
    grid, Z = Grid.covering(X), getattr(sparse, f"{name}_array")(X)
    both = grid + grid
    assert Sums.of(grid, Z) == Sums.of(grid, X)
    assert Sums.of(both, (Z, X)) == Sums.of(both, (X, Z)) == Sums.of(both, (X, X))


def test_no_type_of_sums_is_compiled_late():
    # A compilation that Ctrl-C interrupts would be stuck.
    X = np.arange(12.0).reshape(4, 3)
    made = [len(each.signatures) for each in vars(loops()).values()]
    for bits in BITS:
        sums = Sums.of(Grid.covering(X, bits), X, np.array([0, 0, 1, 1]))
        for centred in (True, False):
            sums.scatter(centred=centred)
            sums.cross([0, 1], centred=centred)
        sums.mean()
    assert [len(each.signatures) for each in vars(loops()).values()] == made
