"""Sums of a shard in a file beside its data: `day-1.parquet` has `day-1.parquet.kms`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np

from knowmore._base import Array, Arrays, a_type, check_name, flag, save, undamaged
from knowmore.errors import InvalidInput, InvalidType, MissingData
from knowmore.estimators import (
    LinearGP,
    LinearGPClassifier,
    LinearGPRegressor,
    Survey,
    names_in,
    note_names,
)
from knowmore.linalg import WORDS, Earlier, Grid, Group, Sums, padded, trimmed

_KIND: Final = "Sums"
# Files of version 1 have no centres, and numbers of two words.
_VERSION: Final = 2
# The columns of a file by what they are for: see `refresh_sums`.
CHOICES: Final = ("label", "sample_weight", "columns")
Chosen = dict[str, Any]
RESOLUTIONS: Final = {8: 8, 16: 16, 21: None, 42: "exact"}


def save_sums(
    path: str | PathLike[str],
    estimator: LinearGP,
    *,
    source: str | PathLike[str] | None = None,
    label: str | None = None,
) -> None:
    """Write what a fitted linear Gaussian process knows of its rows: all of it, or nothing.

    It is an `.npz` file without pickles, of 8 D^2 bytes or, with numbers of many limbs, more. It
    holds no single row.

    source, label : the file of the rows and the column of their targets, to be noted. Only the size
        of that file and the time when it was changed are kept.
    """
    check_linear(estimator, "fitted ")
    check_column("label", label)
    write_sums(path, estimator, None if source is None else facts(source), {"label": label})


def write_sums(
    path: str | PathLike[str], estimator: LinearGP, source: dict[str, int] | None, chosen: Chosen
) -> None:
    """Save the sums of a `source`, with the facts about it from before it was read."""
    model = estimator.model_
    sums, names = model.sums, names_in(estimator)
    if names is not None and not all(isinstance(name, (str, int)) for name in names):
        raise InvalidInput("The names of the columns can be written only if they are strings.")
    targets = None if model.classes else [] if model.flat else [len(model.names)]
    groups, firsts = sums.groups, [group.first for group in sums.groups.values()]
    length = max(map(len, firsts), default=1)
    settings = {
        "words": len(sums.words),
        "bits": sums.grid.bits,
        "names": names,
        "targets": targets,
        "keys": list(groups),
        "log_weights": sums.log_weights,
        "digest": sums.digest(),
        "source": source,
        **{role: chosen.get(role) for role in CHOICES},
    }
    rows, columns = np.tril_indices(len(sums.grid))
    first = np.array([padded(one, length) for one in firsts], np.int64)
    arrays = {
        "exponents": sums.grid.exponents,
        "centres": sums.grid.centres,
        "counts": np.array([group[:2] for group in groups.values()], np.int64).reshape(-1, 2),
        "first": first.reshape(-1, length, len(sums.grid)),
        "words": sums.words[:, rows, columns],
    }
    save(path, _KIND, settings, arrays, _VERSION)


def load_sums(
    path: str | PathLike[str], estimator: LinearGP | None = None, *, fresh: bool = False
) -> LinearGP:
    """A fitted copy of the estimator that holds the sums in a file of `save_sums`.

    estimator : of the kind that was saved; its noise and other settings. None: the defaults
    fresh : whether to refuse sums of data that have been changed since; else they can still be used
        to take the old data out of a model: `split`

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> X, y = np.eye(4), ["a", "a", "b", "b"]
    >>> clf = LinearGPClassifier().fit(X, y)
    >>> with TemporaryDirectory() as folder:
    ...     save_sums(f"{folder}/all.kms", clf)
    ...     load_sums(f"{folder}/all.kms").digest() == clf.digest()
    True
    """
    stored = SumFile.read(path)
    if flag("fresh", fresh) and (why := stored.stale(data_of(path))):
        raise InvalidInput(
            f"{str(path)!r} holds the sums of other data: {why}. Compute them again: knowmore sums."
        )
    return stored.held_by(estimator, path)


@dataclass(frozen=True)
class SumFile:
    """Contents of a file of sums: see `save_sums`.

    features : the number of columns of X
    """

    sums: Sums
    features: int
    settings: dict[str, Any]

    @classmethod
    def read(cls, path: str | PathLike[str]) -> SumFile:
        """The file's content. Its digest is computed again, and must be the same."""
        remedy = "it is damaged, or save_sums did not write it. Compute it again: knowmore sums."
        with undamaged(path, "sums", remedy), Arrays(path) as file:
            room = Path(path).stat().st_size
            about = json.loads(str(_array(file, "about", room)))
            kind, version = about["kind"], about["version"]
            if kind == _KIND and version in (1, _VERSION):
                settings = about["settings"]
                _check_settings(settings)
                sums = _sums(file, settings, room, earlier=version == 1)
                return cls(sums, _features(sums.grid, settings), settings)
        raise InvalidInput(
            f"{str(path)!r} holds a {kind} of version {version}, but a {_KIND} of version "
            f"{_VERSION} is needed. A later knowmore may have written it: update this one, or "
            f"compute again."
        )

    @property
    def chosen(self) -> Chosen:
        """Roles of the columns of the source; earlier files have neither weights nor columns."""
        chosen = {role: self.settings.get(role) for role in CHOICES}
        return chosen | {"columns": chosen["columns"] and tuple(chosen["columns"])}

    def stale(self, source: Path) -> str | None:
        """Why these are not the sums of a source; None if they are, or if it is not there."""
        held = self.settings["source"]
        if held is None or not source.exists() or held == facts(source):
            return None
        return f"{source.name!r} has changed since its sums were computed"

    def held_by(self, estimator: LinearGP | None, path: str | PathLike[str]) -> LinearGP:
        """A fitted copy of the estimator, or of the default one, that holds these sums."""
        s, bits = self.settings, self.sums.grid.bits
        kind = LinearGPClassifier if s["targets"] is None else LinearGPRegressor
        wanted = kind(resolution=RESOLUTIONS[bits]) if estimator is None else estimator
        if not isinstance(wanted, kind):
            raise InvalidInput(
                f"{str(path)!r} holds the sums of a {kind.__name__}, not of {wanted!r}. Give the "
                f"same kind of estimator."
            )
        y = ["?"] if s["targets"] is None else np.zeros((1, *s["targets"]))
        survey = Survey.of(wanted, np.zeros((1, self.features)), y)
        noted = survey.estimator
        if s["names"] is not None:
            note_names(noted, tuple(s["names"]))
        held, grid = survey.start(self.sums), survey.start().grid_
        if (isinstance(wanted.resolution, Grid) and grid != held.grid_) or grid.bits != bits:
            raise InvalidInput(
                f"{str(path)!r} holds sums on {held.grid_!r}, but resolution is "
                f"{wanted.resolution!r}. Give resolution={RESOLUTIONS[bits]!r}, or that grid."
            )
        return held


