"""Texts to vectors: a scikit-learn transformer that meets the models through arrays alone.

>>> TextVectors(letters=64).transform(["Good morning", "Good night"]).shape
(2, 64)

`text_folder` reads the .txt files of a folder. Words of the package `wordllama` need the extra
`texts`.
"""

from knowmore.texts.describing import TextDescriber as TextDescriber
from knowmore.texts.folders import is_text as is_text
from knowmore.texts.folders import text_folder
from knowmore.texts.folders import texts_in as texts_in
from knowmore.texts.reading import MOST as MOST
from knowmore.texts.reading import read_text as read_text
from knowmore.texts.reading import unusable as unusable
from knowmore.texts.reading import words_of as words_of
from knowmore.texts.vectors import TextVectors

__all__ = ["TextVectors", "text_folder"]
