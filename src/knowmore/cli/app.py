"""The commands. Whatever computes is loaded in their bodies, so that help comes at once."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

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
# As far as NumPy's older generators go, which scikit-learn uses.
Seed = Annotated[int, typer.Option(help="Seed of all random choices.", min=0, max=2**32 - 1)]
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


@app.command()
def features(
    source: Annotated[
        Path, typer.Argument(help="A folder, a tar archive, or a text file that lists pictures.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The table to write: .npz or .parquet.")],
    kind: Annotated[
        Literal["sift-pyramid", "bow", "phog", "embedding"] | None,
        typer.Option(
            help="Which features: visual words in cells or as a whole, edges, a network.",
            show_default="sift-pyramid",
        ),
    ] = None,
    words: Annotated[
        int | None,
        typer.Option(help="How many visual words to learn.", min=2, show_default="200"),
    ] = None,
    codebook: Annotated[
        Path | None, typer.Option(help="Visual words that were saved, instead of new ones.")
    ] = None,
    save_codebook: Annotated[
        Path | None,
        typer.Option(help="Where to save the visual words.", show_default="beside the table"),
    ] = None,
    like: Annotated[
        Path | None,
        typer.Option(help="A table to make this one like: same kind, settings and visual words."),
    ] = None,
    longest: Annotated[
        int | None,
        typer.Option(
            help="Pictures with a longer side are reduced to it.", min=1, show_default="480"
        ),
    ] = None,
    seed: Seed = 0,
    jobs: Annotated[
        int, typer.Option(help="Threads; -1 is as many as there are cores.", min=-1)
    ] = -1,
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder for what was computed before; else the user's own."),
    ] = None,
    no_cache: Annotated[bool, typer.Option("--no-cache", help="Compute everything anew.")] = False,
) -> None:
    """Turn pictures into vectors. Exit code 3: some could not be used, and were listed."""
    from knowmore.cli.features import run
    from knowmore.cli.recipe import Request

    asked = Request(
        source=source,
        out=out,
        kind=kind,
        words=words,
        codebook=codebook,
        save_codebook=save_codebook,
        like=like,
        longest=longest,
        seed=seed,
        jobs=jobs,
        cache=cache,
        no_cache=no_cache,
    )
    if not run(asked):
        raise typer.Exit(3)


def _command(name: str) -> Callable[..., None]:
    def command(out: Out = Path("results"), seed: Seed = 0, quick: Quick = False) -> None:
        _present(name, out, seed, quick)

    return command


for _name, _about in REPRODUCTIONS.items():
    reproduce.command(_name, help=_about)(_command(_name))


def _present(name: str, out: Path, seed: int, quick: bool) -> None:
    """Run an experiment under a progress bar and tell what it found."""
    from knowmore.cli.console import tell, watched
    from knowmore.extras import require
    from knowmore.files import check_folder

    # Before the work, not after it.
    require("matplotlib", "plots")
    check_folder(out)
    module = import_module(f"knowmore.experiments.{name.replace('-', '_')}")
    experiment = cast("Experiment", module)
    with watched() as progress:
        result = experiment.run(seed=seed, quick=quick, progress=progress)
        progress(1.0, "drawing")
        report = experiment.report(result, out)
    tell(report)
