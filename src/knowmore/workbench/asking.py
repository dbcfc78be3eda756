"""Questions about an open model: what it holds, how good it is, suspects, parts, other settings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np

from knowmore import insight
from knowmore._base import Array
from knowmore.errors import InvalidInput, MissingData, NoExamples, UnknownId
from knowmore.estimators import unnamed
from knowmore.insight import WITH_VARIANCE, Reliability, Suspects, Tuned
from knowmore.store import TUNE, Entry, Store, to_sqlite
from knowmore.workbench.cells import by_column
from knowmore.workbench.model import (
    describing,
    label_named,
    meant,
    noted,
    one_row,
    predicts_values,
    same_id,
    texts_of,
)

# Kinds of models that a question is for.
GAUSSIAN = ("gp", "gp-regression", "linear", "linear-regression", "forest", "forest-regression")
CLASSIFYING = ("gp", "lssvm", "linear", "forest", "n-plus-one")
EXPLAINABLE = (*GAUSSIAN, "lssvm", "n-plus-one")
CHOOSING = ("gp", "gp-regression", "lssvm", "forest", "forest-regression")
TUNABLE = ("gp", "gp-regression", "lssvm")

# A probability, or the share of values within one deviation, that is wrong by more is far off.
_OFF = 0.1
# The share of values of a normal distribution within one standard deviation.
_WITHIN_ONE = 0.683


def estimator_of(store: Store, kinds: tuple[str, ...] | None = None, *, rows: bool = False) -> Any:
    """The estimator of a model that holds examples, and is of one of these kinds.

    rows : whether the question is about single examples, which a linear model leaves in its file
    """
    if kinds is not None and store.kind not in kinds:
        raise InvalidInput(
            f"This model is of kind {store.kind}. The question is for kinds {', '.join(kinds)}."
        )
    if not len(store):
        raise NoExamples("The model holds no examples yet. Teach it: knowmore learn.")
    # Sources put columns in the order of the model by name, and give arrays.
    return unnamed(store.with_rows() if rows else store.estimator)


# -- suspects --------------------------------------------------------------------------------------


def suspects(store: Store, count: int) -> tuple[list[dict[str, Any]], int, int]:
    """The first suspects of a classifier, the number of suspects, and of confirmed ones beside.

    A suspect is an example whose label the others contradict. Each is a dictionary: `doubt` and
    `margin` as of `insight.Suspects`, who gave the label and the features (None if unknown), and
    `contradicting`, the ids of the examples that speak most against the label; and `text`, if the
    model learns texts. Suspects whose labels somebody has confirmed are not listed.
    """
    every, kept = open_suspects(store)
    first = every.part(slice(count))
    ids = first.ids.tolist()
    records = store.records(ids) if ids else []
    against = first.contradicting if first.model.keeps_rows else [()] * len(ids)
    columns: dict[str, list[Any]] = {
        "id": ids,
        "label": first.labels.tolist(),
        "preferred": first.preferred.tolist(),
        "doubt": first.doubt.tolist(),
        "margin": first.margin.tolist(),
        "labeller": [record.labeller for record in records],
        "contributor": [record.contributor for record in records],
        "contradicting": [list(others) for others in against],
    }
    if (texts := texts_of(store, ids)) is not None:
        columns["text"] = texts
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return rows, len(every), kept


def open_suspects(store: Store) -> tuple[Suspects, int]:
    """The suspects whose labels nobody has confirmed, and the number of the others.

    What nobody would be told anew is left out: that a label is another one which was refused.
    """
    every = unrefused(insight.suspects(estimator_of(store, CLASSIFYING, rows=True)), store)
    unconfirmed = every.without(store.kept_)
    return unconfirmed, len(every) - len(unconfirmed)


def unrefused(every: Suspects, store: Store) -> Suspects:
    """The suspects without those whose preferred label was refused for them."""
    refused = store.refused()
    pairs = zip(every.ids.tolist(), every.preferred.tolist(), strict=True)
    return every.without([one for one, said in pairs if said in refused.get(one, ())])


# -- why -------------------------------------------------------------------------


def explain(
    store: Store, what: str, label: str | None = None, count: int = 10, *, against: bool = False
) -> tuple[Any, dict[str, list[Any]]]:
    """Why a score is what it is: the answer, and its parts by columns, the strongest first.

    `insight.grounds`, where "id" are lists of ids, with the "cells" by the names of their columns
    or the "text" of the first of each, if the model has learnt such. Of a linear model
    `insight.explain`, the parts of its features, and with a squared hinge those of its examples.

    what : the id of an example, or a row: JSON, a picture, a file of one row
    label : the class to explain; None for the predicted one
    count : the number of parts, at most
    against : whether to list what speaks against the class; of examples alone
    """
    estimator = estimator_of(store, EXPLAINABLE)
    x = _row(store, what)
    wanted = None if label is None or predicts_values(store) else label_named(store, label)
    if insight.has_grounds(estimator):
        found = insight.grounds(estimator, x, wanted, count, against=against)
        table = {name: column.tolist() for name, column in found._columns().items()}
        return found, table | {"id": [list(ground) for ground in found.ids]} | _held(store, found)
    if against:
        raise InvalidInput(
            "This model is explained by contributions, of which those below zero speak against "
            "the class. Ask without --against."
        )
    answer = insight.explain(estimator, x, wanted)
    table = {name: column.tolist() for name, column in answer._columns().items()}
    if "feature" in table and store.table is not None:
        table = by_column(store.table, x, table)
    table = {name: column[:count] for name, column in table.items()}
    if "feature" in table and (columns := noted(store).get("columns")):
        table["feature"] = [columns[j] if isinstance(j, int) else j for j in table["feature"]]
    return answer, table


def _held(store: Store, found: Any) -> dict[str, list[Any]]:
    """The cells, or the text, of the first example of each ground; nothing of pictures."""
    first = [ground[0] for ground in found.ids]
    if (texts := texts_of(store, first)) is not None:
        return {"text": texts}
    names = noted(store).get("columns") if store.table is None else store.table.names
    if not first or not names:
        return {}
    return {"cells": [dict(zip(names, row, strict=True)) for row in store.cells(first)]}


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


# -- settings --------------------------------------------------------------------------------------


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


def refresh_settings(store: Store, *, dry_run: bool) -> list[tuple[str, Any, Any]]:
    """Let the examples held choose kernel and noise again, as far as nobody gave them.

    Each that changes: its name, and what it was and is, or would be with `dry_run`.
    """
    estimator_of(store, CHOOSING)
    before = store.settings_
    if dry_run:
        after = store.estimator.refresh_settings().settings_
    else:
        after = store.refresh_settings().settings_
    pairs = (
        ("kernel", repr(before.kernel), repr(after.kernel)),
        ("noise", before.noise, after.noise),
    )
    return [pair for pair in pairs if pair[1] != pair[2]]


# -- how good it is --------------------------------------------------------------------------------


def evaluate(store: Store) -> ClassEvaluation | ValueEvaluation:
    """Leave each example out, and compare what the others say with what it is."""
    estimator = estimator_of(store, rows=True)
    left = estimator.leave_one_out()
    if predicts_values(store):
        return ValueEvaluation(
            np.asarray(left.labels, dtype=float), left.predicted, np.sqrt(left.variance)
        )
    names, judged = left.names, ~left.silent
    truth, said = (np.searchsorted(names, labels) for labels in (left.labels, left.predicted))
    counts = np.zeros((len(names), len(names)), dtype=int)
    np.add.at(counts, (truth[judged], said[judged]), 1)
    calibration = None
    if isinstance(estimator, WITH_VARIANCE):
        calibration = insight.reliability(estimator)
    return ClassEvaluation(names, np.bincount(truth, minlength=len(names)), counts, calibration)


@final
@dataclass(frozen=True, eq=False)
class ClassEvaluation:
    """The confusion and calibration of a classifier.

    names, held : the classes, and how many examples each has, (M,)
    counts : how many examples of each class, in rows, were taken for each, (M, M); without those
        of which the others say nothing
    calibration : probabilities against accuracy, if the model has probabilities
    """

    names: Array
    held: Array
    counts: Array
    calibration: Reliability | None

    @property
    def accuracy(self) -> float:
        """The share of examples that the others recognise."""
        return float(np.trace(self.counts) / self.held.sum())

    @property
    def balanced(self) -> float:
        """The mean recall of the classes, the balanced accuracy."""
        return float(np.mean([recall for _, _, recall, _ in self.by_class()]))

    def by_class(self) -> list[tuple[Any, int, float, float | None]]:
        """Each class with its number of examples, recall, and precision (None if never said)."""
        right, said = np.diag(self.counts), self.counts.sum(axis=0)
        return [
            (name, int(n), float(r / n), float(r / s) if s else None)
            for name, n, r, s in zip(self.names.tolist(), self.held, right, said, strict=True)
            if n
        ]

    def as_json(self) -> dict[str, Any]:
        """The evaluation as a dictionary."""
        found: dict[str, Any] = {
            "examples": int(self.held.sum()),
            "accuracy": self.accuracy,
            "balanced_accuracy": self.balanced,
            "silent": int(self.held.sum() - self.counts.sum()),
            "classes": [
                dict(zip(("label", "examples", "recall", "precision"), row, strict=True))
                for row in self.by_class()
            ],
            "confusion": {"labels": self.names, "counts": self.counts},
            "calibration": None,
        }
        if self.calibration is not None:
            bins = self.calibration.confidence, self.calibration.accuracy, self.calibration.count
            found["calibration"] = {
                "error": self.calibration.error,
                "bins": [
                    dict(zip(("confidence", "accuracy", "count"), each, strict=True))
                    for each in zip(*(column.tolist() for column in bins), strict=True)
                ],
            }
        return found

    @property
    def is_off(self) -> bool:
        """Whether probabilities are far from the shares that are right."""
        return self.calibration is not None and bool(self.calibration.error > _OFF)


@final
@dataclass(frozen=True, eq=False)
class ValueEvaluation:
    """Targets, predictions and standard deviations of a regressor, (n,) each."""

    truth: Array
    predicted: Array
    std: Array

    def as_json(self) -> dict[str, Any]:
        """The evaluation as a dictionary."""
        if self.truth.ndim != 1:
            raise InvalidInput("Only models of one target are evaluated here. Ask leave_one_out().")
        error = self.predicted - self.truth
        variance = float(np.var(self.truth))
        return {
            "examples": len(self.truth),
            "rmse": float(np.sqrt(np.mean(error**2))),
            "mean_absolute_error": float(np.mean(abs(error))),
            "r2": 1 - float(np.mean(error**2)) / variance if variance else None,
            "within_one_std": float(np.mean(abs(error) <= self.std)),
            "within_two_std": float(np.mean(abs(error) <= 2 * self.std)),
        }

    @property
    def is_off(self) -> bool:
        """Whether far more, or far fewer, values than expected are within one deviation."""
        return abs(float(self.as_json()["within_one_std"]) - _WITHIN_ONE) > _OFF


# -- what it has been and holds --------------------------------------------------------------------


def history(store: Store) -> list[dict[str, Any]]:
    """The entries of the journal, the oldest first."""
    return [history_entry(entry) for entry in store.log()]


def history_entry(entry: Entry) -> dict[str, Any]:
    """An entry of a store's journal as JSON has it, with its time as ISO 8601 writes it."""
    return {
        "number": entry.number,
        "at": entry.at.isoformat(timespec="seconds"),
        "verb": entry.verb,
        "count": entry.count,
        "id": entry.id,
        "label": entry.label,
        "contributor": entry.contributor,
        "undone": entry.undone,
    }


