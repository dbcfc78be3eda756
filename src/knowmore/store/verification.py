"""Whether a file holds what it says, shown without trusting what is in memory.

Rows against their hashes, the journal replayed against the examples, the model against a fit of
these from scratch, settings against those that the examples choose, and every byte of pages with
examples that belongs to no row against zero.

How far a model is from a fit of its examples from scratch, and how far rounding may lead.

Both have coefficients A with a residual R = T - K~A of their own, of norm at most e (|K~| |A| +
|T|), where e is the backward error. So A is off by at most |K~^-1| |R|, and a score by |k(x)| times
that. The norm |K~| is at most tr K~, and |K~^-1| at most max(w) / sigma^2, or the trace of K~^-1
where there is no noise; e itself must be a few roundings.
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

from knowmore._base import norm
from knowmore.errors import KnowmoreError
from knowmore.examples import Examples
from knowmore.models import Forest, KernelModel
from knowmore.store import kinds, traces
from knowmore.store.file import FORMAT, TABLES, File, Row
from knowmore.store.journal import FORGETS, Numbers, Version, moment_of
from knowmore.store.reports import TUNE, staying
from knowmore.store.state import fresh
from knowmore.transfer import OneShot

if TYPE_CHECKING:
    from pathlib import Path

    from knowmore.store.session import Session


# -- how far a model is from a fit from scratch --------------------------------------------------

# Examples that both models are asked about.
_ASKED = 1000


@final
class Exactness(NamedTuple):
    """A model beside a fit from scratch.

    difference : the largest one between their scores
    tolerance : the largest that rounding can explain
    residual : the backward error of the model that is held
    bound : the largest that rounding can explain
    """

    difference: float
    tolerance: float
    residual: float
    bound: float

    @property
    def ok(self) -> bool:
        """Whether the two are the same model."""
        # `<=`, so that NaN fails.
        return self.difference <= self.tolerance and self.residual <= self.bound


def compared(held: Any, fresh: Any, examples: Examples) -> Exactness:
    """An estimator beside another with the same examples, asked about some of these."""
    n = len(examples)
    rows = np.unique(np.linspace(0, n - 1, min(n, _ASKED)).astype(int))
    asked = examples.X[rows]
    here, there = (np.asarray(one.model_.mean(asked), dtype=float) for one in (held, fresh))
    same = here.shape == there.shape
    difference = float(abs(here - there).max(initial=0)) if same else np.inf
    residual, models = float(held.residual()), _parts(fresh.model_)
    bound = max(map(_bound, models))
    # A model that is wrong must not be its own excuse.
    error = min(residual, bound) + min(float(fresh.residual()), bound)
    rounding = 8 * np.finfo(float).eps * float(abs(there).max(initial=0))
    tolerance = rounding + max(_tolerance(model, error) for model in models)
    return Exactness(difference, tolerance, residual, bound)


def _parts(model: Any) -> list[Any]:
    """The models of kernels, or the linear one, that it consists of."""
    match model:
        case Forest():
            leaves = (leaf.current for tree in model.trees for leaf in tree.leaves())
            return [leaf for leaf in leaves if len(leaf.examples)]
        case OneShot():
            return [one.model for one in model.members]
    return [model]


def _bound(model: Any) -> float:
    """The backward error that rounding can explain."""
    if not model.has_gram:
        return float(4 * np.finfo(float).eps * (len(model.weights) + 10))
    factor, n = model.covariance.factor, len(model.examples)
    eps = float(np.finfo(factor.dtype).eps)
    if factor.traits.stable:
        # A border is eliminated after the solve: its sums to zero lose what the examples' noises
        # differ by.
        spread = float(model.covariance.diagonal.max()) * _inverse(model) if model.bias else 1.0
        return 4 * eps * (n + 10) * max(spread, 1.0)
    return 4 * eps * (float(model.covariance.diagonal.sum()) * _inverse(model) + n)


def _inverse(model: KernelModel) -> float:
    """A bound of |K~^-1|."""
    covariance = model.covariance
    if covariance.noise:
        return float(covariance.weights.max()) / covariance.noise
    return float(covariance.factor.inverse_diagonal().sum())


def _tolerance(model: Any, error: float) -> float:
    """How far scores may be apart, of two models whose backward errors have this sum."""
    if not model.has_gram:
        # Sums of a linear model are exact, and equal sums give equal scores.
        return 0.0
    n, diagonal, inverse = len(model.examples), model.covariance.diagonal, _inverse(model)
    trace, A = float(diagonal.sum()), norm(model.coefficients)
    R, offset = error * (trace * A + norm(model.targets.T - model.solution[1])), 0.0
    if model.bias:
        # From K~ dA + 1 db' = R and 1'dA = s, where 1'K~^-1 1 is at least n / |K~|.
        offset = (np.sqrt(n) * inverse * R + error * np.sqrt(n) * A) * trace / n
        R += np.sqrt(n) * offset
    # The examples that are asked about are those held.
    k = np.sqrt(n) * float(diagonal.max())
    both = k * inverse * R + offset + 2 * n * np.finfo(float).eps * k * A
    units = model.targets.units
    return float(both if units is None else both * np.max(units.scale))


# -- verification --------------------------------------------------------------------------------


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
    """A check and its result.

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
    """The result of `verify`.

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
        """The largest difference between the scores of the model and of a fit from scratch."""
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
        """All results as JSON can write them, with digests of the settings and of the examples."""
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


def verify(session: Session, fast: bool = False) -> Verification:
    """Check a store; with `fast` only the rows, against their hashes and each other."""
    file = session.file
    with session.lock:
        try:
            file.abandon()
            file.settle()
            if file.writable and not fast:
                file.clean()
            with file.reading():
                return _verified(session, fast)
        except KnowmoreError as error:
            about = _about(file.path)
            return Verification((Check("rows", False, str(error)),), None, None, about)


def _verified(session: Session, fast: bool) -> Verification:
    """All checks, within a transaction; raises an error for what cannot be read."""
    file = session.file
    file.check_size()
    tables = {name: file.all_rows(name) for name in TABLES}
    facts = file.facts()
    session.follow()
    versions = [Version(*row) for row in tables["examples"]]
    about = _about(file.path) | _digests(facts, versions, tables)
    checks = [
        Check("rows", True, f"all {sum(map(len, tables.values()))} rows have their hashes"),
        _replayed(Numbers(*facts["numbers"]), versions, tables),
    ]
    if fast:
        return Verification(tuple(checks), None, None, about)
    exactness, chosen = None, None
    last = max((row[0] for row in tables["journal"] if row[2] in FORGETS), default=0)
    if any(one.live and one.weight > 0 for one in versions):
        held, fitted = session.state.estimator, None
        if last and last == Numbers(*facts["numbers"]).position:
            # Nothing was learnt since: the settings must be those that the examples choose.
            chosen, fitted = _chosen(file, facts, versions)
        made, examples = fresh(file, facts, versions) if fitted is None else fitted
        exactness = compared(held, made, examples)
        checks += _exact(exactness)
        if session.can.has_sums:
            checks.append(_sums(held.digest(), made.digest()))
    if last:
        checks.append(_settings(facts, tables["journal"], last, chosen))
    left = tuple(traces.left(file.path))
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


def _about(path: Path) -> dict[str, Any]:
    return {
        "file": path.name,
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
    """Digests of settings and examples, which do not reveal them, and the entries that forgot."""
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
    """A digest of texts, the same in any order."""
    each = sorted(blake2b(text.encode(), digest_size=32).digest() for text in texts)
    return blake2b(b"".join(each), digest_size=32).hexdigest()
