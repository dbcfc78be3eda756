"""Which parameters fit: kernel, noise and the weights of summed kernels, by gradient."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any, final

import numpy as np
import numpy.typing as npt

from knowmore.answers import Answer
from knowmore.arguments import whole_number
from knowmore.edits import Id
from knowmore.errors import InvalidInput, InvalidType
from knowmore.examples import Examples
from knowmore.insight.asking import asked, generator
from knowmore.insight.objectives import Objective, Score, objective_of
from knowmore.insight.search import Bounds, Slope, Space
from knowmore.models import GP, LSSVM

Array = npt.NDArray[Any]

# A gain or loss per target below this is none: parameters that hardly matter are left alone.
_NOTHING = 1e-6


@final
@dataclass(frozen=True, eq=False, repr=False)
class Tuned(Answer):
    """What `tune` found: a new estimator, fitted with better parameters to the examples held then.

    before, after : the values of the objective, larger is better
    changes : the name of each parameter that changed, its value before and after
    held : the serial and the label of each example then, by its id; no features
    targets : the number of values that the objective sums over, one for each example and column
    """

    estimator: Any
    before: float
    after: float
    changes: tuple[tuple[str, float, float], ...]
    objective: Objective
    held: dict[Id, tuple[int, Any]]
    targets: int

    @property
    def changed(self) -> Mapping[str, tuple[float, float]]:
        """(before, after) of each parameter that changed, by its name."""
        return MappingProxyType({name: (old, new) for name, old, new in self.changes})

    def _columns(self) -> dict[str, Array]:
        names, before, after = zip(*self.changes, strict=True) if self.changes else ((), (), ())
        return {"parameter": np.array(names), "before": np.array(before), "after": np.array(after)}

    def _summary(self) -> str:
        if not self.changes:
            return f"nothing is to be gained at {self.before:.6g}"
        return f"objective from {self.before:.6g} to {self.after:.6g}"


def tune(
    model: Any,
    objective: str | Score = "loo",
    *,
    noise_bounds: Bounds = (1e-6, 1e3),
    restarts: int = 0,
    subset: int | None = None,
    random_state: int | None = 0,
) -> Tuned:
    """Better parameters for a fitted estimator, which is left as it is.

    The search is by gradient, in the logarithms of the parameters, from where the model stands; if
    there is too little noise there, first to more of it.
    Where nothing is to be gained it ends at once, and `changed` is empty. Kernel parameters keep
    to scikit-learn's bounds; those it calls fixed stay. The weights of a sum such as
    `ConstantKernel() * k + ConstantKernel() * l` are parameters like others. A kernel that is a
    plain function has none: only the noise is tuned.

    Parameters
    ----------
    model : a fitted GPClassifier, GPRegressor or LSSVMClassifier
    objective : "loo", the log density of each target by all other examples; "marginal_likelihood",
        for Gaussian processes; or a function of targets (n, M), leave-one-out means (n, M) and
        variances (n,) that returns a value, larger is better, and its derivatives by the means and
        by the variances
    noise_bounds : the least and the largest noise, or "fixed"; the noise of a least-squares SVM is
        1 / C
    restarts : further searches from random places within the bounds; the best of all counts
    subset : search with so many examples, drawn at random, and end with all from what was found
    random_state : the seed of restarts and subset

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from knowmore import GPRegressor
    >>> X = np.linspace(0, 6, 20)[:, None]
    >>> tune(GPRegressor(RBF(1.0), noise=0.1).fit(X, np.sin(X[:, 0])), noise_bounds=(1e-3, 1))
    Tuned: objective from 0.389203 to 47.0514
               parameter  before  after
    kernel__length_scale       1  2.562
                   noise     0.1  0.001
    """
    frozen: GP | LSSVM = asked(model, GP, LSSVM)
    goal, bias = objective_of(objective), isinstance(frozen, LSSVM) and frozen.bias
    covariance, X, T = frozen.covariance, frozen.examples.X, frozen.targets.T
    space = Space(covariance.kernel, covariance.noise, _bounds(noise_bounds))
    space.check()
    restarts = whole_number("restarts", restarts, 0)
    # A bias follows from no fewer than one example that is not left out.
    subset = len(X) if subset is None else whole_number("subset", subset, 1 + bias)
    if isinstance(frozen, LSSVM):
        # It may have no such objective, or no bias with an example left out.
        goal.value(frozen)
    weights, dtype = covariance.weights, covariance.factor.dtype
    slope = Slope.of(space, goal, X, T, weights=weights, bias=bias, dtype=dtype)
    rng = generator(random_state)
    (before, start), (after, theta) = _search(slope, X, restarts, subset, rng)
    there = space.at(theta)
    level, was, is_ = _level(model, frozen, there.noise)
    changes = [
        (level, was, is_) if name == "noise" else (name, float(old), float(new))
        for name, old, new, moved in zip(
            space.names, space.values, there.values, start != theta, strict=True
        )
        if moved
    ]
    estimator = model._refitted(frozen.examples, kernel=there.kernel, **{level: is_})
    held = _by_id(frozen.examples)
    return Tuned(estimator, before, after, tuple(changes), goal, held, T.size)


def due(
    tuned: Tuned, model: Any = None, *, every: int | None = None, worse: float | None = None
) -> bool:
    """Is it time to tune again? Asked of a living model, `tuned.estimator` if none is given.

    After `every` edits: an example that was added, removed, replaced or relabelled is one, however
    often. Or when the objective, per example and target column, is `worse` by more than that.

    >>> from knowmore import GPRegressor
    >>> tuned = tune(GPRegressor().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0]))
    >>> due(tuned, every=2), due(tuned, every=2, worse=0.5)
    (False, False)
    >>> ids = tuned.estimator.add([[3.0], [4.0]], [-3.0, 4.0])
    >>> due(tuned, every=2), due(tuned, worse=0.5)
    (True, True)
    """
    if not isinstance(tuned, Tuned):
        raise InvalidType(
            f"due() asks what tune() returned, but was given an object of type "
            f"{type(tuned).__name__}. Give that first, and the model second."
        )
    if every is None and worse is None:
        raise InvalidInput(
            "When is it due? Give every=r, a number of edits, or worse=x, a loss per target."
        )
    if every is not None:
        whole_number("every", every, 1)
    if worse is not None and not (isinstance(worse, Real) and worse >= 0):
        raise InvalidInput(f"worse={worse!r}. Give a loss per target that is not below zero.")
    frozen: GP | LSSVM = asked(tuned.estimator if model is None else model, GP, LSSVM)
    if every is not None and _edits(tuned.held, _by_id(frozen.examples)) >= every:
        return True
    if worse is None:
        return False
    now = tuned.objective.value(frozen) / frozen.targets.T.size
    return bool(tuned.after / tuned.targets - now > max(worse, _NOTHING))


def _search(
    slope: Slope, X: Array, restarts: int, subset: int, rng: np.random.Generator
) -> tuple[tuple[float, Array], tuple[float, Array]]:
    """The value at the start, and there; the best value found, and there."""
    start = slope.space.theta
    before, gradient = slope.start()
    if restarts == 0 and slope.is_flat(start, gradient):
        return (before, start), (before, start)
    starts = [start, *(slope.space.random(rng) for _ in range(restarts))]
    if subset < len(X):
        starts = [_suited(slope, X, starts, subset, rng)]
    after, theta = max((slope.climb(one) for one in starts), key=lambda end: end[0])
    if after - before <= _NOTHING * max(abs(before), slope.T.size):
        return (before, start), (before, start)
    return (before, start), (after, theta)


def _suited(
    slope: Slope, X: Array, starts: list[Array], subset: int, rng: np.random.Generator
) -> Array:
    """What a subset suggests, unless the first of `starts` suits the whole better."""
    rows = np.sort(rng.choice(len(X), subset, replace=False))
    part = slope.part(X, rows)
    _, found = max((part.climb(one) for one in starts), key=lambda end: end[0])
    return max(starts[0], found, key=lambda one: slope(one)[0])


def _level(estimator: Any, model: GP | LSSVM, noise: float) -> tuple[str, float, float]:
    """The noise as the estimator's own parameter, its name, before and at this noise.

    A least-squares SVM calls 1 / noise C; one that it was given is not rounded there and back.
    """
    if isinstance(model, GP):
        return "noise", model.covariance.noise, noise
    before = float(estimator.C) if isinstance(estimator.C, Real) else model.C
    return "C", before, before if noise == model.covariance.noise else 1 / noise


def _by_id(some: Examples) -> dict[Id, tuple[int, Any]]:
    rows = zip(some.names, some.serials.tolist(), some.labels.tolist(), strict=True)
    return {name: (serial, label) for name, serial, label in rows}


def _edits(then: dict[Id, tuple[int, Any]], now: dict[Id, tuple[int, Any]]) -> int:
    """How many examples were added, removed, replaced or relabelled."""
    return sum(then.get(one) != now.get(one) for one in then.keys() | now.keys())


def _bounds(noise_bounds: Any) -> Bounds:
    if isinstance(noise_bounds, str) and noise_bounds == "fixed":
        return "fixed"
    pair = np.asarray(noise_bounds, dtype=object)
    try:
        low, high = (float(one) for one in pair)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not 0 < low <= high:
        raise InvalidInput(
            f"noise_bounds={noise_bounds!r}. Give the least and the largest noise, both above "
            f'zero, or "fixed".'
        )
    return low, high
