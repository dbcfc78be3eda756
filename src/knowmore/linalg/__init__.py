"""Matrices that grow and shrink. NumPy and SciPy only; no word of machine learning."""

from knowmore.linalg.border import Border
from knowmore.linalg.cholesky import Cholesky
from knowmore.linalg.eigenspace import Eigenspace
from knowmore.linalg.factor import Factor, grown, lost_pivots
from knowmore.linalg.inverse import Inverse
from knowmore.linalg.products import eigh, inverse, product, stacked, svd
from knowmore.linalg.spectrum import Truncation

__all__ = [
    "Border",
    "Cholesky",
    "Eigenspace",
    "Factor",
    "Inverse",
    "Truncation",
    "eigh",
    "grown",
    "inverse",
    "lost_pivots",
    "product",
    "stacked",
    "svd",
]
