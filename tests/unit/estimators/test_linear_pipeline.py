"""Linear Gaussian processes behind frozen feature maps: learn, forget, merge and split."""

from __future__ import annotations

import pickle
from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_approximation import AdditiveChi2Sampler, Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tolerance import RESIDUAL

from knowmore import (
    GPClassifier,
    IntersectionMap,
    KnowmoreError,
    Landmarks,
    LinearGPClassifier,
    LinearGPRegressor,
    living,
)
from knowmore.kernels import HistogramIntersection

X, Y = load_digits(return_X_y=True)
X, Y = X[:500], Y[:500]

MAPS = [
    Landmarks(n_landmarks=50),
    Landmarks(HistogramIntersection(), 50),
    make_pipeline(StandardScaler(), Landmarks(RBF(8.0), 50)),
    IntersectionMap(4),
    Nystroem(gamma=1e-3, n_components=50, random_state=0),
    RBFSampler(gamma=1e-3, n_components=50, random_state=0),
    AdditiveChi2Sampler(),
]


def fitted(features, model=None, rows=300):
    pipeline = make_pipeline(clone(features), model or LinearGPClassifier())
    return pipeline.fit(X[:rows], Y[:rows])


def refit(pipeline, rows):
    """A fresh last step, on the same grid, that has seen only these rows."""
    model = clone(pipeline[-1]).set_params(resolution=pipeline[-1].grid_)
    return model.fit(pipeline[:-1].transform(X[rows]), Y[rows])


@pytest.mark.parametrize(
    ("features", "model"),
    [
        *((features, LinearGPClassifier("loo")) for features in MAPS),
        *((features, LinearGPClassifier(resolution="exact")) for features in MAPS[:2]),
        (IntersectionMap(4), LinearGPClassifier(resolution=8)),
    ],
    ids=repr,
)
def test_any_history_is_the_fit_of_the_survivors(features, model):
    pipeline = fitted(features, model)
    alive, order = living(pipeline), np.random.default_rng(0).permutation(np.arange(300, 500))
    held = np.zeros(500, dtype=bool)
    held[:300] = True
    for rows in np.array_split(order, 7):
        alive.partial_fit(X[rows], Y[rows]).forget(X[rows[::3]], Y[rows[::3]])
        held[rows] = True
        held[rows[::3]] = False
    want = refit(pipeline, held)
    assert alive.digest() == want.digest()
    assert (alive.predict(X) == want.predict(pipeline[:-1].transform(X))).all()
    assert alive.n_samples_ == held.sum()
    assert alive.score(X, Y) > 0.8


@pytest.mark.parametrize("features", MAPS, ids=repr)
def test_merge_and_split(features):
    pipeline = fitted(features, LinearGPClassifier(), rows=400)
    before, other = pipeline[-1].digest(), deepcopy(pipeline)
    other.steps[-1] = (other.steps[-1][0], refit(pipeline, np.arange(400, 500)))
    alive = living(pipeline).merge(pickle.loads(pickle.dumps(other)))
    assert alive.digest() == refit(pipeline, np.arange(500)).digest()
    assert alive.split(living(other)).digest() == before
    # The same landmarks from the same rows in another order are the same map.
    if isinstance(features, Landmarks):
        other.steps[0] = (other.steps[0][0], clone(features).fit(X[:400][::-1], Y[:400][::-1]))
        assert alive.merge(other).split(other).digest() == before


def test_queries_take_rows_of_the_pipeline():
    pipeline = fitted(MAPS[0])
    alive, Z = living(pipeline), pipeline[0].transform(X)
    for name in ("predict", "predict_proba", "predict_variance", "decision_function"):
        assert (getattr(alive, name)(X) == getattr(pipeline[-1], name)(Z)).all()
    left = alive.leave_one_out(X[:300], Y[:300])
    assert (left.scores == pipeline[-1].leave_one_out(Z[:300], Y[:300]).scores).all()
    assert alive.log_marginal_likelihood() == pipeline[-1].log_marginal_likelihood()
    assert alive.n_features_in_ == 64
    assert alive.noise is None
    assert alive.residual() < RESIDUAL
    assert {"digest", "forget", "classes_", "leave_one_out"} <= set(dir(alive))
    for name in ("add", "remove", "relabel", "nonsense"):
        assert not hasattr(alive, name)
    assert pickle.loads(pickle.dumps(alive)).digest() == alive.digest()
    assert repr(alive).startswith("living(Pipeline(")


