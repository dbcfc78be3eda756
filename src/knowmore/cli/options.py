"""The arguments and options that several commands share, and a quick start for commands."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

Kind = Literal[
    "gp",
    "gp-regression",
    "lssvm",
    "linear",
    "linear-regression",
    "forest",
    "forest-regression",
    "one-shot",
    "n-plus-one",
]
Pictures = Literal[
    "sift-pyramid",
    "bow",
    "colour-sift",
    "self-similarity",
    "phog",
    "lbp",
    "colours",
    "covariance",
    "embedding",
]

_KM = "A model: a .km file."
_SOURCE = (
    "A folder with a folder of pictures or .txt files for each class, a .tar of pictures, a .csv, "
    ".tsv, .parquet, .npz or .jsonl file, or - for JSON lines on standard input."
)
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help=_KM, dir_okay=False)]
Source = Annotated[str, typer.Argument(metavar="SOURCE", help=_SOURCE)]
Sources = Annotated[
    list[str], typer.Argument(metavar="SOURCE...", help=f"{_SOURCE[:-1]}; or several of these.")
]
Label = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column of labels.",
        show_default="the one that the model learnt from, else label",
    ),
]
Id = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="The column of ids.",
        show_default="the one that the model learnt from, else id; rows without ids go by content "
        "hashes in what is learnt, and by numbers elsewhere",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="A,B,...",
        help="The only columns of a table to learn.",
        show_default="all but those of names and free text",
    ),
]
Category = Annotated[
    str | None,
    typer.Option(metavar="A,B,...", help="Columns whose values are names, numbers or not."),
]
Ignore = Annotated[
    str | None, typer.Option(metavar="A,B,...", help="Columns of a table to leave out.")
]
Text = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Learn texts: the column that holds them. Other columns are ignored.",
        show_default="the one that the model learnt from, else text",
    ),
]

Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; do nothing.")]
Yes = Annotated[
    bool,
    typer.Option("--yes", "-y", help="Do not ask. Without a terminal nothing is asked anyway."),
]
Count = Annotated[int, typer.Option("-n", "--count", help="How many to show at most.", min=1)]


def quickly(command: Callable[..., None]) -> Callable[..., None]:
    """The command, which first loads scikit-learn without pandas: a quarter of its start."""

    @wraps(command)
    def quick(*arguments: Any, **options: Any) -> None:
        load_without_pandas()
        command(*arguments, **options)

    return quick


def load_without_pandas() -> None:
    """Load scikit-learn, as if pandas were not installed: it imports pandas, which takes long."""
    if not {"sklearn", "pandas"}.isdisjoint(sys.modules):
        return
    sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        import_module("sklearn.base")
    finally:
        del sys.modules["pandas"]


def named_path(text: str) -> Path:
    """A path from the command line; an empty word names none, though paths take it for a folder."""
    from knowmore._base import check_name
    from knowmore.errors import InvalidInput

    try:
        check_name(text)
    except InvalidInput as error:
        raise typer.BadParameter(str(error)) from None
    return Path(text)


def table_options(columns: str | None, category: str | None, ignore: str | None) -> Any:
    """What the options of a command say of the columns of a table."""
    from knowmore.tables import Options

    named = None if columns is None else _listed(columns)
    return Options(named, _listed(category or ""), _listed(ignore or ""))


def _listed(text: str) -> tuple[str, ...]:
    """The names in a list that commas separate.

    >>> _listed("zip, year")
    ('zip', 'year')
    """
    return tuple(one.strip() for one in text.split(",") if one.strip())
