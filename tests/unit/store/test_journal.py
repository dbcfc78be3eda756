"""Who gave what: forgetting a contributor is as if they had given nothing."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import closing
from hashlib import sha256

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from store_kinds import answers
from tolerance import tolerance

import knowmore
from knowmore.errors import InvalidInput, UnknownId
from knowmore.store import Store

X = np.arange(12.0).reshape(6, 2)


def made(path, kind=None):
    return Store(path, kind or knowmore.GPClassifier(RBF(3.0)))


@pytest.fixture
def store(tmp_path):
    with made(tmp_path / "model.km") as store:
        store.add(X[:2], ["a", "b"], ["one", "two"], contributor="ann", origins="mon.csv")
        yield store


def held(store):
    """Features, label and givers by id."""
    rows = dict(zip(store.ids_.tolist(), store.examples.X.tolist(), strict=True))
    return {r.id: (rows[r.id], r.label, r.contributor, r.labeller) for r in store.records()}


def test_a_relabel_belongs_to_who_made_it(store):
    store.relabel("one", "b", contributor="bob")
    assert held(store)["one"] == ([0.0, 1.0], "b", "ann", "bob")
    assert store.status().contributors == {"ann": 2, "bob": 1}
    assert store.log()[-1].contributor == "bob"
    found = store.forget(contributor="bob")
    assert (found.count, found.changed) == (0, 1)
    assert held(store)["one"] == ([0.0, 1.0], "a", "ann", "ann")
    assert store.verify().ok


def test_a_relabel_by_nobody_in_particular_is_nobody_s(store):
    store.relabel("one", "b")
    assert held(store)["one"] == ([0.0, 1.0], "b", "ann", None)
    assert store.log()[-1].contributor is None


def test_who_replaces_features_gives_them_and_the_label_stays(store):
    store.replace("one", X[5:6], contributor="bob", origins="tue.csv")
    assert held(store)["one"] == ([10.0, 11.0], "a", "bob", "ann")
    found = store.forget(contributor="bob")
    assert (found.count, found.changed) == (0, 1)
    assert held(store)["one"] == ([0.0, 1.0], "a", "ann", "ann")
    assert store.records(["one"])[0].origin == "mon.csv"
    assert store.verify().ok


def test_features_of_which_nobody_else_gave_a_label_go_with_the_label(store):
    store.replace("one", X[5:6], contributor="bob")
    assert store.forget(contributor="ann").count == 2
    assert len(store) == 0


def test_what_another_contributor_gave_as_a_whole_stays(store):
    store.replace("one", X[5:6], "c", contributor="bob")
    found = store.forget(contributor="ann")
    assert (found.count, found.changed, found.erased) == (1, 0, 1)
    assert held(store) == {"one": ([10.0, 11.0], "c", "bob", "bob")}


def test_features_of_one_and_a_label_of_another_survive_a_third(store):
    """History without bob: cid's features, and the label that ann had given."""
    store.relabel("one", "b", contributor="bob")
    store.replace("one", X[5:6], contributor="cid")
    assert held(store)["one"] == ([10.0, 11.0], "b", "cid", "bob")
    found = store.forget(contributor="bob")
    assert (found.count, found.changed) == (0, 1)
    assert held(store)["one"] == ([10.0, 11.0], "a", "cid", "ann")
    assert store.verify().ok
    store.forget(contributor="cid")
    assert held(store)["one"] == ([0.0, 1.0], "a", "ann", "ann")
    store.forget(contributor="ann")
    assert len(store) == 0


def test_an_origin_gives_features_alone(store):
    store.replace("one", X[5:6], "c", contributor="bob", origins="tue.csv")
    found = store.forget(origin="tue.csv")
    assert (found.count, found.changed) == (0, 1)
    assert held(store)["one"] == ([0.0, 1.0], "c", "ann", "bob")
    with pytest.raises(UnknownId, match=r"nothing whose origin is 'tue.csv'"):
        store.forget(origin="tue.csv")