def has_sums(estimator: Any) -> bool:
    """Whether the estimator keeps sums instead of rows."""
    return isinstance(estimator, LinearGP)


def check_linear(estimator: Any, state: str = "") -> None:
    """Raise InvalidType unless this is an estimator that has sums; state : "fitted " if it must."""
    if not has_sums(estimator):
        needed = f"a {state}LinearGPClassifier or LinearGPRegressor"
        raise InvalidType(f"{estimator!r} has no sums to write: give {needed}.")


def check_column(argument: str, name: Any) -> None:
    """Raise InvalidType unless this is the name of a column, or None."""
    if name is not None and not isinstance(name, str):
        raise InvalidType(
            f"{argument}={name!r} is {a_type(name)}. Give the name of a column, a str, or None."
        )


def beside(source: Path) -> Path:
    """The file for the sums of a source."""
    return source.with_name(f"{source.name}.kms")


def data_of(path: str | PathLike[str]) -> Path:
    """The file whose sums are at a path."""
    return Path(path).with_suffix("")


def facts(source: str | PathLike[str]) -> dict[str, int]:
    """Signs that a file has been changed: its size, and the time of the last change."""
    check_name(source)
    try:
        found = Path(source).stat()
    except OSError as error:
        raise MissingData(
            f"There is no file of rows {str(source)!r} to note: {error.strerror}. Check the path, "
            f"or leave source out."
        ) from error
    return {"size": found.st_size, "changed": found.st_mtime_ns}


