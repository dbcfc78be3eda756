"""Particulars of the classifier: scores, probabilities, classes."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import oracle
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct
from tolerance import assert_rounded, assert_solves, tolerance

from knowmore import GPClassifier, GPRegressor, KnowmoreError
from knowmore.linalg import Cholesky


def make(n=40, classes=3, noise=0.1, **settings):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(n, 3)), rng.integers(0, classes, n)
    return GPClassifier(RBF(1.0), noise, **settings).fit(X, y), X, y


def test_scores_are_those_of_the_paper():
    clf, X, y = make()
    classes, T = oracle.one_vs_all(y.tolist())
    K = oracle.covariance(RBF(1.0), X, 0.1)
    queries = X + 0.5
    want = oracle.scores(RBF(1.0), 0.1, X, T, queries)
    assert_solves(clf.decision_function(queries), want, K, T, left=RBF(1.0)(X, queries))
    assert clf.predict(queries).tolist() == [classes[c] for c in want.argmax(axis=1)]


def test_two_classes_have_one_score():
    clf, X, _y = make(classes=2)
    scores = clf.decision_function(X)
    assert scores.shape == (len(X),)
    np.testing.assert_array_equal(clf.predict(X), (scores > 0).astype(int))


def test_renaming_classes_permutes_the_scores():
    clf, X, y = make()
    renamed = GPClassifier(RBF(1.0), 0.1).fit(X, np.array(["z", "m", "a"])[y])
    assert_rounded(renamed.decision_function(X), clf.decision_function(X)[:, ::-1])


def test_a_new_class_leaves_the_columns_of_the_others_alone():
    clf, X, _y = make()
    before = clf.model_
    clf.add(X[:1] + 5, [9])
    model = clf.model_
    np.testing.assert_array_equal(model.targets.basis[:40, :3], before.targets.basis)
    assert_rounded(model.half[:40, :3], before.half)
    assert (model.half[:40, 3] == 0).all()


def test_probabilities_are_finite_sum_to_one_and_agree_with_the_prediction():
    for noise in (10.0, 0.1, 1e-10):
        clf, X, _y = make(noise=noise)
        queries = np.vstack([X, X + 0.3, X * 2])
        p = clf.predict_proba(queries)
        assert_rounded(p.sum(axis=1), np.ones(len(queries)))
        np.testing.assert_array_equal(clf.classes_[p.argmax(axis=1)], clf.predict(queries))


def test_a_single_class_is_certain_and_more_can_follow():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 2))
    clf = GPClassifier().fit(X[:4], ["only"] * 4)
    assert clf.predict_proba(X).tolist() == [[1.0]] * 6
    assert clf.decision_function(X).shape == (6, 1)
    clf.add(X[4:], ["late", "late"])
    assert clf.classes_.tolist() == ["late", "only"]
    assert clf.predict(X[4:]).tolist() == ["late", "late"]
    assert clf.remove([4, 5]).classes_.tolist() == ["only"]


def test_it_can_start_from_a_single_example():
    clf = GPClassifier()
    assert clf.add([[1.0, 2.0]], ["first"]).tolist() == [0]
    # Half the width of several classes: one class alone is told from all else.
    assert (clf.kernel_.length_scale, clf.noise_) == (0.5, 0.01)
    assert clf.partial_fit([[3.0, 2.0]], ["second"], classes=["first", "second"]).predict(
        [[3.0, 2.0]]
    ).tolist() == ["second"]


def test_default_ids_are_never_used_twice():
    clf, X, y = make()
    clf.remove([39])
    assert clf.add(X[:2], y[:2]).tolist() == [40, 41]
    clf.add(X[:1], y[:1], ids=[1000])
    assert clf.add(X[:1], y[:1]).tolist() == [1001]


def test_longer_names_of_classes_are_not_cut():
    clf = GPClassifier().fit([[0.0], [1.0]], ["a", "b"])
    clf.add([[5.0]], ["a very long name"])
    clf.relabel([0], ["an even longer name than that"])
    assert clf.classes_.tolist() == ["a very long name", "an even longer name than that", "b"]


def test_variance_grows_away_from_the_examples():
    clf, X, _ = make()
    near, far = clf.predict_variance(X[:1])[0], clf.predict_variance(X[:1] + 100)[0]
    assert near < far
    assert_rounded(far, 1.1)


def spy(monkeypatch, *names):
    """Count calls of methods of the factor."""
    calls = dict.fromkeys(names, 0)
    for name in names:
        original = getattr(Cholesky, name)

        def counted(self, *args, _name=name, _original=original, **kwargs):
            calls[_name] += 1
            return _original(self, *args, **kwargs)

        monkeypatch.setattr(Cholesky, name, counted)
    return calls


def test_edits_between_two_questions_are_folded(monkeypatch):
    clf, X, y = make()
    calls = spy(monkeypatch, "append", "without")
    for i in range(10):
        clf.add(X[i : i + 1] + 0.1, y[i : i + 1])
    clf.remove([3]).remove([44]).replace([5], X[:1]).relabel([6], [1])
    assert calls == {"append": 0, "without": 0}
    clf.predict(X)
    assert calls == {"append": 1, "without": 1}


def test_what_may_fail_is_done_at_once(monkeypatch):
    def kernel(A, B):
        return RBF(1.0)(A, B)

    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(20, 3)), rng.integers(0, 3, 20)
    for settings in ({"kernel": kernel, "noise": 0.1}, {"kernel": RBF(1.0), "noise": 0.0}):
        clf = GPClassifier(**settings).fit(X, y)
        calls = spy(monkeypatch, "append", "without")
        clf.add(X[:1] + 1, y[:1])
        clf.add(X[:1] + 2, y[:1])
        clf.remove([20])
        assert calls == {"append": 2, "without": 1}
        monkeypatch.undo()


def test_relabelling_costs_one_solve(monkeypatch):
    clf, X, _ = make()
    clf.predict(X)
    calls = spy(monkeypatch, "append", "without", "forward", "backward", "half_solve")
    clf.relabel([5], [2])
    clf.predict(X)
    assert calls == {"append": 0, "without": 0, "forward": 1, "backward": 1, "half_solve": 0}


def test_removing_most_regrows_the_rest(monkeypatch):
    clf, X, y = make(n=200)
    clf.predict(X)
    calls = spy(monkeypatch, "append", "without")
    clf.remove(range(10, 190)).predict(X)
    assert calls == {"append": 1, "without": 1}
    want = GPClassifier(RBF(1.0), 0.1).fit(np.r_[X[:10], X[190:]], np.r_[y[:10], y[190:]])
    K = oracle.covariance(RBF(1.0), want.model_.examples.X, 0.1)
    T, k = want.model_.targets.T, RBF(1.0)(want.model_.examples.X, X)
    assert_solves(clf.decision_function(X), want.decision_function(X), K, T, left=k)


@pytest.mark.parametrize("solver", ["cholesky", "inverse"])
def test_float32_is_as_good_as_stated(solver):
    clf, X, y = make(n=200, solver=solver, dtype="float32")
    clf.remove([3, 77]).add(X[:2] + 0.1, y[:2])
    held = clf.model_.examples
    _, T = oracle.one_vs_all(held.labels.tolist())
    K = oracle.covariance(RBF(1.0), held.X, 0.1)
    k = RBF(1.0)(held.X, X)
    want = k.T @ oracle.solve(K, T)
    got = clf.decision_function(X)
    assert_solves(got, want, K, T, solver=solver, dtype=np.float32, left=k)
    assert clf.model_.covariance.factor.dtype == np.float32
    assert np.linalg.cond(K) <= len(K) / 0.1 + 1


def test_regression_keeps_the_shape_of_its_targets():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(10, 2))
    for shape in ((10,), (10, 1), (10, 3)):
        reg = GPRegressor().fit(X, np.zeros(shape))
        assert reg.predict(X).shape == shape
        assert reg.leave_one_out().predicted.shape == shape


def test_the_residual_tells_a_drifted_inverse_from_a_fresh_one():
    from dataclasses import replace

    clf, X, _y = make(solver="inverse")
    fresh = clf.residual()
    model = clf.model_
    factor = replace(model.covariance.factor, P=model.covariance.factor.P + 1e-6)
    drifted = replace(model, covariance=replace(model.covariance, factor=factor))
    K = oracle.covariance(RBF(1.0), X, 0.1)
    assert fresh <= tolerance(K, "inverse")
    assert drifted.residual() > 1e3 * fresh


def test_no_edit_is_lost_while_others_ask():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 3, 400)
    clf = GPClassifier(RBF(1.0)).fit(X, y)
    done = Event()

    def ask():
        while not done.is_set():
            clf.predict(X[:2])

    def edit(name):
        for i in range(40):
            clf.add(X[i : i + 1] + 0.1, y[i : i + 1], ids=[f"{name} {i}"])
            clf.remove(f"{name} {i - 1}") if i % 2 else None

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask), pool.submit(ask)]
        for editing in [pool.submit(edit, "one"), pool.submit(edit, "two")]:
            editing.result()
        done.set()
        [each.result() for each in asking]
    kept = {f"{name} {i}" for name in ("one", "two") for i in range(1, 40, 2)}
    assert set(clf.model_.examples.names) == kept | set(range(400))


def test_a_pickle_holds_nothing_that_was_removed():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 3)), rng.integers(0, 3, 20)
    clf = GPClassifier(RBF(1.0)).fit(X, y)
    clf.remove([7])
    assert X[7].tobytes() not in pickle.dumps(clf)
    assert X[7].tobytes() not in pickle.dumps(clf.remove(clf.ids_[:-1]))


def test_large_integers_stay_integers():
    clf = GPClassifier().fit([[0.0], [1.0]], ["a", "b"], ids=[2**63 + 5, 3])
    assert clf.ids_.tolist() == [2**63 + 5, 3]
    other = GPClassifier(clf.kernel_).fit([[2.0]], ["a"]).merge(clf)
    assert other.remove(clf.ids_[:1]).ids_.tolist() == [0, 3]


def test_a_subclass_of_a_known_kernel_is_asked_itself():
    class Twice(RBF):
        def __call__(self, X, Y=None, eval_gradient=False):
            return 2 * super().__call__(X, Y)

        def diag(self, X):
            return 2 * super().diag(X)

    _clf, X, y = make()
    twice = GPClassifier(Twice(1.0), 0.1).fit(X, y)
    _, T = oracle.one_vs_all(y.tolist())
    K = oracle.covariance(Twice(1.0), X, 0.1)
    want = oracle.scores(Twice(1.0), 0.1, X, T, X)
    assert_solves(twice.decision_function(X), want, K, T, left=Twice(1.0)(X))


def test_an_empty_model_takes_labels_of_another_kind():
    clf = GPClassifier().fit([[0.0], [1.0]], ["a", "b"])
    clf.remove([0, 1]).add([[1.0], [2.0]], [1, 2])
    assert clf.classes_.tolist() == [1, 2]


def test_nullable_integers_are_integers():
    clf = GPClassifier().fit([[0.0], [1.0]], pd.Series([1, 2], dtype="Int64"))
    clf.add([[3.0]], [3])
    assert clf.classes_.dtype == np.int64


def test_the_residual_leaves_a_kernel_s_own_arrays_alone():
    cache = {}

    def remembering(A, B):
        return cache.setdefault((A.tobytes(), B.tobytes()), RBF(1.0)(A, B))

    _, X, y = make()
    clf = GPClassifier(remembering).fit(X, y)
    before = clf.decision_function(X)
    clf.residual()
    np.testing.assert_array_equal(clf.decision_function(X), before)


@pytest.mark.parametrize(("dtype", "size"), [("float32", 1e40), ("float64", 1e300)])
def test_targets_beyond_the_range_of_the_coefficients_are_refused_at_the_call(dtype, size):
    X = np.random.default_rng(0).normal(size=(20, 2))
    reg = GPRegressor(RBF(1.0), dtype=dtype)
    with pytest.raises(KnowmoreError, match=r"y reaches .* Scale it"):
        reg.fit(X, size * X[:, 0])
    reg.fit(X, X[:, 0])
    before = reg.predict(X)
    with pytest.raises(KnowmoreError, match=f"; {dtype} takes "):
        reg.add([[0.0, 1.0]], [size])
    with pytest.raises(KnowmoreError, match="Scale it"):
        reg.relabel([3], [size])
    np.testing.assert_array_equal(reg.predict(X), before)


def test_in_float32_rows_beyond_its_range_have_the_covariance_that_they_have_in_float64():
    X, far = np.array([[1.0], [2.0], [3.0]]), np.array([[1e39], [1.0]])
    got, want = (
        GPRegressor(DotProduct(), 0.1, dtype=dtype)
        .fit(X, [1.0, 2.0, 2.5])
        .predict(far, return_cov=True)[1]
        for dtype in ("float32", "float64")
    )
    K, k = X @ X.T + 1 + 0.1 * np.eye(3), (X @ far.T + 1) / far.T
    units = far @ far.T
    assert_solves(got / units, want / units, K, k, dtype=np.float32, left=k)


@pytest.mark.parametrize("kernel", [None, RBF(1.0)])
def test_a_model_that_was_emptied_forgets_what_it_learns_anew(kernel):
    clf = GPClassifier(kernel).fit([[0.0], [1.0]], [0, 1]).remove([0, 1])
    assert len(clf.model_.names) == 0
    clf.add([[0.0]], [0], ids=[7])
    assert len(clf.remove([7]).ids_) == 0
    clf.add([[0.0], [1.0]], [0, 1], sample_weight=[0.0, 0.0])
    assert len(clf.model_.examples) == 0


def test_probabilities_are_of_one_model_whatever_others_do_meanwhile():
    rng, edits = np.random.default_rng(0), []
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    y[:8] = 1 - y[:8]

    def kernel(A, B):
        # Stands for another thread.
        if edits and 1 in (len(A), len(B)):
            edits.pop()()
        return RBF(1.0)(A, B)

    clf, asked = GPClassifier(kernel).fit(X, y), [[0.3, 0.1]]
    before = clf.predict_proba(asked)
    edits.append(lambda: clf.remove(np.arange(8)))
    np.testing.assert_array_equal(clf.predict_proba(asked), before)
    assert abs(clf.predict_proba(asked) - before).max() > 0.1
