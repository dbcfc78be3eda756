"""Learning with the help of another class: what is chosen, what it costs, and what is refused."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import partial

import numpy as np
import oracle
import pandas as pd
import pytest
from laws.laws import assert_equal_models, batch
from one_shot_scene import KERNEL, SUPPORTS, X, Y, fitted, paper, preselecting, scene
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.model_selection import cross_val_score
from tolerance import assert_rounded, assert_solves

from knowmore import GPClassifier, KnowmoreError
from knowmore.errors import InvalidInput, NotPositiveDefinite
from knowmore.kernels import On, Task, corner
from knowmore.linalg import cholesky
from knowmore.models.probabilities import log_density
from knowmore.transfer.choice import CRITERIA, average_precision
from knowmore.transfer.dependent import LEVELS

# So little apart that a smooth kernel gives one: the square is lost in its rounding.
ALIKE = np.sqrt(np.finfo(float).eps) / 8


def both_tasks(clf):
    """The kernel of eq. (3), inputs, labels and matrix K~ of the examples and of the support."""
    held, S = clf.model_.examples, clf.supports_[clf.support_]
    X = np.vstack([np.insert(held.X, 3, 0, axis=1), np.insert(S, 3, 1, axis=1)])
    y = np.append(np.where(held.labels == clf.classes_[1], 1.0, -1.0), np.ones(len(S)))
    kernel = On(slice(0, 3), clf.kernel_) * Task(clf.rho_)
    return kernel, X, y[:, None], oracle.covariance(kernel, X, clf.noise_)


# -- what is chosen ------------------------------------------------------------------------------


def best_by_refitting(X, y, S, noise):
    """(value, lpp, -rho) of the best of 101 rho, each with an inverse of its own."""
    n, joint, found = len(X), np.vstack([X, S]), []
    labels = np.append(y, np.ones(len(S)))
    same = (np.arange(len(joint)) < n)[:, None] == (np.arange(len(joint)) < n)
    for rho in np.arange(101) / 100:
        P = np.linalg.inv(KERNEL(joint) * np.where(same, 1, rho) + noise * np.eye(len(joint)))
        variance = 1 / np.diagonal(P)[:n]
        mean = y - (P @ labels)[:n] * variance
        value = average_precision(y, mean)
        lpp = log_density(y, mean, variance).sum()
        found.append((float(value), float(lpp), -float(rho)))
    return max(found)


@pytest.mark.parametrize("positives", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_the_choice_is_that_of_refitting_for_every_support_and_rho(positives, seed):
    X, y, supports = scene(positives, seed=seed)
    clf = paper(KERNEL, supports, noise=0.01).fit(X, y)
    numbers = np.where(y == "okapi", 1.0, -1.0)
    want = {name: best_by_refitting(X, numbers, S, 0.01) for name, S in supports.items()}
    order = sorted(want, key=want.get, reverse=True)
    assert [one.support for one in clf.ranking_] == order
    for name, rho, value, lpp in clf.ranking_:
        assert (value, -rho) == (want[name][0], want[name][2])
        K = oracle.covariance(KERNEL, np.vstack([X, supports[name]]), 0.01)
        assert_rounded(lpp, want[name][1], 4 * len(X) * np.linalg.cond(K))
    assert (clf.support_, clf.rho_) == (order[0], -want[order[0]][2])
    assert clf.rho_ > 0


def test_the_answers_are_those_of_the_gaussian_process_of_both_tasks():
    clf, queries = fitted(3), np.random.default_rng(5).normal(size=(7, 3))
    kernel, inputs, y, K = both_tasks(clf)
    q = np.insert(queries, 3, 0, axis=1)
    k = kernel(inputs, q)
    scores = clf.decision_function(queries)
    assert_solves(scores[:, None], oracle.scores(kernel, clf.noise_, inputs, y, q), K, y, left=k)
    variance = clf.predict_variance(queries)
    want = oracle.variance(kernel, clf.noise_, inputs, q)
    assert_solves(np.diag(variance), np.diag(want), K, k, left=k)
    assert clf.predict(queries).tolist() == [clf.classes_[int(s > 0)] for s in scores]


def test_the_kernel_may_be_a_function_that_gives_a_sparse_matrix():
    def sparsely(X, Y):
        assert X.flags.c_contiguous
        assert Y.flags.c_contiguous
        return csr_matrix(KERNEL(X, Y))

    clf, other = fitted(3, noise=0.1), paper(sparsely, scene(3)[2], noise=0.1)
    other.fit(*scene(3)[:2])
    K = both_tasks(clf)[3]
    assert (clf.support_, clf.rho_) == (other.support_, other.rho_)
    for question in "decision_function", "predict_variance":
        got, want = getattr(other, question)(X + 0.1), getattr(clf, question)(X + 0.1)
        assert_rounded(got, want, 4 * np.linalg.cond(K))
    assert_rounded(other.leave_one_out().scores, clf.leave_one_out().scores, 4 * np.linalg.cond(K))
    assert other.residual() <= 4 * np.finfo(float).eps


def test_the_second_class_is_the_positive_one():
    one = fitted()
    other = paper(KERNEL, SUPPORTS).fit(X, np.where(Y == "okapi", 1, 0))
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    # Renamed behind "background" in the alphabet, it still is; before it, it is not.
    assert one.relabel([0], ["zebra"]).support_ == other.support_
    assert one.classes_.tolist() == ["background", "zebra"]
    other = paper(KERNEL, SUPPORTS).fit(X, np.where(Y == "okapi", 0, 1))
    np.testing.assert_array_equal(
        one.relabel([0], ["ape"]).decision_function(X), other.decision_function(X)
    )


def assert_turned_round(one, other):
    """Is `one` what `other` is, but that its positive class is the first of the two?"""
    assert (one.support_, one.rho_, one.noise_) == (other.support_, other.rho_, other.noise_)
    assert tuple(one.ranking_) == tuple(other.ranking_)
    np.testing.assert_array_equal(one.decision_function(X), -other.decision_function(X))
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X)[:, ::-1])
    for groups in None, np.arange(len(one.ids_)) // 2:
        mine, theirs = one.leave_one_out(groups), other.leave_one_out(groups)
        np.testing.assert_array_equal(mine.scores, theirs.scores[:, ::-1])
        np.testing.assert_array_equal(mine.variance, theirs.variance)
    hits = one.predict(X) == one.classes_[0]
    np.testing.assert_array_equal(hits, other.predict(X) == other.classes_[1])
    assert one.residual() == other.residual()


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_class_is_positive_if_it_is_named_though_it_sorts_first(criterion):
    inputs, y, supports = scene(2)
    words = {"criterion": criterion, "noise": 0.01}
    labels = np.where(y == "okapi", "accordion", "background")
    one = paper(KERNEL, supports, name="accordion", **words).fit(inputs, labels)
    other = paper(KERNEL, supports, name="okapi", **words).fit(inputs, y)
    assert one.classes_.tolist() == ["accordion", "background"]
    assert_turned_round(one, other)
    # The support's examples count as examples of the named class.
    pooled = paper(KERNEL, supports, search=1.0, noise=1e-6, name="accordion")
    helped = pooled.fit(inputs, labels)
    assert (helped.predict(supports[helped.support_]) == "accordion").all()
    # So it stays after edits.
    for clf, name in (one, "accordion"), (other, "okapi"):
        clf.add(X[5:7] + 0.1, [name, "background"])
        clf.relabel([1], ["background"]).remove([9])
    assert_turned_round(one, other)


def test_a_name_that_is_no_label_leaves_the_second_class_positive():
    plain = paper(KERNEL, SUPPORTS).fit(X, Y)
    for name in "okapi", "Okapia johnstoni":
        named = paper(KERNEL, SUPPORTS, name=name).fit(X, Y)
        np.testing.assert_array_equal(named.decision_function(X), plain.decision_function(X))
    # A label that goes and comes with the edits, as for a fresh fit.
    named = paper(KERNEL, SUPPORTS, name="ape").fit(X, Y)
    want = paper(KERNEL, SUPPORTS, name="ape").fit(X, np.where(Y == "okapi", "ape", Y))
    named.relabel([0], ["ape"])
    np.testing.assert_array_equal(named.decision_function(X), want.decision_function(X))


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("search", ["grid", "golden"])
def test_every_criterion_and_search_can_be_asked_for(criterion, search):
    clf = fitted(4, criterion=criterion, search=search)
    values = [one.value for one in clf.ranking_]
    assert values == sorted(values, reverse=True)
    by_name = {support.name: one for support, one in clf.model_.candidates.items()}
    best = by_name[clf.ranking_[0].support]
    grid = CRITERIA[criterion](best.pair, np.array([0.0, clf.ranking_[0].rho]))
    # Rounding of a pass over all rho; there are two passes here.
    assert_rounded(values[0], grid[1], 8, abs(grid[1]))
    assert grid[1] >= grid[0]


def test_without_transfer_it_is_independent_learning():
    """Without supports, with rho = 0, and with supports that are no help."""
    plain = GPClassifier(KERNEL, noise=0.1).fit(X, Y)
    K, T, k = KERNEL(X) + 0.1 * np.eye(len(X)), plain.model_.targets.T, KERNEL(X, X + 0.1)
    for supports, search in [({}, "grid"), (SUPPORTS, 0.0), ({"far": X - 999}, "grid")]:
        clf = paper(KERNEL, supports, search=search, noise=0.1).fit(X, Y)
        assert (clf.support_, clf.rho_) == (None, 0.0)
        got, want = clf.model_.mean(X + 0.1), plain.model_.mean(X + 0.1)
        assert_solves(got, want, K, T, left=k)
        assert_rounded(clf.predict_proba(X), plain.predict_proba(X), 100 * np.linalg.cond(K))


@pytest.mark.parametrize("noise", ["adaptive", 0.0])
def test_with_rho_zero_it_is_as_without_supports(noise):
    """Even if they hold examples twice, or the target's."""
    supports = SUPPORTS | {"twins": X[[3, 3, 5]]}
    zero = paper(KERNEL, supports, search=0.0, noise=noise).fit(X, Y)
    none = paper(KERNEL, {}, noise=noise).fit(X, Y)
    for clf in zero, none:
        clf.add(X[:2] + 0.1, ["okapi", "background"])
    assert zero.noise_ == none.noise_ == 0
    assert tuple(zero.ranking_) == tuple(none.ranking_) == ()
    assert list(zero.supports_) == list(supports)
    np.testing.assert_array_equal(zero.decision_function(X), none.decision_function(X))
    np.testing.assert_array_equal(zero.leave_one_out().scores, none.leave_one_out().scores)


