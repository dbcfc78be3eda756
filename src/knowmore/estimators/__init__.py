"""The scikit-learn faces: thin mutable shells around frozen models."""

from knowmore.estimators.forest import ForestGPClassifier, ForestGPRegressor
from knowmore.estimators.gaussian_process import GPClassifier, GPRegressor
from knowmore.estimators.lda import EigenspaceLDA
from knowmore.estimators.least_squares import LSSVMClassifier, NPlusOneClassifier, Scores
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
    "LSSVMClassifier",
    "NPlusOneClassifier",
    "OneShotClassifier",
    "Scores",
    "SubspaceMonitor",
    "living",
]
