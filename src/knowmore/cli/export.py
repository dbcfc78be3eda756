"""`knowmore export`: a model for elsewhere."""

from __future__ import annotations

from pathlib import Path

import knowmore
from knowmore.cli.showing import talk
from knowmore.errors import InvalidInput, NoExamples
from knowmore.export import to_html, to_javascript, to_onnx, to_table
from knowmore.store.notes import describing


def run(
    model: Path,
    *,
    onnx: Path | None,
    table: Path | None,
    html: Path | None,
    javascript: Path | None,
) -> None:
    """Write the files that were asked for, and name them."""
    wanted = [(to_onnx, onnx), (to_table, table), (to_html, html), (to_javascript, javascript)]
    files = [(write, path) for write, path in wanted if path is not None]
    if not files:
        raise InvalidInput(
            "Say what to write: --onnx, --table, --html or --javascript, and a file."
        )
    for _, path in files:
        if path.resolve() == model.resolve():
            raise InvalidInput(f"{str(path)!r} is the model itself. Name another file.")
    with knowmore.open(model) as store:
        if not len(store.ids_):
            raise NoExamples(f"{str(model)!r} holds no examples yet. Teach it: knowmore learn.")
        of_pictures = store.notes.get("pictures") is not None
        if html is not None and of_pictures:
            raise InvalidInput(
                f"{str(model)!r} has learnt pictures, and a page would ask for the "
                f"{store.n_features_in_:,} numbers that describe one. Nothing was written. Take "
                f"--onnx or --javascript, and describe pictures as the model does: "
                f"{describing(model)}"
            )
        for write, path in files:
            write(store, path)
            print(f"Written: {path}")
    if of_pictures and (onnx is not None or javascript is not None):
        talk(f"It takes the vectors of pictures: {describing(model)}")
