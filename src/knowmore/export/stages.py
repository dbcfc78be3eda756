"""What stands before a model in an exported file: the earlier steps of a Pipeline, as plain data.

A stage takes what the file takes, or the numbers of the stage before it, and gives numbers (m, e).
It knows its nodes of ONNX, and what `predictor.js` needs to do the same.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, final

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from knowmore._base import Array, Frozen
from knowmore.errors import InvalidInput
from knowmore.estimators import is_sampler


class Operations(Protocol):
    """What writes the nodes of a graph: operations return the names of their results."""

    def __call__(self, operation: str, *inputs: Any, **attributes: Any) -> str:
        """The result of an operation of ONNX on results, by name, and on numbers."""

    def double(self, result: str) -> str:
        """The result as float64."""


@final
@dataclass(frozen=True)
class Input:
    """What an ONNX graph takes: m rows of `shape`, of the type `kind`, a name of NumPy or "str"."""

    name: str
    kind: str
    shape: tuple[int, ...]


@final
@dataclass(frozen=True)
class Field:
    """What a form asks for in one column.

    kind : "number", "category", "truth" or "date"
    choices : the known categories
    blank : whether it may stay empty
    form : how dates may be written, beside ISO 8601
    """

    kind: str = "number"
    choices: tuple[str, ...] | None = None
    blank: bool = False
    form: str | None = None


class Stage(Frozen, ABC):
    """A step before the model. The first of them says what the file takes.

    by_column : whether it changes each number by itself, and leaves what is blank as it is
    """

    by_column: ClassVar[bool] = False

    @property
    def names(self) -> tuple[str, ...] | None:
        """The columns that the stage takes, if not those of the estimator."""
        return None

    def about(self) -> dict[str, Any]:
        """What the metadata of a graph tell about it."""
        return {}

    def inputs(self, columns: tuple[str, ...]) -> tuple[Input, ...]:
        """The inputs of a graph that begins with this stage: by default rows X of numbers."""
        return (Input("X", "float64", (len(columns),)),)

    def fields(self, columns: tuple[str, ...]) -> tuple[Field, ...]:
        """What a form before this stage asks for: by default a number in each column."""
        return (Field(),) * len(columns)

    @abstractmethod
    def nodes(self, write: Operations, *given: str) -> str:
        """The result of the stage in a graph: numbers (m, e).

        given : the inputs of the graph, or the one result of the stage before
        """

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The stage as values for JSON, with a "kind" that `predictor.js` knows."""

    @abstractmethod
    def back(self, x: Array) -> Array:
        """One row that the stage turns into about x (e,), for a form to begin with; NaN: blank."""


# -- the stages ----------------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class Scaled(Stage):
    """(x - shift) / scale, both (d,)."""

    by_column: ClassVar[bool] = True
    shift: Array
    scale: Array

    def nodes(self, write: Operations, *given: str) -> str:
        """A difference and a quotient."""
        return write("Div", write("Sub", *given, self.shift), self.scale)

    def to_dict(self) -> dict[str, Any]:
        """Both arrays."""
        return {"kind": "scaled", "shift": self.shift.tolist(), "scale": self.scale.tolist()}

    def back(self, x: Array) -> Array:
        """Exactly x, but for rounding."""
        return np.asarray(x * self.scale + self.shift)


@final
@dataclass(frozen=True, eq=False)
class Clipped(Stage):
    """x, or the nearer end of [low, high] if it is outside."""

    by_column: ClassVar[bool] = True
    low: float
    high: float

    def nodes(self, write: Operations, *given: str) -> str:
        """A minimum and a maximum."""
        return write("Max", write("Min", *given, self.high), self.low)

    def to_dict(self) -> dict[str, Any]:
        """Both ends."""
        return {"kind": "clipped", "low": self.low, "high": self.high}

    def back(self, x: Array) -> Array:
        """X itself, which is inside."""
        return x


@final
@dataclass(frozen=True, eq=False)
class Projected(Stage):
    """(x - shift)'W: shift (d,), W (d, e)."""

    shift: Array
    W: Array

    def nodes(self, write: Operations, *given: str) -> str:
        """A difference and a product."""
        return write("MatMul", write("Sub", *given, self.shift), self.W)

    def to_dict(self) -> dict[str, Any]:
        """The shift, and the columns of W."""
        return {"kind": "projected", "shift": self.shift.tolist(), "columns": self.W.T.tolist()}

    def back(self, x: Array) -> Array:
        """The row nearest to the shift."""
        return np.asarray(self.shift + x @ np.linalg.pinv(self.W))


