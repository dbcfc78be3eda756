"""Copies that are put in the place of a crashed file, by hand and by `restore`.

An edit is killed at every call, which leaves a file and a journal. Then a copy of an earlier state
takes the place of the file. By hand the journal stays: the model must be refused, or be that of the
copy. `restore` is killed at every call, too: the model is that before or that of the copy, or it is
refused; restoring once more gives the copy.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any
from warnings import catch_warnings

import numpy as np

import knowmore
from benchmarks.crash import shim
from benchmarks.crash.kills import Tally, folder, heard, in_child
from benchmarks.crash.sequences import gp, rows, signature
from knowmore.errors import InvalidInput
from knowmore.store import restore
from knowmore.store.rollback import journal_of

_REFUSED = "refused"


def restores(step: int = 1) -> Tally:
    """All of it, for every `step`-th call of the edit and of `restore`."""
    total = Tally()
    with folder() as where:
        path = where / "model.km"
        copies = _copies(path, where)
        before = path.read_bytes()
        at = 1
        while _killed(path, lambda: _edit(path), at):
            crashed = path.read_bytes(), _journal(path)
            if crashed[1]:
                now = _state(path)
                for copy, state in copies:
                    total += _by_hand(path, crashed, copy, state)
                    total += _by_restore(path, crashed, copy, {state, now}, state, step)
            _put(path, before, b"")
            at += step
    return total


def _copies(path: Path, where: Path) -> list[tuple[Path, str]]:
    """Copies of three states of a file, the last of them that which it is left in."""
    rng, found = np.random.default_rng(0), []
    for i in range(3):
        with knowmore.open(path, gp()) as store:
            store.add(*rows(rng, 60))
            state = signature(store)
        copy = where / f"copy{i}.km"
        shutil.copy(path, copy)
        found.append((copy, state))
    return found


def _edit(path: Path) -> None:
    with knowmore.open(path) as store:
        store.add(*rows(np.random.default_rng(9), 80))
        store.forget(store.ids_[:50], mark=False)


def _killed(path: Path, work: Any, at: int) -> bool:
    """Do some work in a child that is killed at a call; whether it came that far."""

    def armed(_: Any) -> None:
        shim.arm(path.parent, shim.KILL, at)
        work()

    _, ended = heard(*in_child(armed))
    return os.WIFSIGNALED(ended)


def _by_hand(path: Path, crashed: tuple[bytes, bytes], copy: Path, state: str) -> Tally:
    _put(path, copy.read_bytes(), crashed[1])
    found = _state(path)
    wrong = [] if found in (state, _REFUSED) else [f"by hand: another model than {copy.name}"]
    return Tally(1, int(found == state), wrong)


def _by_restore(
    path: Path, crashed: tuple[bytes, bytes], copy: Path, allowed: set[str], state: str, step: int
) -> Tally:
    total, at, reached = Tally(), 1, True
    while reached:
        _put(path, *crashed)
        reached = _killed(path, lambda: restore(path, copy), at)
        found = _state(path)
        if found not in (allowed | {_REFUSED} if reached else {state}):
            total.wrong.append(f"restore of {copy.name}, call {at}: another model")
        restore(path, copy)
        if _state(path) != state:
            total.wrong.append(f"restore of {copy.name} after call {at}: another model")
        total += Tally(int(reached), 1)
        at += 5 * step
    return total


def _put(path: Path, data: bytes, journal: bytes) -> None:
    for part in path.parent.glob(f"{path.name}.*"):
        part.unlink()
    path.write_bytes(data)
    journal_of(path).write_bytes(journal)


def _journal(path: Path) -> bytes:
    journal = journal_of(path)
    return journal.read_bytes() if journal.exists() else b""


def _state(path: Path) -> str:
    """What a model holds, as a digest; that it is refused; or what is wrong."""
    try:
        # A part that a killed restore has left is removed with a warning.
        with catch_warnings(action="ignore"), knowmore.open(path, timeout=5) as store:
            found = signature(store)
            return found if store.verify().ok else "not verified"
    except InvalidInput as error:
        return _REFUSED if "belongs to another state" in str(error) else repr(error)
    except Exception as error:
        return repr(error)
