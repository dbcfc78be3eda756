"""Eigenspaces that merge and split, and what is built on them: PCA, LDA and a monitor of streams.

Linear algebra (`eigenspace`, `scatter`, `spectrum`), frozen models (`discriminant`,
`class_means`) and scikit-learn estimators (`pca`, `lda`, `monitor`) are in one package.
"""

from knowmore.subspaces.class_means import ClassMeans
from knowmore.subspaces.class_means import Spread as Spread
from knowmore.subspaces.discriminant import Discriminant
from knowmore.subspaces.eigenspace import Eigenspace
from knowmore.subspaces.lda import EigenspaceLDA
from knowmore.subspaces.monitor import Measures as Measures
from knowmore.subspaces.monitor import Reference as Reference
from knowmore.subspaces.monitor import SubspaceMonitor, Window, lagged
from knowmore.subspaces.pca import EigenspacePCA
from knowmore.subspaces.scatter import Rounding as Rounding
from knowmore.subspaces.spectrum import Truncation

__all__ = [
    "ClassMeans",
    "Discriminant",
    "Eigenspace",
    "EigenspaceLDA",
    "EigenspacePCA",
    "SubspaceMonitor",
    "Truncation",
    "Window",
    "lagged",
]
