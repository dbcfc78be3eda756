"""Every estimator: its short name in files, its settings as text, and how it is put together again.

A fitted estimator is more than its parameters and examples: a kernel width, a noise or a grid may
have been chosen by examples that were there first. These are its `state`, which a file keeps until
examples are forgotten: then the others choose again.

Values as text and bytes, and back: nothing in a file names a class or can be run.

Texts are JSON in ASCII, so that any string survives, also one with NUL or half a surrogate pair.
Kernels and other settings have short names of our own. Whatever is not as it was written raises
some error; the caller says which file is damaged.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, is_dataclass, replace
from functools import cache
from json import dumps, loads
from json.encoder import encode_basestring_ascii as quoted
from typing import Any, Final

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.gaussian_process import kernels as standard
from sklearn.gaussian_process.kernels import Kernel

import knowmore.estimators as known
from knowmore import kernels, subspaces
from knowmore._base import Array, Id, a_type, is_real, is_whole, some
from knowmore._living import Living
from knowmore.errors import InvalidInput, InvalidType
from knowmore.estimators import (
    EditableEstimator,
    LinearGP,
    class_labels,
    declare,
    declared,
    names_in,
    noise_setting,
    note_names,
    unnamed,
)
from knowmore.examples import Examples
from knowmore.linalg import Earlier, Grid, Sums
from knowmore.models import Choice, Forest, KernelModel, LinearModel, ModelSettings, Summed
from knowmore.transfer import NPlusOneClassifier, OneShotClassifier, Scores

# Kinds that hold examples with ids, or whose rows a file can hold for them.
LIVING: Final[dict[str, type]] = {
    "gp": known.GPClassifier,
    "gp-regression": known.GPRegressor,
    "lssvm": known.LSSVMClassifier,
    "n-plus-one": NPlusOneClassifier,
    "one-shot": OneShotClassifier,
    "forest": known.ForestGPClassifier,
    "forest-regression": known.ForestGPRegressor,
    "linear": known.LinearGPClassifier,
    "linear-regression": known.LinearGPRegressor,
}
# Kinds that are a few arrays.
VALUES: Final[dict[str, type]] = {
    "pca": subspaces.EigenspacePCA,
    "lda": subspaces.EigenspaceLDA,
    "eigenspace": subspaces.Eigenspace,
    "monitor": subspaces.SubspaceMonitor,
    "landmarks": known.Landmarks,
    "intersection-map": known.IntersectionMap,
}
# All kinds by the short names that files and commands use.
KINDS: Final = LIVING | VALUES
_NAMES: Final = {kind: name for name, kind in KINDS.items()}
# Parameters that are no settings: arrays, other models, and what cannot be written.
_APART: Final = {"supports", "semantics", "source"}
# Parameters that leave-one-out over the first examples may choose.
_BY_LOO: Final = ("C", "noise")
# Parameters that files of earlier versions lack: they have their defaults.
_LATER: Final = {"probability", "loss", "y_resolution", "settings"}
# Parameters of files of earlier versions that have no meaning any more.
_GONE: Final = {"y_limit"}
# What models did before they had these parameters: files of that time do not name them.
_BEFORE: Final[dict[str, dict[str, Any]]] = {
    "gp": {"settings": "median"},
    "gp-regression": {"settings": "median"},
    "lssvm": {"settings": "median"},
    "forest": {"settings": "median"},
    "forest-regression": {"settings": "median"},
    "n-plus-one": {"scaled": False},
    "one-shot": {"prior": 0.0, "members": 1},
}


def kind_of(estimator: Any) -> str:
    """The name of its kind."""
    name = _NAMES.get(type(estimator))
    if name is None:
        raise InvalidType(
            f"{estimator!r} cannot be written to a file of knowmore: it is {a_type(estimator)}, "
            f"not an estimator of knowmore. The earlier steps of a pipeline are to be kept by "
            f"whoever made them."
        )
    return name


def is_fitted(estimator: Any) -> bool:
    """Whether an estimator that holds examples, or their sums, has learnt any."""
    return hasattr(estimator, "editable_")


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of a kind of model that holds examples.

    has_factor : whether the factor of a matrix is cached, which takes n^2 numbers
    has_sums : whether sums of rows on a grid are cached, and only the file has the rows
    has_supports : whether support tasks are kept beside the examples
    has_source : whether the model starts from a source, which is a file of its own
    regression : whether targets are numbers
    """

    has_factor: bool
    has_sums: bool
    has_supports: bool = False
    has_source: bool = False
    regression: bool = False


