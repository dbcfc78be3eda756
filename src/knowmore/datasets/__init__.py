"""Published data sets and anybody's own pictures as `Examples`, read in place.

The environment variable KNOWMORE_DATA names the folder of the published ones.
"""

from knowmore.datasets.animals import animals_with_attributes
from knowmore.datasets.caltech import caltech101, caltech256
from knowmore.datasets.digits import digits
from knowmore.datasets.faces import FACE_SHAPE, orl_faces
from knowmore.datasets.location import find
from knowmore.datasets.pictures import Listing, Picture
from knowmore.datasets.scenes import fifteen_scenes
from knowmore.datasets.sources import image_folder, listing
from knowmore.datasets.tables import feature_table

__all__ = [
    "FACE_SHAPE",
    "Listing",
    "Picture",
    "animals_with_attributes",
    "caltech101",
    "caltech256",
    "digits",
    "feature_table",
    "fifteen_scenes",
    "find",
    "image_folder",
    "listing",
    "orl_faces",
]
