"""One row on the command line: JSON, for models of texts, of tables and of numbers."""

from __future__ import annotations

import json

import pytest
from texts import write_table, written
from typer.testing import CliRunner

from knowmore.cli.app import app
from knowmore.errors import InvalidInput, MissingData, UnknownId
from knowmore.images import image_folder
from knowmore.texts import text_folder

ANIMALS = "size,fur,kind\n1,long,cat\n2,long,cat\n8,short,dog\n9,short,dog\n"
SIZES = "size,weight,kind\n1,2,cat\n2,3,cat\n8,9,dog\n9,9,dog\n"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def mail(here):
    write_table(here / "mail.csv", *written(4))
    run("learn", "mail.km", "mail.csv", "--text", "body", "--label", "kind", "--id", "nr")
    return "mail.km"


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def answer(*words):
    return json.loads(run("predict", *words, "--json").stdout)


@pytest.mark.parametrize("word", ['{"body": "Money"}', '{"text":"Money"}', ' { "text": "Money" }'])
def test_a_text_of_one_word_is_json(mail, word):
    _, line = run("predict", mail, word).stdout.splitlines()
    assert line.split()[1] == "spam"
    assert line.endswith("  Money")
    assert json.loads(run("explain", mail, word, "--json").stdout)["words"][0]["word"] == "money"


@pytest.mark.parametrize("text", ["[New] Win money now", "{name}, win money now", "[1] see below"])
def test_a_text_may_begin_with_a_bracket(mail, text):
    assert run("predict", mail, text).stdout.splitlines()[1].endswith(f"  {text}")


def test_a_long_row_is_no_name_of_a_file(mail):
    text = "win money " * 1000
    assert answer(mail, json.dumps({"text": text}))["label"] == "spam"


@pytest.mark.parametrize("table", [ANIMALS, SIZES])
def test_an_object_is_a_row_of_a_table(here, table):
    (here / "a.csv").write_text(table)
    run("learn", "a.km", "a.csv", "--label", "kind")
    row = dict(zip(("size", "fur" if "fur" in table else "weight"), (9, "short"), strict=True))
    row |= {"weight": 9} if "weight" in row else {}
    assert answer("a.km", json.dumps(row))["label"] == "dog"
    assert answer("a.km", json.dumps(row).replace(" ", ""))["label"] == "dog"
    assert run("novel", "a.km", json.dumps(row), "--all").exit_code in (0, 1)


def test_a_list_is_a_row_of_numbers(here):
    (here / "a.jsonl").write_text(
        '{"features": [1, 2], "label": "cat"}\n{"features": [9, 9], "label": "dog"}\n'
    )
    run("learn", "a.km", "a.jsonl")
    assert [answer("a.km", word)["label"] for word in ("[1,2]", " [9, 8]")] == ["cat", "dog"]
    assert [
        json.loads(line)["label"]
        for line in run("predict", "a.km", "[1,2]", "[9, 8]", "--json").stdout.splitlines()
    ] == ["cat", "dog"]


@pytest.mark.parametrize(
    ("word", "kind", "message"),
    [
        ('{"text": hello}', InvalidInput, "is not JSON: Expecting value"),
        ('["hello"]', InvalidInput, "is a list, and the model has learnt texts. Give an object: {"),
        ('{"length": 5}', InvalidInput, "'the row' has no column 'body'."),
        ('{"text": 5}', InvalidInput, "column 'text': 5 is not text."),
        (
            "hello",
            MissingData,
            "'hello'. Check the path. A text of one word is JSON: {\"body\": ..",
        ),
    ],
)
def test_what_is_no_row_of_a_model_of_texts(mail, word, kind, message):
    with pytest.raises(kind) as caught:
        run("predict", mail, word)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "mail.km", ""),
        ("novel", "mail.km", ""),
        ("suggest", "mail.km", ""),
        ("learn", "mail.km", ""),
        ("init", "new.km", "--kind", "one-shot", "--supports", ""),
    ],
)
def test_an_empty_word_is_no_source(mail, words):
    with pytest.raises(InvalidInput, match=r"is empty. Give one; \. is this folder\.$"):
        run(*words)


@pytest.mark.parametrize("words", [("studio", ""), ("features", "", "-o", "new.npz"), ("sums", "")])
def test_an_empty_word_is_no_path(words):
    result = run(*words)
    assert result.exit_code == 2
    assert "empty" in result.stderr


@pytest.mark.parametrize("read", [text_folder, image_folder])
def test_a_folder_has_a_name_in_python_too(read):
    with pytest.raises(InvalidInput, match="is empty"):
        read("")


def test_an_example_that_moved_is_found_by_the_name_of_its_file(here):
    for i, text in enumerate(written(4)[0]):
        folder = here / "mails" / ("food" if i == 6 else "law")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"t{i}.txt").write_text(text)
    run("learn", "m.km", "mails")
    with pytest.raises(UnknownId, match=r"Did you mean food/t6\.txt\?$"):
        run("forget", "m.km", "law/t6.txt")
    with pytest.raises(UnknownId, match=r"Did you mean law/t1\.txt\?$"):
        run("forget", "m.km", "law/t1.tx")
