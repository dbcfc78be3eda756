"""Every command of the tutorial, in its order, with what it prints."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "workbench.md"
CHECKER = doctest.OutputChecker()
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def steps():
    """The commands of the page, each with what it prints and the code that it ends with."""
    for block in re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.S):
        for step in re.split(r"^\$ ", block, flags=re.M)[1:]:
            lines = step.splitlines()
            count = next((k for k in range(1, len(lines)) if not lines[k].startswith("> ")), None)
            words = [lines[0], *(line.removeprefix("> ") for line in lines[1:count])]
            code = re.search(r"# ends with (\d)", lines[0])
            printed = "\n".join(lines[count:]) if count is not None else ""
            yield "\n".join(words), printed, int(code[1]) if code else 0


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tutorial")
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    settings = os.environ | {"PATH": programs, "NO_COLOR": "1", "COLUMNS": "200"}
    found = []
    for command, printed, code in steps():
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=settings, capture_output=True, text=True
        )
        found.append((command, printed, code, done))
    return found


def test_every_command_works_and_prints_what_the_page_says(ran):
    assert len(ran) > 15
    for command, printed, code, done in ran:
        assert done.returncode == code, (command, done.stderr)
        if printed:
            same = CHECKER.check_output(printed + "\n", done.stdout, FLAGS)
            assert same, f"{command}\nprinted\n{done.stdout}\nand not\n{printed}"


def test_every_command_that_teaches_asks_or_looks_after_a_model_is_on_the_page(ran):
    shown = {command.split()[1] for command, *_ in ran if command.startswith("knowmore ")}
    assert {"learn", "predict", "evaluate", "suspects", "explain", "suggest", "relabel"} <= shown
    assert {"undo", "redo", "forget", "log", "verify", "tune", "export", "status"} <= shown
