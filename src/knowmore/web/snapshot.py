"""A model at one state of its file: figures of the page, suspects, previews of edits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, final

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.gaussian_process.kernels import RBF

from knowmore._base import Array, Id, cached_property
from knowmore.edits import Edit, Remove
from knowmore.errors import InvalidInput, UnknownId
from knowmore.estimators import unnamed
from knowmore.examples import Examples
from knowmore.export import column_names
from knowmore.kernels import cross
from knowmore.models import LeftOut
from knowmore.store import FORGETS, Entry, Record, Store
from knowmore.tables import Encoding
from knowmore.workbench import (
    TUNABLE,
    ClassEvaluation,
    Judge,
    compared,
    edited,
    evaluate,
    left_out,
    noted,
    novelty_method,
    shown,
    texts_of,
)

# The fraction of the known examples that may be called unknown.
RATE = 0.05
# Entries after which something is gone for good. The last is one of a notebook's cells, which may
# have removed anything.
_GONE = (*FORGETS, "edit")
# Fewer examples than this are no sign of bad settings; nor is a smaller part of silent ones.
_JUDGING, _SILENT = 20, 0.1
T = TypeVar("T")
# Where kernels keep their length scales.
_WIDTHS = ("length_scale", "k1__length_scale", "k2__length_scale")


@final
class Snapshot:
    """The state of a file at one moment; derived values are computed when first asked for.

    store : the open file, which others may have changed since
    entries : the journal
    number : of its last entry that is not undone, or 0
    version : of its last entry, undone or not, or 0
    estimator : a copy, which later edits do not reach
    in_file : whether it is the model of a file, whose settings `forget` chooses again
    examples : None if there are none
    table : how rows of cells become vectors; None for others

    before : an earlier one, whose journal is continued if it still stands
    """

    # Of an earlier state and of settings on trial the features are shown.
    table: Encoding | None = None

    def __init__(self, store: Store, before: Snapshot | None = None) -> None:
        self.store, self.name, self.kind = store, store.path.name, store.kind
        self.entries = _journal(store, before)
        self.number = max((one.number for one in self.entries if not one.undone), default=0)
        self.version = max((one.number for one in self.entries), default=0)
        self.estimator: Any = unnamed(store.estimator)
        self.examples: Examples | None = store.examples if len(store) else None
        self.is_classifier = bool(is_classifier(store))
        self.in_file = isinstance(store, Store)
        self.columns = column_names(store) if self.examples is not None else ()
        self.table = store.table if self.in_file else None

    def __len__(self) -> int:
        return 0 if self.examples is None else len(self.examples)

    @cached_property
    def held(self) -> frozenset[Id]:
        """The ids of the examples."""
        return frozenset(() if self.examples is None else self.examples.names)

    @property
    def of_pictures(self) -> bool:
        """Whether the examples are pictures, which the page can show."""
        return bool(self.store.notes.get("pictures")) and self.is_classifier

    @property
    def takes_places(self) -> bool:
        """Whether a place in the plane can be an example; none is a picture, a text or cells."""
        return self.table is None and not {"pictures", "texts", "table"}.intersection(
            name for name, one in self.store.notes.items() if one is not None
        )

    def record(self, one: Id) -> Record:
        """The metadata of an example that is held, or was put aside."""
        if one not in self.held:
            for record in self.store.aside() if self.in_file else ():
                if record.id == one:
                    return record
        return self.store.records([one])[0]

    @property
    def undo(self) -> Entry | None:
        """The entry that `undo` would undo, were that possible."""
        return next((one for one in self.entries if one.number == self.number), None)

    @property
    def redo(self) -> Entry | None:
        """The entry that `redo` would do again."""
        return next((one for one in self.entries if one.undone), None)

    @property
    def forgotten(self) -> int:
        """The number of the last entry that forgot something, or 0."""
        return max((one.number for one in self.entries if one.verb in _GONE), default=0)

    @cached_property
    def cells(self) -> list[tuple[Any, ...]] | None:
        """The cells of the examples; None of those of numbers or pictures."""
        if self.table is None or self.examples is None:
            return None
        try:
            return self.store.cells([*self.examples.names])
        except UnknownId:
            # Some are forgotten by now: a page that shows this state is about to show the next.
            return [(None,) * len(self.table.names)] * len(self)

    def shown(self, row: int, text: str | None = None) -> dict[str, Any]:
        """What a page shows of an example: its picture, its text, its first cells or features."""
        assert self.examples is not None
        if self.table is not None and self.cells is not None:
            return shown(self.table.names, self.cells[row], picture=False)
        values = self.examples.X[row].tolist()
        return shown(self.columns, values, picture=self.of_pictures, text=text)

    def once(self, make: Callable[[Snapshot], T]) -> T:
        """The result of a function of this state, which is called once."""
        made: dict[Any, Any] = self.__dict__.setdefault("_made", {})
        if make not in made:
            made[make] = make(self)
        found: T = made[make]
        return found

    # -- every example without itself --------------------------------------------------------

    @cached_property
    def left(self) -> LeftOut | None:
        """The prediction for each example by the others; None if there can be none."""
        return left_out(self.estimator, self.examples)

    @cached_property
    def wrong(self) -> Array:
        """Which examples the others predict otherwise than they are labelled, (n,)."""
        if self.left is None:
            return np.zeros(len(self), dtype=bool)
        return np.asarray((self.left.predicted != self.left.labels) & ~self.left.silent)

    @property
    def silent(self) -> Array:
        """Which examples the others say nothing of, (n,)."""
        return np.zeros(len(self), dtype=bool) if self.left is None else self.left.silent

    @cached_property
    def right(self) -> Array:
        """Which examples the others predict as they are labelled, (n,)."""
        return ~self.wrong & ~self.silent

    @property
    def predicted(self) -> Array:
        """The label that the others predict for each example, or its own if they cannot, (n,)."""
        assert self.examples is not None
        return self.examples.labels if self.left is None else self.left.predicted

    @property
    def accuracy(self) -> float | None:
        """The fraction of examples that would be predicted rightly if unseen."""
        return None if self.left is None else float(self.right.mean())

    # -- classes and settings ----------------------------------------------------------------

    @cached_property
    def labels(self) -> list[Any]:
        """The classes, in their order."""
        if self.examples is None or not self.is_classifier:
            return []
        return [*np.unique(self.examples.labels).tolist()]

    @cached_property
    def codes(self) -> Array:
        """The number of each example's class, (n,); zero if there are no classes."""
        if self.examples is None or not self.is_classifier:
            return np.zeros(len(self), dtype=int)
        return np.asarray(np.unique(self.examples.labels, return_inverse=True)[1])

    def classes(self) -> list[dict[str, Any]]:
        """Each class with the number of its examples and how many are right if unseen."""
        if not self.labels:
            return []
        count = np.bincount(self.codes, minlength=len(self.labels))
        right = np.bincount(self.codes[self.right], minlength=len(self.labels))
        judged = self.left is not None
        return [
            {"label": label, "count": int(n), "loo_accuracy": int(r) / int(n) if judged else None}
            for label, n, r in zip(self.labels, count, right, strict=True)
        ]

    @property
    def kernel(self) -> Any:
        """The kernel in use; None if there is none yet, or never."""
        given = self.estimator.get_params(deep=False)
        if self.examples is not None and "kernel" in given:
            return self.estimator.kernel_
        return given.get("kernel")

    @property
    def least_value(self) -> float:
        """The least value of a feature that the kernel takes: zero of histograms, or any."""
        if self.kernel is None or self.examples is None:
            return -np.inf
        rows = np.ones((1, self.examples.X.shape[1]))
        try:
            cross(self.kernel, -rows, rows)
        except InvalidInput:
            return 0.0
        return -np.inf

    @property
    def noise(self) -> float | None:
        """The noise in use; None if the kind of model has no noise."""
        given = self.estimator.get_params(deep=False).get("noise")
        if self.examples is not None and hasattr(self.estimator, "noise_"):
            given = self.estimator.noise_
        return float(given) if isinstance(given, (int, float)) else None

    @property
    def length_scale(self) -> float | None:
        """The length scale of the kernel in use, the geometric mean of those of all columns.

        None if the kernel has none, or several kernels have one each.
        """
        name = width_name(self.kernel)
        return None if name is None else mean_width(self.kernel.get_params()[name])

    @property
    def units(self) -> Array | None:
        """The units in which the kernel sees the columns, (d,), with geometric mean one.

        None if it sees all in the same.
        """
        name = width_name(self.kernel)
        lengths = None if name is None else np.asarray(self.kernel.get_params()[name], dtype=float)
        if lengths is None or self.examples is None or len(self.examples.X[0]) != lengths.size:
            return None
        return np.asarray(lengths.reshape(-1) / mean_width(lengths))

    @cached_property
    def evidence(self) -> float | None:
        """The log marginal likelihood; None if the kind of model has none."""
        ask = getattr(self.estimator, "log_marginal_likelihood", None)
        return None if ask is None or not len(self) else float(ask())

    # -- what is unknown ---------------------------------------------------------------------

    def texts(self, ids: list[Id]) -> list[str | None]:
        """The text of each example; None of one that is no text."""
        return texts_of(self.store, ids) or [None] * len(ids)

    @cached_property
    def novelty(self) -> str | None:
        """The method that tells unknown records best; None for the usual one."""
        return novelty_method(noted(self.store))

    @cached_property
    def judge(self) -> Judge | None:
        """The judge of unknown rows, as in `knowmore predict`; None if the model cannot tell."""
        if self.examples is None or not self.is_classifier:
            return None
        return Judge.of(self.estimator, self.examples, RATE, self.novelty)

    # -- other settings ----------------------------------------------------------------------

    def with_settings(self, noise: float | None, length_scale: float | None) -> dict[str, Any]:
        """The parameters of the estimator that these settings are; those left out stay."""
        known = self.estimator.get_params(deep=False)
        found: dict[str, Any] = {}
        if noise is not None:
            found["noise"] = noise
        if length_scale is not None:
            found["kernel"] = widened(self.kernel, length_scale)
        for parameter, name in (("noise", "noise"), ("kernel", "length scale")):
            if parameter in found and parameter not in known:
                raise InvalidInput(f"A model of kind {self.kind} has no {name} to set.")
        return found

    def with_estimator(self, estimator: Any, examples: Examples | None) -> Snapshot:
        """This state, had the estimator learnt these examples."""
        other = object.__new__(Snapshot)
        for name in ("store", "name", "kind", "entries", "number", "is_classifier", "in_file"):
            setattr(other, name, getattr(self, name))
        other.columns = self.columns
        other.estimator, other.examples = unnamed(estimator), examples
        return other

    def refitted(self, **parameters: Any) -> Any:
        """A fresh fit of the examples, with the settings in use or other parameters."""
        assert self.examples is not None
        fresh = clone(self.estimator)
        C = getattr(self.estimator, "C_", None)
        used = {"kernel": self.kernel, "noise": self.noise, "C": C}
        for name in fresh.get_params(deep=False):
            if used.get(name) is not None:
                parameters = {name: used[name]} | parameters
        fresh.set_params(**parameters)
        examples = self.examples
        return fresh.fit(examples.X, examples.labels, sample_weight=examples.weights)


