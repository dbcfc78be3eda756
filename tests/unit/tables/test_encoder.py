"""TableEncoder: the types of columns, blanks, new levels, and its state as JSON."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from knowmore import GPClassifier
from knowmore.errors import InvalidInput
from knowmore.tables import Encoding, TableEncoder, cells_of, json_of

pd = pytest.importorskip("pandas")

ROWS = [
    ["Biscoe", 4200.0, True, "2024-03-01"],
    ["Dream", None, False, "2024-03-03"],
    ["Dream", 3700.0, None, None],
    [None, 3900.0, True, "2024-03-02T12:00"],
]
NAMES = ["island", "mass", "ringed", "seen"]
FEATURES = [
    "island=Biscoe",
    "island=Dream",
    "island is blank",
    "mass",
    "mass is blank",
    "ringed",
    "ringed is blank",
    "seen",
    "seen is blank",
]
VALUES = [
    [1, 0, 0, 4200, 0, 1, 0, 19783, 0],
    [0, 1, 0, 3900, 1, 0, 0, 19785, 0],
    [0, 1, 0, 3700, 0, 1, 1, 19784.5, 1],
    [0, 0, 1, 3900, 0, 1, 0, 19784.5, 0],
]


@parametrize_with_checks([TableEncoder(), TableEncoder(categories=())])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def as_pandas():
    return pd.DataFrame(ROWS, columns=NAMES)


def as_polars():
    return pytest.importorskip("polars").DataFrame(ROWS, schema=NAMES, orient="row")


def as_arrow():
    columns = zip(*ROWS, strict=True)
    return pytest.importorskip("pyarrow").table(dict(zip(NAMES, map(list, columns), strict=True)))


def as_texts():
    return pd.DataFrame(
        [["" if one is None else str(one) for one in row] for row in ROWS], columns=NAMES
    )


@pytest.mark.parametrize("table", [as_pandas, as_polars, as_arrow, as_texts])
def test_every_kind_of_table_gives_the_same_features(table):
    encoder = TableEncoder().fit(table())
    assert encoder.get_feature_names_out().tolist() == FEATURES
    assert encoder.transform(table()).tolist() == VALUES


def test_rows_of_cells_have_numbered_columns():
    encoder = TableEncoder().fit(ROWS)
    assert encoder.transform(ROWS).tolist() == VALUES
    assert encoder.get_feature_names_out()[0] == "x0=Biscoe"


def test_a_new_level_has_zeros_and_a_new_blank_the_median():
    encoder = TableEncoder().fit(pd.DataFrame({"island": ["a", "b", "a"], "mass": [1, 2, 9]}))
    new = pd.DataFrame({"island": ["c", None], "mass": [None, 5]})
    assert encoder.transform(new).tolist() == [[0, 0, 2], [0, 0, 5]]


def test_the_encoding_goes_through_json():
    found = TableEncoder(ignore=["seen"]).fit(as_pandas()).encoding_
    assert Encoding.of(json.loads(json.dumps(found.note()))) == found
    assert found.sources[:4] == ("island", "island", "island", "mass")


def test_a_row_of_cells_goes_through_bytes():
    row = ("Bär \ud800", None, True, 0.1, "2024-03-01")
    assert cells_of(json_of(row)) == row


def test_columns_of_names_are_left_out_and_can_be_had():
    table = pd.DataFrame({"name": [f"penguin {i}" for i in range(30)], "mass": range(30)})
    encoder = TableEncoder().fit(table)
    assert encoder.encoding_.left_out == {
        "name": "has 30 different texts in 30 rows, so they seem to be names or texts"
    }
    assert encoder.get_feature_names_out().tolist() == ["mass"]
    assert TableEncoder(categories=["name"]).fit(table).transform(table).shape == (30, 31)


def test_texts_with_leading_zeros_are_names():
    rows = [("94110", "0", 1067), ("01067", "0.5", 2), ("94110", "10", 3)]
    encoder = TableEncoder().fit(rows)
    names = ["x0=01067", "x0=94110", "x1", "x2"]
    assert encoder.get_feature_names_out().tolist() == names
    many = TableEncoder().fit([(f"{i:05}", float(i)) for i in range(30)])
    assert many.encoding_.left_out["x0"].startswith("has 30 different texts in 30 rows")


def test_numbers_can_be_names():
    table = pd.DataFrame({"zip": [94110, 10115, 94110], "mass": [1.0, 2.0, 3.0]})
    encoder = TableEncoder(categories=["zip"]).fit(table)
    assert encoder.get_feature_names_out().tolist() == ["zip=10115", "zip=94110", "mass"]


@pytest.mark.parametrize(
    ("cells", "days"),
    [
        (["2024-03-01", "2024/3/2 06:00"], [19783, 19784.25]),
        (["1.3.2024", "02.03.2024"], [19783, 19784]),
        (["25/3/2024", "2/3/2024"], [19807, 19784]),
        (["3/25/2024", "3/2/2024"], [19807, 19784]),
        ([date(2024, 3, 1), None], [19783, 19783]),
        ([datetime(2024, 3, 1, 6, tzinfo=UTC), datetime(2024, 3, 2)], [19783.25, 19784]),
        (["2024-03-01T02:00+02:00", "2024-03-01"], [19783, 19783]),
        (np.array(["2024-03-01", "2024-03-02"], dtype="M8[ns]"), [19783, 19784]),
    ],
)
def test_the_usual_forms_of_dates(cells, days):
    table = pd.DataFrame({"seen": cells})
    assert TableEncoder().fit_transform(table)[:, 0].tolist() == days


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (
            ["1.5", "2,5", "3.5"],
            r"^Row 1 of X, column 'mass': '2,5' has a decimal comma. Write a point\.$",
        ),
        (["1,500,000", "2,000,000"], "'1,500,000' has thousands separators. Leave them out"),
        (["1,500", "2,000"], "'1,500' has a comma. Write a decimal point, or no thousands sep"),
        (["1 500", "2 000"], "'1 500' has thousands separators"),
        (
            ["1", "2", "big"],
            "Row 2 of X, column 'mass': 'big' is not a number, but 2 of the 3 values of the column "
            "are. Correct it, or leave the cell empty; if the values are names: --category mass",
        ),
        (["2024-01-01", "2024-01-02", "soon"], "'soon' is not a date, but 2 of the 3 values"),
        (["1/2/2024", "3/4/2024"], "may begin with the day or with the month in every row"),
        (["1/2/2024", "3.4.2024"], "are written in several ways"),
        (["1", "inf"], "Row 1 of X, column 'mass': the value is infinite"),
        (["1", "1e999"], "column 'mass': '1e999' is too large for a number"),
        ([1.0, 10**400], "Row 1 of X, column 'mass': 10+... is too large for a number"),
        (["2024-01-01", "0001-01-01T00:00+01:00"], "is not in the years 1 to 9999 of UTC"),
        (["2024-01-01", "9999-12-31T23:00-05:00"], "is not in the years 1 to 9999 of UTC"),
        ([None, None], "No column is left to learn from: 'mass' is all blank"),
    ],
)
def test_cells_that_make_no_sense(cells, words):
    with pytest.raises(InvalidInput, match=words):
        TableEncoder().fit(pd.DataFrame({"mass": cells}))


def test_the_median_of_huge_numbers():
    encoder = TableEncoder().fit(pd.DataFrame({"mass": [1.5e308, 1.7e308, None]}))
    assert encoder.encoding_.columns[0].fill == 1.6e308
    encoder = TableEncoder().fit(pd.DataFrame({"mass": [5e-324, 5e-324, None]}))
    assert encoder.encoding_.columns[0].fill == 5e-324


def test_a_cell_of_another_type_later_on():
    encoder = TableEncoder().fit(as_pandas())
    words = r"^Row 1 of X, column 'mass': 'big' is not a number. The column held numbers in fit.$"
    with pytest.raises(InvalidInput, match=words):
        encoder.transform(as_texts().assign(mass=["1", "big", "2", "3"]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": ["mas"]}, "There is no column 'mas'. There are 'island', 'mass'"),
        ({"columns": ["mass"], "categories": ["island"]}, "'island' is a category, and left out"),
        ({"ignore": NAMES}, "No column is left to learn from. Leave out fewer"),
    ],
)
def test_options_that_contradict(options, words):
    with pytest.raises(InvalidInput, match=words):
        TableEncoder(**options).fit(as_pandas())


def test_two_features_of_one_name():
    table = pd.DataFrame({"sex": ["m", "f"], "sex=m": [1, 2]})
    with pytest.raises(InvalidInput, match="Two features would have the name 'sex=m'"):
        TableEncoder().fit(table)


def test_a_pipeline_tells_penguins_apart():
    table = pd.DataFrame({"island": ["a", "b", None] * 10, "mass": [1.0, 5.0, None] * 10})
    model = make_pipeline(TableEncoder(), GPClassifier())
    labels = ["x", "y", "z"] * 10
    assert clone(model).fit(table, labels).score(table, labels) == 1.0