def test_a_fixed_rho_is_judged_by_itself():
    """An example of both tasks is no twin of itself if the tasks have but half in common."""
    supports = {"both": X[[3, 5]]}
    clf = paper(KERNEL, supports, search=0.5, noise=0.0).fit(X, Y)
    kernel, inputs, y, K = both_tasks(clf)
    q = np.insert(X + 0.1, 3, 0, axis=1)
    want = oracle.scores(kernel, 0.0, inputs, y, q)
    scores = clf.decision_function(X + 0.1)[:, None]
    assert_solves(scores, want, K, y, left=kernel(inputs, q))
    alike = {"both": X[[3, 5]] + ALIKE}
    assert paper(KERNEL, alike, search=0.5).fit(X, Y).noise_ == 0
    assert paper(KERNEL, alike).fit(X, Y).noise_ > 0
    with pytest.raises(NotPositiveDefinite, match=r"of the support 'both'.*Task\(rho=1\)"):
        paper(KERNEL, supports, noise=0.0).fit(X, Y)
    with pytest.raises(NotPositiveDefinite, match=r"at example \"1 of.*Task\(rho=0\.5\)"):
        paper(KERNEL, {"x": X[[3, 3]] + 9}, search=0.5, noise=0.0).fit(X, Y)


def test_with_rho_one_the_examples_are_pooled():
    clf = fitted(3, search=1.0, noise=0.1)
    assert clf.rho_ == 1.0
    S, held = clf.supports_[clf.support_], clf.model_.examples
    pooled = GPClassifier(KERNEL, noise=0.1).fit(
        np.vstack([held.X, S]), np.append(held.labels, ["okapi"] * len(S))
    )
    K = KERNEL(pooled.model_.examples.X) + 0.1 * np.eye(len(pooled.ids_))
    T, k = pooled.model_.targets.T, KERNEL(pooled.model_.examples.X, X)
    assert_solves(clf.model_.mean(X), pooled.model_.mean(X), K, T, left=k)


