"""Each mistake has its own error, says what to do, and changes nothing."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF, DotProduct

from knowmore import (
    EigenspaceLDA,
    EigenspacePCA,
    ForestGPClassifier,
    GPClassifier,
    GPRegressor,
    KnowmoreError,
    LinearGPClassifier,
    LSSVMClassifier,
    NPlusOneClassifier,
    Scores,
    SubspaceMonitor,
)

X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
Y = ["a", "b", "b"]
NAN = np.array([[0.0, np.nan]])
INF = np.array([[0.0, 0.0], [np.inf, 0.0]])
KNOWN = Scores(["a"], lambda X: X[:, :1])


def gibbs(A, B):
    """A kernel that is not positive definite: it likes what is far away."""
    return np.abs(A[:, None] - B[None]).sum(axis=-1)


def lopsided(A, B):
    return A.sum(axis=1)[:, None] + 2 * B.sum(axis=1)[None]


MISTAKES = {
    "NaN": (
        lambda clf: clf.add(NAN, ["a"]),
        ValueError,
        "Input X contains NaN or infinity: 1 value(s), the first at row 0, column 1 (nan). "
        "Remove these examples or fill in the values.",
    ),
    "infinity in a question": (
        lambda clf: clf.predict(INF),
        ValueError,
        "Input X contains NaN or infinity: 1 value(s), the first at row 1, column 0 (inf). "
        "Remove these examples or fill in the values.",
    ),
    "wrong number of features": (
        lambda clf: clf.add(np.zeros((1, 3)), ["a"]),
        ValueError,
        "X has 3 features, but GPClassifier is expecting 2 features as input.",
    ),
    "one-dimensional X": (
        lambda clf: clf.add(np.zeros(2), ["a"]),
        ValueError,
        "Expected 2D array, got 1D array instead:\narray=[0. 0.].\nReshape your data either using "
        "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it "
        "contains a single sample.",
    ),
    "empty X": (
        lambda clf: clf.add(np.zeros((0, 2)), []),
        ValueError,
        "Found array with 0 sample(s) (shape=(0, 2)) while a minimum of 1 is required by "
        "GPClassifier.",
    ),
    "NaN in a sparse X": (
        lambda clf: clf.add(sparse.csr_array(NAN), ["a"]),
        ValueError,
        "Input X contains NaN or infinity: 1 value(s), the first at row 0, column 1 (nan). "
        "Remove these examples or fill in the values.",
    ),
    "no X": (
        lambda clf: clf.predict(None),
        ValueError,
        "Expected array-like (array or non-string sequence), got None as X.",
    ),
    "a masked X": (
        lambda clf: clf.add(np.ma.masked_equal(X, 1.0), Y),
        ValueError,
        "X has 2 masked value(s), the first at (1, 0). Fill them in with X.filled(...), or leave "
        "these examples out.",
    ),
    "a masked X in a question": (
        lambda clf: clf.predict_variance(np.ma.masked_equal(X, 1.0)),
        ValueError,
        "X has 2 masked value(s), the first at (1, 0). Fill them in with X.filled(...), or leave "
        "these examples out.",
    ),
    "masked weights": (
        lambda clf: clf.add(X, Y, sample_weight=np.ma.masked_equal([1.0, 2.0, 3.0], 2.0)),
        ValueError,
        "sample_weight has 1 masked value(s), the first at (1,). Fill them in with "
        "sample_weight.filled(...), or leave these examples out.",
    ),
    "masked labels": (
        lambda clf: clf.relabel([0, 1], np.ma.masked_equal(["a", "b"], "b")),
        ValueError,
        "y has 1 masked value(s), the first at (1,). Fill them in with y.filled(...), or leave "
        "these examples out.",
    ),
    "more examples than labels": (
        lambda clf: clf.add(X, ["a"]),
        ValueError,
        "y has shape (1,), but there are 3 examples. Give one value for each, in the same order.",
    ),
    "no labels": (
        lambda clf: clf.add(X, None),
        ValueError,
        "Expected array-like (array or non-string sequence), got None as y.",
    ),
    "mixed labels": (
        lambda clf: clf.add(X, ["a", 1, "b"]),
        ValueError,
        "Unknown label type: int, str. Use only str, only int or only bool.",
    ),
    "labels of another type than those held": (
        lambda clf: clf.add(X, [1, 2, 3]),
        ValueError,
        "The new labels are of type int, but those held are of type str, such as 'a'. "
        "Convert them first.",
    ),
    "unhashable labels": (
        lambda clf: clf.add(X, [{"a"}, {"b"}, {"b"}]),
        ValueError,
        "Unknown label type: set. Use only str, only int or only bool.",
    ),
    "missing labels": (
        lambda clf: clf.relabel([0, 1], [None, None]),
        ValueError,
        "2 of 2 labels are missing, the first at position 0 (None). Leave these examples out.",
    ),
    "missing labels among others": (
        lambda clf: clf.add(X, ["a", "b", np.nan]),
        ValueError,
        "1 of 3 labels are missing, the first at position 2 (nan). Leave these examples out.",
    ),
    "missing labels in a column of strings": (
        lambda clf: clf.add(X, pd.Series(["a", None, "b"], dtype="string")),
        ValueError,
        "1 of 3 labels are missing, the first at position 1 (<NA>). Leave these examples out.",
    ),
    "a declared class without a name": (
        lambda clf: clf.partial_fit(X, Y, classes=["a", "b", None]),
        ValueError,
        "classes=['a', 'b', None] is not a list of class names. 1 of 3 labels are missing, the "
        "first at position 2 (None). Leave these examples out.",
    ),
    "a declared class of another type": (
        lambda clf: clf.partial_fit(X, Y, classes=[0, 1, None]),
        ValueError,
        "classes=[0, 1, None] is not a list of class names. 1 of 3 labels are missing, the first "
        "at position 2 (None). Leave these examples out.",
    ),
    "classes that are no list": (
        lambda clf: clf.partial_fit(X, Y, classes="ab"),
        ValueError,
        "classes='ab' is not a list of class names. y should be a 1d array, got an array of shape "
        "() instead.",
    ),
    "fractions as labels": (
        lambda clf: clf.relabel([0], [0.5]),
        ValueError,
        "Unknown label type: continuous. Use GPRegressor to predict numbers.",
    ),
    "two columns of labels": (
        lambda clf: clf.add(X[:2], np.array([["a", "b"], ["a", "b"]])),
        ValueError,
        "y should be a 1d array, got an array of shape (2, 2) instead.",
    ),
    "an id given twice": (
        lambda clf: clf.add(X[:2], Y[:2], ids=["new", "new"]),
        ValueError,
        "The id 'new' is given twice in one call. Each example is named once.",
    ),
    "an id that is held": (
        lambda clf: clf.add(X[:2], Y[:2], ids=[7, 2]),
        ValueError,
        "The model already holds 2. "
        "Use replace() to change them, or give new examples other ids, by ids=... (to "
        "merge: in the second fit) or by the index of their table "
        "(reset_index(drop=True) numbers rows instead).",
    ),
    "too few ids": (
        lambda clf: clf.add(X, Y, ids=[7]),
        ValueError,
        "1 ids were given for 3 examples. Give one each.",
    ),
    "an unknown id": (
        lambda clf: clf.remove([0, 99]),
        KeyError,
        "The model holds no example 99. It may have been removed before; ids_ lists those that "
        "are there.",
    ),
    "an id of another type": (
        lambda clf: clf.relabel(["0"], ["a"]),
        KeyError,
        "The model holds no example '0'. All its ids are of type int: 1 and '1' are different ids.",
    ),
    "a float as id": (
        lambda clf: clf.remove([1.0]),
        ValueError,
        "An id is a string or an integer, but 1.0 is a float. Floats are not exact enough.",
    ),
    "a bool as id": (
        lambda clf: clf.add(X[:1], ["a"], ids=[True]),
        ValueError,
        "An id is a string or an integer, but True is a bool.",
    ),
    "a mask of another length": (
        lambda clf: clf.remove([True]),
        ValueError,
        "mask has shape (1,), but there are 3 examples. Give one value for each, in the order of "
        "ids_.",
    ),
    "no ids for some examples": (
        lambda clf: clf.add(X, Y, ids=[]),
        ValueError,
        "0 ids were given for 3 examples. Give one each.",
    ),
    "replacing with another number of rows": (
        lambda clf: clf.replace([0, 1], X),
        ValueError,
        "X has 3 rows for 2 examples. Give one each.",
    ),
    "replacing with other features": (
        lambda clf: clf.replace([0], [[1.0]]),
        ValueError,
        "X has 1 features, but GPClassifier is expecting 2 features as input.",
    ),
    "merging with another kernel": (
        lambda clf: clf.merge(GPClassifier(RBF(3.0)).fit(X, Y, ids=[7, 8, 9])),
        ValueError,
        "The two models differ in kernel: RBF(length_scale=1) here, RBF(length_scale=3) there. "
        "Fit both with the same kernel to merge them.",
    ),
    "merging with other noise": (
        lambda clf: clf.merge(GPClassifier(RBF(1.0), 0.2).fit(X, Y, ids=[7, 8, 9])),
        ValueError,
        "The two models differ in noise: 0.31622776601683794 here, 0.2 there. "
        "Fit both with the same noise to merge them.",
    ),
    "merging with another kind": (
        lambda clf: clf.merge(GPRegressor(RBF(1.0)).fit(X, [1.0, 2.0, 3.0])),
        ValueError,
        "GPClassifier cannot merge with GPRegressor.",
    ),
    "merging with the same ids": (
        lambda clf: clf.merge(GPClassifier(RBF(1.0)).fit(X, Y)),
        ValueError,
        "The model already holds 0, 1, 2. "
        "Use replace() to change them, or give new examples other ids, by ids=... (to "
        "merge: in the second fit) or by the index of their table "
        "(reset_index(drop=True) numbers rows instead).",
    ),
    "merging with what was never fitted": (
        lambda clf: clf.merge(GPClassifier(RBF(1.0))),
        NotFittedError,
        "This GPClassifier is not fitted yet. Call fit or add first.",
    ),
    "groups of the wrong length": (
        lambda clf: clf.leave_one_out([1, 2]),
        ValueError,
        "groups has shape (2,), but there are 3 examples. Give one value for each, in the order "
        "of ids_.",
    ),
    "groups with a gap": (
        lambda clf: clf.leave_one_out([1.0, np.nan, 1.0]),
        ValueError,
        "1 of 3 groups are missing, the first at position 1 (nan). Leave these examples out.",
    ),
    "groups with a gap in an array": (
        lambda clf: clf.leave_one_out(np.array([1.0, np.nan, 1.0])),
        ValueError,
        "Input groups contains NaN or infinity: 1 value(s), the first at row 1 (nan). Remove these "
        "examples or fill in the values.",
    ),
    "groups with None": (
        lambda clf: clf.leave_one_out(["a", None, 1]),
        ValueError,
        "1 of 3 groups are missing, the first at position 1 (None). Leave these examples out.",
    ),
    "groups of mixed type": (
        lambda clf: clf.leave_one_out(["a", "b", 1]),
        ValueError,
        "Unknown group type: int, str. Use only str, only int or only bool.",
    ),
    "labels beyond 64 bits": (
        lambda clf: GPClassifier().fit(X, np.array([2**63 + 1, 1, 2], dtype=np.uint64)),
        ValueError,
        "Integers outside -2**63 to 2**63 - 1 and strings that end in NUL cannot be labels. Rename "
        "them.",
    ),
    "bytes as labels": (
        lambda clf: clf.add(X, [b"a", b"b", b"c"]),
        ValueError,
        "Unknown label type: bytes. Use only str, only int or only bool.",
    ),
    "as many length scales as there are not features": (
        lambda clf: GPClassifier(RBF([1.0, 2.0, 3.0])).fit(X, Y),
        ValueError,
        "The kernel has 3 length scales, but there are 2 features. Give one number, or one for "
        "each feature.",
    ),
    "a label outside the declared classes": (
        lambda clf: clf.partial_fit(X, ["a", "b", "z"], classes=["a", "b"]),
        ValueError,
        "y has the label 'z', which is not in classes. Leave classes out: new classes are learnt "
        "as they come.",
    ),
    "refitting with NaN": (
        lambda clf: clf.fit(np.full((2, 5), np.nan), ["x", "y"]),
        ValueError,
        "Input X contains NaN or infinity: 10 value(s), the first at row 0, column 0 (nan). "
        "Remove these examples or fill in the values.",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_reported_and_changes_nothing(mistake):
    act, kind, text = MISTAKES[mistake]
    clf = GPClassifier(RBF(1.0)).fit(X, Y)
    before = clf.decision_function(X), vars(clf).copy()
    with pytest.raises(KnowmoreError) as caught:
        act(clf)
    assert isinstance(caught.value, kind)
    assert str(caught.value) == text
    assert vars(clf) == before[1]
    np.testing.assert_array_equal(clf.decision_function(X), before[0])


SETTINGS = {
    "noise below zero": (
        {"noise": -1.0},
        "noise=-1.0 must be a number in [0, inf). It is a variance, usually from 1e-6 to 1; None "
        "chooses it by leave-one-out.",
    ),
    "noise that is NaN": (
        {"noise": float("nan")},
        "noise=nan must be a number in [0, inf). It is a variance, usually from 1e-6 to 1; None "
        "chooses it by leave-one-out.",
    ),
    "noise in words": (
        {"noise": "some"},
        "noise='some' must be a number in [0, inf). It is a variance, usually from 1e-6 to 1; "
        "None chooses it by leave-one-out.",
    ),
    "an unknown solver": (
        {"solver": "qr"},
        "solver='qr' is not known. Choose one of 'cholesky', 'inverse'.",
    ),
    "an unknown update": (
        {"update": "slow"},
        "update='slow' is not known. Choose one of 'auto', 'direct', 'iterative'.",
    ),
    "an unknown dtype": (
        {"dtype": "float16"},
        "dtype='float16' is not known. Choose one of 'float64', 'float32'.",
    ),
    "a kernel that is none": (
        {"kernel": "rbf"},
        "kernel is of type str. Give a scikit-learn Kernel, a function of X (n, d) and Y (m, d) "
        "that returns (n, m), a list of kernels, or None.",
    ),
    "a kernel of single pairs": (
        {"kernel": np.vdot},
        f"The kernel {np.vdot!r} was asked for a block of shape (3, 3) and gave (). A callable "
        f"kernel takes X (n, d) and Y (m, d) and returns all n x m values at once.",
    ),
    "a kernel that is not symmetric": (
        {"kernel": lopsided},
        f"The kernel {lopsided!r} is not symmetric: k(x, y) and k(y, x) differ by 1.0e+00. "
        f"A covariance function must not depend on the order of its arguments.",
    ),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_wrong_setting_is_reported(setting):
    parameters, text = SETTINGS[setting]
    clf = GPClassifier(**parameters)
    with pytest.raises(KnowmoreError) as caught:
        clf.fit(X, Y)
    assert isinstance(caught.value, ValueError)
    assert str(caught.value) == text
    assert not clf.__sklearn_is_fitted__()
    assert not hasattr(clf, "n_features_in_")


@pytest.mark.parametrize(
    ("estimator", "word"),
    [
        (LSSVMClassifier(bias="no"), "bias='no' is neither True nor False."),
        (NPlusOneClassifier(KNOWN, bias=1), "bias=1 is neither True nor False."),
        (NPlusOneClassifier(KNOWN, positive="no"), "positive='no' is neither True nor False."),
        (EigenspacePCA(whiten="no"), "whiten='no' is neither True nor False."),
    ],
)
def test_a_word_for_a_flag_is_reported(estimator, word):
    with pytest.raises(KnowmoreError) as caught:
        estimator.fit(X, Y)
    assert str(caught.value) == word
    assert not hasattr(estimator, "n_features_in_")


@pytest.mark.parametrize(
    "make", [EigenspacePCA, EigenspaceLDA, partial(SubspaceMonitor, 1, window=5)]
)
def test_a_masked_table_is_reported_by_every_estimator(make):
    table = np.ma.masked_equal(np.arange(40.0).reshape(20, 2), 7.0)
    with pytest.raises(KnowmoreError, match=r"X has 1 masked value\(s\), the first at \(3, 1\)"):
        make().fit(table, np.arange(20) % 2)


def test_a_mask_that_hides_nothing_is_ignored():
    clf = GPClassifier(RBF(1.0)).fit(np.ma.masked_array(X), np.ma.masked_array(Y))
    np.testing.assert_array_equal(
        clf.decision_function(X), GPClassifier(RBF(1.0)).fit(X, Y).decision_function(X)
    )


@pytest.mark.parametrize("what", [None, 5, "abc", NAN])
def test_a_table_without_coordinates_is_reported(what):
    with pytest.raises(KnowmoreError) as caught:
        EigenspacePCA().fit(X).inverse_transform(what)
    assert "y" not in str(caught.value).replace("array", "").split()


def test_labels_of_strings_of_any_length_are_strings():
    strings = np.array(Y, dtype=np.dtypes.StringDType())
    for make in (GPClassifier, LSSVMClassifier, EigenspaceLDA):
        clf = make().fit(X, strings)
        np.testing.assert_array_equal(clf.predict(X), make().fit(X, Y).predict(X))
        clf.partial_fit(X, strings, classes=strings[:2])
    clf = GPClassifier(RBF(1.0)).fit(X, strings, ids=["a0", "b1", "b2"])
    clf.relabel("b2", strings[0]).relabel(["b1"], strings[:1])
    assert clf.classes_.tolist() == ["a"]
    groups = clf.leave_one_out(strings)
    np.testing.assert_array_equal(groups.scores, clf.leave_one_out(Y).scores)


@pytest.mark.parametrize("solver", ["cholesky", "inverse"])
def test_duplicates_without_noise_are_named(solver):
    clf = GPClassifier(RBF(1.0), noise=0.0, solver=solver).fit(X, Y, ids=["p", "q", "r"])
    before = clf.decision_function(X)
    with pytest.raises(KnowmoreError) as caught:
        clf.add(np.vstack([[[5.0, 5.0]], X[1:2]]), ["a", "a"], ids=["fresh", "twin"])
    assert isinstance(caught.value, np.linalg.LinAlgError)
    remedy = ", or use solver='cholesky', which tolerates more" if solver == "inverse" else ""
    assert str(caught.value) == (
        "The covariance matrix is not positive definite at example 'twin'. Example 'q' has "
        "exactly the same features (correlation 1). Either (a) the two are duplicates: remove one "
        "of them, or set noise above zero; or (b) noise=0 is too small for so smooth a kernel: "
        f"raise it{remedy}; or (c) the kernel RBF(length_scale=1) is not positive definite: use "
        "another one. Nothing was changed."
    )
    np.testing.assert_array_equal(clf.decision_function(X), before)
    assert clf.ids_.tolist() == ["p", "q", "r"]


@pytest.mark.parametrize("solver", ["cholesky", "inverse"])
def test_near_duplicates_without_noise_are_named(solver):
    clf = GPClassifier(RBF(1.0), noise=0.0, solver=solver).fit(X, Y)
    with pytest.raises(KnowmoreError, match=r"Example 2 is nearest to it \(correlation 1\)"):
        clf.add(X[2:] + 1e-9, ["a"])


def test_a_smooth_kernel_is_blamed_on_the_noise_first():
    line = np.linspace(0, 1, 40)[:, None]
    with pytest.raises(KnowmoreError, match=r"Either \(a\) noise=0 is too small for so smooth"):
        GPClassifier(RBF(1.0), noise=0.0).fit(line, ["a", "b"] * 20)


@pytest.mark.parametrize("solver", ["cholesky", "inverse"])
def test_duplicates_with_noise_are_fine(solver):
    clf = GPClassifier(RBF(1.0), noise=1e-6, solver=solver).fit(X, Y)
    clf.add(X[1:2], ["a"])
    assert clf.predict_proba(X[1:2]).max() < 0.6


@pytest.mark.parametrize("solver", ["cholesky", "inverse"])
def test_an_indefinite_kernel_is_found_at_the_call(solver):
    clf = GPClassifier(gibbs, noise=5.0, solver=solver).fit(X[:1], ["a"])
    with pytest.raises(KnowmoreError, match=r"its own variance .*; or \(b\) the kernel .* is not"):
        clf.add([[40.0, 0.0]], ["b"])
    assert clf.ids_.tolist() == [0]


def test_features_that_overflow_are_reported_at_the_call():
    clf = GPClassifier(RBF(1.0)).fit(X, Y)
    with np.errstate(over="ignore", invalid="ignore"):
        clf.add([[1e200, 0.0]], ["a"])
        assert clf.predict([[1e200, 0.0]]) in ("a", "b")
        dot = GPClassifier(DotProduct()).fit(X, Y)
        with pytest.raises(KnowmoreError, match=r"gave a value that is not finite"):
            dot.add([[1e200, 0.0]], ["a"])
    assert dot.ids_.tolist() == [0, 1, 2]
    single = GPRegressor(DotProduct(), 0.1, dtype="float32").fit(X, [1.0, 2.0, 3.0])
    with pytest.raises(KnowmoreError, match=r"gave 1e\+40, noise included, .* float32 holds"):
        single.add([[1e20, 0.0]], [1.0])


def test_a_question_to_an_empty_model_is_reported():
    clf = GPClassifier(RBF(1.0)).fit(X, Y)
    clf.remove([0, 1, 2])
    assert clf.classes_.tolist() == []
    for question in (clf.predict, clf.decision_function, clf.predict_proba, clf.predict_variance):
        with pytest.raises(KnowmoreError) as caught:
            question(X)
        assert str(caught.value) == (
            "The model holds no examples: all were removed. Add some before asking."
        )


def test_merging_models_with_other_columns_is_refused():
    table = pd.DataFrame(X, columns=["width", "height"])
    one = GPClassifier(RBF(1.0)).fit(table, Y)
    same = GPClassifier(RBF(1.0)).fit(table + 1, Y, ids=[7, 8, 9])
    swapped = GPClassifier(RBF(1.0)).fit(table[["height", "width"]], Y, ids=[17, 18, 19])
    assert len(one.merge(same).ids_) == 6
    with pytest.raises(KnowmoreError) as caught:
        one.merge(swapped)
    assert str(caught.value) == (
        "The two models differ in their features: ['width', 'height'] here, ['height', 'width'] "
        "there. Models merge only if these are the same, in the same order."
    )


def test_merging_a_model_of_a_table_with_one_of_an_array_names_few_columns_and_the_remedy():
    wide = np.arange(300.0).reshape(3, 100)
    table = pd.DataFrame(wide, columns=[f"c{i}" for i in range(100)])
    named = LinearGPClassifier().fit(table, Y)
    bare = LinearGPClassifier(resolution=named.grid_).fit(wide, Y)
    shown = "['c0', 'c1', 'c2', 'c3', 'c4' and 95 more]"
    for one, other, both in [
        (named, bare, f"{shown} here, 100 there"),
        (bare, named, f"100 here, {shown} there"),
    ]:
        with pytest.raises(KnowmoreError) as caught:
            one.merge(other)
        assert str(caught.value) == (
            f"The two models differ in their features: {both}. Models merge only if these are the "
            f"same, in the same order. One knows its columns by name, the other does not: fit both "
            f"to tables with the same columns, or both to arrays, table.to_numpy()."
        )


def test_a_kernel_to_a_negative_power_is_not_trusted():
    clf = GPClassifier(RBF(1.0) ** -1).fit([[0.0]], [0])
    with pytest.raises(KnowmoreError, match="Nothing was changed"):
        clf.add([[3.0]], [1])
    assert clf.ids_.tolist() == [0]


def test_names_as_regression_targets_are_reported():
    reg = GPRegressor().fit(X, [1.0, 2.0, 3.0])
    before = reg.predict(X)
    words = "y has values that are not numbers: .*'cat'. Give numbers; a classifier takes names."
    for act in (reg.fit, reg.add):
        with pytest.raises(KnowmoreError, match=f"^{words}$"):
            act(X, ["cat", "dog", "cat"])
    with pytest.raises(KnowmoreError, match=r"^sample_weight has values that are not numbers: "):
        reg.fit(X, [1.0, 2.0, 3.0], sample_weight=["much", "a little", "none"])
    np.testing.assert_array_equal(reg.predict(X), before)


def test_regression_targets_must_agree_in_width():
    reg = GPRegressor(RBF(1.0)).fit(X, [[1.0, 2.0]] * 3)
    with pytest.raises(KnowmoreError) as caught:
        reg.add(X + 1, [1.0, 2.0, 3.0])
    assert str(caught.value) == (
        "y has shape (3,), but the targets held have (3, 2). Give each example the same number of "
        "values."
    )
    with pytest.raises(KnowmoreError, match=r"Input y contains NaN or infinity"):
        reg.relabel([0], [[np.nan, 0.0]])


@pytest.mark.parametrize("verb", ["remove", "replace", "relabel", "predict", "leave_one_out"])
def test_an_unfitted_estimator_says_so(verb):
    arguments = {"remove": [0], "replace": ([0], X[:1]), "relabel": ([0], ["a"]), "predict": (X,)}
    call = arguments.get(verb, ())
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        getattr(GPClassifier(), verb)(*(call if isinstance(call, tuple) else (call,)))


@pytest.mark.parametrize("kind", [pd.Series, pd.Index])
@pytest.mark.parametrize("make", [GPClassifier, LinearGPClassifier, ForestGPClassifier])
def test_a_series_in_place_of_a_table_is_reported(make, kind):
    column = kind([1.0, 2.0, 3.0])
    clf = make().fit([[1.0], [2.0]], ["a", "b"])
    for ask in (lambda: make().fit(column, ["a", "b", "a"]), lambda: clf.predict(column)):
        with pytest.raises(KnowmoreError) as caught:
            ask()
        assert str(caught.value) == (
            f"X is {'an' if kind is pd.Index else 'a'} {kind.__name__} of 3 values, but a table "
            f"has rows and columns. If they are a column, give X.to_frame(); if they are one row, "
            f"X.to_numpy()[None]."
        )
