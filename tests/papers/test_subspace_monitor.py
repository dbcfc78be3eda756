"""The monitor on the temperature of the sea: what it computes, writes and concludes."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from knowmore.subspaces.monitor import Measures, Observation
from papers.eigenspaces import subspace_monitor
from papers.findings import Table, Verdict


@pytest.fixture(scope="module")
def result():
    return subspace_monitor.run()


@pytest.mark.slow
def test_the_series_is_whole(result):
    assert result.months[0] == np.datetime64("1950-01")
    assert result.months[-1] == np.datetime64("2010-12")
    assert (np.diff(result.months).astype(int) == 1).all()
    assert result.watched[0] == np.datetime64(f"{subspace_monitor.BEGIN}-01")
    # Degrees Celsius, warmest in March and coldest in September, south of the equator.
    assert 15 < result.temperatures.min() < result.temperatures.max() < 30
    year = result.temperatures.reshape(-1, 12).mean(axis=0)
    assert (year.argmax(), year.argmin()) == (2, 8)


def test_strong_events_are_found_and_quiet_times_are_quiet(result):
    strong, moderate, silent, exact = subspace_monitor.verdicts(result)
    assert strong.holds
    assert strong.measured == "3 of 3"
    assert not moderate.holds
    assert silent.holds
    assert exact.holds


def test_verdicts_follow_what_was_seen(result):
    m = len(result.seen.errors)
    for fires, holds in ((np.zeros(m), [False, False, True]), (np.ones(m), [True, True, False])):
        seen = Observation(*[fires] * 4, Measures(*[0.5] * 4))
        one = subspace_monitor.Watched(result.months, result.temperatures, seen, 1.0, 0.5)
        assert [verdict.holds for verdict in subspace_monitor.verdicts(one)] == [*holds, False]


@pytest.mark.slow
@pytest.mark.parametrize("quick", [True, False])
def test_it_reports(tmp_path, quick):
    shares = []
    result = subspace_monitor.run(quick=quick, progress=lambda share, step: shares.append(share))
    assert shares == sorted(shares)
    report = subspace_monitor.report(result, tmp_path)
    picture, numbers = report.files
    assert picture.read_bytes().startswith(b"\x89PNG")
    with numbers.open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["month"] for row in table] == [str(month) for month in result.watched]
    assert sum(int(row["anomaly"]) for row in table) == result.seen.anomalies.sum()
    (events,) = [part for part in report.parts if isinstance(part, Table)]
    assert len(events.rows) == (3 if quick else 5)
    assert len([part for part in report.parts if isinstance(part, Verdict)]) == 4
