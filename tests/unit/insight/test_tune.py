"""Parameters by gradient: exact slopes, honest ends, and a model equal to a fresh fit."""

from __future__ import annotations

import pickle

import numpy as np
import oracle
import pandas as pd
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    WhiteKernel,
)
from tolerance import assert_rounded, tolerance

from knowmore import GPClassifier, GPRegressor, LSSVMClassifier, NPlusOneClassifier, progress
from knowmore.errors import InvalidInput, InvalidType, NoExamples, NotPositiveDefinite
from knowmore.insight import due, tune
from knowmore.insight.objectives import Evidence, LeaveOneOutLoss, Solved, log_density
from knowmore.insight.search import Slope, Space
from knowmore.insight.trial import Gain
from knowmore.kernels import (
    On,
)
from knowmore.kernels.rules import prepared

# What it says of bounds and of leave-one-out is looked at in `test_tune_guard`.
pytestmark = pytest.mark.filterwarnings("ignore::knowmore.errors.KnowmoreWarning")


@pytest.fixture(autouse=True)
def every_gain_counts(monkeypatch):
    """These tests are about the search; `test_tune_trial` is about what may come of it."""
    monkeypatch.setattr(Gain, "is_sure", True)


# What `tune` calls nothing: a millionth per target.
NOTHING = 1e-6


def squared_error(T, mean, variance):
    """A score of the means alone."""
    error = T - mean
    return -0.5 * (error**2).sum(), error, np.zeros(len(T))


def hedged(T, mean, variance):
    """A score for which diag(h) has both signs."""
    error = T - mean
    return -(np.log(np.cosh(error))).sum() + variance.sum(), np.tanh(error), np.ones(len(T))


OBJECTIVES = {
    "evidence": Evidence(),
    "loo": LeaveOneOutLoss(log_density),
    "squared error": LeaveOneOutLoss(squared_error),
    "hedged": LeaveOneOutLoss(hedged),
}

KERNELS = [
    RBF([0.5, 1.0, 2.0]),
    ConstantKernel(2.0) * RBF(1.0) + WhiteKernel(0.01),
    ConstantKernel(0.4) * On(slice(0, 2), RBF([0.8, 1.5])) + On(slice(2, 3), Matern(1.0, nu=1.5)),
]


def inputs(n=25, seed=0):
    """Rows that are not negative, for histograms; two of them alike."""
    X = abs(np.random.default_rng(seed).normal(size=(n, 3)))
    X[-1] = X[0]
    return X


def clouds(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return rng.normal(size=(n, 2)) + 1.5 * np.array([[0, 0], [1, 0], [0, 1]])[y], y


# -- slopes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "bias"), [(name, False) for name in OBJECTIVES] + [("loo", True), ("hedged", True)]
)
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_slopes_match_finite_differences(name, kernel, bias):
    X, rng = inputs(), np.random.default_rng(2)
    T = rng.choice([-1.0, 1.0], size=(len(X), 3))
    weights = rng.uniform(0.2, 5, size=len(X))
    space = Space(kernel, 0.2, (1e-3, 1e3))
    slope = Slope(space, OBJECTIVES[name], X, T, weights=weights, bias=bias)
    _, value, gradient, _ = slope(space.theta)
    cond = np.linalg.cond(oracle.covariance(kernel, X, 0.2 / weights))
    for i in range(len(gradient)):

        def difference(h, i=i):
            step = h * np.eye(len(gradient))[i]
            return (slope(space.theta + step).value - slope(space.theta - step).value) / (2 * h)

        # Halving the step shows what is left of it; each value is as good as a solve with K.
        h = 1e-3
        coarse, fine = difference(h), difference(h / 2)
        rounding = 4 * np.finfo(float).eps * cond * (abs(value) + T.size) / h
        assert abs(gradient[i] - fine) <= abs(coarse - fine) + rounding


