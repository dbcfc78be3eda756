"""From N to N+1 classes: any source, a life of its own, and class after class."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.svm import SVC
from tolerance import GAP, SAME_GAP, assert_rounded

import knowmore
from knowmore import GPClassifier, LSSVMClassifier, NPlusOneClassifier, Scores
from knowmore.models import Following

DIGITS, NAMES = load_digits(return_X_y=True)
DIGITS = DIGITS / 16
KERNEL = RBF(3.0)


def rows(classes, per_class, skip=0):
    """Row numbers of so many pictures of each class."""
    chosen = [np.flatnonzero(c == NAMES)[skip : skip + per_class] for c in classes]
    return np.concatenate(chosen)


KNOWN, FEW, ALL = rows(range(5), 30), rows(range(6), 5, skip=30), rows(range(6), 100, skip=60)
SOURCES = {
    "LSSVMClassifier": LSSVMClassifier(KERNEL, C=10),
    "GPClassifier": GPClassifier(KERNEL),
    "SVC": SVC(),
    "RidgeClassifier": RidgeClassifier(),
    "LogisticRegression": LogisticRegression(),
}


@pytest.mark.parametrize("name", SOURCES)
def test_any_classifier_is_a_source(name):
    source = clone(SOURCES[name]).fit(DIGITS[KNOWN], NAMES[KNOWN])
    clf = NPlusOneClassifier(source, KERNEL, C=10).fit(DIGITS[FEW], NAMES[FEW])
    assert clf.classes_.tolist() == [0, 1, 2, 3, 4, 5]
    if name in ("LSSVMClassifier", "GPClassifier"):
        alone = LSSVMClassifier(KERNEL, C=10).fit(DIGITS[FEW], NAMES[FEW])
        assert clf.score(DIGITS[ALL], NAMES[ALL]) > alone.score(DIGITS[ALL], NAMES[ALL])
    # The scores of the others are not on the scale of -1 and 1.
    assert clf.score(DIGITS[ALL], NAMES[ALL]) > 0.8


def test_scores_may_be_columns_of_the_inputs():
    source = LSSVMClassifier(KERNEL, C=10).fit(DIGITS[KNOWN], NAMES[KNOWN])
    S = source.decision_function(DIGITS)
    order = [3, 0, 4, 1, 2]
    table = np.hstack([DIGITS, S[:, order]])
    given = NPlusOneClassifier(Scores(order), KERNEL, C=10).fit(table[FEW], NAMES[FEW])
    asked = NPlusOneClassifier(source, KERNEL, C=10).fit(DIGITS[FEW], NAMES[FEW])
    np.testing.assert_allclose(given.beta_, asked.beta_[order], atol=SAME_GAP)
    np.testing.assert_allclose(
        given.decision_function(table[ALL]), asked.decision_function(DIGITS[ALL]), atol=SAME_GAP
    )


def test_the_model_has_features_then_scores_and_the_kernel_sees_the_features():
    source = LSSVMClassifier(KERNEL, C=10).fit(DIGITS[KNOWN], NAMES[KNOWN])
    order = [3, 0, 4, 1, 2]
    scores = source.decision_function(DIGITS)
    table = np.hstack([DIGITS, scores[:, order]])
    given = NPlusOneClassifier(Scores(order), KERNEL).fit(table[FEW], NAMES[FEW])
    asked = NPlusOneClassifier(source, KERNEL).fit(DIGITS[FEW], NAMES[FEW])
    wide = np.hstack([DIGITS, scores])[FEW]
    for clf, X in ((given, table[FEW]), (asked, DIGITS[FEW])):
        examples = clf.model_.examples
        assert_rounded(examples.X, wide, 100)
        np.testing.assert_array_equal(clf.model_inputs(X)[:, : DIGITS.shape[1]], DIGITS[FEW])
        np.testing.assert_array_equal(clf.model_.covariance.X, DIGITS[FEW])
        np.testing.assert_array_equal(clf.as_given(examples).X, X)


def test_examples_of_a_file_are_as_they_were_given(tmp_path):
    source = LSSVMClassifier(KERNEL, C=10).fit(DIGITS[KNOWN], NAMES[KNOWN])
    order = [3, 0, 4, 1, 2]
    table = np.hstack([DIGITS, source.decision_function(DIGITS)[:, order]])
    source.save(tmp_path / "source.km")
    source = knowmore.load(tmp_path / "source.km")
    for name, known, X in (("a", Scores(order), table), ("b", source, DIGITS)):
        with knowmore.open(tmp_path / f"{name}.km", NPlusOneClassifier(known, KERNEL)) as store:
            store.add(X[FEW], NAMES[FEW])
            np.testing.assert_array_equal(store.examples.X, X[FEW])
            store.add(store.examples.X[:1], store.examples.labels[:1])
            assert store.verify().ok


def test_fixed_rows_follow_it_with_the_source_s_share():
    source = LSSVMClassifier(KERNEL, C=10).fit(DIGITS[KNOWN], NAMES[KNOWN])
    clf = NPlusOneClassifier(source, KERNEL).fit(DIGITS[FEW], NAMES[FEW])
    pool = Following(clf.model_, clf.model_inputs(DIGITS[ALL]))
    clf.add(DIGITS[ALL[:7]], NAMES[ALL[:7]])
    pool = pool.follow(clf.model_)
    want = clf.decision_function(DIGITS[ALL])
    np.testing.assert_allclose(pool.scores, want, atol=SAME_GAP)
    np.testing.assert_allclose(pool.among(np.array([3])).scores, want[[3]], atol=SAME_GAP)


def test_a_source_of_two_classes_has_one_column_of_scores():
    two = np.isin(NAMES, [3, 8])
    source = SVC().fit(DIGITS[two], NAMES[two])
    some = rows([1, 3, 8], 5)
    clf = NPlusOneClassifier(source, KERNEL).fit(DIGITS[some], NAMES[some])
    assert clf.classes_.tolist() == [1, 3, 8]
    assert clf.beta_.shape == (2,)


def test_what_becomes_of_the_source_later_does_not_matter():
    for source in (LSSVMClassifier(KERNEL), SVC()):
        source.fit(DIGITS[KNOWN], NAMES[KNOWN])
        clf = NPlusOneClassifier(source, KERNEL).fit(DIGITS[FEW], NAMES[FEW])
        before = clf.decision_function(DIGITS[ALL])
        source.fit(DIGITS[:50], NAMES[:50])
        np.testing.assert_array_equal(clf.decision_function(DIGITS[ALL]), before)
        clf.remove(clf.add(DIGITS[:1], NAMES[:1]))
        np.testing.assert_allclose(clf.decision_function(DIGITS[ALL]), before, atol=GAP)


def test_class_after_class_with_the_last_model_as_the_source():
    model = LSSVMClassifier(KERNEL, C=10).fit(DIGITS[KNOWN], NAMES[KNOWN])
    for new in range(5, 8):
        few = rows(range(new + 1), 5, skip=30)
        model = NPlusOneClassifier(model, KERNEL, C=10).fit(DIGITS[few], NAMES[few])
    assert model.classes_.tolist() == list(range(8))
    test = rows(range(8), 80, skip=60)
    alone = LSSVMClassifier(KERNEL, C=10).fit(DIGITS[few], NAMES[few])
    assert model.score(DIGITS[test], NAMES[test]) > alone.score(DIGITS[test], NAMES[test])
    # And it goes on living.
    held = len(model.ids_)
    ids = model.add(DIGITS[test[:3]], NAMES[test[:3]])
    assert len(model.remove(ids[:1]).ids_) == held + 2


def test_beta_names_the_classes_that_the_new_one_is_like():
    rng = np.random.default_rng(0)
    places = {"near": [3.0, 0.0], "far": [0.0, 3.0], "farther": [-3.0, -3.0]}
    X = np.vstack([rng.normal(place, 0.3, (20, 2)) for place in places.values()])
    source = LSSVMClassifier(RBF(2.0)).fit(X, np.repeat(list(places), 20))
    few = [*places.values(), [3.2, 1.2], [3.4, 1.0]]
    # With so small a C the few examples hardly count: the new class is what it is like.
    clf = NPlusOneClassifier(source, RBF(2.0), C=0.01, scaled=False)
    clf.fit(few, [*places, "new", "new"])
    of = dict(zip(clf.source_.classes_.tolist(), clf.beta_.tolist(), strict=True))
    assert of["near"] > 5 * max(of["far"], of["farther"])


def test_tables_go_to_the_source_with_their_names():
    columns = [f"pixel {i}" for i in range(64)]
    table = pd.DataFrame(DIGITS, columns=columns)
    source = RidgeClassifier().fit(table.iloc[KNOWN], NAMES[KNOWN])
    clf = NPlusOneClassifier(source, KERNEL).fit(table.iloc[FEW], NAMES[FEW])
    assert clf.predict(table.iloc[ALL]).shape == ALL.shape


def test_a_frozen_source_survives_a_clone():
    source = LSSVMClassifier(KERNEL).fit(DIGITS[KNOWN], NAMES[KNOWN])
    clf = clone(NPlusOneClassifier(FrozenEstimator(source), KERNEL))
    assert clf.fit(DIGITS[FEW], NAMES[FEW]).score(DIGITS[ALL], NAMES[ALL]) > 0.5


def test_the_kernel_may_be_a_function():
    source = LSSVMClassifier(KERNEL).fit(DIGITS[KNOWN], NAMES[KNOWN])

    def plain(A, B):
        return KERNEL(A, B)

    by_function = NPlusOneClassifier(source, plain).fit(DIGITS[FEW], NAMES[FEW])
    by_kernel = NPlusOneClassifier(source, KERNEL).fit(DIGITS[FEW], NAMES[FEW])
    np.testing.assert_allclose(by_function.beta_, by_kernel.beta_, atol=GAP)
    assert by_function.kernel_ is plain


def test_the_steps_of_the_paper_come_near_the_exact_beta():
    source = LSSVMClassifier(KERNEL, C=10).fit(DIGITS[KNOWN], NAMES[KNOWN])
    exact, steps = (
        NPlusOneClassifier(source, KERNEL, C=10, optimiser=how).fit(DIGITS[FEW], NAMES[FEW])
        for how in ("interior", "subgradient")
    )
    least, reached = exact.model_.minimum, steps.model_.minimum
    assert least.value - least.gap <= reached.value <= 1.01 * least.value
