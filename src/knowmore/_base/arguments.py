"""Checks of arguments for all layers. Their errors name the values that are allowed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from knowmore.errors import InvalidInput, InvalidType


def choice(name: str, value: Any, known: Collection[str]) -> str:
    """The value if it is one of the known strings."""
    if not isinstance(value, str) or value not in known:
        words = ", ".join(map(repr, known))
        raise InvalidInput(f"{name}={value!r} is not known. Choose one of {words}.")
    return value


def is_whole(value: Any) -> bool:
    """Whether the value is an integer; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    """Whether the value is a real number; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def whole_number(name: str, value: Any, least: int, most: int | None = None) -> int:
    """The value as an integer of at least `least`, and at most `most` if that is given."""
    if not is_whole(value) or int(value) < least or (most is not None and int(value) > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InvalidInput(f"{name}={value!r}. Give a whole number {limits}.")
    return int(value)


def number(name: str, value: Any, interval: str, hint: str = "") -> float:
    """The value as a float in an interval written as in mathematics, such as "[0, 1)".

    hint : a sentence on what the number means, for the error

    >>> number("C", 2, "(0, inf)")
    2.0
    """
    low, high = map(float, interval[1:-1].split(","))
    x = np.nan
    # An integer may be beyond the range of numbers.
    with suppress(OverflowError):
        x = float(value) if is_real(value) else x
    closed = (x == low and interval[0] == "[") or (x == high and interval[-1] == "]")
    if low < x < high or closed:
        return x
    raise InvalidInput(f"{name}={value!r} must be a number in {interval}.{hint and ' ' + hint}")


def real_numbers(name: str, values: Any) -> npt.NDArray[np.float64]:
    """The values as float64 in the shape that they have; None among them is NaN.

    >>> real_numbers("largest", [1, 2.5])
    array([1. , 2.5])
    """
    unmasked(name, values)
    try:
        array = np.asarray(values)
        if array.dtype.kind in "fiubO":
            return array.astype(np.float64, copy=False)
        problem = f"they are of type {array.dtype}"
    except (TypeError, ValueError, OverflowError) as error:
        problem = str(error)
    raise InvalidInput(
        f"{name} has values that are not real numbers: {problem}. Encode text and dates as numbers "
        f"first, and give complex numbers as two columns each."
    )


def flag(name: str, value: Any) -> bool:
    """The value as a bool, which it must be already: a string such as "no" is true in Python."""
    if not isinstance(value, (bool, np.bool_)):
        raise InvalidInput(f"{name}={value!r} is neither True nor False.")
    return bool(value)


def is_missing(value: Any) -> bool:
    """Whether this marks a missing value: None, NaN, pandas' NA and NaT, or a masked constant."""
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    # By name: pandas may not be installed, and comparing its NA with anything gives NA.
    return type(value).__name__ in ("NoneType", "NAType", "NaTType", "MaskedConstant")


# Tables that have no rows yet, and what reads them.
_ON_DEMAND = {
    "LazyFrame": "collect()",
    "DuckDBPyRelation": "to_arrow_table()",
    "RecordBatchReader": "read_all()",
}


def in_memory(name: str, values: Any) -> None:
    """Raise InvalidType if values are a query, such as a lazy table of polars, and not its rows.

    X and y from two queries may have their rows in different orders.
    """
    read = _ON_DEMAND.get(type(values).__name__)
    if read is not None:
        raise InvalidType(
            f"{name} is {a_type(values)}, a query that may give its rows in another order each "
            f"time. Read it once, and take X and y from the same table: table = {name}.{read}."
        )


def unmasked(name: str, values: Any) -> None:
    """Raise InvalidInput if values are masked: np.asarray would read what the mask hides."""
    in_memory(name, values)
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        where = np.argwhere(np.ma.getmaskarray(values))
        raise InvalidInput(
            f"{name} has {len(where)} masked value(s), the first at {tuple(where[0].tolist())}. "
            f"Fill them in with {name}.filled(...), or leave these examples out."
        )


