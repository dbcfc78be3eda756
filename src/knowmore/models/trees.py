"""Trees whose shape is a function of the set of examples that they hold.

Whatever decides the shape is computed from ids and features alone, never from their order: any
history of edits leads to the tree that is grown from the examples that are left.

A node that holds more than `capacity` examples is cut in two; any other is a leaf. The cut is made
by a *sample* of the node: the 16 examples with the smallest hash of id and node, and any whose hash
equals the largest of these. An edit changes the sample of a node of m examples with a chance of
about 16 / m. If it does not, it passes on to one child; if it does, the part below the node
is grown anew. So an edit copies one path, and shares all else with the tree before it.

A cut sends those whose value is at most the median of the sample to the left (or at most the next
lower value, if the median is the largest: both sides have some of the sample). The value is

- a single feature: the first, in an order by the node's hash, that leaves a quarter of the sample
  on either side. So features of unequal scale take part alike.
- If there is none, as among indicators of many categories, the sum of all features with random
  weights by the node's hash.
- If the sample is the same in all features, the hash of the id. So examples at one place are split
  too, and a leaf holds more than `capacity` only if hashes of ids are equal. A row that is asked
  about has no id: there it goes left, to one half of examples that are likely all the same.

Examples of weight zero go with the others, but neither are counted nor in a sample.

Hashes are known to all, so ids or features can be made up for which a sample says nothing of its
node. Only a rule that needs no sample bounds the depth: a node below 64 others is cut at the first
bit in which the hashes of the ids of its examples differ. After 64 bits at most there is none. The
trees of a million examples that nobody made up are less than half as deep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from hashlib import blake2b
from typing import Any, final

import numpy as np

from knowmore._base import Array, Frozen, Id, cached_property, derived, enough_memory, mixed
from knowmore.examples import Examples, among, array_of_ids, reserve_serials
from knowmore.models.kernel_model import KernelModel

# The place of a node in a tree: its hash, and the number of nodes above it.
Place = tuple[int, int]
REMEDY = "Free memory, remove examples, or use a smaller capacity or n_trees."
# The size of a sample.
_SAMPLE = 16
# More bits than this are too many digits for Python to write.
_LONG = 14_000
_BITS = 2**64 - 1
# NumPy's calls take longer than hashing so few numbers one by one.
_FEW = 8
# Numbers that are hashed at once.
_CACHED = 2**14
# Cuts that are not by a feature.
_SUM, _ID, _BIT = -1, -2, -3
# Nodes that have so many above them are cut by bits.
DEEP = 64
# The products of features and weights that are in memory at a time.
_NUMBERS = 2**20
# A selection of fewer than one row in this many of a pool is copied: it then fits in the cache.
_SPREAD = 64


# -- hashes ----------------------------------------------------------------------------------------


def _mixed_with(keys: Array, key: int) -> Array:
    """A hash of each of the keys (n,) and the hash of a node, (n,)."""
    if len(keys) <= _FEW:
        return np.array([mixed(one ^ key) for one in keys.tolist()], np.uint64)
    # In parts that stay in the cache.
    return np.concatenate(
        [mixed(keys[i : i + _CACHED] ^ key) for i in range(0, len(keys), _CACHED)]
    )


def keys_of(ids: Sequence[Id]) -> Array:
    """A hash of each id, (n,), the same in every process and on every machine.

    >>> keys_of([7, "7"]) == keys_of(["7", 7])[::-1]
    array([ True,  True])
    """
    short = [type(one) is int and -(2**63) <= one < 2**63 for one in ids]
    if all(short):
        return np.asarray(mixed(np.fromiter(ids, np.int64, len(ids)).view(np.uint64)))
    each = zip(ids, short, strict=True)
    return np.array([mixed(int(one) & _BITS) if s else digest(one) for one, s in each], np.uint64)


def digest(word: Id) -> int:
    """A hash of a word, which tells 7 from "7"."""
    # Python writes no integer of many thousand digits but in powers of two.
    shown = hex(word) if isinstance(word, int) and word.bit_length() > _LONG else word
    text = f"{type(word).__name__} {shown}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


def branch(key: int, side: int) -> int:
    """The hash of a node's child on the left, 0, or right, 1."""
    return int(mixed(mixed(key) ^ side))


