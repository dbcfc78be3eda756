"""`knowmore features`: a table of vectors from a folder of pictures."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import knowmore
from knowmore._base import check_writable, user_folder
from knowmore.cli.experiments import progress_bar
from knowmore.cli.showing import show_skipped
from knowmore.errors import InvalidInput
from knowmore.images import (
    Cache,
    Codebook,
    Listing,
    PictureDescriber,
    codebook_in,
    extraction,
    listing,
    storage,
)
from knowmore.workbench import describer_of


def run(request: Any) -> bool:
    """Write the table and print a summary; False if some pictures were skipped.

    request : the options of the command by name; None where one was not given
    """
    known = _checked(request)
    kind, longest, codebook = known.kind, known.longest, known.codebook
    learns = kind in extraction.WORDED and codebook is None
    listed = listing(request.source)
    pictures = listed.pictures
    named = {one.name: one.label_by(request.label) for one in pictures}
    kept: Any = nullcontext() if request.no_cache else Cache(request.cache or user_folder())
    with progress_bar() as bar, kept as cache:
        common: dict[str, Any] = {"longest": longest, "cache": cache, "n_jobs": request.jobs}
        if learns:
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
        found = extraction.extract(pictures, steps, progress=_counter(bar, "pictures"), **common)
    # The codebook first: without it, a table could never be added to.
    saved = _saved(request)
    if codebook is not None and saved is not None:
        codebook.save(saved)
    ids = [pictures[row].name for row in found.rows]
    labels = [named[one] for one in ids]
    storage.write_table(request.out, ids, labels, found.features, storage.canonical(about))
    _summarise(request, listed, found, new=learns)
    return not (listed.skipped or found.skipped)


def _checked(request: Any) -> PictureDescriber:
    """How to describe the pictures; without a codebook where its words are still to be learnt.

    Whatever cannot work raises here, before the work.
    """
    out, like, codebook, saved = request.out, request.like, request.codebook, _saved(request)
    storage.check_form(out)
    check_writable(out)
    if request.words is not None and codebook is not None:
        raise InvalidInput("--words asks for new words, --codebook for saved ones. Leave one out.")
    asks = request.words or codebook or request.save_codebook
    kind = request.kind or extraction.default_kind(words=asks is not None)
    known = (
        PictureDescriber(kind, request.longest or storage.LONGEST)
        if like is None
        else _like(request)
    )
    if known.kind not in extraction.WORDED:
        if given := _given(request, "words", "codebook", "save_codebook"):
            raise InvalidInput(f"--kind {known.kind} has no visual words. Leave {given} out.")
        return known
    for path in filter(None, (codebook, saved)):
        if path.resolve() == out.resolve():
            raise InvalidInput(f"{str(path)!r} cannot be both table and codebook. Name two files.")
    if saved is not None:
        if like is not None and saved.resolve() == like.resolve():
            problem = f"{str(saved)!r} is what the features are to be like."
            raise InvalidInput(f"{problem} Save the words in another file.")
        check_writable(saved)
    if codebook is not None and known.codebook is None:
        known = replace(known, codebook=_load(codebook))
    return known


def _like(request: Any) -> PictureDescriber:
    """How the features of a table, or of a model of pictures, were made."""
    like, codebook = request.like, request.codebook
    assert like is not None
    is_model = like.suffix not in storage.FORMS
    # A model holds its words; the words of a table may lie anywhere.
    settled = ("kind", "words", "longest", *(["codebook"] if is_model else []))
    if given := _given(request, *settled):
        raise InvalidInput(f"--like settles how features are made. Leave {given} out.")
    if is_model:
        with knowmore.open(like) as store:
            describer = describer_of(store)
            if not isinstance(describer, PictureDescriber):
                raise InvalidInput(
                    f"{str(like)!r} has learnt no pictures, so it does not say how features are "
                    f"made. Name a model of pictures, or a table that `knowmore features` wrote."
                )
            return describer
    about = storage.made_with(like)
    known = PictureDescriber(about["kind"], about["longest"])
    if known.kind in extraction.WORDED:
        words = codebook or _beside(like)
        if codebook is None and not words.is_file():
            missing = f"{str(words)!r}, the visual words of {str(like)!r}, does not exist."
            raise InvalidInput(f"{missing} Say where they are: --codebook.")
        known = replace(known, codebook=_load(words))
    if difference := storage.unlike(known.about, about):
        problem = f"Features like those of {str(like)!r} would have {difference}."
        raise InvalidInput(f"{problem} Name the words it was made with: --codebook.")
    return known


def _given(request: Any, *names: str) -> str:
    given = [name for name in names if getattr(request, name) is not None]
    return " and ".join(f"--{name.replace('_', '-')}" for name in given)


def _saved(request: Any) -> Path | None:
    """The file to save the codebook in; None if --codebook names a saved one."""
    named: Path | None = request.save_codebook
    return named or (_beside(request.out) if request.codebook is None else None)


def _beside(table: Path) -> Path:
    """The file for the visual words of a table."""
    return table.with_suffix(".words.npz")


def _load(path: Path) -> Codebook:
    """The codebook in a file, of either class."""
    if path.suffix == ".km":
        raise InvalidInput(
            f"{str(path)!r} is a model, and --codebook takes saved visual words. To describe "
            f"pictures as the model does: --like {path}."
        )
    return codebook_in(path)


def _check_replaced(request: Any, codebook: Codebook) -> None:
    """Raise InvalidInput if other words would be replaced in a file that was not named."""
    path = _saved(request)
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


def _summarise(request: Any, listed: Listing, found: extraction.Extraction, new: bool) -> None:
    skipped = dict(listed.skipped)
    skipped |= {listed.pictures[row].name: why for row, why in found.skipped.items()}
    show_skipped(skipped)
    n, d = found.features.shape
    origin = f"{found.computed} computed now, {n - found.computed} known"
    print(f"{n} pictures of {d} numbers each ({origin}), {len(skipped)} skipped.")
    print(f"Written: {request.out}")
    if new:
        saved = _saved(request)
        elsewhere = f" --codebook {saved}" if saved != _beside(request.out) else ""
        print(f"New visual words: {saved}")
        later = f"knowmore features ... --like {request.out}{elsewhere}"
        print(f"Only features in the same words can be compared. For pictures to come: {later}")
