"""The settings that edits choose, and what models keep of the examples that chose."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct
from tolerance import assert_rounded

from knowmore import (
    ForestGPClassifier,
    ForestGPRegressor,
    GPClassifier,
    GPRegressor,
    Landmarks,
    LSSVMClassifier,
    NPlusOneClassifier,
    OneShotClassifier,
)
from knowmore.errors import InvalidInput
from knowmore.kernels import On
from knowmore.models import SettingsRule, search, settings
from knowmore.store import Store

SECRET = 123.456789
CLASSIFIERS = pytest.mark.parametrize("kind", [GPClassifier, ForestGPClassifier])
X = np.array([[0.0, 1.0], [1.0, 0.5], [2.0, 3.0]])


def learnt(kind):
    return kind().fit(X, [SECRET, 1.0, 2.0], ids=["the name of a patient", "b", "c"])


def tells(model):
    """Whether a pickle of the model has the target or the name of the example that left."""
    data = pickle.dumps(model)
    return np.float64(SECRET).tobytes() in data or b"the name of a patient" in data


@pytest.mark.parametrize("kind", [GPRegressor, ForestGPRegressor])
def test_an_emptied_model_keeps_nothing_of_the_examples_that_chose(kind):
    model = learnt(kind)
    assert tells(model)
    model.remove(model.ids_)
    assert not tells(model)
    assert model.settings_.ids == ()
    # It is still open: the next examples choose as in a fresh fit.
    model.add(X, [0.0, 1.0, 5.0], ids=["d", "e", "f"])
    fresh = kind().fit(X, [0.0, 1.0, 5.0], ids=["d", "e", "f"])
    assert model.settings_.agree(fresh.settings_)
    assert model.settings_.ids == fresh.settings_.ids


@pytest.mark.parametrize("kind", [GPRegressor, ForestGPRegressor])
def test_examples_are_forgotten_even_where_the_rest_cannot_choose(kind, monkeypatch):
    def failing(*arguments):
        raise InvalidInput("No kernel suits the rest.")

    model = learnt(kind)
    before = model.settings_
    with monkeypatch.context() as patch:
        patch.setattr(SettingsRule, "chosen", failing)
        model.remove(["the name of a patient"])
    assert not tells(model)
    assert model.settings_.agree(before)
    model.add(X[:1], [4.0], ids=["d"])
    fresh = kind().fit(X[[1, 2, 0]], [1.0, 2.0, 4.0], ids=["b", "c", "d"])
    assert model.settings_.agree(fresh.settings_)


def halves(n, scale=1.0, seed=0):
    """Rows (n, 3) of two classes, parted by a plane."""
    Z = np.random.default_rng(seed).normal(size=(n, 3))
    return scale * Z, np.where(Z[:, 0] + Z[:, 1] > 0, "left", "right")


def has_losses(model, settings):
    """Whether a pickle of the model has a loss by which these settings were chosen."""
    data = pickle.dumps(model)
    return any(np.array(one.loss, ">f8").tobytes() in data for one in settings.candidates)


@CLASSIFIERS
def test_losses_leave_with_the_first_example_that_had_a_part_in_them(kind):
    Z, y = halves(300)
    model = kind().fit(Z, y)
    before = model.settings_
    others = np.setdiff1d(model.ids_, before.ids)
    assert has_losses(model, before)
    assert len(model.remove(others[:5]).settings_.candidates) == len(before.candidates)
    model.remove(before.ids[:1])
    assert model.settings_.agree(before)
    assert model.settings_.ids == before.ids[1:]
    assert not has_losses(model, before)
    assert model.settings_.candidates == ()


@CLASSIFIERS
def test_living_settings_are_those_of_the_examples_after_a_merge_with_settled_ones(kind):
    living = kind(settings="living").fit(*halves(150))
    settled = kind().fit(*halves(200, 3.0, 1), ids=[f"b{i}" for i in range(200)])
    held = living.merge(settled).editable_.examples
    fresh = kind(settings="living").fit(held.X, held.labels, ids=living.ids_)
    assert living.settings_.agree(fresh.settings_)
    assert not living.settings_.agree(settled.settings_)
    # They go on to follow.
    more, labels = halves(300, 0.1, 2)
    living.add(more, labels)
    held = living.editable_.examples
    assert living.settings_.agree(
        kind(settings="living").fit(held.X, held.labels, ids=living.ids_).settings_
    )


@CLASSIFIERS
def test_the_first_settled_settings_are_those_of_a_merged_model(kind):
    few = kind().fit(*halves(50))
    settled = kind().fit(*halves(200, 3.0, 1), ids=[f"b{i}" for i in range(200)])
    assert few.merge(settled).settings_.agree(settled.settings_)


# -- what an edit chooses -------------------------------------------------------------------------


@pytest.fixture
def table():
    """60 rows of two classes."""
    rows = np.random.default_rng(100).normal(size=(60, 3))
    return rows, np.where(rows[:, 0] > 0, "up", "down")


@pytest.fixture
def few(monkeypatch):
    """A panel of 20 examples, of which 12 are enough."""
    monkeypatch.setattr(settings, "PANEL", 20)
    monkeypatch.setattr(settings, "ENOUGH", 12)


@CLASSIFIERS
def test_the_first_example_of_a_second_class_ends_the_settings_of_one_class(kind, table, few):
    rows, _ = table
    held = GPClassifier().fit(rows, rows[:, 0] > 0)
    chose = held.settings_.ids
    beyond = next(one for one in range(60) if one not in chose)
    ids = [one for one in range(60) if one != beyond]
    model = kind(settings="living").fit(rows[ids], ["a"] * 59, ids=ids)
    alone = model.settings_
    model.add(rows[[beyond]], ["b"], ids=[beyond])
    labels = np.where(np.arange(60) == beyond, "b", "a")
    assert beyond in model.settings_.ids
    assert not model.settings_.agree(alone)
    assert model.settings_.agree(kind(settings="living").fit(rows, labels).settings_)
    assert model.remove([beyond]).settings_.agree(alone)


@CLASSIFIERS
@pytest.mark.parametrize("modes", [("living", "first"), ("first", "median"), ("median", "first")])
def test_a_model_takes_no_settings_that_were_chosen_in_another_way(kind, modes, table, few):
    rows, labels = table
    ids = np.arange(60)
    here = kind(settings=modes[0]).fit(rows[:5], labels[:5], ids[:5])
    there = kind(settings=modes[1]).fit(rows[5:50], labels[5:50], ids[5:50])
    here.merge(there)
    wanted = kind(settings=modes[0]).fit(rows[:5], labels[:5], ids[:5])
    wanted.add(rows[5:50], labels[5:50], ids[5:50])
    assert here.settings_.agree(wanted.settings_)


@CLASSIFIERS
@pytest.mark.parametrize("mode", ["living", "median"])
def test_another_way_to_choose_chooses_anew_in_a_file(kind, mode, table, few, tmp_path):
    rows, labels = table
    with Store(tmp_path / "model.km", kind()) as store:
        store.add(rows[:40], labels[:40])
        store.set_parameters(settings=mode)
        wanted = kind(settings=mode).fit(rows[:40], labels[:40])
        assert store.settings_.agree(wanted.settings_)
        store.add(rows[40:], labels[40:])
        wanted.add(rows[40:], labels[40:])
        assert store.settings_.agree(wanted.settings_)
        store.undo()
        store.undo()
        assert store.settings_.agree(kind().fit(rows[:40], labels[:40]).settings_)


def test_a_kernel_without_a_width_has_the_width_one(table):
    rows, labels = table
    for kernel in (RBF(2.0), [RBF(2.0), RBF(3.0)]):
        tried = GPClassifier(kernel).fit(rows, labels).settings_.candidates
        assert {one.width for one in tried} == {1.0}


@pytest.mark.parametrize("kernel", [None, [RBF(), DotProduct()]])
def test_values_that_are_almost_zero_have_a_usable_amplitude(kernel, table):
    rows, _ = table
    heavy = np.ones(len(rows))
    heavy[0], heavy[-1] = 1e-12, 1e12
    for weights in (None, heavy):
        for small in (1e-150, 1e-160, 1e-200):
            model = GPRegressor(kernel).fit(rows, small * rows[:, 0], sample_weight=weights)
            assert np.isfinite(model.predict(rows)).all()
            assert np.isfinite(model.leave_one_out().scores).all()


@pytest.mark.parametrize("kernels", [[RBF(), DotProduct()], On(slice(0, 2))])
def test_several_kernels_are_refused_where_nothing_chooses_their_weights(kernels, table):
    rows, labels = table
    told = f"{len(kernels) if isinstance(kernels, list) else 1} kernel"
    for kind in (GPClassifier, LSSVMClassifier, ForestGPClassifier):
        with pytest.raises(InvalidInput, match=told):
            kind(kernels, settings="median").fit(rows, labels)
    with pytest.raises(InvalidInput, match=told):
        OneShotClassifier(kernels, {"a": rows[:5]}).fit(rows[:4], [1, 1, -1, -1])
    with pytest.raises(InvalidInput, match=told):
        NPlusOneClassifier(GPClassifier().fit(rows, labels), kernels).fit(rows[:3], ["new"] * 3)
    with pytest.raises(InvalidInput, match=told):
        Landmarks(kernels).fit(rows)


@CLASSIFIERS
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"kernel": RBF(2.0), "noise": 0.3}, {"kernel": None, "noise": None}),
        ({"kernel": RBF(2.0), "noise": 0.3}, {"kernel": None}),
        ({"noise": 0.3}, {"noise": None}),
    ],
)
def test_what_was_given_is_not_kept_as_if_it_had_been_chosen(
    kind, before, after, table, few, tmp_path
):
    rows, labels = table
    with Store(tmp_path / "model.km", kind(**before)) as store:
        store.add(rows, labels)
        store.set_parameters(**after)
        wanted = kind(**before | after).fit(rows, labels)
        assert store.settings_.agree(wanted.settings_)


@CLASSIFIERS
def test_another_noise_keeps_the_kernel_that_was_chosen(kind, table, few, tmp_path):
    rows, labels = table
    with Store(tmp_path / "model.km", kind()) as store:
        store.add(rows[:12], labels[:12])
        store.add(rows[12:], labels[12:])
        chose = store.settings_.kernel
        store.set_parameters(noise=0.3)
        assert (store.settings_.kernel, store.settings_.noise) == (chose, 0.3)


@pytest.mark.parametrize(
    "kernel", [None, RBF(2.0), [RBF(2.0), DotProduct()], [On(slice(0, 1)), On(slice(1, 3))]]
)
def test_to_change_a_kernel_that_was_tried_changes_no_model(kernel, table):
    rows, labels = table
    model = GPClassifier(kernel).fit(rows, labels)
    before = model.predict_proba(rows)
    for one in (*model.settings_.candidates, model.settings_):
        # `theta` has the parameters of all parts.
        one.kernel.theta = one.kernel.theta - 5
    assert model.settings_.kernel == model.settings_.candidates[0].kernel == model.kernel_
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.predict_proba(rows), before)
    model.add(rows[:1], labels[:1], ids=[60])
    wanted = GPClassifier(kernel).fit(rows, labels)
    wanted.add(rows[:1], labels[:1], ids=[60])
    assert model.settings_.agree(wanted.settings_)


@pytest.mark.parametrize("small", [1e-150, 1e-160, 1e-200, 1e-300])
def test_a_small_kernel_has_a_small_noise(small, table):
    rows, labels = table
    want = LSSVMClassifier(RBF(2.0)).fit(rows, labels)
    got = LSSVMClassifier(small * RBF(2.0)).fit(rows, labels)
    # One step of the grid at most: variances count in the loss, and are next to nothing here.
    assert 0.3 < got.settings_.noise / small / want.settings_.noise < 3.2
    assert np.isfinite(got.predict_proba(rows)).all()
    assert np.isfinite(got.leave_one_out().variance).all()


# -- which examples choose, and how ---------------------------------------------------------------


@pytest.mark.parametrize("kind", [GPClassifier, GPRegressor, LSSVMClassifier])
def test_copies_count_like_weights(kind):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(80, 3))
    values = rows[:, 0] + 0.5 * rng.normal(size=80)
    labels = values if kind is GPRegressor else np.where(values > 0, "up", "down")
    again = np.r_[0:80, 0:40]
    weights = np.where(np.arange(80) < 40, 2.0, 1.0)
    copied = kind().fit(rows[again], labels[again])
    weighted = kind().fit(rows, labels, sample_weight=weights)
    assert copied.settings_.agree(weighted.settings_)


def test_copies_make_no_interval_too_narrow():
    """Values given twice: a model that took copies for evidence would be sure of its noise."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(400, 3))
    values = rows[:, 0] + rng.normal(size=400)
    learnt = np.r_[0:100, 0:100]
    reg = GPRegressor().fit(rows[learnt], values[learnt])
    mean, deviation = reg.predict(rows[100:], return_std=True)
    assert (abs(values[100:] - mean) <= 2 * deviation).mean() > 0.9


