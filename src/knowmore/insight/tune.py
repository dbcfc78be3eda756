"""Which parameters fit: kernel, noise and the weights of summed kernels, by gradient."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from numbers import Real
from types import MappingProxyType
from typing import Any, NamedTuple, final

import numpy as np
from sklearn.base import is_classifier

from knowmore.answers import Answer
from knowmore.arguments import whole_number
from knowmore.arrays import Array
from knowmore.edits import Id
from knowmore.errors import InvalidInput, InvalidType, KnowmoreWarning, NotPositiveDefinite
from knowmore.examples import Examples
from knowmore.insight.affine import has_offset, with_amplitude, with_offset
from knowmore.insight.asking import TUNABLE, asked, generator
from knowmore.insight.climb import NOTHING, RETURN, Climb, at_bounds, climb, returned
from knowmore.insight.loss import model_loss
from knowmore.insight.objectives import Objective, Score, objective_of
from knowmore.insight.search import Bounds, Place, Slope, Space, remedy
from knowmore.models import GP, LSSVM


@final
@dataclass(frozen=True, eq=False, repr=False)
class Tuned(Answer):
    """What `tune` found: a new estimator, fitted with better parameters to the examples held then.

    before, after : the values of the objective, larger is better
    loss_before, loss_after : by leave-one-out, the share of examples that are not recognised; of a
        regressor the mean squared error, in units of the variance of its targets if they are
        normalised. What was found is never worse than what was there.
    held_back : whether the objective led to where that would be worse
    at_bounds : the names of the parameters that went to a bound
    changes : the name of each parameter that changed, its value before and after; an offset that
        the kernel did not have was zero, an amplitude one
    held : the serial and the label of each example then, by its id; no features
    targets : the number of values that the objective sums over, one for each example and column
    grouped : whether groups were left out, and not single examples
    """

    estimator: Any
    before: float
    after: float
    loss_before: float
    loss_after: float
    held_back: bool
    at_bounds: tuple[str, ...]
    changes: tuple[tuple[str, float, float], ...]
    objective: Objective
    held: dict[Id, tuple[int, Any]]
    targets: int
    grouped: bool

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
    groups: Any = None,
    affine: bool = True,
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

    What is found is never worse than the model by leave-one-out, whatever the objective: if that
    leads to where more examples are not recognised, or squared errors are larger, the best place on
    the way that is not worse is taken, and a `KnowmoreWarning` says so. Another one says which
    parameters ended at a bound. What goes there for less than a thousandth per target goes back.

    Parameters
    ----------
    model : a fitted GPClassifier, GPRegressor or LSSVMClassifier
    objective : "loo", the log density of each target by all other examples; "marginal_likelihood",
        for Gaussian processes; or a function of targets (n, M), leave-one-out means (n, M) and
        variances (n,) that returns a value, larger is better, and its derivatives by the means and
        by the variances. Values that a regressor normalises are normalised here.
    groups : a name for each example in the order of `ids_`; whole groups are left out then
    affine : search among amplitude * kernel + offset, as far as the kernel has none of them itself;
        an offset not where there is a bias
    noise_bounds : the least and the largest noise, or "fixed"; the noise of a least-squares SVM is
        1 / C
    restarts : further searches from random places within the bounds; the best of all counts
    subset : search with so many examples, drawn at random; all only judge what was found
    random_state : the seed of restarts and subset

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from knowmore import GPRegressor
    >>> X = np.linspace(0, 6, 20)[:, None]
    >>> y = 50 + np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=20)
    >>> tune(GPRegressor(RBF(1.0), noise=0.1).fit(X, y))
    Tuned: objective from -0.668703 to 16.129
                     parameter  before    after
    kernel__k1__constant_value       1     3.11
      kernel__k2__length_scale       1    2.504
                         noise     0.1  0.00849
    """
    frozen: GP | LSSVM = asked(model, TUNABLE)
    groups = model.model_groups(groups)
    goal = objective_of(objective)
    space = Space(frozen.covariance.kernel, frozen.covariance.noise, _bounds(noise_bounds))
    bias = isinstance(frozen, LSSVM) and frozen.bias
    restarts, rng = whole_number("restarts", restarts, 0), generator(random_state)
    n = len(frozen.examples)
    # A bias follows from no fewer than one example that is not left out.
    size = n if subset is None else min(whole_number("subset", subset, 1 + bias), n)
    (space if space.names else _widened(space, frozen.targets.T, affine, bias)).check()
    # It may have no such objective, or no bias with an example left out.
    here = _Standing.of(model, goal, groups)
    rows = _drawn(groups, n, size, bias, rng)
    slope = Slope.of(
        space,
        goal,
        frozen.examples.X[rows],
        frozen.targets.T[rows],
        weights=frozen.covariance.weights[rows],
        bias=bias,
        classes=is_classifier(model),
        dtype=frozen.covariance.factor.dtype,
        groups=None if groups is None else groups[rows],
    )
    held_back = False
    # What is worse for a part need not be so for all: these have the last word.
    for limited in (False, True) if size < n else (True,):
        found = _search(slope, affine, restarts, rng, limited)
        there = _moved(model, found, goal, groups)
        held_back |= found.held_back or there.loss > here.loss
        if there.is_better(here, frozen.targets.T.size):
            break
    else:
        found, there = _Found(space, space), here._replace(estimator=None)
    return _answer(model, found, here, there, held_back, goal, groups)


