"""Bad input, names of columns, sparse rows, and the smaller methods of an eigenspace."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from tolerance import assert_models, assert_rounded, scatter_error

from knowmore import Eigenspace, EigenspacePCA, KnowmoreError, Truncation
from knowmore.subspaces import eigenspace, scatter

rng = np.random.default_rng(0)
X = rng.normal(size=(30, 5)) * [5, 4, 3, 2, 1] + 3
MODEL = Eigenspace.of(X)
WIDE = Eigenspace.of(rng.normal(size=(10, 30)))

FRAME = pd.DataFrame(X, columns=[*"abcde"])

MISTAKES = {
    "one row without its brackets": (
        lambda: Eigenspace.of(X[0]),
        ValueError,
        "X has shape (5,), not (N, D). A single row x is x[None].",
    ),
    "words": (
        lambda: Eigenspace.of([["a"]]),
        ValueError,
        "X has values that are not real numbers: they are of type <U1. Encode text and dates as "
        "numbers first, and give complex numbers as two columns each.",
    ),
    "no rows": (
        lambda: Eigenspace.of(X[:0]),
        ValueError,
        "X has shape (0, 5): it holds no numbers.",
    ),
    "no columns": (
        lambda: Eigenspace.of(X[:, :0]),
        ValueError,
        "X has shape (30, 0): it holds no numbers.",
    ),
    "NaN": (
        lambda: MODEL.add_rows([[1, 2, np.nan, 4, 5]]),
        ValueError,
        "X contains NaN or infinity, first at row 0, column 2 (nan). "
        "Remove these rows or fill in the values.",
    ),
    "infinity in a sparse matrix": (
        lambda: Eigenspace.of(sparse.csr_matrix([[0.0, np.inf]])),
        ValueError,
        "X contains NaN or infinity, first at row 0, column 1 (inf). "
        "Remove these rows or fill in the values.",
    ),
    "complex numbers": (
        lambda: Eigenspace.of(X + 1j),
        ValueError,
        "X has values that are not real numbers: they are of type complex128. Encode text and "
        "dates as numbers first, and give complex numbers as two columns each.",
    ),
    "a sparse row without its brackets": (
        lambda: Eigenspace.of(sparse.coo_array(np.arange(4.0))),
        ValueError,
        "X has shape (4,), not (N, D). A single row x is x[None].",
    ),
    "other columns": (
        lambda: MODEL + WIDE,
        ValueError,
        "The model has 5 columns and the other 30. Both need the same columns in the same order.",
    ),
    "rows of other columns": (
        lambda: MODEL.remove_rows(X[:, :3]),
        ValueError,
        "The model has 5 columns and the other 3. Both need the same columns in the same order.",
    ),
    "columns in another order": (
        lambda: Eigenspace.of(FRAME) + Eigenspace.of(FRAME[[*"abdce"]]),
        ValueError,
        "Column 2 is 'c' in the model and 'd' in the other. Both need the same columns in the "
        "same order: select them by their names.",
    ),
    "rows of columns with other names": (
        lambda: Eigenspace.of(FRAME).remove_rows(FRAME.rename(columns={"a": "x"})),
        ValueError,
        "Column 0 is 'a' in the model and 'x' in the other. Both need the same columns in the "
        "same order: select them by their names.",
    ),
    "fewer names than features": (
        lambda: MODEL.with_names(["a"]),
        ValueError,
        "1 names for 5 features: give 5, or None.",
    ),
    "masked values": (
        lambda: Eigenspace.of(np.ma.array(X, mask=np.equal(X, X[3, 1]))),
        ValueError,
        "X has 1 masked value(s), the first at (3, 1). Fill them in with X.filled(...), or leave "
        "these examples out.",
    ),
    "names that are one word": (
        lambda: MODEL.with_names("abcde"),
        ValueError,
        "names='abcde' is not a list of names. Give 5 of them, or None.",
    ),
    "names that cannot be compared": (
        lambda: MODEL.with_names([["a"], *"bcde"]),
        ValueError,
        "names=(['a'], 'b', 'c', 'd', 'e') is not a list of names. Give 5 of them, or None.",
    ),
    "a mean that is no vector": (
        lambda: Eigenspace(3, np.zeros((1, 4)), np.zeros((2, 4)), np.ones(2)),
        ValueError,
        "mean has shape (1, 4), not (n,).",
    ),
    "a mean with another rest": (
        lambda: Eigenspace(3, np.zeros(4), np.eye(4), np.ones(4), mean_rest=np.zeros(3)),
        ValueError,
        "mean_rest has shape (3,), not (4,).",
    ),
    "a warning that is neither on nor off": (
        lambda: MODEL.remove_rows(X[:1], warn="no"),
        ValueError,
        "warn='no' is neither True nor False.",
    ),
    "variances in a table": (
        lambda: Truncation(2).count(np.ones((2, 2))),
        ValueError,
        "variances has shape (2, 2), not (d,).",
    ),
    "coordinates along more directions than there are": (
        lambda: MODEL.truncate(2).reconstruct(X),
        ValueError,
        "Z has shape (30, 5), but (m, 2) is needed, as from project.",
    ),
    "coordinates of one row": (
        lambda: MODEL.reconstruct(X[0]),
        ValueError,
        "Z has shape (5,), but (m, 5) is needed, as from project.",
    ),
    "coordinates that are missing": (
        lambda: MODEL.reconstruct([[0.0, np.nan, 0.0, 0.0, 0.0]]),
        ValueError,
        "Z contains NaN or infinity, first at row 0, column 1 (nan). Remove these rows or fill in "
        "the values.",
    ),
    "rows where a model is due": (
        lambda: MODEL.merge(X),
        TypeError,
        "Expected an Eigenspace, got ndarray. For rows use Eigenspace.of(X).",
    ),
    "all rows taken out": (
        lambda: MODEL - MODEL,
        ValueError,
        "30 rows are to be removed from 30. At least one must remain.",
    ),
    "more rows taken out than there are": (
        lambda: Eigenspace.of(X[:3]) - MODEL,
        ValueError,
        "30 rows are to be removed from 3. At least one must remain.",
    ),
    "a rank below zero": (
        lambda: MODEL.truncate(-1),
        ValueError,
        "rank=-1. Give a whole number of at least 0.",
    ),
    "a rank that is no number": (
        lambda: MODEL.truncate(2.5),
        ValueError,
        "rank=2.5. Give a whole number of at least 0.",
    ),
    "more than everything": (
        lambda: Truncation(fraction=1.5),
        ValueError,
        "fraction=1.5 must be a number in [0, 1].",
    ),
    "parts that do not fit": (
        lambda: Eigenspace(3, np.zeros(4), np.zeros((2, 3)), np.ones(2)),
        ValueError,
        "The components have shape (2, 3), not (2, 4).",
    ),
    "a model of nothing": (
        lambda: Eigenspace(0, np.zeros(4), np.zeros((0, 4)), np.zeros(0)),
        ValueError,
        "An eigenspace needs at least 1 row, but n_samples=0.",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake(mistake):
    act, kind, words = MISTAKES[mistake]
    with pytest.raises(KnowmoreError) as error:
        act()
    assert isinstance(error.value, kind)
    assert str(error.value) == words


# The words of what project and distances refuse.
ASKED = {
    "one column": (X[:, :1], "The model has 5 columns and X 1. Both need the same columns in "),
    "four columns": (X[:, :4], "The model has 5 columns and X 4. Both need the same columns in "),
    "sparse columns": (sparse.csr_array(X[:, :4]), "The model has 5 columns and X 4. Both need "),
    "another order": (FRAME[[*"abdce"]], "Column 2 is 'c' in the model and 'd' in X. Both need "),
    "other names": (FRAME.rename(columns={"a": "x"}), "Column 0 is 'a' in the model and 'x' in X"),
    "one row": (X[0], "X has shape (5,), not (N, D). A single row x is x[None]."),
    "nothing": (None, "X has shape (), not (N, D). A single row x is x[None]."),
    "no rows": (X[:0], "X has shape (0, 5): it holds no numbers."),
    "text": ([["a"] * 5], "X has values that are not real numbers: they are of type <U1."),
    "masked": (np.ma.array(X, mask=X > 4), "X has 57 masked value(s), the first at (0, 2)."),
    "ragged": ([[1.0], [2.0, 3.0]], "X has values that are not real numbers: setting an array"),
    "NaN": ([[np.nan] * 5], "X contains NaN or infinity, first at row 0, column 0 (nan)."),
}


@pytest.mark.parametrize("ask", ["project", "distances"])
@pytest.mark.parametrize("asked", ASKED)
def test_a_question_has_the_columns_of_the_model(asked, ask):
    rows, words = ASKED[asked]
    with pytest.raises(KnowmoreError) as error:
        getattr(Eigenspace.of(FRAME), ask)(rows)
    assert str(error.value).startswith(words)


@pytest.mark.parametrize("ask", ["project", "distances"])
def test_the_rows_of_any_table_give_the_same_answer(ask, monkeypatch):
    named = Eigenspace.of(FRAME).truncate(3)
    want = getattr(named, ask)(X)
    monkeypatch.setattr(scatter, "_BLOCK", 4 * X.shape[1])
    for rows in (FRAME, pl.from_pandas(FRAME), X.tolist(), pd.DataFrame(X)):
        np.testing.assert_array_equal(getattr(named, ask)(rows), want)
    # In blocks: products of fewer rows may be rounded otherwise.
    assert_rounded(getattr(named, ask)(sparse.csc_array(X)), want)


NEVER = "These rows are not all in the model: removing them would leave a variance below zero"


@pytest.mark.parametrize(
    ("model", "rows"),
    [
        pytest.param(WIDE, rng.normal(size=(1, 30)), id="a new direction"),
        pytest.param(MODEL, X[:1] + 40, id="too far out"),
        pytest.param(MODEL, np.repeat(X[:1] + 9, 5, axis=0), id="too often"),
        pytest.param(Eigenspace.of(X, 3), X[:2] * 30, id="more than was dropped"),
        pytest.param(Eigenspace.of(np.ones((5, 3))), np.ones((1, 3)) * 2, id="no variance at all"),
    ],
)
def test_rows_that_were_never_there_cannot_be_taken_out(model, rows):
    with pytest.raises(ValueError, match=NEVER):
        model.remove_rows(rows)
    with pytest.raises(ValueError, match=NEVER):
        model.split(Eigenspace.of(rows))


def test_rows_that_were_there_can_be_taken_out_of_a_truncated_model():
    few = Eigenspace.of(X[:15], 2).merge(Eigenspace.of(X[15:], 2), 2)
    left = few.remove_rows(X[:10], 2)
    assert (left.n_samples, len(left.components)) == (20, 2)


@pytest.mark.parametrize("shape", [(40, 7), (7, 40)])
def test_a_sparse_matrix_is_read_in_blocks(shape, monkeypatch):
    dense = rng.poisson(0.5, size=shape).astype(float)
    dense[0, 0] = 9
    monkeypatch.setattr(scatter, "_BLOCK", 3 * shape[1])
    sizes = [len(block) for block in scatter.blocks(sparse.csc_array(dense))]
    assert sum(sizes) == len(dense)
    assert max(sizes) == 3
    assert_models(Eigenspace.of(sparse.csc_array(dense)), dense, edits=len(sizes))
    model = Eigenspace.of(dense[:4]).add_rows(sparse.coo_matrix(dense[4:]))
    assert_models(model, dense, edits=len(sizes))
    left = model.remove_rows(sparse.csr_matrix(dense[:5]))
    assert_models(left, dense[5:], held=dense, edits=2 * len(sizes))


def test_a_truncated_sparse_matrix_is_truncated_once_where_columns_are_few(monkeypatch):
    dense = rng.poisson(0.5, size=(60, 9)).astype(float)
    monkeypatch.setattr(scatter, "_BLOCK", 90)
    few = Eigenspace.of(sparse.csr_array(dense), 3)
    whole = Eigenspace.of(dense)
    assert_rounded(few.variances, whole.variances[:3], 1000)
    assert_rounded(few.discarded, whole.variances[3:].sum(), 1000, whole.total_variance)
    # And after each block where they are many: less is kept, and said so.
    monkeypatch.setattr(eigenspace, "_COLUMNS", 5)
    fewer = Eigenspace.of(sparse.csr_array(dense), 3)
    assert fewer.discarded > few.discarded
    gap = abs(fewer.total_variance - whole.total_variance)
    assert gap * len(dense) <= scatter_error(dense, edits=7)


def test_a_split_of_what_was_truncated_says_that_it_is_not_exact():
    model = MODEL - Eigenspace.of(X[:10], 2)
    assert model.discarded == 0
    assert model.blurred > 0
    whole = Eigenspace.of(X[10:]).total_variance
    assert_rounded(model.total_variance, whole, 1000, MODEL.total_variance)
    exact = MODEL - Eigenspace.of(X[:10])
    assert (exact.discarded, exact.blurred) == (0, 0)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas])
def test_columns_have_the_names_of_a_data_frame_and_go_with_nameless_ones(kind):
    names = (*"abcde",)
    named, frame = Eigenspace.of(kind(FRAME)), kind(FRAME[:5])
    assert named.names == names
    assert (named + MODEL).names == (MODEL + named).names == names
    assert named.add_rows(X).remove_rows(frame).truncate(2).names == names
    assert (MODEL - Eigenspace.of(frame)).names == names
    assert pickle.loads(pickle.dumps(named)).names == names
    assert MODEL.names is None
    assert named.with_names(None).merge(Eigenspace.of(FRAME[[*"edcba"]])).n_samples == 60
    assert EigenspacePCA().fit(kind(FRAME)).partial_fit(kind(FRAME)).eigenspace_.names == names


NAMES = {
    "integers": [*range(2021, 2026)],
    "dates": list(pd.date_range("2021-01-01", periods=5)),
    "strings and integers": ["a", 1, "b", 2, 3],
    "tuples": pd.MultiIndex.from_product([["x"], range(5)]),
    "some missing": [1.0, 2.0, 3.0, 4.0, np.nan],
    "not available": ["a", "b", "c", "d", pd.NA],
    "counted": range(5),
}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_columns_go_by_names_that_are_no_strings(names):
    frame = pd.DataFrame(X, columns=names)
    turned, model = frame.iloc[:, ::-1], Eigenspace.of(frame[:20])
    for meet in (
        lambda: model + Eigenspace.of(turned[20:]),
        lambda: Eigenspace.of(turned[20:]) + model,
        lambda: model - Eigenspace.of(turned[:5]),
        lambda: model.add_rows(turned[20:]),
        lambda: model.remove_rows(turned[:5]),
    ):
        with pytest.raises(KnowmoreError, match=r"^Column 0 is .* in the model and .* in the othe"):
            meet()
    copy = pickle.loads(pickle.dumps(model))
    assert (copy + Eigenspace.of(frame[20:])).n_samples == model.add_rows(X[20:]).n_samples == 30


def test_columns_that_are_merely_counted_go_with_any_names():
    counted = Eigenspace.of(pd.DataFrame(X))
    years = Eigenspace.of(pd.DataFrame(X, columns=NAMES["integers"]))
    assert (counted + years).names == (years + counted).names == (*NAMES["integers"],)
    assert (counted + MODEL).names == (MODEL + counted).names == (*range(5),)


def test_an_arrow_table_has_the_names_of_its_columns():
    table = pa.Table.from_pandas(FRAME)
    assert Eigenspace.of(table).names == Eigenspace.of(table.to_batches()[0]).names == (*"abcde",)
    with pytest.raises(KnowmoreError, match=r"^Column 0 is 'a' in the model and 'e' in the other"):
        Eigenspace.of(table).add_rows(table.select([*"edcba"]))


def test_a_column_may_be_called_column_names():
    named = FRAME.rename(columns={"a": "column_names"})
    assert Eigenspace.of(named).names == ("column_names", *"bcde")


@pytest.mark.parametrize("ask", ["project", "reconstruct", "distances"])
def test_an_answer_that_overflows_raises_with_its_row(ask):
    few = MODEL.truncate(2)
    width = 2 if ask == "reconstruct" else 5
    rows = np.zeros((3, width))
    rows[1] = 1.7e308 * np.sign(few.components[0] if width == 5 else few.components[:, 0])
    with pytest.raises(KnowmoreError, match=r"^What is asked of row 1 of X is beyond the range of"):
        getattr(few, ask)(rows)
    assert np.isfinite(getattr(few, ask)(rows[::2])).all()


def test_a_distance_whose_square_overflows_raises():
    with pytest.raises(KnowmoreError, match=r"^What is asked of row 0 of X is beyond the range of"):
        MODEL.truncate(2).distances(np.full((1, 5), 1e200))


def test_projecting_and_reconstructing():
    few = MODEL.truncate(2)
    Z = few.project(X)
    assert_rounded(few.project(few.reconstruct(Z)), Z)
    assert_rounded((few.distances(X) ** 2).mean(), few.discarded, 1000)
    assert_rounded(MODEL.distances(X), np.zeros(len(X)), 100, abs(X).max())


def test_truncating_keeps_what_is_known_of_errors():
    few = MODEL.truncate(2)
    assert few.rounding == MODEL.rounding
    assert_rounded(few.noise, MODEL.variances[2:].mean())
    assert MODEL.noise == 0


def test_angles_are_those_between_the_subspaces():
    one = Eigenspace(5, np.zeros(3), np.eye(3)[:1], np.ones(1))
    turned = np.array([[np.cos(0.3), np.sin(0.3), 0.0]])
    assert_rounded(one.angles(Eigenspace(5, np.zeros(3), turned, np.ones(1))), [0.3])
    assert one.angles(one.truncate(0)).shape == (0,)


def test_it_says_what_it_is():
    assert repr(MODEL) == "Eigenspace(30 rows of 5, 5 directions, discarded 0)"
    few = MODEL.truncate(2)
    assert repr(few) == f"Eigenspace(30 rows of 5, 2 directions, discarded {few.discarded:.3g})"


def test_splitting_an_inexact_model_keeps_the_trace_whatever_is_cut():
    rng = np.random.default_rng(0)
    P = np.linalg.qr(rng.normal(size=(5, 3)))[0].T
    squares, B = np.array([9.0, 1.0, 0.1]), rng.normal(size=(2, 5)) * 0.1
    for known, kept in (1e-20, 2), (2.0, 1), (20.0, 0):
        left = scatter.subtract(P, squares, B, np.full(5, known), most=2, exact=False)
        assert len(left.squares) == kept
        total = left.squares.sum() + left.cut - left.deficit
        assert_rounded(total, squares.sum() - (B * B).sum())
