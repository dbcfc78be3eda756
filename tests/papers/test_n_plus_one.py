"""The experiment on one class more: the baselines, and the experiment at a reduced size."""

from __future__ import annotations

from itertools import product
from typing import Literal

import numpy as np
import oracle
import pytest
from quick_runs import coarse_look, is_picture, read, result_of, verdicts_of
from scipy import linalg
from sklearn.gaussian_process.kernels import RBF
from sklearn.svm import SVC
from tolerance import assert_rounded, assert_solves, tolerance
from typer.testing import CliRunner

from knowmore import LSSVMClassifier
from knowmore.errors import MissingData
from knowmore.transfer.coding import interior
from papers.adapted import Adapted
from papers.command import app
from papers.n_plus_one import baselines, n_plus_one
from papers.n_plus_one.features import LINEAR, NON_LINEAR, Seen, as_table, average_rbf
from papers.n_plus_one.groups import MIXED, RELATED, UNRELATED, animal_groups
from papers.n_plus_one.outcomes import (
    ANIMALS,
    BALANCED,
    BATCH,
    FEW,
    NONE,
    OURS,
    OWN_C,
    PLUS_ONE,
    SOURCE,
    THINGS,
    NPlusOneRun,
    Outcome,
    Plan,
)
from papers.n_plus_one.report import verdicts

KERNEL, C = RBF(1.5), 4.0
NAMES = np.array(["ant", "bee", "cow", "dog"])
NEW = "bee"


def drawn(n, seed, names=NAMES):
    """n examples of each name, in the plane, well mixed."""
    rng = np.random.default_rng(seed)
    y = np.repeat(names, n)
    centres = dict(zip(NAMES, 1.5 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]]), strict=True))
    return np.array([centres[name] for name in y]) + rng.normal(size=(len(y), 2)), y


X_OLD, Y_OLD = drawn(8, 0, NAMES[NAMES != NEW])
X, Y = drawn(5, 1)
Z = drawn(4, 2)[0]
SOURCE_OF_THREE = LSSVMClassifier(KERNEL, C).fit(X_OLD, Y_OLD)
S = SOURCE_OF_THREE.decision_function(X)


def fitted(name):
    return getattr(baselines, name)(SOURCE_OF_THREE, KERNEL, C).fit(X, Y)


def assert_machine(got, X, T, noise, kernel=KERNEL):
    """Are these the scores of Z by a machine that learnt T (n, M) from X?"""
    want = oracle.scores(kernel, noise, X, T, Z, bias=True)
    K = oracle.covariance(kernel, X, noise)
    assert_solves(got, want, K, T, left=kernel(X, Z), bias=True)


# -- the baselines -------------------------------------------------------------------------------


def test_no_transfer_learns_from_the_new_examples_alone():
    assert_machine(fitted("NoTransfer").decision_function(Z), X, oracle.one_vs_all(Y)[1], 1 / C)


def test_no_transfer_may_choose_its_own_C():
    chosen = LSSVMClassifier(KERNEL, "loo").fit(X, Y).C_
    got = fitted("NoTransferOwnC").decision_function(Z)
    assert_machine(got, X, oracle.one_vs_all(Y)[1], 1 / chosen)


def test_batch_learns_from_everything():
    both, labels = np.concatenate([X_OLD, X]), np.concatenate([Y_OLD, Y])
    T = oracle.one_vs_all(labels)[1]
    assert_machine(fitted("Batch").decision_function(Z), both, T, 1 / C)
    counts = {name: (labels == name).sum() for name in NAMES}
    weights = np.array([len(labels) / (4 * counts[name]) for name in labels])
    assert_machine(fitted("BalancedBatch").decision_function(Z), both, T, 1 / (C * weights))


@pytest.mark.parametrize("name", ["SourceOnly", "SourcePlusOne", "SourcePlusOneHinge"])
def test_the_source_stays_as_it_is(name):
    scores = fitted(name).decision_function(Z)
    known = SOURCE_OF_THREE.decision_function(Z)
    np.testing.assert_array_equal(scores[:, NAMES != NEW], known)


