"""Sums of all shards in a folder, computed once: tomorrow's shard costs only itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from sklearn.base import clone

from knowmore._base import check_name, columns_of, flag
from knowmore.distributed.merging import merged, surveyed
from knowmore.distributed.reading import Names, Reader, listed, read_examples, shards_of
from knowmore.distributed.running import computed, in_this_process, tasks_of
from knowmore.distributed.sums import (
    RESOLUTIONS,
    Chosen,
    SumFile,
    beside,
    check_column,
    check_linear,
    data_of,
    facts,
    load_sums,
    write_sums,
)
from knowmore.errors import InvalidInput, KnowmoreError
from knowmore.estimators import LinearGP, LinearGPClassifier, Survey
from knowmore.linalg import Grid, Sums

# The files of rows: an .npy file has no room for targets.
_KINDS: Final = (".npz", ".parquet")
# The complaint about sums that were made from other columns.
_WERE: Final = {
    "label": "the targets were in",
    "sample_weight": "the weights were in",
    "columns": "the columns were",
}


class Refreshed(NamedTuple):
    """Actions of `refresh_sums`, by the files of the rows.

    computed : which had no sums
    stale : which had others, and why these were computed again
    skipped : whose sums were right
    orphans : files of sums whose rows are gone. They were left alone, and `fit` still learns them:
        to forget these rows, delete them.
    apart : which of the orphans are on another grid than the other sums. `fit` cannot learn both:
        delete these, or move them elsewhere.
    """

    computed: list[Path]
    stale: dict[Path, str]
    skipped: list[Path]
    orphans: list[Path]
    apart: list[Path]


def refresh_sums(
    folder: str | PathLike[str],
    label: str | None = None,
    *,
    sample_weight: str | None = None,
    columns: Sequence[str] | None = None,
    estimator: LinearGP | None = None,
    again: bool = False,
    progress: bool = False,
) -> Refreshed:
    """Write the sums of each `.npz` or `.parquet` file in a folder beside it, if missing or stale.

    All are on one grid: that of the first sums which are right, or if there are none, one that
    covers all files. Then `fit(estimator, "folder/*.kms")` is a model of all rows.

    Sums whose file of rows is gone stay, and `fit` still learns them. To forget a shard, delete
    its `.kms` file too: `orphans` lists those that are left.

    folder : its files are of one kind: arrays have no names of columns, so `.npz` files do not go
        with tables
    label : the column of the targets, in `.npz` files the name of their array; None: that of the
        sums in the folder, else the array y of `.npz` files
    sample_weight : the column, or array, of the weights; None: that of the sums in the folder, else
        each row weighs one
    columns : the columns of a table that are features, in this order; None: those of the sums in
        the folder, else all others. A column of text or dates has to be left out, or encoded as
        numbers before.
    estimator : None: a `LinearGPClassifier()`. If its resolution is None, that of the sums in the
        folder is kept, or is 21 bits if there are none; another one, or another kind of estimator,
        is refused unless `again`.
    again : whether to compute all of them again, on a new grid
    progress : whether to draw a progress bar
    """
    wanted = LinearGPClassifier() if estimator is None else estimator
    check_linear(wanted)
    chosen = _checked(label, sample_weight, columns)
    again, progress = flag("again", again), flag("progress", progress)
    paths, orphans = _found(folder, chosen)
    if not paths:
        return Refreshed([], {}, [], orphans, _apart(orphans, orphans))
    wanted, chosen = _settled(wanted, chosen, paths, again)
    new, stale, right = _judged(paths, wanted, chosen, again)
    if len(right) < len(paths):
        with in_this_process():
            _compute([path for path in paths if path not in right], right, chosen, wanted, progress)
    return Refreshed(new, stale, right, orphans, _apart(orphans, [beside(path) for path in paths]))


def _checked(label: Any, sample_weight: Any, columns: Any) -> Chosen:
    """The names of columns, checked."""
    check_column("label", label)
    check_column("sample_weight", sample_weight)
    if columns is not None:
        given = columns if isinstance(columns, (list, tuple)) else [None]
        strings = all(isinstance(one, str) for one in given)
        if not given or not strings or len({*given}) < len(given):
            raise InvalidInput(f"columns={columns!r}. Give a list of names of columns, each once.")
        columns = tuple(given)
    return {"label": label, "sample_weight": sample_weight, "columns": columns}


def _apart(orphans: list[Path], others: list[Path]) -> list[Path]:
    """The orphans that are not on the grid of the first of the other sums."""

    def grid(path: Path) -> Grid | None:
        try:
            return SumFile.read(path).sums.grid
        except KnowmoreError:
            return None

    return [path for path in orphans if grid(path) not in (None, grid(others[0]))]


def _found(folder: str | PathLike[str], chosen: Chosen) -> tuple[list[Path], list[Path]]:
    """The files of rows in a folder, and the files of sums whose rows are gone."""
    check_name(folder)
    if not Path(folder).is_dir():
        raise InvalidInput(f"{str(folder)!r} is not a folder. Name the one that has the rows.")
    files = sorted(Path(folder).iterdir())
    paths = [file for file in files if file.suffix in _KINDS and file.is_file()]
    orphans = [file for file in files if file.suffix == ".kms" and not data_of(file).is_file()]
    if not paths and not orphans:
        raise InvalidInput(
            f"There are no rows in the folder {str(folder)!r}: sums are computed of files that end "
            f"in {' or '.join(_KINDS)}. Check the path, or write the rows so."
        )
    if len({path.suffix for path in paths}) > 1:
        raise InvalidInput(
            f"The folder {str(folder)!r} has both .npz and .parquet files, but arrays have no "
            f"names of columns to compare with those of tables. Write all rows as one kind."
        )
    if paths and paths[0].suffix == ".npz" and chosen["columns"] is not None:
        raise InvalidInput(
            "columns was given, but .npz files have one array of features, X, without names. Leave "
            "it out."
        )
    return paths, orphans


def _settled(
    wanted: LinearGP, chosen: Chosen, paths: list[Path], again: bool
) -> tuple[LinearGP, Chosen]:
    """The estimator and the columns, completed by the first sums in the folder.

    Without the names of the features, a column that was left out would become one of them.
    """
    for path in map(beside, paths):
        try:
            stored = SumFile.read(path)
        except KnowmoreError:
            continue
        if wanted.resolution is None:
            wanted = clone(wanted).set_params(resolution=RESOLUTIONS[stored.sums.grid.bits])
        if not again:
            try:
                stored.held_by(wanted, path)
            except InvalidInput as error:
                hint = (
                    "In a shell, leave --bits out and give --regression as before. To change it, "
                    "compute all sums again: again=True, in a shell --again."
                )
                raise InvalidInput(f"{error} {hint}") from error
        return wanted, {role: chosen[role] or held for role, held in stored.chosen.items()}
    return wanted, chosen


def _judged(
    paths: list[Path], wanted: LinearGP, chosen: Chosen, again: bool
) -> tuple[list[Path], dict[Path, str], list[Path]]:
    """Files of rows without sums; with sums that cannot stay, and why; with sums that can."""
    new, stale, right = list[Path](), dict[Path, str](), list[Path]()
    grid: Grid | None = None
    for path in paths:
        if not beside(path).exists():
            new.append(path)
        elif again:
            stale[path] = "all were to be computed again"
        else:
            found = _grid_of_sums(path, chosen, wanted, grid)
            if isinstance(found, str):
                stale[path] = found
            else:
                right.append(path)
                grid = found
    return new, stale, right


def _grid_of_sums(path: Path, chosen: Chosen, wanted: LinearGP, grid: Grid | None) -> Grid | str:
    """The grid of the sums beside a file, or why they cannot stay.

    grid : that of the others
    """
    try:
        stored = SumFile.read(beside(path))
    except KnowmoreError:
        return "they could not be read"
    try:
        stored.held_by(wanted, beside(path))
    except KnowmoreError:
        return "they were for another kind of model or resolution"
    for role, then in stored.chosen.items():
        if then != chosen[role]:
            return f"{_WERE[role]} {then!r}"
    if grid is not None and stored.sums.grid != grid:
        return "the grid was not that of the others"
    return stored.stale(path) or stored.sums.grid


def _compute(
    paths: list[Path], right: list[Path], chosen: Chosen, wanted: LinearGP, progress: bool
) -> None:
    """Write the sums of these files, on the grid of the `right` ones, or on a new one."""
    names = {"y": chosen["label"], "sample_weight": chosen["sample_weight"]}
    names = {role: name for role, name in names.items() if name is not None}
    read_rows = Reader(partial(_labelled, names=names, columns=chosen["columns"]), names)
    start: Callable[[], LinearGP]
    if right:
        start = partial(_emptied, beside(right[0]), wanted)
    else:
        learn = partial(surveyed, wanted)
        start = merged(learn, Survey.merge, read_rows, shards_of(paths), progress=progress).start

    def write(_: str, path: Path) -> None:
        # If the file changes while it is read, its sums are stale at once.
        before = facts(path)
        X, y, sample_weight, _ids = read_rows(path, None, None, None)
        model = start()
        if np.shape(X)[0]:
            model.partial_fit(X, y, sample_weight=sample_weight)
        write_sums(beside(path), model, before, chosen)

    tasks = tasks_of(write, [(repr(str(path)), path) for path in paths])
    computed(tasks, progress, first=tasks)


def _labelled(path: Path, names: Names, columns: Sequence[str] | None) -> Any:
    """The rows of a file, with the targets or a column that has them."""
    rows, label = read_examples(path, names, columns), names.get("y")
    found = columns_of(rows)
    if isinstance(rows, tuple) or label in found:
        return rows
    named = "are not named" if label is None else f"are not in {label!r}"
    held = f"the columns {listed(label, found)}" if found else "one array."
    raise InvalidInput(
        f"The targets of these rows {named}: the file holds {held} Name their column: label=..., "
        f"in a shell --label. An .npz file needs the arrays X and {label or 'y'}."
    )


def _emptied(path: Path, wanted: LinearGP) -> LinearGP:
    """A fitted copy of the estimator without rows, on the grid of the sums in a file."""
    model = load_sums(path, wanted)
    return model.holding(model.editable_.of(Sums(model.model_.sums.grid)))
