"""The commands that ask a model: predict, evaluate, suspects, suggest, novel, explain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from knowmore.cli.options import Count, Id, Json, Model, Source, Sources

Rate = Annotated[
    float,
    typer.Option(
        help="Call unknown what is newer than all but this share of the examples.", min=0, max=1
    ),
]
Criterion = Literal[
    "reduction", "margin", "uncertainty", "variance", "weight", "impact", "emoc", "random"
]
Method = Literal["combined", "mahalanobis", "probability", "variance", "score", "null_space"]


def predict(
    model: Model,
    sources: Sources,
    id_: Id = None,
    rate: Rate = 0.05,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object on each line and nothing else.")
    ] = False,
) -> None:
    """Predict label, probability and standard deviation, and flag rows unlike anything learnt.

    The standard deviation (std) is that of the score, where classes are -1 and 1: with the usual
    kernels the model knows little where it is near 1. Of a regressor it is that of the value.

    From standard input it answers line by line. Exit code 3: some inputs could not be used.
    """
    from knowmore.cli.model import opened
    from knowmore.cli.predicting import columns_of, predictions, show
    from knowmore.cli.sources import open_source
    from knowmore.errors import InvalidInput
    from knowmore.store.predicting import Predictor

    if as_csv and as_json:
        raise InvalidInput("Ask for --csv or for --json, not for both.")
    with opened(model) as found:
        predictor = Predictor(found.store, rate, keep=True)
        wanted = found.wanted(None, id_, labelled=False, gaps=True)
        read = [open_source(one, wanted, streaming=True) for one in sources]
        for one in read:
            found.check(one)
            _say_ignored(one)
        form = "csv" if as_csv else "json" if as_json else "table"
        show(predictions(found, read, predictor), columns_of(predictor), form)
    _end(*read)


def evaluate(
    model: Model,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw confusion and calibration as PNG.")
    ] = None,
    as_json: Json = False,
) -> None:
    """How good the model is, by leave-one-out: each example is predicted by all the others."""
    from knowmore.cli.evaluating import evaluate
    from knowmore.cli.left_out import TUNABLE
    from knowmore.cli.model import opened
    from knowmore.cli.showing import progress_bar, show_json, talk

    with opened(model) as found, progress_bar("leaving each out"):
        answer = evaluate(found)
    if plot is not None:
        answer.draw(plot)
    if as_json:
        show_json(answer.as_json())
    else:
        answer.show()
        if found.kind in TUNABLE and answer.is_off:
            talk(f"To improve: knowmore tune {model}")
    if plot is not None:
        talk(f"Written: {plot}")


def suspects(
    model: Model,
    count: Count = 20,
    apply: Annotated[
        bool, typer.Option("--apply", help="Decide about each with one key, on a terminal.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Examples whose labels are likely to be wrong. Exit code 1: there are some."""
    from knowmore.cli.auditing import apply_answers, suspects_of
    from knowmore.cli.model import opened
    from knowmore.cli.showing import progress_bar, show_json, show_table, talk
    from knowmore.errors import InvalidInput

    if apply and as_json:
        raise InvalidInput("--apply asks on a terminal, --json prints for programs.")
    with opened(model) as found:
        if apply:
            apply_answers(found)
            return
        with progress_bar("leaving each out"):
            rows, total, kept = suspects_of(found, count)
    doubts = ("id", "label", "preferred", "doubt", "margin")
    header = (*doubts, "labeller", "contributor", "contradicting")
    if as_json:
        show_json([dict(zip(header, row, strict=True)) for row in rows])
    elif rows:
        show_table(header, [[*row[:-1], ", ".join(map(str, row[-1]))] for row in rows])
        talk(f"{len(rows)} of {total} shown. To decide about each: --apply.")
    else:
        talk("No label is likely to be wrong by what the other examples say.")
    if kept and not as_json:
        talk(f"Left out: {kept} that somebody looked at and kept.")
    if rows:
        raise typer.Exit(1)


def suggest(
    model: Model,
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
    from knowmore.cli.model import opened
    from knowmore.cli.pools import suggestions
    from knowmore.cli.showing import progress_bar, show_json, show_table

    with opened(model) as found, progress_bar("choosing"):
        rows, read = suggestions(found, source, id_, count, criterion)
    header = ("id", "value", "reason")
    if as_json:
        show_json([dict(zip(header, row, strict=True)) for row in rows])
    else:
        show_table(header, rows)
    _end(read)


def novel(
    model: Model,
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
    from knowmore.cli.model import opened
    from knowmore.cli.pools import novelties
    from knowmore.cli.showing import progress_bar, show_json, show_table, talk

    with opened(model) as found, progress_bar("comparing"):
        rows, read = novelties(found, source, id_, rate, method)
    new = [row for row in rows if row[-1]]
    header = ("id", "novelty", "threshold", "unknown")
    if as_json:
        show_json([dict(zip(header, row, strict=True)) for row in (rows if every else new)])
    else:
        if every or new:
            show_table(header, rows if every else new)
        talk(f"{len(new)} of {len(rows)} are unknown to the model.")
    _end(read)
    if new:
        raise typer.Exit(1)


def explain(
    model: Model,
    what: Annotated[
        str,
        typer.Argument(
            metavar="WHAT", help="The id of an example; or JSON, a picture, a file of one row."
        ),
    ],
    label: Annotated[
        str | None, typer.Option(help="The class to explain.", show_default="the predicted one")
    ] = None,
    count: Count = 10,
    as_json: Json = False,
) -> None:
    """Why the model says what it says: what each example, or feature, adds to the score."""
    from knowmore.cells import digits_of
    from knowmore.cli.explaining import explanation
    from knowmore.cli.model import opened
    from knowmore.cli.showing import show_json, show_table

    with opened(model) as found:
        answer, table = explanation(found, what, label)
    header, rows = list(table), [list(row) for row in zip(*table.values(), strict=True)]
    if as_json:
        parts = [dict(zip(header, row, strict=True)) for row in rows[:count]]
        show_json(
            {"label": answer.label, "score": answer.score, "offset": answer.offset, "parts": parts}
        )
    else:
        said = "value" if found.is_regression else f"{answer.label}: score"
        adding = "features" if "feature" in table else "examples"
        digits = digits_of([answer.score, answer.offset])
        base = f": it begins at {answer.offset:.{digits}g}, and {adding} add the rest"
        print(f"{said} {answer.score:.{digits}g}{base if answer.offset else ''}")
        show_table(header, rows[:count])


def _say_ignored(read: Any) -> None:
    from knowmore.cli.showing import talk

    if read.ignored:
        talk(f"Ignored: {', '.join(map(repr, read.ignored))}, which the model does not know.")


def _end(*read: Any) -> None:
    """Say what was skipped, and end with 3 if something was; a stream has said it already."""
    from knowmore.cli.showing import show_skipped

    for one in read:
        if one.name != "-":
            show_skipped(one.skipped)
    if any(one.skipped for one in read):
        raise typer.Exit(3)
