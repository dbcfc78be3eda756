"""Sources of pictures: folders, tar archives, and text files with a path on each line.

A file is listed as a picture by the end of its name; whether it is one shows when it is read. Its
label is the name of its folder, its id the path from the source to it. Archives are read in place
and never unpacked.
"""

from __future__ import annotations

import os
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, final

import numpy as np

from knowmore._base import a_type, check_name, files_in, is_whole
from knowmore.errors import InvalidInput, InvalidType, MissingData, RepeatedId
from knowmore.examples import Examples

_ENDINGS = ".bmp, .gif, .jpeg, .jpg, .pbm, .pgm, .png, .pnm, .ppm, .tif, .tiff, .webp"
# More than any camera writes; a larger file is not read into memory as one picture.
MOST_BYTES = 2**28


# Which folder is the label, or a function of the name that gives it.
Label = int | Callable[[str], Any]


@final
@dataclass(frozen=True)
class Picture:
    """The name of a picture, and where its bytes are: `size` of them from `offset` on in a file.

    It can be read in any thread or process; no file is kept open.
    """

    name: str
    path: Path
    offset: int = 0
    size: int | None = None

    @property
    def label(self) -> str:
        """The name of its folder; empty for a picture outside all folders."""
        return PurePosixPath(self.name).parent.name

    def label_by(self, label: Label) -> Any:
        """The label by `label`: the name of a folder on the way to the picture, or a result.

        label : which of the folders from the outermost on, -1 being the nearest; or a function of
            the name
        """
        if callable(label):
            return label(self.name)
        folders = PurePosixPath(self.name).parent.parts
        if not folders:
            return ""
        if not -len(folders) <= label < len(folders):
            raise InvalidInput(
                f"label={label}, but {self.name!r} is in {len(folders)} folder(s). Count from 0, "
                f"the outermost, or back from -1, the nearest; or give a function of the name."
            )
        return folders[label]

    def read(self) -> bytes:
        """The bytes of the encoded picture."""
        found = contents(self.path, repr(self.name), self.offset, self.size)
        if self.size not in (None, len(found)):
            raise InvalidInput(f"{self.name!r} is cut off: {self.path} has changed. List it again.")
        return found


def contents(path: Path, name: str, offset: int = 0, size: int | None = None) -> bytes:
    """`size` bytes of a picture's file from `offset` on, or all of it. `name` is for errors."""
    wanted = path.stat().st_size if size is None else size
    if wanted > MOST_BYTES:
        raise InvalidInput(f"{name} has {wanted:,} bytes, more than the {MOST_BYTES:,} allowed.")
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(wanted)


@final
@dataclass(frozen=True)
class Listing:
    """Pictures in the order of their names; and the names of skipped files, with the reasons."""

    pictures: tuple[Picture, ...]
    skipped: Mapping[str, str]

    def examples(self, source: Path, label: Label = -1) -> Examples:
        """X (n,) are the pictures, ids their names. None may be skipped.

        label : as for `image_folder`
        """
        if self.skipped:
            name, why = next(iter(self.skipped.items()))
            count = f"{str(source)!r} has {len(self.skipped)} file(s) that are not read."
            raise InvalidInput(f"{count} The first, {name!r}, {why}. Remove or replace them.")
        X = np.array(self.pictures, dtype=object)
        labels = np.array([picture.label_by(label) for picture in self.pictures])
        return Examples.of(X, labels, tuple(picture.name for picture in self.pictures))


def image_folder(path: str | os.PathLike[str], *, label: Label = -1) -> Examples:
    """Pictures in folders named after their classes, on disk or in a tar archive.

    label : which of the folders on the way to a picture names its class: -1 the nearest, 0 the
        outermost, ...; or a function of the id, such as `lambda id: id.split("_")[0]`

    X (n,) are `Picture`s, which are read when needed; every transformer of `knowmore.images` takes
    them. Ids are the paths from `path` to them, such as "bedroom/image_0001.jpg", in alphabetical
    order. A picture outside all folders has an empty label. Hidden files and files with other
    endings are ignored. Links that lead outside and the like are refused; `listing` skips them and
    says why.
    """
    if not (callable(label) or is_whole(label)):
        raise InvalidType(f"label is {a_type(label)}. Give a whole number, or a function of ids.")
    return listing(path, lists=False).examples(Path(path), label)