def _journal(store: Store, before: Snapshot | None) -> list[Entry]:
    """All entries of a file; only those are read that an earlier list lacks, if it still stands."""
    if before is not None and before.entries and before.redo is None:
        last = before.entries[-1]
        found = store.log(after=last.number - 1)
        # Who brought an example is not known any more once that is forgotten.
        if found[:1] == [last] and not any(one.verb in FORGETS for one in found[1:]):
            return [*before.entries, *found[1:]]
    return store.log()


def width_name(kernel: Any) -> str | None:
    """The parameter of a kernel that is its length scale; None if there are several, or none."""
    parameters = kernel.get_params() if hasattr(kernel, "get_params") else {}
    names = [name for name in _WIDTHS if name in parameters]
    return names[0] if len(names) == 1 else None


def mean_width(lengths: Any) -> float:
    """The geometric mean of one or several length scales."""
    return float(np.exp(np.mean(np.log(lengths))))


def widened(kernel: Any, length_scale: float) -> Any:
    """A kernel with another mean length scale; an RBF kernel if it has none."""
    name = width_name(kernel)
    if name is None:
        return RBF(length_scale)
    before = kernel.get_params()[name]
    after = length_scale if np.ndim(before) == 0 else before * (length_scale / mean_width(before))
    return clone(kernel).set_params(**{name: after})


