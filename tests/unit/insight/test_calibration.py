"""Probabilities that mean something, and that go on meaning it as the model lives."""

from __future__ import annotations

import gc
import pickle
import weakref

import matplotlib
import numpy as np
import oracle
import pytest
from sklearn.gaussian_process.kernels import RBF, DotProduct
from sklearn.linear_model import LogisticRegression
from tolerance import assert_rounded, tolerance

from knowmore import GPClassifier, GPRegressor, LSSVMClassifier
from knowmore.errors import InvalidInput, InvalidType, NoExamples
from knowmore.insight import (
    LearningCurveDisplay,
    Reliability,
    ReliabilityDisplay,
    calibrate,
    reliability,
)
from knowmore.models.probabilities import best_temperature

matplotlib.use("agg")
from matplotlib import pyplot

KERNEL, NOISE = RBF(1.0), 0.1


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    pyplot.close("all")


def clouds(n=60, seed=0, classes=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    centres = 1.5 * rng.normal(size=(classes, 2))
    return rng.normal(size=(n, 2)) + centres[y], np.array(["ash", "oak", "yew", "fir"])[y]


def loss(logs, classes, temperature):
    """The negative log-likelihood and the prior, term by term."""
    total = 0.125 * np.log(temperature) ** 2
    for row, c in zip(logs, classes, strict=True):
        p = [np.exp(one / temperature) for one in row]
        total -= np.log(p[c] / sum(p))
    return total


def left_out_logs(X, y, noise=NOISE, weights=1.0):
    """Moderated scores by n refits, each row as a new one, and the columns of the labels."""
    classes, T = oracle.one_vs_all(y.tolist())
    each = np.arange(len(X))
    mean, variance = oracle.left_out(KERNEL, noise / weights, X, T, each)
    class_support, _ = oracle.left_out(KERNEL, noise / weights, X, (T + 1) / 2, each)
    codes = [classes.index(one) for one in y.tolist()]
    scores = oracle.completed(mean, class_support, codes)
    variance = variance - noise / weights + noise
    return oracle.moderated(scores, variance), codes


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_the_temperature_makes_leave_one_out_most_likely(classes):
    X, y = clouds(classes=classes)
    found = calibrate(GPClassifier(KERNEL, NOISE).fit(X, y)).temperature
    logs, columns = left_out_logs(X, y)
    least = loss(logs, columns, found)
    for factor in 0.5, 0.9, 0.99, 1.01, 1.1, 2.0:
        assert loss(logs, columns, found * factor) > least


def test_weights_count():
    X, y = clouds()
    weights = np.random.default_rng(8).uniform(0.2, 5, size=60)
    clf = GPClassifier(KERNEL, NOISE, probability="raw").fit(X, y, sample_weight=weights)
    found = calibrate(clf).temperature
    logs, columns = left_out_logs(X, y, weights=weights)
    least = loss(logs, columns, found)
    for factor in 0.9, 0.99, 1.01, 1.1:
        assert loss(logs, columns, found * factor) > least
    P = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    want = np.array(binned(P, P.argmax(axis=1) == columns, 15)).T
    assert_rounded(reliability(clf).confidence, want[0], 1e4)


def test_probabilities_are_powers_of_the_chances():
    X, y = clouds()
    clf = GPClassifier(KERNEL, NOISE, probability="raw").fit(X, y)
    calibrated = calibrate(clf)
    queries = X + 0.3
    powers = clf.predict_proba(queries) ** (1 / calibrated.temperature)
    P = calibrated.predict_proba(queries)
    assert_rounded(P, powers / powers.sum(axis=1, keepdims=True), 1000)
    assert calibrated.predict(queries).tolist() == clf.predict(queries).tolist()
    np.testing.assert_array_equal(calibrated.classes_, clf.classes_)
    assert calibrated.classes_[P.argmax(axis=1)].tolist() == clf.predict(queries).tolist()


def test_it_follows_every_edit():
    X, y = clouds(80)
    clf = GPClassifier(KERNEL, NOISE).fit(X[:60], y[:60])
    calibrated = calibrate(clf)
    seen = {calibrated.temperature}
    edits = [
        lambda: clf.add(X[60:], y[60:]),
        lambda: clf.remove([0, 5, 61]),
        lambda: clf.relabel([1, 2], ["yew", "oak"]),
        lambda: clf.replace([3], X[4:5] + 0.1),
        lambda: clf.add([[9.0, 9.0]], ["elm"]),
    ]
    for edit in edits:
        edit()
        examples = clf.model_.examples
        fresh = GPClassifier(KERNEL, NOISE).fit(examples.X, examples.labels)
        K = oracle.covariance(KERNEL, examples.X, NOISE)
        want = calibrate(fresh).temperature
        # The root moves with the scores over the curvature of the loss; the prior gives one.
        scale = abs(left_out_logs(examples.X, examples.labels)[0]).sum()
        assert abs(np.log(calibrated.temperature / want)) <= tolerance(K) * scale
        assert_rounded(calibrated.predict_proba(X), calibrate(fresh).predict_proba(X), 1e6)
        seen.add(calibrated.temperature)
    assert len(seen) == 1 + len(edits)


def test_the_temperature_is_computed_once_per_model(monkeypatch):
    import knowmore.models.probabilities as module

    calls = []

    def counted(*arguments):
        calls.append(arguments)
        return best_temperature(*arguments)

    monkeypatch.setattr(module, "best_temperature", counted)
    X, y = clouds()
    clf = GPClassifier(KERNEL, NOISE).fit(X, y)
    calibrated = calibrate(clf)
    calibrated.predict_proba(X)
    repr(calibrated)
    assert len(calls) == 1
    clf.remove([0])
    clf.remove([1])
    calibrated.predict_proba(X)
    calibrated.predict_proba(X)
    assert len(calls) == 2


def test_no_mistakes_do_not_mean_certainty():
    """Where leave-one-out is always right, the prior keeps the temperature above zero."""
    X = np.array([[0.0], [0.1], [9.0], [9.1]])
    calibrated = calibrate(GPClassifier(KERNEL, NOISE).fit(X, ["a", "a", "b", "b"]))
    assert 0.01 < calibrated.temperature < 1
    assert calibrated.predict_proba([[0.05]]).min() > 0


def test_a_classifier_that_is_always_wrong_becomes_uniform():
    X = np.array([[0.0], [0.0], [9.0], [9.0]])
    clf = GPClassifier(KERNEL, noise=1e-3).fit(X, ["a", "b", "a", "b"])
    P = calibrate(clf).predict_proba(X)
    assert abs(P - 0.5).max() < 0.01


def test_one_class_and_extreme_scores_work():
    X, _ = clouds(10)
    one = calibrate(GPClassifier(KERNEL, NOISE).fit(X, ["a"] * 10))
    assert one.temperature == 1
    np.testing.assert_array_equal(one.predict_proba(X), np.ones((10, 1)))
    for far in 1e-9, 1e9, 1e150:
        logs = np.log([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]]) * far
        temperature = best_temperature(logs, np.array([0, 0, 0]))
        assert 0 < temperature < np.inf