_KERNEL: Final = Capabilities(has_factor=True, has_sums=False)
_FOREST: Final = Capabilities(has_factor=False, has_sums=False)
_LINEAR: Final = Capabilities(has_factor=False, has_sums=True)
_CAPABILITIES: Final[dict[str, Capabilities]] = {
    "gp": _KERNEL,
    "gp-regression": replace(_KERNEL, regression=True),
    "lssvm": _KERNEL,
    "n-plus-one": replace(_KERNEL, has_source=True),
    "one-shot": replace(_KERNEL, has_supports=True),
    "forest": _FOREST,
    "forest-regression": replace(_FOREST, regression=True),
    "linear": _LINEAR,
    "linear-regression": replace(_LINEAR, regression=True),
}


def capabilities(kind: str) -> Capabilities:
    """The capabilities of a kind in `LIVING`."""
    return _CAPABILITIES[kind]


# -- settings ------------------------------------------------------------------------------------


def parameters(estimator: BaseEstimator) -> dict[str, Any]:
    """Its parameters as JSON can write them, without those that are kept apart."""
    given = estimator.get_params(deep=False)
    if given.get("semantics") is not None and given.get("preselect") is not None:
        raise InvalidInput(
            "preselect compares names by semantics, which cannot be written to a file. Choose the "
            "supports beforehand, and give these alone with preselect=None."
        )
    return {name: plain(value) for name, value in given.items() if name not in _APART}


def unfitted(kind: str, settings: dict[str, Any]) -> Any:
    """The estimator with these parameters; raises any error if they are not its own."""
    made, settings = KINDS[kind], _BEFORE.get(kind, {}) | settings
    settings = {name: value for name, value in settings.items() if name not in _GONE}
    values = {name: valued(value) for name, value in settings.items()}
    if kind in LIVING and capabilities(kind).has_source:
        values["source"] = None
    estimator = made(**values)
    wanted = set(estimator.get_params(deep=False)) - _APART
    if not wanted - _LATER <= set(settings) <= wanted:
        raise ValueError(f"parameters {set(settings)}, not {wanted}")
    return estimator


def blank(estimator: Any) -> Any:
    """An unfitted estimator with the same parameters, supports and source."""
    made = unfitted(kind_of(estimator), parameters(estimator))
    for name in (_APART | {"source_"}) & set(vars(estimator)):
        setattr(made, name, getattr(estimator, name))
    return made


def columns(estimator: Any) -> dict[str, Any]:
    """The number and the names of the columns of X, as JSON can write them.

    "width" is how many of them the kernel sees: the others may be scores of a source. "classes" are
    those that were declared, if any.
    """
    count, source = int(estimator.n_features_in_), getattr(estimator, "source_", None)
    beside = isinstance(source, Scores) and source.of is None
    width = count - len(source.classes_) if beside else count  # type: ignore[union-attr]
    found = {"count": count, "names": plain(names_in(estimator)), "width": width}
    classes = declared(estimator)
    return found if classes is None else found | {"classes": plain(classes.tolist())}


def set_columns(estimator: Any, found: dict[str, Any]) -> None:
    """Note the features that `columns` returned."""
    count, names, width = found["count"], valued(found["names"]), found["width"]
    if type(count) is not int or type(width) is not int or not 1 <= width <= count:
        raise ValueError(f"{width} features in {count} columns")
    if names is not None and len(names) != count:
        raise ValueError(f"{count} features")
    estimator.n_features_in_ = count
    note_names(estimator, names)
    if "classes" in found:
        classes = valued(found["classes"])
        declare(estimator, class_labels(classes, len(classes), None))


