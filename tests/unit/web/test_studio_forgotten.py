"""After a forget nothing of the forgotten can be asked of a studio that goes on running.

Every route is asked before and after. What is said then must name nothing of the forgotten, have no
number near its values, and be what a studio says that was started afterwards.
"""

from __future__ import annotations

import gc
import json
import re
import subprocess
import sys
import weakref
from types import SimpleNamespace
from urllib.parse import quote

import numpy as np
import pytest
from fruit import SKY, fruit, picture
from sklearn.gaussian_process.kernels import RBF
from studied import SQUARE, enter, studying, unpacked
from tolerance import assert_within, tolerance

import knowmore
from knowmore import GPClassifier, LinearGPClassifier
from knowmore.notebook.memory import Memory
from knowmore.studio import Door, create_app
from knowmore.web.bodies import ForgetBody
from knowmore.web.drawing import Bounds, FieldGrid
from knowmore.web.listing import ExampleTable
from knowmore.web.studio import Studio
from knowmore.workbench import UnlabelledPool

# Every name of what is forgotten has this in it. Its values are near that, and so are differences
# to what is held, which is within -1 and 1.
NAME, VALUE = "zqsecret", 213.4567
REACH = 2.5
# How a file of a picture begins.
PICTURES = (b"\x89PNG", b"\xff\xd8")
# What differs between two studios of one file: times, colours, and classes that were offered.
OWN = {"update_ms", "refit_ms", "difference", "slot", "offered", "at", "text"}
RNG = np.random.default_rng(5)


def rows(count, width):
    return RNG.uniform(-1, 1, (count, width))


def secrets(count, width):
    return VALUE + rows(count, width)


class Scene:
    """A file, its neighbour and a pool, of rows that stay and rows to forget."""

    def __init__(self, folder, width, estimator):
        self.width, self.path = width, folder / "model.km"
        X = rows(24, width)
        labels = np.array(["a", "b", "c"])[np.arange(24) % 3]
        self.kept = [f"kept {i}" for i in range(24)]
        with knowmore.open(self.path, estimator) as store:
            store.add(X, labels, ids=self.kept, contributor="ann")
            store.add(secrets(2, width), [f"{NAME} label"] * 2, ids=[f"{NAME} 1", f"{NAME} 2"])
        theirs = secrets(2, width), ["a", f"{NAME} theirs"], [f"{NAME} 3", f"{NAME} 4"]
        # Sums add up on one grid alone.
        self.merges = not isinstance(estimator, LinearGPClassifier)
        with knowmore.open(folder / "other.km" if self.merges else self.path, estimator) as store:
            store.add(*theirs)
        self.condition = RBF(0.5)(X) + 0.05 * np.eye(24)

    def pool(self, secret):
        """Rows without labels; two of them are to be forgotten."""
        open_ = np.random.default_rng(1).uniform(-1, 1, (8, self.width))
        ids = tuple(f"row {i}" for i in range(8))
        if not secret:
            return UnlabelledPool("pool.csv", ids, open_)
        both = np.vstack([open_, secrets(2, self.width)])
        return UnlabelledPool("pool.csv", (*ids, f"{NAME} 5", f"{NAME} 6"), both)

    def teach(self, visitor):
        """Edits of every kind that bring or change what is to be forgotten; (key, edit) of each."""
        done = []

        def edit(**body):
            key = f"key number {len(done)}"
            status, found = visitor.edit(key, **body)
            assert status == 200, found
            done.append((key, body))
            return found

        (own,) = edit(
            verb="add",
            X=secrets(1, self.width).tolist(),
            y=["a"],
            contributor=f"{NAME} contributor",
        )["ids"]
        assert visitor.post("/api/classes", {"label": f"{NAME} offered"})[0] == 200
        edit(verb="relabel", ids=[own], y=f"{NAME} offered")
        edit(verb="replace", ids=[own], X=secrets(1, self.width).tolist())
        edit(verb="answer", id=f"{NAME} 5", y=f"{NAME} answered")
        edit(verb="answer", id=f"{NAME} 6", y="a")
        if self.merges:
            edit(verb="merge", name="other.km")
        edit(verb="relabel", ids=[f"{NAME} 3"], y=f"{NAME} again")
        edit(verb="refuse", ids=[f"{NAME} 4"])
        edit(verb="settings", noise=0.06)
        edit(verb="undo")
        self.gone = [own, *(f"{NAME} {i}" for i in range(1, 7))]
        return done


