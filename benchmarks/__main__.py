"""The command: run the groups, print the table, write the file."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import (
    audit,
    bits,
    bulk,
    busy,
    choosing,
    deletions,
    drift,
    eigenspaces,
    exact,
    files,
    fit,
    forest,
    growth,
    histograms,
    insight_questions,
    limits,
    oneshot,
    parameters,
    peers,
    pictures,
    semantics,
    small,
    startup,
    streams,
    sums,
    transfer,
)
from benchmarks.scene import FULL, QUICK, Scale
from benchmarks.table import Benchmark, Row, in_words, show
from benchmarks.timing import machine

# Peers come last: torch starts its own threads.
GROUPS: dict[str, list[Benchmark]] = {
    "limits": limits.BENCHMARKS,
    "fit": fit.BENCHMARKS,
    "choosing": choosing.BENCHMARKS,
    "bulk": bulk.BENCHMARKS,
    "deletions": deletions.BENCHMARKS,
    "busy": busy.BENCHMARKS,
    "small": small.BENCHMARKS,
    "streams": streams.BENCHMARKS,
    "growth": growth.BENCHMARKS,
    "forest": forest.BENCHMARKS,
    "exact": exact.BENCHMARKS,
    "drift": drift.BENCHMARKS,
    "sums": sums.BENCHMARKS,
    "bits": bits.BENCHMARKS,
    "files": files.BENCHMARKS,
    "eigenspaces": eigenspaces.BENCHMARKS,
    "histograms": histograms.BENCHMARKS,
    "pictures": pictures.BENCHMARKS,
    "insight": insight_questions.BENCHMARKS,
    "oneshot": oneshot.BENCHMARKS,
    "audit": audit.BENCHMARKS,
    "parameters": parameters.BENCHMARKS,
    "transfer": transfer.BENCHMARKS,
    "semantics": semantics.BENCHMARKS,
    "startup": startup.BENCHMARKS,
    "peers": peers.BENCHMARKS,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmarks that the arguments name, and write the results."""
    names = [f"{group}.{one.__name__}" for group, all_ in GROUPS.items() for one in all_]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, epilog="names: " + ", ".join(names)
    )
    parser.add_argument("--only", action="append", metavar="NAME", help="a group, or group.name")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run at all?")
    parser.add_argument("--full", action="store_true", help="drift over 100,000 edits")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks.json"))
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = parser.parse_args(given)
    wanted = set(options.only or GROUPS)
    if unknown := wanted - set(GROUPS) - set(names):
        parser.error(f"no benchmark is named {', '.join(sorted(unknown))}")
    scale = QUICK if options.quick else FULL
    scale = replace(scale, drift=drift.Setting().edits) if options.full else scale
    facts, start = {"command": _command(given), "machine": machine()}, time.perf_counter()
    rows = list(_measured(scale, wanted))
    _finish(options.out, scale, facts, rows, time.perf_counter() - start)


def _command(given: Sequence[str]) -> str:
    """The command that repeats the measurement, without `--out`."""
    words, skip = ["python", "-m", "benchmarks"], False
    for word in given:
        if not skip and word != "--out" and not word.startswith("--out="):
            words.append(word)
        skip = word == "--out"
    return shlex.join(words)


def _measured(scale: Scale, wanted: set[str]) -> Iterator[tuple[str, str, float, Row]]:
    """Group, function, the seconds that it took so far, and the row."""
    for group, functions in GROUPS.items():
        for function in functions:
            name = f"{group}.{function.__name__}"
            if not wanted & {group, name}:
                continue
            print(f"{name} ...", file=sys.stderr, flush=True)
            start = time.perf_counter()
            for row in function(scale):
                print(f"  {in_words(row)}", file=sys.stderr, flush=True)
                yield group, name, time.perf_counter() - start, row


def _finish(
    out: Path,
    scale: Scale,
    facts: dict[str, Any],
    rows: list[tuple[str, str, float, Row]],
    seconds: float,
) -> None:
    console = Console()
    show([(group, row) for group, _, _, row in rows], _wide(console))
    missed = sum(row.met is False for *_, row in rows)
    held = sum(row.met is not None for *_, row in rows)
    console.print(f"{held - missed} of {held} targets met, in {seconds:.0f} s.")
    if scale.name == "quick":
        console.print("Tiny sizes: it runs. The targets speak of the full ones.")
    records = [
        {"group": group, "benchmark": name, "elapsed": elapsed} | row.record()
        for group, name, elapsed, row in rows
    ]
    out.parent.mkdir(parents=True, exist_ok=True)
    content = facts | {"scale": vars(scale), "seconds": seconds, "rows": records}
    out.write_text(json.dumps(content, indent=1))


def _wide(console: Console) -> Console:
    """A file has no width; a table wants one."""
    return console if console.is_terminal else Console(width=140)


if __name__ == "__main__":
    main()