def name_columns(estimator: Any, names: Sequence[Hashable]) -> None:
    """Name the columns of a fitted estimator; raise InvalidInput if they have other names."""
    given, known_names = tuple(names), names_in(estimator)
    if len(given) != estimator.n_features_in_:
        raise InvalidInput(
            f"{len(given)} columns were named, but X has {estimator.n_features_in_}. Name each."
        )
    if known_names is None:
        note_names(estimator, given)
    elif given != known_names:
        raise InvalidInput(
            f"The columns are named {some(given)}, but the model has learnt from "
            f"{some(known_names)}. Give the same columns, in the same order."
        )


# -- what examples have chosen -------------------------------------------------------------------


def state(estimator: Any) -> dict[str, Any]:
    """The settings that the first examples have chosen, as JSON can write them."""
    if capabilities(kind_of(estimator)).has_sums:
        model: LinearModel = estimator.model_
        targets = None if model.classes else [] if model.flat else [len(model.names)]
        return {"grid": plain(model.sums.grid), "targets": targets}
    held = estimator.editable_
    return {
        "kernel": plain(held.kernel),
        "settled": held.settled,
        "noise": noise_in_use(held, kind_of(estimator)),
    }


def noise_in_use(held: Any, kind: str) -> float:
    """The noise of a fitted value; a one-shot model chooses its own."""
    if capabilities(kind).has_supports:
        return float(held.model.covariance.noise)
    return float(held.choice.settings.noise)


def chosen_by(estimator: Any, examples: Examples) -> Any:
    """A copy that is fitted to these examples as `fit` would: they choose what is not given.

    A single example has none beside it to leave out: "loo" is a noise of one then.
    estimator : it has noted its columns
    """
    # Sums choose the noise again after every edit.
    few = len(examples.counted) < 2 and not capabilities(kind_of(estimator)).has_sums
    value = (without_loo(estimator) if few else estimator).fresh_value(examples)
    return in_file(estimator.holding(value))


def in_file(estimator: Any) -> Any:
    """The estimator, without rows that are only in its file."""
    if not capabilities(kind_of(estimator)).has_sums:
        return estimator
    return estimator.holding(replace(estimator.editable_, rows=None))


def without_loo(estimator: Any) -> Any:
    """A copy whose noise or C is one where leave-one-out was to choose it."""
    made = copy(estimator)
    for name in _BY_LOO:
        if getattr(made, name, None) == "loo":
            setattr(made, name, 1.0)
    return made


def linear(estimator: LinearGP, found: dict[str, Any], sums: Sums | None = None) -> LinearGP:
    """A copy that holds these sums, or none, on the grid of a state."""
    sums = Sums(_grid(found)) if sums is None else sums
    noise, intercept = noise_setting(estimator), estimator.intercept
    if found["targets"] is None:
        return estimator.holding(Summed(LinearModel.of_classes(sums, noise, intercept=intercept)))
    flat, q = found["targets"] == [], (found["targets"] or [1])[0]
    normalised = bool(estimator.normalize_y)
    model = LinearModel(sums, np.arange(q), noise, intercept, False, normalised, flat)
    return estimator.holding(Summed(model))


def _grid(found: dict[str, Any]) -> Grid:
    """The grid of a state."""
    if "centres" not in found["grid"] and found["targets"] is not None:
        (q,) = found["targets"] or [1]
        return Earlier(np.array(found["grid"]["grid"]), found["grid"]["bits"], q).grid
    grid: Grid = valued(found["grid"])
    return grid


def living(
    estimator: EditableEstimator[Any], found: dict[str, Any], examples: Examples
) -> Living[Any] | Forest:
    """The batch fit of these examples in a state."""
    choice = choice_of(estimator, found, examples)
    if not capabilities(kind_of(estimator)).has_factor:
        fitted: Living[Any] | Forest = unnamed(estimator).batch_value(choice, examples)
        return fitted
    model: Any = skeleton(estimator, found, examples.counted)
    return Living.of(model.follow(examples.counted), examples, choice)


