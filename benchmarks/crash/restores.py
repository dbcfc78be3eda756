"""Copies that are put in the place of a crashed file, by hand and by `restore`.

An edit is killed at every call, which leaves a file and a journal; so is the making of a new file.
Then a copy of an earlier state takes the place of the file. By hand the journal stays: the model
must be refused, or be that of the copy. `restore` is killed at every call, too: the model is that
before or that of the copy, or it is refused; restoring once more gives the copy.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
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
from knowmore.store.file import journal_of

_REFUSED, _NOTHING = "refused", "no model"


def restores(step: int = 1) -> Tally:
    """Kills at every `step`-th call of an edit and of `restore`, and at every call of making."""
    total = Tally()
    with folder() as where:
        path = where / "model.km"
        copies = _copies(path, where)
        total += _after(path, path.read_bytes(), _edit, copies, step, step)
        # A file that has not changed since it was made, as `save` leaves it.
        fresh = where / "fresh.km"
        _make(fresh)
        with knowmore.open(fresh) as store:
            copies = [*copies[:1], (fresh, signature(store))]
        made = _after(path, b"", _make, copies, 1, step)
        if made.wrong:
            # One epoch in 2,048 is the same by chance: a real fault shows again.
            made = _after(path, b"", _make, copies, 1, step)
    return total + made


def _after(
    path: Path,
    before: bytes,
    work: Callable[[Path], None],
    copies: list[tuple[Path, str]],
    every: int,
    step: int,
) -> Tally:
    """Copies in the place of a file that was killed at every `every`-th call of some work."""
    total, at = Tally(), 1
    _put(path, before, b"")
    while _killed(path, lambda: work(path), at):
        crashed = path.read_bytes(), _journal(path)
        if crashed[1]:
            now = _state(path)
            for copy, state in copies:
                total += _by_hand(path, crashed, copy, state)
                total += _by_restore(path, crashed, copy, {state, now}, state, step)
        _put(path, before, b"")
        at += every
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


def _make(path: Path) -> None:
    knowmore.open(path, gp()).close()


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
    """The signature of a model; that it was refused; or the fault in words."""
    try:
        # A part that a killed restore has left is removed with a warning.
        with catch_warnings(action="ignore"), knowmore.open(path, timeout=5) as store:
            found = signature(store)
            return found if store.verify().ok else "not verified"
    except InvalidInput as error:
        words = {"belongs to another state": _REFUSED, "cannot be read as a model": _NOTHING}
        return next((found for text, found in words.items() if text in str(error)), repr(error))
    except Exception as error:
        return repr(error)
