"""EigenspaceLDA where rows of one class do not differ along directions in which others do.

The scatter within the classes is singular there, as it always is with fewer rows than features.
What is learnt must still be a function of the rows: of no order, no history, no shards.
"""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from tolerance import assert_rounded

from knowmore import EigenspaceLDA, KnowmoreError
from knowmore.distributed import fit as distributed_fit
from knowmore.errors import LostVariance, MissingData
from papers.data import animals_with_attributes

EPS = np.finfo(float).eps


def normal(rng, n, D, classes, spread=1.0):
    """Rows of normal classes, and queries of the same."""
    means = rng.normal(size=(classes, D))
    # Every class is there.
    labels, asked = np.arange(n) % classes, np.arange(60) % classes
    return (
        means[labels] + spread * rng.normal(size=(n, D)),
        labels,
        means[asked] + spread * rng.normal(size=(60, D)),
    )


def condition(X, directions=None):
    """The largest scatter over the smallest that is not nothing."""
    values = np.linalg.svd(X - X.mean(axis=0), compute_uv=False)
    return (values[0] / values[(directions or min(len(X) - 1, X.shape[1])) - 1]) ** 2


def histories(X, y, extra, extra_y, **parameters):
    """Models of the rows X, by other ways than a fit of them in this order."""
    new = lambda: EigenspaceLDA(**parameters)  # noqa: E731
    order = np.random.default_rng(5).permutation(len(X))
    yield "permuted", new().fit(X[order], y[order])
    grown = new().fit(X[:2], y[:2])
    for i in range(2, len(X), 7):
        grown.partial_fit(X[i : i + 7], y[i : i + 7])
    yield "grown", grown
    by_class = new().fit(X[y == y[0]], y[y == y[0]])
    for name in np.setdiff1d(y, y[:1]):
        by_class.merge(new().fit(X[y == name], y[y == name]))
    yield "merged class by class", by_class
    more, labels = np.vstack([X, extra]), np.concatenate([y, extra_y])
    yield "forgot", new().fit(more, labels).forget(extra, extra_y)
    one = new().fit(X, y)
    for row, label in zip(extra[:5], extra_y[:5], strict=True):
        one.partial_fit(row[None], [label])
    for row, label in zip(extra[:5][::-1], extra_y[:5][::-1], strict=True):
        one.forget(row[None], [label])
    yield "forgot one by one", one
    shards = np.array_split(order, 3)
    yield "sharded", distributed_fit(new(), [X[i] for i in shards], [y[i] for i in shards])


def assert_same(one, other, queries, roundings):
    np.testing.assert_array_equal(one.predict(queries), other.predict(queries))
    for ask in "decision_function", "explained_variance_ratio_", "means_":
        a, b = getattr(one, ask), getattr(other, ask)
        if callable(a):
            a, b = a(queries), b(queries)
        assert_rounded(b, a, roundings)
    # Discriminants of equal strength may be turned; their distances are the same.
    a, b = one.transform(queries), other.transform(queries)
    assert_rounded(b @ b.T, a @ a.T, roundings)


@pytest.mark.parametrize(
    ("n", "D", "classes"), [(60, 100, 4), (40, 41, 5), (12, 300, 2), (57, 63, 15)]
)
def test_fewer_rows_than_features_are_null_space_lda_by_any_history(n, D, classes):
    rng = np.random.default_rng(n)
    X, y, queries = normal(rng, n, D, classes, 2.0)
    extra, extra_y = rng.normal(size=(20, D)), np.arange(20) % classes
    lda = EigenspaceLDA().fit(X, y)
    empty, _ = oracle.null_space_lda(X, y, queries, n - classes)
    assert lda.predict(queries).tolist() == empty.argmin(axis=1).tolist()
    roundings = 1000 * n * condition(X)
    Z, M = lda.transform(queries), lda.transform(lda.means_)
    found = ((Z[:, None] - M[None]) ** 2).sum(axis=-1)
    # Rows outside the span of all rows are as far from every class.
    difference = lambda d: d - d[:, :1]  # noqa: E731
    scale = found[0, 1] - found[0, 0]
    scale /= empty[0, 1] - empty[0, 0]
    assert_rounded(difference(found), scale * difference(empty), roundings, scale * empty.max())
    for _, other in histories(X, y, extra, extra_y):
        assert_same(lda, other, queries, roundings)


