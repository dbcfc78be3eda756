"""What all living estimators share: the verbs, and the folding of edits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from functools import partial
from typing import Any, Generic, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import Tags

from knowmore.arguments import choice
from knowmore.arrays import Array
from knowmore.concurrency import moment
from knowmore.edits import Add, Edit, Id, Relabel, Remove, Replace, as_ids, is_mask
from knowmore.errors import (
    InvalidInput,
    NoExamples,
    NotFitted,
    NotPositiveDefinite,
    RepeatedId,
)
from knowmore.estimators.checks import dense, group_names, sample_weights
from knowmore.estimators.shell import learnt, same_features, same_kind
from knowmore.estimators.state import State, enough_memory
from knowmore.examples import Examples
from knowmore.kernels import AnyKernel, difference, enough, median_rbf
from knowmore.linalg import Cholesky, Factor, Inverse
from knowmore.models import LeftOut, Model
from knowmore.models.weightless import left_out
from knowmore.tables import (
    by_name,
    in_order,
    is_named,
    labels_by_id,
    masked,
    names_of,
    of_index,
    warn_renumbered,
)

M = TypeVar("M", bound=Model)

_SOLVERS = {"cholesky": Cholesky, "inverse": Inverse}


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

        A sparse X is written out: it takes the memory of n d numbers.
        The index of a pandas table, or else of a Series y, is the default for ids unless it is 0,
        1, ... itself or of dates.
        sample_weight (n,): an example of weight w counts like w examples at the same place. One of
        weight zero is held and says nothing, as if it were not there.
        """
        learnt(self, lambda double: double._learn(X, y, ids, sample_weight))
        return self

    def _learn(self, X: Any, y: Any, ids: Any, sample_weight: Any) -> None:
        names = names_of(ids, X=X, y=y, sample_weight=sample_weight)
        X = self._inputs(X, reset=True)
        labels, weights = self._labels(y, len(X), None), sample_weights(sample_weight, len(X))
        examples = Examples.of(X, labels, names, weights)
        counted = examples.counted
        if not len(counted):
            raise InvalidInput(
                "All weights are zero: there is nothing to learn from. Give some example a "
                "weight above zero."
            )
        self._admit(counted)
        model = self._batch(self._own_kernel(counted.X), counted, self._empty_factor())
        decided = self.kernel is not None or enough(self._features(counted.X)) is not None
        self._state = State.of(model, examples, decided=decided)

    def add(self, X: Any, y: Any, ids: Any = None, sample_weight: Any = None) -> Array:
        """Learn more examples and return their ids, (k,). Unseen labels are new classes.

        y: a label for each, or one for all.
        ids are as in `fit`; by default they go on from the largest integer used so far.
        """
        while not self.__sklearn_is_fitted__():
            new: list[Array] = []

            def begin(double: Self, new: list[Array] = new) -> None:
                new.append(double.fit(X, y, ids, sample_weight).ids_)

            if learnt(self, begin, unless="_state"):
                return new[0]
        names = names_of(ids, X=X, y=y, sample_weight=sample_weight)
        renumbered = names is None and is_named(X)
        X = self._inputs(X, reset=False)
        labels = self._labels(_for_all(y, len(X)), len(X), self._state.examples.labels)
        weights = sample_weights(sample_weight, len(X))
        if renumbered and self._state.examples.names:
            warn_renumbered(len(X))
        try:
            return self._apply(Add(X, labels, names, weights))
        except RepeatedId as error:
            if ids is not None:
                raise
            raise of_index(error) from error

    def remove(self, ids: Any) -> Self:
        """Forget these examples exactly, as if they had never been there.

        ids: one or several, or a Boolean mask in the order of `ids_`. Their memory is given back
        with the next question; a pickle never holds them.
        """
        self._check_fitted()
        if chosen := self._chosen(ids, ordered=False):
            self._apply(Remove(chosen))
        return self

    def replace(self, ids: Any, X: Any, y: Any = None) -> Self:
        """Give these examples other features X (k, d), and other labels unless y is None.

        Tables and columns of pandas whose index is not 0, 1, ... are matched with ids by name. One
        label is for all of them.
        """
        self._check_fitted()
        chosen = self._chosen(ids)
        if not chosen and np.shape(X)[:1] == (0,):
            return self
        X = self._inputs(by_name("X", X, chosen, ids), reset=False)
        if len(chosen) != len(X):
            raise InvalidInput(
                f"{len(chosen)} examples are to be replaced, but X has {len(X)} rows. "
                f"Give one each."
            )
        labels = None if y is None else self._new_labels(chosen, y, ids)
        self._apply(Replace(chosen, X, labels))
        return self

    def relabel(self, ids: Any, y: Any = None) -> Self:
        """Give these examples other labels. No matrix is touched, unless weights go by class.

        y: a label for each, or one for all; a Series of pandas whose index is not 0, 1, ... is
        matched with ids by name. Alone, `relabel(series)`, its index is the ids.
        """
        self._check_fitted()
        if y is None:
            ids, y = labels_by_id(ids)
        chosen = self._chosen(ids)
        labels = self._new_labels(chosen, y, ids)
        if chosen:
            self._apply(Relabel(chosen, labels))
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
        for name in mine:
            found = _disagreement(mine[name], theirs[name])
            if found and (decided or name != "kernel"):
                raise InvalidInput(
                    f"The two models differ in {name}: {found}. "
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

        `groups`: a name for each example in the order of `ids_`, or a Series of pandas whose index
        is the ids; whole groups are left out then.
        The targets of the others stay as they are: a class whose only example is left out keeps
        its column. Only what a regressor normalises values by is that of the others too. An example
        of weight zero is judged as a new one would be. `silent` tells examples apart of which the
        others say nothing.
        """
        state = self._asked_state()
        model, examples = cast("M", state.model), state.examples
        scores, variance, silent = left_out(model, examples, self._groups(groups, examples))
        predicted, variance = self._prediction(model, scores), self._variances(model, variance)
        names = model.targets.names
        return LeftOut(examples.ids, examples.labels, scores, variance, predicted, silent, names)

    def residual(self) -> float:
        """How far the model is from the batch fit of its examples; a few roundings if not at all.

        The backward error of its coefficients: see `Covariance.residual`.
        """
        return self._asked().residual()

    @property
    def model_(self) -> M:
        """The frozen value behind the estimator, up to date with all edits.

        It knows nothing of examples of weight zero.
        """
        return cast("M", self._followed().model)

    @property
    def ids_(self) -> Array:
        """The ids of the examples held, (n,)."""
        self._check_fitted()
        return self._state.examples.ids

    @property
    def kernel_(self) -> AnyKernel:
        """The kernel in use; a copy, since scikit-learn's can be changed."""
        self._check_fitted()
        return _own(self._state.kernel)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

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

    def _variances(self, model: M, variance: Array) -> Array:
        """The variances of a model, (m,), in the shape of what is predicted."""
        return variance

    def _inputs(self, X: Any, *, reset: bool) -> Array:
        """X as the model has it, (k, d)."""
        return dense(self, X, reset=reset)

    def _chosen(self, ids: Any, *, ordered: bool = True) -> tuple[Id, ...]:
        """The examples that these ids or this mask name."""
        if is_mask(ids):
            return masked(ids, self._state.examples.names)
        return as_ids(ids, ordered=ordered)

    def _new_labels(self, ids: tuple[Id, ...], y: Any, given: Any) -> Array:
        """y as other labels of these examples, `given` so: one for each, or one for all."""
        y, held = _for_all(y, len(ids)), self._state.examples.labels
        if not ids and len(y) == 0:
            return held[:0]
        return self._labels(by_name("y", y, ids, given), len(ids), held)

    def _groups(self, groups: Any, examples: Examples) -> Array | None:
        """The names of groups, one for each of the examples, (n,), if any are given."""
        if groups is None:
            return None
        return group_names(in_order("groups", groups, examples.names), len(examples))

    def _counted_groups(self, groups: Any) -> Array | None:
        """The same of those examples alone that count."""
        examples = self._state.examples
        names = self._groups(groups, examples)
        return None if names is None else names[examples.weights > 0]

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
            before: State = self._state
            after = enough_memory(self, "do this", partial(self._after, before, edit, kernel))
            new = after.examples.last_ids(len(edit.X) if isinstance(edit, Add) else 0)
            if self._publish(before, after):
                return new

    def _after(self, before: State, edit: Edit, kernel: AnyKernel | None) -> State:
        """The state after an edit that is sure to succeed, or whose model has followed already."""
        self._check_kind(edit, before.examples)
        if isinstance(edit, Remove) and not before.decided:
            # A width by what is left may suit none of it; what is held can be forgotten even so.
            with suppress(InvalidInput, NotPositiveDefinite):
                return self._changed(before, edit, kernel).followed()
            return self._changed(before._replace(decided=True), edit, kernel)._replace(
                decided=False
            )
        return self._changed(before, edit, kernel)

    def _changed(self, before: State, edit: Edit, kernel: AnyKernel | None) -> State:
        examples, peak = before.examples.apply(edit), before.peak
        self._admit(examples.counted)
        after = before._replace(examples=examples)
        if not before.decided:
            if kernel is not None:
                model = before.model.under(kernel, examples.counted)
                return State.of(model, examples, decided=True)
            after = self._undecided(after)
        if isinstance(edit, (Add, Replace)):
            peak = max(peak, before.model.covariance.max_variance(edit.X))
        after = after._replace(peak=peak)
        certain = self._certain(before.model, examples.counted, peak)
        return after.with_room() if certain else after.followed()

    def _undecided(self, state: State) -> State:
        """With the width of the examples as they are now, for good if there are enough.

        It is decided by the first of them that are enough, so that to add many is to add one after
        the other.
        """
        X = state.examples.counted.X
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
        return model.covariance.is_well_conditioned(examples, peak)

    def _publish(self, before: State, after: State) -> bool:
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
        for name in ("n_features_in_", "feature_names_in_", "_names_in"):
            if hasattr(self, name):
                setattr(other, name, getattr(self, name))
        kept = other.kernel is None and self._state.decided
        kernel = self._state.kernel if kept else other._own_kernel(examples.X)
        model = other._batch(kernel, examples, other._empty_factor())
        held = self._state.examples
        # What weighs nothing goes along, unless another thread's edit came between.
        whole = held if held.counted is examples else examples
        other._state = State.of(model, whole, decided=kept or other.kernel is not None)
        return cast("Self", other)

    def _followed(self) -> State:
        """The state with the model up to date."""
        self._check_fitted()
        before: State = self._state
        if before.is_current:
            return before
        after = enough_memory(self, "ask it", before.followed)
        self._publish(before, after)
        return after

    def _asked(self) -> M:
        """The model, ready for a question."""
        return cast("M", self._asked_state().model)

    def _asked_state(self) -> State:
        """The state, ready for a question."""
        state = self._followed()
        if len(state.model.examples) == 0:
            held = "all weigh nothing" if len(state.examples) else "all were removed"
            raise NoExamples(
                f"This {type(self).__name__} holds no examples: {held}. Add some before asking."
            )
        return state

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise NotFitted(
                f"This {type(self).__name__} has learnt nothing yet. Call fit or add first."
            )

    def _empty_factor(self) -> Factor:
        choice("solver", self.solver, _SOLVERS)
        choice("update", self.update, ("auto", "direct", "iterative"))
        choice("dtype", self.dtype, ("float64", "float32"))
        factor: Factor = _SOLVERS[self.solver](dtype=np.dtype(self.dtype))
        return factor


def _for_all(y: Any, k: int) -> Any:
    """One label as one for each of k examples; several as they are."""
    if y is None or np.ndim(y) > 0:
        return y
    return [y.item() if isinstance(y, np.ndarray) else y] * k


def _disagreement(here: Any, there: Any) -> str | None:
    """How two settings differ, in words; None if they do not."""
    if isinstance(here, Kernel):
        return difference(here, there)
    return None if here == there else f"{here!r} here, {there!r} there"


def _own(kernel: AnyKernel) -> AnyKernel:
    """The kernel as ours to keep: scikit-learn's can be changed from outside."""
    if isinstance(kernel, Kernel):
        return cast("Kernel", clone(kernel))
    if isinstance(kernel, type):
        raise InvalidInput(
            f"kernel={kernel.__name__} is a class, not a kernel. "
            f"Give one that it makes: {kernel.__name__}()."
        )
    if not callable(kernel):
        raise InvalidInput(
            f"kernel={kernel!r} is no kernel. Give one of sklearn.gaussian_process.kernels, "
            f"a function of X (n, d) and Y (m, d) that returns (n, m), or None."
        )
    return kernel
