"""Models of tables leave with their encoding: cells of all types go in, as into the Pipeline."""

from __future__ import annotations

import json
import re
import shutil

import numpy as np
import onnx
import onnxruntime
import pytest
from exported import NODE, answers, ask, assert_close
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import knowmore
from knowmore import GPClassifier, GPRegressor, LinearGPClassifier
from knowmore.errors import InvalidInput
from knowmore.export import describe, to_html, to_onnx
from knowmore.export.encoded import Encoded
from knowmore.tables import DateColumn, Encoding, NumberColumn, TableEncoder, json_of

pd = pytest.importorskip("pandas")
CHROMIUM = shutil.which("chromium")
needs_node = pytest.mark.skipif(NODE is None, reason="needs node")
RNG = np.random.default_rng(0)
N = 40


def table(n=N):
    """A table with columns of all types and blanks, and names that a graph has itself."""
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 400, n), "D")
    return pd.DataFrame(
        {
            "island": RNG.choice(["Biscoe", "Dream", None], n),
            "label": RNG.choice(["a", "b", 'c"<'], n),
            "mass": np.where(RNG.random(n) < 0.2, np.nan, RNG.normal(4000, 500, n)),
            "x": RNG.normal(size=n),
            "wild": RNG.choice([True, False, None], n),
            "seen": np.where(RNG.random(n) < 0.1, None, days.strftime("%Y-%m-%d")),
        }
    )


X, Q = table(), table(20)
Q.loc[0, "island"] = "Torgersen"
Q.loc[1] = [None, None, np.nan, np.nan, None, None]
Y = np.where(X["x"] + (X["island"] == "Dream") > 0.3, "yes", "no")


def fitted(last, *steps):
    return make_pipeline(TableEncoder(), *steps, last).fit(X, Y)


def fed(pipe, rows):
    """The inputs of a graph: a column (m, 1) for each column of the table."""
    given = {}
    for column, entry in zip(pipe[0].encoding_.columns, describe(pipe).inputs, strict=True):
        cells = [column.read(one) for one in rows[column.name]]
        if entry.kind == "str":
            values = np.array([one or "" for one in cells], dtype=object)
        elif isinstance(column, DateColumn):
            values = np.array(cells, dtype="datetime64[s]").astype(float) / 86400
            values[[one is None for one in cells]] = np.nan
        else:
            values = np.array([np.nan if one is None else one for one in cells], dtype=float)
        given[entry.name] = values[:, None]
    return given


@pytest.mark.parametrize("steps", [(), (StandardScaler(),)], ids=["plain", "scaled"])
@pytest.mark.parametrize("last", [GPClassifier(), LinearGPClassifier()], ids=["gp", "linear"])
def test_graphs_take_cells(last, steps, tmp_path):
    pipe = fitted(last, *steps)
    got = answers(pipe, fed(pipe, Q), tmp_path / "m.onnx")
    assert_close(got["probabilities"], pipe.predict_proba(Q))
    assert got["label"].tolist() == pipe.predict(Q).tolist()
    narrow = {
        name: one if one.dtype == object else one.astype(np.float32)
        for name, one in fed(pipe, Q).items()
    }
    found = answers(pipe, narrow, tmp_path / "m.onnx", dtype="float32")
    wide = {name: one if one.dtype == object else one.astype(float) for name, one in narrow.items()}
    want = answers(pipe, wide, tmp_path / "m.onnx")
    assert np.array_equal(found["probabilities"], want["probabilities"])


