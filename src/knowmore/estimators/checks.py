"""What users hand in, made into clean arrays, or an error that says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from knowmore.arguments import is_missing
from knowmore.arrays import Array
from knowmore.columns import Names, columns_of, first_difference, names_of
from knowmore.errors import InvalidInput, InvalidType
from knowmore.estimators.shell import names_in

EPS = np.finfo(float).eps
# The square of a weight is a number, and so is the sum of as many as there may be.
_HEAVIEST = 1e150

_KINDS = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "str", "S": "bytes"}


def inputs(estimator: BaseEstimator, X: Any, *, reset: bool) -> Array:
    """X as finite float64 (k, d). `reset` learns the number and names of features, else they bind.

    Any table that scikit-learn reads will do: arrays, lists, pandas, polars.
    """
    _unmasked("X", X)
    plain = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and len(X) > 0
    known = not reset and not hasattr(estimator, "feature_names_in_")
    if not (plain and known and X.shape[1] == estimator.n_features_in_):
        X = _validated(estimator, X, reset)
    _finite("X", X)
    return np.asarray(X)


def table(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """X as `inputs` has it, or a sparse matrix in rows, left sparse."""
    if not sparse.issparse(X):
        return inputs(estimator, X, reset=reset)
    X = _validated(estimator, X, reset, accept_sparse="csr")
    if not np.isfinite(X.data).all():
        bad = X.tocoo()
        i = int(np.flatnonzero(~np.isfinite(bad.data))[0])
        raise InvalidInput(
            f"Input X contains NaN or infinity, the first at row {bad.row[i]}, column {bad.col[i]} "
            f"({bad.data[i]}). Remove these examples or fill in the values."
        )
    return X


def dense(estimator: BaseEstimator, X: Any, *, reset: bool) -> Array:
    """X as `inputs` has it; of a sparse matrix all k d values are written out."""
    X = table(estimator, X, reset=reset)
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def points(X: Any) -> Array:
    """X as finite float64 values (m, d), of whatever these may be coordinates."""
    _unmasked("X", X)
    _is_table(X)
    with _translated():
        values = check_array(X, dtype=np.float64, ensure_all_finite=False, input_name="X")
    _finite("X", values)
    return np.asarray(values)


def _validated(estimator: BaseEstimator, X: Any, reset: bool, **kinds: Any) -> Any:
    _is_table(X)
    names = names_of(X)
    if not reset:
        _same_names(names_in(estimator), names)
    try:
        with _translated():
            values = validate_data(
                estimator, X, reset=reset, dtype=np.float64, ensure_all_finite=False, **kinds
            )
    except InvalidInput as error:
        raise _of_words(X, error) from error
    if reset:
        estimator._names_in = names
    return values


def _same_names(learnt: Names, given: Names) -> None:
    """Complain of columns that are not those learnt, unless scikit-learn does: of strings alone."""
    if learnt is None or given is None or all(isinstance(one, str) for one in learnt + given):
        return
    if (at := first_difference(learnt, given)) is not None:
        raise InvalidInput(
            f"Column {at} of X is {given[at]!r}, but {learnt[at]!r} was learnt there. X needs the "
            f"columns of the fit in the same order: select them by their names."
        )


def _of_words(X: Any, error: InvalidInput) -> InvalidInput:
    """The error, or a better one if a column of the table X is not of numbers."""
    if not str(error).startswith("could not convert"):
        return error
    words = [name for name in columns_of(X) if not _is_numeric(X[name])]
    which = f"The column {words[0]!r} of X" if words else "X"
    return InvalidInput(
        f"{which} has values that are no numbers: {error}. Leave such columns out, or let a "
        f"OneHotEncoder in a Pipeline make numbers of them."
    )


def _is_numeric(column: Any) -> bool:
    try:
        np.asarray(column, dtype=float)
    except (TypeError, ValueError):
        return False
    return True


def class_labels(y: Any, k: int, held: Array | None) -> Array:
    """y as k class labels of one kind, (k,), and of the kind of those `held` already."""
    labels = _one_column(y)
    _none_missing(labels)
    kinds = _kinds_of(labels)
    if len(kinds) > 1:
        raise InvalidInput(
            f"The labels are of mixed types: {', '.join(sorted(kinds))}. "
            f"Classes must be told apart and sorted: use one type for all, such as str."
        )
    _paired(len(labels), k)
    (kind,) = kinds or {"int"}
    if kind not in ("bool", "int", "float", "str"):
        raise InvalidInput(
            f"Unknown label type: a label of type {kind} was given. "
            f"A class label is a string, an integer or a bool."
        )
    if kind == "float":
        _finite("y", labels := labels.astype(float))
        if (labels != np.round(labels)).any():
            raise InvalidInput(
                "Unknown label type: continuous. The labels are numbers with fractions, which name "
                "no classes; use GPRegressor for values."
            )
    given = labels
    with suppress(OverflowError):
        labels = labels.astype({"int": np.int64, "float": float, "bool": bool, "str": str}[kind])
    if labels.dtype == object or labels.tolist() != given.tolist():
        raise InvalidInput(
            "Some labels cannot be kept as they are: integers beyond 64 bits, or strings that end "
            "in NUL. Use other names for these classes."
        )
    if held is not None and len(held) and _KINDS[held.dtype.kind] != kind:
        raise InvalidInput(
            f"The new labels are of type {kind}, but those held are of type "
            f"{_KINDS[held.dtype.kind]}, such as {held[0].item()!r}. Convert them first."
        )
    return labels


def label_like(unknown: Any, classes: Array) -> Array:
    """The label for what is unknown, (1,), of the kind of the classes."""
    label = class_labels([unknown], 1, None)
    mine, theirs = _KINDS[label.dtype.kind], _KINDS[classes.dtype.kind]
    if mine != theirs:
        raise InvalidInput(
            f"unknown={unknown!r} is of type {mine}, but the classes are of type {theirs}, such as "
            f"{classes[0].item()!r}. Give a label of that type."
        )
    if label[0] in classes:
        raise InvalidInput(
            f"unknown={unknown!r} is a class that is held: what is unknown could not be told from "
            f"it. Give another label."
        )
    return label


def among(y: Any, classes: Any) -> None:
    """Complain if y has a label that is not one of the declared `classes`; None declares none."""
    if classes is None or y is None:
        return
    labels = _one_column(y)
    known = set(_declared(classes).tolist())
    strange = sorted(set(class_labels(labels, len(labels), None).tolist()) - known)
    if strange:
        raise InvalidInput(
            f"y has the label {strange[0]!r}, which is not among classes. "
            f"Leave classes out: new classes are learnt as they come."
        )


def _declared(classes: Any) -> Array:
    """The classes that were declared, (C,), of one kind."""
    if isinstance(classes, str) or np.ndim(classes) != 1:
        raise InvalidInput(f"classes={classes!r} is no list of the names of classes.")
    names = _one_column(classes)
    if any(map(is_missing, names.tolist())):
        raise InvalidInput(
            f"classes={classes!r} has a class without a name. Leave it out: examples whose class "
            f"is not known are not learnt."
        )
    return class_labels(names, len(names), None)


def memberships(Y: Any, k: int, classes: Any, held: Array | None) -> tuple[Array, Array]:
    """How far each of k examples belongs to each class: names (C,) sorted, and Y (k, C).

    Y is a column of labels, or soft labels: a matrix of parts that sum to one in each row, whose
    columns are `classes`, or those held.
    """
    _unmasked("y", Y)
    parts = np.asarray(Y) if not isinstance(Y, (list, tuple)) or np.ndim(Y) == 2 else None
    columns = held if classes is None else np.asarray(classes)
    if parts is None or not _is_soft(parts, columns):
        among(Y, classes)
        names, index = np.unique(class_labels(Y, k, held), return_inverse=True)
        return names, np.eye(len(names))[index]
    if columns is None:
        raise InvalidInput(
            f"y has shape {parts.shape}: soft labels, a column for each class. "
            f"Name the columns with classes=[...]."
        )
    names = class_labels(_declared(columns), len(columns), held)
    if len(np.unique(names)) != len(names) or parts.shape[1] != len(names):
        raise InvalidInput(
            f"y has {parts.shape[1]} columns of soft labels, for the classes {names.tolist()}. "
            f"Give one column for each class, and each class once."
        )
    parts = real_values(parts, k, None)
    if parts.min() < 0 or abs(parts.sum(axis=1) - 1).max() > len(names) * np.sqrt(EPS):
        raise InvalidInput(
            "Soft labels are parts of a whole: none below zero, and one in sum for each example."
        )
    order = np.argsort(names)
    return names[order], parts[:, order]


def _is_soft(Y: Array, columns: Array | None) -> bool:
    """Whether Y is a matrix of parts rather than a column of labels; one class may be both."""
    if Y.ndim != 2 or Y.shape[1] != 1:
        return Y.ndim == 2
    named = columns is not None and len(columns) == 1 and columns.dtype.kind != "f"
    return named and Y.dtype.kind == "f"


def group_names(groups: Any, n: int) -> Array:
    """The group of each of n examples, (n,), of one kind."""
    _unmasked("groups", groups)
    names = np.asarray(groups)
    if names.shape != (n,):
        raise InvalidInput(
            f"groups has shape {names.shape}, but there are {n} examples. "
            f"Give one group for each, in the order of ids_."
        )
    column = _one_column(groups)
    kinds = _kinds_of(column)
    if len(kinds) > 1 or not kinds <= set(_KINDS.values()) or (names != names).any():
        raise InvalidInput(
            "The groups are of mixed types, or some are missing. Name each group by a string or a "
            "number."
        )
    return np.array(column.tolist()) if names.dtype.kind == "T" else names


def real_values(y: Any, k: int, held: Array | None) -> Array:
    """y as finite float64 values, (k,) or (k, q); q as in those `held` already."""
    _given(y)
    _unmasked("y", y)
    with _translated():
        values = check_array(
            y, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, input_name="y"
        )
    _finite("y", values)
    _paired(len(values), k)
    if held is not None and values.shape[1:] != held.shape[1:]:
        raise InvalidInput(
            f"The new targets have shape {values.shape}, but those held have {held.shape}: "
            f"each example must have the same number of values."
        )
    return np.asarray(values)


def sample_weights(weights: Any, k: int) -> Array | None:
    """The weights of k examples, (k,), finite and not below zero; None if none are given."""
    if weights is None:
        return None
    _unmasked("sample_weight", weights)
    with _translated():
        values = check_array(
            weights,
            dtype=np.float64,
            ensure_2d=False,
            ensure_all_finite=False,
            input_name="sample_weight",
        )
    if values.shape != (k,):
        raise InvalidInput(
            f"sample_weight has shape {values.shape}, but there are {k} examples. Give one each."
        )
    bad = np.flatnonzero(~((values >= 0) & (values < _HEAVIEST)))
    if len(bad):
        raise InvalidInput(
            f"sample_weight has {values[bad[0]]} at position {bad[0]}, but a weight is finite and "
            f"not below zero, at most {_HEAVIEST:g}. An example of weight zero is held and says "
            f"nothing."
        )
    return np.asarray(values)


def positive(name: str, value: Any) -> float:
    """The value as a float that is finite and above zero."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise InvalidInput(f"{name}={value!r} is not a number. Give one above zero.")
    if not 0 < float(value) < np.inf:
        raise InvalidInput(f"{name}={value!r}, but it must be above zero and finite.")
    return float(value)


