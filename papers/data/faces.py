"""Pictures of faces."""

from __future__ import annotations

import numpy as np

from knowmore.examples import Examples
from papers.data.location import arrays_of

# Rows and columns of a picture.
FACE_SHAPE = (112, 92)


def orl_faces() -> Examples:
    """The ORL faces: ten pictures of each of forty people, in the order of people and pictures.

    X (400, 10304) are the grey levels row by row, divided by 255 and so in [0, 1]; labels are "s1"
    to "s40", ids are the names of the files, "s1/1.pgm". AT&T Laboratories Cambridge, 1992-1994;
    F. Samaria and A. Harter, Parameterisation of a Stochastic Model for Human Face Identification,
    WACV 1994.
    """
    with arrays_of("orl_faces.npz") as file:
        images, names = file["images"], file["names"]
        X = images.reshape(len(images), FACE_SHAPE[0] * FACE_SHAPE[1]) / 255
        people = np.array([name.partition("/")[0] for name in names])
        return Examples.of(X, people, tuple(names.tolist()))
