"""Answers have a length, print in a few lines, and become tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.gaussian_process.kernels import RBF

from knowmore import (
    GPClassifier,
    GPRegressor,
    KnowmoreError,
    LSSVMClassifier,
    NPlusOneClassifier,
    OneShotClassifier,
    Scores,
)
from knowmore.insight import (
    calibrate,
    explain,
    novelty,
    reliability,
    suggest,
    suspects,
    transfer,
    tune,
)

N = 600
rng = np.random.default_rng(3)
X = rng.normal(size=(N, 3))
Y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [-0.5, 0.5])]
SOURCE = Scores(["a", "b"], lambda X: X[:, :2])
LIVING = {
    "GPClassifier": (GPClassifier(RBF(1.0)), Y),
    "GPRegressor": (GPRegressor(RBF(1.0)), X[:, 0]),
    "two targets": (GPRegressor(RBF(1.0)), X[:, :2]),
    "LSSVMClassifier": (LSSVMClassifier(RBF(1.0)), Y),
    "NPlusOneClassifier": (NPlusOneClassifier(SOURCE, RBF(1.0)), Y),
    "OneShotClassifier": (OneShotClassifier(RBF(1.0), {"near": X[:9] + 0.1}, noise=0.1), Y == "a"),
}


def is_short(value):
    text = repr(value)
    return len(text.splitlines()) < 10 and len(text) < 1000


def test_a_table_of_suspects_names_the_examples_by_its_index():
    clf = GPClassifier(RBF(1.0)).fit(X, Y)
    clf.remove([0, 3]).relabel([11, 30], ["a" if one == "b" else "b" for one in Y[[11, 30]]])
    found = suspects(clf)
    table = found.to_pandas()
    assert table.index.tolist() == table["id"].tolist() == found.ids.tolist()
    clf.relabel(table["preferred"])
    labels = dict(zip(clf.ids_.tolist(), clf.model_.examples.labels.tolist(), strict=True))
    assert [labels[one] for one in found.ids.tolist()] == found.preferred.tolist()
    left = clf.leave_one_out().to_pandas()
    gone = left.index[:2]
    clf.remove(gone)
    assert not set(left["id"].iloc[:2]) & set(clf.ids_.tolist())


@pytest.mark.parametrize("name", LIVING)
def test_leave_one_out_prints_short_and_becomes_a_table(name):
    estimator, y = LIVING[name]
    left = estimator.fit(X, y).leave_one_out()
    assert len(left) == N
    assert is_short(left)
    table = left.to_pandas()
    assert table.shape[0] == N
    assert table["id"].tolist() == left.ids.tolist()
    variances = [name for name in table if str(name).startswith("variance")]
    np.testing.assert_array_equal(np.squeeze(table[variances].to_numpy()), left.variance)
    scores = [f"score {one}" for one in left.names]
    np.testing.assert_array_equal(table[scores], left.scores)
    with pytest.raises(ValueError, match="read-only"):
        left.scores[0] = 1


@pytest.mark.parametrize("name", LIVING)
def test_models_and_their_parts_print_in_one_line(name):
    estimator, y = LIVING[name]
    model = estimator.fit(X, y).model_
    for part in (model, model.covariance, model.examples):
        assert is_short(part)
    assert f"{N} examples" in repr(model)


def test_the_summary_counts_hits_or_measures_the_error():
    clf = GPClassifier(RBF(1.0)).fit([[0.0], [0.1], [5.0], [5.1]], ["a", "a", "b", "b"])
    assert repr(clf.leave_one_out()).splitlines() == [
        "LeftOut: 4 of 4 examples are predicted as labelled by the others",
        "id  label  predicted  variance",
        " 0      a          a       0.2",
        " 1      a          a       0.2",
        " 2      b          b       0.2",
        " 3      b          b       0.2",
    ]
    reg = GPRegressor(RBF(1.0), normalize_y=False).fit([[0.0], [9.0]], [1.0, -1.0])
    assert "2 examples are predicted by the others with an error of 1 (rms)" in repr(
        reg.leave_one_out()
    )
    alone = GPClassifier(RBF(1.0)).fit([[0.0], [99.0], [99.1]], ["a", "b", "b"]).leave_one_out()
    assert "2 of 3 examples are predicted as labelled by the others; of 1 nothing" in repr(alone)
    assert alone.to_pandas()["silent"].tolist() == [True, False, False]


def test_targets_far_from_zero_are_told_apart():
    y = 1.7e9 + 0.01 * X[:100, 0]
    left = GPRegressor(RBF(1.0)).fit(X[:100], y).leave_one_out()
    lines = [line.split() for line in repr(left).splitlines()[2:7]]
    labels = np.array([float(label) for _, label, _, _ in lines])
    assert (abs(labels - y[:5]) <= np.ptp(y[:5]) / 100).all()
    assert len({predicted for _, _, predicted, _ in lines}) == 5


def test_every_answer_has_a_length_and_is_short():
    clf = GPClassifier(RBF(1.0)).fit(X, Y)
    new = NPlusOneClassifier(SOURCE, RBF(1.0)).fit(X, Y)
    rows = {
        novelty(clf, X[:50]): 50,
        suggest(clf, X, n=7, criterion="variance"): 7,
        explain(clf, X[0]): N,
        transfer(new): 2,
    }
    for answer, length in rows.items():
        assert len(answer) == len(answer.to_pandas()) == length
        assert is_short(answer)
    found = suspects(clf)
    assert len(found) == len(found.ids)
    assert len(reliability(clf)) <= 15
    few = GPClassifier(RBF(1.0)).fit(X[:40], Y[:40])
    assert len(tuned := tune(few)) == len(tuned.changed)


def test_the_novelty_table_has_ids_threshold_and_verdict():
    clf = GPClassifier(RBF(1.0)).fit(X, Y)
    queries = pd.DataFrame(X[:4], index=list("pqrs"), columns=list("abc"))
    named = GPClassifier(RBF(1.0)).fit(queries, Y[:4])
    assert novelty(named, queries).ids.tolist() == list("pqrs")
    assert novelty(named, pl.DataFrame(queries)).ids.tolist() == [0, 1, 2, 3]
    found = novelty(clf, X[:200])
    table = found.to_pandas(q=0.9)
    assert table.columns.tolist() == ["id", "value", "threshold", "unknown"]
    assert table["id"].tolist() == list(range(200))
    assert set(table["threshold"]) == {found.threshold(0.9)}
    np.testing.assert_array_equal(table["unknown"], found.values > found.threshold(0.9))
    np.testing.assert_array_equal(table["unknown"], found.unknown(0.9))
    alone = novelty(GPClassifier(RBF(1.0)).fit(X[:1], Y[:1]), X[:3])
    assert alone.to_pandas().columns.tolist() == ["id", "value"]


def test_a_calibrated_classifier_scores_as_its_estimator_does():
    clf = GPClassifier(RBF(1.0)).fit(X, Y)
    calibrated = calibrate(clf)
    np.testing.assert_array_equal(calibrated.decision_function(X), clf.decision_function(X))
    assert calibrated.score(X, Y) == clf.score(X, Y)


# -- a label for what is unknown -------------------------------------------------------------------


def test_rows_of_no_known_class_get_the_unknown_label():
    near, far = X[:50], X[:5] + 40
    clf = GPClassifier(RBF(1.0)).fit(X, Y)
    asked = np.vstack([near, far])
    labels = clf.predict(asked, unknown="nothing known", rate=0.1)
    found = novelty(clf, asked)
    new = found.values > found.threshold(0.9)
    assert new[50:].all()
    assert set(labels[new]) == {"nothing known"}
    np.testing.assert_array_equal(labels[~new], clf.predict(asked)[~new])
    # As many of the examples themselves are taken for unknown as was allowed, were they left out.
    assert clf.predict(asked, unknown="?", rate=0).tolist().count("?") <= new.sum()
    assert set(clf.predict(asked, unknown="?", rate=1.0)) <= {"?", *Y}


def test_the_unknown_label_follows_edits():
    clf = GPClassifier(RBF(1.0)).fit(X[:100], Y[:100])
    far = X[:20] + 9
    assert set(clf.predict(far, unknown="?")) == {"?"}
    ids = clf.add(far + 0.01, ["d"] * 20)
    assert "d" in clf.predict(far, unknown="?")
    clf.remove(ids)
    assert set(clf.predict(far, unknown="?")) == {"?"}


def test_a_bad_unknown_label_or_rate_is_explained():
    clf = GPClassifier(RBF(1.0)).fit(X, Y)
    with pytest.raises(KnowmoreError) as caught:
        clf.predict(X, unknown=-1)
    assert str(caught.value) == (
        "unknown=-1 cannot be a label here. The new labels are of type int, but those held are of "
        "type str, such as 'a'. Convert them first."
    )
    with pytest.raises(KnowmoreError) as caught:
        clf.predict(X, unknown="?", rate=5)
    assert str(caught.value) == (
        "rate=5 must be a number in [0, 1]. It is the fraction of known examples that may be "
        "called unknown."
    )
    with pytest.raises(KnowmoreError, match="but the model holds one"):
        GPClassifier(RBF(1.0)).fit(X[:1], Y[:1]).predict(X, unknown="?")
