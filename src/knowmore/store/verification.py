"""Whether a file holds what it says, shown without trusting what is in memory.

Rows against their hashes, the journal replayed against the examples, the model against a fit of
these from scratch, settings against those that the examples choose, and every byte of pages with
examples that belongs to no row against zero.
"""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from importlib.metadata import version
from json import dumps
from math import isclose
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

import numpy as np

from knowmore.errors import KnowmoreError
from knowmore.examples import Examples
from knowmore.store import kinds, traces
from knowmore.store.exactness import Exactness, compared
from knowmore.store.journal import FORGETS, Numbers, Version, moment_of
from knowmore.store.layout import File
from knowmore.store.loading import fresh
from knowmore.store.schema import FORMAT, TABLES, Row
from knowmore.store.staying import TUNE, staying

if TYPE_CHECKING:
    from knowmore.store.store import Store

_SETTINGS: Final = ("kind", "parameters", "columns", "labels", "state")
# Another machine may choose a width that differs in its last digits.
_ROUNDINGS: Final = 1e-9
_BEYOND: Final = (
    "This is about the file and the files beside it. What was removed may still be in blocks of "
    "the disk that are free now, in snapshots, in backups and in other copies, and whoever read "
    "the file before may have it."
)


@final
class Check(NamedTuple):
    """One thing that was looked at.

    name : of the check
    ok : whether it holds
    says : what was found, in a sentence
    """

    name: str
    ok: bool
    says: str


@final
@dataclass(frozen=True)
class Verification:
    """What `verify` found.

    checks : each with a name and a sentence
    exactness : the model beside a fit from scratch; None if that was not asked for or not possible
    traces : where bytes of removed examples may be left; None if that was not asked for
    facts : what a certificate says beside all this
    """

    checks: tuple[Check, ...]
    exactness: Exactness | None
    traces: tuple[traces.Trace, ...] | None
    facts: dict[str, Any]

    @property
    def ok(self) -> bool:
        """Whether all checks hold."""
        return all(check.ok for check in self.checks)

    @property
    def difference(self) -> float | None:
        """The largest one between the scores of the model and those of a fit from scratch."""
        return None if self.exactness is None else self.exactness.difference

    @property
    def tolerance(self) -> float | None:
        """The largest difference that rounding can explain."""
        return None if self.exactness is None else self.exactness.tolerance

    @property
    def residual(self) -> float | None:
        """The backward error of the model."""
        return None if self.exactness is None else self.exactness.residual

    def __str__(self) -> str:
        lines = [
            f"{'ok    ' if one.ok else 'FAILED'}  {one.name}: {one.says}" for one in self.checks
        ]
        return "\n".join(lines)

    def certificate(self) -> dict[str, Any]:
        """All of it as JSON can write it, with digests of the settings and of the examples."""
        return {
            "ok": self.ok,
            "checks": {one.name: {"ok": one.ok, "says": one.says} for one in self.checks},
            "difference": self.difference,
            "tolerance": self.tolerance,
            "residual": self.residual,
            "traces": None if self.traces is None else len(self.traces),
            **self.facts,
            "beyond": _BEYOND,
        }


def verify(store: Store, fast: bool = False) -> Verification:
    """Check a store; with `fast` only the rows, against their hashes and each other."""
    with store._lock:
        try:
            store._file.abandon()
            store._file.settle()
            if store._file.writable and not fast:
                store._file.clean()
            with store._file.reading():
                return _verified(store, fast)
        except KnowmoreError as error:
            return Verification((Check("rows", False, str(error)),), None, None, _about(store))


def _verified(store: Store, fast: bool) -> Verification:
    """All checks, within a transaction; raises an error for what cannot be read."""
    file = store._file
    file.check_size()
    tables = {name: file.all_rows(name) for name in TABLES}
    facts = file.facts()
    store._follow()
    versions = [Version(*row) for row in tables["examples"]]
    about = _about(store) | _digests(facts, versions, tables)
    checks = [
        Check("rows", True, f"all {sum(map(len, tables.values()))} rows have their hashes"),
        _replayed(Numbers(*facts["numbers"]), versions, tables),
    ]
    if fast:
        return Verification(tuple(checks), None, None, about)
    exactness, chosen = None, None
    last = max((row[0] for row in tables["journal"] if row[2] in FORGETS), default=0)
    if any(one.live and one.weight > 0 for one in versions):
        held, fitted = store._held.estimator, None
        if last and last == Numbers(*facts["numbers"]).position:
            # Nothing was learnt since: the settings must be those that the examples choose.
            chosen, fitted = _chosen(file, facts, versions)
        made, examples = fresh(file, facts, versions) if fitted is None else fitted
        exactness = compared(held, made, examples)
        checks += _exact(exactness)
        if kinds.is_linear(facts["kind"]):
            checks.append(_sums(held.digest(), made.digest()))
    if last:
        checks.append(_settings(facts, tables["journal"], last, chosen))
    left = tuple(traces.left(store.path))
    checks.append(_traces(left))
    return Verification(tuple(checks), exactness, left, about)


# -- the checks ----------------------------------------------------------------------------------


