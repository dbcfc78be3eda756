"""Pictures to vectors: scikit-learn transformers that meet the models through arrays alone.

>>> import numpy as np
>>> from sklearn.pipeline import make_pipeline
>>> pictures = np.random.default_rng(0).random((4, 64, 64))
>>> pipeline = make_pipeline(DenseSIFT(), KMeansCodebook(size=20), SpatialPyramid(levels=2))
>>> pipeline.fit_transform(pictures).shape
(4, 100)

`image_folder` lists the pictures of a folder or of a tar archive, `extract` describes them all,
and `feature_table` reads what `knowmore features` wrote. Reading pictures and looking at them needs
the extra `images`, a neural network the extra `embeddings`.
"""

from knowmore.images.codebooks import ForestCodebook, KMeansCodebook
from knowmore.images.embedding import Embedding
from knowmore.images.extraction import Extraction, extract, learn_codebook, steps_of
from knowmore.images.local import Descriptors, Words
from knowmore.images.phog import PHOG
from knowmore.images.pictures import Listing, Picture
from knowmore.images.pyramid import SpatialPyramid
from knowmore.images.sift import DenseSIFT
from knowmore.images.sources import image_folder, listing
from knowmore.images.tables import feature_table

__all__ = [
    "PHOG",
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
