"""The file behind a service: loaded in the background, and followed as others write to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, final

from knowmore.errors import KnowmoreError, NoExamples
from knowmore.serve.settings import Settings

if TYPE_CHECKING:
    from knowmore.serve.answering import Answering

Failed = Callable[[KnowmoreError], None]
Ready = Callable[[], None]


@final
class Following:
    """The model as it is in the file, at most a moment ago.

    now : the model that answers; None until the first is loaded
    problem : why the file could not be read when it was last looked at; None if it could
    failures : how often that happened
    """

    def __init__(
        self, settings: Settings, failed: Failed | None = None, ready: Ready | None = None
    ) -> None:
        self.settings, self._failed, self._ready = settings, failed, ready
        self.now: Answering | None = None
        self.problem: str | None = "The model is being loaded. Ask again in a moment."
        self.failures = 0
        self._store: Any = None
        # Which file was at the path when it was opened.
        self._place: tuple[int, int] | None = None
        # Whether the file that is open holds another model than the one that answers.
        self._stale = True
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
            if self._store is not None:
                self._store.close()
                self._store = None

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
        try:
            if self._open() or self._store.refresh() or self._stale:
                self._stale = True
                self._renew()
        except Exception:
            # The model before may answer only while it holds nothing that was forgotten.
            if self._has_forgotten():
                self.now = None
            raise

    def _has_forgotten(self) -> bool:
        """Whether the file is known to have forgotten something since the model that answers."""
        from knowmore.store.journal import FORGETS

        if self.now is None or self._store is None:
            return False
        with suppress(KnowmoreError):
            return any(one.verb in FORGETS for one in self._store.log(after=self.now.version))
        return False

    def _open(self) -> bool:
        """Open the file if none is open, or if another has taken its place; whether it was."""
        import knowmore

        place = _place(self.settings.path)
        if self._store is not None and place is not None and place != self._place:
            self._store.close()
            self._store = None
        if self._store is not None:
            return False
        self._store, self._place, self._stale = knowmore.open(self.settings.path), place, True
        return True

    def _renew(self) -> None:
        """Answer from what the open file holds."""
        # This loads scikit-learn.
        from knowmore.serve.answering import Answering

        while self._stale:
            number = self._last()
            found = Answering(self._store, number, self.settings.rate)
            # Whoever wrote in between would have the entry of one model named with another.
            if not self._store.refresh() and self._last() == number:
                self.now, self._stale = found, False

    def _last(self) -> int:
        """The number of the last entry of the journal, or 0."""
        entries = self._store.log()
        return entries[-1].number if entries else 0

    def edit(self, change: Callable[[Any], Any]) -> Any:
        """Apply a change to the open file; it is durable, and answered from, on return."""
        with self._lock:
            if self._store is None:
                raise NoExamples(str(self.problem))
            self._open()
            self._stale = True
            result = change(self._store)
            self._renew()
            return result


def _place(path: Path) -> tuple[int, int] | None:
    """What tells the file at a path from all others; None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