def listing(source: str | os.PathLike[str], *, lists: bool = True) -> Listing:
    """The pictures of a folder, of a tar archive or, if `lists`, of a text file that names them."""
    check_name(source)
    path = Path(source)
    if not (path.is_dir() or path.is_file()):
        raise MissingData(f"There is no file or folder {str(source)!r}. Check the path.")
    try:
        if path.is_dir():
            entries = _in_folder(path)
        elif path.suffix == ".tar" or not lists or tarfile.is_tarfile(path):
            entries = _in_archive(path)
        else:
            entries = _in_list(path)
        # Of several members of one name the last counts, as when an archive is unpacked.
        found = sorted(dict(entries).items())
    except OSError as error:
        place = str(error.filename or source)
        raise InvalidInput(f"{place!r} cannot be read: {error.strerror or error}.") from error
    skipped = {name: why for name, why in found if isinstance(why, str)}
    # Bytes that are not UTF-8 were decoded to lone surrogates, which no id may have.
    damaged = [name for name, _ in found if name.encode(errors="ignore").decode() != name]
    skipped |= dict.fromkeys(damaged, "has a name that is not UTF-8")
    pictures = tuple(one for name, one in found if isinstance(one, Picture) and name not in skipped)
    if not pictures:
        first = "".join(f" Skipped: {name!r} {why}." for name, why in list(skipped.items())[:1])
        known = f"Names of pictures end in {_ENDINGS}; hidden files do not count."
        raise InvalidInput(f"There is no picture in {str(source)!r}.{first} {known}")
    return Listing(pictures, skipped)


def picture_in(source: Path, name: str) -> Picture | None:
    """The picture that a folder or an archive has under this name; None if there is none now.

    By the rules of `listing`, but without listing all of a folder.
    """
    try:
        if source.is_file():
            return _members(source, source.stat().st_mtime_ns).get(name)
        inside = Path(os.path.realpath(source))
        target = Path(os.path.realpath(inside / name))
        there = is_picture(name) and target.is_relative_to(inside) and target.is_file()
    except (InvalidInput, OSError, ValueError):
        # No archive, or no file can have such a name.
        return None
    return Picture(name, target) if there else None


@lru_cache(maxsize=2)
def _members(path: Path, changed: int) -> dict[str, Picture]:
    """The pictures of an archive that was changed last at that time."""
    return {name: one for name, one in dict(_in_archive(path)).items() if isinstance(one, Picture)}


# Each source yields names, and for each name the picture, or why it is skipped.
_Entries = Iterator[tuple[str, Picture | str]]


def _in_folder(root: Path) -> _Entries:
    """The pictures in a folder and its subfolders. Nothing outside `root` is ever named."""
    for name, found in files_in(root, is_picture):
        yield name, found if isinstance(found, str) else Picture(name, found)


def _in_archive(path: Path) -> _Entries:
    """The pictures in a tar archive: their names, and where their bytes are."""
    try:
        # "r:" and not "r": in a compressed archive the members have no offsets.
        with path.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as archive:
            members = archive.getmembers()
            # tarfile takes damage for the end, which has a block of zeros.
            file.seek(archive.offset)
            if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
                raise tarfile.ReadError(f"its members break off at byte {archive.offset:,}")
    # Damaged headers make tarfile raise more than its own errors.
    except Exception as error:
        problem = f"{str(path)!r} cannot be read as a tar archive: {error}."
        raise InvalidInput(f"{problem} If it is compressed, unpack it to .tar first.") from error
    for member in members:
        # Without "./" and "//".
        name = str(PurePosixPath(member.name))
        if is_picture(name) and not member.isdir():
            found = Picture(name, path, member.offset_data, member.size)
            yield name, _refusal(member, name) or found


def _refusal(member: tarfile.TarInfo, name: str) -> str | None:
    """Why a member is skipped, if it is."""
    if name.startswith("/") or ".." in PurePosixPath(name).parts:
        return "has a name that leads outside"
    if member.issym() or member.islnk():
        return "is a link"
    if not member.isreg():
        return "is not a file"
    return "is stored with holes" if member.issparse() else None


def _in_list(path: Path) -> _Entries:
    """The pictures that a text file names, one on each line, relative to its folder.

    They may be anywhere: whoever wrote the list asked for them.
    """
    try:
        # Not splitlines, which also breaks names at rarer characters.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        kinds = "neither a folder, nor a tar archive, nor a list of files in UTF-8"
        raise InvalidInput(f"{str(path)!r} is {kinds}.") from error
    for name, times in Counter(filter(None, map(str.strip, lines))).items():
        if times > 1:
            raise RepeatedId(f"{str(path)!r} lists {name!r} more than once. List it once.")
        file = path.parent / name
        yield name, Picture(name, file) if os.path.isfile(file) else "is not a file"


def is_picture(name: str) -> bool:
    """Whether the name belongs to a picture that is neither hidden nor in a hidden folder."""
    path = PurePosixPath(name)
    hidden = any(part.startswith(".") and part != ".." for part in path.parts)
    return path.suffix.lower() in _ENDINGS.split(", ") and not hidden