def choice_of(estimator: Any, found: dict[str, Any], examples: Examples) -> Choice:
    """The choice of a state: settings that were chosen, and the rule that edits follow."""
    settings = ModelSettings(valued(found["kernel"]), float(found["noise"]))
    return Choice(estimator.rule_for(examples), settings, settled=bool(found["settled"]))


def follows(estimator: Any, found: dict[str, Any]) -> bool:
    """Whether the settings of a state are chosen again by the examples after every edit."""
    return not found.get("settled", True) and not any(
        isinstance(getattr(estimator, name, None), str) for name in _BY_LOO
    )


def skeleton(estimator: EditableEstimator[Any], found: dict[str, Any], examples: Examples) -> Any:
    """An empty model that can follow these examples, with the settings of a state.

    A one-shot model follows nothing that has not both classes, and is small: it is the whole.
    """
    estimator, few = unnamed(estimator), _few(examples)
    if capabilities(kind_of(estimator)).has_supports:
        return estimator.batch_value(choice_of(estimator, found, examples), examples).model
    model: KernelModel = estimator.batch_value(choice_of(estimator, found, few), few).model
    nothing = Examples.of(examples.X[:0], examples.labels[:0])
    factor = model.covariance.factor.delete(np.arange(len(few)))
    covariance = replace(model.covariance, examples=nothing, factor=factor)
    # Keep the coding of the few: no examples may have no coding.
    return replace(model, covariance=covariance, head=model.coded.basis[:0])


def _few(examples: Examples) -> Examples:
    """The first example of each class."""
    _, first = np.unique(examples.labels, axis=0, return_index=True)
    rows: Array = np.sort(first)
    if examples.labels.dtype.kind == "f":
        rows = rows[:1]
    kept = [examples.names[row] for row in rows]
    return Examples.of(examples.X[rows], examples.labels[rows], tuple(kept), np.ones(len(rows)))


# -- values as text ------------------------------------------------------------------------------

# Each kernel by its name in files. A name is for ever.
KERNELS: Final[dict[str, Any]] = {
    "rbf": standard.RBF,
    "matern": standard.Matern,
    "rational-quadratic": standard.RationalQuadratic,
    "exp-sine-squared": standard.ExpSineSquared,
    "dot-product": standard.DotProduct,
    "pairwise": standard.PairwiseKernel,
    "constant": standard.ConstantKernel,
    "white": standard.WhiteKernel,
    "sum": standard.Sum,
    "product": standard.Product,
    "power": standard.Exponentiation,
    "compound": standard.CompoundKernel,
    "intersection": kernels.HistogramIntersection,
    "additive-chi-squared": kernels.AdditiveChiSquared,
    "chi-squared": kernels.ChiSquared,
    "exponential-intersection": kernels.ExponentialIntersection,
    "on": kernels.On,
    "task": kernels.Task,
}
_KERNEL_NAMES: Final = {kind: name for name, kind in KERNELS.items()}
# The types of vectors in a file, by the bytes of a number.
# Bits of an id: Python refuses to print much longer numbers.
_LONG: Final = 10_000
_TYPES: Final = {1: "<u1", 2: "<f2", 4: "<f4", 8: "<f8"}
_LARGEST: Final = 2**31