def test_a_graph_says_what_its_inputs_are(tmp_path):
    to_onnx(fitted(GPClassifier()), tmp_path / "m.onnx")
    inputs = onnxruntime.InferenceSession(tmp_path / "m.onnx").get_inputs()
    assert [(one.name, one.type, one.shape) for one in inputs] == [
        ("island", "tensor(string)", ["m", 1]),
        ("label_", "tensor(string)", ["m", 1]),
        ("mass", "tensor(double)", ["m", 1]),
        ("x", "tensor(double)", ["m", 1]),
        ("wild", "tensor(double)", ["m", 1]),
        ("seen", "tensor(double)", ["m", 1]),
    ]
    about = {one.key: one.value for one in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert json.loads(about["columns"]) == [*X.columns]
    assert json.loads(about["types"])["seen"] == "days since 1970"


def test_a_column_whose_name_is_no_unicode_is_refused():
    stage = Encoded(Encoding((NumberColumn("m\ud800"),)))
    with pytest.raises(InvalidInput, match=r"^The column 'm\\ud800' is no valid Unicode. Rename"):
        stage.inputs(stage.names)


def plain(rows):
    """Rows of a table as JSON has them."""
    return json.loads(rows.to_json(orient="records"))


@needs_node
def test_modules_take_cells(tmp_path):
    models = [fitted(GPClassifier()), fitted(LinearGPClassifier(), StandardScaler())]
    tables = [Q, Q.drop(columns="x").assign(x=Q["x"])]
    asked = [(model, plain(rows)) for model in models for rows in tables]
    told = iter(ask(tmp_path, asked))
    for model in models:
        for _ in tables:
            chances = [one["probabilities"] for one in next(told)["answers"]]
            assert_close(np.array(chances), model.predict_proba(Q))


@needs_node
def test_modules_read_cells_as_the_encoder_does(tmp_path):
    rows = pd.DataFrame(
        {
            "day": ["1.3.2024", "2.3.2024", "17.4.2024", None],
            "zip": [94110, 94110, 10115, 10115],
            "wild": [True, False, True, False],
        }
    )
    pipe = make_pipeline(TableEncoder(categories=["zip"]), GPRegressor())
    pipe.fit(rows, [1.0, 2.0, 3.0, 4.0])
    good = [
        ["3.3.2024", " 94110 ", "TRUE"],
        ["2024-03-03", 94110, True],
        ["2024/3/3 12:30", "10115", "false"],
        ["2024-03-03T12:30:15.5", 10115, False],
        ["n/a", "?", "NA"],
        [" 29.2.2024", "other", " True "],
    ]
    bad = [["30.2.2024", 1, True], ["now", 1, True], [None, 1, "yes"], [None, {}, True]]
    asked = [(pipe, good), *((pipe, [row]) for row in bad)]
    told, *problems = ask(tmp_path, asked)
    want = pipe.predict(pd.DataFrame(good, columns=rows.columns))
    assert_close(np.array([one["value"] for one in told["answers"]]), want)
    assert [one["error"] for one in problems] == [
        'Row 0, "day": "30.2.2024" is not a date. Write it as 2024-03-01.',
        'Row 0, "day": "now" is not a date. Write it as 2024-03-01.',
        'Row 0, "wild": "yes" is neither true nor false.',
        'Row 0, "zip": "[object Object]" is not text.',
    ]


def test_a_form_begins_with_the_cells_of_an_example():
    pipe = fitted(GPClassifier())
    start = dict(zip(X.columns, describe(pipe).start, strict=True))
    filled = X.assign(mass=X["mass"].fillna(X["mass"].median()))
    alike = filled[np.isclose(filled["mass"], start["mass"])]
    assert start["island"] in alike["island"].where(alike["island"].notna(), None).tolist()
    assert start["label"] in alike["label"].tolist()
    assert start["wild"] in ("true", "false", None)
    assert re.fullmatch(r"202[45]-\d\d-\d\d", start["seen"])


def test_a_file_leaves_with_its_encoding(tmp_path):
    pipe = fitted(GPClassifier())
    encoding = pipe[0].encoding_
    cells = [encoding.read(row) for row in X[[*encoding.names]].itertuples(index=False)]
    with knowmore.open(tmp_path / "m.km", GPClassifier()) as store:
        store.add(
            encoding.vectors(cells),
            Y,
            thumbnails=[json_of(row) for row in cells],
            columns=encoding.features,
        )
        store.set_notes(table=encoding.note())
    with knowmore.open(tmp_path / "m.km") as store:
        assert describe(store).columns == encoding.names
        got = answers(store, fed(pipe, Q), tmp_path / "m.onnx")
    assert got["label"].tolist() == pipe.predict(Q).tolist()


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_a_browser_offers_categories(tmp_path):
    from playwright.sync_api import sync_playwright

    pipe, page_path = fitted(GPClassifier()), tmp_path / "m.html"
    to_html(pipe, page_path)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page, problems = browser.new_page(), []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(page_path.as_uri())
        island = page.get_by_label("island", exact=True)
        assert island.locator("option").all_text_contents() == ["", "Biscoe", "Dream"]
        island.select_option("Dream")
        page.get_by_label("label", exact=True).select_option('c"<')
        page.get_by_label("mass", exact=True).fill("")
        page.get_by_label("x", exact=True).fill("1.5")
        page.get_by_label("wild", exact=True).select_option("true")
        page.get_by_label("seen", exact=True).fill("2024-05-06")
        row = pd.DataFrame([["Dream", 'c"<', np.nan, 1.5, True, "2024-05-06"]], columns=X.columns)
        assert page.locator("#answer .label").text_content() == pipe.predict(row)[0]
        page.get_by_label("seen", exact=True).fill("tomorrow")
        assert "is not a date" in page.locator("#answer .problem").text_content()
        page.locator("#text").fill(Q.to_csv(index=False))
        page.get_by_role("button", name="Predict").click()
        page.get_by_text("20 rows.").wait_for()
        told = page.locator("#body tr td:nth-child(2)").all_text_contents()
        named = [re.sub(r"^unknown \(looks like (.*)\)$", r"\1", one) for one in told]
        assert named == pipe.predict(Q).tolist()
        assert not problems
        browser.close()