class _Standing(NamedTuple):
    """An estimator, its value of the objective, and its loss by leave-one-out."""

    estimator: Any
    value: float
    loss: float

    @classmethod
    def of(cls, estimator: Any, goal: Objective, groups: Array | None) -> _Standing:
        """As it is."""
        value = goal.value(estimator.model_, groups)
        loss = model_loss(estimator.model_, groups, classes=is_classifier(estimator))
        return cls(estimator, value, loss)

    def is_better(self, other: _Standing, targets: int) -> bool:
        """By the objective, and not worse by leave-one-out."""
        nothing = NOTHING * max(abs(other.value), targets)
        return self.value - other.value > nothing and self.loss <= other.loss


class _Found(NamedTuple):
    """Where a search began and ended: one and the same if nothing was to be gained."""

    start: Space
    end: Space
    offset: bool = False
    held_back: bool = False
    at_bounds: tuple[str, ...] = ()

    @property
    def changes(self) -> Iterator[tuple[str, float, float]]:
        """Name, value before and after; an offset that was not there was zero."""
        if self.start is self.end:
            return
        names = self.end.names
        added = sum(name != "noise" for name in names) - 1 if self.offset else None
        for i, (was, now) in enumerate(zip(self.start.values, self.end.values, strict=True)):
            if i == added or was != now:
                yield names[i], 0.0 if i == added else float(was), float(now)


def _moved(model: Any, found: _Found, goal: Objective, groups: Array | None) -> _Standing:
    """The model with the parameters found; of no value if they are the old ones, or lead nowhere.

    What has a covariance matrix with some examples may have none with all.
    """
    if found.start is not found.end:
        level, _, noise = _level(model, found.end.noise)
        try:
            words = {"kernel": found.end.kernel, level: noise}
            return _Standing.of(model.refitted(model.model_.examples, **words), goal, groups)
        except NotPositiveDefinite:
            pass
    return _Standing(None, -np.inf, 0.0)


def _answer(
    model: Any,
    found: _Found,
    here: _Standing,
    there: _Standing,
    held_back: bool,
    goal: Objective,
    groups: Array | None,
) -> Tuned:
    frozen = model.model_
    level, was, now = _level(model, found.end.noise)
    estimator = there.estimator
    if estimator is None:
        words = {"kernel": frozen.covariance.kernel, level: was}
        estimator = model.refitted(frozen.examples, **words)
    changes = tuple(
        (level, was, now) if name == "noise" else (name, old, new)
        for name, old, new in found.changes
    )
    bounds = tuple(level if name == "noise" else name for name in found.at_bounds)
    tuned = Tuned(
        estimator=estimator,
        before=here.value,
        after=there.value,
        loss_before=here.loss,
        loss_after=there.loss,
        held_back=held_back,
        at_bounds=bounds,
        changes=changes,
        objective=goal,
        held=_by_id(frozen.examples),
        targets=frozen.targets.T.size,
        grouped=groups is not None,
    )
    _tell(tuned, is_classifier(model))
    return tuned


def _tell(tuned: Tuned, classes: bool) -> None:
    """Warn of what is not as might be expected."""
    if tuned.held_back:
        loss = tuned.loss_before
        worse = (
            f"more than {loss:.1%} of the examples are not recognised by the others"
            if classes
            else f"the mean squared error by leave-one-out is above {loss:.4g}"
        )
        warnings.warn(
            f"The objective leads to where {worse}, as it was before: tune() did not go there. The "
            f"kernel may not suit the data: try another one, another objective, or restarts.",
            KnowmoreWarning,
            stacklevel=4,
        )
    for name in tuned.at_bounds:
        warnings.warn(
            f"{name} ended at {tuned.changed[name][1]:.6g}, which is a bound of the search: what "
            f"is best may be beyond it. {remedy(name)}",
            KnowmoreWarning,
            stacklevel=4,
        )


