"""The commands. Their bodies import what computes, so that help is printed at once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import rich  # noqa: F401  typer works without it, our output does not: fail before the work
import typer

import knowmore
from knowmore.cli import ask, history, showing, teach
from knowmore.cli.options import (
    Category,
    Columns,
    Id,
    Ignore,
    Label,
    Pictures,
    Text,
    named_path,
    quickly,
    table_options,
)

# The demonstration shares these options with the experiments of the papers.
Out = Annotated[Path, typer.Option(help="Folder for pictures and tables.", file_okay=False)]
# The largest seed of NumPy's older generators, which scikit-learn uses.
Seed = Annotated[int, typer.Option(help="Seed of all random choices.", min=0, max=2**32 - 1)]
_RESOLUTIONS: dict[str, Any] = {"8": 8, "16": 16, "21": 21, "42": "exact"}
Quick = Annotated[bool, typer.Option("--quick", help="A smaller run, to see that it works.")]

app = typer.Typer(
    help="""Classifiers that keep learning, and forget exactly.

    A model lives in one file: knowmore learn flowers.km photos, knowmore predict flowers.km
    new.jpg. Exit codes: 0 fine, 1 findings or failed verification, 2 what was asked cannot be done,
    3 some inputs were skipped.""",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"knowmore {version('knowmore')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


_PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Teach a model": (
        teach.init,
        teach.learn,
        teach.relabel,
        teach.replace,
        teach.forget,
        teach.merge,
    ),
    "Ask a model": (
        ask.predict,
        ask.evaluate,
        ask.suspects,
        ask.suggest,
        ask.novel,
        ask.explain,
    ),
    "Look after a model": (
        history.status,
        history.log,
        history.undo,
        history.redo,
        history.restore,
        history.verify,
        history.tune,
    ),
}
for _panel, _commands in _PANELS.items():
    for _command in _commands:
        app.command(rich_help_panel=_panel)(quickly(_command))
_OUT, _OTHERS = "Use a model elsewhere", "See it work, prepare data"


@app.command(rich_help_panel=_OTHERS)
def demo(out: Out = Path("results"), seed: Seed = 0, quick: Quick = False) -> None:
    """Learn digits class by class, find wrong labels, forget a contributor, say "I don't know"."""
    from knowmore.cli.experiments import present

    present("knowmore.cli.demo", out, seed, quick)


@app.command(rich_help_panel=_OTHERS)
def features(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="A folder, tar archive or list of pictures.",
            parser=named_path,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The table to write: .npz or .parquet.")],
    kind: Annotated[
        Pictures | None,
        typer.Option(
            help="Visual words, edges, texture, colours, or a neural network.",
            show_default="embedding where its extra is installed, else sift-pyramid",
        ),
    ] = None,
    words: Annotated[
        int | None, typer.Option(help="How many visual words to learn.", min=2, show_default="200")
    ] = None,
    codebook: Annotated[Path | None, typer.Option(help="Saved visual words to use.")] = None,
    save_codebook: Annotated[
        Path | None, typer.Option(help="Where to save the words.", show_default="beside the table")
    ] = None,
    like: Annotated[
        Path | None, typer.Option(help="A model or table to be like: same kind, settings, words.")
    ] = None,
    longest: Annotated[
        int | None, typer.Option(help="Reduce longer sides to this.", min=1, show_default="480")
    ] = None,
    label: Annotated[
        int,
        typer.Option(help="Which folder is the label: -1 the nearest, 0 the outermost, ..."),
    ] = -1,
    seed: Seed = 0,
    jobs: Annotated[int, typer.Option(help="Threads; -1: one for each core.", min=-1)] = -1,
    cache: Annotated[
        Path | None, typer.Option(help="Folder for what was computed before; else the user's own.")
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Compute everything again.")] = False,
) -> None:
    """Turn pictures into vectors. Exit code 3: some could not be used, and were listed."""
    options = SimpleNamespace(**locals())
    from knowmore.cli.features import run

    if not run(options):
        raise typer.Exit(3)


@app.command(rich_help_panel=_OTHERS)
def sums(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER", help="A folder of .parquet or .npz files.", parser=named_path
        ),
    ],
    label: Annotated[
        str | None,
        typer.Option(
            help="Column of the targets.", show_default="that of the folder, else y in .npz files"
        ),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(
            help="Column of the weights.", show_default="that of the folder, else each weighs one"
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns of the features, as a,b,c.",
            show_default="those of the folder, else all others",
        ),
    ] = None,
    bits: Annotated[
        Literal["8", "16", "21", "42"] | None,
        typer.Option(
            help="Bits of a value on a new grid.", show_default="those of the folder, else 21"
        ),
    ] = None,
    regression: Annotated[
        bool, typer.Option("--regression", help="The targets are numbers, not classes.")
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Compute all, on a new grid.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Sum up each file of rows in a folder, for linear models; what is up to date is skipped."""
    from knowmore.distributed import refresh_sums

    kind = knowmore.LinearGPRegressor if regression else knowmore.LinearGPClassifier
    found = refresh_sums(
        folder,
        label,
        sample_weight=weight,
        columns=None if columns is None else columns.split(","),
        estimator=kind(resolution=bits and _RESOLUTIONS[bits]),
        again=again,
        progress=sys.stdout.isatty() and not as_json,
    )
    showing.show_refreshed(found, as_json)


