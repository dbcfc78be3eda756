"""The power of the monitor in streams made up: what it computes, writes and concludes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from quick_runs import read, result_of, verdicts_of

from papers.eigenspaces import monitor_power
from papers.eigenspaces.monitor_power import CHANGES, NONE, TAILS, Power


@pytest.fixture(scope="module")
def result():
    return result_of(monitor_power)


@pytest.mark.slow
def test_every_change_is_watched_and_a_mean_that_moves_is_seen(result):
    assert [(one.tails, one.change) for one in result] == [(t, c) for t in TAILS for c in CHANGES]
    for one in result:
        assert min(one.anomalies, one.changes, one.soon) >= 0
        assert max(one.anomalies, one.changes, one.soon) <= 1
        if one.change.startswith(("mean, by 2", "mean, by 10")):
            assert one.changes == one.soon == 1


@pytest.mark.slow
def test_it_reports(result, tmp_path):
    report = monitor_power.report(result, tmp_path)
    rows = read(report.files[0])
    assert [row["what changes"] for row in rows] == [one.change for one in result]
    assert float(rows[0]["anomalies"]) == result[0].anomalies
    assert len(verdicts_of(report)) == 3


def test_verdicts_follow_what_was_seen():
    calm = Power("normal", NONE, 0.01, 0.01, 0.0)
    moved = Power("normal", "mean, by 2 out", 0.1, 1.0, 1.0)
    wider = Power("normal", "spread, twice out", 0.1, 0.5, 0.5)
    good = [calm, moved, wider]
    assert [one.holds for one in monitor_power.verdicts(tuple(good))] == [True] * 3
    worse = (
        replace(calm, changes=0.03),
        replace(moved, soon=0.9),
        replace(wider, anomalies=0.01),
    )
    for i, bad in enumerate(worse):
        verdicts = monitor_power.verdicts((*good[:i], bad, *good[i + 1 :]))
        assert [one.holds for one in verdicts] == [j != i for j in range(3)]