def test_the_adjoint_matches_the_textbook_gradient():
    """Rasmussen and Williams, eq. 5.13: Z_j = P dK_j, a product for each parameter."""
    kernel, noise, X = ConstantKernel(2.0) * RBF([0.5, 1.0, 2.0]), 0.2, inputs()
    T = np.random.default_rng(2).choice([-1.0, 1.0], size=(len(X), 3))
    K = oracle.covariance(kernel, X, noise)
    P = np.linalg.inv(K)
    d, A = np.diagonal(P), P @ T
    _, gradient = kernel(X, eval_gradient=True)
    want = []
    for dK in [*np.moveaxis(gradient, 2, 0), noise * np.eye(len(X))]:
        Z = P @ dK
        spread = np.diagonal(Z @ P)[:, None]
        want.append((A * (Z @ A) - 0.5 * (1 + A**2 / d[:, None]) * spread) / d[:, None])
    slope = Slope(Space(kernel, noise, (1e-3, 1)), LeaveOneOutLoss(log_density), X, T)
    got = slope(slope.space.theta).gradient
    scale = [abs(one).sum() for one in want]
    assert (abs(got - [one.sum() for one in want]) <= tolerance(K) * np.array(scale)).all()


@pytest.mark.parametrize("name", OBJECTIVES)
def test_values_match_refits(name):
    X, y = clouds(20)
    clf = GPClassifier(RBF(1.0), noise=0.3).fit(X, y)
    _, T = oracle.one_vs_all(y.tolist())
    K = oracle.covariance(RBF(1.0), X, 0.3)
    if name == "evidence":
        want = oracle.log_marginal_likelihood(RBF(1.0), 0.3, X, T)
    else:
        mean, variance = oracle.left_out(RBF(1.0), 0.3, X, T, np.arange(20))
        want = OBJECTIVES[name].score(T, mean, variance)[0]
    solved = Solved(np.linalg.inv(K), T, np.linalg.slogdet(K)[1])
    bound = tolerance(K) * (abs(want) + T.size)
    assert abs(OBJECTIVES[name].value(clf.model_) - want) <= bound
    assert abs(OBJECTIVES[name].slope(solved)[0] - want) <= bound


def classifier(model, kernel, noise):
    return GPClassifier(kernel, noise) if model == "GP" else LSSVMClassifier(kernel, 1 / noise)


@pytest.mark.parametrize("model", ["GP", "LSSVM"])
@pytest.mark.parametrize("score", [log_density, squared_error, hedged])
def test_values_of_weighted_models_match_refits(model, score):
    X, y = clouds(20)
    weights = np.random.default_rng(4).uniform(0.2, 5, size=20)
    clf = classifier(model, RBF(1.0), 0.3).fit(X, y, sample_weight=weights)
    _, T = oracle.one_vs_all(y.tolist())
    left_out = oracle.left_out(RBF(1.0), 0.3 / weights, X, T, np.arange(20), model == "LSSVM")
    want = score(T, *left_out)[0]
    K = oracle.covariance(RBF(1.0), X, 0.3 / weights)
    assert abs(tune(clf, score).before - want) <= 10 * tolerance(K) * (abs(want) + T.size)


# -- what is found -------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", ["loo", "marginal_likelihood", squared_error])
def test_the_result_is_a_fresh_fit_with_these_parameters(objective):
    X, y = clouds()
    clf = GPClassifier(ConstantKernel(1.0) * RBF(0.2), noise=0.1).fit(X, y)
    clf.remove([3, 7]).relabel([5], [0])
    clf.add(X[:2] + 0.5, [9, 9], ids=["late", "later"])
    model, parameters = clf.model_, str(clf.get_params())
    found = tune(clf, objective)
    assert clf.model_ is model
    assert str(clf.get_params()) == parameters
    assert found.after > found.before
    tuned = found.estimator
    assert tuned is not clf
    np.testing.assert_array_equal(tuned.ids_, clf.ids_)
    np.testing.assert_array_equal(tuned.model_.examples.labels, model.examples.labels)
    fresh = GPClassifier(tuned.kernel, tuned.noise)
    fresh.fit(model.examples.X, model.examples.labels, ids=clf.ids_)
    np.testing.assert_array_equal(tuned.decision_function(X), fresh.decision_function(X))
    now = tuned.get_params()
    for name, (_, after) in found.changed.items():
        assert_rounded(now[name], after)
    plain = tune(clf, objective, affine=False)
    for name, (before, _) in plain.changed.items():
        assert_rounded(clf.get_params()[name], before)


