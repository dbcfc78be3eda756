"""What a living estimator holds: a model, and what edits have made of it since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator

from knowmore.errors import NotEnoughMemory
from knowmore.estimators.room import Room
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel


class State(NamedTuple):
    """A model, and what edits have made of it since: see `LivingEstimator._apply`.

    examples : as they are now. Edits move them ahead of the model; the next question lets the
        model follow in one step. The model knows of those alone that count: what weighs nothing is
        held here and nowhere else.
    peak : the largest kappa(x, x) seen among them
    kernel : the kernel that the model of these examples has
    decided : whether it stays, or goes on following the examples; see `kernels.enough`
    room : memory for that step, so that it will not be missing then

    One attribute of the estimator holds all of it, so that an edit is one assignment.
    """

    model: Any
    examples: Examples
    peak: float
    kernel: AnyKernel
    decided: bool
    room: Room = Room()

    @classmethod
    def of(cls, model: Any, examples: Examples, *, decided: bool) -> State:
        """That of a fresh fit to those of the examples that count."""
        covariance = model.covariance
        peak = covariance.max_variance(covariance.X)
        return cls(model, examples, peak, covariance.kernel, decided)

    @property
    def is_current(self) -> bool:
        """Is the model that of the examples already?"""
        return self.model.examples is self.examples.counted and self._has_its_kernel

    @property
    def _has_its_kernel(self) -> bool:
        return self.model.covariance.kernel is self.kernel

    def followed(self) -> State:
        """The same with the model of the examples as they are now."""
        if self.is_current:
            return self
        self.room.give_back()
        if self._has_its_kernel:
            model = self.model.follow(self.examples.counted)
        else:
            model = self.model.under(self.kernel, self.examples.counted)
        return self._replace(model=model, room=Room())

    def with_room(self) -> State:
        """The same, sure to have what it takes to follow: compiled code and memory."""
        other = not self._has_its_kernel
        size = self.model.covariance.prepare(self.examples.counted, from_scratch=other)
        return self._replace(room=self.room.grown(size))


def enough_memory(estimator: BaseEstimator, purpose: str, act: Callable[[], State]) -> State:
    """What `act` returns, or that there was no memory for it."""
    try:
        return act()
    except MemoryError as error:
        raise NotEnoughMemory(
            f"There is not enough memory to {purpose}: this {type(estimator).__name__} needs a "
            f"matrix of all pairs of its examples, and while it changes, parts of it twice. "
            f"Nothing was changed. Free memory and try again, remove examples, or use "
            f"dtype='float32'."
        ) from error
