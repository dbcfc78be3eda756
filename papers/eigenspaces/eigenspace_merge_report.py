"""Verdicts on the claims of the slides, from times and errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from sys import float_info
from typing import NamedTuple, final

import numpy as np

from knowmore import Eigenspace
from papers.findings import Table, Verdict, as_time

BATCH, PEER = "batch", "batch, scikit-learn PCA"
INCREMENTAL, JOINT = "incremental", "joint"
ROWS = "incremental, in one step (add_rows)"
MERGE, SPLIT, UPDATES = "merge", "split", "updates"

# What "small" is taken to mean: a twentieth of an eigenvalue, a degree for the leading directions.
_SMALL_VALUE, _SMALL_ANGLE = 0.05, np.radians(1.0)
# "A few incremental updates".
_FEW = 3


@final
@dataclass(frozen=True)
class Timing:
    """Median seconds to the model of all faces; `first` of them were held, None: none."""

    method: str
    first: int | None
    seconds: float


@final
@dataclass(frozen=True)
class EigenAnalysis:
    """The seconds of an eigenproblem of the sizes of a merge, d_1 + d_2 + 1, and of a batch, N.

    `product_seconds`: of the products of all rows with each other, which a batch needs before it.
    """

    merge_size: int
    batch_size: int
    merge_seconds: float
    batch_seconds: float
    product_seconds: float


class Errors(NamedTuple):
    """How far a model is from the batch model of the same rows; angles in radians.

    mean : distance of the means
    paired : mean angle between eigenvectors of the same number
    leading, subspace : largest principal angle between the ten leading directions, and between all
    eigenvalues : mean of |a - b| / a, a of the batch model
    covariance : spectral norm of the difference, as a part of the largest eigenvalue
    """

    mean: float
    paired: float
    leading: float
    subspace: float
    eigenvalues: float
    covariance: float


@final
@dataclass(frozen=True)
class Comparison:
    """The errors of one act in one draw; `rank` None: all directions were kept.

    `first` faces are in the first set, or arrive at a time where there are several `updates`.
    """

    act: str
    rank: int | None
    draw: int
    first: int
    updates: int
    errors: Errors


@final
@dataclass(frozen=True, eq=False)
class EigenspaceMerge:
    """All findings, and two models of the same faces: of all at once, and of two merged halves."""

    timings: tuple[Timing, ...]
    analysis: EigenAnalysis
    comparisons: tuple[Comparison, ...]
    batch: Eigenspace
    merged: Eigenspace
    rank: int

    def seconds(self, method: str) -> list[float]:
        """The times of a method, by the size of the first set."""
        return [t.seconds for t in self.timings if t.method == method]

    def values(self, act: str, rank: int | None, error: str) -> dict[int, list[float]]:
        """The errors of an act in all draws, by the size of the first set or of what arrives."""
        found: dict[int, list[float]] = {}
        for c in self.comparisons:
            if (c.act, c.rank) == (act, rank):
                found.setdefault(c.first, []).append(getattr(c.errors, error))
        return found


def preface(result: EigenspaceMerge) -> str:
    """The setting of the experiment, in a few sentences."""
    draws = len({c.draw for c in result.comparisons})
    text = (
        f"{result.batch.n_samples} of the 400 ORL faces, {draws} random draw{'s'[: draws > 1]}; at "
        f"most {result.rank} directions in every model. Times are medians of three or more runs "
        f"on one thread."
    )
    return text if draws > 1 else text + " For judging the claims run it without --quick."


def table(result: EigenspaceMerge) -> Table:
    """Times and errors by the sizes of the two sets."""
    N = result.batch.n_samples
    errors = ("eigenvalues", "leading", "paired")
    merged = {error: result.values(MERGE, result.rank, error) for error in errors}
    firsts = sorted(merged["paired"])
    rows = [
        (
            f"{first} + {N - first}",
            as_time(incremental),
            as_time(joint),
            f"{np.mean(merged['eigenvalues'][first]):.2%}",
            f"{np.degrees(np.mean(merged['leading'][first])):.2f}°",
            f"{np.degrees(np.mean(merged['paired'][first])):.0f}°",
        )
        for first, incremental, joint in zip(
            firsts, result.seconds(INCREMENTAL), result.seconds(JOINT), strict=True
        )
    ]
    return Table(
        f"Merging, against batch ({as_time(result.seconds(BATCH)[0])}; "
        f"scikit-learn {as_time(result.seconds(PEER)[0])})",
        ("sets", "incremental", "joint", "eigenvalues off", "leading ten off", "paired off"),
        tuple(rows),
    )


def verdicts(result: EigenspaceMerge) -> Iterator[Verdict]:
    """The claims of the slides one by one, and the law."""
    yield _faster(result)
    yield _eigen_analysis(result)
    yield _small_inaccuracy(result)
    yield _exact(result, MERGE, "Merging is exact if nothing was dropped.")
    yield _exact(result, SPLIT, "Splitting is exact if nothing was dropped.")
    yield _lost(result)


def _faster(result: EigenspaceMerge) -> Verdict:
    batch, peer = result.seconds(BATCH)[0], result.seconds(PEER)[0]
    incremental, joint = result.seconds(INCREMENTAL), result.seconds(JOINT)
    rows = result.seconds(ROWS)
    wins = sum(t < batch for t in incremental)
    return Verdict(
        claim="Incremental computation is usually faster than batch.",
        holds=2 * wins > len(incremental),
        measured=(
            f"it takes {min(incremental) / batch:.2f} to {max(incremental) / batch:.2f} of the "
            f"{as_time(batch)} of our batch and is faster for {wins} of {len(incremental)} sizes; "
            f"in one step {min(rows) / batch:.2f} to {max(rows) / batch:.2f}; joint "
            f"{min(joint) / batch:.2f} to {max(joint) / batch:.2f}. Batch by scikit-learn's full "
            f"decomposition takes {as_time(peer)}"
        ),
    )


def _eigen_analysis(result: EigenspaceMerge) -> Verdict:
    it = result.analysis
    cubes = (it.batch_size / it.merge_size) ** 3
    batch = result.seconds(BATCH)[0]
    return Verdict(
        claim="The eigen-analysis costs (d1 + d2 + 1)^3 in a merge, min(D, N)^3 in batch.",
        # Cubes are what the time tends to; a factor of two is left to smaller terms.
        holds=0.5 <= it.batch_seconds / it.merge_seconds / cubes <= 2,
        measured=(
            f"problems of the sizes {it.merge_size} and {it.batch_size} take "
            f"{as_time(it.merge_seconds)} and {as_time(it.batch_seconds)}, a ratio "
            f"of {it.batch_seconds / it.merge_seconds:.1f} where cubes give {cubes:.1f}. The "
            f"latter is {it.batch_seconds / batch:.0%} of batch; the products of rows before it, "
            f"D N^2, which the slides leave out, are {it.product_seconds / batch:.0%}"
        ),
    )


def _small_inaccuracy(result: EigenspaceMerge) -> Verdict:
    mine = [c for c in result.comparisons if c.rank is not None and c.act in (MERGE, UPDATES)]

    def few(error: str) -> float:
        return max(float(getattr(c.errors, error)) for c in mine if c.updates <= _FEW)

    value, leading = few("eigenvalues"), few("leading")
    mean = max(c.errors.mean for c in mine)
    portion = min(result.values(UPDATES, result.rank, "eigenvalues"))
    many = [c for c in mine if c.act == UPDATES and c.first == portion]
    return Verdict(
        claim="When only a few updates are made, the inaccuracy is small.",
        holds=bool(value <= _SMALL_VALUE and leading <= _SMALL_ANGLE),
        measured=(
            f"up to {_FEW} updates leave eigenvalues off by at most {value:.1%} in the mean, the "
            f"ten leading directions by {np.degrees(leading):.2f}° and means by {mean:.0e}; "
            f"{many[0].updates} updates {np.mean([c.errors.eigenvalues for c in many]):.1%} and "
            f"{np.degrees(np.mean([c.errors.leading for c in many])):.2f}°. Over all "
            f"{result.rank} eigenvectors the mean angle is up to "
            f"{np.degrees(few('paired')):.0f}°: the last ones stand close to each other and to "
            f"what was dropped"
        ),
    )


def _exact(result: EigenspaceMerge, act: str, claim: str) -> Verdict:
    mine = [c for c in result.comparisons if (c.act, c.rank) == (act, None)]
    N = result.batch.n_samples
    covariance, mean = max(c.errors.covariance for c in mine), max(c.errors.mean for c in mine)
    return Verdict(
        claim=claim,
        holds=all(c.errors.covariance <= rounding(N, c.act, c.first) for c in mine),
        measured=(
            f"the covariance differs by at most {covariance:.0e} of its largest eigenvalue, the "
            f"mean by {mean:.0e}, eigenvalues by {max(c.errors.eigenvalues for c in mine):.0e} "
            f"in the mean"
        ),
    )


def rounding(rows: int, act: str, first: int) -> float:
    """The error that rounding may leave in a covariance, as a part of its largest eigenvalue.

    Scatters of `rows` rows agree to as many roundings. A split leaves the error of all rows in the
    smaller scatter of its `first` rows.
    """
    return rows * float_info.epsilon * (rows / first if act == SPLIT else 1.0)


def _lost(result: EigenspaceMerge) -> Verdict:
    split, merge = (result.values(act, result.rank, "eigenvalues") for act in (SPLIT, MERGE))
    means = {first: float(np.mean(values)) for first, values in split.items()}
    worst, best = max(means, key=means.__getitem__), min(means, key=means.__getitem__)
    return Verdict(
        claim="Splitting cannot bring back what was discarded.",
        holds=all(means[first] > np.mean(merge[first]) for first in means),
        measured=(
            f"with {result.rank} directions kept, eigenvalues of what is left are off by "
            f"{means[best]:.0%} ({best} faces left) to {means[worst]:.0%} ({worst} left) in the "
            f"mean, where merging leaves {np.mean(list(merge.values())):.1%}"
        ),
    )
