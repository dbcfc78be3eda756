"""A model written for elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from knowmore.errors import InvalidInput, NoExamples
from knowmore.export import to_html, to_javascript, to_onnx, to_table
from knowmore.store import Store
from knowmore.workbench.model import describing

# The forms that a model can be written in, by the name of their option.
_WRITERS = {"onnx": to_onnx, "table": to_table, "html": to_html, "javascript": to_javascript}


def export(
    store: Store,
    files: dict[str, Path],
    *,
    path: Path | None = None,
    done: Callable[[Path], None] = lambda file: None,
) -> str:
    """Write a model in these forms; returns a note on what the files take, or "".

    files : the file by form: onnx, table, html, javascript
    path : what to call the model in errors and notes; its own path if None
    done : called after each file
    """
    path = store.path if path is None else path
    if not len(store.ids_):
        raise NoExamples(f"{str(path)!r} holds no examples yet. Teach it: knowmore learn.")
    of_pictures = store.notes.get("pictures") is not None
    if "html" in files and of_pictures:
        raise InvalidInput(
            f"{str(path)!r} has learnt pictures, and a page would ask for the "
            f"{store.n_features_in_:,} numbers that describe one. Nothing was written. Take "
            f"--onnx or --javascript, and describe pictures as the model does: {describing(path)}"
        )
    for form, file in files.items():
        _WRITERS[form](store, file)
        done(file)
    if of_pictures and not files.keys().isdisjoint(("onnx", "javascript")):
        return f"It takes the vectors of pictures: {describing(path)}"
    return ""
