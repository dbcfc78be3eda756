"""What a request asks a service: rows as JSON, or pictures as they are or in a form."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any, Final, final

from fastapi import HTTPException, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException as UnreadableForm

# The most pictures of one form.
MOST_PICTURES: Final = 100
FORM: Final = "multipart/form-data"
SEND_PICTURE: Final = "curl -H 'Content-Type: image/jpeg' --data-binary @NAME.jpg"
_SEND: Final = "Send files, as curl -F files=@NAME.jpg does."


# The first wrong number and the first wrong row are enough to tell: millions of errors fill memory.
_Row = Annotated[list[float], Field(fail_fast=True)] | dict[str, Any] | str


class PredictionRequest(BaseModel):
    """Rows to predict."""

    model_config = ConfigDict(extra="forbid")
    rows: list[_Row] = Field(
        fail_fast=True,
        description="Each the numbers in the order of the features, or the values by the names of "
        "the columns. A model of a table takes texts, true, false, null for a blank, and dates; "
        "one of texts a text, alone or by its name.",
        examples=[[[5.1, 3.5, 1.4, 0.2]], [{"island": "Biscoe", "body_mass_g": None}]],
    )


@final
@dataclass(frozen=True)
class SentPicture:
    """A picture file of a request, by the name that its sender gave it."""

    name: str
    content: bytes

    def read(self) -> bytes:
        """The bytes of the file."""
        return self.content


_FILE: Final = {"type": "string", "format": "binary"}
# The body of a question, for the schema: three forms of it.
BODY: Final = {
    "required": True,
    "content": {
        "application/json": {"schema": PredictionRequest.model_json_schema()},
        "image/jpeg": {"schema": _FILE},
        "image/png": {"schema": _FILE},
        FORM: {
            "schema": {
                "type": "object",
                "required": ["files"],
                "properties": {
                    "files": {
                        "type": "array",
                        "items": _FILE,
                        "minItems": 1,
                        "maxItems": MOST_PICTURES,
                    }
                },
            }
        },
    },
}


async def asked_for(request: Request) -> list[Any] | list[SentPicture]:
    """The rows or the pictures of a request, by its media type, which the guard has checked."""
    media = media_of(request.headers.get("content-type", ""))
    if media == FORM:
        return await _pictures(request)
    body = await request.body()
    if media.startswith("image/"):
        return [SentPicture("picture", body)]
    return _rows(body)


def media_of(header: str) -> str:
    """The media type in a Content-Type header.

    >>> media_of("Image/JPEG; q=1")
    'image/jpeg'
    """
    return header.partition(";")[0].strip().lower()


def _rows(body: bytes) -> list[Any]:
    """The rows in JSON; raises what FastAPI would raise."""
    try:
        return PredictionRequest.model_validate(json.loads(body)).rows
    except json.JSONDecodeError as error:
        problem = {"type": "json_invalid", "loc": ("body", error.pos), "msg": "JSON decode error"}
        raise RequestValidationError([problem | {"ctx": {"error": error.msg}}]) from error
    except ValidationError as error:
        found = [{**one, "loc": ("body", *one["loc"])} for one in error.errors()]
        raise RequestValidationError(found) from error
    except (RecursionError, ValueError) as error:
        raise HTTPException(400) from error


async def _pictures(request: Request) -> list[SentPicture]:
    """The files of a form."""
    found: list[SentPicture] = []
    try:
        async with request.form(max_files=MOST_PICTURES, max_fields=1) as form:
            for field, value in form.multi_items():
                if not isinstance(value, UploadFile):
                    raise HTTPException(422, f"The part {field!r} of the form is no file. {_SEND}")
                name = value.filename or f"picture {len(found)}"
                found.append(SentPicture(name, await value.read()))
    except UnreadableForm as error:
        if error.status_code != 400:
            raise
        raise HTTPException(422, f"The form cannot be read: {error.detail}") from error
    if not found:
        raise HTTPException(422, f"The form has no file. {_SEND}")
    return found
