"""`knowmore sums`: what linear models need of the rows in a folder, in a file beside each shard."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from knowmore import LinearGPClassifier, LinearGPRegressor
from knowmore.distributed import Refreshed, refresh_sums


def run(
    folder: Path,
    *,
    label: str | None,
    weight: str | None,
    columns: str | None,
    bits: int | None,
    regression: bool,
    again: bool,
    as_json: bool,
) -> None:
    """Refresh the sums and print what was done."""
    kind = LinearGPRegressor if regression else LinearGPClassifier
    found = refresh_sums(
        folder,
        label,
        sample_weight=weight,
        columns=None if columns is None else columns.split(","),
        estimator=kind(resolution="exact" if bits == 42 else bits),
        again=again,
        progress=sys.stdout.isatty() and not as_json,
    )
    if as_json:
        print(json.dumps(found._asdict() | {"stale": _named(found)}, default=str))
    else:
        _report(found)


def _named(found: Refreshed) -> dict[str, str]:
    return {str(path): why for path, why in found.stale.items()}


def _report(found: Refreshed) -> None:
    for path in found.computed:
        print(f"Computed: {path}")
    for path, why in found.stale.items():
        print(f"Computed again: {path}: {why}")
    for path in found.orphans:
        if path in found.apart:
            why = "and the others are on a new grid. Models cannot learn both: delete it, or move "
            why += "it elsewhere."
        else:
            why = "but models still learn them. Delete it to forget them."
        print(f"Left alone: {path}: its rows are gone, {why}")
    done = f"{len(found.computed)} computed, {len(found.stale)} stale and computed again"
    done += f", {len(found.skipped)} up to date and skipped"
    left = f", {len(found.orphans)} left alone because their rows are gone" if found.orphans else ""
    print(f"{done}{left}.")
