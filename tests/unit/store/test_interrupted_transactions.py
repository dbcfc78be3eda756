"""Ctrl-C at any step of a transaction: the next one finds nothing open."""

from __future__ import annotations

import inspect
import os
import sqlite3
import sys
from contextlib import closing, suppress

import alone
import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import knowmore
from knowmore.errors import InvalidInput
from knowmore.store import Store
from knowmore.store.verification import clean

X = np.random.default_rng(0).normal(size=(6, 2))
Y = list("ababab")
# contextlib too: it runs the ends of transactions.
FILES = ("store/file.py", "store.py", "contextlib.py")
# Of the module of traces, which reads many pages, only what opens transactions.
CLEANING = ("recover", "settle", "clean", "vacuum")

# A tracer, unlike Ctrl-C, comes between the end of a `with` and the release of its lock, between an
# assignment and the `try` beside it, and into a return. What comes before the first line of the end
# of a block, no code of Python can know of.
SPARED = ("_descriptor", "Session.together", "_Together.__enter__", "_Together.__exit__")


class Interrupt:
    """Raises KeyboardInterrupt at a line, a call or a return of the store's own code."""

    def __init__(self, at):
        self.at, self.count = at, 0

    def __call__(self, frame, event, argument):
        name, code = frame.f_code.co_filename, frame.f_code.co_name
        cleans = name.endswith("store/verification.py") and code in CLEANING
        if frame.f_code.co_qualname in SPARED or not (cleans or name.endswith(FILES)):
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


def test_a_block_that_was_interrupted_at_its_edges_takes_no_later_edits(tmp_path):
    """The tracebacks are kept, as an interactive session keeps the last one."""
    path = tmp_path / "model.km"

    def block():
        with store.together("correct"):
            pass

    with Store(path, knowmore.GPClassifier(RBF(2.0))) as store:
        store.add(X, Y, list("uvwxyz"))
        at, errors = 1, []
        while (error := interrupted(block, at)) is not None:
            errors.append(error)
            at += 1
            assert store.session.block is None, at
            store.relabel("u", "ab"[at % 2])
            with Store(path) as other:
                assert other.records(["u"])[0].label == "ab"[at % 2]
        assert len(errors) > 20
        assert is_free(path)


@pytest.mark.slow
def test_closing_ends_with_another_close(tmp_path):
    path = tmp_path / "model.km"
    with Store(path, knowmore.GPClassifier(RBF(2.0))) as store:
        store.add(X, Y, list("uvwxyz"))
    at, step, errors = 1, 1, 0
    while True:
        store = Store(path)
        store.relabel("v", "ab"[errors % 2])
        if (error := interrupted(store.close, at)) is None:
            break
        # It is open or closed, and says which.
        with suppress(InvalidInput):
            store.status()
        store.close()
        assert is_free(path), at
        with pytest.raises(InvalidInput, match="has been closed"):
            store.status()
        with pytest.raises(sqlite3.ProgrammingError):
            store.session.file.connection.execute("SELECT 1")
        del error
        at, step, errors = at + step, step + (at > 60), errors + 1
    assert errors > 20
    with Store(path) as store:
        assert store.verify().ok


FORKED = """
import os, sys
import knowmore

path, end = sys.argv[1:]
child = None
try:
    with knowmore.open(path) as store:
        with store.together("correct"):
            store.relabel("u", "c")
            before = os.stat(path + "-journal").st_size
            child = os.fork()
            if not child and end == "raise":
                raise RuntimeError
            if not child:
                store.close()
                os._exit(0)
            os.waitpid(child, 0)
            assert os.stat(path + "-journal").st_size == before > 0
            store.relabel("v", "c")
        assert store.verify().ok
finally:
    if child == 0:
        os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("end", ["raise", "close"])
def test_a_child_leaves_the_transaction_of_its_parent(end, tmp_path):
    path = tmp_path / "model.km"
    with Store(path, knowmore.GPClassifier(RBF(2.0))) as store:
        store.add(X, Y, list("uvwxyz"))
    alone.assert_runs(FORKED, str(path), end)
    with Store(path) as store:
        assert [record.label for record in store.records(["u", "v"])] == ["c", "c"]
