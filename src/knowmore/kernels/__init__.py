"""From inputs to Gram blocks; knows neither factors nor labels."""

from knowmore.kernels.columns import On, Task, column_weights
from knowmore.kernels.default import (
    SETTLED,
    are_histograms,
    default_kernel,
    median_chi_squared,
    median_rbf,
    rows_of_median,
    rows_to_settle_width,
    spreads,
)
from knowmore.kernels.distances import euclidean, squared_distances
from knowmore.kernels.histograms import (
    AdditiveChiSquared,
    ChiSquared,
    ExponentialIntersection,
    HistogramIntersection,
)
from knowmore.kernels.rules import (
    AnyKernel,
    Gram,
    check_parameters,
    corner,
    cross,
    describe_difference,
    diagonal,
    is_positive,
    prepared,
)
from knowmore.kernels.standard import slopes

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
