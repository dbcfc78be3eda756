"""The commands. Their bodies import what computes, so that the list is printed at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import rich  # noqa: F401  typer works without it, our output does not: fail before the work
import typer
from typer.core import TyperGroup

from knowmore.cli.app import Out, Quick, Seed
from papers import MODULES, NAMES, PAPERS, SCALE, VARIABLE

Data = Annotated[
    Path | None,
    typer.Option(
        help="Folder of the published data sets.",
        envvar=VARIABLE,
        show_default="../shared/data",
        file_okay=False,
    ),
]


def _data_set(name: str) -> str:
    if name in SCALE:
        return name
    remedy = f"Set {VARIABLE} to it instead." * Path(name).is_dir()
    raise typer.BadParameter(
        f"{name!r} is {'a folder' if remedy else 'not known'}; here --data names a data set: "
        f"{', '.join(SCALE)}. {remedy}".rstrip()
    )


DataSet = Annotated[
    str,
    typer.Option(
        help=f"What to learn: {', '.join(SCALE)}. {VARIABLE} names the folder of the files.",
        metavar="NAME",
        parser=_data_set,
    ),
]


class _Experiments(TyperGroup):
    """A group that answers an unknown name with those that there are."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"There is no experiment {args[0]!r}. Choose one of: {', '.join(NAMES)}.")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=_Experiments,
    help="Repeat an experiment of the papers.",
    subcommand_metavar="NAME [OPTIONS]",
    add_completion=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def _list(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _command(module: str) -> Callable[..., None]:
    def command(
        out: Out = Path("results"), seed: Seed = 0, quick: Quick = False, data: Data = None
    ) -> None:
        from knowmore.cli.experiments import present

        if data is not None:
            # Loaders read the variable, in child processes too.
            os.environ[VARIABLE] = str(data)
        present(module, out, seed, quick)

    return command


def _scale(data: DataSet, out: Out = Path("results"), seed: Seed = 0, quick: Quick = False) -> None:
    from knowmore.cli.experiments import present

    present(SCALE[data], out, seed, quick)


for _paper in PAPERS.values():
    for _name, _about in _paper.experiments.items():
        _act = _command(MODULES[_name]) if _name in MODULES else _scale
        app.command(_name, help=_about, rich_help_panel=_paper.title)(_act)
