"""The file behind a service or a studio, as others write to it, and the events that follow."""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple, final

from knowmore.errors import KnowmoreError, NoExamples
from knowmore.web.access import Settings

if TYPE_CHECKING:
    from knowmore.store import Entry
    from knowmore.web.answering import Answering
    from knowmore.web.snapshot import Snapshot

Failed = Callable[[KnowmoreError], None]
Ready = Callable[[], None]
# Events that are kept.
_KEPT = 1000


@final
class FollowedFile:
    """An open file, and a value that is made of its state.

    make : makes the value of the store and of the value before it; the `version` of a value is the
        last entry of the journal then, or 0
    value : the value; None before the first look
    stale : whether the next look makes the value anew: set it before an edit of the store
    """

    def __init__(self, store: Any, make: Callable[[Any, Any], Any]) -> None:
        self.store, self._make = store, make
        self.value: Any = None
        self.stale = True

    def look(self) -> bool:
        """Make the value anew if the file has changed, or could not be read; whether it was."""
        if not self.store.refresh() and not self.stale:
            return False
        self.stale = True
        while self.stale:
            value = self._make(self.store, self.value)
            # Again if somebody wrote meanwhile: version and model must match.
            if not self.store.refresh() and not self.store.log(after=value.version):
                self.value, self.stale = value, False
        return True


@final
class ServedFile:
    """The model as it is in a file, at most a moment ago; the file at the path may be replaced.

    now : the model that answers; None until the first is loaded
    problem : why the file could not be read at the last look; None if it could
    failures : how many looks failed
    """

    def __init__(
        self, settings: Settings, failed: Failed | None = None, ready: Ready | None = None
    ) -> None:
        self.settings, self._failed, self._ready = settings, failed, ready
        self.now: Answering | None = None
        self.problem: str | None = "The model is being loaded. Ask again in a moment."
        self.failures = 0
        self._file: FollowedFile | None = None
        # The device and inode of the file at the path when it was opened.
        self._place: tuple[int, int] | None = None
        self._lock, self._end = Lock(), Event()
        self._thread = Thread(target=self._run, name="knowmore-follow", daemon=True)

    def start(self) -> None:
        """Load the model and follow the file, in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread and let go of the file."""
        self._end.set()
        self._thread.join(timeout=5)
        with self._lock:
            self._close()

    def _run(self) -> None:
        while not self._end.is_set():
            self.look()
            if self.now is None and self.failures and self._failed is not None:
                return
            if self.now is not None and self._ready is not None:
                self._ready()
                self._ready = None
            self._end.wait(self.settings.follow)

    def look(self) -> None:
        """Follow the file; if it cannot be read, the model before goes on answering.

        Not if something was forgotten since.
        """
        try:
            with self._lock:
                self._follow()
        except Exception as error:
            self.failures += 1
            before, self.problem = self.problem, f"The file could not be read: {error}"
            known = error if isinstance(error, KnowmoreError) else KnowmoreError(str(error))
            if self.problem != before:
                print(f"knowmore: {self.problem}", file=sys.stderr, flush=True)
            if self.now is None and self._failed is not None:
                self._failed(known)
        else:
            self.problem = None

    def _follow(self) -> None:
        from knowmore.store import FORGETS

        try:
            file = self._open()
            file.look()
            self.now = file.value
        except Exception:
            # The model before may answer only while it holds nothing that was forgotten.
            if self.now is not None and self._file is not None:
                with suppress(KnowmoreError):
                    later = self._file.store.log(after=self.now.version)
                    if any(entry.verb in FORGETS for entry in later):
                        self.now = None
            raise

    def _open(self) -> FollowedFile:
        """The file, opened if none is open, or if another has taken its place."""
        import knowmore

        place = None
        with suppress(OSError):
            found = os.stat(self.settings.path)
            place = found.st_dev, found.st_ino
        if place is not None and place != self._place:
            self._close()
        if self._file is None:
            # This loads scikit-learn.
            from knowmore.web.answering import Answering

            store, rate = knowmore.open(self.settings.path), self.settings.rate
            records = self.settings.label_studio
            self._file = FollowedFile(store, lambda store, _: Answering(store, rate, records))
            self._place = place
        return self._file

    def _close(self) -> None:
        if self._file is not None:
            self._file.store.close()
            self._file = None

    def edit(self, change: Callable[[Any], Any]) -> Any:
        """Apply a change to the open file; it is durable, and answered from, on return."""
        with self._lock:
            if self._file is None:
                raise NoExamples(str(self.problem))
            file = self._open()
            file.stale = True
            result = change(file.store)
            file.look()
            self.now = file.value
            return result


# -- events --------------------------------------------------------------------------------------
# They name no example, label or contributor: an event outlives what it was about. The journal's
# number is the id of an event, and no number is ever used for two states. So a page that was away
# tells the last number it knew, and gets what came since, or is told to look at all of it anew.


class FileEvent(NamedTuple):
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
class FileEvents:
    """The last events, the oldest first.

    count : how many there ever were
    """

    def __init__(self) -> None:
        self.count = 0
        self._last: deque[FileEvent] = deque(maxlen=_KEPT)

    def note(self, before: Snapshot, after: Snapshot) -> None:
        """Note the events that led from one state to the next."""
        events = between(before, after)
        self._last.extend(events)
        self.count += len(events)

    def newer(self, count: int) -> list[FileEvent] | None:
        """Events after the first `count`; None if some of them are not kept."""
        missing = self.count - count
        return None if missing > len(self._last) else [*self._last][len(self._last) - missing :]

    def since(self, number: int, now: Snapshot) -> list[FileEvent]:
        """The events that a page missed which last knew this number of the journal."""
        if number == now.number:
            return []
        kept = [*self._last]
        for i in reversed(range(len(kept))):
            if kept[i].number == number:
                return kept[i + 1 :]
        if not _stands(number, now):
            return [resync(now)]
        return [_edit(one, now) for one in now.entries if number < one.number <= now.number]


def between(before: Snapshot, after: Snapshot) -> list[FileEvent]:
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


def resync(now: Snapshot) -> FileEvent:
    """All must be looked at anew."""
    return FileEvent(now.number, "resync", {"number": now.number, "n": len(now)})


def _stands(number: int, now: Snapshot) -> bool:
    """Whether the entry of this number still stands."""
    return number == 0 or any(one.number == number and not one.undone for one in now.entries)


def _edit(entry: Entry, now: Snapshot, verb: str | None = None) -> FileEvent:
    number = now.number if verb == "undo" else entry.number
    data = {
        "number": number,
        "verb": verb or entry.verb,
        "count": entry.count,
        "n": len(now) if number == now.number else None,
    }
    return FileEvent(number, "edit", data)
