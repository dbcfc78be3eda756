"""`python -m papers`, as a user meets it."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

import knowmore
import papers
from papers import MODULES, NAMES, PAPERS, SCALE
from papers.command import app

ROOT = Path(papers.__file__).resolve().parents[1]
SOURCES = Path(knowmore.__file__).resolve().parents[1]
PATHS = {"PYTHONPATH": os.pathsep.join(map(str, (SOURCES, ROOT)))}


def invoke(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def piped(*arguments, stdout=None, close=(), **environment):
    """The command in a process of its own; `close` names descriptors that it does not have."""

    def shut():
        for descriptor in close:
            os.close(descriptor)

    return subprocess.Popen(
        [sys.executable, "-m", "papers", *map(str, arguments)],
        stdout=stdout or subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | PATHS | environment,
        preexec_fn=shut,
    )


def test_without_a_name_the_experiments_are_listed():
    result = invoke()
    assert result.exit_code == 0
    for name in NAMES:
        assert name in result.output


def test_unknown_experiment_is_answered_with_those_there_are():
    result = invoke("toy-3d")
    assert result.exit_code == 2
    assert "toy-3d" in result.output
    for name in NAMES:
        assert name in result.output


def test_report_is_plain_where_there_is_no_terminal(tmp_path):
    result = invoke("toy-2d", "--quick", "--out", tmp_path / "new" / "folder")
    assert result.exit_code == 0
    assert "\x1b" not in result.stdout
    assert "The updated model is the batch model." in result.stdout
    written = [line for line in result.stdout.splitlines() if line.startswith("Written: ")]
    assert written == [
        f"Written: {tmp_path / 'new' / 'folder' / name}" for name in ("toy-2d.png", "toy-2d.csv")
    ]


@pytest.mark.slow
def test_a_disk_that_fills_up_is_told_and_leaves_the_old_results(tmp_path):
    for name in "toy-2d.png", "toy-2d.csv":
        (tmp_path / name).write_bytes(b"old")
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))\n"
        f"sys.argv = ['papers', 'toy-2d', '--quick', '--out', {str(tmp_path)!r}]\n"
        "from papers.__main__ import main; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | PATHS,
    )
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1] == (
        f"knowmore: {str(tmp_path / 'toy-2d.png')!r} cannot be written: File too large. What was "
        "there before is kept. Name another place."
    )
    assert "Traceback" not in result.stderr
    assert (tmp_path / "toy-2d.png").read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["toy-2d.csv", "toy-2d.png"]


@pytest.mark.slow
def test_standard_output_and_error_may_be_closed(tmp_path):
    run = piped("toy-2d", "--quick", "--out", tmp_path, close=(1, 2))
    run.communicate(timeout=120)
    assert run.returncode == 0
    # Nothing that was to be printed is in a file instead.
    assert (tmp_path / "toy-2d.csv").read_bytes().startswith(b"stage,")


@pytest.mark.slow
def test_letters_that_a_terminal_does_not_have_are_written_as_numbers(tmp_path):
    out = tmp_path / "é"
    run = piped("toy-2d", "--quick", "--out", out, PYTHONIOENCODING="ascii")
    found, told = run.communicate(timeout=120)
    assert run.returncode == 0, told.decode()
    assert f"Written: {tmp_path}/\\xe9/toy-2d.png".encode() in found


@pytest.mark.parametrize("path", [*MODULES.values(), *SCALE.values()])
def test_every_experiment_can_run_and_report(path):
    module = import_module(path)
    assert callable(module.run)
    assert callable(module.report)


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_has_the_same_options(name):
    result = invoke(name, "--help")
    assert result.exit_code == 0
    for option in "--out", "--seed", "--quick", "--data":
        assert option in result.output


def test_a_seed_that_is_too_large_is_misuse(tmp_path):
    result = invoke("toy-2d", "--out", tmp_path, "--seed", 2**32)
    assert result.exit_code == 2
    assert "4294967295" in result.output


@pytest.mark.slow
def test_nobody_has_to_listen(tmp_path):
    run = piped("toy-2d", "--quick", "--out", tmp_path / "results")
    run.stdout.close()
    _, told = run.communicate(timeout=120)
    assert (run.returncode, told.strip()) == (0, b"")
    assert (tmp_path / "results" / "toy-2d.csv").is_file()


def test_every_folder_of_a_paper_is_named():
    folders = {path.parent.name for path in ROOT.glob("papers/*/__init__.py")}
    assert folders - {"data"} == set(PAPERS)


def test_the_folder_of_the_data_can_be_named(tmp_path, monkeypatch):
    monkeypatch.setenv("KNOWMORE_DATA", "elsewhere")
    error = invoke("eigenspace-merge", "--quick", "--out", tmp_path, "--data", tmp_path).exception
    assert str(error).startswith(f"The data file 'orl_faces.npz' is not in {tmp_path} (")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cifar", "'cifar' is not known; here --data names a data set: fashion, kdd99, flights,"),
        (".", "'.' is a folder; here --data names a data set"),
    ],
)
def test_scale_asks_for_the_name_of_a_data_set(name, words, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    result = invoke("scale", "--data", name)
    assert result.exit_code == 2
    assert words in result.output
    assert ("Set KNOWMORE_DATA to it instead." in result.output) == (name == ".")


def test_scale_says_which_file_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("KNOWMORE_DATA", str(tmp_path))
    for name, file in (("fashion", "fashion_mnist.npz"), ("kdd99", "kdd99.tar")):
        error = invoke("scale", "--data", name, "--quick", "--out", tmp_path).exception
        assert str(error).startswith(f"The data file '{file}' is not in {tmp_path} (")
