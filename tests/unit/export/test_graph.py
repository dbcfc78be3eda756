"""ONNX: the graph answers as the estimator does, to 1e-10."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from exported import (
    LABELS,
    answers,
    assert_close,
    classifiers,
    machines,
    questions,
    regressors,
    rows,
    scores_of,
    vanishing,
)
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process.kernels import (
    RBF,
    DotProduct,
    Exponentiation,
    RationalQuadratic,
)

from knowmore import (
    ForestGPClassifier,
    GPClassifier,
    GPRegressor,
    LSSVMClassifier,
    OneShotClassifier,
)
from knowmore.errors import InvalidInput, InvalidType, MissingExtra, NotFitted, NotWritten
from knowmore.export import describe, graph, to_onnx
from knowmore.kernels import HistogramIntersection


@pytest.mark.slow(fast=3)
@pytest.mark.parametrize("labels", LABELS)
def test_classifiers_answer_alike(labels, tmp_path):
    rng = np.random.default_rng(len(labels))
    X = rows(rng, 40)
    Q, y = questions(rng, X), LABELS[labels](rng, 40)
    for clf in classifiers(rng, X, y):
        got = answers(clf, Q, tmp_path / "model.onnx")
        assert [*got] == ["label", "scores", "probabilities", "variance"]
        assert_close(got["scores"], scores_of(clf, Q))
        assert_close(got["variance"], clf.predict_variance(Q))
        assert_close(got["probabilities"], clf.predict_proba(Q))
        assert got["label"].tolist() == clf.predict(Q).tolist()


@pytest.mark.slow(fast=3)
@pytest.mark.parametrize("labels", LABELS)
def test_machines_answer_alike(labels, tmp_path):
    rng = np.random.default_rng(0)
    X = rows(rng, 30)
    Q, y = questions(rng, X), LABELS[labels](rng, 30)
    for svm in machines(rng, X, y):
        got = answers(svm, Q, tmp_path / "model.onnx")
        assert [*got] == ["label", "scores", "probabilities"]
        assert_close(got["scores"], scores_of(svm, Q))
        assert_close(got["probabilities"], svm.predict_proba(Q))
        assert got["label"].tolist() == svm.predict(Q).tolist()


def test_regressors_answer_alike(tmp_path):
    rng = np.random.default_rng(1)
    X = rows(rng, 40)
    Q = questions(rng, X)
    for reg in regressors(rng, X):
        got = answers(reg, Q, tmp_path / "model.onnx")
        value, std = reg.predict(Q, return_std=True)
        assert [*got] == ["value", "variance"]
        assert_close(got["value"], value)
        assert_close(got["variance"], std**2)


def test_chances_that_vanish_are_right(tmp_path):
    clf, Q, want = vanishing()
    got = answers(clf, Q, tmp_path / "model.onnx")
    assert want.min() < 1e-300
    assert_close(got["probabilities"], want)


def test_a_single_example(tmp_path):
    clf = GPClassifier().fit([[1.0, 2.0]], ["a"])
    assert answers(clf, [[0.0, 0.0]], tmp_path / "m.onnx")["label"].tolist() == ["a"]


@pytest.mark.parametrize("kernel", [None, HistogramIntersection()], ids=["default", "counts"])
def test_without_a_variance_the_file_is_small_and_has_no_probabilities(kernel, tmp_path):
    rng = np.random.default_rng(0)
    X = rows(rng, 300)
    clf = GPClassifier(kernel, noise=0.1).fit(X, X[:, 0] > 0.5)
    got = answers(clf, X, tmp_path / "small.onnx", variance=False)
    assert [*got] == ["label", "scores"]
    assert_close(got["scores"], scores_of(clf, X))
    to_onnx(clf, tmp_path / "large.onnx")
    small, large = ((tmp_path / f"{name}.onnx").stat().st_size for name in ("small", "large"))
    assert large - small > 8 * 300**2
    reg = GPRegressor().fit(X, X[:, 0])
    assert [*answers(reg, X, tmp_path / "r.onnx", variance=False)] == ["value"]
    svm = LSSVMClassifier().fit(X, X[:, 0] > 0.5)
    found = answers(svm, X, tmp_path / "s.onnx", variance=False)
    assert_close(found["probabilities"], svm.predict_proba(X))


@pytest.mark.parametrize("kernel", [None, DotProduct(), HistogramIntersection()])
def test_float32_goes_in_and_is_computed_in_float64(kernel, tmp_path):
    rng = np.random.default_rng(0)
    X = rows(rng, 30).astype(np.float32)
    clf = GPClassifier(kernel, noise=0.1).fit(X, X[:, 0] > 0.5)
    got = answers(clf, X, tmp_path / "m.onnx", dtype="float32")
    # The same numbers in float64 have the same answers.
    assert_close(got["probabilities"], clf.predict_proba(X))
    assert_close(got["variance"], clf.predict_variance(X))


def test_options_that_are_not_there(tmp_path):
    clf = GPClassifier().fit([[0.0], [1.0]], ["a", "b"])
    with pytest.raises(InvalidInput, match=r"^dtype='float16' .* 'float64'"):
        to_onnx(clf, tmp_path / "m.onnx", dtype="float16")
    with pytest.raises(InvalidInput, match=r"^variance='no' is neither True nor False"):
        to_onnx(clf, tmp_path / "m.onnx", variance="no")


def test_the_file_says_what_it_is(tmp_path):
    X = {"width": [1.0, 2.0], "height": [0.0, 5.0]}
    pandas = pytest.importorskip("pandas")
    to_onnx(GPClassifier().fit(pandas.DataFrame(X), ["a", "b"]), tmp_path / "m.onnx")
    model = onnx.load(tmp_path / "m.onnx")
    about = {one.key: one.value for one in model.metadata_props}
    assert model.producer_name == "knowmore"
    assert about["kind"] == "GPClassifier"
    assert json.loads(about["columns"]) == ["width", "height"]
    assert json.loads(about["classes"]) == ["a", "b"]


# -- what cannot be ------------------------------------------------------------------------------

X, Y = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]], ["a", "b", "b"]


@pytest.mark.parametrize(
    "estimator",
    [
        ForestGPClassifier().fit(X, Y),
        OneShotClassifier(),
        RandomForestClassifier(),
        None,
        "model.km",
    ],
    ids=lambda one: type(one).__name__,
)
def test_other_models_are_refused(estimator, tmp_path):
    name = type(estimator).__name__
    with pytest.raises(
        InvalidType, match=f"^{name} cannot be exported as a formula. Those that can are GPCl"
    ):
        to_onnx(estimator, tmp_path / "m.onnx")
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "kernel",
    [
        RationalQuadratic(),
        Exponentiation(RBF(), 2),
        2.0 * RationalQuadratic() + RBF(),
        lambda X, Y: X @ Y.T,
    ],
    ids=["quadratic", "power", "sum", "function"],
)
def test_other_kernels_are_refused(kernel, tmp_path):
    with pytest.raises(
        InvalidInput, match=r"^The kernel .* cannot be exported. Those that can are RBF, Matern"
    ):
        to_onnx(GPClassifier(kernel).fit(X, Y), tmp_path / "m.onnx")


def test_an_unfitted_model_is_refused(tmp_path):
    with pytest.raises(
        NotFitted, match=r"This GPClassifier is not fitted yet. Call fit or add first"
    ):
        to_onnx(GPClassifier(), tmp_path / "m.onnx")


def test_labels_that_no_file_can_hold_are_refused(tmp_path):
    clf = GPClassifier().fit(X, ["a", "\ud800", "a"])
    with pytest.raises(InvalidInput, match=r"The label '\\ud800' is no valid Unicode. Rename it"):
        to_onnx(clf, tmp_path / "m.onnx")


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(NotWritten, match=r"No such file or directory"):
        to_onnx(GPClassifier().fit(X, Y), tmp_path / "nowhere" / "m.onnx")
    with pytest.raises(InvalidType, match=r"Give the name of a file"):
        to_onnx(GPClassifier().fit(X, Y), 3)


def test_a_model_beyond_two_gigabytes_is_refused_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(graph, "_MOST_BYTES", 150)
    monkeypatch.setattr(graph, "describe", None)
    with pytest.raises(InvalidInput) as caught:
        to_onnx(GPClassifier().fit(X, Y), tmp_path / "m.onnx")
    assert str(caught.value) == (
        "An ONNX file holds at most 0.0 GB of numbers, but this model of 3 examples has 0.0 GB, "
        "0.0 GB of them for its variance. Export a model of fewer examples, or a "
        "LinearGPClassifier or LinearGPRegressor, whose size does not depend on them."
    )


def test_onnx_is_asked_for_in_words(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r"It comes with the extra 'onnx'"):
        to_onnx(GPClassifier().fit(X, Y), tmp_path / "m.onnx")


def test_a_description_is_read_only():
    of = describe(LSSVMClassifier().fit(X, Y))
    assert of.R is None
    assert not of.A.flags.writeable
    assert of.columns == ("x0", "x1")
