"""Files with flipped bits, cut files and random damage: never silently wrong.

A damaged file must be refused when it is opened or by `verify`, or answer as the whole one does.
"""

from __future__ import annotations

import os
import resource
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import knowmore
from benchmarks.crash.kills import Tally, folder
from benchmarks.crash.sequences import gp, rows, signature
from knowmore import KnowmoreError
from knowmore.store import Store

# Beside twice the file; what the libraries take is measured before.
CONSTANT = 64 * 2**20
_ASKED = np.linspace(-2, 2, 12).reshape(4, 3)


def small(path: Path, page: int = 512, k: int = 6) -> bytes:
    """A file of k examples with a history, in small pages to keep it short."""
    path.unlink(missing_ok=True)
    rng = np.random.default_rng(0)
    with knowmore.open(path, gp()) as store:
        store.add(
            *rows(rng, k), contributor="Ada", thumbnails=[rng.bytes(100 * k)] + [None] * (k - 1)
        )
        store.relabel([1], "cow")
        store.forget([2])
    shrunk = sqlite3.connect(path, isolation_level=None)
    shrunk.execute(f"PRAGMA page_size={page}")
    shrunk.execute("PRAGMA secure_delete=ON")
    shrunk.execute("VACUUM")
    shrunk.close()
    return path.read_bytes()


def answers(store: Store) -> tuple[Any, ...]:
    """The contents, journal, records and probabilities of a store, as bytes and texts."""
    records = [tuple(one) for one in store.records()]
    proba = store.predict_proba(_ASKED) if len(store) else np.empty(0)
    # Whether a factor is read or computed shows in the last digits.
    return signature(store), repr(store.log()), repr(records), proba.round(9).tobytes()


def judged(path: Path, data: bytes, truth: tuple[Any, ...], *, change: bool = False) -> str:
    """How a damaged file is met: "refused", "same", or what is wrong."""
    path.write_bytes(data)
    for ending in ("-journal", "-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    try:
        with knowmore.open(path, timeout=1) as store:
            said = answers(store)
            if said == truth:
                if change:
                    # So many that there must be new pages for them.
                    store.add(*rows(np.random.default_rng(1), 20))
                return "same"
            found = store.verify()
            return "refused" if not found.ok else f"other answers: {said} for {truth}"
    except KnowmoreError as error:
        # A lock that an earlier file left would look like damage of all that follow.
        return str(error) if "being written by" in str(error) else "refused"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def flipped(data: bytes, bits: Iterable[int]) -> Iterator[bytes]:
    """The data with one bit flipped, for each of these bits."""
    for bit in bits:
        new = bytearray(data)
        new[bit // 8] ^= 1 << bit % 8
        yield bytes(new)


def mutated(data: bytes, seeds: Iterable[int]) -> Iterator[bytes]:
    """The data with a few other bytes, parts moved, doubled or cut, for each seed."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        new = bytearray(data)
        for at in rng.integers(len(new), size=rng.integers(1, 12)):
            new[at] = rng.choice([0, 1, 127, 128, 255, rng.integers(256)])
        begin, end = sorted(rng.integers(len(new), size=2).tolist())
        match seed % 6:
            case 1:
                del new[end:]
            case 2:
                target = int(rng.integers(len(new)))
                new[target : target + end - begin] = new[begin:end]
            case 3:
                new[begin:begin] = new[begin:end]
            case 4:
                one, other = rng.integers(len(new) // 512, size=2).tolist()
                new[one * 512 : one * 512 + 512] = new[other * 512 : other * 512 + 512]
        yield bytes(new)


def _part(kind: str, data: bytes, truth: Any, begin: int, end: int, step: int) -> Tally:
    """The share of a process, with bounded memory."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    made = {"bits": flipped, "mutations": mutated}.get(kind)
    span = range(begin, end, step)
    files = made(data, span) if made else (data[:length] for length in span)
    tally, most = Tally(), 0
    with folder() as where:
        for number, damaged in zip(span, files, strict=True):
            verdict = judged(where / "model.km", damaged, truth, change=number % 7 == 0)
            most = max(most, len(damaged))
            # `confirmed` counts those that were refused.
            wrong = [] if verdict in ("refused", "same") else [f"{kind} {number}: {verdict}"]
            tally += Tally(1, int(verdict == "refused"), wrong)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - own
    if peak > 2 * most + CONSTANT:
        tally.wrong.append(f"{kind}: {peak / 2**20:.0f} MB for files of {most / 2**20:.1f} MB")
    return tally


def damaged(kind: str, count: int | None = None, step: int = 1, processes: int = 2) -> Tally:
    """All bits or lengths of a small file, or so many mutations of it."""
    with folder() as where:
        data = small(where / "model.km")
        with knowmore.open(where / "model.km") as store:
            truth = answers(store)
    total = count or {"bits": 8 * len(data), "lengths": len(data)}[kind]
    edges = np.linspace(0, total, processes + 1).astype(int).tolist()
    shares = [
        (kind, data, truth, begin + (-begin) % step, end, step) for begin, end in pairwise(edges)
    ]
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with get_context("fork").Pool(processes) as pool:
        return sum(pool.starmap(_part, shares), Tally())
