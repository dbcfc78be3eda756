"""Arguments of the estimators as clean arrays, or an error that says what is wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from knowmore._base import (
    Array,
    Id,
    Names,
    a_type,
    as_array,
    check_sparse,
    choice,
    column_names,
    columns_of,
    first_difference,
    first_not_finite,
    in_order,
    is_missing,
    one_each,
    shape_of,
    unmasked,
)
from knowmore.errors import InvalidInput, InvalidType, warn
from knowmore.estimators.shell import names_in
from knowmore.models import Weighting, class_weighting

# Coefficients are targets over the noise, and the likelihood has products of both.
_LARGEST_TARGET = {"float32": 1e18, "float64": 1e100}

# Squares and sums of weights must be finite.
_HEAVIEST = 1e150

# A column has no say in the distances if the standard deviation of another one is so many times its
# own; and how many rows tell. If that is so for a quarter of the columns, somebody should know.
# Pictures and bags of words have fewer: pixels at the edge, rare words.
_APART, _ENOUGH = 100, 32
# More rows would hardly move a standard deviation.
_ROWS = 1000

_KINDS = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "str", "S": "bytes"}
_LABELS = {"bool": bool, "int": np.int64, "float": float, "str": str}


# -- features -------------------------------------------------------------------------------------


def inputs(estimator: BaseEstimator, X: Any, *, reset: bool, accept_sparse: Any = False) -> Any:
    """X as finite float64 (k, d), from any table that scikit-learn reads.

    reset : whether to store the number and names of the features; otherwise X must match them
    """
    return _finite("X", _validated(estimator, X, np.float64, reset, accept_sparse))


def table(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """X as `inputs` returns it; a sparse matrix stays sparse, in CSR format."""
    return inputs(estimator, X, reset=reset, accept_sparse="csr")


def dense(estimator: BaseEstimator, X: Any, *, reset: bool) -> Array:
    """X as `inputs` returns it; a sparse matrix is made dense."""
    X = inputs(estimator, X, reset=reset, accept_sparse="csr")
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def rows(estimator: BaseEstimator, X: Any, *, reset: bool, finite: bool = False) -> Any:
    """X (k, d) in the type that it has, without a copy; a sparse matrix in CSR format.

    finite : whether to check that its values are; otherwise that is left to whoever reads them
    """
    X = _validated(estimator, X, "numeric", reset, "csr")
    return _finite("X", X) if finite else X


def _validated(
    estimator: BaseEstimator, X: Any, dtype: Any, reset: bool, accept_sparse: Any
) -> Any:
    """X as an array of some type, with the features that the estimator was fitted to."""
    kinds = "fiub" if dtype == "numeric" else ""
    if not reset and _is_plain(estimator, X) and (X.dtype == dtype or X.dtype.kind in kinds):
        return X
    _check_given("X", X)
    check_sparse("X", X)
    _refuse_one_column(X)
    _refuse_dates(X)
    names = column_names(X)
    if not reset:
        _check_names(names_in(estimator), names)
    options = {"reset": reset, "ensure_all_finite": False, "accept_sparse": accept_sparse}
    with _translated("X", "Encode them with a OneHotEncoder.", X):
        given = validate_data(estimator, X, dtype=dtype, **options)
        # Such as the values of a categorical column.
        given = given.astype(float) if given.dtype.kind not in "fiub" else given
    if reset:
        vars(estimator)["_names_in"] = names
    return given


def _is_plain(estimator: BaseEstimator, X: Any) -> bool:
    """Whether X is an array with the features that the estimator knows by their number alone.

    For speed, such a one skips scikit-learn's validation.
    """
    if type(X) is not np.ndarray or X.ndim != 2 or not len(X):
        return False
    unnamed = not hasattr(estimator, "feature_names_in_")
    return unnamed and bool(X.shape[1] == estimator.n_features_in_)


def _refuse_one_column(X: Any) -> None:
    """Raise InvalidInput if X is a series of values rather than a table."""
    if hasattr(X, "to_frame") and len(getattr(X, "shape", ())) == 1:
        raise InvalidInput(
            f"X is {a_type(X)} of {len(X)} values, but a table has rows and columns. If they are a "
            f"column, give X.to_frame(); if they are one row, X.to_numpy()[None]."
        )


def _refuse_dates(X: Any) -> None:
    """Raise InvalidInput if X has dates: NumPy would read a missing one as a number."""
    types = getattr(X, "dtypes", None)
    types = [getattr(X, "dtype", None)] if types is None else [*types]
    dates = [at for at, one in enumerate(types) if getattr(one, "kind", "") in ("m", "M")]
    if dates:
        columns = columns_of(X)
        where = f"The column {columns[dates[0]]!r} of X" if columns else "X"
        raise InvalidInput(
            f"{where} has dates or durations. Give numbers, such as days since a date: "
            f"(dates - dates.min()) / np.timedelta64(1, 'D')."
        )


def _check_names(known: Names, given: Names) -> None:
    """Raise InvalidInput if columns differ from the columns of the fit.

    Names that are all strings are left to scikit-learn, whose checks expect its own words.
    """
    if known is None or given is None or all(isinstance(one, str) for one in known + given):
        return
    if (at := first_difference(known, given)) is not None:
        change = f"is {given[at]!r}, but it was {known[at]!r} in fit"
        raise InvalidInput(f"Column {at} of X {change}. Keep the order.")


def warn_of_scales(estimator: BaseEstimator, X: Array) -> None:
    """Warn if columns of X (n, d) drown others in the distances of the default kernel.

    Columns that do not vary have no part in them, and do not count here.
    """
    if len(X) < _ENOUGH:
        return
    some = X[:: -(-len(X) // _ROWS)]
    low, high = some.min(axis=0), some.max(axis=0)
    # In units of the largest, so that squares can be summed. The spread of a constant is rounding.
    unit = np.maximum(np.maximum(abs(low), abs(high)), np.finfo(float).tiny)
    with np.errstate(over="ignore"):
        spread = np.where(high > low, (some / unit).std(axis=0) * unit, 0.0)
    varying = np.sort(spread[spread > 0])
    if not len(varying) or not varying[-1] / _APART > (least := varying[(len(varying) - 1) // 4]):
        return
    column = int(spread.argmax())
    names = names_in(estimator)
    name = column if names is None else names[column]
    warn(
        f"Column {name!r} has a standard deviation of {spread[column]:.3g}, a quarter of the "
        f"columns one of at most {least:.3g}: in the distances of the default kernel these have no "
        f"say. Scale the columns first, as by make_pipeline(StandardScaler(), ...), or give a "
        f"kernel with a length scale for each column; `tune` finds better ones."
    )


# -- labels, targets, weights ---------------------------------------------------------------------


def class_labels(y: Any, k: int, held: Array | None) -> Array:
    """y as k class labels (k,) of one type, the type of the labels `held`."""
    alike = held is None or not len(held) or held.dtype.kind in "iu"
    if alike and type(y) is np.ndarray and y.dtype == np.int64 and y.shape == (k,):
        # For speed: nothing of what follows could refuse these.
        return y.copy()
    labels = _column("y", y)
    kind = _type_of("label", labels, _LABELS)
    one_each("y", labels.shape, k)
    if kind == "float" and (_finite("y", labels.astype(float)) % 1 != 0).any():
        raise InvalidInput("Unknown label type: continuous. Use GPRegressor to predict numbers.")
    converted = labels
    with suppress(OverflowError):
        converted = labels.astype(_LABELS[kind])
    if converted.dtype == object or converted.tolist() != labels.tolist():
        strange = "Integers outside -2**63 to 2**63 - 1 and strings that end in NUL"
        raise InvalidInput(f"{strange} cannot be labels. Rename them.")
    if held is not None and len(held) and _KINDS[held.dtype.kind] != kind:
        theirs = f"{_KINDS[held.dtype.kind]}, such as {held[0].item()!r}"
        problem = f"The new labels are of type {kind}, but those held are of type {theirs}."
        raise InvalidInput(f"{problem} Convert them first.")
    return converted


def unknown_label(unknown: Any, classes: Array) -> Array:
    """The label for rows of no known class, (1,), of the same type as the classes."""
    try:
        label = class_labels([unknown], 1, classes)
    except InvalidInput as error:
        raise InvalidInput(f"unknown={unknown!r} cannot be a label here. {error}") from error
    if label[0] in classes:
        raise InvalidInput(f"unknown={unknown!r} is a class of the model. Give another label.")
    return label


def refuse_unknown(estimator: BaseEstimator, unknown: Any, rate: Any, remedy: str) -> None:
    """Raise InvalidType if `predict` is asked to mark rows of no class, which needs all examples.

    remedy : a clause on what to use instead
    """
    if unknown is not None or rate is not None:
        raise InvalidType(
            f"predict of {a_type(estimator)} takes no unknown or rate, which need a model that "
            f"leaves out each of its examples, as GPClassifier does. Instead, {remedy}."
        )


def declared_classes(y: Any, classes: Any, held: Array | None = None) -> Array | None:
    """The classes that are declared beside labels y, of the type of y; None if none are.

    Raises InvalidInput if y has a label that is not among them.
    held : labels whose type they have if there is none in y
    """
    if classes is None or y is None:
        return None
    column, names = _column("y", y), _declared(classes)
    labels = class_labels(column, len(column), None)
    strange = sorted(set(labels.tolist()) - set(names.tolist()))
    if strange:
        problem = f"y has the label {strange[0]!r}, which is not in classes."
        raise InvalidInput(f"{problem} Leave classes out: new classes are learnt as they come.")
    like = labels if len(labels) or held is None else held
    if names.dtype.kind != like.dtype.kind and len(like):
        # Such as 0 and 1 for False and True, which equal them.
        with suppress(ValueError):
            alike = names.astype(like.dtype)
            names = alike if alike.tolist() == names.tolist() else names
    return class_labels(names, len(names), like)


def memberships(Y: Any, k: int, classes: Any, held: Array | None) -> tuple[Array, Array]:
    """The class names, (C,) sorted, and the membership of k examples in each class, (k, C).

    Y is a column of labels, or soft labels: a matrix whose rows sum to one and whose columns are
    `classes`, or those held.
    """
    unmasked("y", Y)
    parts = as_array("y", Y)
    columns = held if classes is None else as_array("classes", classes)
    if not _is_soft(parts, columns):
        declared_classes(Y, classes)
        names, index = np.unique(class_labels(Y, k, held), return_inverse=True)
        return names, np.eye(len(names))[index]
    names = _declared(() if columns is None else columns)
    names = class_labels(names, len(names), held)
    if len(np.unique(names)) != len(names) or parts.shape[1] != len(names):
        raise InvalidInput(
            f"y has {parts.shape[1]} columns of soft labels, for the classes {names.tolist()}. "
            f"Give one column for each class, and name each class once: classes=[...]."
        )
    parts = real_values(parts, k, None)
    rounding = len(names) * np.sqrt(np.finfo(float).eps)
    within = parts.min() >= 0 and parts.max() <= 1 + rounding
    if not within or abs(parts.sum(axis=1) - 1).max() > rounding:
        raise InvalidInput("Soft labels must not be negative, and each row must sum to one.")
    order = np.argsort(names)
    return names[order], parts[:, order]


def real_values(y: Any, k: int, held: Array | None) -> Array:
    """y as finite float64 targets of k examples, (k,) or (k, q), with q as in those `held`."""
    values = numbers("y", y, remedy="Give numbers; a classifier takes names.")
    one_each("y", values.shape[:1], k)
    if held is not None and values.shape[1:] != held.shape[1:]:
        problem = f"y has shape {values.shape}, but the targets held have {held.shape}."
        raise InvalidInput(f"{problem} Give each example the same number of values.")
    return values


def target_values(y: Any, k: int, held: Array | None, dtype: str) -> Array:
    """y as targets of k examples, (k,) or (k, q) as those held; the factor is of this dtype."""
    values = real_values(y, k, held)
    most = _LARGEST_TARGET[choice("dtype", dtype, ("float64", "float32"))]
    if (largest := abs(values).max(initial=0)) > most:
        raise InvalidInput(f"y reaches {largest:.3g}; {dtype} takes {most:g}. Scale it.")
    return values


def sample_weights(weights: Any, k: int) -> Array | None:
    """The weights of k examples, (k,), finite and not negative; None if none are given."""
    if weights is None:
        return None
    values = numbers("sample_weight", weights)
    one_each("sample_weight", values.shape, k)
    bad = np.flatnonzero((values < 0) | (values > _HEAVIEST))
    if len(bad):
        row, weight = bad[0], values[bad[0]]
        problem = "below zero" if weight < 0 else f"above {_HEAVIEST:g}"
        raise InvalidInput(f"sample_weight[{row}]={weight} is {problem}. Give weights from 0 on.")
    return values


def class_weights(class_weight: Any, labels: Array) -> Weighting:
    """scikit-learn's `class_weight`, with class names of the type of the labels."""
    weighting = class_weighting(class_weight)
    if isinstance(weighting.classes, tuple):
        names = [name for name, _ in weighting.classes]
        class_labels(names, len(names), labels)
    return weighting


