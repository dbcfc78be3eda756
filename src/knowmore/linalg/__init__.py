"""Matrices that grow and shrink. NumPy and SciPy only; no word of machine learning."""

from knowmore.linalg.cholesky import Cholesky
from knowmore.linalg.factor import Factor
from knowmore.linalg.inverse import Inverse

__all__ = ["Cholesky", "Factor", "Inverse"]
