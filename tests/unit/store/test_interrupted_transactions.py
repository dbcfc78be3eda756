"""Ctrl-C at any step of a transaction: the next one finds nothing open."""

from __future__ import annotations

import inspect
import sqlite3
import sys
from contextlib import closing

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import knowmore
from knowmore.store import Store
from knowmore.store.verification import clean

X = np.random.default_rng(0).normal(size=(6, 2))
Y = list("ababab")
# contextlib too: it runs the ends of transactions.
FILES = ("store/file.py", "store.py", "contextlib.py")
# Of the module of traces, which reads many pages, only what opens transactions.
CLEANING = ("recover", "settle", "clean", "vacuum")


class Interrupt:
    """Raises KeyboardInterrupt at a line, a call or a return of the store's own code."""

    def __init__(self, at):
        self.at, self.count = at, 0

    def __call__(self, frame, event, argument):
        name, code = frame.f_code.co_filename, frame.f_code.co_name
        cleans = name.endswith("store/verification.py") and code in CLEANING
        # A tracer, unlike Ctrl-C, comes between the end of a `with` and the release of its lock.
        if code == "_descriptor" or not (cleans or name.endswith(FILES)):
            return None
        # Python only prints what a generator raises while it is closed.
        if frame.f_code.co_flags & inspect.CO_GENERATOR and event not in ("call", "line"):
            return self
        self.count += 1
        if self.count == self.at:
            sys.settrace(None)
            raise KeyboardInterrupt
        return self


def interrupted(work, at):
    """Do some work, interrupted at a step; the exception, which keeps all frames alive, or None."""
    trace = Interrupt(at)
    try:
        sys.settrace(trace)
        work()
    except KeyboardInterrupt as error:
        return error
    finally:
        sys.settrace(None)
    return None


def is_free(path):
    """Whether another program could write now: no transaction and no cursor locks the file."""
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
        try:
            other.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            return False
        return True


EDITS = {
    "relabel": lambda store: store.relabel("v", "a"),
    "add": lambda store: store.add(X[:1] + 1, ["c"]),
    "keep": lambda store: store.keep("v"),
    "status": lambda store: store.status(),
    "refresh": lambda store: store.refresh(),
    "clean": lambda store: clean(store.session.file),
}


@pytest.mark.slow(fast=["refresh"])
@pytest.mark.parametrize("edit", EDITS)
def test_nothing_is_left_open(edit, tmp_path):
    """The traceback is kept, so that blocks which were left without their end stay so."""
    path = tmp_path / "model.km"
    with Store(path, knowmore.GPClassifier(RBF(2.0))) as store:
        store.add(X, Y, list("uvwxyz"))
        at, step, errors = 1, 1, []
        while (error := interrupted(lambda: EDITS[edit](store), at)) is not None:
            errors.append(error)
            # What was written is there for all, or for nobody.
            store.status()
            assert is_free(path), at
            with Store(path) as other:
                assert len(store) == len(other)
                assert store.predict(X).tolist() == other.predict(X).tolist()
            store.relabel("u", "b")
            assert store.records(["u"])[0].label == "b"
            store.undo()
            at += step
            step += at > (120 if edit == "clean" else 60)
        assert len(errors) > 20
        assert store.verify().ok
        del error, errors
        store.relabel("u", "b")
        assert store.verify().ok
