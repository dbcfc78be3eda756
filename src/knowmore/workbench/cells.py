"""Rows of cells and a model: how they become vectors, and the encoding that new rows need."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from knowmore._base import Array, Id, some
from knowmore.errors import InvalidInput
from knowmore.store import Store
from knowmore.tables import CategoryColumn, Cell, Encoding, Options, WrongCell, cells_of, json_of
from knowmore.workbench.sources import Source

# Kinds of models whose vectors depend on more than their own examples.
_NUMBERS_ONLY: Final = ("one-shot", "n-plus-one")


@final
@dataclass(frozen=True)
class CellDescriber:
    """Turns rows of cells into vectors; a text is the reason why a row cannot be read."""

    table: Encoding

    def vectors(
        self, records: Sequence[Any], progress: Callable[[int, int], None] | None = None
    ) -> list[Array | str]:
        """The vector (d,) of each row, or the reason why it has none."""
        rows = [record for record in records if not isinstance(record, str)]
        X = iter(self.table.vectors(rows)) if rows else iter(())
        return [record if isinstance(record, str) else next(X) for record in records]

    def kept(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """The note that a model keeps of it, and no arrays."""
        return self.table.note(), {}


def encoding_for(
    store: Store, source: Source, rows: Sequence[Sequence[Cell]], leaving: Collection[Id] = ()
) -> Encoding:
    """The encoding of a model with more rows of a source: that in use, unless they need another.

    A new level, or the first blank of a column, lets all rows choose it anew.

    leaving : examples whose cells change with these rows
    """
    if store.kind in _NUMBERS_ONLY:
        raise InvalidInput(
            f"A model of kind {store.kind} learns rows of numbers, and {source.name!r} has other "
            f"cells. Make a model of another kind, such as gp."
        )
    known = store.table
    assert source.table is not None
    if not len(store):
        return source.table.chosen(rows)
    if known is not None and known.covers(rows):
        return known
    gone = set(leaving)
    stay = [one for one in store.ids_.tolist() if one not in gone]
    held = store.cells(stay) if stay else []
    return (known or source.table).chosen([*held, *rows])


def alone(store: Store) -> None:
    """Let nobody else write until the block of edits ends, so that an encoding suits what is held.

    Call it within `together`, before the encoding is looked at.
    """
    store.set_notes()


def encoding_of_one(
    store: Store, row: Sequence[Cell], leaving: Collection[Id] = ()
) -> tuple[Encoding, Array]:
    """The encoding of a model of cells with one more row, and the vector (1, d) of the row."""
    table = store.table
    assert table is not None
    if not table.covers([row]):
        gone = set(leaving)
        stay = [one for one in store.ids_.tolist() if one not in gone]
        table = table.chosen([*(store.cells(stay) if stay else []), row])
    return table, table.vectors([row])


def replace_cells(
    store: Store, one: Id, row: Sequence[Cell], content: bytes | None, **about: Any
) -> None:
    """Give an example other cells, in one entry; new levels let all choose the encoding anew."""
    with store.together("replace"):
        alone(store)
        table, X = encoding_of_one(store, row, [one])
        if table != store.table:
            store.encode(table)
        store.replace([one], X, contents=[content], thumbnails=kept_cells([row]), **about)


def add_cells(store: Store, rows: Sequence[Sequence[Cell]], y: Any, **about: Any) -> Array:
    """Learn rows of cells in one entry, and return their ids."""
    with store.together("add"):
        alone(store)
        table = store.table
        assert table is not None
        if not table.covers(rows):
            table = table.chosen([*store.cells(), *rows])
        if table != store.table:
            store.encode(table)
        return store.add(table.vectors(rows), y, thumbnails=kept_cells(rows), **about)


def by_column(table: Encoding, x: Array, parts: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The parts of a score by columns of a table: a category is one part, not one for each level.

    x : the row (1, d)
    parts : by numbers of features, with a value, a mean and a contribution each
    """
    given = zip(parts["feature"], parts["mean"], parts["contribution"], strict=True)
    means: dict[str, Any] = {}
    sums = dict.fromkeys(table.names, 0.0)
    for j, mean, contribution in given:
        name = table.sources[j]
        sums[name] += contribution
        if table.features[j] == name:
            means[name] = mean
    values = dict(zip(table.names, _seen(table, x[0]), strict=True))
    order = sorted(sums, key=lambda name: -abs(sums[name]))
    return {
        "feature": order,
        "value": [values[name] for name in order],
        "mean": [means.get(name) for name in order],
        "contribution": [sums[name] for name in order],
    }


def _seen(table: Encoding, x: Array) -> list[Cell]:
    """The cells that a vector (d,) tells of; None for a blank, and for a level that is unknown."""
    features = dict(zip(table.features, x.tolist(), strict=True))
    found: list[Cell] = []
    for column in table.columns:
        if isinstance(column, CategoryColumn):
            levels = (one for one in column.levels if features[f"{column.name}={one}"])
            found.append(next(levels, None))
        else:
            is_blank = column.blank and features[f"{column.name} is blank"]
            found.append(None if is_blank else features[column.name])
    return found


def check_options(table: Encoding | None, names: Sequence[str], given: Options) -> None:
    """Raise InvalidInput if somebody says other things of the columns than a model has learnt.

    names : of the columns that it has learnt
    """
    if given.columns is not None and set(given.columns) != set(names):
        raise InvalidInput(
            f"--columns names other columns than the model has learnt: {some(list(names))}. Leave "
            f"it out, or teach a new model."
        )
    types = {} if table is None else {column.name: column for column in table.columns}
    for one in given.categories:
        if not isinstance(types.get(one), CategoryColumn):
            what = "numbers" if one in names else "nothing"
            raise InvalidInput(
                f"--category {one}: the model has learnt {what} of this column. Leave it out, or "
                f"teach a new model."
            )
    for one in given.ignore:
        if one in names:
            raise InvalidInput(
                f"--ignore {one}: the model has learnt this column. Leave it out, or teach a new "
                f"model."
            )


def read_rows(table: Encoding, rows: Sequence[Any]) -> list[tuple[Cell, ...]]:
    """Rows of cells by the names of their columns, as a model keeps them.

    Names that the model does not know are left out; raises InvalidInput at the first wrong row.
    """
    found = []
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            what = "a text" if isinstance(row, str) else "a list"
            raise InvalidInput(
                f"Row {i} is {what}, but the model has learnt columns by their names. Give an "
                f"object with {some(table.names)}."
            )
        if missing := [name for name in table.names if name not in row]:
            raise InvalidInput(
                f"Row {i} lacks {some(missing)}. Give a value or null for each column: "
                f"{some(table.names)}."
            )
        try:
            found.append(table.read([row[name] for name in table.names]))
        except WrongCell as error:
            raise InvalidInput(f"Row {i}, {error}.") from None
    return found


def shown_cells(table: Encoding, kept: bytes | None) -> dict[str, Cell]:
    """The cells that a model keeps of an example, by the names of their columns."""
    return {} if kept is None else dict(zip(table.names, cells_of(kept), strict=True))


def kept_cells(rows: Sequence[Sequence[Cell]]) -> list[bytes | None]:
    """What a model keeps of rows of cells."""
    return [json_of(row) for row in rows]
