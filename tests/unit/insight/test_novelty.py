"""Novelty against refits without each example, and the null space by its eigenproblem."""

from __future__ import annotations

import pickle

import numpy as np
import oracle
import pytest
from scipy.stats import norm
from sklearn.datasets import load_digits
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from tolerance import assert_rounded, tolerance

from knowmore import (
    ForestGPClassifier,
    GPClassifier,
    GPRegressor,
    LinearGPClassifier,
    LinearGPRegressor,
    LSSVMClassifier,
)
from knowmore.errors import InvalidInput, InvalidType, KnowmoreWarning, NoExamples, NotFitted
from knowmore.insight import explain, novelty, reliability, suggest, suspects, tune
from knowmore.models import newness_of

METHODS = ("variance", "probability", "null_space", "mahalanobis")
# The weights of its parts are those of all examples: it has tests of its own against refits.
ALL = ("combined", *METHODS)
KERNEL = RBF(1.5)


def clusters(classes=3, each=6, seed=1):
    rng = np.random.default_rng(seed)
    centres = 2 * rng.normal(size=(classes, 3))
    X = np.vstack([centre + rng.normal(size=(each, 3)) for centre in centres])
    return X, np.repeat(np.arange(classes), each), 3 * rng.normal(size=(15, 3))


def foley_sammon(K, y, cross, origin=False):
    """Distances (m,) to the nearest class in the null space of the within-class scatter.

    The route of the paper: an orthonormal basis of the centred examples, the null space of their
    within-class scatter there, and the mean of each class in it. K (n, n), cross (m, n). If
    `origin`, the origin joins as a class of its own, a row of zeros.
    """
    if origin:
        K, cross = np.pad(K, (0, 1)), np.pad(cross, ((0, 0), (0, 1)))
        y = np.append(y, y.max() + 1)
    n, classes = len(K), sorted(set(y.tolist()))
    J = np.eye(n) - 1 / n
    spectrum, U = np.linalg.eigh(J @ K @ J)
    large = spectrum > n * np.finfo(float).eps * spectrum[-1]
    basis = J @ U[:, large] / np.sqrt(spectrum[large])
    means = np.array([[(a == b) / sum(y == b) for b in y] for a in y])
    H = basis.T @ K @ (np.eye(n) - means)
    W, sizes, _ = np.linalg.svd(H)
    rank = large.sum() - (len(classes) - 1)
    assert sizes[rank - 1] > 1e3 * (sizes[rank:].max(initial=0) + np.finfo(float).eps)
    P = basis @ W[:, rank:]
    points = np.array([(K[y == c] @ P).mean(axis=0) for c in classes if not origin or c < y[-1]])
    return np.linalg.norm((cross @ P)[:, None] - points[None], axis=2).min(axis=1)


def naive(method, noise, X, y, X_new, weights=1.0):
    """The value of each row by a fit from scratch; a new row weighs one."""
    own, noise = np.full(len(X_new), noise), noise / weights
    K = oracle.covariance(KERNEL, X, noise)
    distance = foley_sammon(K, y, KERNEL(X_new, X), len(set(y.tolist())) == 1)
    _, T = oracle.one_vs_all(y.tolist())
    best = oracle.scores(KERNEL, noise, X, T, X_new).max(axis=1)
    variance = oracle.variance(KERNEL, noise, X, X_new, noise_new=own)
    values = {
        "variance": variance,
        "probability": norm.logcdf(-best / np.sqrt(variance)),
        "null_space": distance,
        "mahalanobis": distance**2 + variance / 32,
    }
    return values[method]


def parts(noise, X, y, X_new):
    """The distance, minus |m| and the deviation of each row, (m, 3), by a fit from scratch."""
    E = (y[:, None] == np.unique(y)).astype(float)
    m = oracle.scores(KERNEL, noise, X, E, X_new)
    distance, variance = (naive(one, noise, X, y, X_new) for one in ("null_space", "variance"))
    return np.column_stack([distance, -np.linalg.norm(m, axis=1), np.sqrt(variance)])


def left_out_parts(noise, X, y, groups):
    """Novelty (n, 3) of each example by the examples of other groups."""
    found = np.empty((len(X), 3))
    for group in set(groups.tolist()):
        g, rest = groups == group, groups != group
        found[g] = parts(noise, X[rest], y[rest], X[g])
    return found


