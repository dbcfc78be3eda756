"""A Pipeline that ends in a living estimator has the verbs and answers of that estimator."""

from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from knowmore import GPClassifier, GPRegressor, KnowmoreError, LSSVMClassifier, living
from knowmore.insight import (
    calibrate,
    due,
    explain,
    novelty,
    reliability,
    suggest,
    suspects,
    tune,
)

N = 60
rng = np.random.default_rng(7)
X = rng.normal(size=(N, 3)) * [1, 100, 1e4] + [5, 500, 0]
Y = np.array(["a", "b", "c"])[np.digitize(X[:, 0], [4.5, 5.5])]
NAMES = [f"row {i}" for i in range(N)]
TABLE = pd.DataFrame(X, index=NAMES, columns=["p", "q", "r"])


def scaled(last=None):
    last = GPClassifier(RBF(1.0), 0.1) if last is None else last
    return make_pipeline(StandardScaler(), last).fit(TABLE[:40], pd.Series(Y, NAMES)[:40])


def by_hand(pipe):
    """The scaler, and the same estimator fitted to what comes out of it."""
    return pipe[0], deepcopy(pipe[-1])


def test_the_verbs_are_those_of_the_last_step_on_transformed_rows():
    pipe = scaled()
    scaler, clf = by_hand(pipe)
    alive = living(pipe)
    assert alive.add(TABLE[40:50], Y[40:50]).tolist() == NAMES[40:50]
    assert alive.add(TABLE[50:], Y[50:], ids=range(10)).tolist() == list(range(10))
    alive.remove(TABLE.index[3:6]).relabel(NAMES[0], "c")
    alive.replace([NAMES[1], NAMES[2]], TABLE[:3].loc[[NAMES[2], NAMES[1]]] + 1)
    Z = scaler.transform(TABLE)
    clf.add(Z[40:50], Y[40:50], NAMES[40:50])
    clf.add(Z[50:], Y[50:], range(10))
    clf.remove(NAMES[3:6]).relabel(NAMES[0], "c")
    clf.replace(NAMES[1:3], scaler.transform(TABLE[1:3] + 1))
    assert alive.ids_.tolist() == clf.ids_.tolist()
    for question in ("predict", "decision_function", "predict_proba", "predict_variance"):
        want = getattr(clf, question)(Z)
        np.testing.assert_array_equal(getattr(alive, question)(TABLE), want)
    np.testing.assert_array_equal(pipe.predict(TABLE), clf.predict(Z))
    assert alive.score(TABLE, Y) == clf.score(Z, Y)
    assert alive.residual() == clf.residual()
    np.testing.assert_array_equal(alive.leave_one_out().scores, clf.leave_one_out().scores)


def test_insight_questions_work_as_for_an_estimator():
    pipe = scaled()
    scaler, clf = by_hand(pipe)
    alive, Z = living(pipe), scaler.transform(TABLE)
    np.testing.assert_array_equal(suspects(alive).ids, suspects(clf).ids)
    new = novelty(alive, TABLE[40:])
    np.testing.assert_array_equal(new.values, novelty(clf, Z[40:]).values)
    assert new.ids.tolist() == NAMES[40:]
    picked = suggest(alive, TABLE[40:], n=3)
    np.testing.assert_array_equal(picked.indices, suggest(clf, Z[40:], n=3).indices)
    assert explain(alive, TABLE[:1]).score == explain(clf, Z[0]).score
    calibrated = calibrate(alive)
    np.testing.assert_array_equal(calibrated.predict_proba(TABLE), calibrate(clf).predict_proba(Z))
    assert calibrated.score(TABLE, Y) == clf.score(Z, Y)
    assert reliability(alive).error == reliability(clf).error
    assert reliability(calibrated, TABLE, Y).error == reliability(calibrate(clf), Z, Y).error