def status(store: Store) -> dict[str, Any]:
    """The contents of a model as JSON has them: `Store.status`, and what its notes and records say.

    columns : the names of the features, if they have names
    table : the columns of a table with their types, levels and fills, if it has learnt cells
    pictures : how pictures become vectors, if the model has learnt pictures
    texts : how texts become vectors, if the model has learnt texts
    contributors, origins : the number of examples by name
    chosen, follows : the parameters that the examples choose, and whether after every edit
    choosers_held : whether all examples that chose are held; else some may have left
    settings : the parameters of the estimator; a kernel in words
    edits, undone : entries of the journal, and how many of these are undone
    """
    facts, notes = store.status(), noted(store)
    plain = (bool, int, float, str, type(None))
    return {
        "model": str(store.path),
        "kind": facts.kind,
        "examples": facts.examples,
        "classes": None if predicts_values(store) else _pairs("label", facts.classes),
        "features": facts.features,
        "columns": notes.get("columns"),
        "table": None if store.table is None else store.table.note()["columns"],
        "pictures": notes["pictures"]["about"]["kind"] if "pictures" in notes else None,
        "texts": _vectors_of(notes["texts"]) if "texts" in notes else None,
        "contributors": _pairs("name", facts.contributors),
        "origins": _pairs("name", Counter(record.origin for record in store.records())),
        "kernel": facts.kernel,
        "noise": facts.noise,
        "chosen": list(facts.chosen),
        "follows": facts.follows,
        "choosers_held": facts.choosers_held,
        "settings": {
            name: value if isinstance(value, plain) else repr(value)
            for name, value in facts.parameters.items()
        },
        "edits": facts.entries,
        "undone": facts.undone,
        "bytes": facts.size,
        "format": facts.format,
    }


