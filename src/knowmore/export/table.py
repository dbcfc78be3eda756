"""The examples of a model as a table, with what the model says of each without it."""

from __future__ import annotations

import csv
import io
import os
from copy import copy
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from knowmore._base import (
    Array,
    File,
    a_type,
    check_name,
    check_writable,
    optional,
    written,
    written_cell,
)
from knowmore.errors import InvalidInput, InvalidType
from knowmore.estimators import EditableEstimator
from knowmore.examples import Examples
from knowmore.export.description import column_names, is_stored
from knowmore.export.stages import distinct
from knowmore.models import LeftOut

_FORMS = (".csv", ".parquet")


def to_table(model: Any, path: File) -> None:
    """Write the examples of a model as CSV or Parquet, one row each, in the order of `ids_`.

    model : an estimator with ids (not a linear one, which keeps no rows), or what `knowmore.open`
        returns
    path : a .csv or .parquet file, replaced when the new one is complete

    The columns are id, label, weight, loo_predicted, loo_score, loo_variance and loo_silent, and
    then the features by their names, or the cells of a table that was learnt in the file; of a
    model of texts `text` is before them. Those
    that begin with loo are what the model predicts for the example without it (see `LeftOut`):
    the score is that of the example's own label. A regressor
    has no score; where its targets are rows of q numbers, label, loo_predicted and loo_variance
    are q columns each, label_0, label_1, ... A feature that has the name of another column gets an
    underscore behind it. Text that a spreadsheet would run, such as "=1+1", has an apostrophe
    before it in CSV; `knowmore learn` reads it without.
    """
    check_name(path)
    if (form := os.path.splitext(path)[1].lower()) not in _FORMS:
        problem = f"{os.fspath(path)!r} does not end in .csv or .parquet."
        raise InvalidInput(f"{problem} Name such a file.")
    arrow = optional("pyarrow", "tables") if form == ".parquet" else None
    check_writable(path)
    columns = _columns(model)
    with written(path) as file:
        if arrow is None:
            text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
            writer = csv.writer(text)
            writer.writerow(map(written_cell, columns))
            rows = zip(*(values.tolist() for values in columns.values()), strict=True)
            writer.writerows(map(written_cell, row) for row in rows)
            text.flush()
            text.detach()
        else:
            _write_parquet(arrow, columns, file)


def _write_parquet(arrow: Any, columns: dict[str, Array], file: Any) -> None:
    parquet = optional("pyarrow.parquet", "tables")
    try:
        table = arrow.table({name: arrow.array(one.tolist()) for name, one in columns.items()})
        parquet.write_table(table, file)
    except (UnicodeEncodeError, arrow.ArrowInvalid) as error:
        raise InvalidInput(
            f"Parquet cannot hold the ids, labels or column names of this model: {error}. Write a "
            f".csv file instead."
        ) from error


def _columns(model: Any) -> dict[str, Array]:
    """The columns of the table by name, each (n,)."""
    estimator, examples, left = _left_out(model)
    own = {"id": _one_type(left.ids), **_each("label", left.labels), "weight": examples.weights}
    own |= _each("loo_predicted", left.predicted)
    if is_classifier(estimator):
        own["loo_score"] = _own_scores(left)
    own |= _each("loo_variance", left.variance) | {"loo_silent": left.silent}
    if is_stored(model) and (table := model.table) is not None:
        # A table comes back as it was given.
        columns = zip(*model.cells([*examples.names]), strict=True)
        cells = (np.array(column, dtype=object) for column in columns)
        return own | dict(zip(distinct([*table.names], tuple(own)), cells, strict=True))
    if is_stored(model) and model.notes.get("texts") is not None:
        kept = [record.thumbnail for record in model.records([*examples.names])]
        texts = [None if one is None else one.decode() for one in kept]
        own |= {"text": np.array([*texts, None], dtype=object)[:-1]}
    names = distinct([*column_names(model)], tuple(own))
    return own | dict(zip(names, examples.X.T, strict=True))


def _left_out(model: Any) -> tuple[Any, Examples, LeftOut]:
    """The estimator of a model, all of its examples, and each of them left out."""
    # A copy shares what was learnt, and other threads do not edit it.
    estimator = model.with_rows() if is_stored(model) else copy(model)
    if not isinstance(estimator, EditableEstimator):
        raise InvalidType(
            f"There is no table of {a_type(model)}. Give a knowmore estimator that holds examples "
            f"with ids, or what knowmore.open returns."
        )
    if not estimator.editable_.keeps_rows:
        raise InvalidType(
            f"{type(model).__name__} keeps no rows, only their sums, so there is no table of them. "
            f"Let it keep them, fit(X, y, ids=...), or keep the model in a file, with "
            f"knowmore.open: that keeps the rows as well."
        )
    examples = estimator.as_given(estimator.editable_.examples)
    return estimator, examples, estimator.leave_one_out()


def _own_scores(left: LeftOut) -> Array:
    """The score of each example's own label, (n,); NaN if no example that counts has it."""
    at = np.searchsorted(left.names, left.labels).clip(max=len(left.names) - 1)
    scores = left.scores[np.arange(len(at)), at]
    return np.where(left.names[at] == left.labels, scores, np.nan)


def _each(name: str, values: Array) -> dict[str, Array]:
    """Values (n,) as one column, (n, q) as q of them."""
    if values.ndim == 1:
        return {name: values}
    return {f"{name}_{j}": column for j, column in enumerate(values.T)}


def _one_type(ids: Array) -> Array:
    """The ids, (n,), as text if some are and some are not: a column has one type."""
    return ids.astype(str) if len({type(one) for one in ids.tolist()}) > 1 else ids
