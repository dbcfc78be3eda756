"""The requests of a page, as a studio takes them: parameters, and JSON bodies."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from fastapi import Body, Depends, Header, Query, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, FiniteFloat, Json

from knowmore.errors import InvalidInput
from knowmore.web.drawing import Bounds, FieldGrid

# The most examples of one edit, and the most pictures that may wait.
_MOST: Final = 10_000
MOST_PICTURES: Final = 200
# The contributor of examples that are taught by hand.
STUDIO: Final = "studio"
# Whole numbers that a file can hold.
_WHOLE: Final = 2**53
# The longest text of a table.
_MOST_TEXT: Final = 8_000_000


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
    list[Annotated[int, Field(ge=1, le=_WHOLE)]], Field(min_length=1, max_length=MOST_PICTURES)
]
Labels = Annotated[list[Label], Field(min_length=1, max_length=_MOST)]
# Squares of larger values could not be summed.
Value = Annotated[FiniteFloat, Field(ge=-1e100, le=1e100)]
# The first wrong number of a row is enough to tell.
Rows = Annotated[
    list[Annotated[list[Value], Field(fail_fast=True)]],
    Field(min_length=1, max_length=_MOST, fail_fast=True),
]
# Rows of a table by the names of its columns.
CellRows = Annotated[
    list[dict[Text, bool | Value | Annotated[str, AfterValidator(_text)] | None]],
    Field(min_length=1, max_length=_MOST),
]
Places = Annotated[list[tuple[Value, Value]], Field(min_length=1, max_length=_MOST)]
Noise = Annotated[FiniteFloat, Field(ge=0, le=1e6)]
LengthScale = Annotated[FiniteFloat, Field(gt=0, le=1e9)]
ColumnName = Literal["id", "label", "contributor", "predicted", "unseen"]


# -- parameters of a request ---------------------------------------------------------------------


def bounded(x0: Value, x1: Value, y0: Value, y1: Value, w: int, h: int) -> FieldGrid:
    """A grid within bounds, which are not empty."""
    if x0 >= x1 or y0 >= y1:
        raise InvalidInput("The bounds are empty: x0 must be below x1, and y0 below y1.")
    return FieldGrid(Bounds(x0, x1, y0, y1), w, h)


async def _grid(
    x0: Value, x1: Value, y0: Value, y1: Value, w: Side = 96, h: Side = 96
) -> FieldGrid:
    return bounded(x0, x1, y0, y1, w, h)


async def _sent(request: Request) -> bytes:
    return await request.body()


Side = Annotated[int, Query(ge=8, le=256)]
Seen = Annotated[FieldGrid, Depends(_grid)]
Sent = Annotated[bytes, Depends(_sent)]
Key = Annotated[str, Header(alias="Idempotency-Key", min_length=8, max_length=100)]
Number = Annotated[int | None, Query(ge=0, le=2**53)]
# As JSON: 7 and "7" are different examples.
OneId = Annotated[Json[Whole | Text] | None, Query(alias="id")]
SuspectId = Annotated[Json[Whole | Text], Query(alias="id")]
OnePicture = Annotated[int | None, Query(ge=1, le=2**53)]
TrialNoise = Annotated[Noise | None, Query()]
TrialScale = Annotated[LengthScale | None, Query()]


# -- bodies --------------------------------------------------------------------------------------


class RequestBody(BaseModel):
    """A request of a page, which may have no other parts."""

    model_config = ConfigDict(extra="forbid")


class AddBody(RequestBody):
    """Learn examples: rows X, places in the plane, or cells by the names of their columns."""

    verb: Literal["add"]
    X: Rows | None = None
    cells: CellRows | None = None
    plane: Places | None = None
    y: Labels
    contributor: Text | None = STUDIO


class LearnBody(RequestBody):
    """Learn pictures that wait: with a list of labels, or one label for all."""

    verb: Literal["learn"]
    pictures: Waiting
    y: Labels | Label


class ReplaceBody(RequestBody):
    """Give examples other features: rows X, or other places in the plane."""

    verb: Literal["replace"]
    ids: Ids
    X: Rows | None = None
    plane: Places | None = None


class RelabelBody(RequestBody):
    """Give examples other labels: a list of labels, or one label for all."""

    verb: Literal["relabel"]
    ids: Ids
    y: Labels | Label


class KeepBody(RequestBody):
    """Note that the labels of examples are right; `kept` false takes it back."""

    verb: Literal["keep"]
    ids: Ids
    kept: bool = True


class RefuseBody(RequestBody):
    """Say that examples are not of the classes of their labels: they are put aside."""

    verb: Literal["refuse"]
    ids: Ids


class ForgetBody(RequestBody):
    """Forget examples for ever: these, or all of a contributor."""

    verb: Literal["forget"]
    ids: Ids | None = None
    contributor: Text | None = None
    confirm: Literal[True]


class TurnBody(RequestBody):
    """Undo the last edit, or do what was undone again."""

    verb: Literal["undo", "redo"]


class SettingsBody(RequestBody):
    """Give the model another noise or length scale."""

    verb: Literal["settings"]
    noise: Noise | None = None
    length_scale: LengthScale | None = None


class TuneBody(RequestBody):
    """Look for better settings, and give the model those that were found."""

    verb: Literal["tune"]


class SceneBody(RequestBody):
    """Learn a ready-made scene of the plane.

    clear : forget all examples for ever first
    """

    verb: Literal["scene"]
    name: Literal["moons", "spiral", "blobs", "island"]
    clear: bool = False
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0


class AnswerBody(RequestBody):
    """Learn a row of the pool."""

    verb: Literal["answer"]
    id: Whole | Text
    y: Label


class MergeBody(RequestBody):
    """Learn all examples of another file in the same folder."""

    verb: Literal["merge"]
    name: Text


EditBody = Annotated[
    AddBody
    | LearnBody
    | ReplaceBody
    | RelabelBody
    | KeepBody
    | RefuseBody
    | ForgetBody
    | TurnBody
    | SettingsBody
    | TuneBody
    | SceneBody
    | AnswerBody
    | MergeBody,
    Field(discriminator="verb"),
    Body(),
]


class ForgetPreviewBody(RequestBody):
    """Had the model never seen these examples."""

    verb: Literal["forget"]
    ids: Ids


PreviewBody = Annotated[
    RelabelBody | ForgetPreviewBody | LearnBody, Field(discriminator="verb"), Body()
]


class EntryBody(RequestBody):
    """An entry of the journal; 0: before the first."""

    number: Annotated[int, Field(ge=0, le=2**53)]


class MoveBody(RequestBody):
    """Examples, and other places for them; and the grid to see the field on."""

    ids: Ids
    plane: Places
    x0: Value
    x1: Value
    y0: Value
    y1: Value
    w: Annotated[int, Field(ge=8, le=256)] = 48
    h: Annotated[int, Field(ge=8, le=256)] = 48


class ContributorBody(RequestBody):
    """A contributor."""

    contributor: Text


class ClassBody(RequestBody):
    """A class that has no example yet."""

    label: Label


class FileBody(RequestBody):
    """A file in the folder of the open one, by its name."""

    name: Text


class NotBody(RequestBody):
    """A class that a row of the pool, or a picture that waits, is not of."""

    row: Whole | Text | None = None
    picture: Annotated[int, Field(ge=1, le=_WHOLE)] | None = None
    label: Label


class SkipBody(RequestBody):
    """Rows not to ask about."""

    skip: Annotated[list[Whole | Text], Field(default_factory=list, max_length=20_000)]


class PoolBody(RequestBody):
    """A table without labels, as CSV."""

    name: Text
    text: Annotated[str, Field(max_length=_MOST_TEXT)]


class TableBody(RequestBody):
    """Which examples to show, and in which order.

    sort : a column, or the number of a feature; None: as they are in the file
    down : the largest first
    search : a part of the id, the label, the contributor or what the others predict
    contributor : "" for examples of nobody
    unseen : whether the others predict it as it is labelled
    first : the first feature to show
    """

    offset: Annotated[int, Field(ge=0, le=2**53)] = 0
    limit: Annotated[int, Field(ge=1, le=500)] = 50
    sort: ColumnName | Annotated[int, Field(ge=0, le=2**31)] | None = None
    down: bool = False
    search: Annotated[str, Field(max_length=200)] = ""
    label: Label | None = None
    contributor: Annotated[str, Field(max_length=200)] | None = None
    unseen: Literal["wrong", "silent", "right"] | None = None
    first: Annotated[int, Field(ge=0, le=2**31)] = 0


class ListedBody(RequestBody):
    """Examples that were listed as suspects before."""

    ids: Ids


class DismissBody(RequestBody):
    """Pictures to let go of."""

    pictures: Waiting


class ErrorBody(BaseModel):
    """An error, in words."""

    error: str
