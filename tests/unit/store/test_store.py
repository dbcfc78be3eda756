"""The verbs of a store, what they leave in the file, and their errors in words."""

from __future__ import annotations

import copy
import threading

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.model_selection import cross_val_score
from store_kinds import KINDS, answers, drawn

import knowmore
from knowmore import GPClassifier, LinearGPClassifier, LSSVMClassifier
from knowmore.errors import (
    InvalidInput,
    InvalidType,
    KnowmoreError,
    MissingData,
    NotWritten,
    RepeatedId,
    UnknownId,
)
from knowmore.store import Store

X = np.arange(12.0).reshape(6, 2)
Y = np.array(["a", "a", "b", "b", "c", "c"])
IDS = [f"example-{i}" for i in range(6)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.km"


@pytest.fixture
def store(path):
    with Store(path, knowmore.GPClassifier(RBF(3.0))) as made:
        made.add(X, Y, IDS, contributor="ann", origins="table.csv")
        yield made


# -- names of columns ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["gp", "linear", "forest"])
def test_the_columns_of_an_array_are_named(path, kind):
    with Store(path, KINDS[kind]()) as store:
        store.add(X, Y, IDS, columns=["width", "height"])
        store.add(X[:1] + 0.5, Y[:1], ["more"])
        store.add(X[:1] + 0.2, Y[:1], ["most"], columns=["width", "height"])
        for columns, words in (
            (
                ["height", "width"],
                "The columns are named 'height', 'width', but the model has learnt from 'width', "
                "'height'. Give the same columns, in the same order.",
            ),
            (["width"], "1 columns were named, but X has 2. Name each."),
        ):
            with pytest.raises(InvalidInput) as caught:
                store.add(X[:1], Y[:1], ["x"], columns=columns)
            assert str(caught.value) == words
        assert len(store) == 8
    with Store(path) as store:
        assert store.status().names == ("width", "height")
        assert store.feature_names_in_.tolist() == ["width", "height"]
        assert store.verify().ok


def test_columns_without_names_are_named_later(store):
    store.add(X[:1] + 0.5, Y[:1], ["more"], columns=["width", "height"])
    assert store.status().names == ("width", "height")
    store.undo()
    assert store.status().names is None


# -- opening -------------------------------------------------------------------------------------


def test_a_file_that_is_not_there(path):
    with pytest.raises(
        MissingData, match=r"There is no file .*`knowmore learn` or `knowmore init`"
    ):
        knowmore.open(path)


def test_a_file_keeps_its_kind(store, path):
    with pytest.raises(InvalidInput, match="kind 'gp', but LinearGPClassifier"):
        knowmore.open(path, knowmore.LinearGPClassifier())
    assert knowmore.open(path, knowmore.GPClassifier(RBF(9.0))).kernel == RBF(3.0)


def test_a_new_file_takes_an_unfitted_estimator(path):
    with pytest.raises(InvalidInput, match="made with an unfitted estimator"):
        knowmore.open(path, knowmore.GPClassifier().fit(X, Y))
    with pytest.raises(InvalidType, match="holds no examples that a file could keep"):
        knowmore.open(path, knowmore.EigenspacePCA())
    with pytest.raises(InvalidType, match="not an estimator of knowmore"):
        knowmore.open(path, 3)
    with pytest.raises(InvalidInput, match="cannot be written to a file: only kernels"):
        knowmore.open(path, knowmore.GPClassifier(lambda X, Y: X @ Y.T))
    assert not path.exists()


def test_an_empty_file_is_one_whose_making_was_interrupted(path):
    path.touch()
    with knowmore.open(path, knowmore.GPClassifier()) as store:
        assert len(store) == 0
        assert store.status().examples == 0


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(NotWritten, match="cannot be read or written"):
        knowmore.open(tmp_path / "no" / "model.km", knowmore.GPClassifier())


def test_a_closed_store_answers_but_does_not_edit(store):
    store.close()
    store.close()
    assert store.predict(X[:1]).tolist() == ["a"]
    with pytest.raises(InvalidInput, match=r"has been closed\. Open it again"):
        store.add(X[:1], ["a"])


def test_a_file_that_was_replaced(store, path):
    path.with_name("copy").write_bytes(path.read_bytes())
    path.with_name("copy").replace(path)
    with pytest.raises(NotWritten, match="was moved, or replaced by another file"):
        store.add(X[:1], ["a"])
    assert len(store) == 6


def test_a_file_without_permission_is_read(store, path, monkeypatch):
    store.close()
    monkeypatch.setattr("os.access", lambda *_: False)
    with Store(path) as again:
        assert again.predict(X[:1]).tolist() == ["a"]
        with pytest.raises(NotWritten, match="is read-only, or its folder is"):
            again.forget(IDS[0])


# -- verbs ---------------------------------------------------------------------------------------


def test_ids_come_back_as_they_were(path):
    strange = [7, "7", -3, "naïve\0 \ud800", 2**70, ""]
    with Store(path, knowmore.GPClassifier()) as store:
        assert store.add(X, Y, strange).tolist() == strange
    with Store(path) as store:
        assert store.ids_.tolist() == strange
        assert store.examples.names == tuple(strange)
        store.forget("naïve\0 \ud800")
        # No number follows from ids that were given.
        assert store.add(X[:1], "a").tolist() == [0]


@pytest.mark.parametrize(
    "labels",
    [
        [True, False, True] * 2,
        [3, -1, 2**62] * 2,
        [0.0, -0.0, 1e300] * 2,
        ["é", "\ud800", "a\0b"] * 2,
    ],
    ids=["bool", "int", "float", "str"],
)
def test_labels_come_back_as_they_were(path, labels):
    with Store(path, knowmore.GPClassifier()) as store:
        store.add(X, labels)
        first = store.examples.labels
    with Store(path) as store:
        assert store.examples.labels.dtype == first.dtype
        assert repr(store.examples.labels.tolist()) == repr(labels)


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "f2", "i4", "f4", "i8", "f8", "bool"])
def test_vectors_are_kept_as_narrow_as_they_were_given(path, dtype):
    given = (X % 2).astype(dtype) if dtype == "bool" else X.astype(dtype)
    with Store(path, knowmore.GPClassifier()) as store:
        store.add(given, Y)
        sizes = store.session.file.connection.execute("SELECT DISTINCT length(data) FROM vectors")
        width = np.dtype(dtype).itemsize
        assert sizes.fetchall() == [(2 * width,)]
    with Store(path) as store:
        np.testing.assert_array_equal(store.examples.X, given.astype(float))


