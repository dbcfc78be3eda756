"""`knowmore export`: a model for elsewhere."""

from __future__ import annotations

from pathlib import Path

import knowmore
from knowmore.errors import InvalidInput, NoExamples
from knowmore.export import to_html, to_javascript, to_onnx, to_table


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
        if html is not None and store.notes.get("pictures") is not None:
            raise InvalidInput(
                f"{str(model)!r} has learnt pictures, and a page would ask for the "
                f"{store.n_features_in_:,} numbers that describe one. Nothing was written. Take "
                f"--onnx or --javascript, and describe pictures with `knowmore features`."
            )
        for write, path in files:
            write(store, path)
            print(f"Written: {path}")
