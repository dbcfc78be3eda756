"""Inputs to Gram blocks; knows neither factor nor label."""

from knowmore.kernels.alike import difference
from knowmore.kernels.blocks import AnyKernel, corner, cross, diagonal
from knowmore.kernels.columns import On, beneath, column_weights, on
from knowmore.kernels.distances import squared_distances
from knowmore.kernels.histograms import (
    AdditiveChiSquared,
    ChiSquared,
    ExponentialIntersection,
    HistogramIntersection,
)
from knowmore.kernels.median import enough, median_rbf
from knowmore.kernels.positivity import is_positive
from knowmore.kernels.task import Task

__all__ = [
    "AdditiveChiSquared",
    "AnyKernel",
    "ChiSquared",
    "ExponentialIntersection",
    "HistogramIntersection",
    "On",
    "Task",
    "beneath",
    "column_weights",
    "corner",
    "cross",
    "diagonal",
    "difference",
    "enough",
    "is_positive",
    "median_rbf",
    "on",
    "squared_distances",
]
