"""What knowmore says when it cannot do what was asked.

Every error a user can cause is a `KnowmoreError` and also the built-in type that a caller would
expect. Its text says what was asked, what was got, why that likely happened, and what to do.
Whatever raised it left everything as it was.
"""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import NotFittedError


class KnowmoreError(Exception):
    """The parent of all errors that knowmore raises on purpose."""

    def __str__(self) -> str:
        # KeyError prints the repr of its argument; a message for people is printed as it is.
        return str(self.args[0]) if self.args else ""


class InvalidInput(KnowmoreError, ValueError):
    """An argument that cannot be used: a wrong shape, a NaN, labels of mixed type, ..."""


class InvalidType(KnowmoreError, TypeError):
    """An argument of a type that cannot be used: sparse data, an object that is no number, ..."""


class RepeatedId(InvalidInput):
    """An id that is given twice, or that the model already holds."""


class UnknownId(KnowmoreError, KeyError):
    """An id that the model does not hold."""


class NoExamples(KnowmoreError, ValueError):
    """A question to a model that holds no examples."""


class NotFitted(KnowmoreError, NotFittedError):
    """A question to an estimator that never saw an example."""


class NotPositiveDefinite(KnowmoreError, np.linalg.LinAlgError):
    """A covariance matrix that cannot be factorised.

    `row` is the first row whose pivot vanished, counted in the matrix that was asked for.
    """

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message, row)
        self.row = row


class NotEnoughMemory(KnowmoreError, MemoryError):
    """An edit or a question that there is no memory for."""


class MissingExtra(KnowmoreError, ImportError):
    """An optional part of knowmore whose libraries are not installed."""


class MissingData(KnowmoreError, FileNotFoundError):
    """A data set whose file is in none of the folders where it may be."""


class NotWritten(KnowmoreError, OSError):
    """A file that could not be written: a full disk, a folder without permission, ..."""


class KnowmoreWarning(UserWarning):
    """What knowmore did, but not as might be expected: what it found, why, and what to do."""


class LostVariance(KnowmoreWarning):
    """Rows were taken out beside which what is left of some feature is lost in rounding."""
