"""Matrices that grow and shrink. NumPy and SciPy only; no word of machine learning."""

from knowmore.linalg.cholesky import Cholesky
from knowmore.linalg.eigenspace import Eigenspace
from knowmore.linalg.factor import Border, Factor
from knowmore.linalg.grid import Grid
from knowmore.linalg.inverse import Inverse
from knowmore.linalg.spectrum import Truncation
from knowmore.linalg.sums import Sums

__all__ = ["Border", "Cholesky", "Eigenspace", "Factor", "Grid", "Inverse", "Sums", "Truncation"]
