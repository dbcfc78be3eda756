"""Sources of records to teach a model or ask it about: tables, arrays, streams, pictures.

A source is read in blocks of records: an id, a label, numbers or a picture, and a contributor.
Whatever is wrong with it is said in one line that names the place.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from knowmore.errors import InvalidInput, MissingData
from knowmore.workbench.sources.records import RecordBlock as RecordBlock
from knowmore.workbench.sources.records import Source as Source
from knowmore.workbench.sources.records import Wanted as Wanted
from knowmore.workbench.sources.records import content_id as content_id

_LINES = (".jsonl", ".ndjson")
_TEXTS = (".csv", ".tsv")
# Archives of pictures, and lists of their names.
_LISTS = (".tar", ".txt")
# Pictures in a block.
_PICTURES = 256
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
        from knowmore.workbench.sources.texts import lines_source

        return lines_source(None, wanted, streaming=streaming)
    path = Path(word)
    if not path.exists():
        raise MissingData(f"There is no file or folder {word!r}. Check the path.")
    ending = "" if path.is_dir() else path.suffix.lower()
    if ending in _TEXTS:
        from knowmore.workbench.sources.texts import csv_source

        return csv_source(path, wanted)
    if ending in _LINES:
        from knowmore.workbench.sources.texts import lines_source

        return lines_source(path, wanted)
    if ending == ".parquet":
        from knowmore.workbench.sources.arrays import parquet_source

        return parquet_source(path, wanted)
    if ending == ".npz":
        from knowmore.workbench.sources.arrays import npz_source

        return npz_source(path, wanted)
    if path.is_dir() or ending in _LISTS or _is_picture(path):
        return _picture_source(path, wanted)
    hint = " It is a model: use `knowmore merge`." if ending == ".km" else ""
    raise InvalidInput(
        f"{word!r} cannot be read: its name ends in {ending!r}.{hint} Give {_KINDS}."
    )


def single_row(word: str, wanted: Wanted) -> tuple[Source, Any]:
    """The only record of a source, or of JSON on the command line: a row (1, d) or one picture."""
    from knowmore.workbench.sources.texts import parsed

    is_json = word.lstrip()[:1] in ("{", "[") and not Path(word).exists()
    source = parsed(word, wanted) if is_json else open_source(word, wanted)
    found = [block for block in source.blocks() if len(block)]
    count = sum(map(len, found))
    if count != 1:
        raise InvalidInput(f"{word!r} has {count} records, but one is needed.")
    return source, found[0]


def _is_picture(path: Path) -> bool:
    from knowmore.images import is_picture

    return is_picture(path.name)


def _picture_source(path: Path, wanted: Wanted) -> Source:
    """Pictures in folders, an archive or a list, or one alone.

    Labels are the names of the folders, ids the paths from `path`.
    """
    from knowmore.images import Listing, Picture, is_picture, listing

    name = str(path)
    alone = path.is_file() and is_picture(path.name)
    found = Listing((Picture(path.name, path),), {}) if alone else listing(path)
    pictures, skipped = found.pictures, dict(found.skipped)
    if wanted.labelled:
        if not any(one.label for one in pictures):
            raise InvalidInput(
                f"{name!r} holds pictures, but no folders. A label is the name of a folder: put "
                f"the pictures of each class into one."
            )
        skipped |= {
            one.name: "is in no folder, so it has no label" for one in pictures if not one.label
        }
        pictures = tuple(one for one in pictures if one.label)

    def blocks() -> Iterator[RecordBlock]:
        for begin in range(0, len(pictures), _PICTURES):
            part = pictures[begin : begin + _PICTURES]
            labels = [one.label for one in part] if wanted.labelled else None
            names = [one.name for one in part]
            yield RecordBlock(part, labels, names, [None] * len(part), [repr(one) for one in names])

    return Source(name, blocks, pictures=True, skipped=skipped)
