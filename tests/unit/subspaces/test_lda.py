"""EigenspaceLDA is the discriminant analysis of the labelled rows it holds now."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numpy as np
import oracle
import pytest
from scipy import linalg
from scipy.special import softmax
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
from tolerance import assert_models, assert_rounded, rounded, scatter_error

from knowmore import EigenspaceLDA, KnowmoreError

rng = np.random.default_rng(0)
# Six classes of different sizes that overlap in part.
LABELS = np.repeat(np.arange(6), [12, 9, 20, 7, 15, 11])
ORDER = rng.permutation(len(LABELS))
LABELS = LABELS[ORDER]
X = rng.normal(size=(6, 8))[LABELS] * 2 + rng.normal(size=(len(LABELS), 8)) * np.linspace(1, 2, 8)


@parametrize_with_checks([EigenspaceLDA(), EigenspaceLDA(1, rank=3, priors="equal")])
def test_scikit_learn_check(estimator, check):
    check(estimator)


def parts(labels):
    """Labels as parts of one, (n, C)."""
    return np.eye(labels.max() + 1)[labels]


def naive(X, Y):
    """The generalised eigenproblem of the two scatters: values (q,) and vectors (D, q)."""
    S_B, (_, S_T) = oracle.scatter_between(X, Y), oracle.scatter(X)
    q = (Y.sum(axis=0) > 0).sum() - 1
    values, U = linalg.eigh(S_B, S_T)
    return values[::-1][:q], U[:, ::-1][:, :q]


def assert_is_lda_of(lda, X, Y, held=None, edits=1):
    """Both scatters, the discriminants and the predictions, against the definitions."""
    held = X if held is None else held
    assert_models(lda.total_, X, held, edits)
    # Scatters are sums, and so are the errors of their difference.
    error = scatter_error(X, held, 4 * edits)
    S_B, (_, S_T) = oracle.scatter_between(X, Y), oracle.scatter(X)
    assert abs(len(X) * lda.between_.covariance() - S_B).max() <= error
    separations, _ = naive(X, Y)
    U, found = lda.model_.directions
    condition = np.linalg.cond(S_T) * error / np.linalg.norm(S_T, 2)
    np.testing.assert_allclose(found, separations, rtol=0, atol=condition)
    np.testing.assert_allclose(U.T @ S_T @ U, np.eye(len(found)), rtol=0, atol=condition)
    np.testing.assert_allclose(U.T @ S_B @ U, np.diag(separations), rtol=0, atol=condition)


def assert_same_answers(lda, X, y, queries):
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    np.testing.assert_array_equal(lda.classes_, theirs.classes_)
    np.testing.assert_array_equal(lda.predict(queries), theirs.predict(queries))
    roundings = 1e4 * np.linalg.cond(theirs.covariance_)
    assert_rounded(lda.predict_proba(queries), theirs.predict_proba(queries), roundings)
    assert_rounded(lda.means_, theirs.means_, 1000)
    assert_rounded(lda.priors_, theirs.priors_)
    q = lda.scalings_.shape[1]
    for ours, other in zip(lda.scalings_.T, theirs.scalings_[:, :q].T, strict=True):
        sign = np.sign(ours @ other)
        assert_rounded(sign * ours, other, roundings, abs(theirs.scalings_).max())
    ratio = theirs.explained_variance_ratio_[:q]
    assert_rounded(lda.explained_variance_ratio_, ratio, roundings)


def test_a_fit_is_scikit_learn_s():
    lda = EigenspaceLDA().fit(X, LABELS)
    assert_is_lda_of(lda, X, parts(LABELS))
    assert_same_answers(lda, X, LABELS, X)
    wine, kinds = load_wine(return_X_y=True)
    assert_same_answers(EigenspaceLDA().fit(wine, kinds), wine, kinds, wine)


def test_classes_may_come_late_overlap_and_go():
    lda = EigenspaceLDA().fit(X[:1], LABELS[:1])
    late, early = LABELS >= 4, LABELS < 4
    early[0], late[0] = False, False
    lda.partial_fit(X[early], LABELS[early])
    lda.merge(EigenspaceLDA().fit(X[late][:20], LABELS[late][:20]))
    lda.partial_fit(X[late][20:], LABELS[late][20:])
    assert_is_lda_of(lda, X, parts(LABELS), edits=5)
    assert_same_answers(lda, X, LABELS, X)
    # A class goes wholly, others in part.
    gone = (LABELS == 2) | (np.arange(len(X)) % 4 == 0)
    lda.forget(X[gone], LABELS[gone])
    assert lda.classes_.tolist() == [0, 1, 3, 4, 5]
    assert_is_lda_of(lda, X[~gone], parts(LABELS[~gone]), held=X, edits=6)
    assert_same_answers(lda, X[~gone], LABELS[~gone], X)


def test_the_formula_of_the_paper_for_merging_and_splitting_between_scatters():
    """S_B,3 = S_B,1 + S_B,2 + M_1 M_2/M_3 d d' - sum_j n_1j n_2j/n_3j (m_1j - m_2j)(...)'."""
    one, two = np.split(np.arange(len(X)), [40])
    merged = EigenspaceLDA().fit(X[one], LABELS[one])
    other = EigenspaceLDA().fit(X[two], LABELS[two])
    d = merged.xbar_ - other.xbar_
    S = len(one) * merged.between_.covariance() + len(two) * other.between_.covariance()
    S += len(one) * len(two) / len(X) * np.outer(d, d)
    for c in np.intersect1d(merged.classes_, other.classes_):
        n1, n2 = (LABELS[one] == c).sum(), (LABELS[two] == c).sum()
        m = merged.means_[merged.classes_ == c][0] - other.means_[other.classes_ == c][0]
        S -= n1 * n2 / (n1 + n2) * np.outer(m, m)
    merged.merge(other)
    error = scatter_error(X, edits=4)
    assert abs(len(X) * merged.between_.covariance() - S).max() <= error
    assert_is_lda_of(merged.forget(X[two], LABELS[two]), X[one], parts(LABELS[one]), X, 4)


def test_soft_labels_are_parts_of_rows():
    Y = rng.dirichlet(np.full(4, 0.3), size=len(X))
    names = ["a", "b", "c", "d"]
    lda = EigenspaceLDA().fit(X[:30], Y[:30], classes=names)
    lda.partial_fit(X[30:50], Y[30:50]).partial_fit(X[50:], Y[50:, ::-1], classes=names[::-1])
    assert_is_lda_of(lda, X, Y, edits=3)
    assert_is_lda_of(lda.forget(X[:20], Y[:20]), X[20:], Y[20:], held=X, edits=4)
    # Hard labels are soft ones of zero and one.
    hard = EigenspaceLDA().fit(X, LABELS)
    soft = EigenspaceLDA().fit(X, parts(LABELS), classes=np.arange(6))
    assert_rounded(hard.predict_proba(X), soft.predict_proba(X), 1000)


def test_absorbing_unlabelled_rows_is_expectation_maximisation():
    digits, labels = load_digits(return_X_y=True)
    known, unknown = slice(0, 60), slice(60, 700)
    lda = EigenspaceLDA(rank=20).fit(digits[known], labels[known])
    before = lda.score(digits[700:], labels[700:])
    Y = lda.predict_proba(digits[unknown])
    once = deepcopy(lda)
    np.testing.assert_array_equal(once.absorb(digits[unknown], rounds=1), Y)
    same = deepcopy(lda).partial_fit(digits[unknown], Y)
    assert_rounded(once.decision_function(digits), same.decision_function(digits), 10**6)
    # Each round takes the probabilities of the one before.
    twice = deepcopy(lda)
    second = twice.absorb(digits[unknown], rounds=2)
    assert_rounded(second, once.predict_proba(digits[unknown]), 10**6)
    found = lda.absorb(digits[unknown])
    assert_rounded(found.sum(axis=1), np.ones(640))
    assert lda.score(digits[700:], labels[700:]) > before
    assert lda.total_.n_samples == 700
    # What was returned takes them out again.
    assert lda.forget(digits[unknown], found).total_.n_samples == 60


def test_fewer_rows_than_features_find_the_directions_without_spread():
    wide = rng.normal(size=(4, 50))[LABELS % 4] + 0.5 * rng.normal(size=(len(LABELS), 50))
    rows, y = wide[:30], LABELS[:30] % 4
    lda = EigenspaceLDA().fit(rows, y)
    assert lda.predict(rows).tolist() == y.tolist()
    Z = lda.transform(rows)
    for c in range(4):
        assert_rounded(Z[y == c] - Z[y == c].mean(axis=0), 0 * Z[y == c], 1e4, abs(Z).max())
    assert (lda.predict(wide[30:]) == LABELS[30:] % 4).mean() > 0.8


def test_a_rank_keeps_that_many_directions_of_all_rows():
    lda = EigenspaceLDA(rank=5).fit(X[:40], LABELS[:40]).partial_fit(X[40:], LABELS[40:])
    assert lda.total_.components.shape == (5, 8)
    assert lda.total_.discarded > 0
    # The same discriminants as of the rows projected on these five directions.
    few = EigenspaceLDA().fit(lda.total_.project(X), LABELS)
    assert_rounded(lda.means_, EigenspaceLDA().fit(X, LABELS).means_, 100)
    assert (few.predict(lda.total_.project(X)) == lda.predict(X)).mean() > 0.9


def test_what_truncation_drops_makes_no_direction_of_no_spread():
    """The class means are exact while the total scatter is not: they could spread more than it."""
    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(20), 6)
    rows = rng.normal(size=(20, 200))[y] + 0.7 * rng.normal(size=(120, 200))
    grown = EigenspaceLDA(rank=30)
    for c in range(0, 20, 2):
        grown.partial_fit(rows[(y == c) | (y == c + 1)], y[(y == c) | (y == c + 1)])
    total = grown.total_
    S_T = (total.components.T * (total.variances + total.noise)) @ total.components
    U, separations = grown.model_.directions
    np.testing.assert_array_less(separations, 1)
    assert_rounded(120 * U.T @ S_T @ U, np.eye(len(separations)), 1000)
    # The spread within classes is at least what was dropped along the discriminant.
    floor = total.noise * (grown.scalings_**2).sum(axis=0)
    assert (floor <= 1 + 1000 * np.finfo(float).eps).all()
    new = rows + 0.3 * rng.normal(size=rows.shape)
    scratch = EigenspaceLDA(rank=30).fit(rows, y)
    error = np.sqrt(0.25 / len(y))
    assert grown.score(new, y) > scratch.score(new, y) - 2 * error


def test_priors_and_numbers_of_components():
    lda = EigenspaceLDA(2, priors="equal").fit(X, LABELS)
    assert lda.transform(X).shape == (len(X), 2)
    assert lda.get_feature_names_out().tolist() == ["eigenspacelda0", "eigenspacelda1"]
    assert lda.priors_.tolist() == rounded([1 / 6] * 6)
    # With equal priors the prediction is the nearest class mean along all discriminants.
    everything = EigenspaceLDA(priors="equal").fit(X, LABELS)
    M = (everything.means_ - everything.xbar_) @ everything.scalings_
    distances = ((everything.transform(X)[:, None] - M[None]) ** 2).sum(axis=-1)
    assert lda.predict(X).tolist() == distances.argmin(axis=1).tolist()
    assert_rounded(lda.predict_proba(X), softmax(-distances / 2, axis=1), 10**4)
    assert_rounded(lda.predict_log_proba(X), np.log(lda.predict_proba(X)), 10**4)


def test_two_classes_and_one():
    two = LABELS < 2
    lda = EigenspaceLDA().fit(X[two], LABELS[two])
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X[two], LABELS[two])
    assert_rounded(lda.decision_function(X), theirs.decision_function(X), 10**5)
    one = EigenspaceLDA().fit(X[LABELS == 3], LABELS[LABELS == 3])
    assert one.predict(X).tolist() == [3] * len(X)
    assert one.transform(X).shape == (len(X), 0)
    assert one.predict_proba(X).tolist() == [[1.0]] * len(X)


def test_soft_labels_of_one_class_are_taken_back_too():
    lda = EigenspaceLDA().fit(X[:20], ["a"] * 20)
    found = lda.absorb(X[20:24])
    assert found.tolist() == [[1.0]] * 4
    assert_is_lda_of(lda.forget(X[20:24], found), X[:20], np.ones((20, 1)), held=X[:24], edits=3)


@pytest.mark.parametrize("seed", range(6))
def test_classes_whose_parts_are_all_taken_back_are_gone(seed):
    """Sums of many parts are rounded by more than the few that are left at the end."""
    rng = np.random.default_rng(seed)
    rows, Y, names = rng.normal(size=(20000, 3)) + 5, rng.dirichlet(np.ones(3), 20000), list("abc")
    Y[:10] = [[1, 0, 0]] * 5 + [[0, 1, 0]] * 5
    lda = EigenspaceLDA().fit(rows, Y, classes=names)
    for i in range(11, 20000, 1000):
        lda.forget(rows[i : i + 1000], Y[i : i + 1000], classes=names)
    lda.forget(rows[10:11], Y[10:11], classes=names)
    assert lda.classes_.tolist() == ["a", "b"]


def test_a_prediction_is_of_one_model_while_classes_come_and_go():
    lda = EigenspaceLDA().fit(X, LABELS)
    whole, fewer = lda.model_, EigenspaceLDA().fit(X[LABELS > 2], LABELS[LABELS > 2]).model_
    allowed = {tuple(lda.predict(X))}
    lda.model_ = fewer
    allowed.add(tuple(lda.predict(X)))

    def edit():
        for _ in range(300):
            lda.model_ = whole
            lda.model_ = fewer

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as pool:
            editing = pool.submit(edit)
            seen = {tuple(lda.predict(X)) for _ in range(300)}
            editing.result()
    finally:
        sys.setswitchinterval(before)
    assert seen <= allowed


def test_copies_live_their_own_lives():
    lda = EigenspaceLDA().fit(X[:40], LABELS[:40])
    for copy in deepcopy(lda), pickle.loads(pickle.dumps(lda)):
        copy.partial_fit(X[40:], LABELS[40:])
        assert_is_lda_of(copy, X, parts(LABELS), edits=2)
    assert_is_lda_of(lda, X[:40], parts(LABELS)[:40])


FITTED = EigenspaceLDA().fit(X, LABELS)
WIDE = rng.normal(size=(20, 40))
MISTAKES = {
    "more of a class than there is": (
        lambda lda: lda.forget(np.repeat(X[LABELS == 3], 2, axis=0), [3] * 14),
        ValueError,
        "More rows of class 3 are to be removed than there are: 14 of 7. "
        "Remove only rows that were learnt, with their labels.",
    ),
    "a class that was never learnt": (
        lambda lda: lda.forget(X[:2], [7, 7]),
        ValueError,
        "More rows of class 7 are to be removed than there are: 2 of 0. "
        "Remove only rows that were learnt, with their labels.",
    ),
    "labels in lists of different lengths": (
        lambda lda: lda.partial_fit(X[:2], [[0], [1, 2]]),
        ValueError,
        "y has lists of different lengths: setting an array element with a sequence. ",
    ),
    "classes in lists of different lengths": (
        lambda lda: lda.partial_fit(X[:2], [0, 1], [[0], [1, 2]]),
        ValueError,
        "classes has lists of different lengths: setting an array element with a sequence. ",
    ),
    "soft labels beyond any range": (
        lambda lda: lda.partial_fit(X[:2], np.full((2, 5), 1e308), [0, 1, 2, 3, 4]),
        ValueError,
        "Soft labels must not be negative, and each row must sum to one.",
    ),
    "rows that were never learnt": (
        lambda lda: lda.forget(X[LABELS == 2][:1] + 99, [2]),
        ValueError,
        "These rows are not all in the model: removing them would leave a variance below zero",
    ),
    "rows of another class": (
        lambda lda: lda.fit(WIDE, [0, 1] * 10).forget(WIDE[:9], [1, 0] * 4 + [1]),
        ValueError,
        "Not all of these rows had these labels: without them the classes would spread more than "
        "the rows do. Remove only rows that were learnt, with their labels.",
    ),
    "everything": (
        lambda lda: lda.forget(X, LABELS),
        ValueError,
        "74 rows are to be removed from 74. At least one must remain.",
    ),
    "labels of another kind": (
        lambda lda: lda.partial_fit(X[:1], ["a"]),
        ValueError,
        "The new labels are of type str, but those held are of type int, such as 0. "
        "Convert them first.",
    ),
    "merging labels of another kind": (
        lambda lda: lda.merge(EigenspaceLDA().fit(X[:2], ["a", "b"])),
        ValueError,
        "The new labels are of type str, but those held are of type int, such as 0. "
        "Convert them first.",
    ),
    "merging with other features": (
        lambda lda: lda.merge(EigenspaceLDA().fit(X[:, :3], LABELS)),
        ValueError,
        "The two models differ in their features: 8 here, 3 there. "
        "Models merge only if these are the same, in the same order.",
    ),
    "merging with another kind": (
        lambda lda: lda.merge(PCA()),
        ValueError,
        "EigenspaceLDA cannot merge with PCA.",
    ),
    "soft labels without names": (
        lambda lda: EigenspaceLDA().fit(X, parts(LABELS)),
        ValueError,
        "y has 6 columns of soft labels, for the classes []. "
        "Give one column for each class, and name each class once: classes=[...].",
    ),
    "soft labels of too few classes": (
        lambda lda: lda.partial_fit(X[:1], [[0.5, 0.5]]),
        ValueError,
        "y has 2 columns of soft labels, for the classes [0, 1, 2, 3, 4, 5]. "
        "Give one column for each class, and name each class once: classes=[...].",
    ),
    "soft labels that are no parts": (
        lambda lda: lda.partial_fit(X[:1], [[0.5, 0.6, 0, 0, 0, 0]]),
        ValueError,
        "Soft labels must not be negative, and each row must sum to one.",
    ),
    "labels that were not declared": (
        lambda lda: lda.partial_fit(X[:1], [9], classes=[0, 1]),
        ValueError,
        "y has the label 9, which is not in classes. Leave classes out: new classes are learnt as "
        "they come.",
    ),
    "no labels": (
        lambda lda: lda.partial_fit(X[:1], None),
        ValueError,
        "Expected array-like (array or non-string sequence), got None as y.",
    ),
    "NaN": (
        lambda lda: lda.absorb(np.full((1, 8), np.nan)),
        ValueError,
        "Input X contains NaN or infinity: 8 value(s), the first at row 0, column 0 (nan). "
        "Remove these examples or fill in the values.",
    ),
    "no rounds": (
        lambda lda: lda.absorb(X, rounds=0),
        ValueError,
        "rounds=0. Give a whole number of at least 1.",
    ),
    "no discriminants": (
        lambda lda: lda.set_params(n_components=0).fit(X, LABELS),
        ValueError,
        "n_components=0. Give a whole number of at least 1.",
    ),
    "unknown priors": (
        lambda lda: lda.set_params(priors="flat").partial_fit(X, LABELS),
        ValueError,
        "priors='flat' is not known. Choose one of 'frequency', 'equal'.",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_raises_and_changes_nothing(mistake):
    act, kind, words = MISTAKES[mistake]
    lda = deepcopy(FITTED)
    before = lda.model_
    with pytest.raises(KnowmoreError) as error:
        act(lda)
    assert isinstance(error.value, kind)
    assert str(error.value).startswith(words)
    assert lda.model_ is before or mistake == "rows of another class"


@pytest.mark.parametrize("verb", ["predict", "transform", "predict_proba", "absorb"])
def test_an_unfitted_one_says_so(verb):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        getattr(EigenspaceLDA(), verb)(X)
    assert not hasattr(EigenspaceLDA(), "classes_")
