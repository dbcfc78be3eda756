"""Texts that are in no table: folders of .txt files, one such file, one text in quotation marks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from knowmore.errors import InvalidInput
from knowmore.texts import read_text, texts_in
from knowmore.workbench.sources.records import ROWS, RecordBlock, Source, Wanted


def one_text(text: str) -> Source:
    """A text from the command line."""
    block = RecordBlock([text], None, None, [None], ["the text"])
    return Source("the text", lambda: iter([block]), holds="texts")


def prose_source(path: Path, wanted: Wanted) -> Source:
    """The .txt files of a folder, or one of them.

    Labels are the names of the folders, ids the paths from `path`.
    """
    name = str(path)
    files, skipped = ({path.name: path}, {}) if path.is_file() else texts_in(path)
    if wanted.labelled:
        alone = {one: "is in no folder, so it has no label." for one in files if not _label(one)}
        files = {one: file for one, file in files.items() if one not in alone}
        skipped |= alone
    if not files:
        first = "".join(f" Skipped: {one!r} {why}" for one, why in list(skipped.items())[:1])
        raise InvalidInput(
            f"There is no text in {name!r}.{first} Give a folder of .txt files"
            f"{', in a folder for each class' if wanted.labelled else ''}, or a table."
        )

    def blocks() -> Iterator[RecordBlock]:
        names = [*files]
        for begin in range(0, len(names), ROWS):
            read = {one: read_text(files[one]) for one in names[begin : begin + ROWS]}
            skipped.update({one: why for one, (_, why) in read.items() if why is not None})
            part = {one: text for one, (text, why) in read.items() if why is None}
            labels = [*map(_label, part)] if wanted.labelled else None
            texts, places = [*part.values()], [repr(one) for one in part]
            yield RecordBlock(texts, labels, [*part], [None] * len(part), places)

    return Source(name, blocks, holds="texts", skipped=skipped, in_folders=True)


def _label(name: str) -> str:
    """The name of the folder of a file; empty outside all folders."""
    return PurePosixPath(name).parent.name
