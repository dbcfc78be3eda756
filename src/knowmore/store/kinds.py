"""Every estimator: its short name in files, its settings as text, and how it is put together again.

A fitted estimator is more than its parameters and examples: a kernel width, a noise or a grid may
have been chosen by examples that were there first. These are its `state`, which a file keeps until
examples are forgotten: then the others choose again.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from sklearn.base import BaseEstimator

import knowmore.estimators as known
from knowmore._base import Array, a_type, some
from knowmore._living import Living
from knowmore.errors import InvalidInput, InvalidType
from knowmore.estimators import EditableEstimator, LinearGP, names_in, note_names, unnamed
from knowmore.examples import Examples
from knowmore.linalg import Earlier, Grid, Sums
from knowmore.models import Forest, KernelModel, LinearModel
from knowmore.store.codec import plain, valued
from knowmore.subspaces import Eigenspace, EigenspaceLDA, EigenspacePCA, SubspaceMonitor
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
    "pca": EigenspacePCA,
    "lda": EigenspaceLDA,
    "eigenspace": Eigenspace,
    "monitor": SubspaceMonitor,
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
_LATER: Final = {"probability", "loss", "y_resolution"}
# Parameters of files of earlier versions that have no meaning any more.
_GONE: Final = {"y_limit"}
# What models did before they had these parameters: files of that time do not name them.
_BEFORE: Final[dict[str, dict[str, Any]]] = {
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
    return hasattr(estimator, "editable_") or "model_" in vars(estimator)


@dataclass(frozen=True)
class Capabilities:
    """The capabilities of a kind of model that holds examples.

    keeps_rows : whether the model has its examples itself; otherwise only the file has them
    has_factor : whether the factor of a matrix is cached, which takes n^2 numbers
    has_sums : whether sums of rows on a grid are cached
    has_supports : whether support tasks are kept beside the examples
    has_source : whether the model starts from a source, which is a file of its own
    regression : whether targets are numbers
    """

    keeps_rows: bool
    has_factor: bool
    has_sums: bool
    has_supports: bool = False
    has_source: bool = False
    regression: bool = False


_KERNEL: Final = Capabilities(keeps_rows=True, has_factor=True, has_sums=False)
_FOREST: Final = Capabilities(keeps_rows=True, has_factor=False, has_sums=False)
_LINEAR: Final = Capabilities(keeps_rows=False, has_factor=False, has_sums=True)
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

    "width" is how many of them the kernel sees: the others may be scores of a source.
    """
    count, source = int(estimator.n_features_in_), getattr(estimator, "source_", None)
    beside = isinstance(source, Scores) and source.of is None
    width = count - len(source.classes_) if beside else count  # type: ignore[union-attr]
    return {"count": count, "names": plain(names_in(estimator)), "width": width}


def set_columns(estimator: Any, found: dict[str, Any]) -> None:
    """Note the features that `columns` returned."""
    count, names, width = found["count"], valued(found["names"]), found["width"]
    if type(count) is not int or type(width) is not int or not 1 <= width <= count:
        raise ValueError(f"{width} features in {count} columns")
    if names is not None and len(names) != count:
        raise ValueError(f"{count} features")
    estimator.n_features_in_ = count
    note_names(estimator, names)


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
    if not estimator.keeps_rows:
        model: LinearModel = estimator.frozen_model()
        targets = None if model.classes else [] if model.flat else [len(model.names)]
        return {"grid": plain(model.sums.grid), "targets": targets}
    held = estimator.editable_
    noise = held.model.covariance.noise
    return {"kernel": plain(held.kernel), "settled": held.settled, "noise": float(noise)}


def chosen_by(estimator: Any, examples: Examples) -> Any:
    """A copy that is fitted to these examples as `fit` would: they choose what is not given.

    A single example chooses no noise by leave-one-out: it is one then.
    estimator : it has noted its columns
    """
    made = copy(estimator)
    if not made.keeps_rows:
        made.fit(examples.X, examples.labels, examples.weights)
        set_columns(made, columns(estimator))
        return made
    few = len(examples.counted) < 2
    return made.holding((without_loo(made) if few else made).fresh_value(examples))


def keeps_noise(estimator: Any) -> bool:
    """Whether removing examples leaves the noise as it is: it is not chosen by leave-one-out."""
    return all(getattr(estimator, name, None) != "loo" for name in _BY_LOO)


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
    noise = estimator.noise_setting()
    if found["targets"] is None:
        return estimator.holding(LinearModel.of_classes(sums, noise, intercept=estimator.intercept))
    flat, q = found["targets"] == [], (found["targets"] or [1])[0]
    normalised = bool(estimator.normalize_y)
    names = np.arange(q)
    return estimator.holding(
        LinearModel(sums, names, noise, estimator.intercept, False, normalised, flat)
    )


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
    kernel, settled = valued(found["kernel"]), bool(found["settled"])
    if not capabilities(kind_of(estimator)).has_factor:
        fitted: Living[Any] | Forest = estimator.batch_value(kernel, examples, settled)
        return fitted
    model: Any = skeleton(estimator, found, examples.counted)
    return Living.of(model.follow(examples.counted), examples, settled=settled)


def skeleton(estimator: EditableEstimator[Any], found: dict[str, Any], examples: Examples) -> Any:
    """An empty model that can follow these examples, with the settings of a state.

    A one-shot model follows nothing that has not both classes, and is small: it is the whole.
    """
    kernel, noise = valued(found["kernel"]), float(found["noise"])
    # The state has the noise: these examples must not choose it again.
    estimator, few = without_loo(unnamed(estimator)), _few(examples)
    if capabilities(kind_of(estimator)).has_supports:
        return estimator.batch_value(kernel, examples, True).model
    model: KernelModel = estimator.batch_value(kernel, few, True).model
    nothing = Examples.of(examples.X[:0], examples.labels[:0])
    factor = model.covariance.factor.delete(np.arange(len(few)))
    covariance = replace(model.covariance, noise=noise, examples=nothing, factor=factor)
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