def test_it_can_be_pickled():
    X, y = clouds()
    calibrated = calibrate(GPClassifier(KERNEL, NOISE).fit(X, y))
    again = pickle.loads(pickle.dumps(calibrated))
    np.testing.assert_array_equal(again.predict_proba(X), calibrated.predict_proba(X))


def test_nothing_of_an_example_that_was_removed_is_kept():
    X, y = clouds()
    clf = GPClassifier(KERNEL, NOISE).fit(X, y)
    (secret,) = clf.add([[123.456789, 9.0]], ["oak"])
    calibrated = calibrate(clf)
    before = weakref.ref(clf.model_)
    clf.remove([secret])
    assert np.float64(123.456789).tobytes() not in pickle.dumps(calibrated)
    gc.collect()
    assert before() is None
    again = pickle.loads(pickle.dumps(calibrated))
    assert again.temperature == calibrated.temperature


def test_an_emptied_model_can_be_printed():
    X, y = clouds()
    clf = GPClassifier(KERNEL, NOISE).fit(X, y)
    calibrated = calibrate(clf)
    clf.remove(clf.ids_)
    assert repr(calibrated).endswith("no examples are held")
    pickle.loads(pickle.dumps(calibrated)).estimator.add(X, y)


@pytest.mark.filterwarnings("error")
def test_without_noise_an_example_is_as_good_as_certain():
    X, y = clouds(12)
    clf = GPClassifier(KERNEL, noise=0.0).fit(X, y)
    calibrated = calibrate(clf)
    for P in clf.predict_proba(X), calibrated.predict_proba(X):
        assert np.isfinite(P).all()
        assert clf.classes_[P.argmax(axis=1)].tolist() == y.tolist()
    # Neither mean nor variance: a kernel that vanishes at zero knows nothing there.
    silent = GPClassifier(DotProduct(1e-200, "fixed"), noise=0.0).fit([[1.0]], ["a"])
    assert silent.predict_proba([[0.0]]).tolist() == [[1.0]]


