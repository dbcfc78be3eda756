"""Every estimator writes itself, and is read with the same answers to the last bit."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from store_kinds import KINDS, answers, drawn

import knowmore
from knowmore.errors import InvalidInput, InvalidType, NotWritten
from knowmore.estimators.living import EditableEstimator
from knowmore.linalg import Grid
from knowmore.store import Store, kinds
from knowmore.subspaces import Truncation

FORMATS = Path(__file__).parents[2] / "formats"
RNG = np.random.default_rng(5)
X = RNG.normal(size=(90, 4)).round(3)
Y = RNG.integers(0, 3, 90)

VALUES = {
    "pca": lambda: knowmore.EigenspacePCA(2).fit(X).forget(X[:9]),
    "pca-rule": lambda: knowmore.EigenspacePCA(Truncation(fraction=0.9), whiten=True).fit(X),
    "lda": lambda: knowmore.EigenspaceLDA().fit(X, Y),
    "lda-shrunk": lambda: knowmore.EigenspaceLDA(shrinkage="ledoit-wolf").fit(X, Y.astype(str)),
    "monitor": lambda: knowmore.SubspaceMonitor(2, 20, false_alarms=0.1).fit(X),
    "landmarks": lambda: knowmore.Landmarks(n_landmarks=7).fit(X, ids=[f"r{i}" for i in range(90)]),
    "intersection-map": lambda: knowmore.IntersectionMap(4).fit(abs(X)),
}


def edited(name):
    """A fitted estimator with a history."""
    rng = np.random.default_rng(11)
    A, y = drawn(name, rng, 60)
    model = KINDS[name]()
    if name.startswith("linear"):
        return model.fit(A, y).forget(A[10:20], y[10:20]), A
    model.fit(A[:40], y[:40])
    answers(model, A)
    model.add(A[40:], y[40:], ids=[f"x{i}" for i in range(20)])
    model.relabel([7], y[8:9]).replace([5], A[6:7] + 0.01)
    if name != "one-shot":
        model.remove([11, "x3"])
    return model, A


def fresh(forest):
    """A fit of the examples that a forest holds."""
    held = forest.model_.examples
    again = clone(forest).set_params(kernel=forest.kernel_)
    return again.fit(held.X, held.labels, held.names, held.weights)


@pytest.mark.parametrize("name", KINDS)
def test_to_the_last_bit(name, tmp_path):
    model, A = edited(name)
    model.save(tmp_path / "model.km")
    again = knowmore.load(tmp_path / "model.km")
    assert type(again) is type(model)
    assert repr(again.get_params(deep=False).keys()) == repr(model.get_params(deep=False).keys())
    # A forest is read without the factors of its leaves: it answers as a fresh fit does.
    want = fresh(model) if name.startswith("forest") else model
    np.testing.assert_array_equal(answers(again, A), answers(want, A))
    if hasattr(model, "predict_variance"):
        np.testing.assert_array_equal(again.predict_variance(A), want.predict_variance(A))
    if isinstance(model, EditableEstimator) and model.editable_.keeps_rows:
        assert again.ids_.tolist() == model.ids_.tolist()
        assert again.add(A[:1], model.editable_.labels[:1]).tolist() == [model.editable_.next_id]
    else:
        assert again.digest() == model.digest()


@pytest.mark.parametrize("name", VALUES)
def test_values_to_the_last_bit(name, tmp_path):
    model = VALUES[name]()
    model.save(tmp_path / "model.km")
    again = knowmore.load(tmp_path / "model.km")
    if name == "monitor":
        one, other = model.observe(X[:30]), again.observe(X[:30])
        np.testing.assert_array_equal(one.errors, other.errors)
        np.testing.assert_array_equal(one.drifts, other.drifts)
        return
    np.testing.assert_array_equal(again.transform(abs(X)), model.transform(abs(X)))
    if name.startswith("lda"):
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        again.partial_fit(X, Y.astype(str) if "shrunk" in name else Y)
    if name == "landmarks":
        assert again.forget(ids=again.ids_[:1]).ids_.tolist() == model.ids_[1:].tolist()


def test_eigenspaces(tmp_path):
    space = knowmore.Eigenspace.of(X, 3).with_names(("a", 1, (2, "b"), None))
    space.save(tmp_path / "space.km")
    again = knowmore.load(tmp_path / "space.km")
    np.testing.assert_array_equal(again.components, space.components)
    assert (again.n_samples, again.discarded, again.names) == (90, space.discarded, space.names)
    with pytest.raises(InvalidInput, match=r"no examples that could be edited.*knowmore.load"):
        knowmore.open(tmp_path / "space.km")


def test_sums_alone_are_not_opened(tmp_path):
    model = knowmore.LinearGPClassifier(resolution=Grid.covering(X)).fit(X, Y)
    model.save(tmp_path / "linear.km")
    assert knowmore.load(tmp_path / "linear.km").partial_fit(X, Y).n_samples_ == 180
    with pytest.raises(InvalidInput, match="no examples that could be edited"):
        knowmore.open(tmp_path / "linear.km")


def test_what_was_saved_is_a_living_model(tmp_path):
    model = knowmore.GPClassifier().fit(X, Y)
    model.save(tmp_path / "model.km")
    with knowmore.open(tmp_path / "model.km") as store:
        assert [e.verb for e in store.log()] == ["save"]
        assert store.session.cache.rows == 90
        store.forget([3, 4])
        assert len(store) == 88


def test_column_names(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    knowmore.GPClassifier().fit(table, Y).save(tmp_path / "model.km")
    again = knowmore.load(tmp_path / "model.km")
    assert again.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    with pytest.raises(InvalidInput, match="feature names"):
        again.predict(table[["b", "a", "c", "d"]])


# -- sources -------------------------------------------------------------------------------------


@pytest.fixture
def chain(tmp_path):
    known = knowmore.LSSVMClassifier(RBF(2.0)).fit(X[Y < 2], Y[Y < 2])
    (tmp_path / "a").mkdir()
    known.save(tmp_path / "a" / "known.km")
    model = knowmore.NPlusOneClassifier(known, RBF(2.0)).fit(X, Y)
    model.save(tmp_path / "a" / "more.km")
    return model, tmp_path


def test_a_source_is_a_file_beside_it(chain):
    model, folder = chain
    (folder / "a").rename(folder / "b")
    again = knowmore.load(folder / "b" / "more.km")
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    with knowmore.open(folder / "b" / "more.km") as store:
        store.add(X[:1] + 0.1, Y[:1])


def test_a_source_that_changed_is_refused(chain):
    _, folder = chain
    with knowmore.open(folder / "a" / "known.km") as store:
        store.forget(store.ids_[0])
    with pytest.raises(InvalidInput, match="which has been changed since"):
        knowmore.load(folder / "a" / "more.km")
    (folder / "a" / "known.km").unlink()
    with pytest.raises(InvalidInput, match=r"which is not there\. Put that file back"):
        knowmore.load(folder / "a" / "more.km")


def test_a_store_is_a_source(tmp_path):
    with knowmore.open(tmp_path / "known.km", knowmore.LSSVMClassifier(RBF(2.0))) as known:
        known.add(X[Y < 2], Y[Y < 2])
        with knowmore.open(tmp_path / "more.km", knowmore.NPlusOneClassifier(known)) as store:
            store.add(X, Y)
            scores = store.decision_function(X)
    with knowmore.open(tmp_path / "more.km") as store:
        np.testing.assert_array_equal(store.decision_function(X), scores)


def test_sources_that_cannot_be_written(tmp_path):
    known = knowmore.LSSVMClassifier().fit(X[Y < 2], Y[Y < 2])
    with pytest.raises(InvalidInput) as caught:
        knowmore.NPlusOneClassifier(known).fit(X, Y).save(tmp_path / "x.km")
    assert str(caught.value) == (
        "The source of this classifier is in no file, so a file cannot name it. An estimator of "
        "knowmore can be saved first: source.save('known.km'), and give the very estimator that "
        "was saved or loaded. Of any other give the scores as columns beside the features: "
        "Scores(classes)."
    )
    scores = knowmore.Scores([0, 1], known.decision_function)
    with pytest.raises(InvalidInput, match="a function, which cannot be written"):
        knowmore.open(tmp_path / "x.km", knowmore.NPlusOneClassifier(scores))


# -- mistakes ------------------------------------------------------------------------------------


def test_what_cannot_be_saved(tmp_path):
    path = tmp_path / "x.km"
    with pytest.raises(ValueError, match="not fitted yet"):
        knowmore.GPClassifier().save(path)
    with pytest.raises(ValueError, match="not fitted yet"):
        knowmore.LinearGPClassifier().save(path)
    with pytest.raises(InvalidInput, match="only kernels of scikit-learn and of knowmore"):
        knowmore.GPClassifier(lambda A, B: A @ B.T).fit(X, Y).save(path)
    with pytest.raises(InvalidInput, match="preselect compares names by semantics"):
        knowmore.open(path, knowmore.OneShotClassifier(preselect=1, semantics=object()))
    with pytest.raises(InvalidType, match="not an estimator of knowmore"):
        knowmore.store.save(3, path)
    with pytest.raises(NotWritten, match="cannot be written"):
        knowmore.EigenspacePCA().fit(X).save(tmp_path / "no" / "x.km")
    assert list(tmp_path.iterdir()) == []


def test_what_was_there_is_kept_on_a_full_disk(tmp_path, little_room):
    path = tmp_path / "x.km"
    knowmore.EigenspacePCA().fit(X).save(path)
    before = path.read_bytes()
    path.chmod(0o640)
    with little_room(20_000), pytest.raises(NotWritten):
        knowmore.GPClassifier().fit(X, Y).save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["x.km"]
    knowmore.EigenspacePCA(2).fit(X).save(path)
    assert path.stat().st_mode & 0o777 == 0o640


# -- files of past formats -----------------------------------------------------------------------


@pytest.mark.parametrize("packed", sorted(FORMATS.glob("*.km.gz")), ids=lambda path: path.stem)
def test_files_of_past_formats_are_still_read(packed, tmp_path):
    path = tmp_path / packed.stem
    path.write_bytes(gzip.decompress(packed.read_bytes()))
    model = knowmore.load(path)
    asked = abs(np.linspace(-1, 1, 3 * model.n_features_in_).reshape(3, -1))
    ask = getattr(model, "decision_function", None) or getattr(model, "predict", None)
    want = np.load(FORMATS / f"{path.stem}.npy")
    np.testing.assert_allclose((ask or model.transform)(asked), want)
    if (kind := kinds.kind_of(model)) in kinds.LIVING:
        with Store(path) as store:
            assert (store.kind, len(store)) == (kind, 9)
            held = store.examples
            store.add(held.X[:1] + 0.5, held.labels[:1])
            assert store.records(["last"])[0].thumbnail == b"picture"
            assert [e.verb for e in store.log()] == ["add", "add", "replace", "forget", "add"]


def test_a_file_of_every_kind_is_kept():
    names = {path.name.removeprefix("1-") for path in FORMATS.glob("1-*.km.gz")}
    assert names == {f"{kind}.km.gz" for kind in set(kinds.KINDS) - {"eigenspace", "monitor"}}


@pytest.mark.parametrize("seed", range(10))
def test_a_forest_with_a_history_is_read_as_a_fresh_fit(seed, tmp_path):
    rng = np.random.default_rng(seed)
    rows, labels = rng.normal(size=(120, 4)), rng.integers(0, 4, 120)
    model = knowmore.ForestGPClassifier(RBF(1.0), capacity=20, n_trees=2).fit(
        rows[:80], labels[:80]
    )
    for start in range(80, 120, 8):
        model.add(rows[start : start + 8], labels[start : start + 8])
        model.predict(X)
        model.remove(rng.choice(model.ids_, 2, replace=False))
        model.replace(rng.choice(model.ids_, 1), rng.normal(size=(1, 4)))
        model.relabel(rng.choice(model.ids_, 1), [1])
    model.save(tmp_path / "forest.km")
    again, want = knowmore.load(tmp_path / "forest.km"), fresh(model)
    for question in ("decision_function", "predict_proba", "predict_variance"):
        got = getattr(again, question)(X)
        np.testing.assert_array_equal(got, getattr(want, question)(X))
    np.testing.assert_array_equal(again.leave_one_out().scores, want.leave_one_out().scores)