def fisher(alone, without, y):
    """The weights of the parts: equal for the first two, the third by Fisher's discriminant."""
    scale = 1 / alone.std(axis=0)
    sides = []
    for rows in (alone, without):
        z = rows * scale
        sides.append(np.column_stack([z[:, 0] + z[:, 1], z[:, 2]]))
    S, means = np.zeros((2, 2)), []
    for rows in sides:
        by_class = [rows[y == c] for c in np.unique(y)]
        centres = np.array([one.mean(axis=0) for one in by_class])
        means.append(centres.mean(axis=0))
        S += np.cov((rows - centres[y]).T, bias=True) + np.cov(centres.T, bias=True)
    w = np.maximum(np.linalg.solve(S, means[1] - means[0]), 0)
    return scale * np.array([w[0], w[0], w[1]]) / w.max()


def bound(noise, X, values):
    """A few solves, and the eigenproblem's square roots, after another."""
    K = oracle.covariance(KERNEL, X, noise)
    return 10 * len(X) * tolerance(K) * max(abs(values).max(), 1)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("noise", [0.1, 1e-3])
@pytest.mark.parametrize("classes", [1, 2, 4])
def test_values_match_the_definition(method, noise, classes):
    X, y, queries = clusters(classes)
    got = novelty(GPClassifier(KERNEL, noise).fit(X, y), queries, method).values
    want = naive(method, noise, X, y, queries)
    assert abs(got - want).max() <= bound(noise, X, want)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("classes", [1, 2, 4])
def test_left_out_values_match_refits(method, classes):
    X, y, queries = clusters(classes)
    found = novelty(GPClassifier(KERNEL, 0.05).fit(X, y), queries, method)
    rest = ~np.eye(len(X), dtype=bool)
    want = np.array(
        [naive(method, 0.05, X[rest[i]], y[rest[i]], X[i : i + 1])[0] for i in range(len(X))]
    )
    assert abs(found.left_out - want).max() <= bound(0.05, X, want)


@pytest.mark.parametrize("classes", [3, 4])
def test_parts_are_weighed_by_leaving_out_examples_and_classes(classes):
    X, y, queries = clusters(classes)
    clf = GPClassifier(KERNEL, 0.05).fit(X, y)
    alone = left_out_parts(0.05, X, y, np.arange(len(X)))
    want = fisher(alone, left_out_parts(0.05, X, y, y), y)
    weights = newness_of(clf.model_).weights
    assert (want > 0).all()
    assert abs(weights - want).max() <= bound(0.05, X, want) / alone.std(axis=0).min()
    found = novelty(clf, queries)
    values, left_out = parts(0.05, X, y, queries) @ weights, alone @ weights
    assert abs(found.values - values).max() <= bound(0.05, X, values) * weights.max()
    assert abs(found.left_out - left_out).max() <= bound(0.05, X, left_out) * weights.max()
    known = clf.predict(queries, unknown=-1, rate=0.3) >= 0
    np.testing.assert_array_equal(known, found.values <= np.quantile(found.left_out, 0.7))


@pytest.mark.parametrize("classes", [1, 2])
def test_parts_of_one_or_two_classes_count_alike(classes):
    X, y, queries = clusters(classes)
    found = novelty(GPClassifier(KERNEL, 0.05).fit(X, y), queries)
    alone = left_out_parts(0.05, X, y, np.arange(len(X)))
    weights = 1 / alone.std(axis=0)
    values = parts(0.05, X, y, queries) @ weights
    error = bound(0.05, X, values) * weights.max() ** 2
    assert abs(found.values - values).max() <= error
    assert abs(found.left_out - alone @ weights).max() <= error


def test_the_best_method_is_the_default():
    X, y, queries = clusters()
    for estimator, method in (
        (GPClassifier(KERNEL), "combined"),
        (LinearGPClassifier(), "mahalanobis"),
        (ForestGPClassifier(KERNEL), "probability"),
        (GPRegressor(KERNEL), "variance"),
        (LinearGPRegressor(), "variance"),
    ):
        found = novelty(estimator.fit(X, y), queries)
        assert found.method == method
        np.testing.assert_array_equal(found.values, novelty(estimator, queries, method).values)


