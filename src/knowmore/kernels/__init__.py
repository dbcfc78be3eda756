"""From inputs to Gram blocks; knows neither factors nor labels."""

# `standard` holds the rules of scikit-learn's kernels; it is imported for them.
from knowmore.kernels import standard as standard
from knowmore.kernels.columns import On, Task, column_weights
from knowmore.kernels.default import default_kernel
from knowmore.kernels.distances import SETTLED as SETTLED
from knowmore.kernels.distances import median_rbf, squared_distances
from knowmore.kernels.distances import rows_of_median as rows_of_median
from knowmore.kernels.distances import rows_to_settle_width as rows_to_settle_width
from knowmore.kernels.histograms import (
    AdditiveChiSquared,
    ChiSquared,
    ExponentialIntersection,
    HistogramIntersection,
)
from knowmore.kernels.rules import AnyKernel, corner, cross, diagonal, is_positive
from knowmore.kernels.rules import Gram as Gram
from knowmore.kernels.rules import check_parameters as check_parameters
from knowmore.kernels.rules import describe_difference as describe_difference
from knowmore.kernels.rules import prepared as prepared

__all__ = [
    "AdditiveChiSquared",
    "AnyKernel",
    "ChiSquared",
    "ExponentialIntersection",
    "HistogramIntersection",
    "On",
    "Task",
    "column_weights",
    "corner",
    "cross",
    "default_kernel",
    "diagonal",
    "is_positive",
    "median_rbf",
    "squared_distances",
]
