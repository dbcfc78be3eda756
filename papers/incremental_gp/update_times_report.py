"""Verdicts on the paper's claims, from update times, and a figure of the times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from sys import float_info
from typing import TYPE_CHECKING, NamedTuple, final

from papers.findings import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILION,
    Verdict,
    as_time,
    new_figure,
    quiet_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BATCH_INVERSE, BATCH_CHOLESKY = "batch, inverse", "batch, Cholesky"
ITERATIVE, DIRECT = "iterative update of the inverse", "direct update of the inverse"
APPEND = "append to the Cholesky factor"
CALTECH, DIGITS = "Caltech-101", "digits"


class Timing(NamedTuple):
    """How long one method took to get from n to n + k examples.

    `difference` is the largest one from the scores of the batch Cholesky fit, `changed` the number
    of predictions, among those `asked` for, that are not the same.
    """

    source: str
    n: int
    k: int
    method: str
    seconds: float
    difference: float
    changed: int
    asked: int


@final
@dataclass(frozen=True)
class UpdateTimes:
    """All timings; how far the two updated inverses are apart at k = 1, relative to them; and the
    seconds that it takes to describe a picture, None where there are none."""

    timings: tuple[Timing, ...]
    inverse_gap: float
    describing: float | None


class _Cell(NamedTuple):
    """Seconds of each method, for a source, n examples held and k new ones."""

    source: str
    n: int
    k: int
    seconds: dict[str, float]

    def ratio(self, slow: str, fast: str, describing: float = 0.0) -> float:
        """Seconds of `slow` per second of `fast`.

        Each example takes `describing` seconds to describe: `slow` describes n + k, `fast` k.
        """
        afresh = self.seconds[slow] + (self.n + self.k) * describing
        return afresh / (self.seconds[fast] + self.k * describing)

    def __str__(self) -> str:
        return f"{self.source}, n={self.n}, k={self.k}"


def verdicts(result: UpdateTimes) -> Iterator[Verdict]:
    """The paper's claims one by one."""
    cells = _cells(result.timings)
    yield _speed_up(cells, result.describing)
    yield _direct_for_small_changes(cells)
    yield _iterative_for_large_changes(cells)
    yield _same_for_one(cells, result.inverse_gap)
    yield _same_result(result.timings)


def preface(result: UpdateTimes) -> str:
    """The setting in a few sentences, with a warning if the sizes are too small for the claims."""
    n, k = max(t.n for t in result.timings), max(t.k for t in result.timings)
    if result.describing is None:
        where = (
            "Scikit-learn's digits alone: Caltech-101, which the paper used, was not found. Set "
            "KNOWMORE_DATA to the folder that holds caltech101.tar."
        )
    else:
        where = (
            f"Pictures of Caltech-101 by their spatial pyramids, and scikit-learn's digits. To "
            f"describe a picture takes {as_time(result.describing)} on all cores; that is not in "
            f"the times below."
        )
    text = (
        f"{where} Times are medians of three or more runs, kernel values included, the linear "
        f"algebra on one thread, with n up to {n}, k up to {k}."
    )
    small = " That is too few examples to judge the claims on speed: run it without --quick."
    return text + small if n < 1000 else text


def _cells(timings: tuple[Timing, ...]) -> list[_Cell]:
    cells: dict[tuple[str, int, int], _Cell] = {}
    for t in timings:
        cell = cells.setdefault((t.source, t.n, t.k), _Cell(t.source, t.n, t.k, {}))
        cell.seconds[t.method] = t.seconds
    return list(cells.values())


def _speed_up(cells: list[_Cell], describing: float | None) -> Verdict:
    def best(slow: str, *fast: str, among: list[_Cell] = cells, each: float = 0.0) -> str:
        found = ((cell.ratio(slow, f, each), cell) for cell in among for f in fast)
        ratio, where = max(found, key=lambda x: x[0])
        return f"up to {ratio:.0f} times faster ({where})"

    paper = max(cell.ratio(BATCH_INVERSE, f) for cell in cells for f in (ITERATIVE, DIRECT))
    words = (
        f"the paper's updates are {best(BATCH_INVERSE, ITERATIVE, DIRECT)} than inverting afresh. "
        f"Appending to a Cholesky factor is {best(BATCH_CHOLESKY, APPEND)} than a fresh "
        f"factorisation and {best(BATCH_INVERSE, APPEND)} than inverting afresh"
    )
    if describing is not None:
        pictures = [cell for cell in cells if cell.source == CALTECH]
        counted = best(BATCH_INVERSE, ITERATIVE, DIRECT, among=pictures, each=describing)
        words += (
            f". If features are not kept, and batch training has to describe all pictures again, "
            f"the paper's updates are {counted}"
        )
    return Verdict(
        claim="Updates are up to 100 times faster than batch training.",
        holds=paper >= 100,
        measured=words,
    )


