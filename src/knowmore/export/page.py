"""A fitted model as one file for a browser: a page that predicts, or a JavaScript module."""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from dataclasses import asdict
from html import escape
from importlib.metadata import version
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from knowmore._base import Array, File, check_writable, written
from knowmore.export.description import (
    VANISHED,
    Description,
    check_size,
    describe,
    exportable,
)
from knowmore.export.judging import ExportedJudge, judge_of
from knowmore.export.viewing import NOTICE, view_of
from knowmore.images import Embedding
from knowmore.tables import BLANKS

# Browsers hold no longer text than half a gigabyte. Four characters are three bytes, and of the
# factor only a triangle is written, so that this fills half of it.
_MOST_BYTES = 380_000_000
# The largest whole number up to which JavaScript knows all.
_SAFE = 2**53 - 1
# So many classes are named.
_NAMED = 20


def to_html(estimator: Any, path: File, *, pictures: Embedding | None = None) -> None:
    """Write a fitted model as one HTML file that predicts in a browser, without any network.

    estimator : as for `describe`
    path : the file, replaced when the new one is complete
    pictures : how pictures became the rows that the estimator has learnt, by `extract`; a model in
        a file knows it

    The page has a form for one row, by the names of the columns, and takes CSV for many. Its
    answers are those of the estimator, in double precision. A page of pictures has the network
    within, and takes pictures and what a camera sees.
    """
    check_writable(path)
    view = view_of(estimator, pictures)
    of = _described(estimator)
    parts = {"model": _data(_plain(of, judge_of(exportable(estimator)[1])))}
    template, scripts = "page.html", ["predictor.js", "shared.js", "page.js"]
    if view is not None:
        template, scripts = "pictures.html", ["shared.js", "pictures.js"]
        worker = map(_text, ("predictor.js", "resizing.js", "network.js", "worker.js"))
        described, weights = view.parts()
        parts |= {
            "described": _data(described),
            "weights": b64encode(weights.astype("<f4").tobytes()).decode(),
            "worker": "".join(worker),
            "network": escape(NOTICE),
        }
    script, style = "".join(map(_text, scripts)), _text("page.css")
    page = Template(_text(template)).substitute(
        title=escape(_title(of)),
        summary=escape(_summary(of, of_pictures=view is not None)),
        version=escape(version("knowmore")),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        **parts,
    )
    with written(path) as file:
        file.write(page.encode(errors="replace"))


def _data(value: Any) -> str:
    """JSON inside of a page: what ends a script element would end it, wherever it stands."""
    return json.dumps(value).replace("<", "\\u003c")


def to_javascript(estimator: Any, path: File) -> None:
    """Write a fitted model as a JavaScript module, for browsers and servers.

    estimator, path : as for `to_html`

    It exports `predict`, from an array of rows (arrays of numbers, or objects by column names) to
    an array of answers: {label, probability, std, unknown, score, scores, probabilities} of a
    classifier (without std of a least-squares SVM; `unknown` of a GPClassifier alone), {value, std}
    of a regressor. It also exports `columns` and `classes`.
    """
    check_writable(path)
    model = json.dumps(_plain(_described(estimator), judge_of(exportable(estimator)[1])))
    lines = [
        f"// Made by knowmore {version('knowmore')}. import {{predict}} from this file.",
        _text("predictor.js"),
        f"const model = {model};",
        "export const predict = predictor(model), {columns, classes} = model;",
    ]
    with written(path) as file:
        file.write("\n".join([*lines, ""]).encode())


def _described(estimator: Any) -> Description:
    check_size(estimator, "A page", _MOST_BYTES)
    return describe(estimator)


def _plain(of: Description, judge: ExportedJudge | None) -> dict[str, Any]:
    """The description and its judge for JSON.

    Arrays are base64 of little-endian float64, row by row.
    """
    lower = of.R is None or not np.triu(of.R, 1).any()
    triangle = None
    if of.R is not None:
        triangle = of.R[np.tril_indices(len(of.R)) if lower else np.triu_indices(len(of.R))]
    return {
        "kind": of.kind,
        "columns": of.columns,
        "fields": [asdict(field) for field in of.fields],
        "blanks": sorted(BLANKS),
        "before": [stage.to_dict() for stage in of.before],
        "classes": None if of.classes is None else [_label(one) for one in of.classes.tolist()],
        "flat": of.flat,
        "n": len(of.X),
        "d": of.X.shape[1],
        "width": len(of.b),
        "kernel": None if of.kernel is None else of.kernel.to_dict(),
        "noise": of.noise,
        "temperature": of.temperature,
        "lower": lower,
        "vanished": VANISHED,
        # What the form begins with.
        "start": of.start,
        **{name: _base64(getattr(of, name)) for name in ("X", "A", "b", "squares")},
        "R": None if triangle is None else _base64(triangle),
        "judge": None if judge is None else _judge(judge),
    }


def _judge(judge: ExportedJudge) -> dict[str, Any]:
    return {
        "S": _base64(judge.S),
        "Q": _base64(judge.Q),
        "weights": judge.weights.tolist(),
        "threshold": judge.threshold,
        "largest": judge.largest,
        "least": judge.least,
        "empty": judge.empty,
    }


def _label(label: Any) -> Any:
    """A label as JavaScript can hold it: whole numbers that it would round become text."""
    is_large = isinstance(label, int) and abs(label) > _SAFE
    return str(label) if is_large else label


def _base64(values: Array) -> str:
    return b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode()


def _text(name: str) -> str:
    return (files("knowmore.export") / "web" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """The hash by which a content security policy allows this script or style, and no other."""
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _title(of: Description) -> str:
    if of.classes is None:
        return "A model that predicts a number" if of.flat else "A model that predicts numbers"
    names = [str(one) for one in of.classes.tolist()]
    if len(names) > 4 or sum(map(len, names)) > 60:
        return f"A classifier of {len(names)} classes"
    *rest, last = names
    return f"{', '.join(rest)} or {last}?" if rest else f"A classifier of the one class {last}"


def _summary(of: Description, *, of_pictures: bool) -> str:
    """A sentence or two that describe the model."""
    d, n = len(of.columns), len(of.X)
    held = f"learnt from {n:,} {'example' if n == 1 else 'examples'}, held in this file."
    if of_pictures:
        does = "Tells a number of a picture." if of.classes is None else _kinds(of.classes.tolist())
        return does if of.kernel is None else f"{does} It {held}"
    about = f"{of.kind} of {d:,} {'feature' if d == 1 else 'features'}"
    return f"{about}." if of.kernel is None else f"{about} that {held}"


def _kinds(classes: list[Any]) -> str:
    """Which pictures a model tells apart; of very many the first."""
    names = [str(one) for one in classes[:_NAMED]]
    if len(classes) > _NAMED:
        names.append(f"{len(classes) - _NAMED} more")
    kinds = "1 kind" if len(classes) == 1 else f"{len(classes)} kinds"
    return f"Tells {kinds} of pictures: {', '.join(names)}."