def test_the_source_alone_never_names_the_new_class():
    clf = fitted("SourceOnly")
    np.testing.assert_array_equal(clf.classes_, NAMES)
    np.testing.assert_array_equal(clf.predict(Z), SOURCE_OF_THREE.predict(Z))


def test_plus_one_is_a_machine_against_all_others():
    t = np.where(Y == NEW, 1.0, -1.0)[:, None]
    got = fitted("SourcePlusOne").decision_function(Z)[:, NAMES == NEW]
    assert_machine(got, X, t, 1 / C)


def test_plus_one_by_the_hinge_is_scikit_learns():
    # gamma as scikit-learn names what RBF calls 1 / (2 length_scale^2).
    peer = SVC(C=C, gamma=1 / (2 * 1.5**2)).fit(X, Y == NEW)
    got = fitted("SourcePlusOneHinge").decision_function(Z)[:, NAMES == NEW][:, 0]
    # Both solve to libsvm's own tolerance.
    np.testing.assert_allclose(got, peer.decision_function(Z), atol=2 * peer.tol)


def test_scores_are_one_more_feature():
    centre = S.mean(axis=0)
    c = 1 / ((S - centre) ** 2).sum(axis=1).mean()

    def kernel(A, B=None):
        a, b = (
            SOURCE_OF_THREE.decision_function(some) - centre for some in (A, A if B is None else B)
        )
        return KERNEL(A, B) + c * a @ b.T

    got = fitted("AddedKernel").decision_function(Z)
    assert_machine(got, X, oracle.one_vs_all(Y)[1], 1 / C, kernel)


def adapted(name=NEW):
    """The machine of one class."""
    return Adapted.of(KERNEL(X), np.where(np.equal(Y, name), 1.0, -1.0), C, S)


def test_both_sides_of_an_adapted_machine_count_the_same():
    one = adapted()
    assert_rounded([one.weights[one.y == side].sum() for side in (-1, 1)], [len(Y) / 2] * 2)


@pytest.mark.parametrize("seed", [0, 1])
def test_an_adapted_machine_leaves_out_as_refits_do(seed):
    one, rng = adapted(), np.random.default_rng(seed)
    beta, noise = rng.normal(size=3), 1 / (C * one.weights)
    T = (one.y - S @ beta)[:, None]
    want = oracle.left_out(KERNEL, noise, X, T, np.arange(len(X)), bias=True)[0]
    K = oracle.covariance(KERNEL, X, noise)
    # A_i / P_ii, each solved for, of targets that S beta is taken from and added to.
    reach = 1 / np.diagonal(linalg.inv(oracle.bordered(K)))[:-1]
    got = one.left_out(beta) - S @ beta
    assert_solves(got[:, None], want, K, T, left=np.diag(reach), bias=True)
    loss = (one.weights * np.maximum(1 - one.y * (want[:, 0] + S @ beta), 0)).sum()
    assert_rounded(one.hinges.value(beta), loss, tolerance(K) / np.finfo(float).eps * len(X))


def test_beta_is_the_best_in_the_ball():
    one, rng = adapted(), np.random.default_rng(0)
    found = interior(one.hinges, False)
    np.testing.assert_array_equal(one.mixture, found.beta)
    assert np.linalg.norm(one.mixture) <= 1
    others = rng.normal(size=(500, 3))
    others *= rng.random((500, 1)) / np.linalg.norm(others, axis=1, keepdims=True)
    assert min(map(one.hinges.value, others)) >= found.value - found.gap


def test_multi_kt_is_an_adapted_machine_for_each_class():
    got, known = fitted("MultiKT").decision_function(Z), SOURCE_OF_THREE.decision_function(Z)
    for column, name in zip(got.T, NAMES, strict=True):
        one = adapted(name)
        T = (one.y - S @ one.mixture)[:, None]
        shifted = (column - known @ one.mixture)[:, None]
        assert_machine(shifted, X, T, 1 / (C * one.weights))


