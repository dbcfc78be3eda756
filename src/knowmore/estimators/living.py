"""The verbs and queries that all living estimators share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import replace
from typing import Any, Generic, Self, TypeVar, cast

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import Tags

from knowmore._base import (
    Array,
    Id,
    Savable,
    a_type,
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
from knowmore.estimators import checks, shell
from knowmore.examples import Examples, array_of_ids
from knowmore.kernels import On, check_parameters, describe_difference
from knowmore.linalg import Cholesky, Factor, Inverse
from knowmore.models import (
    MODES,
    MOST_KERNELS,
    Choice,
    LeftOut,
    ModelSettings,
    SettingsRule,
    check_rows,
    class_probabilities,
    loo_scores,
)

_SOLVERS = {"cholesky": Cholesky, "inverse": Inverse}
# Parameters that may be left to the examples.
_CHOSEN = ("kernel", "noise", "C")
V = TypeVar("V", bound=Editable)


def empty_factor(estimator: Any) -> Factor:
    """The factor of no examples that an estimator's parameters `solver` and `dtype` choose.

    The arithmetic differs, the model does not. The parameter `update` is checked, too.
    """
    choice("solver", estimator.solver, _SOLVERS)
    choice("update", estimator.update, ("auto", "direct", "iterative"))
    choice("dtype", estimator.dtype, ("float64", "float32"))
    factor: Factor = _SOLVERS[estimator.solver](dtype=np.dtype(estimator.dtype))
    return factor


class EditableEstimator(Savable, BaseEstimator, ABC, Generic[V]):
    """An estimator that adds, removes, replaces and relabels, and stays equal to a fresh fit.

    Everything fitted is one frozen value V; an edit replaces it.
    """

    kernel: Any
    _living: V

    @abstractmethod
    def fresh_value(self, examples: Examples, settings: ModelSettings | None = None) -> V:
        """The batch fit of examples, with these settings or those that the examples choose."""

    @abstractmethod
    def _labels(self, y: Any, k: int, held: Array | None) -> Array:
        """y as labels of k examples, of the same type as the labels `held`."""

    def _terms(self, value: V) -> dict[str, Any]:
        """The settings in which two values must agree to merge, by the names of parameters."""
        return {}

    # -- learning ----------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, ids: Any = None, sample_weight: Any = None) -> Self:
        """Learn X (n, d), y from scratch. `ids`: unique strings or integers; default 0, 1, ...

        A sparse X is made dense: it takes the memory of n d numbers.
        ids default to the index of a pandas table X or Series y, unless that is 0, 1, ... or dates.
        sample_weight (n,): an example of weight w counts like w examples at the same place. One of
        weight zero is held but has no influence.
        """
        shell.fit_copy(self, lambda copy: copy._learn(X, y, ids, sample_weight))
        return self

    def _learn(self, X: Any, y: Any, ids: Any, sample_weight: Any) -> None:
        edit = checked(self, X, y, ids, sample_weight)
        examples = Examples.of(edit.X, edit.labels, edit.ids, edit.weights)
        if not len(examples.counted):
            raise InvalidInput("All weights are zero. Give some example a weight above zero.")
        self._living = self.fresh_value(examples)

    def width_for(self, examples: Examples) -> int | None:
        """The number of leading columns of examples that the kernel sees, None for all."""
        return None

    def add(self, X: Any, y: Any, ids: Any = None, sample_weight: Any = None) -> Array:
        """Learn more examples and return their ids, (k,). Unseen labels are new classes.

        y: a label for each, or one for all.
        ids are as in `fit`; by default they continue after the largest integer used so far.
        """
        given = {"ids": ids, "sample_weight": sample_weight}
        first = shell.fit_copy(self, lambda copy: copy.fit(X, y, **given).ids_, "_living")
        if first is not None:
            return first
        edit = self.adding(X, y, ids, sample_weight)

        def new_ids(value: V) -> Array:
            return array_of_ids(edit.ids or range(value.next_id - len(edit.X), value.next_id))

        new: Array = _apply(self, edit, answer=new_ids)
        return new

    def adding(self, X: Any, y: Any, ids: Any = None, sample_weight: Any = None) -> Add:
        """The edit of `add`, checked and not applied."""
        held = self.editable_.labels
        edit = checked(self, X, y, ids, sample_weight, held)
        if edit.ids is None and len(held):
            warn_if_renumbered(X)
        return edit

    def remove(self, ids: Any) -> Self:
        """Forget these examples exactly, as if they had never been there.

        ids: one or several, or a Boolean mask in the order of `ids_`. Their memory is freed by the
        next query; a pickle never contains them.
        """
        if names := chosen(self, ids, ordered=False):
            _apply(self, Remove(names))
        return self

    def replace(self, ids: Any, X: Any, y: Any = None) -> Self:
        """Give these examples other features X (k, d), and other labels unless y is None.

        A pandas table or column whose index is not 0, 1, ... is matched with ids by its index. A
        single label is for all of them.
        """
        if (edit := self.replacing(ids, X, y)) is not None:
            _apply(self, edit)
        return self

    def replacing(self, ids: Any, X: Any, y: Any = None) -> Replace | None:
        """The edit of `replace`, checked and not applied; None if there is nothing to do."""
        names = chosen(self, ids)
        if not names and shape_of("X", X)[:1] == (0,):
            return None
        X = as_dense(self.model_inputs(by_name("X", X, names, ids)))
        if len(names) != len(X):
            raise InvalidInput(f"X has {len(X)} rows for {len(names)} examples. Give one each.")
        edit = None if y is None else self.relabelling(ids, y)
        return Replace(names, X, None if edit is None else edit.labels)

    def relabel(self, ids: Any, y: Any = None) -> Self:
        """Give these examples other labels. No matrix changes, unless weights depend on classes.

        y: a label for each, or one for all; a pandas Series whose index is not 0, 1, ... is matched
        with ids by its index. In `relabel(series)` the index is the ids.
        """
        if (edit := self.relabelling(ids, y)) is not None:
            _apply(self, edit)
        return self

    def relabelling(self, ids: Any, y: Any = None) -> Relabel | None:
        """The edit of `relabel`, checked and not applied; None if there is nothing to do."""
        if y is None:
            ids, y = labels_by_id(ids)
        names, held = chosen(self, ids), self.editable_.labels
        y = _for_all(y, len(names))
        if not names and len(y) == 0:
            return None
        labels = self._labels(by_name("y", y, names, ids), len(names), held)
        return Relabel(names, labels) if names else None

    def merge(self, other: Self) -> Self:
        """Learn all examples of another estimator of the same kind, kernel and settings.

        The two must not share an id.
        """
        shell.check_mergeable(self, other, "_living")
        here, there = self.editable_, other.editable_
        mine, theirs = self._terms(here), other._terms(there)
        for name in mine:
            # Settings that both have left to their examples are those of this one.
            left = name in _CHOSEN and all(_is_left(getattr(one, name)) for one in (self, other))
            found = None if left else _disagreement(mine[name], theirs[name])
            if found:
                remedy = f"Fit both with the same {name} to merge them."
                raise InvalidInput(f"The two models differ in {name}: {found}. {remedy}")
        new = there.examples
        with shell.declared_too(self, shell.declared(other)):
            if len(new):
                labels = self._labels(new.labels, len(new), here.labels)
                edit = Add(new.X, labels, new.names, new.weights)
                takes = there.choice is not None and here.choice.yields_to(there.choice)
                _apply(self, edit, there.choice if takes else None)
        return self

    # -- queries -----------------------------------------------------------------------------

    @property
    def editable_(self) -> V:
        """The fitted value, frozen: examples, kernel and model. An edit replaces it.

        A query takes it once: another thread may replace it at any time.
        """
        return cast("V", shell.fitted(self, "_living"))

    def holding(self, value: V) -> Self:
        """A copy whose fitted value is this one."""
        return shell.holding(self, "_living", value)

    def residual(self) -> float:
        """How far the model is from the batch fit of its examples: a few roundings.

        The backward error of its coefficients: see `KernelModel.residual`. Of a forest it is the
        largest of all leaves, which are factorised if they were not.
        """
        residual: float = self.frozen_model().residual()
        return residual

    def frozen_model(self) -> Any:
        """The frozen model, up to date; raises NotFitted or NoExamples if there is none to ask."""
        return self.editable_.nonempty

    def model_inputs(self, X: Any, *, reset: bool = False) -> Array:
        """X as `model_` takes it, (m, d): `model_.mean(model_inputs(X))` are the scores of X.

        reset : whether to note the number and names of its columns, as `fit` does
        """
        return checks.dense(self, X, reset=reset)

    def as_given(self, examples: Examples) -> Examples:
        """Examples of `model_` with features as `add` takes them."""
        return examples

    @property
    def ids_(self) -> Array:
        """The ids of the examples held, (n,)."""
        return self.editable_.examples.ids

    @property
    def kernel_(self) -> Any:
        """A copy of the kernel in use."""
        return own_kernel(self.editable_.kernel)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_living")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def checked(
    estimator: EditableEstimator[Any],
    X: Any,
    y: Any,
    ids: Any,
    sample_weight: Any,
    held: Array | None = None,
) -> Add:
    """New examples of an estimator, checked, as the edit that adds them.

    held : labels whose type those of the examples must have; None: these are the first examples,
        which decide about the features and the type of labels
    """
    names = ids_of(ids, X=X, y=y, sample_weight=sample_weight)
    X = as_dense(estimator.model_inputs(X, reset=held is None))
    k = len(X)
    labels = estimator._labels(y if held is None else _for_all(y, k), k, held)
    return Add(X, labels, names, checks.sample_weights(sample_weight, k))


def held_labels(estimator: EditableEstimator[Any]) -> Array | None:
    """Sample labels that an estimator holds; None if it is not fitted."""
    return estimator.editable_.labels if hasattr(estimator, "_living") else None


def chosen(estimator: EditableEstimator[Any], ids: Any, *, ordered: bool = True) -> tuple[Id, ...]:
    """The ids of the examples that these ids or this mask select."""
    held = estimator.editable_
    return masked(ids, held.examples.names) if is_mask(ids) else as_ids(ids, ordered=ordered)


def _apply(
    estimator: EditableEstimator[Any],
    edit: Edit,
    choice: Choice | None = None,
    answer: Any = None,
) -> Any:
    """Apply an edit, and return `answer` of the fitted value after it: see `update_fitted`."""
    return shell.update_fitted(
        estimator, "_living", lambda value: value.apply(edit, choice), answer
    )


class ScoringClassifier(ClassifierMixin):
    """A classifier by the largest score of a frozen model, with probabilities.

    A Gaussian process for each class, with a variance that all share.
    """

    probability: str
    # The model, or an error if there is nothing to predict from; and X as the model takes it.
    frozen_model: Any
    model_inputs: Any

    def _prediction(self, model: Any, scores: Array) -> Array:
        return np.asarray(model.names[scores.argmax(axis=1)])

    def _score_variance(self, model: Any, X: Any) -> Array:
        variance: Array = model.variance(X)
        return variance

    def predict(self, X: Any) -> Array:
        """The class of the largest score, (m,). Eq. (5)."""
        model = self.frozen_model()
        return self._prediction(model, model.mean(self.model_inputs(X)))

    def decision_function(self, X: Any) -> Array:
        """The scores, (m, M), columns as in `classes_`; (m,), the second's, if two. Eq. (4).

        A class that was declared and has no example is one below the lowest other, and below zero:
        it is never predicted. If that is one of two, half the difference of both is returned, which
        is above zero if the second is predicted.
        """
        model = self.frozen_model()
        known = model.mean(self.model_inputs(X))
        absent = known.min(axis=1).clip(max=0) - 1
        scores = shell.in_classes(cast("BaseEstimator", self), model.names, known, absent)
        if scores.shape[1] != 2:
            return scores
        return scores[:, 1] if scores is known else (scores[:, 1] - scores[:, 0]) / 2

    @property
    def temperature_(self) -> float:
        """tau of `predict_proba`: above one it levels the classes, below one it sharpens."""
        return self.model_temperature(self.frozen_model())

    def model_temperature(self, model: Any) -> float:
        """The temperature of a frozen model of this estimator, which may have been edited since."""
        return float(model.temperature) if checks.is_calibrated(self) else 1.0

    def predict_proba(self, X: Any) -> Array:
        """exp(mu_*^(c) / (tau sqrt(1 + sigma_*^2))), scaled to sum to one, (m, M).

        Columns are as in `classes_`. The larger the variance, the more equal the classes. A
        least-squares SVM has no variance: sigma_* is zero there. The temperature tau makes these
        probabilities: of predictions made with 80 %, four in five are right. Under tau the labels
        of the examples held are most likely, each left out: the first question after an edit takes
        about as long as `leave_one_out`. With probability="raw" tau is one. A class that was
        declared and has no example has the probability zero: no example speaks for it.
        """
        model, rows = self.frozen_model(), self.model_inputs(X)
        scores, variance = model.mean(rows), self._score_variance(model, rows)
        chances = class_probabilities(scores, variance, self.model_temperature(model))
        return shell.in_classes(cast("BaseEstimator", self), model.names, chances, 0.0)


class EditableClassifier(ScoringClassifier, EditableEstimator[V]):
    """An editable estimator whose labels are classes."""

    def _labels(self, y: Any, k: int, held: Array | None) -> Array:
        return checks.class_labels(y, k, held)

    @property
    def classes_(self) -> Array:
        """The classes that have examples now or were declared, (M,), sorted.

        Examples of weight zero do not count.
        """
        return shell.joint_classes(self, np.unique(self.editable_.examples.counted.labels))

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """scikit-learn's word for `add`.

        classes : all that may come, or None: new classes are learnt as they come. Those that are
            declared stay in `classes_` until the next `fit`, with or without examples, and have a
            column in every answer. They change nothing else
        """
        names = checks.declared_classes(y, classes, held_labels(self))
        with shell.declared_too(self, names):
            self.add(X, y, sample_weight=sample_weight)
        return self


class EditableRegressor(RegressorMixin, EditableEstimator[V]):
    """An editable estimator whose labels are target values, (n,) or (n, q)."""

    def _labels(self, y: Any, k: int, held: Array | None) -> Array:
        return checks.target_values(y, k, held, getattr(self, "dtype", "float64"))

    def _prediction(self, model: Any, scores: Array) -> Array:
        """Predictions or variances (m, M) in the shape of the targets."""
        return scores[:, 0] if self.editable_.labels.ndim == 1 else scores

    def _variances(self, model: Any, variance: Array) -> Array:
        return self._prediction(model, variance)

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """scikit-learn's word for `add`."""
        self.add(X, y, sample_weight=sample_weight)
        return self

    def predict_variance(self, X: Any) -> Array:
        """The variance of a target at each row, noise included, (m,) or (m, q) as the targets are.

        It says how far a row is from all examples: sigma_*^2 of eq. (3). Where the trees of a
        forest disagree it is larger: the mean of their variances, plus the variance of their means.
        """
        model = self.frozen_model()
        return self._variances(model, model.variance(self.model_inputs(X)))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class ChoosingEstimator(EditableEstimator[V]):
    """An editable estimator whose kernel and noise may be chosen by its examples."""

    settings: str

    @abstractmethod
    def rule_for(self, examples: Examples) -> SettingsRule:
        """How examples choose the settings that are not given."""

    @abstractmethod
    def batch_value(self, choice: Choice, examples: Examples) -> V:
        """The batch fit of examples with these settings."""

    def _learn(self, X: Any, y: Any, ids: Any, sample_weight: Any) -> None:
        super()._learn(X, y, ids, sample_weight)
        rule, counted = self._living.choice.rule, self._living.examples.counted
        if self.kernel is None and rule.mode == "median":
            checks.warn_of_scales(self, leading(counted.X, rule.width))

    def fresh_value(self, examples: Examples, settings: ModelSettings | None = None) -> V:
        """The batch fit of examples, with these settings or those that the examples choose."""
        rule = self.rule_for(examples)
        choice = rule.chosen(examples) if settings is None else rule.keeping(settings)
        check_rows(choice.settings.kernel, examples, self.width_for(examples))
        return self.batch_value(choice, examples)

    def refresh_settings(self) -> Self:
        """Let the examples held choose again what was not given: kernel, noise or C.

        With settings="living" they always have.
        """
        shell.update_fitted(self, "_living", lambda value: self.fresh_value(value.examples))
        return self

    @property
    def settings_(self) -> ModelSettings:
        """The kernel and the noise in use, what else was tried, and which examples chose."""
        value = self.editable_
        settings: ModelSettings = value.choice.settings
        if not settings.candidates and not value.choice.settled:
            # A file has no table of what was tried; its examples choose the same again.
            with suppress(InvalidInput):
                again = self.rule_for(value.examples).chosen(value.examples).settings
                settings = again if again.agree(settings) else settings
        # Kernels can be changed from outside, and some share their parts with the one in use.
        tried = [one._replace(kernel=own_kernel(one.kernel)) for one in settings.candidates]
        return replace(settings, kernel=own_kernel(settings.kernel), candidates=tuple(tried))


