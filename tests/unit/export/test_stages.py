"""Steps before a model leave with it: a graph and a module answer as the whole Pipeline does."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from exported import NODE, answers, ask, assert_close
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from knowmore import (
    GPClassifier,
    GPRegressor,
    LinearGPClassifier,
    LinearGPRegressor,
    LSSVMClassifier,
    living,
)
from knowmore.errors import InvalidInput, InvalidType
from knowmore.export import describe, to_html, to_onnx

STEPS = {
    "standard": [StandardScaler()],
    "standard without mean": [StandardScaler(with_mean=False)],
    "standard without deviation": [StandardScaler(with_std=False)],
    "ranges": [MinMaxScaler((-1, 2))],
    "clipped ranges": [MinMaxScaler(clip=True)],
    "largest": [MaxAbsScaler()],
    "robust": [RobustScaler()],
    "robust without centre": [RobustScaler(with_centering=False, with_scaling=False)],
    "directions": [PCA(2)],
    "whitened": [StandardScaler(), PCA(3, whiten=True, svd_solver="full")],
    "singular": [TruncatedSVD(2)],
    "nothing": ["passthrough", RobustScaler(), None],
    "means": [SimpleImputer(), StandardScaler()],
    "medians": [StandardScaler(), SimpleImputer(strategy="median", keep_empty_features=True)],
    "blanks beyond a clip": [MinMaxScaler(clip=True), SimpleImputer()],
    "constants": [SimpleImputer(strategy="constant", fill_value=-1.0)],
}
needs_node = pytest.mark.skipif(NODE is None, reason="needs node")


def data(steps):
    """Rows of unequal columns, with blanks if a step fills them; and rows to ask about."""
    rng = np.random.default_rng(0)
    X = rng.normal([0, 1000, -3, 0], [1, 200, 0.01, 5], size=(40, 4))
    if any(isinstance(step, SimpleImputer) for step in steps):
        X[rng.random(X.shape) < 0.2] = np.nan
    return X[:30], X[10:] + rng.normal(size=(30, 4)) / 10, X[:30, 0] > np.nanmedian(X[:, 0])


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_graphs_answer_as_pipelines_do(steps, tmp_path):
    X, Q, y = data(steps)
    for last in (GPClassifier(), LSSVMClassifier(), LinearGPClassifier()):
        pipe = make_pipeline(*steps, last).fit(X, y)
        got = answers(pipe, Q, tmp_path / "m.onnx")
        assert_close(got["probabilities"], pipe.predict_proba(Q))
        assert got["label"].tolist() == pipe.predict(Q).tolist()
        narrow = Q.astype(np.float32)
        found = answers(pipe, narrow, tmp_path / "m.onnx", dtype="float32")
        assert_close(found["probabilities"], pipe.predict_proba(narrow.astype(float)))
    for last in (GPRegressor(), LinearGPRegressor()):
        pipe = make_pipeline(*steps, last).fit(X, np.nan_to_num(X) @ [1.0, 0.01, 5.0, 0.0])
        got = answers(pipe, Q, tmp_path / "m.onnx")
        value, std = pipe.predict(Q, return_std=True)
        assert_close(got["value"], value)
        assert_close(got["variance"], std**2)


@needs_node
def test_modules_answer_as_pipelines_do(tmp_path):
    asked, want = [], []
    for steps in STEPS.values():
        X, Q, y = data(steps)
        pipe = make_pipeline(*steps, GPClassifier()).fit(X, y)
        blank = np.where(np.isnan(Q), None, Q).tolist()
        asked.append((pipe, blank))
        want.append(pipe.predict_proba(Q))
    for told, chances in zip(ask(tmp_path, asked), want, strict=True):
        assert_close(np.array([one["probabilities"] for one in told["answers"]]), chances)


@needs_node
def test_only_a_step_that_fills_takes_blanks(tmp_path):
    X, _, y = data(STEPS["means"])
    filled = make_pipeline(*STEPS["means"], GPClassifier()).fit(X, y)
    scaled = make_pipeline(StandardScaler(), GPClassifier()).fit(np.nan_to_num(X), y)
    asked = [(scaled, [[None, 1, 2, 3]]), (filled, [["a", 1, 2, 3]]), (filled, [[1, 2, 3]])]
    assert [one["error"] for one in ask(tmp_path, asked)] == [
        'Row 0, "x0": "null" is not a finite number.',
        'Row 0, "x0": "a" is not a finite number.',
        "Row 0 has 3 values, but the model has 4 features.",
    ]


def test_columns_are_those_of_the_pipeline(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, _, y = data([])
    table = pandas.DataFrame(X, columns=["length", "width", "height", "age"])
    pipe = make_pipeline(StandardScaler(), PCA(2), GPClassifier()).fit(table, y)
    for model in (pipe, living(pipe)):
        assert describe(model).columns == ("length", "width", "height", "age")
        assert describe(model).X.shape == (30, 2)
    to_onnx(pipe, tmp_path / "m.onnx")
    graph = onnx.load(tmp_path / "m.onnx")
    about = {one.key: one.value for one in graph.metadata_props}
    assert json.loads(about["columns"]) == [*table.columns]
    assert graph.graph.input[0].type.tensor_type.shape.dim[1].dim_value == 4


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_a_form_begins_with_an_example_in_the_middle(steps, tmp_path):
    X, _, y = data(steps)
    pipe = make_pipeline(*steps, GPClassifier()).fit(X, y)
    to_html(pipe, tmp_path / "m.html")
    of = describe(pipe)
    row = pipe[:-1].transform(np.array([of.start], dtype=float))
    away = ((of.X - of.X.mean(axis=0)) / np.maximum(of.X.std(axis=0), 1e-300)) ** 2
    nearest = of.X[away.sum(axis=1).argmin()]
    assert_close(row[0], np.asarray(nearest))


def test_a_column_that_was_always_blank_is_left_out(tmp_path):
    X, Q, y = data(STEPS["means"])
    X[:, 2] = np.nan
    pipe = make_pipeline(SimpleImputer(), GPClassifier())
    with pytest.warns(UserWarning, match="Skipping features without any observed values"):
        pipe.fit(X, y)
    with pytest.warns(UserWarning, match="Skipping features without any observed values"):
        want = pipe.predict_proba(Q)
    assert_close(answers(pipe, Q, tmp_path / "m.onnx")["probabilities"], want)
    assert [one is None for one in describe(pipe).start] == [False, False, True, False]


@pytest.mark.parametrize(
    "step",
    [
        FunctionTransformer(np.log1p),
        SimpleImputer(add_indicator=True),
        SimpleImputer(missing_values=-1),
        OneHotEncoder(sparse_output=False),
    ],
    ids=["function", "indicator", "not NaN", "categories"],
)
def test_other_steps_are_refused(step, tmp_path):
    X = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]
    pipe = make_pipeline(step, GPClassifier()).fit(X, ["a", "b", "b"])
    with pytest.raises(InvalidInput) as caught:
        to_onnx(pipe, tmp_path / "m.onnx")
    assert str(caught.value) == (
        f"The step {pipe[0]!r} cannot be exported. Steps before the model that can are "
        f"TableEncoder, StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, PCA, "
        f"TruncatedSVD, and SimpleImputer of NaN without indicator. Export the last step alone, "
        f"pipeline[-1], and give it what pipeline[:-1].transform returns."
    )
    assert not any(tmp_path.iterdir())


def test_other_last_steps_are_refused(tmp_path):
    pipe = make_pipeline(StandardScaler(), PCA()).fit([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    with pytest.raises(InvalidType, match=r"^PCA at the end of a Pipeline cannot be exported as a"):
        to_onnx(pipe, tmp_path / "m.onnx")
