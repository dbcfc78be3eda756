"""Land and sea."""

from __future__ import annotations

import zipfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from knowmore._base import undamaged
from knowmore.errors import MissingExtra
from papers.arrays import Array
from papers.data.location import DAMAGED

_PACKAGE, _FILE = "global_land_mask", "globe_combined_mask_compressed.npz"


def land_and_sea(n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """n points that are uniform on the sphere, X (n, 3), and whether each is on land, y (n,).

    T. Karin, the package global-land-mask, after NOAA's GLOBE elevations: cells of half a minute.
    Its map takes a gigabyte as a whole, so it is read line by line.
    """
    X = rng.normal(size=(n, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.empty(n, bool)
    path = _map()
    with (
        undamaged(path, "a map of land and sea", DAMAGED),
        zipfile.ZipFile(path) as archive,
        archive.open("mask.npy") as file,
    ):
        np.lib.format.read_magic(file)
        (lines, columns), _, _ = np.lib.format.read_array_header_1_0(file)
        # Lines go from north to south, columns from the date line to the east.
        south, east = (
            0.5 - np.arcsin(X[:, 2]) / np.pi,
            0.5 + np.arctan2(X[:, 1], X[:, 0]) / 2 / np.pi,
        )
        line = np.minimum((south * lines).astype(int), lines - 1)
        column = np.minimum((east * columns).astype(int), columns - 1)
        order = np.argsort(line, kind="stable")
        for rows in np.split(order, np.searchsorted(line[order], np.arange(1, lines))):
            is_sea = np.frombuffer(file.read(columns), bool)
            y[rows] = ~is_sea[column[rows]]
    return X, y


def _map() -> Path:
    found = find_spec(_PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise MissingExtra(
            "The map of land and sea comes with the package global-land-mask, which is not "
            "installed. Install it: pip install global-land-mask"
        )
    return Path(found.submodule_search_locations[0], _FILE)
