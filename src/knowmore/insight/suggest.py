"""What to label next: active learning with a Gaussian process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from knowmore.answers import Answer
from knowmore.arguments import choice, whole_number
from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.insight.asking import asked, generator, inputs, of_classes
from knowmore.insight.pool import Pool
from knowmore.models import GP, class_probabilities


@final
@dataclass(frozen=True, eq=False, repr=False)
class Suggestion(Answer):
    """Which rows of a pool to label, the most wanted first.

    indices : (n,), rows of the pool
    values : (n,), what the criterion said when each was picked, larger is better
    reasons : a few words on each
    criterion : what they were picked by
    """

    indices: Array
    values: Array
    reasons: tuple[str, ...]
    criterion: str

    def _columns(self) -> dict[str, Array]:
        reasons = np.array(self.reasons, dtype=object)
        return {"index": self.indices, "value": self.values, "reason": reasons}

    def _summary(self) -> str:
        return f"{len(self.indices)} to label by {self.criterion}"


def suggest(
    model: Any,
    X_pool: Any,
    n: int = 1,
    criterion: str = "margin",
    *,
    random_state: int | None = None,
) -> Suggestion:
    """The n rows of X_pool (u, d) whose labels would teach a fitted Gaussian process most.

    They are picked one after the other. Each pick counts as held from then on, under the label
    that is most plausible now: the variances around it fall, the means move towards that label,
    and the more a row is like it the less it is wanted next. One with the very same features waits
    until no others are left. No label is asked for. A first pick is by the criterion alone.

    Parameters
    ----------
    criterion : mu^(c) are the scores, sigma_*^2 the variance with the noise; t^(c') is 1 for the
        class in question and -1 for the others, and means are over c'
        "variance": sigma_*^2, the least known.
        "uncertainty": min_c |mu^(c)| / sigma_*, the smallest first (Kapoor et al.).
        "margin": how far the two best classes are apart, (mu_(1) - mu_(2)) / sigma_*, the smallest
        first.
        "weight": mean |t - mu| / sigma_*^2, the coefficient that the example would get under its
        most plausible label (Freytag et al.).
        "impact": the same, times 1 + |K~^-1 k_*|_1: the change of all coefficients.
        "emoc": the expected change of the scores in the pool (Freytag, Rodner and Denzler): mean
        |t - mu| expected under the present probabilities, over sigma_*^2, times the mean absolute
        covariance with the pool. It takes the memory of a matrix (u, u), at first of two.
        "random": no reason.
    random_state : a seed for "random"

    Examples
    --------
    >>> from knowmore import GPClassifier
    >>> clf = GPClassifier().fit([[0.0], [1.0], [5.0], [6.0]], ["low", "low", "high", "high"])
    >>> suggest(clf, [[0.5], [3.1], [9.0], [9.1], [-3.0]], n=2, criterion="variance")
    Suggestion: 2 to label by variance
    index   value                                         reason
        3  0.4912   unlike what is known: standard deviation 0.7
        4  0.4672  unlike what is known: standard deviation 0.68
    >>> suggest(clf, [[0.5], [3.1], [5.5]]).reasons
    ("'high' or 'low': scores 0.041 and -0.041, standard deviation 0.41",)
    """
    gp: GP = asked(model, GP)
    X = inputs(model, X_pool, "X_pool")
    askable(model, gp, criterion)
    found = list(picks(gp, X, how_many(n, len(X)), criterion, random_state))
    return Suggestion(
        np.array([pick.row for pick in found]),
        np.array([pick.values[pick.row] for pick in found]),
        tuple(pick.reason for pick in found),
        criterion,
    )


class Pick(NamedTuple):
    """A row of the pool, and the values (u,) that it was the best of.

    NaN where picked before; and for twins of these, while there are others.
    """

    row: int
    values: Array
    reason: str


def picks(gp: GP, X: Array, n: int, criterion: str, random_state: int | None) -> Iterator[Pick]:
    """The greedy choice, one row of X (u, d) after the other."""
    if criterion == "random":
        values = generator(random_state).random(len(X))
        for row in np.argsort(-values)[:n].tolist():
            yield Pick(row, values.copy(), "drawn at random")
            values[row] = np.nan
        return
    value, reason = _VALUES[criterion]
    pool, twins = Pool.of(gp, X), np.zeros(len(X), dtype=bool)
    for count in range(n):
        out = pool.picked if twins.all() else twins
        values = np.where(out, np.nan, value(pool))
        row = int(np.nanargmax(values))
        yield Pick(row, values, reason(pool, row))
        twins |= (X[row] == X).all(axis=1)
        if count < n - 1:
            pool = pool.pick(row, None if criterion == "variance" else _plausible(pool, row))


def _plausible(pool: Pool, row: int) -> Array:
    """The target of the class that a row is most likely of, (M,)."""
    mean = pool.mean[row]
    return np.where(np.arange(len(mean)) == mean.argmax(), 1.0, -1.0)


def askable(model: Any, gp: GP, criterion: str) -> None:
    """Complain if the criterion is not known or not for such a model."""
    choice("criterion", criterion, (*_VALUES, "random"))
    if criterion not in ("variance", "random"):
        of_classes(model, f"criterion={criterion!r}", "criterion='variance' or 'random'")
    if criterion == "margin" and len(gp.targets.names) < 2:
        raise InvalidInput(
            f"criterion='margin' is about two classes, but the model knows one: "
            f"{gp.targets.names[0].item()!r}. Ask for criterion='uncertainty' or 'variance'."
        )


def how_many(n: Any, rows: int, name: str = "n") -> int:
    """n as a number of rows that a pool of so many has."""
    wanted = whole_number(name, n, 1)
    if wanted > rows:
        raise InvalidInput(
            f"{name}={n}, but the pool has {rows} rows. Ask for fewer, or give more rows."
        )
    return wanted


# -- the criteria: values (u,) of all rows, larger is better -------------------------------------


def _variance(pool: Pool) -> Array:
    """In the units of the values; of several targets, the mean."""
    return pool.variance * pool.candidates.model.targets.square


def _uncertainty(pool: Pool) -> Array:
    """Noise is counted once: sigma_*^2 has it already."""
    return np.asarray(-abs(pool.mean).min(axis=1) / np.sqrt(pool.variance))


def _margin(pool: Pool) -> Array:
    best = np.partition(pool.mean, -2, axis=1)[:, -2:]
    return np.asarray((best[:, 0] - best[:, 1]) / np.sqrt(pool.variance))


def _surprise(pool: Pool) -> Array:
    """mean_c' |t^(c') - mu^(c')| for each class c that the label may be, (u, M)."""
    apart, near = abs(1 + pool.mean), abs(1 - pool.mean)
    return np.asarray((apart.sum(axis=1, keepdims=True) - apart + near) / apart.shape[1])


def _weight(pool: Pool) -> Array:
    """|delta alpha| of the row itself: (t - mu) / sigma_*^2."""
    likely = pool.mean.argmax(axis=1)
    return np.asarray(_surprise(pool)[np.arange(len(likely)), likely] * pool.precision)


def _impact(pool: Pool) -> Array:
    """|delta alpha|_1 = |t - mu| / sigma_*^2 |[-K~^-1 k_*; 1]|_1."""
    return np.asarray(_weight(pool) * (1 + pool.influence()))


def _emoc(pool: Pool) -> Array:
    """delta f(x_j) = (t - mu) / sigma_*^2 c(x_*, x_j), c the posterior covariance."""
    P = class_probabilities(pool.mean, pool.variance)
    expected = np.einsum("ij,ij->i", P, _surprise(pool))
    return np.asarray(expected * pool.precision * pool.reach())


# -- the reasons ---------------------------------------------------------------------------------


def _deviation(pool: Pool, row: int) -> str:
    return f"standard deviation {np.sqrt(_variance(pool)[row]):.2g}"


def _name(pool: Pool, c: int) -> str:
    return repr(pool.candidates.model.targets.names[c].item())


def _unlike(pool: Pool, row: int) -> str:
    return f"unlike what is known: {_deviation(pool, row)}"


def _in_doubt(pool: Pool, row: int) -> str:
    mean = pool.mean[row]
    c = int(abs(mean).argmin())
    return f"{_name(pool, c)} or not: score {mean[c]:.2g}, {_deviation(pool, row)}"


def _between(pool: Pool, row: int) -> str:
    mean = pool.mean[row]
    second, first = np.argsort(mean, kind="stable")[-2:]
    scores = f"scores {mean[first]:.2g} and {mean[second]:.2g}"
    names = f"{_name(pool, first)} or {_name(pool, second)}"
    return f"{names}: {scores}, {_deviation(pool, row)}"


def _as_likely(pool: Pool, row: int) -> str:
    mean = pool.mean[row]
    c = int(mean.argmax())
    score = f"score {mean[c]:.2g}"
    return f"would count much even as {_name(pool, c)}: {score}, {_deviation(pool, row)}"


def _as_expected(pool: Pool, row: int) -> str:
    p = class_probabilities(pool.mean[[row]], pool.variance[[row]])[0]
    c = int(p.argmax())
    likely = f"{_name(pool, c)} at {p[c]:.0%}"
    return f"its label is felt in the pool: {likely}, {_deviation(pool, row)}"


_Value = Callable[[Pool], Array]
_Reason = Callable[[Pool, int], str]

_VALUES: dict[str, tuple[_Value, _Reason]] = {
    "variance": (_variance, _unlike),
    "uncertainty": (_uncertainty, _in_doubt),
    "margin": (_margin, _between),
    "weight": (_weight, _as_likely),
    "impact": (_impact, _as_likely),
    "emoc": (_emoc, _as_expected),
}
