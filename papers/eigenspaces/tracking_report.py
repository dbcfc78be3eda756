"""Verdicts on the trackers, from their boxes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, final

import numpy as np

from papers.arrays import Array
from papers.findings import Table, Verdict, as_time

CAR: Final = "car4"
FACE: Final = "david"
SLIDING, EVERYTHING, FIXED = "sliding window", "never forgets", "fixed basis"
OURS = (SLIDING, EVERYTHING, FIXED)
# Overlap above which an object counts as found.
_FOUND = 0.5


@final
@dataclass(frozen=True, eq=False)
class Track:
    """The boxes (T, 4) that a tracker gave in one run, beside the true ones.

    seconds : for one picture
    """

    film: str
    method: str
    run: int
    boxes: Array
    truth: Array
    seconds: float

    @property
    def overlap(self) -> Array:
        """The area that box and true box share by the area that they cover, (T,)."""
        return overlaps(self.boxes, self.truth)

    @property
    def distance(self) -> Array:
        """Between their centres in pixels, (T,)."""
        mine, true = (one[:, :2] + one[:, 2:] / 2 for one in (self.boxes, self.truth))
        return np.asarray(np.linalg.norm(mine - true, axis=1))


def overlaps(A: Array, B: Array) -> Array:
    """Intersection over union of boxes (T, 4) and (T, 4), each left, top, width, height; (T,).

    >>> overlaps(np.array([[0.0, 0.0, 2.0, 2.0]]), np.array([[1.0, 0.0, 2.0, 2.0]]))
    array([0.33333333])
    """
    begin = np.maximum(A[:, :2], B[:, :2])
    end = np.minimum(A[:, :2] + A[:, 2:], B[:, :2] + B[:, 2:])
    shared = np.clip(end - begin, 0, None).prod(axis=1)
    return np.asarray(shared / (A[:, 2:].prod(axis=1) + B[:, 2:].prod(axis=1) - shared))


class Exactness(NamedTuple):
    """The error of a window's covariance at the end, against a fit of its patches.

    Rounding allows `tolerance`.
    """

    film: str
    difference: float
    tolerance: float


@final
@dataclass(frozen=True, eq=False)
class Tracking:
    """All tracks, the window after each film, its size, and what OpenCV here does not have."""

    tracks: tuple[Track, ...]
    exactness: tuple[Exactness, ...]
    window: int
    lacking: tuple[str, ...]
    quick: bool = False

    @property
    def films(self) -> list[str]:
        """In the order of their appearance."""
        return list(dict.fromkeys(one.film for one in self.tracks))

    @property
    def methods(self) -> list[str]:
        """In the order of their appearance."""
        return list(dict.fromkeys(one.method for one in self.tracks))

    def of(self, film: str, method: str) -> list[Track]:
        """The runs of a method on a film."""
        return [one for one in self.tracks if (one.film, one.method) == (film, method)]

    def overlap(self, film: str, method: str) -> Array:
        """The mean overlap in each run, (runs,)."""
        return np.array([one.overlap.mean() for one in self.of(film, method)])


def preface(result: Tracking) -> str:
    """The setting of the experiment, in a few sentences."""
    runs = len({one.run for one in result.tracks})
    text = (
        f"Means of {runs} run{'s'[: runs > 1]} with other random moves. The window holds the "
        f"latest {result.window} patches. Settings are near those that the paper gives for these "
        "films, and the same for both."
    )
    if result.lacking:
        text += f" This OpenCV has no tracker {' or '.join(result.lacking)}."
    return text + " For judging run it without --quick." if result.quick else text


def table(result: Tracking) -> Table:
    """Each method on each film."""
    rows = []
    for film in result.films:
        for method in result.methods:
            found = result.of(film, method)
            overlap, distance = (np.stack([f(t) for t in found]) for f in (_overlap, _distance))
            rows.append(
                (
                    f"{film}, {method}",
                    f"{overlap.mean():.3f}",
                    f"{(overlap > _FOUND).mean():.1%}",
                    f"{distance.mean():.1f}",
                    f"{(overlap == 0).mean():.1%}",
                    as_time(float(np.mean([one.seconds for one in found]))),
                )
            )
    header = ("", "overlap", f"above {_FOUND}", "pixels off", "missed", "a picture")
    return Table("Boxes against the true ones", header, tuple(rows))


def _overlap(track: Track) -> Array:
    return track.overlap


def _distance(track: Track) -> Array:
    return track.distance


def verdicts(result: Tracking) -> Iterator[Verdict]:
    """The claims one by one, and the law."""
    missed = {
        film: max(float((one.overlap == 0).mean()) for one in result.of(film, SLIDING))
        for film in result.films
    }
    yield Verdict(
        claim="With a sliding window of patches the object is never lost.",
        holds=not any(missed.values()),
        measured="pictures without any overlap, in the worst run: "
        + ", ".join(f"{part:.1%} ({film})" for film, part in missed.items()),
    )
    yield _better(result, FIXED, "An eigenspace that keeps learning tracks better than a fixed one")
    yield _better(result, EVERYTHING, "Forgetting old patches tracks better than keeping all")
    for method in result.methods:
        if method not in OURS:
            yield _better(result, method, f"It tracks better than {method}")
    yield Verdict(
        claim="After all merges and splits the window's model is that of its patches.",
        holds=all(one.difference <= one.tolerance for one in result.exactness),
        measured="the largest difference of a covariance is "
        + ", ".join(
            f"{one.difference:.1e} ({one.film}; rounding allows {one.tolerance:.1e})"
            for one in result.exactness
        ),
    )


def _better(result: Tracking, other: str, claim: str) -> Verdict:
    """Whether the sliding window's overlap is larger in each film, by more than its error."""
    holds, words = [], []
    for film in result.films:
        ours, theirs = (result.overlap(film, method) for method in (SLIDING, other))
        gain = ours.mean() - theirs.mean()
        error = np.sqrt(_variance(ours) + _variance(theirs))
        holds.append(bool(gain > error))
        words.append(f"{ours.mean():.3f} and {theirs.mean():.3f} (± {error:.3f}, {film})")
    return Verdict(claim=f"{claim}.", holds=all(holds), measured="overlaps of " + ", ".join(words))


def _variance(values: Array) -> float:
    """The variance of the mean of some runs; zero for a single run, which does not tell."""
    return float(values.var(ddof=1) / len(values)) if len(values) > 1 else 0.0
