"""Texts as they come: which can be used, the text of a file, and the words of a text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

# A text of more characters is not one text. A novel has a million.
MOST: Final = 1_000_000
# A word, with what is written within it: "don't", "e-mail", "3.5".
_WORD = re.compile("\\w+(?:['\u2019.,@-]\\w+)*")


def unusable(text: Any) -> str | None:
    """The reason why a text cannot be used, as the end of a sentence; None if it can.

    >>> unusable("Good morning"), unusable(" "), unusable("\\0")
    (None, 'has no text.', 'has a NUL character at 0, so it is no text.')
    """
    if not isinstance(text, str):
        return f"is {type(text).__name__}, not text."
    if not text.strip():
        return "has no text."
    if len(text) > MOST:
        return f"has {len(text):,} characters, more than the {MOST:,} allowed. Divide it."
    if (at := text.find("\0")) >= 0:
        return f"has a NUL character at {at}, so it is no text."
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"has half a character (a surrogate) at {error.start}. Write it as UTF-8."
    return None


def read_text(path: Path) -> tuple[str, str | None]:
    """The text of a file in UTF-8, and why it cannot be used, if so."""
    try:
        # A character takes at most four bytes.
        if (size := path.stat().st_size) > 4 * MOST:
            return "", f"has {size:,} bytes, more than {MOST:,} characters take. Divide it."
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        return "", f"is not UTF-8: byte {error.start} is 0x{byte:02x}. Save it as UTF-8."
    except OSError as error:
        return "", f"cannot be read: {error.strerror or error}."
    return text, unusable(text)


def words_of(text: str) -> dict[str, list[tuple[int, int]]]:
    """The words of a text in lower case, each with the places where it stands.

    >>> words_of("Don't panic, don't!")
    {"don't": [(0, 5), (13, 18)], 'panic': [(6, 11)]}
    """
    found: dict[str, list[tuple[int, int]]] = {}
    for match in _WORD.finditer(text):
        found.setdefault(match.group().casefold(), []).append(match.span())
    return found