@pytest.mark.parametrize("model", ["GP", "LSSVM"])
def test_weights_and_settings_are_kept(model):
    X, y = clouds()
    weights = np.random.default_rng(6).uniform(0.2, 5, size=60)
    clf = classifier(model, RBF(0.3), 0.2).fit(X, y, sample_weight=weights).remove([3, 59])
    found = tune(clf, subset=40)
    tuned, held = found.estimator, clf.model_.examples
    name = "noise" if model == "GP" else "C"
    assert set(found.changed) == {"kernel__k1__constant_value", "kernel__k2__length_scale", name}
    assert found.after > found.before
    assert_rounded(tuned.get_params()[name], found.changed[name][1])
    fresh = classifier(model, tuned.kernel, 1 / tuned.C_ if model == "LSSVM" else tuned.noise)
    fresh.fit(held.X, held.labels, sample_weight=held.weights)
    K = oracle.covariance(tuned.kernel_, held.X, tuned.model_.covariance.noise / held.weights)
    got, want = tuned.decision_function(X), fresh.decision_function(X)
    assert abs(got - want).max() <= tolerance(K) * abs(want).max() * len(X)


def test_a_least_squares_svm_keeps_its_settings():
    X, y = clouds()
    y[y == 2] = np.where(np.arange(20) < 12, 0, 2)
    clf = LSSVMClassifier(RBF(0.3), C="loo", bias=False, class_weight="balanced").fit(X, y)
    tuned = tune(clf).estimator
    assert (tuned.bias, tuned.class_weight) == (False, "balanced")
    np.testing.assert_array_equal(tuned.model_.covariance.weights, clf.model_.covariance.weights)
    assert_rounded(tuned.C, tuned.C_)


def test_no_id_is_used_twice():
    X, y = clouds()
    clf = GPClassifier(RBF(1.0)).fit(X, y).remove([58, 59])
    tuned = tune(clf).estimator
    assert tuned.add(X[:1], y[:1]).tolist() == [60]
    assert clf.add(X[:1], y[:1]).tolist() == [60]
    assert tuned.remove([0]).ids_.tolist()[0] == 1
    assert clf.ids_.tolist()[0] == 0


def test_the_values_are_those_of_both_models():
    clf = GPClassifier(RBF(0.2), noise=0.1).fit(*clouds())
    found = tune(clf, "marginal_likelihood")
    for value, one in (found.before, clf), (found.after, found.estimator):
        K = oracle.covariance(one.kernel, clouds()[0], one.noise)
        want = one.log_marginal_likelihood()
        assert abs(value - want) <= tolerance(K) * (abs(want) + 180)


def test_the_optimum_matches_scikit_learn():
    X, y = clouds(50)
    start = ConstantKernel(1.0) * RBF([1.0, 1.0])
    clf = GPClassifier(start, noise=0.1).fit(X, y)
    found = tune(clf, "marginal_likelihood", noise_bounds=(1e-5, 1e5))
    peer = GaussianProcessRegressor(start + WhiteKernel(0.1), alpha=0).fit(X, clf.model_.targets.T)
    assert abs(found.after - peer.log_marginal_likelihood_value_) <= NOTHING * 150


@pytest.mark.parametrize("objective", ["loo", "marginal_likelihood"])
def test_where_nothing_is_to_be_gained_nothing_changes(objective):
    found = tune(GPClassifier(noise=0.1, settings="median").fit(*clouds()), objective)
    assert set(found.changed) == {
        "kernel__k1__constant_value",
        "kernel__k2__length_scale",
        "noise",
    }
    again = tune(found.estimator, objective)
    assert again.changed == {}
    assert again.after == again.before
    assert again.estimator.kernel == found.estimator.kernel
    assert again.estimator.noise == found.estimator.noise
    assert "nothing to gain" in repr(again)
    assert len(again.to_pandas()) == 0


