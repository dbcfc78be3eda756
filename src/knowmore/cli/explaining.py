"""`knowmore explain`: what a prediction is made of."""

from __future__ import annotations

from typing import Any

from knowmore.cli.left_out import EXPLAINABLE, fitted
from knowmore.cli.model import Model, same_id
from knowmore.cli.near import meant
from knowmore.cli.sources import single_row
from knowmore.errors import MissingData, UnknownId
from knowmore.insight.explain import explain


def explanation(model: Model, what: str, label: str | None) -> tuple[Any, dict[str, list[Any]]]:
    """The explanation of an example that is held, or of a row, and its table by columns."""
    estimator = fitted(model, EXPLAINABLE)
    x = _row(model, what)
    wanted = None if label is None or model.is_regression else model.label(label)
    found = explain(estimator, x, wanted)
    table = {name: column.tolist() for name, column in found._columns().items()}
    if "feature" in table and (columns := model.notes.get("columns")):
        table["feature"] = [columns[j] if isinstance(j, int) else j for j in table["feature"]]
    return found, table


def _row(model: Model, what: str) -> Any:
    """The features (1, d) of an example that is held, or of a row that is given."""
    examples = model.store.examples
    held = set(examples.names)
    one = same_id(what, held)
    if one in held:
        return examples.X[examples.rows((one,))]
    try:
        source, block = single_row(what, model.wanted(labelled=False))
    except MissingData:
        raise UnknownId(
            f"{what!r} is neither the id of an example nor a file. Give one of these, or a row as "
            f'JSON: {{"column": number, ...}} or [number, ...].{meant(what, held)}'
        ) from None
    return model.one_row(source, block)
