"""Forests of leaf GPs as scikit-learn estimators."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple, final

import numpy as np
from sklearn.base import clone

from knowmore._base import Array, Frozen, Id, flag, index_of, number, whole_number
from knowmore.errors import InvalidInput
from knowmore.estimators import checks
from knowmore.estimators.living import (
    ChoosingEstimator,
    EditableClassifier,
    EditableRegressor,
    checked,
    checked_mode,
    own_kernel,
)
from knowmore.estimators.shell import check_mergeable, joint_classes
from knowmore.examples import Examples, array_of_ids
from knowmore.linalg import Cholesky
from knowmore.models import (
    Choice,
    Coding,
    Forest,
    KernelModel,
    LeftOut,
    Members,
    SettingsRule,
    keys_of,
    normalised_values,
    one_vs_all_and_absent,
)


@dataclass(eq=False, repr=False)
class ForestEstimator(ChoosingEstimator[Forest]):
    """The verbs and questions of a forest, for classification and regression."""

    kernel: Any = None
    noise: float | None = None
    _: KW_ONLY
    capacity: int = 512
    n_trees: int = 1
    seed: int = 0
    settings: str = "first"

    # How the labels of a leaf become targets.
    _coding: ClassVar[Coding]

    @abstractmethod
    def _prediction(self, forest: Forest, scores: Array) -> Array:
        """The predictions that follow from these scores (m, M)."""

    def rule_for(self, examples: Examples) -> SettingsRule:
        """How examples choose the settings that are not given."""
        noise: Any = self.noise
        if noise is not None:
            hint = "It is a variance, usually 1e-6 to 1; None chooses it by leave-one-out."
            noise = number("noise", noise, "[0, inf)", hint)
        kernel = None if self.kernel is None else own_kernel(self.kernel)
        return SettingsRule(kernel, noise, checked_mode(self), self._coding)

    def batch_value(self, choice: Choice, examples: Examples) -> Forest:
        """The forest of the examples, inserted in their order."""
        size = {
            "capacity": whole_number("capacity", self.capacity, 2),
            "n_trees": whole_number("n_trees", self.n_trees, 1, 2**16),
            "seed": whole_number("seed", self.seed, 0),
        }
        nothing = Examples.of(examples.X[:0], examples.labels[:0])
        given = choice.settings.kernel, choice.settings.noise
        model = KernelModel.of(*given, nothing, self._coding, Cholesky())
        return Forest.of(model, examples, **size, choice=choice)

    def empty(self, choice: Choice, X: Array, labels: Array) -> Forest:
        """The forest without examples; those that it is to hold are like X (n, d), labels."""
        return self.batch_value(choice, Examples.of(X[:0], labels[:0]))

    def _terms(self, value: Forest) -> dict[str, Any]:
        return {
            "kernel": value.kernel,
            "noise": value.model.covariance.noise,
            "capacity": value.trees[0].capacity,
            "n_trees": len(value.trees),
            "seed": value.seed,
        }

    @property
    def model_(self) -> Forest:
        """The frozen forest."""
        return self.editable_

    @property
    def noise_(self) -> float:
        """The noise in use, in every leaf."""
        return self.editable_.choice.settings.noise

    def leave_one_out(self, groups: Any = None) -> LeftOut:
        """The prediction for each example by the leaves without it, in closed form.

        Each tree keeps the shape that it has with the example; only the Gaussian process of the
        leaf leaves it out. Scores and variances are then combined as in a prediction. `silent`
        marks examples about which the others say nothing in any tree.
        `groups`: a name for each example in the order of `ids_`, or a pandas Series whose index is
        the ids; whole groups are left out then. An example of weight zero is predicted like a new
        row. All leaves are factorised, if they were not.
        """
        forest: Forest = self.frozen_model()
        examples = forest.examples
        groups = checks.group_names(groups, examples.names)
        scores, variance, silent = forest.left_out.scores(groups)
        predicted, variance = self._prediction(forest, scores), self._variances(forest, variance)
        columns = predicted, silent, forest.names
        return LeftOut(examples.ids, examples.labels, scores, variance, *columns)

    def _variances(self, forest: Forest, variance: Array) -> Array:
        """The variances of a forest in the shape of the predictions."""
        return variance


@final
@dataclass(eq=False, repr=False)
class ForestGPClassifier(EditableClassifier[Forest], ForestEstimator):
    """Gaussian-process classification of millions of examples, which forgets exactly.

    Trees part the examples until no leaf holds more than `capacity`; a leaf is a `GPClassifier` of
    its own examples with the kernel and the noise of all (Fröhlich, Rodner, Kemmler and Denzler,
    2012). A tree's score of class c is that of the leaf which the row falls into; a class that has
    no example there has the target -1 for all. The forest's is the mean over the trees.

    The shape of a tree depends on the ids and features of the examples held and on `seed`, not on
    their order or history: after any edits the forest equals a fresh fit of the examples it holds,
    leaf by leaf. With no more than `capacity` examples it is the `GPClassifier`. An edit changes
    one leaf in each tree, and now and then more (see Notes); a relabelling changes no shape.

    Parameters
    ----------
    kernel : a scikit-learn Kernel, a callable of X (n, d) and Y (m, d) that returns (n, m), or None
        Or a list of kernels: see `GPClassifier`. None is the best by leave-one-out for a panel of
        all rows, and the same in all leaves.
    noise : sigma^2, the variance of the noise on the labels, a number; may be zero. None is the
        best by leave-one-out. With little or none, or a callable kernel, each edit factorises the
        leaves that it touches at once, to raise if that fails. Then a removal can fail, too: it may
        join leaves whose examples are too alike.
    settings : as in `GPClassifier`
    capacity : the number of examples above which a node is cut, at least 2. Predictions gain from
        large leaves and cost time: O(capacity^2) for an edit and the next question.
    n_trees : how many trees are averaged; each takes the memory and time of one
    seed : chooses the cuts: a whole number of at least 0
    probability : "calibrated", or "raw": see `predict_proba`. The first is by all examples up to
        8192; of more, by those in some of the leaves

    Notes
    -----
    A node is cut along one feature at the median of a sample: the 16 examples with the smallest
    hash of id and node. So each feature counts alike, whatever its scale. (Where no feature parts
    the sample well, as among indicators of many categories, it is a random sum of all.) An edit
    that changes the sample of a node of m examples, with a chance of about 16 / m, grows the part
    below it anew. Examples that are equal in all features are split by the hashes of their ids; a
    row that is asked about there is answered by one half of them. An example counts once in the
    shape of a tree whatever its weight, and not at all if that is zero.

    A leaf is factorised when it is first asked, and keeps its factor. With `capacity=512` that is
    about 2.9 kB for each example and tree, with 128 about 1.5 kB.

    Examples have ids: `remove` forgets them, and there is no `forget`. `predict` refuses `unknown`;
    `knowmore.insight.novelty(clf, X).unknown(0.95)` marks rows of no class. `knowmore.insight`
    asks a forest leaf by leaf; only `tune` needs another model.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [8.0], [9.0]]
    >>> clf = ForestGPClassifier(capacity=3).fit(X, ["cold", "cold", "mild", "hot", "hot"])
    >>> clf.add([[4.0]], ["mild"], ids=["noon"])
    array(['noon'], dtype='<U4')
    >>> clf.predict([[4.1], [8.5]])
    array(['mild', 'hot'], dtype='<U4')
    >>> clf.remove("noon").classes_
    array(['cold', 'hot', 'mild'], dtype='<U4')
    """

    _coding: ClassVar[Coding] = one_vs_all_and_absent
    _: KW_ONLY
    probability: str = "calibrated"

    def batch_value(self, choice: Choice, examples: Examples) -> Forest:
        """The forest of the examples; `probability` is checked too."""
        checks.check_meaning(self.probability)
        return super().batch_value(choice, examples)

    @property
    def classes_(self) -> Array:
        """The classes that have examples now or were declared, (M,), sorted.

        Examples of weight zero do not count.
        """
        return joint_classes(self, self.editable_.names)

    def predict(self, X: Any, unknown: Any = None, rate: Any = None) -> Array:
        """The class of the largest score, (m,). `unknown` and `rate` are refused: see Notes."""
        remedy = "knowmore.insight.novelty(clf, X).unknown(0.95) marks such rows"
        checks.refuse_unknown(self, unknown, rate, remedy)
        return super().predict(X)

    def predict_variance(self, X: Any) -> Array:
        """The mean over the trees of sigma_*^2 in the leaf of each row, noise included, (m,).

        It is shared by all classes and ignores labels. How far the trees' scores disagree, which
        differs from class to class, is not in it.
        """
        return np.asarray(self.frozen_model().variance(self.model_inputs(X)))


@final
@dataclass(eq=False, repr=False)
class ForestGPRegressor(EditableRegressor[Forest], ForestEstimator):
    """Gaussian-process regression on millions of examples, which forgets exactly.

    A leaf is a `GPRegressor` of its own examples: it subtracts their mean and divides by their
    standard deviation, so kernel and noise are relative to the spread of the targets in the leaf.
    The prediction is the mean over the trees. All else is as for `ForestGPClassifier`; `relabel`
    gives examples other target values.

    Parameters
    ----------
    kernel, capacity, n_trees, seed, settings : as for `ForestGPClassifier`
    noise : sigma^2, the variance of the noise on the normalised targets; may be zero. None is the
        best by leave-one-out

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0]]
    >>> reg = ForestGPRegressor(noise=0.01, capacity=3, n_trees=2).fit(X, [10.0, 11, 12, 13, 14])
    >>> reg.remove([2]).predict([[1.0]]).round(1)
    array([11.])
    """

    _coding: ClassVar[Coding] = normalised_values

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The mean of the trees' predictions, (m,) or (m, q) as the targets are.

        return_std : and the root of `predict_variance`, of the same shape
        """
        forest, X = self.frozen_model(), self.model_inputs(X)
        with_std = flag("return_std", return_std)
        mean = self._prediction(forest, forest.mean(X))
        return (mean, np.sqrt(self._variances(forest, forest.variance(X)))) if with_std else mean


