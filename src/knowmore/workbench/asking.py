"""Questions about the examples and settings of an open model: suspects, parts, tuning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from knowmore import insight
from knowmore._base import Id
from knowmore.errors import InvalidInput, MissingData, NoExamples, UnknownId
from knowmore.estimators import unnamed
from knowmore.insight import LINEAR, Suspects, Tuned
from knowmore.store import TUNE, Store
from knowmore.workbench.model import OpenModel, meant, predicts_values, same_id
from knowmore.workbench.sources import single_row

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


@final
@dataclass(frozen=True)
class Suspect:
    """An example whose label the others contradict.

    doubt, margin : as of `insight.Suspects`
    labeller, contributor : who gave the label, and who gave the features; None if unknown
    contradicting : the ids of the examples that speak most against the label
    """

    id: Id
    label: Any
    preferred: Any
    doubt: float
    margin: float
    labeller: str | None
    contributor: str | None
    contradicting: list[Id]


@final
@dataclass(frozen=True)
class SuspectList:
    """The most suspicious examples, the most suspicious first.

    total : the number of suspects
    kept : the number of further suspects whose labels somebody has confirmed
    """

    first: list[Suspect]
    total: int
    kept: int


def suspects(store: Store, count: int) -> SuspectList:
    """The first suspects of a classifier whose labels nobody has confirmed."""
    every, kept = open_suspects(store)
    first = every.part(slice(count))
    ids = first.ids.tolist()
    records = {record.id: record for record in store.records(ids)} if ids else {}
    linear = bool(kept_rows(store, estimator_of(store)))
    against = [()] * len(ids) if linear else first.contradicting
    columns = (first.labels, first.preferred, first.doubt, first.margin)
    rows = zip(ids, *(column.tolist() for column in columns), against, strict=True)
    listed = [
        Suspect(
            name,
            label,
            preferred,
            doubt,
            margin,
            records[name].labeller,
            records[name].contributor,
            list(others),
        )
        for name, label, preferred, doubt, margin, others in rows
    ]
    return SuspectList(listed, len(every), kept)


def open_suspects(store: Store) -> tuple[Suspects, int]:
    """The suspects whose labels nobody has confirmed, and the number of the others."""
    estimator = estimator_of(store, CLASSIFYING)
    rows = kept_rows(store, estimator)
    ids = list(store.examples.names) if rows else None
    every = insight.suspects(estimator, *rows, ids=ids)
    unconfirmed = every.without(store.kept_)
    return unconfirmed, len(every) - len(unconfirmed)


# -- parts of a prediction -------------------------------------------------------------------


@final
@dataclass(frozen=True)
class PredictionParts:
    """A score as a sum over examples or features.

    label : the class that is explained
    offset : where the score begins
    table : the parts, by columns; the largest first
    """

    label: Any
    score: float
    offset: float
    table: dict[str, list[Any]]


def explain(store: Store, what: str, label: str | None = None) -> PredictionParts:
    """The parts that a prediction is the sum of.

    what : the id of an example, or a row: JSON, a picture, a file of one row
    label : the class to explain; None for the predicted one
    """
    estimator, model = estimator_of(store, EXPLAINABLE), OpenModel(store)
    x = _row(model, what)
    wanted = None if label is None or predicts_values(store) else model.label(label)
    answer = insight.explain(estimator, x, wanted)
    table = {name: column.tolist() for name, column in answer._columns().items()}
    if "feature" in table and (columns := model.notes.get("columns")):
        table["feature"] = [columns[j] if isinstance(j, int) else j for j in table["feature"]]
    return PredictionParts(answer.label, answer.score, answer.offset, table)


def _row(model: OpenModel, what: str) -> Any:
    """The features (1, d) of an example of the model, or of a row that is given."""
    examples = model.store.examples
    names = set(examples.names)
    name = same_id(what, names)
    if name in names:
        return examples.X[examples.rows((name,))]
    try:
        source, block = single_row(what, model.wanted(labelled=False))
    except MissingData:
        raise UnknownId(
            f"{what!r} is neither the id of an example nor a file. Give one of these, or a row as "
            f'JSON: {{"column": number, ...}} or [number, ...].{meant(what, names)}'
        ) from None
    return model.one_row(source, block)


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
