"""Shared by the tests of experiments: a quick run, and a look at its files and its report."""

from __future__ import annotations

import csv
from contextlib import contextmanager

import pytest

from knowmore.errors import MissingData, MissingExtra
from knowmore.images import codebooks
from papers import picture_features
from papers.findings import Table, Verdict


@contextmanager
def coarse_look(cache):
    """Pictures are looked at in half their size alone, and words are learnt from few patches.

    What is seen is kept in the folder `cache`.
    """
    sample = codebooks._sample
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(cache))
        patch.setattr(picture_features, "SCALES", (0.5,))
        patch.setattr(codebooks, "_sample", lambda X, n, seed: sample(X, min(n, 3000), seed))
        yield


def result_of(experiment):
    """A quick run and how its progress went, or a skip where data are absent, or a library."""
    shares = []
    try:
        result = experiment.run(
            seed=0, quick=True, progress=lambda share, step: shares.append(share)
        )
    except (MissingData, MissingExtra) as error:
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
