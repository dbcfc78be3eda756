"""What a model says of the records of a source, printed as they come."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from knowmore.cells import digits_of, written_cell
from knowmore.cli.model import Model
from knowmore.cli.showing import show_json, show_table
from knowmore.cli.sources import Source
from knowmore.store.predicting import Answer, Predictor

CLASSES = ("id", "label", "probability", "std", "unknown")
VALUES = ("id", "value", "std")


def columns_of(predictor: Predictor) -> tuple[str, ...]:
    """The names of what is said of a record."""
    return CLASSES if predictor.is_classifier else VALUES


def predictions(
    model: Model, sources: Sequence[Source], predictor: Predictor
) -> Iterator[tuple[list[Any], list[list[Any]]]]:
    """The ids of the records in each block, and the answers about them.

    Records without ids are numbered, through all sources.
    """
    done = 0
    for source, block in ((one, block) for one in sources for block in one.blocks()):
        X, kept = model.rows(source, block)
        ids = [*range(done, done + len(block))] if block.ids is None else list(block.ids)
        done += len(block)
        if X is not None:
            yield [ids[i] for i in kept], [_told(answer, predictor) for answer in predictor(X)]


def _told(answer: Answer, predictor: Predictor) -> list[Any]:
    """What the columns say, without the id."""
    return list(answer) if predictor.is_classifier else [answer.label, answer.std]


def show(found: Iterator[Any], columns: tuple[str, ...], form: str) -> None:
    """Print the answers as they come: as a table, as CSV or as JSON lines."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    widths: list[int] | None = None
    if form == "csv":
        writer.writerow(columns)
    for ids, answers in found:
        rows = [[one, *answer] for one, answer in zip(ids, answers, strict=True)]
        if form == "json":
            for row in rows:
                show_json(dict(zip(columns, row, strict=True)))
        elif form == "csv":
            writer.writerows(
                ["" if cell is None else written_cell(cell) for cell in row] for row in rows
            )
            sys.stdout.flush()
        else:
            digits = {"value": digits_of(answer[0] for answer in answers)}
            widths = show_table(columns, rows, widths, digits)
            sys.stdout.flush()
