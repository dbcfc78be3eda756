"""The colours and keys of classes, and classes that have a name but no example yet.

The studio keeps them, and no browser does: a browser's store of labels outlives what is forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from knowmore.errors import InvalidInput

# Classes without examples that may be offered.
_MOST = 100
# An empty plane begins with these.
_FIRST = ("A", "B")


@final
class Palette:
    """The number of each class, which stays while other classes come and go."""

    def __init__(self) -> None:
        self._slots: dict[Any, int] = {}
        # By label: whether the class has had an example.
        self._offered: dict[Any, bool] = {}

    def offer(self, label: Any) -> None:
        """Offer a class that has no example yet."""
        if len(self._offered) >= _MOST and label not in self._offered:
            raise InvalidInput(
                f"{_MOST} classes wait for an example already. Give some of them one."
            )
        self._offered.setdefault(label, False)
        self._number(label)

    def begin(self, held: Sequence[Any]) -> None:
        """Offer two classes as long as the model has none, or one of these two."""
        known = {*held, *self._offered}
        if len(known) < 2 and known.issubset(_FIRST):
            for label in _FIRST:
                self.offer(label)

    def let_go(self, held: Sequence[Any]) -> None:
        """Something was forgotten: let go of classes that had examples and have none now."""
        self._offered = {
            one: used for one, used in self._offered.items() if not used or one in held
        }

    def slots(self, held: Sequence[Any]) -> dict[Any, int]:
        """The numbers of the classes that have examples, and of offered classes."""
        for one in held:
            if one in self._offered:
                self._offered[one] = True
        named = dict.fromkeys([*held, *self._offered])
        # A class that is gone leaves its number to the next.
        self._slots = {one: slot for one, slot in self._slots.items() if one in named}
        for one in named:
            self._number(one)
        return dict(self._slots)

    def _number(self, label: Any) -> None:
        """Give a class the lowest number that is free, unless it has one."""
        used = set(self._slots.values())
        self._slots.setdefault(label, next(i for i in range(len(used) + 1) if i not in used))

    def offered(self, held: Sequence[Any]) -> list[Any]:
        """The classes that are offered and have no example."""
        return [one for one in self._offered if one not in held]
