"""Output of the commands: data on standard output, talk on standard error."""

from __future__ import annotations

import csv
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from knowmore.distributed import Refreshed
    from knowmore.workbench import WordsExplanation

# Wider cells of a table are cut off on a terminal.
_WIDEST = 100
# What is printed of each record by a classifier, and by a regressor.
# Numbers in names are sorted as if each had so many digits.
_DIGITS = 20
_CLASSES = ("id", "label", "probability", "std", "unknown")
_VALUES = ("id", "value", "std")
Progress = Callable[[float, str], None]


def show_json(value: Any) -> None:
    """Print a value as a line of JSON."""
    # What another encoding lacks would be written in a way that is not JSON's.
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    is_ascii = encoding.lower().replace("-", "") != "utf8"
    print(json.dumps(value, default=plain, ensure_ascii=is_ascii), flush=True)


def plain(value: Any) -> Any:
    """An array, a NumPy number, a time or a path as JSON has it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def say(text: str) -> None:
    """Lines for people, on standard output."""
    from knowmore._base import visible

    print(visible(text), flush=True)


def talk(text: str) -> None:
    """Lines for people, on standard error."""
    from knowmore._base import visible

    print(visible(text), file=sys.stderr, flush=True)


def show_table(
    header: Sequence[str],
    rows: Sequence[Sequence[Any]],
    widths: Sequence[int] | None = None,
    digits: Mapping[str, int] = MappingProxyType({}),
) -> list[int]:
    """Print aligned columns, numbers to the right; returns their widths.

    widths : those of a table that goes on; then the header is not printed again
    digits : the number of significant digits by column; the others have four
    """
    from knowmore._base import DIGITS, visible

    header = [visible(" ".join(name.split())) for name in header]
    figures = [digits.get(name, DIGITS) for name in header]
    cells = [[cell_text(*cell) for cell in zip(row, figures, strict=True)] for row in rows]
    numeric = [[_is_number(cell) for cell in row] for row in rows]
    if widths is None:
        columns = list(zip(header, *cells, strict=True))
        widths = [max(map(len, column)) for column in columns]
        right = [any(column) for column in zip(*numeric, strict=True)] or [False] * len(header)
        print(_bold(_line(header, widths, right)))
    for texts, right in zip(cells, numeric, strict=True):
        print(_line(texts, widths, right))
    return list(widths)


def show_rows(rows: Sequence[Mapping[str, Any]], as_json: bool = False) -> None:
    """Print dictionaries of the same keys as a table, if there are any, or as JSON."""
    if as_json:
        show_json(rows)
    elif rows:
        short = [dict(row) | {"text": brief(row["text"])} if "text" in row else row for row in rows]
        show_table(list(rows[0]), [list(row.values()) for row in short])


def show_predictions(found: Iterable[Any], is_classifier: bool, form: str) -> None:
    """Print predictions as they come: as a table, as CSV or as JSON lines.

    found : the ids of the records in each block, the predictions for them, and their texts, which
        a table shows
    """
    from knowmore._base import digits_of, written_cell

    writer = csv.writer(sys.stdout, lineterminator="\n")
    columns = _CLASSES if is_classifier else _VALUES
    widths: list[int] | None = None
    if form == "csv":
        writer.writerow(columns)
    for ids, predictions, texts in found:
        rows = [
            [name, *prediction] if is_classifier else [name, prediction.label, prediction.std]
            for name, prediction in zip(ids, predictions, strict=True)
        ]
        if form == "json":
            for row in rows:
                show_json(dict(zip(columns, row, strict=True)))
        elif form == "csv":
            writer.writerows(
                ["" if cell is None else written_cell(cell) for cell in row] for row in rows
            )
            sys.stdout.flush()
        else:
            digits, header = {"value": digits_of(row[1] for row in rows)}, [*columns]
            if texts is not None:
                header.append("text")
                rows = [[*row, brief(text)] for row, text in zip(rows, texts, strict=True)]
            widths = show_table(header, rows, widths, digits)
            sys.stdout.flush()


def show_words(found: WordsExplanation, count: int, as_json: bool) -> None:
    """Print the score of a text, and what its words do to it."""
    from knowmore._base import digits_of

    words = [one.row() for one in found.words[:count]]
    if as_json:
        show_json({"label": found.label, "score": found.score, "words": words})
        return
    digits = digits_of([found.score])
    say(f"{found.label}: score {found.score:.{digits}g}; the effect of each word on it:")
    show_rows(words)
    if found.left_out:
        talk(f"The text has {found.left_out} more words, which were not tried.")


def brief(text: str | None, most: int = 60) -> str:
    """The beginning of a text on one line, without what a terminal would obey.

    >>> brief("Two\\n  lines"), brief("long " * 3, 8), brief("\\x1b[2J")
    ('Two lines', 'long ...', '\\\\x1b[2J')
    """
    from knowmore._base import visible

    words = visible(" ".join((text or "")[: 4 * most].split()))
    return words if len(words) <= most else f"{words[: most - 3]}..."


def brief_cells(cells: Mapping[str, Any]) -> str:
    """The first cells of a row with the names of their columns.

    >>> brief_cells({"island": "Dream", "mass": 4200.0, "ringed": None, "wild": True})
    'island Dream, mass 4200, wild yes'
    """
    shown = (
        f"{name} {cell_text(cell, 4) or 'no'}" for name, cell in cells.items() if cell is not None
    )
    return brief(", ".join(shown))


def cell_text(value: Any, digits: int) -> str:
    """A value as a cell of a table, a float with so many significant digits.

    >>> [cell_text(value, 4) for value in (0.123456, 7, None, True, "two\\nlines", "\\x1b[2J")]
    ['0.1235', '7', '', 'yes', 'two lines', '\\\\x1b[2J']
    """
    from knowmore._base import visible

    if value is None or value is False:
        return ""
    if value is True:
        return "yes"
    text = f"{value:.{digits}g}" if isinstance(value, float) else " ".join(str(value).split())
    text = visible(text)
    return text if len(text) <= _WIDEST or not sys.stdout.isatty() else f"{text[: _WIDEST - 3]}..."


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _line(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    aligned = (
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, numeric, strict=True)
    )
    return "  ".join(aligned).rstrip()


def _bold(text: str) -> str:
    plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb" or not sys.stdout.isatty()
    return text if plain else f"\x1b[1m{text}\x1b[0m"


def show_refreshed(found: Refreshed, as_json: bool) -> None:
    """Print which sums of a folder were computed, skipped and left alone."""
    if as_json:
        names = ("computed", "stale", "skipped", "orphans", "apart")
        stale = {str(path): why for path, why in found.stale.items()}
        show_json({name: getattr(found, name) for name in names} | {"stale": stale})
        return
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


def show_skipped(skipped: Mapping[str, str]) -> None:
    """Say what was skipped, and why: line 12 before line 101."""
    for name, why in sorted(skipped.items(), key=lambda one: _in_order(one[0])):
        talk(f"Skipped: {name!r} {why}")


def _in_order(name: str) -> str:
    """What names are sorted by, so that their numbers count as such.

    >>> sorted(["line 101", "line 12"], key=_in_order)
    ['line 12', 'line 101']
    """
    return re.sub(r"\d+", lambda digits: digits.group().zfill(_DIGITS), name)


def show_left_out(left: Mapping[str, str]) -> None:
    """Say which columns of a first table do not count, why, and how they would."""
    for column, why in left.items():
        name = shlex.quote(column)
        remedy = f" To learn texts: --text {name}. Names of levels all the same: --category {name}"
        blank = why.endswith("blank")
        talk(f"The column {column!r} {why}: it is left out.{'' if blank else remedy}")


def confirm(question: str, yes: bool) -> bool:
    """Ask on a terminal; elsewhere nobody is there to answer, and the command was clear."""
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    from knowmore._base import visible

    print(f"{visible(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


@contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """A progress bar on standard error, if that is a terminal. Fits report to it by themselves."""
    if not sys.stderr.isatty():
        yield lambda share, step: None
        return
    from knowmore import progress
    from knowmore.cli.experiments import progress_bar as bar

    with bar() as report, progress(lambda share: report(share, what)):
        report(0.0, what)
        yield report


def lines_of(path: str) -> list[str]:
    """The lines of a text file, or of standard input for "-", without blank ones."""
    from knowmore.errors import InvalidInput

    try:
        if path == "-":
            text = sys.stdin.read()
        else:
            with open(path, encoding="utf-8-sig") as file:
                text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InvalidInput(f"{path!r} cannot be read: {why}.") from error
    found = [line.strip() for line in text.split("\n") if line.strip()]
    if not found:
        raise InvalidInput(f"{path!r} has no ids in it. Write one on each line.")
    return found


def forgotten_in_words(gone: int, changed: int) -> str:
    """Examples that are forgotten, and features or labels of others.

    >>> forgotten_in_words(2, 0), forgotten_in_words(1, 2)
    ('2 examples', '1 example and features or labels of 2 others')
    """
    if not changed:
        return counted(gone)
    if not gone:
        return f"features or labels of {counted(changed)}"
    return f"{counted(gone)} and features or labels of {changed} other{'s' * (changed != 1)}"


def counted(examples: int) -> str:
    """A number of examples in words.

    >>> counted(1), counted(2)
    ('1 example', '2 examples')
    """
    return f"{examples} example{'s' if examples != 1 else ''}"
