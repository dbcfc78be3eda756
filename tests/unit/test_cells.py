"""No cell that is written is a formula, each is read as it was, and numbers that differ look so."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowmore._base import digits_of, read_cell, written_cell

BEGINNINGS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"
TEXTS = st.text(st.sampled_from([*BEGINNINGS, *"'1.e5aZ ,;\""]), max_size=6)
RUN = [f"{one}cmd|' /C calc'!A0" for one in BEGINNINGS]
KEPT = ["", "rose", "O'Hara", "'quoted'", "-7", "+1.5e-3", "-1.", "a=b", " -"]


@pytest.mark.slow
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
    code = files("knowmore.export").joinpath("web/shared.js").read_text(encoding="utf-8")
    rules = re.search(r"^const FORMULA.*?(?=^$)", code, re.MULTILINE | re.DOTALL)[0]
    texts = [*RUN, *KEPT, *(f"'{text}" for text in RUN + KEPT)]
    ask = f"{rules} console.log(JSON.stringify({json.dumps(texts)}.map(writtenCell)));"
    ask += f"console.log(JSON.stringify({json.dumps(texts)}.map(readCell)));"
    run = subprocess.run(["node", "-e", ask], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    wrote, read = map(json.loads, run.stdout.splitlines())
    assert wrote == [written_cell(text) for text in texts]
    assert read == [read_cell(text) for text in texts]


@given(st.floats(-2e9, 2e9), st.floats(0.01, 1e9), st.lists(st.floats(0, 1)))
def test_a_column_shows_its_spread(offset, spread, places):
    values = [offset + place * spread for place in (0, 1, *places)]
    shown = [float(f"{value:.{digits_of(values)}g}") for value in values]
    off = max(abs(one - value) for one, value in zip(shown, values, strict=True))
    assert off <= (max(values) - min(values)) / 100


def test_few_digits_serve_where_values_differ_by_rounding_or_not_at_all():
    assert digits_of([0.2, 0.2 + 1e-16]) == digits_of([0.2]) == digits_of([]) == 4
    assert digits_of([float("nan"), float("inf"), 1.0, 2.0, "text", None, 7]) == 4
    # Of a single number the whole part is shown.
    assert f"{1.7e9:.{digits_of([1.7e9])}g}" == "1700000000"
    assert f"{1e300:.{digits_of([1e300])}g}" == "1e+300"
