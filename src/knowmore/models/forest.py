"""A forest of leaf GPs: Gaussian processes on millions of examples, each on a few hundred.

Each tree parts the examples (see `trees`). A leaf is a Gaussian process on its own examples, with
the kernel and the noise of all. A tree answers by the leaf that a row falls into, the forest by the
mean of its trees (Fröhlich, Rodner, Kemmler and Denzler, "Large-scale Gaussian process
classification using random decision forests", 2012).

The shape of a tree is a function of the set of examples, so the forest equals the batch fit of the
examples that it holds, leaf by leaf. A leaf is factorised when it is first asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, TypeVar, final

import numpy as np

from knowmore._base import Array, Frozen, Id, derived, enough_memory
from knowmore.edits import Add, Edit, Remove, check_kind
from knowmore.errors import InvalidInput, NoExamples, NotPositiveDefinite
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel
from knowmore.models.covariance import MANY, check_memory, max_variance
from knowmore.models.kernel_model import KernelModel
from knowmore.models.loo import LooScores, loo_scores
from knowmore.models.probabilities import Trial
from knowmore.models.settings import Choice
from knowmore.models.trees import REMEDY, Changes, InnerNode, Leaf, Members, Tree, digest, keys_of
from knowmore.models.unrelated import isolated

# The examples of a leaf of the tree that finds them by their ids.
_SHELF = 512
# At most this many examples decide the temperature.
_JUDGED = 8192
# More examples than a leaf can have.
_LARGEST = 2**31

T = TypeVar("T")
Answers = Callable[[Array], Array]
# The GPs of leaves that answer, and for which rows, (k,).
Reached = list[tuple[KernelModel, Array]]


@final
@dataclass(frozen=True, eq=False)
class Forest(Frozen):
    """Examples, and trees of leaf GPs on them; frozen.

    store : all examples, found by their ids
    trees : at least one, all of the same capacity
    choice : of the settings of all leaves
    next_id : the first of the ids that the next examples get unless they are given some
    extremes : the largest kappa(x, x), the least and the largest weight of all examples so far

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from knowmore.linalg import Cholesky
    >>> from knowmore.models.targets import one_vs_all_and_absent
    >>> some = Examples.of(np.array([[0.0], [1.0], [5.0]]), np.array(["no", "yes", "yes"]))
    >>> nothing = Examples.of(some.X[:0], some.labels[:0])
    >>> gp = KernelModel.of(RBF(), 0.1, nothing, one_vs_all_and_absent, Cholesky())
    >>> forest = Forest.of(gp, some, capacity=2, n_trees=1, seed=0)
    >>> len(list(forest.trees[0].leaves())), len(list(forest.apply(Remove((0,))).trees[0].leaves()))
    (2, 1)
    """

    keeps_rows: ClassVar[bool] = True
    has_gram: ClassVar[bool] = False
    one_covariance: ClassVar[bool] = False
    best_novelty: ClassVar[str] = "probability"

    store: Tree = field(repr=False)
    trees: tuple[Tree, ...] = field(repr=False)
    model: KernelModel
    seed: int
    choice: Choice
    next_id: int
    extremes: tuple[float, float, float]

    @classmethod
    def of(
        cls,
        model: KernelModel,
        examples: Examples,
        *,
        capacity: int,
        n_trees: int,
        seed: int,
        choice: Choice | None = None,
    ) -> Forest:
        """The batch fit. `model` is of no examples and has the kernel, the noise and the coding.

        choice : of its settings; None: they never change
        """
        if choice is None:
            choice = Choice.given(model.covariance.kernel, model.covariance.noise)
        members = Members.of(examples, np.arange(len(examples)))
        store = Tree.of(digest("ids"), _SHELF, model, members, by_ids=True)
        keys = [digest(f"{seed} {tree}") for tree in range(n_trees)]
        trees = tuple(Tree.of(key, capacity, model, members) for key in keys)
        bare = cls(store, trees, model, seed, choice, examples.next_id, (0.0, 1.0, 1.0))
        return bare.sure(members)

    def planted(
        self, store: InnerNode | Leaf, roots: Sequence[InnerNode | Leaf], next_id: int
    ) -> Forest:
        """The batch fit whose trees were grown elsewhere; this one holds no examples.

        store, roots : of the trees of this one, as `Tree.grown` returns them
        """
        pairs = zip(self.trees, roots, strict=True)
        whole = replace(
            self,
            store=replace(self.store, root=store),
            trees=tuple(replace(tree, root=root) for tree, root in pairs),
            next_id=next_id,
        )
        return whole.sure(whole.store.members)

    @property
    def kernel(self) -> AnyKernel:
        """The kernel of all leaves."""
        return self.model.covariance.kernel

    @property
    def settled(self) -> bool:
        """Whether edits leave the settings as they are."""
        return self.choice.settled

    @property
    def examples(self) -> Examples:
        """All examples, in the order in which they came. It takes a pass over all leaves."""
        return self._examples

    @derived
    def _examples(self) -> Examples:
        return self.store.members.examples(self.next_id)

    @property
    def labels(self) -> Array:
        """Sample labels, none if there are no examples; they fix the type of new labels."""
        return self.store.first.members.labels

    @property
    def names(self) -> Array:
        """The columns of scores, (M,): the classes, or the numbers of targets."""
        return self.trees[0].root.classes if self.classes else np.arange(len(self.model.names))

    @property
    def classes(self) -> bool:
        """Whether the columns are classes."""
        return self.model.classes

    @property
    def count(self) -> int:
        """The number of examples of a weight above zero."""
        return self.trees[0].root.count

    @property
    def nonempty(self) -> Forest:
        """Itself; raises NoExamples if it has none to predict from."""
        if self.count == 0:
            reason = "all have weight zero" if len(self.labels) else "all were removed"
            raise NoExamples(f"The model holds no examples: {reason}. Add some before asking.")
        return self

    # -- edits -------------------------------------------------------------------------------

    def apply(self, edit: Edit, choice: Choice | None = None) -> Forest:
        """The forest after an edit. An error that could come later is raised now.

        choice : if given, an unsettled choice is replaced by this one
        """
        some = self.store.first.members
        check_kind(edit, some.X, some.labels)
        with enough_memory("apply this edit", REMEDY):
            if self.settled:
                return self._after(edit)
            if choice is not None or not isinstance(edit, Remove):
                return self._chosen(edit, choice)
            # The rest may choose no usable kernel. Forgetting must succeed all the same.
            with suppress(InvalidInput, NotPositiveDefinite):
                return self._chosen(edit)
            return self._after(edit)

    def _chosen(self, edit: Edit, choice: Choice | None = None) -> Forest:
        """The forest after an edit, with the settings that its examples choose, or these."""
        examples = self.examples.apply(edit)
        choice = self.choice.after(examples) if choice is None else choice
        if self.model.has(choice.settings):
            return replace(self._after(edit), choice=choice)
        model = self.model.follow(self.model.examples, choice.settings)
        size = {"capacity": self.trees[0].capacity, "n_trees": len(self.trees), "seed": self.seed}
        return Forest.of(model, examples, **size, choice=choice)

    def _after(self, edit: Edit) -> Forest:
        """The forest after an edit, with the same kernel: all but a few leaves are shared."""
        if isinstance(edit, Add) and edit.ids is None:
            edit = replace(edit, ids=tuple(range(self.next_id, self.next_id + len(edit.X))))
        ids: tuple[Id, ...] = edit.ids or ()
        # The examples on the shelves where these ids belong.
        shelves = [
            one.members for one, _ in self.store.reached(np.empty((len(ids), 0)), keys_of(ids))
        ]
        before = Members.joined(shelves or [self.store.first.members]).examples(self.next_id)
        after = before.apply(edit)
        choice = self.choice.without(ids) if isinstance(edit, Remove) else self.choice
        out = Members.of(before, before.rows(() if isinstance(edit, Add) else ids))
        new = Members.of(after, after.rows(() if isinstance(edit, Remove) else ids))
        changes = Changes.of(out, new)
        store, *trees = (tree.edited(changes) for tree in (self.store, *self.trees))
        changed = replace(self, store=store, trees=tuple(trees), next_id=after.next_id)
        changed = replace(changed, choice=choice)
        return changed.sure(new)

    def sure(self, new: Members) -> Forest:
        """The forest, once no leaf can fail; `new` are the members that came last."""
        peak, lightest, heaviest = self.extremes
        weights = new.weights[new.weights > 0]
        peak = max(peak, max_variance(self.kernel, new.X))
        lightest = float(weights.min(initial=lightest))
        heaviest = float(weights.max(initial=heaviest))
        weighed = min(lightest, 1.0), max(heaviest, 1.0)
        largest = min(self.trees[0].capacity, _LARGEST)
        sure = self.model.covariance.tolerates(largest, weighed, peak)
        if len(new) and self.trees[0].capacity > MANY:
            # A leaf may be so large that it could not be factorised.
            for leaf in self.leaves():
                examples = leaf.examples.counted
                needed = leaf.model.covariance.prepare(examples)
                check_memory(len(examples), needed, "leaf", REMEDY)
        if not sure:
            for leaf in self.leaves():
                _ = leaf.current
        return replace(self, extremes=(peak, lightest, heaviest))

    # -- asking ------------------------------------------------------------------------------

    def mean(self, X: Array) -> Array:
        """The mean of the trees' scores, (m, M).

        A class that has no example in a leaf has the target -1 for all that are there.
        """
        total = sum(_means(self, X))
        return np.asarray(total / len(self.trees))

    def variance(self, X: Array) -> Array:
        """The variance of a target at each row of X, noise included.

        Of classes, (m,): the mean of the trees' variances. Of values, (m, M): that of the mixture
        of the trees' predictions, which has the variance of their means besides.
        """
        total = sum(self.asked(tree, X, lambda leaf: leaf.current.variance) for tree in self.trees)
        variance = np.asarray(total / len(self.trees))
        return variance if self.classes else variance + self.disagreement(X)

    def unrelated(self, X: Array) -> Array:
        """Which rows have nothing in common with any example of the leaves they reach, (m,)."""

        def alone(leaf: Leaf) -> Answers:
            gp = leaf.current
            return lambda rows: isolated(gp, rows) | gp.unrelated(rows)

        trees = [self.asked(tree, X, alone) for tree in self.trees]
        return np.asarray(np.all(trees, axis=0))

    @property
    def largest_variance(self) -> Array:
        """The variance of a row as large as the largest example; it takes a pass over all.

        Of values, (M,), in units of their variance.
        """
        examples = self.examples.counted
        covariance = self.model.covariance
        largest = np.asarray(covariance.noise + max_variance(self.kernel, examples.X))
        if self.classes:
            return largest
        Y, w = examples.labels.reshape(len(examples), -1), examples.weights
        apart = Y - np.average(Y, axis=0, weights=w)
        return np.asarray(largest * np.average(apart**2, axis=0, weights=w))

    def disagreement(self, X: Array) -> Array:
        """The variance of the trees' scores, (m, M)."""
        return np.asarray(np.var([*_means(self, X)], axis=0))

    def leaves(self) -> Iterator[Leaf]:
        """The leaves of all trees."""
        return (leaf for tree in self.trees for leaf in tree.leaves())

    def answering(self, X: Array, ids: Sequence[Id] | None = None) -> list[Reached]:
        """For each tree the GPs of the leaves that answer for X (m, d), each with its rows of X.

        ids : those of the rows, if they are examples that are held
        """
        keys = None if ids is None else keys_of(ids)
        return [
            [(leaf.current, rows) for leaf, rows in tree.reached(X, keys)] for tree in self.trees
        ]

    def asked(self, tree: Tree, X: Array, question: Callable[[Leaf], Answers]) -> Array:
        """The answers of a tree for rows X (m, d), each by the leaf that the row reaches."""
        parts = [(rows, answered(question(leaf), X, rows)) for leaf, rows in tree.reached(X)]
        order = np.concatenate([rows for rows, _ in parts]).argsort()
        return np.concatenate([answers for _, answers in parts])[order]

    @property
    def left_out(self) -> ForestLeaveOneOut:
        """The examples, each predicted by the forest without it."""
        return ForestLeaveOneOut(self)

    @derived
    def temperature(self) -> float:
        """tau of the probabilities (`class_probabilities`), from leave-one-out."""
        return self.left_out.temperature()

    def residual(self) -> float:
        """How far the leaf that is furthest off is from its batch fit."""
        return max(leaf.current.residual() for leaf in self.leaves())


