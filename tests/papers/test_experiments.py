"""The experiments at a reduced size: what they compute, what they write, what they conclude."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from quick_runs import coarse_look, is_picture, read
from tolerance import tolerance

from papers.findings import Verdict
from papers.incremental_gp import toy_2d, update_times
from papers.incremental_gp.update_times_report import (
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
from papers.stopwatch import timed

METHODS = (BATCH_INVERSE, BATCH_CHOLESKY, ITERATIVE, DIRECT, APPEND)


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


@pytest.mark.slow
def test_update_times_of_pictures(tmp_path, monkeypatch):
    pytest.importorskip("cv2", reason="pictures need the extra `images`")
    monkeypatch.setattr(update_times, "_ASIDE", 60)
    with coarse_look(tmp_path):
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
