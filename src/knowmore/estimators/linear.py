"""The Gaussian process with a dot-product kernel, for any number of rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self, final

import numpy as np
from sklearn.base import RegressorMixin, clone, is_classifier
from sklearn.gaussian_process.kernels import ConstantKernel, Kernel
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from knowmore._base import (
    Array,
    a_type,
    check_aligned,
    choice,
    enough_memory,
    flag,
    ids_of,
    index_of,
    is_empty,
    is_whole,
    number,
    one_each,
    shape_of,
)
from knowmore.errors import InvalidInput, InvalidType, NoRows
from knowmore.estimators import checks
from knowmore.estimators.checks import check_meaning
from knowmore.estimators.living import (
    EditableEstimator,
    ScoringClassifier,
    as_dense,
    held_labels,
)
from knowmore.estimators.shell import (
    check_mergeable,
    declared,
    declared_too,
    fit_copy,
    joint_classes,
    update_fitted,
)
from knowmore.examples import Examples, among
from knowmore.linalg import FEWER_COLUMNS, LARGEST, LAYOUTS, UNIT, Grid, Sketch, Sums, in_units
from knowmore.models import (
    LeftOut,
    LinearLoo,
    LinearModel,
    LooScores,
    Summed,
    as_columns,
    check_room,
    check_room_of,
    target_grid,
)

_BITS = {None: 21, "exact": 42}
# How many powers of two the step of a target is below the spread of the targets.
_BELOW_TARGETS = LAYOUTS[42].below
# What models that hold examples have, and what to do here.
INSTEAD = {
    "add": "Learn rows by partial_fit(X, y).",
    "remove": "Forget rows by forget(X, y), giving them again.",
    "replace": "Forget the old rows, forget(X, y), and learn the new ones by partial_fit.",
    "relabel": "Forget the rows with the old labels, forget(X, y), and learn them with the new "
    "ones by partial_fit.",
    "ids_": "n_samples_ is the number of rows learnt; keep their ids where you keep the rows.",
}


def _keeps_rows(estimator: LinearGP) -> bool:
    """Whether an estimator was fitted with ids."""
    value: Summed | None = vars(estimator).get("_living")
    return value is not None and value.rows is not None


@dataclass(eq=False, repr=False)
class LinearGP(EditableEstimator[Summed]):
    """Verbs by value on one frozen linear model, and by id if it was fitted with ids."""

    # x'y, which is no parameter.
    kernel = Summed.kernel

    noise: float | str | None = None
    _: KW_ONLY
    resolution: Grid | int | str | None = None
    intercept: bool = True

    # Without rows `__getattr__` says what to do instead.
    add = available_if(_keeps_rows)(EditableEstimator.add)
    remove = available_if(_keeps_rows)(EditableEstimator.remove)
    replace = available_if(_keeps_rows)(EditableEstimator.replace)
    relabel = available_if(_keeps_rows)(EditableEstimator.relabel)

    @abstractmethod
    def _model(self, survey: Survey) -> LinearModel:
        """The model of no rows, on the grid of the rows that were surveyed."""

    # -- learning ----------------------------------------------------------------------------

    def fit(  # type: ignore[override]  # the order of arguments is older than ids
        self, X: Any, y: Any, sample_weight: Any = None, *, ids: Any = None
    ) -> Self:
        """Learn X (n, D), y from scratch: dense, sparse, or mapped from a file.

        Rows are read in blocks, in the type that they have: the memory is that of D^2 numbers.
        sample_weight (n,): an example of weight w counts like w examples at the same place.
        Weights are read in multiples of 1/256, and are below 256.
        ids : unique strings or integers. With them the rows are kept, in the type that they have
            and dense: they take n D numbers, and can be edited by id
        """
        fit_copy(self, lambda copy: copy._learn(X, y, ids, sample_weight))
        return self

    def _learn(self, X: Any, y: Any, ids: Any, sample_weight: Any) -> None:
        names = None if ids is None else ids_of(ids, X=X, y=y, sample_weight=sample_weight)
        X, y, weights = self.checked_rows(X, y, sample_weight, reset=True)
        if names is None:
            self._living = Summed(_batch(self, X, y, weights))
            return
        with enough_memory("keep these rows", "Leave ids out: then only their sums are kept."):
            examples = Examples.of(as_dense(X), y, names, weights)
        self._living = self.fresh_value(examples)

    def fresh_value(self, examples: Examples, settings: Any = None) -> Summed:
        """The batch fit of examples, which are kept."""
        return Summed(_batch(self, examples.X, examples.labels, examples.weights), examples)

    def _learn_more(self, X: Any, y: Any, sample_weight: Any) -> None:
        first = fit_copy(self, lambda copy: copy.fit(X, y, sample_weight=sample_weight), "_living")
        if first is not None or is_empty(X, y):
            return
        if self.editable_.keeps_rows:
            self.add(X, y, sample_weight=sample_weight)
        else:
            rows = self.checked_rows(X, y, sample_weight, reset=False)
            self._by_value(lambda value: value.plus(value.model.summed(*rows)))

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows that were learnt with these labels or targets, as if never there.

        The rows must be those that were learnt, each once, with the same weights. What the sums can
        tell is refused: more rows of a class than it has, or sums that no rows have. They cannot
        tell one row from another of the same class. An estimator that keeps its rows forgets them
        by id: `remove`.
        """
        _ = self.editable_
        if not is_empty(X, y):
            rows = self.checked_rows(X, y, sample_weight, reset=False)
            self._by_value(lambda value: value.minus(value.model.summed(*rows)))
        return self

    def merge(self, other: Self) -> Self:
        """Learn all that another one has learnt on the same grid; the same bits as one fit.

        If this one keeps its rows, so must the other; its rows are read on the grid of this one,
        and the two must not share an id.
        """
        check_mergeable(self, other, "_living")
        if not self.editable_.keeps_rows:
            sums = _sums_on_one_grid(self, other)
            with declared_too(self, declared(other)):
                return self._by_value(lambda value: value.plus(sums))
        if not other.editable_.keeps_rows:
            raise InvalidInput(
                "This model keeps its rows by id, the other one only their sums. Fit the other "
                "with ids, too: fit(X, y, ids=...)."
            )
        return super().merge(other)

    def split(self, other: Self) -> Self:
        """Forget all that another one has learnt, and this one too: the reverse of `merge`."""
        check_mergeable(self, other, "_living")
        sums = _sums_on_one_grid(self, other)
        return self._by_value(lambda value: value.minus(sums))

    def _by_value(self, change: Callable[[Summed], Summed]) -> Self:
        """Change a model that keeps no rows."""

        def changed(value: Summed) -> Summed:
            if value.keeps_rows:
                raise InvalidInput(
                    "This model keeps its rows by id, and rows or sums do not tell whose they are. "
                    "Forget them by id: remove(ids)."
                )
            with enough_memory("apply this edit", FEWER_COLUMNS):
                return change(value)

        update_fitted(self, "_living", changed)
        return self

    # -- asking ------------------------------------------------------------------------------

    def log_marginal_likelihood(self) -> float:
        """log p(T | X), summed over the target columns; with an intercept, what it leaves of T."""
        return self.model_.log_marginal_likelihood()

    def leave_one_out(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> LeftOut:
        """The prediction for each of these rows by the model without it, in one pass.

        X, y, sample_weight : rows that the model has learnt, all or some. If it keeps none, X and y
            must be given again; by default they are all that it keeps
        groups : (n,), a name for each row; whole groups are left out then

        `ids` of the answer are the numbers of the rows, or the ids of rows that are kept. The noise
        and the classes stay those of all rows. A kept row of weight zero is predicted like a new
        row; with groups it is not in the answer. `silent` marks rows about which the others say
        nothing.
        """
        value = self.editable_
        if X is None and y is None and value.keeps_rows:
            ids, y, left = _kept_left_out(value, groups)
        else:
            y, left = _given_left_out(self.holding(value), (X, y, sample_weight), groups)
            ids = np.arange(len(y))
        scores, variance, silent = left
        predicted = self._prediction(value.model, scores)
        variance = _shaped(value.model, variance)
        return LeftOut(ids, y, scores, variance, predicted, silent, value.model.names)

    @abstractmethod
    def _prediction(self, model: LinearModel, scores: Array) -> Array:
        """The predictions that follow from these scores (m, M)."""

    def predict_variance(self, X: Any) -> Array:
        """sigma_*^2, noise included, (m,): how far each row of X is from all rows learnt.

        A regressor with q columns of targets has one for each, (m, q).
        """
        model = self.model_
        return _shaped(model, model.variance(self.model_inputs(X)))

    def model_inputs(self, X: Any, *, reset: bool = False) -> Any:
        """X as `model_` takes it, (m, D), not copied."""
        _ = reset or self.editable_
        return checks.rows(self, X, reset=reset)

    @property
    def model_(self) -> LinearModel:
        """The frozen model."""
        return self.editable_.model

    def digest(self) -> str:
        """The SHA-256 of the sums: the same for the same rows on the same grid.

        Neither order, blocks, threads, shards nor rows that came and went change a bit of it.
        """
        return self.model_.sums.digest()

    @property
    def coef_(self) -> Array:
        """The weights of the features, (M, D): a row for each column of scores.

        (D,) where the targets of a regressor are numbers, as in scikit-learn.
        """
        model = self.model_
        return model.weights[:, 0] if model.flat else model.weights.T

    @property
    def intercept_(self) -> Array | float:
        """The offset of each column of scores, (M,); a number where the targets are numbers."""
        model = self.model_
        mean, target = model.moments.means
        offsets = np.asarray(target - mean @ model.weights)
        return float(offsets[0]) if model.flat else offsets

    @property
    def noise_(self) -> float:
        """The noise in use."""
        return float(self.model_.noise)

    @property
    def kernel_(self) -> Kernel:
        """x'y, times the amplitude of the weights: with `noise_`, the Gaussian process in use."""
        amplitude, linear = self.model_.amplitude, clone(self.kernel)
        return linear if amplitude == 1 else ConstantKernel(amplitude) * linear

    @property
    def grid_(self) -> Grid:
        """The grid that rows are read on."""
        return self.model_.grid

    @property
    def n_samples_(self) -> int:
        """The number of rows held now."""
        return self.model_.sums.rows

    def __getattr__(self, name: str) -> Any:
        """The error for a verb by id of an estimator that keeps no rows: what to do instead."""
        if name in INSTEAD and not _keeps_rows(self):
            raise NoRows(
                f"{type(self).__name__} keeps no rows and no ids, so it has no {name}. "
                f"{INSTEAD[name]} Or let it keep them: fit(X, y, ids=...)."
            )
        # Again, for its own error: a property may have raised that it is not fitted.
        return super().__getattribute__(name)

    # -- inside ------------------------------------------------------------------------------

    def checked_rows(self, X: Any, y: Any, weights: Any, *, reset: bool) -> tuple[Any, Array, Any]:
        """X (n, D) as it is, y and the weights of its rows, checked."""
        check_aligned(X=X, y=y, sample_weight=weights)
        X = checks.rows(self, X, reset=reset)
        y = self._labels(y, X.shape[0], None if reset else self.editable_.labels)
        return X, y, checks.sample_weights(weights, X.shape[0])

    def _grid(self, x: Sketch) -> Grid:
        """The grid of the features with this sketch."""
        wanted = self.resolution
        if isinstance(wanted, Grid):
            return _given("resolution", wanted, len(x.least), "features", "X")
        known = wanted is None or (isinstance(wanted, str) and wanted == "exact")
        if not known and not (is_whole(wanted) and wanted in (8, 16, 21)):
            raise InvalidInput(
                f"resolution={wanted!r} is not known. Give a Grid, 8, 16 or 21 (bits), 'exact' "
                f"(42 bits: float32 as it is), or None for 21."
            )
        bits: int = _BITS.get(wanted, wanted)  # type: ignore[arg-type, assignment]
        exponents, centres = x.columns(LAYOUTS[bits].below)
        return Grid(exponents, bits, centres)


@final
@dataclass(eq=False, repr=False)
class LinearGPClassifier(ScoringClassifier, LinearGP):
    """A linear Gaussian-process classifier for any number of rows, which forgets to the last bit.

    One-vs-all regression on labels of -1 and 1 with the kernel x'y, in its weight space: the model
    of `GPClassifier` with `DotProduct(0)`, or with an intercept that of `LSSVMClassifier`. It needs
    no rows, only their sums, as whole numbers on a grid. So rows can be learnt, forgotten, merged
    and split in any order, and on the same grid the sums are the same to the bit. A frozen feature
    map may stand before it in a `Pipeline`. It takes 16 D^2 bytes, and up to 64 D^2 while it is
    asked: learning raises `NotEnoughMemory` if these are not free. It takes D^2 / 2 multiplications
    to learn a row, and D^3 / 6 for the first question after an edit, however many rows it has
    learnt.

    Parameters
    ----------
    noise : sigma^2, the variance of the noise on the labels, above zero: the penalty of ridge
        regression, since weights have an amplitude (a prior variance) of one. None: noise and
        amplitude have the largest marginal likelihood. "evidence" has the penalty of None, "loo"
        the smallest generalised cross-validation error, both at an amplitude of one. What is
        chosen leaves the rows of a classifier a mean leverage of at most one half, and follows
        every edit. See `noise_` and `kernel_`
    resolution : how fine the grid is that the first rows choose. None or 21: steps of 2**-14 of the
        spread of a column; 16: 2**-9; 8: 2**-3; "exact": 2**-35, float32 as it is, which takes
        about four times as long for many features. Or a `Grid`. It is kept: see `grid_`
    intercept : whether each class has an offset, without a prior
    probability : "calibrated", or "raw": see `predict_proba`. No rows are held, so that the
        temperature is that expected by their sums; `knowmore.insight.calibrate(clf, X, y)` leaves
        out rows that are given again

    Notes
    -----
    Without ids no row is kept: `partial_fit` learns and `forget` removes; there is no `add`,
    `remove`, `replace` or `relabel`. `fit(X, y, ids=...)` keeps the rows, for all of these and for
    `leave_one_out()`; then `forget` and `split` are refused. The answers are the same, to the bit.
    Edits happen in place; all but `add` return the estimator itself. `predict` refuses `unknown`:
    `knowmore.insight.novelty(clf, X, reference=(X_learnt, y_learnt))` finds such rows.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> clf = LinearGPClassifier().fit(X[:1000], y[:1000]).partial_fit(X[1000:], y[1000:])
    >>> clf.digest() == LinearGPClassifier(resolution=clf.grid_).fit(X[::-1], y[::-1]).digest()
    True
    >>> round(clf.forget(X[1000:], y[1000:]).score(X[1000:], y[1000:]), 2)
    0.9
    """

    _: KW_ONLY
    probability: str = "calibrated"

    def _model(self, survey: Survey) -> LinearModel:
        noise, grid = noise_setting(self), self._grid(survey.x)
        check_meaning(self.probability)
        return LinearModel.of_classes(Sums(grid), noise, intercept=self.intercept)

    def _labels(self, y: Any, k: int, held: Array | None) -> Array:
        return checks.class_labels(y, k, held)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn more rows, any number, of known or new classes.

        classes : as for `GPClassifier.partial_fit`
        """
        names = checks.declared_classes(y, classes, held_labels(self))
        with declared_too(self, names):
            self._learn_more(X, y, sample_weight)
        return self

    def predict(self, X: Any, unknown: Any = None, rate: Any = None) -> Array:
        """The class of the largest score, (m,). `unknown` and `rate` are refused: see Notes."""
        remedy = "knowmore.insight.novelty(clf, X, reference=(X_learnt, y_learnt)) finds such rows"
        checks.refuse_unknown(self, unknown, rate, remedy)
        return super().predict(X)

    @property
    def classes_(self) -> Array:
        """The classes that have rows now or were declared, (M,), sorted."""
        return joint_classes(self, self.model_.names)


@final
@dataclass(eq=False, repr=False)
class LinearGPRegressor(RegressorMixin, LinearGP):
    """Linear Gaussian-process regression for any number of rows, which forgets to the last bit.

    The model of `GPRegressor` with the kernel x'y in its weight space: see `LinearGPClassifier`.
    Targets y (n,) or (n, q) are read on a grid too.

    Parameters
    ----------
    noise, resolution, intercept : as for `LinearGPClassifier`
    y_resolution : the grid of the targets, a `Grid` of q columns with as many bits as that of the
        features; None: the first fit chooses steps of 2**-35 of their spread. Models merge, and
        have equal digests, only if these agree: see `y_grid_`
    normalize_y : whether variances and `log_marginal_likelihood` are those of targets divided by
        their standard deviation (about zero without an intercept), in the units of y. The
        predictions are the same.

    Examples
    --------
    >>> X = np.arange(6.0)[:, None]
    >>> reg = LinearGPRegressor().fit(X, [1.0, 3.0, 5.0, 7.0, 9.0, 99.0])
    >>> reg.forget(X[5:], [99.0]).predict([[10.0]]).round(1)
    array([21.])
    """

    _: KW_ONLY
    y_resolution: Grid | None = None
    normalize_y: bool = True

    @property
    def y_grid_(self) -> Grid:
        """The grid that targets are read on."""
        return target_grid(self.model_)

    def _y_grid(self, y: Sketch, bits: int) -> Grid:
        """The grid of the targets with this sketch."""
        if self.y_resolution is None:
            exponents, centres = y.columns(_BELOW_TARGETS)
            return Grid(exponents, bits, centres)
        if not isinstance(self.y_resolution, Grid):
            raise InvalidInput(
                f"y_resolution={self.y_resolution!r}. Give a Grid, such as "
                f"Grid.covering(y[:, None]), or None."
            )
        return _given("y_resolution", self.y_resolution, len(y.least), "columns", "y")

    def _model(self, survey: Survey) -> LinearModel:
        noise, grid = noise_setting(self), self._grid(survey.x)
        empty = Sums(grid + self._y_grid(survey.y, grid.bits))
        normalised = flag("normalize_y", self.normalize_y)
        names = np.arange(len(survey.y.least))
        flat = survey.some.ndim == 1
        return LinearModel(empty, names, noise, self.intercept, False, normalised, flat)

    def _labels(self, y: Any, k: int, held: Array | None) -> Array:
        values = checks.real_values(y, k, None if held is None else held[:0])
        Y = as_columns(values)
        if (huge := abs(Y) > LARGEST).any():
            row, column = np.argwhere(huge)[0]
            raise InvalidInput(
                f"y has {Y[row, column]:g} in row {row}, but the squares of values "
                f"beyond {LARGEST:.0e} are no numbers. Leave the row out, or scale the targets."
            )
        return values

    def _prediction(self, model: LinearModel, scores: Array) -> Array:
        return scores[:, 0] if model.flat else scores

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn more rows, any number."""
        self._learn_more(X, y, sample_weight)
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The posterior mean, (m,) or (m, q) as the targets are.

        return_std : and the standard deviation of a target there, noise included
        """
        model, X = self.model_, self.model_inputs(X)
        with_std = flag("return_std", return_std)
        mean = self._prediction(model, model.mean(X))
        return (mean, np.sqrt(_shaped(model, model.variance(X)))) if with_std else mean

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@final
@dataclass(frozen=True, eq=False)
class Survey:
    """The part of a shard in the grid of all shards: its columns and the range of their values.

    estimator : it has noted the columns, and is not fitted
    x : the sketch of the features; of a grid that is given, only the number of columns is known
    y : the sketch of the targets; of labels, that of no rows
    some : one of the labels or targets, (1,) or (1, q)
    """

    estimator: LinearGP
    x: Sketch
    y: Sketch
    some: Array

    @classmethod
    def of(cls, estimator: LinearGP, X: Any, y: Any, sample_weight: Any = None) -> Survey:
        """The survey of the rows of one shard, for a clone of the estimator."""
        if y is None:
            raise InvalidInput(
                "These rows have no targets. Name the column that has them, or give y beside X."
            )
        empty = clone(estimator)
        survey = cls.of_rows(empty, *empty.checked_rows(X, y, sample_weight, reset=True))
        survey.start()
        return survey

    @classmethod
    def of_rows(cls, estimator: LinearGP, X: Any, y: Array, weights: Array | None) -> Survey:
        """The survey of rows that the estimator has checked; rows of weight zero are left out."""
        # Blocks of so wide rows may be too large themselves.
        check_room(X.shape[1], X.shape[1])
        some = y[:1]
        # Copies of a row, and its weight, are the same to the model.
        counts = in_units(weights, X.shape[0])
        if weights is not None and not weights.all():
            X, y, counts = (part[np.flatnonzero(weights)] for part in (X, y, counts))
        x = Sketch.of(X[:0] if isinstance(estimator.resolution, Grid) else X, counts)
        Y = np.empty((0, 1)) if is_classifier(estimator) else as_columns(y)
        return cls(estimator, x, Sketch.of(Y, counts), some)

    def merge(self, other: Survey) -> Survey:
        """The survey of both shards."""
        check_mergeable(self.estimator, other.estimator, "n_features_in_")
        if self.some.shape != other.some.shape:
            raise InvalidInput(
                f"The targets of a row have shape {self.some.shape[1:]} here, "
                f"{other.some.shape[1:]} there. Give each row the same number of targets."
            )
        some = self.estimator._labels([*self.some, *other.some], 2, None)[:1]
        return Survey(self.estimator, self.x.merge(other.x), self.y.merge(other.y), some)

    def start(self, sums: Sums | None = None) -> LinearGP:
        """A fitted estimator on the common grid, of no rows or of these sums."""
        empty = Summed(self.estimator._model(self))
        return self.estimator.holding(empty if sums is None else empty.of(sums))


def _batch(estimator: LinearGP, X: Any, y: Array, weights: Array | None) -> LinearModel:
    """The batch fit of checked rows, which choose the grid unless it is given."""
    with enough_memory("learn these rows", FEWER_COLUMNS):
        empty = estimator._model(Survey.of_rows(estimator, X, y, weights))
        check_room_of(empty)
        model = empty.of(empty.summed(X, y, weights))
        check_room_of(model)
    if not model.count:
        raise InvalidInput("All weights are zero. Give some example a weight above zero.")
    return model


def _kept_left_out(value: Summed, groups: Any) -> tuple[Array, Array, LooScores]:
    """The ids and labels of rows that are kept, and each of the rows left out."""
    model, kept, counted = value.model, value.examples, value.counted
    names, learnt = checks.group_names(groups, kept.names), among(kept.serials, counted.serials)
    w = np.rint(counted.weights * UNIT) / UNIT
    left = LinearLoo(model).scores(
        counted.X, counted.labels, w, None if names is None else names[learnt]
    )
    if learnt.all() or groups is not None:
        return counted.ids, counted.labels, left
    X, order = kept.X[~learnt], np.argsort(~learnt, kind="stable").argsort()
    new = model.mean(X), model.variance(X), np.zeros(len(X), bool)
    both = [np.concatenate(pair)[order] for pair in zip(left, new, strict=True)]
    return kept.ids, kept.labels, LooScores(*both)


def _given_left_out(
    estimator: LinearGP, rows: tuple[Any, Any, Any], groups: Any
) -> tuple[Array, LooScores]:
    """The labels or targets of rows (X, y, weights) given again, and each of the rows left out."""
    model, (X, y, weights) = estimator.model_, rows
    if X is None or y is None:
        raise InvalidType(
            f"leave_one_out of {a_type(estimator)} needs the rows and their targets: the model "
            f"keeps only their sums. Give rows that it has learnt again, all or some: "
            f"leave_one_out(X, y)."
        )
    check_aligned(X=X, y=y, groups=groups)
    X, y, weights = estimator.checked_rows(X, y, weights, reset=False)
    n = X.shape[0]
    if groups is not None:
        one_each("groups", shape_of("groups", groups), n)
        groups = groups if index_of(groups) is None else groups.to_numpy()
    names = checks.group_names(groups, tuple(range(n)))
    w = np.ones(n) if weights is None else np.rint(weights * UNIT) / UNIT
    if (w <= 0).any():
        raise InvalidInput("Rows of weight zero were not learnt. Leave them out here too.")
    return y, LinearLoo(model).scores(X, y, w, names)


def _shaped(model: LinearModel, variance: Array) -> Array:
    """The variances of a model in the shape of the predictions."""
    if model.classes:
        return variance
    q = len(model.names)
    columns = variance if variance.ndim == 2 else np.repeat(variance[:, None], q, axis=1)
    return columns[:, 0] if model.flat else columns


def _sums_on_one_grid(one: LinearGP, other: LinearGP) -> Sums:
    """The sums of the other; raises InvalidInput unless they can be added to the sums of one."""
    here, there = one.model_, other.model_
    if here.classes and len(there.names):
        one._labels(there.names, len(there.names), here.names)
    elif len(here.names) != len(there.names) and not here.classes:
        raise InvalidInput(
            f"The two models differ in the number of targets: {len(here.names)} here, "
            f"{len(there.names)} there. Models merge only if these are the same."
        )
    if here.sums.grid != there.sums.grid:
        settings = "resolution=a.grid_"
        differ = ["features"] if here.grid != there.grid else []
        if not here.classes:
            settings += ", y_resolution=a.y_grid_"
            differ += ["targets"] if target_grid(here) != target_grid(there) else []
        raise InvalidInput(
            f"The two models read their {' and '.join(differ)} on different grids: the first "
            f"rows of each decided these, or its settings. Fit both with the grids of one of "
            f"them, a: {settings}. Or learn all rows with one: partial_fit."
        )
    return there.sums


def _given(name: str, grid: Grid, columns: int, things: str, rows: str) -> Grid:
    """A grid that was given, which must have as many columns as the rows."""
    if len(grid) != columns:
        raise InvalidInput(
            f"{name} has {len(grid)} columns, but {rows} has {columns} {things}. Give the grid of "
            f"rows like these: Grid.covering({rows})."
        )
    return grid


def noise_setting(estimator: LinearGP) -> float | str | None:
    """The parameter `noise`, checked; for files, which restore models from sums."""
    flag("intercept", estimator.intercept)
    if estimator.noise is None:
        return None
    if isinstance(estimator.noise, str):
        return choice("noise", estimator.noise, ("loo", "evidence"))
    hint = "It is a variance, usually from 1e-6 to 1; without it the rows choose."
    return number("noise", estimator.noise, "(0, inf)", hint)


def grids_are_given(estimator: LinearGP) -> bool:
    """Whether the grids of features and, for a regressor, of targets are parameters."""
    given = estimator.get_params(deep=False)
    return all(isinstance(given[name], Grid) for name in given if name.endswith("resolution"))
