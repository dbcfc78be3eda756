"""The experiments on pictures at a reduced size: what they compute, write and conclude."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from quick_runs import coarse_look, is_picture, read, result_of, verdicts_of
from typer.testing import CliRunner

from knowmore.errors import MissingData
from knowmore.kernels import HistogramIntersection
from papers.command import app
from papers.incremental_gp import growing_examples, known_classes
from papers.incremental_gp.scenes import PYRAMID, WORDS, Courses, Scenes, Step


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    """A cache for the module: both experiments on scenes look at the same pictures."""
    pytest.importorskip("cv2", reason="pictures need the extra `images`")
    with coarse_look(tmp_path_factory.mktemp("cache")), pytest.MonkeyPatch.context() as patch:
        patch.setattr("papers.incremental_gp.scenes._ASIDE", 10)
        yield


@pytest.fixture(scope="module")
def known():
    return result_of(known_classes)


@pytest.fixture(scope="module")
def growing():
    return result_of(growing_examples)


def told(report):
    assert "without --quick" in report.parts[0]
    return verdicts_of(report)


@pytest.mark.parametrize("name", ["known-classes", "growing-examples"])
def test_absent_data_are_told(name, tmp_path, monkeypatch):
    monkeypatch.setenv("KNOWMORE_DATA", str(tmp_path))
    result = CliRunner().invoke(app, [name, "--quick", "--out", str(tmp_path)])
    assert isinstance(result.exception, MissingData)
    assert "'15scenes.tar' is not in" in str(result.exception)


# -- what both share -----------------------------------------------------------------------------


@pytest.fixture
def scenes():
    """Invented histograms of three classes, well apart."""
    rng = np.random.default_rng(0)
    labels = np.repeat(["a", "b", "c"], 20)
    peaks = 5 * np.repeat(np.eye(3), 20, axis=0)
    X = rng.random((60, 3)) + peaks
    return Scenes(labels, {WORDS: X / X.sum(axis=1, keepdims=True)}, np.tile(np.arange(20) < 5, 3))


def test_nothing_is_tested_that_was_put_aside_or_learnt(scenes):
    learnt, tested = scenes.split(np.random.default_rng(1), 8, 12)
    assert learnt.shape == (3, 8)
    assert tested.shape == (3, 12)
    for names in scenes.labels[learnt], scenes.labels[tested]:
        assert (names == [["a"], ["b"], ["c"]]).all()
    assert not scenes.aside[tested].any()
    rows = np.concatenate([learnt.ravel(), tested.ravel()])
    assert len(set(rows)) == len(rows)


def test_kernel_by_rows_is_the_kernel(scenes):
    seen, X = scenes.seen(WORDS), scenes.histograms[WORDS]
    rows, others = np.array([3, 50, 7]), np.array([50, 1])
    got = seen(rows[:, None].astype(float), others[:, None].astype(float))
    np.testing.assert_array_equal(got, HistogramIntersection()(X)[np.ix_(rows, others)])


def test_noise_is_the_best_by_leaving_one_out(scenes):
    seen, rows = scenes.seen(WORDS), np.flatnonzero(scenes.aside)
    K = HistogramIntersection()(scenes.histograms[WORDS][rows])
    T = np.where(scenes.labels[rows][:, None] == ["a", "b", "c"], 1.0, -1.0)

    def recognised(noise):
        right = 0
        for i in range(len(rows)):
            rest = np.delete(np.arange(len(rows)), i)
            A = np.linalg.solve(K[np.ix_(rest, rest)] + noise * np.eye(len(rest)), T[rest])
            right += (K[i, rest] @ A).argmax() == T[i].argmax()
        return right

    best = recognised(seen.noise)
    tried = 10.0 ** np.arange(-3, 1, 0.5)
    assert seen.noise in tried
    assert all(recognised(noise) < best for noise in tried if noise > seen.noise)
    assert all(recognised(noise) <= best for noise in tried)


def course(rates, tolerance=1.0):
    """Invented steps of one feature and one run."""
    return Courses(
        tuple(
            Step(PYRAMID, 0, 0.1, 2 + i, 200 + 100 * i, rate, rate, 0.5, tolerance, 0, 10)
            for i, rate in enumerate(rates)
        )
    )


@pytest.mark.parametrize("experiment", [known_classes, growing_examples])
def test_verdicts_follow_the_numbers(experiment):
    good, bad = (
        [one.holds for one in experiment.verdicts(courses)]
        for courses in (course([0.1, 0.4, 0.5, 0.55]), course([0.5, 0.4, 0.45, 0.6], 0.1))
    )
    assert all(good)
    assert not any(bad)


# -- known-classes -------------------------------------------------------------------------------


@pytest.mark.slow
def test_classes_become_known_one_by_one(known):
    for feature in WORDS, PYRAMID:
        for run in range(known.runs):
            steps = [s for s in known.steps if (s.feature, s.run) == (feature, run)]
            assert [s.classes for s in steps] == list(range(2, 16))
            assert [s.n for s in steps] == [25 * s.classes for s in steps]
            # Only pictures of known classes can be recognised, and all classes are tested alike.
            for s in steps:
                right = round(s.everywhere * s.asked)
                assert right == round(s.known * s.asked * s.classes / 15)
            assert steps[-1].everywhere == steps[-1].known > 1 / 15


@pytest.mark.slow
def test_every_step_is_the_batch_fit(known, growing):
    for s in known.steps + growing.courses.steps:
        assert s.difference <= s.tolerance
        assert s.changed == 0


@pytest.mark.slow
def test_known_classes_report(known, tmp_path):
    report = known_classes.report(known, tmp_path)
    picture, numbers = report.files
    assert is_picture(picture)
    assert len(read(numbers)) == len(known.steps)
    *_, batch = told(report)
    assert batch.holds


# -- growing-examples ----------------------------------------------------------------------------


@pytest.mark.slow
def test_examples_grow_by_ten_of_each_class(growing):
    assert growing.courses.sizes == [5 * 15, 15 * 15, 25 * 15]
    assert {s.classes for s in growing.courses.steps} == {15}
    assert [(pace.n, pace.k) for pace in growing.paces] == [(75, 150), (225, 150)]
    assert all(pace.update > 0 and pace.batch > 0 for pace in growing.paces)


@pytest.mark.slow
def test_growing_examples_report(growing, tmp_path):
    report = growing_examples.report(growing, tmp_path)
    picture, numbers, times = report.files
    assert is_picture(picture)
    assert len(read(numbers)) == len(growing.courses.steps)
    assert len(read(times)) == len(growing.paces)
    *_, batch = told(report)
    assert batch.holds


@pytest.mark.slow
def test_a_wrong_score_is_told(growing, tmp_path):
    steps = growing.courses.steps
    wrong = (*steps[:-1], steps[-1]._replace(difference=2 * steps[-1].tolerance))
    report = growing_examples.report(replace(growing, courses=Courses(wrong)), tmp_path)
    assert not told(report)[-1].holds