def test_rows_far_outside_are_new_to_every_default():
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    far = X.mean(axis=0) + 20 * rng.normal(size=(30, 64)) * X.std(axis=0)
    for clf in (GPClassifier(), LinearGPClassifier(noise="loo")):
        clf.fit(X[:500], y[:500])
        reference = (X[:500], y[:500]) if isinstance(clf, LinearGPClassifier) else None
        assert novelty(clf, far, reference=reference).unknown(0.99).all()


@pytest.mark.parametrize("method", METHODS)
def test_weights_count(method):
    X, y, queries = clusters()
    weights = np.random.default_rng(2).uniform(0.2, 5, size=len(X))
    found = novelty(GPClassifier(KERNEL, 0.05).fit(X, y, sample_weight=weights), queries, method)
    want = naive(method, 0.05, X, y, queries, weights)
    error = bound(0.05 / weights.max(), X, want)
    assert abs(found.values - want).max() <= error
    rest = ~np.eye(len(X), dtype=bool)
    left_out = [naive(method, 0.05, X[r], y[r], X[[i]], weights[r])[0] for i, r in enumerate(rest)]
    assert abs(found.left_out - left_out).max() <= error


@pytest.mark.parametrize("weights", [None, np.linspace(0.2, 3, 18)])
@pytest.mark.parametrize("noise", [0.05, 1e-3])
@pytest.mark.parametrize("method", ALL)
def test_groups_are_left_out_together(method, noise, weights):
    X, y, queries = clusters()
    # Some classes leave with a group, and one group has a single example.
    groups = np.array(["pair", "pair", "lone"] + ["three"] * 3 + ["class"] * 6 + list("ababac"))
    if weights is not None and method == "combined":
        pytest.skip("its parts are those of the other methods")
    clf = GPClassifier(KERNEL, noise).fit(X, y, sample_weight=weights)
    found, w = novelty(clf, queries, method, groups=groups), np.ones(18)
    w = w if weights is None else weights
    np.testing.assert_array_equal(found.values, novelty(clf, queries, method).values)
    if method == "combined":
        want = left_out_parts(noise, X, y, groups) @ newness_of(clf.model_).weights
    else:
        want = np.empty(18)
        for name in set(groups.tolist()):
            g, r = groups == name, groups != name
            want[g] = naive(method, noise, X[r], y[r], X[g], w[r])
    assert abs(found.left_out - want).max() <= bound(noise / w.max(), X, want)
    assert found.threshold(0.9) == np.quantile(found.left_out, 0.9)


@pytest.mark.parametrize("method", ALL)
def test_groups_of_one_example_each_change_nothing(method):
    X, y, queries = clusters()
    clf = GPClassifier(KERNEL, 0.05).fit(X, y, sample_weight=np.arange(18) % 4)
    one, other = novelty(clf, queries, method), novelty(clf, queries, method, groups=np.arange(18))
    assert abs(one.left_out - other.left_out).max() <= bound(0.05 / 3, X, one.left_out)


@pytest.mark.parametrize("method", ["combined", "variance", "probability"])
def test_a_group_that_shares_nothing_with_others_is_unrelated(method):
    X = np.vstack([np.eye(8)[:6] + np.eye(8)[[1, 2, 3, 4, 5, 0]], 0.1 * np.eye(8)[[6, 6]]])
    y, groups = np.array([0, 1, 0, 1, 0, 1, 0, 1]), np.array([0, 1, 2, 3, 4, 5, 6, 6])
    clf = GPClassifier(DotProduct(0), 0.1).fit(X, y)
    left_out = novelty(clf, X[:1], method, groups=groups).left_out
    rest = GPClassifier(DotProduct(0), 0.1).fit(X[groups != 6], y[groups != 6])
    if method == "combined":
        assert_rounded(left_out[6], left_out[7], 100)
        assert left_out[6] > left_out[:6].max()
    elif method == "probability":
        np.testing.assert_array_equal(left_out[6:8], novelty(rest, X[6:8], method).values)
        assert (left_out[6:8] == 0).all()
    else:
        assert (left_out[6:8] == clf.model_.largest_variance).all()


