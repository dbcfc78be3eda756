"""How a model follows edits.

An edit is applied to the examples at once, and to the model by the next query: a thousand single
adds and then one prediction cost about as much as one add of a thousand. Whatever could fail in the
query must fail in the edit. So `apply` either proves that the model can follow, and reserves the
memory for it, or lets it follow at once.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, TypeVar, final

import numpy as np

from knowmore._base import Array, enough_memory
from knowmore.edits import Add, Edit, Remove, Replace, check_kind
from knowmore.errors import InvalidInput, NoExamples, NotPositiveDefinite
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel
from knowmore.models import Choice, Model, check_memory, check_rows, max_variance

M = TypeVar("M", bound=Model)

# Memory is reserved in units of this. A model of a few hundred examples needs less than one.
_UNIT = 4 * 2**20
_REMEDY = (
    "A model holds a matrix of all pairs of examples: free memory, remove examples, or use "
    "dtype='float32'."
)


@final
@dataclass(frozen=True, eq=False)
class Living(Generic[M]):
    """Examples, and a model of them that follows edits when it is next needed; frozen.

    model : the latest model, of these examples or earlier ones
    examples : all examples; the model has only examples of a weight above zero
    choice : of the settings of these examples, which the model follows
    peak : the largest kappa(x, x) among the examples, now or before
    reserve : memory for the work that edits have deferred, so that no query runs out of memory for
        it. Allocated but never written, it takes only address space.

    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from knowmore.linalg import Cholesky
    >>> from knowmore.models import KernelModel, one_vs_all
    >>> some = Examples.of(np.array([[0.0], [1.0], [1.5]]), np.array(["no", "yes", "yes"]))
    >>> living = Living.of(KernelModel.of(RBF(), 0.1, some, one_vs_all, Cholesky()), some)
    >>> living.apply(Remove((0,))).current.targets.names
    array(['yes'], dtype='<U3')
    """

    keeps_rows: ClassVar[bool] = True

    model: M
    examples: Examples
    choice: Choice
    peak: float
    reserve: list[Array] = field(default_factory=list, repr=False)

    @classmethod
    def of(cls, model: M, examples: Examples, choice: Choice | None = None) -> Living[M]:
        """A fresh fit to the examples whose weight is above zero.

        choice : of the model's settings; None: they never change
        """
        covariance = model.covariance
        if choice is None:
            choice = Choice.given(covariance.kernel, covariance.noise)
        return cls(
            model,
            examples,
            choice.with_kernel(covariance.kernel),
            max_variance(covariance.kernel, covariance.X),
        )

    @property
    def kernel(self) -> AnyKernel:
        """The kernel in use."""
        return self.choice.settings.kernel

    @property
    def settled(self) -> bool:
        """Whether edits leave the settings as they are."""
        return self.choice.settled

    @property
    def current(self) -> M:
        """The model of these examples. It is computed on first use and replaces the earlier one.

        Two threads may compute it twice, with the same result.
        """
        model, examples, settings = self.model, self.examples.counted, self.choice.settings
        if model.examples is examples and model.has(settings):
            return model
        # In place, since the traceback of an earlier error may still refer to the list.
        self.reserve.clear()
        with enough_memory(
            "bring the model up to date: a matrix of all pairs of examples", _REMEDY
        ):
            followed = model.follow(examples, settings)
        object.__setattr__(self, "model", followed)
        return followed

    @property
    def nonempty(self) -> M:
        """The current model; raises NoExamples if it has none to predict from."""
        model = self.current
        if len(model.examples) == 0:
            reason = "all have weight zero" if len(self.examples) else "all were removed"
            raise NoExamples(f"The model holds no examples: {reason}. Add some before asking.")
        return model

    @property
    def labels(self) -> Array:
        """Sample labels, none if there are no examples; they fix the type of new labels."""
        return self.examples.labels

    @property
    def next_id(self) -> int:
        """The id of the next example that is given none."""
        return self.examples.next_id

    def __getstate__(self) -> dict[str, Any]:
        """For pickles: up to date, so that they contain nothing that was removed."""
        return {**vars(self), "model": self.current, "reserve": []}

    # -- edits -------------------------------------------------------------------------------

    def apply(self, edit: Edit, choice: Choice | None = None) -> Living[M]:
        """The value after an edit. An error that could come later is raised now.

        choice : if given, an unsettled choice is replaced by this one
        """
        check_kind(edit, self.examples.X, self.examples.labels)
        with enough_memory("apply this edit", _REMEDY):
            if self.settled or not isinstance(edit, Remove):
                return self._after(edit, choice)
            # The rest may choose no usable kernel. Forgetting must succeed all the same.
            with suppress(InvalidInput, NotPositiveDefinite):
                after = self._after(edit, choice)
                _ = after.current
                return after
            fixed = replace(self, choice=replace(self.choice, settled=True))
            after = fixed._after(edit, None)
            return replace(after, choice=replace(after.choice, settled=False))

    def _after(self, edit: Edit, choice: Choice | None) -> Living[M]:
        """The value after an edit; its model is sure to follow, or already up to date."""
        examples, model, peak = self.examples.apply(edit), self.model, self.peak
        counted = examples.counted
        model.check_examples(counted)
        if self.settled or choice is None:
            choice = self.choice.after(examples)
        if isinstance(edit, Remove):
            choice = choice.without(edit.ids)
        again = not model.has(choice.settings)
        kernel, covariance = choice.settings.kernel, model.covariance
        if kernel is not self.kernel:
            check_rows(kernel, examples, covariance.width)
            peak = max_variance(kernel, covariance.seen(counted.X))
        elif isinstance(edit, (Add, Replace)):
            # By the kernel of these examples: the kernel of the model may refuse the rows.
            peak = max(peak, max_variance(kernel, covariance.seen(edit.X)))
        after = Living(model, examples, choice, peak, self.reserve)
        if not model.is_certain(counted, peak, choice.settings):
            _ = after.current
            return after
        size = covariance.prepare(counted, from_scratch=again)
        check_memory(len(examples), size)
        reserve = _reserved(size, after.reserve)
        return after if reserve is after.reserve else replace(after, reserve=reserve)


def _reserved(size: int, blocks: list[Array]) -> list[Array]:
    """The blocks, and one more if they have less than `size` bytes. Raises MemoryError."""
    missing = -(-size // _UNIT) * _UNIT - sum(block.nbytes for block in blocks)
    return [*blocks, np.empty(missing, np.uint8)] if size > _UNIT and missing > 0 else blocks