def routes(path):
    """The application's routes that answer questions, by method and path."""
    app = create_app(path, Door("127.0.0.1", 1))
    found = {(way, one.path) for one in app.routes for way in one.methods if way != "HEAD"}
    static = {one for one in found if re.fullmatch(r"/(\w+\.(js|css|svg))?", one[1])}
    return found - static - {("GET", "/openapi.json")}


def questions(scene, last):
    """A question or more for every route, as (method, path, body)."""
    one = quote(json.dumps(scene.kept[0]))
    grid = "&".join(f"{name}={value}" for name, value in SQUARE.items()) + "&w=16&h=12"
    moved = {"ids": scene.kept[:1], "plane": [[0.1, 0.1]], **SQUARE, "w": 8, "h": 8}
    yield "GET", "/api/state", None
    yield "GET", "/api/plane/points", None
    yield "GET", f"/api/plane/field?{grid}", None
    yield "GET", f"/api/plane/field?{grid}&noise=0.2", None
    yield "GET", f"/api/plane/check?{grid}", None
    yield "POST", "/api/plane/moved", moved
    yield "POST", "/api/whatif", {"verb": "forget", "ids": scene.kept[:2]}
    yield "POST", "/api/whatif", {"verb": "relabel", "ids": scene.kept[:1], "y": "c"}
    yield "GET", "/api/suspects?limit=100", None
    yield "POST", "/api/suspects/listed", {"ids": scene.kept}
    yield "GET", f"/api/against?id={one}", None
    yield "GET", "/api/aside", None
    yield "GET", "/api/advice", None
    yield "GET", "/api/progress", None
    yield "GET", "/api/log", None
    for number in range(last + 1):
        yield "POST", "/api/state-at", {"number": number}
        yield "GET", f"/api/plane/field?{grid}&at={number}", None
    yield "POST", "/api/preview-forget", {"contributor": "ann"}
    yield "POST", "/api/preview-forget", {"contributor": "studio"}
    yield "POST", "/api/verify", {}
    yield "POST", "/api/question", {"skip": []}
    yield "POST", "/api/question", {"skip": [f"row {i}" for i in range(8)]}
    yield "GET", "/api/pool/picture?name=row+1", None
    yield "POST", "/api/rows", {"limit": 500, "sort": "label"}
    yield "POST", "/api/rows", {"limit": 500, "search": "zq"}
    yield "GET", "/api/merge/files", None
    yield "GET", "/api/desk", None
    yield "GET", f"/api/thumbnail?id={one}", None
    yield "GET", "/api/thumbnail?picture=1", None
    yield "GET", f"/api/explain?id={one}", None
    yield "GET", f"/api/words?id={one}", None


# Edits, and questions that bring something: they are asked by `teach`, or by what follows.
ELSEWHERE = {
    ("POST", "/api/edit"),
    ("POST", "/api/plane/edit"),
    ("POST", "/api/classes"),
    ("POST", "/api/pool"),
    ("POST", "/api/pictures"),
    ("POST", "/api/dismiss"),
    ("POST", "/api/refuse"),
    # The other file is not forgotten: what it says is its own.
    ("POST", "/api/merge/preview"),
    ("GET", "/events"),
}


def said(visitor, scene):
    """Answers to every question, by the question: the status and the bytes or the JSON."""
    last = visitor.get("/api/log")["entries"][-1]["number"]
    found = {}
    for method, path, body in questions(scene, last):
        status, answer, headers = visitor(method, path, body)
        assert (status < 500, headers["cache-control"]) == (True, "no-store"), answer
        found[method, path, json.dumps(body)] = status, answer
    assert {(way, path.partition("?")[0]) for way, path, _ in found} | ELSEWHERE == routes(
        scene.path
    )
    return found


def heard(visitor, last):
    """All that pages are told which last knew each number of the journal."""
    found = []
    for number in range(last):
        with visitor.listening(after=number) as following:
            found.append(following())
            while found[-1][0] != last:
                found.append(following())
    return found


