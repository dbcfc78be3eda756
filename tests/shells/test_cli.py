"""The `knowmore` command, as a user meets it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

import knowmore
from knowmore import cli
from knowmore._base import missing_extra, optional, require
from knowmore.cli.app import app
from knowmore.cli.experiments import Report
from knowmore.errors import MissingExtra, NotWritten


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
    assert "features" in result.output
    assert "sums" in result.output


def test_the_demonstration_has_the_options_of_an_experiment():
    result = invoke("demo", "--help")
    assert result.exit_code == 0
    for option in "--out", "--seed", "--quick":
        assert option in result.output


def test_version():
    result = invoke("--version")
    assert result.exit_code == 0
    assert result.output == f"knowmore {version('knowmore')}\n"


def test_options_reach_the_experiment(tmp_path, monkeypatch):
    asked = []

    def run(*, seed, quick, progress):
        progress(0.5, "half way")
        asked.append((seed, quick))
        return "the result"

    def report(result, out):
        asked.append((result, out))
        return Report(parts=("One sentence [not markup].",), files=())

    monkeypatch.setattr("knowmore.cli.demo.run", run)
    monkeypatch.setattr("knowmore.cli.demo.report", report)
    result = invoke("demo", "--seed", 7, "--quick", "--out", tmp_path)
    assert asked == [(7, True), ("the result", tmp_path)]
    assert result.stdout.split("\n") == ["", "One sentence [not markup].", "", ""]


def test_own_errors_print_their_message(tmp_path, monkeypatch, capfd):
    taken = tmp_path / "taken"
    taken.write_text("a file, no folder")
    out = taken / "results"
    monkeypatch.setattr(sys, "argv", ["knowmore", "demo", "--out", str(out)])
    with pytest.raises(SystemExit) as caught:
        cli.main()
    assert caught.value.code == 2
    assert capfd.readouterr().err == (
        f"knowmore: {str(out)!r} cannot be written: Not a directory. What was there before is "
        f"kept. Name another place.\n"
    )


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="needs a folder closed even to root")
def test_an_unwritable_folder_is_refused_before_the_run(monkeypatch):
    monkeypatch.setattr("knowmore.cli.demo.run", None)
    error = invoke("demo", "--out", "/sys/kernel").exception
    assert isinstance(error, NotWritten)
    assert str(error).startswith("'/sys/kernel' cannot be written: ")


@pytest.mark.parametrize("arguments", [["demo"], ["features", "."]])
def test_a_seed_that_is_too_large_is_misuse(arguments, tmp_path):
    result = invoke(*arguments, "--out", tmp_path / "out.npz", "--seed", 2**32)
    assert result.exit_code == 2
    assert "4294967295" in result.output


def piped(*arguments, stdout=subprocess.PIPE):
    """The command in a process of its own."""
    code = "import sys\nfrom knowmore.cli import main\nmain()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


def test_help_survives_a_closed_pipe():
    run = piped("--help")
    run.stdout.close()
    _, errors = run.communicate(timeout=120)
    assert (run.returncode, errors.strip()) == (0, b"")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a shell of POSIX")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_fail_no_command(closed, tmp_path):
    with knowmore.open(tmp_path / "m.km", knowmore.GPClassifier()) as store:
        store.add([[0.0], [1.0]], ["a", "b"], ["x", "y"])
    for words in (f"verify {tmp_path}/m.km", f"forget {tmp_path}/m.km x"):
        command = f"{sys.executable} -m knowmore {words} {closed}"
        run = subprocess.run(command, shell=True, capture_output=True, text=True)
        assert (run.returncode, "Traceback" in run.stderr) == (0, False), run.stderr
    with knowmore.open(tmp_path / "m.km") as store:
        assert store.verify().ok
        assert store.ids_.tolist() == ["y"]


@pytest.mark.slow
def test_json_is_json_whatever_the_encoding(tmp_path):
    with knowmore.open(tmp_path / "m.km", knowmore.GPClassifier()) as store:
        store.add([[0.0], [1.0]], ["caf\u00e9", "\U0001f33c"], contributor="\x1b[2J")
    for words in ("log", "status"):
        command = [sys.executable, "-m", "knowmore", words, tmp_path / "m.km"]
        environment = os.environ | {"PYTHONIOENCODING": "ascii"}
        run = subprocess.run([*command, "--json"], capture_output=True, env=environment, check=True)
        assert all(json.loads(line) is not None for line in run.stdout.splitlines())
        run = subprocess.run(command, capture_output=True, env=environment, check=True)
        assert b"\x1b" not in run.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_report_that_cannot_be_written_is_an_error():
    with open("/dev/full", "wb") as full:
        run = piped("--version", stdout=full)
        _, errors = run.communicate(timeout=120)
    assert run.returncode == 2
    assert errors.decode() == (
        "knowmore: The work is done, but its report could not be printed: No space left on "
        "device.\n"
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
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == (
        f"knowmore: {library} is not installed. It comes with the extra 'cli': pip install "
        '".[cli]" in a clone of knowmore, or pip install "knowmore[cli]" if knowmore came from a '
        "package index.\n"
    )


def test_missing_matplotlib_is_named_before_the_work_starts(tmp_path):
    result = run_apart(
        "import sys; sys.modules['matplotlib'] = None; "
        f"sys.argv = ['knowmore', 'demo', '--out', {str(tmp_path / 'out')!r}]; "
        "from knowmore.cli import main; main()"
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == f"knowmore: {missing_extra('matplotlib', 'plots')}\n"
    assert not (tmp_path / "out").exists()


def test_missing_extra_is_an_import_error():
    for load in require, optional:
        with pytest.raises(MissingExtra, match=r"no_such_library .*knowmore\[plots\]") as caught:
            load("no_such_library", "plots")
        assert isinstance(caught.value, ImportError)


def test_help_imports_no_numerical_library():
    result = run_apart(
        "import sys; sys.argv = ['knowmore', '--help']\n"
        "from knowmore.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'scipy', 'sklearn', 'matplotlib'} & set(sys.modules)))"
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "[]"