def _pairs(name: str, counts: Any) -> list[dict[str, Any]]:
    """Counts as a list: in JSON only texts can be keys."""
    return [{name: key, "examples": count} for key, count in counts.items() if key is not None]


# -- elsewhere -------------------------------------------------------------------------------------


def export(
    store: Store,
    files: dict[str, Path],
    *,
    path: Path | None = None,
    variance: bool = True,
    done: Callable[[Path], None] = lambda file: None,
) -> str:
    """Write a model in these forms; returns a note on what the files take, or "".

    files : the file by form: onnx, table, html, javascript, sqlite
    path : what to call the model in errors and notes; its own path if None
    variance : whether an ONNX graph answers with variances
    done : called after each file
    """
    path = store.path if path is None else path
    if not len(store.ids_):
        raise NoExamples(f"{str(path)!r} holds no examples yet. Teach it: knowmore learn.")
    note = store.notes.get("pictures")
    kind = None if note is None else note["about"]["kind"]
    way = describing(path)
    if (texts := store.notes.get("texts")) is not None:
        way = f"knowmore.texts.TextVectors(**{_vectors_of(texts)})"
    if "html" in files and texts is not None:
        raise InvalidInput(
            f"{str(path)!r} has learnt texts, and a page would ask for the "
            f"{store.n_features_in_:,} numbers that describe one. Nothing was written. Take "
            f"--onnx or --javascript, and describe texts as the model does: {way}"
        )
    if "html" in files and kind not in (None, "embedding"):
        raise InvalidInput(
            f"{str(path)!r} has learnt pictures by {kind}, and a page would ask for the "
            f"{store.n_features_in_:,} numbers that describe one. Nothing was written. A page "
            f"knows a network: knowmore init NEW.km --features embedding, and teach NEW.km. Or "
            f"take --onnx or --javascript, and describe pictures as the model does: {way}"
        )
    # Loaded for this question alone.
    from knowmore.export import to_html, to_javascript, to_onnx, to_table

    writers: dict[str, Callable[[Any, Any], None]] = {
        "onnx": partial(to_onnx, variance=variance),
        "table": to_table,
        "html": to_html,
        "javascript": to_javascript,
        "sqlite": to_sqlite,
    }
    for form, file in files.items():
        writers[form](store, file)
        done(file)
    if kind is None and texts is None:
        return ""
    what = "pictures" if texts is None else "texts"
    notes = []
    for form in files.keys() & {"onnx", "javascript"}:
        # A network is in the graph, before the model.
        if form == "onnx" and kind == "embedding":
            notes.append(f"{files[form].name} takes pictures; its metadata say of which size.")
        else:
            notes.append(f"{files[form].name} takes the vectors of {what}: {way}")
    return " ".join(sorted(notes))


def _vectors_of(note: dict[str, Any]) -> dict[str, Any]:
    """The parameters of the transformer that makes vectors of texts."""
    return {name: note[name] for name in ("model", "letters")}
