"""The protocol of a frozen value that answers questions and can be edited.

Three families implement it: kernel models (`Living`, with the examples that edits have moved ahead
of the model), forests, and linear models, which keep sums instead of rows. A caller asks for a
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


class Editable(Protocol):
    """A frozen value that holds examples and follows edits: the fitted state of an estimator."""

    @property
    def examples(self) -> Examples:
        """All examples, also examples of weight zero."""

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
    def settled(self) -> bool:
        """Whether the kernel is fixed."""

    @property
    def nonempty(self) -> Any:
        """The `FrozenModel` of the examples; raises NoExamples if none has a weight above zero."""

    def apply(self, edit: Edit, kernel: Any = None) -> Self:
        """The value after an edit; an unsettled kernel is replaced by `kernel` if that is given.

        An error that could come later is raised now.
        """
