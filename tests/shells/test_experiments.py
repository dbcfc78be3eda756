"""The experiments at a reduced size: what they compute, what they write, what they conclude."""

from __future__ import annotations

import csv
from itertools import count

import numpy as np
import pytest
from tolerance import assert_solves, tolerance

from knowmore.experiments import demo, toy_2d, update_times
from knowmore.experiments.demo_steps import audit, forget, grow, load, notice
from knowmore.experiments.findings import Table, Verdict, silent
from knowmore.experiments.stopwatch import timed
from knowmore.experiments.update_times_report import (
    APPEND,
    BATCH_CHOLESKY,
    BATCH_INVERSE,
    CALTECH,
    DIGITS,
    DIRECT,
    ITERATIVE,
    Timing,
    UpdateTimes,
    preface,
    verdicts,
)

METHODS = (BATCH_INVERSE, BATCH_CHOLESKY, ITERATIVE, DIRECT, APPEND)


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def is_picture(path):
    return path.read_bytes().startswith(b"\x89PNG")


def coded(y):
    """One-vs-all targets, (n, 10)."""
    return np.where(y[:, None] == np.arange(10), 1.0, -1.0)


# -- the demonstration ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits():
    return load(seed=0, examples=300)


@pytest.fixture(scope="module")
def grown(digits):
    return grow(digits, 3, silent)


def score_bound(clf, digits, kept=slice(None)):
    """What rounding may do to the difference between the scores of two solves."""
    K = clf.kernel_(digits.X[kept]) + clf.noise * np.eye(len(digits.X[kept]))
    A = np.linalg.solve(K, coded(digits.y[kept]))
    k = clf.kernel_(digits.X[kept], digits.X_test)
    return 2 * tolerance(K) * np.linalg.norm(A, axis=0).max() * np.linalg.norm(k, axis=0).max()


def test_accuracy_grows_with_the_known_classes(grown, digits):
    _, growth = grown
    assert [step.classes for step in growth.steps] == list(range(3, 11))
    accuracies = [step.accuracy for step in growth.steps]
    assert accuracies == sorted(set(accuracies))
    for step in growth.steps:
        assert step.accuracy <= (digits.y_test < step.classes).mean()
        assert step.examples == (digits.y < step.classes).sum()


def test_grown_model_is_the_batch_fit(grown, digits):
    clf, growth = grown
    assert growth.difference <= score_bound(clf, digits)
    # The definition itself, on the images in the order in which the model holds them.
    order = np.argsort(digits.y, kind="stable")
    first = np.flatnonzero(digits.y < 3)
    order = np.concatenate([first, order[digits.y[order] >= 3]])
    X, T = digits.X[order], coded(digits.y[order])
    K, k = clf.kernel_(X) + clf.noise * np.eye(len(X)), clf.kernel_(X, digits.X_test)
    want = k.T @ np.linalg.solve(K, T)
    assert clf.ids_.tolist() == digits.ids[order].tolist()
    assert_solves(clf.decision_function(digits.X_test), want, K, T, left=k)


def test_audit_finds_what_was_planted(grown, digits):
    clf, _ = grown
    result = audit(clf, digits, 30, np.random.default_rng(0))
    assert result.planted == 30
    assert result.found > 0.9 * result.planted
    assert result.found == sum(one.planted for one in result.suspects)
    assert result.flagged == len(result.suspects) < len(digits.y) / 4
    assert result.suggested <= result.found
    assert result.before < result.after
    assert all(one.label != one.suggested for one in result.suspects)


def test_forgetting_is_exact(grown, digits):
    clf, _ = grown
    rest, result = forget(clf, digits, "ann")
    mine = np.char.startswith(digits.ids, "ann/")
    assert result.withdrawn == mine.sum() == 25
    assert set(rest.ids_) == set(digits.ids[~mine])
    assert result.difference <= score_bound(clf, digits, ~mine)


def test_strangers_are_noticed_more_often_than_the_known(grown, digits):
    clf, _ = grown
    result = notice(clf, digits, 0)
    assert len(result.unknown) == (digits.y_test == 0).sum()
    assert len(result.known) + len(result.unknown) == len(digits.y_test)
    assert result.caught > 0.5 > result.false_alarms


def test_what_if_leaves_the_model_alone(grown, digits):
    clf, _ = grown
    ids, scores = clf.ids_, clf.decision_function(digits.X_test)
    audit(clf, digits, 30, np.random.default_rng(0))
    forget(clf, digits, "ann")
    notice(clf, digits, 3)
    np.testing.assert_array_equal(clf.ids_, ids)
    np.testing.assert_array_equal(clf.decision_function(digits.X_test), scores)


def test_demo_reports(tmp_path):
    shares = []
    result = demo.run(seed=1, quick=True, progress=lambda share, step: shares.append(share))
    assert shares == sorted(shares)
    assert shares[0] >= 0
    assert shares[-1] < 1
    report = demo.report(result, tmp_path)
    picture, numbers = report.files
    assert is_picture(picture)
    assert [row["classes"] for row in read(numbers)] == [*map(str, range(3, 11)), "10"]
    (table,) = [part for part in report.parts if isinstance(part, Table)]
    assert all(len(row) == len(table.header) for row in table.rows)
    text = " ".join(part for part in report.parts if isinstance(part, str))
    for measured in (
        f"{result.audit.found} of the {result.audit.planted} planted",
        f"Ann withdrew {result.forgetting.withdrawn} images",
        f"at most {result.forgetting.difference:.0e}",
    ):
        assert measured in text


