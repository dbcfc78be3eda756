"""`knowmore suspects`: labels that the other examples contradict, and what to do about each."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from knowmore.cli.left_out import CLASSIFYING, fitted, rows_of
from knowmore.cli.model import Model
from knowmore.cli.near import newness
from knowmore.cli.showing import talk
from knowmore.edits import Id
from knowmore.errors import InvalidInput, KnowmoreError
from knowmore.insight.suspects import Suspects, suspects

_KEYS = "a accept   o other label   k keep   f forget   u undo   q quit"


def suspects_of(model: Model, count: int) -> tuple[list[list[Any]], int]:
    """The most suspicious examples: id, label, preferred label, doubt, margin, contributor, and the
    ids that speak most against it; and how many suspects there are."""
    found, ids = _asked(model)
    columns = (found.labels, found.preferred, found.doubt, found.margin)
    held = model.held()
    against = [()] * len(ids) if rows_of(model, fitted(model)) else found.contradicting
    rows = [
        [one, *(column[i].item() for column in columns), held[one].contributor, list(against[i])]
        for i, one in enumerate(ids[:count])
    ]
    return rows, len(ids)


def _asked(model: Model) -> tuple[Suspects, list[Id]]:
    """The suspects of a model, and their ids."""
    estimator = fitted(model, CLASSIFYING)
    rows = rows_of(model, estimator)
    found = suspects(estimator, *rows, ids=list(model.store.examples.names) if rows else None)
    return found, found.ids.tolist()


def apply_answers(model: Model) -> None:
    """Ask about one suspect after the other, and do what the keys say; suspects re-rank at once."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput("--apply asks on a terminal, and this is none. Leave it out for a list.")
    try:
        from knowmore.cli.keyboard import Keyboard
    except ImportError as error:
        raise InvalidInput("--apply needs a terminal of Unix. Leave it out for a list.") from error
    with Keyboard() as keyboard:
        _Audit(model, keyboard.key, keyboard.line).run()


class _Audit:
    """A conversation about suspects.

    key : waits for a key
    line : asks for a line of text
    """

    def __init__(self, model: Model, key: Callable[[], str], line: Callable[[str], str]) -> None:
        self.model, self.key, self.line = model, key, line
        # What was decided, in order: the id, and whether the model was changed.
        self.decided: list[tuple[Id, bool]] = []
        self.tally = {"relabelled": 0, "kept": 0, "forgotten": 0}

    def run(self) -> None:
        """Ask until no suspect is left, or until q."""
        print(_KEYS)
        while (suspect := self._next()) is not None:
            one, label, preferred, margin = suspect
            print(f"\n{one}: labelled {label}; the others say {preferred} (margin {margin:.3g})")
            if not self._decide(one, preferred):
                break
        else:
            print("\nNo other suspect is left.")
        parts = [f"{count} {what}" for what, count in self.tally.items()]
        print(f"{', '.join(parts)}.")

    def _next(self) -> tuple[Id, Any, Any, float] | None:
        found, ids = _asked(self.model)
        done = {one for one, _ in self.decided}
        for i, one in enumerate(ids):
            if one not in done:
                return one, found.labels[i], found.preferred[i], float(found.margin[i])
        return None

    def _decide(self, one: Id, preferred: Any) -> bool:
        """Wait for a key that means something, and do it; False to end."""
        while True:
            key = self.key().lower()
            if key in ("q", "\x03", "\x04", "\x1b", ""):
                return False
            try:
                if self._done(key, one, preferred):
                    return True
            except KnowmoreError as error:
                talk(str(error))

    def _done(self, key: str, one: Id, preferred: Any) -> bool:
        """Whether the key decided about this example, or took back the last decision."""
        store = self.model.store
        if key == "a":
            store.relabel([one], [preferred])
            print(f"  relabelled: {preferred}")
            return self._note(one, "relabelled", True)
        if key == "o":
            word = self.line("  label: ").strip()
            if not word:
                return False
            label = self.model.label(word)
            news, doubtful = newness(self.model, label)
            if doubtful:
                print(f"  {news} Make it? y/n", flush=True)
                if self.key().lower() != "y":
                    return False
            store.relabel([one], [label])
            print(f"  relabelled: {label}{news and f'. {news}'}")
            return self._note(one, "relabelled", True)
        if key == "k":
            print("  kept")
            return self._note(one, "kept", False)
        if key == "f":
            print("  forget it for ever? y/n", flush=True)
            if self.key().lower() != "y":
                return False
            done = store.forget([one])
            print(f"  forgotten{done.warning and f'. {done.warning}'}")
            for sentence in done.kept:
                print(f"  {sentence}")
            self.tally["forgotten"] += 1
            # What is forgotten cannot come back, nor can what was decided before it be undone.
            self.decided = [(other, False) for other, _ in self.decided]
            return True
        if key == "u":
            return self._undo()
        print(_KEYS)
        return False

    def _note(self, one: Id, what: str, changed: bool) -> bool:
        self.decided.append((one, changed))
        self.tally[what] += 1
        return True

    def _undo(self) -> bool:
        if not self.decided:
            print("  nothing to undo")
            return False
        one, changed = self.decided.pop()
        if changed:
            self.model.store.undo()
        self.tally["relabelled" if changed else "kept"] -= 1
        print(f"  undone: {one}")
        return True