def test_the_ranking_is_shown_and_is_a_table():
    ranking = fitted().ranking_
    assert len(ranking) == 3
    head, first, *_ = lines = repr(ranking).splitlines()
    assert head.split() == ["support", "rho", "ap", "lpp"]
    assert first.startswith(f"{ranking[0].support:10}  {ranking[0].rho:.2f}")
    assert len({len(line) for line in lines}) == 1
    lines = repr(fitted(criterion="likelihood").ranking_).splitlines()
    assert lines[0].split()[2] == "likelihood"
    assert len({len(line) for line in lines}) == 1
    table = ranking.to_pandas()
    assert isinstance(table, pd.DataFrame)
    assert table.to_numpy().tolist() == [list(one) for one in ranking]
    assert table.columns.tolist() == ["support", "rho", "ap", "lpp"]
    assert fitted(criterion="lpp").ranking_.to_pandas().columns.tolist() == [
        "support",
        "rho",
        "lpp",
    ]
    with pytest.raises(AttributeError):
        ranking.rows = ()
    many = paper(KERNEL, {f"task {i}": X[:2] + i for i in range(12)}, noise=0.1)
    assert repr(many.fit(X, Y).ranking_).endswith("\n... and 2 more")


def test_probabilities_where_nothing_is_left_to_doubt():
    clf = fitted()
    assert clf.noise_ == 0
    sure = clf.predict_proba(X)
    np.testing.assert_array_equal(clf.classes_[sure.argmax(axis=1)], Y)
    clf = paper(DotProduct(0.0), {}).fit([[1.0], [-1.0]], [1, 0])
    assert clf.noise_ > 0
    assert clf.predict_proba([[0.0]]).tolist() == [[0.5, 0.5]]