# -- toy-2d --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_toy_model_is_the_batch_fit_at_every_stage(seed):
    stages = toy_2d.run(seed=seed, quick=True)
    assert [stage.scores.shape[-1] for stage in stages] == [3, 3, 4]
    for stage in stages:
        K = toy_2d.KERNEL(stage.X) + toy_2d.NOISE * np.eye(len(stage.X))
        assert stage.tolerance <= tolerance(K)
        assert stage.score_difference <= stage.tolerance
        assert stage.variance_difference <= stage.tolerance


def test_toy_depends_on_the_seed_alone():
    one, same, other = (toy_2d.run(seed=seed, quick=True)[-1] for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.scores, same.scores)
    assert (one.X != other.X).all()


def test_toy_reports(tmp_path):
    stages = toy_2d.run(quick=True)
    report = toy_2d.report(stages, tmp_path)
    picture, check = report.files
    assert is_picture(picture)
    assert [row["classes"] for row in read(check)] == ["3", "3", "4"]
    assert [part.holds for part in report.parts if isinstance(part, Verdict)] == [True]


def test_toy_variance_only_falls_as_examples_come():
    before, after, last = (stage.variance for stage in toy_2d.run(quick=True))
    rounding = 10 * np.finfo(float).eps
    assert (after <= before + rounding).all()
    assert (last <= after + rounding).all()
    assert last.min() >= toy_2d.NOISE
    assert before.max() <= 1 + toy_2d.NOISE


# -- update-times --------------------------------------------------------------------------------


def check_update_times(result, tmp_path):
    cells = {(t.source, t.n, t.k) for t in result.timings}
    assert len(result.timings) == len(METHODS) * len(cells)
    for t in result.timings:
        m, noise = t.n + t.k, update_times.NOISE
        # |K| <= m and |K^-1| <= 1 / noise for these kernels, |t| and |k_*| <= sqrt(m). An inverse
        # that was updated may be off by cond(K) times what a factor may be.
        condition = m / noise + 1
        bound = 4 * np.finfo(float).eps * condition * m / noise
        assert t.difference <= (bound * condition if t.method in (ITERATIVE, DIRECT) else bound)
        assert t.changed == 0
        assert t.seconds > 0
    assert result.inverse_gap <= 100 * np.finfo(float).eps
    report = update_times.report(result, tmp_path)
    picture, numbers = report.files
    assert is_picture(picture)
    assert len(read(numbers)) == len(result.timings)
    claims = [part for part in report.parts if isinstance(part, Verdict)]
    assert len(claims) == 5
    assert all(claim.holds for claim in claims[-2:])
    assert "without --quick" in report.parts[0]


def test_update_times_do_without_pictures(tmp_path, monkeypatch):
    monkeypatch.setenv("KNOWMORE_DATA", str(tmp_path))
    result = update_times.run(quick=True)
    assert {t.source for t in result.timings} == {DIGITS}
    assert result.describing is None
    check_update_times(result, tmp_path)
    assert "Caltech-101, which the paper used, was not found. Set KNOWMORE_DATA" in preface(result)


def test_update_times_of_pictures(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    pytest.importorskip("cv2", reason="pictures need the extra `images`")
    result = update_times.run(quick=True)
    if result.describing is None:
        pytest.skip(preface(result))
    assert {t.source for t in result.timings} == {CALTECH, DIGITS}
    assert result.describing > 0
    check_update_times(result, tmp_path)
    assert "To describe a picture takes" in preface(result)


def invented(n, k, seconds, changed=0):
    return tuple(
        Timing(CALTECH, n, k, method, time, 0.0, changed, 10)
        for method, time in zip(METHODS, seconds, strict=True)
    )


def test_verdicts_follow_the_times():
    good = (
        invented(1000, 1, (1.0, 1.0, 0.009, 0.009, 0.01))
        + invented(1000, 100, (1.0, 1.0, 0.5, 0.1, 0.01))
        + invented(100, 100, (1.0, 1.0, 0.1, 0.5, 0.01))
    )
    assert [one.holds for one in verdicts(UpdateTimes(good, 0.0, None))] == [True] * 5
    bad = (
        invented(1000, 1, (1.0, 1.0, 0.5, 0.5, 0.01))
        + invented(1000, 100, (1.0, 1.0, 0.1, 0.5, 0.01), changed=1)
        + invented(100, 100, (1.0, 1.0, 0.5, 0.1, 0.01))
    )
    assert [one.holds for one in verdicts(UpdateTimes(bad, 1e-3, None))] == [False] * 5


def test_describing_is_told_beside_the_times_not_in_them():
    timings = invented(999, 1, (1.0, 1.0, 0.5, 0.5, 0.1)) + invented(999, 20, (1.0,) * 5)
    timings += invented(20, 20, (1.0,) * 5)
    speed, *_ = verdicts(UpdateTimes(timings, 0.0, describing=0.5))
    assert not speed.holds
    assert (
        "the paper's updates are up to 2 times faster (Caltech-101, n=999, k=1)" in speed.measured
    )
    # (1 + 1000 * 0.5) / (0.5 + 0.5)
    assert "describe all pictures again, the paper's updates are up to 501 times" in speed.measured


# -- the stopwatch -------------------------------------------------------------------------------


@pytest.mark.parametrize(("patience", "calls"), [(0.0, 3), (60.0, 7)])
def test_short_acts_are_repeated_more_often(patience, calls):
    counted = count(1)
    result, seconds = timed(lambda: next(counted), repeats=7, patience=patience)
    assert result == calls
    assert seconds >= 0
