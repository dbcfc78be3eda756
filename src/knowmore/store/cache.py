"""Caches beside the examples: the factor of a kernel model, the sums of a linear one, memos.

A cache names the examples and settings that it belongs to. The rows of a Cholesky factor depend
only on the examples before them, so the first matching rows are used and the others computed. A few
columns of the factored matrix are compared with the kernel's values. In doubt the cache is unused.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from json import dumps, loads
from secrets import token_hex
from typing import Any, Final, final

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
from knowmore.store.file import CACHE, File, hashed
from knowmore.store.journal import SETTINGS, Journal
from knowmore.store.kinds import bytes_of, form_of, plain, read_array, valued
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


# The errors of a cache that is damaged, or does not belong to the examples.
_UNUSABLE: Final = (ArithmeticError, LookupError, TypeError, ValueError, AttributeError)


# -- parts of arrays -----------------------------------------------------------------------------


def write_parts(journal: Journal, name: str, parts: dict[int, bytes]) -> None:
    """Write parts of an array over the parts of the same numbers."""
    file = journal.file
    old: dict[Any, Any] = dict(
        file.fetched("SELECT part, array FROM arrays WHERE name = ?", (name,))
    )
    new = zip(journal.take("array", len(parts)), parts.items(), strict=True)
    file.replace("arrays", [(old.get(part, n), name, part, data) for n, (part, data) in new])


def delete_parts(file: File, name: str, first: int = 0) -> None:
    """Delete the parts of an array from one on."""
    where = "SELECT array FROM arrays WHERE name = ? AND part >= ?"
    file.delete("arrays", [row[0] for row in file.fetched(where, (name, first))])


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
                raise ValueError("a part is missing")
            waiting.append((values[3], threads.submit(hashed, "arrays", tuple(values)), mark))
            if len(waiting) > _AHEAD:
                yield _checked(*waiting.popleft())
        while waiting:
            yield _checked(*waiting.popleft())


def _checked(data: bytes, found: Future[bytes], mark: bytes) -> bytes:
    if found.result() != mark:
        raise ValueError("a part has another hash")
    return data


def _only(file: File, name: str) -> bytes:
    """The bytes of an array that has a single part."""
    (found,) = read_parts(file, name)
    return found


def _about(file: File, name: str) -> dict[str, Any]:
    """The JSON object in an array."""
    return dict(loads(_only(file, name)))


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
        with suppress(*_UNUSABLE):
            return self._read(file, estimator, state, examples, vectors)
        self.drop()
        return None

    def _read(
        self, file: File, estimator: Any, state: dict[str, Any], examples: Any, vectors: Array
    ) -> Living[Any]:
        about = _about(file, CACHE + ABOUT)
        self._mark = str(about["mark"])
        counted = examples.counted
        numbers = vectors[examples.weights > 0]
        model = kinds.skeleton(estimator, state, counted)
        first = target = _factored(model)
        covariance = target.covariance
        weights = covariance.weighting(counted)
        size = about["size"]
        key = _key(covariance.kernel, covariance.noise, covariance.factor)
        stored = _only(file, ROWS)
        if about["key"] != key or type(size) is not int or not 0 < 16 * size == len(stored):
            raise ValueError("another model")
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
        return Living.of(after, examples, kinds.choice_of(estimator, state, examples))

    def _factor(
        self, file: File, dtype: np.dtype[Any], solver: str, size: int, n: int
    ) -> Cholesky | Inverse:
        if solver == "inverse":
            if n != size:
                raise ValueError("other rows")
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
                raise ValueError("a panel of another size")
            left, triangle = np.split(numbers, [count * start])
            panels.append(Panel.unpacked(start, count, left.reshape(count, start), triangle))
            rows += count
        if rows < n:
            raise ValueError("too few panels")
        self._written = _references(panels, size)
        self.rows = n
        return Cholesky(dtype, n, tuple(panels))

    def write(self, journal: Journal, living: Living[Any], vectors: Array) -> None:
        """Write the changed parts of the factor."""
        target = _factored(living.current)
        covariance = target.covariance
        factor: Any = covariance.factor
        numbers = vectors[living.examples.weights > 0]
        if factor.size != len(numbers):
            return
        if _mark(journal.file) != self._mark:
            # Another process has written since.
            self.drop()
        if isinstance(factor, Cholesky):
            written = _references(factor.panels, factor.size)
            # One at a time: together they would double the memory.
            for p, (panel, count) in enumerate(factor.filled()):
                old = self._written[p] if p < len(self._written) else (lambda: None, 0)
                if old[0]() is not panel or old[1] != count:
                    data = b"".join(map(bytes_of, panel.packed(count)))
                    write_parts(journal, FACTOR, {p: data})
            delete_parts(journal.file, FACTOR, len(written))
        else:
            written = []
            delete_parts(journal.file, FACTOR)
            rows = (
                A[at : at + PANEL] for A in (factor.A, factor.P) for at in range(0, len(A), PANEL)
            )
            write_parts(journal, FACTOR, dict(enumerate(map(bytes_of, rows))))
        self._mark = token_hex(8)
        about = {
            "mark": self._mark,
            "size": factor.size,
            "key": _key(covariance.kernel, covariance.noise, factor),
            "solver": _solver(factor),
            "labels": _labels(target.examples.labels),
            "head": len(target.head),
        }
        write_parts(journal, ROWS, {0: bytes_of(numbers) + bytes_of(covariance.weights)})
        write_parts(journal, HEAD, {0: bytes_of(target.head)})
        write_parts(journal, CACHE + ABOUT, {0: dumps(about).encode()})
        self._written, self.rows = written, factor.size

    def cut(self, journal: Journal, estimator: Any, vectors: Array) -> None:
        """Delete the parts of other models.

        Panels stay if the model has the same rows, weights and settings.
        vectors : the numbers of the examples' vectors, (n,)
        """
        file = journal.file
        if not file.fetched("SELECT 1 FROM arrays WHERE name = ?", (ROWS,)):
            return
        about: dict[str, Any] = {}
        left, stored, complete = 0, b"", False
        # A damaged cache is deleted as a whole.
        with suppress(*_UNUSABLE):
            about, stored = _about(file, CACHE + ABOUT), _only(file, ROWS)
            left = _shared(about, stored, estimator, vectors)
            labels = estimator.editable_.examples.counted.labels
            complete = left == about["size"] and about["labels"] == _labels(labels)
        if about.get("mark") != self._mark:
            self.drop()
        if complete:
            return
        panels = left // PANEL
        delete_parts(file, FACTOR, panels)
        for name in (CACHE + ABOUT, ROWS, HEAD):
            delete_parts(file, name)
        self.rows, self._written = panels * PANEL, self._written[:panels]
        if panels:
            self._mark, size = token_hex(8), self.rows
            about |= {"mark": self._mark, "size": size, "labels": "", "head": 0}
            numbers, weights = _rows(stored)
            write_parts(journal, ROWS, {0: bytes_of(numbers[:size]) + bytes_of(weights[:size])})
            write_parts(journal, CACHE + ABOUT, {0: dumps(about).encode()})

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
    with suppress(*_UNUSABLE):
        return str(_about(file, CACHE + ABOUT)["mark"])
    return "none"


def _references(panels: Iterable[Panel], size: int) -> list[tuple[Any, int]]:
    """Panels of a factor, which may be gone by then, and how many rows of each are in use."""
    return [(weakref.ref(panel), min(PANEL, size - panel.start)) for panel in panels]


def _solver(factor: Factor) -> str:
    return "cholesky" if isinstance(factor, Cholesky) else "inverse"


def _key(kernel: AnyKernel, noise: float, factor: Factor) -> str:
    """A digest of the settings of a factor: kernel, noise, type and solver."""
    settings = [plain(kernel), float(noise), factor.dtype.str, _solver(factor)]
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
    # The model may have to follow the latest edits, which leave its weighting, but a one-shot model
    # chooses its noise anew.
    one_shot = _factored(living.model) is not living.model
    covariance = _factored(living.current if one_shot else living.model).covariance
    noise = covariance.noise if one_shot else living.choice.settings.noise
    key = _key(living.kernel, noise, covariance.factor)
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
        raise ValueError("more rows than examples")
    return head.copy()


def _probe(covariance: Any) -> None:
    """Raise ValueError unless some columns of the matrix are the kernel's values."""
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
        raise ValueError("another matrix")


