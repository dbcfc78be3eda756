"""`python -m benchmarks.crash`: all accidents in full, or those that are named; `--short` for few.

Prints a table, and ends with 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable

from benchmarks.crash import shim


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of the accidents; all by default")
    parser.add_argument("--short", action="store_true", help="a few of each")
    given = parser.parse_args()
    if shim.missing() is None and not shim.loaded():
        command = [sys.executable, "-m", "benchmarks.crash", *sys.argv[1:]]
        os.execve(sys.executable, command, shim.environment())
    accidents = _accidents(given.short)
    if unknown := set(given.names) - set(accidents):
        parser.error(f"there is no {', '.join(sorted(unknown))}, but {', '.join(accidents)}")
    failed = 0
    for name, accident in accidents.items():
        if given.names and name not in given.names:
            continue
        begin = time.perf_counter()
        says, wrong = accident()
        failed += len(wrong)
        print(f"{name:12} {says}  [{time.perf_counter() - begin:.0f} s]", flush=True)
        for text in wrong[:10]:
            print(f"             WRONG {text[:1000]}", flush=True)
    return 1 if failed else 0


def _accidents(short: bool) -> dict[str, Callable[[], tuple[str, list[str]]]]:
    """Each by its name: what came of it in words, and what was wrong."""
    from benchmarks.crash import (
        crowd,
        damage,
        disks,
        histories,
        hostile,
        kills,
        power,
        restores,
        sequences,
    )

    few = 12 if short else 1

    def calls() -> tuple[str, list[str]]:
        total = sum((kills.every_call(name, few) for name in sequences.SEQUENCES), kills.Tally())
        return _of_kills("at or within calls of ten sequences", total)

    def random() -> tuple[str, list[str]]:
        return _of_kills("at random", kills.at_random(40 if short else 2000))

    def powerless() -> tuple[str, list[str]]:
        each = 5 if short else 200
        total = sum((power.failures(name, each) for name in sequences.SEQUENCES), kills.Tally())
        says = f"{total.kills} failures of the power, {total.confirmed} confirmed edits"
        return f"{says}, {len(total.wrong)} wrong", total.wrong

    def failing() -> tuple[str, list[str]]:
        total = disks.all_failing(few)
        return f"{total.kills} edits on failing disks, {len(total.wrong)} wrong", total.wrong

    def restored() -> tuple[str, list[str]]:
        total = restores.restores(40 if short else 3)
        says = f"{total.kills} copies put in the place of a crashed file, {total.confirmed} right"
        return f"{says}, the others refused or as before, {len(total.wrong)} wrong", total.wrong

    def damaged(kind: str, count: int | None, step: int) -> tuple[str, list[str]]:
        total = damage.damaged(kind, count, step)
        says = (
            f"{total.kills} files with other {kind}, {total.confirmed} refused, the others answer"
        )
        return f"{says} as before, {len(total.wrong)} silently wrong", total.wrong

    def by_hand() -> tuple[str, list[str]]:
        total = hostile.by_hand()
        return (
            f"{total.kills} files, {total.confirmed} refused, {len(total.wrong)} wrong",
            total.wrong,
        )

    def together() -> tuple[str, list[str]]:
        total, views = crowd.crowd(5 if short else 60)
        says = f"{total.kills} processes, {total.confirmed} edits, {views} views"
        return f"{says}, {len(total.wrong)} wrong", total.wrong

    def forgotten() -> tuple[str, list[str]]:
        total, said = histories.forgetting(15 if short else 500)
        says = f"{total.kills} histories, {total.confirmed} values forgotten, forget said {said}"
        return f"{says}, {len(total.wrong)} wrong", total.wrong

    faults = {"calls": calls, "random": random, "power": powerless, "disks": failing}
    faults["restores"] = restored
    if missing := shim.missing():
        faults = dict.fromkeys(faults, lambda: (f"not run: {missing}", [missing]))
    return {
        **faults,
        "bits": lambda: damaged("bits", None, 400 if short else 1),
        "lengths": lambda: damaged("lengths", None, 100 if short else 1),
        "mutations": lambda: damaged("mutations", 500 if short else 100_000, 1),
        "hostile": by_hand,
        "crowd": together,
        "forgetting": forgotten,
    }


def _of_kills(how: str, total: object) -> tuple[str, list[str]]:
    from benchmarks.crash.kills import Tally

    assert isinstance(total, Tally)
    lost = len(total.wrong)
    return (
        f"{total.kills} kills {how}, {total.confirmed} confirmed edits, {lost} wrong",
        total.wrong,
    )


if __name__ == "__main__":
    sys.exit(main())
