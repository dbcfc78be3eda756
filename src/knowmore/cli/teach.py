"""The commands that change a model: init, learn, relabel, replace, forget, merge."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import knowmore
from knowmore.cli import showing
from knowmore.cli.options import (
    Category,
    Columns,
    DryRun,
    Id,
    Ignore,
    Json,
    Kind,
    Label,
    ModelFile,
    Pictures,
    Source,
    Text,
    Yes,
    table_options,
)

if TYPE_CHECKING:
    from knowmore.store import Forgotten, Preview
    from knowmore.workbench import LearnOptions, Learnt

# So many small classes are told one by one.
_FEW = 5


def init(
    model: ModelFile,
    kind: Annotated[Kind, typer.Option(help="The kind of model.")] = "gp",
    features: Annotated[
        Pictures | None,
        typer.Option(
            help="How pictures become vectors.",
            show_default="embedding where its extra is installed, else sift-pyramid",
        ),
    ] = None,
    words: Annotated[
        int | None, typer.Option(help="Visual words to learn.", min=2, show_default="200")
    ] = None,
    source: Annotated[
        Path | None, typer.Option(help="The known model of kind n-plus-one.", exists=True)
    ] = None,
    supports: Annotated[
        str | None,
        typer.Option(metavar="SOURCE", help="Examples of other classes, for kind one-shot."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Make an empty model. `learn` makes one, too: of kind gp."""
    from knowmore.workbench import make

    make(model, kind, features=features, words=words, source=source, supports=supports)
    if as_json:
        showing.show_json({"model": str(model), "kind": kind})
    else:
        print(
            f"Made {model}, an empty model of kind {kind}. Teach it: knowmore learn {model} SOURCE"
        )


def learn(
    model: ModelFile,
    source: Source,
    label: Label = None,
    id_: Id = None,
    text: Text = None,
    contributor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Who gave these examples, where a column `contributor` names nobody.",
        ),
    ] = None,
    origin: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="What to call the source.", show_default="its path"),
    ] = None,
    sync: Annotated[
        bool, typer.Option("--sync", help="Forget what vanished from the source.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Learn what was forgotten before, too.")
    ] = False,
    columns: Columns = None,
    category: Category = None,
    ignore: Ignore = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Learn from a source. What is known is skipped, what changed is replaced.

    What was forgotten before is skipped, too, unless --again.

    Makes the model if there is none. `undo` takes all of it back. Exit code 3: some
    inputs could not be read, and were listed.
    """
    from dataclasses import asdict

    from knowmore.workbench import LearnOptions, learn

    table = table_options(columns, category, ignore)
    request = LearnOptions(
        model, source, label, id_, contributor, origin, sync, dry_run, again, table, text
    )
    with showing.progress_bar("learning") as progress:
        found, read = learn(request, progress)
    showing.show_skipped(read.skipped)
    if read.ignored and not as_json:
        names = ", ".join(map(repr, read.ignored))
        alone = f" The model learns the texts of {read.text!r} alone." if read.text else ""
        showing.talk(f"Ignored: {names}.{alone}")
    if as_json:
        showing.show_json({"model": str(model), **asdict(found), "dry_run": dry_run})
    else:
        _report_learnt(found, request, read.name)
    if found.warning:
        showing.talk(found.warning)
        raise typer.Exit(1)
    if found.unreadable:
        raise typer.Exit(3)


def relabel(
    model: ModelFile,
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id of an example.")],
    label: Annotated[str, typer.Argument(metavar="LABEL", help="Its label from now on.")],
    contributor: Annotated[str | None, typer.Option(metavar="NAME", help="Who says so.")] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Give an example another label. A label that no example has is a new class.

    An example that was put aside, since its label was refused, comes back with this one.

    On a terminal it asks first if a known class has a similar name; in a script it says so.
    """
    from knowmore.workbench import ids_named, label_named, new_label

    with knowmore.open(model) as store:
        (one,), new = ids_named(store, [id_], aside=True), label_named(store, label)
        note, is_doubtful = new_label(store, new)
        # None stays for one that was put aside, and comes back.
        examples, old = store.examples, None
        if one in set(store.ids_.tolist()):
            old = examples.labels[examples.rows((one,))[0]].item()
        if is_doubtful and not dry_run and not showing.confirm(f"{note} Make it?", yes or as_json):
            showing.talk("Nothing was changed.")
            return
        if not dry_run and new != old:
            store.relabel([one], [new], contributor=contributor)
    if as_json:
        showing.show_json({"id": one, "before": old, "label": new, "dry_run": dry_run})
    elif new == old:
        showing.say(f"Nothing was changed: the label of {one} is {old} already.")
    else:
        would = "Would be relabelled" if dry_run else "Relabelled"
        before = "which was put aside," if old is None else f"from {old}"
        showing.say(f"{would}: {one}, {before} to {new}.")
        if note:
            showing.talk(note)


