"""EigenspaceLDA with shrinkage is scikit-learn's, of the rows it holds now."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import oracle
import pytest
from scipy.special import softmax
from sklearn.covariance import LedoitWolf, ledoit_wolf_shrinkage
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils.estimator_checks import parametrize_with_checks
from tolerance import assert_rounded

from knowmore import EigenspaceLDA, KnowmoreError
from knowmore.distributed import fit as distributed_fit
from knowmore.errors import KnowmoreWarning, MissingData
from papers.data import orl_faces

rng = np.random.default_rng(0)
LABELS = rng.permutation(np.repeat(np.arange(5), [12, 9, 20, 7, 15]))
N = len(LABELS)
# More rows than features, and fewer.
TALL = rng.normal(size=(5, 8))[LABELS] + rng.normal(size=(N, 8)) * np.linspace(1, 2, 8)
WIDE = rng.normal(size=(5, 90))[LABELS] + rng.normal(size=(N, 90)) * np.linspace(1, 2, 90)


@parametrize_with_checks([EigenspaceLDA(shrinkage=0.2), EigenspaceLDA(shrinkage="ledoit-wolf")])
def test_scikit_learn_check(estimator, check):
    check(estimator)


def mean_coefficient(X, y):
    """scikit-learn's coefficient of each class, weighted by the scatter of the class."""
    names = np.unique(y)
    each = [ledoit_wolf_shrinkage(X[y == name]) for name in names]
    traces = [((X[y == name] - X[y == name].mean(axis=0)) ** 2).sum() for name in names]
    return np.average(each, weights=traces)


def condition(X, y, alpha):
    """The condition of the shrunk covariance."""
    _, _, E = oracle.within(X, y)
    values = np.linalg.svd(E, compute_uv=False) ** 2
    floor = alpha * values.sum() / X.shape[1]
    return ((1 - alpha) * values[0] + floor) / floor


def assert_is_shrunk_lda_of(lda, X, y, alpha, queries, roundings=1000):
    coefficients, intercepts = oracle.shrunk_lda(X, y, alpha)
    scores = queries @ coefficients.T + intercepts
    roundings = roundings * condition(X, y, alpha)
    assert_rounded(lda.shrinkage_, alpha, 10**4, 1.0)
    found = lda.decision_function(queries)
    assert_rounded(found - found[:, :1], scores - scores[:, :1], roundings)
    assert_rounded(
        lda.predict_proba(queries), softmax(scores, axis=1), roundings * abs(scores).max()
    )
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=float(alpha)).fit(X, y)
    assert lda.predict(queries).tolist() == theirs.predict(queries).tolist()
    # Along the discriminants the classes have the covariance I.
    _, _, E = oracle.within(X, y)
    S = (1 - alpha) * E.T @ E / len(X) + alpha * (E * E).sum() / E.size * np.eye(X.shape[1])
    A = lda.scalings_
    assert_rounded(A.T @ S @ A, np.eye(A.shape[1]), roundings)


@pytest.mark.parametrize("X", [TALL, WIDE], ids=["more rows", "fewer rows"])
@pytest.mark.parametrize("shrinkage", [1e-3, 0.3, 1.0, "ledoit-wolf"])
def test_a_fit_and_any_history_are_scikit_learn_s(X, shrinkage):
    alpha = mean_coefficient(X, LABELS) if isinstance(shrinkage, str) else shrinkage
    queries = X + rng.normal(size=X.shape)
    new = lambda: EigenspaceLDA(shrinkage=shrinkage)  # noqa: E731
    assert_is_shrunk_lda_of(new().fit(X, LABELS), X, LABELS, alpha, queries)
    grown = new().fit(X[:1], LABELS[:1])
    for i in range(1, N, 9):
        grown.partial_fit(X[i : i + 9], LABELS[i : i + 9])
    assert_is_shrunk_lda_of(grown, X, LABELS, alpha, queries, 10**4)
    shards = np.array_split(rng.permutation(N), 4)
    sharded = distributed_fit(new(), [X[i] for i in shards], [LABELS[i] for i in shards])
    assert_is_shrunk_lda_of(sharded, X, LABELS, alpha, queries, 10**4)
    gone = (LABELS == 2) | (np.arange(N) % 4 == 0)
    grown.forget(X[gone], LABELS[gone])
    left, y = X[~gone], LABELS[~gone]
    alpha = mean_coefficient(left, y) if isinstance(shrinkage, str) else shrinkage
    assert_is_shrunk_lda_of(grown, left, y, alpha, queries, 10**5)


