"""An estimator where the studio expects a file: edits change it, its earlier values undo them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, final

from knowmore._base import Array
from knowmore.errors import InvalidInput, NoExamples
from knowmore.estimators import unnamed
from knowmore.examples import Examples
from knowmore.store import Entry, Forgotten

# All that an estimator knows: its parameters, and a frozen value that edits replace.
Values = dict[str, Any]


@final
class Memory:
    """An estimator with the methods of a `Store` that the plane and the inbox need.

    estimator : a kernel or forest classifier; or an unfitted one, which then learns
    What is forgotten is in no earlier value: there is no undo of that, nor of what came before it.
    The same holds of edits by others than this.
    """

    # A file has notes of the commands.
    notes: ClassVar[dict[str, Any]] = {}

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator
        self.kind = type(estimator).__name__
        self.path = Path(self.kind)
        # Entries with the values before them, and those that are undone with the values after.
        self._done: list[tuple[Entry, Values | None]] = []
        self._undone: list[tuple[Entry, Values]] = []
        self._last = 0
        self._known = self._value
        # The labels that somebody confirmed, by the serial numbers of their rows.
        self._kept: dict[int, Any] = {}

    @property
    def examples(self) -> Examples:
        """The examples of the estimator."""
        if self._value is None:
            raise NoExamples("The model holds no examples yet. Add some first.")
        found: Examples = self.estimator.as_given(self._value.examples)
        return found

    @property
    def _value(self) -> Any:
        return self.estimator.editable_ if self.estimator.__sklearn_is_fitted__() else None

    def __len__(self) -> int:
        return 0 if self._value is None else len(self._value.examples)

    def __sklearn_tags__(self) -> Any:
        return self.estimator.__sklearn_tags__()

    # -- the journal -------------------------------------------------------------------------

    def log(self, after: int = 0) -> list[Entry]:
        """The edits whose number is above this one, the oldest first."""
        undone = (replace(one, undone=True) for one, _ in reversed(self._undone))
        return [one for one in (*(one for one, _ in self._done), *undone) if one.number > after]

    def refresh(self) -> bool:
        """Whether somebody else has edited the estimator since the last look."""
        if self._value is self._known:
            return False
        self._cut()
        self._note("edit", 0, None)
        return True

    def _cut(self) -> None:
        """Let go of all earlier values, and of labels that were confirmed in them."""
        self._done = [(one, None) for one, _ in self._done]
        self._kept = {serial: self._kept[serial] for serial in self._confirmed()}

    def _note(self, verb: str, count: int, before: Values | None) -> None:
        self._last += 1
        entry = Entry(self._last, datetime.now(UTC), verb, count, undone=False)
        self._done.append((entry, before))
        self._undone.clear()
        self._known = self._value

    def _edit(self, verb: str, count: int, change: Callable[[Any], Any]) -> Any:
        """Change a copy, which knows its columns by position, and then take its value."""
        other, before = unnamed(self.estimator), dict(vars(self.estimator))
        found = change(other)
        vars(self.estimator).update(vars(other))
        self._note(verb, count, before)
        return found

    def _turn(self, values: Values) -> Values:
        """Give the estimator other values; returns those that it had."""
        own = vars(self.estimator)
        had = dict(own)
        own.clear()
        own.update(values)
        self._known = self._value
        return had

    # -- edits -------------------------------------------------------------------------------

    def add(self, X: Array, y: list[Any], ids: Any = None, contributor: str | None = None) -> Array:
        """Learn examples and return their ids."""
        found: Array = self._edit("add", len(y), lambda one: one.add(X, y))
        return found

    def replace(self, ids: list[Any], X: Array, contributor: str | None = None) -> None:
        """Give examples other features."""
        self._edit("replace", len(ids), lambda one: one.replace(ids, X))

    def relabel(self, ids: list[Any], y: list[Any], contributor: str | None = None) -> None:
        """Give examples other labels."""
        self._edit("relabel", len(ids), lambda one: one.relabel(ids, y))

    def forget(self, ids: list[Any] | None, contributor: str | None = None) -> Forgotten:
        """Forget examples for ever."""
        if ids is None:
            raise InvalidInput(
                "An estimator does not know who gave its examples. Name the ids to forget."
            )
        self._edit("forget", len(ids), lambda one: one.remove(ids))
        self._cut()
        return Forgotten(len(ids), [])

    def keep(self, ids: list[Any], kept: bool = True) -> None:
        """Note that these labels are right, until the label or the example changes."""
        rows = self.examples.rows(tuple(ids))
        labels = zip(self.examples.serials[rows].tolist(), self.examples.labels[rows], strict=True)
        for serial, label in labels:
            self._kept.pop(serial, None)
            if kept:
                self._kept[serial] = label

    @property
    def kept_(self) -> list[Any]:
        """The ids of the examples whose labels somebody has confirmed."""
        return [*self._confirmed().values()]

    def _confirmed(self) -> dict[int, Any]:
        """The ids of these examples by their serial numbers."""
        if self._value is None:
            return {}
        held = self.examples
        rows = zip(held.serials.tolist(), held.names, held.labels, strict=True)
        return {
            serial: one
            for serial, one, label in rows
            if serial in self._kept and self._kept[serial] == label
        }

    def set_parameters(self, **parameters: Any) -> None:
        """Give the estimator other parameters, and fit its examples anew."""

        def refit(one: Any) -> None:
            if self._value is None:
                one.set_params(**parameters)
            elif not hasattr(one, "refitted"):
                raise InvalidInput(f"A {self.kind} takes no other settings. Fit another one.")
            else:
                vars(one).update(vars(one.refitted(self.examples.counted, **parameters)))

        self._edit("set_parameters", len(self), refit)

    def undo(self) -> None:
        """Bring back the value before the last edit."""
        if not self._done or self._done[-1][1] is None:
            raise InvalidInput(
                "There is nothing to undo: what is forgotten cannot be brought back."
            )
        entry, before = self._done.pop()
        assert before is not None
        self._undone.append((entry, self._turn(before)))

    def redo(self) -> None:
        """Bring back the value that was undone last."""
        if not self._undone:
            raise InvalidInput("There is nothing to do again.")
        entry, after = self._undone.pop()
        self._done.append((entry, self._turn(after)))
