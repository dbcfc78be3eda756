"""Pairs of tasks from inputs and labels of -1 and 1."""

from __future__ import annotations

import numpy as np

from knowmore.examples import Examples
from knowmore.linalg import Cholesky
from knowmore.models import KernelModel, one_vs_all
from knowmore.transfer.pairs import Pair


def model_of(kernel, X, y, noise):
    """The model of one task by itself."""
    return KernelModel.of(kernel, noise, Examples.of(X, y), one_vs_all, Cholesky())


def pair_of(kernel, X_T, y, X_S, noise, y_S=None, rho=1.0):
    """A target and a support, which has no background unless it has labels of its own."""
    y_S = np.ones(len(X_S)) if y_S is None else y_S
    models = model_of(kernel, X_T, y, noise), model_of(kernel, X_S, y_S, noise)
    return Pair.of(*models, kernel(X_T, X_S), positive=-1, rho=rho)