@final
@dataclass(frozen=True, eq=False)
class Filled(Stage):
    """The columns `kept` (e,) of x (d,), with `values` (e,) where they are blank: NaN."""

    d: int
    kept: Array
    values: Array

    def fields(self, columns: tuple[str, ...]) -> tuple[Field, ...]:
        """Numbers, which may all be blank."""
        return (Field(blank=True),) * len(columns)

    def nodes(self, write: Operations, *given: str) -> str:
        """A choice between the values and the numbers that are there."""
        x = write("Gather", *given, self.kept, axis=1)
        return write("Where", write("IsNaN", x), self.values, x)

    def to_dict(self) -> dict[str, Any]:
        """Both arrays."""
        return {"kind": "filled", "kept": self.kept.tolist(), "values": self.values.tolist()}

    def back(self, x: Array) -> Array:
        """The columns that are kept; the others are blank."""
        row = np.full(self.d, np.nan)
        row[self.kept] = x
        return row


def distinct(names: list[str], taken: tuple[str, ...] = ()) -> list[str]:
    """The names, each with as many underscores behind it as it takes to be different.

    >>> distinct(["id", "a", "a"], ("id",))
    ['id_', 'a', 'a_']
    """
    found: list[str] = []
    used = {*taken}
    for name in names:
        while name in used:
            name += "_"
        used.add(name)
        found.append(name)
    return found


# -- from the steps of a Pipeline ----------------------------------------------------------------


def stages(step: Any) -> tuple[Stage, ...]:
    """The stages of a fitted step of a Pipeline; raises InvalidInput if it has none.

    >>> scaler = StandardScaler().fit([[1.0], [3.0]])
    >>> [stage.to_dict() for stage in stages(scaler)]
    [{'kind': 'scaled', 'shift': [2.0], 'scale': [1.0]}]
    """
    if step is None or step == "passthrough" or is_sampler(step):
        return ()
    # By the exact type: a subclass may compute something else.
    make = _MAKERS.get(type(step))
    made = None if make is None else make(step)
    if made is None:
        raise InvalidInput(
            f"The step {step!r} cannot be exported. Steps before the model that can are "
            f"TableEncoder, StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, PCA, "
            f"TruncatedSVD, and SimpleImputer of NaN without indicator. Export the last step "
            f"alone, pipeline[-1], and give it what pipeline[:-1].transform returns."
        )
    return made


def _scaled(shift: Any, scale: Any, d: int) -> tuple[Stage, ...]:
    shift = np.zeros(d) if shift is None else np.asarray(shift, dtype=float)
    return (Scaled(shift, np.ones(d) if scale is None else np.asarray(scale, dtype=float)),)


def _ranged(step: Any) -> tuple[Stage, ...]:
    scale = 1 / step.scale_
    scaled = _scaled(-step.min_ * scale, scale, len(scale))
    return (*scaled, Clipped(*map(float, step.feature_range))) if step.clip else scaled


def _projected(step: Any) -> tuple[Stage, ...]:
    W = np.asarray(step.components_, dtype=float).T
    if getattr(step, "whiten", False):
        spread = np.sqrt(step.explained_variance_)
        # As scikit-learn does: a direction without variance is not divided by zero.
        least = np.finfo(spread.dtype).eps
        W = W / np.where(spread < least, least, spread)
    return (Projected(np.asarray(getattr(step, "mean_", np.zeros(len(W))), dtype=float), W),)


def _filled(step: Any) -> tuple[Stage, ...] | None:
    blank = isinstance(step.missing_values, float) and np.isnan(step.missing_values)
    if not blank or step.add_indicator:
        return None
    try:
        values = np.asarray(step.statistics_, dtype=float)
    except ValueError:
        # It fills in words.
        return None
    known = ~np.isnan(values)
    if step.keep_empty_features:
        return (Filled(len(values), np.arange(len(values)), np.where(known, values, 0.0)),)
    return (Filled(len(values), np.flatnonzero(known), values[known]),)


_MAKERS: dict[type, Callable[[Any], tuple[Stage, ...] | None]] = {
    StandardScaler: lambda step: _scaled(
        step.mean_ if step.with_mean else None, step.scale_, step.n_features_in_
    ),
    MinMaxScaler: _ranged,
    MaxAbsScaler: lambda step: (
        *_scaled(None, step.scale_, step.n_features_in_),
        # Older versions of scikit-learn do not clip here.
        *((Clipped(-1.0, 1.0),) if getattr(step, "clip", False) else ()),
    ),
    RobustScaler: lambda step: _scaled(step.center_, step.scale_, step.n_features_in_),
    PCA: _projected,
    TruncatedSVD: _projected,
    SimpleImputer: _filled,
}