def _direct_for_small_changes(cells: list[_Cell]) -> Verdict:
    chosen = [cell for cell in cells if cell.k >= 10 and 4 * cell.k <= cell.n]
    ratios = [cell.ratio(ITERATIVE, DIRECT) for cell in chosen]
    return Verdict(
        claim="The direct update beats the iterative one when k is large and k / n small.",
        holds=min(ratios) > 1,
        measured=(
            f"with k >= 10 and k / n <= 1/4 it is {min(ratios):.1f} to {max(ratios):.1f} times "
            f"faster, in {sum(r > 1 for r in ratios)} of {len(ratios)} cases"
        ),
    )


def _iterative_for_large_changes(cells: list[_Cell]) -> Verdict:
    chosen = [cell for cell in cells if cell.k >= 10 and 2 * cell.k >= cell.n]
    ratios = [cell.ratio(ITERATIVE, DIRECT) for cell in chosen]
    batch = sum(
        cell.seconds[BATCH_INVERSE] < min(cell.seconds[DIRECT], cell.seconds[ITERATIVE])
        for cell in chosen
    )
    return Verdict(
        claim="The iterative update is to be preferred when k is of the order of n.",
        holds=max(ratios) < 1,
        measured=(
            f"with k / n >= 1/2 the iterative update is faster in "
            f"{sum(r < 1 for r in ratios)} of {len(ratios)} cases; the direct one takes "
            f"{1 / max(ratios):.2f} to {1 / min(ratios):.2f} times as long. "
            f"Inverting afresh beats both in {batch} of {len(chosen)}"
        ),
    )


def _same_for_one(cells: list[_Cell], inverse_gap: float) -> Verdict:
    ratios = [cell.ratio(ITERATIVE, DIRECT) for cell in cells if cell.k == 1]
    largest = max(cell.n for cell in cells) + 1
    gap = f"differ by {inverse_gap:.0e} of their largest entry" if inverse_gap else "are identical"
    return Verdict(
        claim="For k = 1 both updates are the same computation.",
        # Sums of n products, in any order, agree to n roundings.
        holds=inverse_gap <= largest * float_info.epsilon,
        measured=(
            f"the two inverses {gap}; "
            f"iterative / direct time is {min(ratios):.2f} to {max(ratios):.2f}"
        ),
    )


def _same_result(timings: tuple[Timing, ...]) -> Verdict:
    updates = [t for t in timings if t.method in (ITERATIVE, DIRECT)]
    append = [t for t in timings if t.method == APPEND]
    changed, asked = sum(t.changed for t in updates), sum(t.asked for t in updates)
    return Verdict(
        claim="Updates give the result of batch training, up to rounding.",
        holds=changed == 0,
        measured=(
            f"{changed} of {asked} predictions changed; the largest difference in a score is "
            f"{max(t.difference for t in updates):.0e} by updates of the inverse and "
            f"{max(t.difference for t in append):.0e} by appends to the factor"
        ),
    )


# -- the picture ---------------------------------------------------------------------------------

_STYLES = {
    BATCH_INVERSE: (VERMILION, "s", "--"),
    BATCH_CHOLESKY: (GREY, "D", "--"),
    ITERATIVE: (ORANGE, "^", "-"),
    DIRECT: (BLUE, "v", "-"),
    APPEND: (GREEN, "o", "-"),
}


def draw(result: UpdateTimes) -> Figure:
    """Time against n: a row for each source, a column for each k."""
    timings = result.timings
    sources = list(dict.fromkeys(t.source for t in timings))
    added = sorted({t.k for t in timings})
    figure = new_figure(3 * len(added), 1 + 2.8 * len(sources))
    axes = figure.subplots(len(sources), len(added), sharex="row", sharey=True, squeeze=False)
    for row, source in zip(axes, sources, strict=True):
        for ax, k in zip(row, added, strict=True):
            _draw_panel(ax, [t for t in timings if (t.source, t.k) == (source, k)])
            ax.set_title(f"{source}, k = {k}")
            if source == CALTECH and result.describing is not None:
                label = "describing k pictures, not counted"
                ax.axhline(k * result.describing, color=PURPLE, linestyle=":", label=label)
        row[0].set_ylabel("time (s)")
    for ax in axes[-1]:
        ax.set_xlabel("n, examples held before")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle("Time to have learnt k more examples")
    return figure


def _draw_panel(ax: Axes, timings: list[Timing]) -> None:
    for method, (colour, marker, line) in _STYLES.items():
        mine = [t for t in timings if t.method == method]
        ax.loglog(
            [t.n for t in mine],
            [t.seconds for t in mine],
            color=colour,
            marker=marker,
            linestyle=line,
            markersize=4.5,
            label=method,
        )
    sizes = sorted({t.n for t in timings})
    ax.set_xticks(sizes, [str(n) for n in sizes])
    ax.minorticks_off()
    quiet_axes(ax)
