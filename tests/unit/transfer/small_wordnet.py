"""A WordNet of a few synsets, written as the database files are."""

from __future__ import annotations

import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LICENCE = "  1 This software and database is being provided to you  \n  2 as is.  \n"


@dataclass(frozen=True)
class Entry:
    """A synset: its nouns, what it is a kind of and one of (by number), and how often it is met."""

    words: Sequence[str]
    kinds: Sequence[int] = ()
    instances: Sequence[int] = ()
    gloss: str = "a thing"
    met: int = 1


@dataclass(frozen=True)
class Small:
    """Synsets by number. `senses` orders the meanings of a noun; else they come as the synsets."""

    entries: Sequence[Entry]
    exceptions: str = ""
    senses: Mapping[str, Sequence[int]] = field(default_factory=dict)

    def offset(self, number: int) -> str:
        return f"{1740 + 97 * number:08}"

    def above(self, number: int) -> list[int]:
        entry = self.entries[number]
        return [*entry.kinds, *entry.instances]

    def subsumers(self, number: int) -> set[int]:
        return {number}.union(*(self.subsumers(up) for up in self.above(number)))

    def meanings(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, entry in enumerate(self.entries):
            for word in entry.words:
                found.setdefault(word.lower(), []).append(number)
        return found | {noun: list(order) for noun, order in self.senses.items()}

    def counts(self) -> list[int]:
        total = [0] * len(self.entries)
        for number, entry in enumerate(self.entries):
            for up in self.subsumers(number):
                total[up] += entry.met
        return total

    def files(self) -> dict[str, str]:
        return {
            "data.noun": LICENCE + "".join(map(self._synset, range(len(self.entries)))),
            "index.noun": LICENCE + "".join(self._noun(*item) for item in self._sorted()),
            "noun.exc": self.exceptions,
            "ic-small.dat": "wnver::abc\n" + "".join(self._count(*c) for c in self._counted()),
        }

    def write(self, folder: Path) -> Path:
        (folder / "ic").mkdir(parents=True, exist_ok=True)
        for name, text in self.files().items():
            (folder / ("ic" if name.endswith(".dat") else "") / name).write_text(text)
        return folder

    def pack(self, folder: Path, end: str, mode: str) -> Path:
        path = self.write(folder / "loose").parent / f"packed.{end}"
        with tarfile.open(path, mode) as archive:
            archive.add(folder / "loose", "wordnet")
        return path

    def _synset(self, number: int) -> str:
        entry = self.entries[number]
        words = "".join(f"{word} 0 " for word in entry.words)
        up = [("@", one) for one in entry.kinds] + [("@i", one) for one in entry.instances]
        # Pointers of other kinds are to be passed over.
        down = [("~", one) for one in range(len(self.entries)) if number in self.above(one)]
        pointers = "".join(f"{kind} {self.offset(one)} n 0000 " for kind, one in up + down)
        facts = f"{self.offset(number)} 03 n {len(entry.words):02x} {words}{len(up + down):03} "
        return f"{facts}{pointers}| {entry.gloss}  \n"

    def _sorted(self) -> list[tuple[str, list[int]]]:
        return sorted(self.meanings().items())

    def _noun(self, noun: str, senses: list[int]) -> str:
        offsets = " ".join(map(self.offset, senses))
        return f"{noun} n {len(senses)} 2 @ ~ {len(senses)} 0 {offsets}  \n"

    def _counted(self) -> list[tuple[int, int]]:
        return list(enumerate(self.counts()))

    def _count(self, number: int, count: int) -> str:
        root = "" if self.above(number) else " ROOT"
        return f"{int(self.offset(number))}n {count}{root}\n"
