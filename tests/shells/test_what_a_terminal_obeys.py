"""Ids, labels, columns and texts of a file cannot command the terminal that shows them."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

import knowmore
from knowmore import GPClassifier
from knowmore.cli import guarded
from knowmore.cli.app import app
from knowmore.errors import InvalidInput

EVIL = "\x1b[31mX\x1b]0;t\x07\x9b2J"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")
ROW = json.dumps({f"{EVIL}x": 1, "y": 2})


@pytest.fixture
def path(tmp_path):
    X = [[i, i * i % 7] for i in range(16)]
    y = [f"{EVIL}{'ab'[i % 4 // 2]}" for i in range(16)]
    with knowmore.open(tmp_path / "m.km", GPClassifier()) as store:
        ids = [f"{EVIL}{i}" for i in range(16)]
        store.add(X, y, ids, contributor=EVIL, columns=[f"{EVIL}x", "y"])
    return tmp_path / "m.km"


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["evaluate"],
        ["explain", f"{EVIL}0"],
        ["explain", ROW],
        ["relabel", f"{EVIL}0", f"{EVIL}new"],
        ["relabel", f"{EVIL}0", f"{EVIL}a"],
        ["replace", f"{EVIL}3", ROW],
        ["forget", f"{EVIL}3", "--yes"],
    ],
)
def test_commands_print_nothing_that_it_obeys(words, path):
    result = CliRunner().invoke(app, [words[0], str(path), *words[1:]])
    assert result.exit_code == 0, result.exception
    assert "\\x1b[31mX" in result.output or words[0] == "forget"
    assert OBEYED.search(result.output) is None


def test_a_text_is_explained_without(tmp_path):
    lines = [json.dumps({"text": "ab"[i % 2] * 3, "label": EVIL + "ab"[i % 2]}) for i in range(8)]
    (tmp_path / "texts.jsonl").write_text("\n".join(lines))
    model = str(tmp_path / "m.km")
    CliRunner().invoke(app, ["learn", model, str(tmp_path / "texts.jsonl"), "--text", "text"])
    result = CliRunner().invoke(app, ["explain", model, f"aaa {EVIL} bbb"])
    assert result.output.startswith("\\x1b[31mX"), result.exception
    assert OBEYED.search(result.output) is None


def test_errors_neither(capfd):
    def fail():
        raise InvalidInput(f"There is no {EVIL}.")

    with pytest.raises(SystemExit):
        guarded(fail)
    assert capfd.readouterr().err == "knowmore: There is no \\x1b[31mX\\x1b]0;t\\x07\\x9b2J.\n"