def test_after_edits_it_starts_from_where_the_model_stands():
    X, y = clouds(90)
    first = tune(GPClassifier(RBF(0.2)).fit(X[:60], y[:60]))
    clf = first.estimator
    clf.add(X[60:], y[60:])
    second = tune(clf)
    assert second.before >= tune(GPClassifier(RBF(0.2)).fit(X, y)).before
    for name, (before, _) in second.changed.items():
        assert before == pytest.approx(first.changed[name][1], rel=4 * np.finfo(float).eps)


def test_weights_of_summed_kernels_are_learnt():
    """Two columns tell the classes apart, two are noise: their kernel loses its weight."""
    X, y = clouds(80)
    X = np.hstack([X, np.random.default_rng(5).normal(size=X.shape)])
    good, bad = On(slice(0, 2), RBF(1.0, "fixed")), On(slice(2, 4), RBF(1.0, "fixed"))
    clf = GPClassifier(ConstantKernel(0.5) * good + ConstantKernel(0.5) * bad, noise=0.5).fit(X, y)
    for objective in "loo", "marginal_likelihood":
        tuned = tune(clf, objective, affine=False).estimator.get_params()
        assert (
            tuned["kernel__k1__k1__constant_value"] > 10 * tuned["kernel__k2__k1__constant_value"]
        )


def test_a_kernel_that_is_a_function_has_its_noise_tuned():
    def linear(X, Y):
        return X @ Y.T + 1

    found = tune(GPClassifier(linear, noise=20.0).fit(*clouds()))
    assert list(found.changed) == ["noise"]
    assert found.estimator.kernel is linear


def test_regressors_are_tuned_on_one_column_or_several():
    X = np.linspace(0, 6, 30)[:, None]
    one = tune(GPRegressor(RBF(0.3)).fit(X, np.sin(X[:, 0])))
    assert one.estimator.predict(X).shape == (30,)
    two = tune(GPRegressor(RBF(0.3)).fit(X, np.hstack([np.sin(X), np.cos(X)])))
    assert two.estimator.predict(X).shape == (30, 2)
    assert one.after > one.before
    assert two.after > two.before


def test_feature_names_are_kept():
    X, y = clouds()
    table = pd.DataFrame(X, columns=["long", "wide"])
    tuned = tune(GPClassifier().fit(table, y)).estimator
    assert tuned.predict(table).shape == (60,)
    with pytest.raises(InvalidInput, match="feature names"):
        tuned.predict(table[["wide", "long"]])


def test_settings_of_the_estimator_are_kept():
    clf = GPClassifier(RBF(0.5), solver="inverse", update="direct", dtype="float32")
    tuned = tune(clf.fit(*clouds())).estimator
    assert (tuned.solver, tuned.update, tuned.dtype) == ("inverse", "direct", "float32")


@pytest.mark.parametrize("objective", ["loo", "marginal_likelihood"])
@pytest.mark.parametrize(("X", "y"), [([[0.0]], ["a"]), ([[0.0], [1.0], [5.0]], ["a", "a", "a"])])
def test_one_example_and_one_class_can_be_tuned(X, y, objective):
    found = tune(GPClassifier(ConstantKernel(1.0) * RBF(1.0)).fit(X, y), objective)
    assert found.after >= found.before


def test_one_class_is_always_recognised():
    """Even where the others say nothing of an example."""
    found = tune(GPClassifier(RBF(1e-3)).fit([[0.0], [1.0], [5.0]], ["a", "a", "a"]))
    assert (found.loss_before, found.loss_after) == (0, 0)


# -- restarts and subsets ------------------------------------------------------------------------


def test_restarts_leave_a_bad_start_and_are_seeded():
    X = np.linspace(0, 6, 40)[:, None]
    y = np.sin(3 * X[:, 0])
    # So wide that all is noise: a local optimum.
    reg = GPRegressor(RBF(1e3, (1e-2, 1e5)), noise=0.5).fit(X, y)
    alone, several = tune(reg, "marginal_likelihood"), tune(reg, "marginal_likelihood", restarts=5)
    assert several.after > alone.after + 10
    same = tune(reg, "marginal_likelihood", restarts=5)
    assert same.changed == several.changed


