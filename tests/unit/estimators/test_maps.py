"""Landmarks and unary codes: dot products of features are kernels, and maps can be forgotten from.

The law of `Landmarks`: without a landmark it is the map of the other rows, with one landmark less.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, DotProduct, Matern, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from tolerance import assert_rounded, assert_solves

from knowmore import GPClassifier, IntersectionMap, KnowmoreError, Landmarks, LinearGPClassifier
from knowmore.kernels import ChiSquared, HistogramIntersection, corner, cross, median_rbf

rng = np.random.default_rng(0)
X = rng.uniform(0.1, 1, size=(60, 4))
DIGITS, LABELS = load_digits(return_X_y=True)


@parametrize_with_checks(
    [
        Landmarks(),
        Landmarks(RBF(2.0), 3, seed=1),
        Landmarks(n_landmarks=None),
        IntersectionMap(),
        IntersectionMap(1),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


# -- landmarks: what the features are ------------------------------------------------------------


@pytest.mark.parametrize(
    "kernel",
    [
        RBF(0.3),
        Matern(0.5, nu=1.5),
        HistogramIntersection(),
        ChiSquared(5.0),
        lambda A, B: RBF(0.3)(A, B),
    ],
)
@pytest.mark.parametrize("n", [None, 60, 1000])
def test_with_all_rows_dot_products_are_the_kernel(kernel, n):
    landmarks = Landmarks(kernel, n).fit(X)
    F, K = landmarks.transform(X), corner(kernel, X)
    assert landmarks.n_components_ == 60
    assert_solves(F @ F.T, K, K, K, left=K)


@pytest.mark.parametrize("kernel", [RBF(0.3), HistogramIntersection(), RBF(0.3) + WhiteKernel(0.1)])
def test_with_few_they_are_the_approximation_of_nystroem(kernel):
    landmarks = Landmarks(kernel, 20).fit(X)
    F, Z = landmarks.transform(X), landmarks.landmarks_
    K, C = corner(kernel, Z), cross(kernel, Z, X)
    assert_solves(F @ F.T, C.T @ np.linalg.solve(K, C), K, C, left=C)
    assert F.shape == (60, 20)
    assert Z.shape == (20, 4)
    assert (X[landmarks.ids_] == Z).all()


def test_landmarks_that_are_combinations_of_others_add_no_feature():
    landmarks = Landmarks(DotProduct(0.0), 20).fit(X)
    assert landmarks.n_components_ == 4
    assert len(landmarks.ids_) == 20
    F = landmarks.transform(X)
    assert_rounded(F @ F.T, X @ X.T, 10_000)
    zeros = np.vstack([X, np.zeros((1, 4))])
    assert Landmarks(HistogramIntersection(), None).fit(zeros).n_components_ == 60


@pytest.mark.parametrize(
    "kernel", [None, RBF(3.0), Matern(2.0), DotProduct(), HistogramIntersection(), ChiSquared(0.1)]
)
@pytest.mark.parametrize("n", [5, 150])
def test_the_bits_of_a_row_do_not_depend_on_the_others(kernel, n):
    many = rng.uniform(size=(400, 30))
    # Far from the others, so that these are near to each other by comparison: for some rows more
    # pairs are computed directly.
    many[::37] *= 50 * rng.uniform(size=(11, 1))
    landmarks = Landmarks(kernel, n).fit(many)
    F = landmarks.transform(many)
    for rows in (rng.permutation(400), np.arange(0, 400, 7), np.arange(33), [5] * 40):
        assert (landmarks.transform(many[rows]) == F[rows]).all()
    for row in range(0, 400, 9):
        assert (landmarks.transform(many[[row]]) == F[[row]]).all()


def test_the_default_kernel_has_the_median_distance_of_the_landmarks():
    landmarks = Landmarks(n_landmarks=20).fit(X)
    assert landmarks.kernel_ == median_rbf(landmarks.landmarks_)


def test_labels_choose_the_kernel_also_in_a_pipeline():
    y = (X[:, 0] > 0.5).astype(int)
    pipe = make_pipeline(Landmarks(n_landmarks=40), LinearGPClassifier()).fit(X, y)
    landmarks = pipe[0]
    rows = [int((one == X).all(axis=1).argmax()) for one in landmarks.landmarks_]
    clf = GPClassifier(settings="living").fit(X[rows], y[rows], ids=landmarks.ids_)
    assert landmarks.kernel_ == clf.kernel_ != clone(landmarks).fit(X).kernel_


def test_a_kernel_that_is_changed_from_outside_changes_nothing():
    kernel = RBF(0.3)
    landmarks = Landmarks(kernel, 20).fit(X)
    before = landmarks.transform(X)
    kernel.length_scale = landmarks.kernel_.length_scale = 9.0
    assert (landmarks.transform(X) == before).all()


# -- landmarks: which rows -----------------------------------------------------------------------


def test_they_depend_on_the_set_of_rows_alone():
    names = np.array([f"row {i}" for i in range(60)])
    landmarks = Landmarks(n_landmarks=20).fit(X, ids=names)
    for order in (rng.permutation(60), np.r_[:60, :60], np.r_[5, 5, 5, 5, :60]):
        others = [f"{name} {i}" for i, name in enumerate(names[order])]
        again = Landmarks(n_landmarks=20).fit(X[order], ids=others)
        assert again.digest() == landmarks.digest()
        assert [one.rsplit(" ", 1)[0] for one in again.ids_] == landmarks.ids_.tolist()
    assert Landmarks(n_landmarks=20, seed=1).fit(X).digest() != landmarks.digest()


def test_the_type_of_the_table_does_not_matter():
    whole = DIGITS[:200]
    tables = [
        whole,
        whole.astype(np.uint8),
        whole.astype(np.float32),
        np.where(whole == 0, -0.0, whole),
        np.asfortranarray(whole),
        sparse.csr_array(whole),
        sparse.coo_array(whole),
        whole.tolist(),
    ]
    maps = [Landmarks(n_landmarks=30).fit(table) for table in tables]
    assert len({one.digest() for one in maps}) == 1
    want = maps[0].transform(whole)
    for one, table in zip(maps, tables, strict=True):
        assert (one.transform(table) == want).all()


def test_many_rows_are_read_in_blocks():
    many = rng.integers(0, 256, size=(5000, 6), dtype=np.uint8)
    few, own = Landmarks(n_landmarks=7).fit(many), Landmarks(n_landmarks=None)
    first = list(own._first(many).values())[:7]
    assert few.ids_.tolist() == first
    assert few.transform(many).shape == (5000, 7)


def test_ids_come_from_a_table():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=list("abcd"), index=[f"row {i}" for i in range(60)])
    landmarks = Landmarks(n_landmarks=20).fit(table)
    assert (table.loc[landmarks.ids_].to_numpy() == landmarks.landmarks_).all()


# -- landmarks: forgetting -----------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [None, RBF(0.5), DotProduct()])
@pytest.mark.parametrize("by", ["ids", "X"])
@pytest.mark.parametrize("k", [1, 3, 19])
def test_without_landmarks_it_is_the_map_of_the_rest(kernel, by, k):
    landmarks = Landmarks(kernel, 20).fit(X)
    used = landmarks.ids_[landmarks.map_.used]
    gone = np.r_[used, np.setdiff1d(landmarks.ids_, used)][:k]
    landmarks.forget(**({"ids": gone} if by == "ids" else {"X": X[gone]}))
    with pytest.raises(KnowmoreError) as refused:
        landmarks.transform(X)
    assert str(refused.value) == (
        "Landmarks were withdrawn, so the map is another one: a model that has learnt its features "
        "would give wrong answers. Call renew() and fit again what follows."
    )
    landmarks.renew()
    rest = np.setdiff1d(np.arange(60), gone)
    again = Landmarks(kernel, 20 - k).fit(X[rest], ids=rest)
    assert landmarks.digest() == again.digest()
    assert landmarks.ids_.tolist() == again.ids_.tolist()
    assert (landmarks.transform(X) == again.transform(X)).all()


def test_other_rows_left_nothing():
    landmarks = Landmarks(n_landmarks=20).fit(X)
    before = landmarks.digest()
    others = np.setdiff1d(np.arange(60), landmarks.ids_)
    assert landmarks.forget(X[others]).digest() == before
    assert Landmarks(n_landmarks=20).fit(np.delete(X, others[:9], axis=0)).digest() == before


def test_a_pickle_has_no_trace_of_what_was_withdrawn():
    names = [f"person {i}" for i in range(60)]
    landmarks = Landmarks(n_landmarks=20).fit(X, ids=names)
    gone, row = landmarks.ids_[3], landmarks.landmarks_[3].tobytes()
    assert gone.encode() in pickle.dumps(landmarks)
    assert row in pickle.dumps(landmarks)
    landmarks.forget(ids=gone)
    assert gone.encode() not in pickle.dumps(landmarks)
    assert row not in pickle.dumps(landmarks)
    assert pickle.loads(pickle.dumps(landmarks)).digest() == landmarks.digest()


def test_a_model_refuses_the_features_of_another_map():
    pandas = pytest.importorskip("pandas")
    plain = make_pipeline(Landmarks(n_landmarks=20), LinearGPClassifier()).fit(DIGITS, LABELS)
    plain[0].forget(ids=plain[0].ids_[:1])
    with pytest.raises(KnowmoreError, match="Landmarks were withdrawn"):
        plain.predict(DIGITS)
    plain[0].renew()
    with pytest.raises(KnowmoreError, match="X has 19 features, but LinearGPClassifier is expec"):
        plain.predict(DIGITS)
    named = make_pipeline(Landmarks(n_landmarks=20), LinearGPClassifier())
    named.set_output(transform="pandas").fit(pandas.DataFrame(DIGITS), LABELS)
    names = named[0].get_feature_names_out()
    assert names[7] == f"landmarks_{named[0].digest()[:8]}_7"
    assert named[-1].feature_names_in_.tolist() == names.tolist()
    named[0].set_params(seed=1).fit(pandas.DataFrame(DIGITS))
    with pytest.raises(KnowmoreError, match="The feature names should match"):
        named.predict(pandas.DataFrame(DIGITS))


FITTED = Landmarks(RBF(0.3), 5).fit(X, ids=range(100, 160))


def negative(A, B):
    return -RBF(0.3)(A, B)


def indefinite(A, B):
    return 1.0 - 3 * (A[:, :1] != B[:, 0])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: FITTED.forget(), "Give either rows X or ids of landmarks."),
        (lambda: FITTED.forget(X, ids=[1]), "Give either rows X or ids of landmarks."),
        (lambda: FITTED.forget(X), "That would leave no landmark. Fit the map to other rows inst"),
        (lambda: FITTED.forget(ids=FITTED.ids_), "That would leave no landmark. Fit the map to ot"),
        (lambda: FITTED.forget(ids=1), "The model holds no example 1. It may have been removed be"),
        (lambda: FITTED.forget(ids="a"), "The model holds no example 'a'. All its ids are of typ"),
        (lambda: FITTED.forget(X[:, :3]), "X has 3 features, but Landmarks is expecting 4 featur"),
        (lambda: FITTED.transform(X * np.nan), "Input X contains NaN or infinity: 240 value(s)"),
        (lambda: FITTED.fit(X * np.nan), "Input X contains NaN or infinity: 240 value(s)"),
        (lambda: FITTED.fit(X, ids=[1, 2]), "2 ids were given for 60 rows. Give one each."),
        (lambda: FITTED.fit(X, ids=[1] * 60), "The id 1 is given twice in one call. Each exampl"),
        (lambda: Landmarks().transform(X), "This Landmarks is not fitted yet. Call fit first."),
        (lambda: Landmarks().forget(X), "This Landmarks is not fitted yet. Call fit first."),
        (lambda: Landmarks(n_landmarks=0).fit(X), "n_landmarks=0. Give a whole number of at least"),
        (lambda: Landmarks(n_landmarks=2.5).fit(X), "n_landmarks=2.5. Give a whole number of at "),
        (lambda: Landmarks(seed=-1).fit(X), "seed=-1. Give a whole number from 0 to 18446744073"),
        (lambda: Landmarks("rbf").fit(X), "kernel is of type str. Give a scikit-learn Kernel, a"),
        (lambda: Landmarks(RBF).fit(X), "kernel=RBF is a class, not a kernel. Give an instance:"),
        (lambda: Landmarks(negative).fit(X), "The kernel <function negative at "),
        (lambda: Landmarks(indefinite).fit(X), "The kernel <function indefinite at "),
        (
            lambda: Landmarks(HistogramIntersection()).fit(0 * X),
            "The kernel is zero at all landmarks. Give other rows or a kernel.",
        ),
        (
            lambda: Landmarks(DotProduct()).fit(X * 1e200),
            "What is asked of row 0 of X is beyond the range of numbers.",
        ),
        (lambda: IntersectionMap().transform(X), "This IntersectionMap is not fitted yet. Call fi"),
        (lambda: IntersectionMap(0).fit(X), "levels=0. Give a whole number from 1 to 2147483647."),
        (
            lambda: IntersectionMap().fit(-X[:1]),
            f"Negative values in data: X has {(-X[:1]).min():g}, but histograms have none. Give "
            f"counts, or use Landmarks with a kernel such as RBF.",
        ),
        (lambda: IntersectionMap().fit(X).transform(-X), "Negative values in data: X has -0.99"),
        (lambda: IntersectionMap().fit(X * np.inf), "Input X contains NaN or infinity: 240 valu"),
    ],
)
def test_a_mistake_is_reported_and_changes_nothing(call, words):
    before = FITTED.digest()
    with pytest.raises(KnowmoreError) as caught:
        call()
    assert str(caught.value).startswith(words)
    assert FITTED.digest() == before
    assert len(FITTED.ids_) == 5


def test_an_unfitted_map_raises_the_error_of_scikit_learn():
    for one in (Landmarks(), IntersectionMap()):
        with pytest.raises(NotFittedError):
            one.get_feature_names_out()


# -- unary codes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [1, 3, 16, 100])
@pytest.mark.parametrize("scale", [1.0, 1e-5, 300.0])
def test_dot_products_of_codes_are_intersections(levels, scale):
    A, B = X[:40] * scale, X[20:] * 2 * scale
    codes = IntersectionMap(levels).fit(A)
    left, right = codes.transform(A), codes.transform(B)
    assert left.dtype == np.uint8
    assert left.shape == (40, codes.levels_.sum())
    assert set(np.unique(left)) <= {0, 1}
    # Multiples of a power of two: both sums are exact.
    got = codes.step_ * (left.astype(float) @ right.T)
    assert (got == HistogramIntersection()(codes.rounded(A), codes.rounded(B))).all()
    assert np.log2(codes.step_) % 1 == 0
    assert A.max() / levels <= codes.step_ < 2 * A.max() / levels
    assert (abs(codes.rounded(A) - A) <= codes.step_ / 2).all()


def test_larger_values_count_as_the_largest_of_the_fit():
    codes = IntersectionMap(4).fit([[1.0, 0.0], [0.25, 0.5]])
    assert codes.levels_.tolist() == [4, 2]
    assert codes.rounded([[9.0, 9.0]]).tolist() == [[1.0, 0.5]]
    assert IntersectionMap().fit(np.zeros((3, 2))).transform(np.ones((1, 2))).tolist() == [[1, 1]]


def test_counts_are_coded_as_they_are_and_sparse_ones_too():
    codes = IntersectionMap(16).fit(DIGITS)
    assert codes.step_ == 1
    assert (codes.rounded(DIGITS) == DIGITS).all()
    for table in (sparse.csr_array(DIGITS), DIGITS.astype(np.uint8)):
        again = IntersectionMap(16).fit(table)
        assert (again.transform(table) == codes.transform(DIGITS)).all()


def test_a_linear_model_of_codes_is_the_gaussian_process_of_the_intersection():
    codes = IntersectionMap(16).fit(DIGITS)
    A, y, B, noise = DIGITS[:300], LABELS[:300], DIGITS[300:400], 5.0
    linear = LinearGPClassifier(noise, resolution=8, intercept=False).fit(codes.transform(A), y)
    assert (linear.grid_.rounded(codes.transform(B)) == codes.transform(B)).all()
    exact = GPClassifier(HistogramIntersection(), noise).fit(A, y)
    K = corner(HistogramIntersection(), A) + noise * np.eye(300)
    T, C = np.where(y[:, None] == np.arange(10), 1.0, -1.0), cross(HistogramIntersection(), A, B)
    got = linear.decision_function(codes.transform(B))
    assert_solves(got, exact.decision_function(B), K, T, left=C)