def test_equal_rows_with_other_labels_are_answers_and_no_copies():
    cells = np.random.default_rng(5).integers(0, 2, size=(200, 3)).astype(float)
    labels = np.random.default_rng(6).integers(0, 2, 200)
    assert (search._copies(cells, np.eye(2)[labels]) == np.arange(200)).all()
    twice = np.r_[0:10, 3, 4]
    own = search._copies(np.arange(10.0)[twice, None], np.eye(2)[np.arange(10)[twice] % 2])
    assert own.tolist() == [*range(10), 3, 4]


def test_a_rare_class_is_in_the_panel_as_a_whole():
    labels = np.where(np.arange(2000) % 100 == 0, "rare", "often")
    keys = np.random.default_rng(7).permutation(2000)
    rows = settings.choosing_rows(keys, labels)
    assert len(rows) == settings.PANEL
    assert (labels[rows] == "rare").sum() == 20
    assert (np.diff(keys[rows]) > 0).all()
    # The first of the others by their hashes.
    others = np.flatnonzero(labels == "often")
    first = others[np.argsort(keys[others])][: settings.PANEL - 20]
    assert set(rows[labels[rows] == "often"]) == set(first)


def test_many_classes_have_a_larger_panel():
    labels, keys = np.arange(3000) % 100, np.random.default_rng(8).permutation(3000)
    rows = settings.choosing_rows(keys, labels)
    assert np.bincount(labels[rows]).tolist() == 100 * [8]
    # Any shard holds what all together choose.
    for part in (slice(0, 700), slice(700, 3000)):
        mine = np.arange(3000)[part]
        held = mine[settings.choosing_rows(keys[part], labels[part], settings.LARGEST)]
        assert set(rows) & set(mine) <= set(held)