def test_animals_by_words_in_any_order_and_by_portions():
    """450 rows of 504 features, which do not tell much: where arbitrary weights would show."""
    try:
        animals = animals_with_attributes("surf")
    except MissingData as error:
        pytest.skip(str(error))
    rng = np.random.default_rng(0)
    some = np.isin(animals.labels, np.unique(animals.labels)[:15])
    X, y = np.sqrt(animals.X[some][:, rng.permutation(2000)[:504]]), animals.labels[some]
    learnt = np.arange(len(y)) % 2 == 0
    X, y, queries, wanted = X[learnt], y[learnt], X[~learnt], y[~learnt]
    lda = EigenspaceLDA().fit(X, y)
    empty, _ = oracle.null_space_lda(X, y, queries, 435)
    naive = np.unique(y)[empty.argmin(axis=1)]
    assert lda.predict(queries).tolist() == naive.tolist()
    assert lda.score(queries, wanted) == (naive == wanted).mean()
    order = rng.permutation(450)
    grown = EigenspaceLDA().fit(X[order[:50]], y[order[:50]])
    for i in range(50, 450, 100):
        grown.partial_fit(X[order[i : i + 100]], y[order[i : i + 100]])
    permuted = EigenspaceLDA().fit(X[order], y[order])
    forgot = EigenspaceLDA().fit(np.vstack([X, queries[:30]]), np.append(y, wanted[:30]))
    forgot.forget(queries[:30], wanted[:30])
    for other in grown, permuted, forgot:
        assert_same(lda, other, queries, 1000 * 450 * condition(X))


def test_the_limit_is_that_of_a_vanishing_shrinkage():
    X, y, queries = normal(np.random.default_rng(1), 60, 90, 5, 2.0)
    limit = EigenspaceLDA(priors="equal").fit(X, y).predict(queries)
    for alpha in 1e-6, 1e-8:
        almost = EigenspaceLDA(priors="equal", shrinkage=alpha).fit(X, y)
        assert almost.predict(queries).tolist() == limit.tolist()


def leaking(rng, n=80, D=6, classes=4):
    """A feature that gives class 1 away, others that tell all classes apart."""
    X, y, queries = normal(rng, n, D, classes)
    X[:, 2] = y == 1
    queries[:, 2] = rng.integers(0, 2, len(queries)) + 0.1 * rng.normal(size=len(queries))
    return X, y, queries


def test_other_directions_decide_where_those_without_spread_leave_a_tie():
    rng = np.random.default_rng(2)
    X, y, queries = leaking(rng)
    extra, extra_y = rng.normal(size=(20, 6)) * [1, 1, 0, 1, 1, 1], np.full(20, 3)
    lda = EigenspaceLDA().fit(X, y)
    assert lda.transform(X).shape == (80, 3)
    empty, others = oracle.null_space_lda(X, y, queries, 5)
    leak = empty.min(axis=1, keepdims=True)
    # One feature is the null space: classes but 1 have the same distance along it.
    tied = abs(empty - leak) <= np.sqrt(EPS) * empty.max()
    assert (tied.sum(axis=1) > 1).any()
    assert (tied.sum(axis=1) == 1).any()
    wanted = np.where(tied, others, np.inf).argmin(axis=1)
    assert lda.predict(queries).tolist() == wanted.tolist()
    # Among tied classes the posterior follows the other distances.
    some = tied[:, 0]
    scores = lda.decision_function(queries)[some][:, [0, 2, 3]]
    want = -0.5 * others[some][:, [0, 2, 3]]
    # The first term takes half of the digits.
    roundings = 1000 / np.sqrt(EPS)
    assert_rounded(scores - scores[:, :1], want - want[:, :1], roundings, abs(want).max())
    for _, other in histories(X, y, extra, extra_y):
        assert other.predict(queries).tolist() == wanted.tolist()


