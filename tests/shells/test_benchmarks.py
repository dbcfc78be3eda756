"""The benchmarks run at tiny sizes and say what they should. Nothing is timed here."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from tolerance import assert_rounded

ROOT = Path(__file__).parents[2]


def run(*arguments: str, out: Path) -> tuple[str, dict[str, Any]]:
    command = [sys.executable, "-m", *arguments, "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(out.read_text())


def load(monkeypatch: pytest.MonkeyPatch, name: str) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT)
    return import_module(f"benchmarks.{name}")


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    out = tmp_path_factory.mktemp("results") / "deep" / "benchmarks.json"
    groups = ["limits", "fit", "bulk", "deletions", "busy", "small", "streams", "forest"]
    groups += ["exact", "drift"]
    groups += ["peers.laplace", "peers.woodbury"]
    only = [word for group in groups for word in ("--only", group)]
    return run("benchmarks", "--quick", *only, out=out)


@pytest.mark.slow
def test_every_row_is_a_measurement(quick: tuple[str, dict[str, Any]]) -> None:
    _, found = quick
    groups = {"limits", "fit", "bulk", "deletions", "busy", "small", "streams", "forest"}
    groups |= {"exact", "drift", "peers"}
    assert {row["group"] for row in found["rows"]} == groups
    for row in found["rows"]:
        assert np.isfinite(row["measured"]), row["name"]
        assert (row["ratio"] is None) == (row["reference"] is None), row["name"]
        assert (row["met"] is None) == (row["target"] is None), row["name"]


@pytest.mark.slow
def test_ratios_are_of_the_raw_medians(quick: tuple[str, dict[str, Any]]) -> None:
    _, found = quick
    (row,) = [row for row in found["rows"] if row["name"] == "remove one at random"]
    mine, other = row["raw"]["measured"], row["raw"]["against"]
    assert row["ratio"] == np.median(mine["seconds"]) / np.median(other["seconds"])
    assert row["met"] == (row["ratio"] <= row["target"]["bound"])
    assert row["raw"]["n"] == found["scale"]["n"]
    assert 1 < row["raw"]["condition"] < 1e6


@pytest.mark.slow
def test_relabelling_touches_no_factor(quick: tuple[str, dict[str, Any]]) -> None:
    _, found = quick
    (row,) = [row for row in found["rows"] if "appends and deletes" in row["name"]]
    assert row["raw"] == {"append": 0, "delete": 0}
    assert row["met"] is True


@pytest.mark.slow
def test_cholesky_is_exact_at_every_noise(quick: tuple[str, dict[str, Any]]) -> None:
    _, found = quick
    rows = [row for row in found["rows"] if row["name"].startswith("cholesky, noise")]
    assert len(rows) == 4
    assert all(row["met"] for row in rows)
    assert all(sum(row["raw"]["edits"].values()) == found["scale"]["edits"] for row in rows)


@pytest.mark.slow
def test_the_machine_is_described(quick: tuple[str, dict[str, Any]]) -> None:
    _, found = quick
    assert found["machine"]["numpy"] == np.__version__
    assert found["machine"]["dtype"] == "float64"
    assert found["machine"]["cores"] >= 1
    assert all(pool["num_threads"] >= 1 for pool in found["machine"]["blas"])


@pytest.mark.slow
def test_the_table_shows_every_row(quick: tuple[str, dict[str, Any]]) -> None:
    text, found = quick
    for row in found["rows"]:
        assert row["name"][:20] in text
    held = [row["met"] for row in found["rows"] if row["met"] is not None]
    assert f"{sum(held)} of {len(held)} targets met" in text
    assert "Tiny sizes" in text


SCENES = ["insight.unknown_scene", "insight.scenes_needed", "audit.scenes"]


@pytest.fixture(scope="module")
def without_data(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """A run of what needs data or a peer, where there are no data."""
    folder = tmp_path_factory.mktemp("empty")
    names = ["eigenspaces.orl_faces", *SCENES]
    # Where it is installed, nobody asks what is said of it.
    names += ["peers.fantasy"] * (find_spec("gpytorch") is None)
    only = [word for name in names for word in ("--only", name)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KNOWMORE_DATA", str(folder))
        return run("benchmarks", "--quick", *only, out=folder / "found.json")


@pytest.mark.slow
@pytest.mark.skipif(find_spec("gpytorch") is not None, reason="GPyTorch is installed")
def test_a_missing_peer_says_how_to_get_it(without_data: tuple[str, dict[str, Any]]) -> None:
    text, found = without_data
    assert 'not installed: pip install ".[bench]"' in text
    rows = [row for row in found["rows"] if row["benchmark"] == "peers.fantasy"]
    assert [(row["measured"], row["met"]) for row in rows] == [(None, None)]


@pytest.fixture(scope="module")
def spaces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    out = tmp_path_factory.mktemp("results") / "eigenspaces.json"
    _, found = run("benchmarks", "--quick", "--only", "eigenspaces", out=out)
    return {row["name"]: row for row in found["rows"]}


@pytest.mark.slow
def test_eigenspaces_are_measured_where_their_data_and_peers_are(
    spaces: dict[str, dict[str, Any]],
) -> None:
    for name, row in spaces.items():
        missing = "not in KNOWMORE_DATA" in row["note"] or "not installed" in row["note"]
        assert missing == (row["measured"] is None), name
        assert missing or np.isfinite(row["measured"]), name
    assert {row["benchmark"] for row in spaces.values()} == {
        f"eigenspaces.{name}"
        for name in ("orl_faces", "long_table", "forgetting", "merged", "new_class")
    }


@pytest.mark.slow
def test_eigenspaces_err_as_scikit_learn_does_and_no_more(
    spaces: dict[str, dict[str, Any]],
) -> None:
    rows = [row for name, row in spaces.items() if name.startswith("table, whole stream")]
    assert len(rows) == 2
    for row in rows:
        assert row["met"] is True
        # They err by what both drop: what either rounds is within the margin.
        assert row["raw"]["apart"] <= (row["target"]["bound"] - 1) * row["measured"]


@pytest.mark.slow
def test_eigenspaces_that_keep_all_are_the_batch_fit(spaces: dict[str, dict[str, Any]]) -> None:
    (forgotten,) = [row for name, row in spaces.items() if "scaled error of the scatter" in name]
    assert_rounded(forgotten["measured"] * np.finfo(float).eps, 0.0, scale=1.0)
    merged = [row for name, row in spaces.items() if "relative error of the scatter" in name]
    assert all(row["met"] for row in merged)


@pytest.mark.slow
def test_sums_of_workers_have_the_digest_of_one_process(spaces: dict[str, dict[str, Any]]) -> None:
    (same,) = [row for name, row in spaces.items() if name.endswith("the same digest")]
    assert same["met"]


@pytest.mark.slow
def test_a_class_more_gives_the_answers_of_a_refit(spaces: dict[str, dict[str, Any]]) -> None:
    (exact,) = [row for name, row in spaces.items() if name.endswith("ask one, exact")]
    assert exact["raw"]["agreement"] == 1.0


@pytest.mark.slow
def test_missing_faces_are_noted(without_data: tuple[str, dict[str, Any]]) -> None:
    text, found = without_data
    assert "orl_faces.npz is not in KNOWMORE_DATA" in text
    rows = [row for row in found["rows"] if row["benchmark"] == "eigenspaces.orl_faces"]
    assert [(row["measured"], row["met"]) for row in rows] == [(None, None)]


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    out = tmp_path_factory.mktemp("results") / "questions.json"
    only = [word for group in ("insight", "audit", "parameters") for word in ("--only", group)]
    _, found = run("benchmarks", "--quick", *only, out=out)
    return {f"{row['name']} {row['against']}".strip(): row for row in found["rows"]}


@pytest.mark.slow
def test_questions_are_measured_where_their_data_and_peers_are(
    questions: dict[str, dict[str, Any]],
) -> None:
    for name, row in questions.items():
        missing = "not in KNOWMORE_DATA" in row["note"] or "not installed" in row["note"]
        assert missing == (row["measured"] is None), name
        assert missing or np.isfinite(row["measured"]), name
    assert {row["benchmark"] for row in questions.values()} == {
        *(f"insight.{name}" for name in ("unknown_class", "unknown_scene", "picking")),
        *(f"insight.{name}" for name in ("labels_needed", "scenes_needed")),
        *(f"audit.{name}" for name in ("digits", "scenes", "times")),
        *(f"parameters.{name}" for name in ("slopes", "optimiser", "gained", "calibrated")),
    }


@pytest.mark.slow
def test_questions_hold_their_targets(questions: dict[str, dict[str, Any]]) -> None:
    held = [row["benchmark"] for row in questions.values() if row["target"]]
    assert held.count("insight.unknown_class") == 2
    assert held.count("insight.labels_needed") == 1
    assert held.count("parameters.calibrated") == 2
    if find_spec("cleanlab") is not None:
        assert held.count("audit.times") == 2


@pytest.mark.slow
def test_slopes_agree_with_differences_and_optima_with_scikit_learn(
    questions: dict[str, dict[str, Any]],
) -> None:
    rows = [row for name, row in questions.items() if "slopes, n =" in name]
    rows += [row for name, row in questions.items() if "below scikit-learn's optimum" in name]
    assert len(rows) >= 3
    assert all(row["met"] for row in rows)


@pytest.mark.slow
def test_planted_labels_are_found_among_few(questions: dict[str, dict[str, Any]]) -> None:
    (row,) = [row for name, row in questions.items() if "precision at 15 planted of 300" in name]
    # One of twenty is planted; a guess would be right as often.
    assert row["measured"] > 0.5
    assert len(row["raw"]["precision"]) == 2


@pytest.mark.slow
def test_missing_scenes_are_noted(without_data: tuple[str, dict[str, Any]]) -> None:
    rows = [row for row in without_data[1]["rows"] if row["group"] in ("insight", "audit")]
    assert [row["benchmark"] for row in rows] == SCENES
    assert {row["note"] for row in rows} == {"15scenes.tar is not in KNOWMORE_DATA"}
    assert all(row["measured"] is None for row in rows)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("cleanlab") is not None, reason="cleanlab is installed")
def test_a_missing_cleanlab_says_how_to_get_it(questions: dict[str, dict[str, Any]]) -> None:
    rows = [
        row
        for name, row in questions.items()
        if row["group"] == "audit" and row["measured"] is None and not name.startswith("scenes")
    ]
    assert {row["benchmark"] for row in rows} == {"audit.digits", "audit.times"}
    assert {row["note"] for row in rows} == {'not installed: pip install ".[bench]"'}


def test_an_unknown_name_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        load(monkeypatch, "__main__").main(["--only", "nothing"])
    assert stopped.value.code == 2
    assert "no benchmark is named nothing" in capsys.readouterr().err


@pytest.mark.slow
def test_drift_compares_three_models_with_a_batch_fit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text, found = run(
        "benchmarks.drift", "--edits", "1200", "--size", "25", out=tmp_path / "drift.json"
    )
    models = {one["model"]: one for one in found["models"]}
    assert set(models) == {"Cholesky", "Inverse, refreshes itself", "Inverse, Woodbury alone"}
    assert all(set(one["errors"]) == {"1000", "1200"} for one in models.values())
    # The history is the same for all, though each ran in a process of its own.
    assert len({str(one["batch"]) + str(one["conditions"]) for one in models.values()}) == 1
    assert models["Cholesky"]["errors"]["1200"] <= load(monkeypatch, "drift").BOUND
    assert "1,000 edits" in text
    assert "Batch fit in double" in text


def test_the_reference_solves_its_equations(monkeypatch: pytest.MonkeyPatch) -> None:
    reference = load(monkeypatch, "reference")
    X = np.random.default_rng(0).normal(size=(30, 2))
    T = reference.one_vs_all(np.arange(30) % 3)
    noise = 1e-6
    A = reference.refined(X, T, 1.0, noise)
    K = reference.gram(X, X, 1.0) + np.longdouble(noise) * np.eye(30, dtype=np.longdouble)
    eps = float(np.finfo(np.longdouble).eps)
    assert abs(T - K @ A).max() <= 30 * eps * abs(K).sum(axis=1).max() * abs(A).max()
    plain = reference.plain_scores(X, T, X, 1.0, noise)
    bound = 4 * np.finfo(float).eps * reference.condition(X, 1.0, noise) * abs(plain).max()
    assert abs(plain - reference.scores(X, T, X, 1.0, noise)).max() <= bound


def test_a_target_is_met_or_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    table = load(monkeypatch, "table")
    at_most = table.Target("<=", 2.0)
    assert table.Row("a", 5.0, ratio=2.0, target=at_most).met is True
    assert table.Row("a", 1.0, ratio=2.5, target=at_most).met is False
    assert table.Row("a", 1.5, target=at_most).met is True
    assert table.Row("a", float("nan"), target=at_most).met is False
    assert table.Row("failed", target=at_most).met is False
    assert table.Row("reported", 1.0).met is None


def test_interleaved_runs_in_turn_and_forgets_the_first_round(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timing = load(monkeypatch, "timing")
    calls: list[str] = []
    times = timing.interleaved(
        2, {"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, times={"b": 2}
    )
    assert "".join(calls) == "ab" + "abb" * 2
    assert [len(times[name].seconds) for name in "ab"] == [2, 4]
