"""The published data sets as `Examples`, read in place, and what their classes mean.

The environment variable KNOWMORE_DATA names their folder.
"""

from papers.data.animals import Feature, animals_with_attributes
from papers.data.caltech import caltech101, caltech256
from papers.data.class_meanings import CLASS_MEANINGS
from papers.data.connections import WORDS, kdd99
from papers.data.digits import digits
from papers.data.faces import FACE_SHAPE, orl_faces
from papers.data.fashion import fashion_mnist
from papers.data.flights import Flights, flights
from papers.data.keel import KeelTable, keel, keel_cells, keel_names
from papers.data.land import land_and_sea
from papers.data.location import arrays_of, find
from papers.data.nouns import wordnet
from papers.data.prose import Prose, fortunes, glosses, mails
from papers.data.scenes import fifteen_scenes
from papers.data.sequences import Film, Filmed, tracked
from papers.data.split import Split

__all__ = [
    "CLASS_MEANINGS",
    "FACE_SHAPE",
    "WORDS",
    "Feature",
    "Film",
    "Filmed",
    "Flights",
    "KeelTable",
    "Prose",
    "Split",
    "animals_with_attributes",
    "arrays_of",
    "caltech101",
    "caltech256",
    "digits",
    "fashion_mnist",
    "fifteen_scenes",
    "find",
    "flights",
    "fortunes",
    "glosses",
    "kdd99",
    "keel",
    "keel_cells",
    "keel_names",
    "land_and_sea",
    "mails",
    "orl_faces",
    "tracked",
    "wordnet",
]
