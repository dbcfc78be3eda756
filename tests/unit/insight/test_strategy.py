"""SuggestQuery as scikit-activeml's own tools use it."""

from __future__ import annotations

import re
import subprocess
import sys
import unittest

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from knowmore import ForestGPClassifier, GPClassifier, LinearGPClassifier
from knowmore.errors import InvalidInput
from knowmore.insight import SuggestQuery

skactiveml = pytest.importorskip("skactiveml", reason="needs scikit-activeml")

base = pytest.importorskip("skactiveml.base")
pool = pytest.importorskip("skactiveml.pool")
classifier = pytest.importorskip("skactiveml.classifier")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
TRUE = np.where(X[:, 0] > 0, 1.0, 0.0)
Y = np.where(np.arange(40) < 8, TRUE, np.nan)


def wrapped(model=None, **options):
    model = GPClassifier(RBF(1.0)) if model is None else model
    return classifier.SklearnClassifier(model, classes=[0.0, 1.0], **options)


def test_it_is_a_strategy_of_theirs():
    assert issubclass(SuggestQuery, base.SingleAnnotatorPoolQueryStrategy)
    assert repr(SuggestQuery("margin")) == "SuggestQuery(criterion='margin')"
    assert SuggestQuery().get_params() == {
        "criterion": None,
        "missing_label": SuggestQuery().missing_label,
        "random_state": None,
    }


def test_knowmore_does_not_load_it():
    code = "import sys, knowmore, knowmore.insight; print('skactiveml' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"


@pytest.mark.parametrize("model", [GPClassifier(RBF(1.0)), ForestGPClassifier(RBF(1.0))])
def test_their_wrapper_is_taken_off(model):
    want = SuggestQuery().query(X, Y, model, batch_size=3).tolist()
    assert SuggestQuery().query(X, Y, wrapped(model), batch_size=3).tolist() == want
    fitted = wrapped(model).fit(X, Y)
    found = SuggestQuery().query(X, Y, fitted, fit_clf=False, batch_size=3)
    assert found.tolist() == want
    window = classifier.SlidingWindowClassifier(fitted, classes=[0.0, 1.0]).fit(X, Y)
    assert SuggestQuery().query(X, Y, window, batch_size=3).tolist() == want


def test_two_words_for_no_label_are_explained():
    with pytest.raises(InvalidInput) as caught:
        SuggestQuery().query(X, Y, wrapped(missing_label=-1.0))
    assert str(caught.value) == (
        "Where there is no label y has missing_label=nan for the strategy, and -1.0 for clf. Give "
        "both the same one."
    )


def test_their_wrappers_around_strategies_take_it():
    some = pool.SubSamplingWrapper(SuggestQuery(), max_candidates=10, random_state=0)
    (row,) = some.query(X, Y, fit_clf=True, clf=wrapped())
    assert row >= 8
    parallel = pool.ParallelUtilityEstimationWrapper(
        SuggestQuery("variance"), n_jobs=1, random_state=0
    )
    found = parallel.query(X, Y, fit_clf=True, clf=wrapped())
    want = SuggestQuery("variance").query(X, Y, wrapped())
    assert found.tolist() == want.tolist()


def test_a_loop_of_theirs():
    y, strategy = np.full(40, np.nan), SuggestQuery(random_state=0)
    for _ in range(12):
        (row,) = strategy.query(X, y, wrapped())
        y[row] = TRUE[row]
    assert wrapped().fit(X, y).score(X, TRUE) > 0.9


@pytest.mark.parametrize("model", [GPClassifier(RBF(1.0)), LinearGPClassifier()])
def test_a_wrapper_learns_bit_by_bit(model):
    clf = wrapped(model)
    for rows in np.split(np.arange(40), 8):
        clf.partial_fit(X[rows], TRUE[rows])
        assert clf.predict_proba(X).shape == (40, 2)
    assert clf.score(X, TRUE) > 0.8


# -- their own checks ----------------------------------------------------------------------------


@pytest.mark.slow
def test_their_checks(monkeypatch):
    template = pytest.importorskip(
        "skactiveml.tests.template_query_strategy",
        reason="the wheels of scikit-activeml from 0.6 on come without its checks",
    )

    # Their own comparison finds a copy of an estimator with a parameter of None different.
    def shown(values):
        return re.sub(r" at 0x\w+", "", repr(values))

    monkeypatch.setattr(template, "_cmp_object_dict", lambda one, two: shown(one) == shown(two))

    class Checks(template.TemplateSingleAnnotatorPoolQueryStrategy, unittest.TestCase):
        def setUp(self):
            given = {"X": X, "y": Y, "clf": wrapped()}
            super().setUp(SuggestQuery, {}, given)

        def _test_param(self, kind, name, cases, *rest, **options):
            # Of a wrong argument they expect one of these errors. That it is refused is enough.
            either = [(value, error and (ValueError, TypeError)) for value, error in cases]
            super()._test_param(kind, name, either, *rest, **options)

        def test_query_param_clf(self):
            super().test_query_param_clf(test_cases=[])

        def test_init_param_criterion(self):
            self._test_param("init", "criterion", [("margin", None), ("best", ValueError)])

        def test_query(self):
            assert SuggestQuery().query(X, Y, wrapped()).shape == (1,)

    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Checks).run(result)
    assert result.testsRun > 10
    assert not [text for _, text in result.failures + result.errors]
