"""The monitor: thresholds out of sample, the same answers in any pieces, alarms when it matters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks
from tolerance import assert_models, assert_rounded

from knowmore import SubspaceMonitor
from knowmore.errors import InvalidInput, KnowmoreWarning
from knowmore.subspaces import Eigenspace, lagged
from knowmore.subspaces.monitor import Observation, drift, rank_bound

K, D, WINDOW = 2, 8, 40
STRENGTHS = np.array([4.0, 3.0, 1, 1, 1, 1, 1, 1])


@parametrize_with_checks([SubspaceMonitor(n_components=1, window=4, false_alarms=0.3)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


def rows(n, seed=0, *, turn=None, shift=0.0, tails="normal"):
    """Rows whose first two axes stand out; `turn` (D, D) rotates them.

    tails : "normal", or "heavy": Student's t with three degrees of freedom
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) if tails == "normal" else rng.standard_t(3, (n, D)) / np.sqrt(3)
    X = X * STRENGTHS + 5.0 + shift
    return X if turn is None else X @ turn


def swapped():
    """A rotation that puts the two strong axes where two weak ones were."""
    return np.eye(D)[[2, 3, 0, 1, 4, 5, 6, 7]]


@pytest.fixture
def monitor():
    return SubspaceMonitor(K, WINDOW).fit(rows(600))


# -- naive definitions ---------------------------------------------------------------------------


def subspace(X, k=K):
    mean = X.mean(axis=0)
    return mean, np.linalg.svd(X - mean, full_matrices=False)[2][:k]


def errors_of(X, reference):
    mean, P = subspace(reference)
    return np.array([np.linalg.norm((np.eye(D) - P.T @ P) @ (x - mean)) for x in X])


def distances_of(X, reference):
    """By the covariance of the coordinates: (z - mean)' C^-1 (z - mean)."""
    mean, P = subspace(reference)
    C = np.cov((reference - mean) @ P.T, rowvar=False, bias=True)
    return np.array([np.sqrt((x - mean) @ P.T @ np.linalg.solve(C, P @ (x - mean))) for x in X])


def shift_of(X, reference):
    """By the covariance of probabilistic PCA."""
    mean, P = subspace(reference)
    S = np.cov(reference.T, bias=True)
    kept = P @ S @ P.T
    noise = (np.trace(S) - np.trace(kept)) / (D - K)
    C = P.T @ (kept - noise * np.eye(K)) @ P + noise * np.eye(D)
    moved = X.mean(axis=0) - mean
    return np.sqrt(moved @ np.linalg.solve(C, moved))


def drift_of(X, reference):
    """By projectors: |P'P - Q'Q|_F / sqrt(2 k)."""
    (_, P), (_, Q) = subspace(X), subspace(reference)
    return np.linalg.norm(P.T @ P - Q.T @ Q) / np.sqrt(2 * len(P))


def conditioning(X):
    """A direction moves by roundings of the largest variance over the gap below the last kept."""
    squares = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    return squares[0] / (squares[K - 1] - squares[K])


def test_the_measures_are_their_definitions(monitor):
    X, new = rows(600), rows(60, seed=1)
    seen, whole = monitor.observe(new), np.concatenate([X, new])
    windows = [whole[i - WINDOW : i] for i in range(601, 661)]
    worst = max(map(conditioning, windows))
    assert_rounded(seen.errors, errors_of(new, X), 1000 * worst, abs(new).max())
    assert_rounded(seen.distances, distances_of(new, X), 1000 * worst, abs(new).max())
    assert_rounded(seen.drifts, [drift_of(window, X) for window in windows], 1000 * worst, 1.0)
    shifts = [shift_of(window, X) for window in windows]
    assert_rounded(seen.shifts, shifts, 1000 * worst, abs(new).max())
    (error, distance, turn, move), measures = seen.limits, seen.measures
    far = (measures.errors > error) | (measures.distances > distance)
    np.testing.assert_array_equal(seen.anomalies, far)
    np.testing.assert_array_equal(seen.changes, (seen.drifts > turn) | (seen.shifts > move))


