"""`knowmore features`: a folder of pictures to a table of vectors."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from rich.console import Console
from rich.text import Text

from knowmore.cli.console import watched
from knowmore.cli.recipe import WORDS, Recipe, Request, beside, check_kept, loaded
from knowmore.files import user_folder
from knowmore.images import Listing, Picture, listing
from knowmore.images.codebooks import Codebook
from knowmore.images.extraction import Extraction, Progress, extract, learn_codebook
from knowmore.images.extraction_cache import Cache
from knowmore.images.tables import write_table


def run(request: Request) -> bool:
    """Do it, tell it, and say whether every picture has its features."""
    recipe = request.recipe()
    listed = listing(request.source)
    pictures = listed.pictures
    with watched() as bar, _cache(request) as cache:
        codebook = _codebook(request, recipe, pictures, cache, bar)
        steps, about = recipe.steps(codebook)
        found = extract(
            pictures,
            steps,
            longest=recipe.longest,
            cache=cache,
            n_jobs=request.jobs,
            progress=_shown(bar, "pictures"),
        )
    # The words first: a table without them could never be added to.
    if codebook is not None and request.keeps is not None:
        codebook.save(request.keeps)
    kept = [pictures[row] for row in found.rows]
    ids, labels = [one.name for one in kept], [one.label for one in kept]
    write_table(request.out, ids, labels, found.features, about)
    _tell(request, listed, found, is_new=codebook is not None and recipe.codebook is None)
    return not (listed.skipped or found.skipped)


def _cache(request: Request) -> Any:
    return nullcontext() if request.no_cache else Cache(request.cache or user_folder())


def _codebook(
    request: Request,
    recipe: Recipe,
    pictures: tuple[Picture, ...],
    cache: Cache | None,
    bar: Callable[[float, str], None],
) -> Codebook | None:
    if not recipe.has_words:
        return None
    codebook: Codebook
    if recipe.codebook is not None:
        codebook = loaded(recipe.codebook)
    else:
        codebook = learn_codebook(
            pictures,
            size=request.words or WORDS,
            seed=request.seed,
            longest=recipe.longest,
            cache=cache,
            n_jobs=request.jobs,
            progress=_shown(bar, "pictures to learn words from"),
        )
    if request.save_codebook is None and request.keeps is not None:
        check_kept(codebook, request.keeps, request.out)
    return codebook


def _shown(bar: Callable[[float, str], None], what: str) -> Progress:
    return lambda done, total: bar(done / total, f"{done} of {total} {what}")


def _tell(request: Request, listed: Listing, found: Extraction, is_new: bool) -> None:
    n, d = found.features.shape
    skipped = dict(listed.skipped)
    skipped |= {listed.pictures[row].name: why for row, why in found.skipped.items()}
    # Names and reasons unwrapped, so that other programs can read them.
    errors = Console(stderr=True, highlight=False)
    for name, why in sorted(skipped.items()):
        errors.print(Text(f"Skipped: {name!r} {why}"), soft_wrap=True)
    new = f"{found.computed} computed now, {n - found.computed} known"
    console = Console(highlight=False)
    console.print(Text(f"{n} pictures of {d} numbers each ({new}), {len(skipped)} skipped."))
    console.print(Text(f"Written: {request.out}"), soft_wrap=True)
    if is_new:
        elsewhere = f" --codebook {request.keeps}" if request.keeps != beside(request.out) else ""
        console.print(Text(f"New visual words: {request.keeps}"), soft_wrap=True)
        console.print(
            Text(
                f"Only features in the same words can be compared. For pictures to come: "
                f"knowmore features ... --like {request.out}{elsewhere}"
            ),
            soft_wrap=True,
        )
