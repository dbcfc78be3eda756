"""Single keys from a terminal."""

from __future__ import annotations

import os
import sys
import termios
import tty
from typing import Self, final


@final
class Keyboard:
    """A terminal that gives out each key at once, in a `with` block.

    It stays so between keys: what is typed ahead is not lost.
    """

    def __enter__(self) -> Self:
        self._fd = sys.stdin.fileno()
        self._usual = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd, termios.TCSANOW)
        return self

    def __exit__(self, *_: object) -> None:
        termios.tcsetattr(self._fd, termios.TCSANOW, self._usual)

    def key(self) -> str:
        """The next key; "" at the end of the input."""
        print(end="", flush=True)
        return os.read(self._fd, 1).decode(errors="replace")

    def line(self, question: str) -> str:
        """The next line, as a terminal usually gives it."""
        self.__exit__()
        try:
            return input(question)
        finally:
            tty.setcbreak(self._fd, termios.TCSANOW)