def test_features_of_unequal_scale_keep_their_null_space():
    rng = np.random.default_rng(3)
    X, y, queries = leaking(rng)
    scales = np.array([1e6, 1, 1, 1e-3, 1, 1e3])
    plain = EigenspaceLDA().fit(X, y)
    scaled = EigenspaceLDA().fit(X * scales, y)
    # The null space is one feature, so that no other scale matters.
    assert scaled.predict(queries * scales).tolist() == plain.predict(queries).tolist()
    wide, y, queries = normal(rng, 40, 60, 4, 2.0)
    scales = np.where(np.arange(60) % 7 == 0, 1e6, 1.0)
    wide, queries = wide * scales, queries * scales
    lda = EigenspaceLDA().fit(wide, y)
    empty, _ = oracle.null_space_lda(wide, y, queries, 36)
    assert lda.predict(queries).tolist() == empty.argmin(axis=1).tolist()
    order = rng.permutation(40)
    again = EigenspaceLDA().fit(wide[order], y[order])
    assert again.predict(queries).tolist() == lda.predict(queries).tolist()


def test_classes_far_apart_are_not_taken_for_classes_without_spread():
    X, y, queries = normal(np.random.default_rng(4), 60, 5, 3)
    means = np.array([[1e5, 0, 0, 0, 0], [0, 1e5, 0, 0, 0], [0, 0, 0, 0, 0]])
    X, queries = X + means[y], queries + means[np.arange(60) % 3]
    lda = EigenspaceLDA().fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    middle = (queries[:-1] + queries[1:]) / 2
    assert lda.predict(middle).tolist() == theirs.predict(middle).tolist()
    # All of the covariance, to the digits that a ratio of 1e10 leaves.
    error = 1000 * condition(X)
    A, B = lda.scalings_, theirs.scalings_[:, :2]
    assert_rounded(A @ A.T, B @ B.T, error)


def far_apart(rng, apart, n=600):
    """Three classes `apart`, of two features that go together; and where they meet, to be asked."""
    y = np.arange(n) % 3
    X = rng.normal(size=(n, 2)) @ [[1, 0], [0.98, 0.2]]
    return X + apart * np.array([[0, 0], [1, 0], [0, 1]])[y], y, rng.uniform(-0.5, 1.5, (3000, 2))


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1.0, 1e6, 1e9, 1e12])
@pytest.mark.parametrize("apart", [1e3, 1e4, 1e5])
def test_no_unit_of_a_feature_hides_the_spread_of_others(apart, unit):
    rng = np.random.default_rng(0)
    X, y, queries = far_apart(rng, apart)
    noise = rng.normal(size=(len(X), 1)), rng.normal(size=(len(queries), 1))
    X, queries = np.hstack([X, unit * noise[0]]), np.hstack([apart * queries, unit * noise[1]])
    scales = X.std(axis=0)
    theirs = LinearDiscriminantAnalysis().fit(X / scales, y)
    lda = EigenspaceLDA().fit(X, y)
    assert lda.predict(queries).tolist() == theirs.predict(queries / scales).tolist()
    # All of the covariance, to the digits that such a ratio leaves; one decomposition is a hundred
    # roundings of the largest feature, and features within a factor of 32 share one.
    error = 100 * 32**2 * condition(X[:, :2] - np.eye(3)[y] @ lda.means_[:, :2]) * apart**2
    theirs = LinearDiscriminantAnalysis(solver="eigen").fit(X / scales, y)
    A, B = lda.scalings_ * scales[:, None], theirs.scalings_[:, :2]
    assert_rounded(A @ A.T, B @ B.T, error)


