"""Pictures in tar archives, which are read in place and never unpacked."""

from __future__ import annotations

import tarfile
from pathlib import Path, PurePosixPath

from knowmore.errors import InvalidInput
from knowmore.images.pictures import Listing, Picture, is_picture, unprintable


def in_archive(path: Path) -> Listing:
    """The pictures in a tar archive: their names and where their bytes are."""
    try:
        # "r:" and not "r": inside a compressed archive nothing has a place of its own.
        with tarfile.open(path, "r:") as archive:
            members = archive.getmembers()
            _check_end(path, archive.offset)
    # Damaged headers make it raise more than its own errors.
    except Exception as error:
        raise InvalidInput(
            f"{str(path)!r} cannot be read as a tar archive: {error}. It may be compressed, cut "
            f"off or damaged. Only plain archives are read in place: unpack .gz, .xz and the like "
            f"to .tar first."
        ) from error
    pictures: dict[str, Picture] = {}
    skipped: dict[str, str] = {}
    for member in members:
        name = _plain(member.name)
        if member.isdir() or not is_picture(name):
            continue
        why = unprintable(name) or _unfit(member, name)
        # Of members of one name the last counts, as when an archive is unpacked.
        (skipped if why is None else pictures).pop(name, None)
        if why is None:
            pictures[name] = Picture(name, path, member.offset_data, member.size)
        else:
            skipped[name] = why
    return Listing.of(pictures.values(), skipped, path)


def _plain(name: str) -> str:
    """The name without "./" and "//"."""
    return str(PurePosixPath(name))


def _unfit(member: tarfile.TarInfo, name: str) -> str | None:
    """Why a member is not read, if so."""
    if name.startswith("/") or ".." in PurePosixPath(name).parts:
        return "has a name that leads outside"
    if member.issym() or member.islnk():
        return "is a link"
    if not member.isreg():
        return "is no file"
    if member.issparse():
        return "is stored with holes"
    return None


def _check_end(path: Path, end: int) -> None:
    """Complain of an archive that does not end as it should: tarfile takes damage for the end."""
    with path.open("rb") as file:
        file.seek(end)
        if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
            raise tarfile.ReadError(f"its members break off at byte {end:,}")