def group_names(groups: Any, ids: tuple[Id, ...]) -> Array | None:
    """The group of each of these examples, (n,), all of one type; None if groups is None.

    Groups with an index are matched by it; others are in the order of the ids.
    """
    if groups is None:
        return None
    groups = in_order("groups", groups, ids)
    one_each("groups", shape_of("groups", groups), len(ids), "the order of ids_")
    names = _column("groups", groups)
    if _type_of("group", names, _KINDS.values()) == "float":
        _finite("groups", names.astype(float))
    return np.array(names.tolist())


# -- parameters -----------------------------------------------------------------------------------


def is_calibrated(estimator: Any) -> bool:
    """Whether the probabilities of an estimator have a temperature other than one."""
    return check_meaning(estimator.probability) == "calibrated"


def check_meaning(probability: Any) -> str:
    """The parameter `probability`; raises InvalidInput unless it is known."""
    return choice("probability", probability, ("calibrated", "raw"))


def check_loss(loss: Any) -> str:
    """The parameter `loss`; raises InvalidInput unless it is known."""
    return choice("loss", loss, ("squared", "squared_hinge"))


# -- what they share ------------------------------------------------------------------------------


@contextmanager
def _translated(name: str = "", remedy: str = "", table: Any = None) -> Iterator[None]:
    """Raise the errors of scikit-learn as ours.

    name, remedy : of the argument in which text is not allowed, and what to do about it
    table : the argument, if its columns may have names
    """
    try:
        yield
    except TypeError as error:
        raise InvalidType(str(error)) from error
    except OverflowError as error:
        raise InvalidInput(
            f"{name or 'An argument'} has a number beyond the range of numbers: {error}. Scale it."
        ) from error
    except ValueError as error:
        message = str(error)
        if name and message.startswith("could not convert"):
            text = (one for one in columns_of(table) if _is_text(table[one]))
            where = next((f"The column {one!r} of {name}" for one in text), name)
            message = f"{where} has values that are not numbers: {message}. {remedy}"
        raise InvalidInput(message) from error