@pytest.mark.parametrize("where", [(1, -0.7), (1, 1), (1, 0), (0.3, 1)])
@pytest.mark.parametrize("apart", [1e3, 1e4, 1e5])
def test_a_forgotten_row_far_out_does_not_hide_the_spread_of_classes(apart, where):
    X, y, queries = far_apart(np.random.default_rng(0), apart)
    queries = queries * apart
    far = 3e7 * np.array([where])
    lda = EigenspaceLDA().fit(X, y)
    wanted = lda.predict(queries)
    within = np.linalg.svd(X - np.eye(3)[y] @ lda.means_, compute_uv=False)[-1] ** 2
    lda.partial_fit(far, [0]).forget(far, [0])
    # The scatter is known to a rounding of the row's, and boundaries move by the part that this is
    # of the scatter within the classes: as large a part of the plane may change sides.
    assert (lda.predict(queries) != wanted).mean() <= EPS * (far**2).sum() / within


@pytest.mark.parametrize("far", [1e9, 1e10])
def test_a_spread_that_a_forgotten_row_hides_gives_a_warning(far):
    X, y, queries = far_apart(np.random.default_rng(0), 1e3)
    row = far * np.array([[1, -0.7]])
    lda = EigenspaceLDA().fit(X, y).partial_fit(row, [0])
    before = lda.model_
    # Warnings are errors here, and an error leaves everything as it was.
    with pytest.raises(LostVariance):
        lda.forget(row, [0])
    assert lda.model_ is before
    words = r"Along [12] of 2 discriminants forgotten outliers left rounding errors"
    with pytest.warns(LostVariance, match=words) as warned:
        lda.forget(row, [0])
    assert warned[0].filename == __file__
    assert np.isfinite(lda.predict_proba(queries)).all()


def test_a_null_space_of_few_rows_outlives_a_row_far_out():
    """Too few rows have no spread, however rounding falls."""
    rng = np.random.default_rng(8)
    X, y, queries = normal(rng, 30, 40, 4, 2.0)
    far = 1e6 * rng.normal(size=(1, 40))
    lda = EigenspaceLDA().fit(X, y)
    wanted = lda.predict(queries)
    lda.partial_fit(far, [1]).forget(far, [1])
    assert lda.predict(queries).tolist() == wanted.tolist()


@pytest.mark.parametrize("seed", range(12))
def test_random_histories_with_fewer_rows_than_features(seed):
    rng = np.random.default_rng(seed)
    D, classes = int(rng.integers(20, 60)), int(rng.integers(2, 6))
    pool = rng.normal(size=(3 * D, D)) * rng.uniform(0.5, 2, D) + 3
    labels = rng.integers(0, classes, len(pool))
    held = list(range(2))
    lda = EigenspaceLDA().fit(pool[held], labels[held])
    largest = 2
    for _ in range(25):
        out = [i for i in range(len(pool)) if i not in held]
        if len(held) > 4 and (rng.random() < 0.45 or len(held) > D - 8):
            some = rng.choice(held, size=int(rng.integers(1, len(held) - 2)), replace=False)
            lda.forget(pool[some], labels[some])
            held = [i for i in held if i not in some]
        else:
            some = rng.choice(out, size=int(rng.integers(1, 8)), replace=False)
            if rng.random() < 0.5:
                lda.partial_fit(pool[some], labels[some])
            else:
                lda.merge(EigenspaceLDA().fit(pool[some], labels[some]))
            held += some.tolist()
        largest = max(largest, len(held))
        X, y = pool[held], labels[held]
        fresh = EigenspaceLDA().fit(X, y)
        queries = pool[out[:30]]
        assert lda.predict(queries).tolist() == fresh.predict(queries).tolist()
        a, b = fresh.transform(queries), lda.transform(queries)
        assert_rounded(b @ b.T, a @ a.T, 10**4 * largest * condition(X))


KINDS = {
    "few values of a feature give classes away": lambda rng, X, y: np.where(
        np.arange(X.shape[1]) == 1, 1e-3 * (y[:, None] == 1), X
    ),
    "rows that are there twice": lambda rng, X, y: X[np.arange(len(X)) // 2],
    "fewer directions than features": lambda rng, X, y: X[:, :7] @ rng.normal(size=(7, X.shape[1])),
    "rows far from zero": lambda rng, X, y: X + 1e5,
    "directions of unequal scatter": lambda rng, X, y: (
        X * np.logspace(0, -3, X.shape[1]) @ np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0]
    ),
}


