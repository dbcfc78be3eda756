"""Pages and JavaScript modules answer as the estimator does, and let nothing in or out."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from base64 import b64encode

import numpy as np
import pytest
from exported import (
    LABELS,
    NODE,
    ask,
    classifiers,
    machines,
    questions,
    regressors,
    rows,
    scores_of,
    vanishing,
)
from sklearn.gaussian_process.kernels import RBF, DotProduct
from tolerance import assert_rounded, assert_within, expansion_error, variance_error

import knowmore
from knowmore import ForestGPClassifier, GPClassifier, LinearGPClassifier, LSSVMClassifier
from knowmore.errors import InvalidInput, InvalidType
from knowmore.export import describe, page, to_html, to_javascript
from knowmore.kernels import HistogramIntersection
from knowmore.models import class_probabilities

CHROMIUM = shutil.which("chromium")
needs_node = pytest.mark.skipif(NODE is None, reason="needs node")


def bounds(estimator, Q):
    """How far the scores (m, 1) and variances (m,) of the module may be from the estimator's."""
    of = describe(estimator)
    linear = of.kernel is None
    k = Q - of.X[0] if linear else estimator.model_.covariance.cross(Q).T
    scores = expansion_error(k, of.A, of.b)
    if of.R is None:
        return scores, None
    prior = 0.0 if linear else estimator.model_.covariance.prior(Q)
    return scores, variance_error(k, of.R, prior, of.noise)


def assert_same_probabilities(got, scores, variance, temperature):
    """Is this what the rule makes of these very scores and variances?"""
    want = class_probabilities(scores, variance, temperature)
    s = np.sqrt(1 + variance)[:, None]
    # The logarithm of a chance is rounded as the score that it comes from.
    assert_rounded(got, want, 100 * (1 + (abs(scores) / s).max() / temperature), 1.0)


@pytest.mark.slow(fast=3)
@needs_node
@pytest.mark.parametrize("labels", LABELS)
def test_classifiers_answer_alike(labels, tmp_path):
    rng = np.random.default_rng(len(labels))
    X = rows(rng, 40)
    Q, y = questions(rng, X), LABELS[labels](rng, 40)
    fitted = [*classifiers(rng, X, y)]
    for clf, told in zip(fitted, ask(tmp_path, [(clf, Q.tolist()) for clf in fitted]), strict=True):
        answers = told["answers"]
        scores = np.array([one["scores"] for one in answers])
        variance = np.array([one["std"] for one in answers]) ** 2
        chances = np.array([one["probabilities"] for one in answers])
        of_scores, of_variance = bounds(clf, Q)
        assert_within(scores, scores_of(clf, Q), of_scores)
        assert_within(variance, clf.predict_variance(Q), of_variance)
        assert_same_probabilities(chances, scores, variance, clf.temperature_)
        classes = [str(one) if labels == "large numbers" else one for one in clf.classes_.tolist()]
        assert told["classes"] == classes
        best = scores.argmax(axis=1)
        assert [one["label"] for one in answers] == [classes[c] for c in best]
        assert [one["probability"] for one in answers] == chances[range(len(Q)), best].tolist()


@needs_node
def test_machines_answer_alike(tmp_path):
    rng = np.random.default_rng(0)
    X = rows(rng, 30)
    Q, y = questions(rng, X), rng.choice(["a", "b", "c"], 30)
    fitted = [*machines(rng, X, y)]
    for svm, told in zip(fitted, ask(tmp_path, [(svm, Q.tolist()) for svm in fitted]), strict=True):
        scores = np.array([one["scores"] for one in told["answers"]])
        assert_within(scores, scores_of(svm, Q), bounds(svm, Q)[0])
        assert [one["label"] for one in told["answers"]] == svm.predict(Q).tolist()
        chances = np.array([one["probabilities"] for one in told["answers"]])
        assert_same_probabilities(chances, scores, np.zeros(len(Q)), svm.temperature_)
        keys = {"label", "probability", "score", "scores", "probabilities"}
        assert {*told["answers"][0]} == keys