def replace(
    model: ModelFile,
    id_: Annotated[str, typer.Argument(metavar="ID", help="The id of an example.")],
    source: Annotated[
        str,
        typer.Argument(
            metavar="ROW", help="Its new features: JSON, a text, a picture, or a file of one row."
        ),
    ],
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Give an example other features. Its label stays; `learn` replaces many at a time."""
    from knowmore.workbench import ids_named, replace_row

    with knowmore.open(model) as store:
        (one,) = ids_named(store, [id_])
        replace_row(store, one, source, dry_run=dry_run)
    if as_json:
        showing.show_json({"id": one, "dry_run": dry_run})
    else:
        showing.say(f"{'Would be replaced' if dry_run else 'Replaced'}: {one}.")


_IdsFile = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="A file of ids, one on each line; - for standard input."),
]
_AllOf = Annotated[str | None, typer.Option(metavar="NAME", help="All examples of a contributor.")]
_AllFrom = Annotated[str | None, typer.Option(metavar="NAME", help="All examples from a source.")]
_NoMark = Annotated[
    bool, typer.Option("--no-mark", help="Keep no hash: `learn` may bring them back.")
]


def forget(
    model: ModelFile,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Examples.")] = None,
    ids_file: _IdsFile = None,
    contributor: _AllOf = None,
    origin: _AllFrom = None,
    no_mark: _NoMark = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Forget examples for ever, as if they had never been there; it cannot be undone.

    --contributor forgets all that somebody gave, features and labels: an example that
    somebody else gave stays, with what it had before. The other examples choose kernel
    widths, noises and grids again; what cannot be chosen again is listed. On a terminal it
    asks first; in a script it does not. Exit code 1: bytes of them were found afterwards,
    and are listed.
    """
    from knowmore.store import Forgotten
    from knowmore.workbench import ids_named, preview_forget

    whose = {"--contributor": contributor, "--origin": origin}
    _check_one_given({"Ids": ids or None, "--ids-file": ids_file, **whose})
    with knowmore.open(model) as store:
        names = None
        if contributor is None and origin is None:
            names = ids_named(store, ids or showing.lines_of(str(ids_file)), undone=True)
        plan, left = preview_forget(store, names, contributor=contributor, origin=origin)
        question = f"Forget {_forgotten(plan)} for ever?{_stays(plan, would=True)}"
        if not dry_run and not showing.confirm(question, yes or as_json):
            showing.talk("Nothing was forgotten.")
            return
        done = Forgotten(0, [])
        if not dry_run:
            with showing.progress_bar("forgetting"):
                done = store.forget(names, contributor=contributor, origin=origin, mark=not no_mark)
            left = len(store)
    if as_json:
        showing.show_json(_forgotten_json(done, plan, left) | {"dry_run": dry_run})
    else:
        _report_forgotten(done, plan, left, dry_run)
    if done.warning:
        showing.talk(done.warning)
        raise typer.Exit(1)


def merge(
    model: ModelFile,
    other: Annotated[
        Path, typer.Argument(metavar="OTHER", help="Another .km file.", exists=True, dir_okay=False)
    ],
    again: Annotated[
        bool, typer.Option("--again", help="Bring back what was forgotten before.")
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Learn all examples of another model, of the same kind and settings."""
    from knowmore.workbench import merge

    with knowmore.open(model) as mine, knowmore.open(other) as theirs:
        count = len(theirs)
        with showing.progress_bar("merging"):
            merge(mine, theirs, again=again, dry_run=dry_run)
        held = len(mine) + dry_run * count
    if as_json:
        showing.show_json({"added": count, "examples": held, "dry_run": dry_run})
    else:
        would = "Would be: " if dry_run else ""
        print(f"{would}{count} added. {model} holds {showing.counted(held)}.")


def _report_learnt(found: Learnt, request: LearnOptions, name: str) -> None:
    """Print what was learnt from the source of this name, and notes on it."""
    would = "Would be: " if request.dry_run else ""
    parts = [f"{found.added} added", f"{found.skipped} skipped", f"{found.replaced} replaced"]
    if found.vanished or not found.elsewhere:
        parts.append(f"{found.vanished} vanished")
    for count, what in (
        (found.moved, "moved"),
        (found.forgotten, "forgotten"),
        (found.forgotten_before, "forgotten before"),
        (found.unreadable, "unreadable"),
    ):
        if count:
            parts.append(f"{count} {what}")
    holds = "would hold" if request.dry_run else "holds"
    print(f"{would}{', '.join(parts)}. {request.model} {holds} {showing.counted(found.examples)}.")
    _note_learnt(found, request, name)


def _note_learnt(found: Learnt, request: LearnOptions, name: str) -> None:
    from knowmore.workbench import ENOUGH

    for label, count in found.few[:_FEW]:
        showing.talk(
            f"{label} has {showing.counted(count)}: until there are about {ENOUGH}, new ones of it "
            f"are often called unknown."
        )
    if more := found.few[_FEW:]:
        showing.talk(f"So it is with {len(more)} more classes.")
    for sentence in found.kept:
        showing.talk(sentence)
    showing.show_left_out(found.left_out)
    if found.described == "embedding":
        showing.talk(
            "Pictures are described by a network (efficientnet-lite0). Other features: knowmore "
            "init NEW.km --features sift-pyramid"
        )
    elif found.described:
        showing.talk(
            "Pictures are described by visual words; a network sees more: pip install "
            '"knowmore[embeddings]"'
        )
    if found.ids == "content":
        talk = (
            "The rows have no ids, so their contents serve as such: a row that changes is a new "
            "one."
        )
        if found.repeated:
            rows = (
                "row repeats another and does"
                if found.repeated == 1
                else "rows repeat others and do"
            )
            talk += f" {found.repeated} {rows} not count again."
        if found.added and found.added == found.examples:
            talk += " To name a column of ids: --id COLUMN."
        showing.talk(talk)
    if found.values:
        showing.talk(
            f"The labels are {found.values} different numbers. To predict numbers, start anew: "
            f"knowmore init OTHER.km --kind gp-regression"
        )
    if found.forgotten_before:
        showing.talk(
            "What was forgotten before is not learnt again. To learn it all the same: --again."
        )
    if request.contributor is not None and found.named:
        done = found.added + found.skipped + found.replaced + found.moved
        others = done + found.forgotten_before - found.named
        showing.talk(
            f"{found.named} records name their own contributor; --contributor "
            f"{request.contributor!r} is used for the other {others}."
        )
    if found.elsewhere:
        showing.talk(_elsewhere(found, request.origin or name, advise=request.origin is None))
    if found.vanished and not request.sync:
        showing.talk("What vanished from the source is still held. To forget it: --sync.")
    if found.moved and not request.sync:
        showing.talk(
            "What moved has the label of its new folder, and its old id. To rename it: --sync."
        )


def _elsewhere(found: Learnt, source: str, advise: bool) -> str:
    """A note that --sync does not look at ids that came from other sources.

    advise : whether the source may have another name than before
    """
    count, origins = sum(found.elsewhere.values()), [*found.elsewhere]
    origin = max(origins, key=lambda name: found.elsewhere[name])
    whence = repr(origin)
    if len(origins) > 1:
        whence = f"other sources, {found.elsewhere[origin]} of them from {origin!r}"
    nothing = "" if found.vanished else ": nothing was"
    told = (
        f"{count} of these ids came from {whence}, and --sync forgets only what came from "
        f"{source!r}{nothing}."
    )
    if not advise:
        return told
    name = shlex.quote(origin)
    return f"{told} If the two are one source under two names, say so: --origin {name}."


def _check_one_given(given: dict[str, object]) -> None:
    """Raise InvalidInput unless one of the ways to say what to forget is used."""
    from knowmore.errors import InvalidInput

    said = [name for name, value in given.items() if value is not None]
    if not said:
        raise InvalidInput("Say what to forget: ids, --ids-file, --contributor or --origin.")
    if len(said) > 1:
        raise InvalidInput(
            f"{said[0]} and {said[1]} are both given. Say only one, and call the command once for "
            f"each."
        )


def _forgotten(plan: Preview) -> str:

    return showing.forgotten_in_words(len(plan.leaving), len(plan.changing) + len(plan.erasing))


def _forgotten_json(done: Forgotten, plan: Preview, left: int) -> dict[str, Any]:
    return {
        "forgotten": len(plan.leaving),
        "changed": len(plan.changing),
        "erased": len(plan.erasing),
        "examples": left,
        "traces": len(done.traces),
        "warning": done.warning,
        "kept": list(done.kept),
    }


def _report_forgotten(done: Forgotten, plan: Preview, left: int, dry_run: bool) -> None:
    """Print how many examples are gone and stay, and traces and settings that stay."""
    what, stays = _forgotten(plan), _stays(plan, would=dry_run)
    if dry_run:
        showing.say(f"Would be forgotten: {what}; {left} would stay.{stays}")
        return
    nothing = "No row" if done.kept else "Nothing"
    nothing = "" if done.warning else f" {nothing} of them is left in the file or beside it."
    showing.say(f"Forgotten: {what}; {left} stay.{nothing}{stays}")
    for sentence in done.kept:
        showing.say(sentence)
    showing.talk(
        "Blocks of the disk that were freed, snapshots and backups are beyond the reach of this "
        "command."
    )


def _stays(plan: Preview, *, would: bool) -> str:
    """A note on examples that stay though features or labels of them are forgotten, or ""."""
    changed, erased = len(plan.changing), len(plan.erasing)
    parts = []
    if changed:
        gets = "would get" if would else "gets" if changed == 1 else "get"
        parts.append(f"{changed} {gets} back what was there before")
    if erased:
        loses = "would only lose" if would else "only loses" if erased == 1 else "only lose"
        parts.append(f"{erased} {loses} an earlier version")
    return f" {'; '.join(parts)}." if parts else ""