def _replayed(numbers: Numbers, versions: list[Version], tables: dict[str, list[Row]]) -> Check:
    """Whether the entries of the journal, one after the other, lead to the examples held."""
    undone = {row[0]: bool(row[4]) for row in tables["journal"]}
    live: set[int] = set()
    for number, row, enters in sorted(tables["changes"]):
        if not undone.get(number, True):
            (live.add if enters else live.discard)(row)
    rows, vectors = {one.row for one in versions}, {row[0] for row in tables["vectors"]}
    flags = {one.live for one in versions} | {row[4] for row in tables["journal"]}
    wrong = [
        not flags | {enters for _, _, enters in tables["changes"]} <= {0, 1},
        live != {one.row for one in versions if one.live},
        any(number not in undone or row not in rows for number, row, _ in tables["changes"]),
        {one.vector for one in versions} != vectors,
        any(flag != (number > numbers.position) for number, flag in undone.items()),
        max(rows, default=0) >= numbers.row or max(vectors, default=0) >= numbers.vector,
    ]
    if any(wrong):
        return Check("journal", False, "its entries lead to other examples than those held")
    lead = "1 entry leads" if len(undone) == 1 else f"{len(undone)} entries lead"
    held = "1 example" if len(live) == 1 else f"{len(live)} examples"
    return Check("journal", True, f"its {lead} to the {held} held")


def _exact(found: Exactness) -> list[Check]:
    difference, tolerance, residual, bound = found
    return [
        Check(
            "model",
            bool(difference <= tolerance),
            f"a fit from scratch differs by at most {difference:.2g} in any score (up to "
            f"{tolerance:.2g} would still be rounding)",
        ),
        Check(
            "residual",
            bool(residual <= bound),
            f"the model solves its equations to {residual:.2g} (up to {bound:.2g} would still be "
            f"rounding)",
        ),
    ]


def _sums(here: str, there: str) -> Check:
    if here == there:
        return Check("sums", True, f"they are those of the examples, digest {here[:16]}")
    return Check("sums", False, f"digest {here[:16]}, but that of the examples is {there[:16]}")


def _chosen(
    file: File, facts: dict[str, Any], versions: list[Version]
) -> tuple[bool, tuple[Any, Examples] | None]:
    """Whether the examples held choose the settings in the file; and a fit of them if these agree.

    Settings that differ by roundings alone agree, but give no equal model.
    """
    try:
        found = fresh(file, facts | {"state": None}, versions)
    except KnowmoreError:
        return False, None
    state = kinds.state(found[0])
    return _alike(state, facts["state"]), found if state == facts["state"] else None


def _alike(here: Any, there: Any) -> bool:
    """Whether two values of JSON are the same, but for roundings."""
    match here, there:
        case dict(), dict():
            return here.keys() == there.keys() and all(_alike(here[k], there[k]) for k in here)
        case list(), list():
            return len(here) == len(there) and all(map(_alike, here, there))
        case float(), float():
            return isclose(here, there, rel_tol=_ROUNDINGS)
    return bool(here == there)


def _settings(facts: dict[str, Any], journal: list[Row], last: int, chosen: bool | None) -> Check:
    """Whether what was forgotten has left no settings.

    last : the number of the last entry that forgets
    chosen : whether the examples held choose the settings; None if others came since
    """
    entries = sorted(row for row in journal if not row[4])
    stale = any(row[5:] != (None, None) for row in entries if row[0] <= last)
    # Parameters that were found since come from other examples.
    since = any(row[2] == TUNE for row in entries if row[0] > last)
    verbs = () if since else tuple(row[2] for row in entries if row[0] <= last)
    stays = " ".join(["", *staying(facts, verbs)])
    if stale:
        says = (
            "entries from before something was forgotten hold settings that it may have chosen: "
            "the next forget deletes them"
        )
    elif chosen is False:
        says = (
            "the examples held do not choose those of the file, so examples that were forgotten "
            "may have: give a kernel and a noise, or fit the examples in a new file"
        )
    elif chosen:
        says = "the examples held choose those of the file, and no entry has others"
    else:
        says = "the journal keeps no settings from before the last forget"
    return Check("settings", not stale and chosen is not False, f"{says}.{stays}".rstrip("."))


def _traces(left: tuple[traces.Trace, ...]) -> Check:
    if not left:
        says = (
            "in all pages that hold examples, and all free ones, every byte that belongs to no row "
            "is zero; no file is left beside this one"
        )
        return Check("traces", True, says)
    names = ", ".join(dict.fromkeys(one.path.name for one in left))
    says = (
        f"{sum(one.length for one in left)} bytes in {names} belong to no row, and may be of "
        f"removed examples: close the programs that use the file, see that the disk has room, and "
        f"run verify again, which clears them"
    )
    return Check("traces", False, says)


# -- the certificate -----------------------------------------------------------------------------


def _about(store: Store) -> dict[str, Any]:
    return {
        "file": store.path.name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "format": FORMAT,
        "versions": {
            "knowmore": version("knowmore"),
            "numpy": np.__version__,
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
        },
    }


def _digests(
    facts: dict[str, Any], versions: list[Version], tables: dict[str, list[Row]]
) -> dict[str, Any]:
    """What the file holds, as digests that do not tell what it is, and what was forgotten."""
    vectors = {row[0]: row[1:3] for row in tables["vectors"]}
    live = [one for one in versions if one.live]
    each = (repr((one.id, one.label, one.weight, *vectors[one.vector])) for one in live)
    settings = dumps({name: facts.get(name) for name in _SETTINGS}, sort_keys=True)
    forgotten = [row for row in sorted(tables["journal"]) if row[2] in FORGETS]
    return {
        "kind": facts["kind"],
        "examples": len(live),
        "settings_digest": _digest([settings]),
        "examples_digest": _digest(each),
        "entries": len(tables["journal"]),
        "forgotten": [
            {"entry": row[0], "at": moment_of(row[1]).isoformat(), "count": row[3]}
            for row in forgotten
        ],
    }


def _digest(texts: Iterable[str]) -> str:
    """A digest of the texts in whatever order they come."""
    each = sorted(blake2b(text.encode(), digest_size=32).digest() for text in texts)
    return blake2b(b"".join(each), digest_size=32).hexdigest()