def due(
    tuned: Tuned,
    model: Any = None,
    *,
    every: int | None = None,
    worse: float | None = None,
    groups: Any = None,
) -> bool:
    """Is it time to tune again? Asked of a living model, `tuned.estimator` if none is given.

    After `every` edits: an example that was added, removed, replaced or relabelled is one, however
    often. Or when the objective, per example and target column, is `worse` by more than that; if
    groups were left out in tuning, they are now, too: `groups` names those of the examples held.

    >>> from knowmore import GPRegressor
    >>> X = np.linspace(0, 6, 20)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=20)
    >>> tuned = tune(GPRegressor().fit(X, y))
    >>> due(tuned, every=2), due(tuned, every=2, worse=0.5)
    (False, False)
    >>> ids = tuned.estimator.add([[3.0], [4.0]], [-9.0, 9.0])
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
    model = tuned.estimator if model is None else model
    frozen: GP | LSSVM = asked(model, TUNABLE)
    if every is not None and _edits(tuned.held, _by_id(frozen.examples)) >= every:
        return True
    if worse is None:
        return False
    if tuned.grouped != (groups is not None):
        raise InvalidInput(
            f"Groups were {'left out' if tuned.grouped else 'not left out'} in tuning: worse= "
            f"compares with that. {'Give' if tuned.grouped else 'Do not give'} groups, one for "
            f"each example in the order of ids_."
        )
    groups = model.model_groups(groups)
    now = tuned.objective.value(frozen, groups) / frozen.targets.T.size
    return bool(tuned.after / tuned.targets - now > max(worse, NOTHING))


def _widened(space: Space, T: Array, affine: bool, bias: bool) -> Space:
    """With an amplitude and an offset, if these are to be sought and there are none."""
    if not affine:
        return space
    kernel = with_amplitude(space.kernel)
    return replace(space, kernel=kernel if bias else with_offset(kernel, T))


def _search(
    slope: Slope, affine: bool, restarts: int, rng: np.random.Generator, limited: bool
) -> _Found:
    """The best parameters; if limited, of those by which leave-one-out is not worse."""
    start, bare, size = slope.start(), slope.space, slope.T.size
    limit = start.loss if limited else np.inf
    wide = slope.of_space(_widened(bare, slope.T, affine, slope.bias))
    if restarts == 0 and len(wide.space.names) == len(bare.names) and slope.is_flat(start):
        return _Found(bare, bare)
    places = [wide.space.theta, *(wide.space.random(rng) for _ in range(restarts))]
    best = reduce(Climb.further, (climb(wide, place, limit) for place in places))
    gained, nothing = best.place.value - start.value, NOTHING * max(abs(start.value), size)
    held_back = best.top - max(best.place.value, start.value) > RETURN * size
    if gained <= nothing:
        return _Found(bare, bare, held_back=held_back)
    offset = affine and not slope.bias and not has_offset(bare.kernel)
    place = best.place
    if offset:
        wide, place, offset = _if_needed(slope, wide, place, limit)
    place = returned(wide, place, wide.space.theta, limit)
    end, moved = wide.space.at(place.theta), place.theta != wide.space.theta
    outside = zip(end.names, at_bounds(wide, place.theta) & moved, strict=True)
    names = tuple(name for name, out in outside if out)
    return _Found(wide.space, end, offset, held_back, names)


def _if_needed(slope: Slope, wide: Slope, place: Place, limit: float) -> tuple[Slope, Place, bool]:
    """Without the offset that was added, if that costs less than a thousandth per target."""
    narrow = slope.of_space(_widened(slope.space, slope.T, affine=True, bias=True))
    # It is the last of the kernel's parameters; the noise comes after them.
    last = len(place.theta) - 1 - (slope.space.noise_bounds != "fixed")
    without = narrow(np.delete(place.theta, last))
    if without.value < place.value - RETURN * slope.T.size or without.loss > limit:
        return wide, place, True
    return narrow, climb(narrow, without.theta, limit).place, False


def _drawn(groups: Array | None, n: int, size: int, bias: bool, rng: np.random.Generator) -> Array:
    """So many of n rows; of two groups at least, if there are as many and there is a bias."""
    if size == n:
        return np.arange(n)
    rows = np.sort(rng.choice(n, size, replace=False))
    if bias and groups is not None and (groups[rows] == groups[rows[0]]).all():
        rows[-1] = rng.choice(np.flatnonzero(groups != groups[rows[0]]))
    return np.sort(rows)


def _level(estimator: Any, noise: float) -> tuple[str, float, float]:
    """The noise as the estimator's own parameter, its name, before and at this noise.

    A least-squares SVM calls 1 / noise C; one that it was given is not rounded there and back.
    """
    model: GP | LSSVM = estimator.model_
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
