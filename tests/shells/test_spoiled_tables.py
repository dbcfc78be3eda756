"""Tables that are spoiled: every sentence names file, line, column and remedy; no byte changes."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from knowmore.cli.app import app
from knowmore.errors import KnowmoreError

HEAD = "id,island,mass,ringed,seen,label"
GOOD = [
    "a,Biscoe,4200,true,2024-03-01,x",
    "b,Dream,NA,false,2024-03-02,y",
    "c,Dream,3700,true,,x",
    "d,,3900,true,2024-03-04,y",
]
OBJECT = {
    "id": "e",
    "island": "Dream",
    "mass": 4000,
    "ringed": True,
    "seen": "2024-03-05",
    "label": "x",
}
LEARNT = {"mass": "numbers", "ringed": "true and false", "seen": "dates", "island": "names"}

# A cell of a known table: column, text, words of the reason.
CELLS = [
    ("mass", "heavy", "'heavy' is not a number"),
    ("mass", "3,7", "'3,7' has a decimal comma. Write a point"),
    ("mass", "4.020,25", "has points between thousands and a decimal comma. Write 4020.25"),
    ("mass", "-1.004.020,5", "has points between thousands and a decimal comma. Write -1004020.5"),
    ("mass", "3,700", "'3,700' has a comma. Write a decimal point, or no thousands separator"),
    ("mass", "3,700,000", "'3,700,000' has thousands separators. Leave them out"),
    ("mass", "3'700", '"3\'700" has thousands separators'),
    ("mass", "3 700", "'3 700' has thousands separators"),
    ("mass", "4200g", "'4200g' is not a number"),
    ("mass", "$42", "'$42' is not a number"),
    ("mass", "1_000", "'1_000' is not a number"),
    ("mass", "0x1f", "'0x1f' is not a number"),
    ("mass", "inf", "the value is infinite"),
    ("mass", "-Infinity", "the value is infinite"),
    ("mass", "1e999", "'1e999' is too large for a number"),
    ("mass", "1.2.3", "'1.2.3' is not a number"),
    ("mass", "none", "'none' is not a number"),
    ("mass", "--", "'--' is not a number"),
    ("mass", "true", "'true' is not a number"),
    ("mass", "2024-03-01", "'2024-03-01' is not a number"),
    ("mass", "x" * 60, "xxx... is not a number"),
    ("ringed", "yes", "'yes' is neither true nor false"),
    ("ringed", "1", "'1' is neither true nor false"),
    ("ringed", "maybe", "'maybe' is neither true nor false"),
    ("ringed", "truely", "'truely' is neither true nor false"),
    ("seen", "soon", "'soon' is not a date. Write it as 2024-03-01"),
    ("seen", "2024-13-01", "'2024-13-01' is not a date"),
    ("seen", "2024-02-30", "'2024-02-30' is not a date"),
    ("seen", "1.3.2024", "'1.3.2024' is not a date"),
    ("seen", "03/01/2024", "'03/01/2024' is not a date"),
    ("seen", "20240301", "'20240301' is not a date"),
    ("seen", "2024-03-01T25:00", "'2024-03-01T25:00' is not a date"),
    ("seen", "1709251200", "'1709251200' is not a date"),
]
# A value of a JSON object: column, value, words of the reason.
VALUES = [
    ("mass", "heavy", "'heavy' is not a number"),
    ("mass", True, "true is not a number"),
    ("mass", [4200], "[4200] is not a number"),
    ("mass", {"g": 1}, "{'g': 1} is not a number"),
    ("ringed", 1, "1 is neither true nor false"),
    ("ringed", "on", "'on' is neither true nor false"),
    ("seen", 20240301, "20240301 is not a date"),
    ("seen", False, "False is not a date"),
    ("island", ["Dream"], "['Dream'] is neither text nor a number"),
    ("island", {"name": "Dream"}, "{'name': 'Dream'} is neither text nor a number"),
]
# A whole CSV file for the known table, and the words of the error.
FILES = [
    ("id,island,mass,ringed,label\ne,Dream,1,true,x\n", "has no column 'seen', which the model"),
    (f"{HEAD},extra\ne,Dream,1,true,,x,1\n", "has a column 'extra', which the model does not know"),
    (f"{HEAD}\ne,Dream,1,true,x\n", "line 2: it has 5 values, but the first line names 6"),
    (f"{HEAD}\ne,Dream,1,true,,x,7\n", "line 2: it has 7 values, but the first line names 6"),
    (f"{HEAD}\n", "has no rows below its first line"),
    ("", "is empty. Its first line must name the columns"),
    ("1,2,3,4,5,6\n", "has numbers in its first line"),
    (f'{HEAD}\ne,"Dream,1,true,,x\n', "not CSV"),
    (f"{HEAD}\ne,Dream,1,true,,\n", "line 2: there is no label"),
    (f"{HEAD}\n,Dream,1,true,,x\n", "line 2: there is no id"),
    (f"{HEAD}\ne,Dream,1,true,,x\ne,Dream,2,true,,x\n", "has the id 'e' twice"),
    ("id,island,island,ringed,seen,label\ne,a,b,true,,x\n", "has two columns 'island'"),
    ("id,,mass,ringed,seen,label\ne,a,1,true,,x\n", "has no name for column 2"),
]
# The first table of a new model, and the words of the error.
FIRST = [
    ("a,label\n1,x\n2,y\nbig,x\n", "line 4, column 'a': 'big' is not a number, but 2 of the 3"),
    ('a,label\n"1,5",x\n"2,5",y\n', "line 2, column 'a': '1,5' has a decimal comma. Write a point"),
    ("a,label\n2024-01-01,x\n2024-01-02,y\nsoon,x\n", "column 'a': 'soon' is not a date, but 2"),
    ("a,label\n1/2/2024,x\n3/4/2024,y\n", "column 'a': the dates may begin with the day"),
    ("a,label\n1/2/2024,x\n3.4.2024,y\n", "column 'a': the dates are written in several ways"),
    ("a,label\n,x\nNA,y\n", "No column is left to learn from: 'a' is all blank"),
    ("sex,sex=m,label\nm,1,x\nf,2,y\n", "Two features would have the name 'sex=m'"),
    ("a,b,label\nred,inf,x\nblue,1,y\n", "line 2, column 'b': the value is infinite"),
]


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text("\n".join([HEAD, *GOOD]) + "\n")
    assert run("learn", "m.km", "good.csv").exit_code == 0
    return tmp_path / "m.km"


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def assert_refused(model, source, *words):
    before = model.read_bytes()
    with pytest.raises(KnowmoreError) as caught:
        run("learn", model, source)
    said = str(caught.value)
    for one in (source.name, *words):
        assert one in said, said
    assert model.read_bytes() == before


@pytest.mark.parametrize(("column", "text", "words"), CELLS, ids=[f"{c}-{t}" for c, t, _ in CELLS])
def test_a_cell_of_another_type_in_csv(column, text, words, model):
    source, names = model.with_name("bad.csv"), HEAD.split(",")
    cells = ["e", "Dream", "4000", "true", "2024-03-05", "x"]
    cells[names.index(column)] = f'"{text}"'
    source.write_text("\n".join([HEAD, "f,Dream,1,true,,x", ",".join(cells)]) + "\n")
    remedy = f"The model has learnt {LEARNT[column]} in this column: correct the cell, or leave it"
    assert_refused(model, source, "line 3", f"column '{column}'", words, remedy)


@pytest.mark.parametrize(
    ("column", "value", "words"), VALUES, ids=[f"{c}-{v}" for c, v, _ in VALUES]
)
def test_a_value_of_another_type_in_json(column, value, words, model):
    source = model.with_name("bad.jsonl")
    rows = [OBJECT | {"id": "f"}, OBJECT | {column: value}]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    remedy = f"The model has learnt {LEARNT[column]} in this column: correct the cell, or leave it"
    assert_refused(model, source, "line 2", f"column '{column}'", words, remedy)


@pytest.mark.parametrize(("text", "words"), FILES, ids=[words for _, words in FILES])
def test_a_spoiled_file(text, words, model):
    source = model.with_name("bad.csv")
    source.write_text(text)
    assert_refused(model, source, words)


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("mass", [1.0, float("inf")], "row 1, column 'mass': the value is infinite"),
        ("mass", ["1", "heavy"], "row 1, column 'mass': 'heavy' is not a number"),
        ("ringed", [1, 0], "row 0, column 'ringed': 1 is neither true nor false"),
        ("seen", [1, 2], "row 0, column 'seen': 1 is not a date"),
        ("island", [["a"], ["b"]], "row 0, column 'island': ['a'] is neither text nor a number"),
        ("mass", [b"1", b"2"], "row 0, column 'mass': b'1' is not a number"),
    ],
)
def test_a_value_of_another_type_in_parquet(column, values, words, model):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {name: [value] * 2 for name, value in OBJECT.items()} | {column: values}
    source = model.with_name("bad.parquet")
    parquet.write_table(arrow.table(columns | {"id": ["e", "f"]}), source)
    assert_refused(model, source, words, "correct the cell, or leave it empty")


@pytest.mark.parametrize(("text", "words"), FIRST, ids=[words for _, words in FIRST])
def test_a_spoiled_first_table_makes_no_model(text, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.csv").write_text(text)
    with pytest.raises(KnowmoreError) as caught:
        run("learn", "m.km", "first.csv")
    assert words in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["first.csv"]


@pytest.mark.parametrize("line", ["not json", "[1, 2]", '{"island": "Dream"}', '{"features": [1]}'])
def test_a_line_that_is_no_row_of_the_table(line, model):
    source = model.with_name("bad.jsonl")
    source.write_text(f"{json.dumps(OBJECT)}\n{line}\n")
    assert_refused(model, source, "line 2")
