"""Covariances answer for every row they accept: range, precision, and the row they name."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct
from tolerance import tolerance

from knowmore import GPClassifier, GPRegressor, LSSVMClassifier
from knowmore.errors import InvalidInput, KnowmoreWarning
from knowmore.examples import Examples
from knowmore.insight import explain, novelty, suggest
from knowmore.linalg import Cholesky, Inverse
from knowmore.models import Covariance, covariance, max_variance

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(30, 3)), np.arange(30) % 2
BOTH = pytest.mark.parametrize("solver", ["cholesky", "inverse"])


def pair(kernel, noise, solver, kind=GPClassifier):
    """A model in both precisions, and the relative error that the smaller one may have."""
    one, other = (
        kind(kernel, noise, solver=solver, dtype=dtype).fit(X, Y)
        for dtype in ("float64", "float32")
    )
    K = kernel(X) + noise * np.eye(len(X))
    return one, other, tolerance(K, solver, np.float32)


@BOTH
@pytest.mark.parametrize("size", [1e10, 1e20, 1e21, 1e100])
def test_a_float32_variance_of_far_rows_is_that_of_float64(solver, size):
    one, other, error = pair(DotProduct(1.0), 1.0, solver)
    Q = size * rng.normal(size=(20, 3))
    want, prior = one.predict_variance(Q), DotProduct(1.0).diag(Q)
    assert (abs(other.predict_variance(Q) - want) <= error * prior).all()
    # The truth is far above the noise, where a variance that overflowed used to be put.
    assert (want > 1e15).all()
    np.testing.assert_array_equal(one.predict(Q), other.predict(Q))


@pytest.mark.parametrize("criterion", ["variance", "margin", "reduction"])
def test_float32_models_answer_questions_about_far_rows(criterion):
    one, other, _ = pair(DotProduct(1.0), 1.0, "cholesky")
    Q = 1e21 * rng.normal(size=(6, 3))
    picked = [suggest(clf, Q, 2, criterion).indices.tolist() for clf in (one, other)]
    assert picked[0] == picked[1]
    for clf in (one, other):
        assert np.isfinite(explain(clf, Q[0]).score_without).all()
        assert np.isfinite(novelty(clf, Q, "null_space").values).all()


@BOTH
@pytest.mark.parametrize("scale", [1e-15, 1.0, 1e15, 3e18])
def test_leaving_out_in_float32_keeps_its_digits_at_any_scale(solver, scale):
    one, other, error = pair(ConstantKernel(scale**2) * RBF(1.0), 0.1 * scale**2, solver)
    here, there = one.leave_one_out(), other.leave_one_out()
    assert (abs(there.variance / here.variance - 1) <= error).all()
    assert abs(there.scores - here.scores).max() <= error * abs(here.scores).max()
    assert np.isfinite(other.log_marginal_likelihood())


def test_what_float32_cannot_hold_is_refused_at_the_call():
    kernel = ConstantKernel(1e30) * DotProduct(1.0)
    reg = GPRegressor(kernel, noise=1e36, dtype="float32").fit(X, Y)
    before = reg.predict(X)
    for call in (
        lambda: reg.add([[3e4, 0.0, 0.0]], [1.0]),
        lambda: reg.replace([3], [[3e4, 0.0, 0.0]]),
        lambda: GPRegressor(kernel, noise=1e36, dtype="float32").fit([[3e4, 0.0, 0.0]], [1.0]),
    ):
        with pytest.raises(InvalidInput, match=r"for the example .*float32 holds no more than"):
            call()
    np.testing.assert_array_equal(reg.predict(X), before)


def test_a_variance_that_is_not_a_number_is_refused_at_the_call():
    clf = GPClassifier(ConstantKernel(0.0) * DotProduct() + RBF(), noise=1.0).fit(X, Y)
    with pytest.raises(InvalidInput, match="gave a value that is not finite for the example 'far'"):
        clf.add([[0.0, 0.0, 0.0], [1e200, 0.0, 0.0]], [0, 1], ids=["near", "far"])
    assert len(clf.ids_) == 30


@pytest.mark.parametrize("kind", [GPClassifier, LSSVMClassifier])
def test_the_row_is_named_that_cannot_be_answered_for(kind, monkeypatch):
    # Two rows at a time.
    monkeypatch.setattr(covariance, "_NUMBERS", 60)
    clf = kind(DotProduct()).fit(X, Y)
    Q = rng.normal(size=(25, 3))
    Q[17] = 1e308
    with pytest.raises(InvalidInput) as caught:
        clf.predict(Q)
    assert str(caught.value) == (
        "The kernel DotProduct(sigma_0=1) gave a value that is not finite for row 17 of X: scale "
        "its features as those of the examples, or leave it out."
    )


def test_scores_that_overflow_are_told_with_their_row():
    reg = GPRegressor(DotProduct(), noise=1e-3).fit(X, 1e10 * X[:, 0])
    Q = X.copy()
    Q[4, 0] = 1e305
    with pytest.raises(InvalidInput) as caught:
        reg.predict(Q)
    assert str(caught.value) == (
        "What is asked of row 4 of X is beyond the range of numbers. Its features, or the targets "
        "of the examples, may be too large: scale them, or leave the row out."
    )


@pytest.mark.parametrize("kind", [GPClassifier, LSSVMClassifier])
def test_one_huge_row_spoils_no_other(kind):
    clf = kind(RBF(1.0)).fit(X, Y)
    huge = np.vstack([X, [[1e160, 0, 0]]])
    np.testing.assert_array_equal(clf.predict(huge)[:-1], clf.predict(X))
    assert np.isfinite(clf.decision_function(huge)).all()
    # What fit accepts add accepts too, and the other way round.
    told = np.append(Y, 0)
    added = kind(RBF(1.0)).fit(X, Y).partial_fit(huge[-1:], told[-1:])
    whole = kind(RBF(1.0)).fit(huge, told)
    assert abs(added.decision_function(huge) - whole.decision_function(huge)).max() <= (
        tolerance(RBF(1.0)(X) + 0.1 * np.eye(30)) * 30
    )


def rows_of_calls(update, solver, monkeypatch):
    """The rows of each `append` and `without` by which of 28 examples 2 are added, 2, 20 removed.

    Those of the factor that an inverse may be refreshed by do not count.
    """
    calls, kind = [], {"cholesky": Cholesky, "inverse": Inverse}[solver]

    def counted(name, plain):
        def call(factor, *args):
            calls.append((name, len(args[{"append": 1, "without": 0}[name]])))
            return plain(factor, *args)

        return call

    clf = GPClassifier(RBF(1.0), 0.1, solver=solver, update=update).fit(X[:28], Y[:28])
    for name in ("append", "without"):
        monkeypatch.setattr(kind, name, counted(name, getattr(kind, name)))
    edits = (
        lambda: clf.add(X[28:], Y[28:]),
        lambda: clf.remove([0, 1]),
        lambda: clf.remove(range(2, 22)),
    )
    for edit in edits:
        calls.clear()
        edit()
        clf.predict(X)
        yield [*calls]


@BOTH
def test_a_direct_update_takes_a_block_at_once(solver, monkeypatch):
    calls = [*rows_of_calls("direct", solver, monkeypatch)]
    assert calls == [[("append", 2)], [("without", 2)], [("without", 20)]]


@BOTH
def test_an_iterative_update_takes_one_example_after_the_other(solver, monkeypatch):
    calls = [*rows_of_calls("iterative", solver, monkeypatch)]
    assert calls == [2 * [("append", 1)], 2 * [("without", 1)], 20 * [("without", 1)]]


@BOTH
def test_an_automatic_update_starts_from_scratch_where_that_is_cheaper(solver, monkeypatch):
    calls = [*rows_of_calls("auto", solver, monkeypatch)]
    # An inverse keeps its matrix, and inverts the rows of it that stay.
    last = {"cholesky": [("without", 28), ("append", 8)], "inverse": [("without", 20)]}[solver]
    assert calls == [[("append", 2)], [("without", 2)], last]


def test_an_inverse_of_few_examples_starts_from_scratch_for_many_more(monkeypatch):
    clf = GPClassifier(RBF(1.0), 0.1, solver="inverse").fit(X[:5], Y[:5])
    sizes, append = [], Inverse.append
    monkeypatch.setattr(
        Inverse,
        "append",
        lambda factor, cross, corner: sizes.append(len(corner)) or append(factor, cross, corner),
    )
    clf.partial_fit(X[5:], Y[5:]).predict(X)
    assert sizes == [30]


def test_direct_and_iterative_are_the_same_for_one_example():
    models = [
        GPClassifier(RBF(1.0), 0.1, solver="inverse", update=update).fit(X[:29], Y[:29])
        for update in ("direct", "iterative")
    ]
    for clf in models:
        clf.add(X[29:], Y[29:])
    one, other = (clf.model_.covariance.factor.P for clf in models)
    np.testing.assert_array_equal(one, other)


def test_long_work_is_announced_with_its_time_at_the_users_line(monkeypatch, recwarn):
    monkeypatch.setattr(covariance, "MANY", 10)
    monkeypatch.setattr(covariance, "_RATE", 1.0)
    clf = GPClassifier(RBF(1.0), 0.1).fit(X[:20], Y[:20])
    clf.predict(X[:1])
    clf.add(X[20:], Y[20:])
    clf.predict(X[:1])
    told = recwarn.list
    assert [(one.category, one.filename) for one in told] == [(KnowmoreWarning, __file__)] * 2
    ways_out = (
        "For any number of rows there are linear models (LinearGPClassifier and "
        "LinearGPRegressor, behind Landmarks if the kernel is not linear) and forests "
        "(ForestGPClassifier and ForestGPRegressor)."
    )
    assert [str(one.message) for one in told] == [
        f"Learning {what} takes about {work} operations, as n^3 / 3 does: about {time} on two idle "
        f"cores, at 1e+00 a second. knowmore.progress tells how far it is. {ways_out}"
        for what, work, time in [
            ("20 examples", "3e+03", "44 min"),
            ("10 more examples, 30 in all,", "6e+03", "1 h 46 min"),
        ]
    ]


def test_short_work_is_not_announced(monkeypatch, recwarn):
    monkeypatch.setattr(covariance, "MANY", 10)
    GPClassifier(RBF(1.0), 0.1).fit(X, Y).predict(X[:1])
    assert not recwarn.list


@pytest.mark.parametrize("kernel", [RBF(1.5), DotProduct(1.0)])
def test_a_kernel_of_the_leading_columns_sees_no_others(kernel):
    rng = np.random.default_rng(4)
    wide, asked, labels = rng.normal(size=(30, 7)), rng.normal(size=(9, 7)), np.arange(30) % 3
    narrow = Covariance.of(kernel, 0.1, Examples.of(wide[:, :4], labels), Cholesky())
    nothing = Examples.of(wide[:0], labels[:0])
    part = Covariance(kernel, 0.1, nothing, Cholesky(), width=4).follow(Examples.of(wide, labels))
    for one, other in ((part, narrow), (part.robust, narrow.robust)):
        np.testing.assert_array_equal(one.X, other.X)
        np.testing.assert_array_equal(one.cross(asked), other.cross(asked[:, :4]))
        np.testing.assert_array_equal(one.variance(asked), other.variance(asked[:, :4]))
        largest = max_variance(other.kernel, asked[:, :4])
        assert max_variance(one.kernel, one.seen(asked)) == largest
    assert part.anew(part.examples, kernel=RBF(9.0)).width == 4
    again = pickle.loads(pickle.dumps(part))
    np.testing.assert_array_equal(again.variance(asked), narrow.variance(asked[:, :4]))
