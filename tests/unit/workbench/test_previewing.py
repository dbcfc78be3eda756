"""Previews tell what an edit does, and change nothing."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import knowmore
from knowmore import ForestGPClassifier, GPClassifier, LinearGPClassifier
from knowmore.edits import Add, Relabel, Remove, Replace
from knowmore.errors import InvalidInput, RepeatedId, UnknownId
from knowmore.estimators.shell import unnamed
from knowmore.workbench import (
    history,
    left_out,
    merge,
    preview_edit,
    preview_forget,
    preview_merge,
    status,
    suspects,
)

CLASSES = [GPClassifier, LinearGPClassifier, ForestGPClassifier]


def store_of(path, create=GPClassifier, seed=0, n=24, prefix="a"):
    rng = np.random.default_rng(seed)
    store = knowmore.open(path, create())
    y = np.array(["oak", "elm", "fir"])[np.arange(n) % 3]
    X = rng.normal(size=(n, 2)) + 1.5 * (np.arange(n) % 3)[:, None]
    store.add(X, y, [f"{prefix}{i}" for i in range(n)], contributor=["ann", "bob"] * (n // 2))
    return store


def said(store):
    left = left_out(unnamed(store.estimator), store.examples)
    return dict(zip(left.ids.tolist(), left.predicted.tolist(), strict=True))


@pytest.mark.parametrize("create", CLASSES)
@pytest.mark.parametrize("verb", ["add", "forget", "relabel", "replace"])
def test_a_preview_is_what_the_edit_does(tmp_path, create, verb):
    with store_of(tmp_path / "m.km", create) as store:
        ids, X = ("a0", "a4", "a7", "a9"), np.full((4, 2), 3.0) + np.arange(4)[:, None]
        y = np.array(["fir", "oak", "fir", "elm"])
        edit, act = {
            "add": (
                Add(X, y, ("b0", "b1", "b2", "b3")),
                lambda: store.add(X, y, ("b0", "b1", "b2", "b3")),
            ),
            "forget": (Remove(ids), lambda: store.forget(ids)),
            "relabel": (Relabel(ids, y), lambda: store.relabel(ids, y)),
            "replace": (Replace(ids, X), lambda: store.replace(ids, X)),
        }[verb]
        before, entries = said(store), len(store.log())
        preview = preview_edit(store, edit)
        assert said(store) == before
        assert len(store.log()) == entries
        act()
        after = said(store)
        changed = {name for name in before if after.get(name, before[name]) != before[name]}
        assert {change.id for change in preview.changes} == changed
        for change in preview.changes:
            assert (change.before, change.after) == (before[change.id], after[change.id])
        labels = dict(zip(store.ids_.tolist(), store.examples.labels.tolist(), strict=True))
        right = np.mean([after[name] == label for name, label in labels.items()])
        assert preview.accuracy_after == right


@pytest.mark.parametrize("create", CLASSES)
def test_a_preview_of_a_merge_is_what_the_merge_does(tmp_path, create):
    mine = store_of(tmp_path / "m.km", create)
    theirs = store_of(tmp_path / "o.km", create, seed=1, n=12, prefix="b")
    with mine, theirs:
        theirs.relabel(["b0"], ["yew"])
        if create is LinearGPClassifier:
            # Grids follow the examples: only models on the same grid merge.
            with pytest.raises(InvalidInput):
                preview_merge(mine, theirs)
            return
        mine.set_parameters(kernel=RBF(1.0))
        theirs.set_parameters(kernel=RBF(1.0))
        here, there = said(mine), said(theirs)
        preview = preview_merge(mine, theirs)
        assert (preview.count, preview.classes, preview.clashing) == (12, ["yew"], [])
        assert said(mine) == here
        merge(mine, theirs, again=False)
        after = said(mine)
        for before, changes in ((here, preview.here), (there, preview.there)):
            changed = {name for name, label in before.items() if after[name] != label}
            assert {change.id for change in changes} == changed


def test_ids_that_both_files_hold_are_named(tmp_path):
    with store_of(tmp_path / "m.km") as mine, store_of(tmp_path / "o.km", n=6) as theirs:
        preview = preview_merge(mine, theirs)
        assert preview.clashing == theirs.ids_.tolist()
        assert preview.accuracy_after is None
        with pytest.raises(RepeatedId):
            merge(mine, theirs, again=False, dry_run=True)


def test_forgetting_is_previewed(tmp_path):
    with store_of(tmp_path / "m.km") as store:
        preview, stay = preview_forget(store, contributor="ann")
        assert (len(preview.leaving), stay) == (12, 12)
        with pytest.raises(UnknownId):
            preview_forget(store, ["nothing"])
        store.forget(contributor="ann")
        assert len(store) == stay


@pytest.mark.parametrize("create", [GPClassifier, LinearGPClassifier])
@pytest.mark.parametrize(
    "edit",
    [Remove(("a1", "a1")), Remove(("a1",) * 24), Relabel(("a1", "a1"), np.array(["fir", "oak"]))],
    ids=["remove", "as many as there are", "relabel"],
)
def test_an_edit_that_names_an_example_twice_has_no_preview(tmp_path, create, edit):
    with store_of(tmp_path / "m.km", create) as store:
        assert len(store) == 24
        with pytest.raises(RepeatedId, match="'a1' is given twice"):
            preview_edit(store, edit)


def test_two_examples_are_needed(tmp_path):
    with knowmore.open(tmp_path / "m.km", GPClassifier()) as store:
        with pytest.raises(InvalidInput, match="it needs two examples"):
            preview_edit(store, Remove(("a",)))
        store.add([[0.0], [1.0]], ["oak", "elm"], ["a", "b"])
        with pytest.raises(InvalidInput, match="that takes two examples"):
            preview_edit(store, Remove(("a",)))


def test_status_history_and_suspects_are_plain_values(tmp_path):
    with store_of(tmp_path / "m.km") as store:
        store.relabel(["a3"], ["fir"])
        found = status(store)
        assert (found["examples"], found["features"], found["edits"]) == (24, 2, 2)
        assert [entry["verb"] for entry in history(store)] == ["add", "relabel"]
        first, total, _ = suspects(store, 5)
        assert len(first) == min(5, total)
        assert all(suspect["label"] != suspect["preferred"] for suspect in first)
