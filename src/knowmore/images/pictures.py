"""Pictures that stay where they are: in folders, in tar archives, or wherever a list says.

What is listed as a picture goes by the end of its name; whether it is one shows when it is read.
Its label is the name of the folder it lies in, its id the way there from where the list begins.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import final

import numpy as np

from knowmore.errors import InvalidInput
from knowmore.examples import Examples
from knowmore.files import contents

ENDINGS = frozenset(
    [".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".pnm", ".ppm", ".tif", ".tiff"]
) | {".webp"}


@final
@dataclass(frozen=True)
class Picture:
    """A picture's name, and where its bytes are: `size` of them from `offset` on in a file.

    It may be read in any thread or process; nothing is held open.
    """

    name: str
    path: Path
    offset: int = 0
    size: int | None = None

    @property
    def label(self) -> str:
        """The name of the folder it lies in; empty outside all folders."""
        return PurePosixPath(self.name).parent.name

    def read(self) -> bytes:
        """The bytes of the encoded picture."""
        found = contents(self.path, repr(self.name), self.offset, self.size)
        if self.size not in (None, len(found)):
            raise InvalidInput(
                f"{self.name!r} is cut off: {str(self.path)!r} has changed since it was listed. "
                f"List it again."
            )
        return found


@final
@dataclass(frozen=True)
class Listing:
    """Pictures in the order of their names, and what could have been one: name and why not."""

    pictures: tuple[Picture, ...]
    skipped: Mapping[str, str]

    @classmethod
    def of(cls, pictures: Iterable[Picture], skipped: Mapping[str, str], source: Path) -> Listing:
        """A listing that has pictures, or an error."""
        found = tuple(sorted(pictures, key=lambda picture: picture.name))
        if not found:
            first = "".join(f" Skipped: {n!r} {why}." for n, why in list(skipped.items())[:1])
            raise InvalidInput(
                f"There is no picture in {str(source)!r}.{first} Pictures are files whose names "
                f"end in {', '.join(sorted(ENDINGS))}; hidden ones do not count."
            )
        return cls(found, dict(sorted(skipped.items())))

    def examples(self, source: Path) -> Examples:
        """All as examples; what would have to be left out is an error."""
        if self.skipped:
            shown = "; ".join(f"{name!r} {why}" for name, why in list(self.skipped.items())[:5])
            more = f"; and {len(self.skipped) - 5} more" if len(self.skipped) > 5 else ""
            raise InvalidInput(
                f"{str(source)!r} holds what is not read: {shown}{more}. Take it out, or put "
                f"copies of the pictures there."
            )
        return examples_of(self.pictures)


def examples_of(pictures: Iterable[Picture]) -> Examples:
    """X (n,) are the pictures themselves, labels their folders, ids their names."""
    pictures = tuple(pictures)
    X = np.empty(len(pictures), dtype=object)
    X[:] = pictures
    labels = np.array([picture.label for picture in pictures])
    return Examples.of(X, labels, tuple(picture.name for picture in pictures))


def is_picture(name: str) -> bool:
    """Does the name say so? Hidden files and those in hidden folders do not count."""
    path = PurePosixPath(name)
    hidden = any(part.startswith(".") and part != ".." for part in path.parts)
    return path.suffix.lower() in ENDINGS and not hidden


def unprintable(name: str) -> str | None:
    """Why a name cannot be an id, if it cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return "has a name that is not UTF-8"
    return None


def in_folder(root: Path) -> Listing:
    """The pictures in a folder and the folders in it. Nothing outside `root` is ever named."""
    inside = root.resolve()
    pictures, skipped = [], {}
    for folder, folders, files in os.walk(inside, onerror=_complain):
        for name in folders:
            if Path(folder, name).is_symlink() and not name.startswith("."):
                skipped[_relative(folder, name, inside)] = "is a link to a folder"
        for name in files:
            relative = _relative(folder, name, inside)
            if not is_picture(relative):
                continue
            # Path.resolve would raise at a link to itself.
            target = Path(os.path.realpath(Path(folder, name)))
            why = unprintable(relative) or _unfit(target, inside)
            if why is None:
                pictures.append(Picture(relative, target))
            else:
                skipped[relative] = why
    return Listing.of(pictures, skipped, root)


def _unfit(target: Path, inside: Path) -> str | None:
    """Why a file, all links followed, is not read, if so."""
    if not target.is_relative_to(inside):
        return "is a link that leads outside"
    if not target.is_file():
        return "is no file"
    return None


def _relative(folder: str, name: str, inside: Path) -> str:
    """A name as its bytes in UTF-8 say, whatever the language of the terminal makes of them."""
    path = Path(folder, name).relative_to(inside).as_posix()
    return os.fsencode(path).decode(errors="surrogateescape")


def _complain(error: OSError) -> None:
    raise InvalidInput(
        f"The folder {str(error.filename)!r} cannot be listed: {error.strerror}."
    ) from error