def _array(file: Arrays, name: str, room: int) -> Array:
    """An array of the file, of `room` bytes; one that claims to be larger is not even begun."""
    with file.open(f"{name}.npy") as member:
        np.lib.format.read_magic(member)
        shape, _, dtype = np.lib.format.read_array_header_1_0(member)
    if prod(shape) * dtype.itemsize > room:
        raise ValueError("an array is larger than the file")
    return file[name]


def _check_settings(settings: dict[str, Any]) -> None:
    """Raise ValueError unless what was noted is of the types that `write_sums` notes."""
    names, targets, source = (settings[name] for name in ("names", "targets", "source"))
    keys, columns = settings["keys"], settings.get("columns")
    key_types = (str, int, bool, float) if targets is None else (type(None),)
    sound = (
        # JSON has numbers, and `true` is none.
        _all_are([settings["log_weights"], settings["bits"]], int)
        and _all_are([settings["label"], settings.get("sample_weight")], str, type(None))
        and (columns is None or _all_are(columns, str))
        and (names is None or _all_are(names, str, int))
        and (targets is None or _all_are(targets, int))
        and _all_are(keys, *key_types)
        and len({*map(type, keys)}) <= 1
        and len({*keys}) == len(keys)
        and (source is None or source.keys() == {"size", "changed"})
        and (source is None or _all_are([*source.values()], int))
    )
    if not sound:
        raise ValueError("something that was noted is of another type")


def _all_are(values: Any, *types: type) -> bool:
    return type(values) is list and all(type(one) in types for one in values)


def _targets(settings: dict[str, Any]) -> int:
    """The number of columns of the grid that are targets."""
    return 0 if settings["targets"] is None else prod(settings["targets"])


def _features(grid: Grid, settings: dict[str, Any]) -> int:
    """The number of columns of the grid that are not targets."""
    targets, names = settings["targets"], settings["names"]
    D = len(grid) - _targets(settings)
    if targets not in (None, []) and (len(targets) > 1 or targets[0] < 1):
        raise ValueError(f"targets of shape {targets}")
    if D < 1 or (names is not None and len(names) != D):
        raise ValueError(f"{D} features have the names {names}")
    return D


def _sums(file: Arrays, settings: dict[str, Any], room: int, *, earlier: bool) -> Sums:
    """The sums in the arrays of a file; an earlier version had other grids and another digest."""
    keys, bits = settings["keys"], settings["bits"]
    parts = ("exponents", "counts", "first", "words")
    exponents, counts, first, packed = (_array(file, part, room) for part in parts)
    _check_shape(counts, len(keys), 2)
    if earlier:
        Grid(exponents, bits)
        form = Earlier(exponents, bits, _targets(settings))
        _check_shape(first, len(keys), form.width)
        grid, firsts = form.grid, form.firsts(first).swapaxes(0, 1)
        words = form.words(_square(packed, WORDS, form.width))
    else:
        grid, firsts = Grid(exponents, bits, _array(file, "centres", room)), first
        length, many = first.shape[1] if first.ndim == 3 else 0, settings["words"]
        if length < 1 or type(many) is not int or many < WORDS:
            raise ValueError(f"numbers in {length} and {many} words")
        _check_shape(first, len(keys), length, len(grid))
        words = _square(packed, many, len(grid))
    groups = {
        key: Group(rows, weight, trimmed(one))
        for key, (rows, weight), one in zip(keys, counts.tolist(), firsts, strict=True)
    }
    sums = Sums.restored(grid, groups, settings["log_weights"], words)
    if not earlier and sums.digest() != settings["digest"]:
        raise ValueError("the digest differs")
    return sums


def _square(packed: Array, many: int, P: int) -> Array:
    """Words of the lower triangle, (W, P (P + 1) / 2), as (W, P, P)."""
    _check_shape(packed, many, P * (P + 1) // 2)
    square = np.zeros((many, P, P), np.int64)
    square[:, *np.tril_indices(P)] = packed
    return square


def _check_shape(array: Array, *shape: int) -> None:
    if array.shape != shape or array.dtype != np.int64:
        raise ValueError(f"an array has shape {array.shape}, not {shape}")
