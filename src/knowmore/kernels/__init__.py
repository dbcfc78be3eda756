"""Inputs to Gram blocks; knows neither factor nor label."""

from knowmore.kernels.blocks import AnyKernel, corner, cross, diagonal, is_positive
from knowmore.kernels.columns import On, level_weights
from knowmore.kernels.distances import squared_distances
from knowmore.kernels.histograms import AdditiveChiSquared, ChiSquared, HistogramIntersection
from knowmore.kernels.median import median_rbf

__all__ = [
    "AdditiveChiSquared",
    "AnyKernel",
    "ChiSquared",
    "HistogramIntersection",
    "On",
    "corner",
    "cross",
    "diagonal",
    "is_positive",
    "level_weights",
    "median_rbf",
    "squared_distances",
]
