"""Data that come in two parts."""

from __future__ import annotations

from typing import Any, NamedTuple

from papers.arrays import Array


class Split(NamedTuple):
    """Rows to learn from, with their labels, and rows to be tested, with theirs."""

    X: Any
    y: Array
    X_test: Any
    y_test: Array
