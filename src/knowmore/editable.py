"""The protocol of a frozen value that answers questions and can be edited.

Three classes implement it: `Living`, a kernel model with the examples that edits have moved ahead
of it; `Forest`; and `Summed`, a linear model with its rows if they are kept. A caller asks for a
capability that the value declares, never for its class.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, Self

from knowmore._base import Array
from knowmore.edits import Edit
from knowmore.examples import Examples


class FrozenModel(Protocol):
    """A model that answers questions about rows X (m, d), with M columns of scores.

    keeps_rows : whether the model has its own examples, so that it can name and leave out each
    has_gram : whether one matrix of all pairs of examples is behind the answers
    one_covariance : whether one posterior covariance is behind all answers
    best_novelty : the method by which `novelty` judges a model of classes by default
    """

    keeps_rows: ClassVar[bool]
    has_gram: ClassVar[bool]
    one_covariance: ClassVar[bool]
    best_novelty: ClassVar[str]

    @property
    def count(self) -> int:
        """The number of examples of a weight above zero."""

    @property
    def names(self) -> Array:
        """The columns of scores, (M,): the classes, or the numbers of targets."""

    @property
    def classes(self) -> bool:
        """Whether the columns are classes."""

    @property
    def temperature(self) -> float:
        """The temperature of the probabilities."""

    @property
    def largest_variance(self) -> Array:
        """The variance of a row as large as the largest example, (), or (M,) with units."""

    def mean(self, X: Array) -> Array:
        """The scores, (m, M)."""

    def variance(self, X: Array) -> Array:
        """The variance of a target, noise included, (m,), or (m, M) with units."""

    def unrelated(self, X: Array) -> Array:
        """Which rows have nothing in common with any example, (m,)."""

    def residual(self) -> float:
        """The distance of the model from the batch fit of its examples."""


class LeavesOut(Protocol):
    """Predictions of a model for its examples and new rows, with groups of examples left out.

    All are scores (m, M), variances (m,), and whether the others carry no information, (m,).
    """

    def scores(self, groups: Array | None = None) -> Any:
        """Predictions for the examples by the examples of other groups; groups (n,)."""

    def on_rows(self, X: Array, groups: tuple[Array, Array] | None) -> Any:
        """Predictions for new rows X (m, d).

        groups : of the rows, (m,), and of the examples, (n,), which leave their own rows out
        """


class Model(Protocol):
    """A frozen model of n examples with M columns of targets, as `Living` needs it."""

    @property
    def covariance(self) -> Any:
        """The examples, the kernel and the factor."""

    @property
    def examples(self) -> Examples:
        """The examples that the model learnt."""

    @property
    def targets(self) -> Any:
        """The targets of the examples."""

    @property
    def names(self) -> Array:
        """The columns of scores, (M,): the classes, or the numbers of targets."""

    def check_examples(self, examples: Examples) -> None:
        """Raise InvalidInput if there can be no model of these examples."""

    def has(self, settings: Any) -> bool:
        """Whether these are its kernel and noise, see `knowmore.models.ModelSettings`."""

    def is_certain(self, examples: Examples, peak: float, settings: Any = None) -> bool:
        """Whether `follow` is sure to succeed for examples of kappa(x, x) at most `peak`."""

    def follow(self, examples: Examples, settings: Any = None) -> Self:
        """The batch fit of `examples`, by the smallest update that leads there.

        settings : another kernel or noise, with which the fit is from scratch
        """

    def mean(self, X: Array) -> Array:
        """The scores (m, M) of X (m, d)."""

    @property
    def left_out(self) -> LeavesOut:
        """The examples, each predicted by the model without it."""

    def residual(self) -> float:
        """The distance of the model from the batch fit of its examples."""


class Editable(Protocol):
    """A frozen value that holds examples and follows edits: the fitted state of an estimator."""

    @property
    def keeps_rows(self) -> bool:
        """Whether it has its examples; without them it takes no edits."""

    @property
    def examples(self) -> Examples:
        """All examples, also examples of weight zero; raises NoRows if it does not keep them."""

    @property
    def labels(self) -> Array:
        """Sample labels, none if there are no examples; they fix the type of new labels."""

    @property
    def next_id(self) -> int:
        """The id of the next example that is given none."""

    @property
    def kernel(self) -> Any:
        """The kernel in use."""

    @property
    def choice(self) -> Any:
        """The settings in use, and how they follow the examples; None for linear models."""

    @property
    def nonempty(self) -> Any:
        """The `FrozenModel` of the examples; raises NoExamples if none has a weight above zero."""

    def apply(self, edit: Edit, choice: Any = None) -> Self:
        """The value after an edit; an unsettled choice is replaced by `choice` if that is given.

        An error that could come later is raised now.
        """
