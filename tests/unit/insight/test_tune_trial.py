"""A search counts only if examples that it has not seen are predicted better."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from tolerance import tolerance

from knowmore import GPClassifier, GPRegressor, LSSVMClassifier
from knowmore.insight import tune
from knowmore.insight.search import Slope
from knowmore.insight.trial import PARTS, Gain, codes_of, losses, parts_of, together
from knowmore.models import log_density

quietly = pytest.mark.filterwarnings("ignore::knowmore.errors.KnowmoreWarning")


def clouds(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 2)) + 1.5 * np.array([[0, 0], [1, 0], [0, 1]])[y], y


def waves(n, seed, columns=1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 6, (n, columns))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)


def with_outlier(seed):
    """A line of one column of nine, and a value that is far off."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 9))
    y = X[:, 0] + 0.2 * rng.normal(size=60)
    y[7] = 30.0
    return X, y


# -- what is promised ----------------------------------------------------------------------------


@quietly
@pytest.mark.parametrize("seed", range(6))
def test_an_outlier_does_not_lead_to_parameters_that_predict_worse(seed, monkeypatch):
    """Widths for each column explain one value; the old way had only leave-one-out to judge."""
    X, y = with_outlier(seed)
    rng = np.random.default_rng(100)
    new = rng.normal(size=(500, 9))
    reg = GPRegressor(ConstantKernel() * RBF(np.full(9, 6.0)), noise=0.5).fit(X, y)
    found = tune(reg)
    assert found.gain is None or found.gain.is_sure == bool(found.changes)

    def error(one):
        return ((one.predict(new) - new[:, 0]) ** 2).mean()

    assert error(found.estimator) <= error(reg)
    if seed in (2, 3, 4):
        monkeypatch.setattr(Gain, "is_sure", True)
        assert error(tune(reg).estimator) > 2 * error(reg)


@quietly
@pytest.mark.parametrize("make", [GPClassifier, LSSVMClassifier, GPRegressor])
def test_a_sure_gain_is_taken(make):
    X, y = waves(80, 0) if make is GPRegressor else clouds(90)
    start = make(RBF(0.05)).fit(X, y)
    found = tune(start)
    assert found.changes
    assert found.gain.is_sure
    new = waves(500, 1) if make is GPRegressor else clouds(600, 1)
    assert found.estimator.score(*new) > start.score(*new)


@quietly
@pytest.mark.parametrize("make", [GPClassifier, LSSVMClassifier, GPRegressor])
@pytest.mark.parametrize("settings", ["first", "living"])
def test_the_start_is_what_the_estimator_chose(make, settings):
    X, y = waves(50, 0) if make is GPRegressor else clouds()
    model = make(settings=settings).fit(X, y)
    found = tune(model)
    for _, before, _ in found.changes:
        assert np.isfinite(before)
    if not found.changes:
        assert found.estimator.kernel_ == model.kernel_
        assert found.estimator.settings_.noise == model.settings_.noise
        np.testing.assert_array_equal(found.estimator.predict(X), model.predict(X))
    # The best settings by the objective are kept, too.
    best = make(RBF(0.1)).fit(X, y)
    for _ in range(3):
        best = tune(best).estimator
    again = tune(best)
    assert again.estimator.kernel_ == best.kernel_ or again.gain.is_sure


@quietly
@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_a_noise_that_was_chosen_is_within_the_usual_bounds(scale):
    """Values without noise leave hardly any, and values far from one leave very much."""
    X = np.linspace(0, 6, 40)[:, None]
    reg = GPRegressor(normalize_y=False).fit(X, scale * np.sin(X[:, 0]))
    assert not 1e-6 <= reg.settings_.noise <= 1e3
    found = tune(reg)
    assert found.after >= found.before


@quietly
@pytest.mark.parametrize("n", range(1, 21))
@pytest.mark.parametrize("make", [GPClassifier, LSSVMClassifier, GPRegressor])
def test_few_examples_are_tuned_or_kept(make, n):
    X, y = waves(n, n, columns=2) if make is GPRegressor else clouds(n, n)
    if make is LSSVMClassifier and n == 1:
        pytest.skip("a bias needs two examples")
    model = make().fit(X, y)
    found = tune(model)
    if n < 8:
        assert not found.changes
    assert np.isfinite(found.estimator.predict(X).astype(float)).all()
    assert found.changes or found.estimator.kernel_ == model.kernel_


@quietly
def test_twins_weights_and_one_class_change_nothing_for_the_worse():
    X, y = clouds(40)
    twins = GPClassifier().fit(np.repeat(X, 3, axis=0), np.repeat(y, 3))
    assert tune(twins).estimator.score(*clouds(400, 9)) >= twins.score(*clouds(400, 9))
    weighed = GPClassifier().fit(X, y, sample_weight=np.linspace(0, 4, 40))
    assert tune(weighed).estimator.score(X, y) > 0.5
    one = GPClassifier().fit(X, np.zeros(40))
    assert tune(one).changes == ()
    same = GPClassifier().fit(np.ones((20, 2)), np.arange(20) % 2)
    assert tune(same).changes == ()


