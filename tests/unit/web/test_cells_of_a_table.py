"""A model of a table in the studio and the service: cells by the names of their columns."""

from __future__ import annotations

import pytest
from served import serving
from studied import enter, studying

import knowmore
from knowmore.workbench import LearnOptions, learn, pool_for

NAMES = ["island", "mass", "ringed"]
ROWS = [
    "a,Biscoe,4200,true,x",
    "b,Dream,NA,false,y",
    "c,Dream,3700,true,x",
    "d,,3900,true,y",
    "e,Biscoe,4300,false,x",
    "f,Dream,3600,false,y",
]
POOL = "id,island,mass,ringed\np,Anvers,4000,true\nq,Dream,,false\nr,Biscoe,heavy,true\n"


@pytest.fixture
def path(tmp_path):
    source = tmp_path / "table.csv"
    source.write_text("\n".join(["id,island,mass,ringed,label", *ROWS]) + "\n")
    learn(LearnOptions(tmp_path / "m.km", str(source)), lambda *_: None)
    return tmp_path / "m.km"


@pytest.fixture
def visitor(path, tmp_path):
    (tmp_path / "pool.csv").write_text(POOL)
    with knowmore.open(path) as store:
        pool = pool_for(store, str(tmp_path / "pool.csv"))
    assert (len(pool.ids), pool.skipped) == (2, 1)
    with studying(path, pool, pool_for) as door:
        yield enter(door)


def test_the_table_shows_cells_and_sorts_them(visitor):
    status, found = visitor.post("/api/rows", {})
    assert status == 200
    assert found["columns"] == NAMES
    assert found["features"] == 3
    assert {one["id"]: one["values"] for one in found["rows"]}["b"] == ["Dream", None, False]
    for sort, ids in ((0, "daebcf"), (1, "bfcdae")):
        status, found = visitor.post("/api/rows", {"sort": sort})
        assert [one["id"] for one in found["rows"]] == [*ids]
    assert visitor.post("/api/rows", {"sort": 3})[0] == 422


def test_suspects_have_cells(visitor):
    found = visitor.get("/api/suspects")
    assert all([*one["shown"]["values"]] == NAMES for one in found["suspects"])


def test_a_question_shows_cells_and_its_answer_brings_a_level(visitor, path):
    for _ in range(2):
        status, found = visitor.post("/api/question", {"skip": []})
        assert status == 200, found
        question = found["question"]
        assert question["shown"]["values"] in (
            {"island": "Anvers", "mass": 4000.0, "ringed": True},
            {"island": "Dream", "mass": None, "ringed": False},
        )
        status, found = visitor.edit(verb="answer", id=question["id"], y="x")
        assert status == 200, found
    status, found = visitor.post("/api/question", {"skip": []})
    assert (status, found["question"]) == (200, None)
    with knowmore.open(path) as store:
        assert "island=Anvers" in store.table.features
        assert store.cells(["p"]) == [("Anvers", 4000.0, True)]
        assert [one.verb for one in store.log()] == ["learn", "add", "add"]
        assert store.verify().ok


def test_a_row_is_added_by_its_cells_and_not_by_a_place(visitor, path):
    cells = {"island": "Palmer", "mass": "4100", "ringed": None}
    status, found = visitor.edit(verb="add", cells=[cells], y=["y"])
    assert status == 200, found
    with knowmore.open(path) as store:
        assert store.cells(store.ids_[-1:]) == [("Palmer", 4100.0, None)]
    for body, words in (
        ({"plane": [[0.1, 0.2]]}, "a place in the plane has no cells"),
        ({"cells": [{"island": "x"}]}, "Row 0 lacks 'mass', 'ringed'"),
        ({"cells": [cells | {"mass": "big"}]}, "Row 0, column 'mass': 'big' is not a number"),
    ):
        status, found = visitor.edit(verb="add", y=["y"], **body)
        assert status == 422
        assert words in found["error"]
    status, found = visitor.edit(verb="undo")
    assert status == 200
    assert visitor.get("/api/state")["n"] == 6


def test_the_field_follows_an_edit_that_changes_the_columns(visitor):
    before = visitor.field()[0]["number"]
    visitor.edit(verb="add", cells=[dict(zip(NAMES, ["Palmer", 1, True], strict=True))], y=["y"])
    assert visitor.field()[0]["number"] > before
    visitor.edit(verb="forget", ids=["a", "b"], confirm=True)
    assert visitor.get("/api/state")["columns"][0] == "island=Biscoe"
    visitor.field()


def test_the_service_answers_rows_of_cells(path):
    with serving(path) as ask:
        row = {"island": "Biscoe", "mass": 4250, "ringed": True, "more": "text"}
        status, found = ask.post(
            "/predict", {"rows": [row, row | {"island": "Moon", "mass": None}]}
        )
        assert status == 200
        assert next(one["label"] for one in found["predictions"]) == "x"
        status, found = ask.post("/predict", {"rows": [row | {"mass": "big"}]})
        assert (status, found["detail"]) == (422, "Row 0, column 'mass': 'big' is not a number.")


def test_no_rows_and_numbers_beyond_all_floats(path):
    huge = {"island": "Dream", "mass": 10**400, "ringed": True}
    with serving(path) as ask:
        assert ask.post("/predict", {"rows": []}) == (200, {"version": 1, "predictions": []})
        status, body = ask.post("/predict", {"rows": [huge]})
        assert status == 422
        assert body["detail"].startswith("Row 0, column 'mass': 1000")
        assert body["detail"].endswith("is too large for a number.")