def test_limits_are_of_blocks_that_were_held_out():
    X, level = rows(7 * WINDOW + 13), 0.1
    ways = errors_of, distances_of, drift_of, shift_of
    found = []
    for begin in range(13, len(X), WINDOW):
        block = np.arange(begin, begin + WINDOW)
        others = np.delete(X, block, axis=0)
        found.append([way(X[block], others) for way in ways])
    *rows_, drifts, shifts = zip(*found, strict=True)
    m = len(drifts)
    assert m == 7
    limits = SubspaceMonitor(K, WINDOW, false_alarms=level).fit(X).reference_.limits
    # One more row is above each limit with half of the probability asked for, at most, and nearly.
    for values, limit in zip(rows_, limits[:2], strict=True):
        above = np.ravel(values) >= limit * (1 - np.sqrt(np.finfo(float).eps))
        assert -1 <= above.sum() - level / 2 * (m * WINDOW + 1) <= 1
    t = stats.t(m - 1).isf(level / 2) * np.sqrt(1 + 1 / m)
    for values, limit in zip((drifts, shifts), limits[2:], strict=True):
        want = np.exp(np.mean(np.log(values)) + t * np.std(np.log(values), ddof=1))
        assert_rounded(limit, want, 10000 * conditioning(X))


@pytest.mark.parametrize(("n", "level", "k"), [(99, 0.01, 99), (9, 0.5, 5), (199, 0.01, 198)])
def test_the_rank_of_the_bound(n, level, k):
    assert rank_bound(np.random.default_rng(0).permutation(n) + 1.0, level) == k


def test_drift_is_a_metric_of_subspaces():
    def model(*axes):
        X = np.zeros((2 * len(axes), D))
        for i, axis in enumerate(axes):
            X[2 * i : 2 * i + 2, axis] = len(axes) - i, i - len(axes)
        return Eigenspace.of(X)

    assert drift(model(0, 1), model(1, 0)) == 0
    assert drift(model(0, 1), model(2, 3)) == 1
    # Half of the directions differ; then one subspace has half of the directions of the other.
    assert_rounded(drift(model(0, 1), model(0, 3)), np.sqrt(0.5))
    assert_rounded(drift(model(0), model(0, 3)), np.sqrt(0.5))
    assert drift(model(0).truncate(0), model(1).truncate(0)) == 0


# -- the stream ----------------------------------------------------------------------------------


@pytest.mark.slow(fast=2)
@pytest.mark.parametrize("pieces", [1, 7, WINDOW, 150])
def test_it_does_not_matter_in_which_pieces_the_stream_comes(pieces):
    X = np.concatenate([rows(100, seed=1), rows(50, seed=2, turn=swapped())])
    whole, bits = (SubspaceMonitor(K, WINDOW).fit(rows(600)) for _ in range(2))
    want = whole.observe(X)
    got = [bits.observe(X[i : i + pieces]) for i in range(0, len(X), pieces)]
    measures = np.concatenate([one.measures for one in got], axis=1)
    np.testing.assert_array_equal(measures, want.measures)
    np.testing.assert_array_equal(bits.window_.rows, X[-WINDOW:])
    assert_models(bits.window_.eigenspace, X[-WINDOW:], held=X, edits=len(X))


@pytest.mark.slow
@pytest.mark.parametrize("tails", ["normal", "heavy"])
def test_false_alarms_are_as_rare_as_promised(tails):
    level, streams, length = 0.05, 25, 120
    anomalies, changes = [], []
    for seed in range(streams):
        X = rows(400 + length, seed=seed, tails=tails)
        seen = SubspaceMonitor(K, 20, false_alarms=level).fit(X[:400]).observe(X[400:])
        anomalies.append(seen.anomalies.mean())
        changes.append(seen.changes.mean())
    # The streams are independent, each is one draw of a rate: within three standard errors of its
    # mean. Thresholds of windows are bounds: they see a little less than the whole reference.
    for rates, least in ((anomalies, level), (changes, 0.0)):
        error = 3 * np.std(rates, ddof=1) / np.sqrt(streams)
        assert least - error <= np.mean(rates) <= level + error


def test_a_turned_subspace_is_a_change_within_a_window(monitor):
    assert not monitor.observe(rows(60, seed=1)).changes.any()
    seen = monitor.observe(rows(2 * WINDOW, seed=2, turn=swapped()))
    assert seen.changes.argmax() < WINDOW
    assert seen.changes[WINDOW:].all()
    assert seen.anomalies.mean() > 10 * monitor.false_alarms