def test_restarts_leave_a_flat_start():
    """Distances so long that all kernel values vanish: nothing shows the way."""
    X = 1e4 * np.linspace(0, 6, 40)[:, None]
    reg = GPRegressor(RBF(1.0, (0.5, 1e5)), noise=1e-3).fit(X, np.sin(X[:, 0] / 1e4))
    options = {"noise_bounds": "fixed", "affine": False}
    assert tune(reg, **options).changed == {}
    assert tune(reg, restarts=5, **options).after > tune(reg, **options).after


def test_a_subset_searches_and_all_judge(monkeypatch):
    """Slopes are asked of a part of the examples, values of all."""
    X, y = clouds(150)
    clf = GPClassifier(RBF(0.1)).fit(X, y)
    sizes, evaluated = set(), Slope.__call__

    def counted(slope, theta):
        sizes.add(len(slope.T))
        return evaluated(slope, theta)

    with monkeypatch.context() as patch:
        patch.setattr(Slope, "__call__", counted)
        part = tune(clf, subset=50)
    assert sizes == {50}
    whole = tune(clf)
    assert part.before == whole.before
    assert part.before < part.after < whole.after
    assert part.loss_after <= part.loss_before
    _, T = oracle.one_vs_all(y.tolist())
    tuned = part.estimator
    K = oracle.covariance(tuned.kernel_, X, tuned.noise)
    want = log_density(T, *oracle.left_out(tuned.kernel_, tuned.noise, X, T, np.arange(150)))[0]
    assert abs(part.after - want) <= tolerance(K) * (abs(want) + T.size)
    assert tune(clf, subset=1000).changed == whole.changed
    assert len(part.estimator.ids_) == 150


