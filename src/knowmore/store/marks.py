"""Keyed hashes of what was forgotten, so that neither `learn` nor `restore` brings it back.

A mark is a hash with a key that is in the file: whoever has neither the file nor the record learns
nothing from it. Whoever has the file and guesses an id or a content can find out whether a record
with that was forgotten here. The marks of features and labels that other examples lost are made of
the number and the time of a version: they say neither whose nor what these were.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from secrets import token_hex
from typing import Final, NamedTuple, final

from knowmore.edits import Id
from knowmore.store.codec import id_text
from knowmore.store.journal import Journal, Version

# The fact that has the key.
KEY: Final = "mark-key"
_SIZE: Final = 16


def new_key() -> str:
    """A random key, as text."""
    return token_hex(32)


@final
class Marked(NamedTuple):
    """What of a record was forgotten here and marked.

    id : all of an example with its id
    content : an example that was made from the same, under whatever id
    record : a version of the example with its id that was made from the same
    """

    id: bool = False
    content: bool = False
    record: bool = False


@final
class Marker:
    """Makes the marks of records with the key of a file.

    >>> marker = Marker("00" * 32)
    >>> marker.id(7) == marker.id(7), marker.id(7) == marker.id("7")
    (True, False)
    """

    def __init__(self, key: str) -> None:
        self._key = bytes.fromhex(key)

    def _mark(self, kind: bytes, *parts: bytes) -> bytes:
        made = blake2b(key=self._key, digest_size=_SIZE, person=kind)
        for part in parts:
            made.update(len(part).to_bytes(8))
            made.update(part)
        return made.digest()

    def id(self, one: Id) -> bytes:
        """The mark of an example that is gone."""
        return self._mark(b"id", id_text(one).encode())

    def content(self, content: bytes) -> bytes:
        """The mark of what an example was made from."""
        return self._mark(b"content", content)

    def record(self, one: Id, content: bytes) -> bytes:
        """The mark of a version: what an example was made from, under its id."""
        return self._mark(b"record", id_text(one).encode(), content)

    def features(self, version: Version) -> bytes:
        """The mark of the features of one version, which its example lost."""
        return self._mark(b"features", *_event(version))

    def label(self, version: Version) -> bytes:
        """The mark of the label of one version, which its example lost."""
        return self._mark(b"label", *_event(version))

    def found(self, marks: set[bytes], one: Id, content: bytes | None) -> Marked:
        """What of a record is among the marks."""
        if content is None:
            return Marked(self.id(one) in marks)
        every = (self.id(one), self.content(content), self.record(one, content))
        return Marked(*(each in marks for each in every))


def _event(version: Version) -> tuple[bytes, ...]:
    """A version in copies of one file, and in no other file."""
    return str(version.row).encode(), version.id.encode(), str(version.at).encode()


def mark(
    journal: Journal,
    key: str,
    gone: Iterable[Id],
    versions: Sequence[tuple[Id, Version]],
    features: Iterable[Version],
    labels: Iterable[Version],
) -> None:
    """Mark ids of which nothing is left, and versions whose vectors are about to be deleted.

    features, labels : versions that lose these, of examples that stay
    """
    marker = Marker(key)
    contents = {n: row[3] for n, row in journal.vectors(v.vector for _, v in versions).items()}
    marks = {marker.id(one) for one in gone}
    marks |= {*map(marker.features, features), *map(marker.label, labels)}
    for one, version in versions:
        content = contents[version.vector]
        if content is not None:
            marks |= {marker.content(content), marker.record(one, content)}
    known = {row[0] for row in journal.file.rows("forgotten")}
    journal.file.insert("forgotten", ((one,) for one in sorted(marks - known)))