# -- noise ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_noise_comes_and_goes_with_twins(scale):
    kernel = scale * RBF(1.5)
    clf = paper(kernel, SUPPORTS).fit(X, Y)
    assert clf.noise_ == 0
    (twin,) = clf.add(SUPPORTS["wrench"][3:4] + ALIKE, ["background"])
    assert_rounded(clf.noise_, LEVELS[1] * scale, 100)
    assert_equal_models(clf, batch(partial(paper, None, SUPPORTS), clf), X)
    clf.remove(twin)
    assert clf.noise_ == 0
    clf.add_support("twins", X[[3, 3, 5]] + ALIKE)
    assert_rounded(clf.noise_, LEVELS[1] * scale, 100)
    assert clf.remove_support("twins").noise_ == 0


@pytest.mark.parametrize("seed", range(4))
def test_what_can_only_just_be_factorised_is_given_noise(seed):
    """So smooth a kernel leaves rounding alone to say if zero will do, in any order of rows."""
    rng = np.random.default_rng(seed)
    inputs, supports = rng.normal(size=(16, 2)), {"one": rng.normal(size=(8, 2))}
    make = partial(paper, None, supports)
    clf = make().set_params(kernel=RBF(4.0)).fit(inputs, np.arange(16) < 2)
    for _ in range(4):
        added = clf.add(rng.normal(size=(2, 2)), [False, False])
        clf.predict(inputs)
        clf.remove(added[:1])
        assert_equal_models(clf, batch(make, clf), inputs + 0.1)
    assert_rounded(clf.noise_, LEVELS[1])


@pytest.mark.parametrize("row", [0, 3])
def test_a_support_holds_no_example_if_the_noise_is_to_be_chosen(row):
    label = Y[row]
    said = (
        f"Example {row}, labelled {str(label)!r}, has the same features as example 2 of the "
        f"support 'both'. Remove it from the support, or set noise to a number if different things "
        f"may look the same. Nothing was changed."
    )
    both = {"both": np.vstack([SUPPORTS["wrench"][:2], X[[row]]])}
    with pytest.raises(InvalidInput) as caught:
        paper(KERNEL, both).fit(X, Y)
    assert str(caught.value) == said
    clf = fitted()
    before = clf.decision_function(X)
    with pytest.raises(InvalidInput) as caught:
        clf.add_support("both", both["both"])
    assert str(caught.value) == said
    for verb in (
        lambda: clf.add(SUPPORTS["wrench"][3:5], [label, label]),
        lambda: clf.replace([row], SUPPORTS["wrench"][4:5]),
    ):
        with pytest.raises(InvalidInput, match=r"as example [34] of the support 'wrench'"):
            verb()
    np.testing.assert_array_equal(clf.decision_function(X), before)
    # With a noise of one's own, or without transfer, it is as good as any.
    assert paper(KERNEL, both, noise=0.1).fit(X, Y).noise_ == 0.1
    assert paper(KERNEL, both, search=0.0).fit(X, Y).rho_ == 0


