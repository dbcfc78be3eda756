"""What a model says of examples that are held but do not count: those of weight zero.

The model does not know of them, so that each is a new row x to it. If examples g of the model are
left out with it then, with P = K~^-1, A = PT and q = (P k_x)_g, block inversion gives

    mean      mu_x - q' P_gg^-1 A_g
    variance  sigma_x^2 + q' P_gg^-1 q

at weight one: the noise of an example of weight zero has no bound. With a bias P and k_x are those
of the bordered matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import final

import numpy as np

from knowmore.arrays import Array
from knowmore.examples import Examples
from knowmore.kernels import cross
from knowmore.models.gp import GP, in_squares
from knowmore.models.loo import Verdicts, inverse_block
from knowmore.models.lssvm import LSSVM
from knowmore.models.model import Model
from knowmore.models.nplusone import NPlusOne
from knowmore.models.oneshot_model import OneShot
from knowmore.models.targets import Units


def left_out(model: Model, examples: Examples, groups: Array | None) -> Verdicts:
    """What is said of `examples` by those of them that the model counts.

    groups : (n,), those that are left out together; None: each by itself
    """
    if model.examples is examples:
        return model.verdicts(groups)
    counts = examples.weights > 0
    apart = None if groups is None else (groups[~counts], groups[counts])
    known = model.verdicts(None if groups is None else groups[counts])
    new = of_weightless(model, examples.X[~counts], apart)
    n = len(examples)
    whole = Verdicts(*(np.empty((n, *part.shape[1:]), dtype=part.dtype) for part in known))
    for rows, part in ((counts, known), (~counts, new)):
        for values, some in zip(whole, part, strict=True):
            values[rows] = some
    return whole


def of_weightless(model: Model, X: Array, groups: tuple[Array, Array] | None = None) -> Verdicts:
    """What the model's n examples say of rows X (m, d) that weigh nothing.

    groups : those of the rows, (m,), and of the examples, (n,), which leave their own rows alone
    """
    view, units = _view(model, X), model.targets.units
    mean, variance, near = view.mean.copy(), view.variance.copy(), view.k != 0
    if units is not None:
        means, scales = (np.tile(each, (len(X), 1)) for each in (units.mean, units.scale))
    if groups is not None:
        theirs, ours = groups
        rest = model.targets.rest(ours)
        for name in np.intersect1d(theirs, ours):
            g, rows = np.flatnonzero(ours == name), np.flatnonzero(theirs == name)
            Q = view.W[np.ix_(g, rows)]
            taken = np.linalg.solve(view.block(g), Q)
            mean[rows] -= taken.T @ view.A[g]
            variance[rows] += np.einsum("ij,ij->j", Q, taken)
            near[np.ix_(g, rows)] = False
            if units is not None and rest is not None:
                means[rows], scales[rows] = rest.mean[g[0]], rest.scale[g[0]]
    if units is not None:
        units = Units(means, scales)
        mean = units.mean + units.scale * model.targets.mixed(mean, units)
    return Verdicts(mean, in_squares(variance, units), ~near.any(axis=0))


@final
@dataclass(frozen=True, eq=False)
class _View:
    """What a model has to say of m rows, and what it says it by.

    mean (m, M), variance (m,), W = P k_x (n, m), A (n, M), and P_gg as a function of g. k has the
    kernel values of the rows and all that is held, the n examples first. Where targets have units,
    which are other ones without a group, mean and A are of the basis that they are mixed from.
    """

    mean: Array
    variance: Array
    k: Array
    W: Array
    A: Array
    block: Callable[[Array], Array]


def _view(model: Model, X: Array) -> _View:
    match model:
        case GP() if model.targets.units is not None:
            view = _of_machine(LSSVM(model, bias=False), X, model.mean(X))
            return replace(view, mean=view.k.T @ model.solved, A=model.solved)
        case GP():
            return _of_machine(LSSVM(model, bias=False), X, model.mean(X))
        case LSSVM():
            return _of_machine(model, X, model.mean(X))
        case NPlusOne():
            return _of_machine(model.shifted, X, model.mean(X))
        case OneShot():
            return _of_one_shot(model, X)
    raise NotImplementedError(f"what a {type(model).__name__} says of weightless examples")


def _of_machine(svm: LSSVM, X: Array, mean: Array) -> _View:
    covariance, border = svm.covariance, svm.border
    k, variance = covariance.cross(X), covariance.variance(X)
    W = covariance.factor.solve(k).astype(float)
    if border is not None:
        # What the bias adds: P [k; 1] = K~^-1 k + v (1 - v'k) / s.
        open_ = 1 - border.v @ k
        W += np.outer(border.v, open_ / border.s)
        variance = variance + open_**2 / border.s
    return _View(mean, variance, k, W, svm.coefficients, svm._inverse_block)


def _of_one_shot(model: OneShot, X: Array) -> _View:
    k = model.covariance.cross(X)
    W = model.target.factor.solve(k)
    if model.chosen is None:
        a, block = model.target.coefficients, partial(inverse_block, model.target.factor)
    else:
        one, rho = model.chosen
        pair, k_S = one.pair, rho * cross(model.covariance.kernel, one.support.X, X)
        a, block = pair.coefficients(rho), partial(pair.inverse_block, rho=rho)
        W, k = W + pair.explained(k, k_S, rho), np.vstack([k, k_S])
    return _View(model.mean(X), model.variance(X), k, W, np.outer(a, model.signs), block)
