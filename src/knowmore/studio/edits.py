"""The edits that a page may ask for, as JSON has them, and how they reach the file."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat
from sklearn.base import clone

from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.store import Store
from knowmore.studio.neighbours import neighbour
from knowmore.studio.pictures import MOST, Pictures
from knowmore.studio.plane import Plane
from knowmore.studio.pool import Pool
from knowmore.studio.scenes import SCENES
from knowmore.studio.snapshot import Snapshot

# The most examples of one edit.
_MOST = 10_000
# Who gives what is taught by hand.
_STUDIO = "studio"
# Whole numbers that a file can hold.
_WHOLE = 2**53


def _text(value: str) -> str:
    """A text that can be written."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError("holds half a character") from error
    return value


Text = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_text)]
Whole = Annotated[int, Field(ge=-_WHOLE, le=_WHOLE)]
Label = bool | Whole | FiniteFloat | Text
Ids = Annotated[list[Whole | Text], Field(min_length=1, max_length=_MOST)]
# Numbers of pictures that wait.
Waiting = Annotated[
    list[Annotated[int, Field(ge=1, le=_WHOLE)]], Field(min_length=1, max_length=MOST)
]
Labels = Annotated[list[Label], Field(min_length=1, max_length=_MOST)]
# Squares of larger ones could not be summed.
Value = Annotated[FiniteFloat, Field(ge=-1e100, le=1e100)]
Rows = Annotated[list[list[Value]], Field(min_length=1, max_length=_MOST)]
Places = Annotated[list[tuple[Value, Value]], Field(min_length=1, max_length=_MOST)]


class Asked(BaseModel):
    """What a page asks for; it may have no other parts."""

    model_config = ConfigDict(extra="forbid")


class Add(Asked):
    """Learn examples: rows X, or places in the plane."""

    verb: Literal["add"]
    X: Rows | None = None
    plane: Places | None = None
    y: Labels
    contributor: Text | None = _STUDIO


class Learn(Asked):
    """Learn pictures that wait, with one label each or one for all."""

    verb: Literal["learn"]
    pictures: Waiting
    y: Labels | Label


class Replace(Asked):
    """Give examples other features: rows X, or other places in the plane."""

    verb: Literal["replace"]
    ids: Ids
    X: Rows | None = None
    plane: Places | None = None


class Relabel(Asked):
    """Give examples other labels, one each or one for all."""

    verb: Literal["relabel"]
    ids: Ids
    y: Labels | Label


class Keep(Asked):
    """Note that the labels of examples are right; `kept` false takes it back."""

    verb: Literal["keep"]
    ids: Ids
    kept: bool = True


class Forget(Asked):
    """Forget examples for ever: these, or all of a contributor."""

    verb: Literal["forget"]
    ids: Ids | None = None
    contributor: Text | None = None
    confirm: Literal[True]


class Turn(Asked):
    """Undo the last edit, or do what was undone again."""

    verb: Literal["undo", "redo"]


class Settings(Asked):
    """Give the model another noise or length scale."""

    verb: Literal["settings"]
    noise: Annotated[FiniteFloat, Field(ge=0, le=1e6)] | None = None
    length_scale: Annotated[FiniteFloat, Field(gt=0, le=1e9)] | None = None


class Scene(Asked):
    """Learn a ready-made scene of the plane.

    clear : forget all examples for ever first
    """

    verb: Literal["scene"]
    name: Literal["moons", "spiral", "blobs", "island"]
    clear: bool = False
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0


class Answer(Asked):
    """Learn a row of the pool."""

    verb: Literal["answer"]
    id: Whole | Text
    y: Label


class Merge(Asked):
    """Learn all examples of another file in the same folder."""

    verb: Literal["merge"]
    name: Text


Edit = Annotated[
    Add | Learn | Replace | Relabel | Keep | Forget | Turn | Settings | Scene | Answer | Merge,
    Field(discriminator="verb"),
]


class Parts(NamedTuple):
    """What an edit may need of a studio.

    plane : None if there is none to place examples in
    pictures : those that wait
    pool : None if nobody gave one
    """

    store: Store
    now: Snapshot
    plane: Plane | None
    pictures: Pictures
    pool: Pool | None


class Done(NamedTuple):
    """What an edit did.

    ids : of the examples that it was about and that the file holds now
    warning : why bytes of what it forgot may be left, and which settings stay; "" if none do
    """

    ids: list[Any]
    warning: str = ""