def test_an_example_that_was_removed_may_join_a_support():
    clf = fitted().remove([3])
    assert "more" in clf.add_support("more", X[[3, 3]] + [[0.0], [0.1]]).supports_
    with pytest.raises(InvalidInput, match="as example 0 of the support 'more'"):
        clf.add(X[[3]], ["background"])
    clf.remove_support("more").add(X[[3]], ["background"])


def test_without_noise_twins_are_refused():
    clf = fitted(noise=0)
    before = clf.decision_function(X)
    said = (
        "The covariance matrix is not positive definite at example \"3 of the support 'wrench'\". "
        "Example 31 is nearest to it (correlation 1). Either (a) the two are duplicates: remove "
        "one of them, or set noise above zero; or (b) noise=0 is too small for so smooth a kernel: "
        "raise it; or (c) the kernel RBF(length_scale=1.5) * Task(rho=1) is not positive definite: "
    )
    with pytest.raises(NotPositiveDefinite) as caught:
        clf.add(SUPPORTS["wrench"][3:4], ["background"])
    assert said in str(caught.value)
    own = r"example \"2 of .* Example \"0 of the support 'twins'\" has exactly the same features"
    with pytest.raises(NotPositiveDefinite, match=own):
        clf.add_support("twins", SUPPORTS["wrench"][[0, 1, 0]] + 0.5)
    with pytest.raises(NotPositiveDefinite, match="Example 5 has exactly the same features"):
        clf.add(X[5:6], ["background"])
    assert len(clf.ids_) == 31
    assert list(clf.supports_) == list(SUPPORTS)
    np.testing.assert_array_equal(clf.decision_function(X), before)
    with pytest.raises(NotPositiveDefinite, match=r"Task\(rho=1\)"):
        paper(KERNEL, {"same": X[:1]}, noise=0.0).fit(X, Y)


def test_a_kernel_that_no_noise_mends():
    def kernel(X, Y):
        return 1 - 5 * (X != Y.T)

    clf = paper(kernel, {})
    with pytest.raises(NotPositiveDefinite, match="even if the noise is the examples'"):
        clf.fit([[0.0], [1.0]], [0, 1])
    assert not clf.__sklearn_is_fitted__()


def test_a_kernel_that_is_zero_on_all_examples():
    clf = paper(DotProduct(0.0), {})
    with pytest.raises(NotPositiveDefinite, match=r"variance, 0\. The kernel gives no variance"):
        clf.fit([[0.0], [0.0]], [0, 1])
    assert not clf.__sklearn_is_fitted__()


# -- living --------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["adaptive", 0.1])
def test_a_history_of_examples_and_supports_is_the_fit_of_what_is_left(noise):
    clf, rng = fitted(2, noise=noise), np.random.default_rng(3)
    clf.add_support("cougar", rng.normal(size=(8, 3)) + 0.7)
    clf.add(rng.normal(size=(4, 3)), ["okapi", "background", "background", "okapi"])
    clf.remove_support("wrench").remove([0, 7])
    assert clf.support_ in clf.supports_
    clf.replace([5], rng.normal(size=(1, 3)), ["okapi"]).relabel([1], ["background"])
    clf.add_support("wrench", SUPPORTS["wrench"] + 0.1).add_support("crab", SUPPORTS["wrench"][:3])
    assert list(clf.supports_) == ["gerenuk", "water lily", "cougar", "wrench", "crab"]
    make = partial(paper, None, clf.supports_, noise=noise)
    assert_equal_models(clf, batch(make, clf), X)


def test_what_is_chosen_changes_with_the_examples():
    clf = fitted(criterion="lpp", noise=0.1)
    first = clf.support_
    assert clf.remove_support(first).support_ != first
    ids = clf.add(SUPPORTS["wrench"] + 0.3 * X[:9], ["okapi"] * 9)
    assert clf.remove([0]).support_ == "wrench"
    clf.add(X[:1], ["okapi"])
    assert clf.remove(ids).support_ != "wrench"


class Factorisations:
    """Counts LAPACK's Cholesky factorisations."""

    def __init__(self, monkeypatch):
        self.sizes, plain = [], cholesky._potrf["d"]

        def counted(A, **words):
            self.sizes.append(len(A))
            return plain(A, **words)

        monkeypatch.setitem(cholesky._potrf, "d", counted)


