"""Power failures: what was written but not synced may be lost, in any part and any order.

A sequence is recorded once, call by call. Then the disk is put together as it may be after a
failure at any call: of each file all that was synced, and of the writes after that some, some only
in part. Names of files are taken to be on the disk as soon as the files are made.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, NamedTuple

import numpy as np

from benchmarks.crash import shim
from benchmarks.crash.kills import Tally, folder, survived
from benchmarks.crash.sequences import SEQUENCES, signatures

_HEADER = struct.Struct("4q")
_SECTOR = 512


class Call(NamedTuple):
    """A system call: "w"rite, "t"runcate, "s"ync, "u"nlink; or "c", an edit that was confirmed."""

    kind: str
    name: str
    length: int
    offset: int
    data: bytes


def recorded(name: str) -> list[Call]:
    """All calls of a sequence."""
    with folder() as where, TemporaryFile() as notes:
        shim.arm(where, shim.COUNT)
        shim.take_notes(notes.fileno())
        for _ in SEQUENCES[name](where / "model.km"):
            os.write(notes.fileno(), _HEADER.pack(ord("c"), 0, 0, 0))
        shim.take_notes(-1)
        shim.disarm()
        notes.seek(0)
        return list(_read(notes))


def _read(notes: Any) -> Any:
    while header := notes.read(_HEADER.size):
        kind, path, length, offset = _HEADER.unpack(header)
        name = Path(os.fsdecode(notes.read(path))).name
        data = notes.read(length) if chr(kind) == "w" else b""
        yield Call(chr(kind), name, length, offset, data)


def _applied(file: bytearray, call: Call, data: bytes) -> None:
    if call.kind == "t":
        del file[call.length :]
        file.extend(bytes(call.length - len(file)))
    elif call.kind == "w":
        file.extend(bytes(max(0, call.offset + len(data) - len(file))))
        file[call.offset : call.offset + len(data)] = data


def after_failure(calls: list[Call], rng: Any) -> dict[str, bytes]:
    """The files as they may be on the disk when the power fails after these calls."""
    synced: dict[str, bytearray] = {}
    waiting: dict[str, list[Call]] = {}
    for call in calls:
        if call.kind == "s":
            for one in waiting.pop(call.name, []):
                _applied(synced.setdefault(call.name, bytearray()), one, one.data)
        elif call.kind == "u":
            synced.pop(call.name, None)
            waiting.pop(call.name, None)
        elif call.kind != "c":
            waiting.setdefault(call.name, []).append(call)
    # A disk may have written nothing yet, all, or anything between.
    kept = rng.choice([0.0, 0.5, 0.9, 1.0])
    for name, ones in waiting.items():
        for one in ones:
            if rng.random() < kept:
                torn = rng.integers(len(one.data) // _SECTOR + 1) * _SECTOR
                data = one.data[:torn] if one.data and rng.random() < 0.2 else one.data
                _applied(synced.setdefault(name, bytearray()), one, data)
    return {name: bytes(data) for name, data in synced.items()}


def failures(name: str, trials: int, seed: int = 0) -> Tally:
    """So many failures of the power at random calls of a sequence."""
    with folder() as where:
        states = signatures(name, where / "model.km")
    calls, rng, total = recorded(name), np.random.default_rng(seed), Tally()
    for _ in range(trials):
        at = int(rng.integers(len(calls) + 1))
        confirmed = sum(call.kind == "c" for call in calls[:at])
        with folder() as where:
            for file, data in after_failure(calls[:at], rng).items():
                (where / file).write_bytes(data)
            problem = survived(where / "model.km", name, states, confirmed)
        wrong = [f"{name}, power failed after call {at}: {problem}"] if problem else []
        total += Tally(1, confirmed, wrong)
    return total
