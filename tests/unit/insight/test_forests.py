"""Questions to forests: answers equal one Gaussian process, or a loop over the leaves."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import oracle
import pandas as pd
import pytest
import trees_oracle
from scipy.special import expit, log_ndtr
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tolerance import ITERATED, SEARCHED, assert_rounded, close

from knowmore import (
    ForestGPClassifier,
    ForestGPRegressor,
    GPClassifier,
    GPRegressor,
    KnowmoreError,
    living,
)
from knowmore.errors import InvalidInput, InvalidType, NoExamples
from knowmore.insight import (
    LearningCurveDisplay,
    ScoreFieldDisplay,
    SuggestQuery,
    calibrate,
    due,
    explain,
    novelty,
    reliability,
    suggest,
    suspects,
    transfer,
    tune,
)
from knowmore.models.probabilities import best_temperature, mislabelling

KERNEL, NOISE, CAPACITY, TREES = RBF(1.0), 0.1, 15, 3
rng = np.random.default_rng(0)
N = 150
X = rng.normal(size=(N, 2))
# A class in one corner is absent from most leaves; some labels are wrong.
Y = np.where((X > 0.8).all(axis=1), "corner", np.where(X[:, 0] < 0, "left", "right"))
Y[[3, 40]] = np.where(Y[[3, 40]] == "left", "right", "left")
VALUES = np.column_stack([np.sin(2 * X[:, 0]), 10 + X[:, 1] ** 2])
WEIGHTS = rng.choice([0.0, 0.5, 1.0, 2.0], N)
POOL = rng.normal(size=(40, 2)) * 1.5
CLASSES = np.unique(Y)
# The condition of a leaf is at most its size times max w / noise + 1.
ROUNDINGS = 4 * CAPACITY * 2 / NOISE


def classifier(n_trees=TREES, capacity=CAPACITY):
    return ForestGPClassifier(KERNEL, NOISE, capacity=capacity, n_trees=n_trees)


def regressor(n_trees=TREES, capacity=CAPACITY):
    return ForestGPRegressor(KERNEL, NOISE, capacity=capacity, n_trees=n_trees)


def leaves(number):
    """A tree by number and its leaves: rows in ascending order, without rows of weight zero."""
    counted = {i: X[i].tolist() for i in np.flatnonzero(WEIGHTS).tolist()}
    tree = trees_oracle.grown(counted, CAPACITY, 0, number)
    return tree, [sorted(leaf) for leaf in trees_oracle.leaves(tree)]


def leaf_of(tree, x):
    return np.array(sorted(trees_oracle.leaf_of(tree, x.tolist())))


def process(rows, x, more=(), labels=()):
    """Scores (M,) and the variance of x by a leaf of these rows, and of rows of the pool picked."""
    T = trees_oracle.targets([*Y[rows], *labels], CLASSES)
    noises = np.append(NOISE / WEIGHTS[rows], np.full(len(more), NOISE))
    held = np.vstack([X[rows], POOL[list(more)]])
    if not len(held):
        return np.zeros(len(CLASSES)), 1 + NOISE
    K, k = oracle.covariance(KERNEL, held, noises), KERNEL(held, x[None])[:, 0]
    return k @ np.linalg.solve(K, T), 1 + NOISE - k @ np.linalg.solve(K, k)


def left_out():
    """Scores (n, M) and variances (n,) of the examples that count, as new rows, by the others; and
    what is said of them by those of each class, (n, M)."""
    counted = np.flatnonzero(WEIGHTS)
    scores, variance, class_support = (
        np.zeros((N, len(CLASSES))),
        np.zeros(N),
        np.zeros((N, len(CLASSES))),
    )
    for number in range(TREES):
        for leaf in leaves(number)[1]:
            for i in leaf:
                others = np.array([j for j in leaf if j != i], dtype=int)
                one, own = process(others, X[i])
                class_support[i] += said_by(others, X[i]) / TREES
                scores[i] += one / TREES
                variance[i] += own / TREES
    return counted, scores[counted], variance[counted], class_support[counted]


def said_by(rows, x):
    """Support (M,) of x by the examples of each class among these rows."""
    if not len(rows):
        return np.zeros(len(CLASSES))
    K, k = oracle.covariance(KERNEL, X[rows], NOISE / WEIGHTS[rows]), KERNEL(X[rows], x[None])[:, 0]
    return k @ np.linalg.solve(K, (Y[rows][:, None] == CLASSES).astype(float))


@pytest.fixture(scope="module")
def told():
    """A forest of several leaves, and what a loop over them says of each example left out."""
    return classifier().fit(X, Y, sample_weight=WEIGHTS), *left_out()


# -- one leaf --------------------------------------------------------------------------------------

ONE_LEAF = 4 * N * 2 / NOISE


@pytest.fixture(scope="module", params=[1, 2])
def single(request):
    """A forest of a single leaf, and the Gaussian process that it is."""
    forest = classifier(request.param, N).fit(X, Y, sample_weight=WEIGHTS)
    return forest, GPClassifier(KERNEL, NOISE).fit(X, Y, sample_weight=WEIGHTS)


def test_with_a_single_leaf_labels_are_suspect_as_for_the_gaussian_process(single):
    got, want = map(suspects, single)
    assert len(want.ids) > 1
    assert sorted(got.ids.tolist()) == sorted(want.ids.tolist())
    # Of the Gaussian process a sceptic is asked, too, which may change the order.
    got = got.part([got.ids.tolist().index(one) for one in want.ids.tolist()])
    assert got.ids.tolist() == want.ids.tolist()
    assert got.rows.tolist() == want.rows.tolist()
    assert got.preferred.tolist() == want.preferred.tolist()
    assert got.contradicting == want.contradicting
    assert got.silent.tolist() == want.silent.tolist()
    for name in ("margin", "scores", "variance", "probabilities"):
        assert_rounded(getattr(got, name), getattr(want, name), ONE_LEAF)
    # The sceptic can only take doubts away.
    assert (got.doubts >= want.doubts - ONE_LEAF * np.finfo(float).eps).all()
    tables = (one.to_pandas().drop(columns="doubt") for one in (got, want))
    pd.testing.assert_frame_equal(*tables)


@pytest.mark.parametrize("method", ["variance", "probability"])
def test_with_a_single_leaf_rows_are_as_new_as_for_the_gaussian_process(single, method):
    got, want = (novelty(each, POOL, method) for each in single)
    assert_rounded(got.values, want.values, ONE_LEAF)
    assert_rounded(got.left_out, want.left_out, ONE_LEAF)
    assert_rounded(got.threshold(0.9), want.threshold(0.9), ONE_LEAF)
    assert got.unknown(0.9).tolist() == want.unknown(0.9).tolist()
    assert got.to_pandas().columns.tolist() == want.to_pandas().columns.tolist()


@pytest.mark.parametrize("criterion", ["variance", "margin", "random"])
def test_with_a_single_leaf_the_same_rows_are_to_be_labelled(single, criterion):
    got, want = (suggest(each, POOL, 8, criterion, random_state=1) for each in single)
    assert got.indices.tolist() == want.indices.tolist()
    assert got.reasons == want.reasons
    assert_rounded(got.values, want.values, ONE_LEAF)


def test_a_forest_of_one_class_asks_for_what_it_knows_least():
    forest = classifier().fit(X, np.full(len(X), "only"))
    found = suggest(forest, POOL, 3)
    assert found.criterion == "variance"
    assert found.indices[0] == forest.predict_variance(POOL).argmax()


def test_with_a_single_leaf_probabilities_are_calibrated_as_for_the_gaussian_process(single):
    got, want = map(calibrate, single)
    # The temperature is the root of a slope: found to 2e-12, SciPy's default.
    assert got.temperature == close(want.temperature, SEARCHED)
    before, after = map(reliability, single)
    assert_rounded(before.confidence, after.confidence, ONE_LEAF)
    assert before.count.tolist() == after.count.tolist()
    assert reliability(got).count.sum() == np.count_nonzero(WEIGHTS)


@pytest.mark.parametrize("label", [None, *CLASSES])
def test_with_a_single_leaf_a_score_is_explained_as_that_of_the_gaussian_process(single, label):
    got, want = (explain(each, POOL[0], label) for each in single)
    assert got.label == want.label
    assert got.ids.tolist() == want.ids.tolist()
    assert got.labels.tolist() == want.labels.tolist()
    assert got.offset == want.offset == 0
    for name in ("score", "contributions", "score_without"):
        assert_rounded(getattr(got, name), getattr(want, name), ONE_LEAF)


@pytest.mark.parametrize("Z", [VALUES[:, 0], VALUES], ids=["one", "two"])
def test_with_a_single_leaf_values_are_asked_about_as_for_the_gaussian_process(Z):
    forest = regressor(2, N).fit(X, Z, sample_weight=WEIGHTS)
    gp = GPRegressor(KERNEL, NOISE).fit(X, Z, sample_weight=WEIGHTS)
    label = None if Z.ndim == 1 else 1
    got, want = (explain(each, POOL[0], label) for each in (forest, gp))
    assert got.ids.tolist() == want.ids.tolist()
    assert got.labels.tolist() == want.labels.tolist()
    for name in ("score", "offset", "contributions", "score_without"):
        scale = abs(Z).max()
        assert_rounded(getattr(got, name), getattr(want, name), ONE_LEAF, scale)
    got, want = (novelty(each, POOL, "variance") for each in (forest, gp))
    assert_rounded(got.values, want.values, ONE_LEAF)
    assert_rounded(got.left_out, want.left_out, ONE_LEAF)
    got, want = (suggest(each, POOL, 6, "variance") for each in (forest, gp))
    assert got.indices.tolist() == want.indices.tolist()
    assert_rounded(got.values, want.values, ONE_LEAF)


# -- several leaves --------------------------------------------------------------------------------


def test_suspects_are_those_that_the_others_in_their_leaves_contradict(told):
    forest, counted, scores, variance, class_support = told
    found, rows = suspects(forest), np.arange(len(counted))
    assert_rounded(found.scores, scores, ROUNDINGS)
    assert_rounded(found.variance, variance, ROUNDINGS)
    codes = np.searchsorted(CLASSES, Y[counted])
    margin = scores.max(axis=1) - scores[rows, codes]
    order = found.rows.tolist()
    logs = oracle.moderated(oracle.completed(scores, class_support, codes), variance)
    odds = mislabelling(logs, codes).odds(logs, codes)
    assert np.isclose(found.doubts, expit(odds), rtol=ITERATED).all()
    assert order == [i for i in np.argsort(-odds) if expit(odds[i]) >= 0.2 and margin[i] > 0]
    assert found.ids.tolist() == counted[order].tolist()
    assert found.preferred.tolist() == CLASSES[scores[order].argmax(axis=1)].tolist()
    assert_rounded(found.margin, margin[order], ROUNDINGS, 1.0)
    first = counted[np.argsort(-found.doubts)[:2]]
    assert {3, 40} & set(counted.tolist()) <= set(first.tolist())


def test_those_contradict_a_label_that_contribute_most_to_its_margin_over_all_trees(told):
    forest, *_ = told
    found = suspects(forest)
    assert max(map(len, found.contradicting)) == 3
    for s, own, other, named in zip(
        found.ids, found.labels, found.preferred, found.contradicting, strict=True
    ):
        total = np.zeros(N)
        for number in range(TREES):
            (leaf,) = (leaf for leaf in leaves(number)[1] if s in leaf)
            others = [i for i in leaf if i != s]
            T = trees_oracle.targets(Y[others], [other, own])
            K = oracle.covariance(KERNEL, X[others], NOISE / WEIGHTS[others])
            a = np.linalg.solve(K, T @ [1.0, -1.0])
            total[others] += a * KERNEL(X[others], X[[s]])[:, 0]
        total[other != Y] = 0
        strongest = np.argsort(-total, kind="stable")[:3]
        assert named == tuple(i for i in strongest if total[i] > 0)


def test_duplicates_are_found_in_all_leaves():
    twice = np.vstack([X, X[:2], X[:1]])
    forest = classifier().fit(twice, [*Y, Y[0], "corner", "other"])
    assert suspects(forest).duplicates == ((0, N, N + 2), (1, N + 1))


@pytest.mark.parametrize("method", ["variance", "probability"])
def test_novelty_is_measured_against_the_examples_left_out_of_their_leaves(told, method):
    forest, _, scores, variance, _ = told
    found = novelty(forest, POOL, method)

    def value(mean, variance):
        best = mean.max(axis=-1)
        chance = log_ndtr(-best / np.sqrt(variance))
        return {"variance": variance, "probability": chance}[method]

    trees = [leaves(number)[0] for number in range(TREES)]
    each = [[process(leaf_of(tree, x), x) for tree in trees] for x in POOL]
    mean = np.array([np.mean([one for one, _ in parts], axis=0) for parts in each])
    spread = np.array([np.mean([one for _, one in parts]) for parts in each])
    assert_rounded(found.values, value(mean, spread), ROUNDINGS)
    usual = value(scores, variance)
    assert_rounded(found.left_out, usual, ROUNDINGS)
    threshold = np.quantile(usual, 0.9)
    assert_rounded(found.threshold(0.9), threshold, ROUNDINGS)
    assert found.unknown(0.9).tolist() == (value(mean, spread) > threshold).tolist()


@pytest.mark.parametrize("method", ["variance", "probability"])
def test_groups_are_left_out_of_their_leaves_together(method):
    rng = np.random.default_rng(0)
    x, labels, groups = rng.normal(size=(60, 2)), np.arange(60) % 3, rng.integers(0, 20, 60)
    forest = classifier(2, 10).fit(x, labels)
    left, found = forest.leave_one_out(groups), novelty(forest, x[:1], method, groups=groups)
    chance = log_ndtr(-left.scores.max(axis=1) / np.sqrt(left.variance))
    assert_rounded(found.left_out, {"variance": left.variance, "probability": chance}[method])
    pair = classifier(1, 60).fit(x, labels), GPClassifier(KERNEL, NOISE).fit(x, labels)
    one, other = (novelty(each, x[:1], method, groups=groups).left_out for each in pair)
    assert_rounded(one, other, ROUNDINGS)


def test_the_only_example_of_a_class_takes_it_with_it_but_not_one_that_is_alone_in_its_leaf():
    x = np.linspace(0, 10, 60)[:, None]
    labels = np.array(["low"] * 30 + ["high"] * 29 + ["only"])
    labels[5] = "high"
    forest = classifier(2, 10).fit(x, labels)
    left, found = forest.leave_one_out(), novelty(forest, x[:1], "probability")
    scores = left.scores.copy()
    scores[59, 2] = -np.inf
    deviation = np.sqrt(left.variance)
    assert_rounded(found.left_out, log_ndtr(-scores.max(axis=1) / deviation), ROUNDINGS)
    assert log_ndtr(-left.scores.max(axis=1)[5] / deviation[5]) == found.left_out[5]


def test_calibration_is_by_the_examples_left_out_of_their_leaves(told):
    forest, counted, scores, variance, class_support = told
    codes = np.searchsorted(CLASSES, Y[counted])
    logs = oracle.moderated(oracle.completed(scores, class_support, codes), variance)
    want = best_temperature(logs, codes)
    assert forest.temperature_ == close(want, SEARCHED)
    raw = copy.copy(forest).set_params(probability="raw")
    calibrated = calibrate(raw)
    assert calibrated.temperature == forest.temperature_
    powers = raw.predict_proba(POOL) ** (1 / want)
    assert_rounded(
        calibrated.predict_proba(POOL), powers / powers.sum(axis=1, keepdims=True), ROUNDINGS
    )
    P = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    found = reliability(raw, bins=1)
    assert_rounded(found.confidence, [P.max(axis=1).mean()], ROUNDINGS)
    assert found.accuracy[0] == (P.argmax(axis=1) == codes).mean()


def test_calibration_follows_edits_of_the_forest():
    forest = classifier().fit(X, Y)
    calibrated = calibrate(forest)
    before = calibrated.temperature
    assert pickle.loads(pickle.dumps(calibrated)).temperature == before
    forest.relabel(range(30), Y[:30][::-1])
    fresh = calibrate(classifier().fit(X, [*Y[:30][::-1], *Y[30:]]))
    assert calibrated.temperature == close(fresh.temperature, SEARCHED)
    assert calibrated.temperature != before


@pytest.mark.parametrize("criterion", ["variance", "margin"])
def test_a_pick_joins_a_leaf_of_each_tree_under_its_most_plausible_label(told, criterion):
    forest, *_ = told
    found = suggest(forest, POOL, 10, criterion)
    trees = [leaves(number)[0] for number in range(TREES)]
    homes = [[leaf_of(tree, x) for x in POOL] for tree in trees]
    picked, labels = [], []
    for index, value in zip(found.indices, found.values, strict=True):
        mean, variance = np.zeros((len(POOL), len(CLASSES))), np.zeros(len(POOL))
        for home in homes:
            for j, x in enumerate(POOL):
                near = [i for i, p in enumerate(picked) if np.array_equal(home[p], home[j])]
                more, said = [picked[i] for i in near], [labels[i] for i in near]
                one, own = process(home[j], x, more, said)
                mean[j] += one / TREES
                variance[j] += own / TREES
        deviation = np.sqrt(variance)
        second, first = np.sort(mean, axis=1)[:, -2:].T
        values = {
            "variance": variance,
            "margin": (second - first) / deviation,
        }[criterion]
        values[picked] = -np.inf
        assert index == values.argmax()
        assert_rounded(value, values[index], ROUNDINGS, 1.0)
        picked.append(index)
        labels.append(CLASSES[mean[index].argmax()])
    # Some picks share a leaf, so that one changed the value of another.
    assert any(len({tuple(home[p]) for p in picked}) < len(picked) for home in homes)


def test_a_forest_of_values_picks_by_its_variance_and_what_the_trees_disagree_on():
    forest = regressor().fit(X, VALUES)
    found = suggest(forest, POOL, 2, "variance")
    variance = forest.predict_variance(POOL).mean(axis=1)
    assert found.indices[0] == variance.argmax()
    assert_rounded(found.values[0], variance.max(), ROUNDINGS)
    assert SuggestQuery("variance").query(X, VALUES[:, 0], forest, False, POOL) == variance.argmax()


@pytest.mark.parametrize("label", [None, *CLASSES])
def test_contributions_are_those_in_the_leaves_that_speak_averaged_over_the_trees(told, label):
    forest, *_ = told
    for x in POOL[:5]:
        found = explain(forest, x, label)
        scores = forest.decision_function(x[None])[0]
        c = scores.argmax() if label is None else CLASSES.tolist().index(label)
        assert found.label == CLASSES[c]
        assert_rounded(found.score, scores[c], ROUNDINGS, 1.0)
        assert_rounded(found.contributions.sum() + found.offset, scores[c], ROUNDINGS, 1.0)
        total, lost = np.zeros(N), np.zeros(N)
        spoke = set()
        for number in range(TREES):
            leaf = leaf_of(leaves(number)[0], x)
            spoke |= set(leaf.tolist())
            T = trees_oracle.targets(Y[leaf], CLASSES)[:, c]
            K = oracle.covariance(KERNEL, X[leaf], NOISE / WEIGHTS[leaf])
            total[leaf] += np.linalg.solve(K, T) * KERNEL(X[leaf], x[None])[:, 0] / TREES
            for i in leaf:
                without = process(leaf[leaf != i], x)[0][c]
                lost[i] += (process(leaf, x)[0][c] - without) / TREES
        assert set(found.ids.tolist()) == spoke
        assert (np.diff(abs(found.contributions)) <= 0).all()
        assert found.labels.tolist() == Y[found.ids].tolist()
        assert_rounded(found.contributions, total[found.ids], ROUNDINGS, 1.0)
        assert_rounded(found.score_without, scores[c] - lost[found.ids], ROUNDINGS, 1.0)


def test_the_contributions_of_values_sum_to_the_prediction():
    ids = [f"row {i}" if i % 2 else i for i in range(N)]
    forest = regressor().fit(X, VALUES, ids=ids, sample_weight=WEIGHTS)
    left = forest.leave_one_out()
    for i in range(0, N, 10):
        found = explain(forest, X[i], 1)
        score = forest.predict(X[[i]])[0, 1]
        assert_rounded(found.score, score, ROUNDINGS)
        assert_rounded(found.contributions.sum() + found.offset, score, ROUNDINGS)
        assert found.offset != 0
        if WEIGHTS[i]:
            (without,) = found.score_without[[one == ids[i] for one in found.ids.tolist()]]
            assert_rounded(without, left.scores[i, 1], ROUNDINGS)
            assert found.labels[found.ids.tolist().index(ids[i])] == VALUES[i, 1]


def test_answers_follow_edits_and_are_of_the_examples_that_are_held():
    forest = classifier().fit(X[:100], Y[:100])
    forest.add(X[100:], Y[100:])
    forest.remove(range(50))
    fresh = classifier().fit(X[50:], Y[50:], ids=range(50, N))
    got, want = suspects(forest), suspects(fresh)
    assert got.ids.tolist() == want.ids.tolist()
    assert got.contradicting == want.contradicting
    assert_rounded(novelty(forest, POOL).left_out, novelty(fresh, POOL).left_out, ROUNDINGS)
    assert explain(forest, POOL[0]).ids.tolist() == explain(fresh, POOL[0]).ids.tolist()
    assert suggest(forest, POOL, 4).indices.tolist() == suggest(fresh, POOL, 4).indices.tolist()
    before = copy.deepcopy(forest)
    for ask in (suspects, lambda one: suggest(one, POOL, 4), lambda one: explain(one, POOL[0])):
        ask(forest)
    assert np.array_equal(forest.decision_function(POOL), before.decision_function(POOL))


def test_a_forest_behind_other_steps_is_asked_as_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), classifier()).fit(X, Y)
    whole, scaled = living(pipeline), StandardScaler().fit_transform(X)
    forest = classifier().fit(scaled, Y)
    assert suspects(whole).ids.tolist() == suspects(forest).ids.tolist()
    assert_rounded(novelty(whole, X[:9]).values, novelty(forest, scaled[:9]).values, ROUNDINGS)
    assert calibrate(whole).temperature == close(calibrate(forest).temperature, SEARCHED)
    assert explain(whole, X[0]).ids.tolist() == explain(forest, scaled[0]).ids.tolist()


def test_a_field_of_scores_is_drawn_of_a_forest():
    pytest.importorskip("matplotlib")
    forest = classifier().fit(X, Y, sample_weight=WEIGHTS)
    drawn = ScoreFieldDisplay.from_estimator(forest, grid_resolution=5)
    corner = np.array([[drawn.across[0], drawn.down[0]]])
    assert_rounded(drawn.scores[0, 0], forest.decision_function(corner)[0], ROUNDINGS)
    assert len(drawn.X) == len(drawn.labels) == np.count_nonzero(WEIGHTS)


# -- what has no meaning ---------------------------------------------------------------------------

TUNED = tune(GPRegressor(KERNEL, NOISE).fit(X[:20], X[:20, 0]), noise_bounds="fixed")
TUNING = (
    "This question is for a fitted GPClassifier, GPRegressor or LSSVMClassifier, not {}. Tune a "
    "GPClassifier or GPRegressor of about 1,000 of its examples, and fit a forest with the kernel_ "
    "and noise_ that this finds."
)


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (tune, InvalidType, TUNING),
        (lambda forest: due(TUNED, forest, every=1), InvalidType, TUNING),
        (
            transfer,
            InvalidType,
            "This question is for a fitted NPlusOneClassifier, not {}.",
        ),
        (
            LearningCurveDisplay.from_estimator,
            InvalidType,
            "This question is for a fitted GPClassifier or LSSVMClassifier, not {}. Fit a "
            "GPClassifier to some thousand of its examples, and ask that.",
        ),
    ],
)
def test_what_a_forest_cannot_say_has_a_remedy(ask, error, message):
    pipeline = make_pipeline(StandardScaler(), classifier()).fit(X, Y)
    last, other = pipeline[-1], regressor().fit(X, X[:, 0])
    # Of a pipeline the last step is named, which the question is about.
    for asked, forest in ((last, last), (other, other), (living(pipeline), last)):
        with pytest.raises(error) as caught:
            ask(asked)
        assert str(caught.value) == message.format(type(forest).__name__)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda forest: novelty(forest, POOL, "null_space"),
            "method='null_space' is about all classes in one Gaussian process, and a leaf of a "
            "forest may hold one class alone. Ask for 'probability'.",
        ),
        (
            lambda forest: suggest(forest, POOL, criterion="reduction"),
            "criterion='reduction' is about the covariances of one Gaussian process, and each "
            "leaf of a forest has its own. Ask for 'margin'.",
        ),
        (
            lambda forest: explain(forest, POOL[0], by="features"),
            "by='features', but the score of a ForestGPClassifier is a sum over examples. Ask "
            "by='examples'.",
        ),
        (
            lambda forest: calibrate(forest, X, Y),
            "ForestGPClassifier holds its own examples. Leave out X and y, or reference.",
        ),
        (
            lambda forest: suspects(classifier().fit(X, ["same"] * N)),
            "All labels are 'same'. Add examples of another class.",
        ),
    ],
)
def test_what_a_forest_is_not_asked_is_said_with_what_to_ask_instead(ask, message):
    with pytest.raises(InvalidInput) as caught:
        ask(classifier().fit(X, Y))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "ask",
    [lambda one, pool: suggest(one, pool, criterion="variance"), novelty],
    ids=["suggest", "novelty"],
)
def test_the_row_that_cannot_be_answered_is_named(ask):
    pool = POOL.copy()
    pool[7] = 1e200
    for forest in (classifier(), classifier(1, N)):
        forest.set_params(kernel=DotProduct()).fit(X, Y)
        with pytest.raises(InvalidInput, match="row 7 of X"):
            ask(forest, pool)


@pytest.mark.parametrize(
    "ask",
    [
        suspects,
        calibrate,
        reliability,
        lambda forest: novelty(forest, POOL),
        lambda forest: suggest(forest, POOL),
        lambda forest: explain(forest, POOL[0]),
    ],
)
def test_a_forest_without_examples_has_nothing_to_say(ask):
    forest = classifier().fit(X, Y)
    with pytest.raises(NoExamples, match="The model holds no examples: all were removed"):
        ask(forest.remove(forest.ids_))


def test_one_example_sets_no_threshold():
    forest = classifier().fit(X[:2], Y[:2], sample_weight=[1, 0])
    found = novelty(forest, POOL)
    assert found.to_pandas().columns.tolist() == ["id", "value"]
    with pytest.raises(KnowmoreError, match="but the model holds one"):
        found.threshold()
