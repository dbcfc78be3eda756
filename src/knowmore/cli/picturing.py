"""Pictures on a terminal, in the way that it understands; nothing where it understands none."""

from __future__ import annotations

import io
import os
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from knowmore._base import Array, Id, optional
from knowmore.images import small
from knowmore.store import Store
from knowmore.workbench import small_picture

# Cells of a terminal that a picture fills, and pixels of a cell: about those of most fonts.
_COLUMNS, _ROWS, _CELL = 32, 16, (8, 16)
# Colours of a sixel picture, and bytes of one part of kitty's.
_COLOURS, _PART = 256, 4096
Way = Callable[[bytes, int, int], str]


def way_of(environment: Mapping[str, str]) -> Way | None:
    """How a terminal shows pictures, by its environment variables; None if it is not known to.

    >>> way_of({"TERM_PROGRAM": "iTerm.app"}).__name__, way_of({"TERM": "xterm-kitty"}).__name__
    ('iterm', 'kitty')
    >>> way_of({"COLORTERM": "truecolor"}).__name__, way_of({"TERM": "vt100"})
    ('half_blocks', None)
    """
    has = environment.get
    if has("NO_COLOR"):
        return None
    program, term = has("TERM_PROGRAM", ""), has("TERM", "")
    if not has("TMUX") and not term.startswith("screen"):
        # A multiplexer lets nothing of these through.
        if program in ("iTerm.app", "WezTerm") or has("LC_TERMINAL") == "iTerm2":
            return iterm
        if has("KITTY_WINDOW_ID") or term in ("xterm-kitty", "xterm-ghostty"):
            return kitty
        if "sixel" in term or term.startswith(("foot", "mlterm")) or program == "mintty":
            return sixel
    return half_blocks if has("COLORTERM") in ("truecolor", "24bit") else None


def terminal_way() -> Way | None:
    """How standard output shows pictures; None if it is no terminal, or shows none."""
    return way_of(os.environ) if sys.stdout.isatty() else None


def pictures_of(store: Store, ids: Sequence[Id]) -> list[bytes]:
    """Small pictures (JPEG) of examples that are pictures, where these are to be had."""
    if not ids or not store.notes.get("pictures"):
        return []
    found = (small_picture(store, record) for record in store.records(list(ids)))
    return [one for one in found if one is not None]


def picture_row(way: Way, pictures: Sequence[bytes]) -> str:
    """One larger picture, and others below it side by side, as text for a terminal."""
    if not pictures:
        return ""
    first, *others = pictures
    shown = [way(first, _COLUMNS, _ROWS)]
    if others:
        shown.append(way(_beside(others), _COLUMNS * 3 // 2, _ROWS // 2))
    return "\n".join(shown)


def _beside(pictures: Sequence[bytes]) -> bytes:
    """Pictures side by side, each in a square, as PNG."""
    side = _CELL[1] * _ROWS // 2
    strip = np.full((side, (side + _CELL[0]) * len(pictures), 3), 0, dtype=np.uint8)
    for i, data in enumerate(pictures):
        pixels = _pixels(data, side)
        at = i * (side + _CELL[0])
        strip[: pixels.shape[0], at : at + pixels.shape[1]] = pixels
    file = io.BytesIO()
    optional("PIL.Image", "images").fromarray(strip).save(file, "PNG")
    return file.getvalue()


def _pixels(data: bytes, longest: int) -> Array:
    """The pixels (h, w, 3) of a picture, reduced."""
    pixels = small(data, "a picture", longest)
    return np.repeat(pixels[..., None], 3, axis=2) if pixels.ndim == 2 else pixels


def _fitted(data: bytes, columns: int, rows: int, cell: tuple[int, int]) -> Any:
    """A picture that fits in so many cells, as Pillow has it."""
    image = optional("PIL.Image", "images").fromarray(_pixels(data, 1024))
    scale = min(columns * cell[0] / image.width, rows * cell[1] / image.height)
    return image.resize((max(round(image.width * scale), 1), max(round(image.height * scale), 1)))


def _png(data: bytes, columns: int, rows: int) -> bytes:
    file = io.BytesIO()
    _fitted(data, columns, rows, _CELL).save(file, "PNG")
    return file.getvalue()


# -- the ways --------------------------------------------------------------------------------------


def iterm(data: bytes, columns: int, rows: int) -> str:
    """A picture for iTerm2 and WezTerm."""
    png = _png(data, columns, rows)
    how = f"inline=1;size={len(png)};height={rows};preserveAspectRatio=1"
    return f"\033]1337;File={how}:{b64encode(png).decode()}\a"


def kitty(data: bytes, columns: int, rows: int) -> str:
    """A picture for kitty and Ghostty."""
    text = b64encode(_png(data, columns, rows)).decode()
    parts = [text[at : at + _PART] for at in range(0, len(text), _PART)]
    return "".join(
        f"\033_G{'a=T,f=100,' if not i else ''}m={int(i + 1 < len(parts))};{part}\033\\"
        for i, part in enumerate(parts)
    )


def sixel(data: bytes, columns: int, rows: int) -> str:
    """A picture in sixels, six rows of pixels at a time."""
    image = _fitted(data, columns, rows, _CELL).quantize(_COLOURS)
    codes, palette = np.asarray(image), np.array(image.getpalette()).reshape(-1, 3)
    shades = (f"#{i};2;{r};{g};{b}" for i, (r, g, b) in enumerate((palette * 100 // 255).tolist()))
    return f"\033Pq{''.join(shades)}{'-'.join(_bands(codes))}\033\\"


def _bands(codes: Array) -> Iterator[str]:
    """Bands of six rows: for each colour of one a character a column, with a bit for each row."""
    for top in range(0, len(codes), 6):
        band = codes[top : top + 6]
        bits = 1 << np.arange(len(band))
        lines = []
        for colour in np.unique(band).tolist():
            dots = ((band == colour) * bits[:, None]).sum(axis=0)
            lines.append(f"#{colour}" + "".join(chr(63 + one) for one in dots.tolist()))
        yield "$".join(lines)


def half_blocks(data: bytes, columns: int, rows: int) -> str:
    """A picture of characters that fill the upper half of a cell, two pixels each."""
    pixels = np.asarray(_fitted(data, columns, rows, (1, 2)))
    if len(pixels) % 2:
        pixels = np.concatenate([pixels, pixels[-1:]])
    lines = []
    for upper, lower in zip(pixels[::2].tolist(), pixels[1::2].tolist(), strict=True):
        cells = (
            f"\033[38;2;{a[0]};{a[1]};{a[2]};48;2;{b[0]};{b[1]};{b[2]}m▀"
            for a, b in zip(upper, lower, strict=True)
        )
        lines.append("".join(cells) + "\033[0m")
    return "\n".join(lines)
