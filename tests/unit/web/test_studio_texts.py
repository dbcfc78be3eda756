"""The studio of a model of texts: texts are shown, searched, explained by words, and answered."""

from __future__ import annotations

import json

import pytest
from studied import enter, studying
from texts import write_table, written
from tolerance import rounded

import knowmore
from knowmore.workbench import (
    LearnOptions,
    UnlabelledPool,
    explain_words,
    learn,
    pool_for,
    texts_of,
)

HOSTILE = "<script>alert(1)</script> cheap pills"


@pytest.fixture
def path(tmp_path):
    texts, labels = written(60)
    texts[1], labels[0], labels[70], labels[130] = HOSTILE, "home", "spam", "work"
    table = write_table(tmp_path / "mail.csv", texts, labels)
    options = LearnOptions(tmp_path / "m.km", str(table), "kind", "nr", text="body")
    learn(options, lambda share, step: None)
    return options.model


@pytest.fixture
def visitor(path):
    with studying(path) as door:
        yield enter(door)


def test_a_suspect_is_shown_by_its_text_and_words(visitor, path):
    found = visitor.get("/api/suspects", limit=50)["suspects"]
    assert found
    assert {one["shown"]["kind"] for one in found} == {"text"}
    one = found[0]
    with knowmore.open(path) as store:
        assert texts_of(store, [one["id"]]) == [one["shown"]["text"]]
        told = visitor.get("/api/words", id=json.dumps(one["id"]))
        store.remove([one["id"]])
        expected = explain_words(store, one["shown"]["text"])
    assert told["label"] == expected.label
    assert told["score"] == rounded(expected.score)
    assert {each["word"] for each in told["words"]} == {each.word for each in expected.words}
    begin, end = told["words"][0]["places"][0]
    assert one["shown"]["text"][begin:end].casefold() == told["words"][0]["word"]


def test_the_table_shows_and_searches_texts(visitor):
    status, found = visitor.post("/api/rows", {"search": "<SCRIPT>"})
    assert status == 200
    (row,) = found["rows"]
    assert (row["text"], row["values"]) == (HOSTILE, [])
    assert found["columns"] == []


def test_an_answer_keeps_its_text(path, tmp_path):
    table = write_table(tmp_path / "new.csv", ["Dinner with mother"], [""], first=900)
    with knowmore.open(path) as store:
        pool = pool_for(store, str(table))
    assert isinstance(pool, UnlabelledPool)
    with studying(path, pool=pool) as door:
        visitor = enter(door)
        status, found = visitor.post("/api/question", {"skip": []})
        assert status == 200
        assert found["question"]["shown"]["text"] == "Dinner with mother"
        assert visitor.edit(verb="answer", id="t900", y="home")[0] == 200
    with knowmore.open(path) as store:
        assert texts_of(store, ["t900"]) == ["Dinner with mother"]
