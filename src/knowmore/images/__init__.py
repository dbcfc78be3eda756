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

from typing import Any

from knowmore._base import user_folder
from knowmore.images.codebooks import Codebook as Codebook
from knowmore.images.codebooks import ForestCodebook, KMeansCodebook
from knowmore.images.codebooks import codebook_in as codebook_in
from knowmore.images.describing import DEFAULT_SIZE as DEFAULT_SIZE
from knowmore.images.describing import WORDS as WORDS
from knowmore.images.describing import PictureDescriber as PictureDescriber
from knowmore.images.describing import plain_about as plain_about
from knowmore.images.embedding import Embedding
from knowmore.images.embedding import is_onnx as is_onnx
from knowmore.images.extraction import WORDED as WORDED
from knowmore.images.extraction import Extraction, extract, learn_codebook, steps_of
from knowmore.images.extraction import default_kind as default_kind
from knowmore.images.local import Descriptors, Words
from knowmore.images.networks import as_onnx as as_onnx
from knowmore.images.networks import efficientnet_lite0 as efficientnet_lite0
from knowmore.images.patches import DenseSIFT, SelfSimilarity
from knowmore.images.pyramids import SpatialPyramid
from knowmore.images.reading import check_pixels as check_pixels
from knowmore.images.reading import encoded as encoded
from knowmore.images.reading import small as small
from knowmore.images.sources import Listing, Picture, image_folder, listing
from knowmore.images.sources import is_picture as is_picture
from knowmore.images.sources import picture_in as picture_in
from knowmore.images.storage import LONGEST as LONGEST
from knowmore.images.storage import Cache, feature_table
from knowmore.images.storage import digest as digest
from knowmore.images.storage import unlike as unlike
from knowmore.images.whole import LBP, PHOG, ColourHistogram, RegionCovariance

__all__ = [
    "LBP",
    "PHOG",
    "Cache",
    "ColourHistogram",
    "DenseSIFT",
    "Descriptors",
    "Embedding",
    "Extraction",
    "ForestCodebook",
    "KMeansCodebook",
    "Listing",
    "Picture",
    "RegionCovariance",
    "SelfSimilarity",
    "SpatialPyramid",
    "Words",
    "extract",
    "feature_table",
    "image_folder",
    "learn_codebook",
    "listing",
    "steps_of",
    "user_folder",
]


def __getattr__(name: str) -> Any:
    if name == "DenseSURF":
        raise ImportError("DenseSURF serves experiments alone: it is in papers.descriptors now.")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
