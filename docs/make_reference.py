"""Write reference.md, beside this file, from the docstrings of everything public: `make reference`.

Public is what the packages below list in `__all__`, and `open`; of a class, every member that
knowmore defines and whose name does not begin with an underscore.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

PACKAGES = (
    "knowmore",
    "knowmore.store",
    "knowmore.insight",
    "knowmore.kernels",
    "knowmore.images",
    "knowmore.tables",
    "knowmore.texts",
    "knowmore.semantics",
    "knowmore.distributed",
    "knowmore.export",
    "knowmore.serve",
    "knowmore.studio",
    "knowmore.notebook",
    "knowmore.subspaces",
    "knowmore.transfer",
    "knowmore.models",
    "knowmore.linalg",
    "knowmore.examples",
    "knowmore.edits",
    "knowmore.errors",
)
# Public names that no `__all__` has, since they would replace builtins.
NOT_BY_STAR = {"knowmore": ["open"], "knowmore.store": ["open"]}
PAGE = Path(__file__).with_name("reference.md")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The whole reference as Markdown."""
    blocks = [
        "# Reference",
        "Every public name, from its docstring. This page is generated: `make reference`. "
        "[The guide](index.md) explains how things are used.",
    ]
    seen: dict[Any, str] = {}
    for package in PACKAGES:
        module = import_module(package)
        blocks += [f"## {package}", *_prose(module)]
        for name in public(package):
            blocks += _entry(name, getattr(module, name), seen)
    return "\n\n".join(blocks) + "\n"


def public(package: str) -> list[str]:
    """The public names of a package."""
    return sorted([*import_module(package).__all__, *NOT_BY_STAR.get(package, [])])


def members(cls: type) -> dict[str, Any]:
    """The public methods and properties of a class that knowmore defines, by name.

    `set_fit_request` and the like are scikit-learn's, made for its metadata routing.
    """
    found = {
        name: one
        for base in reversed(cls.__mro__)
        if base.__module__.startswith("knowmore")
        for name, one in vars(base).items()
        if not re.match(r"_|set_\w+_request", name) and _documentable(one)
    }
    return dict(sorted(found.items()))


def documentation(one: Any) -> str:
    """Its own docstring; none if it has only what a dataclass or a base class gave it."""
    text = inspect.cleandoc(getattr(one, "__doc__", None) or "")
    made = isinstance(one, type) and dataclasses.is_dataclass(one)
    return "" if made and text.startswith(f"{one.__name__}(") else text


def _documentable(one: Any) -> bool:
    """Methods and properties of all kinds, but no constants and no values of dataclass fields."""
    return inspect.isroutine(_plain(one)) or hasattr(one, "__get__")


def _plain(one: Any) -> Any:
    """The function behind a class method or a static method."""
    return one.__func__ if isinstance(one, (classmethod, staticmethod)) else one


def _entry(name: str, one: Any, seen: dict[Any, str]) -> Iterator[str]:
    yield f"### {name}"
    if not isinstance(one, type):
        one = inspect.unwrap(one) if callable(one) else one
        if inspect.isroutine(one):
            yield f"```\n{name}{_signature(one)}\n```"
        yield from _prose(one) if inspect.isroutine(one) else [_alias(one)]
        return
    if not issubclass(one, BaseException | Warning):
        yield f"```\n{name}{_signature(one)}\n```"
    else:
        yield "Bases: " + ", ".join(f"`{base.__name__}`" for base in one.__bases__) + "."
    yield from _prose(one)
    elsewhere: dict[str, list[str]] = {}
    for member, value in members(one).items():
        if (first := seen.setdefault((member, _plain(value)), name)) == name:
            yield f"**`{member}{_signature(_plain(value), bound=True)}`**"
            yield from _prose(value)
        else:
            elsewhere.setdefault(first, []).append(f"`{member}`")
    for first, names in elsewhere.items():
        yield f"As in `{first}`: {', '.join(names)}."


def _alias(one: Any) -> str:
    """The text for a public name that is neither a class nor a function."""
    return "A mapping." if isinstance(one, Mapping) else "A type alias."


def _signature(one: Any, bound: bool = False) -> str:
    """Names and defaults. Types are in the text; a property has no signature."""
    try:
        signature = inspect.signature(one)
    except (TypeError, ValueError):
        return ""
    parameters = [
        each.replace(annotation=inspect.Parameter.empty, default=_default(each.default))
        for each in list(signature.parameters.values())[bound:]
    ]
    empty = inspect.Signature.empty
    return str(signature.replace(parameters=parameters, return_annotation=empty))


class _Named(str):
    """A default that is shown by its name."""

    __repr__ = str.__str__


def _default(value: Any) -> Any:
    """A default as it is shown: the repr of a function has its address, other each time."""
    return _Named(value.__name__) if inspect.isroutine(value) else value


def _prose(one: Any) -> Iterator[str]:
    """A docstring as Markdown: text as it stands, sections and examples as blocks."""
    if not (text := documentation(one)):
        return
    text = re.sub(
        r"^(Parameters|Examples|Attributes|Returns|Notes)\n-+$", r"\1:\n", text, flags=re.M
    )
    for paragraph in re.split(r"\n\s*\n", text):
        literal = re.search(r"^(>>>|\s|\w[\w, ]* : )", paragraph, flags=re.M)
        yield f"```\n{paragraph}\n```" if literal else _escaped(paragraph)


def _escaped(text: str) -> str:
    """Text with the characters of emphasis and tags escaped, except in code in backticks."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part[:1] == "`" else re.sub(r"([*<])", r"\\\1", part) for part in parts)


if __name__ == "__main__":
    main()