class Note(NamedTuple):
    """The part of a shard in the forest of all shards.

    estimator : it has noted the columns, and is not fitted
    label : that of one example, (1,) or (1, q)
    rows, counted : how many examples there are, and how many have a weight above zero
    distinct : the first of these, and one that differs from it if there is one, (2, d) or fewer
    named, indexed : whether the examples have ids of their own, and whether a pandas index
    next_id : one more than the largest integer among their ids, or 0
    """

    estimator: ForestEstimator
    label: Array
    rows: int
    counted: int
    distinct: Array
    named: bool
    indexed: bool
    next_id: int

    def check(self, other: Note) -> None:
        """Raise InvalidInput unless the other has the same columns, and labels of the same kind."""
        check_mergeable(self.estimator, other.estimator, "n_features_in_")
        self.estimator._labels(other.label, 1, self.label)


@final
@dataclass(frozen=True, eq=False)
class Plot(Frozen):
    """The examples of one shard, checked, before all shards are known.

    X (n, d), labels (n,) or (n, q), weights (n,)
    ids : those given, or a pandas index that is not 0, 1, ...; None if there are none
    """

    note: Note
    X: Array
    labels: Array
    weights: Array
    ids: tuple[Id, ...] | None

    @classmethod
    def of(cls, estimator: ForestEstimator, X: Any, y: Any, weights: Any, ids: Any) -> Plot:
        """The examples of a shard, for a clone of the estimator."""
        if y is None:
            raise InvalidInput(
                "These rows have no targets. Name the column that has them, or give y beside X."
            )
        indexed = any(index_of(given) is not None for given in (X, y))
        noted = clone(estimator)
        edit = checked(noted, X, y, ids, weights)
        X, n = edit.X, len(edit.X)
        w = np.ones(n) if edit.weights is None else edit.weights
        counted = X[w > 0]
        other = counted[(counted != counted[:1]).any(axis=1)][:1]
        distinct = np.concatenate([counted[:1], other])
        next_id = max([0, *(one + 1 for one in edit.ids or () if isinstance(one, int))])
        named = edit.ids is not None
        note = Note(noted, edit.labels[:1], n, len(counted), distinct, named, indexed, next_id)
        return cls(note, X, edit.labels, w, edit.ids)

    def members(self, first: int, serials: Array, labels: np.dtype[Any]) -> Members:
        """The examples with these serial numbers (n,) and labels of this type.

        first : the first id if they have none of their own
        """
        ids = self.ids or range(first, first + len(self.X))
        columns = self.X, self.labels.astype(labels), self.weights, serials
        return Members(array_of_ids(ids), keys_of(ids), *columns)
