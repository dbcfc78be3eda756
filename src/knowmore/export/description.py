"""A fitted model as plain data: all that it takes to predict, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol, TypeGuard, final

import numpy as np
from numpy.polynomial import chebyshev
from scipy.special import erfcx

from knowmore._base import Array, Frozen, is_count
from knowmore.errors import InvalidInput, InvalidType
from knowmore.estimators import (
    GPClassifier,
    GPRegressor,
    LinearGPClassifier,
    LinearGPRegressor,
    LSSVMClassifier,
    names_in,
)
from knowmore.examples import Examples
from knowmore.export.kernels import Node, tree
from knowmore.models import KernelModel, LinearModel

# erfcx is smooth in y = (x - c) / (x + c); with this c, so many terms give 14 digits.
SERIES_CENTRE, _TERMS = 3.75, 21

_WITH_VARIANCE = (GPClassifier, GPRegressor, LinearGPClassifier, LinearGPRegressor)
_KINDS = (*_WITH_VARIANCE, LSSVMClassifier)


class StoreLike(Protocol):
    """A model in a file: what `knowmore.open` returns."""

    @property
    def estimator(self) -> Any:
        """The model as an estimator in memory."""

    @property
    def examples(self) -> Examples:
        """The examples of the file."""

    @property
    def notes(self) -> dict[str, Any]:
        """Notes of the commands, such as the names of columns."""


def is_stored(model: Any) -> TypeGuard[StoreLike]:
    """Whether this is a model in a file. Its type is asked: to read examples may take long."""
    parts = ("estimator", "examples", "notes")
    return all(isinstance(getattr(type(model), part, None), property) for part in parts)


@final
@dataclass(frozen=True, eq=False)
class Description(Frozen):
    """A model of d features with M columns of scores. For a row x:

        k = kappa(x, X), (n,)              or, if `kernel` is None, k = x - X[0], (d,)
        scores = k'A + b, (M,)
        q = |R k|^2
        variance = (max(kappa(x, x) - q, 0) + noise) squares,    or (q + noise) squares, (M,)

    A classifier predicts the class of the largest score, the first if several have it. Its
    probabilities are p_c ~ Phi(scores_c / s)^(1 / temperature), scaled to sum to one, with s the
    square root of the variance (of one if there is none), at least sqrt(eps) times the largest
    |score| plus the root of the smallest number.

    kind : the name of the estimator
    columns : names of the features, (d,)
    classes : (M,), or None for a regressor
    flat : whether a target is a number, not a row of M of them
    kernel, X (n, d), A (n, M), b (M,), noise : as above
    R : (n, n), triangular, or None if the estimator has no variance
    squares : (M,) for a regressor: the squares of the targets' units; (1,) for a classifier, whose
        classes share the variance
    temperature : that of a classifier's probabilities
    """

    kind: str
    columns: tuple[str, ...]
    classes: Array | None
    flat: bool
    kernel: Node | None
    X: Array
    A: Array
    b: Array
    R: Array | None
    noise: float
    squares: Array
    temperature: float


def describe(estimator: Any) -> Description:
    """The arrays by which a fitted estimator predicts.

    estimator : GPClassifier, GPRegressor, LSSVMClassifier, LinearGPClassifier or LinearGPRegressor,
        or what `knowmore.open` returns if it holds one of these

    >>> describe(GPClassifier().fit([[0.0], [1.0]], ["a", "b"])).kernel
    Node(kind='rbf', numbers=(1.0,), parts=())
    """
    own = _exportable(estimator)
    columns = column_names(estimator)
    described = _of_kernel_model if own.frozen_model().has_gram else _of_linear_model
    return described(own, columns)


def _exportable(estimator: Any) -> Any:
    """The estimator, or the estimator of a store; raises InvalidType if it is of another kind."""
    estimator = estimator.estimator if is_stored(estimator) else estimator
    # By the exact type: a subclass may predict in another way.
    if type(estimator) in _KINDS:
        return estimator
    raise InvalidType(
        f"{type(estimator).__name__} cannot be exported as a formula. Those that can are "
        f"GPClassifier, GPRegressor, LSSVMClassifier, LinearGPClassifier and LinearGPRegressor, "
        f"fitted and outside of any pipeline."
    )


def check_size(estimator: Any, what: str, most: int) -> None:
    """Raise InvalidInput if the numbers of a kernel model take more than so many bytes.

    what : the kind of file, to begin a sentence with
    """
    estimator = _exportable(estimator)
    model = estimator.frozen_model()
    if not model.has_gram:
        return
    n, d = model.examples.X.shape
    triangle = n**2 if type(estimator) in _WITH_VARIANCE else 0
    if (size := 8 * (n * (d + len(model.names)) + triangle)) > most:
        raise InvalidInput(
            f"{what} holds at most {most / 1e9:.1f} GB of numbers, but this model of {n:,} "
            f"examples has {size / 1e9:.1f} GB, {8 * triangle / 1e9:.1f} GB of them for its "
            f"variance. Export a model of fewer examples, or a LinearGPClassifier or "
            f"LinearGPRegressor, whose size does not depend on them."
        )


def _of_kernel_model(estimator: Any, columns: tuple[str, ...]) -> Description:
    model: KernelModel = estimator.frozen_model()
    covariance, units = model.covariance, model.targets.units
    is_regressor, M = not model.classes, len(model.names)
    (A, b), squares = model.expansion, np.ones(M if is_regressor else 1)
    if units is not None:
        A, b, squares = A * units.scale, b * units.scale + units.mean, units.scale**2
    n = len(covariance.X)
    return Description(
        kind=type(estimator).__name__,
        columns=columns,
        classes=None if is_regressor else model.names,
        flat=model.examples.labels.ndim == 1,
        kernel=tree(covariance.kernel),
        X=covariance.X,
        A=A,
        b=b,
        R=covariance.half_solve(np.eye(n)) if type(estimator) in _WITH_VARIANCE else None,
        noise=float(covariance.noise),
        squares=squares,
        temperature=1.0 if is_regressor else estimator.temperature_,
    )


def _of_linear_model(estimator: Any, columns: tuple[str, ...]) -> Description:
    model: LinearModel = estimator.frozen_model()
    is_regressor, m = not model.classes, model.moments
    return Description(
        kind=type(estimator).__name__,
        columns=columns,
        classes=None if is_regressor else model.names,
        flat=model.flat,
        kernel=None,
        X=m.means[0][None],
        A=model.weights,
        b=m.means[1],
        R=np.sqrt(model.noise) * model.root.T,
        noise=float(model.noise * (1 + model.intercept / m.weight)),
        squares=model.scale**2 if is_regressor else np.ones(1),
        temperature=1.0 if is_regressor else estimator.temperature_,
    )


def column_names(model: Any) -> tuple[str, ...]:
    """A name for each feature of an estimator or store, all different; x0, x1, ... if it has none.

    An estimator knows those of the table it was fitted to, a file those that its rows came with.
    """
    estimator, names = model, None
    if is_stored(model):
        estimator = model.estimator
        names = model.notes.get("columns")
    names = names_in(estimator) if names is None else names
    if is_count(names if names is None else tuple(names)):
        return tuple(f"x{j}" for j in range(estimator.n_features_in_))
    return tuple(distinct([str(name) for name in names or ()]))


def distinct(names: list[str], taken: tuple[str, ...] = ()) -> list[str]:
    """The names, each with as many underscores behind it as it takes to be different.

    >>> distinct(["id", "a", "a"], ("id",))
    ['id_', 'a', 'a_']
    """
    found: list[str] = []
    used = {*taken}
    for name in names:
        while name in used:
            name += "_"
        used.add(name)
        found.append(name)
    return found


@cache
def erfcx_series() -> tuple[float, ...]:
    """Chebyshev coefficients of (1 + 2 x) exp(x^2) erfc(x), x >= 0, in y = (x - c) / (x + c).

    Neither ONNX in double precision nor JavaScript has an error function. Shepherd and Laframboise
    (1981) found the form.

    >>> y = (2.0 - SERIES_CENTRE) / (2.0 + SERIES_CENTRE)
    >>> float(chebyshev.chebval(y, erfcx_series()) / 5), float(erfcx(2.0))
    (0.25539567631050, 0.25539567631050)
    """

    y = chebyshev.chebpts1(_TERMS)
    x = SERIES_CENTRE * (1 + y) / (1 - y)
    T = chebyshev.chebvander(y, _TERMS - 1)
    # At these points the polynomials are orthogonal.
    sums = T.T @ ((1 + 2 * x) * erfcx(x)) / _TERMS
    return tuple((sums * np.where(np.arange(_TERMS), 2, 1)).tolist())
