"""Sources of the command: every form, and each error in one line."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from knowmore.errors import InvalidInput, MissingData
from knowmore.workbench.model import typed
from knowmore.workbench.sources import Wanted, open_source, single_row
from knowmore.workbench.sources.records import content_id

KNOWN = Wanted(columns=("b", "a"))
ASKED = Wanted(columns=("b", "a"), labelled=False)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def records(name, wanted=None):
    """All records of a source: ids, labels, numbers and contributors."""
    blocks = list(open_source(name, wanted or Wanted()).blocks())
    columns = zip(*map(parts, blocks), strict=True)
    return [[one for part in column for one in part or ()] for column in columns]


def parts(block):
    return block.ids, block.labels, np.asarray(block.X).tolist(), block.contributors


def write(name, text):
    with open(name, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return name


ROWS = [["7", "8"], ["x", "y"], [[1.0, 2.5], [3.0, 4.0]], ["ann", None]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "id,a,b,label,contributor\n7,1,2.5,x,ann\n8,3,4,y,\n"),
        ("a.csv", "\ufeffid;a;b;label;contributor\r\n7;1;2.5;x;ann\r\n\r\n8;3;4;y;\r\n"),
        ("a.csv", 'id, a, b, label, contributor\n7, 1, 2.5, "x", ann\n8, 3, 4, y,\n'),
        ("a.tsv", "id\ta\tb\tlabel\tcontributor\n7\t1\t2.5\tx\tann\n8\t3\t4\ty\t\n"),
        (
            "a.jsonl",
            '{"id":"7","a":1,"b":2.5,"label":"x","contributor":"ann"}\n'
            '{"label":"y","id":"8","b":4,"a":3}',
        ),
        (
            "a.jsonl",
            '{"id":"7","features":[1,2.5],"label":"x","contributor":"ann"}\n\n'
            '{"id":"8","features":[3,4],"label":"y"}\n',
        ),
    ],
)
def test_texts_become_the_same_records(name, text):
    assert records(write(name, text)) == ROWS


def test_parquet_and_arrays_become_the_same_records():
    columns = {"id": ["7", "8"], "a": [1, 3], "b": [2.5, 4.0], "label": ["x", "y"]}
    pq.write_table(pa.table({**columns, "contributor": ["ann", None]}), "a.parquet")
    assert records("a.parquet") == ROWS
    np.savez(
        "a.npz", X=[[1, 2.5], [3, 4.0]], y=["x", "y"], ids=["7", "8"], contributors=["ann", ""]
    )
    assert records("a.npz") == ROWS


def test_types_of_labels_and_ids_are_kept_where_a_form_has_types():
    np.savez("a.npz", X=np.eye(2, dtype=np.uint8), y=[3, 4])
    ids, labels, X, _ = records("a.npz")
    assert (ids, labels, X) == ([], [3, 4], [[1, 0], [0, 1]])
    pq.write_table(pa.table({"a": [True, False], "label": [3, 4], "id": [1, 2]}), "a.parquet")
    assert records("a.parquet")[:3] == [[1, 2], [3, 4], [[1.0], [0.0]]]


def test_columns_are_found_by_name_in_the_order_of_the_model():
    write("a.csv", "a,b,label\n1,2,x\n")
    assert records("a.csv", KNOWN)[2] == [[2.0, 1.0]]
    write("a.csv", "a,b,c,species\n1,2,3,x\n")
    source = open_source("a.csv", ASKED)
    assert source.ignored == ("c", "species")
    assert next(source.blocks()).X.tolist() == [[2.0, 1.0]]


def test_the_names_of_columns_are_remembered_by_the_model():
    write("a.csv", "a,species,name\n1,x,one\n")
    wanted = Wanted(usual_label="species", usual_id="name")
    assert records("a.csv", wanted)[:3] == [["one"], ["x"], [[1.0]]]


TABLES = [
    ("a.csv", "", "'a.csv' is empty. Its first line must name the columns."),
    ("a.csv", "a,label\n", "'a.csv' has no rows below its first line."),
    ("a.csv", "a,label\n\n , \n", "'a.csv' has no rows below its first line."),
    (
        "a.csv",
        "1,2,x\n",
        "'a.csv' has numbers in its first line, '1,2,x', which must name the columns. Write the "
        "names above it.",
    ),
    (
        "a.csv",
        "a,b\n1,2\n",
        "'a.csv' has no column 'label'. Name the one that holds the labels: --label COLUMN. There "
        "are 'a', 'b'.",
    ),
    ("a.csv", "a,a,label\n1,2,x\n", "'a.csv' has two columns 'a'. Give each a name of its own."),
    (
        "a.csv",
        "a,,label\n1,2,x\n",
        "'a.csv' has no name for column 2. Give it one in the first line.",
    ),
    ("a.csv", "id,label\n1,x\n", "'a.csv' has no columns of features, only 'id', 'label'."),
    (
        "a.csv",
        "a,label\n1,x\n1,2,y\n",
        "'a.csv', line 3: it has 3 values, but the first line names 2 columns. Is a separator "
        "missing, or one too many?",
    ),
    (
        "a.csv",
        "a,label\n1,x\nred,y\n",
        "'a.csv', line 3, column 'a': 'red' is not a number. Features are numbers: take the column "
        "out, or say what it is by --label or --id.",
    ),
    (
        "a.csv",
        "a;label\n1,5;x\n",
        "'a.csv', line 2, column 'a': '1,5' has a decimal comma. Write a point.",
    ),
    (
        "a.csv",
        "a;label\n4.020,25;x\n",
        "'a.csv', line 2, column 'a': '4.020,25' has points between thousands and a decimal comma. "
        "Write 4020.25.",
    ),
    (
        "a.csv",
        "a,label\n,x\n",
        "'a.csv', line 2, column 'a': there is no value. Fill it in, or leave the row out.",
    ),
    (
        "a.csv",
        "a,label\n1,x\nNaN,y\n",
        "'a.csv', line 3, column 'a': the value is NaN, not a number. Fill it in, or leave the row "
        "out.",
    ),
    (
        "a.csv",
        "a,label\n1e999,x\n",
        "'a.csv', line 2, column 'a': the value is infinite. Fill it in, or leave the row out.",
    ),
    (
        "a.csv",
        "a,label\n1,\n",
        "'a.csv', line 2: there is no label. Fill it in, or leave the row out.",
    ),
    (
        "a.csv",
        "a,id,label\n1,,x\n",
        "'a.csv', line 2: there is no id. Give every row one, or none.",
    ),
    (
        "a.csv",
        b"a,label\n1,caf\xe9\n",
        "'a.csv' is not UTF-8: it has the byte 0xe9. Save it as UTF-8.",
    ),
    (
        "a.csv",
        "a,label\n1,x\n".encode("utf-16"),
        "'a.csv' is not UTF-8: it has the byte 0xff. Save it as UTF-8.",
    ),
    (
        "a.csv",
        'a,label\n1,"x\n',
        "'a.csv', line 2: not CSV, unexpected end of data. Is a quotation mark missing?",
    ),
    ("a.jsonl", "", "There are no lines in 'a.jsonl'. Give a JSON object on each."),
    (
        "a.jsonl",
        "[1, 2]\n",
        "'a.jsonl', line 1: not a JSON object. Write {...} on each line.",
    ),
    (
        "a.jsonl",
        '{"a": 1, "label": "x"}\n{"a": 1,\n',
        "'a.jsonl', line 2: not JSON, Expecting property name enclosed in double quotes: line 1 "
        "column 9 (char 8).",
    ),
    (
        "a.jsonl",
        '{"a": 1, "label": "x"}\n{"label": "y"}\n',
        "'a.jsonl', line 2: there is no 'a', which the first line has.",
    ),
    (
        "a.jsonl",
        '{"a": 1, "label": "x"}\n{"a": 1, "b": 2, "label": "y"}\n',
        "'a.jsonl', line 2: 'b' is not in the first line.",
    ),
    (
        "a.jsonl",
        '{"a": "1", "label": "x"}\n',
        "'a.jsonl', line 1, column 'a': '1' is not a number. Features are numbers: take the column "
        "out, or say what it is by --label or --id.",
    ),
    (
        "a.jsonl",
        '{"a": true, "label": "x"}\n',
        "'a.jsonl', line 1, column 'a': True is not a number. Features are numbers: take the "
        "column out, or say what it is by --label or --id.",
    ),
    (
        "a.jsonl",
        '{"features": [1, 2], "label": "x"}\n{"features": [1], "label": "x"}\n',
        "'a.jsonl', line 2: 'features' is 1 numbers, not 2 as in line 1.",
    ),
    (
        "a.jsonl",
        '{"features": [], "label": "x"}\n',
        "'a.jsonl', line 1: 'features' is not a list of numbers.",
    ),
    (
        "a.jsonl",
        '{"id": 1.5, "a": 1, "label": "x"}\n',
        "'a.jsonl', line 1: the id 1.5 is neither text nor a whole number.",
    ),
    (
        "a.jsonl",
        '{"a": 1, "label": ["x"]}\n',
        "'a.jsonl', line 1: ['x'] cannot be a label. Give text or a number.",
    ),
    (
        "a.jsonl",
        '{"a": 1, "label": "x", "contributor": 7}\n',
        "'a.jsonl', line 1: the contributor 7 is not text.",
    ),
    (
        "a.parquet",
        b"junk",
        "'a.parquet' cannot be read as Parquet: Parquet file size is 4 bytes, smaller than the "
        "minimum file footer (8 bytes).",
    ),
    (
        "a.npz",
        b"junk",
        "The file 'a.npz' cannot be read as an .npz file of arrays: it is cut off or damaged, or "
        "holds Python objects. Save plain arrays by numpy.savez.",
    ),
    (
        "a.xls",
        b"junk",
        "'a.xls' cannot be read: its name ends in '.xls'. Give a folder of pictures or .txt "
        "files, a .tar of pictures, a picture, .csv, .tsv, .parquet, .npz, .jsonl, an export of "
        "Label Studio in .json, or - for JSON lines on standard input.",
    ),
    (
        "a.km",
        b"junk",
        "'a.km' cannot be read: its name ends in '.km'. It is a model: use `knowmore merge`. Give "
        "a folder of pictures or .txt files, a .tar of pictures, a picture, .csv, .tsv, .parquet, "
        ".npz, .jsonl, an export of Label Studio in .json, or - for JSON lines on standard input.",
    ),
]


@pytest.mark.parametrize(("name", "text", "message"), TABLES)
def test_what_is_wrong_with_a_file_is_told_by_its_place(name, text, message):
    write(name, text)
    with pytest.raises(InvalidInput) as caught:
        records(name)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("wanted", "header", "message"),
    [
        (
            Wanted(label="z"),
            "a,label",
            "'a.csv' has no column 'z' for --label. There are 'a', 'label'.",
        ),
        (Wanted(id="z"), "a,label", "'a.csv' has no column 'z' for --id. There are 'a', 'label'."),
        (
            KNOWN,
            "a,label",
            "'a.csv' has no column 'b', which the model has learnt from. The model knows 'b', 'a'; "
            "the file has 'a', 'label'.",
        ),
        (
            KNOWN,
            "a,b,c,label",
            "'a.csv' has a column 'c', which the model does not know. It has learnt from 'b', 'a'. "
            "Take the column out.",
        ),
    ],
)
def test_columns_that_do_not_fit_the_model(wanted, header, message):
    write("a.csv", f"{header}\n{','.join('1' for _ in header.split(','))}\n")
    with pytest.raises(InvalidInput) as caught:
        records("a.csv", wanted)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"Z": [1.0]}, "'a.npz' has no array 'X' of rows. There are 'Z'."),
        (
            {"X": np.eye(2)},
            "'a.npz' has no array 'y' of labels. Name it: --label ARRAY. There are 'X'.",
        ),
        ({"X": np.eye(2), "y": [1]}, "'a.npz': 'y' has shape (1,), but there are 2 rows."),
        (
            {"X": np.ones(2), "y": [1, 2]},
            "'a.npz': the rows have shape (2,) and type float64, not (n, d) numbers.",
        ),
        (
            {"X": [["a"]], "y": [1]},
            "'a.npz': the rows have shape (1, 1) and type <U1, not (n, d) numbers.",
        ),
        (
            {"X": np.ones((0, 2)), "y": []},
            "'a.npz' has no rows of numbers: their array has shape (0, 2).",
        ),
        (
            {"X": [[1.0, np.nan]], "y": [1]},
            "'a.npz', row 0, column 1: the value is NaN, not a number. Fill it in, or leave the "
            "row out.",
        ),
    ],
)
def test_arrays_that_do_not_fit(arrays, message):
    np.savez("a.npz", **arrays)
    with pytest.raises(InvalidInput) as caught:
        records("a.npz")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            {"a": ["red"], "label": ["x"]},
            "'a.parquet': the column 'a' holds string, not numbers. Take it out, or say what it is "
            "by --label or --id.",
        ),
        (
            {"a": [1, None], "label": ["x", "y"]},
            "'a.parquet', row 1, column 'a': there is no value. Fill it in, or leave the row out.",
        ),
        (
            {"a": [1], "label": [None]},
            "'a.parquet', row 0: there is no label. Fill it in, or leave the row out.",
        ),
        (
            {"a": pa.array([], pa.float64()), "label": pa.array([], pa.string())},
            "'a.parquet' has no rows.",
        ),
    ],
)
def test_columns_of_parquet_that_do_not_fit(columns, message):
    pq.write_table(pa.table(columns), "a.parquet")
    with pytest.raises(InvalidInput) as caught:
        records("a.parquet")
    assert str(caught.value) == message


def test_a_file_that_is_not_there():
    with pytest.raises(MissingData, match=r"^There is no file or folder 'a\.csv'\. Check the path"):
        records("a.csv")


# -- pictures ------------------------------------------------------------------------------------


def paint(path, shade=0):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (8, 8), shade).save(path)


def test_pictures_have_labels_and_ids_by_their_folders(here):
    paint(here / "p/rose/1.png")
    paint(here / "p/daisy/2.png")
    (block,) = open_source("p", Wanted()).blocks()
    assert (block.ids, block.labels) == (["daisy/2.png", "rose/1.png"], ["daisy", "rose"])
    with tarfile.open("p.tar", "w") as archive:
        archive.add("p", ".")
    (packed,) = open_source("p.tar", Wanted()).blocks()
    assert (packed.ids, packed.labels) == (block.ids, block.labels)
    (alone,) = open_source("p/rose/1.png", Wanted(labelled=False)).blocks()
    assert (alone.ids, alone.labels) == (["1.png"], None)


def test_a_picture_outside_all_folders_has_no_label(here):
    paint(here / "p/rose/1.png")
    paint(here / "p/stray.png")
    source = open_source("p", Wanted())
    assert source.skipped == {"stray.png": "is in no folder, so it has no label"}
    (here / "p/rose/1.png").unlink()
    with pytest.raises(InvalidInput) as caught:
        open_source("p", Wanted())
    assert str(caught.value) == (
        "'p' holds pictures, but no folders. A label is the name of a folder: put the pictures of "
        "each class into one."
    )


# -- one row, and labels -------------------------------------------------------------------------


def test_a_row_on_the_command_line():
    for text in '{"b": 1, "a": 2}', "[1, 2]":
        _, block = single_row(text, ASKED)
        assert block.X.tolist() == [[1.0, 2.0]]
    write("a.csv", "a,b\n2,1\n")
    assert single_row("a.csv", ASKED)[1].X.tolist() == [[1.0, 2.0]]
    write("a.csv", "a,b\n2,1\n3,4\n")
    with pytest.raises(InvalidInput, match=r"^'a\.csv' has 2 records, but one is needed\.$"):
        single_row("a.csv", ASKED)
    with pytest.raises(InvalidInput, match=r"^'\[1' is not JSON: "):
        single_row("[1", ASKED)


def test_content_ids_depend_on_numbers_and_label():
    write("a.csv", "a,label\n1,x\n1,y\n1.0,x\n")
    (block,) = open_source("a.csv", Wanted()).blocks()
    first, second, third = map(content_id, block.contents())
    assert first == third != second


@pytest.mark.parametrize(
    ("given", "held", "expected"),
    [
        (["a", "b"], None, ["a", "b"]),
        (["7", "8"], str, ["7", "8"]),
        (["7", "8"], int, [7, 8]),
        (["1.5", "2"], float, [1.5, 2.0]),
        ([1, 2.5], float, [1.0, 2.5]),
        (["True", "false"], bool, [True, False]),
        ([1, 2], None, [1, 2]),
    ],
)
def test_labels_take_the_type_that_is_held(given, held, expected):
    found = typed(given, ["line 2", "line 3"], held).tolist()
    assert (found, list(map(type, found))) == (expected, list(map(type, expected)))


@pytest.mark.parametrize(
    ("given", "held", "message"),
    [
        (
            ["x", 1],
            None,
            "The label 1 in line 3 is a whole number, but labels in line 2 are text. Give all "
            "labels the same type.",
        ),
        (
            [1, "x"],
            None,
            "The label 'x' in line 3 is text, but labels in line 2 are whole numbers. Give all "
            "labels the same type.",
        ),
        (
            ["rose", "x"],
            int,
            "The label 'rose' in line 2 is text, but labels in the model are whole numbers. Give "
            "all labels the same type.",
        ),
        (
            [7, 8],
            str,
            "The label 7 in line 2 is a whole number, but labels in the model are text. Give all "
            "labels the same type.",
        ),
        (
            ["nan", "1"],
            float,
            "The label 'nan' in line 2 is text, but labels in the model are numbers. Give all "
            "labels the same type.",
        ),
    ],
)
def test_labels_of_mixed_types(given, held, message):
    with pytest.raises(InvalidInput) as caught:
        typed(given, ["line 2", "line 3"], held)
    assert str(caught.value) == message


def test_a_stream_skips_lines_that_cannot_be_used():
    code = (
        "from knowmore.workbench.sources import *\n"
        "source = open_source('-', Wanted(labelled=False), streaming=True)\n"
        "print([(block.ids, block.X.tolist()) for block in source.blocks()], source.skipped)"
    )
    lines = ["nonsense", json.dumps({"id": 1, "a": 2}), json.dumps({"id": 2}), "", '{"id":3,"a":4}']
    done = subprocess.run(
        [sys.executable, "-c", code],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "[([1], [[2.0]]), ([3], [[4.0]])]" in done.stdout
    assert done.stderr == (
        "Skipped: line 1: not JSON, Expecting value: line 1 column 1 (char 0).\n"
        "Skipped: line 3: there is no 'a', which the first line has.\n"
    )


@pytest.mark.parametrize(
    "about",
    [
        [],
        5,
        {},
        {"kind": "phog"},
        {"kind": ["phog"], "version": 1, "longest": 9, "steps": []},
        {"kind": "other", "version": 1, "longest": 9, "steps": []},
        {"kind": "phog", "version": 1, "longest": "9", "steps": []},
        {"kind": "phog", "version": 1, "longest": 9, "steps": [1]},
        {"kind": "phog", "version": 1, "longest": 9, "steps": None},
    ],
)
def test_features_of_pictures_whose_making_is_not_told(about, tmp_path):
    pytest.importorskip("cv2")
    from knowmore.images.describing import PictureDescriber

    with pytest.raises(InvalidInput, match=r"^The table does not say how its features were made"):
        PictureDescriber.of_table(about, tmp_path / "none.npz")


def test_a_row_and_a_name_may_be_longer_than_names_of_files():
    row = json.dumps({f"column {i}": i for i in range(99)})
    assert single_row(row, Wanted(labelled=False))[1].X.shape == (1, 99)
    with pytest.raises(MissingData, match=r"There is no file or folder 'aaa"):
        open_source("a" * 5000, ASKED)
