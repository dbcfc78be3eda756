"""What the features of a file mean, as whoever taught it noted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from knowmore.errors import InvalidInput
from knowmore.store.store import Store

# The notes that the first examples settle.
SETTLED = ("columns", "label", "id", "pictures")


def noted(store: Store) -> dict[str, Any]:
    """The notes of a file that count.

    What the first examples settled counts for nothing while none is left, but supports stay, and so
    does a source.
    """
    void = () if len(store) or store.kind in ("one-shot", "n-plus-one") else SETTLED
    return {name: one for name, one in store.notes.items() if one is not None and name not in void}


def describing(model: Path) -> str:
    """The command that describes new pictures as the model in this file does."""
    return f"knowmore features NEW -o new.npz --like {model}"


def check_same_features(store: Store, other: Store) -> None:
    """Raise InvalidInput if the features of the two files do not mean the same."""
    for name in ("columns", "pictures"):
        if noted(store).get(name) != noted(other).get(name) and len(store):
            way = "made from pictures in another way"
            what = "of other columns" if name == "columns" else way
            raise InvalidInput(
                f"The two models cannot be merged: features of {other.path.name} are {what}."
            )
