"""Reading and writing files: damage is reported in words, and no file is left half written.

A file takes its place only when it is complete. A link stays a link, and a file that is replaced
keeps its mode. Reading runs no code: pickles are refused.
"""

from __future__ import annotations

import json
import os
import stat
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO, TypeVar, final
from uuid import uuid4

import numpy as np

from knowmore._base.arrays import Array
from knowmore.errors import InvalidInput, InvalidType, KnowmoreError, MissingData, NotWritten

T = TypeVar("T")
File = str | os.PathLike[str]

VERSION = 1


def user_folder() -> Path:
    """The folder for caches: $XDG_CACHE_HOME/knowmore, or else ~/.cache/knowmore."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (folder if folder.is_absolute() else Path.home() / ".cache") / "knowmore"
    except RuntimeError as error:
        why = "There is no folder for a cache: this user has no home. Set XDG_CACHE_HOME to one."
        raise MissingData(why) from error


# -- writing -------------------------------------------------------------------------------------


@contextmanager
def written(path: File) -> Iterator[BinaryIO]:
    """A file to write to. It replaces `path` at the end, unless the block raises."""
    with write_errors(path), part_of(_target(path)) as part, open(part, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def part_of(target: Path, move: Callable[[Path, Path], None] = os.replace) -> Iterator[Path]:
    """An empty file beside the target. It replaces that at the end, unless the block raises.

    Parts that a killed program has left are deleted first. A lock says which are in use.

    move : moves the part to the target
    """
    sweep(target)
    part = target.with_name(f"{target.name}.{uuid4().hex}.part")
    old_mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    # A user without permission to read the old file must not read the part either.
    descriptor = os.open(
        part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666 if old_mode is None else old_mode
    )
    try:
        try:
            _lock(descriptor)
            if old_mode is not None:
                os.chmod(part, old_mode)
            yield part
        finally:
            # Before it has its new name: to close a file drops the locks that SQLite has on it.
            os.close(descriptor)
        move(part, target)
    finally:
        # What cannot be deleted now is deleted by the next sweep.
        for leftover in (part, part.with_name(f"{part.name}-journal")):
            with suppress(OSError):
                leftover.unlink(missing_ok=True)


def _lock(descriptor: int) -> bool:
    """Lock an open file for as long as it is open; whether nobody else has locked it."""
    try:
        import fcntl
    except ImportError:  # Windows deletes no file that is in use.
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def parts_beside(target: Path) -> list[Path]:
    """The parts of a file, and the journals of these, whether they are in use or not."""
    name = "".join(f"[{letter}]" if letter in "*?[" else letter for letter in target.name)
    return sorted(
        file for end in ("", "-journal") for file in target.parent.glob(f"{name}.*.part{end}")
    )


def sweep(target: Path) -> list[Path]:
    """Delete the parts of a file that nobody writes any more; returns those that held bytes."""
    gone = []
    for part in parts_beside(target):
        with suppress(OSError):
            descriptor = os.open(part, os.O_RDWR)
            try:
                if _lock(descriptor):
                    size = os.fstat(descriptor).st_size
                    part.unlink()
                    gone += [part] if size else []
            finally:
                os.close(descriptor)
    return gone


def check_name(path: Any) -> None:
    """Raise InvalidType or InvalidInput unless this can be the name of a file or folder."""
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidType(
            f"The path is {path!r}, of type {type(path).__name__}. Give the name of a file or "
            f"folder: a str or a pathlib.Path."
        )
    if not os.fspath(path):
        # A path takes an empty text for the current folder.
        raise InvalidInput("The name of the file or folder is empty. Give one; . is this folder.")
    if "\0" in str(path):
        raise InvalidInput(f"{str(path)!r} has a NUL in it, which no name of a file has.")


def check_writable(path: File) -> None:
    """Raise NotWritten if `written(path)` cannot start. Call it before long work."""
    with write_errors(path):
        _write_a_byte(_target(path).parent)


def check_folder(path: File) -> None:
    """Create the folder if needed, and raise NotWritten if no file can be written into it."""
    with write_errors(path):
        Path(path).mkdir(parents=True, exist_ok=True)
        _write_a_byte(Path(path))


def _target(path: File) -> Path:
    """The path with all links followed; raises OSError if the file there cannot be replaced."""
    target = Path(os.path.realpath(path))
    with suppress(FileNotFoundError):
        # Nobody means to replace a device or a pipe by a file.
        if not stat.S_ISREG(target.stat().st_mode):
            raise OSError("it exists and is not a regular file")
        if not os.access(target, os.W_OK):
            raise OSError("it exists and is read-only")
    return target


def _write_a_byte(folder: Path) -> None:
    # An empty file would not do: a full disk may still have room for a name.
    with TemporaryFile(dir=folder) as file:
        file.write(b"\0")


@contextmanager
def write_errors(path: File) -> Iterator[None]:
    """Turn an OSError in the block into NotWritten."""
    check_name(path)
    try:
        yield
    except KnowmoreError:
        raise
    except OSError as error:
        problem = f"{os.fspath(path)!r} cannot be written: {error.strerror or error}."
        raise NotWritten(f"{problem} What was there before is kept. Name another place.") from error


# -- reading -------------------------------------------------------------------------------------


@contextmanager
def undamaged(path: File, kind: str, remedy: str) -> Iterator[None]:
    """Report any error in the block as damage of the file at `path`, which should be a `kind`."""
    check_name(path)
    try:
        yield
    # NumPy, zipfile, json and tokenize raise all sorts of errors for damaged files.
    except Exception as error:
        missing = isinstance(error, FileNotFoundError)
        problem = "does not exist." if missing else f"cannot be read as {kind}: {remedy}"
        raise InvalidInput(f"The file {os.fspath(path)!r} {problem}") from error


def array_in(stream: Any) -> Array:
    """The array in an open .npy file, which must end with it; raises any type of error.

    A damaged header may ask for fewer numbers than there are, which only the end of the file shows.
    An archive checks a member's checksum there, too.
    """
    array = np.lib.format.read_array(stream, allow_pickle=False)
    if stream.read(1):
        raise ValueError("more bytes follow than the array has")
    return np.asarray(array)


@final
class Arrays(zipfile.ZipFile):
    """An .npz file: its arrays by name, each read when asked for. Use it within `undamaged`."""

    def __getitem__(self, name: str) -> Array:
        with self.open(f"{name}.npy") as member:
            return array_in(member)

    def __iter__(self) -> Iterator[str]:
        return (name.removesuffix(".npy") for name in self.namelist())


class Savable:
    """A model that `save` writes and `knowmore.load` reads again."""

    def save(self, path: File) -> None:
        """Write it to a file: all of it, or nothing. No pickle; `knowmore.load(path)` reads it.

        The answers of what is read are the same to the last bit; those of a forest are, to the last
        bit, those of a fresh fit of its examples. What was there before is replaced.
        """
        # By name: what writes every kind knows all of them, and imports go one way.
        import_module("knowmore.store").save(self, path)


# -- arrays and settings in one .npz file --------------------------------------------------------


def save(
    path: File, kind: str, settings: Any, arrays: Mapping[str, Array], version: int = VERSION
) -> None:
    """Write everything to `path`, or nothing if that fails."""
    about = json.dumps({"kind": kind, "version": version, "settings": settings}, default=int)
    with written(path) as file:
        np.savez(file, allow_pickle=False, about=np.array(about), **arrays)


def load(path: File, kind: str, build: Callable[[dict[str, Any], dict[str, Array]], T]) -> T:
    """build(settings, arrays) of what `save` wrote for that kind."""
    remedy = f"it is damaged, or {kind}.save did not write it."
    with undamaged(path, f"a {kind}", remedy), Arrays(path) as file:
        arrays = {name: file[name] for name in file}
        about = json.loads(str(arrays.pop("about")))
        if (about["kind"], about["version"]) == (kind, VERSION):
            return build(about["settings"], arrays)
    got = f"holds a {about['kind']} of version {about['version']}"
    raise InvalidInput(f"{os.fspath(path)!r} {got}, but a {kind} of version {VERSION} is needed.")
