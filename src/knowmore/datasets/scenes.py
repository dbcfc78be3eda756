"""Pictures of places."""

from __future__ import annotations

from knowmore.datasets.archives import in_archive
from knowmore.datasets.location import find
from knowmore.datasets.pictures import examples_of
from knowmore.datasets.sources import under
from knowmore.examples import Examples


def fifteen_scenes() -> Examples:
    """Fifteen Scene Categories: 4485 pictures in grey of 256 x 256 pixels, 210 to 410 of a class.

    X (4485,) are `Picture`s as in `image_folder`, ids such as "bedroom/image_0001.jpg".
    S. Lazebnik, C. Schmid and J. Ponce, Beyond Bags of Features: Spatial Pyramid Matching for
    Recognizing Natural Scene Categories, CVPR 2006. 18 groups of them are the same, byte for byte.
    """
    return examples_of(under(in_archive(find("15scenes.tar")), "15scenes/"))
