"""Tuning never makes a model worse, and says what it ran into."""

from __future__ import annotations

import warnings

import numpy as np
import oracle
import pytest
from sklearn.datasets import load_digits, make_friedman1
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    Sum,
    WhiteKernel,
)
from tolerance import assert_rounded, tolerance

from knowmore import GPClassifier, GPRegressor, LSSVMClassifier
from knowmore.errors import InvalidInput, KnowmoreWarning
from knowmore.insight import due, tune
from knowmore.insight.objectives import Evidence, LeaveOneOutLoss, left_out_loss, log_density
from knowmore.insight.search import Slope, Space, has_amplitude, has_offset
from knowmore.insight.trial import Gain
from knowmore.kernels import HistogramIntersection, On

quietly = pytest.mark.filterwarnings("ignore::knowmore.errors.KnowmoreWarning")
OBJECTIVES = ["loo", "marginal_likelihood"]


@pytest.fixture
def every_gain_counts(monkeypatch):
    """For what is about the search alone: no trial stops it."""
    monkeypatch.setattr(Gain, "is_sure", True)


def clouds(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 2)) + 1.5 * np.array([[0, 0], [1, 0], [0, 1]])[y], y


def sine(n, seed, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, (n, 1))
    return X, 100 + np.sin(X[:, 0]) + noise * rng.normal(size=n)


def spread(T, mean, variance):
    """An objective that wants what nobody wants: errors as large as can be."""
    error = T - mean
    return 0.5 * (error**2).sum(), -error, np.zeros(len(T))


def hedged(T, mean, variance):
    """A score for which H has both signs."""
    error = T - mean
    return -(np.log(np.cosh(error))).sum() + variance.sum(), np.tanh(error), np.ones(len(T))


# -- what was broken -----------------------------------------------------------------------------


@quietly
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("words", [{}, {"normalize_y": False}], ids=repr)
def test_values_far_from_zero_are_learnt_better_than_before(words, objective):
    """A sine around 100: R2 went from 0.97 to -696, with the noise at its bound."""
    reg = GPRegressor(noise=0.1, settings="median", **words).fit(*sine(150, 0))
    found = tune(reg, objective)
    new = sine(300, 1, noise=0)
    assert found.estimator.score(*new) > max(reg.score(*new), 0.99)
    assert found.loss_after <= found.loss_before


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_values_of_another_scale_than_the_kernel_are_learnt_better_than_before(objective):
    """Friedman's function: R2 went from 0.91 to 0.65."""
    X, y = make_friedman1(500, noise=1.0, random_state=0)
    reg = GPRegressor(settings="median").fit(X[:250], y[:250])
    found = tune(reg, objective)
    assert found.estimator.score(X[250:], y[250:]) > reg.score(X[250:], y[250:])
    assert not found.held_back


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_labels_without_noise_do_not_drive_the_noise_to_its_bound(objective, every_gain_counts):
    """Handwritten digits: below 1e-4 it hardly matters, and matrices get ever worse."""
    X, y = load_digits(return_X_y=True)
    clf = GPClassifier(settings="median").fit(X[:200], y[:200])
    found = tune(clf, objective)
    assert found.at_bounds == ()
    assert 1e-5 < found.estimator.noise < 1e-2
    assert found.estimator.score(X[200:], y[200:]) >= clf.score(X[200:], y[200:])
    # It does not go there when it is asked again, either.
    again = tune(found.estimator, objective).estimator.noise
    assert 1e-5 < again < 1e-2


def test_a_kernel_without_neighbours_does_not_look_perfect():
    """Left out, each example was "recognised" by the rounding of its own target."""
    rng = np.random.default_rng(0)
    X, y = 100 * rng.normal(size=(60, 5)), rng.integers(0, 4, 60)
    clf = GPClassifier(RBF(1.0)).fit(X, y)
    found = tune(clf, noise_bounds="fixed", affine=False)
    assert found.loss_before == 1
    # Nor does a search end there that starts from neighbours whose labels are right.
    X, y = clouds()
    found = tune(GPClassifier(RBF(1.0, (1e-9, 1e3))).fit(X, y))
    widths = [v for k, v in found.estimator.get_params().items() if k.endswith("length_scale")]
    assert min(widths) > 0.1
    T = np.eye(3)[y] * 2 - 1
    assert left_out_loss(T, T * (1 + np.finfo(float).eps), classes=True) == 1
    assert left_out_loss(T, T - 1e-6 * T, classes=True) == 0


