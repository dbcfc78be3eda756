"""From the word on the command line to a source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from knowmore.cli.sources.records import Source, Wanted
from knowmore.errors import InvalidInput, MissingData

_LINES = (".jsonl", ".ndjson")
_TEXTS = (".csv", ".tsv")
# Archives of pictures, and lists of their names.
_LISTS = (".tar", ".txt")
_KINDS = (
    "a folder or .tar of pictures, a picture, .csv, .tsv, .parquet, .npz, .jsonl, or - for JSON "
    "lines on standard input"
)


def open_source(word: str, wanted: Wanted, *, streaming: bool = False) -> Source:
    """The source that a word on the command line names.

    streaming : answer while lines still come, and skip those that cannot be used
    """
    # Each is loaded only if it is needed: pictures take a second.
    if word == "-":
        from knowmore.cli.sources.lines import lines_source

        return lines_source(None, wanted, streaming=streaming)
    path = Path(word)
    if not path.exists():
        raise MissingData(f"There is no file or folder {word!r}. Check the path.")
    ending = "" if path.is_dir() else path.suffix.lower()
    if ending in _TEXTS:
        from knowmore.cli.sources.csvs import csv_source

        return csv_source(path, wanted)
    if ending in _LINES:
        from knowmore.cli.sources.lines import lines_source

        return lines_source(path, wanted)
    if ending == ".parquet":
        from knowmore.cli.sources.parquet import parquet_source

        return parquet_source(path, wanted)
    if ending == ".npz":
        from knowmore.cli.sources.arrays import npz_source

        return npz_source(path, wanted)
    if path.is_dir() or ending in _LISTS or _is_picture(path):
        from knowmore.cli.sources.pictures import picture_source

        return picture_source(path, wanted)
    hint = " It is a model: use `knowmore merge`." if ending == ".km" else ""
    raise InvalidInput(
        f"{word!r} cannot be read: its name ends in {ending!r}.{hint} Give {_KINDS}."
    )


def single_row(word: str, wanted: Wanted) -> tuple[Source, Any]:
    """The only record of a source, or of JSON on the command line: a row (1, d) or one picture."""
    from knowmore.cli.sources.lines import parsed

    is_json = word.lstrip()[:1] in ("{", "[") and not Path(word).exists()
    source = parsed(word, wanted) if is_json else open_source(word, wanted)
    found = [block for block in source.blocks() if len(block)]
    count = sum(map(len, found))
    if count != 1:
        raise InvalidInput(f"{word!r} has {count} records, but one is needed.")
    return source, found[0]


def _is_picture(path: Path) -> bool:
    from knowmore.images.sources import is_picture

    return is_picture(path.name)
