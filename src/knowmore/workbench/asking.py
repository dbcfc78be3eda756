"""Questions about the examples and settings of an open model: suspects, parts, tuning."""

from __future__ import annotations

from typing import Any

from knowmore import insight
from knowmore.errors import InvalidInput, MissingData, NoExamples, UnknownId
from knowmore.estimators import unnamed
from knowmore.insight import LINEAR, Suspects, Tuned
from knowmore.store import TUNE, Store
from knowmore.workbench.model import (
    label_named,
    meant,
    noted,
    one_row,
    predicts_values,
    same_id,
)

# Kinds of models that a question is for.
GAUSSIAN = ("gp", "gp-regression", "linear", "linear-regression", "forest", "forest-regression")
CLASSIFYING = ("gp", "lssvm", "linear", "forest", "n-plus-one")
EXPLAINABLE = (*GAUSSIAN, "lssvm", "n-plus-one")
TUNABLE = ("gp", "gp-regression", "lssvm")


def estimator_of(store: Store, kinds: tuple[str, ...] | None = None) -> Any:
    """The estimator of a model that holds examples, and is of one of these kinds."""
    if kinds is not None and store.kind not in kinds:
        raise InvalidInput(
            f"This model is of kind {store.kind}. The question is for kinds {', '.join(kinds)}."
        )
    if not len(store):
        raise NoExamples("The model holds no examples yet. Teach it: knowmore learn.")
    # Sources put columns in the order of the model by name, and give arrays.
    return unnamed(store.estimator)


def kept_rows(store: Store, estimator: Any) -> tuple[Any, ...]:
    """X and y of the examples for a linear estimator, which keeps no rows; empty for others."""
    if not isinstance(estimator, LINEAR):
        return ()
    examples = store.examples
    return examples.X, examples.labels


# -- suspects --------------------------------------------------------------------------------


def suspects(store: Store, count: int) -> tuple[list[dict[str, Any]], int, int]:
    """The first suspects of a classifier, the number of all, and of those that are confirmed.

    A suspect is an example whose label the others contradict. Each is a dictionary: `doubt` and
    `margin` as of `insight.Suspects`, who gave the label and the features (None if unknown), and
    `contradicting`, the ids of the examples that speak most against the label. Suspects whose
    labels somebody has confirmed are not listed.
    """
    every, kept = open_suspects(store)
    first = every.part(slice(count))
    ids = first.ids.tolist()
    records = store.records(ids) if ids else []
    against = first.contradicting if first.model.keeps_rows else [()] * len(ids)
    columns = {
        "id": ids,
        "label": first.labels.tolist(),
        "preferred": first.preferred.tolist(),
        "doubt": first.doubt.tolist(),
        "margin": first.margin.tolist(),
        "labeller": [record.labeller for record in records],
        "contributor": [record.contributor for record in records],
        "contradicting": [list(others) for others in against],
    }
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return rows, len(every), kept


def open_suspects(store: Store) -> tuple[Suspects, int]:
    """The suspects whose labels nobody has confirmed, and the number of the others."""
    estimator = estimator_of(store, CLASSIFYING)
    rows = kept_rows(store, estimator)
    ids = list(store.examples.names) if rows else None
    every = insight.suspects(estimator, *rows, ids=ids)
    unconfirmed = every.without(store.kept_)
    return unconfirmed, len(every) - len(unconfirmed)


# -- parts of a prediction -------------------------------------------------------------------


def explain(store: Store, what: str, label: str | None = None) -> tuple[Any, dict[str, list[Any]]]:
    """A score as a sum: the answer of `insight.explain`, and its parts by columns, largest first.

    what : the id of an example, or a row: JSON, a picture, a file of one row
    label : the class to explain; None for the predicted one
    """
    estimator = estimator_of(store, EXPLAINABLE)
    x = _row(store, what)
    wanted = None if label is None or predicts_values(store) else label_named(store, label)
    answer = insight.explain(estimator, x, wanted)
    table = {name: column.tolist() for name, column in answer._columns().items()}
    if "feature" in table and (columns := noted(store).get("columns")):
        table["feature"] = [columns[j] if isinstance(j, int) else j for j in table["feature"]]
    return answer, table


def _row(store: Store, what: str) -> Any:
    """The features (1, d) of an example of the model, or of a row that is given."""
    examples = store.examples
    names = set(examples.names)
    name = same_id(what, names)
    if name in names:
        return examples.X[examples.rows((name,))]
    try:
        return one_row(store, what)
    except MissingData:
        raise UnknownId(
            f"{what!r} is neither the id of an example nor a file. Give one of these, or a row as "
            f'JSON: {{"column": number, ...}} or [number, ...].{meant(what, names)}'
        ) from None


# -- settings --------------------------------------------------------------------------------


def tune(
    store: Store, objective: str, restarts: int, subset: int | None, *, dry_run: bool
) -> Tuned:
    """Better settings of the kernel and the noise, kept in the file unless `dry_run`."""
    answer = insight.tune(estimator_of(store, TUNABLE), objective, restarts=restarts, subset=subset)
    if answer.changes and not dry_run:
        before, after = (
            each.get_params(deep=False) for each in (store.estimator, answer.estimator)
        )
        changed = {name: value for name, value in after.items() if value != before[name]}
        # This verb in the journal says that the parameters come from the examples.
        with store.together(TUNE):
            store.set_parameters(**changed)
    return answer