def test_wide_values_are_not_narrowed(path):
    given = np.array([[2**24 + 1, 0], [1, 2]], dtype="i4")
    with Store(path, knowmore.GPClassifier()) as store:
        store.add(given, ["a", "b"])
        np.testing.assert_array_equal(store.examples.X, given.astype(float))


def test_what_is_known_of_examples(store, path):
    store.add(X[:1] + 50, ["d"], ["new"], contents=[b"h" * 32], thumbnails=[b"picture"])
    store.relabel(IDS[1], "b", contributor="bob")
    store.replace(IDS[2], X[2:3] + 1, origins="other.csv")
    first, second, third, new = store.records([*IDS[:3], "new"])
    assert first[:5] == (IDS[0], "a", 1.0, "table.csv", "ann")
    assert second[1:5] == ("b", 1.0, "table.csv", "ann")
    assert [one.labeller for one in (first, second, third, new)] == ["ann", "bob", "ann", None]
    assert third[1:5] == ("b", 1.0, "other.csv", "ann")
    assert new[3:5] == (None, None)
    assert new[6:8] == (b"h" * 32, b"picture")
    assert first.at <= second.at
    assert len(store.records()) == 7


def test_mistakes_change_nothing(store, path):
    before, scores = path.read_bytes(), answers(store, X)
    mistakes = [
        (RepeatedId, "already holds 'example-0'", lambda: store.add(X[:1], ["a"], [IDS[0]])),
        (UnknownId, "holds no example 'nobody'", lambda: store.forget("nobody")),
        (UnknownId, "holds no example 'nobody'", lambda: store.relabel("nobody", "a")),
        (UnknownId, "nothing whose contributor is 'eve'", lambda: store.forget(contributor="eve")),
        (UnknownId, "nothing whose origin is 'x'", lambda: store.forget(origin="x")),
        (InvalidInput, "one of ids, contributor and origin", lambda: store.forget()),
        (InvalidInput, "2 columns|2 features", lambda: store.add([[1.0]], ["a"])),
        (InvalidInput, "NaN", lambda: store.add([[np.nan, 1.0]], ["a"])),
        (InvalidInput, "type int", lambda: store.relabel(IDS[0], 3)),
        (
            InvalidInput,
            "1 origins were given for 2",
            lambda: store.add(X[:2], Y[:2], origins=["x"]),
        ),
        (InvalidInput, "strings, but 3 is an int", lambda: store.add(X[:1], "a", contributor=[3])),
        (
            InvalidInput,
            "bytes or None, but one is a str",
            lambda: store.add(X[:1], "a", contents="x"),
        ),
        (InvalidInput, "nothing to redo", store.redo),
        (InvalidInput, "supports cannot be changed", lambda: store.set_parameters(supports={})),
        (ValueError, "Invalid parameter", lambda: store.set_parameters(size=3)),
        (InvalidInput, "noise=-1", lambda: store.set_parameters(noise=-1)),
        (InvalidType, "merges with another, not with an int", lambda: store.merge(3)),
        (InvalidInput, r"no fit\(\).*add\(\) learns more", lambda: store.fit(X, Y)),
        (AttributeError, r"set_parameters\(\)", lambda: store.set_params(noise=1)),
    ]
    for error, words, mistake in mistakes:
        with pytest.raises(error, match=words):
            mistake()
        assert path.read_bytes() == before, words
        np.testing.assert_array_equal(answers(store, X), scores)
    assert len(store.log()) == 1


