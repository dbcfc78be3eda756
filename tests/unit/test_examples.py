"""Ids become rows here, and sets of examples know what they share."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowmore.edits import Add, Relabel, Remove, Replace
from knowmore.errors import RepeatedId, UnknownId
from knowmore.examples import Examples


def some(n=4):
    return Examples.of(np.arange(2.0 * n).reshape(n, 2), np.arange(n) % 2)


def test_rows_of_ids():
    examples = some().apply(Remove((1,)))
    assert examples.rows((3, 0)).tolist() == [2, 0]
    with pytest.raises(UnknownId, match="holds no example 1"):
        examples.rows((0, 1))


def test_an_id_may_come_back():
    examples = some().apply(Remove((1,))).apply(Add(np.ones((1, 2)), np.array([1]), (1,)))
    assert examples.ids.tolist() == [0, 2, 3, 1]
    assert examples.rows((1,)).tolist() == [3]


def test_an_older_set_does_not_see_newer_ids():
    old = some()
    new = old.apply(Add(np.ones((1, 2)), np.array([1]), ("new",)))
    other = old.apply(Replace((0,), np.ones((1, 2))))
    with pytest.raises(UnknownId):
        old.rows(("new",))
    assert old.rows((0,)).tolist() == [0]
    assert new.rows((0, "new")).tolist() == [0, 4]
    assert other.rows((0,)).tolist() == [3]
    # The same id, added to the older set, is a different example.
    again = old.apply(Add(np.zeros((1, 2)), np.array([0]), ("new",)))
    assert again.X[again.rows(("new",))].tolist() == [[0, 0]]
    assert new.X[new.rows(("new",))].tolist() == [[1, 1]]


def test_ids_keep_their_kinds():
    examples = some().apply(Add(np.ones((1, 2)), np.array([1]), ("new",)))
    assert examples.ids.tolist() == [0, 1, 2, 3, "new"]
    with pytest.raises(RepeatedId, match="already holds 2"):
        examples.apply(Add(np.ones((1, 2)), np.array([1]), (2,)))


@given(st.lists(st.sampled_from(["add", "remove", "replace", "relabel"]), max_size=12), st.data())
def test_since_leads_from_any_set_to_any_other(kinds, data):
    sets = [some()]
    for kind in kinds:
        base = data.draw(st.sampled_from(sets))
        ids = base.ids.tolist()
        one = (data.draw(st.sampled_from(ids)),) if ids else ()
        x, y = np.ones((1, 2)), np.array([1])
        if kind == "add" or not ids:
            edit = Add(x, y)
        else:
            edit = {"remove": Remove(one), "replace": Replace(one, x), "relabel": Relabel(one, y)}[
                kind
            ]
        sets.append(base.apply(edit))
    for earlier in sets:
        for later in sets:
            deleted, appended = later.since(earlier)
            kept = np.delete(earlier.serials, deleted)
            tail = later.serials[len(later) - appended :]
            assert np.concatenate([kept, tail]).tolist() == later.serials.tolist()


def test_serial_numbers_stay_unique_after_unpickling():
    examples = some()
    copy = pickle.loads(pickle.dumps(examples))
    new = copy.apply(Add(np.ones((1, 2)), np.array([1])))
    assert new.serials[-1] > examples.serials.max()
    assert new.since(copy)[1] == 1


def test_a_pickle_holds_nothing_of_what_was_removed():
    secret = np.full((1, 2), 1234.5678)
    examples = some().apply(Add(secret, np.array([1]), ("secret",)))
    gone = pickle.dumps(examples.apply(Remove(("secret",))))
    assert secret[0].tobytes() in pickle.dumps(examples)
    assert secret[0].tobytes() not in gone
    assert b"secret" not in gone


def test_the_index_does_not_grow_without_end():
    examples = some()
    for i in range(2000):
        examples = examples.apply(Add(np.ones((1, 2)), np.array([1]), (f"passing {i}",)))
        examples = examples.apply(Remove((f"passing {i}",)))
    assert len(examples._index) < 200


def test_room_for_more_rows_has_nothing_of_memory_that_is_used_again(monkeypatch):
    """A buffer may get the memory of rows that were forgotten."""
    monkeypatch.setattr(
        "knowmore.examples.np.empty", lambda shape, dtype=float: np.full(shape, 7, dtype)
    )
    some = Examples.of(np.eye(3), np.array([1.0, 2.0, 3.0])).apply(Remove((0,)))
    assert not (some.columns.X.buffer.array == 7).any()
    assert not (some.columns.labels.buffer.array == 7).any()
