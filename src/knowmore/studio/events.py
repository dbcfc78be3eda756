"""What happened to a file, for pages that listen: each event has the journal's number as its id.

They name no example, label or contributor: an event outlives what it was about.

Where the journal stands says all: no number is ever used for two states. So a page that was away
tells the last number it knew, and gets what came since, or is told to look at all of it anew.
"""

from __future__ import annotations

import json
from collections import deque
from typing import Any, NamedTuple, final

from knowmore.store import Entry
from knowmore.studio.snapshot import Snapshot

_KEPT = 1000


class Event(NamedTuple):
    """An event of a stream.

    number : of the journal, after it
    name : "edit", or "resync" if all must be looked at anew
    """

    number: int
    name: str
    data: dict[str, Any]

    def text(self) -> str:
        """As it is sent."""
        return f"id: {self.number}\nevent: {self.name}\ndata: {json.dumps(self.data)}\n\n"


@final
class Events:
    """The last events, the oldest first.

    count : how many there ever were
    """

    def __init__(self) -> None:
        self.count = 0
        self._last: deque[Event] = deque(maxlen=_KEPT)

    def note(self, before: Snapshot, after: Snapshot) -> None:
        """Note what led from one state to the next."""
        for event in between(before, after):
            self._last.append(event)
            self.count += 1

    def newer(self, count: int) -> list[Event] | None:
        """Those after the first `count`; None if some of them are not kept."""
        missing = self.count - count
        return None if missing > len(self._last) else [*self._last][len(self._last) - missing :]

    def since(self, number: int, now: Snapshot) -> list[Event]:
        """What a page that last knew this number of the journal has missed."""
        if number == now.number:
            return []
        kept = [*self._last]
        for i in reversed(range(len(kept))):
            if kept[i].number == number:
                return kept[i + 1 :]
        if not _stands(number, now):
            return [resync(now)]
        return [_edit(one, now) for one in now.entries if number < one.number <= now.number]


def between(before: Snapshot, after: Snapshot) -> list[Event]:
    """The events that led from one state of a file to another."""
    if after.number == before.number:
        return []
    if after.number < before.number:
        entry = before.undo
        if entry is None or not any(one.number == before.number for one in after.entries):
            return [resync(after)]
        return [_edit(entry, after, "undo")]
    if not _stands(before.number, after):
        return [resync(after)]
    again = {one.number for one in before.entries if one.undone}
    new = [one for one in after.entries if before.number < one.number <= after.number]
    return [_edit(one, after, "redo" if one.number in again else one.verb) for one in new]


def resync(now: Snapshot) -> Event:
    """All must be looked at anew."""
    return Event(now.number, "resync", {"number": now.number, "n": len(now)})


def _stands(number: int, now: Snapshot) -> bool:
    """Whether what the journal was at this number is still a part of it."""
    return number == 0 or any(one.number == number and not one.undone for one in now.entries)


def _edit(entry: Entry, now: Snapshot, verb: str | None = None) -> Event:
    number = now.number if verb == "undo" else entry.number
    data = {
        "number": number,
        "verb": verb or entry.verb,
        "count": entry.count,
        "n": len(now) if number == now.number else None,
    }
    return Event(number, "edit", data)
