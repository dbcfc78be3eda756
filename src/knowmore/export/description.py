"""A fitted model as plain data: all that it takes to predict, and nothing else.

Its kernel is a tree of few kinds of nodes, which ONNX and JavaScript both know.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from sklearn.gaussian_process import kernels as sk
from sklearn.pipeline import Pipeline

from knowmore._base import Array, Frozen, is_count, is_missing
from knowmore.errors import InvalidInput, InvalidType
from knowmore.estimators import (
    GPClassifier,
    GPRegressor,
    LinearGPClassifier,
    LinearGPRegressor,
    LivingPipeline,
    LSSVMClassifier,
    names_in,
)
from knowmore.export.encoded import Encoded
from knowmore.export.stages import Field, Input, Stage, distinct, stages
from knowmore.kernels import (
    AnyKernel,
    ChiSquared,
    ExponentialIntersection,
    HistogramIntersection,
)
from knowmore.models import KernelModel, LinearModel, expansion
from knowmore.tables import Encoding, TableEncoder

# exp(-z) is zero from here on, times any power of z.
VANISHED = 1e4
# The orders of a Matern kernel that are an exponential times a polynomial.
_MATERN = {0.5: "matern-1/2", 1.5: "matern-3/2", 2.5: "matern-5/2", np.inf: "rbf"}

_WITH_VARIANCE = (GPClassifier, GPRegressor, LinearGPClassifier, LinearGPRegressor)
_KINDS = (*_WITH_VARIANCE, LSSVMClassifier)


# -- kernels -------------------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class Node:
    """A kernel k(x, y), made of `parts`.

    kind and numbers :
        "constant", (c,): c
        "white", (c,): c for a row with itself, 0 for two rows
        "dot", (c,): x'y + c
        "intersection", (): sum_i min(x_i, y_i)
        "chi-squared", (g,): exp(-g sum_i (x_i - y_i)^2 / (x_i + y_i)), 0 where both bins are empty
        "city-block", (g,): exp(-g sum_i |x_i - y_i|)
        "rbf", "matern-1/2", "matern-3/2", "matern-5/2", (l,) or (l_1, ..., l_d): the function of
        r = |(x - y) / l|
        "sum" and "product", (): of all parts
    """

    kind: str
    numbers: tuple[float, ...] = ()
    parts: tuple[Node, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The tree as values for JSON."""
        parts = [part.to_dict() for part in self.parts]
        return {"kind": self.kind, "numbers": [*self.numbers], "parts": parts}


def tree(kernel: AnyKernel) -> Node:
    """The kernel as a tree; raises InvalidInput if it has other parts.

    >>> tree(2.0 * sk.RBF(3.0)).to_dict()["parts"][1]
    {'kind': 'rbf', 'numbers': [3.0], 'parts': []}
    """
    # By the exact type: a subclass may compute something else.
    make = _MAKERS.get(type(kernel))
    node = None if make is None else make(kernel)
    if node is None:
        raise InvalidInput(
            f"The kernel {kernel!r} cannot be exported. Those that can are RBF, Matern with "
            f"nu=0.5, 1.5 or 2.5, DotProduct, ConstantKernel, WhiteKernel, HistogramIntersection, "
            f"ExponentialIntersection, ChiSquared, and sums and products of these. Fit with one of "
            f"them to export the model."
        )
    return node


def _stationary(kernel: Any) -> Node | None:
    kind = _MATERN.get(float(kernel.nu) if type(kernel) is sk.Matern else np.inf)
    scales = np.atleast_1d(np.squeeze(np.asarray(kernel.length_scale, dtype=float)))
    return None if kind is None else Node(kind, tuple(scales.tolist()))


def _composite(kind: str) -> Callable[[Any], Node]:
    return lambda kernel: Node(kind, (), (tree(kernel.k1), tree(kernel.k2)))