def test_groups_of_copies_are_told_from_views():
    """Views of one object vouch for each other; left out together, they do not."""
    rng = np.random.default_rng(0)
    objects = rng.normal(size=(60, 4))
    X = np.repeat(objects, 5, axis=0) + 0.05 * rng.normal(size=(300, 4))
    y, groups = np.repeat(np.arange(60) % 2, 5), np.repeat(np.arange(60), 5)
    new = rng.normal(size=(500, 4))
    clf = GPClassifier(RBF(1.0), 0.1).fit(X, y)
    alone, together = (novelty(clf, new, "variance", groups=g).unknown(0.9) for g in (None, groups))
    assert together.mean() < 0.2 < 0.5 < alone.mean()


def test_groups_are_checked():
    X, y, queries = clusters()
    clf = GPClassifier(KERNEL).fit(X, y)
    with pytest.raises(InvalidInput, match=r"^groups has one name, and a group is left out as a "):
        novelty(clf, queries, groups=["one"] * 18)
    with pytest.raises(InvalidInput, match=r"^groups"):
        novelty(clf, queries, groups=[1, 2])
    with pytest.raises(InvalidInput, match=r"^A linear model holds no rows"):
        novelty(LinearGPClassifier().fit(X, y), queries, groups=np.arange(18))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("y", [[0, 0, 0, 1], [0, 1], [0, 1, 2, 2]])
def test_the_only_example_of_a_class_takes_the_class_with_it(method, y):
    X, y = clusters()[0][[0, 1, 7, 13]][: len(y)], np.array(y)
    clf = GPClassifier(KERNEL, 0.05).fit(X, y)
    want = []
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        refit = GPClassifier(KERNEL, 0.05).fit(X[rest], y[rest])
        want.append(novelty(refit, X[i : i + 1], method).values[0])
    left_out = novelty(clf, X, method).left_out
    assert abs(left_out - want).max() <= bound(0.05, X, np.array(want))


def test_without_noise_each_class_is_one_point_of_the_null_space():
    X, y, _ = clusters()
    found = novelty(GPClassifier(KERNEL, 0.0).fit(X, y), X, "null_space")
    K = oracle.covariance(KERNEL, X, 0.0)
    assert found.values.max() <= bound(0.0, X, np.ones(1))
    assert found.left_out.min() > 1e3 * tolerance(K)


@pytest.mark.parametrize("method", ALL)
def test_an_example_held_without_noise_is_not_new(method):
    X, y, queries = clusters()
    found = novelty(GPClassifier(KERNEL, 0.0).fit(X, y), np.vstack([X, queries]), method)
    assert np.isfinite(found.values).all()
    assert np.isfinite(found.left_out).all()
    assert found.values[: len(X)].max() < found.values[len(X) :].min()


@pytest.mark.parametrize("method", ALL)
def test_it_follows_every_edit(method):
    X, y, queries = clusters()
    clf = GPClassifier(KERNEL).fit(X, y)
    clf.add(queries[:4], [7, 7, 0, 1])
    clf.remove([0, 5]).relabel([3], [2])
    held = clf.model_.examples
    fresh = novelty(GPClassifier(KERNEL).fit(held.X, held.labels), queries, method)
    found = novelty(clf, queries, method)
    assert abs(found.values - fresh.values).max() <= bound(0.1, held.X, fresh.values)
    assert abs(found.left_out - fresh.left_out).max() <= bound(0.1, held.X, fresh.left_out)


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize("settings", [{"solver": "inverse"}, {"dtype": "float32"}])
def test_other_factors_give_the_same_values(method, settings):
    X, y, queries = clusters()
    want = novelty(GPClassifier(KERNEL).fit(X, y), queries, method)
    found = novelty(GPClassifier(KERNEL, **settings).fit(X, y), queries, method)
    K = oracle.covariance(KERNEL, X, 0.1)
    precision = np.float32 if settings.get("dtype") else np.float64
    error = 10 * len(X) * tolerance(K, settings.get("solver", "cholesky"), precision)
    assert abs(found.values - want.values).max() <= error * abs(want.values).max()
    assert abs(found.left_out - want.left_out).max() <= error * abs(want.left_out).max()


@pytest.mark.parametrize("method", ["probability", "variance", "combined"])
def test_silent_examples_are_as_new_as_far_away_rows(method):
    X, y = load_digits(return_X_y=True)
    found = novelty(GPClassifier(RBF(1.0)).fit(X[:60], y[:60]), X[60:80], method)
    assert_rounded(found.left_out, np.full(60, found.values[0]), scale=1.0)
    with pytest.warns(KnowmoreWarning, match="For 60 of 60 examples the others say nothing"):
        assert_rounded(found.threshold(0.95), found.values[0], scale=1.0)


