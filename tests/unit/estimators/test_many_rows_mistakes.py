"""Mistakes with models for many rows: each error says what was got, why, and what to do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris
from sklearn.gaussian_process.kernels import RBF
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from knowmore import (
    ForestGPClassifier,
    ForestGPRegressor,
    GPClassifier,
    Grid,
    IntersectionMap,
    KnowmoreError,
    LinearGPClassifier,
    living,
)
from knowmore.distributed import fit, load_sums, refresh_sums, save_sums
from knowmore.errors import NoRows, NotEnoughMemory
from knowmore.linalg import Sums

rng = np.random.default_rng(0)
X = abs(rng.normal(size=(40, 3)))
Y = np.arange(40) % 2
GRID = Grid.covering(X)
CLF = LinearGPClassifier().fit(X, Y)

MISTAKES = {
    "unknown": (
        lambda: CLF.predict(X, unknown="?"),
        "predict of a LinearGPClassifier takes no unknown or rate, which need a model that leaves "
        "out each of its examples, as GPClassifier does. Instead, knowmore.insight.novelty(clf, X, "
        "reference=(X_learnt, y_learnt)) finds such rows.",
    ),
    "unknown of a forest": (
        lambda: ForestGPClassifier().fit(X, Y).predict(X, unknown="?"),
        "predict of a ForestGPClassifier takes no unknown or rate, which need a model that leaves "
        "out each of its examples, as GPClassifier does. Instead, "
        "knowmore.insight.novelty(clf, X).unknown(0.95) marks such rows.",
    ),
    "leave_one_out without rows": (
        CLF.leave_one_out,
        "leave_one_out of a LinearGPClassifier needs the rows and their targets: the model keeps "
        "only their sums. Give rows that it has learnt again, all or some: leave_one_out(X, y).",
    ),
    "noise of a forest": (
        lambda: ForestGPClassifier(noise="loo").fit(X, Y),
        "noise='loo' must be a number in [0, inf). It is a variance, usually 1e-6 to 1; None "
        " chooses it by leave-one-out.",
    ),
    "noise of a forest of regressors": (
        lambda: ForestGPRegressor(noise="evidence").fit(X, Y),
        "noise='evidence' must be a number in [0, inf). It is a variance, usually 1e-6 to 1; "
        "None chooses it by leave-one-out.",
    ),
    "complex rows": (
        lambda: Grid.covering([[1 + 2j, 3.0]]),
        "X has values that are not real numbers: they are of type complex128. Encode text and "
        "dates as numbers first, and give complex numbers as two columns each.",
    ),
    "text": (
        lambda: Sums.of(GRID, np.array([["a", "b", "c"]])),
        "X has values that are not real numbers: they are of type <U1. Encode text and dates as "
        "numbers first, and give complex numbers as two columns each.",
    ),
    "a negative reach": (
        lambda: Grid.reaching([2.0, -1.0]),
        "The largest absolute value of column 1 cannot be -1. Give abs(X).max(axis=0), or use "
        "Grid.covering(X).",
    ),
    "grids of other bits": (
        lambda: GRID + Grid.covering(X, 16),
        "The grids have 21 and 16 bits, but the columns of a row are read with as many. Make both "
        "with the same bits: Grid.covering(X, bits).",
    ),
    "a grid and a number": (
        lambda: GRID + 3,
        "an int cannot be added to a Grid. Give another Grid.",
    ),
    "sums and a number": (
        lambda: Sums.of(GRID, X) + 3,
        "Sums are combined with an int. Give Sums: Sums.of(grid, X) of rows X.",
    ),
    "mixed keys": (
        lambda: Sums.of(GRID, X, ["a", 1] * 20),
        "keys are of the types int, str. Give all of one type: only str, only int or only bool.",
    ),
    "tables of other heights": (
        lambda: Sums.of(GRID, (X[:, :1], X[:5, 1:])),
        "Tables side by side must have as many rows each, but these have 40, 5. Give one table at "
        "least, and a row of each for every example.",
    ),
    "no mean": (
        Sums(GRID).mean,
        "These are the sums of no rows, so they have no mean. Add rows first.",
    ),
    "no file of sums": (
        lambda: load_sums(None),
        "The path is None, of type NoneType. Give the name of a file or folder: a str or a "
        "pathlib.Path.",
    ),
    "a source that is gone": (
        lambda: save_sums("new.kms", CLF, source="gone"),
        "There is no file of rows 'gone' to note: No such file or directory. Check the path, or "
        "leave source out.",
    ),
    "sums of a kernel model": (
        lambda: refresh_sums(".", estimator=GPClassifier()),
        "GPClassifier() has no sums to write: give a LinearGPClassifier or LinearGPRegressor.",
    ),
    "a loader that cannot be called": (
        lambda: fit(CLF, [X], [Y], load="csv"),
        "load='csv' cannot be called. Give a function that reads a file: it gets its path, and "
        "returns the rows.",
    ),
    "variance beyond numbers": (
        lambda: LinearGPClassifier(noise=1.79e308).fit(X[:6], Y[:6]).leave_one_out(X[:6], Y[:6]),
        "What is predicted for row 0 without it is beyond the range of numbers, at noise=1.79e+308."
        " Use less noise, or scale the targets.",
    ),
    "an integer beyond numbers": (
        lambda: CLF.predict(np.array([[10**400] * 3], dtype=object)),
        "X has a number beyond the range of numbers: int too large to convert to float. Scale it.",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_explained(mistake, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, words = MISTAKES[mistake]
    with pytest.raises(KnowmoreError) as caught:
        call()
    assert str(caught.value) == words
    assert not any(tmp_path.iterdir())


def test_lists_are_rows():
    assert Sums.of(GRID, X.tolist(), Y.tolist()) == Sums.of(GRID, X, Y)
    np.testing.assert_array_equal(GRID.multiples(X.tolist()), GRID.multiples(X))


# -- memory ----------------------------------------------------------------------------------------


def test_more_codes_than_memory_are_refused_with_their_number(monkeypatch):
    monkeypatch.setattr("knowmore._base.machine.available_memory", lambda: 2**33)
    with pytest.raises(NotEnoughMemory) as caught:
        IntersectionMap(levels=10**9).fit([[1.0, 0.5]])
    assert str(caught.value) == (
        "levels=1000000000 makes 805,306,368 codes of a row: 1 row(s) take 30.8 GB, but 8.0 GB "
        "of memory are free. Use fewer levels, or transform fewer rows at a time. Nothing was "
        "changed."
    )
    codes = IntersectionMap(levels=2**20).fit([[1.0, 0.5]])
    with pytest.raises(NotEnoughMemory, match=r"1,572,864 codes of a row: 9,000 row\(s\) take 1"):
        codes.transform(np.ones((9000, 2)))


def test_a_leaf_that_finds_no_memory_is_told_at_fit_and_changes_nothing(monkeypatch):
    rows, labels = rng.normal(size=(4200, 2)), np.arange(4200) % 2
    forest = ForestGPClassifier(RBF(), capacity=5000).fit(rows[:100], labels[:100])
    monkeypatch.setattr("knowmore._base.machine.available_memory", lambda: 2**26)
    for call in (forest.fit, forest.add):
        with pytest.raises(NotEnoughMemory) as caught:
            call(rows, labels, ids=range(1000, 5200))
        assert str(caught.value).startswith("A leaf of 4,")
        assert str(caught.value).endswith(
            "0.1 GB of memory are free. Free memory, remove examples, or use a smaller capacity or "
            "n_trees. Nothing was changed."
        )
    assert len(forest.ids_) == 100
    assert len(ForestGPClassifier(RBF(), capacity=500).fit(rows, labels).ids_) == 4200


# -- ordinary rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("resolution", [None, 8, 16, "exact"])
@pytest.mark.parametrize(
    "rows",
    [
        load_digits().data,
        load_iris().data,
        rng.integers(0, 256, (100, 20)).astype(np.uint8),
        sparse.random_array((100, 20), density=0.1, rng=1),
        np.ones((9, 2)),
        1.7e9 + 86400.0 * np.arange(9000)[:, None],
    ],
    ids=["digits", "iris", "bytes", "sparse", "constant", "days of 24 years"],
)
def test_ordinary_rows_raise_no_alarm(rows, resolution):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearGPClassifier(resolution=resolution).fit(rows, np.arange(rows.shape[0]) % 2)


NO_IDS = "LinearGPClassifier keeps no rows and no ids, so it has no"
ABSENT = {
    "add": "add. Learn rows by partial_fit(X, y).",
    "remove": "remove. Forget rows by forget(X, y), giving them again.",
    "replace": "replace. Forget the old rows, forget(X, y), and learn the new ones by partial_fit.",
    "relabel": "relabel. Forget the rows with the old labels, forget(X, y), and learn them with "
    "the new ones by partial_fit.",
    "ids_": "ids_. n_samples_ is the number of rows learnt; keep their ids where you keep the "
    "rows.",
}


@pytest.mark.parametrize("name", ABSENT)
def test_linear_models_say_what_to_do_instead_of_ids(name):
    pipeline = make_pipeline(StandardScaler(), LinearGPClassifier()).fit(X, Y)
    for one in (CLF, living(pipeline)):
        assert not hasattr(one, name)
        with pytest.raises(AttributeError) as caught:
            getattr(one, name)
        cure = "Or let it keep them: fit(X, y, ids=...)."
        assert str(caught.value) == f"{NO_IDS} {ABSENT[name]} {cure}"
        assert isinstance(caught.value, NoRows)


def test_other_attributes_keep_their_errors():
    with pytest.raises(AttributeError, match=r"object has no attribute 'strange'$"):
        _ = CLF.strange
    with pytest.raises(KnowmoreError, match=r"^This LinearGPClassifier is not fitted yet"):
        _ = LinearGPClassifier().coef_


def test_no_rows_change_nothing():
    for one in (LinearGPClassifier(), make_pipeline(StandardScaler(), LinearGPClassifier())):
        fitted = one.fit(X, Y)
        alive = fitted if one is fitted and hasattr(one, "digest") else living(fitted)
        before = alive.digest()
        for rows, labels in ((X[:0], Y[:0]), ([], []), (sparse.csr_array(X)[:0], Y[:0])):
            assert alive.partial_fit(rows, labels).forget(rows, labels).digest() == before
        with pytest.raises(KnowmoreError, match=r"^y has shape \(40,\), but there are 0 examples"):
            alive.forget(X[:0], Y)
        assert alive.digest() == before
    with pytest.raises(KnowmoreError, match=r"minimum of 1 is required"):
        LinearGPClassifier().partial_fit(X[:0], Y[:0])


def test_forests_tell_their_noise():
    assert ForestGPClassifier(noise=0.3).fit(X, Y).noise_ == 0.3
    assert ForestGPRegressor(noise=0.2).fit(X, Y).noise_ == 0.2