def test_forgetting_leaves_nothing(store, path):
    store.add(X + 100, Y, contributor="bob", thumbnails=[b"thumbnail of bob's"] * 6)
    store.replace(IDS[0], X[:1] + 0.123456789)
    assert store.forget(IDS[0]).count == 1
    found = store.forget(contributor="bob")
    assert (found.count, found.traces) == (6, [])
    store.close()
    data = path.read_bytes()
    for gone in (b"example-0", X[:1].tobytes(), (X[:1] + 0.123456789).tobytes(), b"of bob"):
        assert gone not in data
    with Store(path) as again:
        assert again.ids_.tolist() == IDS[1:]
        assert [e.verb for e in again.log()] == ["add", "add", "replace", "forget", "forget"]
        assert [e.count for e in again.log()] == [6, 6, 1, 1, 6]
        assert again.log()[1].contributor is None
        with pytest.raises(InvalidInput, match="number 5, forgot 6 example"):
            again.undo()


def test_what_was_undone_and_overwritten_is_gone(store, path):
    store.add(X[:1] + 0.987654321, ["d"], ["overwritten"])
    store.close()
    with Store(path) as again:
        assert again.undo().verb == "add"
        again.relabel(IDS[0], "b")
        with pytest.raises(InvalidInput, match="nothing to redo"):
            again.redo()
        assert [e.number for e in again.log()] == [1, 3]
    assert b"overwritten" not in path.read_bytes()


def test_undo_to_the_beginning_and_back(store, path):
    kernel = knowmore.GPClassifier()
    with Store(path.with_name("other.km"), kernel) as other:
        other.add(X, Y)
        scores = answers(other, X)
        other.set_parameters(noise=0.5)
        assert other.noise_ == 0.5
        assert other.undo().verb == "set_parameters"
        np.testing.assert_allclose(answers(other, X), scores)
        other.undo()
        assert len(other) == 0
        with pytest.raises(KnowmoreError, match="not fitted yet"):
            other.predict(X)
        with pytest.raises(InvalidInput, match="nothing to undo"):
            other.undo()
        other.redo()
        np.testing.assert_allclose(answers(other, X), scores)
        other.redo()
        assert other.noise_ == 0.5
        assert [e.undone for e in other.log()] == [False, False]


