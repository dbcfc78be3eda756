"""The experiment on recognition at a reduced size: what it computes, writes and concludes."""

from __future__ import annotations

import csv

import numpy as np
import oracle
import pytest
from quick_runs import coarse_look
from tolerance import assert_solves
from typer.testing import CliRunner

from knowmore.errors import MissingData, MissingExtra
from knowmore.images import Descriptors
from knowmore.kernels import ChiSquared
from papers.command import app
from papers.findings import Table
from papers.incremental_gp import recognition
from papers.incremental_gp.recognition_report import (
    BAG,
    CALTECH,
    LEFT_OUT,
    NETWORK,
    PLAIN,
    PUBLISHED,
    PYRAMID,
    SCENES,
    Outcome,
    Recognition,
    Task,
    verdicts,
)
from papers.picture_features import WORDS, lacking


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A quick run with a cache of its own, or a skip where pictures cannot be had or read."""
    shares = []
    with coarse_look(tmp_path_factory.mktemp("cache")):
        try:
            result = recognition.run(
                seed=0, quick=True, progress=lambda share, step: shares.append(share)
            )
        except (MissingData, MissingExtra) as error:
            pytest.skip(str(error))
    assert shares == sorted(shares)
    assert shares[0] >= 0
    assert shares[-1] < 1
    return result


def seen(classes=3, each=6, seed=0):
    """Pictures of random descriptors."""
    rng = np.random.default_rng(seed)
    found = [
        Descriptors(rng.random((80, 2)), rng.integers(0, 256, (80, 128), dtype=np.uint8))
        for _ in range(classes * each)
    ]
    return recognition._Seen(np.repeat(np.arange(classes), each), found, {})


def outcome(task, feature, ours, svm, left_out):
    return Outcome(*task, feature, 0, 10, 10, 1.0, 0.1, left_out, ours, ours, 1.0, svm, svm)


# -- what is computed ----------------------------------------------------------------------------


def test_what_is_tested_is_not_learnt():
    pictures = seen()
    for tested, asked in (None, 4), (3, 3):
        learn, test = pictures.split(Task(SCENES, 2, tested), np.random.default_rng(0))
        assert not set(learn) & set(test)
        assert np.bincount(pictures.labels[learn]).tolist() == [2] * 3
        assert np.bincount(pictures.labels[test]).tolist() == [asked] * 3


def test_words_are_learnt_from_what_is_learnt_alone():
    pictures, others = seen(each=12), seen(each=12, seed=1)
    learn, test = pictures.split(Task(SCENES, 6, None), np.random.default_rng(0))
    mixed = [
        (pictures if row in learn else others).descriptors[row]
        for row in range(len(pictures.labels))
    ]
    changed = recognition._Seen(pictures.labels, mixed, {})
    both = zip(pictures.features(learn, test, 0), changed.features(learn, test, 0), strict=True)
    names = []
    for one, other in both:
        np.testing.assert_array_equal(one.X, other.X)
        assert not np.array_equal(one.Z, other.Z)
        names.append(one.name)
        assert one.X.shape == (len(learn), WORDS * (1 if one.name == BAG else 21))
    assert names == [BAG, PLAIN, PYRAMID]


def test_the_choice_is_that_of_as_many_refits():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    X = abs(rng.normal(size=(30, 5)) + 0.8 * np.eye(5)[y])
    T = oracle.one_vs_all(y)[1]
    K = ChiSquared(1.0)(X)
    mean = -np.log(K).mean()

    def recognised(gamma, noise):
        scores, _ = oracle.left_out(ChiSquared(gamma), noise, X, T, np.arange(len(X)))
        return (scores.argmax(axis=1) == y).mean()

    best = max(
        (recognised(exponent / mean, noise), noise, exponent / mean)
        for exponent in recognition._EXPONENTS
        for noise in recognition._NOISES
    )
    assert recognition._choice(K, y, has_width=True) == best
    assert recognition._choice(K, y, has_width=False) == max(
        (recognised(1.0, noise), noise, 1.0) for noise in recognition._NOISES
    )


def test_pictures_by_their_numbers_are_classified_as_by_their_features():
    rng = np.random.default_rng(0)
    X, Z, y = rng.random((20, 4)), rng.random((10, 4)), np.arange(20) % 3
    kernel, noise = ChiSquared(0.7), 0.1
    K = np.concatenate([kernel(X), kernel(Z, X)])
    got = recognition._learnt(K, y, noise).decision_function(recognition._numbers(20, 30))
    T = oracle.one_vs_all(y)[1]
    want = oracle.scores(kernel, noise, X, T, Z)
    assert_solves(got, want, oracle.covariance(kernel, X, noise), T, left=kernel(X, Z))


@pytest.mark.slow
def test_every_task_feature_and_split(quick):
    splits = {one.split for one in quick.outcomes}
    assert len(quick.outcomes) == len(quick.tasks) * len(quick.features) * len(splits)
    assert {task.source for task in quick.tasks} == {SCENES, CALTECH}
    assert (NETWORK in quick.features) == (lacking() is None)
    for task in quick.tasks:
        # Ten classes: guessing gives a tenth.
        assert quick.rate(task, PYRAMID).mean() > 1 / 3
        assert quick.rate(task, PYRAMID, "svc").mean() > 1 / 3
        assert quick.rate(task, PYRAMID, "svc_against_all").mean() > 1 / 3
        assert quick.rate(task, PYRAMID, "hinge").mean() > 1 / 3
    assert all(0 <= one.ours <= 1 and 0 <= one.left_out <= 1 for one in quick.outcomes)


# -- what is said --------------------------------------------------------------------------------


@pytest.mark.slow
def test_reports(quick, tmp_path):
    report = recognition.report(quick, tmp_path)
    picture, numbers = report.files
    assert picture.read_bytes().startswith(b"\x89PNG")
    with numbers.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(quick.outcomes)
    assert float(rows[0]["ours"]) == quick.outcomes[0].ours
    words, table = report.parts[:2]
    assert all(name in words for name in (*LEFT_OUT, "without --quick"))
    assert "ImageNet" in words if quick.lacking is None else quick.lacking in words
    assert isinstance(table, Table)
    assert len(table.rows) == len(quick.tasks) * len(quick.features)
    assert all(len(row) == len(table.header) for row in table.rows)


@pytest.mark.parametrize("miss", [0.0, 0.02])
def test_verdicts_follow_the_numbers(miss):
    tasks = {key: Task(*key[:2], None) for key in PUBLISHED}
    found = [
        outcome(tasks[key], key[2], target - miss, target, target + 3 * miss)
        for key, (_, target) in PUBLISHED.items()
        if target is not None
    ]
    # One for each of the features in each of the tasks.
    asked = {(one.task, one.feature) for one in found}
    found += [
        outcome(task, feature, 0.5 - miss, 0.5, 0.5)
        for task in {one.task for one in found}
        for feature in {one.feature for one in found}
        if (task, feature) not in asked
    ]
    *targets, svc, against_all, hinge, foretold = verdicts(Recognition(tuple(found), None))
    assert len(targets) == len(asked)
    assert all(one.holds == (miss == 0) for one in (*targets, svc, against_all, hinge, foretold))
    assert f"from {-100 * miss + 0.0:+.1f} points" in svc.measured


def test_absent_data_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("KNOWMORE_DATA", str(tmp_path))
    result = CliRunner().invoke(app, ["recognition", "--out", str(tmp_path)])
    assert isinstance(result.exception, MissingData)
    assert "15scenes.tar" in str(result.exception)