class LivingEstimator(ChoosingEstimator[Living[M]]):
    """An estimator whose fitted value is a `Living` one, with a model M."""

    @abstractmethod
    def _batch(self, settings: ModelSettings, examples: Examples) -> M:
        """The batch fit."""

    @abstractmethod
    def _prediction(self, model: M, scores: Array) -> Array:
        """The predictions that follow from these scores (m, M)."""

    def batch_value(self, choice: Choice, examples: Examples) -> Living[M]:
        """The batch fit of the examples that count, beside all examples."""
        return Living.of(self._batch(choice.settings, examples.counted), examples, choice)

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
        living = self.editable_
        model, examples = living.nonempty, living.examples
        groups = checks.group_names(groups, examples.names)
        scores, variance, silent = loo_scores(model, examples, groups)
        predicted, variance = self._prediction(model, scores), self._variances(model, variance)
        columns = predicted, silent, model.names
        return LeftOut(examples.ids, examples.labels, scores, variance, *columns)

    @property
    def model_(self) -> M:
        """The frozen model, up to date with all edits, without the examples of weight zero."""
        return self.editable_.current

    def model_groups(self, groups: Any) -> Array | None:
        """`groups`, as in `leave_one_out`, for the examples of `model_`, (n,)."""
        examples = self.editable_.examples
        names = checks.group_names(groups, examples.names)
        return None if names is None else names[examples.weights > 0]

    def refitted(self, examples: Examples, **parameters: Any) -> Self:
        """A new estimator with some other parameters, fitted to these examples of `model_`.

        Unlike a `fit` with their ids, this never reuses the id of a removed example, and it is
        known which examples the two estimators share.
        """
        other = clone(self).set_params(**parameters)
        shell.note_as(other, self)
        living = self.editable_
        # With the examples of weight zero, unless another thread has edited in the meantime.
        held = living.examples if living.examples.counted is examples else examples
        fresh = other.fresh_value(held, other.rule_for(held).kept(living.choice))
        return cast("Self", other.holding(fresh))


