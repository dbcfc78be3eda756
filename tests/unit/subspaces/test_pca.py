"""EigenspacePCA is scikit-learn's PCA of the rows it holds now."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tolerance import assert_models, assert_rounded

from knowmore import EigenspacePCA, KnowmoreError, Truncation

rng = np.random.default_rng(0)
X = rng.normal(size=(80, 6)) @ np.diag([6, 5, 4, 3, 2, 1]) + 2

ATTRIBUTES = [
    "components_",
    "mean_",
    "explained_variance_",
    "explained_variance_ratio_",
    "singular_values_",
    "noise_variance_",
    "n_components_",
    "n_samples_",
    "n_features_in_",
]


@parametrize_with_checks(
    [EigenspacePCA(), EigenspacePCA(2), EigenspacePCA(0.9, whiten=True)],
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def assert_same(ours, theirs, rows):
    """Vectors belong to eigenvalues a good way apart here, so they are known to rounding too."""
    for name in ATTRIBUTES:
        assert_rounded(getattr(ours, name), getattr(theirs, name), 5000)
    Z = theirs.transform(rows)
    assert_rounded(ours.transform(rows), Z, 5000)
    assert_rounded(ours.inverse_transform(Z), theirs.inverse_transform(Z), 5000)
    # scikit-learn's covariance squares the variances when whitening; the model is the same.
    plain = clone(theirs).set_params(whiten=False).fit(rows) if theirs.whiten else theirs
    assert_rounded(ours.score_samples(rows), plain.score_samples(rows), 5000)
    assert_rounded(ours.score(rows), plain.score(rows), 5000)
    for method in "get_covariance", "get_precision":
        assert_rounded(getattr(ours, method)(), getattr(plain, method)(), 5000)


@pytest.mark.parametrize("n_components", [None, 3, 0.8])
@pytest.mark.parametrize("whiten", [False, True])
def test_a_fit_is_scikit_learn_s(n_components, whiten):
    settings = {"n_components": n_components, "whiten": whiten}
    assert_same(EigenspacePCA(**settings).fit(X), PCA(**settings).fit(X), X)


def test_any_history_is_scikit_learn_s_fit_of_the_rows_left():
    pca = EigenspacePCA().fit(X[:1])
    for size, at in ((1, 1), (2, 2), (30, 4), (20, 34)):
        pca.partial_fit(X[at : at + size])
    pca.forget(X[:10]).merge(EigenspacePCA().fit(X[54:])).forget(X[60:61])
    rows = np.delete(X[10:], 50, axis=0)
    assert_models(pca.eigenspace_, rows, held=X, edits=8)
    assert_same(pca, PCA().fit(rows), X)


@pytest.mark.parametrize("n_components", [2, 0.9, Truncation(tolerance=0.1)])
def test_fewer_components_say_what_they_dropped(n_components):
    pca = EigenspacePCA(n_components).fit(X[:5]).partial_fit(X[5:])
    whole = EigenspacePCA().fit(X).eigenspace_.total_variance
    assert pca.n_components_ < 6
    held = pca.eigenspace_.variances.sum()
    assert_rounded(held + pca.eigenspace_.discarded, whole, 1000)
    assert_rounded(pca.explained_variance_ratio_.sum(), held / whole, 1000)


def test_fewer_rows_than_components_are_fine():
    pca = EigenspacePCA(4)
    for i in range(6):
        pca.partial_fit(X[i : i + 1])
        assert pca.n_components_ == min(i, 4)
        assert pca.transform(X).shape == (80, min(i, 4))
        assert pca.get_feature_names_out().shape == (min(i, 4),)


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_rows_are_as_good_as_dense_ones(kind):
    counts = rng.poisson(0.3, size=(50, 8)).astype(float)
    pca = EigenspacePCA().fit(kind(counts[:30])).partial_fit(kind(counts[30:]))
    assert_models(pca.eigenspace_, counts, edits=2)
    dense = EigenspacePCA().fit(counts)
    assert_rounded(abs(pca.transform(kind(counts))), abs(dense.transform(counts)), 5000)
    assert_rounded(pca.score_samples(kind(counts)), dense.score_samples(counts), 5000)
    assert_models(pca.forget(kind(counts[:9])).eigenspace_, counts[9:], held=counts, edits=3)


def test_more_features_than_rows():
    wide = rng.normal(size=(10, 40))
    ours, theirs = EigenspacePCA(4).fit(wide), PCA(4).fit(wide)
    assert_rounded(ours.noise_variance_, theirs.noise_variance_, 1000)
    assert_rounded(ours.score_samples(wide), theirs.score_samples(wide), 10**5)
    everything = EigenspacePCA().fit(wide)
    assert everything.n_components_ == 9
    assert everything.noise_variance_ == 0
    assert everything.score_samples(wide).tolist() == [-np.inf] * 10
    Z = everything.transform(wide)
    assert_rounded(everything.inverse_transform(Z), wide, 1000)


def test_it_works_in_a_pipeline_with_names():
    pipeline = make_pipeline(StandardScaler(), EigenspacePCA(2)).set_output(transform="pandas")
    table = pipeline.fit_transform(X)
    assert table.columns.tolist() == ["eigenspacepca0", "eigenspacepca1"]


def test_copies_live_their_own_lives():
    pca = EigenspacePCA().fit(X[:40])
    for copy in deepcopy(pca), pickle.loads(pickle.dumps(pca)):
        copy.partial_fit(X[40:])
        assert_models(copy.eigenspace_, X, edits=2)
    assert_models(pca.eigenspace_, X[:40])


@pytest.mark.slow
def test_no_edit_of_another_thread_is_lost_not_even_the_first():
    for _ in range(20):
        pca = EigenspacePCA()
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda i, pca=pca: pca.partial_fit(X[i : i + 1]), range(80)))
        assert_models(pca.eigenspace_, X, edits=80)


def test_a_question_sees_one_model_while_others_edit():
    pca, row = EigenspacePCA(2).fit(X), X[:1]
    answers = {tuple(pca.transform(row)[0])}
    pca.forget(X[:40])
    answers.add(tuple(pca.transform(row)[0]))
    grown = pca.eigenspace_

    def edit():
        for _ in range(300):
            pca.eigenspace_ = whole
            pca.eigenspace_ = grown

    whole = EigenspacePCA(2).fit(X).eigenspace_
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as pool:
            editing = pool.submit(edit)
            seen = {tuple(pca.transform(row)[0]) for _ in range(300)}
            editing.result()
    finally:
        sys.setswitchinterval(before)
    assert seen <= answers


def with_nan(table):
    return sparse.csr_array(table + sparse.coo_array(([np.nan], ([7], [3])), table.shape))


FITTED = EigenspacePCA(3).fit(X)
MISTAKES = {
    "never learnt": (
        lambda pca: pca.forget(X[:1] + 99),
        ValueError,
        "These rows are not all in the model: removing them would leave a variance below zero",
    ),
    "all forgotten": (
        lambda pca: pca.forget(X),
        ValueError,
        "80 rows are to be removed from 80. At least one must remain.",
    ),
    "NaN": (
        lambda pca: pca.partial_fit([[np.nan] * 6]),
        ValueError,
        "Input X contains NaN or infinity: 6 value(s), the first at row 0, column 0 (nan). "
        "Remove these examples or fill in the values.",
    ),
    "NaN in a sparse matrix": (
        lambda pca: pca.partial_fit(with_nan(sparse.csr_array(np.eye(10, 6)))),
        ValueError,
        "Input X contains NaN or infinity: 1 value(s), the first at row 7, column 3 (nan). "
        "Remove these examples or fill in the values.",
    ),
    "other features": (
        lambda pca: pca.partial_fit(X[:, :4]),
        ValueError,
        "X has 4 features, but EigenspacePCA is expecting 6 features as input.",
    ),
    "merging with other features": (
        lambda pca: pca.merge(EigenspacePCA().fit(X[:, :4])),
        ValueError,
        "The two models differ in their features: 6 here, 4 there. "
        "Models merge only if these are the same, in the same order.",
    ),
    "merging with another kind": (
        lambda pca: pca.merge(PCA().fit(X)),
        ValueError,
        "EigenspacePCA cannot merge with PCA.",
    ),
    "merging with one that knows nothing": (
        lambda pca: pca.merge(EigenspacePCA()),
        NotFittedError,
        "This EigenspacePCA is not fitted yet. Call fit first.",
    ),
    "coordinates of another space": (
        lambda pca: pca.inverse_transform(X),
        ValueError,
        "X has shape (80, 6), but (m, 3) is needed, as transform returns it.",
    ),
    "coordinates that are no numbers": (
        lambda pca: pca.inverse_transform([["a"] * 3]),
        ValueError,
        "X has values that are not numbers: could not convert string to float: 'a'. Give numbers.",
    ),
    "a negative number of components": (
        lambda pca: pca.set_params(n_components=-1).fit(X),
        ValueError,
        "n_components=-1. Give a whole number of at least 0.",
    ),
    "a fraction beyond one": (
        lambda pca: pca.set_params(n_components=1.5).fit(X),
        ValueError,
        "n_components=1.5 must be a number in (0, 1). Or give a whole number, a Truncation, or "
        "None for all.",
    ),
    "a word for a number": (
        lambda pca: pca.set_params(n_components="mle").partial_fit(X),
        ValueError,
        "n_components='mle' must be a number in (0, 1). Or give a whole number, a Truncation, or "
        "None for all.",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_raises_and_changes_nothing(mistake):
    act, kind, words = MISTAKES[mistake]
    pca = deepcopy(FITTED)
    before = pca.eigenspace_
    with pytest.raises(KnowmoreError) as error:
        act(pca)
    assert isinstance(error.value, kind)
    assert str(error.value).startswith(words)
    assert pca.eigenspace_ is before


@pytest.mark.parametrize("verb", ["forget", "transform", "inverse_transform", "score_samples"])
def test_an_unfitted_one_says_so(verb):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        getattr(EigenspacePCA(), verb)(X)
    assert not hasattr(EigenspacePCA(), "components_")
