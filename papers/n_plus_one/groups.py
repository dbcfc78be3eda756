"""Which classes are learnt together: related, mixed and unrelated ones, by fixed rules.

Animals are as far apart as the number of the 85 attributes in which they differ. Related are an
animal and those nearest to it: of all such groups the one whose members are nearest to each other
in sum. Unrelated are the two farthest apart, and again and again the one farthest from the nearest
of those chosen. Ties go to the animal named first in the set.

Things of Caltech-256 have no attributes. Five that are related are vehicles, and five unrelated
ones are taken from a list of MultiKT's authors, from memory: fire-truck, snake and bonsai. A piano
and a breadmaker replace harp, microwave and cowboy-hat, which are not in this part of the set.
Twenty related ones are the first mammals by their number, twenty unrelated ones every sixth of all
120 classes: the numbers are alphabetical.

In both sets, mixed are the first half of the related ones and then the first of the unrelated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from papers.arrays import Array
from papers.data import arrays_of

Group = tuple[str, ...]

RELATED, MIXED, UNRELATED, ALL = "related", "mixed", "unrelated", "all"

_VEHICLES = (
    "023.bulldozer",
    "072.fire-truck",
    "145.motorbikes-101",
    "178.school-bus",
    "192.snowmobile",
)
_ODD = ("072.fire-truck", "190.snake", "015.bonsai-101", "091.grand-piano-101", "021.breadmaker")
_MAMMALS = (
    "007.bat",
    "009.bear",
    "028.camel",
    "038.chimp",
    "056.dog",
    "057.dolphin-101",
    "064.elephant-101",
    "065.elk",
    "084.giraffe",
    "085.goat",
    "090.gorilla",
    "105.horse",
    "121.kangaroo-101",
    "124.killer-whale",
    "129.leopards-101",
    "134.llama-101",
    "164.porcupine",
    "168.raccoon",
    "186.skunk",
    "250.zebra",
)


def animal_groups(size: int) -> dict[str, Group]:
    """Groups of `size` animals; of all fifty there is only one."""
    with arrays_of("awa_features.npz") as file:
        names, attributes = file["class_names"], file["attributes_binary"].astype(int)
    if size == len(names):
        return {ALL: tuple(names.tolist())}
    distances = abs(attributes[:, None] - attributes).sum(axis=2)
    near, far = (
        names[rows].tolist() for rows in (nearest(distances, size), far_apart(distances, size))
    )
    return _three(near, far)


def thing_groups(size: int, names: Sequence[str]) -> dict[str, Group]:
    """Groups of five or twenty of the things `names` (120)."""
    if size == len(_VEHICLES):
        return _three(_VEHICLES, _ODD)
    return _three(_MAMMALS[:size], names[:: len(names) // size][:size])


def nearest(distances: Array, size: int) -> Array:
    """The members (size,) of the closest group of a class and those nearest to it, (n, n).

    >>> nearest(abs(np.subtract.outer([0, 5, 9, 10, 12], [0, 5, 9, 10, 12])), 3)
    array([2, 3, 4])
    """
    groups = np.argsort(distances, axis=1, kind="stable")[:, :size]
    sums = [distances[np.ix_(group, group)].sum() for group in groups]
    return np.asarray(groups[int(np.argmin(sums))])


def far_apart(distances: Array, size: int) -> Array:
    """The two that are farthest apart, then always the one farthest from all before, (size,).

    >>> far_apart(abs(np.subtract.outer([0, 5, 9, 10, 12], [0, 5, 9, 10, 12])), 3)
    array([0, 4, 1])
    """
    chosen = [int(i) for i in np.unravel_index(distances.argmax(), distances.shape)]
    while len(chosen) < size:
        chosen.append(int(distances[chosen].min(axis=0).argmax()))
    return np.array(chosen)


def _three(near: Sequence[str], far: Sequence[str]) -> dict[str, Group]:
    half = tuple(near[: (len(near) + 1) // 2])
    others = tuple(name for name in far if name not in half)
    return {
        RELATED: tuple(near),
        MIXED: half + others[: len(near) - len(half)],
        UNRELATED: tuple(far),
    }
