"""The audit is n refits, follows every edit, and finds labels that were planted."""

from __future__ import annotations

import pickle
from importlib import import_module
from importlib.util import find_spec

import numpy as np
import oracle
import pytest
from scipy.special import expit
from sklearn.datasets import load_digits
from sklearn.gaussian_process.kernels import RBF
from tolerance import assert_rounded, assert_solves, tolerance

from knowmore import (
    GPClassifier,
    GPRegressor,
    KnowmoreError,
    LSSVMClassifier,
    NPlusOneClassifier,
    Scores,
)
from knowmore import open as open_store
from knowmore.errors import InvalidInput, InvalidType, NoExamples, NotFitted
from knowmore.insight import novelty, suspects
from knowmore.insight.suspects import margin_contributions
from knowmore.kernels import default_kernel
from knowmore.models import class_probabilities, robust_model
from knowmore.models.probabilities import mislabelling

KERNEL, NOISE = RBF(1.5), 0.1


def logs_of(mean, noise, X, T, *, plain=None, bias=False):
    """Log chances of the classes (n, M) as of new rows, from means left out (n, M), by refits.

    noise : of each example; plain : that of weight one, None if the variance plays no part
    """
    class_support, variance = oracle.left_out(
        KERNEL, noise, X, (T + 1) / 2, np.arange(len(T)), bias
    )
    completed = oracle.completed(mean, class_support, T.argmax(axis=1))
    return oracle.moderated(completed, 0 * variance if plain is None else variance - noise + plain)


def likely_wrong(scores, codes, *views):
    """The rows of labels that are contradicted and likely to be wrong, in this order.

    views : log chances of the classes, (n, M) each; the one with the least doubt counts
    """
    odds = np.min([mislabelling(logs, codes).odds(logs, codes) for logs in views], axis=0)
    margin = scores.max(axis=1) - scores[np.arange(len(codes)), codes]
    return [i for i in np.argsort(-odds) if expit(odds[i]) >= 0.2 and margin[i] > 0]


