"""What the tests of experiments share: a quick run, and a look at what it wrote and told."""

from __future__ import annotations

import csv

import pytest

from knowmore.errors import MissingData
from papers.findings import Table, Verdict


def result_of(experiment):
    """A quick run and how its progress went, or a skip where the data are absent."""
    shares = []
    try:
        result = experiment.run(
            seed=0, quick=True, progress=lambda share, step: shares.append(share)
        )
    except MissingData as error:
        pytest.skip(str(error))
    assert shares == sorted(shares)
    assert shares[0] >= 0
    assert shares[-1] < 1
    return result


def read(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def is_picture(path):
    return path.read_bytes().startswith(b"\x89PNG")


def verdicts_of(report):
    """The verdicts of a report whose tables are whole."""
    tables = [part for part in report.parts if isinstance(part, Table)]
    assert all(len(row) == len(table.header) for table in tables for row in table.rows)
    return [part for part in report.parts if isinstance(part, Verdict)]
