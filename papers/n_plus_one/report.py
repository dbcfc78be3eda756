"""Tables and verdicts of the experiment on one class more."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from papers.findings import Table, Verdict
from papers.n_plus_one.outcomes import (
    ADDED,
    ANIMALS,
    BATCH,
    FEW,
    MEASURES,
    MULTI_KT,
    NONE,
    OURS,
    OWN_C,
    PLUS_ONE,
    SCALED,
    SOURCE,
    Margin,
    NPlusOneRun,
    Share,
)

# A distance from no transfer to batch is bridged if this part of it is.
_BRIDGED = 0.75
# How methods are headed in the tables; the others are in the pictures.
_SHOWN = {
    SOURCE: "source",
    NONE: "none",
    PLUS_ONE: "+1",
    MULTI_KT: "MultiKT",
    ADDED: "MKTL",
    OURS: "MULTIpLE",
    SCALED: "scaled",
    BATCH: "batch",
}


# -- words and tables ----------------------------------------------------------------------------


def preface(result: NPlusOneRun) -> str:
    """The setting of the experiment, in a few sentences."""
    splits = {
        one.classes: len({other.split for other in result.outcomes if other.classes == one.classes})
        for one in result.settings
    }
    drawn = ", ".join(f"{n} with {classes} classes" for classes, n in splits.items())
    numbers = "; ".join(
        f"{data}, {plan.source} for the source and up to {plan.learnt[-1]} more"
        for data, plan in result.plans.items()
    )
    gains = [
        100 * float(result.rates(one, p, OWN_C, "everything").mean())
        - 100 * float(result.rates(one, p, NONE, "everything").mean())
        for one in result.settings
        for p in result.plans[one.data].learnt
    ]
    named = [100 * result.rates(one, FEW, BATCH, "new").mean() for one in result.settings]
    text = (
        f"Of N+1 classes N are known and one is new, each in its turn, in random splits: {drawn}. "
        f"Pictures of each class: {numbers} to be learnt from; the others are the test. Rates are "
        f"means over classes, ± is the standard error over splits, and differences are taken split "
        f"by split. All methods but scaled, the default of `NPlusOneClassifier`, have the C of the "
        f"source's best leave-one-out. With its own C, "
        f"chosen on the few examples, no transfer gains {np.mean(gains):+.1f} points on average "
        f"({min(gains):+.1f} to {max(gains):+.1f}). Batch is not an upper bound: with {FEW} "
        f"examples among many of all others it recognises {min(named):.0f} to {max(named):.0f} % "
        f"of the new class. Balanced, all classes weigh the same; the better of both counts."
    )
    return text + " To judge the claims run it without --quick." * result.quick


def members(result: NPlusOneRun) -> str:
    """Which classes are in which group."""
    return "\n".join(
        f"{data}, {classes} classes, {group}: {', '.join(names)}."
        for (data, classes), groups in result.groups.items()
        for group, names in groups.items()
    )


def tables(result: NPlusOneRun) -> Iterator[Table]:
    """Rates with few examples: a table for each set and kernel."""
    for data, kernel in dict.fromkeys((one.data, one.kernel) for one in result.settings):
        mine = [one for one in result.settings if (one.data, one.kernel) == (data, kernel)]
        rows = [
            (
                f"{one.classes} {one.group}" if measure == "everything" else measure,
                *(f"{100 * result.rates(one, FEW, who, measure).mean():.1f}" for who in _SHOWN),
            )
            for one, measure in product(mine, MEASURES)
        ]
        title = f"{data}, {kernel}: percent, {FEW} examples of each class"
        yield Table(title, ("N+1 classes", *_SHOWN.values()), tuple(rows))


def features_tables(result: NPlusOneRun) -> Iterator[Table]:
    """Each kind of features alone, and the average of their kernels, over all groups."""
    sizes = dict.fromkeys((one.data, one.classes) for one in result.alone)
    for data, classes in sizes:
        mine = [one for one in (*result.alone, *result.settings) if one[:2] == (data, classes)]
        rows = []
        for kernel in dict.fromkeys(one.kernel for one in mine):
            some = [one for one in mine if one.kernel == kernel]
            rates = {
                who: np.mean([result.rates(one, FEW, who, "everything") for one in some])
                for who in _SHOWN
            }
            rows.append((kernel, *(f"{100 * rates[who]:.1f}" for who in _SHOWN)))
        title = f"{data}, {classes} classes, by kind of features: percent, {FEW} examples of each"
        yield Table(title, ("features", *_SHOWN.values()), tuple(rows))


def margins_tables(result: NPlusOneRun) -> Iterator[Table]:
    """MULTIpLE against others with few examples: a table for each set."""
    for data in result.plans:
        rows = [
            (
                f"{one.classes} {one.group}, {one.kernel}",
                result.margin(one, FEW, NONE).points,
                result.margin(one, FEW, result.best_batch(one, FEW)).points,
                result.margin(one, FEW, SOURCE, "known").points,
                result.margin(one, FEW, OURS, of=SCALED).points,
                result.margin(one, FEW, OURS, "new", SCALED).points,
            )
            for one in result.settings
            if one.data == data
        ]
        yield Table(
            f"{data}: MULTIpLE less others, and scaled less MULTIpLE, in points, {FEW} examples of "
            f"each class",
            (
                "N+1 classes",
                "less none",
                "less batch",
                "on known: less source",
                "scaled",
                "scaled, on the new",
            ),
            tuple(rows),
        )


def cases(result: NPlusOneRun, most: int = 4) -> dict[str, list[Share]]:
    """Some newcomers, and what went into each, the largest share first.

    They are those of the first splits of the largest group of animals.
    """
    animals = [one.setting for one in result.shares if one.data == ANIMALS]
    largest = max(animals, key=lambda setting: setting.classes)
    found: dict[str, list[Share]] = {}
    for one in result.shares:
        if one.setting == largest and one.split < most:
            found.setdefault(one.newcomer, []).append(one)
    return {name: sorted(shares, key=lambda one: -one.beta) for name, shares in found.items()}


def mixtures(result: NPlusOneRun) -> str:
    """The known classes that some newcomers were built from, in words."""
    told = [
        f"{name} from {', '.join(f'{one.known} {one.beta:.2f}' for one in shares[:3])}"
        for name, shares in cases(result).items()
    ]
    where = next(iter(cases(result).values()))[0].setting
    return (
        f"What new animals were built from (beta, {where.classes} classes, {FEW} examples of "
        f"each): {'; '.join(told)}."
    )


# -- verdicts ------------------------------------------------------------------------------------


def verdicts(result: NPlusOneRun) -> Iterator[Verdict]:
    """Each claim, for each set and number of classes."""
    for data, classes in result.groups:
        yield _beats_none(result, data, classes)
        yield _beats_plus_one(result, data, classes)
        yield _keeps_known(result, data, classes)
        yield _nears_batch(result, data, classes)


def _beats_none(result: NPlusOneRun, data: str, classes: int) -> Verdict:
    fewest = result.plans[data].learnt[0]
    margins = [
        result.margin(setting, learnt, NONE)
        for setting, learnt in product(result.of(data, classes), (fewest, FEW))
    ]
    return _verdict(
        f"{data}, {classes} classes: with {fewest} and {FEW} examples of each, transfer beats no "
        f"transfer by more than the standard error.",
        margins,
        [one.mean > one.error for one in margins],
    )


def _beats_plus_one(result: NPlusOneRun, data: str, classes: int) -> Verdict:
    """The more classes there are, the less it matters to all of them that one is never named."""
    margins, new = (
        [result.margin(one, FEW, PLUS_ONE, measure) for one in result.of(data, classes)]
        for measure in ("everything", "new")
    )
    return _verdict(
        f"{data}, {classes} classes: with {FEW} examples of each, transfer beats source+1, which "
        f"leaves the source as it is, by more than the standard error.",
        margins,
        [one.mean > one.error for one in margins],
        f"; of the new class alone {_range(new)}",
    )


def _keeps_known(result: NPlusOneRun, data: str, classes: int) -> Verdict:
    most = result.plans[data].learnt[-1]
    few, many = (
        [result.margin(one, learnt, SOURCE, "known") for one in result.of(data, classes)]
        for learnt in (FEW, most)
    )
    return _verdict(
        f"{data}, {classes} classes: with {FEW} examples of each, the known classes are recognised "
        f"as well, to the standard error, as by the source, which never takes one for the new.",
        few,
        [one.mean >= -one.error for one in few],
        f"; with {most} examples {_range(many)}" * (most != FEW),
    )


def _nears_batch(result: NPlusOneRun, data: str, classes: int) -> Verdict:
    most = result.plans[data].learnt[-1]
    margins, final, gaps = [], [], []
    for one in result.of(data, classes):
        margins.append(result.margin(one, FEW, result.best_batch(one, FEW)))
        final.append(result.margin(one, most, result.best_batch(one, most)))
        # How far no transfer is from batch.
        gaps.append(margins[-1].mean - result.margin(one, FEW, NONE).mean)
    bridged = [
        m.mean >= min(0.0, (1 - _BRIDGED) * gap) for m, gap in zip(margins, gaps, strict=True)
    ]
    return _verdict(
        f"{data}, {classes} classes: with {FEW} examples of each, transfer is not below batch, the "
        f"better of both, or bridges {_BRIDGED:.0%} of the distance to it from no transfer.",
        margins,
        bridged,
        f"; no transfer is at {min(gaps):+.1f} to {max(gaps):+.1f}"
        + f"; with {most} examples {_range(final)}" * (most != FEW),
    )


def _verdict(claim: str, margins: list[Margin], hold: list[bool], more: str = "") -> Verdict:
    measured = f"so in {sum(hold)} of {len(hold)} cases; {_range(margins)} points{more}"
    return Verdict(claim, all(hold), measured)


def _range(margins: list[Margin]) -> str:
    low, high = (f(margins, key=lambda one: one.mean) for f in (min, max))
    return str(low) if low == high else f"from {low} to {high}"
