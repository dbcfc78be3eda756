"""living() over a Pipeline of imbalanced-learn: its samplers act in fit alone."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF
from sklearn.preprocessing import StandardScaler

from knowmore import GPClassifier, LinearGPClassifier, living
from knowmore.errors import InvalidInput
from knowmore.export import describe
from knowmore.insight import suspects

imblearn = pytest.importorskip("imblearn.pipeline", reason="needs imbalanced-learn")
over = pytest.importorskip("imblearn.over_sampling")
under = pytest.importorskip("imblearn.under_sampling")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2)) * [1, 100]
Y = np.where(np.arange(60) < 15, "a", "b")
SAMPLERS = [
    over.RandomOverSampler(random_state=0),
    over.SMOTE(random_state=0),
    under.RandomUnderSampler(random_state=0),
    under.TomekLinks(),
]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda one: type(one).__name__)
def test_rows_pass_by_the_sampler(sampler):
    pipe = imblearn.make_pipeline(StandardScaler(), sampler, GPClassifier(RBF(1.0))).fit(X, Y)
    alive = living(pipe)
    assert np.array_equal(alive.predict_proba(X), pipe.predict_proba(X))
    held = pipe[-1].editable_.examples
    rows, labels = X[:3] + 1, ["a", "b", "new"]
    assert alive.add(rows, labels, ids=["p", "q", "r"]).tolist() == ["p", "q", "r"]
    now = pipe[-1].editable_.examples
    assert np.array_equal(now.X, [*held.X, *pipe[0].transform(rows)])
    assert now.labels.tolist() == [*held.labels, *labels]
    alive.partial_fit(X[3:5], Y[3:5])
    assert len(alive.ids_) == len(held) + 5
    assert len(suspects(alive).ids)
    assert len(describe(pipe).before) == 1


def test_a_sampler_alone_before_the_model():
    pipe = imblearn.make_pipeline(SAMPLERS[0], LinearGPClassifier()).fit(X, Y)
    assert living(pipe).partial_fit(X[:2], Y[:2]).predict(X).shape == (60,)


def test_rows_of_nobody_are_not_removed():
    pipe = imblearn.make_pipeline(StandardScaler(), SAMPLERS[1], GPClassifier(RBF(1.0))).fit(X, Y)
    linear = imblearn.make_pipeline(SAMPLERS[1], LinearGPClassifier()).fit(X, Y)
    before = pipe.predict_proba(X)
    for change, name in (
        (lambda: living(pipe).remove(0), "smote"),
        (lambda: living(pipe).relabel(0, "b"), "smote"),
        (lambda: living(pipe).replace(0, X[:1]), "smote"),
        (lambda: living(linear).forget(X[:1], Y[:1]), "smote"),
    ):
        with pytest.raises(InvalidInput) as caught:
            change()
        assert str(caught.value) == (
            f"The step {name!r} is a sampler: the rows that it left, repeated or made of others "
            f"are numbered anew, so nobody knows whose they are, and nothing was changed. Leave "
            f"it out, and let GPClassifier(class_weight='balanced') weigh the classes alike. Or "
            f"change the rows of the last step by its own ids: pipeline[-1]."
        )
    assert np.array_equal(pipe.predict_proba(X), before)
