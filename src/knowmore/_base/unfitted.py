"""`NotFitted` as scikit-learn knows it; apart from the errors, which do without scikit-learn."""

from __future__ import annotations

from sklearn.exceptions import NotFittedError

from knowmore.errors import NotFitted


class Unfitted(NotFitted, NotFittedError):
    """The `NotFitted` that estimators and transformers raise."""