def _is_text(column: Any) -> bool:
    with suppress(TypeError, ValueError):
        np.asarray(column, dtype=float)
        return False
    return True


def _check_given(name: str, values: Any) -> None:
    if values is None:
        # scikit-learn's checks look for these words.
        wanted = "array-like (array or non-string sequence)"
        raise InvalidInput(f"Expected {wanted}, got None as {name}.")
    unmasked(name, values)


def numbers(
    name: str, values: Any, *, ensure_2d: bool = False, remedy: str = "Give numbers."
) -> Array:
    """The values as finite float64, (k,) or (k, d).

    remedy : what to do about text among them
    """
    _check_given(name, values)
    with _translated(name, remedy):
        array = check_array(
            values, dtype=np.float64, ensure_2d=ensure_2d, ensure_all_finite=False, input_name=name
        )
    return np.asarray(_finite(name, array))


def _finite(name: str, values: Any) -> Any:
    """The values, (k,), (k, d) or sparse, if all are finite."""
    if first_not_finite(values.data if sparse.issparse(values) else values) is None:
        return values
    entries = sparse.coo_array(values)
    bad = np.flatnonzero(~np.isfinite(entries.data))
    axes = zip(("row", "column"), entries.coords, strict=False)
    where = ", ".join(f"{axis} {position[bad[0]]}" for axis, position in axes)
    found = f"{len(bad)} value(s), the first at {where} ({entries.data[bad[0]]})"
    problem = f"Input {name} contains NaN or infinity: {found}."
    raise InvalidInput(f"{problem} Remove these examples or fill in the values.")


