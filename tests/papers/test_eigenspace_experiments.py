"""The experiments on eigenspaces at a reduced size: what they compute, write and conclude."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from quick_runs import coarse_look, is_picture, read, result_of, verdicts_of
from tolerance import assert_rounded
from typer.testing import CliRunner

from knowmore import Eigenspace
from knowmore.errors import MissingData
from papers.command import app
from papers.eigenspaces import eigenspace_merge, incremental_lda
from papers.eigenspaces.eigenspace_merge_report import (
    BATCH,
    INCREMENTAL,
    JOINT,
    MERGE,
    PEER,
    ROWS,
    SPLIT,
    UPDATES,
)
from papers.eigenspaces.eigenspace_merge_report import verdicts as merge_verdicts
from papers.eigenspaces.incremental_lda_report import (
    FORGOTTEN,
    LEARNT,
    PEER_CHECK,
    THINGS,
    Measure,
)
from papers.eigenspaces.incremental_lda_report import verdicts as lda_verdicts


@pytest.fixture(scope="module")
def merge():
    return result_of(eigenspace_merge)


@pytest.fixture(scope="module")
def lda(tmp_path_factory):
    with coarse_look(tmp_path_factory.mktemp("cache")):
        return result_of(incremental_lda)


@pytest.mark.parametrize("name", ["eigenspace-merge", "incremental-lda"])
def test_absent_data_are_told(name, tmp_path, monkeypatch):
    monkeypatch.setenv("KNOWMORE_DATA", str(tmp_path))
    result = CliRunner().invoke(app, [name, "--quick", "--out", str(tmp_path)])
    assert isinstance(result.exception, MissingData)
    assert "set KNOWMORE_DATA to the folder" in str(result.exception)


# -- eigenspace-merge ----------------------------------------------------------------------------


def test_errors_are_those_of_the_definition():
    X = np.random.default_rng(0).normal(size=(40, 15)) * np.arange(1, 16)
    batch, other = Eigenspace.of(X[:30]), Eigenspace.of(X[5:])
    got = eigenspace_merge.errors(batch, other)
    S, T = (np.cov(rows.T, bias=True) for rows in (X[:30], X[5:]))
    a, P = (part[..., ::-1] for part in np.linalg.eigh(S))
    b, Q = (part[..., ::-1] for part in np.linalg.eigh(T))
    cosines = np.linalg.svd(P[:, :10].T @ Q[:, :10], compute_uv=False)
    assert_rounded(got.mean, np.linalg.norm(X[:30].mean(axis=0) - X[5:].mean(axis=0)))
    # Eigenvalues have rounding errors of the largest.
    assert_rounded(got.eigenvalues, (abs(a - b) / a).mean(), scale=(a[0] / a).mean())
    assert_rounded(got.covariance, np.linalg.norm(S - T, 2) / a[0])
    # Subspaces, of the largest over the gap below the last direction.
    gap = max(values[0] / (values[9] - values[10]) for values in (a, b))
    assert_rounded(np.cos(got.leading), cosines.min(), scale=gap)
    assert_rounded(got.paired, np.arccos(abs((P * Q).sum(axis=0))).mean(), roundings=1000)


@pytest.mark.slow
def test_untruncated_merging_and_splitting_are_exact(merge):
    exact = [c for c in merge.comparisons if c.rank is None]
    assert {c.act for c in exact} == {MERGE, SPLIT}
    N = merge.batch.n_samples
    for c in exact:
        # All rows weigh more beside the part of them that a split leaves.
        roundings = N * (N / c.first if c.act == SPLIT else 1)
        assert_rounded(c.errors.covariance, 0.0, roundings, scale=1.0)
        assert_rounded(c.errors.mean, 0.0, roundings, scale=np.linalg.norm(merge.batch.mean))


def test_truncated_merging_is_not_exact_but_its_means_are(merge):
    truncated = [c for c in merge.comparisons if c.rank == merge.rank]
    assert {c.act for c in truncated} == {MERGE, SPLIT, UPDATES}
    for c in truncated:
        assert c.errors.covariance > merge.batch.n_samples * np.finfo(float).eps
        scale = merge.batch.n_samples / c.first * np.linalg.norm(merge.batch.mean)
        assert_rounded(c.errors.mean, 0.0, scale=scale)
    assert len(merge.batch.variances) == len(merge.merged.variances) == merge.rank


@pytest.mark.slow
def test_merge_reports(merge, tmp_path):
    report = eigenspace_merge.report(merge, tmp_path)
    picture, faces, times, errors = report.files
    assert is_picture(picture)
    assert is_picture(faces)
    assert {row["method"] for row in read(times)} == {BATCH, PEER, INCREMENTAL, JOINT, ROWS}
    assert len(read(errors)) == len(merge.comparisons)
    *_, merging, splitting, lost = verdicts_of(report)
    assert merging.holds
    assert splitting.holds
    assert lost.holds
    assert "without --quick" in report.parts[0]


def test_merge_verdicts_follow_the_numbers(merge):
    times = {BATCH: 1.0, PEER: 2.0, INCREMENTAL: 0.5, JOINT: 0.9, ROWS: 0.1}
    good = replace(
        merge,
        timings=tuple(replace(t, seconds=times[t.method]) for t in merge.timings),
        analysis=replace(
            merge.analysis, merge_size=100, batch_size=200, merge_seconds=1.0, batch_seconds=8.0
        ),
    )
    assert [one.holds for one in merge_verdicts(good)] == [True] * 6
    times[INCREMENTAL] = 1.5
    bad = replace(
        merge,
        timings=tuple(replace(t, seconds=times[t.method]) for t in merge.timings),
        analysis=replace(good.analysis, batch_seconds=1.0),
        comparisons=tuple(
            replace(c, errors=c.errors._replace(eigenvalues=0.5, covariance=0.5))
            for c in merge.comparisons
        ),
    )
    assert [one.holds for one in merge_verdicts(bad)] == [False] * 6


# -- incremental-lda -----------------------------------------------------------------------------


@pytest.mark.slow
def test_lda_learns_every_class_in_both_orders(lda):
    for course in lda.courses().values():
        last = course.steps[-1]
        assert last.classes == 15
        assert course.sizes == sorted(s.n for s in course.steps)
        # Nothing was dropped and nothing merged in the first step.
        assert course.steps[0].changed == 0
        assert last.update.accuracy > 1 / last.classes


@pytest.mark.slow
def test_lda_is_exact_with_all_directions_kept(lda):
    exact = [c for c in lda.checks if c.discarded == 0]
    assert [c.what for c in exact] == [LEARNT, FORGOTTEN] * 3
    for c in exact:
        assert c.angle <= c.tolerance
        assert c.changed == 0


@pytest.mark.slow
def test_lda_of_given_rank_is_held_against_scikit_learn(lda):
    checks = [c for c in lda.checks if c.what == PEER_CHECK]
    assert [c.directions for c in checks] == [lda.rank] * 3
    # Ours is regularised by what was dropped, so the two need not agree; but most answers do.
    for c in checks:
        assert c.angle > c.tolerance
        assert c.changed < c.asked / 4


@pytest.mark.slow
def test_lda_learns_large_categories_whole(lda):
    things = [course for (source, _), course in lda.courses().items() if source == THINGS]
    # Four of five of the twenty pictures of each category.
    assert [course.sizes[-1] for course in things] == [15 * 16] * 2


def test_pictures_put_aside_are_never_tested():
    aside = np.tile([True, False, False, False], 25)
    source = incremental_lda._Source(THINGS, np.zeros((100, 1)), np.repeat([0, 1], 50), 0.8, aside)
    for seed in range(5):
        train, test = source.split(np.random.default_rng(seed))
        assert np.bincount(source.y[train]).tolist() == [40, 40]
        assert sorted([*train, *test]) == list(range(100))
        assert not aside[test].any()


@pytest.mark.slow
def test_lda_reports(lda, tmp_path):
    report = incremental_lda.report(lda, tmp_path)
    picture, steps, checks = report.files
    assert is_picture(picture)
    assert len(read(steps)) == len(lda.steps)
    assert len(read(checks)) == len(lda.checks)
    *_, learnt, forgotten = verdicts_of(report)
    assert learnt.holds
    assert forgotten.holds
    assert "without --quick" in report.parts[0]


@pytest.mark.slow
def test_lda_verdicts_follow_the_numbers(lda):
    def altered(update, batch, angle):
        steps = tuple(
            replace(
                s,
                update=Measure(float(s.n) ** update, 0.5),
                batch=Measure(float(s.n) ** batch, 0.5 + angle),
                peer=Measure(float(s.n) ** 2, 0.5),
            )
            for s in lda.steps
        )
        return replace(lda, steps=steps, checks=tuple(c._replace(angle=angle) for c in lda.checks))

    assert [one.holds for one in lda_verdicts(altered(0, 1, 0.0))] == [True] * 4
    assert [one.holds for one in lda_verdicts(altered(1, 1, 0.4))] == [False] * 4