@pytest.mark.parametrize("X", [TALL, WIDE], ids=["more rows", "fewer rows"])
def test_soft_labels_are_parts_of_rows_for_ledoit_and_wolf_too(X):
    names = [0, 1, 2]
    parts = rng.dirichlet(np.full(3, 0.3), size=N)
    whole = EigenspaceLDA(shrinkage="ledoit-wolf").fit(X, parts, classes=names)
    grown = EigenspaceLDA(shrinkage="ledoit-wolf").fit(X[:30], parts[:30], classes=names)
    grown.partial_fit(X[30:], parts[30:])
    assert_rounded(grown.shrinkage_, whole.shrinkage_, 10**4, 1.0)
    few = EigenspaceLDA(shrinkage="ledoit-wolf").fit(X[30:], parts[30:], classes=names)
    grown.forget(X[:30], parts[:30])
    assert_rounded(grown.shrinkage_, few.shrinkage_, 10**5, 1.0)
    # Hard labels are soft ones of zero and one.
    hard = EigenspaceLDA(shrinkage="ledoit-wolf").fit(X, LABELS)
    soft = EigenspaceLDA(shrinkage="ledoit-wolf").fit(X, np.eye(5)[LABELS], classes=np.arange(5))
    assert_rounded(soft.shrinkage_, hard.shrinkage_, 100, 1.0)
    # Rows without labels come and go as parts of classes.
    before = hard.shrinkage_
    found = hard.absorb(X[:10] + 0.1)
    assert hard.shrinkage_ != before
    assert_rounded(hard.forget(X[:10] + 0.1, found).shrinkage_, before, 10**5, 1.0)


def test_shrinkage_finds_as_much_as_scikit_learn_s_on_faces():
    try:
        faces = orl_faces()
    except MissingData as error:
        pytest.skip(str(error))
    y = faces.labels
    X = faces.X.reshape(-1, 28, 4, 23, 4).mean(axis=(2, 4)).reshape(len(y), -1)
    learnt = np.arange(len(y)) % 10 < 4
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto").fit(X[learnt], y[learnt])
    lda = EigenspaceLDA(shrinkage="ledoit-wolf").fit(X[learnt], y[learnt])
    error = np.sqrt(0.25 / (~learnt).sum())
    assert lda.score(X[~learnt], y[~learnt]) > theirs.score(X[~learnt], y[~learnt]) - error


def test_few_digits_are_told_apart_as_by_shrinking_every_class_by_itself():
    X, y = load_digits(return_X_y=True)
    few = np.concatenate([np.flatnonzero(y == c)[:10] for c in range(10)])
    others = np.setdiff1d(np.arange(len(y)), few)
    lda = EigenspaceLDA(shrinkage="ledoit-wolf").fit(X[few], y[few])
    each = LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=LedoitWolf())
    theirs = each.fit(X[few], y[few]).score(X[others], y[others])
    error = np.sqrt(0.25 / len(others))
    assert lda.score(X[others], y[others]) > theirs - error
    assert lda.score(X[others], y[others]) > EigenspaceLDA().fit(X[few], y[few]).score(
        X[others], y[others]
    )


def test_with_a_rank_the_trace_that_is_shrunk_is_that_of_all_directions():
    full = EigenspaceLDA(shrinkage="ledoit-wolf").fit(WIDE, LABELS)
    few = EigenspaceLDA(rank=20, shrinkage="ledoit-wolf").fit(WIDE, LABELS)
    assert_rounded(few.shrinkage_, full.shrinkage_, 100, 1.0)
    assert few.total_.discarded > 0
    _, _, E = oracle.within(WIDE, LABELS)
    alpha, P = few.shrinkage_, few.total_.components
    # What was dropped is spread evenly before anything is shrunk.
    noise = few.total_.noise
    S = (1 - alpha) * (E.T @ E / N + noise * np.eye(90)) + alpha * (E * E).sum() / E.size * np.eye(
        90
    )
    A = few.scalings_
    assert_rounded(P.T @ (P @ A), A, 1000)
    assert_rounded(A.T @ S @ A, np.eye(4), 10**5)