# The axes 0 and 1 are in the subspace, 5 is not.
@pytest.mark.parametrize("axis", [0, 1, 5])
@pytest.mark.parametrize("tails", ["normal", "heavy"])
def test_a_shift_of_the_mean_is_noticed_within_a_window(axis, tails):
    monitor = SubspaceMonitor(K, WINDOW).fit(rows(600, tails=tails))
    moved = 2 * STRENGTHS * np.eye(D)[axis]
    seen = monitor.observe(rows(2 * WINDOW, seed=1, shift=moved, tails=tails))
    assert seen.changes.argmax() < WINDOW
    assert seen.changes[WINDOW:].all()
    # By which measure, says where it has moved.
    assert (seen.shifts[WINDOW:] > seen.limits.shifts).all()


@pytest.mark.parametrize("axis", [0, 1])
def test_a_row_far_out_within_the_subspace_is_an_anomaly(monitor, axis):
    moved = 10 * STRENGTHS * np.eye(D)[axis]
    seen = monitor.observe(rows(WINDOW, seed=1, shift=moved))
    assert seen.anomalies.all()
    assert (seen.distances > seen.limits.distances).all()
    assert (seen.errors <= seen.limits.errors).mean() > 0.9


def test_a_larger_spread_shows_in_the_anomalies(monitor):
    for axes in (np.s_[:K], np.s_[K:]):
        X = rows(WINDOW, seed=1) - 5
        X[:, axes] *= 2
        anomalies = monitor.fit(rows(600)).observe(X + 5).anomalies
        assert anomalies.mean() > 10 * monitor.false_alarms


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_a_stream_that_was_constant(value):
    """There are no directions: any other row is an anomaly, and a change."""
    monitor = SubspaceMonitor(K, WINDOW).fit(np.full((600, D), value))
    assert not monitor.observe(np.full((5, D), value)).anomalies.any()
    seen = monitor.observe(np.full((5, D), value) + np.eye(D)[0])
    assert seen.anomalies.all()
    assert seen.changes.all()
    assert np.isfinite(seen.measures).all()


def test_after_a_change_the_alarm_stays_on_until_it_is_taught(monitor):
    new = rows(1000, seed=2, turn=swapped())
    assert monitor.observe(new[:200]).changes[WINDOW:].all()
    before = monitor.reference_
    monitor.fit(new[:600])
    assert monitor.reference_ is not before
    assert not monitor.observe(new[600:]).changes.any()


def test_one_odd_row(monitor):
    X = rows(30, seed=2)
    X[12, 4] += 20
    assert np.flatnonzero(monitor.observe(X).anomalies).tolist() == [12]


@pytest.mark.slow(fast=2)
@pytest.mark.parametrize("components", [2, 4])
@pytest.mark.parametrize("level", [0.0, 1e6])
def test_a_series_without_noise_raises_no_alarm_by_rounding(components, level):
    X = lagged(level + np.sin(np.arange(900) / 2), 12)
    monitor = SubspaceMonitor(components, 24).fit(X[:600])
    seen = monitor.observe(X[600:])
    assert not seen.anomalies.any()
    assert not seen.changes.any()
    seen = monitor.observe(lagged(level + np.sin(np.arange(60)), 12))
    assert seen.anomalies.all()
    assert seen.changes[24:].all()


def test_an_outlier_does_not_break_the_stream(monitor):
    X = rows(300, seed=1)
    X[50] = 1e12
    seen = monitor.observe(X)
    assert seen.anomalies[50]
    assert seen.changes[50 : 50 + WINDOW].all()
    assert not seen.changes[50 + WINDOW :].any()
    np.testing.assert_array_equal(
        seen.errors[100:], SubspaceMonitor(K, WINDOW).fit(rows(600)).observe(X[100:]).errors
    )


