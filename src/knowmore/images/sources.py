"""Anybody's own pictures."""

from __future__ import annotations

import os
import tarfile
from collections import Counter
from pathlib import Path

from knowmore.errors import InvalidInput, MissingData, RepeatedId
from knowmore.examples import Examples
from knowmore.images.archives import in_archive
from knowmore.images.pictures import Listing, Picture, in_folder


def image_folder(path: str | os.PathLike[str]) -> Examples:
    """Pictures in folders named by their classes, or in a tar archive of such folders.

    X (n,) are `Picture`s, read when they are needed, which the transformers of `knowmore.images`
    take as they are. Labels are the names of the folders that hold them, ids such as
    "bedroom/image_0001.jpg" the ways from `path` there, in whose order they come. Hidden files
    and files of other kinds, by the ends of their names, are passed over. Links that lead outside
    and the like are refused: `listing` tells them apart.
    """
    path = Path(path)
    return listing(path, lists=False).examples(path)


def listing(source: str | os.PathLike[str], *, lists: bool = True) -> Listing:
    """The pictures of a folder, of a tar archive or, if `lists`, of a text file that names them."""
    path = Path(source)
    if path.is_dir():
        return in_folder(path)
    if not path.is_file():
        raise MissingData(f"There is no file or folder {str(source)!r}. Check the path.")
    if path.suffix == ".tar" or _is_tar(path) or not lists:
        return in_archive(path)
    return in_list(path)


def in_list(path: Path) -> Listing:
    """The pictures that a text file names, one on each line, as seen from its folder.

    They may lie anywhere: whoever wrote the list asked for them.
    """
    try:
        # Not splitlines, which also breaks names at rarer characters.
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{str(path)!r} is neither a folder, nor a tar archive, nor a text file in UTF-8 that "
            f"lists pictures."
        ) from error
    names = [line.strip() for line in lines if line.strip()]
    if repeated := [name for name, times in Counter(names).items() if times > 1]:
        raise RepeatedId(
            f"{str(path)!r} lists {repeated[0]!r} more than once. Name each picture once."
        )
    pictures = [Picture(name, path.parent / name) for name in names]
    skipped = {one.name: "is no file" for one in pictures if not os.path.isfile(one.path)}
    return Listing.of((one for one in pictures if one.name not in skipped), skipped, path)


def _is_tar(path: Path) -> bool:
    try:
        return tarfile.is_tarfile(path)
    except OSError as error:
        raise InvalidInput(f"{str(path)!r} cannot be read: {error.strerror}.") from error
