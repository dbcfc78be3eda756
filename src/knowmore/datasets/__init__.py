"""Published data sets as `Examples`, read in place: the environment variable KNOWMORE_DATA names
their folder."""

from knowmore.datasets.animals import animals_with_attributes
from knowmore.datasets.faces import FACE_SHAPE, orl_faces
from knowmore.datasets.location import find

__all__ = ["FACE_SHAPE", "animals_with_attributes", "find", "orl_faces"]