# -- settings ------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """A parameter as what JSON can write; everything but that is an object with one key."""
    if value is None or isinstance(value, (bool, np.bool_)):
        return value if value is None else bool(value)
    if is_whole(value):
        return int(value)
    if is_real(value):
        return float(value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, np.ndarray):
        return {"array": value.tolist(), "type": value.dtype.str}
    if isinstance(value, (list, tuple)):
        return {"list" if isinstance(value, list) else "tuple": [plain(one) for one in value]}
    if isinstance(value, Mapping):
        return {"dict": [[plain(key), plain(one)] for key, one in value.items()]}
    if isinstance(value, slice):
        return {"slice": [plain(part) for part in (value.start, value.stop, value.step)]}
    if isinstance(value, Grid):
        centres = value.centres.tolist()
        return {"grid": value.exponents.tolist(), "bits": value.bits, "centres": centres}
    if isinstance(value, subspaces.Truncation):
        return {"truncation": [value.rank, value.fraction, value.tolerance]}
    kind: Any = type(value)
    if kind in _KERNEL_NAMES:
        parameters = value.get_params(deep=False)
        listed = {name: plain(parameters[name]) for name in _parameters(kind)}
        return {"kernel": _KERNEL_NAMES[kind], "with": listed}
    if isinstance(value, Kernel) or callable(value):
        raise InvalidInput(
            f"{value!r} cannot be written to a file: only kernels of scikit-learn and of knowmore "
            f"have a name there, since a file must not run anybody's code. Use one of these."
        )
    raise InvalidInput(f"A setting is {a_type(value)}, which cannot be written: {value!r}.")


def valued(found: Any) -> Any:
    """The value that `plain` was given."""
    match found:
        case None | bool() | int() | float() | str():
            return found
        case {"array": list(values), "type": str(kind)}:
            if np.dtype(kind).kind not in "biufU":
                raise ValueError(f"numbers of type {kind}")
            # Room for longer texts than there are could take any amount of memory.
            return np.array(values, dtype="U" if np.dtype(kind).kind == "U" else kind)
        case {"list": list(values)}:
            return [valued(one) for one in values]
        case {"tuple": list(values)}:
            return tuple(valued(one) for one in values)
        case {"dict": list(pairs)}:
            return {valued(key): valued(one) for key, one in pairs}
        case {"slice": [start, stop, step]}:
            return slice(start, stop, step)
        case {"grid": list(exponents), "bits": int(bits)}:
            # Earlier files have no centres.
            return Grid(np.array(exponents, dtype=np.int64), bits, found.get("centres"))
        case {"truncation": [rank, fraction, tolerance]}:
            return subspaces.Truncation(rank, fraction, tolerance)
        case {"kernel": str(name), "with": dict(parameters)}:
            made = KERNELS[name]
            if set(parameters) != set(_parameters(made)):
                raise ValueError(f"a kernel with the parameters {set(parameters)}")
            return made(**{name: valued(one) for name, one in parameters.items()})
    raise ValueError(f"an unknown setting: {str(found)[:80]}")


@cache
def _parameters(kind: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(kind).parameters)


# -- ids, labels, texts --------------------------------------------------------------------------


def id_text(one: Id) -> str:
    """An id as text."""
    if isinstance(one, str):
        return quoted(one)
    if one.bit_length() > _LONG:
        raise InvalidInput(
            f"An id has {one.bit_length():,} bits, but no more than {_LONG:,} may be."
        )
    return str(one)


def read_id(text: Any) -> Id:
    """The id of a text."""
    if text.isascii() and text.isdigit():
        return int(text)
    one = loads(text)
    if type(one) not in (int, str):
        raise ValueError("an id that is neither a number nor a string")
    return one  # type: ignore[no-any-return]


def text_of(one: Any) -> str | None:
    """A string as text; None stays None."""
    if one is None:
        return None
    if not isinstance(one, str):
        raise InvalidInput(
            f"Contributors and origins are strings, but {one!r} is {a_type(one)}. Give a str."
        )
    return quoted(one)


def string(text: Any) -> str | None:
    """The string of a text; None stays None."""
    if text is None:
        return None
    one = loads(text)
    if not isinstance(one, str):
        raise ValueError("a text that is no string")
    return one


def label_texts(labels: Array) -> list[str]:
    """Labels or targets, (n,) or (n, q), as texts."""
    if labels.ndim == 2:
        return [dumps(row) for row in labels.tolist()]
    if labels.dtype.kind == "f":
        return [dumps(one) for one in labels.tolist()]
    known = {one: dumps(one) for one in set(labels.tolist())}
    return [known[one] for one in labels.tolist()]


