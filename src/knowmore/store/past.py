"""A file as its journal was at an earlier entry: which versions were live, under which settings.

What was forgotten since is nowhere any more, so it is missing from all states before, too. So are
the settings of before, which it may have chosen: the examples that are left of such a state choose
them again, and the parameters are those of today.
"""

from __future__ import annotations

from json import loads
from typing import TYPE_CHECKING, Any, NamedTuple

from knowmore.errors import InvalidInput
from knowmore.examples import Examples
from knowmore.store.journal import FORGETS, Version
from knowmore.store.layout import File
from knowmore.store.loading import fresh

if TYPE_CHECKING:
    from knowmore.store.store import Store


class Past(NamedTuple):
    """A state of a file.

    estimator : the batch fit of the examples that it held; None if it held none
    """

    estimator: Any
    examples: Examples | None


def past(store: Store, number: int) -> Past:
    """The state after the entry of this number, which may be undone now; 0: before the first."""
    with store._lock, store._reading():
        held, file = store._follow(), store._file
        rows = sorted(file.all_rows("journal"))
        if number and number not in {row[0] for row in rows}:
            raise InvalidInput(
                f"The journal has no entry {number}: it was never there, or undone and overwritten."
            )
        facts = held.facts | _settings(rows, number, held.numbers.position)
        versions = _versions(file, number)
        if not any(one.live for one in versions):
            return Past(None, None)
        if any(row[0] > number and row[2] in FORGETS for row in rows):
            facts["state"] = None
        return Past(*fresh(file, facts, versions))


def _settings(rows: list[Any], number: int, position: int) -> dict[str, Any]:
    """The facts that differ from those of the file as it is now."""
    if number <= position:
        texts = [row[5] for row in rows if number < row[0] <= position and row[5] is not None]
        text = texts[0] if texts else None
    else:
        texts = [row[6] for row in rows if position < row[0] <= number and row[6] is not None]
        text = texts[-1] if texts else None
    return {} if text is None else dict(loads(text))


def _versions(file: File, number: int) -> list[Version]:
    """All versions, of which those are live that were."""
    live: dict[int, int] = {}
    for _, row, enters in sorted(one for one in file.all_rows("changes") if one[0] <= number):
        live[row] = enters
    found = (Version(*row) for row in file.all_rows("examples"))
    return [one._replace(live=live.get(one.row, 0)) for one in found]