@needs_node
def test_regressors_answer_alike(tmp_path):
    rng = np.random.default_rng(1)
    X = rows(rng, 40)
    Q = questions(rng, X)
    fitted = [*regressors(rng, X)]
    for reg, told in zip(fitted, ask(tmp_path, [(reg, Q.tolist()) for reg in fitted]), strict=True):
        value, std = reg.predict(Q, return_std=True)
        of_scores, of_variance = bounds(reg, Q)
        columns = value.reshape(len(Q), -1)
        got = np.array([one["value"] for one in told["answers"]])
        assert got.shape == value.shape
        assert_within(got.reshape(columns.shape), columns, of_scores)
        variance = np.array([one["std"] for one in told["answers"]]) ** 2
        squares = describe(reg).squares
        moved = (variance - std**2).reshape(columns.shape) / squares
        assert_within(moved, 0.0, of_variance[:, None])


@needs_node
def test_chances_that_vanish_are_right(tmp_path):
    clf, Q, want = vanishing()
    assert want.min() < 1e-300
    (told,) = ask(tmp_path, [(clf, Q)])
    chances, scores = (
        np.array([one[name] for one in told["answers"]]) for name in ("probabilities", "scores")
    )
    variance = np.array([one["std"] for one in told["answers"]]) ** 2
    assert_same_probabilities(chances, scores, variance, 1.0)


@needs_node
def test_rows_by_name_and_bad_rows(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [0.0, 1.0], "b</p>": [1.0, 3.0]})
    clf = GPClassifier().fit(table, ["x", "y"])
    counts = GPClassifier(HistogramIntersection()).fit([[1.0], [2.0]], [0, 1])
    asked = [
        (clf, [{"b</p>": 3.0, "a": 1.0, "more": "text"}, [1.0, 3.0]]),
        (clf, [[1.0]]),
        (clf, [[0.0, 1.0], {"a": 1.0}]),
        (clf, [[0.0, "1"]]),
        (clf, [[0.0, None]]),
        (clf, [None]),
        (clf, 3),
        (counts, [[-1.0]]),
    ]
    good, *bad = ask(tmp_path, asked)
    assert good["answers"][0] == good["answers"][1]
    assert good["columns"] == ["a", "b</p>"]
    assert [one["error"] for one in bad] == [
        "Row 0 has 1 values, but the model has 2 features.",
        'Row 1 has no "b</p>". Give a value for each feature.',
        'Row 0, "b</p>": "1" is not a finite number.',
        'Row 0, "b</p>": "null" is not a finite number.',
        'Row 0 has no "a". Give a value for each feature.',
        "Give an array of rows.",
        'Row 0, "x0": -1 is negative, but this model compares counts.',
    ]


# -- the page ------------------------------------------------------------------------------------


@pytest.fixture
def hostile():
    """A model whose names try to be markup."""
    pandas = pytest.importorskip("pandas")
    names = ["</script><script>alert(1)</script>", '"><img src=x>', "<!--", "a\u2028b"]
    X = pandas.DataFrame(np.random.default_rng(0).normal(size=(6, 4)), columns=names)
    return GPClassifier().fit(X, ["</title><script>alert(2)</script>", "$model", "<b>"] * 2)