@app.command(rich_help_panel=_OUT)
def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model: a .km file.")],
    onnx: Annotated[Path | None, typer.Option(help="Write an ONNX graph.")] = None,
    table: Annotated[
        Path | None, typer.Option(help="Write the examples, left out one by one: .csv, .parquet.")
    ] = None,
    sqlite: Annotated[
        Path | None, typer.Option(help="Write examples and journal as a database, to browse.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page that predicts.")] = None,
    javascript: Annotated[Path | None, typer.Option(help="Write a JavaScript module.")] = None,
    no_variance: Annotated[
        bool,
        typer.Option("--no-variance", help="A small ONNX graph: no variance, no probabilities."),
    ] = False,
) -> None:
    """Write a model for elsewhere. It holds the examples, and later edits do not reach it."""
    from knowmore.errors import InvalidInput
    from knowmore.workbench import export

    asked = {"onnx": onnx, "table": table, "html": html, "javascript": javascript, "sqlite": sqlite}
    files = {form: path for form, path in asked.items() if path is not None}
    if not files:
        raise InvalidInput(
            "Say what to write: --onnx, --table, --sqlite, --html or --javascript, and a file."
        )
    if no_variance and onnx is None:
        raise InvalidInput("--no-variance is about the ONNX graph: give --onnx and a file, too.")
    for path in files.values():
        if path.resolve() == model.resolve():
            raise InvalidInput(f"{str(path)!r} is the model itself. Name another file.")
    with knowmore.open(model) as store:
        note = export(
            store,
            files,
            path=model,
            variance=not no_variance,
            done=lambda file: print(f"Written: {file}"),
        )
    if note:
        showing.talk(note)


@app.command(rich_help_panel=_OUT)
def serve(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model: a .km file.")],
    host: Annotated[str, typer.Option(help="The address to serve.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any that is free.", min=0, max=65535)] = 8000,
    token: Annotated[
        str | None, typer.Option(help="A secret that requests carry.", envvar="KNOWMORE_TOKEN")
    ] = None,
    label_studio: Annotated[
        bool, typer.Option("--label-studio", help="Let Label Studio ask, teach and forget.")
    ] = False,
) -> None:
    """Answer predictions over HTTP, and follow the file. It writes nothing but for Label Studio."""
    from knowmore.cli.serving import serve

    serve(model, host=host, port=port, token=token, label_studio=label_studio)


@app.command(rich_help_panel=_OTHERS)
def studio(
    source: Annotated[
        Path | None,
        typer.Argument(
            metavar="M.km|FOLDER|TABLE",
            parser=named_path,
            help="A model, or what to learn first, into a model beside it.",
            show_default="plane.km, made if there is none",
        ),
    ] = None,
    pool: Annotated[
        str | None,
        typer.Option(metavar="TABLE|FOLDER", help="Records without labels to ask about."),
    ] = None,
    label: Label = None,
    id_: Id = None,
    text: Text = None,
    columns: Columns = None,
    category: Category = None,
    ignore: Ignore = None,
    host: Annotated[str, typer.Option(help="The address to serve.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any that is free.", min=0, max=65535)] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Open no browser.")] = False,
) -> None:
    """Teach by hand in a browser: a local page on a model, where every click is an exact edit.

    The first line on standard output is its address, which lets one browser in, once;
    Enter in the terminal prints a fresh one.
    """
    from knowmore.cli.serving import studio

    studio(
        source,
        pool=pool,
        host=host,
        port=port,
        opens=not no_open,
        label=label,
        id=id_,
        text=text,
        table=table_options(columns, category, ignore),
    )
