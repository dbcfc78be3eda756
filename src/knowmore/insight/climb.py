"""The way uphill from where a model stands, never to where leave-one-out is worse."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from knowmore.arrays import Array
from knowmore.insight.search import FLAT, SLACK, Place, Slope

# A gain or loss per target below this is none: parameters that hardly matter are left alone.
NOTHING = 1e-6
# How much worse than the best a place counts where there is no value.
_WALL = 10
# What a parameter may cost per target that comes back from a bound: the density of a target is a
# thousandth less. A heuristic: far out most objectives are flat, and the optimiser walks on.
RETURN = 1e-3
_HALVINGS = 6
# Parts of the straight way to a top that is not allowed.
_STRAIGHT = (0.8, 0.6, 0.4, 0.2)


class Climb(NamedTuple):
    """The best place whose loss is allowed, and the best value of all."""

    place: Place
    top: float

    def further(self, other: Climb) -> Climb:
        """The better of two."""
        place = max(self.place, other.place, key=lambda place: place.value)
        return Climb(place, max(self.top, other.top))


def climb(slope: Slope, theta: Array, limit: float, held: Array | None = None) -> Climb:
    """The best on the way uphill from theta, of a loss up to `limit`. L-BFGS-B, as scikit-learn's.

    First to as much noise as there should be, then in all parameters but those `held` (p,). Where
    there is too little noise, slopes are so steep that the first step in all of them may leap over
    every hill, to where the kernel is zero between any two examples: a plain that nothing leads
    back from.
    """
    size = slope.T.size
    found = Climb(Place(theta, -np.inf, np.zeros_like(theta), np.inf), -np.inf)
    place = theta

    def downhill(theta: Array) -> tuple[float, Array]:
        nonlocal found, place
        here = slope(theta.copy())
        if here.value > found.top:
            place = here.theta
        found = found.further(Climb(here if here.loss <= limit else found.place, here.value))
        value = here.value
        if not np.isfinite(value):
            # A wall that is finite lets the line search turn back; at an infinite one it ends.
            # Within the wall there is no slope, and a search that starts there ends at once.
            top = found.top
            value = top - _WALL * (abs(top) + size) if np.isfinite(top) else 0.0
        return -value / size, -here.gradient / size

    box, options = slope.space.bounds.copy(), {"gtol": FLAT}
    if held is not None:
        box[held] = theta[held, None]
    boxes = [box]
    if held is None and slope.space.noise_bounds != "fixed" and len(theta) > 1:
        up = np.column_stack([theta, theta])
        up[-1, 1] = max(theta[-1], box[-1, 1])
        boxes.insert(0, up)
    for one in boxes:
        minimize(downhill, place, method="L-BFGS-B", jac=True, bounds=one, options=options)
    if found.top > found.place.value:
        # The top is not allowed; what is straight on the way there may be better than the way was.
        for part in _STRAIGHT:
            downhill(theta + part * (place - theta))
    return found


def returned(slope: Slope, place: Place, start: Array, limit: float) -> Place:
    """The same, but back from bounds that parameters went to for next to nothing.

    Each goes as far back to where it started as costs no more than a thousandth per target; then
    the others follow.
    """
    least = place.value - RETURN * slope.T.size
    outside = at_bounds(slope, place.theta) & (place.theta != start)
    back = place
    for i in np.flatnonzero(outside):
        back = _back(slope, back, int(i), start[i], least, limit)
    if back is place:
        return place
    followed = climb(slope, back.theta, limit, held=outside)
    return max(back, followed.place, key=lambda place: place.value)


def _back(slope: Slope, place: Place, i: int, start: float, least: float, limit: float) -> Place:
    """Parameter i as far back to where it started as the value stays at `least`, by halves."""
    near, far, part, best = 0.0, 1.0, 1.0, place
    for _ in range(_HALVINGS):
        theta = place.theta.copy()
        theta[i] += part * (start - theta[i])
        here = slope(theta)
        if here.value >= least and here.loss <= limit:
            near, best = part, here
        else:
            far = part
        if near == far:
            break
        part = (near + far) / 2
    return best


def at_bounds(slope: Slope, theta: Array) -> Array:
    """Which parameters are at a bound, (p,)."""
    low, high = slope.space.bounds.T
    return np.asarray((theta <= low + SLACK) | (theta >= high - SLACK))