# -- several edits as one ------------------------------------------------------------------------


def test_edits_made_together_are_one_entry(store, path):
    before, scores = path.read_bytes(), answers(store, X)
    with store.together("learn"):
        store.add(X[:2] + 30, ["c", "d"], ["new", "passing"])
        store.replace([IDS[0], "passing"], X[:2] + 40)
        store.relabel("new", "d")
        store.set_parameters(noise=0.5)
        assert len(store) == 8
        assert [one.label for one in store.records([IDS[0], "new"])] == ["a", "d"]
        assert path.read_bytes() == before
        with Store(path) as other:
            assert len(other) == 6
    assert [(e.verb, e.count) for e in store.log()] == [("add", 6), ("learn", 13)]
    assert store.verify().ok
    assert (store.undo().verb, len(store)) == ("learn", 6)
    np.testing.assert_allclose(answers(store, X), scores)
    assert (store.redo().verb, store.noise_) == ("learn", 0.5)
    assert store.examples.X[store.examples.rows(("passing",))].tolist() == [[42.0, 43.0]]
    assert store.verify().ok


def test_an_interrupt_between_edits_changes_nothing(store, path):
    before = path.read_bytes()

    def interrupted():
        with store.together("learn"):
            store.add(X + 30, Y)
            store.relabel(IDS[0], "b")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_bytes() == before
    assert (len(store), store.examples.labels.tolist()) == (6, Y.tolist())
    assert len(store.add(X[:1], ["a"])) == 1


def test_other_threads_see_edits_that_are_made_together_when_all_are_made(store):
    seen = []
    with store.together("learn"):
        store.add(X + 30, Y)
        thread = threading.Thread(target=lambda: seen.append(len(store)))
        thread.start()
        thread.join()
    assert (seen, len(store)) == ([6], 12)


def test_a_failed_edit_fails_those_made_together_with_it(store, path):
    before = path.read_bytes()
    words = "One of the edits that are made together has failed, so none of them is in the file."

    def three():
        with store.together("learn"):
            store.add(X[:1] + 30, ["a"])
            with pytest.raises(RepeatedId):
                store.add(X, Y, IDS)
            with pytest.raises(NotWritten, match=words):
                store.add(X[:1] + 30, ["a"])

    with pytest.raises(NotWritten, match=words):
        three()
    assert (path.read_bytes(), len(store)) == (before, 6)


@pytest.mark.parametrize("verb", ["forget", "undo", "redo", "verify"])
def test_verbs_that_are_alone(verb, store):
    given = [IDS[0]] if verb == "forget" else []
    words = rf"{verb}\(\) cannot be one of several edits that are made together"
    with store.together("learn"), pytest.raises(InvalidInput, match=words):
        getattr(store, verb)(*given)
    assert (len(store), len(store.log())) == (6, 1)


def test_nothing_made_together_is_nothing(store, path):
    before = path.read_bytes()
    with store.together("learn"), store.together("more"):
        assert len(store.records()) == 6
    assert path.read_bytes() == before


# -- merging, status, notes ----------------------------------------------------------------------


def test_merging_brings_along_what_is_known(store, path):
    with Store(path.with_name("other.km"), knowmore.GPClassifier(RBF(3.0))) as other:
        other.add(X + 20, Y, [f"other-{i}" for i in range(6)], contributor="eve")
        store.merge(other)
    assert store.status().contributors == {"ann": 6, "eve": 6}
    with pytest.raises(RepeatedId, match="Both models hold 'other-0'"):
        store.merge(path.with_name("other.km"))
    assert store.undo().verb == "merge"
    store.merge(path.with_name("other.km"))
    assert len(store) == 12