def test_a_page_lets_nothing_in_or_out(hostile, tmp_path):
    to_html(hostile, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_bytes().decode()
    assert "alert(1)</script>" not in text
    assert "alert(2)</script>" not in text
    assert text.count("</script>") == 2
    links = re.findall(r"(?:src|href|action)\s*=\s*(\S+?)>", text.partition("<script")[0])
    assert links == ['"data:,"']
    assert "http" not in text.replace("http-equiv", "")
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    for tag in ("script", "style"):
        (code,) = re.findall(rf"<{tag}(?: type=\"module\")?>(.*?)</{tag}>", text, re.DOTALL)
        digest = b64encode(hashlib.sha256(code.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


@pytest.mark.slow(fast=["wide"])
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize("model", ["hostile", "machine", "number", "wide"])
def test_a_browser_answers(model, hostile, tmp_path):
    from knowmore import GPRegressor

    rng = np.random.default_rng(0)
    X = rows(rng, 20, 3)
    made = {
        "hostile": hostile,
        "machine": LSSVMClassifier().fit(X, rng.choice(["a", "b"], 20)),
        "number": GPRegressor().fit(X, X[:, 0]),
        "wide": GPClassifier().fit(rows(rng, 5, 100), ["a", "b", "a", "b", "a"]),
    }[model]
    to_html(made, tmp_path / "page.html")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'user'}",
    ]
    command = [CHROMIUM, *options, "--dump-dom", f"file://{tmp_path / 'page.html'}"]
    seen = subprocess.run(command, capture_output=True, text=True, timeout=60).stdout
    answer = re.search(r'<div id="answer".*?</div>', seen, re.DOTALL)[0]
    assert "problem" not in answer
    assert 'class="label"' in answer or model == "wide"
    assert ('id="single" aria-labelledby="single-title" hidden' in seen) == (model == "wide")


KERNELS = {
    "default": None,
    "dot": DotProduct(0),
    "histograms": HistogramIntersection(),
    "far": RBF(0.5),
}


@needs_node
@pytest.mark.parametrize("classes", [1, 2, 4])
def test_what_is_unknown(classes, tmp_path):
    """The page calls those rows unknown that the estimator does, and a row without any feature."""
    rng = np.random.default_rng(classes)
    X = rows(rng, 40, 5) + 3 * np.eye(5)[np.arange(40) % classes]
    y = np.array([*"abcd"])[np.arange(40) % classes]
    Q = np.vstack([rows(rng, 20, 5), 30 * np.eye(5), np.zeros((1, 5)), X[:5]])
    models = [GPClassifier(kernel).fit(X, y) for kernel in KERNELS.values()]
    # Rows of one length: one of zeros is nearer to all of them than they are to each other.
    models.append(GPClassifier().fit(X / np.linalg.norm(X, axis=1)[:, None], y))
    answers, seen = ask(tmp_path, [(model, Q.tolist()) for model in models]), set()
    for model, told in zip(models, answers, strict=True):
        unknown = [one["unknown"] for one in told["answers"]]
        assert unknown == (model.predict(Q, unknown="?") == "?").tolist()
        seen |= {*unknown}
    assert seen == {True, False}


@needs_node
def test_what_cannot_tell_what_is_unknown_says_nothing(tmp_path):
    X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 3.0]], ["a", "b", "b"]
    models = [
        LSSVMClassifier().fit(X, y),
        LinearGPClassifier().fit(X, y),
        # No example says anything of another.
        GPClassifier(RBF(1e-3)).fit(X, y),
        GPClassifier().fit(X[:1], y[:1]),
    ]
    for told in ask(tmp_path, [(model, X) for model in models]):
        assert not any("unknown" in one for one in told["answers"])


@pytest.mark.parametrize("write", [to_html, to_javascript])
def test_mistakes(write, tmp_path, monkeypatch):
    X, y = [[0.0], [1.0], [2.0]], ["a", "b", "b"]
    with pytest.raises(InvalidType, match=r"^ForestGPClassifier cannot be exported as a formula"):
        write(ForestGPClassifier().fit(X, y), tmp_path / "out")
    monkeypatch.setattr(page, "_MOST_BYTES", 10)
    with pytest.raises(InvalidInput, match=r"^A page holds at most 0.0 GB of numbers, but this"):
        write(GPClassifier().fit(X, y), tmp_path / "out")
    assert not any(tmp_path.iterdir())


def test_titles(tmp_path):
    def title(labels):
        X = np.arange(float(len(labels)))[:, None]
        to_html(GPClassifier().fit(X, labels), tmp_path / "page.html")
        return re.search("<title>(.*)</title>", (tmp_path / "page.html").read_text())[1]

    assert title(["cat", "dog", "a&b"]) == "a&amp;b, cat or dog?"
    assert title(["cat"]) == "A classifier of the one class cat"
    assert title([*"abcdef"]) == "A classifier of 6 classes"


def test_names_that_are_no_unicode(tmp_path):
    to_html(GPClassifier().fit([[0.0], [1.0]], ["a", "\ud800"]), tmp_path / "page.html")
    assert "<title>a or ??</title>" in (tmp_path / "page.html").read_text()


def test_columns_that_a_file_knows(tmp_path):
    with knowmore.open(tmp_path / "m.km", GPClassifier()) as store:
        store.add([[0.0, 1.0], [1.0, 0.0]], ["a", "b"])
        assert describe(store).columns == ("x0", "x1")
        store.set_notes(columns=["width", "height"])
        assert describe(store).columns == ("width", "height")
        to_html(store, tmp_path / "page.html")
    assert '["width", "height"]' in (tmp_path / "page.html").read_text()
