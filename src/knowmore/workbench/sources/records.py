"""Sources as they are opened: records in blocks, roles of columns, cells that must be numbers."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from knowmore._base import Array, Id, check_name, files_in, some
from knowmore.errors import InvalidInput, MissingData
from knowmore.store import content
from knowmore.tables import Encoding, Options, has_comma, json_of, not_a_number

if TYPE_CHECKING:
    # Only a source of pictures pays for loading what reads them.
    from knowmore.images import Picture

# What the records of a source are: rows of numbers, or what a describer turns into such rows.
Holds = Literal["numbers", "pictures", "texts", "cells"]
# Rows of a table are turned into numbers so many at a time.
ROWS = 4096
# Hexadecimal digits of a content hash that serve as an id.
_DIGITS = 16
CONTRIBUTOR, TEXT = "contributor", "text"
# How many columns at each end of a wide table an error names.
_END = 10
# A word that can be nothing but an object in JSON, or a misspelt one.
_OBJECT = re.compile(r'\s*\{\s*"')
# Errors of a cell that is converted and is no number.
_NO_NUMBER = (TypeError, ValueError, OverflowError)

_LINES = (".jsonl", ".ndjson")
_TEXTS = (".csv", ".tsv")
# Archives of pictures, and lists of their names.
_LISTS = (".tar", ".txt")
# Pictures in a block.
_PICTURES = 256
_KINDS = (
    "a folder of pictures or .txt files, a .tar of pictures, a picture, .csv, .tsv, .parquet, "
    ".npz, .jsonl, an export of Label Studio in .json, or - for JSON lines on standard input"
)


@final
@dataclass(frozen=True)
class Wanted:
    """Requirements on a source.

    label, id : the names of their columns; None: "label" and "id", if there are such
    columns : the features that the model knows, in its order; None if it knows no names
    labelled : whether there must be labels
    usual_label, usual_id : what the model calls these columns
    holds : what the model has learnt; None if it holds nothing
    gaps : whether a cell of a table without a finite number is NaN; else it is an error
    table : the columns that the model knows by their types; None if it has learnt numbers
    options : what the user said of the columns of a new model's table
    text : the name of the column of texts, if the source has texts to learn
    usual_text : what the model calls this column; None if it has learnt no texts
    """

    label: str | None = None
    id: str | None = None
    columns: tuple[str, ...] | None = None
    labelled: bool = True
    usual_label: str | None = None
    usual_id: str | None = None
    gaps: bool = False
    table: Encoding | None = None
    options: Options = field(default_factory=Options)
    text: str | None = None
    usual_text: str | None = None
    holds: Holds | None = None

    @property
    def texts(self) -> bool:
        """Whether the records are texts."""
        return self.text is not None or self.usual_text is not None


class NotNumbers(InvalidInput):
    """A cell that is no number, in a table that was read as numbers."""


@final
@dataclass(frozen=True, eq=False)
class RecordBlock:
    """Some records of a source, in order.

    X : numbers (k, d), or k pictures, texts, or rows of cells: see `Source.holds`
    labels : k, or None if the source has none
    ids : k, or None if the source has none
    contributors : k, each None if it is not known
    places : where each is in the source, for errors: "line 7"
    origins : k names of where each comes from, if that is not the source; None if none has one
    """

    X: Array | Sequence[Picture | str | tuple[Any, ...]]
    labels: Sequence[Any] | None
    ids: Sequence[Id] | None
    contributors: Sequence[str | None]
    places: Sequence[str]
    origins: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.places)

    def contents(self) -> list[bytes]:
        """The SHA-256 of each record and of the label that the source gives it; of no picture.

        With that label, and not the one held: a label that was corrected by hand stays corrected
        when the same source is learnt again.
        """
        labels = [None] * len(self) if self.labels is None else self.labels
        data = map(record_bytes, self.X)
        return [content(each, label) for each, label in zip(data, labels, strict=True)]


def record_bytes(record: Any) -> bytes:
    """A row of numbers, a text, or a row of cells as bytes: equal for equal records.

    A row of cells that are all numbers equals the row of these numbers.

    >>> record_bytes(("Biscoe", None, 4200.0)), record_bytes("Good morning")
    (b'["Biscoe",null,4200.0]', b'Good morning')
    >>> record_bytes((1.0, 2.0)) == record_bytes([1, 2])
    True
    """
    if isinstance(record, str):
        return record.encode(errors="surrogatepass")
    if isinstance(record, tuple) and any(type(cell) is not float for cell in record):
        return json_of(record)
    return np.ascontiguousarray(record, dtype="<f8").tobytes()


def content_id(digest: bytes) -> str:
    """The id of an example that has no other name.

    >>> content_id(content(b"", "rose"))
    'a7f92d3a0b180d0d'
    """
    return digest.hex()[:_DIGITS]


@final
@dataclass(frozen=True, eq=False)
class Source:
    """Something to read records from, perhaps only once.

    name : as the user wrote it
    blocks : the records
    columns : the names of the features, or of the cells of a row, if the source has them
    holds : what its records are
    about : how the features in it were made from pictures, if they were
    words : where the visual words of these features may be
    skipped : what cannot be read, and why, by name; grows while blocks are read
    ignored : columns that the model does not know, and does without
    label, id, contributor, text : the names of these columns, if there are such
    table : the columns of rows of cells, by their types
    cells : the same source as rows of cells; None if it has none to give
    in_folders : whether labels are the names of folders, and ids the paths of files
    """

    name: str
    blocks: Callable[[], Iterator[RecordBlock]] = lambda: iter(())
    columns: tuple[str, ...] | None = None
    holds: Holds = "numbers"
    about: Mapping[str, Any] | None = None
    words: Any = None
    skipped: dict[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    label: str | None = None
    id: str | None = None
    contributor: str | None = None
    table: Encoding | None = None
    cells: Callable[[], Source] | None = None
    text: str | None = None
    in_folders: bool = False

    @property
    def pictures(self) -> bool:
        """Whether its records are pictures."""
        return self.holds == "pictures"

    @property
    def described(self) -> bool:
        """Whether a describer turns its records into vectors."""
        return self.holds != "numbers"


def layout(name: str, header: Sequence[str], wanted: Wanted) -> Source:
    """A table with the roles of its columns, still without its blocks."""
    twice = [column for column, times in Counter(header).items() if times > 1]
    if twice:
        raise InvalidInput(f"{name!r} has two columns {twice[0]!r}. Give each a name of its own.")
    if "" in header:
        place = list(header).index("") + 1
        raise InvalidInput(
            f"{name!r} has no name for column {place}. Give it one in the first line."
        )
    label = _role(name, header, wanted.label, (wanted.usual_label, "label"), "--label")
    id_ = _role(name, header, wanted.id, (wanted.usual_id, "id"), "--id")
    if wanted.labelled and label is None:
        raise InvalidInput(
            f"{name!r} has no column {wanted.usual_label or 'label'!r}. Name the one that holds "
            f"the labels: --label COLUMN. "
            f"There are {_columns(header)}."
        )
    contributor = CONTRIBUTOR if CONTRIBUTOR in header else None
    taken = {label, id_, contributor}
    there = [column for column in header if column not in taken]
    if wanted.texts:
        usual = wanted.usual_text or TEXT
        text = _role(name, header, wanted.text, (usual, TEXT), "--text")
        if text is None or text in taken:
            raise InvalidInput(
                f"{name!r} has no column {usual!r}. Name the one that holds the texts: --text "
                f"COLUMN. There are {_columns(header)}."
            )
        ignored = tuple(column for column in there if column != text)
        plan = Source(name, holds="texts", ignored=ignored, text=text)
        return replace(plan, label=label, id=id_, contributor=contributor)
    known = wanted.columns
    if known is None:
        if not there:
            raise InvalidInput(f"{name!r} has no columns of features, only {_columns(header)}.")
        known = _used(name, there, wanted.options)
    missing = [column for column in known if column not in header]
    if missing:
        raise InvalidInput(
            f"{name!r} has no column {missing[0]!r}, which the model has learnt from. The model "
            f"knows {some(known)}; the file has {_columns(header)}."
        )
    unknown = tuple(column for column in there if column not in known)
    strange = [column for column in unknown if not _left_out(column, wanted)]
    if strange and wanted.labelled:
        raise InvalidInput(
            f"{name!r} has a column {strange[0]!r}, which the model does not know. It has learnt "
            f"from {some(known)}. Take the column out."
        )
    return Source(
        name, columns=known, ignored=unknown, label=label, id=id_, contributor=contributor
    )


def _used(name: str, there: Sequence[str], options: Options) -> tuple[str, ...]:
    """The columns that count in a new model."""
    try:
        return options.used(there)
    except InvalidInput as error:
        raise InvalidInput(f"{name!r}: {error}") from None


def _left_out(column: str, wanted: Wanted) -> bool:
    """Whether a column does not count, as the model or the user says."""
    if wanted.table is None:
        return bool(wanted.options)
    options = wanted.table.options
    return options.columns is not None or column in (*options.ignore, *wanted.table.left_out)


def _columns(header: Sequence[str]) -> str:
    """All columns for an error; of very many, those at both ends."""
    shown = [repr(column) for column in header]
    if len(shown) > 2 * _END:
        shown[_END:-_END] = [f"{len(shown) - 2 * _END} more"]
    return ", ".join(shown)


def _role(
    name: str, header: Sequence[str], asked: str | None, usual: tuple[str | None, ...], option: str
) -> str | None:
    """The column with the labels or ids, if there is one."""
    if asked is None:
        return next((one for one in usual if one in header), None)
    if asked not in header:
        raise InvalidInput(
            f"{name!r} has no column {asked!r} for {option}. There are {_columns(header)}."
        )
    return asked


def numbers(
    name: str,
    rows: Sequence[Sequence[Any]],
    features: Sequence[str],
    places: Any,
    convert: Callable[[Any], float] = float,
    *,
    gaps: bool = False,
) -> Array:
    """Cells of rows as float64 (k, d); text and what is not finite is refused, by its place.

    gaps : text is NaN instead, and what is not finite stays
    """
    try:
        X = np.array([[convert(cell) for cell in row] for row in rows])
    except _NO_NUMBER:

        def number(cell: Any, place: str, column: str) -> float:
            try:
                return convert(cell)
            except _NO_NUMBER:
                if gaps:
                    return float("nan")
                where = f"{name!r}, {place}, column {column!r}"
                raise NotNumbers(f"{where}: {_problem(cell)}") from None

        X = np.array(
            [
                [number(cell, place, column) for cell, column in zip(row, features, strict=True)]
                for row, place in zip(rows, places, strict=True)
            ]
        )
    X = X.reshape(len(rows), len(features))
    if not gaps:
        check_finite(name, X, features, places)
    return X


def texts(name: str, cells: Sequence[Any], column: str, places: Sequence[str]) -> list[str]:
    """Cells of a column as texts; nothing is an empty one."""
    for cell, place in zip(cells, places, strict=True):
        if not (cell is None or isinstance(cell, str)):
            raise InvalidInput(
                f"{name!r}, {place}, column {column!r}: {_short(cell)} is not text. Name "
                f"the column that holds texts: --text COLUMN."
            )
    return [cell or "" for cell in cells]


def _problem(cell: Any) -> str:
    """Why a cell is no number, and what to do."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return "there is no value. Fill it in, or leave the row out."
    if has_comma(cell):
        return f"{not_a_number(cell)}."
    words = isinstance(cell, str) and bool(cell.split()[1:])
    texts = " To learn texts, name their column: --text COLUMN." * words
    return (
        f"{_short(cell)} is not a number. Features are numbers: take the column out, or say what "
        f"it is by --label or --id.{texts}"
    )


