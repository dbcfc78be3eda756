"""The figures of Kuzborskij, Orabona and Caputo's supplement: from N classes to N+1.

A source knows N classes. Then there are a few pictures of these and of one more. How well are the
N+1 recognised by `NPlusOneClassifier` (MULTIpLE), by a machine of those few pictures alone, by one
of everything, and by other ways to use the source? See `baselines`.

Sets: Animals with Attributes, by features that come with the set, and a part of Caltech-256. Groups
of 5, 20 and 50 classes are in `groups`, kernels in `features`. In every split
the pictures of each class are divided again: for the source, to be learnt, and for the test. Few
are the first of many. Every class of a group is the new one in turn, as far as the splits go.

All methods are given one C, the best for the source by leave-one-out on its own examples. On a few
examples of each class C is hard to choose; no transfer is also reported with its own choice.

MULTIpLE is the paper's. "MULTIpLE, scaled" is `NPlusOneClassifier` as it is by default: with a C of
its own, scores of the source on the scale of labels, and known classes that move no further than
leave-one-out says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from knowmore import LSSVMClassifier, NPlusOneClassifier
from papers.arrays import Array
from papers.data import caltech256
from papers.findings import Progress, Report, save_figure, silent, write_csv
from papers.n_plus_one.baselines import (
    AddedKernel,
    BalancedBatch,
    Batch,
    MultiKT,
    NoTransfer,
    NoTransferOwnC,
    SourceOnly,
    SourcePlusOne,
    SourcePlusOneHinge,
)
from papers.n_plus_one.features import (
    LINEAR,
    NON_LINEAR,
    Seen,
    animals,
    as_table,
    part,
    things,
)
from papers.n_plus_one.figure import draw, draw_cases
from papers.n_plus_one.groups import Group, animal_groups, thing_groups
from papers.n_plus_one.outcomes import (
    ADDED,
    ANIMALS,
    BALANCED,
    BATCH,
    FEW,
    HINGE,
    MULTI_KT,
    NONE,
    OURS,
    OWN_C,
    PLUS_ONE,
    SCALED,
    SOURCE,
    THINGS,
    NPlusOneRun,
    Outcome,
    Plan,
    Setting,
    Share,
)
from papers.n_plus_one.report import (
    features_tables,
    margins_tables,
    members,
    mixtures,
    preface,
    tables,
    verdicts,
)
from papers.stopwatch import one_thread

_METHODS: dict[str, Callable[..., Any]] = {
    OURS: partial(NPlusOneClassifier, scaled=False),
    SCALED: lambda source, kernel, C: NPlusOneClassifier(source, kernel),
    NONE: NoTransfer,
    OWN_C: NoTransferOwnC,
    BATCH: Batch,
    BALANCED: BalancedBatch,
    SOURCE: SourceOnly,
    PLUS_ONE: SourcePlusOne,
    HINGE: SourcePlusOneHinge,
    MULTI_KT: MultiKT,
    ADDED: AddedKernel,
}
_SHORT = {ANIMALS: "animals", THINGS: "things"}
_BOTH = (LINEAR, NON_LINEAR)


class _Task(NamedTuple):
    """So many classes of a set in so many splits, by these kernels."""

    data: str
    classes: int
    splits: int
    kernels: tuple[str, ...]


# As in the supplement, all classes at once are seen by the average of kernels only.
_TASKS = (
    _Task(ANIMALS, 5, 20, _BOTH),
    _Task(ANIMALS, 20, 20, _BOTH),
    _Task(ANIMALS, 50, 10, (NON_LINEAR,)),
    _Task(THINGS, 5, 20, _BOTH),
    _Task(THINGS, 20, 20, _BOTH),
)
_QUICK_TASKS = (
    _Task(ANIMALS, 5, 2, _BOTH),
    _Task(ANIMALS, 20, 2, (NON_LINEAR,)),
    _Task(THINGS, 5, 2, _BOTH),
)
# There are 60 pictures of each animal, and 20 to 26 of each thing.
_PLANS = {ANIMALS: Plan(30, (2, 5, 10, 15)), THINGS: Plan(10, (2, 3, 5))}
_QUICK_PLANS = {ANIMALS: Plan(30, (2, 5)), THINGS: Plan(10, (2, 5))}
# The part of the time that looking takes, for the progress bar.
_LOOKING = 0.1


def run(*, seed: int = 0, quick: bool = False, progress: Progress = silent) -> NPlusOneRun:
    """All settings in all splits; `quick`: fewer classes in fewer splits."""
    rng = np.random.default_rng(seed)
    tasks, plans = (_QUICK_TASKS, _QUICK_PLANS) if quick else (_TASKS, _PLANS)
    groups = {(data, classes): _groups(data, classes) for data, classes, _, _ in _TASKS}
    outcomes: list[Outcome] = []
    shares: list[Share] = []
    with one_thread():
        # Animals are more, and take longer.
        for data, begin, end in (ANIMALS, 0.0, 0.8), (THINGS, 0.8, 1.0):
            told = part(progress, data, begin, end)
            turns = [t for task in tasks if task.data == data for t in _turns(task, groups)]
            looking = part(told, "looking", 0.0, _LOOKING)
            seen = _look(data, turns, groups, looking, quick=quick)
            done = np.cumsum([0.0] + [len(turn.members) ** 2 for turn in turns])
            for turn, share in zip(turns, done[:-1] / done[-1], strict=True):
                told(_LOOKING + (1 - _LOOKING) * share, str(turn))
                for found, betas in _learnt(seen, turn, plans[data], rng):
                    outcomes += found
                    shares += betas
    asked = {(task.data, task.classes): groups[task.data, task.classes] for task in tasks}
    return NPlusOneRun(tuple(outcomes), tuple(shares), asked, plans, quick)


def report(result: NPlusOneRun, out: Path) -> Report:
    """The pictures, all numbers, tables and a verdict on each claim."""
    pictures = [
        save_figure(draw(result, data, classes), out / f"n-plus-one-{_SHORT[data]}-{classes}.png")
        for data, classes in result.groups
    ]
    beta = save_figure(draw_cases(result), out / "n-plus-one-beta.png")
    numbers = write_csv(out / "n-plus-one.csv", Outcome._fields, result.outcomes)
    betas = write_csv(out / "n-plus-one-beta.csv", Share._fields, result.shares)
    return Report(
        parts=(
            preface(result),
            members(result),
            *tables(result),
            *features_tables(result),
            *margins_tables(result),
            mixtures(result),
            *verdicts(result),
        ),
        files=(*pictures, beta, numbers, betas),
    )


# -- who is learnt -------------------------------------------------------------------------------


class _Turn(NamedTuple):
    """A random split of a group with `newcomer` as its new class."""

    data: str
    group: str
    members: Group
    kernels: tuple[str, ...]
    split: int
    newcomer: str

    def __str__(self) -> str:
        return f"{len(self.members)} classes, {self.group}, split {self.split + 1}"


class _Rows(NamedTuple):
    """Pictures by their number: for the source, to be learnt (N + 1, most), and for the test."""

    source: Array
    learnt: Array
    tested: Array


def _groups(data: str, classes: int) -> dict[str, Group]:
    if data == ANIMALS:
        return animal_groups(classes)
    return thing_groups(classes, np.unique(caltech256().labels).tolist())


def _turns(task: _Task, groups: dict[tuple[str, int], dict[str, Group]]) -> Iterator[_Turn]:
    """Every member is new as often as every other, or, if there are too many, every so many."""
    step = max(1, task.classes // task.splits)
    for name, group in groups[task.data, task.classes].items():
        for split in range(task.splits):
            newcomer = group[split * step % task.classes]
            yield _Turn(task.data, name, group, task.kernels, split, newcomer)


def _look(
    data: str,
    turns: list[_Turn],
    groups: dict[tuple[str, int], dict[str, Group]],
    progress: Progress,
    *,
    quick: bool,
) -> dict[str, Seen]:
    """The pictures of all classes that are in the turns, by each kind of kernel."""
    needed = {name for turn in turns for name in turn.members}
    if data == ANIMALS:
        return animals(needed, progress)
    grouped = {
        name
        for (source, _), found in groups.items()
        for members in found.values()
        for name in members
        if source == data
    }
    return things(needed, grouped, progress, quick=quick)


def _drawn(labels: Array, turn: _Turn, plan: Plan, rng: np.random.Generator) -> _Rows:
    most = plan.source + plan.learnt[-1]
    rows = {name: rng.permutation(np.flatnonzero(labels == name)) for name in turn.members}
    known = [name for name in turn.members if name != turn.newcomer]
    return _Rows(
        np.concatenate([rows[name][: plan.source] for name in known]),
        np.stack([rows[name][plan.source : most] for name in turn.members]),
        np.concatenate([rows[name][most:] for name in turn.members]),
    )


# -- learning and testing ------------------------------------------------------------------------


def _learnt(
    seen: dict[str, Seen], turn: _Turn, plan: Plan, rng: np.random.Generator
) -> Iterator[tuple[list[Outcome], list[Share]]]:
    """All methods, from few examples to many, by each kernel, on the same pictures."""
    labels = seen[NON_LINEAR].labels
    rows = _drawn(labels, turn, plan, rng)
    alone = [kind for kind in seen if kind not in _BOTH]
    for kind in (*turn.kernels, *alone):
        kernel = seen[kind]
        source = LSSVMClassifier(kernel, "loo").fit(as_table(rows.source), labels[rows.source])
        for learnt in plan.learnt:
            few = rows.learnt[:, :learnt].ravel()
            where = (*Setting(turn.data, len(turn.members), turn.group, kind), turn.split)
            told = (*where, turn.newcomer, learnt)
            outcomes, shares = [], []
            for method, make in _METHODS.items():
                model = make(source, kernel, C=source.C_).fit(as_table(few), labels[few])
                right = model.predict(as_table(rows.tested)) == labels[rows.tested]
                rates = _rates(right, labels[rows.tested], turn.newcomer)
                outcomes.append(Outcome(*told, method, source.C_, *rates))
                if method == OURS and kind == NON_LINEAR and learnt == FEW:
                    betas = zip(source.classes_.tolist(), model.beta_.tolist(), strict=True)
                    shares += [Share(*told, known, beta) for known, beta in betas]
            yield outcomes, shares


def _rates(right: Array, labels: Array, newcomer: str) -> tuple[float, float, float]:
    """Mean rates of all classes, of the known classes, and the rate of the newcomer."""
    names, index = np.unique(labels, return_inverse=True)
    rates = np.bincount(index, right) / np.bincount(index)
    is_new = names == newcomer
    return float(rates.mean()), float(rates[~is_new].mean()), float(rates[is_new][0])