def numbers(answer):
    """All numbers in an answer that are no times."""
    if isinstance(answer, bytes):
        if answer.startswith(PICTURES):
            return
        header, layers = unpacked(answer)
        yield from numbers(header)
        for layer in layers:
            yield from layer.tolist()
    elif isinstance(answer, dict):
        for name, one in answer.items():
            if name not in OWN:
                yield from numbers(one)
    elif isinstance(answer, list):
        for one in answer:
            yield from numbers(one)
    elif isinstance(answer, (int, float)):
        yield answer


def assert_nothing(answers):
    """Nothing of the forgotten is named, and no number is one of its values, or a difference."""
    for question, (_, answer) in answers.items():
        text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        assert NAME.encode() not in text.lower(), (question, answer)
        near = [one for one in numbers(answer) if abs(abs(one) - VALUE) < REACH]
        assert near == [], (question, answer)


def assert_same(got, want, bound, where=()):
    """Both answers say the same, but for rounding and for what is each studio's own."""
    if isinstance(want, bytes) and not want.startswith(PICTURES):
        (got, layers), (want, others) = unpacked(got), unpacked(want)
        for one, other in zip(layers, others, strict=True):
            single = tolerance(np.eye(1), dtype=np.float32) * abs(other).max()
            assert_within(one, other, bound + single)
    if isinstance(want, dict):
        assert got.keys() == want.keys(), where
        for name in want.keys() - OWN:
            assert_same(got[name], want[name], bound, (*where, name))
    elif isinstance(want, list):
        assert len(got) == len(want), where
        for i, (one, other) in enumerate(zip(got, want, strict=True)):
            assert_same(one, other, bound, (*where, i))
    elif isinstance(want, float):
        assert_within(got, want, bound * max(abs(want), 1.0))
    else:
        assert got == want, where


def forget(how, visitor, scene):
    if how == "ids":
        status, answer = visitor.edit(
            "the key of the end", verb="forget", ids=scene.gone, confirm=True
        )
        assert (status, answer["ids"], answer["warning"]) == (200, [], "")
        assert visitor.edit("the key of the end", verb="forget", ids=scene.gone, confirm=True) == (
            200,
            answer,
        )
    elif how == "contributors":
        with knowmore.open(scene.path) as store:
            store.forget([f"{NAME} 1", f"{NAME} 2", f"{NAME} 3", f"{NAME} 4"])
        for name in (f"{NAME} contributor", "studio"):
            assert visitor.edit(verb="forget", contributor=name, confirm=True)[0] == 200
    else:
        command = [sys.executable, "-m", "knowmore", "forget", str(scene.path)]
        subprocess.run([*command, *map(str, scene.gone)], check=True, capture_output=True)


ESTIMATORS = {
    "gp": lambda: GPClassifier(noise=0.05),
    "linear": lambda: LinearGPClassifier(noise=0.05),
}


@pytest.mark.slow(fast=["2-gp-ids", "4-linear-contributors"])
@pytest.mark.parametrize("how", ["ids", "contributors", "another process"])
@pytest.mark.parametrize(("width", "kind"), [(2, "gp"), (4, "gp"), (4, "linear")])
def test_no_route_tells_anything_of_the_forgotten(tmp_path, how, width, kind):
    scene = Scene(tmp_path, width, ESTIMATORS[kind]())
    with studying(scene.path, scene.pool(secret=True)) as door:
        visitor = enter(door)
        before = visitor.get("/api/state")["number"]
        done = scene.teach(visitor)
        # There is something to be found: it is asked for by every route.
        told = said(visitor, scene)
        named = [one for one, (_, answer) in told.items() if NAME in str(answer).lower()]
        values = [one for _, answer in told.values() for one in numbers(answer)]
        assert any(abs(abs(one) - VALUE) < REACH for one in values)
        assert len({path.partition("?")[0] for _, path, _ in named}) >= 6
        forget(how, visitor, scene)
        after = said(visitor, scene)
        assert_nothing(after)
        last = visitor.get("/api/state")["number"]
        assert NAME not in str(heard(visitor, last)).lower()
        assert last > before
        # An edit that comes again is answered and not made again.
        for key, body in done:
            status, answer = visitor.edit(key, **body)
            assert (status, NAME in str(answer)) == (200, False), answer
        assert visitor.edit(done[0][0], verb="undo")[0] == 422
        assert visitor.get("/api/state")["number"] == last
    with studying(scene.path, scene.pool(secret=False)) as door:
        fresh = said(enter(door), scene)
    bound = tolerance(scene.condition)
    for question, (status, answer) in fresh.items():
        assert after[question][0] == status, question
        assert_same(after[question][1], answer, bound, question)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["ids", "contributor", "another process"])
