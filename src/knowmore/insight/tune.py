"""Which parameters fit: kernel, noise and the weights of summed kernels, by gradient.

The search starts at the parameters of the model, given or chosen; if these have too little noise,
it first looks for more. Kernel parameters marked "fixed" do not move. The weights of a sum such as
`ConstantKernel() * k + ConstantKernel() * l` are parameters like any other.

The objective has seen all targets, and its optimum may predict worse than the start, most of all
with a length scale for each column. So the search is tried on parts of the examples, and the others
judge it: see `trial`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, final

import numpy as np

from knowmore._base import Array, Id, TableAnswer, a_type, flag, number, progress, whole_number
from knowmore.errors import InvalidInput, InvalidType, NotPositiveDefinite, warn
from knowmore.examples import Examples
from knowmore.insight.asking import TUNABLE, asked, generator, is_gaussian, noise_parameter
from knowmore.insight.objectives import Objective, Score, model_loss, objective_of
from knowmore.insight.search import (
    NOTHING,
    Bounds,
    SearchResult,
    Slope,
    Space,
    is_indefinite,
    remedy,
    search,
)
from knowmore.insight.trial import PARTS, Gain, codes_of, losses, parts_of, together
from knowmore.models import KernelModel

# Larger numbers are likely a typing error: each restart is a search of its own.
_MOST_RESTARTS = 10_000
# Fewer examples, or groups, judge nothing.
_FEWEST = 8
# The least and largest noise that is looked for, unless it is given or the start is beyond.
_LEAST, _LARGEST = 1e-6, 1e3
# Advice for users who tune another kind of model.
_INSTEAD = {
    "linear": "It has no kernel to tune; noise='evidence' or noise='loo' chooses its noise.",
    "forest": "Tune a GPClassifier or GPRegressor of about 1,000 of its examples, and fit a forest "
    "with the kernel_ and noise_ that this finds.",
}


@final
@dataclass(frozen=True, eq=False, repr=False)
class Tuned(TableAnswer):
    """The answer of `tune`: a new estimator with better parameters, fitted to the same examples.

    before, after : the values of the objective, larger is better
    loss_before, loss_after : by leave-one-out, the share of examples that are not recognised; for a
        regressor the mean squared error, in units of the variance of its targets if they are
        normalised. It never grows.
    held_back : whether the objective led to where this loss is larger
    gain : what examples gained that the search had not seen; None if it came to no trial
    at_bounds : the names of the parameters that ended at a bound
    changes : the name of each parameter that changed, its value before and after; an offset that
        the kernel did not have was zero, an amplitude one
    held : the serial and the label of each example at that time, by its id; no features
    targets : the number of values that the objective sums over, one for each example and column
    grouped : whether groups were left out, and not single examples

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from knowmore import GPRegressor
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> y = 50 + np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=50)
    >>> tune(GPRegressor(RBF(0.2), noise=0.1).fit(X, y))
    Tuned: objective from -9.61172 to 36.2983
                     parameter  before    after
    kernel__k1__constant_value       1    0.809
      kernel__k2__length_scale     0.2    1.047
                         noise     0.1  0.01131
    """

    estimator: Any
    before: float
    after: float
    loss_before: float
    loss_after: float
    held_back: bool
    gain: Gain | None
    at_bounds: tuple[str, ...]
    changes: tuple[tuple[str, float, float], ...]
    objective: Objective
    held: dict[Id, tuple[int, Any]]
    targets: int
    grouped: bool

    # The noise is the last.
    _shown: ClassVar[tuple[int, int]] = 9, 1

    @property
    def changed(self) -> Mapping[str, tuple[float, float]]:
        """(before, after) of each parameter that changed, by its name."""
        return MappingProxyType({name: (old, new) for name, old, new in self.changes})

    def _columns(self) -> dict[str, Array]:
        names, before, after = zip(*self.changes, strict=True) if self.changes else ((), (), ())
        return {"parameter": np.array(names), "before": np.array(before), "after": np.array(after)}

    def _summary(self) -> str:
        if not self.changes:
            if self.held_back:
                return f"held back at {self.before:.6g}: what gains has a larger leave-one-out loss"
            if self.gain is not None:
                density, error, _ = self.gain
                return (
                    f"kept at {self.before:.6g}: examples that the search had not seen gain "
                    f"{density:.3g} ± {error:.2g}, which is not enough"
                )
            return f"nothing to gain at {self.before:.6g}"
        held_back = ", held back by the leave-one-out loss" if self.held_back else ""
        return f"objective from {self.before:.6g} to {self.after:.6g}{held_back}"


def tune(
    model: Any,
    objective: str | Score = "loo",
    *,
    groups: Any = None,
    affine: bool = True,
    noise_bounds: Bounds | None = None,
    restarts: int = 0,
    subset: int | None = None,
    random_state: int | None = 0,
) -> Tuned:
    """Better parameters for a fitted estimator, which does not change; by gradient.

    The search is in the logarithms of the parameters, within scikit-learn's bounds. Parameters for
    which the kernel is not positive definite on these examples are passed over. A kernel that is a
    plain function has none: only the noise is tuned. If nothing changes, `changed` is empty, and
    the estimator predicts as the model does.

    Promised is that parameters change only where that is better in two ways.

    1. By leave-one-out no fewer examples are recognised, and squared errors are no larger: the
       result is the best point on the path for which this holds.
    2. Examples that a search has not seen gain. The same search is made four times, each with three
       quarters of the examples, and the last quarter is predicted by all others, with equal rows
       among them and without. The log loss, or the log density of values, must be better by two
       standard errors, so that no single example decides; and errors must be no more, or no larger.

    New rows may still tell otherwise. Fewer than eight examples change nothing, nor does one class.
    The parts follow from the ids. With many parameters, such as a length scale for each column, few
    searches pass.

    A parameter that gains less than a thousandth per target at a bound comes back from it. A
    `KnowmoreWarning` says what was held back, or ended at a bound.

    Parameters
    ----------
    model : a fitted GPClassifier, GPRegressor or LSSVMClassifier
    objective : "loo", the log density of each target by all other examples; "marginal_likelihood",
        for Gaussian processes; or a function of targets (n, M), leave-one-out means (n, M) and
        variances (n,) that returns a value, larger is better, and its derivatives by the means and
        by the variances. Values that a regressor normalises are normalised here.
    groups : a name for each example in the order of `ids_`, to leave out whole groups
    affine : search among amplitude * kernel + offset, unless the kernel has these itself; there is
        no offset where there is a bias
    noise_bounds : the least and largest noise, or "fixed"; a least-squares SVM has the noise 1 / C.
        None is from 1e-6 to 1e3, or from where the model is
    restarts : further searches from random points within the bounds; the best of all counts
    subset : search once with this many examples, drawn at random; all others are those that the
        search has not seen
    random_state : the seed of restarts and subset
    """
    frozen: KernelModel = asked(model, TUNABLE, **_INSTEAD)
    goal, groups = objective_of(objective, is_gaussian(model)), model.model_groups(groups)
    affine, rng = flag("affine", affine), generator(random_state)
    restarts = whole_number("restarts", restarts, 0, _MOST_RESTARTS)
    space = _space(frozen, noise_bounds, affine)
    rows = _drawn(frozen, groups, subset, rng)
    slope = _slope(frozen, goal, groups, space, rows)
    whole = len(rows) == len(frozen.examples)
    # A setting that is worse for a subset need not be worse for all: all examples decide.
    limits = (True,) if whole else (False, True)
    searches = (search(slope, affine, restarts, rng, limited) for limited in limits)

    def again(seen: Array) -> Any:
        """The estimator by a search with these examples; None if that changes nothing."""
        part = replace(_slope(frozen, goal, groups, space, seen), tried=slope.tried)
        with suppress(InvalidInput):
            return _tried(model, frozen.examples, search(part, affine, restarts, rng, True))
        return None

    def gain(estimator: Any) -> Gain:
        """What is gained where the search, or one like it, has not been."""
        return _gain(model, estimator, again, groups, None if whole else rows)

    return _judged(model, frozen, slope, groups, searches, gain)


def _gain(
    model: Any,
    estimator: Any,
    again: Callable[[Array], Any],
    groups: Array | None,
    rows: Array | None,
) -> Gain:
    """The gain of examples that were not among the rows (k,) of the search.

    If these were all, rows None, searches `again` with a part of the examples stand in for it.
    """
    frozen: KernelModel = asked(model, TUNABLE)
    kept, gaussian = together(frozen, groups), is_gaussian(model)
    # New rows may be twins of examples, or not.
    ways = [groups] if kept is groups else [groups, kept]
    codes = codes_of(frozen, kept)
    judges = np.ones(len(codes), dtype=bool)
    if rows is not None:
        judges[np.isin(codes, codes[rows])] = False
    if len(np.unique(codes[judges])) < _FEWEST:
        return Gain()

    def judged(one: KernelModel) -> Array:
        return np.stack([losses(one, way, gaussian=gaussian) for way in ways])

    start = judged(frozen)
    end, part = start.copy(), parts_of(frozen, codes)
    if rows is not None:
        end = judged(estimator.model_)
    else:
        for p in range(PARTS):
            unseen = part == p
            tried = again(np.flatnonzero(~unseen))
            if tried is not None:
                end[:, :, unseen] = judged(tried.model_)[:, :, unseen]
    weights = frozen.covariance.weights[judges]
    gains = [Gain.of(gain, weights, codes[judges]) for gain in (start - end)[:, :, judges]]
    return min(gains, key=lambda gain: (gain.is_sure, gain.density))


def _space(frozen: KernelModel, noise_bounds: Any, affine: bool) -> Space:
    """The parameters of a model, if there is something to tune."""
    noise = frozen.covariance.noise
    space = Space(frozen.covariance.kernel, noise, _checked(noise_bounds, noise))
    wide = affine and not space.names
    (space.affine(frozen.targets.T, offset=not frozen.bias) if wide else space).check()
    return space


def _slope(
    frozen: KernelModel, goal: Objective, groups: Array | None, space: Space, rows: Array
) -> Slope:
    """The objective of these examples (k,) as a function of the parameters."""
    return Slope(
        space,
        goal,
        frozen.examples.X[rows],
        frozen.targets.T[rows],
        weights=frozen.covariance.weights[rows],
        bias=frozen.bias,
        classes=frozen.targets.classes,
        dtype=frozen.covariance.factor.dtype,
        groups=None if groups is None else groups[rows],
    )


def _judged(
    model: Any,
    frozen: KernelModel,
    slope: Slope,
    groups: Array | None,
    searches: Iterable[SearchResult],
    gain_of: Callable[[Any], Gain],
) -> Tuned:
    """The first result of these searches that is better by all examples; warns if there is none."""
    goal, space, examples = slope.objective, slope.space, frozen.examples
    before, loss_before = goal.value(frozen, groups), model_loss(frozen, groups)
    held_back, nothing = False, NOTHING * max(abs(before), frozen.targets.T.size)
    gain = None
    for found in searches:
        held_back |= found.held_back
        estimator = _tried(model, examples, found)
        if estimator is None:
            continue
        after = goal.value(estimator.model_, groups)
        loss_after = model_loss(estimator.model_, groups)
        held_back |= loss_after > loss_before
        if after - before > nothing and loss_after <= loss_before:
            gain = gain_of(estimator)
            if gain.is_sure:
                break
    else:
        found, after, loss_after = SearchResult(space), before, loss_before
        estimator = _refit(model, examples, space)
    names = {"noise": noise_parameter(model, found.space.noise)}
    tuned = Tuned(
        estimator=estimator,
        before=before,
        after=after,
        loss_before=loss_before,
        loss_after=loss_after,
        held_back=held_back,
        gain=gain,
        at_bounds=tuple(names.get(name, (name,))[0] for name in found.at_bounds),
        changes=tuple(names.get(change[0], change) for change in found.changes),
        objective=goal,
        held=_by_id(examples),
        targets=frozen.targets.T.size,
        grouped=groups is not None,
    )
    _warn(tuned, not found.changes and is_indefinite(space.kernel, examples.X))
    return tuned


def _tried(model: Any, examples: Examples, found: SearchResult) -> Any:
    """The estimator with the parameters found; None if nothing changed, or K~ is indefinite."""
    if not found.changes or is_indefinite(found.space.kernel, examples.X):
        return None
    try:
        return _refit(model, examples, found.space)
    except NotPositiveDefinite:
        # K~ is positive definite for the subset, but not for all examples.
        return None


def _refit(model: Any, examples: Examples, space: Space) -> Any:
    """The estimator with these parameters."""
    name, _, value = noise_parameter(model, space.noise)
    with progress(_unheard):
        return model.refitted(examples, **{"kernel": space.kernel, name: value})


def _unheard(done: float) -> None:
    """A fit within the search is no progress of its own."""


def _warn(tuned: Tuned, indefinite: bool) -> None:
    """Warn if the search was held back, ended at a bound, or found no positive definite kernel."""
    for name in tuned.at_bounds:
        warn(
            f"{name} ended at {tuned.changed[name][1]:.6g}, which is a bound of the search: the "
            f"best value may be beyond it. {remedy(name)}"
        )
    if tuned.held_back:
        warn(
            f"The objective leads to where the leave-one-out loss exceeds {tuned.loss_before:.4g}: "
            f"tune() did not go there. Try another kernel, another objective, or restarts."
        )
    if indefinite:
        warn(
            f"The kernel {tuned.estimator.kernel_!r} is not positive definite: for these examples "
            f"its matrix has an eigenvalue below zero, so predictions may be far off. tune() found "
            f"no better parameters for which it is, and changed nothing. Use another kernel such "
            f"as RBF, or On(slice(i, i + 1), kernel) for a kernel of one column; or start from "
            f"other parameters, or try restarts."
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

    It is after `every` edits: each example that was added, removed, replaced or relabelled counts
    once. Or when the objective, per example and target column, is `worse` by more than that; if
    groups were left out in tuning, `groups` names those of the examples held now.

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
        raise InvalidType(f"due() takes what tune() returned, but got {a_type(tuned)}.")
    if every is None and worse is None:
        raise InvalidInput("Give every=r, a number of edits, or worse=x, a loss per target.")
    model = tuned.estimator if model is None else model
    frozen: KernelModel = asked(model, TUNABLE, **_INSTEAD)
    if every is not None:
        then, now = tuned.held, _by_id(frozen.examples)
        edits = sum(then.get(one) != now.get(one) for one in then.keys() | now.keys())
        if edits >= whole_number("every", every, 1):
            return True
    if worse is None:
        return False
    number("worse", worse, "[0, inf]", "It is a loss per target.")
    if tuned.grouped != (groups is not None):
        left_out, give = ("", "Give") if tuned.grouped else ("not ", "Do not give")
        raise InvalidInput(f"Groups were {left_out}left out in tuning. {give} groups.")
    value = tuned.objective.value(frozen, model.model_groups(groups))
    loss = tuned.after / tuned.targets - value / frozen.targets.T.size
    return bool(loss > max(worse, NOTHING))


def _drawn(
    frozen: KernelModel, groups: Array | None, subset: int | None, rng: np.random.Generator
) -> Array:
    """The rows to search with; with a bias, from two groups at least if there are two."""
    n, bias = len(frozen.examples), frozen.bias
    # A bias needs at least one example that is not left out.
    size = n if subset is None else min(whole_number("subset", subset, 1 + bias), n)
    if size == n:
        return np.arange(n)
    rows = np.sort(rng.choice(n, size, replace=False))
    if bias and groups is not None and (groups[rows] == groups[rows[0]]).all():
        rows[-1] = rng.choice(np.flatnonzero(groups != groups[rows[0]]))
    return np.sort(rows)


def _by_id(some: Examples) -> dict[Id, tuple[int, Any]]:
    """The serial and the label of each: an edit of an example changes one of them."""
    rows = zip(some.names, some.serials.tolist(), some.labels.tolist(), strict=True)
    return {name: (serial, label) for name, serial, label in rows}


def _checked(noise_bounds: Any, noise: float) -> Bounds:
    """The bounds as two floats, or "fixed"; None are the usual ones, wide enough for this noise."""
    if noise_bounds is None:
        return (min(_LEAST, noise) or _LEAST), max(_LARGEST, noise)
    if isinstance(noise_bounds, str) and noise_bounds == "fixed":
        return "fixed"
    try:
        low, high = map(float, noise_bounds)
    except (TypeError, ValueError):
        low, high = np.nan, np.nan
    if not 0 < low <= high:
        raise InvalidInput(f"noise_bounds={noise_bounds!r}. Give 0 < low <= high, or 'fixed'.")
    return low, high