def test_without_a_source_an_adapted_machine_is_a_balanced_one():
    one = Adapted.of(KERNEL(X), np.where(Y == NEW, 1.0, -1.0), C, np.zeros((len(X), 1)))
    plain = LSSVMClassifier(KERNEL, C, class_weight="balanced").fit(X, Y == NEW)
    got = one.mean(KERNEL(X, Z), np.zeros((len(Z), 1)), one.mixture)[:, None]
    assert_machine(got, X, one.y[:, None], 1 / (C * one.weights))
    np.testing.assert_array_equal(got[:, 0] > 0, plain.predict(Z))


# -- who is learnt, and how seen -----------------------------------------------------------------


def test_the_kernel_is_the_average_over_features_and_gammas():
    rng = np.random.default_rng(0)
    tables = [rng.random((7, 3)), rng.random((7, 5))]
    want = np.zeros((7, 7))
    for table, gamma in product(tables, 2.0 ** np.arange(-5, 9)):
        D = ((table[:, None] - table) ** 2).sum(axis=2)
        want += np.exp(-gamma * D / D.mean() / 2**8) / (2 * 14)
    # Thirteen times squared is an error 2^13 times as large, of values next to one.
    assert_rounded(average_rbf(tables), want, 2**13)


def test_a_kernel_by_numbers_is_the_kernel():
    K = KERNEL(X)
    seen = Seen(Y, K)
    rows, others = np.array([3, 12, 7]), np.array([12, 1])
    np.testing.assert_array_equal(seen(as_table(rows), as_table(others)), K[np.ix_(rows, others)])


def turns(classes, splits):
    group = tuple(f"class {i}" for i in range(classes))
    task = n_plus_one._Task(ANIMALS, classes, splits, (NON_LINEAR,))
    return list(n_plus_one._turns(task, {(ANIMALS, classes): {RELATED: group}}))