def test_no_picture_of_the_forgotten_is_shown(tmp_path, how):
    path = fruit(tmp_path)

    def bring(seed):
        kind = {"Content-Type": "application/octet-stream"}
        where = f"/api/pictures?name={NAME}{seed}.png"
        status, answer, _ = visitor("POST", where, picture(SKY, seed), kind)
        assert status == 200, answer
        return answer["picture"]

    with studying(path) as door:
        visitor = enter(door)
        scene = SimpleNamespace(path=path, kept=visitor.get("/api/plane/points")["ids"])
        first, second, third = map(bring, (1, 2, 3))
        assert visitor.edit(verb="learn", pictures=[first, second], y=f"{NAME} sky")[0] == 200
        # What is undone waits again, and the file still knows it.
        assert visitor.edit(verb="learn", pictures=[third], y=f"{NAME} sky")[0] == 200
        assert visitor.edit(verb="undo")[0] == 200
        waiting = [one["picture"] for one in visitor.get("/api/desk")["waiting"]]
        assert waiting == [third]
        shown = visitor("GET", f"/api/thumbnail?picture={third}")[1]
        assert shown.startswith(PICTURES)
        told = said(visitor, scene)
        assert any(NAME in str(answer) for _, answer in told.values())
        ids = [f"{NAME}{i}.png" for i in (1, 2, 3)]
        if how == "ids":
            assert visitor.edit(verb="forget", ids=ids, confirm=True)[0] == 200
        elif how == "contributor":
            assert visitor.edit(verb="forget", contributor="studio", confirm=True)[0] == 200
        else:
            with knowmore.open(path) as store:
                assert store.forget(ids).count == 3
        assert_nothing(said(visitor, scene))
        for number in (first, second, third):
            for question in ("thumbnail", "explain"):
                assert visitor("GET", f"/api/{question}?picture={number}")[0] == 422
        # It may be brought again: that is another one.
        assert bring(1) > third


# -- what is kept in memory ----------------------------------------------------------------------


def states(studio, gone, stored=True):
    """Ask for all that a studio keeps of a state; references to that state and its examples."""
    past = None
    grid, other = (FieldGrid(Bounds(-1, 1, -1, 1), side, side) for side in (8, 12))
    now = studio.now()
    studio.state()
    for one in (grid, other):
        studio.field(one)
    if stored:
        past = weakref.ref(studio.at(now, now.number))
        now.once(ExampleTable)
    found = [weakref.ref(now), weakref.ref(now.examples)]
    assert set(gone) <= set(now.examples.names)
    return found if past is None else [*found, past]


@pytest.mark.slow
def test_no_state_that_held_it_is_kept(tmp_path):
    scene = Scene(tmp_path, 2, ESTIMATORS["gp"]())
    gone = [f"{NAME} 1"]
    with knowmore.open(scene.path) as store:
        studio = Studio(store)
        found = states(studio, gone)
        studio.edit("a key of the test", ForgetBody(verb="forget", ids=gone, confirm=True))
        gc.collect()
        assert [one() for one in found] == [None, None, None]
        # The same if another process forgets.
        found = states(studio, [f"{NAME} 2"])
        with knowmore.open(scene.path) as other:
            other.forget(f"{NAME} 2")
        studio.now()
        gc.collect()
        assert [one() for one in found] == [None, None, None]


@pytest.mark.slow
def test_no_value_that_held_it_is_kept_in_a_notebook():
    scene = rows(20, 2)
    clf = GPClassifier(RBF(0.5), noise=0.05).fit(scene, np.arange(20) % 2)
    studio = Studio(Memory(clf))
    before = states(studio, [3], stored=False)
    studio.edit("the first key", ForgetBody(verb="forget", ids=[3], confirm=True))
    gc.collect()
    assert [one() for one in before] == [None, None]
    # A cell forgets.
    before = states(studio, [4], stored=False)
    clf.remove([4])
    studio.now()
    gc.collect()
    assert [one() for one in before] == [None, None]
