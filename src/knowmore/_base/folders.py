"""The files of a folder and its subfolders."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn


def files_in(root: Path, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, Path | str]]:
    """The wanted files in a folder and its subfolders: each name, and the path or why it is none.

    A name is the path from `root`, with slashes. Nothing outside `root` is ever named.
    """
    inside = root.resolve()
    for folder, folders, files in os.walk(inside, onerror=_raise):
        for name in folders:
            if Path(folder, name).is_symlink() and not name.startswith("."):
                yield _relative(folder, name, inside), "is a link to a folder"
        for name in files:
            relative = _relative(folder, name, inside)
            if not is_wanted(relative):
                continue
            # Path.resolve would raise at a link to itself.
            target = Path(os.path.realpath(Path(folder, name)))
            if not target.is_relative_to(inside):
                yield relative, "is a link that leads outside"
            else:
                yield relative, target if target.is_file() else "is not a file"


def _raise(error: OSError) -> NoReturn:
    raise error


def _relative(folder: str, name: str, inside: Path) -> str:
    """The path from `inside`, decoded as UTF-8 in every locale."""
    path = Path(folder, name).relative_to(inside).as_posix()
    return os.fsencode(path).decode(errors="surrogateescape")