def as_dense(X: Any) -> Array:
    """Rows as an array in the type that they have, as examples hold them."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X)


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


def own_kernel(kernel: Any) -> Any:
    """A copy of the kernel, or the function: scikit-learn's kernels can be changed from outside.

    Of several kernels in a list, a tuple of copies; a block of columns without a kernel is one of
    several.
    """
    if isinstance(kernel, On) and kernel.kernel is None:
        kernel = [kernel]
    if isinstance(kernel, (list, tuple)):
        return _own_kernels(kernel)
    if isinstance(kernel, Kernel):
        check_parameters(kernel)
        return clone(kernel)
    if isinstance(kernel, type):
        name = kernel.__name__
        raise InvalidInput(f"kernel={name} is a class, not a kernel. Give an instance: {name}().")
    if not callable(kernel):
        raise InvalidInput(
            f"kernel is of type {type(kernel).__name__}. Give a scikit-learn Kernel, a function of "
            f"X (n, d) and Y (m, d) that returns (n, m), a list of kernels, or None."
        )
    return kernel


def _own_kernels(kernels: Any) -> tuple[Kernel, ...]:
    """Copies of several kernels, checked."""
    if not 1 <= len(kernels) <= MOST_KERNELS:
        raise InvalidInput(
            f"kernel is a list of {len(kernels)} kernels. Give one to {MOST_KERNELS}, of which a "
            f"weighted sum is chosen; sums of kernels can be among them."
        )
    for one in kernels:
        if not isinstance(one, Kernel):
            raise InvalidInput(
                f"kernel is a list that has {one!r}, {a_type(one)}. Give scikit-learn kernels, or "
                f"On(slice(begin, end)) for the kernel that suits these columns."
            )
        if not isinstance(one, On) or one.kernel is not None:
            check_parameters(one)
    return tuple(clone(one) for one in kernels)


def _is_left(parameter: Any) -> bool:
    """Whether a parameter leaves the choice to the examples."""
    return parameter is None or isinstance(parameter, (str, list, tuple))


def left_to_examples(estimator: Any) -> tuple[str, ...]:
    """The names of the parameters whose choice is left to the examples."""
    given = estimator.get_params(deep=False)
    return tuple(name for name in _CHOSEN if name in given and _is_left(given[name]))


def checked_mode(estimator: Any) -> str:
    """The parameter `settings`, checked."""
    found = choice("settings", estimator.settings, MODES)
    if found == "living" and "loo" in (getattr(estimator, name, None) for name in _CHOSEN):
        raise InvalidInput(
            "settings='living' chooses the noise of a panel after every edit, and 'loo' once, by "
            "all examples. Leave noise or C out, or give a number."
        )
    return found
