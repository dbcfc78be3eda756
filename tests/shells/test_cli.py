"""The `knowmore` command, as a user meets it."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from knowmore import cli
from knowmore.cli.app import app
from knowmore.errors import MissingExtra
from knowmore.experiments import REPRODUCTIONS
from knowmore.experiments.findings import Report
from knowmore.extras import require


def invoke(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def run_apart(code):
    """Run Python code in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )


def test_help_lists_the_commands():
    result = invoke("--help")
    assert result.exit_code == 0
    assert "demo" in result.output
    assert "reproduce" in result.output


def test_help_of_reproduce_lists_the_experiments():
    result = invoke("reproduce", "--help")
    assert result.exit_code == 0
    for name in REPRODUCTIONS:
        assert name in result.output


@pytest.mark.parametrize("name", ["demo", *REPRODUCTIONS])
def test_every_experiment_can_run_and_report(name):
    module = import_module(f"knowmore.experiments.{name.replace('-', '_')}")
    assert callable(module.run)
    assert callable(module.report)


@pytest.mark.parametrize("arguments", [["demo"], *(["reproduce", name] for name in REPRODUCTIONS)])
def test_every_experiment_has_the_same_options(arguments):
    result = invoke(*arguments, "--help")
    assert result.exit_code == 0
    for option in "--out", "--seed", "--quick":
        assert option in result.output


def test_unknown_experiment_is_answered_with_those_there_are():
    result = invoke("reproduce", "toy-3d")
    assert result.exit_code == 2
    assert "toy-3d" in result.output
    for name in REPRODUCTIONS:
        assert name in result.output


def test_version():
    result = invoke("--version")
    assert result.exit_code == 0
    assert result.output == f"knowmore {version('knowmore')}\n"


def test_report_is_plain_where_there_is_no_terminal(tmp_path):
    result = invoke("reproduce", "toy-2d", "--quick", "--out", tmp_path / "new" / "folder")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "The updated model is the batch model." in result.stdout
    written = [line for line in result.stdout.splitlines() if line.startswith("Written: ")]
    assert written == [
        f"Written: {tmp_path / 'new' / 'folder' / name}" for name in ("toy-2d.png", "toy-2d.csv")
    ]


def test_options_reach_the_experiment(tmp_path, monkeypatch):
    asked = []

    def run(*, seed, quick, progress):
        progress(0.5, "half way")
        asked.append((seed, quick))
        return "the result"

    def report(result, out):
        asked.append((result, out))
        return Report(parts=("One sentence [not markup].",), files=())

    monkeypatch.setattr("knowmore.experiments.demo.run", run)
    monkeypatch.setattr("knowmore.experiments.demo.report", report)
    result = invoke("demo", "--seed", 7, "--quick", "--out", tmp_path)
    assert asked == [(7, True), ("the result", tmp_path)]
    assert result.stdout.split("\n") == ["", "One sentence [not markup].", "", ""]


def test_own_errors_are_said_in_words(tmp_path, monkeypatch):
    taken = tmp_path / "taken"
    taken.write_text("a file, no folder")
    out = taken / "results"
    monkeypatch.setattr(sys, "argv", ["knowmore", "demo", "--out", str(out)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == (
        f"knowmore: The folder {str(out)!r} for the results cannot be made: Not a directory. "
        f"Name another one with --out."
    )


def test_other_errors_are_not_hidden(monkeypatch):
    def broken():
        raise RuntimeError("a bug")

    monkeypatch.setattr(cli, "_run", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        cli.main()


@pytest.mark.parametrize("library", ["typer", "rich"])
def test_missing_command_line_libraries_are_named(library):
    result = run_apart(
        f"import sys; sys.modules[{library!r}] = None; from knowmore.cli import main; main()"
    )
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == (
        f"knowmore: The command line needs {library}, which is not installed. "
        'It comes with: pip install "knowmore[cli]"\n'
    )


def test_missing_matplotlib_is_named_before_the_work_starts(tmp_path):
    result = run_apart(
        "import sys; sys.modules['matplotlib'] = None; "
        f"sys.argv = ['knowmore', 'demo', '--out', {str(tmp_path / 'out')!r}]; "
        "from knowmore.cli import main; main()"
    )
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == (
        'knowmore: matplotlib is not installed. It comes with: pip install "knowmore[plots]"\n'
    )
    assert not (tmp_path / "out").exists()


def test_missing_extra_is_an_import_error():
    with pytest.raises(MissingExtra, match=r"no_such_library .*knowmore\[plots\]") as caught:
        require("no_such_library", "plots")
    assert isinstance(caught.value, ImportError)


def test_help_loads_nothing_that_computes():
    result = run_apart(
        "import sys; sys.argv = ['knowmore', '--help']\n"
        "from knowmore.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules)))"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "[]"
