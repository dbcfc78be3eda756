"""A real studio whose disk is full, or which dies in the middle of an edit, loses nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from shutil import copyfile
from time import sleep
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from benchmarks.crash import shim
from sklearn.gaussian_process.kernels import RBF
from studied import enter

import knowmore
from knowmore import GPClassifier
from knowmore.store.verification import left

ROOT = Path(__file__).parents[3]
# A studio, in which SIGUSR1 begins to count the calls that change files, and SIGUSR2 ends it.
STUDIO = """
import errno, itertools, signal, sys
from pathlib import Path
from benchmarks.crash import shim
from knowmore.cli import main
path, action, call, step = Path(sys.argv[1]), *map(int, sys.argv[2:])
sys.argv = ["knowmore", "studio", str(path), "--no-open"]
calls = itertools.count(call, step)
signal.signal(
    signal.SIGUSR1, lambda *_: shim.arm(path.parent, action, next(calls), errno.ENOSPC)
)
signal.signal(signal.SIGUSR2, lambda *_: shim.disarm())
main()
"""
EDITS = [
    {"verb": "add", "plane": [[0.2, 0.2]], "y": ["b"]},
    {"verb": "replace", "ids": [1], "plane": [[0.4, 0.4]]},
    {"verb": "undo"},
    {"verb": "forget", "ids": [0], "confirm": True},
]


@pytest.fixture
def path(tmp_path):
    if missing := shim.missing():
        pytest.skip(missing)
    path = tmp_path / "plane.km"
    with knowmore.open(path, GPClassifier(RBF(0.4), noise=0.05)) as store:
        store.add([[0.0, 0.1], [0.5, 0.5], [0.7, 0.6]], ["a", "b", "b"])
        store.relabel([2], "a")
    return path


@contextmanager
def in_danger(path, action, call, step=0):
    """A visitor of a studio, and its process: `send_signal` brings the accident."""
    environment = shim.environment() | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    command = [sys.executable, "-c", STUDIO, str(path), *map(str, (action, call, step))]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().strip()
        door = SimpleNamespace(address=address, port=urlsplit(address).port)
        try:
            yield enter(door), process
        finally:
            process.kill()


def held(path):
    """Contents of a file, which must be sound."""
    with knowmore.open(path) as store:
        assert store.verify().ok
        examples, entries = store.examples, store.log()
        rows = zip(examples.ids.tolist(), examples.X.tolist(), examples.labels, strict=True)
        return sorted(map(str, rows)), [one.number for one in entries if not one.undone]


def edited(path, edit):
    """A copy of a file in which the whole edit has been made."""
    other = path.with_name("whole.km")
    copyfile(path, other)
    with knowmore.open(other) as store:
        match edit["verb"]:
            case "add":
                store.add(edit["plane"], edit["y"])
            case "replace":
                store.replace(edit["ids"], edit["plane"])
            case "forget":
                store.forget(edit["ids"])
            case _:
                store.undo()
    return other


def arm(visitor, process, how=signal.SIGUSR1):
    process.send_signal(how)
    # The server is at work, so that the signal has come.
    sleep(0.2)
    visitor.get("/api/state")


@pytest.mark.slow(fast=1)
@pytest.mark.parametrize("call", [1, 4, 9])
def test_a_full_disk_changes_nothing_and_is_told(path, call):
    with in_danger(path, shim.FAIL_FROM, call) as (visitor, process):
        for edit in EDITS:
            before = held(path)
            arm(visitor, process)
            status, answer = visitor.edit(**edit)
            arm(visitor, process, signal.SIGUSR2)
            if status != 200:
                assert (status, "disk" in answer["error"]) == (507, True)
                assert held(path) == before
                # With room on the disk the same studio goes on.
                status, answer = visitor.edit(**edit)
            assert (status, edit) == (200, edit), answer
            assert visitor.get("/api/state")["number"] == answer["number"]
            assert held(path) != before


@pytest.mark.slow
def test_a_disk_that_is_full_when_the_file_is_cleared_is_told(path):
    """From the call on at which the forget stands, its answer says that bytes may be left."""
    told = []
    # Each time one call later.
    with in_danger(path, shim.FAIL_FROM, 1, step=1) as (visitor, process):
        for _ in range(40):
            one = visitor.edit(verb="add", plane=[[0.2, 0.2]], y=["b"])[1]["ids"]
            arm(visitor, process)
            status, answer = visitor.edit(verb="forget", ids=one, confirm=True)
            there = left(path)
            arm(visitor, process, signal.SIGUSR2)
            if status == 507:
                # Either nothing was changed, or the edit is there and the disk confirms nothing.
                done = "The edit is in" in answer["error"]
                assert done != ("Nothing was changed" in answer["error"])
                again = visitor.edit(verb="forget", ids=one, confirm=True)[0]
                assert again == (422 if done else 200)
                continue
            assert status == 200
            assert bool(answer["warning"]) == bool(there)
            if not there:
                break
            told.append(answer["warning"])
            # With room on the disk it can be verified, which clears them.
            assert visitor.post("/api/verify", {})[1]["ok"]
            assert left(path) == []
    assert told
    assert all("may be left in plane.km" in one for one in told)
    assert any("the disk is full. Free some space" in one for one in told)
    assert not any("another program was reading" in one for one in told)


@pytest.mark.slow
@pytest.mark.parametrize(("edit", "call"), [*zip(EDITS, [9, 6, 1, 15], strict=True)])
def test_a_studio_that_dies_in_the_middle_of_an_edit_has_done_all_of_it_or_nothing(
    path, edit, call
):
    with in_danger(path, shim.KILL, call) as (visitor, process):
        assert visitor.edit(verb="add", plane=[[0.9, 0.9]], y=["c"])[0] == 200
        before, whole = held(path), held(edited(path, edit))
        arm(visitor, process)
        with pytest.raises((OSError, HTTPException)):
            visitor.edit(**edit)
        assert process.wait(timeout=30) == -signal.SIGKILL
    assert held(path) in (before, whole)
