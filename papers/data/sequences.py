"""Objects that move."""

from __future__ import annotations

import io
import re
import tarfile
from typing import Literal, NamedTuple, get_args

import numpy as np

from knowmore._base import optional, undamaged
from knowmore.errors import InvalidInput
from papers.arrays import Array
from papers.data.location import DAMAGED, find

Film = Literal["car4", "david"]


class Filmed(NamedTuple):
    """T pictures in grey, (T, H, W), from 0 to 1, and the box of the object in each: (T, 4).

    A box is its left, top, width and height in pixels, counted from zero.
    """

    frames: Array
    boxes: Array


def tracked(film: Film, most: int | None = None) -> Filmed:
    """A sequence of Ross et al. (2008), or so many of its first pictures.

    "car4": 659 of a car that drives under bridges. "david": 471 of a face that turns, and walks out
    of the dark. D. Ross, J. Lim, R.-S. Lin and M.-H. Yang, Incremental Learning for Robust Visual
    Tracking, IJCV 2008; boxes of the Object Tracking Benchmark, Y. Wu, J. Lim and M.-H. Yang.
    """
    if film not in get_args(Film):
        raise InvalidInput(f"film={film!r} is not known. Choose 'car4' or 'david'.")
    image = optional("PIL.Image", "images")
    path = find(f"tracking_{film}.tar")
    with undamaged(path, "a data set", DAMAGED), tarfile.open(path) as archive:
        names = sorted(name for name in archive.getnames() if re.fullmatch(r"img/\d+\.jpg", name))
        frames = [
            np.asarray(image.open(_read(archive, name)).convert("L")) for name in names[:most]
        ]
        boxes = np.loadtxt(_read(archive, "groundtruth.txt"), delimiter=",")[:most]
        return Filmed(np.stack(frames).astype(np.float32) / 255, boxes)


def _read(archive: tarfile.TarFile, name: str) -> io.BytesIO:
    member = archive.extractfile(name)
    if member is None:
        raise ValueError(f"{name} is no file")
    return io.BytesIO(member.read())
