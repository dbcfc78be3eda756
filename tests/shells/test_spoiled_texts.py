"""Spoiled texts: each error names file, place and remedy, and the model stays as it was."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from texts import write_table, written
from typer.testing import CliRunner

from knowmore.cli.app import app
from knowmore.errors import KnowmoreError

HEAD = "body,kind\n"
LONG = "x" * 10_000_000
ROLES = ("--text", "body", "--label", "kind")

# Name, contents, and what the error says.
TABLES = [
    ("empty.csv", "", "'empty.csv' is empty. Its first line must name the columns."),
    ("blank.csv", "\n\n", "'blank.csv' is empty. Its first line must name the columns."),
    ("head.csv", HEAD, "'head.csv' has no rows below its first line."),
    (
        "latin.csv",
        HEAD.encode() + b"caf\xe9,spam\n",
        "is not UTF-8: it has the byte 0xe9. Save it as",
    ),
    ("wide.csv", (HEAD + "a,spam\n").encode("utf-16"), "is not UTF-8: it has the byte 0xff"),
    ("zip.csv", b"PK\x03\x04\x14\x00\x08\xff\xfe", "is not UTF-8: it has the byte 0xff"),
    ("quote.csv", HEAD + '"never closed,spam\n', "not CSV, unexpected end of data. Is a quotation"),
    (
        "more.csv",
        HEAD + "a,b,spam\n",
        "line 2: it has 3 values, but the first line names 2 columns",
    ),
    ("less.csv", HEAD + "a\n", "line 2: it has 1 values, but the first line names 2 columns."),
    ("text.csv", "words,kind\na b,spam\n", "has no column 'body' for --text. There are 'words',"),
    ("label.csv", "body,sort\na b,spam\n", "has no column 'kind' for --label. There are 'body',"),
    ("twice.csv", "body,body,kind\na,b,spam\n", "has two columns 'body'. Give each a name of its"),
    (
        "no.csv",
        HEAD + "a b,\n",
        "'no.csv', line 2: there is no label. Fill it in, or leave the row",
    ),
    ("long.csv", f"{HEAD}{LONG},spam\n", "line 2: a cell has more than 131,072 characters."),
    ("none.jsonl", "", "There are no lines in 'none.jsonl'. Give a JSON object on each."),
    ("cut.jsonl", '{"body": "a", "kind"', "'cut.jsonl', line 1: not JSON,"),
    (
        "list.jsonl",
        '["a", "spam"]\n',
        "'list.jsonl', line 1: not a JSON object. Write {...} on each",
    ),
    ("word.jsonl", '"Win money"\n', "'word.jsonl', line 1: not a JSON object. Write {...} on each"),
    ("five.jsonl", '{"body": 5, "kind": "x"}\n', "line 1, column 'body': 5 is not text. Name the"),
    ("true.jsonl", '{"body": true, "kind": "x"}\n', "line 1, column 'body': True is not text."),
    ("in.jsonl", '{"body": {"a": 1}, "kind": "x"}\n', "column 'body': {'a': 1} is not text."),
    ("key.jsonl", '{"text": "a", "kind": "x"}\n', "has no column 'body' for --text. There are"),
    (
        "later.jsonl",
        '{"body": "a", "kind": "x"}\n{"kind": "x"}\n',
        "'later.jsonl', line 2: there is no 'body', which the first line has.",
    ),
    ("null.jsonl", '{"body": "a", "kind": null}\n', "line 1: there is no label. Fill it in, or"),
    ("deep.jsonl", "[" * 100_000, "'deep.jsonl', line 1: not JSON"),
    ("byte.jsonl", b'{"body": "caf\xe9", "kind": "x"}\n', "'byte.jsonl', line 1: not JSON,"),
    ("junk.parquet", b"PAR1 junk", "'junk.parquet' cannot be read as Parquet:"),
    ("junk.npz", b"junk", "'junk.npz' holds arrays of numbers, so it has no column of texts."),
    ("mails.xls", b"junk", "'mails.xls' cannot be read: its name ends in '.xls'."),
    ("away.csv", None, "There is no file or folder 'away.csv'. Check the path."),
]
# Texts that are left out while the others are learnt, and why.
SKIPPED = [
    ("", "has no text."),
    (" \t ", "has no text."),
    (None, "has no text."),
    ("\u3000", "has no text."),
    ("a\0b", "has a NUL character at 1, so it is no text."),
    ("\ud800 money", "has half a character (a surrogate) at 0. Write it as UTF-8."),
    ("so \udfff", "has half a character (a surrogate) at 3. Write it as UTF-8."),
    (LONG, "has 10,000,000 characters, more than the 1,000,000 allowed. Divide it."),
]
# Files of a folder that are left out, and why.
FILES = [
    (b"", "has no text."),
    (b"\xef\xbb\xbf", "has no text."),
    (b"\n\n", "has no text."),
    (b"caf\xe9", "is not UTF-8: byte 3 is 0xe9. Save it as UTF-8."),
    ("Win money".encode("utf-16"), "is not UTF-8: byte 0 is 0xff. Save it as UTF-8."),
    (b"\x89PNG\r\n\x1a\n\x00", "is not UTF-8: byte 0 is 0x89. Save it as UTF-8."),
    (b"GIF89a\x00\x00", "has a NUL character at 6, so it is no text."),
    (b"a" * 1_000_001, "has 1,000,001 characters, more than the 1,000,000 allowed. Divide it."),
    (b"a" * 5_000_000, "has 5,000,000 bytes, more than 1,000,000 characters take. Divide it."),
    (b"\xed\xa0\x80", "is not UTF-8: byte 0 is 0xed. Save it as UTF-8."),
    ("link", "is a link that leads outside."),
    ("folder", "is not a file."),
]


@pytest.fixture(scope="module")
def bytes_of_a_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    table = write_table(folder / "mail.csv", *written(3))
    assert run("learn", folder / "m.km", table, *ROLES).exit_code == 0
    return (folder / "m.km").read_bytes()


@pytest.fixture
def model(bytes_of_a_model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "m.km"
    path.write_bytes(bytes_of_a_model)
    return path


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.parametrize(("name", "contents", "message"), TABLES, ids=[one[0] for one in TABLES])
def test_a_spoiled_table_changes_nothing(model, tmp_path, name, contents, message):
    if contents is not None:
        data = contents if isinstance(contents, bytes) else contents.encode()
        (tmp_path / name).write_bytes(data)
    before = model.read_bytes()
    with pytest.raises(KnowmoreError) as caught:
        run("learn", model, name, *ROLES)
    assert message in str(caught.value)
    assert model.read_bytes() == before
    with pytest.raises(KnowmoreError):
        run("learn", "new.km", name, *ROLES)
    assert not (tmp_path / "new.km").exists()


@pytest.mark.parametrize(("text", "why"), SKIPPED, ids=[repr(one[0])[:9] for one in SKIPPED])
def test_a_text_that_cannot_be_used_is_left_out_by_its_line(model, tmp_path, text, why):
    rows = [{"body": one, "kind": "spam"} for one in ("Win money", text)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = run("learn", model, "a.jsonl")
    assert result.exit_code == 3
    assert result.stderr.splitlines()[0] == f"Skipped: 'a.jsonl, line 2' {why}"
    assert result.stdout.startswith("1 added, 0 skipped, 0 replaced, 0 vanished, 1 unreadable.")


def test_a_parquet_of_numbers_is_no_table_of_texts(model, tmp_path):
    pq.write_table(pa.table({"body": [1.5], "kind": ["spam"]}), tmp_path / "a.parquet")
    before = model.read_bytes()
    with pytest.raises(KnowmoreError, match=r"row 0, column 'body': 1.5 is not text. Name the col"):
        run("learn", model, "a.parquet")
    assert model.read_bytes() == before


@pytest.mark.parametrize(("contents", "why"), FILES, ids=[one[1][:30] for one in FILES])
def test_a_file_that_cannot_be_used_is_left_out_by_its_name(model, tmp_path, contents, why):
    folder = tmp_path / "mails/spam"
    folder.mkdir(parents=True)
    (folder / "good.txt").write_text("Win money")
    if contents == "link":
        (tmp_path / "outside").write_text("Win money")
        (folder / "bad.txt").symlink_to(tmp_path / "outside")
    elif contents == "folder":
        (folder / "bad.txt").symlink_to(folder / "nowhere.txt")
    else:
        (folder / "bad.txt").write_bytes(contents)
    result = run("learn", model, "mails")
    assert result.exit_code == 3
    assert f"Skipped: 'spam/bad.txt' {why}" in result.stderr.splitlines()
    assert result.stdout.startswith("1 added, 0 skipped, 0 replaced, 0 vanished, 1 unreadable.")


@pytest.mark.parametrize("name", ["mails/alone.txt", "mails/spam/a.md"])
def test_a_folder_without_a_usable_text(model, tmp_path, name):
    (tmp_path / "mails/spam").mkdir(parents=True)
    (tmp_path / name).write_text("Win money")
    before = model.read_bytes()
    with pytest.raises(KnowmoreError, match=r"There is no text in 'mails'\..* Give a folder of"):
        run("learn", model, "mails")
    assert model.read_bytes() == before


def test_a_table_of_empty_texts_teaches_nothing(model, tmp_path):
    (tmp_path / "a.csv").write_text(HEAD + '"",spam\n" ",work\n')
    before = model.read_bytes()
    result = run("learn", model, "a.csv")
    assert result.exit_code == 3
    assert result.stdout.startswith("0 added, 0 skipped, 0 replaced, 0 vanished, 2 unreadable.")
    assert model.read_bytes() == before


def test_texts_of_one_class_are_learnt_and_others_are_unknown(model, tmp_path):
    (tmp_path / "a.csv").write_text(HEAD + "Win money,spam\nCheap pills,spam\n")
    assert run("learn", "one.km", "a.csv", *ROLES).exit_code == 0
    found = json.loads(run("predict", "one.km", "Win cheap money", "--json").stdout)
    assert found["label"] == "spam"
