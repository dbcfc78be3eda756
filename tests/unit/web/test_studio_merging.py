"""A merge is told before it is done: what comes, what clashes, what flips."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from studied import enter, studying

import knowmore
from knowmore import GPClassifier, LinearGPClassifier
from knowmore.linalg import Grid

RNG = np.random.default_rng(8)
X = RNG.normal(size=(60, 2))
Y = np.where(X[:, 0] + RNG.normal(0, 0.6, 60) > 0, "a", "b")
Y[50:] = np.where(X[50:, 1] > 0, "c", "b")
# Both linear models are on this grid.
KINDS = {
    "gp": lambda: GPClassifier(RBF(0.7), noise=0.1),
    "linear": lambda: LinearGPClassifier(resolution=Grid.covering(X)),
}


def made(path, rows, ids, estimator):
    with knowmore.open(path, estimator) as store:
        store.add(X[rows], Y[rows], ids, contributor=path.stem)
    return path


@pytest.fixture
def path(tmp_path, request):
    kind = KINDS[getattr(request, "param", "gp")]
    made(tmp_path / "other.km", slice(30, 60), range(30, 60), kind())
    made(tmp_path / "clashing.km", slice(25, 35), range(25, 35), kind())
    knowmore.open(tmp_path / "empty.km", kind()).close()
    made(tmp_path / "smooth.km", slice(30, 60), range(30, 60), GPClassifier(RBF(3.0)))
    (tmp_path / "damaged.km").write_bytes(b"not a model")
    (tmp_path / "below").mkdir()
    made(tmp_path / "below" / "deep.km", slice(30, 60), range(30, 60), kind())
    return made(tmp_path / "mine.km", slice(0, 30), range(30), kind())


@pytest.fixture
def visitor(path):
    with studying(path) as door:
        yield enter(door)


def predicted(store):
    left = store.leave_one_out()
    right = (left.predicted == left.labels) & ~left.silent
    return dict(zip(left.ids.tolist(), left.predicted.tolist(), strict=True)), right.mean()


@pytest.mark.parametrize("path", [*KINDS], indirect=True)
def test_the_preview_tells_what_the_merge_does(visitor, path):
    before = path.read_bytes(), path.with_name("other.km").read_bytes()
    status, found = visitor.post("/api/merge/preview", {"name": "other.km"})
    assert status == 200, found
    assert (path.read_bytes(), path.with_name("other.km").read_bytes()) == before
    assert (found["count"], found["classes"], found["clashes"]) == (30, ["c"], 0)
    with knowmore.open(path) as store, knowmore.open(path.with_name("other.km")) as other:
        (mine, right), (theirs, there) = predicted(store), predicted(other)
    assert (found["accuracy_before"], found["accuracy_theirs"]) == (right, there)
    status, body = visitor.edit(verb="merge", name="other.km")
    assert (status, body["n"], sorted(body["ids"])) == (200, 60, [*range(30, 60)])
    with knowmore.open(path) as store:
        after, right = predicted(store)
        assert [one.verb for one in store.log()] == ["add", "merge"]
        assert store.contributors() == ["mine"] * 30 + ["other"] * 30
    assert found["accuracy_after"] == right
    want = {one: (label, after[one]) for one, label in (mine | theirs).items()}
    flips = {one["id"]: (one["from"], one["to"]) for one in found["flipping"]}
    assert flips == {one: pair for one, pair in want.items() if pair[0] != pair[1]}
    assert found["flips"] == len(flips) > 0
    assert all((one["file"] == "here") == (one["id"] in mine) for one in found["flipping"])
    assert visitor.edit(verb="undo")[1]["n"] == 30
    assert visitor.post("/api/merge/preview", {"name": "other.km"})[1]["flips"] == len(flips)


def test_ids_that_clash_are_named_and_nothing_is_merged(visitor):
    status, found = visitor.post("/api/merge/preview", {"name": "clashing.km"})
    assert (status, found["clashes"], found["clashing"]) == (200, 5, [*range(25, 30)])
    assert found["accuracy_after"] is None
    status, found = visitor.edit(verb="merge", name="clashing.km")
    assert (status, "Both models hold 25" in found["error"]) == (422, True)
    assert visitor.get("/api/state")["n"] == 30


def test_only_neighbours_by_name(visitor, path, tmp_path):
    (tmp_path / "link.km").symlink_to(tmp_path / "below" / "deep.km")
    names = ["clashing.km", "damaged.km", "empty.km", "other.km", "smooth.km"]
    assert visitor.get("/api/merge/files") == {"files": names}
    for name in (
        "below/deep.km",
        "./other.km",
        str(path.with_name("other.km")),
        "../other.km",
        "mine.km",
        "link.km",
        "no.km",
        "other.km\0",
        "*.km",
    ):
        for status, found in (
            visitor.post("/api/merge/preview", {"name": name}),
            visitor.edit(verb="merge", name=name),
        ):
            assert (status, "There is no other model" in found["error"]) == (422, True)
    for body in ({}, {"name": ""}, {"name": ["other.km"]}, {"name": "a" * 201}):
        assert visitor.post("/api/merge/preview", body)[0] == 422


@pytest.mark.parametrize("name", ["damaged.km", "empty.km", "smooth.km"])
def test_what_cannot_be_merged_is_told(visitor, name):
    status, found = visitor.post("/api/merge/preview", {"name": name})
    assert (status, bool(found["error"])) == (422, True)
    if name == "smooth.km":
        assert "differ in" in found["error"]
    if name != "empty.km":
        assert visitor.edit(verb="merge", name=name)[0] == 422
    assert visitor.get("/api/state")["n"] == 30


def test_other_columns_are_no_match(visitor, path):
    with knowmore.open(path.with_name("other.km")) as store:
        store.set_notes(columns=["u", "v"])
    status, found = visitor.post("/api/merge/preview", {"name": "other.km"})
    assert (status, "of other columns" in found["error"]) == (422, True)
    assert str(path.parent) not in found["error"]