@final
@dataclass(frozen=True, eq=False)
class ForestLeaveOneOut:
    """The examples of a forest, each predicted by the forest without it, in closed form."""

    forest: Forest

    def scores(self, groups: Array | None = None) -> LooScores:
        """Predictions for the examples by the examples of other groups; groups (n,).

        Each tree keeps the shape that it has with all examples: only the GP of a leaf leaves them
        out. An example is silent if it is so in every tree.
        """
        serials = self.forest.examples.serials

        def left(leaf: Leaf) -> LooScores:
            at = np.searchsorted(serials, leaf.members.serials)
            return loo_scores(leaf.current, leaf.examples, None if groups is None else groups[at])

        return self._left_out(lambda leaf: leaf.examples, left)

    def unseen(self, groups: Array | None = None) -> LooScores:
        """Predictions for each example of a weight above zero, as if it were a new row."""
        serials = self.forest.examples.counted.serials

        def left(leaf: Leaf) -> LooScores:
            at = np.searchsorted(serials, leaf.examples.counted.serials)
            return leaf.current.left_out.unseen(None if groups is None else groups[at])

        return self._left_out(lambda leaf: leaf.examples.counted, left)

    def unrelated(self, groups: Array | None = None) -> Array:
        """Which examples have nothing in common with others (of other groups) in their leaves."""
        found = np.ones(self.forest.count, dtype=bool)
        serials = self.forest.examples.counted.serials
        for leaf in self.forest.leaves():
            at, gp = np.searchsorted(serials, leaf.examples.counted.serials), leaf.current
            these = None if groups is None else groups[at]
            found[at] &= isolated(gp, groups=these) | gp.left_out.unrelated(these)
        return found

    def class_support(self) -> Array:
        """The score of each example by the others of its class alone, (n,): see `Trial`."""
        return self._trial(self.forest.store.members).class_support

    def temperature(self) -> float:
        """tau of the probabilities (`class_probabilities`), from leave-one-out.

        By all examples, or by those in some leaves of the first tree, evenly spaced, if there are
        many: to leave each out, all leaves that it is in are factorised.
        """
        if not self.forest.classes or self.forest.count < 2:
            return 1.0
        leaves = [leaf.members for leaf in self.forest.trees[0].leaves()]
        some = -(-_JUDGED * len(leaves) // self.forest.count)
        chosen = np.unique(np.linspace(0, len(leaves) - 1, some).astype(int))
        members = Members.joined([leaves[i] for i in chosen])
        # An example is in another leaf of each tree.
        few = np.argsort(members.keys, kind="stable")[: _JUDGED // len(self.forest.trees)]
        return self._trial(members.take(np.sort(few))).temperature

    def _trial(self, members: Members) -> Trial:
        """The trial of these members of a weight above zero, each left out."""
        members, names = members.take(members.weights > 0), self.forest.names
        k, share = len(members), 1 / len(self.forest.trees)
        scores, variance, class_support = np.zeros((k, len(names))), np.zeros(k), np.zeros(k)
        silent = np.ones(k, dtype=bool)
        for tree in self.forest.trees:
            for leaf, rows in tree.reached(members.X, members.keys):
                gp = leaf.current
                at = np.searchsorted(gp.examples.serials, members.serials[rows])
                said, spread, nothing = gp.left_out.unseen()
                scores[rows] += share * said[np.ix_(at, columns_in(gp, names))]
                variance[rows] += share * spread[at]
                silent[rows] &= nothing[at]
                class_support[rows] += share * gp.left_out.class_support()[at]
        codes = np.searchsorted(names, members.labels)
        counts = self._counts() - np.bincount(codes[silent], minlength=len(names))
        return Trial(scores, variance, silent, class_support, codes, counts)

    def _counts(self) -> Array:
        """The number of examples of a weight above zero in each class, (M,)."""
        counts = np.zeros(len(self.forest.names), dtype=int)
        for leaf in self.forest.trees[0].leaves():
            held = leaf.members.labels[leaf.members.weights > 0]
            classes, number = np.unique(held, return_counts=True)
            counts[np.searchsorted(self.forest.names, classes)] += number
        return counts

    def _left_out(
        self, held: Callable[[Leaf], Examples], left: Callable[[Leaf], LooScores]
    ) -> LooScores:
        """The mean over all trees of what `left` gives for the examples `held` of each leaf."""
        names, trees = self.forest.names, []
        for tree in self.forest.trees:
            found, serials = [], []
            for leaf in tree.leaves():
                scores, *others = left(leaf)
                found.append([scores[:, columns_in(leaf.current, names)], *others])
                serials.append(held(leaf).serials)
            order = np.concatenate(serials).argsort()
            trees.append([np.concatenate(each)[order] for each in zip(*found, strict=True)])
        scores, variances, silent = zip(*trees, strict=True)
        variance = np.mean(variances, axis=0)
        if not self.forest.classes:
            variance = variance + np.var(scores, axis=0)
        return LooScores(np.mean(scores, axis=0), variance, np.all(silent, axis=0))


def columns_in(leaf: KernelModel, names: Array) -> Array:
    """The columns of the GP of a leaf for these names (k,); the last is for absent classes."""
    if not leaf.classes:
        return names
    at = np.searchsorted(leaf.names, names)
    return np.where(leaf.names.take(at, mode="clip") == names, at, -1)


def _means(forest: Forest, X: Array) -> Iterator[Array]:
    """The scores of each tree, (m, M)."""
    names = forest.names
    for tree in forest.trees:
        yield forest.asked(tree, X, lambda leaf: partial(_scores, leaf.current, names))


def _scores(leaf: KernelModel, names: Array, X: Array) -> Array:
    """The scores of X (m, d) by the GP of a leaf in the columns of these names, (m, M)."""
    return np.asarray(leaf.mean(X)[:, columns_in(leaf, names)])


def answered(ask: Callable[[Array], T], X: Array, rows: Array) -> T:
    """The answer `ask` gives for these rows (k,) of X (m, d); an error names the row of X."""
    try:
        return ask(X[rows])
    except InvalidInput:
        for row in rows:
            try:
                ask(X[row : row + 1])
            except InvalidInput as error:
                named = str(error).replace("row 0 of X", f"row {row} of X")
                raise InvalidInput(named) from error
        raise
