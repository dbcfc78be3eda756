"""Pictures on a terminal: each way by the environment, and pixels that come out as they went in."""

from __future__ import annotations

import io
import re
from base64 import b64decode

import numpy as np
import pytest
from fruit import fruit
from PIL import Image

import knowmore
from knowmore.cli import picturing
from knowmore.cli.picturing import half_blocks, iterm, kitty, picture_row, pictures_of, sixel

ENVIRONMENTS = [
    ({"TERM_PROGRAM": "iTerm.app"}, iterm),
    ({"LC_TERMINAL": "iTerm2", "COLORTERM": "truecolor"}, iterm),
    ({"TERM_PROGRAM": "WezTerm"}, iterm),
    ({"TERM": "xterm-kitty"}, kitty),
    ({"KITTY_WINDOW_ID": "1", "TERM": "xterm"}, kitty),
    ({"TERM": "foot"}, sixel),
    ({"TERM": "xterm-sixel"}, sixel),
    ({"COLORTERM": "24bit", "TERM": "xterm"}, half_blocks),
    # A multiplexer lets only characters through.
    ({"TERM_PROGRAM": "iTerm.app", "TMUX": "x", "COLORTERM": "truecolor"}, half_blocks),
    ({"TERM": "xterm"}, None),
    ({}, None),
    ({"TERM_PROGRAM": "iTerm.app", "NO_COLOR": "1"}, None),
]


@pytest.mark.parametrize(("environment", "way"), ENVIRONMENTS)
def test_the_way_follows_the_terminal(environment, way):
    assert picturing.way_of(environment) is way


def test_nothing_where_there_is_no_terminal(monkeypatch):
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert picturing.terminal_way() is None


def striped():
    """Red above blue, as PNG."""
    pixels = np.zeros((40, 80, 3), dtype=np.uint8)
    pixels[:20, :, 0] = pixels[20:, :, 2] = 255
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def test_iterm_and_kitty_get_the_picture_in_base64():
    for text, part in (
        (iterm(striped(), 10, 10), r"File=.*?:(.*)\a"),
        (kitty(striped(), 10, 10), r"m=0;(.*?)\x1b"),
    ):
        found = np.asarray(Image.open(io.BytesIO(b64decode(re.search(part, text)[1]))))
        assert found.shape == (40, 80, 3)
        assert (found[0, 0].tolist(), found[-1, -1].tolist()) == ([255, 0, 0], [0, 0, 255])


def test_kitty_gets_a_large_picture_in_parts():
    noise = np.random.default_rng(0).integers(0, 256, (160, 160, 3)).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(noise).save(file, "PNG")
    parts = re.findall(r"\x1b_G(.*?);(.*?)\x1b\\", kitty(file.getvalue(), 32, 16))
    assert len(parts) > 2
    assert [head[-3:] for head, _ in parts] == ["m=1"] * (len(parts) - 1) + ["m=0"]
    assert all(len(data) <= 4096 for _, data in parts)
    Image.open(io.BytesIO(b64decode("".join(data for _, data in parts)))).load()


def test_half_blocks_have_two_pixels_each():
    lines = half_blocks(striped(), 8, 8).splitlines()
    assert len(lines) == 2
    assert [line.count("▀") for line in lines] == [8, 8]
    assert all(line.endswith("\033[0m") for line in lines)
    # The upper pixel is the colour of the character, the lower one that of what is behind it.
    assert lines[0].startswith("\033[38;2;255;0;0;48;")
    assert ";48;2;0;0;255m" in lines[1]


def test_sixels_name_their_colours_and_fill_their_bands():
    text = sixel(striped(), 10, 10)
    assert text.startswith("\033Pq#0;2;")
    assert text.endswith("\033\\")
    assert "2;100;0;0" in text
    assert "2;0;0;100" in text
    # 40 rows are seven bands of six, the last of four.
    assert text.count("-") == 6


def test_a_suspect_is_above_those_that_contradict_it(tmp_path):
    path = fruit(tmp_path)
    with knowmore.open(path) as store:
        found = pictures_of(store, ["lime/0.png", "plum/0.png", "plum/1.png"])
        assert len(found) == 3
        rows = picture_row(half_blocks, found).splitlines()
        first, last = (rows[at].count("▀") for at in (0, -1))
        assert (first, 0 < last <= 48) == (32, True)
        (tmp_path / "fruit" / "lime" / "0.png").unlink()
        assert pictures_of(store, ["lime/0.png"]) == []
        assert picture_row(half_blocks, []) == ""
    with knowmore.open(tmp_path / "m.km", knowmore.GPClassifier()) as store:
        store.add([[0.0], [1.0]], ["a", "b"], ["x", "y"])
        assert pictures_of(store, ["x"]) == []
