"""The guide to the studio shows a body for every route that takes one, and they are well formed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_type_hints

from pydantic import BaseModel, TypeAdapter

from knowmore.web import bodies
from knowmore.web.routes import ROUTES

GUIDE = Path(__file__).parents[3] / "docs" / "studio.md"


def shown():
    """The bodies in the guide, by their routes."""
    lines = re.findall(r"^\| (`/api.*?) \| (`\{.*) \|$", GUIDE.read_text("utf-8"), re.MULTILINE)
    return {
        path: [json.loads(body) for body in re.findall(r"`(\{.*?\})`(?:,|$)", texts)]
        for paths, texts in lines
        for path in re.findall(r"`(.*?)`", paths)
    }


def asked():
    """The types of the bodies that routes take, by the routes."""
    found = {}
    for route in ROUTES:
        hints = get_type_hints(route.answer, include_extras=True)
        for name, kind in hints.items():
            is_body = isinstance(kind, type) and issubclass(kind, BaseModel)
            if name != "return" and (is_body or kind in (bodies.EditBody, bodies.PreviewBody)):
                found[route.path] = TypeAdapter(kind)
    return found


def test_every_body_has_an_example_that_is_well_formed():
    examples, kinds = shown(), asked()
    assert examples.keys() == kinds.keys()
    for path, each in examples.items():
        assert each, path
        for body in each:
            kinds[path].validate_python(body)


def test_every_verb_of_an_edit_has_an_example():
    verbs = {body["verb"] for body in shown()["/api/edit"]}
    text = (GUIDE.parents[1] / "src/knowmore/web/bodies.py").read_text("utf-8")
    known = text[: text.index("EditBody = ")]
    named = re.findall(r"verb: Literal\[(.*)\]", known)
    assert verbs == {word.strip('" ') for words in named for word in words.split(",")}
