"""Files, read and written in one way: damage is told in words, and nothing is half written.

What is written takes its place when it is complete. A link stays a link, and a file that was there
keeps its mode. Reading runs no code: there is no pickle in what is read.
"""

from __future__ import annotations

import json
import os
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, Self, TypeVar, final
from uuid import uuid4

import numpy as np

from knowmore.arrays import Array
from knowmore.errors import InvalidInput, MissingData, NotWritten

_T = TypeVar("_T")

VERSION = 1
# More than any camera writes; a file of more is not read into memory as one picture.
MOST_BYTES = 2**28


def user_folder() -> Path:
    """Where caches belong: $XDG_CACHE_HOME/knowmore, or else ~/.cache/knowmore."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (named if named.is_absolute() else Path.home() / ".cache") / "knowmore"
    except RuntimeError as error:
        raise MissingData(
            "There is no folder for a cache: this user has no home. Set XDG_CACHE_HOME to a folder."
        ) from error


# -- writing -------------------------------------------------------------------------------------


@contextmanager
def written(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to. It takes the place of `path` at the end, unless something was raised."""
    with _told(path):
        target, mode = _place(path)
        part = target.with_name(f"{target.name}.{uuid4().hex}.part")
        try:
            # Nobody may read the part who may not read what it replaces.
            with open(
                part, "xb", opener=partial(os.open, mode=0o666 if mode is None else mode)
            ) as file:
                if mode is not None:
                    os.chmod(part, mode)
                yield file
                file.flush()
                os.fsync(file.fileno())
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Complain, before the work and not after it, if `written(path)` could not begin."""
    with _told(path):
        target, _ = _place(path)
        _try_out(target.parent)


def check_folder(path: str | os.PathLike[str]) -> None:
    """Make the folder if it is missing, and complain if no file can be written into it."""
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
        _try_out(Path(path))
    except OSError as error:
        raise NotWritten(
            f"Nothing can be written into the folder {os.fspath(path)!r}: "
            f"{error.strerror or error}. Name another one, or make room."
        ) from error


def _place(path: str | os.PathLike[str]) -> tuple[Path, int | None]:
    """Where `path` leads, all links followed, and the mode of what is there."""
    target = Path(os.path.realpath(path))
    try:
        there = target.stat()
    except FileNotFoundError:
        return target, None
    # Another file in the place of a device or a pipe would not be what was meant.
    if not stat.S_ISREG(there.st_mode):
        raise OSError("it is there already, and no ordinary file")
    if not os.access(target, os.W_OK):
        raise OSError("it is there already, and read-only")
    return target, stat.S_IMODE(there.st_mode)


def _try_out(folder: Path) -> None:
    # A byte, as a full disk may still have room for a name.
    with TemporaryFile(dir=folder) as file:
        file.write(b"\0")


@contextmanager
def _told(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except NotWritten:
        raise
    except OSError as error:
        raise NotWritten(
            f"{os.fspath(path)!r} cannot be written: {error.strerror or error}. What was there "
            f"before is still there; name another place, or make room."
        ) from error


# -- reading -------------------------------------------------------------------------------------


def contents(path: Path, name: str, offset: int = 0, size: int | None = None) -> bytes:
    """The bytes of a picture: `size` of them from `offset` on, or all. `name` is for complaints."""
    wanted = path.stat().st_size if size is None else size
    if wanted > MOST_BYTES:
        raise InvalidInput(
            f"{name} has {wanted:,} bytes, but no more than {MOST_BYTES:,} are read. Reduce the "
            f"picture first."
        )
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(wanted)


@contextmanager
def undamaged(path: str | os.PathLike[str], kind: str, remedy: str) -> Iterator[None]:
    """Whatever goes wrong within is damage of the file at `path`, which should hold a `kind`."""
    try:
        yield
    except FileNotFoundError as error:
        raise InvalidInput(f"The file {os.fspath(path)!r} does not exist.") from error
    # Files of any content can make NumPy, zipfile, json and tokenize raise whatever they like.
    except Exception as error:
        raise InvalidInput(
            f"The file {os.fspath(path)!r} cannot be read as {kind}: {remedy}"
        ) from error


def array_in(stream: Any) -> Array:
    """The array in an open .npy file: all of it and nothing after it, or an error of any type.

    Of a member of an archive the end must be reached, where its checksum is looked at. A damaged
    header could ask for fewer numbers than there are, and nobody would know.
    """
    array = np.lib.format.read_array(stream, allow_pickle=False)
    if stream.read(1):
        raise ValueError("more bytes follow than the array has")
    return np.asarray(array)


@final
class Arrays(Mapping[str, Array]):
    """The arrays of an .npz file by their names, read when asked for. Use it within `undamaged`."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._archive = zipfile.ZipFile(path)

    def __getitem__(self, name: str) -> Array:
        with self._archive.open(f"{name}.npy") as member:
            return array_in(member)

    def __iter__(self) -> Iterator[str]:
        return (name.removesuffix(".npy") for name in self._archive.namelist())

    def __len__(self) -> int:
        return len(self._archive.namelist())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()


# -- arrays and settings in one .npz file --------------------------------------------------------


def save(
    path: str | os.PathLike[str], kind: str, settings: Any, arrays: Mapping[str, Array]
) -> None:
    """Write to `path`, whole or not at all."""
    about = json.dumps({"kind": kind, "version": VERSION, "settings": settings}, default=int)
    with written(path) as file:
        np.savez(file, allow_pickle=False, about=np.array(about), **arrays)


def load(
    path: str | os.PathLike[str], kind: str, build: Callable[[dict[str, Any], dict[str, Array]], _T]
) -> _T:
    """What `build` makes of the settings and arrays that `save` wrote for that kind."""
    remedy = f"it is damaged, or {kind}.save did not write it."
    with undamaged(path, f"a {kind}", remedy), Arrays(path) as file:
        arrays = dict(file)
        about = json.loads(str(arrays.pop("about")))
        found, version = about["kind"], about["version"]
        if (found, version) == (kind, VERSION):
            return build(about["settings"], arrays)
    raise InvalidInput(
        f"The file {os.fspath(path)!r} holds a {found} of version {version}, but a {kind} of "
        f"version {VERSION} is needed."
    )