# -- the sums of a linear model ------------------------------------------------------------------


def write_sums(journal: Journal, estimator: LinearGP, prefix: str = CACHE) -> None:
    """Write the sums as of the last entry of the journal.

    prefix : empty if they are no cache, but all that is there
    """
    sums = estimator.frozen_model().sums
    P, groups = len(sums.grid), sums.groups
    firsts = [group.first for group in groups.values()]
    length = max(map(len, firsts), default=1)
    about = {
        "position": journal.numbers.position,
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
    write_parts(journal, prefix + SUMS, dict(enumerate(parts)))
    delete_parts(journal.file, prefix + SUMS, len(parts))
    write_parts(journal, prefix + ABOUT, {0: dumps(about).encode()})


def read_sums(file: File, grid: Grid, prefix: str = CACHE) -> tuple[int, Sums] | None:
    """The sums in the file and, first, their entry of the journal; None without usable sums."""
    try:
        about = _about(file, prefix + ABOUT)
        keys, earlier = [valued(key) for key in about["keys"]], None
        if "words" not in about:
            earlier = _earlier(about["grid"], grid)
        elif valued(about["grid"]) != grid:
            return None
        P = len(grid) if earlier is None else earlier.width
        length, many = (int(one) for one in about.get("words", (1, WORDS)))
        wanted = len(keys) * length * P + many * P * (P + 1) // 2
        claimed = "SELECT total(length(data)) FROM arrays WHERE name = ?"
        ((size,),) = file.fetched(claimed, (prefix + SUMS,))
        if length < 1 or many < WORDS or size != 8 * wanted:
            return None
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
    except _UNUSABLE:
        return None


def _earlier(found: dict[str, Any], grid: Grid) -> Earlier:
    """The earlier form of the model's grid; raises ValueError if the sums are on another grid."""
    for targets in range(len(grid)):
        earlier = Earlier(np.array(found["grid"]), int(found["bits"]), targets)
        if len(earlier.grid) == len(grid) and earlier.grid == grid:
            return earlier
    raise ValueError("another grid")


# -- arrays that are no caches -------------------------------------------------------------------


def write_arrays(journal: Journal, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Write arrays by name; returns their forms, by which `read_arrays` reads them."""
    forms = {}
    for name, array in arrays.items():
        if name.startswith(CACHE):
            raise InvalidInput(f"An array cannot be called {name!r}: that is the name of a cache.")
        forms[name] = form_of(array)
        delete_parts(journal.file, name)
        write_parts(journal, name, {0: bytes_of(array)})
    return forms


def read_arrays(file: File, forms: dict[str, Any]) -> dict[str, Array]:
    """The arrays that `write_arrays` wrote."""
    found = {}
    for row in file.all_rows("arrays"):
        with file.understood("arrays"):
            found[row[1]] = read_array(forms[row[1]], row[3])
    return found


# -- memos: thresholds and temperatures ----------------------------------------------------------

# A memo has a few numbers that take long to compute, for one state of examples and settings. Every
# edit drops it. Its text has always the same length in bytes, so that it is overwritten in its
# place, and nothing of it is left.
_MEMOS: Final = {"thresholds": 1024, "temperature": 128}
# The number of the formulas of novelty and of probabilities: memos by other ones are not used.
_FORMULAS: Final = 4


def state_of(file: File, facts: dict[str, Any]) -> str:
    """A digest of the examples, by their hashes, and of the settings."""
    settings = [facts[one] for one in SETTINGS]
    held = [_FORMULAS, file.totals["examples"], file.totals["vectors"], settings]
    return blake2b(dumps(held).encode(), digest_size=16).hexdigest()


def read_memo(file: File, name: str, state: str) -> dict[str, Any]:
    """The values of a memo for this state, or an empty dict."""
    with suppress(*_UNUSABLE):
        found = _about(file, CACHE + name)
        if found.pop("state") == state:
            return found
    return {}


def write_memo(journal: Journal, name: str, state: str, values: dict[str, Any]) -> None:
    """Keep values as JSON can write them."""
    text = dumps({"state": state, **values}).encode()
    write_parts(journal, CACHE + name, {0: text.ljust(_MEMOS[name])})


def drop_memos(file: File) -> None:
    """Overwrite the memos of a model that has changed."""
    for name, length in _MEMOS.items():
        rows = file.fetched("SELECT array, part FROM arrays WHERE name = ?", (CACHE + name,))
        file.replace("arrays", [(n, CACHE + name, part, b" " * length) for n, part in rows])