# Equal rows have no differences, but may give a warning that some were lost.
ALIKE = pytest.mark.filterwarnings("ignore:The variance of the .* rows that remain")


# The warning goes by a bound of rounding, which may be far above what was rounded.
@pytest.mark.slow(fast=5)
@pytest.mark.filterwarnings("ignore:Along .* hide whether the classes have any spread")
@ALIKE
@pytest.mark.parametrize("shrinkage", [None, 0.2, "ledoit-wolf"])
@pytest.mark.parametrize("kind", KINDS)
def test_random_histories_of_awkward_rows(kind, shrinkage):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n, D, classes = (int(rng.integers(*ends)) for ends in ((8, 60), (8, 40), (3, 6)))
        labels = np.arange(2 * n) // 2 % classes
        rows = rng.normal(size=(classes, D))[labels] + rng.normal(size=(2 * n, D))
        pool = KINDS[kind](rng, rows, labels)
        queries = pool[rng.integers(0, 2 * n, 40)] + 0.3 * pool.std() * rng.normal(size=(40, D))
        held = np.arange(2 * n) < n
        lda = EigenspaceLDA(shrinkage=shrinkage).fit(pool[held], labels[held])
        for _ in range(5):
            moved = rng.random(2 * n) < 0.3
            out, new = held & moved, ~held & moved
            if out.any() and (held & ~out).sum() > 2:
                lda.forget(pool[out], labels[out])
                held = held & ~out
            if new.any():
                lda.partial_fit(pool[new], labels[new])
                held = held | new
            fresh = EigenspaceLDA(shrinkage=shrinkage).fit(pool[held], labels[held])
            assert lda.predict(queries).tolist() == fresh.predict(queries).tolist()


# -- nothing that is not finite ------------------------------------------------------------------

rng = np.random.default_rng(9)
ROWS = rng.normal(size=(12, 5))
CASES = {
    "one class": (ROWS, [0] * 12),
    "one row": (ROWS[:1], [0]),
    "one row for each class": (ROWS[:5], [0, 1, 2, 3, 4]),
    "one row for each of more classes than features": (ROWS, np.arange(12)),
    "two rows of two classes": (ROWS[:2], [0, 1]),
    "a class of one row": (ROWS, [0] * 6 + [1] * 5 + [2]),
    "duplicates": (np.repeat(ROWS[:3], 4, axis=0), [0] * 4 + [1] * 4 + [2] * 4),
    "duplicates in two classes": (np.repeat(ROWS[:6], 2, axis=0), [0, 1] * 6),
    "all rows alike": (np.ones((12, 5)), [0, 1] * 6),
    "all rows alike but far from zero": (np.full((12, 5), 1e8 / 3), [0, 1] * 6),
    "constant columns": (ROWS * [1, 0, 1, 0, 0], [0, 1, 2] * 4),
    "classes on the same mean": (np.vstack([ROWS, -ROWS]), [0] * 6 + [1] * 6 + [0] * 6 + [1] * 6),
    "fewer rows than features": (rng.normal(size=(12, 40)), [0, 1, 2] * 4),
    "few rows far from zero": (rng.normal(size=(12, 40)) + 1e8, [0, 1, 2] * 4),
    "huge": (rng.normal(size=(12, 40)) * 1e60, [0, 1, 2] * 4),
    "tiny": (rng.normal(size=(12, 40)) * 1e-60, [0, 1, 2] * 4),
    "features from huge to tiny": (ROWS * [1e9, 1e-9, 1, 1e5, 1e-5], [0, 1, 2] * 4),
}