# -- reliability ---------------------------------------------------------------------------------


def binned(P, right, bins):
    """Confidence, accuracy and count of each bin, one prediction after the other."""
    rows = {}
    for p, good in zip(P.max(axis=1), right, strict=True):
        rows.setdefault(min(int(p * bins), bins - 1), []).append((p, good))
    return [(*np.mean(rows[b], axis=0), len(rows[b])) for b in sorted(rows)]


@pytest.mark.parametrize("bins", [1, 4, 15])
def test_bins_match_a_plain_loop(bins):
    X, y = clouds()
    new, truth = clouds(200, seed=1)
    clf = GPClassifier(KERNEL, NOISE).fit(X, y)
    found = reliability(clf, new, truth, bins=bins)
    P = clf.predict_proba(new)
    want = np.array(binned(P, clf.predict(new) == truth, bins)).T
    assert_rounded(found.confidence, want[0])
    assert_rounded(found.accuracy, want[1])
    np.testing.assert_array_equal(found.count, want[2])
    assert_rounded(found.error, sum(abs(want[0] - want[1]) * want[2]) / 200)
    assert found.to_pandas().shape == (len(found.count), 3)
    assert repr(found).startswith(f"Reliability: expected calibration error {found.error:.4f}")


def test_without_test_data_it_is_that_of_leave_one_out():
    X, y = clouds()
    clf = GPClassifier(KERNEL, NOISE, probability="raw").fit(X, y)
    calibrated = calibrate(clf)
    logs, columns = left_out_logs(X, y)
    for model, temperature in (clf, 1.0), (calibrated, calibrated.temperature):
        P = np.exp(logs / temperature)
        P /= P.sum(axis=1, keepdims=True)
        want = np.array(binned(P, P.argmax(axis=1) == columns, 15)).T
        found = reliability(model)
        assert_rounded(found.confidence, want[0], 1e4)
        np.testing.assert_array_equal(found.count, want[2])


def test_calibration_helps_on_unseen_data():
    X, y = clouds(150, seed=3)
    new, truth = clouds(3000, seed=3)
    clf = GPClassifier(KERNEL, noise=10.0).fit(X, y)
    raw = clf.refitted(clf.model_.examples, probability="raw")
    error = reliability(clf, new, truth).error
    assert error < reliability(raw, new, truth).error / 2
    assert reliability(calibrate(raw), new, truth).error == error


def test_any_classifier_with_probabilities_works():
    X, y = clouds()
    found = reliability(LogisticRegression().fit(X, y), X, y)
    assert found.count.sum() == 60


def test_labels_that_the_model_does_not_know_count_as_wrong():
    X, y = clouds()
    clf = GPClassifier(KERNEL, NOISE).fit(X, y)
    assert reliability(clf, X, ["elm"] * 60, bins=1).accuracy.tolist() == [0.0]


