"""Other models in the folder of a file: only these can be named, and only by their names."""

from __future__ import annotations

from pathlib import Path

import knowmore
from knowmore.errors import InvalidInput
from knowmore.store import Store
from knowmore.store.notes import check_same_features


def neighbours(path: Path) -> list[str]:
    """The names of the other models in the folder of a file, in order."""
    there = (one for one in path.parent.glob("*.km") if one.is_file() and not one.is_symlink())
    return sorted(one.name for one in there if one.name != path.name)


def neighbour(store: Store, name: str) -> Store:
    """Another model in the folder of a file, open; its features mean the same."""
    if name not in neighbours(store.path):
        raise InvalidInput(
            f"There is no other model {name!r} in the folder of {store.path.name}. Give the name "
            f"of one that is there, without a path."
        )
    other = knowmore.open(store.path.parent / name)
    try:
        check_same_features(store, other)
    except BaseException:
        other.close()
        raise
    return other
