"""What commands print: data on standard output, talk on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from knowmore.cells import DIGITS
from knowmore.errors import InvalidInput

# Control characters would be commands to a terminal.
_VISIBLE = {i: f"\\x{i:02x}" for i in (*range(32), *range(127, 160))}
# Wider cells of a table are cut off; JSON has all of them.
_WIDEST = 100
Progress = Callable[[float, str], None]


def show_json(value: Any) -> None:
    """One line of JSON."""
    # What another encoding lacks would be written in a way that is not JSON's.
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    is_ascii = encoding.lower().replace("-", "") != "utf8"
    print(json.dumps(value, default=plain, ensure_ascii=is_ascii), flush=True)


def plain(value: Any) -> Any:
    """An array, a NumPy number, a time or a path as JSON has it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def talk(text: str) -> None:
    """A line for people, on standard error."""
    print(text, file=sys.stderr, flush=True)


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
    header = [name.translate(_VISIBLE) for name in header]
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


def cell_text(value: Any, digits: int = DIGITS) -> str:
    """A value as a cell of a table, a float with so many significant digits.

    >>> [cell_text(value) for value in (0.123456, 7, None, True, "two\\nlines", "\\x1b[2J")]
    ['0.1235', '7', '', 'yes', 'two lines', '\\\\x1b[2J']
    """
    if value is None or value is False:
        return ""
    if value is True:
        return "yes"
    text = f"{value:.{digits}g}" if isinstance(value, float) else " ".join(str(value).split())
    text = text.translate(_VISIBLE)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 3]}..."


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


def show_skipped(skipped: Mapping[str, str]) -> None:
    """Say what was skipped, and why."""
    for name, why in sorted(skipped.items()):
        talk(f"Skipped: {name!r} {why}")


def confirm(question: str, yes: bool) -> bool:
    """Ask on a terminal; elsewhere nobody is there to answer, and the command was clear."""
    if yes or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
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
    """How many examples, in words.

    >>> counted(1), counted(2)
    ('1 example', '2 examples')
    """
    return f"{examples} example{'s' if examples != 1 else ''}"
