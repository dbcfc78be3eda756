"""`knowmore features`: a folder of pictures to a table of vectors."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast
from uuid import uuid4

import numpy as np
from rich.console import Console
from rich.text import Text

from knowmore.cli.console import watched
from knowmore.datasets import Listing, Picture, listing
from knowmore.errors import InvalidInput
from knowmore.extras import optional, require
from knowmore.files import user_folder
from knowmore.images import ForestCodebook, KMeansCodebook
from knowmore.images.codebooks import Codebook
from knowmore.images.extraction import (
    Extraction,
    Kind,
    Progress,
    extract,
    learn_codebook,
    steps_of,
)
from knowmore.images.extraction_cache import Cache
from knowmore.images.extraction_settings import settings_of


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    source: Path
    out: Path
    kind: Kind
    words: int
    codebook: Path | None
    save_codebook: Path | None
    longest: int
    seed: int
    jobs: int
    cache: Path | None
    no_cache: bool

    def check(self) -> None:
        """Complain of what cannot work before the work, not after it."""
        if self.out.suffix not in (".npz", ".parquet"):
            raise InvalidInput(
                f"The table {str(self.out)!r} must end in .npz or .parquet: that says how it is "
                f"written."
            )
        if self.out.suffix == ".parquet":
            require("pyarrow", "tables")
        for path in filter(None, (self.out, self.save_codebook)):
            if path.is_dir() or not path.parent.is_dir():
                raise InvalidInput(
                    f"{str(path)!r} cannot be written: its folder does not exist, or it is a "
                    f"folder itself."
                )
        for path in filter(None, (self.codebook, self.save_codebook)):
            if path.resolve() == self.out.resolve():
                raise InvalidInput(
                    f"{str(path)!r} is to be both the table and the codebook, and would hold only "
                    f"the table. Name two files."
                )
        if self.kind not in ("sift-pyramid", "bow") and (self.codebook or self.save_codebook):
            raise InvalidInput(
                f"--kind {self.kind} has no codebook. Leave --codebook and --save-codebook out, "
                f"or choose sift-pyramid or bow."
            )


def run(request: Request) -> bool:
    """Do it, tell it, and say whether every picture has its features."""
    request.check()
    listed = listing(request.source)
    pictures = listed.pictures
    with watched() as bar, _cache(request) as cache:
        codebook = _codebook(request, pictures, cache, bar)
        steps = steps_of(request.kind, codebook)
        found = extract(
            pictures,
            steps,
            longest=request.longest,
            cache=cache,
            n_jobs=request.jobs,
            progress=_shown(bar, "pictures"),
        )
    if codebook is not None and request.save_codebook is not None:
        with _told(request.save_codebook):
            codebook.save(request.save_codebook)
    _write(request.out, pictures, found, settings_of(steps, request.longest))
    _tell(request.out, listed, found)
    return not (listed.skipped or found.skipped)


def _cache(request: Request) -> Any:
    return nullcontext() if request.no_cache else Cache(request.cache or user_folder())


def _codebook(
    request: Request, pictures: tuple[Picture, ...], cache: Cache | None, bar: Any
) -> Codebook | None:
    if request.kind not in ("sift-pyramid", "bow"):
        return None
    if request.codebook is not None:
        return _loaded(request.codebook)
    return learn_codebook(
        pictures,
        size=request.words,
        seed=request.seed,
        longest=request.longest,
        cache=cache,
        n_jobs=request.jobs,
        progress=_shown(bar, "pictures to learn words from"),
    )


def _loaded(path: Path) -> Codebook:
    try:
        return KMeansCodebook.load(path)
    except InvalidInput as error:
        try:
            return ForestCodebook.load(path)
        except InvalidInput:
            raise error from None


def _shown(bar: Callable[[float, str], None], what: str) -> Progress:
    return lambda done, total: bar(done / total, f"{done} of {total} {what}")


def _write(path: Path, pictures: tuple[Picture, ...], found: Extraction, about: str) -> None:
    """ids (k,), labels (k,), features (k, D) and what they were made with; wholly or not at all."""
    kept = [pictures[row] for row in found.rows]
    columns = [one.name for one in kept], [one.label for one in kept], found.features
    write = _npz if path.suffix == ".npz" else _parquet
    part = path.with_name(f"{path.name}.{uuid4().hex}.part")
    with _told(path):
        try:
            with part.open("xb") as file:
                write(cast("BinaryIO", file), *columns, about)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def _npz(file: BinaryIO, ids: list[str], labels: list[str], features: Any, about: str) -> None:
    arrays = {"ids": np.array(ids), "labels": np.array(labels), "features": features}
    np.savez(file, allow_pickle=False, about=np.array(about), **arrays)


def _parquet(file: BinaryIO, ids: list[str], labels: list[str], features: Any, about: str) -> None:
    pa = optional("pyarrow", "tables")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), features.shape[1])
    columns = {"ids": pa.array(ids), "labels": pa.array(labels), "features": vectors}
    table = pa.table(columns).replace_schema_metadata({"about": about})
    optional("pyarrow.parquet", "tables").write_table(table, file)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidInput(
            f"{str(path)!r} cannot be written: {error.strerror or error}. What was there before "
            f"is still there; name another place, or make room."
        ) from error


def _tell(out: Path, listed: Listing, found: Extraction) -> None:
    n, d = found.features.shape
    skipped = dict(listed.skipped)
    skipped |= {listed.pictures[row].name: why for row, why in found.skipped.items()}
    # Names and reasons unwrapped, so that other programs can read them.
    errors = Console(stderr=True, highlight=False)
    for name, why in sorted(skipped.items()):
        errors.print(Text(f"Skipped: {name!r} {why}"), soft_wrap=True)
    new = f"{found.computed} computed now, {len(listed.pictures) - found.computed} known"
    console = Console(highlight=False)
    console.print(Text(f"{n} pictures of {d} numbers each ({new}), {len(skipped)} skipped."))
    console.print(Text(f"Written: {out}"), soft_wrap=True)
