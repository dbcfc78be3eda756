"""No cell that is written is a formula, and each is read as it was."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowmore.cells import read_cell, written_cell

BEGINNINGS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
TEXTS = st.text(st.sampled_from([*BEGINNINGS, *"'1.e5aZ ,;\""]), max_size=6)
RUN = [f"{one}cmd|' /C calc'!A0" for one in BEGINNINGS]
KEPT = ["", "rose", "O'Hara", "'quoted'", "-7", "+1.5e-3", "-1.", "a=b", " -"]


@given(st.text() | TEXTS)
def test_text_is_read_as_it_was_written_and_never_runs(text):
    cell = written_cell(text)
    assert read_cell(cell) == text
    # A number is a number to a spreadsheet as well.
    assert not cell.startswith(tuple(BEGINNINGS)) or re.fullmatch(r"[+-][0-9.e+-]+", cell)


def test_what_gets_an_apostrophe():
    assert [written_cell(text) for text in RUN] == [f"'{text}" for text in RUN]
    assert [written_cell(text) for text in KEPT] == KEPT
    assert [written_cell(one) for one in (-1.5, -7, None, True)] == [-1.5, -7, None, True]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_page_writes_and_reads_the_same():
    code = files("knowmore.export").joinpath("web/page.js").read_text(encoding="utf-8")
    rules = re.search(r"^const FORMULA.*?(?=^$)", code, re.MULTILINE | re.DOTALL)[0]
    texts = [*RUN, *KEPT, *(f"'{text}" for text in RUN + KEPT)]
    ask = f"{rules} console.log(JSON.stringify({json.dumps(texts)}.map(writtenCell)));"
    ask += f"console.log(JSON.stringify({json.dumps(texts)}.map(readCell)));"
    run = subprocess.run(["node", "-e", ask], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    wrote, read = map(json.loads, run.stdout.splitlines())
    assert wrote == [written_cell(text) for text in texts]
    assert read == [read_cell(text) for text in texts]
