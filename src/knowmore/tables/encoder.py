"""The encoding of tables as a transformer of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from knowmore._base import Array, columns_of
from knowmore.errors import InvalidInput
from knowmore.tables.encoding import Encoding, WrongCell
from knowmore.tables.guessing import Guess, Options


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turns tables of numbers, categories, truth values, dates and blanks into numbers.

    The first table tells the types. A category becomes a feature for each level, a date the days
    since 1970. A blank number is filled with the median, and a column with blanks has a feature
    that says where. A text column with a different value in nearly every row is left out.

    Parameters
    ----------
    columns : list of str, default None
        The only columns that count.
    categories : list of str, default ()
        Columns whose values are names, though they may be numbers.
    ignore : list of str, default ()
        Columns that do not count.

    Attributes
    ----------
    encoding_ : Encoding
        The columns with their types, levels and fills.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"island": ["Biscoe", "Dream", None], "mass": [4200.0, 3700.0, 3900.0]})
    >>> encoder = TableEncoder().fit(X)
    >>> encoder.get_feature_names_out().tolist()
    ['island=Biscoe', 'island=Dream', 'island is blank', 'mass']
    >>> encoder.transform(X).tolist()[2]
    [0.0, 0.0, 1.0, 3900.0]
    """

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        categories: Sequence[str] = (),
        ignore: Sequence[str] = (),
    ) -> None:
        self.columns = columns
        self.categories = categories
        self.ignore = ignore

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn types, levels and fills from a table X (n, d), or from rows of cells."""
        names, rows = self._rows(X, reset=True)
        columns = None if self.columns is None else tuple(self.columns)
        options = Options(columns, tuple(self.categories), tuple(self.ignore))
        used = options.used(names)
        at = [names.index(one) for one in used]
        guess = Guess(used, options)
        guess.see(
            ([row[j] for j in at] for row in rows), (f"Row {i} of X" for i in range(len(rows)))
        )
        made, left_out = guess.columns()
        found = Encoding(made, left_out, options)
        self.encoding_ = found.chosen(self._read(found, names, rows))
        _ = self.encoding_.features
        return self

    def transform(self, X: Any) -> Array:
        """The features (n, D) of a table X (n, d), float64."""
        check_is_fitted(self)
        names, rows = self._rows(X, reset=False)
        return self.encoding_.vectors(self._read(self.encoding_, names, rows))

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """The names of the features, (D,): "mass", "island=Biscoe", "island is blank"."""
        check_is_fitted(self)
        return np.array(self.encoding_.features, dtype=object)

    def _read(
        self, encoding: Encoding, names: Sequence[str], rows: Sequence[Sequence[Any]]
    ) -> list[tuple[Any, ...]]:
        at = [names.index(one) for one in encoding.names]
        found = []
        for i, row in enumerate(rows):
            try:
                found.append(encoding.read([row[j] for j in at]))
            except WrongCell as error:
                raise InvalidInput(
                    f"Row {i} of X, {error}. The column held {_KINDS[error.column.kind]} in fit."
                ) from None
        return found

    def _rows(self, X: Any, *, reset: bool) -> tuple[list[str], list[Sequence[Any]]]:
        """The names of the columns of X, and its rows of cells."""
        columns = columns_of(X)
        if not columns:
            given = np.array(X, dtype=object) if isinstance(X, (list, tuple)) else X
            X = validate_data(self, given, dtype=None, ensure_all_finite=False, reset=reset)
            X = X.astype("datetime64[us]") if X.dtype.kind == "M" else X
            return [f"x{j}" for j in range(X.shape[1])], X.tolist()
        if not len(X):
            raise InvalidInput("X has 0 rows, but a minimum of 1 is required.")
        validate_data(self, X, skip_check_array=True, reset=reset)
        cells = [_listed(X, name) for name in columns]
        return [str(name) for name in columns], [*zip(*cells, strict=True)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags


_KINDS = {
    "number": "numbers",
    "category": "names",
    "truth": "true or false",
    "date": "dates",
}


def _listed(X: Any, name: Any) -> list[Any]:
    """The cells of a column of a table of pandas, polars or pyarrow."""
    column = X[name]
    for way in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, way):
            found: list[Any] = getattr(column, way)()
            return found
    return list(column)