def check_sparse(name: str, values: Any) -> None:
    """Raise InvalidInput if a sparse matrix has entries outside of itself; pass all else.

    SciPy's compiled loops trust the indices, which anyone can write to: they would read or write
    other memory, or end the process.
    """
    if sparse.issparse(values) and not _is_sound(values):
        raise InvalidInput(
            f"{name} is a damaged sparse matrix of shape {values.shape} ({values.format}): some of "
            f"its entries are outside of that shape, or its parts differ in length. Make it anew "
            f"from its values."
        )


def _is_sound(values: Any) -> bool:
    """Whether the parts of a sparse matrix go together."""
    if values.format in ("lil", "dok"):
        # Lists, which SciPy looks at when it makes arrays of them.
        with suppress(ValueError, IndexError):
            return _is_sound(values.tocoo())
        return False
    if values.format == "dia":
        return values.data.ndim == 2 and len(values.data) == len(values.offsets)
    if values.format == "coo":
        lengths = {len(one) for one in (*values.coords, values.data)}
        axes = zip(values.coords, values.shape, strict=True)
        return len(lengths) == 1 and all(_within(one, size) for one, size in axes)
    shape = values.shape if values.ndim > 1 else (1, *values.shape)
    rows, columns = np.floor_divide(shape, getattr(values, "blocksize", 1)).tolist()
    rows, columns = (columns, rows) if values.format == "csc" else (rows, columns)
    starts, stored = values.indptr, min(len(values.indices), len(values.data))
    if len(starts) != rows + 1 or starts[0] != 0 or starts[-1] > stored:
        return False
    return bool((np.diff(starts) >= 0).all()) and _within(values.indices[: starts[-1]], columns)


def _within(indices: npt.NDArray[Any], size: int) -> bool:
    """Whether all of these are from 0 to size - 1."""
    return bool(indices.min(initial=0) >= 0 and indices.max(initial=-1) < size)


def shape_of(name: str, values: Any) -> tuple[int, ...]:
    """The shape of the values; raises InvalidInput if they are lists of different lengths."""
    in_memory(name, values)
    with _one_length(name):
        return np.shape(values)


def as_array(name: str, values: Any) -> npt.NDArray[Any]:
    """The values as an array; raises InvalidInput if they are lists of different lengths."""
    in_memory(name, values)
    with _one_length(name):
        return np.asarray(values)


@contextmanager
def _one_length(name: str) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise InvalidInput(
            f"{name} has lists of different lengths: {error} Give each example as many values."
        ) from error


def is_empty(X: Any, y: Any) -> bool:
    """Whether X and y are of no rows; raises InvalidInput if only X is."""
    if shape_of("X", X)[:1] != (0,):
        return False
    one_each("y", shape_of("y", y)[:1], 0)
    return True


def one_each(name: str, shape: tuple[int, ...], n: int, order: str = "the same order") -> None:
    """Raise InvalidInput unless the shape is (n,): one value for each example."""
    if shape != (n,):
        raise InvalidInput(
            f"{name} has shape {shape}, but there are {n} examples. Give one value for each, in "
            f"{order}."
        )


def a_type(value: Any) -> str:
    """The name of the value's type after its article, for an error.

    >>> from knowmore import LSSVMClassifier, OneShotClassifier
    >>> a_type(3), a_type("3"), a_type(LSSVMClassifier()), a_type(OneShotClassifier())
    ('an int', 'a str', 'an LSSVMClassifier', 'a OneShotClassifier')
    """
    name = type(value).__name__
    # Initials are read letter by letter: an LSSVM, an ndarray.
    vowels = "AEFHILMNORSX" if name[:2].isupper() else "AEIOaeio"
    vowel = name[0] in vowels and not name.startswith("One")
    return f"{'an' if vowel or name == 'ndarray' else 'a'} {name}"


def some(names: Sequence[Any]) -> str:
    """The first few names, for an error.

    >>> some([3, 1, 2]), some("abcdefgh")
    ('3, 1, 2', "'a', 'b', 'c', 'd', 'e' and 3 more")
    """
    shown = ", ".join(map(repr, names[:5]))
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown
