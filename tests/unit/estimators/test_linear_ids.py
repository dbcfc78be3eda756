"""Linear models that keep their rows by id."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import knowmore
from knowmore import (
    GPClassifier,
    KnowmoreError,
    LinearGPClassifier,
    LinearGPRegressor,
    living,
)
from knowmore.edits import Remove
from knowmore.errors import NoRows, RepeatedId, UnknownId

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
Y = np.array(["ant", "bee", "cow"])[rng.integers(0, 3, 60)]
VALUES = np.column_stack([X @ np.arange(4.0), X[:, 0]]) + rng.normal(size=(60, 2))
NAMES = [f"row {i}" for i in range(60)]
KINDS = {
    "classes": (LinearGPClassifier, Y),
    "one target": (LinearGPRegressor, VALUES[:, 0]),
    "targets": (LinearGPRegressor, VALUES),
}


def refit(model):
    """A fresh fit of the rows that are held, on the same grids, without ids."""
    held, grids = model.editable_.examples, {"resolution": model.grid_}
    if isinstance(model, LinearGPRegressor):
        grids["y_resolution"] = model.y_grid_
    return type(model)(**grids).fit(held.X, held.labels, held.weights)


@pytest.mark.parametrize("name", KINDS)
def test_edits_by_id_are_a_fit_of_what_is_held(name):
    kind, y = KINDS[name]
    model = kind().fit(X[:40], y[:40], ids=NAMES[:40])
    weights = rng.uniform(0.5, 2, 20)
    assert model.add(X[40:], y[40:], NAMES[40:], weights).tolist() == NAMES[40:]
    model.remove(NAMES[3:6]).relabel(NAMES[7], [y[1]]).replace(NAMES[50:52], X[:2] + 1, y[:2])
    model.replace(NAMES[8], X[9:10]).relabel(np.array(model.ids_) == NAMES[9], y[1:2])
    assert model.n_samples_ == len(model.ids_) == 57
    want = refit(model)
    assert model.digest() == want.digest()
    np.testing.assert_array_equal(model.predict(X), want.predict(X))
    with pytest.raises(UnknownId, match=r"^The model holds no example 'row 3'"):
        model.remove("row 3")
    with pytest.raises(RepeatedId, match=r"^The model already holds 'row 0'"):
        model.add(X[:1], y[:1], ["row 0"])
    assert model.digest() == want.digest()


@pytest.mark.parametrize("name", KINDS)
def test_rows_that_are_kept_need_not_be_given_to_leave_them_out(name):
    kind, y = KINDS[name]
    weights = np.where(np.arange(60) % 7 == 3, 0, rng.uniform(0.5, 2, 60))
    model, counts = kind().fit(X, y, weights, ids=NAMES), weights > 0
    left = model.leave_one_out()
    given = model.leave_one_out(X[counts], y[counts], weights[counts])
    assert left.ids.tolist() == NAMES
    np.testing.assert_array_equal(left.labels, y)
    for column in ("scores", "variance", "predicted", "silent"):
        np.testing.assert_array_equal(getattr(left, column)[counts], getattr(given, column))
    np.testing.assert_array_equal(left.predicted[~counts], model.predict(X[~counts]))
    np.testing.assert_array_equal(left.variance[~counts], model.predict_variance(X[~counts]))
    groups = np.arange(60) % 5
    left = model.leave_one_out(groups=groups)
    given = model.leave_one_out(X[counts], y[counts], weights[counts], groups[counts])
    np.testing.assert_array_equal(left.scores, given.scores)
    assert left.ids.tolist() == [name for name, learnt in zip(NAMES, counts, strict=True) if learnt]


@pytest.mark.parametrize("name", KINDS)
def test_rows_are_saved_and_pickled(name, tmp_path):
    kind, y = KINDS[name]
    model = kind().fit(X, y, ids=NAMES)
    model.remove(NAMES[2])
    model.save(tmp_path / "model.km")
    for copy in (knowmore.load(tmp_path / "model.km"), pickle.loads(pickle.dumps(model))):
        assert copy.ids_.tolist() == model.ids_.tolist()
        assert copy.digest() == model.digest()
        copy.remove(NAMES[5]).add(X[:1], y[:1])
        assert copy.digest() == refit(copy).digest()
    with knowmore.open(tmp_path / "model.km") as store:
        store.forget(NAMES[5])
        assert store.estimator.digest() == refit(store.with_rows()).digest()
        assert not store.estimator.editable_.keeps_rows
    assert NAMES[5] not in knowmore.load(tmp_path / "model.km").ids_
    # What was saved without rows is read without rows.
    kind().fit(X, y).save(tmp_path / "sums.km")
    assert not hasattr(knowmore.load(tmp_path / "sums.km"), "ids_")


def test_rows_are_kept_as_they_are_and_dense():
    model = LinearGPClassifier().fit(sparse.csr_array(X.astype("f4")), Y, ids=NAMES)
    held = model.editable_.examples.X
    assert held.dtype == np.float32
    np.testing.assert_array_equal(held, X.astype("f4"))
    model.add(X[:1], Y[:1])
    assert model.digest() == refit(model).digest()


def test_all_rows_may_go_and_come_again():
    model = LinearGPClassifier().fit(X, Y, ids=NAMES)
    before = model.digest()
    model.remove(NAMES)
    assert (len(model.ids_), model.n_samples_, len(model.classes_)) == (0, 0, 0)
    with pytest.raises(KnowmoreError, match=r"^The model holds no rows: all were forgotten"):
        model.predict(X)
    model.partial_fit(X, Y)
    assert model.ids_.tolist() == list(range(60))
    assert model.digest() == before


def test_merging():
    one = LinearGPClassifier().fit(X[:30], Y[:30], ids=NAMES[:30])
    # On its own grid: its rows are read again.
    other = LinearGPClassifier().fit(X[30:] * 9, Y[30:], ids=NAMES[30:])
    bare = LinearGPClassifier(resolution=one.grid_).fit(X[:30], Y[:30])
    assert one.merge(other).ids_.tolist() == NAMES
    assert one.digest() == refit(one).digest()
    with pytest.raises(RepeatedId):
        one.merge(other)
    with pytest.raises(KnowmoreError) as caught:
        one.merge(bare)
    assert str(caught.value) == (
        "This model keeps its rows by id, the other one only their sums. Fit the other with ids, "
        "too: fit(X, y, ids=...)."
    )
    # A model without rows learns the sums of one that has them.
    own = LinearGPClassifier(resolution=one.grid_).fit(X[30:], Y[30:], ids=NAMES[30:])
    want = LinearGPClassifier(resolution=one.grid_).fit(X, Y)
    assert bare.merge(own).digest() == want.digest()
    assert not hasattr(bare, "ids_")


@pytest.mark.parametrize("verb", ["forget", "split"])
def test_rows_that_are_kept_are_forgotten_by_id(verb):
    model = LinearGPClassifier().fit(X, Y, ids=NAMES)
    before, given = model.digest(), (X[:1], Y[:1])
    if verb == "split":
        given = (LinearGPClassifier(resolution=model.grid_).fit(*given),)
    with pytest.raises(KnowmoreError) as caught:
        getattr(model, verb)(*given)
    assert str(caught.value) == (
        "This model keeps its rows by id, and rows or sums do not tell whose they are. Forget them "
        "by id: remove(ids)."
    )
    assert model.digest() == before


def test_a_value_without_rows_says_so():
    value = LinearGPClassifier().fit(X, Y).editable_
    assert not value.keeps_rows
    with pytest.raises(NoRows) as caught:
        value.apply(Remove((0,)))
    assert str(caught.value) == (
        "This linear model keeps no rows and no ids, only the sums of its rows. Let it keep them: "
        "fit(X, y, ids=...)."
    )


def test_a_pipeline_has_the_verbs_by_id():
    pipeline = make_pipeline(StandardScaler(), LinearGPClassifier())
    pipeline.fit(X[:50], Y[:50], lineargpclassifier__ids=NAMES[:50])
    alive = living(pipeline)
    assert alive.add(X[50:], Y[50:], NAMES[50:]).tolist() == NAMES[50:]
    alive.remove(NAMES[0]).relabel(NAMES[1], ["bee"]).replace(NAMES[2], X[:1])
    assert pipeline[-1].digest() == alive.digest() == refit(pipeline[-1]).digest()
    assert set(alive.leave_one_out().ids) == set(alive.ids_) == set(NAMES[1:])
    gp = living(make_pipeline(StandardScaler(), GPClassifier()).fit(X, Y))
    assert not hasattr(gp, "digest")
    # Rows that are given pass through the earlier steps, too.
    rows = [NAMES.index(name) for name in alive.ids_.tolist()[2:10]]
    given = alive.leave_one_out(X[rows], Y[rows])
    own = alive.leave_one_out()
    np.testing.assert_array_equal(given.scores, own.scores[2:10])
    with pytest.raises(KnowmoreError, match=r"^This model keeps its rows by id"):
        alive.forget(X[:1], Y[:1])


@pytest.mark.parametrize("verb", ["remove", "replace"])
def test_nothing_is_left_of_a_row_that_has_gone(verb):
    secret = np.array([[98765.4321, -1.5, 1234.5678, 0.0]])
    model = LinearGPClassifier().fit(X, Y, ids=NAMES)
    model.add(secret, ["wasp"], ["the secret"])
    assert secret[0, 0].tobytes() in pickle.dumps(model)
    if verb == "remove":
        model.remove("the secret")
    else:
        model.replace("the secret", X[:1], Y[:1]).remove("the secret")
    held = pickle.dumps(model)
    assert secret[0, 0].tobytes() not in held
    assert b"the secret" not in held
    assert b"wasp" not in held
