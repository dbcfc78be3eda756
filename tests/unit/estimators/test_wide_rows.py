"""Linear models of many columns: a lack of memory is said when rows are learnt, not when asked."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from alone import assert_runs
from scipy import sparse

from knowmore import KnowmoreError, LinearGPClassifier, LinearGPRegressor
from knowmore.errors import InvalidInput, NotEnoughMemory
from knowmore.linalg import Grid, Sums

FEWER = (
    "Give fewer columns: through a feature map, hashed to fewer, or by TruncatedSVD. For few rows, "
    "a GPClassifier or GPRegressor with the kernel DotProduct() holds n^2 / 2 numbers instead."
)
RNG = np.random.default_rng(0)
Y = np.resize(["a", "b"], 200)
# So wide that memory is looked up.
D = 3500
X = RNG.normal(size=(200, D))


def with_free(monkeypatch, gigabytes):
    monkeypatch.setattr("knowmore._base.machine.available_memory", lambda: int(gigabytes * 2**30))


@pytest.fixture
def little(monkeypatch):
    with_free(monkeypatch, 0.1)


def refused(D, gigabytes, free=0.1):
    return (
        f"A linear model of {D:,} columns holds the sums of D^2 products: with its work space "
        f"{gigabytes} GB, but {free} GB of memory are free. {FEWER} Nothing was changed."
    )


def test_wide_sparse_rows_are_refused_before_anything_else_is_done(monkeypatch):
    with_free(monkeypatch, 16)
    wide = sparse.random(20, 200_000, 1e-4, format="csr", random_state=0)
    for learn in (LinearGPClassifier().fit, LinearGPClassifier().partial_fit):
        with pytest.raises(NotEnoughMemory) as caught:
            learn(wide, Y[:20])
        assert str(caught.value) == refused(200_000, 2384.2, "16.0")


@pytest.mark.parametrize("make", [LinearGPClassifier, LinearGPRegressor])
def test_few_wide_rows_are_refused_although_they_would_wait(little, make):
    with pytest.raises(NotEnoughMemory) as caught:
        make().fit(X[:5], [1, 2, 1, 2, 1])
    assert str(caught.value) == refused(D, 0.7)


def test_long_numbers_and_many_targets_count_too(monkeypatch):
    with_free(monkeypatch, 0.8)
    LinearGPClassifier().fit(X[:5], Y[:5])
    far = X[:5] * np.array([1e30, 1, 1, 1, 1])[:, None]
    clf = LinearGPClassifier().fit(X[:20], Y[:20])
    for learn, needed in ((LinearGPClassifier().fit, 1.3), (clf.partial_fit, 1.1)):
        with pytest.raises(NotEnoughMemory) as caught:
            learn(far, Y[:5])
        assert str(caught.value) == refused(D, needed, "0.8")
    assert clf.n_samples_ == 20
    with_free(monkeypatch, 0.4)
    with pytest.raises(NotEnoughMemory) as caught:
        LinearGPRegressor().fit(X[:5, :2], X[:5])
    assert str(caught.value) == refused(2, 0.5, "0.4")


@pytest.mark.slow
def test_a_model_that_cannot_learn_more_is_as_it_was(monkeypatch):
    clf = LinearGPClassifier().fit(X[:5], Y[:5])
    want = clf.digest()
    with_free(monkeypatch, 0.1)
    for edit in (lambda: clf.partial_fit(X[5:9], Y[5:9]), lambda: clf.merge(clf)):
        with pytest.raises(NotEnoughMemory) as caught:
            edit()
        # Less than for a fit: it holds its sums already.
        assert str(caught.value) == refused(D, 0.5)
        assert (clf.n_samples_, clf.digest()) == (5, want)


@pytest.mark.parametrize("n", [5, 100, 128])
def test_forgetting_everything_needs_no_memory(monkeypatch, n):
    clf = LinearGPClassifier().fit(X[:n], Y[:n])
    monkeypatch.setattr("knowmore.linalg.totals.Products.settled", None)
    for rows in np.array_split(np.arange(n)[::-1], 3):
        clf.forget(X[rows], Y[rows])
    assert clf.n_samples_ == 0
    assert pickle.loads(pickle.dumps(clf)).n_samples_ == 0
    assert pickle.dumps(clf.model_.sums) == pickle.dumps(Sums(clf.grid_))


def test_forgetting_some_needs_no_memory_while_few_rows_wait(little, monkeypatch):
    monkeypatch.setattr("knowmore.models.linear.MANY_BYTES", 2**40)
    clf = LinearGPClassifier().fit(X[:100], Y[:100])
    clf.forget(X[50:100], Y[50:100])
    assert clf.n_samples_ == 50
    with pytest.raises(NotEnoughMemory) as caught:
        clf.predict(X)
    assert str(caught.value) == (
        f"The sums of products of 3,500 columns take 0.3 GB, but 0.1 GB of memory are free. "
        f"{FEWER} Nothing was changed."
    )
    monkeypatch.undo()
    fresh = LinearGPClassifier(resolution=clf.grid_).fit(X[:50], Y[:50])
    assert clf.digest() == fresh.digest()


def test_weights_decide_whether_rows_cancel():
    grid, x = Grid.covering(np.ones((1, 2))), np.array([[1.0, -0.0], [1.0, 0.0]])
    two, one = Sums.of(grid, x), Sums.of(grid, x[:1], weights=np.array([2.0]))
    with pytest.raises(InvalidInput):
        _ = two - one
    # As many rows of as much weight: these cannot be told from those that were learnt.
    assert (two - Sums.of(grid, x[::-1], weights=np.ones(2))).digest() == Sums(grid).digest()
    other = Sums.of(grid, np.array([[2.0, 0.0], [0.0, 0.0]]))
    with pytest.raises(KnowmoreError, match="cannot all have been learnt"):
        _ = two - other


def test_other_rows_of_the_same_sums_are_taken_for_those_that_were_learnt():
    """As before: sums cannot tell 0, 4, 5 from 1, 2, 6, which have the same sums and squares."""
    grid = Grid.covering([[8.0]])
    one, other = (Sums.of(grid, np.array(x)[:, None]) for x in ([0.0, 4.0, 5.0], [1.0, 2.0, 6.0]))
    assert one == other
    assert (one - other).rows == 0


def test_without_memory_for_a_total_of_each_thread_there_is_one(monkeypatch):
    many = np.vstack([X[:, :1000]] * 6)
    want = LinearGPClassifier().fit(many, np.resize(Y, 1200)).digest()
    monkeypatch.setattr("knowmore.linalg.sums.available_memory", lambda: 10**9)
    monkeypatch.setattr("knowmore.linalg.sums.blas_threads", lambda: 64)
    monkeypatch.setattr("knowmore.linalg.sums.side_by_side", None)
    assert LinearGPClassifier().fit(many, np.resize(Y, 1200)).digest() == want


LIMITED = """
import resource
import numpy as np
from knowmore import LinearGPClassifier
from knowmore.errors import NotEnoughMemory
X, y = np.random.default_rng(0).normal(size=(40, 1600)), np.arange(40) % 2
clf = LinearGPClassifier("evidence").fit(X[:, :5], y)
clf.predict_proba(X[:, :5])
clf = LinearGPClassifier("evidence").fit(X, y)
pages = int(open("/proc/self/statm").read().split()[0])
said = set()
for room in range(1, 150, 6):
    size = pages * resource.getpagesize() + room * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
    for ask in (lambda: clf.predict_variance(X[:2]), clf.digest, clf.log_marginal_likelihood):
        try:
            ask()
        except NotEnoughMemory as error:
            said.add(str(error).split(".")[0])
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert "There is not enough memory to sum the products of the columns" in said, said
assert "There is not enough memory to solve for the weights of so many columns" in said, said
assert np.isfinite(clf.predict_variance(X)).all()
"""


@pytest.mark.slow
def test_a_question_that_finds_no_memory_says_so():
    assert_runs(LIMITED)
