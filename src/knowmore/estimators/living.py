"""The verbs and queries that all living estimators share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.gaussian_process.kernels import RBF, Kernel
from sklearn.utils import Tags

from knowmore._base import (
    Array,
    Id,
    Savable,
    as_ids,
    by_name,
    choice,
    ids_of,
    is_mask,
    labels_by_id,
    leading,
    masked,
    shape_of,
    warn_if_renumbered,
)
from knowmore._living import Living, M
from knowmore.editable import Editable
from knowmore.edits import Add, Edit, Relabel, Remove, Replace
from knowmore.errors import InvalidInput
from knowmore.estimators import checks
from knowmore.estimators.scoring import ScoringClassifier
from knowmore.estimators.shell import check_mergeable, fit_copy, fitted, update_fitted
from knowmore.examples import Examples, array_of_ids
from knowmore.kernels import (
    AnyKernel,
    check_parameters,
    default_kernel,
    describe_difference,
    rows_to_settle_width,
)
from knowmore.linalg import Cholesky, Factor, Inverse
from knowmore.models import Covariance, LeftOut, Weighting, check_rows, loo_scores

_SOLVERS = {"cholesky": Cholesky, "inverse": Inverse}


class SolverParameters(Protocol):
    """An estimator with the parameters that choose the factor.

    The arithmetic differs, the model does not.
    """

    solver: str
    update: str
    dtype: str

    def width_for(self, examples: Examples) -> int | None:
        """The number of columns of examples that the kernel sees, None for all."""


def factor_dtype(estimator: SolverParameters) -> str:
    """The parameter `dtype`; raises InvalidInput unless it is known."""
    return choice("dtype", estimator.dtype, ("float64", "float32"))


def factorised(
    estimator: SolverParameters,
    kernel: AnyKernel,
    noise: float,
    examples: Examples,
    weighting: Weighting | None = None,
) -> Covariance:
    """The covariance of examples with the factor that the parameters of an estimator choose."""
    choice("solver", estimator.solver, _SOLVERS)
    choice("update", estimator.update, ("auto", "direct", "iterative"))
    empty: Factor = _SOLVERS[estimator.solver](dtype=np.dtype(factor_dtype(estimator)))
    settings = weighting or Weighting(), estimator.update, estimator.width_for(examples)
    return Covariance(kernel, noise, examples, empty, *settings).anew(examples)


V = TypeVar("V", bound=Editable)


class EditableEstimator(Savable, BaseEstimator, ABC, Generic[V]):
    """An estimator that adds, removes, replaces and relabels, and stays equal to a fresh fit.

    Everything fitted is one frozen value V; an edit replaces it.
    """

    # Linear models keep sums instead.
    keeps_rows: ClassVar[bool] = True
    kernel: AnyKernel | None
    _living: V

    @abstractmethod
    def batch_value(self, kernel: AnyKernel, examples: Examples, settled: bool) -> V:
        """The batch fit of examples with a kernel; `settled` if later edits keep the kernel."""

    @abstractmethod
    def _labels(self, y: Any, k: int, held: Array | None) -> Array:
        """y as labels of k examples, of the same type as the labels `held`."""

    @abstractmethod
    def _terms(self, value: V) -> dict[str, Any]:
        """The settings in which two values must agree to merge, by the names of parameters."""

    def _inputs(self, X: Any, *, reset: bool) -> Array:
        """X as the model takes it, (k, d)."""
        return checks.dense(self, X, reset=reset)

    # -- learning ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, ids: Any = None, sample_weight: Any = None) -> Self:
        """Learn X (n, d), y from scratch. `ids`: unique strings or integers; default 0, 1, ...

        A sparse X is made dense: it takes the memory of n d numbers.
        ids default to the index of a pandas table X or Series y, unless that is 0, 1, ... or dates.
        sample_weight (n,): an example of weight w counts like w examples at the same place. One of
        weight zero is held but has no influence.
        """
        fit_copy(self, lambda copy: copy._learn(X, y, ids, sample_weight))
        return self

    def _learn(self, X: Any, y: Any, ids: Any, sample_weight: Any) -> None:
        names = ids_of(ids, X=X, y=y, sample_weight=sample_weight)
        X = self._inputs(X, reset=True)
        labels = self._labels(y, len(X), None)
        examples = Examples.of(X, labels, names, checks.sample_weights(sample_weight, len(X)))
        if not len(examples.counted):
            raise InvalidInput("All weights are zero. Give some example a weight above zero.")
        self._living = self.fresh_value(examples)
        if self.kernel is None and isinstance(self._living.kernel, RBF):
            checks.warn_of_scales(self, leading(examples.counted.X, self.width_for(examples)))

    def fresh_value(self, examples: Examples, kernel: AnyKernel | None = None) -> V:
        """The batch fit of examples, with this kernel or the one that `kernel_for` chooses."""
        kernel, settled = (
            self.kernel_for(examples) if kernel is None else (own_kernel(kernel), True)
        )
        check_rows(kernel, examples, self.width_for(examples))
        return self.batch_value(kernel, examples, settled)

    def kernel_for(self, examples: Examples) -> tuple[AnyKernel, bool]:
        """The kernel of a fresh fit of examples, and whether later examples leave it as it is."""
        if self.kernel is not None:
            return own_kernel(self.kernel), True
        X = leading(examples.counted.X, self.width_for(examples))
        return default_kernel(X), rows_to_settle_width(X) is not None

    def width_for(self, examples: Examples) -> int | None:
        """The number of leading columns of examples that the kernel sees, None for all."""
        return None

    def add(self, X: Any, y: Any, ids: Any = None, sample_weight: Any = None) -> Array:
        """Learn more examples and return their ids, (k,). Unseen labels are new classes.

        y: a label for each, or one for all.
        ids are as in `fit`; by default they continue after the largest integer used so far.
        """
        first = fit_copy(self, lambda copy: copy.fit(X, y, ids, sample_weight).ids_, "_living")
        if first is not None:
            return first
        edit = self.adding(X, y, ids, sample_weight)

        def new_ids(value: V) -> Array:
            return array_of_ids(edit.ids or range(value.next_id - len(edit.X), value.next_id))

        new: Array = self._apply(edit, answer=new_ids)
        return new

    def adding(self, X: Any, y: Any, ids: Any = None, sample_weight: Any = None) -> Add:
        """The edit of `add`, checked and not applied."""
        names = ids_of(ids, X=X, y=y, sample_weight=sample_weight)
        rows = self._inputs(X, reset=False)
        held, k = self._fitted.labels, len(rows)
        labels = self._labels(_for_all(y, k), k, held)
        if names is None and len(held):
            warn_if_renumbered(X)
        return Add(rows, labels, names, checks.sample_weights(sample_weight, k))

    def remove(self, ids: Any) -> Self:
        """Forget these examples exactly, as if they had never been there.

        ids: one or several, or a Boolean mask in the order of `ids_`. Their memory is freed by the
        next query; a pickle never contains them.
        """
        if chosen := self._chosen(ids, ordered=False):
            self._apply(Remove(chosen))
        return self

    def replace(self, ids: Any, X: Any, y: Any = None) -> Self:
        """Give these examples other features X (k, d), and other labels unless y is None.

        A pandas table or column whose index is not 0, 1, ... is matched with ids by its index. A
        single label is for all of them.
        """
        if (edit := self.replacing(ids, X, y)) is not None:
            self._apply(edit)
        return self

    def replacing(self, ids: Any, X: Any, y: Any = None) -> Replace | None:
        """The edit of `replace`, checked and not applied; None if there is nothing to do."""
        chosen = self._chosen(ids)
        if not chosen and shape_of("X", X)[:1] == (0,):
            return None
        X = self._inputs(by_name("X", X, chosen, ids), reset=False)
        if len(chosen) != len(X):
            raise InvalidInput(f"X has {len(X)} rows for {len(chosen)} examples. Give one each.")
        labels = None if y is None else self._new_labels(chosen, y, ids)
        return Replace(chosen, X, labels)

    def relabel(self, ids: Any, y: Any = None) -> Self:
        """Give these examples other labels. No matrix changes, unless weights depend on classes.

        y: a label for each, or one for all; a pandas Series whose index is not 0, 1, ... is matched
        with ids by its index. In `relabel(series)` the index is the ids.
        """
        if (edit := self.relabelling(ids, y)) is not None:
            self._apply(edit)
        return self

    def relabelling(self, ids: Any, y: Any = None) -> Relabel | None:
        """The edit of `relabel`, checked and not applied; None if there is nothing to do."""
        if y is None:
            ids, y = labels_by_id(ids)
        chosen = self._chosen(ids)
        labels = self._new_labels(chosen, y, ids)
        return Relabel(chosen, labels) if chosen else None

    def merge(self, other: Self) -> Self:
        """Learn all examples of another estimator of the same kind, kernel and settings.

        The two must not share an id.
        """
        check_mergeable(self, other, "_living")
        here, there = self._living, other._living
        mine, theirs = self._terms(here), other._terms(there)
        for name in mine:
            found = _disagreement(mine[name], theirs[name])
            if found and (name != "kernel" or (here.settled and there.settled)):
                remedy = f"Fit both with the same {name} to merge them."
                raise InvalidInput(f"The two models differ in {name}: {found}. {remedy}")
        new = there.examples
        if len(new):
            labels = self._labels(new.labels, len(new), here.labels)
            edit = Add(new.X, labels, new.names, new.weights)
            self._apply(edit, there.kernel if there.settled else None)
        return self

    # -- queries -----------------------------------------------------------------------------

    @property
    def editable_(self) -> V:
        """The fitted value, frozen: examples, kernel and model. An edit replaces it."""
        return self._fitted

    def holding(self, value: V) -> Self:
        """A copy whose fitted value is this one."""
        copied = copy(self)
        copied._living = value
        return copied

    def frozen_model(self) -> Any:
        """The frozen model, up to date; raises NotFitted or NoExamples if there is none to ask."""
        return self._held

    def model_inputs(self, X: Any) -> Array:
        """X as `model_` takes it, (m, d): `model_.mean(model_inputs(X))` are the scores of X."""
        return self._inputs(X, reset=False)

    def as_given(self, examples: Examples) -> Examples:
        """Examples of `model_` with features as `add` takes them."""
        return examples

    @property
    def ids_(self) -> Array:
        """The ids of the examples held, (n,)."""
        return self._fitted.examples.ids

    @property
    def kernel_(self) -> AnyKernel:
        """A copy of the kernel in use."""
        return own_kernel(self._fitted.kernel)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_living")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # -- inside ------------------------------------------------------------------------------

    @property
    def _fitted(self) -> V:
        """The fitted value. A query takes it once: another thread may replace it at any time."""
        return cast("V", fitted(self, "_living"))

    @property
    def _held(self) -> Any:
        """The frozen model; raises NoExamples if it has none to predict from."""
        return self._fitted.nonempty

    def _apply(self, edit: Edit, kernel: AnyKernel | None = None, answer: Any = None) -> Any:
        """Apply an edit, and return `answer` of the fitted value after it: see `update_fitted`."""
        return update_fitted(self, "_living", lambda value: value.apply(edit, kernel), answer)

    def _chosen(self, ids: Any, *, ordered: bool = True) -> tuple[Id, ...]:
        """The ids of the examples that these ids or this mask select."""
        held = self._fitted
        return masked(ids, held.examples.names) if is_mask(ids) else as_ids(ids, ordered=ordered)

    def _new_labels(self, ids: tuple[Id, ...], y: Any, given: Any) -> Array:
        """y as new labels of these examples, one for each; `given` are the ids as the user did."""
        y, held = _for_all(y, len(ids)), self._living.labels
        if not ids and len(y) == 0:
            return held[:0]
        return self._labels(by_name("y", y, ids, given), len(ids), held)


class EditableClassifier(ScoringClassifier, EditableEstimator[V]):
    """An editable estimator whose labels are classes."""

    def _labels(self, y: Any, k: int, held: Array | None) -> Array:
        return checks.class_labels(y, k, held)

    @property
    def classes_(self) -> Array:
        """The classes that have examples now, (M,), sorted; weight zero does not count."""
        return np.unique(self._fitted.examples.counted.labels)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """scikit-learn's word for `add`. `classes` may be left out; otherwise y is checked."""
        checks.check_declared(y, classes)
        self.add(X, y, sample_weight=sample_weight)
        return self