def test_several_origins_are_forgotten_at_once(store):
    store.add(X[2:5], list("aba"), ["t1", "t2", "w"], origins=["tue.csv", "tue.csv", "wed.csv"])
    several = ["tue.csv", "wed.csv", "gone.csv"]
    assert sorted(store.preview_forget(origin=several).leaving) == ["t1", "t2", "w"]
    before, entries = len(store), len(store.log())
    assert store.forget(origin=several).count == 3
    assert (len(store), len(store.log())) == (before - 3, entries + 1)
    assert store.verify().ok
    with pytest.raises(UnknownId, match=r"nothing whose origin is \['tue.csv', 'wed.csv'"):
        store.forget(origin=several)
    with pytest.raises(InvalidInput, match=r"^Contributors and origins are strings, but 3 is"):
        store.forget(origin=3)


@pytest.mark.parametrize("kind", [knowmore.GPClassifier, knowmore.LinearGPClassifier])
def test_features_of_an_origin_leave_the_file_though_their_label_stays(kind, tmp_path):
    """No version goes: the one that brought them keeps its label."""
    secret, content, path = 12345.678, sha256(b"tue").digest(), tmp_path / "model.km"
    with made(path, kind()) as store:
        store.add(X[:3], list("aba"), list("uvw"), contributor="ann", origins="mon.csv")
        store.replace(
            "u", [[secret, 9.0]], "b", contributor="bob", origins="tue.csv", contents=[content]
        )
    with Store(path) as store:
        found = store.forget(origin="tue.csv")
        assert (found.count, found.changed) == (0, 1)
        assert held(store)["u"] == ([0.0, 1.0], "b", "ann", "bob")
        assert store.verify().ok, str(store.verify())
        assert store.was_forgotten(["u"], [content]) == [(False, True, True)]
        assert struct.pack("<d", secret) not in path.read_bytes()
        with made(tmp_path / "control.km", kind()) as control:
            control.add(X[:3], list("bba"), list("uvw"))
        names = ("cache/factor", "cache/sums")
        assert [data for name, data in arrays(path) if name in names] in (
            [],
            [data for name, data in arrays(control.path) if name in names],
        )