@pytest.mark.parametrize("asking", [reliability, LearningCurveDisplay.from_estimator])
def test_labels_of_another_type_raise(asking):
    X, y = clouds()
    codes = np.unique(y, return_inverse=True)[1]
    with pytest.raises(InvalidInput) as caught:
        asking(GPClassifier(KERNEL, NOISE).fit(X, codes), X, codes.astype(str))
    assert str(caught.value) == (
        f"The labels in y, such as {str(codes[0])!r}, are not of the type of the model's classes, "
        f"such as 0. Convert y to the type of the classes."
    )
    with pytest.raises(InvalidInput, match=r"such as \d, are not of the type .* such as '"):
        asking(GPClassifier(KERNEL, NOISE).fit(X, y), X, codes)
    # Numbers of another type are equal to what they are equal to.
    asking(GPClassifier(KERNEL, NOISE).fit(X, codes), X, codes.astype(float))
    asking(GPClassifier(KERNEL, NOISE).fit(X, y), X, y.astype(object))
    pyplot.close("all")


def test_silent_examples_do_not_affect_the_temperature():
    X, y = clouds()
    far = np.vstack([X, 1e6 * (1 + np.arange(40))[:, None] * np.ones(X.shape[1])])
    labels = np.append(y, np.resize(np.unique(y), 40))
    near, all_ = GPClassifier(KERNEL, NOISE).fit(X, y), GPClassifier(KERNEL, NOISE).fit(far, labels)
    assert_rounded(calibrate(all_).temperature, calibrate(near).temperature, 1e4)
    silent = GPClassifier(KERNEL, NOISE).fit(far[60:], labels[60:])
    assert calibrate(silent).temperature == 1
    M = len(np.unique(y))
    assert_rounded(calibrate(silent).predict_proba(X), np.full((60, M), 1 / M))
    assert_rounded(reliability(silent).confidence, [1 / M])


def test_the_diagram_shows_the_bins():
    X, y = clouds()
    clf = GPClassifier(KERNEL, NOISE).fit(X, y)
    _, ax = pyplot.subplots()
    display = ReliabilityDisplay.from_estimator(calibrate(clf), X, y, bins=5, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    _, curve = ax.lines
    np.testing.assert_array_equal(curve.get_xdata(), display.found.confidence)
    np.testing.assert_array_equal(curve.get_ydata(), display.found.accuracy)
    assert f"{display.found.error:.3f}" in ax.get_title()
    some = Reliability(np.array([0.5, 1.0]), np.array([0.25, 1.0]), np.array([4, 12]))
    assert (
        ReliabilityDisplay(some)
        .plot()
        .ax_.get_title()
        .startswith("Expected calibration error 0.062")
    )
    assert ReliabilityDisplay.from_estimator(clf).found.count.sum() == 60


# -- bad input -----------------------------------------------------------------------------------


def test_what_cannot_be_calibrated_is_explained():
    X, y = clouds()
    reg = GPRegressor().fit(X, X[:, 0])
    for asking in calibrate, reliability:
        with pytest.raises(InvalidInput, match="is about classes, but a GPRegressor has none"):
            asking(reg)
    clf = GPClassifier().fit(X, y)
    calibrated = calibrate(clf)
    with pytest.raises(InvalidInput, match="features"):
        calibrated.predict_proba(X[:, :1])
    with pytest.raises(InvalidInput, match="only one was given"):
        reliability(clf, X)
    with pytest.raises(InvalidType, match="GPRegressor has no predict_"):
        reliability(GPRegressor().fit(X, X[:, 0]), X, y)
    for asking in calibrate, reliability:
        kinds = "GPClassifier, LinearGPClassifier or ForestGPClassifier"
        words = f"for a fitted {kinds}, not LSSVMClassifier"
        with pytest.raises(InvalidType, match=words):
            asking(LSSVMClassifier().fit(X, y))
        with pytest.raises(InvalidType, match="not NoneType"):
            asking(None)
    with pytest.raises(InvalidInput, match=r"y has shape \(5,\), but there are 60"):
        reliability(clf, X, y[:5])
    for bins in 0, 2.5, True, 10**30:
        with pytest.raises(InvalidInput, match="Give a whole number from 1 to 1000000"):
            reliability(clf, bins=bins)
    clf.remove(clf.ids_)
    with pytest.raises(NoExamples, match="holds no examples"):
        calibrated.predict_proba(X)
