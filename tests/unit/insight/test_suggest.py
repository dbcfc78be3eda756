"""Suggestions against a greedy choice that conditions again on every pick."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import oracle
import pandas as pd
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.linear_model import LogisticRegression
from tolerance import assert_rounded, tolerance

from knowmore import EigenspaceLDA, GPClassifier, GPRegressor
from knowmore.errors import InvalidInput, InvalidType, KnowmoreWarning, NoExamples, NotFitted
from knowmore.insight import SuggestQuery, suggest
from knowmore.models import Following, joint

CRITERIA = ("reduction", "variance", "margin")


def make(classes=3, kernel=None, noise=0.1, n=25, u=30, weights=None, **settings):
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(n, 3)), np.arange(n) % classes
    clf = GPClassifier(RBF(1.5) if kernel is None else kernel, noise, **settings)
    clf.fit(X, y, sample_weight=weights)
    return clf, X, y, rng.normal(size=(u, 3)) * 1.5


def doubt(mean):
    """How near the two best of the scores (M,) are, from almost zero to one."""
    return max(1 - (sorted(mean)[-1] - sorted(mean)[-2]) / 2, 1e-3)


def value(criterion, mean, variance, C, means):
    """The criterion of one row, as the papers have it; mean (M,), C (u,) its covariances.

    means : of all rows, (u, M)
    """
    return {
        "reduction": lambda: (
            doubt(mean) * sum(doubt(m) * c**2 for m, c in zip(means, C, strict=True)) / variance
        ),
        "variance": lambda: variance,
        "margin": lambda: -(sorted(mean)[-1] - sorted(mean)[-2]) / np.sqrt(variance),
    }[criterion]()


def brute_force(kernel, noise, X, y, pool, n, criterion, weights=1.0):
    """Indices and values (n,); the joint covariance of all is conditioned again for every pick.

    A pick is of weight one, and its label the class of the largest score then; by "reduction" the
    scores stay.
    """
    _, T = oracle.one_vs_all(y.tolist())
    joint = kernel(np.vstack([X, pool]))
    noises = np.append(noise / (weights * np.ones(len(X))), np.full(len(pool), noise))
    chosen, values = [], []
    for _ in range(n):
        held = [*range(len(X)), *(len(X) + p for p in chosen)]
        rest = np.arange(len(X), len(joint))
        cross = joint[np.ix_(held, rest)]
        B = oracle.solve(joint[np.ix_(held, held)] + np.diag(noises[held]), cross)
        if criterion != "reduction" or not chosen:
            mean = B.T @ T
        C = joint[np.ix_(rest, rest)] - cross.T @ B
        each = {
            j: value(criterion, mean[j], C[j, j] + noise, C[j], mean)
            for j in range(len(pool))
            if j not in chosen
        }
        best = max(each, key=each.__getitem__)
        chosen.append(best)
        values.append(each[best])
        T = np.vstack([T, [1.0 if m == max(mean[best]) else -1.0 for m in mean[best]]])
    return chosen, values


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    ("classes", "kernel", "noise"),
    [
        (3, RBF(1.5), 0.1),
        (2, Matern(2.0, nu=1.5), 1e-3),
        (4, ConstantKernel(2.0) * RBF(1.0) + WhiteKernel(0.05), 0.01),
    ],
    ids=["rbf", "two classes", "white"],
)
def test_picks_match_conditioning_again_on_each(criterion, classes, kernel, noise):
    clf, X, y, pool = make(classes, kernel, noise)
    found = suggest(clf, pool, 12, criterion)
    chosen, values = brute_force(kernel, noise, X, y, pool, 12, criterion)
    assert found.indices.tolist() == chosen
    # The variance is a difference that may leave the noise alone: its relative error is that of
    # a solve, times what it was taken from.
    K = oracle.covariance(kernel, np.vstack([X, pool]), noise)
    error = 4 * tolerance(K) * kernel.diag(pool).max() / noise
    assert (abs(found.values - values) <= error * np.abs(values).max()).all()


@pytest.mark.parametrize("some", [1, 7])
def test_some_rows_stand_for_a_large_pool(some, monkeypatch):
    """Each of them for as many others, and none for itself: that counts once."""
    monkeypatch.setattr(import_module("knowmore.insight.suggest"), "_SOME", some)
    clf, _, _, pool = make()
    at = np.linspace(0, len(pool) - 1, some).astype(int)
    mean, variance = clf.decision_function(pool), clf.predict_variance(pool)
    d, C = np.array([doubt(m) for m in mean]), joint(clf.model_, pool)
    want = []
    for j in range(len(pool)):
        others = [i for i in at if i != j]
        share = (len(pool) - 1) / max(len(others), 1)
        itself = d[j] * (C[j, j] - 0.1) ** 2
        want.append(
            d[j] / variance[j] * (share * sum(d[i] * C[i, j] ** 2 for i in others) + itself)
        )
    (value,) = suggest(clf, pool).values
    assert_rounded(value, max(want), 100.0)


@pytest.mark.parametrize("settings", [{"solver": "inverse"}, {"dtype": "float32"}])
def test_other_factors_suggest_the_same(settings):
    clf, X, y, pool = make(**settings)
    for criterion in ("margin", "reduction"):
        chosen, _ = brute_force(RBF(1.5), 0.1, X, y, pool, 6, criterion)
        assert suggest(clf, pool, 6, criterion).indices.tolist() == chosen


@pytest.mark.parametrize("criterion", [*CRITERIA, "random"])
def test_the_whole_pool_is_a_permutation(criterion):
    clf, _, _, pool = make()
    assert sorted(suggest(clf, pool, len(pool), criterion).indices.tolist()) == list(range(30))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_model_that_was_edited_suggests_what_a_fresh_one_does(criterion):
    clf, X, _, pool = make()
    clf.remove([3, 8]).relabel([5], [0])
    clf.add(X[:1] + 1, [9])
    fresh = GPClassifier(RBF(1.5), 0.1).fit(clf.model_.examples.X, clf.model_.examples.labels)
    mine, theirs = suggest(clf, pool, 5, criterion), suggest(fresh, pool, 5, criterion)
    assert mine.indices.tolist() == theirs.indices.tolist()
    assert_rounded(mine.values, theirs.values, 1e4)


@pytest.mark.parametrize("settings", [{}, {"solver": "inverse"}])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_answers_that_followed_suggest_the_same(criterion, settings):
    clf, X, _, pool = make(**settings)
    following = Following(clf.model_, pool)
    assert len(following.variance) == len(pool)
    clf.add(X[:1] + 1, [9])
    with pytest.raises(InvalidInput, match="following is of another model or of other rows"):
        suggest(clf, pool, following=following)
    following = following.follow(clf.model_)
    mine = suggest(clf, pool, 5, criterion, following=following)
    plain = suggest(clf, pool, 5, criterion)
    assert mine.indices.tolist() == plain.indices.tolist()
    assert_rounded(mine.values, plain.values, 1e4)
    with pytest.raises(InvalidInput, match="of other rows"):
        suggest(clf, pool[1:], following=following)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_weights_count(criterion):
    weights = np.random.default_rng(3).uniform(0.2, 5, size=25)
    clf, X, y, pool = make(weights=weights)
    found = suggest(clf, pool, 6, criterion)
    chosen, values = brute_force(RBF(1.5), 0.1, X, y, pool, 6, criterion, weights)
    assert found.indices.tolist() == chosen
    assert_rounded(found.values, values, 1e4)


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("noise", [0.01, 0.1, 0.5])
def test_twins_are_picked_after_all_else(criterion, noise):
    """Four places far from each other that are equally wanted, each of them twice in the pool."""
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(6, 2)), np.arange(6) % 3
    far = 100 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    held, labels = np.vstack([X + away for away in far]), np.tile(y, 4)
    clf = GPClassifier(RBF(1.0), noise).fit(held, labels)
    pool = np.repeat(far + np.array([0.3, 0.4]), 2, axis=0)
    places = suggest(clf, pool, 8, criterion).indices // 2
    assert sorted(places[:4].tolist()) == sorted(places[4:].tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_a_batch_has_no_twins_while_there_are_others(criterion, noise):
    clf, _, _, pool = make(noise=noise)
    found = suggest(clf, np.vstack([pool[:10], pool[:10]]), 20, criterion).indices % 10
    assert sorted(found[:10].tolist()) == sorted(found[10:].tolist()) == list(range(10))


def test_a_score_of_zero_does_not_pick_a_twin():
    """Where two classes meet the margin is zero, however small the variance."""
    clf = GPClassifier(RBF(1.0)).fit([[-1.0], [1.0], [8.0], [10.0]], ["a", "b", "a", "c"])
    found = suggest(clf, [[0.0], [0.0], [9.1]], 2, "margin")
    assert found.indices.tolist() == [0, 2]


@pytest.mark.parametrize("criterion", CRITERIA)
def test_a_twin_of_a_pick_has_less_value(criterion):
    clf, _, _, pool = make()
    alone = suggest(clf, pool, 1, criterion)
    twins = suggest(clf, pool[[alone.indices[0]] * 2], 2, criterion)
    assert twins.values[1] < twins.values[0]


@pytest.mark.parametrize("criterion", CRITERIA)
def test_twins_work_without_noise(criterion):
    clf, X, _, pool = make(noise=0.0)
    found = suggest(clf, np.vstack([X[:3], pool[:2], pool[:2]]), 7, criterion)
    assert sorted(found.indices.tolist()) == list(range(7))
    assert np.isfinite(found.values).all()
    assert set(found.indices[:2].tolist()) in ({3, 4}, {3, 6}, {5, 4}, {5, 6})


def test_the_first_pick_of_two_classes_is_kapoors():
    clf, _, _, pool = make(classes=2)
    want = abs(clf.decision_function(pool)) / np.sqrt(clf.predict_variance(pool))
    assert suggest(clf, pool, 1, "margin").indices.tolist() == [int(want.argmin())]


def test_random_is_seeded_and_does_not_ask_the_model():
    clf, _, _, pool = make()
    one, same = (suggest(clf, pool, 8, "random", random_state=3) for _ in range(2))
    assert one.indices.tolist() == same.indices.tolist()
    assert len(set(one.indices.tolist())) == 8
    other = suggest(clf, pool, 8, "random", random_state=4)
    assert one.indices.tolist() != other.indices.tolist()
    assert one.reasons == ("drawn at random",) * 8


def test_one_class_and_one_example_can_be_asked():
    clf = GPClassifier(RBF(1.0)).fit([[0.0, 0.0]], ["only"])
    pool = [[0.1, 0.0], [5.0, 0.0]]
    assert suggest(clf, pool, 1, "variance").indices.tolist() == [1]
    for criterion in ("reduction", "random"):
        assert sorted(suggest(clf, pool, 2, criterion).indices.tolist()) == [0, 1]
    assert suggest(clf, pool).reasons[0].startswith("like others in the pool: score ")
    with pytest.raises(InvalidInput, match="needs two classes, not one"):
        suggest(clf, pool, criterion="margin")


def test_a_regressor_supports_variance():
    reg = GPRegressor(RBF(1.0)).fit([[0.0], [1.0]], [0.0, 1.0])
    assert suggest(reg, [[0.5], [9.0]], 1, "variance").indices.tolist() == [1]
    assert len(suggest(reg, [[0.5], [9.0]], 2, "random").indices) == 2
    with pytest.raises(
        InvalidInput,
        match=r"^criterion='margin' is about classes, but a GPRegressor has none. "
        r"Ask for criterion='variance' or 'random'.$",
    ):
        suggest(reg, [[0.5]], criterion="margin")
    assert suggest(reg, [[0.5], [9.0]]).criterion == "variance"


@pytest.mark.parametrize("targets", [1, 2])
def test_a_regressor_takes_answers_that_followed(targets):
    rng = np.random.default_rng(4)
    X, y, pool = rng.normal(size=(20, 2)), 50 * rng.normal(size=(20, targets)), np.eye(2)
    reg = GPRegressor(RBF(1.0)).fit(X, y)
    mine = suggest(reg, pool, 2, following=Following(reg.model_, pool))
    plain = suggest(reg, pool, 2)
    assert mine.indices.tolist() == plain.indices.tolist()
    assert_rounded(mine.values, plain.values, 1e4)


def test_the_answer_reads_as_a_table():
    clf, _, _, pool = make()
    found = suggest(clf, pool, 7)
    lines = repr(found).splitlines()
    assert lines[0] == "Suggestion: 7 to label by reduction"
    assert lines[-1] == "... 2 more"
    assert len(lines) == 8
    table = found.to_pandas()
    assert table.columns.tolist() == ["index", "value", "reason"]
    assert table["index"].tolist() == found.indices.tolist()
    assert table["reason"].str.contains("standard deviation").all()


@pytest.mark.parametrize(
    ("n", "pool", "criterion", "text"),
    [
        (1, np.zeros((3, 3)), "best", r"^criterion='best' is not known. Choose one of 'reduction', "
         r"'margin', 'variance', 'random'.$"),
        *((1, np.zeros((3, 3)), gone, rf"^criterion='{gone}' is gone: in our measurements it took "
           r"more labels than 'reduction' and 'margin'. Ask for one of these.$")
          for gone in ("uncertainty", "emoc", "weight", "impact")),
        (4, np.zeros((3, 3)), "margin", r"^n=4. Give a whole number from 1 to 3.$"),
        (0, np.zeros((3, 3)), "margin", r"^n=0. Give a whole number from 1 to 3.$"),
        (1.5, np.zeros((3, 3)), "margin", r"^n=1.5. Give a whole"),
        (True, np.zeros((3, 3)), "margin", r"^n=True. Give a whole"),
        (1, np.zeros((0, 3)), "margin", r"^X_pool is empty. Give at least one row to ask about.$"),
        (1, [], "margin", r"^X_pool is empty"),
        (1, np.zeros((3, 2)), "margin", r"X has 2 features, but GPClassifier is expecting 3"),
        (1, [[np.nan, 0, 0]], "margin", r"contains NaN"),
    ],
)  # fmt: skip
def test_bad_questions_are_explained(n, pool, criterion, text):
    clf, *_ = make()
    with pytest.raises(InvalidInput, match=text):
        suggest(clf, pool, n, criterion)


def test_only_fitted_gaussian_processes_with_examples_answer():
    clf, X, y, pool = make()
    with pytest.raises(NotFitted):
        suggest(GPClassifier(), pool)
    with pytest.raises(NoExamples, match="all were removed"):
        suggest(clf.remove(clf.ids_), pool)
    for other in (LogisticRegression().fit(X, y), EigenspaceLDA().fit(X, y)):
        kinds = "GPClassifier, LinearGPClassifier or ForestGPClassifier"
        words = rf"^This question is for a fitted {kinds}, not"
        with pytest.raises(InvalidType, match=words):
            suggest(other, pool, criterion="margin")
        linear = "LinearGPClassifier, LinearGPRegressor"
        words = f"a fitted GPClassifier, GPRegressor, {linear}, ForestGPClassifier or ForestGPReg"
        with pytest.raises(InvalidType, match=words):
            suggest(other, pool)


# -- as a query strategy -------------------------------------------------------------------------


def partly_labelled(missing=np.nan):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(20, 2))
    y = np.where(X[:, 0] > 0, 1.0, 0.0).astype(object if missing is None else float)
    y[6:] = missing
    return X, y


@pytest.mark.parametrize("missing", [np.nan, None, -1])
def test_a_query_is_a_suggestion_among_the_unlabelled(missing):
    X, y = partly_labelled(missing)
    strategy = SuggestQuery(missing_label=missing)
    indices, utilities = strategy.query(
        X, y, GPClassifier(RBF(1.0)), batch_size=3, return_utilities=True
    )
    labels = np.array(y[:6].tolist())
    want = suggest(GPClassifier(RBF(1.0)).fit(X[:6], labels), X[6:], 3)
    assert indices.tolist() == (6 + want.indices).tolist()
    assert utilities.shape == (3, 20)
    assert np.nanargmax(utilities, axis=1).tolist() == indices.tolist()
    assert np.isnan(utilities).sum(axis=1).tolist() == [6, 7, 8]


def test_candidates_are_rows_or_inputs():
    X, y = partly_labelled()
    clf = GPClassifier(RBF(1.0))
    rows = SuggestQuery("variance").query(X, y, clf, candidates=[8, 11, 19], batch_size=3)
    assert set(rows.tolist()) == {8, 11, 19}
    own = SuggestQuery("variance").query(
        X, y, clf, candidates=X[[8, 11, 19]], batch_size=3, return_utilities=True
    )
    assert np.array([8, 11, 19])[own[0]].tolist() == rows.tolist()
    assert own[1].shape == (3, 3)


def test_a_fitted_classifier_is_used_as_given():
    X, y = partly_labelled()
    clf = GPClassifier(RBF(1.0)).fit(X[:6], y[:6])
    before = clf.model_
    fitted = SuggestQuery("reduction").query(X, y, clf, fit_clf=False, batch_size=2)
    assert clf.model_ is before
    assert fitted.tolist() == SuggestQuery("reduction").query(X, y, clf, batch_size=2).tolist()


def test_a_query_without_any_label_is_random():
    X, _ = partly_labelled()

    def asked(seed, criterion=None):
        strategy = SuggestQuery(criterion, random_state=seed)
        return strategy.query(X, np.full(20, np.nan), GPClassifier(), batch_size=4).tolist()

    assert asked(3) == asked(3, "margin")
    assert len({*asked(3)}) == 4
    assert asked(3) != asked(4)


def test_a_batch_of_more_than_there_are_is_all_of_them():
    X, y = partly_labelled()
    with pytest.warns(KnowmoreWarning, match=r"^batch_size=15, but there are 14 candidates. All"):
        found = SuggestQuery().query(X, y, GPClassifier(), batch_size=15)
    assert sorted(found.tolist()) == [*range(6, 20)]


def test_feature_names_are_kept():
    X, y = partly_labelled()
    table = pd.DataFrame(X, columns=["long", "wide"])
    want = SuggestQuery().query(X, y, GPClassifier(RBF(1.0)), batch_size=2).tolist()
    clf = GPClassifier(RBF(1.0)).fit(table[:6], y[:6])
    for fit in True, False:
        found = SuggestQuery().query(table, pd.Series(y), clf, fit_clf=fit, batch_size=2)
        assert found.tolist() == want
    own = SuggestQuery().query(table, y, clf, fit_clf=False, candidates=table[6:])
    assert (6 + own).tolist() == want[:1]


@pytest.mark.parametrize("nothing", [np.nan, None, pd.NA])
@pytest.mark.parametrize("missing", [np.nan, None, pd.NA])
def test_all_kinds_of_missing_values_are_the_same(nothing, missing):
    X, y = partly_labelled()
    want = SuggestQuery().query(X, y, GPClassifier(RBF(1.0))).tolist()
    labels = np.array(["no", "yes"])[y[:6].astype(int)].tolist()
    held = np.array([*labels, *[nothing] * 14], dtype=object)
    assert SuggestQuery(missing_label=missing).query(X, held, GPClassifier(RBF(1.0))) == want
    named = np.array([*labels, *["?"] * 14])
    assert SuggestQuery(missing_label="?").query(X, named, GPClassifier(RBF(1.0))) == want


@pytest.mark.parametrize(
    ("keywords", "text"),
    [
        ({"y": [0.0, 1.0]}, r"^y has shape \(2,\), but there are 20 examples\. Give"),
        ({"candidates": []}, r"^The set of candidates is empty"),
        ({"candidates": np.empty((0, 2))}, r"^The set of candidates is empty"),
        ({"candidates": [50]}, r"^candidates are \[50\], int64 of shape .* from 0 to 19;"),
        ({"candidates": [-1]}, r"^candidates are \[-1\], .* from 0"),
        ({"candidates": [5, 5, 6]}, r"^candidates are \[5 5 6\], .* each once"),
        ({"candidates": [5.0]}, r"^candidates are \[5\.\], float64 of shape \(1,\)\. Give"),
        ({"candidates": np.arange(20) > 15}, r"bool of .* for a mask np\.flatnonzero"),
        ({"candidates": 3}, r"^candidates are 3, int64 of shape \(\)"),
        ({"y": np.zeros(20)}, r"^The set of candidates is empty\..* leave labels missing"),
    ],
)  # fmt: skip
def test_a_bad_query_is_explained(keywords, text):
    X, y = partly_labelled()
    with pytest.raises(InvalidInput, match=text):
        SuggestQuery("variance").query(X, clf=GPClassifier(), **{"y": y} | keywords)


def test_a_bad_missing_label_or_seed_is_explained():
    X, y = partly_labelled()
    with pytest.raises(InvalidInput, match=r"^missing_label=\[1\]. Give NaN, None, a string or"):
        SuggestQuery(missing_label=[1]).query(X, y, GPClassifier())
    with pytest.raises(
        InvalidInput, match=r"^random_state='x' is not a seed\. Give a whole number"
    ):
        SuggestQuery("random", random_state="x").query(X, y, GPClassifier())
