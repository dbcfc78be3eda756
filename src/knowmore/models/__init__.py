"""Closed forms on top of a Factor or an Eigenspace: immutable values that answer questions."""

from knowmore.models.class_means import ClassMeans
from knowmore.models.covariance import Covariance
from knowmore.models.discriminant import Discriminant
from knowmore.models.following import Following
from knowmore.models.kernel_model import KernelModel, Model
from knowmore.models.linear import LinearModel
from knowmore.models.loo import LeftOut
from knowmore.models.oneshot import OneShot, Ranking, Rule, Support
from knowmore.models.probabilities import class_probabilities
from knowmore.models.stream import Window, lagged
from knowmore.models.targets import Targets, normalised_values, one_vs_all, real_values
from knowmore.models.transfer import Transfer
from knowmore.models.weights import Weighting

__all__ = [
    "ClassMeans",
    "Covariance",
    "Discriminant",
    "Following",
    "KernelModel",
    "LeftOut",
    "LinearModel",
    "Model",
    "OneShot",
    "Ranking",
    "Rule",
    "Support",
    "Targets",
    "Transfer",
    "Weighting",
    "Window",
    "class_probabilities",
    "lagged",
    "normalised_values",
    "one_vs_all",
    "real_values",
]
