"""Closed forms on top of a Factor or an Eigenspace: immutable values that answer questions."""

from knowmore.models.covariance import Covariance
from knowmore.models.discriminant import ClassMeans, Discriminant
from knowmore.models.gp import GP, LeftOut
from knowmore.models.targets import Targets, one_vs_all, real_values
from knowmore.models.window import Window, lagged

__all__ = [
    "GP",
    "ClassMeans",
    "Covariance",
    "Discriminant",
    "LeftOut",
    "Targets",
    "Window",
    "lagged",
    "one_vs_all",
    "real_values",
]
