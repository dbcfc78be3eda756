"""The best rho of a pair of tasks, and the best of several support tasks.

No transfer, rho = 0, is always a candidate. Of equal values the one with the larger leave-one-out
log predictive probability wins, then the one with the smaller rho: the less transfer the better.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np

from knowmore.arrays import Array
from knowmore.models.oneshot import Pair
from knowmore.models.oneshot_criteria import CRITERIA, Criterion

Name = TypeVar("Name", bound=Hashable)

# Each the nearest number to its two digits, as people read them.
RHOS = np.arange(101) / 100

# Evaluations after the first two until the bracket is narrower than a thousandth.
_STEPS = 15
_GOLDEN = (5**0.5 - 1) / 2


class Best(NamedTuple):
    """A rho, the criterion's value there, and its log predictive probability."""

    rho: float
    value: float
    lpp: float


Search = Callable[[Pair, Criterion], Best]


def grid(pair: Pair, criterion: Criterion, rhos: Array = RHOS) -> Best:
    """The best of all `rhos` (g,), which ascend from 0."""
    values = criterion(pair, rhos)
    equal = np.flatnonzero(values == values.max())
    lpps = CRITERIA["lpp"](pair, rhos[equal])
    first = int(lpps.argmax())
    best = int(equal[first])
    return Best(float(rhos[best]), float(values[best]), float(lpps[first]))


def golden(pair: Pair, criterion: Criterion) -> Best:
    """Golden section search on [0, 1] (Kiefer 1953), which Rodner and Denzler use; and rho = 0.

    It takes the criterion to have one peak. Average precision is a step function of rho with any
    number of them, so that this may miss the best. On a plateau it goes towards the larger rho.
    The best of all points that were looked at is returned.
    """
    seen = [0.0]

    def value(rho: float) -> float:
        seen.append(rho)
        return float(criterion(pair, np.array(rho)))

    low, high, left, right = 0.0, 1.0, 1 - _GOLDEN, _GOLDEN
    at_left, at_right = value(left), value(right)
    for _ in range(_STEPS):
        if at_left > at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = value(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = value(right)
    return grid(pair, criterion, np.array(sorted(seen)))


SEARCHES: dict[str, Search] = {"grid": grid, "golden": golden}


def ranking(found: Mapping[Name, Best]) -> list[Name]:
    """The names of support tasks, the best first; of equal ones the first given."""
    return sorted(found, key=lambda name: (-found[name].value, -found[name].lpp, found[name].rho))