class OtherLabels(ValueError):
    """Labels of another type than the labels in the file."""


def label_type(labels: Array) -> list[Any]:
    """The kind of NumPy type of labels, and how many targets; None: one, not in a row."""
    return [labels.dtype.kind, None if labels.ndim == 1 else labels.shape[1]]


def read_labels(label_type: list[Any], texts: list[Any]) -> Array:
    """The labels of these texts, of a type that `label_type` returned."""
    kind, targets = label_type
    known: dict[Any, Any] = {}
    values = [known[t] if t in known else known.setdefault(t, loads(t)) for t in texts]
    wanted: Any = {"b": bool, "i": int, "f": float, "U": str}[kind]
    flat = values if targets is None else [one for row in values for one in row]
    if not all(type(one) is wanted for one in flat):
        raise OtherLabels("labels of another type")
    shape = (len(texts),) if targets is None else (len(texts), targets)
    labels = np.array(flat, {"i": np.int64, "f": np.float64}.get(kind, wanted)).reshape(shape)
    if kind == "f" and not np.isfinite(labels).all():
        raise ValueError("targets that are not finite")
    return labels


# -- arrays --------------------------------------------------------------------------------------


def narrow_rows(X: Array, given: Any) -> list[bytes]:
    """The bytes of each row of X (n, d) in the narrowest type that keeps it.

    The type of a row follows from its own values, so that it says nothing of other rows, and is at
    least as wide as that which was `given`.

    given : X as it was before it became float64: a table of any kind
    """
    X, width = np.ascontiguousarray(X, "<f8"), _width(given)
    if width >= 8:
        return row_bytes(X)
    found, rest = [b""] * len(X), np.arange(len(X))
    for size, kind in _TYPES.items():
        if size >= width:
            with np.errstate(over="ignore", invalid="ignore"):
                narrow = X[rest].astype(kind)
            kept = (narrow.astype("<f8").view("<u8") == X[rest].view("<u8")).all(axis=1)
            for i, data in zip(rest[kept], row_bytes(narrow[kept]), strict=True):
                found[i] = data
            rest = rest[~kept]
    return found


def _width(given: Any) -> int:
    """The bytes of a number in a table, 8 unless it is known to have fewer."""
    types = getattr(given, "dtypes", None)
    types = [getattr(given, "dtype", None)] if types is None else list(types)
    kinds = [kind for kind in types if isinstance(kind, np.dtype) and kind.kind in "fiub"]
    return max(kind.itemsize for kind in kinds) if kinds and len(kinds) == len(types) else 8


def row_bytes(X: Array) -> list[bytes]:
    """The bytes of each row of X (n, d), which is in one piece."""
    data, size = X.tobytes(), X.itemsize * X.shape[1]
    return [data[begin : begin + size] for begin in range(0, len(data), size)]


def read_rows(blobs: list[Any], d: int) -> Array:
    """The rows, (n, d) of float64, with these bytes."""
    sizes = {len(blob) for blob in blobs}
    if len(sizes) == 1:
        kind = _TYPES[_exactly(sizes.pop(), d)]
        X = np.frombuffer(b"".join(blobs), kind).reshape(len(blobs), d)
        X = X.astype(np.float64)
    else:
        X = np.empty((len(blobs), d))
        for row, blob in zip(X, blobs, strict=True):
            row[:] = np.frombuffer(blob, _TYPES[_exactly(len(blob), d)])
    if not np.isfinite(X).all():
        raise ValueError("a feature that is not finite")
    return X


def _exactly(size: int, d: int) -> int:
    """size / d, which must be a whole number."""
    if d < 1 or size % d:
        raise ValueError("a vector of another length")
    return size // d


