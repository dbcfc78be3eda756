"""Sums of all shards in a folder, computed once: tomorrow's shard costs only itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np
from dask.delayed import delayed

from knowmore.distributed.merging import (
    computed,
    in_this_process,
    located,
    merged,
    quiet_threads,
)
from knowmore.distributed.reading import Shard, examples, files_at, read_examples, shards_of
from knowmore.distributed.sums import Stored, beside, data_of, facts, load_sums, write_sums
from knowmore.errors import InvalidInput, KnowmoreError
from knowmore.estimators.linear import LinearGP, LinearGPClassifier, Survey
from knowmore.linalg import Grid, Sums


class Refreshed(NamedTuple):
    """What `refresh_sums` did, by the files of the rows.

    computed : which had no sums
    stale : which had others, and why these were computed again
    skipped : whose sums were right
    orphans : files of sums whose rows are gone; they were left alone
    """

    computed: list[Path]
    stale: dict[Path, str]
    skipped: list[Path]
    orphans: list[Path]


def refresh_sums(
    folder: str | PathLike[str],
    label: str | None = None,
    *,
    estimator: LinearGP | None = None,
    again: bool = False,
    progress: bool = False,
) -> Refreshed:
    """Write the sums of every file of rows in a folder beside it, where they are missing or stale.

    All are on one grid: that of the first sums which are right, or if there are none, one that
    covers all files. Then `fit(estimator, "folder/*.kms")` is a model of all rows.

    label : the column of the targets; None: `.npz` files have the arrays X and y
    estimator : None: a `LinearGPClassifier()`. Its resolution is that of a new grid.
    again : whether to compute all of them again, on a new grid
    progress : whether to draw a progress bar

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from knowmore.distributed import fit
    >>> X, y = np.random.default_rng(0).normal(size=(100, 3)), np.arange(100) % 2
    >>> with TemporaryDirectory() as folder:
    ...     for day in range(4):
    ...         np.savez(f"{folder}/{day}.npz", X=X[day::4], y=y[day::4])
    ...     found = refresh_sums(folder)
    ...     clf = fit(LinearGPClassifier(), f"{folder}/*.kms")
    ...     rest = clf.split(load_sums(f"{folder}/3.npz.kms"))
    >>> len(found.computed), rest.n_samples_
    (4, 75)
    """
    wanted = LinearGPClassifier() if estimator is None else estimator
    shards = shards_of(files_at(folder), None)
    new, stale, right = list[Path](), dict[Path, str](), list[Path]()
    grid: Grid | None = None
    for path in (shard.X for shard in shards):
        if not beside(path).exists():
            new.append(path)
        elif again:
            stale[path] = "all were to be computed again"
        else:
            found = _checked(path, label, wanted, grid)
            if isinstance(found, str):
                stale[path] = found
            else:
                right.append(path)
                grid = found
    if wrong := [shard for shard in shards if shard.X not in right]:
        with in_this_process():
            _compute(wrong, beside(right[0]) if right else None, label, wanted, progress)
    orphans = [sums for sums in sorted(Path(folder).glob("*.kms")) if not data_of(sums).exists()]
    return Refreshed(new, stale, right, orphans)


def _checked(path: Path, label: str | None, wanted: LinearGP, grid: Grid | None) -> Grid | str:
    """The grid of the sums beside a file, or why they cannot stay.

    grid : that of the others
    """
    try:
        stored = Stored.read(beside(path))
    except KnowmoreError:
        return "they could not be read"
    try:
        stored.held_by(wanted, beside(path))
    except KnowmoreError:
        return "they were for another kind of model or resolution"
    if stored.settings["label"] != label:
        return f"the targets were in {stored.settings['label']!r}"
    if grid is not None and stored.sums.grid != grid:
        return "the grid was not that of the others"
    return stored.stale(path) or stored.sums.grid


def _compute(
    shards: list[Shard], held: Path | None, label: str | None, wanted: LinearGP, progress: bool
) -> None:
    """Write the sums of these shards, on the grid of the sums `held`, or on a new one."""
    load, quiet = partial(read_examples, label=label), quiet_threads()
    start: Callable[[], LinearGP]
    if held is None:
        survey = merged(
            partial(Survey.of, wanted), Survey.merge, shards, load, label=label, progress=progress
        )
        start = survey.start
    else:
        start = partial(_emptied, held, wanted)

    def write(name: str, path: Path) -> None:
        with located(name), quiet():
            # If the file changes while it is read, its sums are stale at once.
            before = facts(path)
            X, y = examples(path, None, load, label)
            model = start()
            if np.shape(X)[0]:
                try:
                    model.partial_fit(X, y)
                except InvalidInput as error:
                    hint = "If a new grid is needed, compute all sums again: knowmore sums --again."
                    raise InvalidInput(f"{error} {hint}" if held else str(error)) from error
            write_sums(beside(path), model, before, label)

    computed(delayed(list)([delayed(write)(shard.name, shard.X) for shard in shards]), progress)


def _emptied(path: Path, wanted: LinearGP) -> LinearGP:
    """A fitted copy of the estimator without rows, on the grid of the sums in a file."""
    model = load_sums(path, wanted)
    model.model_ = model.model_.of(Sums(model.model_.sums.grid))
    return model
