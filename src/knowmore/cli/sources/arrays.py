"""Arrays in .npz files: X, y and ids, or a table that `knowmore features` wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from knowmore.arguments import some
from knowmore.arrays import Array
from knowmore.cli.sources.records import ROWS, Block, Source, Wanted
from knowmore.cli.sources.tables import check_finite, contributors_of, ids_of, labels_of
from knowmore.errors import InvalidInput
from knowmore.files import Arrays, undamaged

# Names of arrays: plain ones, and those of `knowmore features`.
_ROWS = ("X", "features")
_LABELS = ("y", "labels", "label")
_IDS = ("ids", "id")
_CONTRIBUTORS = ("contributors", "contributor")


def npz_source(path: Path, wanted: Wanted) -> Source:
    """The rows of X (n, d), with y (n,) as labels and ids (n,) if there are such arrays."""
    name = str(path)
    remedy = "it is cut off or damaged, or holds Python objects. Save plain arrays by numpy.savez."
    with undamaged(path, "an .npz file of arrays", remedy), Arrays(path) as file:
        names = list(file)
        chosen = {
            role: _chosen(name, names, asked, usual, option)
            for role, asked, usual, option in (
                ("X", None, _ROWS, ""),
                ("y", wanted.label, _LABELS, "--label"),
                ("ids", wanted.id, _IDS, "--id"),
                ("contributors", None, _CONTRIBUTORS, ""),
            )
        }
        if "y" in chosen and not wanted.labelled:
            chosen["y"] = None
        arrays = {role: file[one] for role, one in chosen.items() if one is not None}
        about = json.loads(str(file["about"])) if "about" in names else None
    if "X" not in arrays:
        raise InvalidInput(f"{name!r} has no array 'X' of rows. There are {some(names)}.")
    if wanted.labelled and "y" not in arrays:
        raise InvalidInput(
            f"{name!r} has no array 'y' of labels. Name it: --label ARRAY. There are {some(names)}."
        )
    words = path.with_suffix(".words.npz")
    return of_arrays(name, arrays, about=about, words=words, gaps=wanted.gaps)


def of_arrays(
    name: str, arrays: dict[str, Array], *, about: Any, words: Path, gaps: bool
) -> Source:
    """The rows of X (n, d), with y, ids and contributors, (n,) each, where there are such."""
    X = arrays["X"]
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise InvalidInput(
            f"{name!r}: the rows have shape {X.shape} and type {X.dtype}, not (n, d) numbers."
        )
    if 0 in X.shape:
        raise InvalidInput(f"{name!r} has no rows of numbers: their array has shape {X.shape}.")
    for role, array in arrays.items():
        if role != "X" and array.shape != (len(X),):
            raise InvalidInput(
                f"{name!r}: {role!r} has shape {array.shape}, but there are {len(X)} rows."
            )

    def blocks() -> Iterator[Block]:
        for begin in range(0, len(X), ROWS):
            part = slice(begin, begin + ROWS)
            places = [f"row {i}" for i in range(begin, min(begin + ROWS, len(X)))]
            rows = X[part]
            if not gaps:
                check_finite(name, rows, range(X.shape[1]), places)
            plain = {role: array[part].tolist() for role, array in arrays.items() if role != "X"}
            yield Block(
                rows,
                labels_of(name, plain["y"], places) if "y" in plain else None,
                ids_of(name, plain["ids"], places) if "ids" in plain else None,
                contributors_of(name, plain.get("contributors", [None] * len(rows)), places),
                places,
            )

    return Source(name, blocks, about=about, words=words)


def _chosen(
    name: str, names: list[str], asked: str | None, usual: tuple[str, ...], option: str
) -> str | None:
    """The name of the array for a role, if there is one."""
    if asked is not None and asked not in names:
        # A column that a table had; arrays have their own names.
        return next((one for one in usual if one in names), None)
    return asked or next((one for one in usual if one in names), None)