def test_the_search_turns_back_where_no_covariance_matrix_exists():
    """Duplicates and hardly any noise: on the way, some steps are not positive definite."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(10, 1)), 3, axis=0)
    y = np.sin(X[:, 0]) + 1e-9 * rng.normal(size=30)
    reg = GPRegressor(RBF(1.0), noise=0.1).fit(X, y)
    found = tune(reg, "marginal_likelihood", noise_bounds=(1e-300, 1))
    assert found.after > found.before
    space = Space(RBF(1.0), 1e-300, (1e-300, 1))
    _, value, gradient, _ = Slope(space, Evidence(), X, y[:, None])(space.theta)
    assert value == -np.inf
    assert not gradient.any()


# -- too little noise to begin with --------------------------------------------------------------


def halves(n, seed):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, X[:, 0] > 0


@pytest.mark.slow(fast=4)
@pytest.mark.parametrize("objective", ["loo", "marginal_likelihood"])
@pytest.mark.parametrize("noise", [1e-4, 1e-3])
@pytest.mark.parametrize("width", [0.5, 1.0, 2.0, 4.0])
def test_a_steep_start_leads_to_the_same_hill(objective, noise, width):
    """From too little noise the first step in all parameters leapt to where K vanishes."""
    X, y = halves(100, 0)
    good = tune(GPClassifier(RBF(1.0), noise=0.1).fit(X, y), objective)
    clf = GPClassifier(RBF(width), noise).fit(X, y)
    found = tune(clf, objective)
    assert abs(found.after - good.after) <= NOTHING * max(abs(good.after), 200)
    # A kernel that is zero between any two examples says of each target what its prior does.
    nothing = max(
        OBJECTIVES[{"marginal_likelihood": "evidence"}.get(objective, objective)].value(
            GPClassifier(RBF(1e-5), level).fit(X, y).model_
        )
        for level in (1e-6, 1e-3, 1e-1)
    )
    assert found.after > nothing + 50
    new, truth = halves(1000, 1)
    # Two standard deviations of a part of so many.
    assert found.estimator.score(new, truth) >= clf.score(new, truth) - 1 / np.sqrt(1000)


def test_the_best_point_on_the_way_counts():
    """The best place on the way counts, wherever the way ends."""
    X, y = halves(60, 3)
    for width in 0.1, 1.0, 10.0:
        clf = GPClassifier(RBF(width, "fixed"), 1e-4).fit(X, y)
        noise_alone = tune(clf).after
        assert tune(GPClassifier(RBF(width), 1e-4).fit(X, y)).after >= noise_alone


def test_single_precision_can_start_where_it_was_fitted():
    """Half of the margin that other parameters are given is enough for those of the model."""
    X, y = halves(500, 0)
    clf = GPClassifier(RBF(2.0), 1e-4, dtype="float32").fit(X, y)
    found = tune(clf, subset=100)
    assert np.isfinite(found.before)
    assert found.after > found.before


# -- when to tune again --------------------------------------------------------------------------


def test_it_is_due_after_so_many_edits():
    X, y = clouds()
    tuned = tune(GPClassifier(RBF(1.0)).fit(X, y))
    clf = tuned.estimator
    assert not due(tuned, every=1)
    clf.add(X[:1] + 0.1, [1], ids=["new"])
    clf.remove([0])
    clf.replace([1], X[1:2] + 0.1)
    clf.relabel([2, 3], [(y[2] + 1) % 3, y[3]])
    assert due(tuned, every=4)
    assert not due(tuned, every=5)
    clf.remove(["new"])
    assert not due(tuned, every=4)
    other = GPClassifier(RBF(1.0)).fit(X[:5], y[:5])
    assert due(tuned, other, every=60)


def test_due_can_be_asked_of_the_original_model():
    clf = GPClassifier(RBF(1.0)).fit(*clouds())
    tuned = tune(clf)
    assert not due(tuned, clf, every=1)
    assert due(tuned, clf.remove([0]), every=1)
    assert not due(tuned, every=1)


@pytest.mark.parametrize("objective", ["loo", "marginal_likelihood"])
def test_it_is_due_when_the_objective_is_worse(objective):
    X, y = clouds()
    tuned = tune(GPClassifier(RBF(1.0)).fit(X, y), objective)
    clf = tuned.estimator
    assert not due(tuned, worse=0)
    clf.relabel([0, 1, 2, 4], [1, 2, 0, 2])
    clf.add(X[:3] + 1e-3, [1, 2, 0])
    loss = tuned.after / 180 - tune(clf, objective).before / 189
    assert loss > 0
    assert due(tuned, worse=loss * 0.99)
    assert not due(tuned, worse=loss * 1.01)
    assert due(tuned, every=3, worse=loss * 1.01)


# -- reading -------------------------------------------------------------------------------------


def test_many_parameters_do_not_hide_the_noise():
    X, y = np.random.default_rng(0).normal(size=(60, 12)), np.arange(60) % 2
    found = tune(GPClassifier(RBF(np.ones(12)), noise=0.5).fit(X, y), affine=False)
    assert [*found.changed][-1] == "noise"
    lines = repr(found).splitlines()
    assert lines[-1].split()[0] == "noise"
    assert lines[11] == f"... {len(found) - 10} more"
    assert len(lines) == 13
    few = tune(GPClassifier(RBF(np.ones(6)), noise=0.5).fit(X[:, :6], y), affine=False)
    assert len(repr(few).splitlines()) == 2 + len(few)


def test_it_reads_as_a_table():
    found = tune(GPClassifier(RBF([0.3, 0.3]), noise=0.1).fit(*clouds()), affine=False)
    names = ["kernel__length_scale[0]", "kernel__length_scale[1]", "noise"]
    table = found.to_pandas()
    assert table["parameter"].tolist() == names
    assert table["before"].tolist() == [found.changed[name][0] for name in names]
    assert table["after"].tolist() == [found.changed[name][1] for name in names]
    assert repr(found).startswith(f"Tuned: objective from {found.before:.6g} to {found.after:.6g}")


def test_the_search_turns_back_where_the_objective_has_no_value():
    """Of a restart, or on the way; only where the model stands must there be one."""

    def walled(T, mean, variance):
        room = 1.2 - variance.mean()
        value = np.log(room) if room > 0 else -np.inf
        return value, 0 * mean, np.full(len(T), -1 / max(room, 1e-9) / len(T))

    clf = GPClassifier(RBF(1.0), noise=0.1).fit(*clouds())
    found = tune(clf, walled, restarts=5)
    assert np.isfinite(found.after)
    assert found.after > found.before
    refused(
        r"The objective \(-inf\) is not finite at RBF.* Scale the features",
        GPClassifier(RBF(1.0), noise=2.0).fit(*clouds()),
        walled,
    )


def test_a_root_of_a_kernel_that_vanishes_has_a_slope():
    X, y = clouds()
    clf = GPClassifier(RBF(1.0) ** 0.5).fit(60 * X, y)
    found = tune(clf, restarts=2)
    assert found.after > found.before
    K, pull = prepared(clf.kernel_, 60 * X)(clf.kernel_)
    assert (K == 0).any()
    # The root of a Gaussian is one of another width, sqrt(2) times as large.
    _, gradient = RBF(np.sqrt(2.0))(60 * X, eval_gradient=True)
    W = np.ones(K.shape)
    assert_rounded(pull(W), np.tensordot(W, gradient, 2), scale=len(K))


# -- what is kept and what is left alone ---------------------------------------------------------


def test_no_features_of_the_examples_are_kept():
    X, y = clouds()
    X[5] = 1.2345678
    tuned = tune(GPClassifier(RBF(1.0)).fit(X, y))
    tuned.estimator.remove([5])
    assert X[5].tobytes() not in pickle.dumps(tuned)
    assert due(pickle.loads(pickle.dumps(tuned)), every=1)


def test_changed_is_read_only():
    found = tune(GPClassifier(RBF(0.2)).fit(*clouds()))
    with pytest.raises(TypeError):
        found.changed["noise"] = (0, 0)
    assert "noise" in found.changed


@pytest.mark.parametrize("C", [3.0, 49.0, 93.0, 1 / 3])
def test_values_before_are_exact(C):
    X, y = clouds()
    svm = LSSVMClassifier(ConstantKernel(0.3) * RBF([0.7, 2.7]), C=C).fit(X, y)
    found = tune(svm)
    parameters = svm.get_params()
    assert found.changed["C"][0] == C
    assert found.changed["kernel__k1__constant_value"][0] == 0.3
    for i in range(2):
        name = f"kernel__k2__length_scale[{i}]"
        assert found.changed[name][0] == parameters["kernel__k2__length_scale"][i]
        assert found.changed[name][1] == found.estimator.kernel.k2.length_scale[i]
    assert found.changed["C"][1] == found.estimator.C
    nothing = tune(svm, lambda T, mean, variance: (0.0, 0 * mean, 0 * variance))
    assert nothing.changed == {}
    assert nothing.estimator.C == C
    assert nothing.estimator.kernel == svm.kernel


# -- bad input -----------------------------------------------------------------------------------


class Broken(RBF):
    """A kernel whose gradient is not a number."""

    def __call__(self, X, Y=None, eval_gradient=False):
        K = super().__call__(X, Y)
        return (K, np.full((*K.shape, 1), np.nan)) if eval_gradient else K


def refused(message, clf, *arguments, error=InvalidInput, **options):
    model = getattr(clf, "model_", None)
    with pytest.raises(error, match=message):
        tune(clf, *arguments, **options)
    assert getattr(clf, "model_", None) is model


def test_what_cannot_be_tuned_is_explained():
    clf = GPClassifier(RBF(1.0), noise=0.1).fit(*clouds())
    refused(
        "objective='best' is not known. Choose one of 'loo', 'marginal_likelihood'", clf, "best"
    )
    refused("noise is 0.1, not within 0.2 to 1", clf, noise_bounds=(0.2, 1))
    refused('noise_bounds="fixed"', GPClassifier(RBF(1.0), noise=0.0).fit(*clouds(9)))
    narrow = GPClassifier(RBF(1.0, (2.0, 3.0))).fit(*clouds())
    refused("kernel__length_scale is 1, not within 2 to 3", narrow)
    fixed = GPClassifier(RBF(1.0, "fixed")).fit(*clouds())
    refused("Nothing to tune", fixed, noise_bounds="fixed", affine=False)
    endless = GPClassifier(RBF(1.0, (1e-5, np.inf))).fit(*clouds())
    refused("Restarts need finite bounds", endless, restarts=1)
    for bounds in [(0, 1), (2, 1), 3, "free", (1, 2, 3), ("a", "b"), (np.nan, 1)]:
        refused("Give 0 < low <= high", clf, noise_bounds=bounds)
    for option in {"restarts": -1}, {"restarts": 1.5}, {"subset": 0}, {"subset": True}:
        refused("Give a whole number", clf, **option)
    for seed in "x", -1, 0.5:
        refused("is not a seed. Give a whole number", clf, restarts=1, random_state=seed)
    refused("is for a fitted GPClassifier, GP", GaussianProcessRegressor(), error=InvalidType)
    refused("holds no examples", GPClassifier().fit([[0.0]], [1]).remove([0]), error=NoExamples)


@pytest.mark.filterwarnings("error")
def test_features_far_too_large_are_refused_without_a_warning():
    X, y = clouds()
    with pytest.raises(NotPositiveDefinite, match="is nearest to it"):
        GPClassifier(DotProduct(), noise=0.1).fit(1e150 * X, y)


def test_what_a_least_squares_svm_cannot_do_is_explained():
    X, y = clouds()
    clf = LSSVMClassifier(RBF(1.0)).fit(X, y)
    words = "is for Gaussian processes. Ask for"
    refused(words, clf, "marginal_likelihood")
    refused("leaves none to compute a bias from", LSSVMClassifier(RBF(1.0)).fit(X[:1], y[:1]))
    refused("subset=1. Give a whole number of at least 2", clf, subset=1)
    known = LSSVMClassifier(RBF(1.0)).fit(X[y < 2], y[y < 2])
    transferred = NPlusOneClassifier(known, RBF(1.0)).fit(X, y)
    refused("LSSVMClassifier, not NPlusOneClassifier", transferred, error=InvalidType)


def test_slopes_that_are_not_finite_raise():
    refused(
        "The slope in kernel__length_scale is not finite at Broken",
        GPClassifier(Broken(1.0)).fit(*clouds()),
    )
    refused(
        r"The objective \(nan\) is not finite",
        GPClassifier(RBF(1.0)).fit(*clouds()),
        lambda T, mean, variance: (np.nan, 0 * T, 0 * variance),
    )


def test_the_shapes_of_a_custom_objective_are_checked():
    clf = GPClassifier(RBF(1.0)).fit(*clouds())
    message = r"by the means, \(60, 3\), and by the variances, \(60,\)"
    refused(message, clf, lambda T, mean, variance: 1.0)
    refused(message, clf, lambda T, mean, variance: (1.0, variance, variance))
    refused(message, clf, lambda T, mean: 1.0)
    refused("The objective failed: ZeroDivisionError", clf, lambda T, mean, variance: 1 / 0)
    refused("The objective failed: IndexError", clf, lambda T, mean, variance: mean[999])


def test_bad_arguments_of_due_are_explained():
    tuned = tune(GPClassifier(RBF(1.0)).fit(*clouds()))
    with pytest.raises(InvalidInput, match="Give every=r, a number of edits, or worse=x"):
        due(tuned)
    with pytest.raises(InvalidInput, match="every=0"):
        due(tuned, every=0)
    with pytest.raises(InvalidType, match=r"^due\(\) takes what tune\(\) returned, but got a"):
        due(tuned.estimator, every=1)
    for loss in -1.0, np.nan, "much", np.ones(2):
        with pytest.raises(InvalidInput, match="worse="):
            due(tuned, worse=loss)


def test_the_search_reports_how_far_it_is():
    """Fits are parts of it."""
    X, seen = np.linspace(0, 6, 20)[:, None], []
    reg = GPRegressor(RBF(1.0)).fit(X, np.sin(X[:, 0]))
    with progress(seen.append):
        tune(reg)
    assert len(seen) > 10
    assert seen == sorted(seen)
    assert 0 < seen[0] < seen[-1] < 1