def arrays(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT name, data FROM arrays").fetchall()


def test_a_preview_says_so_and_changes_nothing(store, tmp_path):
    store.relabel("one", "b", contributor="bob")
    store.add(X[2:3], ["c"], contributor="bob")
    before = (tmp_path / "model.km").read_bytes()
    assert store.preview_forget(contributor="bob") == ([0], ["one"], [])
    assert store.preview_forget(["one"]) == (["one"], [], [])
    store.relabel("one", "c", contributor="cid")
    assert store.preview_forget(contributor="bob") == ([0], [], ["one"])
    store.undo()
    before = (tmp_path / "model.km").read_bytes()
    assert (tmp_path / "model.km").read_bytes() == before
    with pytest.raises(UnknownId):
        store.preview_forget(contributor="nobody")


def test_what_was_undone_is_no_part_of_the_history(store):
    store.relabel("one", "b", contributor="bob")
    store.relabel("one", "c", contributor="cid")
    store.undo()
    found = store.forget(contributor="cid")
    assert (found.count, found.changed, found.erased) == (0, 0, 1)
    assert held(store)["one"][1] == "b"
    store.forget(contributor="bob")
    assert held(store)["one"][1] == "a"
    assert store.verify().ok


def test_merging_brings_both_givers_along(store, tmp_path):
    store.relabel("one", "b", contributor="bob")
    with made(tmp_path / "other.km") as other:
        other.add(X[3:], list("abc"), contributor="cid")
        other.merge(store)
        assert held(other)["one"] == ([0.0, 1.0], "b", "ann", "bob")
        assert other.forget(contributor="bob").count == 1


# -- any history, against an oracle that replays it without somebody ------------------------------


def _random(rng, who):
    """Edits (verb, id, features, label, giver) of a few ids."""
    known, edits = [], []
    for step in range(14):
        giver, label, x = rng.choice(who), str(rng.choice(list("abc"))), rng.uniform(-1, 1, size=2)
        verb = rng.choice(["add", "replace", "both", "relabel"]) if known else "add"
        one = f"x{step}" if verb == "add" else str(rng.choice(known))
        known += [one] if verb == "add" else []
        edits.append((verb, one, x, label, None if giver == "-" else giver))
    return edits


def _replayed(edits, leaver):
    """A history's features, labels and givers, as if one person had given nothing.

    Features and labels are two lists for each id; the last of each that is not the leaver's counts.
    """
    features, labels = {}, {}
    for verb, one, x, label, giver in edits:
        if verb != "relabel":
            before = features.get(one, [(None, None)])[-1][1]
            whose = giver if verb == "add" or giver is not None else before
            features.setdefault(one, []).append((x.tolist(), whose))
        if verb != "replace":
            before = labels.get(one, [(None, None)])[-1][1]
            whose = giver if verb != "both" or giver is not None else before
            labels.setdefault(one, []).append((label, whose))
    found = {}
    for one in features:
        left = [pair for pair in features[one] if pair[1] != leaver or leaver is None]
        said = [pair for pair in labels[one] if pair[1] != leaver or leaver is None]
        if left and said:
            found[one] = left[-1][0], said[-1][0], left[-1][1], said[-1][1]
    return found


@pytest.mark.slow(fast=15)
@pytest.mark.parametrize("seed", range(40))
def test_any_history_without_somebody(seed, tmp_path):
    rng = np.random.default_rng(seed)
    edits = _random(rng, ["ann", "bob", "cid", "-"])
    linear = seed % 4 == 3
    grid = knowmore.Grid.covering(np.ones((1, 2)))
    kind = knowmore.LinearGPClassifier(resolution=grid) if linear else None
    with made(tmp_path / "m.km", kind) as store:
        for verb, one, x, label, giver in edits:
            match verb:
                case "add":
                    store.add([x], [label], [one], contributor=giver)
                case "replace":
                    store.replace([one], [x], contributor=giver)
                case "both":
                    store.replace([one], [x], [label], contributor=giver)
                case "relabel":
                    store.relabel([one], [label], contributor=giver)
        assert held(store) == _replayed(edits, None)
        for gone in rng.permutation(["ann", "bob", "cid"]).tolist():
            wanted = _replayed(edits, gone)
            touched = any(giver == gone for *_, giver in edits)
            if not touched:
                continue
            store.forget(contributor=gone)
            assert held(store) == wanted
            break
        assert all(check.ok for check in store.verify().checks), store.verify()
        if len(store):
            asked, X = rng.normal(size=(3, 2)), store.examples.X
            K = RBF(3.0)(X) + 0.1 * np.eye(len(X))
            with Store(store.path) as again:
                assert held(again) == held(store)
                difference = abs(answers(again, asked) - answers(store, asked)).max()
            assert difference <= (0 if linear else tolerance(K) * len(X))


def test_what_is_edited_in_the_studio_is_the_studio_s(store):
    from knowmore.web.bodies import RelabelBody, ReplaceBody
    from knowmore.web.studio import Studio

    studio = Studio(store)
    studio.edit("one key", RelabelBody(verb="relabel", ids=["one"], y="c"))
    studio.edit("another key", ReplaceBody(verb="replace", ids=["two"], X=[[7.0, 8.0]]))
    assert held(store) == {
        "one": ([0.0, 1.0], "c", "ann", "studio"),
        "two": ([7.0, 8.0], "b", "studio", "ann"),
    }
    assert store.forget(contributor="studio").changed == 2
    assert held(store)["two"] == ([2.0, 3.0], "b", "ann", "ann")
