"""Ready-made examples in the plane: what a model of two features can and cannot learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from knowmore.arrays import Array

Rows = tuple[Array, list[str]]


class Scene(NamedTuple):
    """Examples with settings that suit them.

    title : what people call it
    make : rows (n, 2), within -1 and 1, and their labels, from random numbers
    """

    title: str
    make: Callable[[np.random.Generator], Rows]
    length_scale: float
    noise: float


def _moons(random: np.random.Generator) -> Rows:
    t = random.uniform(0, np.pi, 60)
    upper = np.column_stack([np.cos(t[:30]) - 0.5, np.sin(t[:30]) - 0.25])
    lower = np.column_stack([0.5 - np.cos(t[30:]), 0.25 - np.sin(t[30:])])
    X = 0.55 * np.vstack([upper, lower]) + random.normal(0, 0.05, (60, 2))
    return X, ["sun"] * 30 + ["moon"] * 30


def _spiral(random: np.random.Generator) -> Rows:
    t = np.linspace(0.35, 1, 45)
    arms = [_arm(t, turn) for turn in (0, 2 * np.pi / 3, 4 * np.pi / 3)]
    X = 0.9 * np.vstack(arms) + random.normal(0, 0.015, (135, 2))
    return X, ["one"] * 45 + ["two"] * 45 + ["three"] * 45


def _arm(t: Array, turn: float) -> Array:
    angle = 1.5 * np.pi * t**0.8 * 1.6 + turn
    return np.column_stack([t * np.cos(angle), t * np.sin(angle)])


def _blobs(random: np.random.Generator) -> Rows:
    centres = np.array([[-0.5, -0.3], [0.5, -0.35], [0.0, 0.5]])
    X = np.repeat(centres, 25, axis=0) + random.normal(0, 0.16, (75, 2))
    return X, ["apple"] * 25 + ["pear"] * 25 + ["plum"] * 25


def _island(random: np.random.Generator) -> Rows:
    """A ring around a place that nobody has been to."""
    angle, radius = random.uniform(0, 2 * np.pi, 90), random.uniform(0.6, 0.85, 90)
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    labels = ["north" if y > 0 else "south" for y in X[:, 1]]
    return X, labels


SCENES = {
    "moons": Scene("Two moons", _moons, 0.25, 0.05),
    "spiral": Scene("Spiral", _spiral, 0.12, 0.02),
    "blobs": Scene("Three blobs", _blobs, 0.3, 0.1),
    "island": Scene("Unknown island", _island, 0.2, 0.05),
}