def test_one_more_support_costs_that_task_alone(monkeypatch):
    clf = fitted(noise=0.1)
    ranking, before = clf.ranking_, clf.model_
    done = Factorisations(monkeypatch)
    clf.add_support("crab", SUPPORTS["wrench"][:4] + 2)
    assert len(clf.ranking_) == 4
    assert done.sizes == [4]
    assert [*clf.model_.candidates.values()][:3] == [*before.candidates.values()]
    assert all(one in tuple(clf.ranking_) for one in ranking)
    assert len(clf.remove_support("gerenuk").ranking_) == 3
    assert done.sizes == [4]
    assert [*clf.model_.candidates.values()][:2] == [*before.candidates.values()][1:]
    clf.predict(X)
    # The model that answers appends the chosen support to the target.
    assert done.sizes == [4, chosen_size(clf)]


def chosen_size(clf):
    return len(clf.supports_[clf.support_])


@pytest.mark.parametrize("noise", ["adaptive", 0.1])
def test_the_factors_of_supports_outlive_edits(monkeypatch, noise):
    clf = fitted(noise=noise)
    held = [one.pair.support for one in clf.model_.candidates.values()]
    done = Factorisations(monkeypatch)
    clf.add(X[:2] + 0.1, ["okapi", "background"])
    clf.relabel([4], ["okapi"]).remove([5]).predict(X)
    assert [one.pair.support for one in clf.model_.candidates.values()] == held
    if noise == 0.1:
        # Two rows, and the chosen support's rows: the rest is an update.
        assert done.sizes == [2, chosen_size(clf)]
    pairs = [one.pair.T for one in clf.model_.candidates.values()]
    done.sizes.clear()
    clf.relabel([4], ["background"]).predict(X)
    assert [one.pair.T for one in clf.model_.candidates.values()] == pairs
    assert done.sizes == [chosen_size(clf)] or noise == "adaptive"


def test_edits_wait_for_a_question(monkeypatch):
    clf = fitted()
    done = Factorisations(monkeypatch)
    clf.add(X[:3] + 0.1, ["okapi"] * 3)
    clf.remove([3]).relabel([6], ["okapi"])
    assert done.sizes == []
    assert clf.leave_one_out().scores.shape == (33, 2)
    assert done.sizes


def test_kernel_values_are_evaluated_once():
    asked = []

    def kernel(X, Y):
        asked.append((len(X), len(Y)))
        return KERNEL(X, Y)

    clf = paper(kernel, SUPPORTS, noise=0.1).fit(X, Y)
    asked.clear()
    clf.add(X[:1] + 0.1, ["okapi"])
    crossed = [shape for shape in asked if shape != (1, 1)]
    assert sorted(crossed) == [(1, 9), (1, 12), (1, 15), (31, 1)]


def supports_around(x, rng):
    """Three supports, each of a few examples near x or far from it."""
    shapes = [(rng.integers(1, 6), len(x)) for _ in "abc"]
    return {
        name: x + rng.choice([0.1, 1, 3]) * rng.normal(size=shape)
        for name, shape in zip("abc", shapes, strict=True)
    }


