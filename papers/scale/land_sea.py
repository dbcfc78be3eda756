"""Is there land or sea at a point of the globe? Any number of examples can be had.

Points are uniform on the sphere and have three coordinates. Forests of leaf Gaussian processes with
an exponential kernel learn them, as in Fröhlich, Rodner, Kemmler and Denzler (2012), against the
usual peers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple, final

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.gaussian_process.kernels import Matern
from sklearn.neighbors import KNeighborsClassifier

from knowmore import ForestGPClassifier
from papers.arrays import Array
from papers.data import Split, land_and_sea
from papers.findings import Progress, Report, Verdict, as_time, silent
from papers.scale.contest import (
    Entry,
    Method,
    clocked,
    enter,
    forests,
    no_faster_peer,
    saved,
    standard_error,
    table,
)

ONE, FOUR = "forest GP, 1 tree of 512", "forest GP, 4 trees of 256"
# The globe has radius one: some 600 km, over which a coast tells something of its neighbourhood.
_KERNEL = Matern(0.1, nu=0.5)
# Numbers of points to learn and to test, in a full run and in a quick run.
_SIZES, _TESTED = (100_000, 1_000_000), 100_000
_QUICK_SIZES, _QUICK_TESTED = (3000,), 2000
# The number of examples removed, and then added.
_EDITED = 100
# The margin of accuracy that a forest of GPs should have over any peer.
_AHEAD = 0.002


@final
@dataclass(frozen=True, eq=False)
class Contest:
    """All methods on so many rows, and which test points each has right, (m,)."""

    rows: int
    entries: tuple[Entry, ...]
    right: tuple[Array, ...]


class Edited(NamedTuple):
    """Examples were removed and others added, one by one.

    times, seconds : how often, and how long the median removal, addition and answer took
    difference : the largest of a score from that of a fresh fit; rounding allows `tolerance`
    """

    times: int
    seconds: float
    difference: float
    tolerance: float


@final
@dataclass(frozen=True, eq=False)
class LandSea:
    """A contest for each number of rows, and edits of a tree."""

    contests: tuple[Contest, ...]
    edited: Edited


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> LandSea:
    """Learn a hundred thousand points and a million; `quick`: three thousand."""
    progress(0.0, "reading the map")
    sizes, tested = (_QUICK_SIZES, _QUICK_TESTED) if quick else (_SIZES, _TESTED)
    X, y = land_and_sea(max(sizes) + tested, np.random.default_rng(seed))
    contests = []
    methods = list(_methods(20 if quick else 100, seed))
    for i, n in enumerate(sizes):
        split = Split(X[tested : tested + n], y[tested : tested + n], X[:tested], y[:tested])
        found = []
        for j, method in enumerate(methods):
            progress(
                0.1 + 0.8 * (i + j / len(methods)) / len(sizes), f"{n:,} points, {method.name}"
            )
            found.append(enter(method, split))
        entries, right = zip(*found, strict=True)
        contests.append(Contest(n, entries, right))
    progress(0.95, "edits")
    return LandSea(tuple(contests), _edit(split))


def _methods(trees: int, seed: int) -> Iterator[Method]:
    for name, capacity, n_trees in ((ONE, 512, 1), (FOUR, 256, 4)):
        candidates = [
            ForestGPClassifier(_KERNEL, noise, capacity=capacity, n_trees=n_trees, seed=seed)
            for noise in (0.01, 0.03, 0.1)
        ]
        yield Method(name, "", candidates, ours=True)
    yield from forests(trees, "", seed)
    boosting = [
        HistGradientBoostingClassifier(max_iter=5 * trees, max_leaf_nodes=leaves, random_state=seed)
        for leaves in (31, 127)
    ]
    yield Method("HistGradientBoost", "", boosting)
    yield Method("5 nearest neighbours", "", [KNeighborsClassifier(n_jobs=-1)])


def _edit(split: Split) -> Edited:
    """Remove some examples and add as many test points, one by one, and ask after each."""
    noise, capacity = 0.1, 512
    make = partial(ForestGPClassifier, _KERNEL, noise, capacity=capacity)
    model = make().fit(split.X, split.y)
    model.predict(split.X_test)

    def edit(i: int) -> None:
        model.remove([i])
        model.add(split.X_test[i : i + 1], split.y_test[i : i + 1])
        model.predict(split.X[i : i + 1])

    seconds = [clocked(partial(edit, i))[1] for i in range(_EDITED)]
    held = model.model_.examples
    fresh = make().fit(held.X, held.labels, ids=held.ids)
    asked = split.X_test[:1000]
    gap = abs(model.decision_function(asked) - fresh.decision_function(asked)).max()
    # A kernel value is at most one, so |K| <= capacity, and |k| |alpha| <= capacity / noise.
    condition = (capacity + noise) / noise
    bound = 4 * np.finfo(float).eps * condition * capacity / noise
    return Edited(len(seconds), median(seconds), float(gap), float(bound))


# -- what it means -------------------------------------------------------------------------------


def report(result: LandSea, out: Path) -> Report:
    """The picture, all numbers, and the verdicts."""
    titles = {f"{contest.rows:,} points": contest.entries for contest in result.contests}
    files = saved(titles, out, "scale-land-sea")
    setting = (
        f"Land or sea, {len(result.contests[0].right[0]):,} points tested. Times are wall times of "
        f"this run."
    )
    tables = (table(title, entries) for title, entries in titles.items())
    return Report(parts=(setting, *tables, *verdicts(result)), files=files)


def verdicts(result: LandSea) -> Iterator[Verdict]:
    """Accuracy, time, growth and exactness of the forest."""
    for contest in result.contests:
        yield _ahead(contest)
        own = max(contest.entries[:2], key=lambda e: e.accuracy)
        holds, measured = no_faster_peer(contest.entries, own)
        claim = f"{contest.rows:,} points: no peer that is as accurate is faster."
        yield Verdict(claim, holds, measured)
    if len(result.contests) > 1:
        yield _growth(*result.contests)
    edited = result.edited
    yield Verdict(
        claim="After edits the forest is the fresh fit of what it holds, up to rounding.",
        holds=edited.difference <= edited.tolerance,
        measured=f"{edited.times} times an example was removed, another added and a question "
        f"asked, in {as_time(edited.seconds)}; scores differ by at most {edited.difference:.1e} "
        f"(rounding allows {edited.tolerance:.1e})",
    )


def _ahead(contest: Contest) -> Verdict:
    """The better forest against the best peer."""
    own = max(range(2), key=lambda i: contest.entries[i].accuracy)
    peers = range(2, len(contest.entries))
    best = max(peers, key=lambda i: contest.entries[i].accuracy)
    gap = contest.entries[own].accuracy - contest.entries[best].accuracy
    error = standard_error(contest.right[own], contest.right[best])
    return Verdict(
        claim=f"{contest.rows:,} points: a forest of GPs is more often right than any peer, by "
        f"{100 * _AHEAD:g} points.",
        holds=gap >= _AHEAD,
        measured=f"{contest.entries[own].accuracy:.4f} ({contest.entries[own].method}), "
        f"{gap:+.4f} ± {error:.4f} against {contest.entries[best].method}",
    )


def _growth(small: Contest, large: Contest) -> Verdict:
    """The exponent of n in the time of one tree, learning and answering."""
    times = [contest.entries[0].fit + contest.entries[0].predict for contest in (small, large)]
    power = float(np.log(times[1] / times[0]) / np.log(large.rows / small.rows))
    return Verdict(
        claim="The time of one tree grows about like the number of examples.",
        holds=power <= 1.1,
        measured=f"{as_time(times[0])} and {as_time(times[1])}: like n^{power:.2f}",
    )
