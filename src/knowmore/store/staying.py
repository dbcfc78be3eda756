"""What stays in a file when examples are forgotten, though these may have had a part in it.

The examples that are left choose kernel widths, noises and grids again. What was made from other
sources, or found by a search that somebody asked for, cannot be made again from them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Any

# The verb of an entry that sets parameters which `tune` found.
TUNE = "tune"


def staying(facts: dict[str, Any], verbs: Iterable[str], problem: str = "") -> tuple[str, ...]:
    """What stays, each in a sentence.

    verbs : of the entries of the journal up to the last one that forgets
    problem : why the examples that are left cannot choose the settings; "" if they can
    """
    found = []
    if problem:
        why = "The settings that examples had chosen stay, since those left cannot choose others"
        found.append(f"{why}: {problem}")
    pictures = facts["notes"].get("pictures")
    if pictures and "words" in pictures:
        found.append("The visual words, learnt from a sample of the first pictures, stay.")
    if facts.get("supports"):
        found.append("The supports stay as they were given.")
    if path := facts.get("source", {}).get("path"):
        name = PurePosixPath(path).name
        found.append(f"The source, {name}, stays, with all that it has learnt.")
    if TUNE in verbs:
        found.append("Parameters that tune found stay: tune again.")
    return tuple(found)
