"""`knowmore features`: a table of vectors from a folder of pictures."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knowmore.cli.experiments import progress_bar
from knowmore.errors import InvalidInput
from knowmore.files import check_writable, user_folder
from knowmore.images import Cache, Listing, extraction, listing, storage
from knowmore.images.codebooks import Codebook, ForestCodebook, KMeansCodebook


@dataclass(frozen=True)
class Request:
    """The options of the command; None where one was not given."""

    source: Path
    out: Path
    kind: extraction.Kind | None
    words: int | None
    codebook: Path | None
    save_codebook: Path | None
    like: Path | None
    longest: int | None
    label: int
    seed: int
    jobs: int
    cache: Path | None
    no_cache: bool

    @property
    def saved(self) -> Path | None:
        """Where to save the codebook: beside the table, unless --codebook says where it is."""
        return self.save_codebook or (_beside(self.out) if self.codebook is None else None)


def run(request: Request) -> bool:
    """Write the table and print a summary; False if some pictures were skipped."""
    kind, longest, path = _checked(request)
    listed = listing(request.source)
    pictures = listed.pictures
    named = {one.name: one.label_by(request.label) for one in pictures}
    codebook: Codebook | None = None
    opened: Any = nullcontext() if request.no_cache else Cache(request.cache or user_folder())
    with progress_bar() as bar, opened as cache:
        common: dict[str, Any] = {"longest": longest, "cache": cache, "n_jobs": request.jobs}
        if path is not None:
            codebook = _load(path)
        elif kind in extraction.WORDED:
            progress = _counter(bar, "pictures to learn words from")
            size, seed = request.words or 200, request.seed
            codebook = extraction.learn_codebook(
                pictures,
                size=size,
                seed=seed,
                sift=extraction.local_of(kind),
                progress=progress,
                **common,
            )
        if codebook is not None:
            _check_replaced(request, codebook)
        steps = extraction.steps_of(kind, codebook)
        about = {"kind": kind, **json.loads(storage.settings_of(steps, longest))}
        if request.like and (difference := storage.unlike(about, storage.made_with(request.like))):
            problem = f"Features like those of {str(request.like)!r} would have {difference}."
            raise InvalidInput(f"{problem} Name the words it was made with: --codebook.")
        found = extraction.extract(pictures, steps, progress=_counter(bar, "pictures"), **common)
    # The codebook first: without it, a table could never be added to.
    if codebook is not None and request.saved is not None:
        codebook.save(request.saved)
    kept = [pictures[row] for row in found.rows]
    ids = [one.name for one in kept]
    labels = [named[one] for one in ids]
    storage.write_table(request.out, ids, labels, found.features, storage.canonical(about))
    _summarise(request, listed, found, new=codebook is not None and path is None)
    return not (listed.skipped or found.skipped)


def _checked(request: Request) -> tuple[extraction.Kind, int, Path | None]:
    """The kind of features, the longest side of a picture, and the codebook to load, if any.

    Whatever cannot work raises here, before the work.
    """
    out, like, codebook = request.out, request.like, request.codebook
    storage.check_form(out)
    check_writable(out)
    if request.words is not None and codebook is not None:
        raise InvalidInput("--words asks for new words, --codebook for saved ones. Leave one out.")
    kind, longest = request.kind or "sift-pyramid", request.longest or storage.LONGEST
    if like is not None:
        if given := _given(request, "kind", "words", "longest"):
            raise InvalidInput(f"--like settles how features are made. Leave {given} out.")
        about = storage.made_with(like)
        kind, longest = about["kind"], about["longest"]
        if kind in extraction.WORDED and codebook is None:
            codebook = _beside(like)
            if not codebook.is_file():
                missing = f"{str(codebook)!r}, the visual words of {str(like)!r}, does not exist."
                raise InvalidInput(f"{missing} Say where they are: --codebook.")
    if kind not in extraction.WORDED:
        if given := _given(request, "words", "codebook", "save_codebook"):
            raise InvalidInput(f"--kind {kind} has no visual words. Leave {given} out.")
        return kind, longest, None
    for path in filter(None, (request.codebook, request.saved)):
        if path.resolve() == out.resolve():
            raise InvalidInput(f"{str(path)!r} cannot be both table and codebook. Name two files.")
    if request.saved is not None:
        check_writable(request.saved)
    return kind, longest, codebook


def _given(request: Request, *names: str) -> str:
    given = [name for name in names if getattr(request, name) is not None]
    return " and ".join(f"--{name.replace('_', '-')}" for name in given)


def _beside(table: Path) -> Path:
    """The file for the visual words of a table."""
    return table.with_suffix(".words.npz")


def _load(path: Path) -> Codebook:
    """The codebook in a file, of either class."""
    with suppress(InvalidInput):
        return ForestCodebook.load(path)
    return KMeansCodebook.load(path)


def _check_replaced(request: Request, codebook: Codebook) -> None:
    """Raise InvalidInput if other words would be replaced in a file that was not named."""
    path = request.saved
    if path is None or request.save_codebook is not None or not path.exists():
        return
    with suppress(InvalidInput):
        if storage.settings_of([_load(path)]) == storage.settings_of([codebook]):
            return
    models = f"models of {str(request.out)!r}"
    problem = f"{str(path)!r} holds other visual words, which {models} may need."
    raise InvalidInput(f"{problem} Use --codebook {path}, or replace them: --save-codebook {path}.")


def _counter(bar: Callable[[float, str], None], what: str) -> extraction.Progress:
    return lambda done, total: bar(done / total, f"{done} of {total} {what}")


def _summarise(request: Request, listed: Listing, found: extraction.Extraction, new: bool) -> None:
    skipped = dict(listed.skipped)
    skipped |= {listed.pictures[row].name: why for row, why in found.skipped.items()}
    for name, why in sorted(skipped.items()):
        print(f"Skipped: {name!r} {why}", file=sys.stderr)
    n, d = found.features.shape
    origin = f"{found.computed} computed now, {n - found.computed} known"
    print(f"{n} pictures of {d} numbers each ({origin}), {len(skipped)} skipped.")
    print(f"Written: {request.out}")
    if new:
        elsewhere = f" --codebook {request.saved}" if request.saved != _beside(request.out) else ""
        print(f"New visual words: {request.saved}")
        later = f"knowmore features ... --like {request.out}{elsewhere}"
        print(f"Only features in the same words can be compared. For pictures to come: {later}")
