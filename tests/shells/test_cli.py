"""The `knowmore` command, as a user meets it."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from knowmore import cli
from knowmore.cli.app import app
from knowmore.errors import MissingExtra, NotWritten
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
        f"knowmore: Nothing can be written into the folder {str(out)!r}: Not a directory. Name "
        f"another one, or make room."
    )


@pytest.mark.skipif(not Path("/sys/kernel").is_dir(), reason="needs a folder closed even to root")
def test_a_folder_that_cannot_be_written_to_is_found_out_before_the_run(monkeypatch):
    monkeypatch.setattr("knowmore.experiments.demo.run", None)
    error = invoke("demo", "--out", "/sys/kernel").exception
    assert isinstance(error, NotWritten)
    assert str(error).startswith("Nothing can be written into the folder '/sys/kernel': ")


def test_a_disk_that_fills_up_is_told_and_leaves_the_old_results(tmp_path):
    for name in "toy-2d.png", "toy-2d.csv":
        (tmp_path / name).write_bytes(b"old")
    result = run_apart(
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))\n"
        f"sys.argv = ['knowmore', 'reproduce', 'toy-2d', '--quick', '--out', {str(tmp_path)!r}]\n"
        "from knowmore.cli import main; main()"
    )
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1] == (
        f"knowmore: {str(tmp_path / 'toy-2d.png')!r} cannot be written: File too large. What was "
        f"there before is still there; name another place, or make room."
    )
    assert "Traceback" not in result.stderr
    assert (tmp_path / "toy-2d.png").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["toy-2d.csv", "toy-2d.png"]


@pytest.mark.parametrize("arguments", [["demo"], ["reproduce", "toy-2d"], ["features", "."]])
def test_a_seed_that_is_too_large_is_misuse(arguments, tmp_path):
    result = invoke(*arguments, "--out", tmp_path / "out.npz", "--seed", 2**32)
    assert result.exit_code == 2
    assert "4294967295" in result.output


def piped(*arguments, stdout=None, close=(), **environment):
    """The command in a process of its own; `close` names descriptors that it does not have."""
    code = "import sys\nfrom knowmore.cli import main\nmain()"

    def shut():
        for descriptor in close:
            os.close(descriptor)

    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=stdout or subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | environment,
        preexec_fn=shut,
    )


@pytest.mark.parametrize("arguments", [["--help"], ["reproduce", "toy-2d", "--quick"]])
def test_nobody_has_to_listen(arguments, tmp_path):
    out = ["--out", tmp_path / "results"] if len(arguments) > 1 else []
    run = piped(*arguments, *out)
    run.stdout.close()
    _, told = run.communicate(timeout=120)
    assert (run.returncode, told.strip()) == (0, b"")
    assert not out or (tmp_path / "results" / "toy-2d.csv").is_file()


def test_standard_output_and_error_may_be_closed(tmp_path):
    run = piped("reproduce", "toy-2d", "--quick", "--out", tmp_path, close=(1, 2))
    run.communicate(timeout=120)
    assert run.returncode == 0
    # Nothing that was to be printed is in a file instead.
    assert (tmp_path / "toy-2d.csv").read_bytes().startswith(b"stage,")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_report_that_could_not_be_written_is_told():
    with open("/dev/full", "wb") as full:
        run = piped("--version", stdout=full)
        _, told = run.communicate(timeout=120)
    assert run.returncode == 1
    assert told.decode() == (
        "knowmore: the work is done, but what there was to say could not be written to standard "
        "output: No space left on device.\n"
    )


def test_letters_that_a_terminal_does_not_have_are_written_as_numbers(tmp_path):
    out = tmp_path / "é"
    run = piped("reproduce", "toy-2d", "--quick", "--out", out, PYTHONIOENCODING="ascii")
    found, told = run.communicate(timeout=120)
    assert run.returncode == 0, told.decode()
    assert f"Written: {tmp_path}/\\xe9/toy-2d.png".encode() in found


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
