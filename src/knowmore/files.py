"""Where caches belong; and arrays and settings in one .npz file.

No pickle, so that reading a file runs no code.
"""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
import numpy.typing as npt

from knowmore.errors import InvalidInput

Array = npt.NDArray[Any]
_T = TypeVar("_T")

VERSION = 1

# What a file of other content can make NumPy, zipfile, json and `build` raise.
_DAMAGE = (
    OSError,
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RuntimeError,
    MemoryError,
    zipfile.BadZipFile,
    zlib.error,
)


def user_folder() -> Path:
    """Where caches belong: $XDG_CACHE_HOME/knowmore, or else ~/.cache/knowmore."""
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".cache") / "knowmore"


def save(
    path: str | os.PathLike[str], kind: str, settings: Any, arrays: Mapping[str, Array]
) -> None:
    """Write to `path`, whole or not at all."""
    path = Path(path)
    about = json.dumps({"kind": kind, "version": VERSION, "settings": settings}, default=int)
    part = path.with_name(f"{path.name}.{uuid4().hex}.part")
    try:
        with part.open("xb") as file:
            np.savez(file, allow_pickle=False, about=np.array(about), **arrays)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def load(
    path: str | os.PathLike[str], kind: str, build: Callable[[dict[str, Any], dict[str, Array]], _T]
) -> _T:
    """What `build` makes of the settings and arrays that `save` wrote for that kind."""
    try:
        # NumPy would not close a damaged file that it opened itself.
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(str(arrays.pop("about")))
        found, version = about["kind"], about["version"]
        if (found, version) == (kind, VERSION):
            return build(about["settings"], arrays)
    except FileNotFoundError as error:
        raise InvalidInput(f"The file {str(path)!r} does not exist.") from error
    except _DAMAGE as error:
        raise InvalidInput(
            f"The file {str(path)!r} cannot be read as a {kind}: it is damaged, or {kind}.save "
            f"did not write it."
        ) from error
    raise InvalidInput(
        f"The file {str(path)!r} holds a {found} of version {version}, but a {kind} of version "
        f"{VERSION} is needed."
    )
