"""The plane that a model is drawn in: its two features, or two directions through its examples.

It is chosen once and kept while examples come and go: a map that moves cannot be read. When some
are forgotten it is chosen again from the others, since its axes were computed from all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from knowmore._base import Array, Frozen
from knowmore.subspaces import EigenspaceLDA, EigenspacePCA

# Rows that a plane is chosen from, and numbers in these rows: more would take seconds.
_ENOUGH, _NUMBERS = 2000, 2**20
# Fewer examples than this may have been taught a moment ago.
_FEW = 32


class Bounds(NamedTuple):
    """The visible part of a plane."""

    x0: float
    x1: float
    y0: float
    y1: float

    def shown(self) -> dict[str, float]:
        """The bounds for JSON."""
        return {"x0": self.x0, "x1": self.x1, "y0": self.y0, "y1": self.y1}


class FieldGrid(NamedTuple):
    """The middles of w times h cells that fill the bounds, row by row from y0 up."""

    bounds: Bounds
    w: int
    h: int

    def places(self) -> Array:
        """(h w, 2)."""
        x0, x1, y0, y1 = self.bounds
        x = x0 + (np.arange(self.w) + 0.5) / self.w * (x1 - x0)
        y = y0 + (np.arange(self.h) + 0.5) / self.h * (y1 - y0)
        return np.column_stack([np.tile(x, self.h), np.repeat(y, self.w)])


@final
@dataclass(frozen=True, eq=False)
class ViewPlane(Frozen):
    """origin + z axes, for places z (m, 2); origin (d,), axes (2, d), of length one and orthogonal.

    by : "features", "eigenspace" or "discriminants"
    names : of the two axes
    least : features below it are that, such as those of histograms below zero
    """

    origin: Array
    axes: Array
    by: str
    names: tuple[str, str]
    least: float = -np.inf

    def same_as(self, other: ViewPlane) -> bool:
        """Whether both show the same at the same place."""
        mine, theirs = (self.origin, self.axes), (other.origin, other.axes)
        return self.least == other.least and all(map(np.array_equal, mine, theirs))

    def places(self, X: Array) -> Array:
        """The places (n, 2) of examples X (n, d)."""
        return np.asarray((X - self.origin) @ self.axes.T)

    def rows(self, places: Array) -> Array:
        """The features (m, d) of places (m, 2) in the plane."""
        return np.asarray(np.maximum(self.origin + places @ self.axes, self.least))

    def moved(self, X: Array, places: Array) -> Array:
        """Examples X (n, d) such that they are seen at places (n, 2); what is not seen stays."""
        return np.asarray(np.maximum(X + (places - self.places(X)) @ self.axes, self.least))


def plane_of(
    X: Array, labels: Array, names: tuple[str, ...], least: float = -np.inf
) -> ViewPlane | None:
    """The plane of examples X (n, d) with labels (n,), or None if they have none.

    Two features are a plane. Of more there are the two leading discriminants, if there are three
    classes or more, or the two leading directions of the eigenspace.
    """
    n, d = X.shape
    if d == 2:
        return ViewPlane(np.zeros(2), np.eye(2), "features", (names[0], names[1]), least)
    if d < 2 or n < 3:
        return None
    some = np.linspace(0, n - 1, min(n, _ENOUGH, max(_NUMBERS // d, 100))).astype(int)
    X, labels = X[some], labels[some]
    origin, by = X.mean(axis=0), "eigenspace"
    # All rows are in the span of V, which has fewer columns if there are more features than rows.
    V = np.linalg.qr((X - origin).T)[0] if d > len(X) else np.eye(d)
    Z = (X - origin) @ V
    if labels.ndim == 1 and 3 <= len(set(labels.tolist())) < len(X) // 2:
        directions = EigenspaceLDA(n_components=2).fit(Z, labels).scalings_.T
        by = "discriminants"
    else:
        directions = np.asarray(EigenspacePCA(n_components=2).fit(Z).components_)
    axes = np.linalg.qr(V @ directions.T)[0].T
    if axes.shape != (2, d) or not np.isfinite(axes).all():
        return None
    word = "discriminant" if by == "discriminants" else "direction"
    return ViewPlane(origin, axes, by, (f"{word} 1", f"{word} 2"), least)


def bounds_of(places: Array, reach: float | None, *, square: bool) -> Bounds:
    """Bounds around places (n, 2), with room for more.

    reach : the length scale of the kernel: the model has something to say so far around examples
    square : whether both axes have the same unit
    """
    begun = len(places) < _FEW and not square
    if not len(places) or (begun and abs(places).max() <= 1):
        # A plane that was empty a moment ago looks as it did then.
        return Bounds(-1.0, 1.0, -1.0, 1.0)
    low, high = places.min(axis=0), places.max(axis=0)
    span = high - low
    room = np.maximum(0.15 * span, np.minimum(1.5 * (reach or 0.0), 0.4 * span))
    room = np.where(span > 0, room, 1.5 * (reach or 0.0) or np.maximum(abs(high), 1.0))
    if square:
        room += (max(span + 2 * room) - span - 2 * room) / 2
    (x0, y0), (x1, y1) = (low - room).tolist(), (high + room).tolist()
    return Bounds(x0, x1, y0, y1)
