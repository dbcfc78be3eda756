"""Reports of `forget` and `verify`, numbers of examples, and leftovers where nothing fits."""

from __future__ import annotations

from json import dumps

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import knowmore
from knowmore import (
    GPClassifier,
    LinearGPClassifier,
    LinearGPRegressor,
    LSSVMClassifier,
    NPlusOneClassifier,
    OneShotClassifier,
)
from knowmore.errors import InvalidInput
from knowmore.linalg import Grid
from knowmore.store import Store

RNG = np.random.default_rng(5)
X = RNG.normal(size=(40, 2))
Y = np.array(["a", "b"] * 20)
IDS = [f"n{i}" for i in range(40)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.km"


def settings_of(store):
    """The line of `verify` about settings, or None."""
    found = [one for one in store.verify().checks if one.name == "settings"]
    return (found[0].ok, found[0].says) if found else None


# -- the width of numbers ------------------------------------------------------------------------


def test_the_width_of_a_row_says_nothing_of_one_that_was_forgotten(path, tmp_path):
    """3001 is no number of two bytes, so its row takes four; those that came with it do not."""
    found = []
    for at, secret in ((path, 3), (tmp_path / "other.km", 3001)):
        rows = np.array([[1, 2], [secret, 5], [3, 4], [2049, 1]], dtype="i2")
        with Store(at, GPClassifier()) as store:
            store.add(rows, list("abab"), list("uvwx"))
            assert store.examples.X.tolist() == rows.tolist()
            store.forget("v")
            sizes = store.session.file.connection.execute("SELECT length(data) FROM vectors")
            found.append(sizes.fetchall())
        with Store(at) as store:
            assert store.examples.X.tolist() == rows[[0, 2, 3]].tolist()
    assert found == [[(4,), (4,), (8,)]] * 2


# -- the numbers of examples ---------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [GPClassifier(), LinearGPClassifier()])
def test_numbers_do_not_follow_from_ids_that_were_given(path, estimator):
    with Store(path, estimator) as store:
        store.add(X[:4], Y[:4], [5551234567, "name", 1, 2])
        assert store.add(X[4:7], Y[4:7]).tolist() == [0, 3, 4]
        store.forget([5551234567, 3, 2])
        # 2 was given, and is nobody's any more; 3 was a number of the file.
        assert store.add(X[7:9], Y[7:9]).tolist() == [5, 6]
    with Store(path) as store:
        assert store.session.state.numbers.next_id == 7
        store.forget(store.ids_.tolist())
        assert store.add(X[:2], Y[:2]).tolist() == [7, 8]
        store.undo()
        assert store.add(X[:2], Y[:2]).tolist() == [9, 10]


def test_numbers_in_memory_follow_the_largest_that_is_held(path):
    with Store(path, GPClassifier()) as store:
        store.add(X[:4], Y[:4], [5551234567, "name", 30, 2])
        store.forget(5551234567)
        assert store.estimator.add(X[9:10], ["a"]).tolist() == [31]
    assert knowmore.load(path).add(X[9:10], ["a"]).tolist() == [31]


def test_numbers_of_other_files_are_ids_that_were_given(tmp_path):
    with (
        Store(tmp_path / "a.km", GPClassifier(RBF())) as here,
        Store(tmp_path / "b.km", GPClassifier(RBF())) as there,
    ):
        here.add(X[:2], Y[:2])
        there.add(X[2:6], Y[2:6], [7, 8, 3, 2])
        here.merge(there)
        assert here.add(X[6:8], Y[6:8]).tolist() == [4, 5]


# -- what stays ----------------------------------------------------------------------------------


def test_a_file_that_chooses_everything_keeps_nothing(path):
    with Store(path, GPClassifier()) as store:
        store.add(X, Y, IDS)
        chosen = (
            True,
            "the examples held choose those of the file, and no entry of the journal has others",
        )
        assert settings_of(store) == chosen
        assert store.forget(IDS[0]).kept == ()
        assert settings_of(store) == chosen
        store.add(X[:1], Y[:1], IDS[:1])
        assert settings_of(store) == chosen


def test_parameters_that_tune_found_are_told(path):
    with Store(path, GPClassifier()) as store:
        store.add(X, Y, IDS)
        with store.together("tune"):
            store.set_parameters(kernel=RBF(1.2345), noise=0.05)
        store.undo()
        # What is undone is nobody's parameter.
        assert store.forget(IDS[0]).kept == ()
        with store.together("tune"):
            store.set_parameters(kernel=RBF(1.2345), noise=0.05)
        assert settings_of(store) == (
            True,
            "the journal keeps no settings from before the last forget",
        )
        said = "Parameters that tune found stay: tune again."
        assert store.forget(IDS[1]).kept == (said,)
        ok, says = settings_of(store)
        assert ok
        assert says.endswith(said[:-1])
        with store.together("tune"):
            store.set_parameters(noise=0.06)
        assert settings_of(store)[1] == "the journal keeps no settings from before the last forget"


def test_supports_a_source_and_words_are_told(tmp_path):
    with Store(tmp_path / "one.km", OneShotClassifier(None, {"s": X[:3]})) as store:
        store.add(X[:6], Y[:6], IDS[:6])
        assert store.forget(IDS[0]).kept == ("The supports stay as they were given.",)
    with Store(tmp_path / "known.km", LSSVMClassifier()) as known:
        known.add(X[:6], Y[:6], IDS[:6])
    known = knowmore.load(tmp_path / "known.km")
    with Store(tmp_path / "more.km", NPlusOneClassifier(known)) as store:
        store.add(X[:7], [*Y[:6], "c"], IDS[:7])
        said = "The source, known.km, stays, with all that it has learnt."
        assert store.forget(IDS[0]).kept == (said,)
        assert said[:-1] in settings_of(store)[1]
    with Store(tmp_path / "words.km", GPClassifier()) as store:
        store.add(X[:6], Y[:6], IDS[:6])
        store.set_notes(pictures={"about": {}})
        assert store.forget(IDS[0]).kept == ()
        store.set_notes(pictures={"about": {}, "words": "kmeans"})
        (said,) = store.forget(IDS[1]).kept
        assert said.startswith("The visual words")


def test_settings_that_nothing_left_can_choose_stay_and_are_told(path):
    """The median distance of the two rows that are left is infinite."""
    far = np.array([[1.5e308, 0.0], [-1.5e308, 0.0]])
    with Store(path, GPClassifier()) as store:
        store.add(X, Y, IDS)
        width = store.kernel_
        store.add(far, ["a", "b"], ["far", "away"])
        found = store.forget(IDS)
        assert store.kernel_ == width
        (said,) = found.kept
        assert said.startswith("The settings that examples had chosen stay, since those left")
        assert "The median distance between the examples, inf, cannot be" in said
        assert said.endswith("or give a kernel.")
        ok, says = settings_of(store)
        assert not ok
        assert "the examples held do not choose those of the file" in says
        store.set_parameters(kernel=RBF(2.0))
        assert settings_of(store)[0]


def test_examples_without_weight_choose_nothing(path):
    with Store(path, GPClassifier(noise="loo")) as store:
        store.add(X, Y, IDS, sample_weight=[0.0] * 2 + [1.0] * 38)
        store.forget(IDS[2:])
        # Nothing is left to choose by.
        assert store.session.state.facts["state"]["noise"] == 1.0
        assert store.session.state.facts["state"]["kernel"]["with"]["length_scale"] in (0.5, 1.0)
        store.add(X[5:8], Y[5:8], IDS[5:8])
        assert store.verify().ok


@pytest.mark.parametrize(
    "estimator",
    [
        LinearGPClassifier(resolution=Grid.covering(100 * X)),
        LinearGPRegressor(resolution=Grid.covering(100 * X), y_resolution=Grid([-30])),
    ],
)
def test_a_grid_that_was_given_stays_and_no_other_row_is_read(path, estimator, monkeypatch):
    y = Y if isinstance(estimator, LinearGPClassifier) else X[:, 0]
    with Store(path, estimator) as store:
        store.add(X, y, IDS)
        before, read = store.grid_, []
        real = type(estimator).fit
        monkeypatch.setattr(
            type(estimator), "fit", lambda *given: read.append(given) or real(*given)
        )
        store.forget(IDS[:2])
        assert (store.grid_, read) == (before, [])
        assert store.verify().ok


def test_equal_settings_need_no_other_factorisation(path, monkeypatch):
    """All distances are the same, whatever is left of them."""
    corners = np.eye(50)
    with Store(path, GPClassifier(noise=0.5)) as store:
        store.add(corners - 1, ["a", "b"] * 25)
        fits = []
        real = GPClassifier._batch
        monkeypatch.setattr(
            GPClassifier, "_batch", lambda *given: fits.append(given) or real(*given)
        )
        store.forget([7])
        assert fits == []
        store.forget([*range(8, 40)])
        assert not store.session.state.facts["state"]["settled"]
        assert store.verify().ok


def test_a_rest_that_makes_no_model_is_refused_and_nothing_changes(path):
    with Store(path, OneShotClassifier()) as store:
        store.add(X[:3], ["a", "b", "b"], IDS[:3])
        before, facts = path.read_bytes(), store.session.state.facts
        with pytest.raises(InvalidInput, match="Only binary classification"):
            store.forget(IDS[0])
        assert path.read_bytes() == before
        assert store.session.state.facts is facts


# -- files of before -----------------------------------------------------------------------------


def test_settings_of_entries_before_are_told_and_deleted_by_the_next(path):
    with Store(path, GPClassifier()) as store:
        store.add(X, Y, IDS)
        store.forget(IDS[0])
        with store.session.file.writing():
            (row,) = store.session.file.rows("journal", "WHERE number = 1")
            store.session.file.replace("journal", [(*row[:5], None, dumps({"state": 1}))])
        store.refresh()
        ok, says = settings_of(store)
        assert not ok
        assert says.endswith("the next forget deletes them")
        store.forget(IDS[1])
        assert settings_of(store)[0]


def test_a_width_of_before_is_told(path):
    with Store(path, GPClassifier()) as store:
        store.add(X, Y, IDS)
        store.forget(IDS[0])
        facts = dict(store.session.state.facts)
        facts["state"]["kernel"]["with"]["length_scale"] *= 1.001
        with store.session.file.writing():
            store.session.file.write_facts({"state": facts["state"]})
    with Store(path) as store:
        ok, says = settings_of(store)
        assert not ok
        assert says.startswith("the examples held do not choose those of the file")