def form_of(array: Array) -> list[Any]:
    """The type, the shape and the order of an array of numbers; "F" if columns come first."""
    if array.dtype.kind not in "biuf":
        raise InvalidInput(f"An array is of type {array.dtype}, which cannot be written.")
    by_column = array.flags.f_contiguous and not array.flags.c_contiguous
    kind = array.dtype.newbyteorder("<").str
    return [kind, list(array.shape), "F" if by_column else "C"]


def read_array(form: list[Any], data: bytes) -> Array:
    """The array of these bytes and the form that `form_of` returned, writable; a copy."""
    kind, shape, order = form
    if np.dtype(kind).kind not in "biuf" or order not in ("C", "F"):
        raise ValueError(f"an array of type {kind}")
    found = np.frombuffer(data, kind).reshape(tuple(shape))
    return found.astype(found.dtype.newbyteorder("="), order=order)


def bytes_of(array: Array) -> bytes:
    """An array in little-endian bytes, rows first."""
    return np.ascontiguousarray(array).astype(form_of(array)[0], copy=False).tobytes()


# -- frozen values -------------------------------------------------------------------------------

# Frozen values by their names in files.
_VALUES: Final[dict[str, type]] = {
    "eigenspace": subspaces.Eigenspace,
    "rounding": subspaces.Rounding,
    "discriminant": subspaces.Discriminant,
    "class-means": subspaces.ClassMeans,
    "spread": subspaces.Spread,
    "reference": subspaces.Reference,
    "measures": subspaces.Measures,
    "window": subspaces.Window,
}
_VALUE_NAMES: Final = {kind: name for name, kind in _VALUES.items()}


def described(value: Any, keep: Callable[[Array], dict[str, Any]]) -> Any:
    """A frozen value as JSON can write it; `keep` returns what stands for an array."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return keep(value)
    if isinstance(value, known.LandmarkMap):
        settings = [plain(value.given), plain(value.kernel), value.changed]
        held = [keep(one) for one in (value.examples.X, value.used, value.L)]
        labels = {"labels": plain(value.examples.labels)} if value.labelled else {}
        return {
            "landmarks": settings,
            "arrays": held,
            "ids": plain(list(value.examples.names)),
        } | labels
    if type(value) in _VALUE_NAMES:
        parts = {name: described(getattr(value, name), keep) for name in _fields(type(value))}
        return {"value": _VALUE_NAMES[type(value)], "of": parts}
    if isinstance(value, tuple) and any(is_dataclass(one) for one in value):
        return {"several": [described(one, keep) for one in value]}
    return {"plain": plain(value)}


def built(found: Any, arrays: dict[str, Array]) -> Any:
    """The value that `described` was given; raises any error if it makes no sense."""
    match found:
        case {"kept": str(name)}:
            return arrays[name]
        case {"several": list(parts)}:
            return tuple(built(one, arrays) for one in parts)
        case {"plain": value}:
            return valued(value)
        case {"value": str(name), "of": dict(parts)}:
            kind = _VALUES[name]
            if not _required(kind) <= set(parts) <= set(_fields(kind)):
                raise ValueError(f"a value with the parts {set(parts)}")
            return kind(**{part: built(one, arrays) for part, one in parts.items()})
        case {"landmarks": [given, kernel, bool(changed)], "arrays": list(held), "ids": ids}:
            X, used, L = (built(one, arrays) for one in held)
            labelled = "labels" in found
            labels = valued(found["labels"]) if labelled else np.zeros(len(X))
            examples = Examples.of(X, labels, tuple(valued(ids)))
            made = valued(given), examples, valued(kernel), used, L, changed, labelled
            return known.LandmarkMap(*made)
    raise ValueError("an unknown value")


def _fields(kind: type) -> tuple[str, ...]:
    """The fields of a frozen value, in their order."""
    return tuple(inspect.signature(kind).parameters)


def _required(kind: type) -> set[str]:
    """The fields without a default. Files of earlier versions may lack the others."""
    given = inspect.signature(kind).parameters.values()
    return {one.name for one in given if one.default is one.empty}
