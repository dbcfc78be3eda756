"""Who chose the settings, in `status`, `verify` and `tune`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from knowmore.cli.app import app


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    return tmp_path


def run(*words):
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def asked(*words):
    return json.loads(run(*words, "--json").stdout)


def many_numbers(here, n=150):
    X = np.random.default_rng(0).normal(size=(n, 2))
    rows = [f"r{i},{x},{y},{'a' if x * y > 0 else 'b'}" for i, (x, y) in enumerate(X)]
    (here / "n.csv").write_text("\n".join(["id,x,y,label", *rows]))
    run("learn", "n.km", "n.csv")
    return "n.km"


def test_status_and_verify_say_the_same_of_who_chose_the_settings(here):
    """Examples that are all held, at first and after a forget; others once some came later."""
    file = many_numbers(here)
    lines = {
        True: ("by examples that are all held, and fixed", "settings: examples that are all held"),
        False: ("by an earlier set of examples, and", "settings: an earlier set of examples chose"),
    }

    def assert_held(held, proven=False):
        status, verify = run("status", file).stdout, run("verify", file).stdout
        assert lines[held][0] in status
        assert ("settings: the examples held choose" if proven else lines[held][1]) in verify
        assert asked("status", file)["choosers_held"] is held

    assert_held(True)
    (here / "one.csv").write_text("id,x,y,label\none,1,2,a\n")
    run("learn", file, "one.csv")
    assert_held(False)
    assert "knowmore tune --refresh" in run("verify", file).stdout
    run("tune", file, "--refresh")
    assert_held(True)
    run("undo", file)
    assert_held(False)
    run("undo", file)
    assert_held(True)
    run("forget", file, "r3", "--yes")
    assert_held(True, proven=True)


def test_tune_refresh_lets_the_examples_held_choose(here):
    file = many_numbers(here)
    assert "The examples held choose the settings in use." in run("tune", file, "--refresh").stdout
    flipped = [f"r{i},{i % 7},{i % 5},{'ab'[i % 2]}" for i in range(150, 300)]
    (here / "more.csv").write_text("\n".join(["id,x,y,label", *flipped]))
    run("learn", file, "more.csv")
    before = asked("status", file)
    would = asked("tune", file, "--refresh", "--dry-run")
    assert asked("status", file)["kernel"] == before["kernel"]
    done = asked("tune", file, "--refresh")
    assert done["changes"] == would["changes"]
    after = asked("status", file)
    changed = {one["parameter"]: (one["before"], one["after"]) for one in done["changes"]}
    assert changed
    for name, (was, now) in changed.items():
        assert (before[name], after[name]) == (was, now)


def test_tune_says_on_the_command_line_what_held_it_back(here):
    """The words of the library advise parameters that the command does not have."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    rows = [f"{p},{q},{r},{'a' if p + q * r > 0 else 'b'}" for p, q, r in X]
    (here / "t.csv").write_text("\n".join(["p,q,r,label", *rows]))
    run("learn", "t.km", "t.csv")
    said = run("tune", "t.km", "--dry-run")
    assert "another objective" not in said.output
    assert "would recognise its own examples worse when each is left out" in said.stderr