@pytest.mark.parametrize(
    ("classes", "splits", "newcomers"), [(5, 10, 5), (20, 20, 20), (50, 10, 10)]
)
def test_every_class_is_new_in_turn(classes, splits, newcomers):
    new = [turn.newcomer for turn in turns(classes, splits)]
    assert len(set(new)) == newcomers
    assert {new.count(name) for name in new} == {splits // newcomers}


def test_what_is_tested_was_learnt_neither_by_the_source_nor_later():
    turn, labels = turns(3, 3)[1], np.repeat(["class 0", "class 1", "class 2", "else"], 12)
    rows = n_plus_one._drawn(labels, turn, Plan(6, (2, 4)), np.random.default_rng(0))
    parts = (rows.source, rows.learnt.ravel(), rows.tested)
    together = np.concatenate(parts)
    assert len(set(together)) == len(together)
    counts = [[(labels[part] == name).sum() for name in np.unique(labels)] for part in parts]
    assert counts == [[6, 0, 6, 0], [4, 4, 4, 0], [2, 2, 2, 0]]
    assert (labels[rows.learnt] == [["class 0"], ["class 1"], ["class 2"]]).all()


def test_rates_are_means_over_classes():
    labels = np.array(["a", "a", "b", "b", "b", "b", "c"])
    right = np.array([1, 0, 1, 1, 1, 0, 0], dtype=bool)
    got = n_plus_one._rates(right, labels, "b")
    assert_rounded(got, [(0.5 + 0.75 + 0) / 3, (0.5 + 0) / 2, 0.75])


def test_groups_of_animals():
    try:
        groups = {size: animal_groups(size) for size in (5, 20, 50)}
    except MissingData as error:
        pytest.skip(str(error))
    for size in 5, 20:
        assert all(len(set(group)) == size for group in groups[size].values())
        near, mixed, far = (groups[size][name] for name in (RELATED, MIXED, UNRELATED))
        half = (size + 1) // 2
        assert mixed[:half] == near[:half]
        assert set(mixed[half:]) <= set(far)
    (everyone,) = groups[50].values()
    assert len(set(everyone)) == 50


# -- the experiment ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A quick run with a cache of its own, and by two features of animals."""
    pytest.importorskip("cv2", reason="pictures need the extra `images`")
    with coarse_look(tmp_path_factory.mktemp("cache")), pytest.MonkeyPatch.context() as patch:
        patch.setattr("papers.n_plus_one.features.Feature", Literal["phog", "sift"])
        return result_of(n_plus_one)


@pytest.mark.slow
def test_every_setting_method_and_split(quick):
    assert {one.data for one in quick.settings} == {ANIMALS, THINGS}
    assert {one.kernel for one in quick.settings} == {LINEAR, NON_LINEAR}
    splits = {setting: len(quick.rates(setting, FEW, OURS, "new")) for setting in quick.settings}
    splits |= {setting: len(quick.rates(setting, FEW, OURS, "new")) for setting in quick.alone}
    assert {one.kernel for one in quick.alone} == {"SIFT", "PHOG", "covariance", "bag of words"}
    points = sum(n * len(quick.plans[setting.data].learnt) for setting, n in splits.items())
    assert len(quick.outcomes) == points * len(n_plus_one._METHODS)
    for one in quick.outcomes:
        mean = ((one.classes - 1) * one.known + one.new) / one.classes
        assert_rounded(one.everything, mean, scale=1.0)
        assert one.method != SOURCE or one.new == 0
    for setting in quick.settings:
        # Guessing gives one of so many.
        assert quick.rates(setting, FEW, OURS, "everything").mean() > 1 / setting.classes


@pytest.mark.slow
def test_beta_is_in_the_ball_and_above_zero(quick):
    betas = {}
    for one in quick.shares:
        betas.setdefault((one.setting, one.split), []).append(one.beta)
        assert one.known != one.newcomer
    for (setting, _), beta in betas.items():
        assert len(beta) == setting.classes - 1
        assert min(beta) >= 0
        assert np.linalg.norm(beta) <= 1


@pytest.mark.slow
def test_reports(quick, tmp_path):
    report = n_plus_one.report(quick, tmp_path)
    *pictures, numbers, betas = report.files
    assert len(pictures) == len(quick.groups) + 1
    assert all(is_picture(path) for path in pictures)
    assert len(read(numbers)) == len(quick.outcomes)
    assert len(read(betas)) == len(quick.shares)
    words, groups = report.parts[:2]
    assert "without --quick" in words
    assert all(name in groups for group in quick.groups[ANIMALS, 20].values() for name in group)
    assert len(verdicts_of(report)) == 4 * len(quick.groups)


def outcomes(gains):
    """Two splits of five classes in which these methods recognise so much."""
    return tuple(
        Outcome(
            ANIMALS, 5, RELATED, LINEAR, split, "ox", learnt, method, 1.0, *([rate + split] * 3)
        )
        for split, learnt, (method, rate) in product((0, 1), (2, FEW, 10), gains.items())
    )


@pytest.mark.parametrize(
    ("ours", "holds"),
    [
        (0.4, (True, True, True, True)),
        (0.38, (True, True, False, True)),
        (0.35, (True, False, False, False)),
        (0.2, (False, False, False, False)),
    ],
)
def test_verdicts_follow_the_numbers(ours, holds):
    gains = {
        OURS: ours,
        NONE: 0.2,
        OWN_C: 0.2,
        BATCH: 0.3,
        BALANCED: 0.41,
        SOURCE: 0.4,
        PLUS_ONE: 0.36,
    }
    groups = {(ANIMALS, 5): {RELATED: ("ox",)}}
    result = NPlusOneRun(outcomes(gains), (), groups, {ANIMALS: Plan(30, (2, FEW, 10))})
    found = list(verdicts(result))
    assert tuple(one.holds for one in found) == holds
    assert f"{100 * (ours - 0.2):+.1f} ± 0.0" in found[0].measured
    assert f"{100 * (ours - 0.41):+.1f} ± 0.0" in found[3].measured


def test_absent_data_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("KNOWMORE_DATA", str(tmp_path))
    result = CliRunner().invoke(app, ["n-plus-one", "--quick", "--out", str(tmp_path)])
    assert isinstance(result.exception, MissingData)
    assert "'awa_features.npz' is not in" in str(result.exception)
