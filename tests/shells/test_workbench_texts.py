"""Models of texts: a column of a table, folders of .txt files, and one text by itself."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from texts import write_table, written
from tolerance import rounded
from typer.testing import CliRunner

import knowmore
from knowmore.cli.app import app
from knowmore.errors import InvalidInput, UnknownId
from knowmore.web.answering import Answering
from knowmore.workbench import explain_words, one_row, pool_for, texts_of

TEXTS, LABELS = written()
FOREIGN = (
    "Xqv jjkw qqpf zzt",
    "Gr\u00f6\u00dfere V\u00f6gel fliegen s\u00fcdw\u00e4rts",
    "\u0421\u044a\u0435\u0448\u044c \u0435\u0449\u0451 \u0431\u0443\u043b\u043e\u043a",
    "!!! ???",
    "0123 4567",
)
ROLES = ("--text", "body", "--label", "kind")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def taught(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    table = write_table(folder / "mail.csv", TEXTS, LABELS)
    result = run("learn", folder / "mail.km", table, *ROLES, "--id", "nr")
    assert (result.exit_code, result.stdout) == (
        0,
        f"60 added, 0 skipped, 0 replaced, 0 vanished. {folder / 'mail.km'} holds 60 examples.\n",
    )
    assert result.stderr == "Ignored: 'length'. The model learns the texts of 'body' alone.\n"
    return folder


@pytest.fixture
def model(taught, here):
    shutil.copy(taught / "mail.km", here)
    shutil.copy(taught / "mail.csv", here)
    return here / "mail.km"


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def failed(*words):
    with pytest.raises(InvalidInput) as caught:
        run(*words)
    return str(caught.value)


def test_what_is_known_is_skipped_and_what_changed_is_replaced(model):
    assert "0 added, 60 skipped" in run("learn", model, "mail.csv").stdout
    write_table("mail.csv", ["A new agenda", *TEXTS[1:]], LABELS)
    assert "59 skipped, 1 replaced" in run("learn", model, "mail.csv").stdout
    with knowmore.open(model) as store:
        assert texts_of(store, ["t0", "t1"]) == ["A new agenda", TEXTS[1]]


def test_a_label_corrected_by_hand_stays(model):
    run("relabel", model, "t0", "home")
    assert "60 skipped, 0 replaced" in run("learn", model, "mail.csv").stdout
    write_table("mail.csv", ["Cheap pills", *TEXTS[1:]], LABELS)
    run("learn", model, "mail.csv")
    with knowmore.open(model) as store:
        assert store.records(["t0"])[0].label == "home"


def test_a_table_a_file_of_lines_and_parquet_are_one(model, here):
    pairs = enumerate(zip(TEXTS, LABELS, strict=True))
    rows = [{"nr": f"t{i}", "body": text, "kind": label} for i, (text, label) in pairs]
    (here / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), here / "a.parquet")
    for name in ("a.jsonl", "a.parquet"):
        result = run("learn", model, name)
        assert "0 added, 60 skipped" in result.stdout
        run("learn", f"{name}.km", name, *ROLES, "--id", "nr")
        with knowmore.open(f"{name}.km") as other, knowmore.open(model) as store:
            assert np.array_equal(other.examples.X, store.examples.X)


def test_a_folder_of_texts_is_learnt_as_one_of_pictures(here):
    for i, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True)):
        (here / "mails" / label).mkdir(parents=True, exist_ok=True)
        (here / "mails" / label / f"{i}.txt").write_text(text)
    (here / "mails/spam/bad.txt").write_bytes(b"caf\xe9")
    (here / "mails/alone.txt").write_text("in no folder")
    result = run("learn", "m.km", "mails")
    assert result.exit_code == 3
    assert result.stdout.startswith("60 added, 0 skipped, 0 replaced, 0 vanished, 2 unreadable.")
    assert result.stderr.splitlines() == [
        "Skipped: 'alone.txt' is in no folder, so it has no label.",
        "Skipped: 'spam/bad.txt' is not UTF-8: byte 3 is 0xe9. Save it as UTF-8.",
    ]
    found = json.loads(run("predict", "m.km", "mails/spam/3.txt", "--json").stdout)
    assert (found["id"], found["label"]) == ("3.txt", "spam")
    # A file in another folder has another label.
    shutil.move("mails/spam/3.txt", "mails/home/3.txt")
    result = run("learn", "m.km", "mails", "--sync")
    assert "1 moved" in result.stdout
    with knowmore.open("m.km") as store:
        assert store.records(["home/3.txt"])[0].label == "home"
        assert texts_of(store, ["home/3.txt"]) == [TEXTS[3]]


def test_a_model_of_texts_says_so(model):
    with knowmore.open(model) as store:
        assert repr(store.estimator.kernel) == "Matern(length_scale=1, nu=1.5)"
        assert store.notes["text"] == "body"
    assert json.loads(run("status", model, "--json").stdout)["texts"]["letters"] == 1024


def test_one_text_is_asked_about_in_quotation_marks(model):
    result = run("predict", model, "Win money now", "The minutes of the meeting")
    assert [line.split()[:2] for line in result.stdout.splitlines()] == [
        ["id", "label"],
        ["0", "spam"],
        ["1", "work"],
    ]
    assert result.stdout.splitlines()[1].endswith("  Win money now")


def test_long_texts_are_shortened_and_hostile_ones_are_harmless(model):
    shown = run("predict", model, "\x1b[2J money " * 50).stdout.splitlines()[1]
    assert "\x1b" not in shown
    assert shown.endswith("\\x1b[2J money \\x1b[2J money \\...")


def test_json_names_the_text(model):
    with knowmore.open(model) as store:
        by_name, by_usual, alone = (
            one_row(store, word)
            for word in ('{"body": "cheap pills"}', '{"text": "cheap pills"}', "cheap pills")
        )
    assert np.array_equal(by_name, by_usual)
    assert np.array_equal(by_name, alone)


def test_texts_are_shown_where_examples_are(model, here):
    texts, labels = written(60)
    labels[0] = "home"
    run("learn", model, write_table("more.csv", texts, labels), "--sync")
    found = json.loads(run("suspects", model, "--json").stdout)
    assert found
    assert all(one["text"] == texts[int(one["id"][1:])] for one in found)
    assert f"  {found[0]['text'][:50]}" in run("suspects", model).stdout
    given = {"t500": "Dinner with the children", "t501": "zzx qqv jjk"}
    write_table("new.csv", given.values(), ["", ""], first=500)
    for command in (["suggest"], ["novel", "--all"]):
        rows = json.loads(run(*command, model, "new.csv", "--json").stdout)
        assert {row["id"]: row["text"] for row in rows} == given
    with knowmore.open(model) as store:
        pool = pool_for(store, "new.csv")
        assert pool.texts == given
        assert pool.without(["t500"]).texts == {"t501": "zzx qqv jjk"}


def test_an_example_takes_another_text(model):
    run("replace", model, "t0", "The agenda of the meeting")
    with knowmore.open(model) as store:
        assert texts_of(store, ["t0"]) == ["The agenda of the meeting"]
        (row,) = store.examples.X[store.examples.rows(("t0",))]
        assert np.array_equal(row, one_row(store, "The agenda of the meeting")[0])


def test_a_forgotten_text_is_nowhere_in_the_file(model):
    run("replace", model, "t0", "Sesquipedalian obfuscation everywhere")
    assert b"Sesquipedalian" in model.read_bytes()
    assert run("forget", model, "t0", "--yes").exit_code == 0
    assert b"Sesquipedalian" not in model.read_bytes()
    assert TEXTS[0].encode() not in model.read_bytes()
    assert run("verify", model).exit_code == 0


def test_texts_without_a_known_word_are_unknown(model):
    fresh, labels = written(30, seed=1)
    write_table("fresh.csv", fresh, labels)
    answers = map(json.loads, run("predict", model, "fresh.csv", "--json").stdout.splitlines())
    # More than one in twenty: the threshold comes from few examples.
    assert sum(one["unknown"] for one in answers) <= 15
    for text in FOREIGN:
        asked = json.dumps({"text": text})
        assert json.loads(run("predict", model, asked, "--json").stdout)["unknown"], text


def test_the_effect_of_a_word_is_the_score_less_the_score_without_it(model):
    text = "Please win the money, and the cake"
    with knowmore.open(model) as store:
        found = explain_words(store, text)
        estimator = store.estimator
        c = estimator.classes_.tolist().index(found.label)

        def score(words):
            return estimator.decision_function(one_row(store, words))[0, c]

        assert found.score == rounded(score(text))
        effects = {one.word: one for one in found.words}
        assert list(effects) == sorted(effects, key=lambda word: -abs(effects[word].effect))
        without = score("Please win  money, and  cake")
        assert effects["the"].score_without == rounded(without)
        assert effects["the"].effect == rounded(found.score - without)
        assert effects["the"].places == ((11, 14), (26, 29))
        assert len(effects) == 6


def test_words_are_explained_on_the_command_line(model):
    found = json.loads(run("explain", model, "Win the money", "--json").stdout)
    assert found["label"] == "spam"
    assert {one["word"] for one in found["words"]} == {"win", "the", "money"}
    shown = run("explain", model, "t0", "-n", 2, "--label", "work").stdout.splitlines()
    assert shown[0].startswith("work: score -")
    assert shown[1].split() == ["word", "count", "effect", "score_without"]
    assert len(shown) == 4
    assert run("explain", model, "t0", "--by", "examples").stdout.splitlines()[1].startswith("id")
    with pytest.raises(UnknownId, match=r"'t99' is neither the id of an example nor a file, and"):
        run("explain", model, "t99")


def test_words_need_a_model_of_texts(here):
    (here / "n.csv").write_text("a,label\n1,x\n2,y\n3,x\n")
    run("learn", "n.km", "n.csv")
    message = failed("explain", "n.km", "[1]", "--by", "words")
    assert message == "The model has learnt no texts, so it has no words to explain."


def test_a_service_takes_texts(model):
    with knowmore.open(model) as store:
        answering = Answering(store, 0.05)
        said = answering(["Win money now", {"body": "Win money now"}, {"text": "Win money now"}])
        assert [one.label for one in said] == ["spam"] * 3
        assert said[0] == said[1] == said[2]
        for rows, message in (
            ([" "], "Row 0 has no text."),
            (["a", [1.0]], "Row 1 is no text, and the model has learnt texts."),
            (
                [{"length": 3}],
                "Row 0 has no 'body', only 'length', and the model has learnt texts.",
            ),
            ([{}], "Row 0 has no 'body', and the model has learnt texts."),
            (
                [{"body": 5}],
                "Row 0 is no text, and the model has learnt texts. Give a text, or an ",
            ),
            ([5], 'object: {"body": ...}.'),
        ):
            with pytest.raises(InvalidInput) as caught:
                answering(rows)
            assert message in str(caught.value)


def test_other_vectors_are_refused(model):
    with knowmore.open(model) as store:
        store.set_notes(texts=store.notes["texts"] | {"version": 0})
    message = failed("predict", model, "Win money")
    assert message.endswith("Install the version of knowmore that the model was made with.")


def test_texts_and_numbers_do_not_mix(model, here):
    np.savez(here / "n.npz", X=np.eye(4), y=np.array(["a", "b", "a", "b"]))
    message = failed("learn", model, "n.npz")
    assert message.startswith("The model has learnt texts, and 'n.npz' holds numbers.")
    message = failed("learn", "x.km", "n.npz", "--text", "body")
    assert message.startswith("'n.npz' holds arrays of numbers, so it has no column of texts.")
    (here / "n.csv").write_text("a,label\n1,x\n2,y\n")
    run("learn", "n.km", "n.csv")
    message = failed("learn", "n.km", "mail.csv", *ROLES)
    assert message.startswith("The model has learnt numbers, and 'mail.csv' holds texts.")


def test_texts_are_in_what_is_exported(model, here):
    run("export", model, "--sqlite", "out.db", "--table", "out.csv")
    with closing(sqlite3.connect(here / "out.db")) as database:
        rows = database.execute("SELECT text, label FROM examples").fetchall()
    assert rows == [*zip(TEXTS, LABELS, strict=True)]
    with open("out.csv", newline="") as file:
        table = [*csv.DictReader(file)]
    assert [(row["text"], row["label"]) for row in table] == rows
    # So the table can be learnt.
    result = run("learn", "again.km", "out.csv", "--text", "text")
    assert result.stdout.startswith("60 added, 0 skipped")
    with knowmore.open(model) as store, knowmore.open("again.km") as other:
        assert np.array_equal(store.examples.X, other.examples.X)


def test_an_example_without_a_text_is_exported_with_none(model, here):
    with knowmore.open(model) as store:
        store.replace(["t0"], store.examples.X[1:2])
    run("export", model, "--sqlite", "out.db", "--table", "out.csv")
    with closing(sqlite3.connect(here / "out.db")) as database:
        (text,) = database.execute("SELECT text FROM examples WHERE id = 't0'").fetchone()
    with open("out.csv", newline="") as file:
        assert [row["text"] for row in csv.DictReader(file) if row["id"] == "t0"] == [""]
    assert text is None


def test_words_are_not_listed_against_a_class(model):
    for more in ((), ("--by", "words")):
        message = failed("explain", model, "Win money now", "--against", *more)
        assert message.endswith("of a text words are listed. Say --by examples.")
    result = run("explain", model, "Win money now", "--against", "--by", "examples")
    assert result.exit_code == 0


def test_what_is_skipped_is_listed_in_the_order_of_the_source(model, here):
    texts = ["" if i in (10, 99, 106) else f"Money {i}" for i in range(110)]
    write_table("more.csv", texts, ["spam"] * len(texts), first=100)
    lines = [f"'more.csv, line {i}'" for i in (12, 101, 108)]
    for command in ("predict", "learn"):
        result = run(command, model, "more.csv")
        said = [line for line in result.stderr.splitlines() if line.startswith("Skipped")]
        assert said == [f"Skipped: {line} has no text." for line in lines]
        assert result.exit_code == 3


def test_a_skipped_file_is_named_with_its_folder(model, here):
    for folder in ("old", "new"):
        (here / folder / "spam").mkdir(parents=True)
        (here / folder / "good.txt").write_text("Win money")
        (here / folder / "spam/bad.txt").write_bytes(b"caf\xe9")
    for name in ("old", "new"):
        assert f"Skipped: '{name}/spam/bad.txt' is not UTF-8" in run("predict", model, name).stderr
    said = run("predict", model, "old", "new", "old/spam").stderr
    assert [line.split()[1] for line in said.splitlines()] == [
        "'old/spam/bad.txt'",
        "'new/spam/bad.txt'",
        "'old/spam/bad.txt'",
    ]


def test_a_page_is_refused_and_scripts_say_what_they_take(model):
    message = failed("export", model, "--html", "a.html")
    assert "has learnt texts, and a page would ask for the" in message
    assert "knowmore.texts.TextVectors(**{'model': " in message
    result = run("export", model, "--javascript", "a.js")
    assert "a.js takes the vectors of texts: " in result.stderr


def test_models_of_other_vectors_are_not_merged(model):
    run("learn", "other.km", "mail.csv", *ROLES)
    with knowmore.open("other.km") as store:
        store.set_notes(texts=store.notes["texts"] | {"letters": 7})
    message = failed("merge", model, "other.km")
    assert "features of other.km are made from texts in another way." in message


def test_a_column_of_texts_is_told_from_one_that_is_no_number(here):
    texts = "".join(f"Win {n} pounds now,spam\n" for n in range(60))
    (here / "a.csv").write_text(f"body,label\n{texts}")
    message = failed("learn", "m.km", "a.csv")
    assert "'body' has 60 different texts in 60 rows, so they seem to be names or texts." in message
    assert "To learn texts: --text body." in message


def test_a_dry_run_counts_what_would_be_learnt(model):
    write_table("more.csv", ["A prize", "", "A cake"], ["spam", "spam", "home"], first=200)
    result = run("learn", model, "more.csv", "--dry-run")
    assert result.exit_code == 3
    assert result.stdout.startswith("Would be: 2 added, 0 skipped, 0 replaced, 0 vanished, 1 un")
    assert "Skipped: 'more.csv, line 3' has no text." in result.stderr


def test_a_text_as_json_and_one_that_begins_with_a_bracket(model):
    def said(word):
        (line,) = run("predict", model, word, "--json").stdout.splitlines()
        return {name: one for name, one in json.loads(line).items() if name != "id"}

    text = "Please win the money"
    assert said(json.dumps({"text": text})) == said(text)
    assert said('{"text":"money"}') != said('{"text":"cake"}')
    assert said(f"[{text}]") != said(text)
    assert said(f"{{{text}") != said(text)
    assert run("explain", model, f"[{text}] ").exit_code == 0


def test_a_long_text_is_explained_by_fewer_words(model, monkeypatch):
    """Each word takes another vector of the whole text, so all texts together have a limit."""
    text = " ".join(f"word{i}" for i in range(40))
    monkeypatch.setattr("knowmore.workbench.words._CHARACTERS", 10 * len(text) + 9)
    with knowmore.open(model) as store:
        found = explain_words(store, text)
        assert (len(found.words), found.left_out) == (10, 30)
        longer = explain_words(store, f"{text} {'x' * 11 * len(text)}")
        assert (len(longer.words), longer.left_out) == (1, 40)
