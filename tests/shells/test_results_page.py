"""The page of measurements is made of a file of results: no figure in it is typed."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MEASURED = ROOT / "benchmarks" / "measured.json"
EARLIER = ROOT / "benchmarks" / "earlier.md"


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT)
    return import_module("benchmarks.report").page


def row(**facts: Any) -> dict[str, Any]:
    return {
        "group": "limits",
        "name": "add one",
        "measured": 0.012,
        "unit": "s",
        "against": "dtrsv",
        "reference": 0.01,
        "ratio": 1.2,
        "best_ratio": 1.1,
        "target": {"sign": "<=", "bound": 1.5},
        "note": "",
        "met": True,
    } | facts


def results(*rows: dict[str, Any], load: float = 0.1, scale: str = "full") -> dict[str, Any]:
    return {
        "command": "python -m benchmarks --only limits",
        "machine": {
            "processor": "A Processor",
            "cores_allowed": 2,
            "load": [load, 0.0, 0.0],
            "python": "3.11",
            "numpy": "2",
            "scipy": "1",
            "scikit-learn": "1.6",
        },
        "scale": {"name": scale},
        "rows": list(rows),
    }


def test_a_row_has_its_figures_and_verdict(page: Any) -> None:
    text = page(results(row()))
    assert "| add one | 12 ms | dtrsv: 10 ms | 1.2 x | 1.1 x | <= 1.5 x | met |" in text
    assert "1 of 1 targets met" in text


def test_command_and_machine_are_named(page: Any) -> None:
    text = page(results(row()))
    assert "python -m benchmarks --only limits" in text
    assert "A Processor, 2 cores; Python 3.11, NumPy 2, SciPy 1, scikit-learn 1.6." in text


def test_missing_and_missed_measurements_are_shown(page: Any) -> None:
    bare = {"against": "", "reference": None, "ratio": None, "best_ratio": None}
    absent = row(**bare, measured=None, target=None, met=None, note="not installed")
    slow = row(**bare, name="ask | one", target={"sign": "<=", "bound": 0.001}, met=False)
    text = page(results(absent, slow))
    assert "| add one (not installed) | - |  |  |  |  |  |" in text
    assert r"| ask \| one | 12 ms |  |  |  | <= 1 ms | **missed** |" in text
    assert "0 of 1 targets met" in text


def test_groups_are_headings_in_the_order_measured(page: Any) -> None:
    text = page(results(row(), row(), row(group="exact")))
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["## limits", "## exact"]


@pytest.mark.parametrize(
    ("facts", "words"),
    [({"load": 3.5}, "its load was 3.5"), ({"scale": "quick"}, "**Tiny sizes**")],
)
def test_what_weakens_the_figures_is_shown(page: Any, facts: Any, words: str) -> None:
    assert words in page(results(row(), **facts))
    assert words not in page(results(row()))


def test_older_figures_come_last_and_are_marked(page: Any) -> None:
    text = page(results(row()), "Once it took 9 s.\n")
    assert text.endswith("## Measured before\n\nOnce it took 9 s.\n")


def test_results_md_is_what_was_measured(page: Any) -> None:
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    text = page(measured, EARLIER.read_text(encoding="utf-8"))
    written = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert written == text, "docs/results.md is stale or was edited: run `make results`"


@pytest.mark.slow
def test_from_a_run_to_a_page(tmp_path: Path) -> None:
    out = tmp_path / "benchmarks.json"

    def run(*words: str) -> str:
        command = [sys.executable, "-m", *words]
        return subprocess.run(
            command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True
        ).stdout

    run("benchmarks", "--quick", "--only", "small", "--out", str(out))
    text = run("benchmarks.report", str(out))
    assert "```\npython -m benchmarks --quick --only small\n```" in text
    assert "| add one, ask one" in text
