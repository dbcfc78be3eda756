"""What a person is shown of an example: its picture, its text, or its first features.

Every face asks here, so that a kind of examples is shown alike on the page and on a terminal.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any

from knowmore._base import optional
from knowmore.errors import KnowmoreError
from knowmore.images import picture_in, small
from knowmore.store import Record, Store, content
from knowmore.tables import cells_of
from knowmore.workbench.describing import text_of
from knowmore.workbench.model import noted

# The longest side and the quality of a small picture.
SIDE, _QUALITY = 192, 85
# Features that are shown of an example.
_SHOWN = 12
# Characters of a text that are shown at once.
_CHARACTERS = 4000


def shown(
    columns: Sequence[str], row: Iterable[Any], *, picture: bool, text: str | None = None
) -> dict[str, Any]:
    """What is shown of an example, by the `kind` that says how.

    columns, row : the names and values of its features, or of its cells
    picture : whether it is a picture, which faces ask for by its id: `small_picture`
    text : its text, if it is one

    >>> shown(["length", "width"], [5.1, 3.5], picture=False)
    {'kind': 'features', 'values': {'length': 5.1, 'width': 3.5}, 'count': 2}
    >>> shown(["x0"], [0.5], picture=True)
    {'kind': 'picture'}
    >>> shown(["x0"], [0.5], picture=False, text="Good morning")
    {'kind': 'text', 'text': 'Good morning', 'more': 0}
    """
    if text is not None:
        more = max(len(text) - _CHARACTERS, 0)
        return {"kind": "text", "text": text[:_CHARACTERS], "more": more}
    if picture:
        return {"kind": "picture"}
    first = dict(zip(columns[:_SHOWN], row, strict=False))
    return {"kind": "features", "values": first, "count": len(columns)}


def shown_record(
    store: Store, record: Record, columns: Sequence[str], row: Iterable[float]
) -> dict[str, Any]:
    """What is shown of an example, held or put aside, by its record: as `shown` says it.

    columns, row : the names and values of its features
    """
    notes, table, kept = noted(store), store.table, record.thumbnail
    if table is not None and kept is not None:
        return shown(table.names, cells_of(kept), picture=False)
    text = text_of(notes, kept)
    return shown(columns, row, picture=notes.get("pictures") is not None, text=text)


def small_picture(store: Store, record: Record, side: int = SIDE) -> bytes | None:
    """A small picture of an example, as JPEG: of the one in the file, or where it was learnt from.

    None if it is not there any more, or not as it was learnt. Any thread may ask.

    side : its longest side; that of the one in the file is as it was learnt
    """
    one, data = record.id, record.thumbnail
    try:
        if data is None and isinstance(one, str) and record.origin is not None:
            found = picture_in(store.path.parent / record.origin, one)
            data = None if found is None else found.read()
            if found is None or content(data or b"", found.label) != record.content:
                return None
        return None if data is None else made_small(data, repr(one), side)
    except (KnowmoreError, OSError):
        return None


def made_small(data: bytes, name: str, side: int = SIDE, quality: int = _QUALITY) -> bytes:
    """An encoded picture, decoded, reduced and encoded as JPEG; name is for errors."""
    file, pixels = io.BytesIO(), small(data, name, side)
    optional("PIL.Image", "images").fromarray(pixels).save(file, "JPEG", quality=quality)
    return file.getvalue()