def applied(edit: Any, parts: Parts) -> Done:
    """Apply an edit to a file."""
    store, now, plane, pictures, pool = parts
    match edit:
        case Answer():
            return Done(_answer(edit, store, now, pool))
        case Merge():
            with neighbour(store, edit.name) as other:
                store.merge(other)
                return Done(other.ids_.tolist())
        case Add():
            X = _rows(edit, now, plane, len(edit.y))
            return Done(store.add(X, edit.y, contributor=edit.contributor).tolist())
        case Learn():
            labels = for_each(edit.y, len(edit.pictures))
            return Done(pictures.learn(now, edit.pictures, labels))
        case Replace():
            X = _rows(edit, now, plane, len(edit.ids), edit.ids)
            store.replace(edit.ids, X, contributor=_STUDIO)
            return Done(edit.ids)
        case Relabel():
            store.relabel(edit.ids, for_each(edit.y, len(edit.ids)), contributor=_STUDIO)
            return Done(edit.ids)
        case Keep():
            store.keep(edit.ids, edit.kept)
            return Done(edit.ids)
        case Forget():
            if (edit.ids is None) == (edit.contributor is None):
                raise InvalidInput("Give either the ids of examples or a contributor to forget.")
            return Done([], store.forget(edit.ids, contributor=edit.contributor).left)
        case Turn():
            (store.undo if edit.verb == "undo" else store.redo)()
            return Done([])
        case Settings():
            store.set_parameters(**now.with_settings(edit.noise, edit.length_scale))
            return Done([])
        case _:
            return _learn_scene(edit, store, now)


def for_each(y: Any, count: int) -> list[Any]:
    """Labels, one each; `y` may be one for all."""
    return y if isinstance(y, list) else [y] * count


def _rows(
    edit: Add | Replace, now: Snapshot, plane: Plane | None, count: int, ids: Any = None
) -> Array:
    """The features (k, d) that an edit gives."""
    if (edit.X is None) == (edit.plane is None):
        raise InvalidInput("Give either rows X or places in the plane.")
    given = edit.X if edit.plane is None else edit.plane
    assert given is not None
    if len(given) != count:
        raise InvalidInput(f"{len(given)} rows were given for {count} examples. Give one each.")
    if len({len(row) for row in given}) != 1:
        raise InvalidInput("The rows differ in length. Give each as many numbers as the others.")
    rows = np.array(given, dtype=float)
    if edit.plane is None:
        return rows
    if plane is None:
        raise InvalidInput("There is no plane to place examples in yet. Give rows X.")
    if ids is None or now.examples is None:
        return plane.rows(rows)
    return plane.moved(now.examples.X[now.examples.rows(tuple(ids))], rows)


def _answer(edit: Answer, store: Store, now: Snapshot, pool: Pool | None) -> list[Any]:
    if pool is None:
        raise InvalidInput("There is no pool to answer questions about. Give one first.")
    found: list[Any] = store.add(
        pool.row(edit.id),
        [edit.y],
        [edit.id],
        contributor=_STUDIO,
        origins=pool.name,
        # The first example settles what the columns are called.
        columns=pool.columns if now.examples is None else None,
    ).tolist()
    return found


def _learn_scene(edit: Scene, store: Store, now: Snapshot) -> Done:
    scene = SCENES[edit.name]
    if now.examples is not None and now.examples.X.shape[1] != 2:
        raise InvalidInput(
            f"A scene has two features, but this model has {now.examples.X.shape[1]}."
        )
    able = now.is_classifier and "kernel" in now.estimator.get_params(deep=False)
    if not able or not isinstance(store, Store):
        raise InvalidInput("A scene is for the file of a classifier with a kernel.")
    X, labels = scene.make(np.random.default_rng(edit.seed))
    settings = {}
    if now.noise is not None:
        settings = now.with_settings(scene.noise, scene.length_scale)
    # Whatever could fail fails here, before anything is forgotten.
    clone(now.estimator).set_params(**settings).fit(X, labels)
    warning = ""
    if edit.clear and now.examples is not None:
        warning = store.forget([*now.examples.names]).left
    with store.together("scene"):
        if settings:
            store.set_parameters(**settings)
        found = store.add(X, labels, contributor=edit.name).tolist()
    return Done(found, warning)
