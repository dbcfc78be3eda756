"""The errors and warnings of knowmore.

Every error that a user can cause is a `KnowmoreError` and also the built-in type that a caller
would expect. Its text says what was asked, what was got, why that likely happened, and what to do.
A call that raises one changes nothing.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

__all__ = [
    "InvalidInput",
    "InvalidType",
    "KnowmoreError",
    "KnowmoreWarning",
    "LostVariance",
    "MissingData",
    "MissingExtra",
    "NoExamples",
    "NoRows",
    "NotEnoughMemory",
    "NotFitted",
    "NotPositiveDefinite",
    "NotWritten",
    "RepeatedId",
    "TooManyPixels",
    "UnknownId",
]


class KnowmoreError(Exception):
    """The parent of all errors that knowmore raises on purpose."""

    def __str__(self) -> str:
        # KeyError would print the repr of the message.
        return str(self.args[0]) if self.args else ""


class InvalidInput(KnowmoreError, ValueError):
    """An argument that cannot be used: a wrong shape, a NaN, labels of mixed type, ..."""


class InvalidType(KnowmoreError, TypeError):
    """An argument of the wrong type: sparse data, an object that is not a number, ..."""


class RepeatedId(InvalidInput):
    """An id that is given twice, or that the model already holds."""


class TooManyPixels(InvalidInput):
    """A picture of more pixels than are safe to decode."""


class UnknownId(KnowmoreError, KeyError):
    """An id that the model does not hold."""


class NoExamples(KnowmoreError, ValueError):
    """A question to a model that holds no examples."""


class NoRows(KnowmoreError, AttributeError):
    """An edit by id, or a question about single rows, to a model that keeps only their sums."""


class NotFitted(KnowmoreError, ValueError, AttributeError):
    """A question to an estimator that has not been fitted.

    What estimators and transformers raise is also scikit-learn's `NotFittedError`.
    """


class NotPositiveDefinite(KnowmoreError, np.linalg.LinAlgError):
    """A covariance matrix that cannot be factorised.

    `row` is the first row whose pivot vanished, counted in the matrix that was asked for.
    """

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message, row)
        self.row = row


class NotEnoughMemory(KnowmoreError, MemoryError):
    """Not enough memory for an edit or a question."""


class MissingExtra(KnowmoreError, ImportError):
    """A library that an optional part of knowmore needs is not installed."""


class MissingData(KnowmoreError, FileNotFoundError):
    """A data set whose file is in none of the folders searched."""


class NotWritten(KnowmoreError, OSError):
    """A file that could not be written: a full disk, a folder without permission, ..."""


class KnowmoreWarning(UserWarning):
    """Something was done in a way that may surprise: what was found, why, and what to do."""


class LostVariance(KnowmoreWarning):
    """Rows were removed that were so large that the rest of some feature is lost in rounding."""


# The names of the columns that numbers in errors and warnings stand for, if they have names.
_columns: ContextVar[Sequence[object]] = ContextVar("_columns", default=())


@contextmanager
def columns_named(names: Sequence[object] | None) -> Iterator[None]:
    """Name columns in the errors and warnings of the block: "Column 3" becomes "Column 'mass'".

    names : of the columns, in their order; None leaves the numbers

    >>> with columns_named(["island", "mass"]):
    ...     named("Column 1 is constant, and row 0 is not.")
    "Column 'mass' is constant, and row 0 is not."
    """
    if names is None:
        yield
        return
    token = _columns.set(names)
    try:
        yield
    except KnowmoreError as error:
        if error.args and isinstance(error.args[0], str):
            error.args = (named(error.args[0]), *error.args[1:])
        raise
    finally:
        _columns.reset(token)


def named(text: str) -> str:
    """A text with the names of the columns that it has numbers of."""
    names = _columns.get()

    def name(found: re.Match[str]) -> str:
        at = int(found[2])
        return f"{found[1]} {names[at]!r}" if at < len(names) else found[0]

    return re.sub(r"\b([Cc]olumn) (\d+)\b", name, text)


def warn(message: str | KnowmoreWarning) -> None:
    """Issue a KnowmoreWarning that points to the line which called knowmore."""
    message = named(message) if isinstance(message, str) else message
    package = __name__.partition(".")[0]
    level, frame = 0, inspect.currentframe()
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, KnowmoreWarning, stacklevel=level + 1)