def test_status_in_numbers(store, path):
    store.relabel(IDS[0], "b")
    store.undo()
    status = store.status()
    assert (status.kind, status.examples, status.features) == ("gp", 6, 2)
    assert status.classes == {"a": 2, "b": 2, "c": 2}
    assert (status.entries, status.undone, status.format) == (2, 1, 2)
    assert status.size == path.stat().st_size
    assert (status.parameters["noise"], status.noise) == (None, store.noise_)
    assert (status.chosen, status.follows) == (("noise",), True)
    assert status.kernel == "RBF(length_scale=3)"
    assert status.changed is not None


def test_notes_and_arrays(store, path):
    words = np.arange(6, dtype=np.float32).reshape(2, 3).T
    store.set_notes({"words/a": words}, pictures={"kind": "sift"})
    store.set_notes(label="name")
    with Store(path) as again:
        assert again.notes == {"pictures": {"kind": "sift"}, "label": "name"}
        (found,) = again.arrays("words/").values()
        np.testing.assert_array_equal(found, words)
        assert found.dtype == words.dtype
        assert found.flags.f_contiguous
    with pytest.raises(InvalidInput, match="the name of a cache"):
        store.set_notes({"cache/x": words})


# -- other processes and threads -----------------------------------------------------------------


def test_a_reader_follows(store, path):
    with Store(path) as reader:
        assert not reader.refresh()
        store.relabel(IDS[0], "c")
        store.add(X + 30, Y)
        assert len(reader) == 6
        assert reader.refresh()
        assert not reader.refresh()
        assert len(reader) == 12
        np.testing.assert_array_equal(reader.ids_, store.ids_)
        reader.forget(IDS[1])
        store.add(X[:1] + 90, "a", ["last"])
        assert len(store) == 12


def test_a_second_writer_is_told_who_writes(store, path):
    with Store(path, timeout=0.05) as second, store.session.file.writing():
        with pytest.raises(NotWritten, match=r"being written by .* after 0\.05 seconds"):
            second.forget(IDS[0])
        assert len(second) == 6


def test_threads_share_a_store(store):
    errors = []

    def work(name):
        try:
            for i in range(5):
                store.add(X[:1] + i, ["a"], [f"{name}-{i}"])
                store.predict(X)
                store.records()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(store) == 21
    assert [e.number for e in store.log()] == list(range(1, 17))


def test_an_interrupted_edit_changes_nothing(store, path, monkeypatch):
    before = path.read_bytes()

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("knowmore.store.work.FileEdit.finish", interrupt)
    with pytest.raises(KeyboardInterrupt):
        store.add(X[:1], ["a"])
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert len(store) == 6
    assert len(store.add(X[:1], ["a"])) == 1


def test_a_full_disk_changes_nothing(store, path, little_room):
    before = path.read_bytes()
    with little_room(len(before)), pytest.raises(NotWritten, match="Nothing was changed"):
        store.add(np.random.default_rng(0).normal(size=(5000, 2)), ["a"] * 5000)
    assert path.read_bytes() == before
    assert len(store) == 6
    store.add(X[:1], ["a"])


# -- as an estimator -----------------------------------------------------------------------------


def test_a_store_is_an_estimator_for_scikit_learn(store):
    assert is_classifier(store)
    assert type(clone(store)) is knowmore.GPClassifier
    assert cross_val_score(store, np.vstack([X] * 3), np.tile(Y, 3), cv=3).shape == (3,)
    snapshot = store.estimator
    snapshot.remove(IDS[0])
    assert len(store) == len(copy.deepcopy(store).ids_) == 6
    assert store.classes_.tolist() == ["a", "b", "c"]
    assert store.partial_fit(X[:1] + 70, ["a"]) is store


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_shrinks_and_is_read_again(name, tmp_path):
    rng = np.random.default_rng(3)
    A, y = drawn(name, rng, 20)
    with Store(tmp_path / "model.km", KINDS[name]()) as store:
        store.add(A, y, sample_weight=np.r_[np.ones(18), 0.0, 2.0])
        assert repr(store).startswith("<Store")
        try:
            store.remove(store.ids_)
        except KnowmoreError:
            # Some kinds need examples of all classes.
            store.remove(store.ids_[10:])
        left = len(store)
        scores = answers(store, A) if left else None
    with Store(tmp_path / "model.km") as store:
        assert len(store) == left
        if left:
            np.testing.assert_array_equal(answers(store, A), scores)
        assert len(store.add(A, y)) == 20