# -- signs of bad settings, and previews of edits -------------------------------------------------


def why_to_tune(now: Snapshot) -> str:
    """The sign that other settings would fit better, in words; "" if there is none."""
    if now.left is None or not now.in_file or now.kind not in TUNABLE or len(now) < _JUDGING:
        return ""
    silent = int(now.silent.sum())
    if silent > _SILENT * len(now):
        return f"Of {silent:,} of {len(now):,} examples the others can say nothing."
    found = evaluate(now.store)
    if isinstance(found, ClassEvaluation) and found.is_off and found.calibration is not None:
        sure, right = found.calibration.confidence, found.calibration.accuracy
        count = found.calibration.count
        more = float(((sure - right) * count).sum()) > 0
        return f"The model is {'surer' if more else 'less sure'} than it is right."
    return ""


def edit_preview(now: Snapshot, edit: Edit, waiting: dict[int, Any]) -> dict[str, Any]:
    """Which examples the others would predict otherwise, and how many rightly, then and now.

    waiting : vectors (d,) of pictures by their numbers; those that the model would predict
        otherwise are told, too
    """
    other = now
    if now.left is not None and now.examples is not None:
        if isinstance(edit, Remove) and not now.in_file:
            after = unnamed(now.estimator).remove(edit.ids), now.examples.apply(edit)
        else:
            after = edited(now.estimator, now.examples, edit)
        other = now.with_estimator(*after)
    found = compared(now.left, other.left)
    said: list[Any] = [[], []]
    if waiting:
        X = np.stack([*waiting.values()])
        said = [each.estimator.predict(X).tolist() for each in (now, other)]
    return {
        "number": now.number,
        "flips": [{"id": one.id, "from": one.before, "to": one.after} for one in found.changes],
        "pictures": [
            {"picture": number, "from": old, "to": new}
            for number, old, new in zip(waiting, *said, strict=True)
            if old != new
        ],
        "accuracy_before": found.accuracy_before,
        "accuracy_after": found.accuracy_after,
    }
