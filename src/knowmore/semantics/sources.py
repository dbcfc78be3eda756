"""Where the files of WordNet are: in a folder, or in an archive that is read in place."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import final

from knowmore.errors import InvalidInput, InvalidType, KnowmoreError, MissingData

VARIABLE = "KNOWMORE_DATA"
ARCHIVE = "wordnet30_nouns.tar.xz"
DEBIAN = Path("/usr/share/wordnet")
DATABASE = ("data.noun", "index.noun", "noun.exc")
# Princeton's archives keep the database in "dict"; counts come in a folder of their own.
_FOLDERS = ("", "dict", "ic")
# Ten times as much as WordNet has; what is larger is not read into memory.
_MOST_BYTES = 2**28


@final
@dataclass(frozen=True)
class Source:
    """The bytes of a WordNet as they were found: one archive, or files by their names."""

    path: Path
    content: bytes | Mapping[str, bytes]

    @classmethod
    def of(cls, path: str | os.PathLike[str] | None = None) -> Source:
        """What is at `path`: a folder or a tar archive, compressed or not. None: look around."""
        if not isinstance(path, str | os.PathLike | None):
            raise InvalidType(
                f"path={path!r} is of type {type(path).__name__}. Name a folder or an archive."
            )
        found = locate() if path is None else Path(path)
        try:
            if found.is_dir():
                return cls(found, {name: _read(file) for name, file in _in_folder(found).items()})
            return cls(found, _read(found))
        except FileNotFoundError as error:
            words = f"There is no file or folder {str(found)!r}. Check the path."
            raise MissingData(words) from error
        except OSError as error:
            raise InvalidInput(f"{str(found)!r} cannot be read: {error.strerror}.") from error

    def digest(self) -> str:
        """The SHA-256 of all its bytes."""
        if isinstance(self.content, bytes):
            return hashlib.sha256(self.content).hexdigest()
        digest = hashlib.sha256()
        for name, content in sorted(self.content.items()):
            digest.update(f"{name} {len(content)}\n".encode())
            digest.update(content)
        return digest.hexdigest()

    def files(self) -> dict[str, str]:
        """The texts of the files by their names: the database and whatever counts there are."""
        content = self.content
        raw = _in_archive(self.path, content) if isinstance(content, bytes) else content
        if missing := [name for name in DATABASE if name not in raw]:
            raise MissingData(
                f"{str(self.path)!r} holds no {' and no '.join(missing)}. The nouns of WordNet are "
                f"the files {', '.join(DATABASE)}: name the folder or the archive that has them."
            )
        try:
            return {name: content.decode() for name, content in raw.items()}
        except UnicodeDecodeError as error:
            raise InvalidInput(
                f"{str(self.path)!r} is no WordNet, or it is damaged: it holds what is no text."
            ) from error


def locate() -> Path:
    """The archive in the folder KNOWMORE_DATA, or else Debian's package wordnet-base."""
    named = os.environ.get(VARIABLE)
    if named and (archive := Path(named, ARCHIVE)).is_file():
        return archive
    if DEBIAN.is_dir():
        return DEBIAN
    where = f"in {named} ({VARIABLE} names it)" if named else f"known ({VARIABLE} is not set)"
    raise MissingData(
        f"The data file {ARCHIVE!r} is not {where}. knowmore brings no data along: set {VARIABLE} "
        f"to the folder that holds the file. Nor is WordNet in {str(DEBIAN)!r}, where Debian's "
        f"package wordnet-base puts it. You may also name its folder or archive: "
        f"WordNet.load(path)."
    )


def is_wanted(name: str) -> bool:
    """Is it a file of the database, or one of counts?"""
    return name in DATABASE or (name.startswith("ic-") and name.endswith(".dat"))


def _in_folder(root: Path) -> dict[str, Path]:
    files = [
        file
        for folder in _FOLDERS
        if (root / folder).is_dir()
        for file in sorted((root / folder).iterdir())
    ]
    return {file.name: file for file in reversed(files) if is_wanted(file.name) and file.is_file()}


def _read(path: Path) -> bytes:
    _check_size(path, path.stat().st_size)
    return path.read_bytes()


def _in_archive(path: Path, content: bytes) -> dict[str, bytes]:
    found = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            for member in archive:
                name = PurePosixPath(member.name).name
                file = archive.extractfile(member) if member.isreg() and is_wanted(name) else None
                if file is not None:
                    _check_size(path, member.size)
                    found[name] = file.read()
    except KnowmoreError:
        raise
    # Damage makes tarfile and the decompressors raise more than their own errors.
    except Exception as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise InvalidInput(
            f"{str(path)!r} cannot be read as a tar archive: {why}. It may be cut off or damaged."
        ) from error
    return found


def _check_size(path: Path, size: int) -> None:
    if size > _MOST_BYTES:
        raise InvalidInput(
            f"{str(path)!r} holds {size:,} bytes in one file, but no more than {_MOST_BYTES:,} are "
            f"read. Is it WordNet?"
        )