def test_an_answer_keeps_the_model_that_was_asked():
    X, y, queries = clusters()
    clf = GPClassifier(KERNEL).fit(X, y)
    found = novelty(clf, queries)
    clf.remove(clf.ids_[1:])
    assert found.threshold(0.5) == novelty(GPClassifier(KERNEL).fit(X, y), queries).threshold(0.5)


@pytest.mark.parametrize("method", ALL)
def test_a_threshold_is_a_quantile_of_the_left_out_values(method):
    X, y, queries = clusters()
    found = novelty(GPClassifier(KERNEL).fit(X, y), queries, method)
    assert found.threshold(0) == found.left_out.min()
    assert found.threshold(1) == found.left_out.max()
    assert found.threshold() == np.quantile(found.left_out, 0.95)


def test_predictions_can_say_unknown():
    """Digits without the nines: about as many known ones are refused as the quantile says."""
    X, y = load_digits(return_X_y=True)
    held = (np.arange(len(X)) % 3 == 0) & (y != 9)
    clf = GPClassifier(RBF(25.0), 0.01).fit(X[held], y[held])
    rest = np.arange(len(X)) % 3 != 0
    new = y[rest] == 9
    for method in ALL:
        found = novelty(clf, X[rest], method)
        unknown = found.values > found.threshold(0.9)
        # Six standard deviations of the part of so many that a quantile of so few cuts off.
        spread = 6 * np.sqrt(0.1 * 0.9 * (1 / (~new).sum() + 1 / held.sum()))
        assert abs(unknown[~new].mean() - 0.1) < spread
        assert unknown[new].mean() > 0.5
        assert roc_auc_score(new, found.values) > 0.9


def test_one_class_is_told_from_everything_else():
    X, y, _ = clusters(2)
    clf = GPClassifier(KERNEL).fit(X[y == 0], ["the one"] * 6)
    for method in ALL:
        found = novelty(clf, np.vstack([X[:6].mean(axis=0), X[:1] + 40]), method)
        assert found.values[0] < found.threshold(1.0) < found.values[1]


def test_one_example_has_values_but_no_threshold():
    clf = GPClassifier(KERNEL).fit([[0.0, 0.0]], ["first"])
    for method in ALL:
        found = novelty(clf, [[0.0, 0.1], [9.0, 0.0]], method)
        assert found.values[0] < found.values[1]
        with pytest.raises(InvalidInput, match=r"needs two examples, but the model holds one"):
            found.threshold()


def test_a_regressor_supports_variance_only():
    reg = GPRegressor(KERNEL).fit([[0.0], [1.0]], [3.0, 4.0])
    found = novelty(reg, [[0.5], [9.0]], "variance")
    assert_rounded(found.values, reg.predict_variance([[0.5], [9.0]]))
    assert_rounded(found.left_out, reg.leave_one_out().variance)
    with pytest.raises(
        InvalidInput,
        match=r"^method='probability' is about classes, but a GPRegressor has none. "
        r"Ask for method='variance'.$",
    ):
        novelty(reg, [[0.5]], "probability")


def test_the_answer_reads_as_a_table():
    X, y, queries = clusters()
    found = novelty(GPClassifier(KERNEL).fit(X, y), queries)
    lines = repr(found).splitlines()
    assert lines[0] == "Novelty: 15 rows by combined, larger is newer"
    assert lines[-1] == "... 10 more"
    assert found.to_pandas()["value"].tolist() == found.values.tolist()


@pytest.mark.parametrize(
    ("X", "method", "text"),
    [
        (np.zeros((1, 3)), "entropy", r"^method='entropy' is not known. Choose one of 'combined', "
         r"'mahalanobis', 'probability', 'variance', 'null_space'.$"),
        (np.zeros((1, 3)), "score", r"^method='score' is gone: in our measurements 'probability' "
         r"told new rows from known ones as well or better. Ask for 'probability'.$"),
        (np.zeros((0, 3)), "variance", r"^X is empty. Give at least one row to ask about.$"),
        (np.zeros((1, 2)), "variance", r"X has 2 features, but GPClassifier is expecting 3"),
        ([[np.inf, 0, 0]], "variance", r"contains NaN or infinity"),
    ],
)  # fmt: skip
def test_bad_questions_are_explained(X, method, text):
    rows, y, _ = clusters()
    with pytest.raises(InvalidInput, match=text):
        novelty(GPClassifier(KERNEL).fit(rows, y), X, method)


