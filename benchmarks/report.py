"""A page of the figures in a file of results, so that none is typed.

python -m benchmarks.report results/benchmarks.json > docs/results.md
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.table import quantity

_VERDICTS = {True: "met", False: "**missed**", None: ""}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("results", type=Path, help="what `python -m benchmarks` wrote")
    parser.add_argument("--earlier", type=Path, help="a page of older figures, to go at the end")
    options = parser.parse_args(arguments)
    results = json.loads(options.results.read_text(encoding="utf-8"))
    earlier = options.earlier.read_text(encoding="utf-8") if options.earlier else ""
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    sys.stdout.write(page(results, earlier))


def page(results: Mapping[str, Any], earlier: str = "") -> str:
    """The results as Markdown, then what was measured earlier."""
    blocks = ["# Measurements", *_introduction(results)]
    for group, rows in groupby(results["rows"], key=lambda row: str(row["group"])):
        blocks += [f"## {group}", "\n".join(_table(rows))]
    if earlier:
        blocks += ["## Measured before", earlier.strip()]
    return "\n\n".join(blocks) + "\n"


def _introduction(results: Mapping[str, Any]) -> Iterator[str]:
    machine, rows = results["machine"], results["rows"]
    yield (
        "This page is generated from the results of the benchmarks: `make results`. Times are "
        "medians; what is compared was run in turn. `best` is the ratio of the fastest runs, which "
        "other work on the machine disturbs least."
    )
    yield f"```\n{results['command']}\n```"
    versions = ", ".join(
        f"{name} {machine[key]}"
        for name, key in (("Python", "python"), ("NumPy", "numpy"), ("SciPy", "scipy"))
    )
    yield (
        f"{machine['processor']}, {machine['cores_allowed']} cores; {versions}, "
        f"scikit-learn {machine['scikit-learn']}."
    )
    if machine["load"] and machine["load"][0] > machine["cores_allowed"] / 2:
        yield (
            f"**The machine was busy:** its load was {machine['load'][0]:.1f} when the run began. "
            f"Times are longer than on a quiet machine, and ratios less certain."
        )
    if results["scale"]["name"] == "quick":
        yield "**Tiny sizes**, to see that it runs. The targets are about the full ones."
    held = [row["met"] for row in rows if row["met"] is not None]
    yield f"{sum(held)} of {len(held)} targets met."


def _table(rows: Iterator[Mapping[str, Any]]) -> Iterator[str]:
    yield "| | measured | against | ratio | best | target | |"
    yield "| --- | ---: | --- | ---: | ---: | ---: | --- |"
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", r"\|") for cell in _cells(row)) + " |"


def _cells(row: Mapping[str, Any]) -> list[str]:
    target, ratio, unit = row["target"], row["ratio"], row["unit"]
    against = [row["against"]] if row["against"] else []
    if row["reference"] is not None:
        against.append(quantity(row["reference"], unit))
    bound = "x" if ratio is not None else unit
    return [
        f"{row['name']} ({row['note']})" if row["note"] else row["name"],
        "-" if row["measured"] is None else quantity(row["measured"], unit),
        ": ".join(against),
        "" if ratio is None else quantity(ratio, "x"),
        "" if row["best_ratio"] is None else quantity(row["best_ratio"], "x"),
        f"{target['sign']} {quantity(target['bound'], bound)}" if target else "",
        _VERDICTS[row["met"]],
    ]


if __name__ == "__main__":
    main()
