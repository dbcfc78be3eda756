"""Mixed tables: the command and the recipes get the same rows, and what is said of them."""

from __future__ import annotations

import numpy as np
import pytest
from quick_runs import read, result_of, verdicts_of

from papers.tables import mixed_tables
from papers.tables.mixed_tables import OURS, RECIPE, SKRUB, Cells, Mixed

pytest.importorskip("pandas")


def made_up(n=60):
    """Penguins whose islands and masses tell what they are, some of them blank."""
    rng = np.random.default_rng(0)
    codes = np.arange(n) % 2
    mass = [
        f"{4000 + 900 * code + 50 * z:.1f}"
        for code, z in zip(codes, rng.normal(size=n), strict=True)
    ]
    island = np.where(codes == 1, "Biscoe", "Dream")
    cells = np.array([*zip(island, mass, strict=True)])
    cells[::10, 1] = ""
    return Cells(("island", "mass"), cells, np.where(codes == 1, "Gentoo", "Adelie"))


@pytest.mark.slow
def test_every_way_learns_a_table_that_is_easy():
    pytest.importorskip("skrub")
    found = mixed_tables._split(made_up(), 0)
    assert [*found] == [OURS, *mixed_tables._WAYS]
    assert all(rate == 1.0 for rate in found.values())


def test_the_command_gets_the_table_as_it_comes():
    table = made_up()
    train, test = np.arange(40), np.arange(40, 60)
    assert mixed_tables._by_command(table, train, test) == 1.0


def test_a_frame_has_numbers_where_all_cells_are():
    frame = mixed_tables._frame(made_up())
    assert frame["mass"].dtype == float
    assert frame["mass"].isna().sum() == 6
    assert set(frame["island"]) == {"Biscoe", "Dream"}


@pytest.mark.parametrize(("ours", "holds"), [([0.9, 0.8], True), ([0.7, 0.6], False)])
def test_the_verdict_is_of_the_better_recipe(ours, holds):
    rates = {OURS: np.array(ours), RECIPE: np.array([0.9, 0.8]), SKRUB: np.array([0.1, 0.9])}
    result = Mixed({"one": rates, "other": rates}, True)
    best, gain = result.gain("one")
    assert (best, gain.mean) == (RECIPE, np.mean(np.subtract(ours, rates[RECIPE])))
    assert mixed_tables.verdict(result).holds is holds


@pytest.mark.slow
def test_a_quick_run(tmp_path):
    pytest.importorskip("skrub")
    result = result_of(mixed_tables)
    report = mixed_tables.report(result, tmp_path)
    assert [path.name for path in report.files] == ["mixed-tables.csv"]
    assert len(read(report.files[0])) == 2
    assert len(verdicts_of(report)) == 1
