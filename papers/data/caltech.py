"""Pictures of things."""

from __future__ import annotations

from collections.abc import Collection

from knowmore.examples import Examples
from papers.data.archived import archived


def caltech101(leave_out: Collection[str] = ("BACKGROUND_Google", "Faces_easy")) -> Examples:
    """Caltech-101: pictures of at most 200 pixels a side, 31 to 800 of a class.

    X (8242,) are `Picture`s as in `image_folder`, ids such as "accordion/image_0001.jpg".
    `leave_out` names classes to do without. BACKGROUND_Google is not a class but a mix of pictures,
    and Faces_easy shows the pictures of Faces once more, cut out: a model would be tested on what
    it has learnt. With leave_out=() there are 9144 pictures of 102 classes. L. Fei-Fei, R. Fergus
    and P. Perona, Learning generative visual models from few training examples, CVPR Workshop 2004.
    """
    return archived("caltech101.tar", "caltech101/101_ObjectCategories/", leave_out)


def caltech256(leave_out: Collection[str] = ("257.clutter",)) -> Examples:
    """A part of Caltech-256: 20 to 26 pictures, at most 200 pixels a side, of each of 120 classes.

    X are `Picture`s as in `image_folder`, ids such as "001.ak47/001_0010.jpg". `leave_out` names
    classes to do without; 257.clutter is none. With leave_out=() there are 2965 pictures. Classes
    that end in "-101" hold pictures of Caltech-101. G. Griffin, A. Holub and P. Perona,
    Caltech-256 Object Category Dataset, 2007.
    """
    return archived("caltech256_subset.tar", "caltech256/256_ObjectCategories/", leave_out)
