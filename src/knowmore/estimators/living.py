"""What all living estimators share: the verbs, and the folding of edits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, NamedTuple, Self, TypeVar, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import Kernel

from knowmore.arguments import choice
from knowmore.concurrency import moment
from knowmore.edits import Add, Edit, Relabel, Remove, Replace, as_ids
from knowmore.errors import InvalidInput, NoExamples, NotEnoughMemory, NotFitted
from knowmore.estimators.checks import group_names, inputs, sample_weights
from knowmore.estimators.room import Room
from knowmore.estimators.shell import learnt, same_features, same_kind
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel, enough, median_rbf
from knowmore.linalg import Cholesky, Factor, Inverse
from knowmore.models import LeftOut, Model

Array = npt.NDArray[Any]

M = TypeVar("M", bound=Model)

_SOLVERS = {"cholesky": Cholesky, "inverse": Inverse}


class _State(NamedTuple):
    """A model, and what edits have made of it since: see `LivingEstimator._apply`.

    examples : as they are now. Edits move them ahead of the model; the next question lets the
        model follow in one step.
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
    def of(cls, model: Any, *, decided: bool) -> _State:
        """That of a fresh fit."""
        covariance = model.covariance
        return cls(model, model.examples, covariance.peak, covariance.kernel, decided)

    @property
    def is_current(self) -> bool:
        """Is the model that of the examples already?"""
        return self.model.examples is self.examples and self._has_its_kernel

    @property
    def _has_its_kernel(self) -> bool:
        return self.model.covariance.kernel is self.kernel

    def followed(self) -> _State:
        """The same with the model of the examples as they are now."""
        if self.is_current:
            return self
        self.room.give_back()
        if self._has_its_kernel:
            model = self.model.follow(self.examples)
        else:
            model = self.model.under(self.kernel, self.examples)
        return self._replace(model=model, room=Room())

    def with_room(self) -> _State:
        """The same, sure to have what it takes to follow: compiled code and memory."""
        anew = not self._has_its_kernel
        size = self.model.covariance.prepare(self.examples, anew=anew)
        return self._replace(room=self.room.grown(size))


