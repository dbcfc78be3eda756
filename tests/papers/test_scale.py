"""Many rows at a reduced size: what is computed, written and concluded."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from quick_runs import is_picture, read, result_of, verdicts_of
from scipy import sparse
from tolerance import INTERPOLATED, SINGLE

import knowmore
from knowmore import LinearGPRegressor
from knowmore.errors import MissingExtra
from papers.data import Split, land, land_and_sea
from papers.scale import fashion, flights, kdd99, kdd99_report, land_sea
from papers.scale.contest import Entry, Method, enter, no_faster_peer, standard_error
from papers.scale.followers import Exact, Online, Refit, Stream, follow


def check_report(module, result, folder, names):
    """The verdicts by their claims; files are where they should be."""
    report = module.report(result, folder)
    picture, numbers = report.files
    assert [picture.name, numbers.name] == names
    assert is_picture(picture)
    assert read(numbers)
    return {verdict.claim: verdict for verdict in verdicts_of(report)}


def of_claim(verdicts, words):
    (found,) = [verdict for claim, verdict in verdicts.items() if words in claim]
    return found


# -- quick runs ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_fashion(tmp_path):
    result = result_of(fashion)
    names = ["scale-fashion.png", "scale-fashion.csv"]
    verdicts = check_report(fashion, result, tmp_path, names)
    assert of_claim(verdicts, "bit for bit").holds
    assert of_claim(verdicts, "as accurate as other linear classifiers").holds
    assert len(result.entries) == 10
    assert all(entry.accuracy > 0.7 for entry in result.entries)
    rates = {e.features: e.accuracy for e in result.entries if e.method == fashion.LINEAR}
    assert rates[fashion.MARKS] > rates[fashion.PIXELS]


@pytest.mark.slow
def test_kdd99(tmp_path):
    result = result_of(kdd99)
    names = ["scale-kdd99.png", "scale-kdd99.csv"]
    verdicts = check_report(kdd99, result, tmp_path, names)
    assert of_claim(verdicts, "bit for bit").holds
    assert len(result.late) == 17
    assert not set(result.late) & {"normal", "smurf", "neptune"}
    for alarm in result.alarms:
        assert len(alarm.values) == len(result.labels)
        assert not (result.found(alarm, 0.01) & ~result.found(alarm, 0.05)).any()
    assert result.found(result.named(kdd99_report.VARIANCE), 0.05).mean() > 0.7
    assert result.relearnt.late[0] == 0, "a kind that was never learnt is never the answer"
    assert result.relearnt.late[1] > 0.5


@pytest.mark.slow
def test_flights(tmp_path):
    result = result_of(flights)
    names = ["scale-flights.png", "scale-flights.csv"]
    verdicts = check_report(flights, result, tmp_path, names)
    exact = of_claim(verdicts, "the sums are those of a fresh fit")
    assert exact.holds
    assert "equal bits in 2 of 2" in exact.measured
    assert len(result.weeks) == 4
    assert result.late.named(flights.EXACT).overall < 0.45, "better than guessing"
    np.testing.assert_array_equal(result.late.constant, 0.5)
    minutes = result.minutes.named(flights.EXACT)
    assert minutes.errors.mean() < result.minutes.constant.mean()


def test_land_sea(tmp_path):
    result = result_of(land_sea)
    names = ["scale-land-sea.png", "scale-land-sea.csv"]
    verdicts = check_report(land_sea, result, tmp_path, names)
    assert all(entry.accuracy > 0.9 for entry in result.contests[0].entries)
    assert of_claim(verdicts, "After edits").holds
    rates = [entry.accuracy for entry in result.contests[0].entries]
    ahead = max(rates[:2]) - max(rates[2:]) >= 0.002
    assert of_claim(verdicts, "more often right than any peer").holds == ahead


# -- their parts ---------------------------------------------------------------------------------


def test_the_map_has_places_where_they_are():
    class Places:
        """Draws given points instead of random ones."""

        def normal(self, size):
            degrees = np.radians([[48.0, 11.0], [30.0, -40.0], [-25.0, 135.0], [0.0, -150.0]])
            (north, east) = degrees.T
            X = np.column_stack([np.cos(north) * np.cos(east), np.cos(north) * np.sin(east)])
            return np.column_stack([X, np.sin(north)])

    try:
        _, y = land_and_sea(4, Places())
    except MissingExtra as error:
        pytest.skip(str(error))
    # Munich, the Atlantic, Australia, the Pacific.
    assert y.tolist() == [True, False, True, False]


def test_the_map_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(land, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="pip install global-land-mask"):
        land_and_sea(1, np.random.default_rng(0))


def test_histograms_of_edges_know_directions():
    upright = np.zeros((1, 28, 28), np.uint8)
    upright[:, :, 14:] = 255
    for picture, direction in ((upright, 0), (upright.transpose(0, 2, 1), 4.5)):
        H = fashion.histograms(picture).reshape(49, 9)
        np.testing.assert_allclose(np.linalg.norm(H), 1, rtol=SINGLE)
        votes = (H**2).sum(axis=0)
        found = {0: [0], 4.5: [4, 5]}[direction]
        np.testing.assert_allclose(votes[found].sum() / votes.sum(), 1, rtol=SINGLE)
    assert not fashion.histograms(np.zeros((1, 28, 28), np.uint8)).any()


def test_the_best_candidate_is_entered():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
    X[:, 0] += 4 * y

    class Constant(knowmore.GPClassifier):
        """A learner that never learns."""

        def predict(self, X):
            return np.zeros(len(X), int)

    split = Split(X[:40], y[:40], X[40:], y[40:])
    candidates = [Constant(), knowmore.GPClassifier()]
    entry, right = enter(Method("some", "", candidates, rows=30), split)
    assert entry.rows == 30
    assert entry.accuracy == right.mean() > 0.9
    assert entry.choose > 0
    assert enter(Method("one", "", candidates[1:]), split)[0].choose == 0


def test_only_faster_peers_that_are_as_accurate_count():
    def entry(accuracy, seconds, ours=False):
        return Entry("one", "", ours, 9, accuracy, 0.0, seconds, 0.0)

    own = entry(0.9, 1.0, ours=True)
    assert no_faster_peer([own, entry(0.8, 0.1), entry(0.95, 2.0)], own)[0]
    assert not no_faster_peer([own, entry(0.9, 0.5)], own)[0]
    a, b = np.array([True, True, False, True]), np.array([True, False, False, True])
    np.testing.assert_allclose(standard_error(a, b), np.sqrt(3) / 4 / 2)


def test_only_the_day_before_is_known():
    rng = np.random.default_rng(0)
    days, codes = np.repeat(np.arange(4), 30), rng.integers(0, 3, size=(120, 4))
    delay = rng.normal(size=120)
    X = flights.day_before(days, codes, delay)
    assert not X[days == 0].any()
    mean = delay[days == 1].mean()
    np.testing.assert_allclose(X[days == 2, 0], mean)
    airport = codes[days == 2][0, 0]
    same = (days == 1) & (codes[:, 0] == airport)
    np.testing.assert_allclose(X[days == 2][0, 1], (delay[same] - mean).sum() / (same.sum() + 10))
    delay[days >= 2] += 1000
    np.testing.assert_array_equal(X[days <= 2], flights.day_before(days, codes, delay)[days <= 2])


def small_stream(days=10, a_day=20):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(days * a_day, 3)).round(3)
    y = X @ [1.0, 2.0, 3.0]
    return Stream(sparse.csr_array(X), X, y, np.arange(0, days * a_day + 1, a_day))


def test_a_window_holds_its_days_and_no_others():
    stream, exact = small_stream(), Exact(LinearGPRegressor(1e-6), forgets=True)
    days = list(follow(exact, stream, 4))
    assert len(days) == 6
    assert [day.window for day in days[:2]] == [slice(0, 80), slice(20, 100)]
    assert days[-1].window == slice(100, 180)
    assert exact.model.n_samples_ == 80
    assert exact.equals_fit(stream, days[-1].window)[0]
    assert not exact.equals_fit(stream, slice(80, 160))[0]
    found = np.concatenate([day.answers for day in days])
    np.testing.assert_allclose(found, stream.y[80:], atol=INTERPOLATED)


def test_followers_learn_before_they_are_asked_and_nothing_of_the_day():
    calls = []

    class Model(SimpleNamespace):
        """A learner that records its calls."""

        def fit(self, X, y):
            calls.append(("fit", y.tolist()))

        def partial_fit(self, X, y):
            calls.append(("more", y.tolist()))

        def predict(self, X):
            calls.append(("asked", X.shape[0]))
            return np.zeros(X.shape[0])

    stream = Stream(sparse.eye_array(6).tocsr(), np.eye(6), np.arange(6), np.arange(7))
    list(follow(Online(Model()), stream, 2))
    more = [["more", [0, 1]], ["more", [2]], ["more", [3]], ["more", [4]]]
    assert [list(call) for call in calls[::2]] == more
    calls.clear()
    list(follow(Refit(Model(), 2, dense=True), stream, 2))
    assert [call for call in calls if call[0] == "fit"] == [("fit", [0, 1]), ("fit", [2, 3])]
    assert calls.count(("asked", 1)) == 4
