"""Disks that are full, broken or read-only, from any call on: nothing is lost, and work goes on.

Each edit is made on a fresh copy of the same file while one call fails, or all from one on. Either
it raises an error of knowmore and nothing has changed, or all of it is there. Then the disk works
again, and so does the same store.
"""

from __future__ import annotations

import errno
import warnings
from collections.abc import Callable
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np

import knowmore
from benchmarks.crash import shim
from benchmarks.crash.kills import Tally, folder, heard, in_child
from benchmarks.crash.sequences import gp, rows, signature
from knowmore import KnowmoreError

ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EROFS": errno.EROFS}


def _add(store: Any) -> None:
    store.add(*rows(np.random.default_rng(1), 6, 40))


def _undo_and_add(store: Any) -> None:
    store.undo()
    _add(store)


EDITS: dict[str, Callable[[Any], Any]] = {
    "add": _add,
    "relabel": lambda store: store.relabel([1, 2], "cow"),
    "replace": lambda store: store.replace([3], np.ones((1, 40))),
    "forget": lambda store: store.forget([1, 5, 9, 30]),
    "undo": lambda store: store.undo(),
    "undo, add": _undo_and_add,
    "close": lambda store: store.close(),
}


def failing(edit: str, error: str, action: int, step: int = 1) -> Tally:
    """An edit, with a fault at every `step`-th call."""
    total = Tally()
    with folder() as where:
        base = where / "base.km"
        with knowmore.open(base, gp()) as store:
            store.add(*rows(np.random.default_rng(0), 40, 40))
            store.relabel([7], "bee")
            # Compiled once, for all children.
            store.forget([39])
            store.relabel([8], "bee")
            before = signature(store)
        at, reached = 1, True
        while reached:
            said, ended = heard(*in_child(lambda say: say(_one(base, edit, error, action, at))))  # noqa: B023
            reached = not said.startswith(b"none")
            problem = said.decode() if ended or not said.startswith((b"fine", b"none")) else ""
            total += Tally(int(reached), 0, [f"{edit}, {error} at {at}: {problem}"] * bool(problem))
            at += step
        assert signature_of(base) == before
    return total


def signature_of(path: Path) -> str:
    """The signature of the model in a file."""
    with knowmore.open(path) as store:
        return signature(store)


def _one(base: Path, edit: str, error: str, action: int, at: int) -> bytes:
    """An edit with a fault: b"none" if the fault never came, b"fine", or the failure in words."""
    warnings.simplefilter("error")
    path = base.with_name("model.km")
    copyfile(base, path)
    store = knowmore.open(path, timeout=2)
    before = signature(store)
    if edit == "close":
        # So that there is a cache to write.
        store.add(*rows(np.random.default_rng(2), 600, 40))
        before = signature(store)
    shim.arm(path.parent, action, at, ERRORS[error])
    raised = None
    try:
        EDITS[edit](store)
    except KnowmoreError as problem:
        raised = problem
    calls = shim.disarm()
    if edit == "close":
        store = knowmore.open(path, timeout=2)
    here, there = signature(store), signature_of(path)
    if here != there:
        return b"the store and its file differ"
    told = "did not confirm" in str(raised)
    if raised is not None and here != before and edit != "undo, add" and not told:
        return f"{raised}, but the file has changed".encode()
    if raised is None and here == before and edit != "close":
        return b"no error, but nothing has changed"
    store.add(*rows(np.random.default_rng(3), 2, 40))
    found = store.verify()
    if not found.ok and edit != "forget":
        return f"verify says {found}".encode()
    if not found.ok:
        store.forget([11])
        found = store.verify()
        if not found.ok:
            return f"verify says {found}".encode()
    return b"fine" if calls >= at else b"none"


def all_failing(step: int = 1) -> Tally:
    """All edits with all errors, once and from a call on."""
    total = Tally()
    for edit in EDITS:
        for error in ERRORS:
            for action in (shim.FAIL_ONCE, shim.FAIL_FROM):
                total += failing(edit, error, action, step)
    return total
