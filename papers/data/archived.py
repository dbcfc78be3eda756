"""Pictures in one folder of an archive, which is read in place."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from knowmore.errors import InvalidInput, InvalidType
from knowmore.examples import Examples
from knowmore.images import Listing, listing
from papers.data.location import find


def archived(archive: str, folder: str, leave_out: Collection[str] = ()) -> Examples:
    """The pictures in a folder of an archive, without the classes `leave_out`.

    Names are paths relative to the folder.
    """
    if isinstance(leave_out, str):
        raise InvalidType(f"leave_out={leave_out!r} must be a list of classes: [{leave_out!r}].")
    path = find(archive)
    pictures = [
        replace(one, name=one.name.removeprefix(folder))
        for one in listing(path).pictures
        if one.name.startswith(folder)
    ]
    unknown = set(leave_out) - {picture.label for picture in pictures}
    if unknown:
        raise InvalidInput(
            f"leave_out names {min(unknown)!r}, but there is no such class in {archive}."
        )
    kept = tuple(picture for picture in pictures if picture.label not in leave_out)
    return Listing(kept, {}).examples(path)
