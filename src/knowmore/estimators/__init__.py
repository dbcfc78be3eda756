"""The scikit-learn faces: thin mutable shells around frozen models."""

from importlib import import_module
from typing import Any

from knowmore.estimators.checks import check_meaning as check_meaning
from knowmore.estimators.checks import class_labels as class_labels
from knowmore.estimators.checks import declared_classes as declared_classes
from knowmore.estimators.checks import dense as dense
from knowmore.estimators.checks import group_names as group_names
from knowmore.estimators.checks import inputs as inputs
from knowmore.estimators.checks import memberships as memberships
from knowmore.estimators.checks import numbers as numbers
from knowmore.estimators.checks import table as table
from knowmore.estimators.forest import ForestEstimator as ForestEstimator
from knowmore.estimators.forest import ForestGPClassifier, ForestGPRegressor
from knowmore.estimators.forest import Note as Note
from knowmore.estimators.forest import Plot as Plot
from knowmore.estimators.gaussian_process import GPClassifier, GPRegressor, LSSVMClassifier
from knowmore.estimators.gaussian_process import LeastSquares as LeastSquares
from knowmore.estimators.linear import LinearGP as LinearGP
from knowmore.estimators.linear import LinearGPClassifier, LinearGPRegressor
from knowmore.estimators.linear import Survey as Survey
from knowmore.estimators.linear import grids_are_given as grids_are_given
from knowmore.estimators.linear import noise_setting as noise_setting
from knowmore.estimators.living import ChoosingEstimator as ChoosingEstimator
from knowmore.estimators.living import EditableClassifier as EditableClassifier
from knowmore.estimators.living import EditableEstimator as EditableEstimator
from knowmore.estimators.living import LivingEstimator as LivingEstimator
from knowmore.estimators.living import _for_all as _for_all
from knowmore.estimators.living import left_to_examples as left_to_examples
from knowmore.estimators.living import own_kernel as own_kernel
from knowmore.estimators.maps import IntersectionMap, Landmarks
from knowmore.estimators.maps import LandmarkMap as LandmarkMap
from knowmore.estimators.pipeline import LivingPipeline as LivingPipeline
from knowmore.estimators.pipeline import is_sampler as is_sampler
from knowmore.estimators.pipeline import living
from knowmore.estimators.shell import check_mergeable as check_mergeable
from knowmore.estimators.shell import declare as declare
from knowmore.estimators.shell import declared as declared
from knowmore.estimators.shell import declared_too as declared_too
from knowmore.estimators.shell import fit_copy as fit_copy
from knowmore.estimators.shell import fitted as fitted
from knowmore.estimators.shell import in_classes as in_classes
from knowmore.estimators.shell import joint_classes as joint_classes
from knowmore.estimators.shell import names_in as names_in
from knowmore.estimators.shell import note_names as note_names
from knowmore.estimators.shell import unnamed as unnamed
from knowmore.estimators.shell import update_fitted as update_fitted

__all__ = [
    "ForestGPClassifier",
    "ForestGPRegressor",
    "GPClassifier",
    "GPRegressor",
    "IntersectionMap",
    "LSSVMClassifier",
    "Landmarks",
    "LinearGPClassifier",
    "LinearGPRegressor",
    "living",
]

# Names that were here before; they stay importable from here.
_MOVED = {
    "EigenspaceLDA": "knowmore.subspaces",
    "EigenspacePCA": "knowmore.subspaces",
    "NPlusOneClassifier": "knowmore.transfer",
    "OneShotClassifier": "knowmore.transfer",
    "Scores": "knowmore.transfer",
    "SubspaceMonitor": "knowmore.subspaces",
}


def __getattr__(name: str) -> Any:
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MOVED[name]), name)