# -- never worse ---------------------------------------------------------------------------------


def loss_by_refits(estimator, groups=None):
    """The share of examples that refits without them do not recognise; the mean squared error."""
    model = estimator.model_
    held, noise = model.examples, model.covariance.noise / model.covariance.weights
    groups = np.arange(len(held)) if groups is None else groups
    if isinstance(estimator, GPRegressor):
        Y = held.labels[:, None]
        mean, _ = oracle.normalised_left_out(
            estimator.kernel_, noise, held.X, Y, groups, held.weights
        )
        return ((mean - Y) ** 2).mean() / Y.var()
    names, T = oracle.one_vs_all(held.labels.tolist())
    bias = getattr(estimator, "bias", False)
    mean, _ = oracle.left_out(estimator.kernel_, noise, held.X, T, groups, bias)
    return (np.array(names)[mean.argmax(axis=1)] != held.labels).mean()


@pytest.mark.slow(fast=12)
@quietly
@pytest.mark.parametrize("objective", [*OBJECTIVES, spread, hedged])
@pytest.mark.parametrize("make", [GPClassifier, LSSVMClassifier, GPRegressor])
@pytest.mark.parametrize("seed", range(4))
def test_leave_one_out_is_never_worse_than_before(make, objective, seed):
    if make is LSSVMClassifier and objective == "marginal_likelihood":
        pytest.skip("it has none")
    rng = np.random.default_rng(seed)
    X, y = clouds(40, seed)
    y = np.where(rng.random(40) < 0.2, rng.permutation(y), y)
    if make is GPRegressor:
        y = X[:, 0] + 0.3 * rng.normal(size=40) + 10 * seed
    # None so small that the others say nothing, which a refit's rounding cannot tell.
    width, subset = rng.choice([0.3, 0.5, 2.0]), [None, 15][seed % 2]
    found = tune(make(RBF(width)).fit(X, y), objective, subset=subset, random_state=seed)
    start, end = loss_by_refits(make(RBF(width)).fit(X, y)), loss_by_refits(found.estimator)
    rounding = 1e6 * np.finfo(float).eps
    assert end <= start * (1 + rounding)
    assert_rounded([found.loss_before, found.loss_after], [start, end], 1e6)


def test_a_worse_optimum_is_refused_with_a_warning(every_gain_counts):
    X, y = clouds()
    clf = GPClassifier(RBF(1.0), noise=0.1).fit(X, y)
    with pytest.warns(
        KnowmoreWarning,
        match=r"^The objective leads to where the leave-one-out loss exceeds "
        r"0\.\d+: tune\(\) did not go there\. ",
    ):
        found = tune(clf, spread, affine=False)
    assert found.held_back
    assert ", held back by the leave-one-out loss\n" in repr(found)
    assert found.loss_after <= found.loss_before
    X, y = sine(40, 0)
    reg = GPRegressor(RBF(1.0)).fit(X, y)
    with pytest.warns(KnowmoreWarning, match=r"loss exceeds 0"):
        found = tune(reg, spread, affine=False)
    assert found.held_back
    assert repr(found).startswith(
        f"Tuned: held back at {found.before:.6g}: what gains has a larger leave-one-out loss"
    )
    assert found.changed == {}
    assert found.after == found.before
    assert found.estimator.kernel == reg.kernel
    np.testing.assert_array_equal(found.estimator.predict(X), reg.predict(X))


