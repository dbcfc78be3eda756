"""SIGKILL at every call that changes a file, in the middle of every write, and at any time.

A child edits a file and says so after each edit. Whatever kills it, the file must open, hold all
that was confirmed and at most the one edit that was under way, and be verified.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from shutil import copyfile, rmtree
from tempfile import mkdtemp
from typing import Any

import numpy as np

import knowmore
from benchmarks.crash import shim
from benchmarks.crash.sequences import NAMES, SEQUENCES, estimator, gp, rows, signature, signatures

FAST = "/dev/shm" if Path("/dev/shm").is_dir() else None


@dataclass
class Tally:
    """Counts of kills or other accidents, and of confirmed edits.

    wrong : failures, in words
    """

    kills: int = 0
    confirmed: int = 0
    wrong: list[str] = field(default_factory=list)

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.kills + other.kills, self.confirmed + other.confirmed, self.wrong + other.wrong
        )


@contextmanager
def folder() -> Iterator[Path]:
    """A folder in memory, for a while."""
    where = Path(mkdtemp(dir=FAST, prefix="knowmore-crash-"))
    try:
        yield where
    finally:
        rmtree(where)


def in_child(work: Any) -> tuple[int, int]:
    """work(say) in a forked process: its id, and the end of a pipe to read from."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading
    code = 1
    try:
        os.close(reading)
        work(lambda text=b".": os.write(writing, text))
        code = 0
    except BaseException as error:
        os.write(2, f"in a child: {error!r}\n".encode())
    finally:
        os._exit(code)


def heard(process: int, reading: int) -> tuple[bytes, int]:
    """The output of a child process, and its exit status."""
    said = b""
    while part := os.read(reading, 65536):
        said += part
    os.close(reading)
    return said, os.waitpid(process, 0)[1]


def killed_at(name: str, states: list[str], action: int, at: int) -> tuple[Tally, bool]:
    """A run of a sequence, killed at a call, and whether the run reached the call."""
    with folder() as where:
        path = where / "model.km"

        def work(say: Any) -> None:
            shim.arm(where, action, at)
            for _ in SEQUENCES[name](path):
                say()

        said, ended = heard(*in_child(work))
        reached = os.WIFSIGNALED(ended)
        tally = Tally(int(reached), len(said))
        if not reached and (ended or len(said) < len(states)):
            tally.wrong.append(f"{name}: the child ended with {ended} at call {at}")
        problem = survived(path, name, states, len(said))
        if problem:
            tally.wrong.append(f"{name}, action {action}, call {at}: {problem}")
        return tally, reached


def survived(path: Path, name: str, states: list[str], confirmed: int) -> str | None:
    """The fault of a file after a crash, in words; None if the file is right."""
    # Before the first confirmation there may be no file yet.
    first = estimator(name) if confirmed == 0 else None
    try:
        with knowmore.open(path, first, timeout=5) as store:
            state = signature(store)
            allowed = states[max(confirmed - 1, 0) : confirmed + 1]
            if state not in allowed:
                return f"{confirmed} edits were confirmed, but another state was found"
            found = store.verify()
            if not found.ok:
                return f"verify says {found}"
            if signature(store) != state:
                return "verify changed the file"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def every_call(
    name: str, step: int = 1, actions: tuple[int, ...] = (shim.KILL, shim.TEAR)
) -> Tally:
    """A sequence, killed at every `step`-th call."""
    with folder() as where:
        states = signatures(name, where / "model.km")
    total = Tally()
    for action in actions:
        at, reached = 1, True
        while reached:
            tally, reached = killed_at(name, states, action, at)
            total += tally
            at += step
    return total


# -- at any time ---------------------------------------------------------------------------------


def random_edits(path: Path, seed: int) -> Iterator[str]:
    """The signature of the file after each of endless edits, which file and seed determine."""
    rng = np.random.default_rng(seed)
    with knowmore.open(path, gp()) as store:
        yield signature(store)
        while True:
            ids, log = store.ids_.tolist() if len(store) else [], store.log()
            some = [ids[i] for i in rng.permutation(len(ids))[: rng.integers(1, 4)]]
            match rng.choice(["add", "add", "relabel", "replace", "forget", "undo"]):
                case "relabel" if some:
                    store.relabel(some, str(rng.choice(NAMES)))
                case "replace" if some:
                    store.replace(some, rows(rng, len(some))[0])
                case "forget" if len(ids) > 12:
                    store.forget(some)
                case "undo" if _undoable(log):
                    store.undo()
                case _:
                    store.add(*rows(rng, int(rng.integers(1, 6))))
            yield signature(store)


def _undoable(log: list[Any]) -> bool:
    done = [one for one in log if not one.undone]
    return len(done) > 2 and done[-1].verb != "forget"


def at_random(runs: int, seed: int = 0, longest: float = 0.12) -> Tally:
    """Kills after a random time, some after each other on the same file."""
    rng, total = np.random.default_rng(seed), Tally()
    for begin in range(0, runs, 10):
        with folder() as where:
            for run in range(begin, min(begin + 10, runs)):
                pause = float(rng.uniform(0.002, longest))
                total += killed_after(where / "model.km", run, pause)
                if total.wrong:
                    return total
    return total


def killed_after(path: Path, seed: int, pause: float) -> Tally:
    """Random edits, killed after a pause in seconds."""
    before = path.with_name("before.km")
    before.unlink(missing_ok=True)
    if path.exists():
        copyfile(path, before)

    def work(say: Any) -> None:
        for state in random_edits(path, seed):
            say(f"{state}\n".encode())

    process, reading = in_child(work)
    time.sleep(pause)
    os.kill(process, signal.SIGKILL)
    said = heard(process, reading)[0].decode().split("\n")[:-1]
    # The same edits again, and the one that was under way.
    states = list(islice(random_edits(before, seed), len(said) + 1))
    tally = Tally(1, max(len(said) - 1, 0))
    if states[: len(said)] != said:
        tally.wrong.append(f"run {seed}: the same edits do not lead to the same states")
    problem = survived(path, "growing", states, len(said))
    if problem:
        tally.wrong.append(f"run {seed}, {len(said)} edits: {problem}")
    return tally
