"""The commands about a model's past and state: log, undo, redo, restore, verify, status, tune."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal
from warnings import catch_warnings, filterwarnings

import typer

import knowmore
from knowmore.cli import showing
from knowmore.cli.options import DryRun, Json, ModelFile, Yes

Objective = Literal["loo", "marginal_likelihood"]
# The origins of annotations of Label Studio begin so.
_TASKS = "label-studio/task/"

# Levels that are shown of a column, and characters of a level.
_LEVELS, _LONGEST = 5, 20


def log(model: ModelFile, as_json: Json = False) -> None:
    """What was done to the model, and when; what was undone is marked."""
    from knowmore.workbench import history

    with knowmore.open(model) as store:
        entries = history(store)
    showing.show_rows(entries, as_json)


def undo(model: ModelFile, as_json: Json = False) -> None:
    """Take back the last edit. What was forgotten cannot be taken back."""
    _travel(model, "undo", as_json)


def redo(model: ModelFile, as_json: Json = False) -> None:
    """Do again what was undone last."""
    _travel(model, "redo", as_json)


def _travel(model: Path, verb: str, as_json: bool) -> None:
    from knowmore.workbench import history_entry

    with knowmore.open(model) as store, showing.progress_bar(verb):
        entry = store.undo() if verb == "undo" else store.redo()
        held = len(store)
    if as_json:
        showing.show_json({**history_entry(entry), "examples": held})
    else:
        done = "Undone" if verb == "undo" else "Done again"
        print(
            f"{done}: {entry.verb} of {showing.counted(entry.count)}, entry {entry.number}. "
            f"{model} holds {showing.counted(held)}."
        )


def restore(
    model: ModelFile,
    copy: Annotated[
        Path, typer.Argument(metavar="COPY", help="A copy of it.", exists=True, dir_okay=False)
    ],
    again: Annotated[
        bool, typer.Option("--again", help="Keep what was forgotten since the copy was made.")
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Put a copy of a model in its place. The copy stays as it is.

    Do not copy by hand after a crash: the file and its -journal belong together. What was
    forgotten since the copy was made is forgotten again, if the file that is replaced can
    still be read. If it is lost or damaged, nobody knows: forget again yourself.
    """
    from knowmore.store import restore

    there = f"Put {copy} in the place of {model}? What was learnt since is lost."
    if model.exists() and not showing.confirm(there, yes or as_json):
        showing.talk("Nothing was changed.")
        return
    done = restore(model, copy, again=again)
    if as_json:
        counts = {"forgotten": len(done.forgotten), "changed": len(done.changed)}
        shown = {"model": str(model), "examples": done.examples, **counts}
        showing.show_json({**shown, "warning": done.warning})
        return
    print(f"Restored from {copy}: {model} holds {showing.counted(done.examples)}.")
    if done.forgotten or done.changed:
        what = showing.forgotten_in_words(len(done.forgotten), len(done.changed))
        showing.talk(
            f"Forgotten again, as it had been since the copy was made: {what}. To keep it: --again."
        )
    if done.warning:
        showing.talk(done.warning)