def check_finite(name: str, X: Array, features: Sequence[Any], places: Any) -> None:
    """Raise InvalidInput at the first NaN or infinity."""
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        i, j = np.argwhere(~np.isfinite(X))[0]
        value = "NaN, not a number" if np.isnan(X[i, j]) else "infinite"
        problem = NotNumbers if np.isnan(X[i, j]) else InvalidInput
        raise problem(
            f"{name!r}, {places[i]}, column {features[j]!r}: the value is {value}. Fill it in, or "
            f"leave the row out."
        )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _ids(name: str, values: Sequence[Any], places: Sequence[str]) -> list[Id]:
    """Ids, each a text that is not empty or a whole number."""
    for value, place in zip(values, places, strict=True):
        if value is None or value == "":
            raise InvalidInput(f"{name!r}, {place}: there is no id. Give every row one, or none.")
        if isinstance(value, bool) or not isinstance(value, (str, int)):
            raise InvalidInput(
                f"{name!r}, {place}: the id {_short(value)} is neither text nor a whole number."
            )
    return list(values)


def _labels(name: str, values: Sequence[Any], places: Sequence[str]) -> list[Any]:
    """Labels, each a text that is not empty, a number, or true or false."""
    for value, place in zip(values, places, strict=True):
        if value is None or value != value or (isinstance(value, str) and not value.strip()):
            raise InvalidInput(
                f"{name!r}, {place}: there is no label. Fill it in, or leave the row out."
            )
        if not isinstance(value, (str, int, float)):
            raise InvalidInput(
                f"{name!r}, {place}: {_short(value)} cannot be a label. Give text or a number."
            )
    return list(values)


