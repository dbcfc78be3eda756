"""A quick start: scikit-learn imports pandas if it is there, and no command needs it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any


def quickly(command: Callable[..., None]) -> Callable[..., None]:
    """The command, which first loads scikit-learn without pandas: a quarter of its start."""

    @wraps(command)
    def quick(*arguments: Any, **options: Any) -> None:
        load_without_pandas()
        command(*arguments, **options)

    return quick


def load_without_pandas() -> None:
    """Load scikit-learn, as if pandas were not installed."""
    if not {"sklearn", "pandas"}.isdisjoint(sys.modules):
        return
    sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        import_module("sklearn.base")
    finally:
        del sys.modules["pandas"]