def test_answers_of_yes_and_no_are_no_parts_of_one_whole():
    rng = np.random.default_rng(9)
    rows = np.eye(4)[rng.integers(0, 4, size=(150, 3))].reshape(150, 12)
    kinds = {one.kind for one in GPClassifier().fit(rows, rows[:, 0]).settings_.candidates}
    assert kinds == {"Matern 3/2", "exponential"}


@pytest.mark.parametrize("kind", [GPClassifier, GPRegressor, LSSVMClassifier, ForestGPClassifier])
@pytest.mark.parametrize("heavy", [1e100, 1e150])
def test_heavy_examples_of_a_large_kernel_are_not_beyond_the_range(kind, heavy, table):
    rows, labels = table
    weights = np.where(np.arange(60) % 7, 1.0, heavy)
    y = rows[:, 0] if kind is GPRegressor else labels
    model = kind(1e200 * RBF()).fit(rows, y, sample_weight=weights)
    assert np.isfinite([one.total for one in model.settings_.candidates]).all()
    assert np.isfinite(model.leave_one_out().scores).all()


def test_a_light_example_of_a_large_kernel_has_a_finite_variance(table):
    # Left out, rounding is all that is known of it.
    rows, labels = table
    weights = np.where(np.arange(60) % 7, 1.0, 1e-150)
    model = GPClassifier(1e200 * RBF()).fit(rows, labels, sample_weight=weights)
    assert np.isfinite(model.predict_proba(rows)).all()
    assert np.isfinite(model.leave_one_out().variance).all()