def clouds(seed, n=60):
    """Three clouds that overlap, and their labels."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 3)) + 1.5 * np.eye(3)[y]
    return X, np.array(["ash", "oak", "yew"])[y]


@pytest.mark.parametrize(
    "clf",
    [GPClassifier(RBF(1.0)), LSSVMClassifier(RBF(1.0)), LSSVMClassifier(RBF(1.0), bias=False)],
)
def test_silent_examples_are_neither_suspect_nor_confirmed(clf):
    X, y = load_digits().data[:80], np.random.default_rng(0).integers(0, 10, 80)
    found = suspects(clf.fit(X, y))
    assert len(found.ids) == 0
    np.testing.assert_array_equal(found.silent, clf.ids_)
    assert repr(found).splitlines()[0] == (
        "Suspects: 0 of 80 labels are suspect, 80 cannot be judged"
    )
    # A wrong label among neighbours is found beside them.
    near = X[0] + np.eye(64)[:8] / 2
    clf.add(near, [11, 11, 11, 12, 11, 11, 11, 11], list("stuvwxyz"))
    found = suspects(clf.remove([0]))
    assert found.ids.tolist() == ["v"]
    assert len(found.silent) == 79
    assert found.contradicting[0][0] in set("stuwxyz")


@pytest.mark.parametrize("solver", ["cholesky", "inverse"])
def test_suspects_match_n_refits(solver):
    X, y = clouds(0)
    clf = GPClassifier(KERNEL, NOISE, solver=solver).fit(X, y).remove([8, 9])
    found, held = suspects(clf), clf.model_.examples
    classes, T = oracle.one_vs_all(held.labels)
    mean, _ = oracle.left_out(KERNEL, NOISE, held.X, T, np.arange(len(T)))
    K = oracle.covariance(KERNEL, held.X, NOISE)
    assert_solves(found.scores, mean, K, T, solver=solver, left=K)
    # The model, and a sceptic at ten times the noise.
    smooth, _ = oracle.left_out(KERNEL, 10 * NOISE, held.X, T, np.arange(len(T)))
    views = [
        logs_of(mean, NOISE, held.X, T, plain=NOISE),
        logs_of(smooth, 10 * NOISE, held.X, T, plain=10 * NOISE),
    ]
    ranked = likely_wrong(mean, T.argmax(axis=1), *views)
    assert len(ranked) > 2
    assert found.ids.tolist() == held.ids[ranked].tolist()
    assert found.rows.tolist() == ranked
    assert found.labels.tolist() == held.labels[ranked].tolist()
    assert found.preferred.tolist() == [classes[c] for c in mean[ranked].argmax(axis=1)]
    np.testing.assert_array_equal(
        found.margin,
        found.scores.max(axis=1)[ranked]
        - found.scores[ranked, np.searchsorted(classes, found.labels)],
    )


@pytest.mark.parametrize("solver", ["cholesky", "inverse"])
def test_margins_are_sums_of_contributions(solver):
    X, y = clouds(1)
    clf = GPClassifier(KERNEL, NOISE, solver=solver).fit(X, y)
    found = suspects(clf)
    C = margin_contributions(found.model, found.rows, found.preferred)
    K = oracle.covariance(KERNEL, X, NOISE)
    for j, s in enumerate(found.rows):
        rest = np.delete(np.arange(len(X)), s)
        d = 1.0 * (y == found.preferred[j])[:, None] - (y == found.labels[j])[:, None]
        k = KERNEL(X, X[[s]])
        want = np.zeros((len(X), 1))
        want[rest] = 2 * oracle.solve(K[np.ix_(rest, rest)], d[rest]) * k[rest]
        assert_solves(C[:, [j]], want, K, 2 * d, solver=solver, left=k)
        assert_solves(
            C[:, [j]].sum(keepdims=True), found.margin[[[j]]], K, 2 * d, solver=solver, left=k
        )
        strongest = sorted((rest[y[rest] == found.preferred[j]]), key=lambda i: -want[i, 0])
        assert found.contradicting[j] == tuple(strongest[:3])


def known_scores(X):
    """The suspects of a classifier of ash and oak."""
    return np.column_stack([X[:, 0] - X[:, 1], X[:, 1] - X[:, 0]])


MODELS = {
    "GP": lambda: GPClassifier(KERNEL, NOISE),
    "LSSVM": lambda: LSSVMClassifier(KERNEL, 1 / NOISE),
    "without bias": lambda: LSSVMClassifier(KERNEL, 1 / NOISE, bias=False),
    "balanced": lambda: LSSVMClassifier(KERNEL, 1 / NOISE, class_weight="balanced"),
    "N + 1": lambda: NPlusOneClassifier(
        Scores(["ash", "oak"], known_scores), KERNEL, 1 / NOISE, positive=False, scaled=False
    ),
    "N + 1, scaled": lambda: NPlusOneClassifier(
        Scores(["ash", "oak"], known_scores), KERNEL, 1 / NOISE, positive=False
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_suspects_of_all_models_match_refits(name):
    X, y = clouds(7)
    y[:6] = "ash"
    clf = MODELS[name]().fit(X, y, sample_weight=np.random.default_rng(1).uniform(0.2, 5, size=60))
    found, bias = suspects(clf), name not in ("GP", "without bias")
    noise = clf.model_.covariance.noise / clf.model_.covariance.weights
    classes, T = oracle.one_vs_all(y)
    shift = np.zeros_like(T)
    if name == "N + 1":
        assert abs(clf.beta_).max() > 0.1
        S = known_scores(X)
        shift = np.column_stack([S, S @ clf.beta_])
    learnt, given = T - shift, shift
    if name == "N + 1, scaled":
        targets = clf.model_.targets
        learnt, given = targets.T, known_scores(X) @ targets.prior
    K, rest = oracle.covariance(KERNEL, X, noise), ~np.eye(60, dtype=bool)
    want, _ = oracle.left_out(KERNEL, noise, X, learnt, np.arange(60), bias)
    assert_solves(found.scores, want + given, K, learnt, left=K, bias=bias)
    plain = NOISE if name == "GP" else None
    views = [logs_of(want + given, noise, X, T, plain=plain, bias=bias)]
    if not name.startswith("N + 1"):
        smooth, _ = oracle.left_out(KERNEL, 10 * noise, X, T, np.arange(60), bias)
        wide = None if plain is None else 10 * plain
        views.append(logs_of(smooth, 10 * noise, X, T, plain=wide, bias=bias))
    ranked = likely_wrong(want + given, T.argmax(axis=1), *views)
    assert found.rows.tolist() == ranked
    assert len(ranked) > 2
    C = margin_contributions(found.model, found.rows, found.preferred)
    for j, s in enumerate(ranked):
        r, p, own = rest[s], classes.index(found.preferred[j]), classes.index(found.labels[j])
        d = (learnt[:, [p]] - learnt[:, [own]])[r]
        A = oracle.bordered(K[np.ix_(r, r)]) if bias else K[np.ix_(r, r)]
        a = np.linalg.solve(A, np.vstack([d, [[0.0]]]) if bias else d)[:59]
        k = KERNEL(X[r], X[[s]])
        assert C[s, j] == 0
        assert_solves(C[r, j][:, None], a * k, K[np.ix_(r, r)], d, left=k, bias=bias)


def test_probabilities_of_weighted_examples_are_those_of_new_rows():
    X, y = clouds(8, 30)
    weights = np.random.default_rng(2).uniform(0.2, 5, size=30)
    clf = GPClassifier(KERNEL, NOISE).fit(X, y, sample_weight=weights)
    want = probabilities_by_refits(X, y, weights, clf.temperature_)
    K = oracle.covariance(KERNEL, X, NOISE / weights)
    # Scores and variances are off by a part of K~'s norm; chances by as much.
    scale = np.linalg.norm(K, 2) / NOISE
    assert_rounded(suspects(clf).probabilities, want, tolerance(K) / np.finfo(float).eps, scale)


def probabilities_by_refits(X, y, weights, temperature):
    """Support of each example by the others, as for a new row; its class stands in for it."""
    scores, variance, class_support = [], [], []
    codes = np.unique(y, return_inverse=True)[1]
    for i, r in enumerate(~np.eye(len(X), dtype=bool)):
        clf = GPClassifier(KERNEL, NOISE).fit(X[r], y[r], sample_weight=weights[r])
        scores.append(clf.decision_function(X[[i]])[0])
        variance.append(clf.predict_variance(X[[i]])[0])
        said = np.linalg.solve(
            oracle.covariance(KERNEL, X[r], NOISE / weights[r]), np.eye(3)[codes[r]]
        )
        class_support.append(KERNEL(X[[i]], X[r])[0] @ said)
    return class_probabilities(
        oracle.completed(scores, class_support, codes), np.array(variance), temperature
    )


def test_it_follows_every_edit():
    X, y = clouds(2)
    clf = GPClassifier(KERNEL, NOISE).fit(X, y)
    before = suspects(clf)
    clf.remove([0, 4]).relabel([7], ["yew"]).replace([9], X[[0]] + 0.1)
    clf.add(X[:2] + 0.2, ["elm", "elm"], ids=["new", "newer"])
    held = clf.model_.examples
    after = suspects(clf)
    fresh = suspects(GPClassifier(KERNEL, NOISE).fit(held.X, held.labels, held.names))
    assert after.ids.tolist() == fresh.ids.tolist()
    assert after.contradicting == fresh.contradicting
    K, T = oracle.covariance(KERNEL, held.X, NOISE), clf.model_.targets.T
    assert_solves(after.scores, fresh.scores, K, T, left=K)
    # An answer speaks of the model that was asked.
    assert before.contradicting == suspects(GPClassifier(KERNEL, NOISE).fit(X, y)).contradicting


def test_planted_labels_come_first():
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    planted = rng.choice(len(y), len(y) // 20, replace=False)
    wrong = y.copy()
    wrong[planted] = (y[planted] + rng.integers(1, 10, len(planted))) % 10
    found = suspects(GPClassifier().fit(X, wrong))
    assert np.isin(found.ids[: len(planted)], planted).mean() >= 0.95
    caught = np.isin(found.ids, planted)
    assert (found.preferred[caught] == y[found.ids[caught]]).mean() >= 0.95


def test_likely_mistakes_are_listed():
    # One label in five is the nearest other class.
    X, y = load_digits(return_X_y=True)
    means = np.stack([X[y == c].mean(axis=0) for c in range(10)])
    distance = ((X[:, None] - means) ** 2).sum(axis=2)
    distance[np.arange(len(y)), y] = np.inf
    planted = np.random.default_rng(0).choice(len(y), len(y) // 5, replace=False)
    wrong = y.copy()
    wrong[planted] = distance[planted].argmin(axis=1)
    found = suspects(GPClassifier(default_kernel(X), NOISE).fit(X, wrong))
    hits = np.isin(found.ids, planted)
    assert 2 * hits.sum() / (len(hits) + len(planted)) >= 0.9
    assert (found.preferred[hits] == y[found.ids[hits]]).mean() >= 0.95


def test_the_only_example_of_a_class_is_a_suspect():
    X, y = clouds(3)
    y[5] = "yucca"
    found = suspects(GPClassifier(KERNEL, NOISE).fit(X, y))
    assert 5 in found.ids


def test_no_suspects_where_all_agree():
    clf = GPClassifier(KERNEL, NOISE).fit([[0.0], [0.1], [9.0], [9.1]], list("aabb"))
    found = suspects(clf)
    assert len(found.ids) == len(found.margin) == len(found.to_pandas()) == 0
    assert found.contradicting == found.duplicates == ()
    assert repr(found).startswith("Suspects: 0 of 4 labels are suspect")


def test_two_examples_suspect_each_other():
    found = suspects(GPClassifier(KERNEL, NOISE).fit([[0.0], [1.0]], ["a", "b"]))
    assert sorted(found.ids) == [0, 1]
    assert dict(zip(found.ids.tolist(), found.contradicting, strict=True)) == {0: (1,), 1: (0,)}


def test_suspects_can_be_left_out():
    found = suspects(GPClassifier(KERNEL, NOISE).fit(*clouds(0)))
    k = len(found)
    assert k > 2
    rest = found.without([*found.ids[:1], "nobody"])
    assert rest.ids.tolist() == found.part(slice(1, None)).ids.tolist() == found.ids[1:].tolist()
    assert rest.doubt.tolist() == found.doubt[1:].tolist()
    assert rest.contradicting == found.contradicting[1:]
    assert repr(rest).startswith(f"Suspects: {k - 1} of 60 labels are suspect")
    assert len(found.without(found.ids)) == 0


def test_duplicates_with_different_labels_are_named():
    X = [[0.0, 1.0], [2.0, 2.0], [-0.0, 1.0], [3.0, 3.0], [2.0, 2.0], [0.0, 1.0 + 1e-12]]
    clf = GPClassifier(KERNEL, NOISE).fit(X, list("abbbba"), ids=list("uvwxyz"))
    assert suspects(clf).duplicates == (("u", "w"),)
    assert suspects(clf.relabel("y", ["a"])).duplicates == (("u", "w"), ("v", "y"))


def test_probabilities_are_those_of_models_without_the_example():
    X, y = clouds(4, 30)
    clf = GPClassifier(KERNEL, NOISE).fit(X, y)
    K = oracle.covariance(KERNEL, X, NOISE)
    want = probabilities_by_refits(X, y, np.ones(30), clf.temperature_)
    scale = np.linalg.norm(K, 2) / NOISE
    assert_rounded(suspects(clf).probabilities, want, tolerance(K) / np.finfo(float).eps, scale)


def test_cleanlab_gets_labels_as_columns():
    X, y = clouds(5)
    given = suspects(GPClassifier(KERNEL, NOISE).fit(X, y)).for_cleanlab()
    assert set(given) == {"labels", "pred_probs"}
    assert np.array(["ash", "oak", "yew"])[given["labels"]].tolist() == y.tolist()
    assert_rounded(given["pred_probs"].sum(axis=1), np.ones(len(X)))


@pytest.mark.skipif(find_spec("cleanlab") is None, reason="cleanlab is not installed")
def test_cleanlab_accepts_the_keywords():
    X, y = load_digits(return_X_y=True)
    X, y = X[:500], y[:500].copy()
    planted = np.arange(0, 500, 20)
    y[planted] = (y[planted] + 3) % 10
    found = suspects(GPClassifier().fit(X, y))
    issues = import_module("cleanlab.filter").find_label_issues(**found.for_cleanlab(), n_jobs=1)
    # Rows are in order: what it names are the planted ones, not one in twenty by chance.
    assert np.isin(np.flatnonzero(issues), planted).mean() > 0.5


def test_it_reads_as_a_table():
    X, y = clouds(6)
    found = suspects(GPClassifier(KERNEL, NOISE).fit(X, y))
    table = found.to_pandas()
    assert list(table.columns) == ["id", "label", "preferred", "doubt", "margin", "contradicting"]
    assert table["id"].tolist() == found.ids.tolist()
    assert table["contradicting"].tolist() == list(found.contradicting)
    assert repr(found).startswith(f"Suspects: {len(found.ids)} of 60 labels are suspect\n")


MISTAKES = {
    "one class": (
        lambda: suspects(GPClassifier().fit([[0.0], [1.0]], ["a", "a"])),
        InvalidInput,
        "All labels are 'a'. Add examples of another class.",
    ),
    "one example": (
        lambda: suspects(GPClassifier().fit([[0.0]], [7])),
        InvalidInput,
        "All labels are 7. Add examples of another class.",
    ),
    "values": (
        lambda: suspects(GPRegressor().fit([[0.0], [1.0]], [0.5, 1.5])),
        InvalidInput,
        "suspects() is about classes, but a GPRegressor has none. Ask for leave_one_out().",
    ),
    "nothing learnt": (
        lambda: suspects(GPClassifier()),
        NotFitted,
        "This GPClassifier is not fitted yet. Call fit or add first.",
    ),
    "nothing held": (
        lambda: suspects(GPClassifier().fit([[0.0], [1.0]], ["a", "b"]).remove([0, 1])),
        NoExamples,
        "The model holds no examples: all were removed. Add some before asking.",
    ),
    "no model": (
        lambda: suspects(None),
        InvalidType,
        "This question is for a fitted GPClassifier, LSSVMClassifier, NPlusOneClassifier, "
        "LinearGPClassifier or ForestGPClassifier, not NoneType.",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_explained(name):
    act, error, text = MISTAKES[name]
    with pytest.raises(error) as caught:
        act()
    assert isinstance(caught.value, KnowmoreError)
    assert str(caught.value) == text


def test_the_only_example_of_a_class_is_silent_if_far_from_all():
    near = GPClassifier(RBF(1.0)).fit([[0.0], [1.0], [1.5], [2.0]], ["a", "b", "b", "b"])
    assert suspects(near).ids.tolist() == [0]
    far = GPClassifier(RBF(1.0)).fit([[0.0], [100.0], [100.5]], ["a", "b", "b"])
    assert suspects(far).ids.tolist() == []


def test_the_rate_is_the_part_of_the_labels_that_is_wrong():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X, wrong = rng.normal(size=(300, 4)) + 6 * np.eye(4)[y], rng.random(300) < 0.1
    found = suspects(GPClassifier(default_kernel(X), NOISE).fit(X, np.where(wrong, 1 - y, y)))
    assert sorted(found.rows) == np.flatnonzero(wrong).tolist()
    # Half a label of doubt at most, and 1.5 % that may be hard examples.
    for count in found.rate * 300, found.doubts.sum():
        assert -0.5 - 0.015 * 300 < count - wrong.sum() < 0.5


def test_relabelling_keeps_the_factor_of_the_sceptic_and_pickles_do_without():
    X, y = clouds(3)
    clf = GPClassifier(KERNEL, NOISE).fit(X, y)
    size = len(pickle.dumps(clf))
    suspects(clf)
    assert len(pickle.dumps(clf.model_.covariance)) < size
    before = robust_model(clf.model_).covariance.factor
    found = suspects(clf.relabel([0], ["yew"]))
    assert robust_model(clf.model_).covariance.factor is before
    fresh = GPClassifier(KERNEL, NOISE).fit(X, np.r_[["yew"], y[1:]])
    assert found.rows.tolist() == suspects(fresh).rows.tolist()
    suspects(clf.remove([1]))
    assert robust_model(clf.model_).covariance.factor.size == 59


@pytest.mark.parametrize("noise", [0.0, 1e-300])
def test_a_model_that_a_sceptic_cannot_start_from_scratch_is_its_own(noise):
    X = np.arange(12.0)[:, None] * 5
    clf = GPClassifier(RBF(1.0), noise).fit(X, np.arange(12) % 2)
    suspects(clf)
    assert noise or clf.model_.covariance.robust is clf.model_.covariance


@pytest.mark.parametrize("weight", [1e-5, 1e-8, 1e-16, 1e-20, 1e-25])
def test_an_example_of_next_to_no_weight_has_the_variance_of_a_new_row(weight):
    X, y = clouds(4, 40)
    others = GPClassifier(KERNEL, NOISE).fit(X[1:], y[1:])
    weights = np.r_[[weight], np.ones(39)]
    clf = GPClassifier(KERNEL, NOISE).fit(X, y, sample_weight=weights)
    want = others.predict_variance(X[:1])
    # What a difference from 1 / w loses, where it is one.
    lost = np.finfo(float).eps / weight if weight > 1e-6 else 0.0
    K = oracle.covariance(KERNEL, X[1:], NOISE)
    np.testing.assert_allclose(suspects(clf).variance[:1], want, rtol=tolerance(K) + 16 * lost)
    assert np.isfinite(novelty(clf, X + 3).values).all()


def test_a_file_is_asked_by_what_it_holds(tmp_path):
    with open_store(tmp_path / "some.km", GPClassifier(KERNEL)) as store:
        store.add([[0.0], [1.0], [2.0]], ["a", "b", "b"])
        with pytest.raises(InvalidType, match=r"not Store\. Ask about what it holds: store\.estim"):
            suspects(store)
        assert len(suspects(store.estimator).scores) == 3