_MAKERS: dict[type, Callable[[Any], Node | None]] = {
    sk.RBF: _stationary,
    sk.Matern: _stationary,
    sk.DotProduct: lambda kernel: Node("dot", (float(kernel.sigma_0) ** 2,)),
    sk.ConstantKernel: lambda kernel: Node("constant", (float(kernel.constant_value),)),
    sk.WhiteKernel: lambda kernel: Node("white", (float(kernel.noise_level),)),
    HistogramIntersection: lambda kernel: Node("intersection"),
    ChiSquared: lambda kernel: Node("chi-squared", (float(kernel.gamma),)),
    ExponentialIntersection: lambda kernel: Node("city-block", (float(kernel.gamma),)),
    sk.Sum: _composite("sum"),
    sk.Product: _composite("product"),
}


# -- models --------------------------------------------------------------------------------------


def is_stored(model: Any) -> bool:
    """Whether this is a model in a file, which has notes. To read examples may take long."""
    return hasattr(type(model), "notes")


@final
@dataclass(frozen=True, eq=False)
class Description(Frozen):
    """A model of d features with M columns of scores. For a row x, after the stages `before`:

        k = kappa(x, X), (n,)              or, if `kernel` is None, k = x - X[0], (d,)
        scores = k'A + b, (M,)
        q = |R k|^2
        variance = (max(kappa(x, x) - q, 0) + noise) squares,    or (q + noise) squares, (M,)

    A classifier predicts the class of the largest score, the first if several have it. Its
    probabilities are p_c ~ exp(scores_c / (temperature sqrt(1 + variance))), scaled to sum to one.
    Without a variance it is zero in this formula.

    kind : the name of the estimator
    columns : names of what the file takes: of the features, (d,), if nothing is before the model
    before : what turns that into the features, one stage after the other
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
    before: tuple[Stage, ...]
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

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What a graph of it takes."""
        if self.before:
            return self.before[0].inputs(self.columns)
        return (Input("X", "float64", (len(self.columns),)),)

    @property
    def fields(self) -> tuple[Field, ...]:
        """What a form asks for in each column."""
        plain = (Field(),) * len(self.columns)
        decisive = (stage.fields(self.columns) for stage in self.before if not stage.by_column)
        return next(decisive, plain)

    @property
    def start(self) -> list[Any]:
        """What a form begins with: the example nearest to the mean; None where it is blank.

        The mean itself may be unlike all examples. A linear model holds none, and has its mean.
        """
        spread = self.X.std(axis=0)
        away = (self.X - self.X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        row = self.X[(away**2).sum(axis=1).argmin()]
        for stage in reversed(self.before):
            row = stage.back(row)
        return [None if is_missing(one) else one for one in row.tolist()]


def describe(estimator: Any, *, variance: bool = True) -> Description:
    """The arrays by which a fitted estimator predicts.

    estimator : GPClassifier, GPRegressor, LSSVMClassifier, LinearGPClassifier or LinearGPRegressor,
        a Pipeline that ends in one of these, or what `knowmore.open` returns if it holds one
    variance : whether to describe the variance, if it has one

    >>> describe(GPClassifier().fit([[0.0], [1.0]], ["a", "b"])).kernel
    Node(kind='matern-1/2', numbers=(2.0,), parts=())
    """
    earlier, own = exportable(estimator)
    model = own.frozen_model()
    before = tuple(stage for step in earlier for stage in _stages(step))
    columns = (before[0].names if before else None) or column_names(estimator)
    with_variance = variance and type(own) in _WITH_VARIANCE
    parts = _of_kernel_model(model, with_variance) if model.has_gram else _of_linear_model(model)
    classes, temperature = (model.names, own.temperature_) if model.classes else (None, 1.0)
    found = Description(type(own).__name__, columns, before, classes, *(*parts, temperature))
    return found if with_variance else replace(found, R=None)


def exportable(estimator: Any) -> tuple[list[Any], Any]:
    """The steps before an estimator, and the estimator; raises InvalidType if it is another kind.

    estimator : perhaps at the end of a pipeline, or in a store
    """
    own = estimator.estimator if is_stored(estimator) else _pipeline(estimator)
    earlier: list[Any] = []
    if isinstance(own, Pipeline):
        earlier, own = [step for _, step in own.steps[:-1]], own[-1]
    elif is_stored(estimator) and estimator.table is not None:
        earlier = [estimator.table]
    # By the exact type: a subclass may predict in another way.
    if type(own) in _KINDS:
        return earlier, own
    where = "" if own is estimator else f" at the end of a {type(estimator).__name__}"
    raise InvalidType(
        f"{type(own).__name__}{where} cannot be exported as a formula. Those that can are "
        f"GPClassifier, GPRegressor, LSSVMClassifier, LinearGPClassifier and LinearGPRegressor, "
        f"fitted, alone or at the end of a Pipeline."
    )


def _stages(step: Any) -> tuple[Stage, ...]:
    if isinstance(step, TableEncoder):
        step = step.encoding_
    return (Encoded(step),) if isinstance(step, Encoding) else stages(step)


def _pipeline(estimator: Any) -> Any:
    return estimator.pipeline if isinstance(estimator, LivingPipeline) else estimator


def check_size(estimator: Any, what: str, most: int, *, variance: bool = True) -> None:
    """Raise InvalidInput if the numbers of a kernel model take more than so many bytes.

    what : the kind of file, to begin a sentence with
    variance : whether it has its variance
    """
    _, own = exportable(estimator)
    model = own.frozen_model()
    if not model.has_gram:
        return
    n, d = model.examples.X.shape
    triangle = n**2 if variance and type(own) in _WITH_VARIANCE else 0
    if (size := 8 * (n * (d + len(model.names)) + triangle)) > most:
        raise InvalidInput(
            f"{what} holds at most {most / 1e9:.1f} GB of numbers, but this model of {n:,} "
            f"examples has {size / 1e9:.1f} GB, {8 * triangle / 1e9:.1f} GB of them for its "
            f"variance. Export a model of fewer examples, or a LinearGPClassifier or "
            f"LinearGPRegressor, whose size does not depend on them."
        )


def _of_kernel_model(model: KernelModel, with_variance: bool) -> tuple[Any, ...]:
    """The fields of a description from `flat` to `squares`."""
    covariance, units = model.covariance, model.targets.units
    (A, b), squares = expansion(model), np.ones(1 if model.classes else len(model.names))
    if units is not None:
        A, b, squares = A * units.scale, b * units.scale + units.mean, units.scale**2
    flat, kernel, X = model.examples.labels.ndim == 1, tree(covariance.kernel), covariance.X
    R = covariance.half_solve(np.eye(len(X))) if with_variance else None
    return flat, kernel, X, A, b, R, float(covariance.noise), squares


def _of_linear_model(model: LinearModel) -> tuple[Any, ...]:
    """As `_of_kernel_model`."""
    m, R = model.moments, np.sqrt(model.noise) * model.root.T
    noise = float(model.noise * (1 + model.intercept / m.weight))
    squares = np.ones(1) if model.classes else model.scale**2
    return model.flat, None, m.means[0][None], model.weights, m.means[1], R, noise, squares


def column_names(model: Any) -> tuple[str, ...]:
    """A name for each feature of an estimator, pipeline or store, all different; by default x0, x1.

    An estimator knows those of the table it was fitted to, a file those that its rows came with.
    """
    estimator, names = _pipeline(model), None
    if isinstance(estimator, Pipeline):
        steps = (step for _, step in estimator.steps)
        estimator = next(step for step in steps if step not in (None, "passthrough"))
        names = getattr(estimator, "feature_names_in_", None)
    if is_stored(model):
        estimator, names = model.estimator, model.notes.get("columns")
    names = names_in(estimator) if names is None else tuple(names)
    if names is None or is_count(names):
        return tuple(f"x{j}" for j in range(estimator.n_features_in_))
    return tuple(distinct([str(name) for name in names]))
