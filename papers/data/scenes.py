"""Pictures of places."""

from __future__ import annotations

from knowmore.examples import Examples
from papers.data.archived import archived


def fifteen_scenes() -> Examples:
    """Fifteen Scene Categories: 4485 pictures in grey of 256 x 256 pixels, 210 to 410 of a class.

    X (4485,) are `Picture`s as in `image_folder`, ids such as "bedroom/image_0001.jpg".
    S. Lazebnik, C. Schmid and J. Ponce, Beyond Bags of Features: Spatial Pyramid Matching for
    Recognizing Natural Scene Categories, CVPR 2006. 18 groups of them are the same, byte for byte.
    """
    return archived("15scenes.tar", "15scenes/")