@quietly
def test_history_leaves_no_trace():
    X, y = clouds(70)
    clf = GPClassifier(RBF(0.3), noise=0.1).fit(X[:60], y[:60])
    clf.add(X[60:], y[60:]).tolist()
    clf.remove(range(10))
    fresh = GPClassifier(RBF(0.3), noise=0.1).fit(X[10:], y[10:], ids=range(10, 70))
    one, other = tune(clf), tune(fresh)
    # Rounding on the way differs, and a search stops where the slope is nearly flat.
    assert bool(one.changes) == bool(other.changes)
    parts = [parts_of(each.model_, codes_of(each.model_, None)) for each in (clf, fresh)]
    by_id = [
        dict(zip(each.ids_.tolist(), part.tolist(), strict=True))
        for each, part in zip((clf, fresh), parts, strict=True)
    ]
    assert by_id[0] == by_id[1]


@quietly
def test_what_a_subset_did_not_search_judges(monkeypatch):
    reg = GPRegressor(RBF(0.05), noise=0.1).fit(*waves(90, 0))
    sizes, evaluated = set(), Slope.__call__

    def counted(slope, theta):
        sizes.add(len(slope.T))
        return evaluated(slope, theta)

    monkeypatch.setattr(Slope, "__call__", counted)
    assert tune(reg, subset=40).gain.is_sure
    assert sizes == {40}
    sizes.clear()
    # With fewer than eight others nobody judges.
    assert tune(reg, subset=85).changes == ()
    assert sizes == {85}


# -- the judge -----------------------------------------------------------------------------------


def test_losses_match_refits():
    X, y = clouds(24)
    for groups in None, np.arange(24) // 2:
        left = np.arange(24) if groups is None else groups
        clf = GPClassifier(RBF(1.0), noise=0.3).fit(X, y)
        _, T = oracle.one_vs_all(y.tolist())
        mean, variance = oracle.left_out(RBF(1.0), 0.3, X, T, left)
        K = oracle.covariance(RBF(1.0), X, 0.3)
        got = losses(clf.model_, groups, gaussian=True)
        np.testing.assert_array_equal(got[1], mean.argmax(axis=1) != y)
        moderated = mean / np.sqrt(1 + variance)[:, None]
        # The prior on the logarithm of the temperature has a standard deviation of two.
        taus = np.exp(np.linspace(-4, 4, 2001))
        best = min(taus, key=lambda tau: chances(moderated / tau, y).sum() + np.log(tau) ** 2 / 8)
        step = 8 / 2000
        coarse = chances(moderated / best, y)
        bound = step * abs(moderated / best).max() * 2
        assert abs(got[0] - coarse).max() <= bound
        reg = GPRegressor(RBF(1.0), noise=0.3, normalize_y=False).fit(X, X[:, 0])
        mean, variance = oracle.left_out(RBF(1.0), 0.3, X, X[:, :1], left)
        got = losses(reg.model_, groups, gaussian=True)
        want = -log_density(X[:, 0], mean[:, 0], variance), (X[:, 0] - mean[:, 0]) ** 2
        scale = 10 * tolerance(K) * max(abs(want[0]).max(), 1)
        assert abs(got - np.stack(want)).max() <= scale


def chances(logs, y):
    """Minus the log chance of each label."""
    return np.log(np.exp(logs).sum(axis=1)) - logs[np.arange(len(y)), y]


def test_parts_are_balanced_by_class_and_keep_groups_together():
    X, y = clouds(60)
    clf = GPClassifier(RBF(1.0)).fit(X, y)
    part = parts_of(clf.model_, codes_of(clf.model_, None))
    for label in range(3):
        np.testing.assert_array_equal(np.bincount(part[y == label], minlength=PARTS), 5)
    codes = codes_of(clf.model_, np.arange(60) // 4)
    part = parts_of(clf.model_, codes)
    assert (part.reshape(15, 4) == part.reshape(15, 4)[:, :1]).all()


def test_twins_are_left_out_together():
    X, y = clouds(20)
    model = GPClassifier(RBF(1.0)).fit(X, y).model_
    assert together(model, None) is None
    given = np.arange(20) // 2
    assert together(model, given) is given
    model = GPClassifier(RBF(1.0)).fit(np.vstack([X, X[:3]]), [*y, *y[:3]]).model_
    groups = together(model, None)
    np.testing.assert_array_equal(groups[20:], groups[:3])
    assert len(np.unique(groups)) == 20


def test_one_example_is_no_sure_gain():
    n, w = 50, np.ones(50)
    alone = np.zeros((2, n))
    alone[:, 0] = 1e6
    assert not Gain.of(alone, w, np.arange(n)).is_sure
    rng = np.random.default_rng(0)
    many = np.abs(rng.normal(size=(2, n)))
    gain = Gain.of(many, w, np.arange(n))
    assert gain.is_sure
    assert gain.density == pytest.approx(many[0].mean(), rel=n * np.finfo(float).eps)
    want = many[0].std(ddof=1) / np.sqrt(n)
    assert gain.error == pytest.approx(want, rel=n * np.finfo(float).eps)
    assert not Gain.of(many * [[1], [-1]], w, np.arange(n)).is_sure
