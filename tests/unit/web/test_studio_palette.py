"""Colours stay while classes come and go, and classes that were forgotten are not offered."""

from __future__ import annotations

import pytest

import knowmore
from knowmore import GPClassifier
from knowmore.errors import InvalidInput
from knowmore.web.drawing import Palette
from knowmore.web.studio import Studio


def test_a_class_keeps_its_number_and_leaves_it_to_the_next():
    palette = Palette()
    assert palette.slots(["a", "c"]) == {"a": 0, "c": 1}
    assert palette.slots(["a", "b", "c"]) == {"a": 0, "c": 1, "b": 2}
    assert palette.slots(["b", "c"]) == {"c": 1, "b": 2}
    assert palette.slots(["b", "c", "d"]) == {"c": 1, "b": 2, "d": 0}


def test_an_empty_plane_begins_with_two_classes():
    palette = Palette()
    palette.begin([])
    assert palette.offered([]) == ["A", "B"]
    assert palette.slots(["B"]) == {"A": 0, "B": 1}
    palette.begin(["B"])
    assert palette.offered(["B"]) == ["A"]
    for held in (["B", "C"], ["x"], [3]):
        other = Palette()
        other.begin(held)
        assert other.offered(held) == []


def test_the_two_classes_of_an_empty_plane_leave_when_it_has_others():
    palette = Palette()
    palette.begin([])
    palette.offer("mine")
    palette.begin(["x", "y"])
    assert palette.offered(["x", "y"]) == ["mine"]
    other = Palette()
    other.begin([], plane=False)
    assert other.offered([]) == []


@pytest.mark.parametrize("note", ["pictures", "texts", "table"])
def test_an_empty_model_of_what_no_click_teaches_is_offered_no_class(tmp_path, note):
    with knowmore.open(tmp_path / "m.km", GPClassifier()) as store:
        store.add([[0.0, 0.0], [1.0, 1.0]], ["a", "b"])
        studio = Studio(store)

        def offered(edit):
            edit()
            studio.file.stale = True
            return [one["label"] for one in studio.state()["offered"]]

        assert offered(store.undo) == ["A", "B"]
        assert offered(store.redo) == []
        store.set_notes(**{note: {"one": 1}})
        assert offered(store.undo) == []
        assert len(store) == 0


def test_an_offered_class_stays_until_what_it_had_is_forgotten():
    palette = Palette()
    for label in ("used", "unused"):
        palette.offer(label)
    palette.slots(["a", "used"])
    # Its example was taken back: it can be given another.
    assert palette.offered(["a"]) == ["used", "unused"]
    palette.let_go(["a", "used"])
    assert palette.offered(["a"]) == ["used", "unused"]
    palette.let_go(["a"])
    assert palette.offered(["a"]) == ["unused"]
    assert palette.slots(["a"]) == {"unused": 1, "a": 2}


def test_a_class_that_was_forgotten_before_a_page_asked_is_not_offered(tmp_path):
    """It had an example under that name, and then under another."""
    with knowmore.open(tmp_path / "m.km", GPClassifier()) as store:
        store.add([[0.0, 0.0], [1.0, 1.0]], ["a", "b"], ["x", "y"])
        studio = Studio(store)
        for label in ("secret", "unused"):
            studio.palette.offer(label)
        for edit in (
            lambda: store.add([[2.0, 2.0]], ["secret"], ["z"]),
            lambda: store.relabel("z", "a"),
            lambda: store.forget("z"),
        ):
            edit()
            studio.file.stale = True
            studio.now()
        assert [one["label"] for one in studio.state()["offered"]] == ["unused"]


def test_no_more_are_offered_than_anybody_needs():
    palette = Palette()
    for i in range(100):
        palette.offer(i)
    palette.offer(7)
    with pytest.raises(InvalidInput, match=r"^100 classes wait for an example already"):
        palette.offer(100)