@pytest.mark.slow(fast=8)
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("seed", [0, 17, 22, 29])
def test_equal_examples_leave_the_choice_to_a_rule_and_not_to_rounding(seed, criterion):
    """Many a rho is as good but for rounding, which a history and a refit do not share."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rng.integers(1, 5))
    fit = partial(paper, KERNEL, supports_around(x, rng), criterion)
    clf = fit().fit([x, x], ["no", "yes"])
    for step in range(8):
        clf.add([x, x], ["no", rng.choice(["no", "yes"])])
        if step % 2:
            clf.remove(rng.choice(clf.ids_[clf.model_.examples.labels == "no"]))
        held = clf.model_.examples
        refit = fit().fit(held.X, held.labels)
        assert (clf.support_, clf.rho_) == (refit.support_, refit.rho_)


def test_models_of_the_same_supports_merge():
    clf, other = fitted(2), paper(KERNEL, SUPPORTS).fit(X + 0.1, Y, range(100, 131))
    clf.remove_support("wrench")
    other.remove_support("wrench").add_support("wrench", SUPPORTS["wrench"])
    with pytest.raises(KnowmoreError, match="differ in supports"):
        clf.merge(other)
    _, _, supports = scene(2)
    clf = paper(KERNEL, SUPPORTS).fit(X, Y)
    with pytest.raises(KnowmoreError, match=r"differ in supports: \{'gerenuk': '12 examples"):
        clf.merge(paper(KERNEL, supports).fit(X + 0.1, Y, range(100, 131)))
    for parameters, words in (
        ({"criterion": "auc"}, "criterion: 'ap' here, 'auc' there"),
        ({"search": 0.5}, "search: 'grid' here, 0.5 there"),
        ({"noise": 0.1}, "noise: 'adaptive' here, 0.1 there"),
        ({"name": "okapi"}, "name: None here, 'okapi' there"),
    ):
        unlike = paper(KERNEL, SUPPORTS, **parameters).fit(X + 0.1, Y, range(100, 131))
        with pytest.raises(KnowmoreError, match=f"^The two models differ in {words}"):
            clf.merge(unlike)
    assert len(clf.ids_) == 31
    clf.merge(paper(KERNEL, SUPPORTS).fit(X + 0.1, Y, range(100, 131)))
    assert_equal_models(clf, batch(partial(paper, None, SUPPORTS), clf), X)


def test_supports_are_neither_changed_nor_kept():
    given = {name: S.copy() for name, S in SUPPORTS.items()}
    clf = paper(KERNEL, given).fit(X, Y)
    extra = X[:4] + 2
    clf.add_support("extra", extra)
    before = clf.decision_function(X)
    for S in (*given.values(), extra):
        S[:] = 0
    clf.relabel([3], ["background"])
    np.testing.assert_array_equal(clf.decision_function(X), before)
    with pytest.raises(ValueError, match="read-only"):
        clf.supports_["extra"][0] = 1


def test_threads_lose_neither_examples_nor_supports():
    clf = fitted(noise=0.1)
    rng = np.random.default_rng(0)
    tasks = {f"task {i}": rng.normal(size=(3, 3)) for i in range(12)}

    def work(item):
        clf.add_support(*item)
        clf.add(item[1][:1] + 0.1, ["background"], [item[0]])
        return clf.predict(X)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, tasks.items()))
    assert set(clf.supports_) == {*SUPPORTS, *tasks}
    assert set(tasks) <= set(clf.ids_.tolist())
    make = partial(paper, None, clf.supports_, noise=0.1)
    assert_equal_models(clf, batch(make, clf), X)


def test_a_support_is_built_on_the_model_that_is_there():
    """Another thread fits anew, with another kernel and width, while one is being added."""
    refits = [(RBF(0.7), X[:, :2])]

    def kernel(A, B):
        if refits and len(B) == 4:
            other, inputs = refits.pop()
            clf.set_params(kernel=other, supports={}).fit(inputs, Y)
        return KERNEL(A, B)

    clf = paper(kernel, {}, noise=0.1).fit(X, Y)
    with pytest.raises(KnowmoreError, match="X has 3 features, but OneShotClassifier is expecting"):
        clf.add_support("late", X[:4] + 0.5)
    assert clf.supports_ == {}
    refits.append((RBF(0.7), X))
    clf.set_params(kernel=kernel).fit(X, Y)
    clf.add_support("late", X[:4] + 0.5)
    assert refits == []
    (late,) = clf.model_.supports
    np.testing.assert_array_equal(late.K, corner(RBF(0.7), X[:4] + 0.5))


def test_a_pickle_holds_nothing_of_a_support_that_was_removed():
    clf = fitted()
    secret = SUPPORTS["wrench"]
    assert secret.tobytes() in pickle.dumps(clf)
    clf.remove_support("wrench").add_support("crab", X[:3] - 2)
    assert secret.tobytes() not in pickle.dumps(clf)
    for copy in pickle.loads(pickle.dumps(clf)), deepcopy(clf):
        assert list(copy.supports) == list(copy.supports_) == list(clf.supports_)
        np.testing.assert_array_equal(copy.decision_function(X), clf.decision_function(X))
        # What a pickle holds is what another fit begins with.
        again = copy.fit(X, Y)
        np.testing.assert_array_equal(again.decision_function(X), clf.decision_function(X))
    # A new support under the old name brings nothing of the old one back.
    clf.add_support("wrench", secret + 1)
    assert secret.tobytes() not in pickle.dumps(clf)
    # What the user gave is the user's.
    assert list(clf.supports) == list(SUPPORTS)
    assert list(pickle.loads(pickle.dumps(clone(clf))).supports) == list(SUPPORTS)


def test_a_pickle_holds_nothing_of_a_name_that_a_class_had():
    clf, name = fitted(noise=0.1), "okapi".encode("utf-32-le")
    assert clf.ranking_
    assert name in pickle.dumps(clf)
    assert clf.relabel([0], ["zebra"]).ranking_
    assert name not in pickle.dumps(clf)


def test_it_is_cloned_pickled_and_cross_validated():
    clf = fitted(6).add_support("crab", X[:3] - 2)
    copy = pickle.loads(pickle.dumps(clf))
    assert list(copy.supports_) == list(clf.supports_)
    np.testing.assert_array_equal(copy.decision_function(X), clf.decision_function(X))
    fresh = clone(clf)
    assert not fresh.__sklearn_is_fitted__()
    inputs, labels, _ = scene(6)
    score = cross_val_score(fresh, inputs, labels == "okapi", cv=3, scoring="average_precision")
    # By chance it would be the part of positives.
    assert score.mean() > 6 / 36


def test_tables_bring_their_names():
    columns = ["a", "b", "c"]
    supports = {name: pd.DataFrame(S, columns=columns) for name, S in SUPPORTS.items()}
    clf = paper(KERNEL, supports).fit(pd.DataFrame(X, columns=columns), Y)
    assert clf.support_ == fitted().support_
    with pytest.raises(KnowmoreError, match="The support 'x' cannot be used: The feature names"):
        clf.add_support("x", pd.DataFrame(X, columns=["a", "b", "d"]))


def test_supports_in_arrays_beside_a_table():
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    clf = paper(KERNEL, SUPPORTS).fit(table, Y)
    clf.add_support("x", (X[:4] + 0.3).tolist())
    plain = fitted().add_support("x", X[:4] + 0.3)
    assert clf.support_ == plain.support_
    for name, S in plain.supports_.items():
        np.testing.assert_array_equal(clf.supports_[name], S)
    with pytest.raises(KnowmoreError, match="The support 'y' cannot be used: X has 2 features"):
        clf.add_support("y", X[:, :2])


# -- names ---------------------------------------------------------------------------------------


def test_names_leave_some_supports_to_choose_from():
    clf = preselecting(1)
    assert {one.support for one in clf.ranking_} == {"wrench", "water lily"}
    assert list(clf.supports_) == list(SUPPORTS)
    alone = paper(KERNEL, {k: v for k, v in SUPPORTS.items() if k != "gerenuk"})
    alone.fit(X, Y)
    assert clf.support_ == alone.support_
    np.testing.assert_array_equal(clf.decision_function(X), alone.decision_function(X))
    # A support that fits better takes the place of one that did.
    clf.add_support("horses", X[:4] + 0.2)
    assert {one.support for one in clf.ranking_} == {"horses", "water lily"}
    clf.remove_support("horses")
    assert {one.support for one in clf.ranking_} == {"wrench", "water lily"}
    clf.add(X[:1] + 0.1, ["okapi"])
    assert len(clf.ranking_) == 2
    assert len(preselecting(3).ranking_) == 3


def test_parameters_count_from_the_next_fit_on():
    clf = preselecting(1)
    clf.set_params(preselect=3, semantics=None, name="crab", unknown="raise", criterion="lpp")
    clf.set_params(search=0.0, noise=7.0)
    clf.add_support("crab", X[:4] + 2).remove_support("gerenuk")
    clf.add(X[:1] + 0.1, ["okapi"])
    want = preselecting(1).add_support("crab", X[:4] + 2).remove_support("gerenuk")
    want.add(X[:1] + 0.1, ["okapi"])
    assert tuple(clf.ranking_) == tuple(want.ranking_)
    assert clf.ranking_.criterion == "ap"
    assert clf.noise_ == want.noise_
    with pytest.raises(KnowmoreError, match="preselect=3 compares names"):
        clf.fit(X, Y)


def test_names_that_are_not_known_are_an_error_if_asked_so():
    with pytest.raises(KnowmoreError, match="water lily has a blank"):
        preselecting(1, unknown="raise")


def test_a_support_that_is_not_preselected_needs_no_noise():
    clf = preselecting(1)
    clf.add_support("quite long a name without hope".replace(" ", "-"), X[[3, 3]])
    assert clf.noise_ == 0
