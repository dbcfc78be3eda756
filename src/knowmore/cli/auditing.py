"""`knowmore suspects`: labels that the other examples contradict, and what to do about each."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from knowmore.cli.left_out import CLASSIFYING, fitted, rows_of
from knowmore.cli.model import Model
from knowmore.cli.near import newness
from knowmore.cli.showing import talk
from knowmore.edits import Id
from knowmore.errors import InvalidInput, KnowmoreError
from knowmore.insight.suspects import Suspects, suspects

_KEYS = "a accept   o other label   k keep   f forget   u undo   q quit"


class Listed(NamedTuple):
    """The most suspicious examples.

    rows : id, label, preferred label, doubt, margin, who gave the label, who gave the features, the
        ids that speak most against
    total : how many suspects there are
    kept : how many more there would be, had nobody confirmed their labels
    """

    rows: list[list[Any]]
    total: int
    kept: int


def suspects_of(model: Model, count: int) -> Listed:
    """The first suspects, the most suspicious first."""
    found, kept = _asked(model)
    first, held = found.part(slice(count)), model.held()
    columns = (first.labels, first.preferred, first.doubt, first.margin)
    ids = first.ids.tolist()
    against = [()] * len(ids) if rows_of(model, fitted(model)) else first.contradicting
    rows = [
        [
            one,
            *(column[i].item() for column in columns),
            held[one].labeller,
            held[one].contributor,
            list(against[i]),
        ]
        for i, one in enumerate(ids)
    ]
    return Listed(rows, len(found), kept)


def _asked(model: Model) -> tuple[Suspects, int]:
    """The suspects whose labels nobody has confirmed, and how many others there are."""
    estimator = fitted(model, CLASSIFYING)
    rows = rows_of(model, estimator)
    found = suspects(estimator, *rows, ids=list(model.store.examples.names) if rows else None)
    open_ = found.without(model.store.kept_)
    return open_, len(found) - len(open_)


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
        # The preferred labels of all that were suspects at the start: mending one label changes
        # what is said of the others, but these have been promised to be asked.
        found, _ = _asked(model)
        self.listed = dict(zip(found.ids.tolist(), found.preferred.tolist(), strict=True))
        # Decisions in order: the id, and what was done. None: it cannot be undone any more.
        self.decided: list[tuple[Id, str | None]] = []
        self.tally = {"relabelled": 0, "kept": 0, "forgotten": 0}

    def run(self) -> None:
        """Ask until no suspect is left, or until q."""
        print(_KEYS)
        while (suspect := self._next()) is not None:
            one, preferred, sentence = suspect
            print(f"\n{one}: {sentence}")
            if not self._decide(one, preferred):
                break
        else:
            print("\nNo other suspect is left.")
        parts = [f"{count} {what}" for what, count in self.tally.items()]
        print(f"{', '.join(parts)}.")

    def _next(self) -> tuple[Id, Any, str] | None:
        """The next suspect: its id, the preferred label, and both labels in words.

        After the suspects of now those of the start that nobody has decided about.
        """
        done = [one for one, _ in self.decided]
        found = _asked(self.model)[0].without(done)
        columns = found.ids.tolist(), found.labels, found.preferred, found.margin
        for one, label, preferred, margin in zip(*columns, strict=True):
            said = f"labelled {label}; the others say {preferred} (margin {margin:.3g})"
            return one, preferred, said
        held = self.model.held()
        for one, preferred in self.listed.items():
            if one in held and one not in done and not held[one].kept:
                label = held[one].label
                said = f"labelled {label}; at the start the others said {preferred}"
                return one, preferred, said
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
            return self._note(one, "relabelled")
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
            return self._note(one, "relabelled")
        if key == "k":
            store.keep([one])
            print("  kept")
            return self._note(one, "kept")
        if key == "f":
            print("  forget it for ever? y/n", flush=True)
            if self.key().lower() != "y":
                return False
            done = store.forget([one])
            print(f"  forgotten{done.warning and f'. {done.warning}'}")
            for sentence in done.kept:
                print(f"  {sentence}")
            self.tally["forgotten"] += 1
            # The file cannot go back behind a forget.
            self.decided = [(o, what if what == "kept" else None) for o, what in self.decided]
            return True
        if key == "u":
            return self._undo()
        print(_KEYS)
        return False

    def _note(self, one: Id, what: str) -> bool:
        self.decided.append((one, what))
        self.tally[what] += 1
        return True

    def _undo(self) -> bool:
        one, what = self.decided[-1] if self.decided else (None, None)
        if what is None:
            print("  nothing to undo")
            return False
        if what == "kept":
            self.model.store.keep([one], kept=False)
        else:
            self.model.store.undo()
        self.decided.pop()
        self.tally[what] -= 1
        print(f"  undone: {one}")
        return True
