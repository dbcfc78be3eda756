"""The workbench: a model in a file, taught and asked by commands."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import select
import shutil
import sqlite3
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF
from tolerance import rounded
from typer.testing import CliRunner

import knowmore
from knowmore import GPClassifier, cli
from knowmore.cli.app import app
from knowmore.cli.options import Kind
from knowmore.cli.showing import show_rows
from knowmore.errors import InvalidInput
from knowmore.insight import grounds
from knowmore.insight.trial import Gain
from knowmore.kernels import default_kernel
from knowmore.workbench import made

# Two groups of points far apart; one label in the first is wrong.
POINTS = [(0.0, 0.1), (0.3, 0.0), (0.1, 0.4), (0.4, 0.3), (5.0, 5.1), (5.3, 5.0), (5.2, 5.4)]
LABELS = ["daisy", "daisy", "rose", "daisy", "rose", "rose", "rose"]
NAMES = [f"f{i}" for i in range(len(POINTS))]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def table(name="flowers.csv", points=POINTS, labels=LABELS, names=NAMES, **columns):
    """A CSV file of points with ids and labels."""
    with open(name, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "a", "b", "label", *columns])
        for row in zip(names, points, labels, *columns.values(), strict=True):
            writer.writerow([row[0], *row[1], *row[2:]])
    return name


def run(*words):
    """The result of a command that must not fail with a traceback."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def asked(*words, code=0):
    """The JSON that a command prints."""
    result = run(*words, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def model():
    """A model of the points, all from Ann."""
    asked("learn", "flowers.km", table(), "--contributor", "ann")
    return "flowers.km"


def apart(*words, stdin="", code=0, **options):
    """A command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "knowmore", *map(str, words)],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **options,
    )
    assert done.returncode == code, done.stderr
    return done


# -- sources under another name ------------------------------------------------------------------


def test_sync_says_that_ids_came_from_another_source():
    asked("learn", "m.km", table("mon day.csv"))
    table("tue.csv", POINTS[:5], LABELS[:5], NAMES[:5])
    result = run("learn", "m.km", "tue.csv", "--sync", "--dry-run")
    assert (
        result.stdout == "Would be: 0 added, 5 skipped, 0 replaced. m.km would hold 7 examples.\n"
    )
    told = (
        "5 of these ids came from 'mon day.csv', and --sync forgets only what came from 'tue.csv': "
        "nothing was. If the two are one source under two names, say so: --origin 'mon day.csv'.\n"
    )
    assert result.stderr == told
    found = asked("learn", "m.km", "tue.csv", "--sync")
    assert found["elsewhere"] == {"mon day.csv": 5}
    assert counts(found) == (0, 5, 0, 0, 0, 7)
    # The advice leads to what was wanted.
    found = asked("learn", "m.km", "tue.csv", "--sync", "--origin", "mon day.csv")
    assert (counts(found), found["elsewhere"]) == ((0, 5, 0, 2, 2, 5), {})
    # Without --sync nobody asks what vanished.
    assert run("learn", "m.km", "tue.csv").stderr == ""


def test_sync_names_the_source_that_most_ids_came_from():
    asked("learn", "m.km", table("mon.csv", POINTS[:4], LABELS[:4], NAMES[:4]))
    asked("learn", "m.km", table("tue.csv", POINTS[4:6], LABELS[4:6], NAMES[4:6]))
    with knowmore.open("m.km") as store:
        store.add([POINTS[6]], [LABELS[6]], ids=[NAMES[6]])
    asked("learn", "m.km", table("wed.csv", [(9, 9)], ["rose"], ["w"]))
    result = run("learn", "m.km", table("wed.csv"), "--sync")
    assert result.stdout == (
        "0 added, 6 skipped, 1 replaced, 1 vanished, 1 forgotten. m.km holds 7 examples.\n"
    )
    assert result.stderr == (
        "6 of these ids came from other sources, 4 of them from 'mon.csv', and --sync forgets only "
        "what came from 'wed.csv'. If the two are one source under two names, say so: --origin "
        "mon.csv.\n"
    )


def test_sync_names_the_source_as_origin_does():
    asked("learn", "m.km", table("mon.csv"))
    asked("learn", "m.km", table("tue.csv", [(9, 9)], ["rose"], ["f0"]))
    result = run("learn", "m.km", table("mon60.csv"), "--sync", "--origin", "mon.csv")
    assert result.stderr == (
        "1 of these ids came from 'tue.csv', and --sync forgets only what came from 'mon.csv': "
        "nothing was.\n"
    )


# -- cells that a spreadsheet would run ----------------------------------------------------------


def test_what_is_exported_runs_nowhere_and_is_learnt_as_it_was():
    labels = ["=cmd()" if label == "rose" else "-7" for label in LABELS]
    names = ["+1-2", "@sum", "-x", *NAMES[3:]]
    asked("learn", "first.km", table(names=names, labels=labels))
    assert run("export", "first.km", "--table", "all.csv").exit_code == 0
    exported = pd.read_csv("all.csv", dtype=str)
    assert exported["id"].tolist() == ["'+1-2", "'@sum", "'-x", *NAMES[3:]]
    assert set(exported["label"]) == {"'=cmd()", "-7"}
    exported[["id", "label", "a", "b"]].to_csv("some.csv", index=False)
    asked("learn", "second.km", "some.csv")
    with knowmore.open("first.km") as first, knowmore.open("second.km") as second:
        assert first.ids_.tolist() == second.ids_.tolist()
        assert first.examples.labels.tolist() == second.examples.labels.tolist()
        assert (first.examples.X == second.examples.X).all()
    assert counts(asked("learn", "first.km", "some.csv"))[:3] == (0, 7, 0)


def test_predictions_run_nowhere():
    asked("learn", "m.km", table(labels=[f"={label}" for label in LABELS]))
    result = run("predict", "m.km", table("new.csv", names=[f"@{name}" for name in NAMES]), "--csv")
    rows = list(csv.reader(io.StringIO(result.stdout)))[1:]
    assert [row[0] for row in rows] == [f"'@{name}" for name in NAMES]
    assert {row[1] for row in rows} == {"'=daisy", "'=rose"}


# -- learn ---------------------------------------------------------------------------------------


COUNTS = ("added", "skipped", "replaced", "vanished", "forgotten", "examples")


def counts(found):
    return tuple(found[name] for name in COUNTS)


def test_learning_makes_the_file_and_can_be_repeated():
    table()
    assert counts(asked("learn", "m.km", "flowers.csv", "--dry-run")) == (7, 0, 0, 0, 0, 7)
    assert not os.path.exists("m.km")
    assert counts(asked("learn", "m.km", "flowers.csv")) == (7, 0, 0, 0, 0, 7)
    assert counts(asked("learn", "m.km", "flowers.csv")) == (0, 7, 0, 0, 0, 7)
    result = run("learn", "m.km", "flowers.csv")
    assert result.stdout == "0 added, 7 skipped, 0 replaced, 0 vanished. m.km holds 7 examples.\n"


def test_what_changed_is_replaced_and_what_vanished_is_reported_or_forgotten(model):
    points, labels = [(0.2, 0.2), *POINTS[1:6]], [*LABELS[:2], "daisy", *LABELS[3:6]]
    table(points=points, labels=labels, names=NAMES[:6])
    assert counts(asked("learn", model, "flowers.csv", "--dry-run")) == (0, 4, 2, 1, 0, 7)
    result = run("learn", model, "flowers.csv")
    assert result.stdout == (
        "0 added, 4 skipped, 2 replaced, 1 vanished. flowers.km holds 7 examples.\n"
    )
    assert "What vanished from the source is still held. To forget it: --sync.\n" in result.stderr
    assert counts(asked("learn", model, "flowers.csv", "--sync", "--dry-run"))[3:] == (1, 1, 6)
    assert counts(asked("learn", model, "flowers.csv", "--sync")) == (0, 6, 0, 1, 1, 6)
    with knowmore.open(model) as store:
        assert store.examples.X[store.examples.rows(("f0",))].tolist() == [[0.2, 0.2]]
        assert "f6" not in store.ids_.tolist()


def test_the_names_of_columns_are_known_in_python_too(model):
    frame = pd.DataFrame({"a": [0.0, 5.0], "b": [0.1, 5.2]})
    with knowmore.open(model) as store:
        assert store.status().names == ("a", "b")
        assert store.predict(frame).tolist() == ["daisy", "rose"]
        for ask in (store.predict, lambda X: store.add(X, ["rose", "rose"], ["x", "y"])):
            with pytest.raises(ValueError, match="must be in the same order"):
                ask(frame[["b", "a"]])
        store.add(frame, ["daisy", "rose"], ids=["x", "y"])
        store.add(frame.to_numpy() + 1, ["daisy", "rose"], ids=["z", "w"])
        store.replace(["z"], [[0.0, 1.0]])
        store.replace(["z"], np.array([[0.0, 2.0]]))
        assert store.feature_names_in_.tolist() == ["a", "b"]
    assert asked("undo", model)["examples"] == 11
    assert asked("verify", model)["ok"]


@pytest.mark.parametrize("kind", ["gp", "lssvm", "linear", "forest", "gp-regression"])
def test_commands_give_columns_by_name_whatever_their_order(kind):
    numbers = list(range(7)) if kind == "gp-regression" else LABELS
    run("init", "m.km", "--kind", kind)
    asked("learn", "m.km", table(labels=numbers))
    with open("other.csv", "w") as file:
        file.write(f"b,id,a,label\n0.1,f0,1.0,{numbers[0]}\n5.0,new,5.0,{numbers[6]}\n")
    assert counts(asked("learn", "m.km", "other.csv"))[:3] == (1, 0, 1)
    with knowmore.open("m.km") as store:
        assert store.status().names == ("a", "b")
        assert store.examples.X[store.examples.rows(("f0",))].tolist() == [[1.0, 0.1]]
    assert run("predict", "m.km", "other.csv").stderr == ""
    asked("replace", "m.km", "f0", '{"b": 9, "a": 8}')
    asked("explain", "m.km", '{"b": 9, "a": 8}')
    if kind not in ("lssvm", "forest"):
        pool = table("pool.csv", names=[f"p{i}" for i in range(7)])
        assert run("suggest", "m.km", pool, "--criterion", "variance").exit_code == 0
        assert run("novel", "m.km", pool).exit_code in (0, 1)


def test_the_names_that_python_gave_are_known_to_commands():
    with knowmore.open("m.km", knowmore.GPClassifier()) as store:
        store.add(pd.DataFrame(POINTS, columns=["b", "a"]), LABELS, ids=NAMES)
    table(names=[f"g{i}" for i in range(7)])
    assert counts(asked("learn", "m.km", "flowers.csv"))[0] == 7
    with knowmore.open("m.km") as store:
        assert store.examples.X[store.examples.rows(("g0",))].tolist() == [[0.1, 0.0]]


def grown():
    """The table with a row changed and two rows more."""
    points = [(0.2, 0.2), *POINTS[1:], (1.0, 1.0), (6.0, 6.0)]
    return table(points=points, labels=[*LABELS, "daisy", "rose"], names=[*NAMES, "g0", "g1"])


def test_a_model_that_could_not_be_made_leaves_nothing(here):
    """A link to nowhere stays one."""
    table("bad.csv", labels=[*LABELS[:-1], ""])
    (here / "link.km").symlink_to(here / "real.km")
    for name in ("m.km", "link.km"):
        before = {*here.iterdir()}
        with pytest.raises(knowmore.KnowmoreError):
            run("learn", name, "bad.csv")
        assert {*here.iterdir()} == before


def test_a_model_that_another_has_taught_meanwhile_is_not_deleted(here):
    def taught_meanwhile():
        with made(here / "m.km"):
            with knowmore.open("m.km") as other:
                other.add([[0.0]], ["daisy"])
            raise KeyError

    with pytest.raises(KeyError):
        taught_meanwhile()
    with knowmore.open("m.km") as store:
        assert len(store) == 1


def test_learning_is_one_entry_that_can_be_undone(model, monkeypatch):
    before = asked("evaluate", model)
    # In parts of one block each.
    monkeypatch.setattr("knowmore.workbench.batches._BYTES", 1)
    assert counts(asked("learn", model, grown())) == (2, 6, 1, 0, 0, 9)
    entries = [(one["verb"], one["count"]) for one in asked("log", model)]
    assert entries == [("learn", 7), ("learn", 3)]
    assert asked("undo", model)["examples"] == 7
    assert asked("evaluate", model) == before
    assert asked("redo", model)["examples"] == 9
    assert asked("verify", model)["ok"]
    table()
    assert counts(asked("learn", model, "flowers.csv", "--sync")) == (0, 6, 1, 2, 2, 7)
    assert [one["verb"] for one in asked("log", model)] == ["learn", "learn", "learn", "forget"]


def test_learning_that_is_interrupted_changes_nothing(model, here, monkeypatch):
    before = (here / model).read_bytes()

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("knowmore.store.Store.replace", interrupt)
    assert CliRunner().invoke(app, ["learn", model, grown()]).exit_code == 130
    assert (here / model).read_bytes() == before


def test_a_label_corrected_by_hand_survives_learning_again(model):
    assert asked("relabel", model, "f2", "daisy") == {
        "id": "f2",
        "before": "rose",
        "label": "daisy",
        "dry_run": False,
    }
    assert counts(asked("learn", model, "flowers.csv"))[1:3] == (7, 0)
    assert asked("replace", model, "f0", '{"b": 9, "a": 8}') == {"id": "f0", "dry_run": False}
    assert counts(asked("learn", model, "flowers.csv"))[1:3] == (7, 0)
    with knowmore.open(model) as store:
        assert store.examples.X[store.examples.rows(("f0",))].tolist() == [[8.0, 9.0]]


@pytest.mark.parametrize("kind", ["gp", "linear"])
def test_a_label_corrected_by_hand_survives_other_features(kind):
    run("init", "m.km", "--kind", kind)
    asked("learn", "m.km", table())
    asked("relabel", "m.km", "f2", "daisy")

    def label():
        with knowmore.open("m.km") as store:
            return store.records(["f2"])[0].label

    for x in (0.2, 0.3):
        table(points=[*POINTS[:2], (x, x), *POINTS[3:]])
        assert counts(asked("learn", "m.km", "flowers.csv"))[1:3] == (6, 1)
        assert label() == "daisy"
    asked("undo", "m.km")
    assert label() == "daisy"
    table(labels=[*LABELS[:2], "tulip", *LABELS[3:]])
    assert counts(asked("learn", "m.km", "flowers.csv"))[1:3] == (6, 1)
    assert label() == "tulip"
    assert asked("verify", "m.km")["ok"]


def test_a_label_corrected_by_hand_stays_that_of_who_corrected_it():
    """Other features come from somebody who still has the first label."""
    asked("learn", "m.km", table(), "--contributor", "ann")
    asked("relabel", "m.km", "f2", "daisy", "--contributor", "cid")
    table(points=[(0.7, 0.7), POINTS[1], (0.2, 0.2), *POINTS[3:]])
    assert asked("learn", "m.km", "flowers.csv", "--contributor", "bob")["replaced"] == 2
    with knowmore.open("m.km") as store:
        found = store.records(["f0", "f2"])
        assert [(one.contributor, one.labeller) for one in found] == [
            ("bob", "bob"),
            ("bob", "cid"),
        ]
        assert len(store.log()) == 3
    assert asked("forget", "m.km", "--contributor", "cid")["changed"] == 1
    with knowmore.open("m.km") as store:
        (one,) = store.records(["f2"])
        assert (one.label, one.contributor, one.labeller) == ("rose", "bob", "ann")


@pytest.mark.parametrize("zoe", ["zoe", None])
def test_a_corrected_label_stays_with_who_corrected_it(model, zoe):
    """To learn ann's row with other features gives zoe's label to nobody else."""
    whose = [] if zoe is None else ["--contributor", zoe]
    asked("relabel", model, "f2", "daisy", *whose)
    for x in (0.2, 0.3):
        table(points=[*POINTS[:2], (x, x), *POINTS[3:]])
        asked("learn", model, "flowers.csv", "--contributor", "ann")
        assert examples_in(model)["f2"] == ([x, x], "daisy", "ann", zoe)
    if zoe is not None:
        assert asked("forget", model, "--contributor", zoe)["changed"] == 1
        assert examples_in(model)["f2"] == ([0.3, 0.3], "rose", "ann", "ann")
        assert asked("verify", model)["ok"]


def test_rows_without_ids_are_known_by_their_contents():
    with open("a.csv", "w") as file:
        file.write("a,label\n1,x\n2,y\n1,x\n")
    result = run("learn", "m.km", "a.csv")
    assert result.stdout == "2 added, 0 skipped, 0 replaced, 0 vanished. m.km holds 2 examples.\n"
    assert result.stderr == (
        "The rows have no ids, so their contents serve as such: a row that changes is a new one. 1 "
        "row repeats another and does not count again. To name a column of ids: --id COLUMN.\n"
    )
    assert asked("learn", "m.km", "a.csv")["repeated"] == 1


def test_repeated_ids_are_refused_and_nothing_is_left():
    table(names=["f0", *NAMES[:6]])
    with pytest.raises(knowmore.KnowmoreError) as caught:
        run("learn", "m.km", "flowers.csv")
    assert str(caught.value) == (
        "'flowers.csv' has the id 'f0' twice, in line 2 and in line 3. Give each row an id of its "
        "own."
    )
    assert os.listdir() == ["flowers.csv"]


def test_labels_that_seem_to_be_values_are_pointed_out():
    names, points = [f"v{i}" for i in range(40)], [(i, i % 7) for i in range(40)]
    table("values.csv", points, [f"{i / 2}" for i in range(40)], names)
    table("classes.csv", points, [i % 4 for i in range(40)], names)
    words = (
        "The labels are 40 different numbers. To predict numbers, start anew: knowmore init "
        "OTHER.km --kind gp-regression\n"
    )
    assert run("learn", "m.km", "values.csv", "--dry-run").stderr == words
    assert run("learn", "m.km", "values.csv").stderr == words
    assert run("learn", "c.km", "classes.csv").stderr == ""
    run("init", "r.km", "--kind", "gp-regression")
    assert run("learn", "r.km", "values.csv").stderr == ""


@pytest.mark.parametrize("first", ["text", "numbers"])
def test_numbers_and_numerals_are_the_same_labels(first):
    files = {"text": table(labels=[2, 2, 1, 2, 1, 1, 1]), "numbers": "more.npz"}
    np.savez("more.npz", X=[[1.0, 2.0], [3.0, 4.0]], y=[2, 3], ids=["g0", "g1"])
    for name in sorted(files, key=lambda name: name != first):
        asked("learn", "m.km", files[name])
    with knowmore.open("m.km") as store:
        assert store.classes_.tolist() == (["1", "2", "3"] if first == "text" else [1, 2, 3])


def test_labels_of_another_type_are_refused(model):
    np.savez("more.npz", X=[[1.0, 2.0]], y=[7], ids=["new"])
    with pytest.raises(knowmore.KnowmoreError) as caught:
        run("learn", model, "more.npz")
    assert str(caught.value) == (
        "The label 7 in row 0 is a whole number, but labels in the model are text. Give all labels "
        "the same type."
    )


def test_another_number_of_features_is_refused(model):
    np.savez("more.npz", X=[[1.0, 2.0, 3.0]], y=["rose"], ids=["new"])
    with pytest.raises(knowmore.KnowmoreError) as caught:
        run("learn", model, "more.npz")
    assert str(caught.value) == ("'more.npz' has 3 numbers in a row, but the model has learnt 2.")


def test_contributors_come_from_a_column_or_the_option():
    table(contributor=["ann", "ben", "", "", "", "", ""])
    asked("learn", "m.km", "flowers.csv", "--contributor", "cleo")
    with knowmore.open("m.km") as store:
        assert [one.contributor for one in store.records()] == ["ann", "ben", *["cleo"] * 5]
        assert {one.origin for one in store.records()} == {"flowers.csv"}


def test_a_contributor_that_the_column_overrules_is_told():
    table(contributor=["ann", "ben", "", "", "", "", ""])
    result = run("learn", "m.km", "flowers.csv", "--contributor", "eve")
    assert result.stderr == (
        "2 records name their own contributor; --contributor 'eve' is used for the other 5.\n"
    )
    table(contributor=["ann"] * 7)
    result = run("learn", "other.km", "flowers.csv", "--contributor", "eve")
    assert result.stderr == (
        "7 records name their own contributor; --contributor 'eve' is used for the other 0.\n"
    )
    assert run("learn", "third.km", "flowers.csv").stderr == ""


@pytest.mark.parametrize(
    ("label", "said"),
    [
        ("", "The label is empty. Give a name."),
        ("  ", "The label is empty. Give a name."),
        (" daisy", "The label ' daisy' begins or ends with a space. Say 'daisy'."),
        ("daisy\t", "The label 'daisy\\t' begins or ends with a space. Say 'daisy'."),
    ],
)
def test_a_label_is_no_empty_word(model, label, said):
    with pytest.raises(InvalidInput) as caught:
        run("relabel", model, "f0", label)
    assert str(caught.value) == said
    assert examples_in(model)["f0"][1] == "daisy"


def test_a_class_that_has_a_space_already_can_be_named(model):
    with knowmore.open(model) as store:
        store.relabel("f1", "rose ")
    assert asked("relabel", model, "f0", "rose ")["label"] == "rose "


def test_a_missing_label_column_lists_all_columns(here):
    columns = {name: [1.0] * 7 for name in "cdefg"}
    table(**columns, species=LABELS)
    text = (here / "flowers.csv").read_text()
    (here / "flowers.csv").write_text(text.replace(",label,", ",x,"))
    with pytest.raises(InvalidInput) as caught:
        run("learn", "m.km", "flowers.csv")
    assert str(caught.value) == (
        "'flowers.csv' has no column 'label'. Name the one that holds the labels: --label COLUMN. "
        "There are 'id', 'a', 'b', 'x', 'c', 'd', 'e', 'f', 'g', 'species'."
    )
    many = [f"c{i}" for i in range(30)]
    with open("wide.csv", "w") as file:
        file.write(",".join(many) + "\n" + ",".join("1" * 30) + "\n")
    with pytest.raises(InvalidInput) as caught:
        run("learn", "m.km", "wide.csv")
    assert str(caught.value).endswith(
        "'c9', 10 more, 'c20', 'c21', 'c22', 'c23', 'c24', 'c25', 'c26', 'c27', 'c28', 'c29'."
    )


def test_the_studio_says_how_to_name_a_column_of_labels(here):
    with open("a b.csv", "w") as file:
        file.write("a,kind\n1,x\n")
    with pytest.raises(InvalidInput) as caught:
        run("studio", "a b.csv", "--no-open")
    assert str(caught.value) == (
        "'a b.csv' has no column 'label'. Name the one that holds the labels: --label COLUMN. "
        "There are 'a', 'kind'."
    )
    assert not (here / "a b.km").exists()
    with pytest.raises(InvalidInput, match="are of a table that is learnt"):
        run("studio", "a.km", "--label", "kind", "--no-open")


def test_the_log_names_a_contributor_only_while_it_knows_all():
    """Two contributors gave the source; the one who is left did not give all of it."""
    table(contributor=["dan"] * 4 + ["ben"] * 3)
    asked("learn", "m.km", "flowers.csv")
    table("more.csv", [(1, 1)], ["rose"], ["g"])
    asked("learn", "m.km", "more.csv", "--contributor", "dan")
    assert [one["contributor"] for one in asked("log", "m.km")] == [None, "dan"]
    asked("forget", "m.km", "--contributor", "ben")
    assert [one["contributor"] for one in asked("log", "m.km")] == [None, "dan", None]


@pytest.mark.slow
def test_json_lines_on_standard_input():
    rows = [{"id": 1, "a": 1, "label": "x"}, {"id": 2, "a": 5, "label": "y"}]
    stdin = "\n".join(map(json.dumps, rows))
    done = apart("learn", "m.km", "-", "--json", stdin=stdin)
    assert counts(json.loads(done.stdout)) == (2, 0, 0, 0, 0, 2)
    # A stream is no whole that something could vanish from.
    again = apart("learn", "m.km", "-", "--json", stdin=json.dumps(rows[0]))
    assert counts(json.loads(again.stdout)) == (0, 1, 0, 0, 0, 2)
    assert asked("forget", "m.km", "2") == {
        "forgotten": 1,
        "changed": 0,
        "erased": 0,
        "examples": 1,
        "traces": 0,
        "warning": "",
        "kept": [],
        "dry_run": False,
    }


# -- init and kinds ------------------------------------------------------------------------------


def test_an_empty_model_says_so():
    assert asked("init", "m.km") == {"model": "m.km", "kind": "gp"}
    assert asked("status", "m.km")["examples"] == 0
    table()
    for words in (["predict", "m.km", "flowers.csv"], ["evaluate", "m.km"], ["suspects", "m.km"]):
        with pytest.raises(knowmore.KnowmoreError) as caught:
            run(*words)
        assert str(caught.value) == "The model holds no examples yet. Teach it: knowmore learn."
    with pytest.raises(knowmore.KnowmoreError) as caught:
        run("init", "m.km")
    assert str(caught.value) == "'m.km' exists. Name another file, or teach that one: learn."
    assert asked("learn", "m.km", "flowers.csv")["added"] == 7


@pytest.mark.parametrize("kind", ["lssvm", "linear", "forest"])
def test_every_kind_of_classifier_learns_answers_and_forgets(kind):
    asked("init", "m.km", "--kind", kind)
    asked("learn", "m.km", table())
    found = lines(run("predict", "m.km", "flowers.csv", "--json").stdout)
    assert [one["label"] for one in found][4:] == ["rose"] * 3
    assert 0 < found[0]["probability"] <= 1
    assert asked("evaluate", "m.km")["examples"] == 7
    doubted = asked("suspects", "m.km", code=1)
    assert doubted[0]["id"] == "f2"
    assert asked("explain", "m.km", "f4")["label"] == "rose"
    assert asked("forget", "m.km", "f2", "f3")["examples"] == 5
    assert asked("status", "m.km")["kind"] == kind


@pytest.mark.slow(fast=["gp-regression"])
@pytest.mark.parametrize("kind", ["gp-regression", "linear-regression", "forest-regression"])
def test_regression_answers_with_value_and_deviation(kind):
    with open("line.csv", "w") as file:
        file.write("t,label\n" + "".join(f"{t},{2 * t}\n" for t in range(9)))
    asked("init", "m.km", "--kind", kind)
    asked("learn", "m.km", "line.csv")
    (found,) = lines(apart("predict", "m.km", "-", "--json", stdin='{"id": "x", "t": 4}').stdout)
    assert (found["id"], list(found)) == ("x", ["id", "value", "std"])
    assert abs(found["value"] - 8) < 1
    assert list(asked("evaluate", "m.km")) == [
        "examples",
        "rmse",
        "mean_absolute_error",
        "r2",
        "within_one_std",
        "within_two_std",
    ]
    assert asked("status", "m.km")["classes"] is None
    with pytest.raises(knowmore.KnowmoreError) as caught:
        run("suspects", "m.km")
    assert str(caught.value) == (
        f"This model is of kind {kind}. The question is for kinds gp, lssvm, linear, forest, "
        f"n-plus-one."
    )


def test_a_source_is_for_n_plus_one_alone(model):
    with pytest.raises(knowmore.KnowmoreError) as caught:
        run("init", "m.km", "--kind", "linear", "--source", model)
    assert str(caught.value) == (
        "A model of kind n-plus-one learns a new class from those of another model, and no other "
        "kind does. Give both: --kind n-plus-one --source KNOWN.km."
    )


def test_a_new_class_beside_those_of_another_model(model):
    asked("init", "new.km", "--kind", "n-plus-one", "--source", model)
    points = [(9.0, 0.1), (9.3, 0.0), (0.2, 0.1), (5.0, 5.0)]
    labels = ["tulip", "tulip", "daisy", "rose"]
    table("new.csv", points, labels, ["n0", "n1", "n2", "n3"])
    assert asked("learn", "new.km", "new.csv")["examples"] == 4
    found = lines(run("predict", "new.km", "new.csv", "--json").stdout)
    assert [one["label"] for one in found] == labels
    found = lines(run("predict", "new.km", "flowers.csv", "--json").stdout)
    assert {one["label"] for one in found} == {"daisy", "rose"}
    assert asked("verify", "new.km")["ok"]
    asked("forget", model, "f0")
    with pytest.raises(knowmore.KnowmoreError, match="which has been changed since"):
        run("predict", "new.km", "new.csv")


@pytest.mark.slow
def test_a_class_from_one_example_with_the_help_of_others(model):
    asked("init", "one.km", "--kind", "one-shot", "--supports", "flowers.csv")
    table("one.csv", [(5.1, 5.0), (-9.0, 0.0), (0.0, -9.0)], ["tulip", "-", "-"], ["n", "b", "c"])
    assert asked("learn", "one.km", "one.csv")["examples"] == 3
    with knowmore.open("one.km") as store:
        assert {name: len(X) for name, X in store.supports_.items()} == {"daisy": 3, "rose": 4}
    (found,) = lines(
        apart("predict", "one.km", "-", "--json", stdin='{"id": 1, "b": 5.2, "a": 5}').stdout
    )
    assert found["label"] == "tulip"
    assert asked("verify", "one.km")["ok"]


def test_supports_are_for_one_shot_alone(model):
    with pytest.raises(knowmore.KnowmoreError) as caught:
        run("init", "m.km", "--kind", "one-shot")
    assert str(caught.value) == (
        "A model of kind one-shot learns a new class with the help of examples of others, and no "
        "other kind does. Give both: --kind one-shot --supports SOURCE."
    )


def test_every_kind_that_holds_examples_can_be_made():
    kinds = {name for name, made in knowmore.store.KINDS.items() if hasattr(made, "partial_fit")}
    assert set(get_args(Kind)) <= kinds


# -- questions -----------------------------------------------------------------------------------


def test_predictions_as_table_csv_and_json(model):
    table("new.csv", [(0.2, 0.2), (5.1, 5.2), (40.0, -40.0)], ["", "", ""], ["x", "y", "z"])
    found = lines(run("predict", model, "new.csv", "--json").stdout)
    assert [list(one) for one in found] == [["id", "label", "probability", "std", "unknown"]] * 3
    assert [one["label"] for one in found[:2]] == ["daisy", "rose"]
    assert [one["unknown"] for one in found] == [False, False, True]
    with knowmore.open(model) as store:
        row = pd.DataFrame({"a": [0.2], "b": [0.2]})
        P = store.predict_proba(row).max()
        assert found[0]["probability"] == rounded(P)
        assert found[0]["std"] ** 2 == rounded(store.predict_variance(row)[0])
    rows = list(csv.DictReader(io.StringIO(run("predict", model, "new.csv", "--csv").stdout)))
    assert [row["id"] for row in rows] == ["x", "y", "z"]
    shown = run("predict", model, "new.csv").stdout.splitlines()
    assert shown[0].split() == ["id", "label", "probability", "std", "unknown"]
    assert shown[3].split()[-1] == "yes"
    never = lines(run("predict", model, "new.csv", "--json", "--rate", 0).stdout)
    assert [one["unknown"] for one in never] == [None] * 3


@pytest.mark.slow
def test_predictions_of_a_stream_come_line_by_line(model):
    process = subprocess.Popen(
        [sys.executable, "-m", "knowmore", "predict", model, "-", "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for i, label in enumerate(["daisy", "rose"]):
        process.stdin.write(json.dumps({"id": i, "a": 5 * i, "b": 5 * i}) + "\n")
        process.stdin.flush()
        # The answer is there before the next line is sent.
        answer = json.loads(process.stdout.readline())
        assert (answer["id"], answer["label"]) == (i, label)
    rest, errors = process.communicate('{"id": 2, "a": "x", "b": 1}\n', timeout=120)
    assert (rest, process.returncode) == ("", 3)
    assert errors == (
        "Skipped: line 3: column 'a': 'x' is not a number. Features are numbers: take the column "
        "out, or say what it is by --label or --id.\n"
    )


def test_columns_that_the_model_does_not_know_are_ignored_aloud(model):
    with open("new.csv", "w") as file:
        file.write("b,colour,a\n0.1,red,0.2\n")
    result = run("predict", model, "new.csv", "--json")
    assert lines(result.stdout)[0]["label"] == "daisy"
    assert result.stderr == "Ignored: 'colour', which the model does not know.\n"


def test_evaluation_by_leave_one_out(model, here):
    found = asked("evaluate", model)
    with knowmore.open(model) as store:
        left = store.leave_one_out()
    assert found["accuracy"] == rounded((left.predicted == left.labels).mean())
    assert found["balanced_accuracy"] == rounded((1 + 3 / 4) / 2)
    assert found["confusion"] == {"labels": ["daisy", "rose"], "counts": [[3, 0], [1, 3]]}
    assert found["classes"][1] == {
        "label": "rose",
        "examples": 4,
        "recall": 0.75,
        "precision": 1.0,
    }
    assert sum(one["count"] for one in found["calibration"]["bins"]) == 7
    result = run("evaluate", model, "--plot", "e.png")
    assert result.stdout.startswith(
        "85.7% right: 6 of 7, each predicted by the others.\n"
        "Balanced accuracy, the mean recall of the classes: 87.5%.\n"
    )
    assert (here / "e.png").read_bytes().startswith(b"\x89PNG")


def test_a_small_class_beside_large_ones_is_told(here):
    rng = np.random.default_rng(0)

    def learnt(name, **counts):
        labels = [label for label, count in counts.items() for _ in range(count)]
        points = [tuple(rng.normal("abcd".index(one), 0.1, 2)) for one in labels]
        ids = [f"{name}{i}" for i in range(len(labels))]
        return run("learn", "m.km", table(f"{name}.csv", points, labels, ids)).stderr

    told = "c has 5 examples: until there are about 15, new ones of it are often called unknown.\n"
    assert "unknown" not in learnt("old", a=16, b=16)
    assert told in learnt("few", c=5)
    # It is told when the class is taught, and not of classes that are all small.
    assert "unknown" not in learnt("others", a=1)
    assert "unknown" not in learnt("more", c=10)
    Path("m.km").unlink()
    assert "unknown" not in learnt("small", a=5, b=5, c=2)


def test_a_labelled_source_is_scored(model):
    new = [(0.1, 0.1), (5.1, 5.2), (0.2, 0.2), (9.0, 9.0)]
    table(
        "test.csv",
        [POINTS[0], *new],
        ["daisy", "daisy", "rose", "rose", "yak"],
        ["f0", "a", "b", "c", "d"],
    )
    found = asked("evaluate", model, "test.csv")
    assert (found["examples"], found["held"], found["unknown_classes"]) == (4, 1, ["yak"])
    said = [one["label"] for one in lines(run("predict", model, "test.csv", "--json").stdout)][1:]
    assert found["accuracy"] == rounded(
        np.mean([*map(str.__eq__, said, ["daisy", "rose", "rose", "yak"])])
    )
    names = found["confusion"]["labels"]
    assert names == ["daisy", "rose", "yak"]
    assert np.sum(found["confusion"]["counts"], axis=1).tolist() == [1, 2, 1]
    assert sum(one["count"] for one in found["calibration"]["bins"]) == 4
    result = run("evaluate", model, "test.csv", "--plot", "e.png")
    assert ": 2 of 4, each of test.csv.\n" in result.stdout
    assert result.stderr == (
        "Left out: 1 that the model holds.\n"
        "1 record is of classes that the model does not know, and counted as wrong: 'yak'.\n"
        "Written: e.png\n"
    )
    table("kind.csv", new[:2], ["daisy", "rose"], "ab")
    Path("kind.csv").write_text(Path("kind.csv").read_text().replace("label", "kind"))
    assert asked("evaluate", model, "kind.csv", "--label", "kind")["accuracy"] == 1


def test_sources_that_cannot_be_scored(model):
    table("again.csv")
    table("new.csv", POINTS[:1], ["daisy"], ["x"])
    Path("new.csv").write_text(Path("new.csv").read_text().replace("label", "kind"))
    for words, problem in {
        ("again.csv",): "The model holds all records of 'again.csv', so that they cannot test it. "
        "Leave the source out: each is then predicted by the others.",
        ("--id", "id"): "--label and --id are of a labelled source. Name it after the model.",
        ("new.csv",): "'new.csv' has no column 'label'. Name the one that holds the labels",
    }.items():
        with pytest.raises(InvalidInput, match=re.escape(problem)):
            run("evaluate", model, *words)


def test_values_of_a_source_are_scored():
    asked("init", "line.km", "--kind", "gp-regression")
    points = [(float(i), 0.0) for i in range(30)]
    table("line.csv", points, [str(2 * i) for i in range(30)], [f"p{i}" for i in range(30)])
    asked("learn", "line.km", "line.csv")
    table("test.csv", [(3.5, 0.0), (5.5, 0.0)], ["8", "11"], "ab")
    found = asked("evaluate", "line.km", "test.csv")
    said = [one["value"] for one in lines(run("predict", "line.km", "test.csv", "--json").stdout)]
    assert (found["examples"], found["held"]) == (2, 0)
    assert found["rmse"] == rounded(np.sqrt(np.mean((np.array(said) - [8, 11]) ** 2)))
    assert "unknown_classes" not in found


def test_evaluation_of_a_model_that_is_off_says_how_to_improve_it(model):
    assert asked("evaluate", model)["calibration"]["error"] > 0.1
    assert run("evaluate", model).stderr == "To improve: knowmore tune flowers.km\n"
    assert run("evaluate", model, "--json").stderr == ""
    asked("init", "line.km", "--kind", "gp-regression")
    points = [(float(i), 0.0) for i in range(30)]
    table("line.csv", points, [str(2 * i) for i in range(30)], [f"p{i}" for i in range(30)])
    asked("learn", "line.km", "line.csv")
    assert asked("evaluate", "line.km")["within_one_std"] > 0.79
    assert run("evaluate", "line.km").stderr == "To improve: knowmore tune line.km\n"


def test_an_explanation_says_where_a_value_begins():
    asked("init", "line.km", "--kind", "linear-regression")
    table("line.csv", [(0.0, 0.0), (1.0, 0.0), (2.0, 1.0)], ["10", "12", "14"], ["p", "q", "r"])
    asked("learn", "line.km", "line.csv")
    first = run("explain", "line.km", "r").stdout.splitlines()[0]
    found = asked("explain", "line.km", "r")
    assert first == (
        f"value {found['score']:.4g}: it begins at {found['offset']:.4g}, and features add the rest"
    )


def test_values_far_from_zero_are_told_apart():
    asked("init", "line.km", "--kind", "linear-regression")
    points = [(float(i), 0.0) for i in range(9)]
    values = [f"{1.7e9 + 0.01 * i:.2f}" for i in range(9)]
    table("line.csv", points, values, [f"p{i}" for i in range(9)])
    asked("learn", "line.km", "line.csv")
    told = [line.split()[1] for line in run("predict", "line.km", "line.csv").stdout.splitlines()]
    found = [one["value"] for one in lines(run("predict", "line.km", "line.csv", "--json").stdout)]
    off = max(abs(float(a) - b) for a, b in zip(told[1:], found, strict=True))
    assert off <= (max(found) - min(found)) / 100
    said = run("explain", "line.km", "p8").stdout.splitlines()[0].split()
    score, offset = float(said[1][:-1]), float(said[5][:-1])
    assert score != offset


def test_several_sources_are_answered_as_one(model):
    table("one.csv", [(0.2, 0.2)], [""], ["x"])
    table("two.csv", [(5.1, 5.2)], [""], ["y"])
    found = lines(run("predict", model, "one.csv", "two.csv", "--json").stdout)
    assert [(one["id"], one["label"]) for one in found] == [("x", "daisy"), ("y", "rose")]
    shown = run("predict", model, "one.csv", "two.csv").stdout.splitlines()
    assert [line.split()[0] for line in shown] == ["id", "x", "y"]


def test_suspects_are_findings(model):
    (found,) = asked("suspects", model, code=1)
    assert (found["id"], found["label"], found["preferred"]) == ("f2", "rose", "daisy")
    assert (found["labeller"], found["contributor"]) == ("ann", "ann")
    assert len(found["contradicting"]) == 3
    assert run("suspects", model).exit_code == 1
    asked("relabel", model, "f2", "daisy")
    asked("relabel", model, "f2", "rose", "--contributor", "zoe")
    (found,) = asked("suspects", model, code=1)
    assert (found["labeller"], found["contributor"]) == ("zoe", "ann")
    asked("relabel", model, "f2", "daisy")
    assert asked("suspects", model) == []
    result = run("suspects", model)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == (
        "No label is likely to be wrong by what the other examples say. If you have mended a part "
        "of an earlier list, look at the rest of it all the same: each mended label lowers the "
        "estimate of how many are wrong.\n"
    )


def test_suggestions_leave_out_what_is_held(model):
    table("pool.csv", [*POINTS[:2], (2.5, 2.6), (0.0, 0.0)], [""] * 4, [*NAMES[:2], "x", "y"])
    found = asked("suggest", model, "pool.csv", "-n", 1)
    assert [one["id"] for one in found] == ["x"]
    assert found[0]["reason"].startswith("'")
    table("pool.csv", POINTS, LABELS, NAMES)
    with pytest.raises(knowmore.KnowmoreError) as caught:
        run("suggest", model, "pool.csv")
    assert str(caught.value) == (
        "The model holds all records of 'pool.csv' already: there is nothing new."
    )


def test_novel_records_are_findings(model):
    table("new.csv", [(0.2, 0.2), (40.0, -40.0)], ["", ""], ["x", "y"])
    (found,) = asked("novel", model, "new.csv", code=1)
    assert (found["id"], found["unknown"]) == ("y", True)
    assert [one["id"] for one in asked("novel", model, "new.csv", "--all", code=1)] == ["y", "x"]
    table("new.csv", [(0.2, 0.2)], [""], ["x"])
    assert asked("novel", model, "new.csv") == []


def test_explanations_of_an_example_a_row_and_a_file(model):
    of_id = asked("explain", model, "f0")
    assert asked("explain", model, json.dumps(POINTS[0]))["parts"] == of_id["parts"]
    table("one.csv", POINTS[:1], [""], ["x"])
    assert asked("explain", model, "one.csv")["parts"] == of_id["parts"]
    with knowmore.open(model) as store:
        want = grounds(store.estimator, pd.DataFrame([POINTS[0]], columns=["a", "b"]))
    columns = "id", "label", "vote", "score_without", "score_left", "cells"
    assert [tuple(one) for one in of_id["parts"]] == [columns] * len(want)
    assert [one["id"] for one in of_id["parts"]] == [[*ids] for ids in want.ids]
    assert [one["score_left"] for one in of_id["parts"]] == want.score_left.tolist()
    assert all([*one["cells"]] == ["a", "b"] for one in of_id["parts"])
    assert of_id["instead"] == want.instead
    assert asked("explain", model, "f0", "--label", "rose")["label"] == "rose"
    (against,) = asked("explain", model, "f0", "--against", "-n", "1")["parts"]
    assert against["score_without"] > of_id["score"]
    first = run("explain", model, "f0", "-n", "1").stdout.splitlines()[0]
    one = want.score_without[0]
    assert first == (
        f"{want.label}: score {want.score:.4g}; without this example it would be {one:.4g}"
    )
    with pytest.raises(knowmore.KnowmoreError) as caught:
        run("explain", model, "nothing")
    assert str(caught.value) == (
        "'nothing' is neither the id of an example nor a file. Give one of these, or a row as "
        'JSON: {"column": number, ...} or [number, ...].'
    )


def test_features_of_a_linear_model_have_their_names():
    asked("init", "m.km", "--kind", "linear")
    asked("learn", "m.km", table())
    found = asked("explain", "m.km", '{"a": 1, "b": 2}')
    assert {one["feature"] for one in found["parts"]} == {"a", "b"}
    with pytest.raises(knowmore.KnowmoreError) as caught:
        run("explain", "m.km", '{"a": 1, "b": 2}', "--against")
    assert str(caught.value) == (
        "This model is explained by contributions, of which those below zero speak against the "
        "class. Ask without --against."
    )


def test_with_a_squared_hinge_contributions_are_what_there_is():
    with knowmore.open("m.km", GPClassifier(loss="squared_hinge")) as store:
        store.add(np.array(POINTS), LABELS, ids=[f"f{i}" for i in range(7)])
    found = asked("explain", "m.km", "f0")
    assert {*found["parts"][0]} == {"id", "label", "contribution", "score_without"}
    total = sum(one["contribution"] for one in found["parts"]) + found["offset"]
    assert total == rounded(found["score"], 1e6)


def test_every_command_names_what_another_program_has_added(model):
    other = sqlite3.connect(model)
    other.execute("CREATE INDEX by_label ON examples(label)")
    other.close()
    words = r"has added the index 'by_label'.* `knowmore verify flowers\.km --clean`"
    commands = [("status",), ("learn", table("more.csv")), ("verify",), ("serve",), ("log",)]
    commands += [("studio", "--no-open"), ("predict", "flowers.csv"), ("forget", "f0")]
    for command, *more in commands:
        with pytest.raises(knowmore.KnowmoreError, match=words):
            run(command, model, *more)
    said = run("verify", model, "--clean")
    assert said.stderr == "Taken off: the index 'by_label'.\n"
    assert "the model equals" in said.stdout.lower() or said.exit_code == 0
    assert asked("status", model)["examples"] == 7
    assert run("verify", model, "--clean", "--fast").stderr == ""


# -- forgetting, history -------------------------------------------------------------------------


@pytest.mark.parametrize("what", [["g0"], ["--contributor", "ben"]])
def test_forgetting_what_was_undone(what, model, here):
    """The example stays in the file until the next edit, though the model has removed it."""
    table("more.csv", [(77777.125, 1.0)], ["daisy"], ["g0"])
    asked("learn", model, "more.csv", "--contributor", "ben")
    asked("undo", model)
    assert struct.pack("<d", 77777.125) in (here / model).read_bytes()
    for option in (["--dry-run"], []):
        found = asked("forget", model, *what, *option)
        assert (found["forgotten"], found["examples"]) == (1, 7)
    assert struct.pack("<d", 77777.125) not in (here / model).read_bytes()


def test_forgetting_by_ids_a_file_a_contributor_and_an_origin(model, here):
    table("more.csv", [(1.0, 1.0), (2.0, 2.0)], ["daisy", "rose"], ["g0", "g1"])
    asked("learn", model, "more.csv", "--contributor", "ben")
    (here / "ids.txt").write_text("f0\nf1\n\n")
    assert asked("forget", model, "--ids-file", "ids.txt")["forgotten"] == 2
    assert asked("forget", model, "--contributor", "ben", "--dry-run") == {
        "forgotten": 2,
        "changed": 0,
        "erased": 0,
        "examples": 5,
        "traces": 0,
        "warning": "",
        "kept": [],
        "dry_run": True,
    }
    assert asked("forget", model, "--contributor", "ben")["examples"] == 5
    assert asked("forget", model, "f3", "f2")["examples"] == 3
    result = run("forget", model, "--origin", "flowers.csv", "--yes")
    assert result.stdout == (
        "Forgotten: 3 examples; 0 stay. Nothing of them is left in the file or beside it.\n"
    )
    assert result.stderr == (
        "Blocks of the disk that were freed, snapshots and backups are beyond the reach of this "
        "command.\n"
    )
    assert b"flowers.csv" not in (here / model).read_bytes()


def examples_in(model):
    """Features, label and givers by id."""
    with knowmore.open(model) as store:
        rows = dict(zip(store.ids_.tolist(), store.examples.X.tolist(), strict=True))
        return {r.id: (rows[r.id], r.label, r.contributor, r.labeller) for r in store.records()}


def test_what_somebody_else_learns_of_known_ids_is_theirs(model):
    """Rows of ann that ben gives anew are ben's, and ann's come back when ben is forgotten."""
    before = examples_in(model)
    table("tue.csv", [(1.5, 1.5), (2.5, 2.5)], ["rose", "daisy"], ["f0", "f1"])
    assert asked("learn", model, "tue.csv", "--contributor", "ben")["replaced"] == 2
    assert {"name": "ben", "examples": 2} in asked("status", model)["contributors"]
    result = run("forget", model, "--contributor", "ben", "--dry-run")
    assert result.stdout == (
        "Would be forgotten: features or labels of 2 examples; 7 would stay. 2 would get back what "
        "was there before.\n"
    )
    assert asked("forget", model, "--contributor", "ben")["changed"] == 2
    assert examples_in(model) == before
    # Ben's rows are not learnt again, and ann's rows are skipped as known.
    assert asked("learn", model, "tue.csv", "--contributor", "ben")["forgotten_before"] == 2
    assert asked("learn", model, "flowers.csv")["skipped"] == 7
    assert examples_in(model) == before


@pytest.mark.slow
def test_forgetting_tells_what_comes_back_from_what_is_only_erased(model):
    """Dan has replaced one of ben's two rows with ann's ids."""
    table("ben.csv", [(1, 1), (2, 2), (3, 3)], ["rose"] * 3, ["f0", "f1", "b"])
    asked("learn", model, "ben.csv", "--contributor", "ben")
    table("dan.csv", [(4, 4)], ["rose"], ["f0"])
    asked("learn", model, "dan.csv", "--contributor", "dan")
    before = examples_in(model)
    what = "1 example and features or labels of 2 others"
    terminal = Terminal("forget", model, "--contributor", "ben")
    terminal.until(f"Forget {what} for ever? 1 would get back what was there before; 1 would")
    terminal.keys("n\r")
    assert terminal.code() == 0
    result = run("forget", model, "--contributor", "ben", "--dry-run")
    assert result.stdout == (
        f"Would be forgotten: {what}; 7 would stay. 1 would get back what was there before; 1 "
        f"would only lose an earlier version.\n"
    )
    result = run("forget", model, "--contributor", "ben", "--yes")
    assert result.stdout == (
        f"Forgotten: {what}; 7 stay. Nothing of them is left in the file or beside it. 1 gets back "
        f"what was there before; 1 only loses an earlier version.\n"
    )
    after = examples_in(model)
    assert after["f0"] == before["f0"] == ([4.0, 4.0], "rose", "dan", "dan")
    assert after["f1"] == ([0.3, 0.0], "daisy", "ann", "ann")


def test_restoring_forgets_again_and_says_what(model):
    table("ben.csv", [(1, 1), (3, 3)], ["rose"] * 2, ["f0", "b"])
    asked("learn", model, "ben.csv", "--contributor", "ben")
    shutil.copy(model, "copy.km")
    asked("forget", model, "--contributor", "ben")
    result = run("restore", model, "copy.km", "--yes")
    assert result.stdout == "Restored from copy.km: flowers.km holds 7 examples.\n"
    assert result.stderr == (
        "Forgotten again, as it had been since the copy was made: 1 example and features or labels "
        "of 1 other. To keep it: --again.\n"
    )
    assert asked("restore", model, "copy.km") == {
        "model": model,
        "examples": 7,
        "forgotten": 1,
        "changed": 1,
        "warning": "",
    }
    os.unlink(model)
    result = run("restore", model, "copy.km")
    assert result.stdout == "Restored from copy.km: flowers.km holds 8 examples.\n"
    assert result.stderr.startswith("There was no model ")
    assert result.stderr.endswith(
        "it may be back. Forget it again: knowmore forget flowers.km ...\n"
    )
    assert asked("restore", "other.km", "copy.km")["warning"]


def test_what_was_forgotten_is_not_learnt_again(model):
    asked("forget", model, "f0", "f1")
    run("forget", model, "f2", "--no-mark", "--yes")
    result = run("learn", model, "flowers.csv")
    assert result.stdout.startswith("1 added, 4 skipped, 0 replaced, 0 vanished, 2 forgotten be")
    assert "To learn it all the same: --again." in result.stderr
    # A changed row still belongs to the same person.
    table("tue.csv", [(9.0, 9.0)], ["rose"], ["f0"])
    assert asked("learn", model, "tue.csv")["forgotten_before"] == 1
    found = asked("learn", model, "flowers.csv", "--again")
    assert (found["added"], found["forgotten_before"]) == (2, 0)
    assert asked("learn", model, "flowers.csv")["skipped"] == 7


def test_what_vanished_may_come_back(model, here):
    whole = (here / "flowers.csv").read_text()
    (here / "flowers.csv").write_text("\n".join(whole.split("\n")[:-2]) + "\n")
    assert asked("learn", model, "flowers.csv", "--sync")["forgotten"] == 1
    (here / "flowers.csv").write_text(whole)
    assert asked("learn", model, "flowers.csv")["added"] == 1


def test_merging_does_not_bring_back_what_was_forgotten(model):
    with knowmore.open(model) as store:
        store.set_parameters(kernel=store.kernel_)
    shutil.copy(model, "other.km")
    asked("forget", "other.km", *NAMES[2:])
    asked("forget", model, *NAMES[:2])
    with pytest.raises(knowmore.KnowmoreError) as caught:
        run("merge", model, "other.km")
    assert str(caught.value) == (
        "other.km holds 2 examples that flowers.km has forgotten: 'f0', 'f1'. Forget them "
        "there, too, or bring them back: --again."
    )
    assert asked("merge", model, "other.km", "--again")["examples"] == 7


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Say what to forget: ids, --ids-file, --contributor or --origin."),
        (
            ["f0", "--contributor", "ann"],
            "Ids and --contributor are both given. Say only one, and call the command once for "
            "each.",
        ),
        (
            ["--origin", "b", "--contributor", "ann"],
            "--contributor and --origin are both given. Say only one, and call the command once "
            "for each.",
        ),
    ],
)
def test_what_to_forget_is_said_in_one_way(model, words, said):
    with pytest.raises(knowmore.KnowmoreError) as caught:
        run("forget", model, *words)
    assert str(caught.value) == said


def test_an_unknown_id_changes_nothing(model):
    with pytest.raises(knowmore.KnowmoreError) as caught:
        run("forget", model, "f0", "nobody")
    assert str(caught.value) == (
        "The model has no example 'nobody'. `knowmore export MODEL --table FILE` lists all ids."
    )
    assert asked("status", model)["examples"] == 7


def test_an_unknown_id_names_the_nearest(model):
    table("more.csv", [(1.0, 1.0)], ["daisy"], ["airplanes/sunflower_09.jpg"])
    asked("learn", model, "more.csv")
    unknown = "`knowmore export MODEL --table FILE` lists all ids."
    near = "Did you mean airplanes/sunflower_09.jpg?"
    for word in ("sunflower_09.jpg", "airplane/sunflower_09.jpg"):
        for words in (("forget", model, word), ("relabel", model, word, "rose")):
            with pytest.raises(knowmore.KnowmoreError) as caught:
                run(*words)
            assert str(caught.value) == f"The model has no example {word!r}. {unknown} {near}"
    with pytest.raises(knowmore.KnowmoreError) as caught:
        run("explain", model, "sunflower_09.jpg")
    assert str(caught.value).endswith(f"or [number, ...]. {near}")


def test_a_label_of_a_new_class_is_said_to_be_one(model):
    result = run("relabel", model, "f2", "roses", "--dry-run")
    assert result.stdout == "Would be relabelled: f2, from rose to roses.\n"
    assert result.stderr == "roses is a new class. Did you mean rose?\n"
    result = run("relabel", model, "f2", "roses")
    assert result.stdout == "Relabelled: f2, from rose to roses.\n"
    assert result.stderr == "roses is a new class. Did you mean rose?\n"
    assert run("relabel", model, "f2", "tulip").stderr == "tulip is a new class.\n"
    assert run("relabel", model, "f2", "daisy").stderr == ""
    result = run("relabel", model, "f2", "daisy")
    assert result.stdout == "Nothing was changed: the label of f2 is daisy already.\n"


def test_traces_are_told_and_end_with_1(model, monkeypatch):
    from knowmore.store import Forgotten, Store

    left = Forgotten(1, ["somewhere"], "Bytes may be left in m.km: the disk is full.")
    monkeypatch.setattr(Store, "forget", lambda *_, **__: left)
    result = run("forget", model, "f0")
    assert result.exit_code == 1
    assert "Nothing of them is left" not in result.stdout
    assert left.warning in result.stderr
    answer = asked("forget", model, "f0", code=1)
    assert (answer["traces"], answer["warning"]) == (1, left.warning)


def test_an_emptied_model_learns_any_table():
    asked("learn", "m.km", table())
    asked("undo", "m.km")
    with open("other.csv", "w") as file:
        file.write("c,d,e,kind\n1,2,3,x\n2,9,4,y\n3,3,5,x\n")
    assert asked("learn", "m.km", "other.csv", "--label", "kind")["added"] == 3
    status = asked("status", "m.km")
    assert status["columns"] == ["c", "d", "e"]
    assert [one["label"] for one in status["classes"]] == ["x", "y"]
    # The column of ids was the first table's, and the third is read as if it were the first.
    asked("undo", "m.km")
    with open("third.csv", "w") as file:
        file.write("id,label,c\n1,x,2\n2,y,3\n")
    assert asked("learn", "m.km", "third.csv")["added"] == 2
    assert asked("verify", "m.km")["ok"]
    with knowmore.open("m.km") as store:
        assert store.ids_.tolist() == ["1", "2"]


def test_edits_can_be_undone_and_done_again(model):
    asked("relabel", model, "f2", "daisy")
    undone = asked("undo", model)
    assert (undone["verb"], undone["count"], undone["undone"]) == ("relabel", 1, True)
    assert asked("suspects", model, code=1)[0]["id"] == "f2"
    assert asked("redo", model)["undone"] is False
    assert [one["verb"] for one in asked("log", model)] == ["learn", "relabel"]
    assert run("undo", model).stdout == (
        "Undone: relabel of 1 example, entry 2. flowers.km holds 7 examples.\n"
    )
    shown = run("log", model).stdout.splitlines()
    assert shown[0].split() == [
        *("number", "at", "verb", "count", "id", "label", "contributor", "undone")
    ]
    assert shown[2].endswith("yes")


def test_merging_two_models(model):
    table("more.csv", [(1.0, 1.0), (6.0, 6.0)], ["daisy", "rose"], ["g0", "g1"])
    with knowmore.open("other.km", knowmore.open(model).__sklearn_clone__()) as store:
        store.set_parameters(kernel=knowmore.open(model).kernel_)
    asked("learn", "other.km", "more.csv", "--contributor", "ben")
    assert asked("merge", "other.km", model, "--dry-run")["examples"] == 9
    assert asked("merge", "other.km", model) == {"added": 7, "examples": 9, "dry_run": False}
    assert {one["name"] for one in asked("status", "other.km")["contributors"]} == {"ann", "ben"}


def test_models_of_other_columns_do_not_merge(model):
    with open("more.csv", "w") as file:
        file.write("c,d,label\n1,2,rose\n2,1,daisy\n")
    asked("learn", "other.km", "more.csv")
    with pytest.raises(knowmore.KnowmoreError, match=r"cannot be merged: .* of other columns"):
        run("merge", model, "other.km")


def test_a_dry_run_of_merging_fails_as_merging_does():
    for name, letter, scale in (("flowers", "f", 1.0), ("more", "g", 9.0)):
        points = [(scale * i, scale * (i % 7)) for i in range(200)]
        names = [f"{letter}{i}" for i in range(200)]
        table(f"{name}.csv", points, [("daisy", "rose")[i < 100] for i in range(200)], names)
    model = "flowers.km"
    asked("learn", model, "flowers.csv")
    asked("learn", "other.km", "more.csv")
    with knowmore.open("other.km") as theirs:
        theirs.set_parameters(kernel=default_kernel(theirs.examples.X))
    words = []
    for options in ([], ["--dry-run"]):
        with pytest.raises(knowmore.KnowmoreError) as caught:
            run("merge", model, "other.km", *options)
        words.append(str(caught.value))
    assert words[0] == words[1]
    assert words[0].startswith("The two models differ in kernel: ")
    assert words[0].endswith(
        "On the command line: knowmore learn flowers.km SOURCE, with the source of other.km. In "
        "Python: give other.km the settings of flowers.km with set_parameters()."
    )
    # What the error advises works.
    with knowmore.open(model) as mine, knowmore.open("other.km") as theirs:
        theirs.set_parameters(kernel=mine.kernel_)
    assert asked("merge", model, "other.km", "--dry-run")["examples"] == 400
    assert asked("merge", model, "other.km")["examples"] == 400
    for options in ([], ["--dry-run"]):
        with pytest.raises(knowmore.KnowmoreError, match=r"^Both models hold 'g0', 'g1'"):
            run("merge", model, "other.km", *options)


@pytest.mark.filterwarnings("ignore::knowmore.errors.KnowmoreWarning")
def test_tuning_is_kept_and_can_be_undone(model, monkeypatch):
    """Seven examples could not judge a search."""
    monkeypatch.setattr(Gain, "is_sure", True)
    asked("relabel", model, "f2", "daisy")
    before = asked("status", model)["kernel"]
    found = asked("tune", model, "--dry-run")
    assert found["after"] > found["before"]
    assert asked("status", model)["kernel"] == before
    assert asked("tune", model)["after"] == rounded(found["after"])
    assert asked("status", model)["kernel"] != before
    asked("undo", model)
    assert asked("status", model)["kernel"] == before


@pytest.mark.filterwarnings("ignore::knowmore.errors.KnowmoreWarning")
def test_forgetting_tells_what_tune_found(model, monkeypatch):
    """Seven examples could not judge a search."""
    monkeypatch.setattr(Gain, "is_sure", True)
    asked("relabel", model, "f2", "daisy")
    asked("tune", model)
    assert asked("log", model)[-1]["verb"] == "tune"
    said = "Parameters that tune found stay: tune again."
    assert run("forget", model, "f1").stdout == (
        f"Forgotten: 1 example; 6 stay. No row of them is left in the file or beside it.\n{said}\n"
    )
    assert asked("forget", model, "f0")["kept"] == [said]
    assert said[:-1] in run("verify", model).stdout
    table("flowers.csv", [(1.0, 1.0)], ["daisy"], ["f2"])
    done = run("learn", model, "flowers.csv", "--sync")
    assert said in done.stderr


class _Answer:
    def __init__(self, ok):
        self.ok = ok

    def certificate(self):
        return {"ok": self.ok, "difference": 0.0}

    def __str__(self):
        return "ok" if self.ok else "FAILED"


@pytest.mark.parametrize("ok", [True, False])
def test_verification_ends_with_0_only_if_all_holds(model, monkeypatch, here, ok):
    from knowmore.store import Store

    asked_for = []
    monkeypatch.setattr(Store, "verify", lambda self, fast: asked_for.append(fast) or _Answer(ok))
    result = run("verify", model, "--fast", "--certificate", "c.json")
    assert (result.exit_code, result.stdout) == (int(not ok), "ok\n" if ok else "FAILED\n")
    assert json.loads((here / "c.json").read_text()) == {"ok": ok, "difference": 0.0}
    assert asked("verify", model, code=int(not ok))["ok"] is ok
    assert asked_for == [True, False]


def test_status_in_words_and_json(model):
    found = asked("status", model)
    assert (found["kind"], found["examples"], found["columns"]) == ("gp", 7, ["a", "b"])
    assert found["classes"] == [
        {"label": "daisy", "examples": 3},
        {"label": "rose", "examples": 4},
    ]
    assert found["contributors"] == [{"name": "ann", "examples": 7}]
    assert found["origins"] == [{"name": "flowers.csv", "examples": 7}]
    shown = run("status", model).stdout
    assert "features  2 (a, b)\n" in shown
    assert "\nclass  examples\ndaisy         3\n" in shown
    # An example of two givers counts for both.
    assert f"\ncontributor  gave features or label of\nann{'7':>35}\n" in shown


# -- as a program --------------------------------------------------------------------------------


@pytest.mark.slow
def test_errors_are_one_line_and_end_with_2(model):
    for words, message in {
        ("predict", "no.km", "flowers.csv"): "There is no file ",
        ("learn", model, "no.csv"): "There is no file or folder 'no.csv'. Check the path.",
        ("predict",): "Missing argument 'MODEL'. For help: ",
        ("nonsense",): "No such command 'nonsense'. For help: ",
        ("forget", model): "Say what to forget: ids, --ids-file, --contributor or --origin.",
        ("suspects", model, "--apply"): "--apply asks on a terminal, and this is none.",
    }.items():
        done = apart(*words, code=2)
        assert done.stdout == ""
        assert done.stderr.startswith(f"knowmore: {message}")
        assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_warnings_are_one_line():
    with open("a.csv", "w") as file:
        file.write("id,a,label\n1,1,x\n2,2,x\n")
    with knowmore.open("m.km", GPClassifier(RBF(1e-3), 0.1)) as store:
        store.add([[1.0], [2.0]], ["x", "x"])
    done = apart("predict", "m.km", "a.csv", "--json")
    assert all(line.startswith("knowmore: ") for line in done.stderr.splitlines())
    assert "the others say nothing" in done.stderr


@pytest.mark.parametrize("command", ["init", "learn", "predict", "forget", "verify", "suspects"])
def test_every_command_has_json_and_help(command):
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).stdout
    assert "--json" in shown


def test_help_is_grouped_and_completion_is_there():
    shown = run("--help").stdout
    for panel in "Teach a model", "Ask a model", "Look after a model":
        assert panel in shown
    assert "--install-completion" in shown


def test_an_interrupt_is_one_line(monkeypatch, capfd):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_run", interrupted)
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 130
    assert capfd.readouterr().err == "knowmore: interrupted. What was confirmed is kept.\n"


def told(monkeypatch, capfd, *words):
    """The standard error of the program when it fails."""
    monkeypatch.setattr(sys, "argv", ["knowmore", *map(str, words)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    return capfd.readouterr().err


def test_a_wrong_choice_is_told_in_our_words(monkeypatch, capfd):
    said = told(monkeypatch, capfd, "suggest", "m.km", "pool.csv", "--criterion", "foo")
    assert said.startswith(
        "knowmore: Invalid value for '--criterion': 'foo' is not one of 'reduction', 'margin', "
        "'variance', 'random'. For help: "
    )


def test_remedies_are_those_of_the_command(monkeypatch, capfd, here):
    (here / "days").mkdir()
    (here / "arrays").mkdir()
    days = pd.DataFrame({"id": ["r0", "r1"], "a": [0.0, 1.0], "kind": ["x", "y"]})
    days.to_parquet("days/one.parquet")
    np.savez("arrays/one.npz", Z=[0.0], W=[1.0])
    said = told(monkeypatch, capfd, "sums", "days", "--label", "kind")
    assert said.endswith(
        " could not convert string to float: 'r0'. Name the columns that are features: --columns "
        "a,b,c. Text that is one must be encoded as numbers first.\n"
    )
    said = told(monkeypatch, capfd, "sums", "arrays")
    assert said.endswith(" Write it so: np.savez(path, X=..., y=...).\n")


def test_cells_are_whole_where_nobody_sees_a_terminal(monkeypatch, capsys):
    rows = [{"reason": "x" * 300}]
    show_rows(rows)
    assert capsys.readouterr().out == f"reason\n{'x' * 300}\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show_rows(rows)
    assert f"\n{'x' * 97}...\n" in capsys.readouterr().out


@pytest.mark.slow
def test_commands_do_not_load_pandas(model):
    code = (
        "import sys; sys.argv = ['knowmore', 'predict', 'flowers.km', 'flowers.csv', '--json']\n"
        "from knowmore.cli import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code\n"
        "print(sorted({'pandas', 'matplotlib', 'cv2', 'numba'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.splitlines()[-1] == "[]"


# -- on a terminal -------------------------------------------------------------------------------


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *words):
        import pty

        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(sys.executable, [sys.executable, "-m", "knowmore", *words])
        self.seen = ""

    def until(self, text):
        """Read until the text was shown; what was shown since the last time."""
        end = time.monotonic() + 40
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0, end - time.monotonic()))
            assert ready, self.seen
            try:
                self.seen += os.read(self.fd, 4096).decode()
            except OSError:
                break
        before, found, self.seen = self.seen.partition(text)
        assert found, before
        return before

    def keys(self, keys):
        os.write(self.fd, keys.encode())

    def code(self):
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.mark.slow
def test_suspects_are_decided_with_one_key_each():
    labels = ["daisy", "rose", "rose", "daisy", "rose", "daisy", "rose"]
    points = [*POINTS[:4], *POINTS[4:]]
    more = [(0.2 + 0.05 * i, 0.2) for i in range(4)] + [(5.1 + 0.05 * i, 5.2) for i in range(4)]
    names = [*NAMES, *(f"g{i}" for i in range(8))]
    table(points=[*points, *more], labels=[*labels, *["daisy"] * 4, *["rose"] * 4], names=names)
    asked("learn", "m.km", "flowers.csv")
    first, *_ = [one["id"] for one in asked("suspects", "m.km", code=1)]
    terminal = Terminal("suspects", "m.km", "--apply")
    terminal.until(f"{first}: labelled")
    terminal.until("margin")
    terminal.keys("a")
    terminal.until("relabelled")
    terminal.until("margin")
    terminal.keys("u")
    terminal.until(f"undone: {first}")
    terminal.until(f"{first}: labelled")
    terminal.until("margin")
    terminal.keys("o")
    terminal.until("label: ")
    terminal.keys("roses\r")
    terminal.until("  roses is a new class. Did you mean rose? Make it? y/n")
    terminal.keys("n")
    terminal.keys("o")
    terminal.until("label: ")
    terminal.keys("tulip\r")
    terminal.until("  relabelled: tulip. tulip is a new class.")
    terminal.until("labelled")
    terminal.until("margin")
    terminal.keys("x")
    terminal.until(
        "a accept   o other label   n not this class   k keep   f forget   u undo   q quit"
    )
    terminal.keys("k")
    terminal.until("kept")
    terminal.until("margin")
    terminal.keys("f")
    terminal.until("y/n")
    terminal.keys("y")
    terminal.until("forgotten")
    terminal.keys("q")
    terminal.until("1 relabelled, 1 kept, 1 forgotten.")
    assert terminal.code() == 0
    with knowmore.open("m.km") as store:
        held = {record.id: record.label for record in store.records()}
    assert held[first] == "tulip"
    assert len(held) == 14
    assert [one["verb"] for one in asked("log", "m.km")] == ["learn", "relabel", "forget"]


@pytest.mark.slow
def test_a_label_is_refused_with_one_key_and_relabel_brings_its_example_back(model):
    def ask(*keys):
        terminal = Terminal("suspects", model, "--apply")
        for key, answer in keys:
            terminal.until("f2: labelled rose")
            terminal.until("margin")
            terminal.keys(key)
            terminal.until(answer)
        return terminal

    terminal = ask(("n", "  put aside, until"))
    terminal.until("0 relabelled, 0 kept, 0 forgotten, 1 put aside.")
    assert terminal.code() == 0
    with knowmore.open(model) as store:
        assert (store.refused(), len(store)) == ({"f2": ["rose"]}, 6)
    assert asked("log", model)[-1]["verb"] == "refuse"
    result = run("relabel", model, "f2", "daisy")
    assert result.stdout == "Relabelled: f2, which was put aside, to daisy.\n"
    with knowmore.open(model) as store:
        assert (store.aside(), len(store)) == ([], 7)


@pytest.mark.slow
def test_all_suspects_of_the_start_are_asked():
    # After six answers no suspect is left, though two of the eight are still wrong.
    rng, true = np.random.default_rng(16), np.arange(30) % 2
    points = (rng.normal(size=(30, 2)) + 3.0 * true[:, None]).round(2)
    given = np.where(rng.random(30) < 0.15, 1 - true, true)
    kinds = np.array(["daisy", "rose"])
    names = [f"p{i}" for i in range(30)]
    knowmore.open("m.km", GPClassifier(noise=0.1, settings="median")).close()
    asked("learn", "m.km", table(points=points, labels=kinds[given], names=names))
    listed = [one["id"] for one in asked("suspects", "m.km", code=1)]
    assert len(listed) == 8
    terminal, open_, later = Terminal("suspects", "m.km", "--apply"), {*listed}, []
    terminal.until("q quit")
    while open_:
        name = terminal.until(": labelled").split()[-1]
        said = terminal.until("\n")
        later += ["at the start" in said]
        open_.remove(name)
        row = names.index(name)
        terminal.keys("k" if given[row] == true[row] else f"o{kinds[true[row]]}\r")
    terminal.until("No other suspect is left.")
    assert terminal.code() == 0
    assert later[:7] == [False] * 6 + [True]
    with knowmore.open("m.km") as store:
        assert (store.examples.labels == kinds[true])[[names.index(one) for one in listed]].all()


@pytest.mark.slow
def test_a_kept_label_is_not_asked_again_until_it_changes(model):
    def ask(*keys):
        terminal = Terminal("suspects", model, "--apply")
        for key, answer in keys:
            terminal.until("f2: labelled rose")
            terminal.until("margin")
            terminal.keys(key)
            terminal.until(answer)
        terminal.until("No other suspect is left.")
        terminal.until("kept, 0 forgotten.")
        assert terminal.code() == 0

    ask(("k", "kept"))
    assert asked("suspects", model) == []
    result = run("suspects", model)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.splitlines()[1] == "Left out: 1 that somebody looked at and kept."
    ask()
    asked("relabel", model, "f2", "daisy")
    asked("relabel", model, "f2", "rose")
    assert [one["id"] for one in asked("suspects", model, code=1)] == ["f2"]


@pytest.mark.slow
def test_a_kept_label_can_be_taken_back(model):
    terminal = Terminal("suspects", model, "--apply")
    terminal.until("margin")
    terminal.keys("u")
    terminal.until("nothing to undo")
    terminal.keys("k")
    terminal.until("0 relabelled, 1 kept, 0 forgotten.")
    terminal.code()
    with knowmore.open(model) as store:
        assert store.kept_.tolist() == ["f2"]
        store.keep("f2", kept=False)
        store.relabel("f1", "rose")
    terminal = Terminal("suspects", model, "--apply")
    terminal.until(": labelled")
    terminal.until("margin")
    terminal.keys("k")
    terminal.until("kept")
    terminal.until("margin")
    terminal.keys("u")
    terminal.until("undone: ")
    terminal.until("margin")
    terminal.keys("q")
    terminal.until("0 relabelled, 0 kept, 0 forgotten.")
    terminal.until("Not decided: ")
    terminal.until("how many are wrong.")
    assert terminal.code() == 0
    with knowmore.open(model) as store:
        assert store.kept_.tolist() == []


@pytest.mark.slow
def test_forgetting_asks_on_a_terminal(model):
    terminal = Terminal("forget", model, "f0")
    terminal.until("Forget 1 example for ever? [y/N] ")
    terminal.keys("n\r")
    terminal.until("Nothing was forgotten.")
    assert terminal.code() == 0
    assert asked("status", model)["examples"] == 7
    terminal = Terminal("forget", model, "f0")
    terminal.until("[y/N] ")
    terminal.keys("y\r")
    terminal.until("Forgotten: 1 example; 6 stay.")
    assert terminal.code() == 0
    assert asked("status", model)["examples"] == 6


@pytest.mark.slow
def test_a_class_that_may_be_a_slip_is_asked_about_on_a_terminal(model):
    terminal = Terminal("relabel", model, "f2", "daisies")
    terminal.until("daisies is a new class. Did you mean daisy? Make it? [y/N] ")
    terminal.keys("\r")
    terminal.until("Nothing was changed.")
    assert terminal.code() == 0
    assert len(asked("status", model)["classes"]) == 2
    terminal = Terminal("relabel", model, "f2", "daisies")
    terminal.until("[y/N] ")
    terminal.keys("y\r")
    terminal.until("Relabelled: f2, from rose to daisies.")
    assert terminal.code() == 0
    for words in (["f2", "daisys", "--yes"], ["f2", "tulip"], ["f2", "rose"]):
        terminal = Terminal("relabel", model, *words)
        assert "[y/N]" not in terminal.until(f"to {words[1]}.")
        assert terminal.code() == 0
    classes = asked("status", model)["classes"]
    assert {one["label"]: one["examples"] for one in classes} == {"daisy": 3, "rose": 4}


def test_rows_with_gaps_are_not_predicted_and_the_others_are():
    with open("known.csv", "w") as file:
        file.write("a,b,label\n1,2,x\n2,3,y\n3,3,x\n")
    assert run("learn", "m.km", "known.csv").exit_code == 0
    with open("gaps.csv", "w") as file:
        file.write("a,b\n1,2\n2,\n3,oops\n4,inf\n2,3\n")
    result = run("predict", "m.km", "gaps.csv", "--json")
    assert result.exit_code == 3
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == [0, 4]
    assert result.stderr.splitlines() == [
        f"Skipped: 'gaps.csv, line {line}' has no finite number in column 'b'" for line in (3, 4, 5)
    ]
    table = pd.DataFrame({"a": [1, None, 2], "b": [2, 3, 3]})
    table.to_parquet("gaps.parquet")
    np.savez("gaps.npz", X=table.to_numpy(float))
    for name in ("gaps.parquet", "gaps.npz"):
        result = run("predict", "m.km", name, "--json")
        assert result.exit_code == 3
        assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == [0, 2]
    # An array has no names of columns that a blank could be said of.
    np.savez("gaps.npz", X=table.to_numpy(float), y=["x", "y", "x"])
    with pytest.raises(InvalidInput, match=r"'gaps\.npz', row 1, column 0: the value is NaN"):
        run("learn", "m.km", "gaps.npz")


@pytest.mark.slow
def test_a_column_that_drowns_the_others_is_named_once(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3)) * [1, 1000, 2]
    lines = [f"{a},{b},{c},{'ab'[i % 2]}" for i, (a, b, c) in enumerate(rows)]
    model, source = tmp_path / "m.km", tmp_path / "table.csv"
    source.write_text("\n".join(["x,income,z,label", *lines]) + "\n")
    knowmore.open(model, GPClassifier(settings="median")).close()
    lines = apart("learn", model, source).stderr.splitlines()
    (said,) = [
        one for one in lines if one.startswith("knowmore: Column 'income' has a standard deviation")
    ]
    assert said.endswith(
        "have no say. Scale the columns of the table before it is learnt, or call knowmore tune."
    )
    assert "Column" not in apart("learn", model, source).stderr
    assert "Column" not in apart("predict", model, source).stderr