# Rows that lie far out are learnt and forgotten.
@pytest.mark.slow(fast=30)
@pytest.mark.filterwarnings("ignore:Along .* hide whether the classes have any spread")
@ALIKE
@pytest.mark.parametrize("shrinkage", [None, 0.0, 0.3, 1.0, "ledoit-wolf"])
@pytest.mark.parametrize("case", CASES)
def test_every_answer_is_finite(case, shrinkage):
    X, y = np.array(CASES[case][0]), np.array(CASES[case][1])
    lda = EigenspaceLDA(shrinkage=shrinkage).fit(X, y)
    for model in (
        lda,
        EigenspaceLDA(shrinkage=shrinkage).fit(X, y).merge(lda).forget(X, y),
        EigenspaceLDA(shrinkage=shrinkage).fit(X[::-1], y[::-1]).merge(lda),
    ):
        queries = np.vstack([X, 3 * X + abs(X).max(), np.zeros_like(X[:1])])
        for ask in "transform", "decision_function", "predict_proba", "predict_log_proba":
            values = getattr(model, ask)(queries)
            allowed = np.isfinite(values) | (ask == "predict_log_proba")
            assert allowed.all(), ask
            assert not np.isnan(values).any(), ask
        for name in "explained_variance_ratio_", "scalings_", "priors_", "means_", "shrinkage_":
            assert np.isfinite(getattr(model, name)).all(), name
        assert set(model.predict(queries)) <= set(y)
        found = model.absorb(queries[:3])
        assert np.isfinite(found).all()
        assert np.isfinite(model.predict_proba(queries)).all()
        assert np.isfinite(model.forget(queries[:3], found).decision_function(queries)).all()


def test_the_shrinkage_of_one_row_for_each_class_is_nearest_mean():
    """No shrinkage has a scatter to shrink here."""
    X = np.random.default_rng(0).normal(size=(5, 8))
    queries = np.random.default_rng(1).normal(size=(40, 8))
    nearest = ((queries[:, None] - X[None]) ** 2).sum(axis=-1).argmin(axis=1)
    for shrinkage in None, 0.5, 1.0, "ledoit-wolf":
        lda = EigenspaceLDA(shrinkage=shrinkage).fit(X, np.arange(5))
        assert lda.predict(queries).tolist() == nearest.tolist()


def test_a_class_that_vanishes_takes_its_directions_along():
    X, y, queries = normal(np.random.default_rng(8), 30, 50, 5)
    lda = EigenspaceLDA().fit(X, y).forget(X[y > 2], y[y > 2])
    kept = EigenspaceLDA().fit(X[y < 3], y[y < 3])
    assert lda.transform(queries).shape == (60, 2)
    assert_same(kept, lda, queries, 10**4 * 30 * condition(X))


@pytest.mark.parametrize("shrinkage", [None, 0.3, "ledoit-wolf"])
@pytest.mark.parametrize("ask", ["predict", "transform", "predict_proba", "decision_function"])
def test_a_row_too_far_for_double_precision_is_an_error(ask, shrinkage):
    X, y, queries = normal(np.random.default_rng(8), 30, 50, 5)
    lda = EigenspaceLDA(shrinkage=shrinkage).fit(X, y)
    queries[7, 3] = 1e200
    with pytest.raises(KnowmoreError, match="Row 7 of X is so far from all that was learnt"):
        getattr(lda, ask)(queries)


def test_absorbing_with_fewer_rows_than_features_is_that_of_the_soft_labels():
    X, y, queries = normal(np.random.default_rng(10), 30, 120, 3)
    lda = EigenspaceLDA().fit(X, y)
    found = lda.absorb(queries[:20], rounds=1)
    again = EigenspaceLDA().fit(X, y).partial_fit(queries[:20], found)
    rows, parts = np.vstack([X, queries[:20]]), np.vstack([np.eye(3)[y], found])
    fresh = EigenspaceLDA().fit(rows[::-1], parts[::-1], classes=[0, 1, 2])
    roundings = 10**4 * 50 * condition(rows)
    assert_same(again, lda, queries[20:], roundings)
    assert_same(fresh, lda, queries[20:], roundings)
    lda.forget(queries[:20], found)
    assert_same(EigenspaceLDA().fit(X, y), lda, queries[20:], roundings)
