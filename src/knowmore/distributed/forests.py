"""A forest over shards: rows go by their path to the worker that grows the part of a tree there.

A node is cut by a sample of its members, and that of all shards is among the samples of each. So
the first levels of every tree are cut by samples that the shards send, one level a pass; then
members are sent to where the parts below are grown and their leaves factorised. The parts are the
same as in one process: what decides them are the ids, not the places.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np
from dask.delayed import Delayed, delayed
from distributed.client import default_client
from sklearn.base import clone

from knowmore._base import Array, some
from knowmore.distributed.reading import Reader, Shard
from knowmore.distributed.running import (
    computed,
    in_this_process,
    located,
    persisted,
    quiet_threads,
    task,
    tasks_of,
)
from knowmore.errors import InvalidInput, NoExamples, RepeatedId
from knowmore.estimators import ForestEstimator, Note, Plot
from knowmore.examples import Examples, new_serials
from knowmore.kernels import SETTLED, default_kernel, rows_of_median
from knowmore.models import (
    DEEP,
    LARGEST,
    Choice,
    Cut,
    Forest,
    InnerNode,
    Leaf,
    Members,
    Tree,
    branch,
    choosing_rows,
    first_other,
)

# A tree is grown in about so many parts; more if there are more than half as many threads.
_PARTS: Final = 8


class Crown(NamedTuple):
    """How all trees are cut above the parts in which they are grown; by the hashes of nodes.

    counts : how many members of a node that is cut have a weight above zero
    parts : the trees of the parts, and how many nodes are above each
    """

    cuts: dict[int, Cut]
    counts: dict[int, int]
    parts: dict[int, tuple[Tree, int]]

    def node(self, key: int, grown: Mapping[int, InnerNode | Leaf]) -> InnerNode | Leaf:
        """The node with the hash `key`; grown are the parts."""
        if key in self.parts:
            return grown[key]
        left, right = (self.node(branch(key, side), grown) for side in (0, 1))
        return InnerNode(self.counts[key], self.cuts[key], left, right)


def fit_forest(
    estimator: ForestEstimator, shards: list[Shard], read_rows: Reader, *, progress: bool
) -> ForestEstimator:
    """A fitted copy of the estimator, equal to one fit."""
    with in_this_process():
        plots = persisted(_plots(estimator, shards, read_rows), progress)
        noted = [task(_note)(plot) for plot in plots]
        notes = computed(noted, first=noted)
        held = [k for k, note in enumerate(notes) if note is not None]
        if not held:
            raise NoExamples(
                f"None of the {len(shards)} shards has a row. A model needs at least one."
            )
        notes, plots = [notes[k] for k in held], [plots[k] for k in held]
        for k, note in zip(held[1:], notes[1:], strict=True):
            with located(f"{shards[held[0]][0]} and {shards[k][0]} do not go together"):
                notes[0].check(note)
        members, next_id = _numbered(plots, notes)
        del plots
        empty = _empty(estimator, members, notes)
        forest = _grown(empty, members, sum(note.counted for note in notes), next_id, progress)
        # A function that was a parameter has been to a worker and back: it is another one now.
        parameters = clone(estimator).get_params(deep=False)
        fitted: ForestEstimator = notes[0].estimator.holding(forest).set_params(**parameters)
        return fitted


# -- examples ------------------------------------------------------------------------------------


def _plots(estimator: ForestEstimator, shards: list[Shard], read_rows: Reader) -> list[Delayed]:
    """Examples of each shard, checked where they are; None for a shard without any."""

    def plot(_: str, *shard: Any) -> Plot | None:
        rows = read_rows(*shard)
        return None if np.shape(rows[0])[:1] == (0,) else Plot.of(estimator, *rows)

    return tasks_of(plot, shards)


def _note(plot: Plot | None) -> Note | None:
    return None if plot is None else plot.note


def _numbered(plots: Sequence[Delayed], notes: Sequence[Note]) -> tuple[Sequence[Delayed], int]:
    """The members of each shard, and the next id.

    If any shard has ids, an index of 0, 1, ... in another one is ids too. Else examples are
    numbered in the order of the shards.
    """
    ends = [*accumulate(note.rows for note in notes)]
    serials = np.split(new_serials(ends[-1]), ends[:-1])
    labels = np.result_type(*(note.label for note in notes))
    named = any(note.named for note in notes)
    firsts = [
        0 if named and note.indexed else end - note.rows
        for note, end in zip(notes, ends, strict=True)
    ]
    next_ids = [
        note.next_id if note.named else first + note.rows
        for note, first in zip(notes, firsts, strict=True)
    ]
    parts = zip(plots, firsts, serials, strict=True)
    tasks = [delayed(Plot.members)(plot, first, mine, labels) for plot, first, mine in parts]
    return persisted(tasks), max(next_ids)


def _empty(estimator: ForestEstimator, members: Sequence[Delayed], notes: Sequence[Note]) -> Forest:
    """The forest without examples, with the kernel of all."""
    n, distinct = sum(note.counted for note in notes), np.concatenate([n.distinct for n in notes])
    if not n:
        raise InvalidInput("All weights are zero. Give some example a weight above zero.")
    rule = estimator.rule_for(Examples.of(distinct[:0], notes[0].label[:0]))
    if rule.mode == "median" and rule.kernel is None:
        ends = np.cumsum([note.counted for note in notes])
        begins, rows = [0, *ends[:-1]], rows_of_median(n)
        tasks = [
            delayed(_counted_rows)(part, rows[(rows >= begin) & (rows < end)] - begin)
            for part, begin, end in zip(members, begins, ends, strict=True)
        ]
        settings = rule.at(default_kernel(np.concatenate(computed(tasks))))
        settled = n >= SETTLED and bool((distinct != distinct[0]).any())
        choice = Choice(rule, settings, settled=settled)
    else:
        few = computed([delayed(_choosing)(part) for part in members])
        choice = rule.chosen(Members.joined(few).examples())
    return estimator.empty(choice, distinct, notes[0].label)


def _counted_rows(members: Members, rows: Array) -> Array:
    return np.asarray(members.X[members.weights > 0][rows])


def _choosing(members: Members) -> Members:
    """The members of a shard that may choose the settings, and two that differ."""
    members = members.take(members.weights > 0)
    kind = members.labels.dtype.kind
    labels = None if kind == "f" else members.labels
    some = choosing_rows(members.keys, labels, LARGEST).tolist()
    for values in (members.labels, members.X):
        other = first_other(values)
        some += [] if other is None else [other]
    return members.take(np.unique(np.array(some, dtype=int)))


# -- trees ---------------------------------------------------------------------------------------


def _grown(
    empty: Forest, members: Sequence[Delayed], n: int, next_id: int, progress: bool
) -> Forest:
    """The forest of these members; n of them count."""
    trees, quiet = [empty.store, *empty.trees], quiet_threads()

    def grown(tree: Tree, key: int, depth: int, shards: list[Members]) -> InnerNode | Leaf:
        with quiet():
            return _part(tree, key, depth, Members.joined(shards))

    crown = _crown(trees, members, n // _parts_of_a_tree())
    cuts, keys, tasks = delayed(crown.cuts, traverse=False), list[int](), list[Delayed]()
    for tree in trees:
        there = delayed(tree, traverse=False)
        parted = [delayed(_parted)(shard, there, cuts) for shard in members]
        mine = {key: depth for key, (where, depth) in crown.parts.items() if where is tree}
        tasks += [
            task(grown)(there, key, depth, [shard[key] for shard in parted])
            for key, depth in mine.items()
        ]
        keys += mine
    parts = dict(zip(keys, computed(tasks, progress), strict=True))
    store, *roots = (crown.node(tree.key, parts) for tree in trees)
    return empty.planted(store, roots, next_id)


def _parts_of_a_tree() -> int:
    try:
        threads: int = sum(default_client().nthreads().values())
    except ValueError:
        threads = 1
    return max(_PARTS, 2 * threads)


def _crown(trees: Sequence[Tree], members: Sequence[Delayed], size: int) -> Crown:
    """The cuts until no part has more than `size` members, or than a leaf may hold.

    Deep nodes are cut by all their members, not by samples, and so below the crown.
    """
    crown, depth = Crown({}, {}, {}), 0
    nodes = {tree.key: tree for tree in trees}
    every = delayed(trees, traverse=False)
    while nodes:
        cuts = delayed(crown.cuts, traverse=False)
        tasks = [delayed(_samples)(shard, every, cuts, [*nodes]) for shard in members]
        found = computed(tasks)
        below = dict[int, Tree]()
        for key, tree in nodes.items():
            counts, samples = zip(*(shard[key] for shard in found), strict=True)
            large = sum(counts) > max(size, tree.capacity) and depth < DEEP
            cut = Cut.of(key, Members.joined(samples)) if large else None
            if cut is None:
                crown.parts[key] = tree, depth
            else:
                crown.cuts[key], crown.counts[key] = cut, sum(counts)
                below |= {branch(key, side): tree for side in (0, 1)}
        nodes, depth = below, depth + 1
    return crown


def _samples(
    members: Members, trees: Sequence[Tree], cuts: Mapping[int, Cut], nodes: list[int]
) -> dict[int, tuple[int, Members]]:
    """Facts about the members in one place, for the cuts of these nodes."""
    found = {}
    for tree in trees:
        for key, rows in tree.parted(members, cuts).items():
            if key in nodes:
                counted = rows[members.weights[rows] > 0]
                found[key] = len(counted), tree.sample(key, members, counted)
    return found


def _parted(members: Members, tree: Tree, cuts: Mapping[int, Cut]) -> dict[int, Members]:
    """The members in one place, by the parts of a tree that they belong to."""
    return {key: members.take(np.sort(rows)) for key, rows in tree.parted(members, cuts).items()}


def _part(tree: Tree, key: int, depth: int, members: Members) -> InnerNode | Leaf:
    """A part of a tree; its leaves are factorised, if they are to answer."""
    node = tree.grown(members, key, depth)
    if tree.by_ids:
        _check_unique(members)
        return node
    for leaf in replace(tree, root=node).leaves():
        _ = leaf.current
    return node


def _check_unique(members: Members) -> None:
    """Raise RepeatedId if two have one id: where ids decide the cuts, both are in one part."""
    counts = Counter(members.ids.tolist())
    if repeated := [one for one, count in counts.items() if count > 1]:
        raise RepeatedId(
            f"More than one row of the shards has the id {some(repeated)}. Give each its own: "
            f"ids=..., or an index; reset_index(drop=True) in each shard numbers all rows instead."
        )