def test_a_regressor_and_weights():
    pipeline = fitted(RBFSampler(gamma=1e-3, random_state=0), LinearGPRegressor())
    before, weights = pipeline[-1].digest(), np.full(100, 0.5)
    alive = living(pipeline).partial_fit(X[300:400], Y[300:400] / 2, weights)
    assert alive.digest() != before
    assert alive.forget(X[300:400], Y[300:400] / 2, weights).digest() == before


def test_a_landmark_is_not_forgotten_in_the_last_step_alone():
    pipeline = fitted(MAPS[0])
    alive, before = living(pipeline), pipeline[-1].digest()
    one = pipeline[0].ids_[0].item()
    with pytest.raises(KnowmoreError) as caught:
        alive.forget(X[:300], Y[:300])
    assert "Among these rows are landmarks of the step 'landmarks': " in str(caught.value)
    with pytest.raises(KnowmoreError) as caught:
        alive.forget(X[[one]], Y[[one]])
    assert str(caught.value) == (
        f"Among these rows are landmarks of the step 'landmarks': {one}. It would still hold them, "
        f"so nothing was changed. Withdraw them first, pipeline[0].forget(ids=...).renew(), and "
        f"fit the last step again to the rows that are left: "
        f"pipeline[-1].fit(pipeline[:-1].transform(X), y). Or fit the pipeline again without them. "
        f"To forget them in the last step alone, call "
        f"pipeline[-1].forget(pipeline[:-1].transform(X), y)."
    )
    assert alive.digest() == before
    scaled = make_pipeline(StandardScaler(), Landmarks(n_landmarks=50), LinearGPClassifier())
    with pytest.raises(KnowmoreError, match="landmarks of the step 'landmarks'"):
        living(scaled.fit(X, Y)).forget(X, Y)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: living(make_pipeline(Landmarks(), LinearGPClassifier())),
            "This LinearGPClassifier is not fitted yet. Call fit first.",
        ),
        (
            lambda: living(fitted(MAPS[0])).merge(fitted(Landmarks(n_landmarks=50, seed=1))),
            "The earlier steps of the two pipelines differ, so their last steps have learnt "
            "different features. Fit these steps once, and give each pipeline a copy of them.",
        ),
        (
            lambda: living(fitted(MAPS[3])).split(fitted(MAPS[4])),
            "The earlier steps of the two pipelines differ, so their last steps have learnt "
            "different features. Fit these steps once, and give each pipeline a copy of them.",
        ),
        (
            lambda: living(fitted(MAPS[3])).merge(LinearGPClassifier()),
            "Give a Pipeline that ends in a linear model, not LinearGPClassifier().",
        ),
        (
            lambda: living(fitted(MAPS[3])).merge(make_pipeline(GPClassifier().fit(X, Y))),
            "Give a Pipeline that ends in a linear model, not living(",
        ),
    ],
)
def test_a_mistake_is_reported(call, words):
    with pytest.raises(KnowmoreError) as caught:
        call()
    assert str(caught.value).startswith(words)


@pytest.mark.parametrize("last", [LinearGPClassifier(), GPClassifier()])
def test_classes_may_be_declared(last):
    alive = living(make_pipeline(StandardScaler(), last).fit(X[:100], Y[:100]))
    alive = alive.partial_fit(X[100:110], Y[100:110], classes=np.unique(Y))
    with pytest.raises(KnowmoreError) as caught:
        alive.partial_fit(X[:1], [99], classes=[0, 1])
    assert str(caught.value) == (
        "y has the label 99, which is not in classes. Leave classes out: new classes are learnt as "
        "they come."
    )