@pytest.mark.parametrize("q", [-0.1, 1.5, np.nan, "most", True])
def test_a_threshold_takes_a_fraction(q):
    X, y, queries = clusters()
    with pytest.raises(
        InvalidInput, match=r"must be a number in .* the fraction of known examples"
    ):
        novelty(GPClassifier(KERNEL).fit(X, y), queries).threshold(q)


def test_only_fitted_gaussian_processes_with_examples_answer():
    X, y, queries = clusters()
    clf = GPClassifier(KERNEL)
    with pytest.raises(NotFitted):
        novelty(clf, queries)
    with pytest.raises(NoExamples, match="all were removed"):
        novelty(clf.fit(X, y).remove(clf.ids_), queries)
    for other in (LogisticRegression().fit(X, y), LSSVMClassifier().fit(X, y)):
        kinds = "GPClassifier, LinearGPClassifier or ForestGPClassifier"
        words = rf"^This question is for a fitted {kinds}, not"
        with pytest.raises(InvalidType, match=words):
            novelty(other, queries, "probability")
        linear = "LinearGPClassifier, LinearGPRegressor"
        words = f"a fitted GPClassifier, GPRegressor, {linear}, ForestGPClassifier or ForestGPReg"
        with pytest.raises(InvalidType, match=words):
            novelty(other, queries)


def test_answers_are_read_only_and_survive_pickling():
    X, y, queries = clusters()
    clf = GPClassifier(KERNEL, noise=0.1).fit(X, y)
    found, doubted = novelty(clf, queries), suspects(clf)
    answers = [
        *(found.values, found.left_out),
        *(doubted.ids, doubted.labels, doubted.margin, doubted.scores, doubted.probabilities),
        *(suggest(clf, queries).values, suggest(clf, queries).indices),
        *(explain(clf, queries[0]).contributions, explain(clf, queries[0]).ids),
        *(reliability(clf).count, reliability(clf).confidence),
    ]
    for values in answers:
        with pytest.raises(ValueError, match="read-only"):
            values[:] = values[::-1]
    for answer in found, doubted, suggest(clf, queries), explain(clf, queries[0]), tune(clf):
        assert repr(pickle.loads(pickle.dumps(answer))) == repr(answer)
        assert (answer.to_pandas() == answer.to_pandas()).all(axis=None)


def in_some_order(X, y, order, asked, noise):
    found = novelty(GPClassifier(RBF(1.0), noise=noise).fit(X[order], y[order]), asked)
    return np.append(found.values, found.left_out[np.argsort(order)])


def test_a_part_that_differs_by_rounding_alone_does_not_count_by_it():
    X, y, asked = np.eye(9)[[2, 3, 2, 3]], np.array([1, 0, 0, 1]), np.eye(9)[:1]
    want = in_some_order(X, y, np.arange(4), asked, 0.1)
    assert_rounded(in_some_order(X, y, np.array([2, 1, 3, 0]), asked, 0.1), want)


@pytest.mark.slow(fast=2)
@pytest.mark.parametrize("noise", [0.1, 1e-3])
@pytest.mark.parametrize("places", [1, 3])
def test_few_rows_at_few_places_are_new_alike_in_any_order_and_after_edits(places, noise):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 9))
        X, y = rng.random((places, 3))[rng.integers(places, size=n)], rng.integers(3, size=n)
        asked = np.vstack([X[:2], rng.random((3, 3)), X[:1] + 50])
        want = in_some_order(X, y, np.arange(n), asked, noise)
        # Squares are rounded by the condition, and parts are their roots.
        roundings = np.sqrt(n / noise / np.finfo(float).eps)
        assert_rounded(in_some_order(X, y, rng.permutation(n), asked, noise), want, roundings)
        edited = GPClassifier(RBF(1.0), noise=noise).fit(
            np.vstack([X[2:], rng.random((3, 3))]), np.append(y[2:], [0, 1, 0])
        )
        edited.add(X[:2], y[:2])
        edited.remove(np.arange(n - 2, n + 1))
        assert_rounded(novelty(edited, asked).values, want[: len(asked)], roundings)
