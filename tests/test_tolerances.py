"""Tolerances stand in tests/tolerance.py, each with its reason."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
# A literal after one of these names. Zero switches the tolerance off; a multiple of eps is none.
LITERAL = re.compile(r"\b(rtol|atol|rel|abs|decimal)=(?!0\b[^.])[0-9.]+(e-?[0-9]+)?(?! *[*0-9])")
# NumPy's and pytest's own tolerances are literals that nobody wrote down.
SILENT = re.compile(r"pytest\.approx\((?!.*\b(rel|abs)=)")


@pytest.mark.parametrize("path", sorted(TESTS.rglob("*.py")), ids=lambda path: path.name)
def test_no_tolerance_is_a_literal(path):
    if path.name in ("tolerance.py", "test_tolerances.py"):
        return
    lines = path.read_text().splitlines()
    found = [line for line in lines if LITERAL.search(line) or SILENT.search(line)]
    assert not found, "Name the tolerance in tests/tolerance.py, with its reason."
