"""The commands. Whatever computes is loaded in their bodies, so that help comes at once."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import rich  # noqa: F401  typer does without it, our output does not: say so before anything runs
import typer
from typer.core import TyperGroup

from knowmore.experiments import REPRODUCTIONS

if TYPE_CHECKING:
    from knowmore.experiments.findings import Experiment

Out = Annotated[
    Path,
    typer.Option(help="Folder for pictures and tables; made if it is missing.", file_okay=False),
]
Seed = Annotated[int, typer.Option(help="Seed of all random choices.", min=0)]
Quick = Annotated[bool, typer.Option("--quick", help="A smaller run, to see that it works.")]


class _Reproductions(TyperGroup):
    """A group that answers an unknown name with those that there are."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and self.get_command(ctx, args[0]) is None:
            ctx.fail(
                f"There is no experiment {args[0]!r}. Choose one of: {', '.join(REPRODUCTIONS)}."
            )
        return super().resolve_command(ctx, args)


app = typer.Typer(
    help="Classifiers that keep learning, and forget exactly.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
reproduce = typer.Typer(
    cls=_Reproductions, subcommand_metavar="NAME [OPTIONS]", no_args_is_help=True
)
app.add_typer(reproduce, name="reproduce", help="Repeat an experiment of the papers.")


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"knowmore {version('knowmore')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    pass


@app.command()
def demo(out: Out = Path("results"), seed: Seed = 0, quick: Quick = False) -> None:
    """Learn digits class by class, find wrong labels, forget a contributor, say "I don't know"."""
    _present("demo", out, seed, quick)


def _command(name: str) -> Callable[..., None]:
    def command(out: Out = Path("results"), seed: Seed = 0, quick: Quick = False) -> None:
        _present(name, out, seed, quick)

    return command


for _name, _about in REPRODUCTIONS.items():
    reproduce.command(_name, help=_about)(_command(_name))


def _present(name: str, out: Path, seed: int, quick: bool) -> None:
    """Run an experiment under a progress bar and tell what it found."""
    from knowmore.cli.console import tell, watched
    from knowmore.experiments.findings import folder
    from knowmore.extras import require

    # Before the work, not after it.
    require("matplotlib", "plots")
    folder(out)
    module = import_module(f"knowmore.experiments.{name.replace('-', '_')}")
    experiment = cast("Experiment", module)
    with watched() as progress:
        result = experiment.run(seed=seed, quick=quick, progress=progress)
        progress(1.0, "drawing")
        report = experiment.report(result, out)
    tell(report)
