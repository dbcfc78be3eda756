"""The commands that ask a model: predict, evaluate, suspects, suggest, novel, explain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

import knowmore
from knowmore.cli import showing
from knowmore.cli.options import Count, Id, Json, Label, ModelFile, Source, Sources

Rate = Annotated[
    float,
    typer.Option(
        help="Call unknown what is newer than all but this share of the examples.", min=0, max=1
    ),
]
Criterion = Literal["reduction", "margin", "variance", "random"]
By = Literal["words", "examples"]
Method = Literal["combined", "mahalanobis", "probability", "variance", "null_space"]


def predict(
    model: ModelFile,
    sources: Sources,
    id_: Id = None,
    rate: Rate = 0.05,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object on each line and nothing else.")
    ] = False,
) -> None:
    """Predict label, probability and standard deviation, and flag rows unlike anything learnt.

    The standard deviation (std) is that of the score, where classes are -1 and 1. The model knows
    little where it is near the one far from all examples: 1 with the usual kernels, until you tune.
    Of a regressor it is that of the value.

    From standard input it answers line by line. Exit code 3: some inputs could not be used.
    """
    from knowmore.errors import InvalidInput
    from knowmore.workbench import Predictor, predictions

    if as_csv and as_json:
        raise InvalidInput("Ask for --csv or for --json, not for both.")
    with knowmore.open(model) as store:
        predictor = Predictor(store, rate, keep=True)
        read, answers = predictions(store, predictor, sources, id_)
        for source in read:
            if source.ignored:
                names = ", ".join(map(repr, source.ignored))
                showing.talk(f"Ignored: {names}, which the model does not know.")
        form = "csv" if as_csv else "json" if as_json else "table"
        showing.show_predictions(answers, predictor.is_classifier, form)
    _end(*read)


def evaluate(
    model: ModelFile,
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="[SOURCE]",
            help="Labelled records to predict instead: a test set, as for learn.",
        ),
    ] = None,
    label: Label = None,
    id_: Id = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw confusion and calibration as PNG.")
    ] = None,
    as_json: Json = False,
) -> None:
    """How good the model is, by leave-one-out: each example is predicted by all the others.

    With a SOURCE, how good it is there. Records that the model holds are left out, and labels of
    classes that it does not know count as wrong. Exit code 3: some records could not be used.
    """
    from knowmore.cli.evaluating import draw, show, show_left_out
    from knowmore.errors import InvalidInput
    from knowmore.workbench import TUNABLE, evaluate, evaluate_source

    if source is None and (label, id_) != (None, None):
        raise InvalidInput("--label and --id are of a labelled source. Name it after the model.")
    tested = None
    with (
        knowmore.open(model) as store,
        showing.progress_bar("leaving each out" if source is None else "predicting"),
    ):
        if source is None:
            answer, how = evaluate(store), "predicted by the others"
        else:
            tested = evaluate_source(store, source, label, id_)
            answer, how = tested.answer, f"of {source}"
    if plot is not None:
        draw(answer, plot, how)
    if as_json:
        showing.show_json((tested or answer).as_json())
    else:
        show(answer, how)
        if tested is not None:
            show_left_out(tested)
        elif store.kind in TUNABLE and answer.is_off:
            showing.talk(f"To improve: knowmore tune {model}")
    if plot is not None:
        showing.talk(f"Written: {plot}")
    if tested is not None:
        _end(tested.source)


def suspects(
    model: ModelFile,
    count: Count = 20,
    apply: Annotated[
        bool, typer.Option("--apply", help="Decide about each with one key, on a terminal.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Examples whose labels are likely to be wrong. Exit code 1: there are some."""
    from knowmore.cli.auditing import MENDED, apply_answers
    from knowmore.errors import InvalidInput
    from knowmore.workbench import suspects

    if apply and as_json:
        raise InvalidInput("--apply asks on a terminal, --json prints for programs.")
    with knowmore.open(model) as store:
        if apply:
            apply_answers(store)
            return
        with showing.progress_bar("leaving each out"):
            rows, total, kept = suspects(store, count)
    if as_json:
        showing.show_json(rows)
    elif rows:
        against = [", ".join(map(str, row["contradicting"])) for row in rows]
        pairs = zip(rows, against, strict=True)
        showing.show_rows([row | {"contradicting": ids} for row, ids in pairs])
        showing.talk(
            f"{len(rows)} of {total} shown. To decide about each: --apply. Mend the whole list "
            f"before you ask again: {MENDED}."
        )
    else:
        showing.talk(
            "No label is likely to be wrong by what the other examples say. If you have mended a "
            f"part of an earlier list, look at the rest of it all the same: {MENDED}."
        )
    if kept and not as_json:
        showing.talk(f"Left out: {kept} that somebody looked at and kept.")
    if rows:
        raise typer.Exit(1)