def test_no_shrinkage_is_a_shrinkage_of_nothing():
    none, nothing = EigenspaceLDA().fit(TALL, LABELS), EigenspaceLDA(shrinkage=0).fit(TALL, LABELS)
    np.testing.assert_array_equal(none.scalings_, nothing.scalings_)
    assert none.shrinkage_ == nothing.shrinkage_ == 0


def test_another_shrinkage_takes_effect_with_the_next_rows():
    lda = EigenspaceLDA(shrinkage="ledoit-wolf").fit(WIDE[:40], LABELS[:40])
    lda.set_params(shrinkage=0.3).partial_fit(WIDE[40:], LABELS[40:])
    assert_is_shrunk_lda_of(lda, WIDE, LABELS, 0.3, WIDE)
    # The sums are still kept.
    lda.set_params(shrinkage="ledoit-wolf").merge(
        EigenspaceLDA(shrinkage="ledoit-wolf").fit(WIDE, LABELS)
    )
    twice, y = np.vstack([WIDE, WIDE]), np.tile(LABELS, 2)
    assert_is_shrunk_lda_of(lda, twice, y, mean_coefficient(twice, y), WIDE)


def test_an_outlier_that_costs_digits_gives_a_warning():
    far = np.full((1, 8), 1e6)
    lda = EigenspaceLDA(shrinkage="ledoit-wolf").fit(TALL, LABELS).partial_fit(far, [2])
    before = lda.model_
    with pytest.raises(KnowmoreWarning, match="The shrinkage of"):
        # Here warnings are errors, and an error changes nothing.
        lda.forget(far, [2])
    assert lda.model_ is before
    words = r"The shrinkage of .* may be off by .*\. Fit again"
    with pytest.warns(KnowmoreWarning, match=words) as warned:
        lda.forget(far, [2])
    assert warned[0].filename == __file__
    assert lda.total_.n_samples == N
    assert 0 <= lda.shrinkage_ <= 1


MISTAKES = {
    "another word": (
        lambda lda: lda.set_params(shrinkage="auto").fit(TALL, LABELS),
        "shrinkage='auto' must be a number in [0, 1]. 'ledoit-wolf' estimates it; None is 0.",
    ),
    "more than all": (
        lambda lda: lda.set_params(shrinkage=1.5).partial_fit(TALL, LABELS),
        "shrinkage=1.5 must be a number in [0, 1]",
    ),
    "no number": (
        lambda lda: lda.set_params(shrinkage=float("nan")).fit(TALL, LABELS),
        "shrinkage=nan must be a number in [0, 1]",
    ),
    "a truth value": (
        lambda lda: lda.set_params(shrinkage=True).forget(TALL[:1], LABELS[:1]),
        "shrinkage=True must be a number in [0, 1]",
    ),
    "sums that were not kept": (
        lambda lda: lda.set_params(shrinkage="ledoit-wolf").partial_fit(TALL, LABELS),
        "shrinkage='ledoit-wolf' needs sums that were not kept when some of the rows were learnt "
        "with another shrinkage. Fit all of them with shrinkage='ledoit-wolf'.",
    ),
    "merging one without the sums": (
        lambda lda: EigenspaceLDA(shrinkage="ledoit-wolf").fit(TALL, LABELS).merge(lda),
        "shrinkage='ledoit-wolf' needs sums that were not kept when some of the rows were learnt",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_raises_and_changes_nothing(mistake):
    act, words = MISTAKES[mistake]
    lda = EigenspaceLDA().fit(TALL, LABELS)
    before, copy = lda.model_, deepcopy(lda)
    with pytest.raises(KnowmoreError) as error:
        act(lda)
    assert str(error.value).startswith(words)
    assert lda.model_ is before
    assert_rounded(lda.scalings_, copy.scalings_, 0)
