"""Pictures to vectors: scikit-learn transformers that meet the models through arrays alone.

>>> import numpy as np
>>> from sklearn.pipeline import make_pipeline
>>> pictures = np.random.default_rng(0).random((4, 64, 64))
>>> pipeline = make_pipeline(DenseSIFT(), KMeansCodebook(size=20), SpatialPyramid(levels=2))
>>> pipeline.fit_transform(pictures).shape
(4, 100)

`image_folder` lists the pictures of a folder or of a tar archive, `extract` describes them all,
and `feature_table` reads what `knowmore features` wrote. Pictures need the extra `images`, a neural
network the extra `embeddings`.
"""

from knowmore.images.codebooks import ForestCodebook, KMeansCodebook
from knowmore.images.extraction import Extraction, extract, learn_codebook, steps_of
from knowmore.images.local import DenseSIFT, Descriptors, Words
from knowmore.images.sources import Listing, Picture, image_folder, listing
from knowmore.images.storage import Cache, feature_table
from knowmore.images.vectors import PHOG, Embedding, SpatialPyramid

__all__ = [
    "PHOG",
    "Cache",
    "DenseSIFT",
    "Descriptors",
    "Embedding",
    "Extraction",
    "ForestCodebook",
    "KMeansCodebook",
    "Listing",
    "Picture",
    "SpatialPyramid",
    "Words",
    "extract",
    "feature_table",
    "image_folder",
    "learn_codebook",
    "listing",
    "steps_of",
]