def noise_level(noise: Any) -> float:
    """The noise variance as a float that is finite and not negative."""
    if isinstance(noise, (bool, np.bool_)) or not isinstance(noise, Real):
        raise InvalidInput(f"noise={noise!r} is not a number. Give the noise variance.")
    if not 0 <= float(noise) < np.inf:
        raise InvalidInput(
            f"noise={noise!r}, but a variance is finite and not below zero. "
            f"Usual values lie between 1e-6 and 1."
        )
    return float(noise)


@contextmanager
def _translated() -> Iterator[None]:
    """scikit-learn's complaints in its own good words, as errors of ours."""
    try:
        yield
    except TypeError as error:
        raise InvalidType(str(error)) from error
    except ValueError as error:
        raise InvalidInput(str(error)) from error


def _given(y: Any) -> None:
    if y is None:
        raise InvalidInput(
            "Learning requires y to be passed, but the target y is None. Give one label each."
        )


def _is_table(X: Any) -> None:
    if X is None:
        raise InvalidInput("X is None. Give a table of numbers, a row for each example.")


def _unmasked(name: str, values: Any) -> None:
    """Complain of what is masked: made an array, the numbers behind the mask would count."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        first = tuple(map(int, np.argwhere(np.ma.getmaskarray(values))[0]))
        raise InvalidInput(
            f"{name} has {int(values.mask.sum())} masked value(s), the first at {first}. "
            f"Fill them in with {name}.filled(...), or leave these examples out."
        )


def _none_missing(labels: Array) -> None:
    if labels.dtype.kind != "O":
        return
    gaps = [i for i, one in enumerate(labels.tolist()) if is_missing(one)]
    if gaps:
        raise InvalidInput(
            f"{len(gaps)} of {len(labels)} labels are missing, the first at position {gaps[0]} "
            f"({labels[gaps[0]]!r}). Leave these examples out until their class is known."
        )


def _paired(labels: int, examples: int) -> None:
    if labels != examples:
        raise InvalidInput(
            f"There are {examples} examples, but y has {labels} labels. Give one label for each."
        )


def _finite(name: str, values: Array) -> None:
    # A finite sum has only finite terms; the reverse is looked into.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        where = f"row {bad[0][0]}" + (f", column {bad[0][1]}" if values.ndim > 1 else "")
        raise InvalidInput(
            f"Input {name} contains NaN or infinity: {len(bad)} value(s), the first at {where} "
            f"({values[tuple(bad[0])]}). Remove these examples or fill in the values."
        )


def _one_column(y: Any) -> Array:
    """y as an array (k,), numbers and strings in one list kept apart."""
    _given(y)
    _unmasked("y", y)
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in _KINDS:
        return y
    dtype = getattr(y, "dtype", None)
    if dtype is not None and (not isinstance(dtype, np.dtype) or dtype.kind == "T"):
        # Columns of tables with types of their own: scikit-learn would make floats of integers.
        # Strings of any length (kind T) know no way to those of a fixed one.
        y = np.asarray(y, dtype=object)
    if isinstance(y, (list, tuple)) and not all(isinstance(one, (list, tuple)) for one in y):
        values = np.empty(len(y), dtype=object)
        values[:] = y
        return values
    with _translated():
        return np.asarray(column_or_1d(y, warn=True))


def _kinds_of(labels: Array) -> set[str]:
    if labels.dtype.kind in _KINDS:
        return {_KINDS[labels.dtype.kind]}
    return {
        _KINDS.get(np.asarray(one).dtype.kind, type(one).__name__)
        if np.isscalar(one)
        else type(one).__name__
        for one in labels.tolist()
    }
