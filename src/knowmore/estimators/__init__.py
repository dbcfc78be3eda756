"""The scikit-learn faces: thin mutable shells around frozen models."""

from knowmore.estimators.forest import ForestGPClassifier, ForestGPRegressor
from knowmore.estimators.gaussian_process import GPClassifier, GPRegressor
from knowmore.estimators.lda import EigenspaceLDA
from knowmore.estimators.least_squares import LSSVMClassifier, NPlusOneClassifier, Scores
from knowmore.estimators.linear import LinearGPClassifier, LinearGPRegressor
from knowmore.estimators.maps import IntersectionMap, Landmarks
from knowmore.estimators.monitor import SubspaceMonitor
from knowmore.estimators.one_shot import OneShotClassifier
from knowmore.estimators.pca import EigenspacePCA
from knowmore.estimators.pipeline import living

__all__ = [
    "EigenspaceLDA",
    "EigenspacePCA",
    "ForestGPClassifier",
    "ForestGPRegressor",
    "GPClassifier",
    "GPRegressor",
    "IntersectionMap",
    "LSSVMClassifier",
    "Landmarks",
    "LinearGPClassifier",
    "LinearGPRegressor",
    "NPlusOneClassifier",
    "OneShotClassifier",
    "Scores",
    "SubspaceMonitor",
    "living",
]