@quietly
def test_parameters_that_fail_on_all_examples_are_refused():
    """Single precision, twins, and hardly any noise: fine for twenty, not for all."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(0, 6, (200, 1)), 2, axis=0)
    reg = GPRegressor(RBF(1.0), noise=0.1, dtype="float32").fit(X, np.sin(X[:, 0]))
    found = tune(reg, subset=20, noise_bounds=(1e-9, 1.0))
    assert np.isfinite(found.after)
    assert found.loss_after <= found.loss_before
    assert np.isfinite(found.estimator.predict(X)).all()


# -- kernels that are not positive definite ------------------------------------------------------


def waves(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.sin(X).sum(axis=1) + 0.1 * rng.normal(size=n)


PERIODIC = ExpSineSquared(1.0, 3.0)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize(
    "kernel", [PERIODIC, PERIODIC + WhiteKernel(1.0), lambda X, Y: PERIODIC(X, Y)]
)
def test_a_kernel_that_is_indefinite_everywhere_is_named(kernel, objective):
    """Noise just above minus its least eigenvalue fitted all examples, and R2 was -6e12."""
    X, y = waves(60, 0)
    reg = GPRegressor(kernel, noise=15.0).fit(X, y)
    with pytest.warns(KnowmoreWarning, match=r"is not positive definite: .* Use another kernel"):
        found = tune(reg, objective)
    assert found.changed == {}
    np.testing.assert_array_equal(found.estimator.predict(X), reg.predict(X))


@pytest.mark.slow(fast=6)
@quietly
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("subset", [None, 15])
@pytest.mark.parametrize("seed", range(3))
def test_parameters_with_an_indefinite_kernel_are_passed_over(seed, subset, objective):
    """With a long period it is nearly an RBF; the search may not leave for a short one."""
    X, y = waves(60, seed)
    reg = GPRegressor(ExpSineSquared(1.0, 30.0), noise=0.1).fit(X, y)
    found = tune(reg, objective, subset=subset, restarts=2)
    eigenvalues = np.linalg.eigvalsh(found.estimator.kernel_(X))
    assert eigenvalues[0] >= -(60**2) * np.finfo(float).eps * eigenvalues[-1]
    assert found.estimator.score(*waves(500, 9)) >= reg.score(*waves(500, 9))


@quietly
def test_restarts_leave_an_indefinite_start():
    X, y = waves(60, 1)
    kernel = ExpSineSquared(1.0, 3.0, (0.1, 10), (1, 1000))
    found = tune(GPRegressor(kernel, noise=15.0).fit(X, y), restarts=5)
    assert found.after > found.before
    assert found.estimator.score(*waves(500, 9)) > 0.9


# -- amplitude and offset ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "amplitude", "offset"),
    [
        (RBF(1.0), False, False),
        (HistogramIntersection(), False, False),
        (On(slice(0, 1), ConstantKernel(2.0) * RBF(1.0)), True, False),
        (ConstantKernel(1.0, "fixed") * RBF(1.0), True, False),
        (ConstantKernel(1.0) * RBF(1.0) + Matern(1.0), False, False),
        (ConstantKernel(1.0) * RBF(1.0) + WhiteKernel(0.1), True, False),
        (ConstantKernel(1.0) * RBF(1.0) + ConstantKernel(1.0), True, True),
        (DotProduct(1.0), False, True),
        (DotProduct(1.0) ** 2, False, True),
        (DotProduct(1.0) * RBF(1.0), False, False),
        (np.inner, True, True),
    ],
    ids=str,
)
def test_amplitudes_and_offsets_of_kernels_are_recognised(kernel, amplitude, offset):
    assert has_amplitude(kernel) == amplitude
    assert has_offset(kernel) == offset


def test_an_amplitude_or_offset_is_not_added_twice(every_gain_counts):
    X, y = clouds()
    whole = ConstantKernel(1.0) * RBF(1.0) + ConstantKernel(1.0)
    names = {
        name for name in GPClassifier(whole).get_params() if name.endswith(("_value", "_scale"))
    }
    found = tune(GPClassifier(whole).fit(X, y))
    assert set(found.changed) <= names | {"noise"}
    plain = tune(GPClassifier(RBF(0.3)).fit(X, y), affine=False)
    assert set(plain.changed) == {"kernel__length_scale", "noise"}
    assert isinstance(plain.estimator.kernel, RBF)


def test_an_offset_is_added_where_it_helps_and_not_where_there_is_a_bias(every_gain_counts):
    """One class of three has most examples: its column is far from zero in the mean."""
    X, y = clouds(90)
    y[30:] = 0
    found = tune(GPClassifier(RBF(1.0)).fit(X, y))
    assert isinstance(found.estimator.kernel, Sum)
    before, after = found.changed["kernel__k2__constant_value"]
    assert before == 0
    assert after == found.estimator.kernel.k2.constant_value
    assert found.changed["kernel__k1__k1__constant_value"][0] == 1
    machine = tune(LSSVMClassifier(RBF(1.0)).fit(X, y))
    assert not has_offset(machine.estimator.kernel)
    assert has_amplitude(machine.estimator.kernel)
    without = tune(LSSVMClassifier(RBF(1.0), bias=False).fit(X, y))
    assert has_offset(without.estimator.kernel)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_amplitude_and_offset_improve_the_objective(objective, every_gain_counts):
    X, y = clouds(90)
    y[30:] = 0
    clf = GPClassifier(RBF(1.0)).fit(X, y)
    assert tune(clf, objective).after > tune(clf, objective, affine=False).after


# -- bounds --------------------------------------------------------------------------------------


def test_a_parameter_that_ends_at_its_bound_is_named(every_gain_counts):
    X, y = clouds()
    clf = GPClassifier(ConstantKernel(1.0) * RBF(0.5, (0.4, 0.6))).fit(X, y)
    with pytest.warns(
        KnowmoreWarning,
        match=r"^kernel__k2__length_scale ended at 0\.6, which is a bound of the search: the "
        r"best value may be beyond it\. Give the kernel other bounds, or fit the model with",
    ):
        found = tune(clf, affine=False)
    assert found.at_bounds == ("kernel__k2__length_scale",)
    svm = LSSVMClassifier(RBF(1.0), C=10.0).fit(X, y)
    with pytest.warns(
        KnowmoreWarning,
        match=r"^C ended at 5, which is a bound .* Give other noise_bounds, or noise_bounds=\"fix",
    ):
        found = tune(svm, noise_bounds=(0.1, 0.2))
    assert found.at_bounds == ("C",)


def test_no_warning_within_bounds():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tune(GPRegressor().fit(*sine(80, 0)))
    assert found.at_bounds == ()
    assert not found.held_back


# -- groups --------------------------------------------------------------------------------------


def grouped(n=25, seed=0):
    rng = np.random.default_rng(seed)
    X, T = abs(rng.normal(size=(n, 3))), rng.choice([-1.0, 1.0], size=(n, 3))
    return X, T, rng.uniform(0.2, 5, n), rng.choice(["a", "b", "c", "d", "e"], n)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("score", [log_density, hedged])
def test_slopes_with_groups_match_finite_differences(score, bias):
    X, T, weights, groups = grouped()
    kernel = ConstantKernel(2.0) * RBF([0.5, 1.0, 2.0])
    space = Space(kernel, 0.2, (1e-3, 1e3))
    goal = LeaveOneOutLoss(score)
    slope = Slope(space, goal, X, T, weights=weights, bias=bias, groups=groups, classes=True)
    _, value, gradient, loss = slope(space.theta)
    mean, variance = oracle.left_out(kernel, 0.2 / weights, X, T, groups, bias)
    K = oracle.covariance(kernel, X, 0.2 / weights)
    assert abs(value - score(T, mean, variance)[0]) <= 10 * tolerance(K) * (abs(value) + T.size)
    assert loss == left_out_loss(T, T - mean, classes=True)
    for i in range(len(gradient)):

        def difference(h, i=i):
            step = h * np.eye(len(gradient))[i]
            return (slope(space.theta + step).value - slope(space.theta - step).value) / (2 * h)

        # Halving the step shows what is left of it; each value is as good as a solve with K.
        h = 1e-3
        coarse, fine = difference(h), difference(h / 2)
        rounding = 4 * np.finfo(float).eps * np.linalg.cond(K) * (abs(value) + T.size) / h
        assert abs(gradient[i] - fine) <= abs(coarse - fine) + rounding


def test_groups_of_one_equal_single_examples():
    X, T, weights, _ = grouped()
    space = Space(RBF(1.0), 0.2, (1e-3, 1e3))
    goal, K = LeaveOneOutLoss(log_density), oracle.covariance(RBF(1.0), X, 0.2 / weights)
    one = Slope(space, goal, X, T, weights=weights)(space.theta)
    other = Slope(space, goal, X, T, weights=weights, groups=np.arange(25))(space.theta)
    scale = abs(one.value) + T.size
    assert abs(one.value - other.value) <= tolerance(K) * scale
    assert (abs(one.gradient - other.gradient) <= tolerance(K) * scale).all()


def repeated(seed=0):
    """Each of 20 things was measured five times: what repeats is not what is new."""
    rng = np.random.default_rng(seed)
    centres, who = rng.normal(size=(20, 2)), np.repeat(np.arange(20), 5)
    y = (centres[:, 0] + 0.7 * rng.normal(size=20) > 0).astype(int)
    return centres[who] + 0.05 * rng.normal(size=(100, 2)), y[who], who


@quietly
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("make", [GPClassifier, LSSVMClassifier])
def test_groups_are_left_out_in_objective_and_loss(make, objective, every_gain_counts):
    if make is LSSVMClassifier and objective == "marginal_likelihood":
        pytest.skip("it has none")
    X, y, who = repeated()
    clf = make(RBF(0.3)).fit(X, y)
    for subset in None, 60:
        found = tune(clf, objective, groups=who, subset=subset)
        assert_rounded(found.loss_before, loss_by_refits(clf, who))
        assert_rounded(found.loss_after, loss_by_refits(found.estimator, who))
        assert found.loss_after <= found.loss_before
        assert found.after >= found.before
    alone = tune(clf, objective)
    if objective == "loo":
        # By what repeats, hardly anything is noise.
        whole = tune(clf, groups=who)
        assert whole.before < alone.before
        assert whole.estimator.model_.covariance.noise > alone.estimator.model_.covariance.noise


def test_groups_of_a_regressor_are_left_out():
    X, y = sine(60, 0)
    who = np.round(X[:, 0]).astype(int)
    reg = GPRegressor(RBF(1.0)).fit(X, y)
    found = tune(reg, groups=who)
    K = oracle.covariance(RBF(1.0), X, 0.1)
    T = ((y - y.mean()) / y.std())[:, None]
    want = log_density(T, *oracle.left_out(RBF(1.0), 0.1, X, T, who))[0]
    assert abs(found.before - want) <= tolerance(K) * (abs(want) + 60)
    assert_rounded(found.loss_before, loss_by_refits(reg, who), np.linalg.cond(K))


@quietly
def test_due_takes_groups_too():
    X, y, who = repeated()
    tuned = tune(GPClassifier(RBF(0.3)).fit(X, y), groups=who)
    assert tuned.grouped
    assert not due(tuned, worse=0, groups=who)
    assert not due(tuned, every=1)
    with pytest.raises(InvalidInput, match=r"^Groups were left out in tuning\. Give groups"):
        due(tuned, worse=0)
    tuned.estimator.relabel(range(10), 1 - y[:10])
    assert due(tuned, worse=0, groups=who)
    single = tune(GPClassifier(RBF(0.3)).fit(X, y))
    with pytest.raises(InvalidInput, match=r"^Groups were not left out in tuning\. Do not give"):
        due(single, worse=0, groups=who)


def test_groups_are_checked():
    X, y, who = repeated()
    clf = GPClassifier(RBF(0.3)).fit(X, y)
    for wrong in who[:5], [None] * 100:
        with pytest.raises(InvalidInput, match="groups"):
            tune(clf, groups=wrong)
    svm = LSSVMClassifier(RBF(0.3)).fit(X, y)
    with pytest.raises(InvalidInput, match="leaves none to compute a bias from"):
        tune(svm, groups=np.zeros(100))


@quietly
def test_a_single_group_is_predicted_by_the_prior(every_gain_counts):
    X, y, _ = repeated()
    found = tune(GPClassifier(RBF(0.3)).fit(X, y), groups=np.zeros(100))
    T = oracle.one_vs_all(y.tolist())[1]
    want = log_density(T, *oracle.left_out(RBF(0.3), 0.1, X, T, np.zeros(100)))[0]
    K = oracle.covariance(RBF(0.3), X, 0.1)
    assert abs(found.before - want) <= tolerance(K) * (abs(want) + T.size)


@quietly
def test_a_subset_has_two_groups_if_there_is_a_bias():
    X, y, _ = repeated()
    who = np.arange(100) == 7
    for seed in range(5):
        found = tune(LSSVMClassifier(RBF(0.3)).fit(X, y), groups=who, subset=5, random_state=seed)
        assert np.isfinite(found.after)


def test_the_likelihood_ignores_groups():
    X, y, who = repeated()
    clf = GPClassifier(RBF(0.3)).fit(X, y)
    assert Evidence().value(clf.model_, who) == clf.log_marginal_likelihood()