# -- what is in a tree -----------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class Members(Frozen):
    """The examples at a node, in the order of their serial numbers.

    ids (n,) and their hashes, keys (n,); X (n, d); labels (n,) or (n, q); weights (n,);
    serials (n,), as in `Examples`
    """

    ids: Array
    keys: Array
    X: Array
    labels: Array
    weights: Array
    serials: Array

    @classmethod
    def of(cls, examples: Examples, rows: Array) -> Members:
        """The members in these rows (k,) of examples."""
        rows = np.sort(rows)
        names = examples.names
        ids = [names[row] for row in rows]
        columns = examples.X, examples.labels, examples.weights, examples.serials
        return cls(array_of_ids(ids), keys_of(ids), *(column[rows] for column in columns))

    @classmethod
    def joined(cls, parts: Sequence[Members]) -> Members:
        """The members of all parts, which are disjoint."""
        filled = [part for part in parts if len(part)] or parts[:1]
        ids, *others = zip(*(part.columns for part in filled), strict=True)
        columns = [_joined_ids(ids), *map(np.concatenate, others)]
        order = columns[-1].argsort(kind="stable")
        return cls(*(column[order] for column in columns))

    def __getstate__(self) -> dict[str, Any]:
        """The fields, without what is derived from them."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        reserve_serials(self.serials)

    def __len__(self) -> int:
        return len(self.serials)

    @property
    def columns(self) -> tuple[Array, ...]:
        """All columns, with a row for each member."""
        return self.ids, self.keys, self.X, self.labels, self.weights, self.serials

    @cached_property
    def count(self) -> int:
        """The number of members of a weight above zero."""
        return int(np.count_nonzero(self.weights > 0))

    def take(self, rows: Array) -> Members:
        """The members in these rows, a mask (n,) or ascending numbers."""
        return Members(*(column[rows] for column in self.columns))

    def sample(self, rows: Array, d: int) -> Members:
        """The sample of these rows, a mask (n,) or numbers, for a cut by d features."""
        some = self.take(rows)
        return replace(some, X=some.X[:, :d])

    def edited(self, edit: Changes) -> Members:
        """The members after an edit."""
        gone = edit.members.serials[~edit.comes]
        rest = self.take(~among(self.serials, gone)) if len(gone) else self
        return Members.joined([rest, edit.members.take(edit.comes)]) if edit.comes.any() else rest

    def examples(self, next_id: int = 0) -> Examples:
        """The members as `Examples`."""
        columns = self.X, self.labels, self.weights, self.serials
        return Examples.restored(self.ids.tolist(), *columns, next_id)


def _joined_ids(parts: Sequence[Array]) -> Array:
    # NumPy would turn integers into strings, or those beyond 63 bits into floats.
    if {part.dtype.kind for part in parts} in ({"i"}, {"U"}):
        return np.concatenate(parts)
    return array_of_ids([one for part in parts for one in part.tolist()])


@final
@dataclass(frozen=True, eq=False)
class Changes(Frozen):
    """An edit: members that come, where the mask `comes` (k,) is true, and members that go.

    One that goes and comes again, with another label, is among the members twice.
    """

    members: Members
    comes: Array

    @classmethod
    def of(cls, out: Members, new: Members) -> Changes:
        """The members `out` go, and the members `new` come."""
        order = np.concatenate([out.serials, new.serials]).argsort(kind="stable")
        return cls(Members.joined([out, new]), order >= len(out))

    @derived
    def counted(self) -> Array:
        """Which have a weight above zero, (k,)."""
        return np.greater(self.members.weights, 0)

    @cached_property
    def more(self) -> int:
        """The change of the number of members of a weight above zero."""
        return int(np.count_nonzero(self.counted & self.comes)) * 2 - self.members.count

    def parted(self, right: Array) -> tuple[Changes | None, Changes | None]:
        """The changes left and right of a cut, by the mask `right` (k,); None for no changes."""
        if right.all():
            return None, self
        if not right.any():
            return self, None
        left, others = (Changes(self.members.take(m), self.comes[m]) for m in (~right, right))
        return left, others


@final
@dataclass(frozen=True, eq=False)
class Leaf(Frozen):
    """A node that is not cut.

    model : of these members, of earlier ones, or of none
    """

    members: Members
    model: KernelModel = field(repr=False)

    @property
    def count(self) -> int:
        """The number of members of a weight above zero."""
        return self.members.count

    @derived
    def examples(self) -> Examples:
        """The members."""
        return self.members.examples()

    @derived
    def classes(self) -> Array:
        """The labels of members whose weight is above zero, (M,), sorted."""
        return np.unique(self.members.labels[self.members.weights > 0])

    @property
    def current(self) -> KernelModel:
        """The model of the members. It is computed on first use and replaces the earlier one."""
        model, examples = self.model, self.examples.counted
        if model.examples is examples:
            return model
        with enough_memory("factorise a leaf", REMEDY):
            followed = model.follow(examples)
        object.__setattr__(self, "model", followed)
        return followed

    def __getstate__(self) -> dict[str, Any]:
        """For pickles: up to date, so that they contain nothing that was removed."""
        if len(self.model.examples):
            _ = self.current
        return vars(self).copy()


@final
@dataclass(frozen=True, eq=False)
class Cut(Frozen):
    """How a node with the hash `key` is cut.

    sample : none if it is cut at a bit
    last : the largest hash of key and node in the sample
    feature, threshold : what is above the threshold goes right; see `_values`
    """

    key: int
    sample: Members
    last: int
    feature: int
    threshold: Any

    @classmethod
    def of(cls, key: int, some: Members) -> Cut | None:
        """The cut of a node by members among which its sample is.

        None if the sample cannot be told apart.
        """
        priorities = _mixed_with(some.keys, key)
        rows = _least(priorities)
        sample, last = some.take(rows), int(priorities[rows[-1]])
        # A sum of features may be rounded to the same value for rows that differ.
        for feature in (_feature(key, sample.X), _ID):
            values = np.sort(_values(key, feature, sample.keys, sample.X, np.arange(len(sample))))
            lower = values[values < values[-1]]
            if len(lower):
                threshold = min(values[(len(values) - 1) // 2], lower[-1])
                return cls(key, sample, last, feature, threshold)
        return None

    @classmethod
    def at_a_bit(cls, key: int, pool: Members, rows: Array) -> Cut | None:
        """The cut of a deep node, at the first bit in which the keys of these members differ.

        None if they are all the same.
        """
        keys = pool.keys[rows]
        least, largest = int(keys.min()), int(keys.max())
        bit = (least ^ largest).bit_length() - 1
        none = pool.take(rows[:0])
        # Those with that bit are above all that have the bits before it, zero, and ones.
        return None if bit < 0 else cls(key, none, 0, _BIT, np.uint64(least | ((1 << bit) - 1)))

    def is_right(self, X: Array, keys: Array | None, rows: Array) -> Array:
        """Which of these rows (k,) of X (n, d) go right, (k,); keys (n,) if they have ids."""
        if keys is None and self.feature in (_ID, _BIT):
            return np.zeros(len(rows), dtype=bool)
        values = _values(self.key, self.feature, keys, X, rows)
        return np.asarray(values > self.threshold)

    def after(self, edit: Changes) -> Cut | None:
        """The cut after an edit if it is where it was; None if it has moved, or may have.

        One at a bit is where it was only if some members are left on either side.
        """
        if self.feature == _BIT:
            return self if self._has_bits_of(edit.members.keys[edit.counted & edit.comes]) else None
        changed, old = edit.members, self.sample
        sampled, full = edit.counted, len(old) >= _SAMPLE
        if full:
            sampled = sampled & (_mixed_with(changed.keys, self.key) <= self.last)
        if not sampled.any():
            return self
        stays = old.take(~np.isin(old.serials, changed.serials[sampled & ~edit.comes]))
        enters = changed.sample(sampled & edit.comes, old.X.shape[1])
        new = Members.joined([stays, enters])
        if full and len(new) < _SAMPLE:
            # The next of the sample are somewhere below this node.
            return None
        cut = Cut.of(self.key, new)
        same = cut is not None and (cut.feature, cut.threshold) == (self.feature, self.threshold)
        return cut if same else None

    def _has_bits_of(self, keys: Array) -> bool:
        """Whether these keys (k,) have the bits before the one that is cut."""
        threshold = int(self.threshold)
        # All bits from the one that is cut: a zero, then ones.
        cut = threshold ^ (threshold + 1)
        return bool(((keys ^ self.threshold) <= np.uint64(cut)).all())


def _least(priorities: Array) -> Array:
    """Which of some members with these priorities (n,) are the sample of all, (s,), in order.

    All that have the last one's are in it: which of them came first must not decide.
    """
    rows = np.arange(len(priorities))
    if len(rows) > _SAMPLE:
        last = np.partition(priorities, _SAMPLE - 1)[_SAMPLE - 1]
        rows = np.flatnonzero(priorities <= last)
    return rows[priorities[rows].argsort(kind="stable")]


def _feature(key: int, X: Array) -> int:
    """The feature that cuts the node with the hash `key` and sample X (s, d): see `_values`."""
    V = np.sort(X, axis=0)
    last, middle = V[-1], V[(len(V) - 1) // 2]
    left = np.where(middle < last, middle >= V, last > V).sum(axis=0)
    balanced = np.flatnonzero(4 * np.minimum(left, len(V) - left) >= len(V))
    if len(balanced):
        return int(balanced[mixed(balanced.astype(np.uint64) ^ key).argmin()])
    return _SUM if left.any() else _ID


def _values(key: int, feature: int, keys: Any, X: Array, rows: Array) -> Array:
    """The values (k,) that a node cuts, for rows (k,) of X (n, d) with the keys (n,).

    A feature, or _SUM: all of them with weights in [-1, 1) / d; or _ID, _BIT: the keys.
    """
    if feature in (_ID, _BIT):
        return np.asarray(keys[rows])
    if feature != _SUM:
        return np.asarray(X[rows, feature])
    d = X.shape[1]
    hashes = mixed(np.arange(d, dtype=np.uint64) ^ mixed(key))
    weights = ((hashes >> 11) * 2.0**-52 - 1) / d
    # No matrix product: a row has the same bits alone and among other rows.
    steps = range(0, len(rows), max(_NUMBERS // d, 1))
    parts = (X[rows[i : i + steps.step]] * weights for i in steps)
    return np.concatenate([np.zeros(0), *(np.cumsum(part, axis=1)[:, -1] for part in parts)])


@final
@dataclass(frozen=True, eq=False)
class InnerNode(Frozen):
    """A node that is cut; `count` members below it have a weight above zero."""

    count: int
    cut: Cut
    left: InnerNode | Leaf
    right: InnerNode | Leaf

    @derived
    def classes(self) -> Array:
        """The labels of members whose weight is above zero, (M,), sorted."""
        one, other = self.left.classes, self.right.classes
        return one if np.array_equal(one, other) else np.union1d(one, other)


# -- the tree --------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class Tree:
    """A tree with the hash `key`; frozen.

    model : of no examples, where the models of the leaves start
    by_ids : whether all cuts are by the hashes of ids, to find members by these
    """

    key: int
    capacity: int
    model: KernelModel = field(repr=False)
    by_ids: bool
    root: InnerNode | Leaf = field(repr=False)

    @classmethod
    def of(
        cls, key: int, capacity: int, model: KernelModel, members: Members, *, by_ids: bool = False
    ) -> Tree:
        """The tree of these members."""
        bare = cls(key, capacity, model, by_ids, Leaf(members, model))
        return replace(bare, root=bare.grown(members, key))

    def grown(self, members: Members, key: int, depth: int = 0) -> InnerNode | Leaf:
        """The node with the hash `key` below `depth` others, of all its members."""
        return self._grown(members, np.arange(len(members)), (key, depth), {})

    def edited(self, edit: Changes) -> Tree:
        """The tree after an edit of its members."""
        return replace(self, root=self._edited(self.root, (self.key, 0), edit))

    def _grown(
        self, pool: Members, rows: Array, place: Place, known: dict[bytes, KernelModel]
    ) -> InnerNode | Leaf:
        """The node at some place, of these rows of a pool.

        known : models of leaves that may turn up again, by the serial numbers of their members
        """
        if _SPREAD * len(rows) < len(pool):
            pool, rows = pool.take(rows), np.arange(len(rows))
        counted = rows if pool.count == len(pool) else rows[pool.weights[rows] > 0]
        if len(counted) > self.capacity:
            key, depth = place
            if depth < DEEP:
                cut = Cut.of(key, self.sample(key, pool, counted))
            else:
                cut = Cut.at_a_bit(key, pool, counted)
            if cut is not None:
                right = cut.is_right(pool.X, pool.keys, rows)
                below = [
                    self._grown(pool, rows[there], _child(place, side), known)
                    for side, there in enumerate((~right, right))
                ]
                return InnerNode(len(counted), cut, *below)
        members = pool.take(rows)
        return Leaf(members, known.get(members.serials.tobytes(), self.model))

    def _edited(self, node: InnerNode | Leaf, place: Place, edit: Changes) -> InnerNode | Leaf:
        """The node at some place after an edit."""
        count = node.count + edit.more
        if isinstance(node, Leaf) and count <= self.capacity:
            return Leaf(node.members.edited(edit), node.model)
        if isinstance(node, InnerNode) and count > self.capacity:
            cut = node.cut.after(edit)
            below = None if cut is None else self._below(node, cut, place, edit)
            if cut is not None and below is not None:
                return InnerNode(count, cut, *below)
        leaves = list(_leaves(node))
        members = Members.joined([leaf.members for leaf in leaves]).edited(edit)
        known = {leaf.members.serials.tobytes(): leaf.model for leaf in leaves}
        return self._grown(members, np.arange(len(members)), place, known)

    def _below(
        self, node: InnerNode, cut: Cut, place: Place, edit: Changes
    ) -> list[InnerNode | Leaf] | None:
        """The children after an edit that leaves the cut where it was; None if one is empty."""
        some = edit.members
        parts = edit.parted(cut.is_right(some.X, some.keys, np.arange(len(some))))
        pairs = [*zip((node.left, node.right), parts, strict=True)]
        if not all(child.count + (part.more if part else 0) for child, part in pairs):
            return None
        return [
            child if part is None else self._edited(child, _child(place, side), part)
            for side, (child, part) in enumerate(pairs)
        ]

    # -- looking up --------------------------------------------------------------------------

    @property
    def first(self) -> Leaf:
        """The leaf on the far left."""
        node = self.root
        while isinstance(node, InnerNode):
            node = node.left
        return node

    def leaves(self) -> Iterator[Leaf]:
        """All leaves, from left to right."""
        return _leaves(self.root)

    def parted(self, members: Members, cuts: Mapping[int, Cut]) -> dict[int, Array]:
        """The rows of members in each node below some cuts; all by the hashes of nodes."""
        waiting, found = [(self.key, np.arange(len(members)))], dict[int, Array]()
        while waiting:
            key, rows = waiting.pop()
            if key in cuts:
                right = cuts[key].is_right(members.X, members.keys, rows)
                waiting += [(branch(key, 0), rows[~right]), (branch(key, 1), rows[right])]
            else:
                found[key] = rows
        return found

    def sample(self, key: int, members: Members, rows: Array) -> Members:
        """The sample among these counted rows of members, for the cut of the node `key`.

        If they are some of the node's members, its sample is among the samples of all of them.
        """
        sampled = rows[_least(_mixed_with(members.keys[rows], key))]
        return members.sample(sampled, 0 if self.by_ids else members.X.shape[1])

    def reached(self, X: Array, keys: Array | None = None) -> Iterator[tuple[Leaf, Array]]:
        """The leaves of the rows X (m, d), each with the numbers of its rows.

        keys : the hashes of their ids, (m,), None if they have none
        """
        waiting = [(self.root, np.arange(len(X)))] if len(X) else []
        while waiting:
            node, rows = waiting.pop()
            if isinstance(node, Leaf):
                yield node, rows
                continue
            right = node.cut.is_right(X, keys, rows)
            sides = (node.right, rows[right]), (node.left, rows[~right])
            waiting += [(child, some) for child, some in sides if len(some)]

    @property
    def members(self) -> Members:
        """All members."""
        return Members.joined([leaf.members for leaf in self.leaves()])


def _child(place: Place, side: int) -> Place:
    """The place of the child on the left, 0, or right, 1."""
    return branch(place[0], side), place[1] + 1


def _leaves(node: InnerNode | Leaf) -> Iterator[Leaf]:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Leaf):
            yield node
        else:
            waiting += [node.right, node.left]