# -- what it refuses -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (np.full((3, D), np.nan), "contains NaN or infinity"),
        (np.vstack([rows(2), np.full(D, np.inf)]), "the first at row 2"),
        (np.zeros((2, D + 1)), f"X has {D + 1} features"),
        (np.zeros(D), "Expected 2D array"),
        (np.zeros((0, D)), "0 sample"),
    ],
)
def test_bad_rows_change_nothing(monitor, bad, words):
    before, state = monitor.model_, vars(monitor).copy()
    with pytest.raises(InvalidInput, match=words):
        monitor.observe(bad)
    assert monitor.model_ is before
    with pytest.raises(ValueError, match=r"features|sample|NaN|2D"):
        monitor.fit(bad)
    assert vars(monitor) == state


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"window": 1}, r"window=1\. Give a whole number of at least 2\."),
        ({"window": 20.0}, r"window=20\.0\. Give a whole number"),
        ({"n_components": 0}, r"n_components=0\. Give a whole number of at least 1\."),
        ({"n_components": True}, "n_components=True"),
        ({"n_components": 5, "window": 5}, f"less than n_features={D} and window=5"),
        ({"n_components": D}, f"n_components={D} must be less than n_features={D}"),
        ({"false_alarms": 0}, r"false_alarms=0 must be a number in \(0, 1\)\."),
        ({"false_alarms": "few"}, "false_alarms='few'"),
        ({"window": 70}, "X has 100 samples, but fit needs 210: 3 windows of 70 rows"),
        ({"false_alarms": 5e-324}, "X has 100 samples, but fit needs [0-9]+: "),
        ({"window": 70, "false_alarms": 0.5}, "but fit needs 140: 2 windows of 70 rows"),
        ({"false_alarms": 0.001}, "but fit needs 2000: 50 windows .* that false_alarms=0.001 can"),
    ],
)
def test_parameters_that_cannot_be(parameters, words):
    monitor = SubspaceMonitor(**{"n_components": K, "window": WINDOW, **parameters})
    with pytest.raises(InvalidInput, match=words):
        monitor.fit(rows(100))
    assert not hasattr(monitor, "model_")


@pytest.mark.parametrize("n", [60, 150, 199])
def test_the_number_of_rows_that_is_needed_is_enough(n):
    with pytest.raises(InvalidInput) as caught:
        SubspaceMonitor().fit(rows(n))
    assert str(caught.value) == (
        f"X has {n} samples, but fit needs 200: 4 windows of 50 rows, so many that "
        "false_alarms=0.01 can be learnt. Give more reference rows, make the window shorter, or "
        "allow more false alarms."
    )
    SubspaceMonitor().fit(rows(200))


@pytest.mark.parametrize("size", [1e6, 1e150])
def test_a_row_that_outweighs_the_reference_is_named(size):
    X = rows(400)
    X[123, 5] = size
    with pytest.warns(KnowmoreWarning) as caught:
        SubspaceMonitor(K, WINDOW).fit(X)
    assert str(caught[0].message) == (
        "Row 123 of X is farther from the mean than all other rows together (sums of squares), so "
        "the limits are wide, and changes may not be seen. If the row is not normal, leave it out."
    )
    assert caught[0].filename == __file__


def test_an_observation_prints_in_a_few_lines_and_becomes_a_table():
    X = rows(600)
    X[520] += 100
    seen = SubspaceMonitor(K, WINDOW).fit(X[:500]).observe(X[500:])
    lines = repr(seen).splitlines()
    anomalies, changes = seen.anomalies, seen.changes
    assert lines[0] == (
        f"Observation: {anomalies.sum()} of 100 rows are anomalies, the first at "
        f"{anomalies.argmax()}; {changes.sum()} of 100 windows have changed, the first at "
        f"{changes.argmax()}"
    )
    assert lines[1].split() == ["error", "distance", "drift", "shift", "anomaly", "change"]
    assert len(lines) < 10
    table = seen.to_pandas()
    assert len(seen) == len(table) == 100
    np.testing.assert_array_equal(table["shift"], seen.shifts)
    np.testing.assert_array_equal(table["change"], seen.changes)
    quiet = Observation(*np.zeros((4, 3)), seen.limits)
    words = "Observation: 0 of 3 rows are anomalies; 0 of 3 windows have changed"
    assert repr(quiet).splitlines()[0] == words


def test_nothing_is_observed_before_it_is_fitted():
    with pytest.raises(NotFittedError, match=r"is not fitted yet. Call fit first"):
        SubspaceMonitor().observe(rows(3))
    with pytest.raises(NotFittedError, match="Call fit first"):
        SubspaceMonitor().window_  # noqa: B018
    assert clone(SubspaceMonitor(3, 10, false_alarms=0.1)).get_params() == {
        "n_components": 3,
        "window": 10,
        "false_alarms": 0.1,
    }
