"""Caches beside the examples: the factor of a kernel model, the sums of a linear one, memos.

A cache names the examples and settings that it belongs to. The rows of a Cholesky factor depend
only on the examples before them, so the first matching rows are used and the others computed. A few
columns of the factored matrix are compared with the kernel's values. In doubt the cache is unused.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import blake2b
from json import dumps, loads
from secrets import token_hex
from typing import Any, Final, NamedTuple, final

import numpy as np

from knowmore._base import Array
from knowmore._living import Living
from knowmore.errors import InvalidInput
from knowmore.estimators import LinearGP
from knowmore.kernels import AnyKernel, diagonal
from knowmore.linalg import (
    PANEL,
    WORDS,
    Cholesky,
    Earlier,
    Factor,
    Grid,
    Group,
    Inverse,
    Panel,
    Sums,
    padded,
    trimmed,
)
from knowmore.store import kinds
from knowmore.store.codec import Form, bytes_of, plain, valued
from knowmore.store.file import CACHE, File, hashed
from knowmore.store.journal import SETTINGS
from knowmore.transfer import OneShot

ABOUT: Final = "about"
# The numbers of the vectors that a factor belongs to, and their weights.
ROWS: Final = f"{CACHE}rows"
FACTOR: Final = f"{CACHE}factor"
HEAD: Final = f"{CACHE}head"
SUMS: Final = "sums"
# Rows that were appended since a factor was written.
LAG: Final = 512
# Columns that are compared with the kernel's values.
_PROBES: Final = 4
# Parts that are checked while the next ones are read.
_AHEAD: Final = 4
_WORDS: Final = 2**19


class Doubt(Exception):
    """A cache that does not belong to the examples, or is damaged."""


# -- parts of arrays -----------------------------------------------------------------------------


def write_parts(file: File, number: int, name: str, parts: dict[int, bytes]) -> int:
    """Write parts of an array over the parts of the same numbers; returns the next free number."""
    old: dict[Any, Any] = dict(
        file.fetched("SELECT part, array FROM arrays WHERE name = ?", (name,))
    )
    rows = [(old.get(p, number + i), name, p, parts[p]) for i, p in enumerate(parts)]
    file.replace("arrays", rows)
    return number + len(parts)


def delete_parts(file: File, name: str, first: int = 0) -> None:
    """Delete the parts of an array from one on."""
    where = "SELECT array FROM arrays WHERE name = ? AND part >= ?"
    found = file.connection.execute(where, (name, first)).fetchall()
    file.delete("arrays", [row[0] for row in found])


def read_parts(file: File, name: str) -> Iterator[bytes]:
    """The parts of an array in their order; two threads check their hashes."""
    run = file.connection.execute
    # To sort whole rows would copy all of them.
    parts = run("SELECT array FROM arrays WHERE name = ? ORDER BY part", (name,)).fetchall()
    one = "SELECT array, name, part, data, hash FROM arrays WHERE array = ?"
    with ThreadPoolExecutor(2) as threads:
        waiting: deque[tuple[bytes, Future[bytes], bytes]] = deque()
        for i, number in enumerate(parts):
            # A damaged tree may hold a row that it does not find.
            *values, mark = run(one, number).fetchone() or [None] * 5
            if values[2] != i or not isinstance(values[3], bytes):
                raise Doubt
            waiting.append((values[3], threads.submit(hashed, "arrays", tuple(values)), mark))
            if len(waiting) > _AHEAD:
                yield _checked(*waiting.popleft())
        while waiting:
            yield _checked(*waiting.popleft())


def _checked(data: bytes, found: Future[bytes], mark: bytes) -> bytes:
    if found.result() != mark:
        raise Doubt
    return data


def _only(file: File, name: str) -> bytes:
    found = list(read_parts(file, name))
    if len(found) != 1:
        raise Doubt
    return found[0]


# -- the factor of a kernel model ----------------------------------------------------------------


@final
class FactorCache:
    """The factor of a kernel model in a file; it knows which panels are there already.

    rows : how many rows of it are in the file
    """

    def __init__(self) -> None:
        self.rows = 0
        self._mark = ""
        self._written: list[tuple[Any, int]] = []

    def read(
        self, file: File, estimator: Any, state: dict[str, Any], examples: Any, vectors: Array
    ) -> Living[Any] | None:
        """The fitted value of these examples from the factor in the file; None if it is no use.

        vectors : the numbers of the examples' vectors, (n,)
        """
        try:
            return self._read(file, estimator, state, examples, vectors)
        # A damaged file may raise anything; the cache is then computed again.
        except (Doubt, ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
            self.rows, self._written = 0, []
            return None

    def _read(
        self, file: File, estimator: Any, state: dict[str, Any], examples: Any, vectors: Array
    ) -> Living[Any]:
        about = loads(_only(file, CACHE + ABOUT))
        self._mark = str(about["mark"])
        counted = examples.counted
        numbers = vectors[examples.weights > 0]
        model = kinds.skeleton(estimator, state, counted)
        first = target = _factored(model)
        covariance = target.covariance
        weights = covariance.weighting(counted)
        size = about["size"]
        key = _key(covariance.kernel, covariance.noise, covariance.factor)
        if about["key"] != key or type(size) is not int or not size > 0:
            raise Doubt
        stored = _only(file, ROWS)
        if len(stored) != 16 * size:
            raise Doubt
        n = _alike(_rows(stored), (numbers, weights))
        factor = self._factor(file, covariance.factor.dtype, about["solver"], size, n)
        known = counted if n == len(counted) else counted.without(np.arange(n, len(counted)))
        covariance = replace(covariance, examples=known, factor=factor)
        _probe(covariance)
        # The skeleton has coded one example of each class: code these examples instead.
        coded = target.coding(known)
        target = replace(target, covariance=covariance, coded=coded, head=coded.basis[:0])
        if known is not counted:
            target = target.follow(counted)
        elif size == n and about["labels"] == _labels(counted.labels):
            head = _head(file, about, factor.dtype, coded.basis.shape)
            target = replace(target, head=head)
        after: Any = target if model is first else model.with_target(target, counted)
        return Living.of(after, examples, settled=bool(state["settled"]))

    def _factor(
        self, file: File, dtype: np.dtype[Any], solver: str, size: int, n: int
    ) -> Cholesky | Inverse:
        if solver == "inverse":
            if n != size:
                raise Doubt
            bands = [np.frombuffer(part, dtype) for part in read_parts(file, FACTOR)]
            A, P = np.concatenate(bands).reshape(2, n, n)
            self.rows = n
            return Inverse(dtype, A=A.copy(), P=P.copy())
        panels: list[Panel] = []
        rows = 0
        for part in read_parts(file, FACTOR):
            if rows >= n:
                break
            start, count = len(panels) * PANEL, min(PANEL, size - len(panels) * PANEL)
            numbers = np.frombuffer(part, dtype)
            if len(numbers) != count * start + count * (count + 1) // 2:
                raise Doubt
            left, triangle = np.split(numbers, [count * start])
            panels.append(Panel.unpacked(start, count, left.reshape(count, start), triangle))
            rows += count
        if rows < n:
            raise Doubt
        self._written = [(weakref.ref(panel), min(PANEL, size - panel.start)) for panel in panels]
        self.rows = n
        return Cholesky(dtype, n, tuple(panels))

    def write(self, file: File, number: int, living: Living[Any], vectors: Array) -> int:
        """Write the changed parts of the factor; returns the next free number of an array."""
        model: Any = living.current
        target = _factored(model)
        covariance = target.covariance
        factor: Any = covariance.factor
        numbers = vectors[living.examples.weights > 0]
        if factor.size != len(numbers):
            return number
        if _mark(file) != self._mark:
            # Another process has written since.
            self.drop()
        if isinstance(factor, Cholesky):
            written = [
                (weakref.ref(panel), min(PANEL, factor.size - panel.start))
                for panel in factor.panels
            ]
            # One at a time: together they would double the memory.
            for p, (panel, count) in enumerate(factor.filled()):
                old = self._written[p] if p < len(self._written) else (lambda: None, 0)
                if old[0]() is not panel or old[1] != count:
                    data = b"".join(map(bytes_of, panel.packed(count)))
                    number = write_parts(file, number, FACTOR, {p: data})
            delete_parts(file, FACTOR, len(written))
        else:
            written = []
            delete_parts(file, FACTOR)
            bands = [*_bands(factor.A), *_bands(factor.P)]
            number = write_parts(file, number, FACTOR, dict(enumerate(bands)))
        self._mark = token_hex(8)
        about = {
            "mark": self._mark,
            "size": factor.size,
            "key": _key(covariance.kernel, covariance.noise, factor),
            "solver": "cholesky" if isinstance(factor, Cholesky) else "inverse",
            "labels": _labels(target.examples.labels),
            "head": len(target.head),
        }
        rows = bytes_of(numbers) + bytes_of(covariance.weights)
        number = write_parts(file, number, ROWS, {0: rows})
        number = write_parts(file, number, HEAD, {0: bytes_of(target.head)})
        number = write_parts(file, number, CACHE + ABOUT, {0: dumps(about).encode()})
        self._written, self.rows = written, factor.size
        return number

    def cut(self, file: File, number: int, estimator: Any, vectors: Array) -> int:
        """Delete the parts of other models; returns the next free number of an array.

        Panels stay if the model has the same rows, weights and settings.
        vectors : the numbers of the examples' vectors, (n,)
        """
        if not file.connection.execute("SELECT 1 FROM arrays WHERE name = ?", (ROWS,)).fetchone():
            return number
        about: dict[str, Any] = {}
        left, stored, complete = 0, b"", False
        # A damaged cache may raise anything, and is deleted as a whole.
        with suppress(Doubt, ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
            about, stored = dict(loads(_only(file, CACHE + ABOUT))), _only(file, ROWS)
            left = _shared(about, stored, estimator, vectors)
            labels = estimator.editable_.examples.counted.labels
            complete = left == about["size"] and about["labels"] == _labels(labels)
        if about.get("mark") != self._mark:
            self.drop()
        if complete:
            return number
        panels = left // PANEL
        delete_parts(file, FACTOR, panels)
        for name in (CACHE + ABOUT, ROWS, HEAD):
            delete_parts(file, name)
        self.rows, self._written = panels * PANEL, self._written[:panels]
        if not panels:
            return number
        self._mark, size = token_hex(8), panels * PANEL
        about |= {"mark": self._mark, "size": size, "labels": "", "head": 0}
        numbers, weights = _rows(stored)
        both = bytes_of(numbers[:size]) + bytes_of(weights[:size])
        number = write_parts(file, number, ROWS, {0: both})
        return write_parts(file, number, CACHE + ABOUT, {0: dumps(about).encode()})

    def clear(self, file: File) -> None:
        """Delete the caches of a model without examples."""
        for name in (FACTOR, ROWS, HEAD, CACHE + SUMS, CACHE + ABOUT):
            delete_parts(file, name)
        self.drop()

    def drop(self) -> None:
        """Take nothing in the file for written: the next write replaces all parts."""
        self.rows, self._written = 0, []


def _factored(model: Any) -> Any:
    """The kernel model whose factor is cached: of a one-shot model, the model of its target."""
    return model.target if isinstance(model, OneShot) else model


def _mark(file: File) -> str:
    """The random mark of the factor in the file, or "none"."""
    try:
        return str(loads(_only(file, CACHE + ABOUT))["mark"])
    except (Doubt, LookupError, TypeError, ValueError):
        return "none"


def _bands(A: Array) -> list[bytes]:
    """A square matrix in bytes, a few rows at a time."""
    return [bytes_of(A[begin : begin + PANEL]) for begin in range(0, len(A), PANEL)]


def _key(kernel: AnyKernel, noise: float, factor: Factor) -> str:
    """A digest of the settings of a factor: kernel, noise, type and solver."""
    solver = "cholesky" if isinstance(factor, Cholesky) else "inverse"
    settings = [plain(kernel), float(noise), factor.dtype.str, solver]
    return blake2b(dumps(settings).encode(), digest_size=16).hexdigest()


def _rows(stored: bytes) -> tuple[Array, Array]:
    """The numbers of vectors, (n,), and their weights, (n,), as they are stored."""
    n = len(stored) // 16
    return np.frombuffer(stored, "<i8", n), np.frombuffer(stored, "<f8", n, 8 * n)


def _alike(here: tuple[Array, Array], there: tuple[Array, Array]) -> int:
    """The length of the common beginning of two models, by vectors and weights."""
    n = min(len(here[0]), len(there[0]))
    alike = (here[0][:n] == there[0][:n]) & (here[1][:n] == there[1][:n])
    return n if alike.all() else int(alike.argmin())


def _shared(about: dict[str, Any], stored: bytes, estimator: Any, vectors: Array) -> int:
    """The number of leading rows of a stored factor that belong to an estimator's model."""
    living = estimator.editable_
    # The model may have to follow the latest edits, which leave its noise and its weighting, but
    # a one-shot model chooses its noise anew.
    one_shot = _factored(living.model) is not living.model
    covariance = _factored(living.current if one_shot else living.model).covariance
    key = _key(living.kernel, covariance.noise, covariance.factor)
    if about["key"] != key or not isinstance(covariance.factor, Cholesky):
        return 0
    numbers = vectors[living.examples.weights > 0]
    weights = covariance.weighting(living.examples.counted)
    return _alike(_rows(stored), (numbers, weights))