@pytest.mark.parametrize("kind", [GPClassifier, ForestGPClassifier])
def test_what_was_tried_is_known_in_an_opened_file_while_the_choice_follows(kind, table, tmp_path):
    rows, labels = table
    with Store(tmp_path / "model.km", kind()) as store:
        store.add(rows, labels, list(range(60)))
        wanted = store.settings_
    with Store(tmp_path / "model.km") as store:
        assert wanted.candidates
        assert store.settings_.candidates == wanted.candidates
        assert store.settings_.ids == wanted.ids


@pytest.mark.parametrize("n", range(2, 21))
def test_few_examples_have_sane_probabilities(n):
    rng = np.random.default_rng(n)
    rows = rng.normal(size=(n, 4)) * [1, 1e3, 1e-3, 1]
    asked = np.vstack([rows, 100 * rows])
    one_rare, apart = np.arange(n) == 0, rows[:, 0] > 0
    for labels in (one_rare, apart, np.arange(n) % 2, np.zeros(n)):
        for weights in (None, rng.choice([0.5, 1.0, 7.0], n)):
            model = GPClassifier().fit(rows, labels.astype(int), sample_weight=weights)
            chances = model.predict_proba(asked)
            assert np.isfinite(chances).all()
            assert (chances >= 0).all()
            assert_rounded(chances.sum(axis=1), np.ones(2 * n))
            assert np.isfinite(model.leave_one_out().scores).all()