def suggest(
    model: ModelFile,
    source: Annotated[
        str, typer.Argument(metavar="POOL", help="Records without labels, as for predict.")
    ],
    id_: Id = None,
    count: Count = 10,
    criterion: Annotated[
        Criterion | None,
        typer.Option(
            help="What makes a record useful.", show_default="the best that the model has"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Which records of a pool to label next: those that would teach the model most.

    They are chosen one by one, each as if those before it were labelled already. `value` is what
    the criterion says of a record when it is chosen, so a later one may have a larger value.
    """
    from knowmore.workbench import suggest, unlabelled

    with knowmore.open(model) as store, showing.progress_bar("choosing"):
        read = unlabelled(store, source, id_)
        rows = suggest(store, read, count, criterion)
    showing.show_rows(rows, as_json)
    _end(read)


def novel(
    model: ModelFile,
    source: Source,
    id_: Id = None,
    rate: Rate = 0.05,
    method: Annotated[
        Method | None,
        typer.Option(help="How novelty is measured.", show_default="the best that the model has"),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show the known ones, too.")] = False,
    as_json: Json = False,
) -> None:
    """Records unlike all that the model knows, the most unlike first.

    Exit code 1: there are some.
    """
    from knowmore.workbench import novelty, unlabelled

    with knowmore.open(model) as store, showing.progress_bar("comparing"):
        read = unlabelled(store, source, id_)
        rows = novelty(store, read, rate, method)
    new = [row for row in rows if row["unknown"]]
    showing.show_rows(rows if every else new, as_json)
    if not as_json:
        showing.talk(f"{len(new)} of {len(rows)} are unknown to the model.")
    _end(read)
    if new:
        raise typer.Exit(1)


def explain(
    model: ModelFile,
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT",
            help="The id of an example; or JSON, a text, a picture, a file of one row.",
        ),
    ],
    label: Annotated[
        str | None, typer.Option(help="The class to explain.", show_default="the predicted one")
    ] = None,
    against: Annotated[
        bool, typer.Option("--against", help="List the examples that speak against the class.")
    ] = False,
    count: Count = 10,
    by: Annotated[
        By | None,
        typer.Option(help="What is said to add to the score of a text.", show_default="words"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Why the model says what it says: the examples without which it would say something else.

    A vote is what the label of an example adds to the score; score_without is the score that the
    model would give had it never seen the example, and score_left the score without it and all
    above it. Examples that take each other's place are one row, with the first columns of one of
    them. Of a linear model: what each
    feature adds to the score; with a squared hinge, what each example adds. Of a text: what each
    word does, the score less the score without that word.
    """
    from knowmore._base import digits_of
    from knowmore.errors import InvalidInput
    from knowmore.workbench import explain, explain_words, noted, predicts_values

    with knowmore.open(model) as store:
        of_texts = "texts" in noted(store)
        if by == "words" or (by is None and of_texts and not predicts_values(store)):
            if against:
                raise InvalidInput(
                    "--against lists examples, and of a text words are listed. Say --by examples."
                )
            showing.show_words(explain_words(store, what, label), count, as_json)
            return
        answer, table = explain(store, what, label, count, against=against)
    score, offset, grounded = answer.score, answer.offset, "vote" in table
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    if as_json:
        said = {"label": answer.label, "score": score, "offset": offset, "parts": rows}
        showing.show_json(said | {"instead": answer.instead} if grounded else said)
        return
    begin = "value" if predicts_values(store) else f"{answer.label}: score"
    if grounded:
        showing.say(f"{begin} {_without(answer)}")
        for row in rows:
            row["id"] = ", ".join(map(str, row["id"]))
            if "cells" in row:
                row["cells"] = showing.brief_cells(row["cells"])
            if "text" in row:
                row["text"] = showing.brief(row["text"])
    else:
        adding = "features" if "feature" in table else "examples"
        digits = digits_of([score, offset])
        base = f": it begins at {offset:.{digits}g}, and {adding} add the rest" if offset else ""
        showing.say(f"{begin} {score:.{digits}g}{base}")
    digits = digits_of([score, *table.get("score_left", [])])
    figures = dict.fromkeys(("score_without", "score_left"), digits)
    showing.show_table([*table], [[*row.values()] for row in rows], digits=figures)


def _without(grounds: Any) -> str:
    """A score, and what it would be without all its grounds, in words."""
    from knowmore._base import digits_of

    if not len(grounds):
        return f"{grounds.score:.4g}, which rests on no single example"
    left, count = grounds.score_left[-1], sum(map(len, grounds.ids))
    digits = digits_of([grounds.score, left])
    these = "this example" if count == 1 else f"these {count} examples"
    changed = grounds.instead is not None and grounds.instead != grounds.label
    then = f", and {grounds.instead} the answer" if changed else ""
    return f"{grounds.score:.{digits}g}; without {these} it would be {left:.{digits}g}{then}"


def _whence(source: Any, name: str) -> str:
    """The name of a skipped file with that of its source: several sources may have such a file."""
    path = Path(source.name)
    if not source.in_folders or path.name == name:
        return source.name if source.in_folders else name
    return str(path / name) if path.is_dir() else f"{source.name}, {name}"


def _end(*read: Any) -> None:
    """Say what was skipped, and end with 3 if something was; a stream has said it already."""
    for one in read:
        if one.name != "-":
            showing.show_skipped({_whence(one, name): why for name, why in one.skipped.items()})
    if any(one.skipped for one in read):
        raise typer.Exit(3)
