"""The scikit-learn faces: thin mutable shells around frozen models."""

from knowmore.estimators.gaussian_process import GPClassifier, GPRegressor

__all__ = ["GPClassifier", "GPRegressor"]