class LivingEstimator(EditableEstimator[Living[M]]):
    """An editable estimator whose fitted value is a `Living` one, with a model M."""

    @abstractmethod
    def _batch(self, kernel: AnyKernel, examples: Examples) -> M:
        """The batch fit."""

    @abstractmethod
    def _prediction(self, model: M, scores: Array) -> Array:
        """The predictions that follow from these scores (m, M)."""

    def batch_value(self, kernel: AnyKernel, examples: Examples, settled: bool) -> Living[M]:
        """The batch fit of the examples that count, beside all examples."""
        return Living.of(self._batch(kernel, examples.counted), examples, settled=settled)

    def _terms(self, value: Living[M]) -> dict[str, Any]:
        return self._settings(value.model)

    def _settings(self, model: M) -> dict[str, Any]:
        """The settings in which two models must agree to merge, by the names of parameters."""
        kernel, by_class = model.covariance.kernel, model.covariance.weighting.classes
        class_weight = dict(by_class) if isinstance(by_class, tuple) else by_class
        return {"kernel": kernel, "class_weight": class_weight}

    def _variances(self, model: M, variance: Array) -> Array:
        """The variances of a model, (m,), in the shape of the predictions."""
        return variance

    # -- queries -----------------------------------------------------------------------------

    def leave_one_out(self, groups: Any = None) -> LeftOut:
        """The prediction for each example by a model without it, in closed form.

        `groups`: a name for each example in the order of `ids_`, or a pandas Series whose index is
        the ids; whole groups are left out then.
        The targets of the others do not change: a class whose only example is left out keeps its
        column. Only the mean and deviation that a regressor normalises by are those of the others.
        An example of weight zero is predicted like a new row. `silent` marks examples about which
        the others say nothing.
        """
        living = self._fitted
        model, examples = living.nonempty, living.examples
        groups = checks.group_names(groups, examples.names)
        scores, variance, silent = loo_scores(model, examples, groups)
        predicted, variance = self._prediction(model, scores), self._variances(model, variance)
        columns = predicted, silent, model.names
        return LeftOut(examples.ids, examples.labels, scores, variance, *columns)

    def residual(self) -> float:
        """How far the model is from the batch fit of its examples: a few roundings.

        The backward error of its coefficients: see `Covariance.residual`.
        """
        return self._fitted.nonempty.residual()

    @property
    def model_(self) -> M:
        """The frozen model, up to date with all edits, without the examples of weight zero."""
        return self._fitted.current

    def model_groups(self, groups: Any) -> Array | None:
        """`groups`, as in `leave_one_out`, for the examples of `model_`, (n,)."""
        examples = self._fitted.examples
        names = checks.group_names(groups, examples.names)
        return None if names is None else names[examples.weights > 0]

    def refitted(self, examples: Examples, **parameters: Any) -> Self:
        """A new estimator with some other parameters, fitted to these examples of `model_`.

        Unlike a `fit` with their ids, this never reuses the id of a removed example, and it is
        known which examples the two estimators share.
        """
        other = clone(self).set_params(**parameters)
        for name in ("n_features_in_", "feature_names_in_", "_names_in"):
            if hasattr(self, name):
                setattr(other, name, getattr(self, name))
        living = self._fitted
        # With the examples of weight zero, unless another thread has edited in the meantime.
        held = living.examples if living.examples.counted is examples else examples
        keeps = other.kernel is None and living.settled
        other._living = other.fresh_value(held, living.kernel if keeps else None)
        return cast("Self", other)


def _for_all(y: Any, k: int) -> Any:
    """y, with a single label repeated for each of k examples."""
    if y is None or shape_of("y", y):
        return y
    return [y.item() if isinstance(y, np.ndarray) else y] * k


def _disagreement(here: Any, there: Any) -> str | None:
    """How two settings differ, in words; None if they do not."""
    if isinstance(here, Kernel):
        return describe_difference(here, there)
    return None if here == there else f"{here!r} here, {there!r} there"


def own_kernel(kernel: AnyKernel) -> AnyKernel:
    """A copy of the kernel, or the function: scikit-learn's kernels can be changed from outside."""
    if isinstance(kernel, Kernel):
        check_parameters(kernel)
        return cast("Kernel", clone(kernel))
    if isinstance(kernel, type):
        name = kernel.__name__
        raise InvalidInput(f"kernel={name} is a class, not a kernel. Give an instance: {name}().")
    if not callable(kernel):
        raise InvalidInput(
            f"kernel is of type {type(kernel).__name__}. Give a scikit-learn Kernel, a function of "
            f"X (n, d) and Y (m, d) that returns (n, m), or None."
        )
    return kernel
