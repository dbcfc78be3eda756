"""The edits that a page asks for: from bodies to the file, and to previews."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.base import clone

import knowmore
from knowmore._base import Array, progress
from knowmore.edits import Add, Edit, Relabel, Remove
from knowmore.errors import InvalidInput
from knowmore.store import Store
from knowmore.web import bodies
from knowmore.web.snapshot import Snapshot
from knowmore.workbench import add_cells, check_same_features, read_rows, record_bytes, tune

if TYPE_CHECKING:
    from knowmore.web.studio import Studio

# The most examples that a search for better settings looks at: it takes their cube.
_SEARCHED = 1000
# Further searches from elsewhere, where the settings in use lead nowhere.
_RESTARTS = 4
SceneRows = tuple[Array, list[str]]
# The ids of the examples of an edit that the file holds now; and why bytes of forgotten examples
# may be left, and which settings stay, or "".
EditOutcome = tuple[list[Any], str]


def applied(body: Any, studio: Studio, now: Snapshot) -> EditOutcome:
    """Apply the edit that a body asks for to the file.

    Labels keep the types that JSON gave them: the estimator checks them.
    """
    store = studio.store
    ours: dict[str, Any] = {"contributor": bodies.STUDIO}
    match body:
        case bodies.AddBody(cells=cells) if cells is not None:
            if store.table is None or len(cells) != len(body.y):
                raise InvalidInput(
                    "Cells are for a model that has learnt a table, with a label for each row."
                )
            rows = read_rows(store.table, cells)
            return add_cells(store, rows, body.y, contributor=body.contributor).tolist(), ""
        case bodies.AddBody():
            X = _rows(body, body.y, studio, now)
            return store.add(X, body.y, contributor=body.contributor).tolist(), ""
        case bodies.LearnBody():
            labels = _each(body.y, body.pictures)
            return studio.pictures.learn(now, body.pictures, labels), ""
        case bodies.AnswerBody():
            pool = studio.questions.pool
            if pool is None:
                raise InvalidInput("There is no pool to answer questions about. Give one first.")
            # The first example settles what the columns are called.
            columns = pool.columns if now.examples is None else None
            if (cells := pool.cells.get(body.id)) is not None:
                about = ours | {"ids": [body.id], "origins": pool.name}
                return add_cells(store, [cells], [body.y], **about).tolist(), ""
            ours |= {"origins": pool.name, "columns": columns}
            if pool.texts is not None:
                ours["thumbnails"] = [record_bytes(pool.texts[body.id])]
            return store.add(pool.row(body.id), [body.y], [body.id], **ours).tolist(), ""
        case bodies.MergeBody():
            with neighbour(store, body.name) as other:
                store.merge(other)
                return other.ids_.tolist(), ""
        case bodies.ForgetBody():
            if (body.ids is None) == (body.contributor is None):
                raise InvalidInput("Give either the ids of examples or a contributor to forget.")
            return [], store.forget(body.ids, contributor=body.contributor).left
        case bodies.TurnBody():
            (store.undo if body.verb == "undo" else store.redo)()
            return [], ""
        case bodies.SettingsBody():
            store.set_parameters(**now.with_settings(body.noise, body.length_scale))
            return [], ""
        case bodies.TuneBody():
            return [], _tuned(studio, now)
        case bodies.SceneBody():
            return _learn_scene(body, store, now)
        case bodies.ReplaceBody():
            store.replace(body.ids, _rows(body, body.ids, studio, now), **ours)
        case bodies.RelabelBody():
            store.relabel(body.ids, _each(body.y, body.ids), **ours)
        case bodies.KeepBody():
            store.keep(body.ids, body.kept)
        case bodies.RefuseBody():
            if not now.in_file:
                raise InvalidInput("Only a file keeps what is put aside. Forget the example.")
            store.refuse(body.ids)
    return body.ids, ""


def previewed(body: Any, studio: Studio, now: Snapshot) -> Edit:
    """The edit of examples that a body asks about."""
    if isinstance(body, bodies.ForgetPreviewBody):
        return Remove(tuple(body.ids))
    given: list[Any] = body.ids if isinstance(body, bodies.RelabelBody) else body.pictures
    each = _each(body.y, given)
    labels = np.empty(len(each), dtype=object)
    labels[:] = each
    if isinstance(body, bodies.RelabelBody):
        return Relabel(tuple(given), labels)
    return Add(np.stack([one.vector for one in studio.pictures.chosen(now, given)]), labels)


def _each(y: Any, given: list[Any]) -> list[Any]:
    """A label for each; `y` may be one label for all."""
    return y if isinstance(y, list) else [y] * len(given)


def _rows(
    body: bodies.AddBody | bodies.ReplaceBody, given: list[Any], studio: Studio, now: Snapshot
) -> Array:
    """The features (k, d) that a body gives to k examples."""
    if (body.X is None) == (body.plane is None):
        raise InvalidInput("Give either rows X or places in the plane.")
    if now.in_file and now.store.table is not None:
        raise InvalidInput(
            "This model has learnt a table: a place in the plane has no cells, so no example can "
            "be put there. Add a row by the names of its columns."
        )
    each = body.X if body.plane is None else body.plane
    assert each is not None
    if len(each) != len(given):
        raise InvalidInput(f"{len(each)} rows were given for {len(given)} examples. Give one each.")
    if len({len(row) for row in each}) != 1:
        raise InvalidInput("The rows differ in length. Give each as many numbers as the others.")
    rows, plane = np.array(each, dtype=float), studio.plane(now)
    if body.plane is None:
        return rows
    if plane is None:
        raise InvalidInput("There is no plane to place examples in yet. Give rows X.")
    if isinstance(body, bodies.AddBody) or now.examples is None:
        return plane.rows(rows)
    return plane.moved(now.examples.X[now.examples.rows(tuple(given))], rows)


def _tuned(studio: Studio, now: Snapshot) -> str:
    """Find better settings and keep them; what was said of the search."""
    if not now.in_file:
        raise InvalidInput("The studio tunes the model of a file. Call knowmore.insight.tune.")
    studio.progress.tell(f"Looking for better settings of {len(now):,} examples")

    def reported(share: float) -> None:
        studio.progress.share = share

    try:
        with progress(reported), catch_warnings(record=True) as said:
            simplefilter("always")
            subset = None if len(now) <= _SEARCHED else _SEARCHED
            # Where the others say nothing, no direction is better than another.
            restarts = _RESTARTS if now.silent.any() else 0
            tune(studio.store, "loo", restarts, subset, dry_run=False)
    finally:
        studio.progress.tell("")
    studio.searched = len(now)
    return " ".join(str(one.message) for one in said)


def _learn_scene(body: bodies.SceneBody, store: Store, now: Snapshot) -> EditOutcome:
    make, length_scale, noise = SCENES[body.name]
    if now.examples is not None and now.examples.X.shape[1] != 2:
        raise InvalidInput(
            f"A scene has two features, but this model has {now.examples.X.shape[1]}."
        )
    able = now.is_classifier and "kernel" in now.estimator.get_params(deep=False)
    if not able or not now.in_file:
        raise InvalidInput("A scene is for the file of a classifier with a kernel.")
    X, labels = make(np.random.default_rng(body.seed))
    settings = {}
    if now.noise is not None:
        settings = now.with_settings(noise, length_scale)
    # A failure comes here, before anything is forgotten.
    clone(now.estimator).set_params(**settings).fit(X, labels)
    warning = ""
    if body.clear and now.examples is not None:
        warning = store.forget([*now.examples.names]).left
    with store.together("scene"):
        if settings:
            store.set_parameters(**settings)
        return store.add(X, labels, contributor=body.name).tolist(), warning


# -- ready-made scenes ---------------------------------------------------------------------------


def _moons(random: np.random.Generator) -> SceneRows:
    t = random.uniform(0, np.pi, 60)
    upper = np.column_stack([np.cos(t[:30]) - 0.5, np.sin(t[:30]) - 0.25])
    lower = np.column_stack([0.5 - np.cos(t[30:]), 0.25 - np.sin(t[30:])])
    X = 0.55 * np.vstack([upper, lower]) + random.normal(0, 0.05, (60, 2))
    return X, ["sun"] * 30 + ["moon"] * 30


def _spiral(random: np.random.Generator) -> SceneRows:
    t = np.linspace(0.35, 1, 45)
    arms = [_arm(t, turn) for turn in (0, 2 * np.pi / 3, 4 * np.pi / 3)]
    X = 0.9 * np.vstack(arms) + random.normal(0, 0.015, (135, 2))
    return X, ["one"] * 45 + ["two"] * 45 + ["three"] * 45


def _arm(t: Array, turn: float) -> Array:
    angle = 1.5 * np.pi * t**0.8 * 1.6 + turn
    return np.column_stack([t * np.cos(angle), t * np.sin(angle)])


def _blobs(random: np.random.Generator) -> SceneRows:
    centres = np.array([[-0.5, -0.3], [0.5, -0.35], [0.0, 0.5]])
    X = np.repeat(centres, 25, axis=0) + random.normal(0, 0.16, (75, 2))
    return X, ["apple"] * 25 + ["pear"] * 25 + ["plum"] * 25


def _island(random: np.random.Generator) -> SceneRows:
    """A ring around a place that nobody has been to."""
    angle, radius = random.uniform(0, 2 * np.pi, 90), random.uniform(0.6, 0.85, 90)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    labels = ["north" if y > 0 else "south" for y in X[:, 1]]
    return X, labels


# What makes rows (n, 2), within -1 and 1, and their labels; a length scale and a noise for them.
SCENES: dict[str, tuple[Callable[[np.random.Generator], SceneRows], float, float]] = {
    "moons": (_moons, 0.25, 0.05),
    "spiral": (_spiral, 0.12, 0.02),
    "blobs": (_blobs, 0.3, 0.1),
    "island": (_island, 0.2, 0.05),
}


# -- other models in the folder of a file: only these can be named, and only by their names --------


def neighbours(path: Path) -> list[str]:
    """The names of the other models in the folder of a file, in order."""
    there = (one for one in path.parent.glob("*.km") if one.is_file() and not one.is_symlink())
    return sorted(one.name for one in there if one.name != path.name)


def neighbour(store: Store, name: str) -> Store:
    """Another model in the folder of a file, open; its features mean the same."""
    if name not in neighbours(store.path):
        raise InvalidInput(
            f"There is no other model {name!r} in the folder of {store.path.name}. Give the name "
            f"of one that is there, without a path."
        )
    other = knowmore.open(store.path.parent / name)
    try:
        check_same_features(store, other)
    except BaseException:
        other.close()
        raise
    return other
