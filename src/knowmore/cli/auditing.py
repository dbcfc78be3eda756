"""`knowmore suspects --apply`: what to do about each label that the other examples contradict."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from knowmore._base import Id
from knowmore.cli.picturing import picture_row, pictures_of, terminal_way
from knowmore.cli.showing import brief, say, talk
from knowmore.errors import InvalidInput, KnowmoreError
from knowmore.store import Store
from knowmore.workbench import label_named, new_label, open_suspects, texts_of

try:
    import termios
    import tty
except ImportError:
    # Only terminals of Unix give out single keys.
    termios = tty = None  # type: ignore[assignment]

_KEYS = "a accept   o other label   n not this class   k keep   f forget   u undo   q quit"
# Why a later list of suspects may lack some of this one.
MENDED = "each mended label lowers the estimate of how many are wrong"
# Characters of a text that are shown.
_SHOWN = 600
# q, Ctrl+C, Ctrl+D, Escape, and the end of the input.
_ENDS = ("q", "\x03", "\x04", "\x1b", "")


def apply_answers(store: Store) -> None:
    """Ask about one suspect after the other, and do what the keys say; suspects re-rank at once."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InvalidInput("--apply asks on a terminal, and this is none. Leave it out for a list.")
    if termios is None:
        raise InvalidInput("--apply needs a terminal of Unix. Leave it out for a list.")
    with _keyboard() as (key, line):
        _Audit(store, key, line).run()


class _Audit:
    """A conversation about suspects.

    key : waits for a key
    line : asks for a line of text
    """

    def __init__(self, store: Store, key: Callable[[], str], line: Callable[[str], str]) -> None:
        self.store, self.key, self.line = store, key, line
        # The preferred labels of all that were suspects at the start: mending one label changes
        # the answers about other examples, but every suspect of the start is asked about.
        found, _ = open_suspects(store)
        self.listed = dict(zip(found.ids.tolist(), found.preferred.tolist(), strict=True))
        # Decisions in order: the id, and what was done. None: it cannot be undone any more.
        self.decided: list[tuple[Id, str | None]] = []
        self.tally = {"relabelled": 0, "kept": 0, "forgotten": 0, "put aside": 0}
        self._way = terminal_way()

    def run(self) -> None:
        """Ask until no suspect is left, or until q."""
        print(_KEYS)
        while (suspect := self._next()) is not None:
            one, preferred, sentence = suspect
            say(f"\n{one}: {sentence}")
            self._show(one)
            if text := (texts_of(self.store, [one]) or [None])[0]:
                print(f"  {brief(text, _SHOWN)}")
            if not self._decide(one, preferred):
                break
        else:
            print("\nNo other suspect is left.")
        tally = self.tally.items()
        parts = [f"{count} {what}" for what, count in tally if count or what != "put aside"]
        print(f"{', '.join(parts)}.")
        if open_ := self._open():
            talk(
                f"Not decided: {', '.join(str(one) for one, *_ in open_)}. A later list may leave "
                f"some of them out: {MENDED}."
            )

    def _show(self, one: Id) -> None:
        """The picture of a suspect, and below it those that contradict its label most."""
        if self._way is None or not self.store.notes.get("pictures"):
            return
        found, _ = open_suspects(self.store)
        place = [i for i, name in enumerate(found.ids.tolist()) if name == one]
        has = bool(place) and found.model.keeps_rows
        others = found.part(place).contradicting[0] if has else ()
        print(picture_row(self._way, pictures_of(self.store, [one, *others])))

    def _open(self) -> list[tuple[Id, Any, Any]]:
        """The suspects of the start that nobody has decided about: id, label, preferred label."""
        done = {one for one, _ in self.decided}
        held = {record.id: record for record in self.store.records()}
        return [
            (one, held[one].label, preferred)
            for one, preferred in self.listed.items()
            if one in held and one not in done and not held[one].kept
        ]

    def _next(self) -> tuple[Id, Any, str] | None:
        """The next suspect: its id, the preferred label, and both labels in words.

        After the suspects of now those of the start that nobody has decided about.
        """
        done = [one for one, _ in self.decided]
        found = open_suspects(self.store)[0].without(done)
        columns = found.ids.tolist(), found.labels, found.preferred, found.margin
        for one, label, preferred, margin in zip(*columns, strict=True):
            said = f"labelled {label}; the others say {preferred} (margin {margin:.3g})"
            return one, preferred, said
        for one, label, preferred in self._open():
            return one, preferred, f"labelled {label}; at the start the others said {preferred}"
        return None

    def _decide(self, one: Id, preferred: Any) -> bool:
        """Wait for a key that means something, and do it; False to end."""
        while (key := self.key().lower()) not in _ENDS:
            try:
                if self._done(key, one, preferred):
                    return True
            except KnowmoreError as error:
                talk(str(error))
        return False

    def _done(self, key: str, one: Id, preferred: Any) -> bool:
        """Whether the key decided about this example, or took back the last decision."""
        match key:
            case "a":
                return self._relabel(one, preferred, "")
            case "o":
                word = self.line("  label: ").strip()
                if not word:
                    return False
                label = label_named(self.store, word)
                note, is_doubtful = new_label(self.store, label)
                if is_doubtful and not self._confirmed(f"{note} Make it?"):
                    return False
                return self._relabel(one, label, note and f". {note}")
            case "n":
                self.store.refuse([one])
                print("  put aside, until somebody relabels it")
                return self._note(one, "put aside")
            case "k":
                self.store.keep([one])
                print("  kept")
                return self._note(one, "kept")
            case "f":
                return self._confirmed("forget it for ever?") and self._forget(one)
            case "u":
                return self._undo()
        print(_KEYS)
        return False

    def _confirmed(self, question: str) -> bool:
        say(f"  {question} y/n")
        return self.key().lower() == "y"

    def _relabel(self, one: Id, label: Any, note: str) -> bool:
        self.store.relabel([one], [label])
        say(f"  relabelled: {label}{note}")
        return self._note(one, "relabelled")

    def _forget(self, one: Id) -> bool:
        done = self.store.forget([one])
        print(f"  forgotten{done.warning and f'. {done.warning}'}")
        for sentence in done.kept:
            print(f"  {sentence}")
        self.tally["forgotten"] += 1
        # The file cannot go back behind a forget.
        self.decided = [(o, what if what == "kept" else None) for o, what in self.decided]
        return True

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
            self.store.keep([one], kept=False)
        else:
            self.store.undo()
        self.decided.pop()
        self.tally[what] -= 1
        say(f"  undone: {one}")
        return True


@contextmanager
def _keyboard() -> Iterator[tuple[Callable[[], str], Callable[[str], str]]]:
    """A terminal that gives out each key at once, and a line when asked for one.

    It stays so between keys: what is typed ahead is not lost.
    """
    terminal = sys.stdin.fileno()
    usual = termios.tcgetattr(terminal)

    def key() -> str:
        """The next key; "" at the end of the input."""
        print(end="", flush=True)
        return os.read(terminal, 1).decode(errors="replace")

    def line(question: str) -> str:
        """The next line, as a terminal usually gives it."""
        termios.tcsetattr(terminal, termios.TCSANOW, usual)
        try:
            return input(question)
        finally:
            tty.setcbreak(terminal, termios.TCSANOW)

    tty.setcbreak(terminal, termios.TCSANOW)
    try:
        yield key, line
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, usual)
