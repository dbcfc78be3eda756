"""Folders of .txt files: the folder of a file is its label, the path to it its id."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import numpy as np

from knowmore._base import check_name, files_in
from knowmore.errors import InvalidInput, MissingData
from knowmore.examples import Examples
from knowmore.texts.reading import read_text

_ENDING = ".txt"


def text_folder(path: str | os.PathLike[str]) -> Examples:
    """Texts in folders named after their classes: the .txt files of a folder, in UTF-8.

    X (n,) are the texts, labels the names of the nearest folders, empty outside all folders, and
    ids the paths from `path`, such as "spam/0001.txt", in alphabetical order. Hidden files and
    files with other endings are ignored. A file that cannot be used is an error.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     (Path(folder) / "greeting").mkdir()
    ...     _ = (Path(folder) / "greeting" / "1.txt").write_text("Good morning")
    ...     found = text_folder(folder)
    >>> found.ids.tolist(), found.labels.tolist(), found.X.tolist()
    (['greeting/1.txt'], ['greeting'], ['Good morning'])
    """
    check_name(path)
    files, skipped = texts_in(Path(path))
    texts = []
    for name, file in files.items():
        text, why = read_text(file)
        texts.append(text)
        if why is not None:
            skipped[name] = why
    if skipped:
        name, why = next(iter(skipped.items()))
        count = f"{os.fspath(path)!r} has {len(skipped)} file(s) that cannot be used."
        raise InvalidInput(f"{count} The first, {name!r}, {why}")
    X = np.array([*texts, None], dtype=object)[:-1]
    labels = np.array([PurePosixPath(name).parent.name for name in files])
    return Examples.of(X, labels, tuple(files))


def texts_in(path: Path) -> tuple[dict[str, Path], dict[str, str]]:
    """The .txt files of a folder by name, sorted; and the names of skipped ones, with reasons."""
    if not path.is_dir():
        raise MissingData(f"There is no folder {str(path)!r}. Check the path.")
    try:
        found = sorted(dict(files_in(path, is_text)).items())
    except OSError as error:
        place = str(error.filename or path)
        raise InvalidInput(f"{place!r} cannot be read: {error.strerror or error}.") from error
    skipped = {name: f"{why}." for name, why in found if isinstance(why, str)}
    # Bytes that are not UTF-8 were decoded to lone surrogates, which no id may have.
    damaged = [name for name, _ in found if name.encode(errors="ignore").decode() != name]
    skipped |= dict.fromkeys(damaged, "has a name that is not UTF-8.")
    files = {name: one for name, one in found if isinstance(one, Path) and name not in skipped}
    return files, skipped


def is_text(name: str) -> bool:
    """Whether the name belongs to a text that is neither hidden nor in a hidden folder."""
    path = PurePosixPath(name)
    return path.suffix.lower() == _ENDING and not any(part.startswith(".") for part in path.parts)
