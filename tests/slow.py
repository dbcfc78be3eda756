"""Which tests `make test` leaves out.

A test that takes long says so where it stands; `pytest --slow` and `make check` run it too.

@pytest.mark.slow                        all cases are slow
@pytest.mark.slow(fast=3)                all but three, which show as many values as they can
@pytest.mark.slow(fast=["add", "keep"])  all but these cases, by the words in the brackets
"""

from __future__ import annotations

from collections import defaultdict

import pytest


def slow_items(items):
    """The collected items that run only with --slow."""
    tests = defaultdict(list)
    for item in items:
        tests[item.nodeid.partition("[")[0]].append(item)
    slow = []
    for cases in tests.values():
        marks = {case: mark for case in cases if (mark := case.get_closest_marker("slow"))}
        fast = next((mark.kwargs["fast"] for mark in marks.values() if "fast" in mark.kwargs), None)
        kept = [] if fast is None else fast_cases(cases, fast)
        slow += [case for case in marks if case not in kept]
    return slow


def fast_cases(cases, fast):
    """Cases of one test that `make test` runs: a number of them, or cases by name."""
    if isinstance(fast, int):
        values = [set(enumerate(case.callspec.id.split("-"))) for case in cases]
        return [cases[i] for i in covering(values, fast)]
    named = {case.callspec.id: case for case in cases}
    if missing := [name for name in fast if name not in named and len(cases) > 1]:
        raise pytest.UsageError(f"{cases[0].nodeid} has no cases {missing}: {list(named)}")
    return [named[name] for name in fast if name in named]


def covering(cases, most):
    """Positions of at most so many cases (sets of values), each the one with most unseen values."""
    seen, chosen, left = set(), [], list(range(len(cases)))
    while left and len(chosen) < most:
        best = max(left, key=lambda i: len(cases[i] - seen))
        left.remove(best)
        chosen.append(best)
        seen |= cases[best]
    return chosen