def _contributors(name: str, values: Sequence[Any], places: Sequence[str]) -> list[str | None]:
    """Contributors, each a text; None where it is empty."""
    for value, place in zip(values, places, strict=True):
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"{name!r}, {place}: the contributor {_short(value)} is not text.")
    return [value or None for value in values]


def checked_block(
    name: str,
    X: Array,
    columns: tuple[Sequence[Any] | None, Sequence[Any] | None, Sequence[Any] | None],
    places: Sequence[str],
) -> RecordBlock:
    """Rows of a table with their labels, ids and contributors, each None if there is no column."""
    labels, ids, contributors = columns
    return RecordBlock(
        X,
        None if labels is None else _labels(name, labels, places),
        None if ids is None else _ids(name, ids, places),
        _contributors(name, contributors or [None] * len(X), places),
        places,
    )


# -- opening ---------------------------------------------------------------------------------------


def open_source(word: str, wanted: Wanted, *, streaming: bool = False) -> Source:
    """The source that a word on the command line names.

    streaming : answer while lines still come, and skip those that cannot be used
    """
    # Each is loaded only if it is needed: pictures take a second.
    if word == "-":
        from knowmore.workbench.sources.texts import lines_source

        return lines_source(None, wanted, streaming=streaming)
    if not wanted.labelled and is_json(word, wanted):
        from knowmore.workbench.sources.texts import parsed

        return parsed(word, wanted)
    path = Path(word)
    if wanted.texts and is_prose(word):
        from knowmore.workbench.sources.prose import one_text

        return one_text(word)
    check_name(word)
    if not _is_there(word):
        key = wanted.usual_text or TEXT
        alone = f" A text of one word is JSON: {{{json.dumps(key)}: ...}}."
        hint = alone if wanted.texts and not wanted.labelled else ""
        raise MissingData(f"There is no file or folder {word!r}. Check the path.{hint}")
    ending = "" if path.is_dir() else path.suffix.lower()
    if ending in _TEXTS:
        from knowmore.workbench.sources.texts import csv_source

        return csv_source(path, wanted)
    if ending in _LINES:
        from knowmore.workbench.sources.texts import lines_source

        return lines_source(path, wanted)
    if ending == ".json":
        from knowmore.workbench.sources.label_studio import export_source

        return export_source(path, wanted)
    if ending == ".parquet":
        from knowmore.workbench.sources.arrays import parquet_source

        return parquet_source(path, wanted)
    if ending == ".npz":
        from knowmore.workbench.sources.arrays import npz_source

        return npz_source(path, wanted)
    if (path.is_dir() and _has_texts(path, wanted)) or (wanted.texts and ending == ".txt"):
        from knowmore.workbench.sources.prose import prose_source

        return prose_source(path, wanted)
    if path.is_dir() or ending in _LISTS or _is_picture(path):
        return _picture_source(path, wanted)
    hint = " It is a model: use `knowmore merge`." if ending == ".km" else ""
    raise InvalidInput(
        f"{word!r} cannot be read: its name ends in {ending!r}.{hint} Give {_KINDS}."
    )


