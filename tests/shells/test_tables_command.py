"""Tables as they come, through every command: texts, blanks, truth values and dates."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import numpy as np
import pytest
from texts import write_table, written
from tolerance import assert_rounded
from typer.testing import CliRunner

import knowmore
from knowmore import insight
from knowmore.cli import serving
from knowmore.cli.app import app
from knowmore.errors import InvalidInput, KnowmoreWarning
from knowmore.estimators import unnamed
from knowmore.store import Store
from knowmore.tables import Options
from knowmore.web.answering import Answering

pd = pytest.importorskip("pandas")

PENGUINS = """\
name,species,island,mass,ringed,seen,year
Ada,Adelie,Torgersen,3750,true,2007-11-11,2007
Bo,Adelie,Torgersen,3800,false,2007-11-11,2007
Cy,Adelie,Dream,NA,true,2007-11-16,2008
Di,Gentoo,Biscoe,5000,true,2008-01-01,2008
Ed,Gentoo,Biscoe,5200,,2008-01-03,2009
Fay,Gentoo,Biscoe,NA,false,,2009
Gus,Chinstrap,Dream,3500,false,2008-02-01,2007
Hal,Chinstrap,Dream,3700,true,2008-02-02,2008
Ivy,Chinstrap,,3600,true,2008-02-03,2008
Jo,Gentoo,Biscoe,4900,true,2008-02-03,2009
Kit,Adelie,Torgersen,3900,true,2008-02-03,2009
"""
NEW = {"island": "Biscoe", "mass": 5100, "ringed": None, "seen": "2008-01-02", "year": 2008}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "penguins.csv").write_text(PENGUINS)
    return tmp_path


def run(*words, stdin=None):
    result = CliRunner().invoke(app, [str(word) for word in words], input=stdin)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def asked(*words, code=0):
    result = run(*words, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


@pytest.fixture
def model():
    run("learn", "p.km", "penguins.csv", "--label", "species", "--ignore", "name")
    return "p.km"


def test_two_commands_lead_from_a_table_to_an_answer(here):
    result = run("learn", "p.km", "penguins.csv", "--label", "species")
    assert result.exit_code == 0
    assert "The column 'name' has 11 different texts in 11 rows, so they seem to be " in (
        result.stderr
    )
    assert "left out. To learn texts: --text name. Names of levels all" in result.stderr
    (here / "new.csv").write_text("island,mass,ringed,seen,year\nBiscoe,5050,,2008-01-05,2009\n")
    assert "Gentoo" in run("predict", "p.km", "new.csv").stdout
    again = asked("learn", "p.km", "penguins.csv")
    assert (again["skipped"], again["added"], again["left_out"]) == (11, 0, {})


def test_status_shows_columns_by_their_types(model):
    table = {one["name"]: one for one in asked("status", model)["table"]}
    assert {name: one["type"] for name, one in table.items()} == {
        "island": "category",
        "mass": "number",
        "ringed": "truth",
        "seen": "date",
        "year": "number",
    }
    assert table["mass"]["fill"] == 3800.0
    assert table["island"]["levels"] == ["Biscoe", "Dream", "Torgersen"]
    lines = run("status", model).stdout.splitlines()
    shown = [line.split() for line in lines if line.startswith(("island", "mass"))]
    assert shown[0] == ["island", "category", "Biscoe,", "Dream,", "Torgersen", "a", "feature"]
    assert shown[1] == ["mass", "number", "3800,", "a", "feature"]


@pytest.mark.slow(fast=["csv", "jsonl"])
@pytest.mark.parametrize("form", ["csv", "tsv", "semicolons", "jsonl", "parquet", "-"])
def test_every_door_learns_the_same(form, here, monkeypatch):
    frame = pd.read_csv("penguins.csv").drop(columns="name")
    frame["ringed"] = frame["ringed"].map({True: True, False: False, "true": True, "false": False})
    cells = frame.astype(object).where(frame.notna(), None)
    if form in ("csv", "tsv", "semicolons"):
        name, mark = ("t.tsv", "\t") if form == "tsv" else ("t.csv", ";" if form != "csv" else ",")
        frame.to_csv(name, sep=mark, index=False, encoding="utf-8-sig")
    elif form == "parquet":
        pytest.importorskip("pyarrow")
        cells["seen"] = pd.to_datetime(cells["seen"])
        cells["island"] = cells["island"].astype("category")
        cells["mass"] = cells["mass"].astype(float)
        cells["ringed"] = cells["ringed"].astype("boolean")
        cells.to_parquet(name := "t.parquet")
    else:
        name = "t.jsonl"
        lines = [json.dumps(row) for row in cells.to_dict("records")]
        (here / name).write_text("\n".join(lines) + "\n")
    if form == "-":
        given = (here / name).read_bytes()
        done = subprocess.run(
            [sys.executable, "-m", "knowmore", "learn", "m.km", "-", "--label", "species"],
            input=given,
            check=True,
            capture_output=True,
        )
        assert b"11 added" in done.stdout
    else:
        assert asked("learn", "m.km", name, "--label", "species")["added"] == 11
    run("learn", "c.km", "penguins.csv", "--label", "species", "--ignore", "name")
    with Store("m.km") as store, Store("c.km") as control:
        assert store.table.columns == control.table.columns
        np.testing.assert_array_equal(store.examples.X, control.examples.X)
        # The same cells have the same ids.
        assert store.ids_.tolist() == control.ids_.tolist()


def test_a_row_of_another_type_is_skipped_and_listed(model, here):
    (here / "new.csv").write_text(
        "island,mass,ringed,seen,year\nBiscoe,5050,,,2009\nDream,heavy,true,,2008\nMoon,NA,?,-,2007\n"
    )
    result = run("predict", model, "new.csv", "--json")
    assert result.exit_code == 3
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == [0, 2]
    assert result.stderr.splitlines() == [
        "Skipped: 'new.csv, line 3' column 'mass': 'heavy' is not a number. The model has learnt "
        "numbers in this column: correct the cell, or leave it empty."
    ]
    lines = "\n".join(json.dumps(NEW | {"mass": one}) for one in (1, "heavy", None))
    done = subprocess.run(
        [sys.executable, "-m", "knowmore", "predict", model, "-", "--json"],
        input=lines,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 3
    assert len(done.stdout.splitlines()) == 2
    assert "line 2: column 'mass': 'heavy' is not a number" in done.stderr


def test_replace_explain_novel_suggest_evaluate_and_suspects(model, here):
    with Store(model) as store:
        one = store.ids_[0]
    assert run("replace", model, one, json.dumps(NEW | {"island": "Anvers"})).exit_code == 0
    with Store(model) as store:
        assert "island=Anvers" in store.table.features
        assert store.cells([one])[0][0] == "Anvers"
        assert [entry.verb for entry in store.log()] == ["learn", "replace"]
        assert store.verify().ok
    assert run("undo", model).exit_code == 0
    with Store(model) as store:
        assert store.cells([one])[0][0] == "Torgersen"
        assert store.verify().ok
    for words in (["explain", model, one], ["explain", model, json.dumps(NEW)]):
        assert run(*words).exit_code == 0
    (here / "new.jsonl").write_text("\n".join(json.dumps(NEW | {"mass": m}) for m in (1, 2, None)))
    assert {one["id"] for one in json.loads(run("novel", model, "new.jsonl", "--json").stdout)} == {
        0,
        1,
    }
    assert len(asked("suggest", model, "new.jsonl", "-n", "2")) == 2
    assert asked("evaluate", model)["examples"] == 11
    assert run("suspects", model).exit_code in (0, 1)


def test_an_explanation_of_a_linear_model_is_by_columns(here):
    run("init", "l.km", "--kind", "linear")
    run("learn", "l.km", "penguins.csv", "--label", "species", "--ignore", "name")
    found = asked("explain", "l.km", json.dumps(NEW))
    parts = {one["feature"]: one for one in found["parts"]}
    assert set(parts) == {"island", "mass", "ringed", "seen", "year"}
    assert (parts["island"]["value"], parts["island"]["mean"]) == ("Biscoe", None)
    assert (parts["mass"]["value"], parts["ringed"]["value"]) == (5100.0, None)
    with Store("l.km") as store:
        x = store.table.vectors([store.table.read([NEW[name] for name in store.table.names])])
        every = insight.explain(unnamed(store.estimator), x)
    total = sum(one["contribution"] for one in parts.values())
    assert_rounded(np.array([total]), np.array([every.contributions.sum()]), 2e5, 1.0)
    assert "Biscoe" in run("explain", "l.km", json.dumps(NEW)).stdout


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_an_exported_table_can_be_learnt_again(form, model):
    pytest.importorskip("pyarrow")
    assert run("export", model, "--table", f"out.{form}").exit_code == 0
    if form == "csv":
        with open("out.csv", newline="") as file:
            first = next(csv.DictReader(file))
        assert first["island"] == "Torgersen"
        assert first["mass"] == "3750.0"
    ignore = "weight,loo_predicted,loo_score,loo_variance,loo_silent"
    run("learn", "again.km", f"out.{form}", "--ignore", ignore)
    with Store(model) as store, Store("again.km") as again:
        assert again.table.columns == store.table.columns
        np.testing.assert_array_equal(again.examples.X, store.examples.X)


def test_files_with_other_levels_merge(model, here):
    rows = PENGUINS.splitlines()
    other = [row.replace("Biscoe", "Anvers").replace(",200", ",210") for row in rows[1:6]]
    (here / "other.csv").write_text("\n".join([rows[0], *other]) + "\n")
    run("learn", "o.km", "other.csv", "--label", "species", "--ignore", "name")
    assert asked("merge", model, "o.km", "--dry-run")["added"] == 5
    assert asked("merge", model, "o.km")["examples"] == 16
    with Store(model) as store, Store("o.km") as theirs:
        assert "island=Anvers" in store.table.features
        assert store.cells(theirs.ids_) == theirs.cells()
        assert store.verify().ok


def test_the_service_takes_rows_by_name(model):
    with Store(model) as store:
        ask = Answering(store, 0.05)
        assert [one.label for one in ask([NEW, NEW | {"island": None, "mass": "5000"}])] == [
            "Gentoo",
            "Gentoo",
        ]
        for rows, words in (
            ([[1.0, 2.0]], "Row 0 is a list, but the model has learnt columns by their names"),
            (["Win money now"], "Row 0 is a text, but the model has learnt columns by their names"),
            ([NEW, {"island": "Biscoe"}], "Row 1 lacks 'mass', 'ringed', 'seen'"),
            ([NEW | {"mass": "big"}], "Row 0, column 'mass': 'big' is not a number."),
            ([NEW | {"seen": 5}], "Row 0, column 'seen': 5 is not a date. Write it as 2024-03-01."),
        ):
            with pytest.raises(InvalidInput) as caught:
                ask(rows)
            assert words in str(caught.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--columns", "mass"], "--columns names other columns than the model has learnt"),
        (["--category", "year"], "--category year: the model has learnt numbers of this column"),
        (["--category", "name"], "--category name: the model has learnt nothing of this column"),
        (["--ignore", "mass"], "--ignore mass: the model has learnt this column"),
    ],
)
def test_options_that_contradict_the_file(model, words, said, here):
    before = (here / model).read_bytes()
    with pytest.raises(InvalidInput) as caught:
        run("learn", model, "penguins.csv", *words)
    assert said in str(caught.value)
    assert (here / model).read_bytes() == before


def test_the_studio_learns_a_table_first_with_its_options(here):
    options = {"label": "species", "id": None, "table": Options(ignore=("name",))}
    path = serving._model(here / "penguins.csv", options)
    assert path == here / "penguins.km"
    with Store(path) as store:
        assert store.table.options.ignore == ("name",)
        assert len(store) == 11


def test_columns_that_a_table_has_left_out_are_named(model, here):
    said = run("learn", "q.km", "penguins.csv", "--label", "species", "--ignore", "name").stderr
    assert said.startswith("Ignored: 'name'.\nThe rows have no ids")


def test_the_studio_learns_texts_and_says_which_columns_are_left_out(here, capsys):
    write_table(here / "mail.csv", *written(4))
    options = {"label": "kind", "id": "nr", "table": Options()}
    serving._model(here / "mail.csv", options)
    said = capsys.readouterr().err
    assert "The column 'body' has 12 different texts in 12 rows" in said
    assert "To learn texts: --text body. Names of levels all the same: --category body\n" in said
    shutil.copy("mail.csv", "texts.csv")
    with Store(serving._model(here / "texts.csv", options | {"text": "body"})) as store:
        assert store.notes["text"] == "body"
    assert "--text" in run("studio", "--help").stdout
    with pytest.raises(InvalidInput, match=r"--label, --id, --text, .* are of a table that is le"):
        serving._model(here / "texts.km", options | {"text": "body"})


def test_the_advice_names_a_column_that_has_values(here):
    (here / "t.csv").write_text("gone,my body,kind\n" + "".join(f",t {i},x\n" for i in range(12)))
    with pytest.raises(InvalidInput, match=r"--text 'my body'\. .*: --category 'my body'\.$"):
        run("learn", "t.km", "t.csv", "--label", "kind")


def test_options_are_kept(here):
    run(
        "learn",
        "y.km",
        "penguins.csv",
        "--label",
        "species",
        "--columns",
        "mass,year",
        "--category",
        "year",
    )
    with Store("y.km") as store:
        assert store.table.features == (
            "mass",
            "mass is blank",
            "year=2007",
            "year=2008",
            "year=2009",
        )
    assert asked("learn", "y.km", "penguins.csv", "--category", "year")["skipped"] == 11


def test_cells_that_a_spreadsheet_would_run_come_back(here):
    (here / "t.csv").write_text("sign,label\n'=1+1,x\n'@b,y\n")
    run("learn", "t.km", "t.csv")
    run("export", "t.km", "--table", "out.csv")
    with Store("t.km") as store:
        assert store.cells() == [("=1+1",), ("@b",)]
    with open("out.csv", newline="") as file:
        assert [row["sign"] for row in csv.DictReader(file)] == ["'=1+1", "'@b"]


def test_arrays_have_no_cells(model, here):
    np.savez(here / "x.npz", X=[[1.0, 2.0]], y=["Adelie"])
    words = "has learnt a table by the names of its columns, and 'x.npz' holds numbers"
    with pytest.raises(InvalidInput, match=words):
        run("learn", model, "x.npz")


def test_an_exported_database_has_cells(model, here):
    run("export", model, "--sqlite", "out.db")
    with closing(sqlite3.connect(here / "out.db")) as database:
        rows = database.execute("SELECT island, mass, ringed, seen FROM examples").fetchall()
    assert rows[0] == ("Torgersen", 3750.0, 1, "2007-11-11")
    assert (None, 3600.0, 1, "2008-02-03") in rows


def test_a_plain_table_of_numbers_stays_as_it_was(here):
    (here / "n.csv").write_text("a,b,label\n1,2,x\n3,4,y\n")
    run("learn", "n.km", "n.csv")
    with Store("n.km") as store:
        assert store.table is None
        assert "table" not in store.notes
        assert store.notes["columns"] == ["a", "b"]
        assert all(record.thumbnail is None for record in store.records())


@pytest.mark.parametrize("last", ["80331,2", "01067,2"])
def test_zip_codes_keep_their_zeros(last, here):
    (here / "z.csv").write_text(f"zip,b,label\n80331,1,x\n01067,0.5,y\n{last},x\n")
    run("learn", "z.km", "z.csv")
    with Store("z.km") as store:
        assert [column.kind for column in store.table.columns] == ["category", "number"]
        assert store.cells()[1] == ("01067", 0.5)


def test_a_model_of_numbers_learns_padded_numbers_as_such(here):
    (here / "n.csv").write_text("a,b,label\n1,2,x\n3,4,y\n")
    (here / "p.csv").write_text("a,b,label\n05,2,x\n")
    run("learn", "n.km", "n.csv")
    run("learn", "n.km", "p.csv")
    with Store("n.km") as store:
        assert store.table is None
        assert store.cells()[2] == (5.0, 2.0)


def test_a_row_that_is_blank_everywhere_is_unknown(model, here):
    (here / "new.csv").write_text(
        "id,island,mass,ringed,seen,year\nn1,,,,,\nn2,Biscoe,5100,true,2008-01-02,2008\n"
    )
    with pytest.warns(
        KnowmoreWarning, match=r"^Blank or new in every column.*: 'n1'\. Fill in what"
    ):
        said = run("predict", model, "new.csv", "--rate", "0", "--json")
    blank, full = map(json.loads, said.stdout.splitlines())
    assert (blank["id"], blank["unknown"]) == ("n1", True)
    assert full["unknown"] is None


def test_an_explanation_shows_the_cells_of_examples(model):
    row = json.dumps(NEW)
    parts = asked("explain", model, row, "--count", "2")["parts"]
    with Store(model) as store:
        for part in parts:
            (cells,) = store.cells(part["id"][:1])
            assert part["cells"] == dict(zip(store.table.names, cells, strict=True))
    said = run("explain", model, row, "--count", "2").stdout.splitlines()
    assert "cells" in said[1]
    assert said[2].rstrip().split("  ")[-1].startswith("island ")


def test_tomorrows_file_under_another_name(model, here):
    (here / "tomorrow.csv").write_text(PENGUINS)
    found = asked("learn", model, "tomorrow.csv", "--sync")
    assert found["elsewhere"] == {"penguins.csv": 11}
    assert (found["skipped"], found["forgotten"]) == (11, 0)
    said = run("learn", model, "tomorrow.csv", "--sync").stderr
    assert "11 of these ids came from 'penguins.csv', and --sync forgets only what came" in said
    assert "--origin penguins.csv" in said


def test_a_model_of_numbers_refuses_a_text(here):
    (here / "n.csv").write_text("a,b,label\n1,2,x\n3,4,y\n")
    run("learn", "n.km", "n.csv")
    (here / "m.csv").write_text("a,b,label\n1,2,x\n3,red,y\n")
    before = (here / "n.km").read_bytes()
    with pytest.raises(InvalidInput) as caught:
        run("learn", "n.km", "m.csv")
    assert str(caught.value) == (
        "'m.csv', line 3, column 'b': 'red' is not a number. The model has learnt numbers in this "
        "column: correct the cell, or leave it empty."
    )
    assert (here / "n.km").read_bytes() == before


def test_kinds_that_take_numbers_alone(here):
    run("learn", "known.km", "penguins.csv", "--label", "species", "--columns", "mass")
    (here / "s.csv").write_text("a,label\n1,p\n2,q\n3,p\n4,q\n")
    run("init", "one.km", "--kind", "one-shot", "--supports", "s.csv")
    (here / "t.csv").write_text("a,label\n1,x\n,y\n")
    with pytest.raises(InvalidInput, match="one-shot learns rows of numbers"):
        run("learn", "one.km", "t.csv")


def test_the_python_way_gives_the_same_features(model):
    from knowmore.tables import TableEncoder

    frame = pd.read_csv("penguins.csv")
    encoder = TableEncoder(ignore=["name", "species"]).fit(frame)
    with knowmore.open(model) as store:
        assert encoder.get_feature_names_out().tolist() == list(store.table.features)
        np.testing.assert_array_equal(encoder.transform(frame), store.examples.X)
