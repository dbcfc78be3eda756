"""How far a model is from a fit of its examples from scratch, and how far rounding may lead.

Both have coefficients A with a residual R = T - K~A of their own, of norm at most e (|K~| |A| +
|T|), where e is the backward error. So A is off by at most |K~^-1| |R|, and a score by |k(x)| times
that. The norm |K~| is at most tr K~, and |K~^-1| at most max(w) / sigma^2, or the trace of K~^-1
where there is no noise; e itself must be a few roundings.
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np

from knowmore.arrays import norm
from knowmore.estimators.shell import unnamed
from knowmore.examples import Examples
from knowmore.models import KernelModel
from knowmore.models.forest import Forest
from knowmore.models.oneshot import OneShot

# Examples that both models are asked about.
_ASKED = 1000


@final
class Exactness(NamedTuple):
    """A model beside a fit from scratch.

    difference : the largest one between their scores
    tolerance : the largest that rounding can explain
    residual : the backward error of the model that is held
    bound : the largest that rounding can explain
    """

    difference: float
    tolerance: float
    residual: float
    bound: float

    @property
    def ok(self) -> bool:
        """Whether the two are the same model."""
        # Written so that NaN is not.
        return self.difference <= self.tolerance and self.residual <= self.bound


def compared(held: Any, fresh: Any, examples: Examples) -> Exactness:
    """An estimator beside another with the same examples, asked about some of these."""
    n = len(examples)
    rows = np.unique(np.linspace(0, n - 1, min(n, _ASKED)).astype(int))
    X, side = examples.X[rows], examples.side[rows]
    asked = (X, side) if side.shape[1] else unnamed(fresh).model_inputs(X)
    here, there = (np.asarray(one.model_.mean(*asked), dtype=float) for one in (held, fresh))
    same = here.shape == there.shape
    difference = float(abs(here - there).max(initial=0)) if same else np.inf
    residual, models = float(held.residual()), _parts(fresh.model_)
    bound = max(map(_bound, models))
    # A model that is wrong must not be its own excuse.
    error = min(residual, bound) + min(float(fresh.residual()), bound)
    rounding = 8 * np.finfo(float).eps * float(abs(there).max(initial=0))
    tolerance = rounding + max(_tolerance(model, error) for model in models)
    return Exactness(difference, tolerance, residual, bound)


def _parts(model: Any) -> list[Any]:
    """The models of kernels, or the linear one, that it consists of."""
    match model:
        case Forest():
            leaves = (leaf.current for tree in model.trees for leaf in tree.leaves())
            return [leaf for leaf in leaves if len(leaf.examples)]
        case OneShot():
            return [one.model for one in model.members]
    return [model]


def _bound(model: Any) -> float:
    """The backward error that rounding can explain."""
    if not isinstance(model, KernelModel):
        return float(4 * np.finfo(float).eps * (len(model.weights) + 10))
    factor, n = model.covariance.factor, len(model.examples)
    eps = float(np.finfo(factor.dtype).eps)
    if factor.traits.stable:
        # A border is eliminated after the solve: its sums to zero lose what the examples' noises
        # differ by.
        spread = float(model.covariance.diagonal.max()) * _inverse(model) if model.bias else 1.0
        return 4 * eps * (n + 10) * max(spread, 1.0)
    return 4 * eps * (float(model.covariance.diagonal.sum()) * _inverse(model) + n)


def _inverse(model: KernelModel) -> float:
    """A bound of |K~^-1|."""
    covariance = model.covariance
    if covariance.noise:
        return float(covariance.weights.max()) / covariance.noise
    return float(covariance.factor.inverse_diagonal().sum())


def _tolerance(model: Any, error: float) -> float:
    """How far scores may be apart, of two models whose backward errors have this sum."""
    if not isinstance(model, KernelModel):
        # Sums of a linear model are exact, and equal sums give equal scores.
        return 0.0
    n, diagonal, inverse = len(model.examples), model.covariance.diagonal, _inverse(model)
    trace, A = float(diagonal.sum()), norm(model.coefficients)
    R, offset = error * (trace * A + norm(model.targets.T - model.offsets)), 0.0
    if model.bias:
        # From K~ dA + 1 db' = R and 1'dA = s, where 1'K~^-1 1 is at least n / |K~|.
        offset = (np.sqrt(n) * inverse * R + error * np.sqrt(n) * A) * trace / n
        R += np.sqrt(n) * offset
    # The examples that are asked about are those held.
    k = np.sqrt(n) * float(diagonal.max())
    both = k * inverse * R + offset + 2 * n * np.finfo(float).eps * k * A
    units = model.targets.units
    return float(both if units is None else both * np.max(units.scale))