def _column(name: str, values: Any) -> Array:
    """The values as an array (k,), of objects unless NumPy already has a type for them."""
    _check_given(name, values)
    dtype = getattr(values, "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype.kind not in _KINDS:
        # NumPy would turn numbers mixed with strings into strings, and scikit-learn nullable
        # integers into floats; variable-width strings (kind T) do not convert to fixed-width ones.
        values = np.asarray(values, dtype=object)
    if type(values) is np.ndarray and values.ndim == 1:
        return values
    with _translated():
        return np.asarray(column_or_1d(values, warn=True))


def _declared(classes: Any) -> Array:
    """The class names that were declared, (C,), of one type."""
    try:
        names = _column("classes", classes)
        return class_labels(names, len(names), None)
    except InvalidInput as error:
        raise InvalidInput(f"classes={classes!r} is not a list of class names. {error}") from error


def _is_soft(Y: Array, columns: Array | None) -> bool:
    """Whether Y is a matrix of soft labels rather than a column of labels; (k, 1) may be either."""
    if Y.ndim != 2 or Y.shape[1] != 1:
        return Y.ndim == 2
    named = columns is not None and len(columns) == 1 and columns.dtype.kind != "f"
    return named and Y.dtype.kind == "f"


def _type_of(what: str, values: Array, known: Collection[str]) -> str:
    """The name of the type that all values share, which must be known."""
    if values.dtype.kind in _KINDS:
        types = {_KINDS[values.dtype.kind]}
    else:
        if missing := [i for i, one in enumerate(values) if is_missing(one)]:
            share = f"{len(missing)} of {len(values)} {what}s are missing"
            first = f"the first at position {missing[0]} ({values[missing[0]]!r})"
            raise InvalidInput(f"{share}, {first}. Leave these examples out.")
        types = {
            _KINDS.get(np.asarray(one).dtype.kind if np.isscalar(one) else "O", type(one).__name__)
            for one in values
        }
    if len(types) > 1 or not types <= {*known}:
        problem = f"Unknown {what} type: {', '.join(sorted(types))}."
        raise InvalidInput(f"{problem} Use only str, only int or only bool.")
    return types.pop() if types else "int"