@pytest.mark.parametrize("name", ["gp", "linear", "linear-regression", "forest"])
def test_leaving_one_out_needs_no_rows_again(name, tmp_path):
    A, y = drawn(name, np.random.default_rng(3), 20)
    with Store(tmp_path / "model.km", KINDS[name]()) as store:
        store.add(A, y, ids=[f"x{i}" for i in range(20)])
        left = store.leave_one_out(groups=["a", "b"] * 10)
        assert left.ids.tolist() == store.ids_.tolist()
        assert len(store.leave_one_out().scores) == 20
        store.forget("x0")
        assert len(store.leave_one_out().scores) == 19


def test_the_end_of_the_log_is_that_of_the_whole(tmp_path):
    with knowmore.open(tmp_path / "m.km", knowmore.GPClassifier()) as store:
        ids = store.add([[0.0], [1.0], [2.0]], ["a", "b", "b"], contributor="ann")
        store.add([[3.0]], ["a"], contributor="bob")
        store.relabel(ids[0], "b")
        store.undo()
        whole = store.log()
        for after in range(5):
            assert store.log(after) == [one for one in whole if one.number > after]


def test_examples_are_read_again_only_where_they_changed_and_are_the_same(tmp_path):
    rng = np.random.default_rng(4)
    with (
        knowmore.open(tmp_path / "m.km", knowmore.LinearGPClassifier()) as store,
        knowmore.open(tmp_path / "m.km") as other,
    ):
        store.add(rng.normal(size=(9, 2)), list("abcabcabc"))
        steps = [
            lambda: other.relabel([2], "a longer name"),
            lambda: store.add(rng.normal(size=(2, 2)), ["d", "a"], ["x", "y"], [0.5, 2.0]),
            lambda: store.replace([0, 7], rng.normal(size=(2, 2))),
            store.undo,
            other.undo,
            store.redo,
            lambda: other.forget([3]),
            lambda: store.add(rng.normal(size=(40, 2)), ["a", "b"] * 20),
            lambda: None,
        ]
        held = store.examples
        for step in steps:
            step()
            store.refresh()
            held = store.examples
            with knowmore.open(tmp_path / "m.km") as fresh:
                want = fresh.examples
            assert held.names == want.names == tuple(store.ids_.tolist())
            for column in ("X", "labels", "weights"):
                np.testing.assert_array_equal(getattr(held, column), getattr(want, column))
            assert held.next_id == want.next_id
            assert store.contributors() == [one.contributor for one in store.records()]


@pytest.mark.parametrize("estimator", [GPClassifier(), LSSVMClassifier(), LinearGPClassifier()])
@pytest.mark.parametrize("labels", [[0, 1], [False, True], ["a", "b"]])
@pytest.mark.parametrize("then", [[3, 4], [True, False], ["x", "y"]])
def test_an_emptied_file_takes_labels_of_any_type(tmp_path, estimator, labels, then):
    X = np.array([[0.0, 0.0], [1.0, 1.0]])
    with knowmore.open(tmp_path / "m.km", clone(estimator)) as store:
        store.add(X, labels)
        store.forget([0, 1])
        store.add(X, then)
    with knowmore.open(tmp_path / "m.km") as store:
        assert store.classes_.tolist() == sorted(then)
        assert store.predict(X).tolist() == then
        assert store.undo() is not None
        assert len(store) == 0


def test_an_entry_about_one_example_names_it_until_it_is_forgotten(tmp_path):
    with knowmore.open(tmp_path / "some.km", GPClassifier()) as store:
        store.add([[0.0], [1.0]], ["a", "b"])
        store.relabel([1], ["a"])
        store.add([[2.0]], ["b"], ["last"])
        assert [(e.id, e.label) for e in store.log()] == [(None, None), (1, "a"), ("last", "b")]
        assert store.log(after=2)[0].id == "last"
        store.forget(["last"])
        assert [e.id for e in store.log()] == [None, 1, None, None]
