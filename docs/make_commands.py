"""Write commands.md, beside this file, from the program itself: `make reference`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import typer.main

from knowmore.cli.app import app

PAGE = Path(__file__).with_name("commands.md")


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The reference of the command as Markdown."""
    group = typer.main.get_command(app)
    blocks = [
        "# The command",
        "What `knowmore --help` and `knowmore COMMAND --help` say. This page is generated: "
        "`make reference`. [The tutorial](workbench.md) shows the commands at work.",
        _flowed(group.help),
    ]
    for panel in dict.fromkeys(one.rich_help_panel for one in group.commands.values()):
        blocks.append(f"## {panel}")
        for command in group.commands.values():
            if command.rich_help_panel == panel:
                blocks += _entry(command)
    return "\n\n".join(blocks) + "\n"


def _entry(command: Any) -> Iterator[str]:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and one.help]
    words = ["knowmore", command.name, *map(_placed, arguments), *["[OPTIONS]"] * bool(options)]
    yield f"### {command.name}"
    yield f"`{' '.join(words)}`"
    yield _flowed(command.help)
    rows = [(_placed(one), one.help) for one in arguments]
    rows += [(f"{', '.join(one.opts)} {_value(one)}".strip(), _said(one)) for one in options]
    shown = "\n".join(f"| `{_flowed(name)}` | {_flowed(text)} |" for name, text in rows)
    yield f"| | |\n| --- | --- |\n{shown}"


def _placed(argument: Any) -> str:
    """An argument as it stands in a line."""
    name = (argument.metavar or argument.name.upper()).strip("[].") + "..." * (argument.nargs == -1)
    return name if argument.required else f"[{name}]"


def _value(option: Any) -> str:
    """The placeholder of an option's value; empty for a flag."""
    if option.is_flag:
        return ""
    kind = option.type_descriptor.annotation
    choices = "|".join(map(str, get_args(kind)))
    return option.metavar or choices or {"Path": "FILE"}.get(kind.__name__, kind.__name__.upper())


def _said(option: Any) -> str:
    """The help of an option, and what it is by default."""
    default = option.show_default if isinstance(option.show_default, str) else option.default
    plain = option.is_flag or default is None or callable(default)
    return option.help if plain else f"{option.help} By default: {default}."


def _flowed(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    main()