class LivingEstimator(BaseEstimator, ABC, Generic[M]):
    """An estimator that adds, removes, replaces and relabels, and stays equal to a fresh fit.

    M is the frozen model behind it.
    """

    kernel: AnyKernel | None
    solver: str
    update: str
    dtype: str

    @abstractmethod
    def _batch(self, kernel: AnyKernel, examples: Examples, empty: Factor) -> M:
        """The batch fit; `empty` is a factor of size 0."""

    @abstractmethod
    def _settings(self, model: M) -> dict[str, Any]:
        """What two models must agree in to be merged."""

    @abstractmethod
    def _labels(self, y: Any, k: int, held: Array | None) -> Array:
        """y as labels of k examples, in line with those held already."""

    # -- learning ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, ids: Any = None, sample_weight: Any = None) -> Self:
        """Learn X (n, d), y from scratch. `ids`: unique strings or integers; default 0, 1, ...

        sample_weight (n,): an example of weight w counts like w examples at the same place.
        """
        learnt(self, lambda double: double._learn(X, y, ids, sample_weight))
        return self

    def _learn(self, X: Any, y: Any, ids: Any, sample_weight: Any) -> None:
        X = self._inputs(X, reset=True)
        labels, weights = self._labels(y, len(X), None), sample_weights(sample_weight, len(X))
        examples = Examples.of(X, labels, None if ids is None else as_ids(ids), weights)
        self._admit(examples)
        model = self._batch(self._own_kernel(X), examples, self._empty_factor())
        decided = self.kernel is not None or enough(self._features(X)) is not None
        self._state = _State.of(model, decided=decided)

    def add(self, X: Any, y: Any, ids: Any = None, sample_weight: Any = None) -> Array:
        """Learn more examples and return their ids, (k,). Unseen labels are new classes."""
        while not self.__sklearn_is_fitted__():
            new: list[Array] = []

            def begin(double: Self, new: list[Array] = new) -> None:
                new.append(double.fit(X, y, ids, sample_weight).ids_)

            if learnt(self, begin, unless="_state"):
                return new[0]
        X = self._inputs(X, reset=False)
        labels = self._labels(y, len(X), self._state.examples.labels)
        weights = sample_weights(sample_weight, len(X))
        return self._apply(Add(X, labels, None if ids is None else as_ids(ids), weights))

    def remove(self, ids: Any) -> Self:
        """Forget these examples exactly, as if they had never been there.

        Their memory is given back with the next question; a pickle never holds them.
        """
        self._check_fitted()
        self._apply(Remove(as_ids(ids)))
        return self

    def replace(self, ids: Any, X: Any, y: Any = None) -> Self:
        """Give these examples other features X (k, d), and other labels unless y is None."""
        self._check_fitted()
        ids, X = as_ids(ids), self._inputs(X, reset=False)
        if len(ids) != len(X):
            raise InvalidInput(
                f"{len(ids)} examples are to be replaced, but X has {len(X)} rows. Give one each."
            )
        labels = None if y is None else self._labels(y, len(X), self._state.examples.labels)
        self._apply(Replace(ids, X, labels))
        return self

    def relabel(self, ids: Any, y: Any) -> Self:
        """Give these examples other labels. No matrix is touched, unless weights go by class."""
        self._check_fitted()
        ids = as_ids(ids)
        self._apply(Relabel(ids, self._labels(y, len(ids), self._state.examples.labels)))
        return self

    def merge(self, other: Self) -> Self:
        """Learn all examples of another estimator of the same kind, kernel and settings.

        The two must not share an id.
        """
        self._check_fitted()
        same_kind(self, other)
        other._check_fitted()
        mine, theirs = (each._settings(each._state.model) for each in (self, other))
        decided = self._state.decided and other._state.decided
        for name, here in mine.items():
            if here != (there := theirs[name]) and (decided or name != "kernel"):
                raise InvalidInput(
                    f"The two models differ in {name}: {here!r} here, {there!r} there. "
                    f"Models merge only if they agree: fit both with the same {name}."
                )
        joining = other._state.examples
        same_features(self, other)
        if len(joining):
            labels = self._labels(joining.labels, len(joining), self._state.examples.labels)
            edit = Add(joining.X, labels, joining.names, joining.weights)
            self._apply(edit, other._state.kernel if other._state.decided else None)
        return self

    # -- asking ------------------------------------------------------------------------------

    def leave_one_out(self, groups: Any = None) -> LeftOut:
        """What the model would say of each example had it never seen it, in closed form.

        `groups`: a name for each example in the order of `ids_`; whole groups are left out then.
        The targets of the others stay as they are: a class whose only example is left out keeps
        its column.
        """
        model = self._asked()
        examples = model.examples
        if groups is not None:
            groups = group_names(groups, len(examples))
        scores, variance = model.leave_one_out(groups)
        return LeftOut(
            examples.ids, examples.labels, scores, variance, self._prediction(model, scores)
        )

    def residual(self) -> float:
        """How far the model is from the batch fit of its examples; a few roundings if not at all.

        The backward error of its coefficients: see `Covariance.residual`.
        """
        return self._asked().residual()

    @property
    def model_(self) -> M:
        """The frozen value behind the estimator, up to date with all edits."""
        self._check_fitted()
        state: _State = self._state
        if not state.is_current:
            before, state = state, _enough_memory(self, "ask it", state.followed)
            self._publish(before, state)
        return cast("M", state.model)

    @property
    def ids_(self) -> Array:
        """The ids of the examples held, (n,)."""
        self._check_fitted()
        return self._state.examples.ids

    @property
    def kernel_(self) -> AnyKernel:
        """The kernel in use."""
        self._check_fitted()
        kernel: AnyKernel = self._state.kernel
        return kernel

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")

    def __getstate__(self) -> dict[str, Any]:
        """For pickles and copies: up to date, so that nothing is in them that was removed."""
        if self.__sklearn_is_fitted__():
            _ = self.model_
        state: dict[str, Any] = super().__getstate__()
        return state

    # -- inside ------------------------------------------------------------------------------

    @abstractmethod
    def _prediction(self, model: M, scores: Array) -> Array:
        """What is predicted at these scores (m, M)."""

    def _inputs(self, X: Any, *, reset: bool) -> Array:
        """X as the model has it, (k, d)."""
        return inputs(self, X, reset=reset)

    def _admit(self, examples: Examples) -> None:
        """Complain of examples that there can be no model of."""

    def _features(self, X: Array) -> Array:
        """The columns of X that the kernel sees, (n, d)."""
        return X

    def _seeing(self, kernel: AnyKernel, X: Array) -> AnyKernel:
        """The kernel of these columns as one of all of X."""
        return kernel

    def _own_kernel(self, X: Array) -> AnyKernel:
        """The kernel as ours to keep, made for these inputs (n, d)."""
        own = median_rbf(self._features(X)) if self.kernel is None else _own(self.kernel)
        return self._seeing(own, X)

    def _apply(self, edit: Edit, kernel: AnyKernel | None = None) -> Array:
        """Take an edit and return the new ids. What may fail is done before the edit counts.

        An undecided model takes over the `kernel`, if one is given. If another thread's edit came
        first, this one is done again on top of it.
        """
        while True:
            before: _State = self._state
            after = _enough_memory(self, "do this", partial(self._after, before, edit, kernel))
            new = after.examples.last_ids(len(edit.X) if isinstance(edit, Add) else 0)
            if self._publish(before, after):
                return new

    def _after(self, before: _State, edit: Edit, kernel: AnyKernel | None) -> _State:
        """The state after an edit that is sure to succeed, or whose model has followed already."""
        self._check_kind(edit, before.examples)
        examples, peak = before.examples.apply(edit), before.peak
        self._admit(examples)
        after = before._replace(examples=examples)
        if not before.decided:
            if kernel is not None:
                return _State.of(before.model.under(kernel, examples), decided=True)
            after = self._undecided(after)
        if isinstance(edit, (Add, Replace)):
            peak = max(peak, before.model.covariance.peak_of(edit.X))
        after = after._replace(peak=peak)
        certain = self._certain(before.model, examples, peak)
        return after.with_room() if certain else after.followed()

    def _undecided(self, state: _State) -> _State:
        """With the width of the examples as they are now, for good if there are enough.

        It is decided by the first of them that are enough, so that to add many is to add one after
        the other.
        """
        X = state.examples.X
        first = enough(self._features(X))
        kernel = self._seeing(median_rbf(self._features(X[:first])), X)
        state = state._replace(decided=first is not None)
        return state if kernel == state.kernel else state._replace(kernel=kernel)

    def _check_kind(self, edit: Edit, held: Examples) -> None:
        """Complain of an edit that was made for what another thread has replaced by a new fit."""
        given = [(edit.X, held.X)] if isinstance(edit, (Add, Replace)) else []
        if not isinstance(edit, Remove) and edit.labels is not None:
            given += [(edit.labels, held.labels)]
        for new, old in given:
            if new.shape[1:] != old.shape[1:] or (new.dtype.kind != old.dtype.kind and len(old)):
                raise InvalidInput(
                    f"This {type(self).__name__} was fitted anew by another thread, with features "
                    f"or labels of another kind, while these were handed in. Nothing was changed."
                )

    def _certain(self, model: M, examples: Examples, peak: float) -> bool:
        """Is the model sure to follow these examples, of kappa(x, x) at most `peak`?"""
        return model.covariance.is_certain(examples, peak)

    def _publish(self, before: _State, after: _State) -> bool:
        """Set the state, unless it is no longer `before`."""
        with moment:
            current = self._state is before
            if current:
                self._state = after
            return current

    def _refitted(self, examples: Examples, **parameters: Any) -> Self:
        """A new estimator with some other parameters, fitted to these examples that were held.

        Unlike after a `fit` with their ids, an id that was given to an example is never given to
        another, and it can be told what this one and the new one still share.
        """
        other = clone(self).set_params(**parameters)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(other, name, getattr(self, name))
        kept = other.kernel is None and self._state.decided
        kernel = self._state.kernel if kept else other._own_kernel(examples.X)
        model = other._batch(kernel, examples, other._empty_factor())
        other._state = _State.of(model, decided=kept or other.kernel is not None)
        return cast("Self", other)

    def _asked(self) -> M:
        """The model, ready for a question."""
        model = self.model_
        if len(model.examples) == 0:
            raise NoExamples(
                f"This {type(self).__name__} holds no examples: all were removed. "
                f"Add some before asking."
            )
        return model

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFitted(
                f"This {type(self).__name__} has learnt nothing yet. Call fit or add first."
            )

    def _empty_factor(self) -> Factor:
        choice("solver", self.solver, _SOLVERS)
        choice("update", self.update, ("auto", "direct", "iterative"))
        choice("dtype", self.dtype, ("float64", "float32"))
        factor: Factor = _SOLVERS[self.solver](dtype=np.dtype(self.dtype), update=self.update)
        return factor


def _enough_memory(estimator: BaseEstimator, purpose: str, act: Callable[[], _State]) -> _State:
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


def _own(kernel: AnyKernel) -> AnyKernel:
    """The kernel as ours to keep: scikit-learn's can be changed from outside."""
    if isinstance(kernel, Kernel):
        return clone(kernel)
    if not callable(kernel):
        raise InvalidInput(
            f"kernel={kernel!r} is no kernel. Give one of sklearn.gaussian_process.kernels, "
            f"a function of X (n, d) and Y (m, d) that returns (n, m), or None."
        )
    return kernel
