"""Pictures in folders named after their classes, in tar archives, in lists, or one alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from knowmore.cli.sources.records import Block, Source, Wanted
from knowmore.errors import InvalidInput
from knowmore.images.sources import Listing, Picture, is_picture, listing

# Pictures in a block.
PICTURES = 256


def picture_source(path: Path, wanted: Wanted) -> Source:
    """Pictures; their labels are the names of their folders, their ids the paths from `path`."""
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

    def blocks() -> Iterator[Block]:
        for begin in range(0, len(pictures), PICTURES):
            part = pictures[begin : begin + PICTURES]
            labels = [one.label for one in part] if wanted.labelled else None
            names = [one.name for one in part]
            yield Block(part, labels, names, [None] * len(part), [repr(one) for one in names])

    return Source(name, blocks, pictures=True, skipped=skipped)