def verify(
    model: ModelFile,
    fast: Annotated[bool, typer.Option("--fast", help="Check hashes only; do not refit.")] = False,
    certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a certificate, as JSON.")
    ] = None,
    clean: Annotated[
        bool,
        typer.Option("--clean", help="First take off what another program added to the file."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Check that the model equals a fresh fit to its examples, and that the forgotten is gone.

    Exit code 1: something does not hold. Exit code 2: the file is too damaged to be
    opened; the error says what to do.
    """
    import json

    from knowmore._base import check_writable, written
    from knowmore.store import restore_schema

    if clean and (taken := restore_schema(model)):
        showing.talk(f"Taken off: {', '.join(taken)}.")
    if certificate is not None:
        check_writable(certificate)
    with knowmore.open(model) as store, showing.progress_bar("fitting again"):
        answer = store.verify(fast=fast)
    document = answer.certificate()
    if certificate is not None:
        with written(certificate) as file:
            file.write(json.dumps(document, indent=2, default=showing.plain).encode() + b"\n")
    if as_json:
        showing.show_json({"ok": answer.ok, **document})
    else:
        showing.say(str(answer))
    if certificate is not None:
        showing.talk(f"Written: {certificate}")
    if not answer.ok:
        raise typer.Exit(1)


def status(model: ModelFile, as_json: Json = False) -> None:
    """What the model holds: examples by class, contributors, features, settings, size."""
    from knowmore.workbench import status

    with knowmore.open(model) as store:
        answer = status(store)
    if as_json:
        showing.show_json(answer)
    else:
        _show_status(answer)


def _show_status(answer: dict[str, Any]) -> None:

    columns = answer["columns"] or ()
    more = ", ..." if len(columns) > 6 else ""
    shown = f" ({', '.join(columns[:6])}{more})" if columns else ""
    when = "by an earlier set of examples, and fixed"
    if answer["follows"]:
        when = "again after every edit"
    elif answer["choosers_held"]:
        when = "by examples that are all held, and fixed"
    facts = {
        **{name: answer[name] for name in ("model", "kind", "examples")},
        "features": f"{answer['features'] or 'none yet'}{shown}",
        **{name: answer[name] for name in ("pictures", "kernel", "noise")},
        "chosen": f"{' and '.join(answer['chosen'])}, {when}" if answer["chosen"] else None,
        "edits": answer["edits"],
        "size": f"{answer['bytes']:,} bytes, format {answer['format']}",
    }
    width = max(map(len, facts))
    for name, value in facts.items():
        if value is not None:
            showing.say(f"{name.ljust(width)}  {value}")
    if answer["table"]:
        print()
        showing.show_table(
            ("column", "type", "levels", "a blank is"), [*map(_column, answer["table"])]
        )
    for counts, headings in (
        (answer["classes"], ("class", "examples")),
        (answer["contributors"], ("contributor", "gave features or label of")),
        (_origins(answer["origins"]), ("origin", "examples")),
    ):
        if counts:
            print()
            showing.show_table(headings, [list(pair.values()) for pair in counts])


def _column(column: dict[str, Any]) -> list[str]:
    """A line on a column of a table."""
    levels = column.get("levels", ())
    first = [one if len(one) <= _LONGEST else f"{one[: _LONGEST - 3]}..." for one in levels]
    shown = ", ".join(first[:_LEVELS]) + (", ..." if len(levels) > _LEVELS else "")
    blank = [] if "fill" not in column else [showing.cell_text(column["fill"], 6)]
    blank += ["a feature"] if column["blank"] else []
    return [column["name"], column["type"], shown, ", ".join(blank) or "no level"]


def _origins(counts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The counts by origin; tasks of Label Studio, of which there are many, in one row."""
    tasks = [one for one in counts if one["name"].startswith(_TASKS)]
    others = [one for one in counts if not one["name"].startswith(_TASKS)]
    if len(tasks) < 2:
        return counts
    total = sum(one["examples"] for one in tasks)
    return [*others, {"name": f"{_TASKS}... ({len(tasks)} tasks)", "examples": total}]


def tune(
    model: ModelFile,
    objective: Annotated[Objective, typer.Option(help="What to make as good as possible.")] = "loo",
    restarts: Annotated[int, typer.Option(help="Further searches from random points.", min=0)] = 0,
    subset: Annotated[
        int | None, typer.Option(help="Search with this many examples.", min=2, show_default="all")
    ] = None,
    refresh: Annotated[
        bool,
        typer.Option(
            "--refresh", help="Instead, let the examples held choose again, as `learn` does."
        ),
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Find better settings of the kernel and the noise, and keep them; `undo` takes them back."""
    from knowmore.workbench import tune

    if refresh:
        _refresh(model, dry_run, as_json)
        return
    with (
        knowmore.open(model) as store,
        showing.progress_bar("tuning"),
        catch_warnings(),
    ):
        # Its remedies are for those who write Python; here it is said in other words.
        filterwarnings("ignore", "The objective leads to where the leave-one-out loss exceeds")
        answer = tune(store, objective, restarts, subset, dry_run=dry_run)
    changes = [list(change) for change in answer.changes]
    if as_json:
        names = ("parameter", "before", "after")
        showing.show_json(
            {
                "before": answer.before,
                "after": answer.after,
                "loss_before": answer.loss_before,
                "loss_after": answer.loss_after,
                "changes": [dict(zip(names, change, strict=True)) for change in changes],
                "dry_run": dry_run,
            }
        )
    elif changes:
        showing.show_table(("parameter", "before", "after"), changes)
        kept = "would rise" if dry_run else "rose"
        print(f"\nThe objective {kept} from {answer.before:.6g} to {answer.after:.6g}.")
        print(
            f"Leave-one-out loss: {answer.loss_before:.4g} before, {answer.loss_after:.4g} after."
        )
    else:
        print("Nothing to gain: the settings are the best that were found.")
    if answer.held_back and not as_json:
        showing.talk(
            "The search also met settings that seemed better, but with them the model would "
            "recognise its own examples worse when each is left out. It did not take these. "
            "There is nothing to do."
        )


def _refresh(model: Path, dry_run: bool, as_json: bool) -> None:
    """Let the examples held choose the settings again."""
    from knowmore.workbench import refresh_settings

    with knowmore.open(model) as store, showing.progress_bar("choosing"):
        changes = [list(change) for change in refresh_settings(store, dry_run=dry_run)]
    names = ("parameter", "before", "after")
    if as_json:
        listed = [dict(zip(names, change, strict=True)) for change in changes]
        showing.show_json({"changes": listed, "dry_run": dry_run})
    elif changes:
        showing.show_table(names, changes)
    else:
        print("The examples held choose the settings in use.")