@pytest.mark.parametrize("last", [GPClassifier(RBF(1.0), 0.1), LSSVMClassifier(RBF(1.0), 10.0)])
def test_tuning_gives_another_living_pipeline(last):
    pipe = scaled(last)
    before = pipe.decision_function(TABLE)
    tuned = tune(living(pipe))
    assert dict(tuned.changed) == dict(tune(pipe[-1]).changed)
    better = tuned.estimator
    assert isinstance(better.pipeline, Pipeline)
    assert better.pipeline[0] is pipe[0]
    ids = better.add(TABLE[40:], Y[40:])
    assert ids.tolist() == NAMES[40:]
    assert due(tuned, every=20)
    np.testing.assert_array_equal(better.predict(TABLE), better.pipeline.predict(TABLE))
    np.testing.assert_array_equal(pipe.decision_function(TABLE), before)


def test_any_number_of_steps_works_and_so_does_text():
    words = pd.DataFrame({"colour": ["red", "blue"] * 4, "size": list("smlxsmlx")})
    pipe = make_pipeline(OneHotEncoder(handle_unknown="ignore"), GPClassifier())
    pipe.fit(words[:6], list("abcabc"))
    assert living(pipe).add(words[6:], ["d", "d"]).tolist() == [6, 7]
    many = make_pipeline(StandardScaler(), PCA(2), FunctionTransformer(np.tanh), GPRegressor())
    many.fit(X[:40], X[:40, 0])
    assert living(many).add(X[40:], X[40:, 0]).tolist() == list(range(40, 60))
    alone = make_pipeline(GPClassifier(RBF(1.0))).fit(X[:40], Y[:40])
    assert len(living(alone).add(X[40:], Y[40:])) == 20
    pandas = make_pipeline(StandardScaler().set_output(transform="pandas"), GPClassifier())
    pandas.fit(TABLE[:40], Y[:40])
    assert living(pandas).replace(NAMES[:2], TABLE[:2]).ids_.tolist() == NAMES[2:40] + NAMES[:2]


def test_attributes_are_those_of_the_last_step_except_those_that_would_skip_a_step():
    alive = living(scaled())
    assert alive.noise == 0.1
    assert alive.classes_.tolist() == ["a", "b", "c"]
    assert alive.kernel_ == RBF(1.0)
    assert alive.feature_names_in_.tolist() == ["p", "q", "r"]
    assert repr(alive).startswith("living(Pipeline(")
    for name in ("merge", "fit", "strange"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            getattr(alive, name)
    for other in (deepcopy(alive), pickle.loads(pickle.dumps(alive))):
        other.remove(NAMES[0])
        assert len(other.ids_) == len(alive.ids_) - 1


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: living(GPClassifier()),
            "living() takes a Pipeline that ends in, say, a GPClassifier, not GPClassifier().",
        ),
        (
            lambda: living(make_pipeline(LogisticRegression())),
            "living() takes a Pipeline that ends in, say, a GPClassifier, not "
            "Pipeline(steps=[('logisticregression', LogisticRegression())]).",
        ),
        (
            lambda: living(make_pipeline(StandardScaler(), GPClassifier())),
            "This GPClassifier is not fitted yet. Call fit or add first.",
        ),
        (
            lambda: suspects(scaled()),
            "This question is for a fitted GPClassifier, LSSVMClassifier, NPlusOneClassifier, "
            "LinearGPClassifier or ForestGPClassifier, not Pipeline. Ask "
            "knowmore.living(pipeline).",
        ),
        (
            lambda: living(scaled()).add(TABLE[:1], Y[:1]),
            "The model already holds 'row 0'. "
            "Use replace() to change them, or give new examples other ids, by ids=... (to "
            "merge: in the second fit) or by the index of their table "
            "(reset_index(drop=True) numbers rows instead).",
        ),
    ],
)
def test_a_mistake_is_reported(make, words):
    with pytest.raises(KnowmoreError) as caught:
        make()
    assert str(caught.value) == words