def single_row(word: str, wanted: Wanted) -> tuple[Source, Any]:
    """The only record of a source, or of JSON on the command line: a row (1, d) or one picture."""
    source = open_source(word, wanted)
    found = [block for block in source.blocks() if len(block)]
    count = sum(map(len, found))
    if count != 1:
        raise InvalidInput(f"{word!r} has {count} records, but one is needed.")
    return source, found[0]


def is_prose(word: str) -> bool:
    """Whether a word of the command line is a text: it has blanks and names no file.

    >>> is_prose("Win money now"), is_prose("letters.csv")
    (True, False)
    """
    return bool(word.split()[1:]) and not _is_there(word)


def is_json(word: str, wanted: Wanted) -> bool:
    """Whether a word of the command line is a row as JSON: it has a bracket and names no file.

    >>> is_json("[5.1, 3.5]", Wanted()), is_json("[New] Win money", Wanted(text="body"))
    (True, False)
    """
    if word.lstrip()[:1] not in ("{", "[") or _is_there(word):
        return False
    if not wanted.texts or _OBJECT.match(word):
        return True
    # A text may begin with a bracket, too.
    try:
        json.loads(word)
    except (ValueError, RecursionError):
        return False
    return True


def _is_there(word: str) -> bool:
    try:
        return Path(word).exists()
    except (OSError, ValueError):
        # It is too long for a name, or has a NUL character.
        return False


def _has_texts(path: Path, wanted: Wanted) -> bool:
    """Whether a folder holds texts: if it is asked for, or if it has .txt files and no pictures."""
    if wanted.texts:
        return True
    from knowmore.images import is_picture
    from knowmore.texts import is_text

    names = [name for name, _ in files_in(path, lambda name: is_picture(name) or is_text(name))]
    return bool(names) and all(map(is_text, names))


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

    return Source(name, blocks, holds="pictures", skipped=skipped, in_folders=True)