def _labels(labels: Array) -> str:
    return blake2b(ascii(labels.tolist()).encode(), digest_size=16).hexdigest()


def _head(file: File, about: dict[str, Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    """The rows of the solve that were known."""
    head = np.frombuffer(_only(file, HEAD), dtype).reshape(about["head"], shape[1])
    if len(head) > shape[0]:
        raise Doubt
    return head.copy()


def _probe(covariance: Any) -> None:
    """Raise Doubt unless some columns of the matrix are the kernel's values."""
    factor, n = covariance.factor, len(covariance.examples)
    if n == 0:
        return
    rows = np.unique([*np.random.default_rng(n).integers(0, n, _PROBES), n - 1])
    X = covariance.X[rows]
    K = covariance.cross(X)
    own = diagonal(covariance.kernel, X) + covariance.noise / covariance.weights[rows]
    K[rows, np.arange(len(rows))] = own
    found = factor.columns(rows) if isinstance(factor, Cholesky) else factor.A[:, rows]
    size = max(abs(K).max(), covariance.diagonal.max())
    # The error of a factorisation is a few roundings for each row.
    if not abs(found - K).max() <= 64 * n * np.finfo(factor.dtype).eps * size:
        raise Doubt


# -- the sums of a linear model ------------------------------------------------------------------


def write_sums(
    file: File, number: int, estimator: LinearGP, position: int, prefix: str = CACHE
) -> int:
    """Write the sums as of an entry of the journal; returns the next free number of an array.

    prefix : empty if they are no cache, but all that is there
    """
    sums = estimator.frozen_model().sums
    P, groups = len(sums.grid), sums.groups
    firsts = [group.first for group in groups.values()]
    length = max(map(len, firsts), default=1)
    about = {
        "position": position,
        "grid": plain(sums.grid),
        "keys": [plain(key) for key in groups],
        "counts": [[int(group.rows), int(group.weight)] for group in groups.values()],
        "log_weights": sums.log_weights,
        "words": [length, len(sums.words)],
    }
    first = np.array([padded(one, length) for one in firsts], np.int64)
    packed = sums.words[:, *np.tril_indices(P)]
    data = bytes_of(np.concatenate([first.ravel(), packed.ravel()]))
    step = 8 * _WORDS
    parts = [data[begin : begin + step] for begin in range(0, len(data), step)]
    number = write_parts(file, number, prefix + SUMS, dict(enumerate(parts)))
    delete_parts(file, prefix + SUMS, len(parts))
    return write_parts(file, number, prefix + ABOUT, {0: dumps(about).encode()})


def read_sums(file: File, grid: Grid, prefix: str = CACHE) -> tuple[int, Sums] | None:
    """The sums in the file and, first, their entry of the journal; None without usable sums."""
    try:
        about = loads(_only(file, prefix + ABOUT))
        keys, earlier = [valued(key) for key in about["keys"]], None
        if "words" not in about:
            earlier = _earlier(about["grid"], grid)
        elif valued(about["grid"]) != grid:
            raise Doubt
        P = len(grid) if earlier is None else earlier.width
        length, many = (int(one) for one in about.get("words", (1, WORDS)))
        wanted = len(keys) * length * P + many * P * (P + 1) // 2
        if length < 1 or many < WORDS:
            raise Doubt
        claimed = "SELECT total(length(data)) FROM arrays WHERE name = ?"
        if file.connection.execute(claimed, (prefix + SUMS,)).fetchone()[0] != 8 * wanted:
            raise Doubt
        numbers = np.frombuffer(b"".join(read_parts(file, prefix + SUMS)), "<i8").astype(np.int64)
        first, packed = np.split(numbers, [len(keys) * length * P])
        words = np.zeros((many, P, P), np.int64)
        words[:, *np.tril_indices(P)] = packed.reshape(many, -1)
        firsts = first.reshape(-1, length, P)
        if earlier is not None:
            firsts, words = earlier.firsts(firsts[:, 0]).swapaxes(0, 1), earlier.words(words)
        groups = {
            key: Group(int(rows), int(weight), trimmed(one))
            for key, (rows, weight), one in zip(keys, about["counts"], firsts, strict=True)
        }
        return int(about["position"]), Sums.restored(grid, groups, int(about["log_weights"]), words)
    except (Doubt, ArithmeticError, LookupError, TypeError, ValueError):
        return None


def _earlier(found: dict[str, Any], grid: Grid) -> Earlier:
    """The earlier form of the model's grid; raises Doubt if the sums are on another grid."""
    for targets in range(len(grid)):
        earlier = Earlier(np.array(found["grid"]), int(found["bits"]), targets)
        if len(earlier.grid) == len(grid) and earlier.grid == grid:
            return earlier
    raise Doubt


class Kept(NamedTuple):
    """An array that is no cache, by name."""

    name: str
    array: Array


def keep(file: File, number: int, arrays: Sequence[Kept]) -> tuple[int, dict[str, Any]]:
    """Write arrays; returns the next free number and the forms, by which `kept` reads them."""
    forms = {}
    for name, array in arrays:
        if name.startswith(CACHE):
            raise InvalidInput(f"An array cannot be called {name!r}: that is the name of a cache.")
        forms[name] = list(Form.of(array))
        delete_parts(file, name)
        number = write_parts(file, number, name, {0: bytes_of(array)})
    return number, forms


def kept(file: File, forms: dict[str, Any]) -> dict[str, Array]:
    """The arrays that `keep` wrote."""
    found = {}
    for row in file.all_rows("arrays"):
        with file.understood("arrays"):
            dtype, shape, order = forms[row[1]]
            found[row[1]] = Form(dtype, tuple(shape), order).read(row[3])
    return found


# -- thresholds and temperatures -----------------------------------------------------------------


@final
@dataclass(frozen=True)
class Memo:
    """A few numbers that take long to compute, kept for one state of examples and settings.

    Every edit drops them. The text has always the same length, so that it is overwritten in its
    place, and nothing of it is left.

    name : of the array in the file
    length : of the text, in bytes
    """

    name: str
    length: int

    def read(self, file: File, state: str) -> dict[str, Any] | None:
        """The values kept for this state, or None."""
        with suppress(Doubt, LookupError, TypeError, ValueError):
            found = loads(next(read_parts(file, self.name), b"{}"))
            if found["state"] == state:
                return dict(found)
        return None

    def write(self, file: File, number: int, state: str, values: dict[str, Any]) -> int:
        """Keep values as JSON can write them; returns the next free number of an array."""
        text = dumps({"state": state, **values}).encode()
        return write_parts(file, number, self.name, {0: text.ljust(self.length)})

    def drop(self, file: File) -> None:
        """Overwrite the values in the file."""
        held = file.fetched("SELECT array, part FROM arrays WHERE name = ?", (self.name,))
        file.replace("arrays", [(n, self.name, part, b" " * self.length) for n, part in held])


_THRESHOLDS: Final = Memo(f"{CACHE}thresholds", 1024)
_TEMPERATURE: Final = Memo(f"{CACHE}temperature", 128)
# Rates whose thresholds are kept.
_RATES: Final = 8
# The number of the measure of novelty: thresholds of another measure are not used.
_MEASURE: Final = 3
# The weights of a linear model that has learnt rows with nothing in common with others.
LEARNT: Final = (0.0,)


class Thresholds(NamedTuple):
    """The numbers that tell known rows from unknown ones.

    weights : of the parts of novelty that a model combines; `LEARNT`, or empty if it combines none
    known : the threshold for each rate of examples that may be called unknown
    """

    weights: tuple[float, ...]
    known: dict[float, float]


def state_of(file: File, facts: dict[str, Any]) -> str:
    """A digest of the examples, by their hashes, and of the settings."""
    settings = [facts[one] for one in SETTINGS]
    held = [_MEASURE, file.totals["examples"], file.totals["vectors"], settings]
    return blake2b(dumps(held).encode(), digest_size=16).hexdigest()


def read_thresholds(file: File, state: str) -> Thresholds | None:
    """The thresholds that were kept in this state."""
    with suppress(LookupError, TypeError, ValueError):
        if (found := _THRESHOLDS.read(file, state)) is not None:
            known = {float(rate): float(value) for rate, value in found["known"]}
            return Thresholds(tuple(map(float, found["weights"])), known)
    return None


def write_thresholds(file: File, number: int, state: str, known: Thresholds) -> int:
    """Keep the last thresholds; returns the next free number of an array."""
    last = list(known.known.items())[-_RATES:]
    return _THRESHOLDS.write(file, number, state, {"weights": known.weights, "known": last})


def read_temperature(file: File, state: str) -> float | None:
    """The temperature of probabilities that was kept in this state."""
    with suppress(LookupError, TypeError, ValueError):
        found = _TEMPERATURE.read(file, state)
        if found is not None and 0 < (value := float(found["temperature"])) < float("inf"):
            return value
    return None


def write_temperature(file: File, number: int, state: str, temperature: float) -> int:
    """Keep a temperature; returns the next free number of an array."""
    return _TEMPERATURE.write(file, number, state, {"temperature": temperature})


def drop_memos(file: File) -> None:
    """Overwrite the thresholds and the temperature of a model that has changed."""
    _THRESHOLDS.drop(file)
    _TEMPERATURE.drop(file)
