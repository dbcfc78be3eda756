"""What an estimator needs besides its examples: support tasks, or the model that it starts from.

Support tasks are arrays in the file. A source is a file of its own, named by its path from the
folder of this one, so that both can move together, and by the digest of the model in it.
"""

from __future__ import annotations

import os
from contextvars import ContextVar
from copy import copy
from hashlib import blake2b
from json import dumps
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

import knowmore.estimators as known
from knowmore.arrays import Array
from knowmore.errors import InvalidInput
from knowmore.estimators.least_squares import Scores
from knowmore.estimators.linear import LinearGP
from knowmore.store import caches, kinds
from knowmore.store.codec import bytes_of, id_text, label_texts, plain, valued
from knowmore.store.layout import File, damaged

SUPPORT = "support/"
# The files of estimators that were loaded or saved.
_homes: WeakKeyDictionary[Any, Path] = WeakKeyDictionary()
# The files whose sources are being loaded.
_loading: ContextVar[tuple[Path, ...]] = ContextVar("_loading", default=())


def note_home(estimator: Any, path: Path) -> Any:
    """The estimator, of which it is known from now on that the file at `path` holds it."""
    _homes[estimator] = path
    return estimator


def facts_of(estimator: Any, path: Path) -> dict[str, Any]:
    """What a file at `path` notes of the supports or the source of an estimator."""
    if isinstance(estimator, known.NPlusOneClassifier):
        return {"source": _noted(estimator, path)}
    if isinstance(estimator, known.OneShotClassifier):
        return {"supports": list(_supports(estimator))}
    return {}


def arrays_of(estimator: Any) -> list[caches.Kept]:
    """The supports of an estimator as arrays."""
    if not isinstance(estimator, known.OneShotClassifier):
        return []
    found = _supports(estimator).values()
    return [caches.Kept(f"{SUPPORT}{i}", X) for i, X in enumerate(found)]


def _supports(estimator: known.OneShotClassifier) -> dict[str, Array]:
    if hasattr(estimator, "_living"):
        return estimator.supports_
    return {name: np.asarray(X, dtype=float) for name, X in (estimator.supports or {}).items()}


def attach(file: File, estimator: Any, facts: dict[str, Any]) -> None:
    """Give an estimator the supports or the source that its file notes."""
    if isinstance(estimator, known.OneShotClassifier):
        arrays = caches.kept(file, facts.get("arrays", {}))
        with file.understood("supports"):
            names = facts["supports"]
            estimator.supports = {
                str(name): arrays[f"{SUPPORT}{i}"] for i, name in enumerate(names)
            }
    if isinstance(estimator, known.NPlusOneClassifier):
        estimator.source = _found(file, facts)
        estimator.source_ = copy(estimator.source)


def _noted(estimator: known.NPlusOneClassifier, path: Path) -> dict[str, Any]:
    source = estimator.source
    if isinstance(source, Scores):
        if source.of is not None:
            raise InvalidInput(
                "The source is a function, which cannot be written to a file. Give its scores as "
                "columns beside the features: Scores(classes)."
            )
        return {"classes": plain(source.classes_)}
    home = getattr(source, "path", None) or _homes.get(source)
    if home is None:
        raise InvalidInput(
            "The source of this classifier is in no file, so a file cannot name it. Save it first: "
            "source.save('known.km'), and give the very estimator that was saved or loaded."
        )
    relative = Path(os.path.relpath(home, path.parent)).as_posix()
    held = getattr(source, "estimator", source)
    return {"path": relative, "digest": digest(getattr(estimator, "source_", held))}


def _found(file: File, facts: dict[str, Any]) -> Any:
    with file.understood("source"):
        noted = facts["source"]
        if "classes" in noted:
            return Scores(valued(noted["classes"]))
        path, wanted = (file.path.parent / noted["path"]).resolve(), str(noted["digest"])
    from knowmore.store.saving import load

    chain = (*_loading.get(), file.path)
    if path in chain:
        raise InvalidInput(
            f"The model in {str(file.path)!r} starts from that in {str(path)!r}, which leads back "
            f"to it. Restore the file of the model that it started from."
        )
    token = _loading.set(chain)
    try:
        source = load(path)
    except OSError as error:
        raise InvalidInput(
            f"The model in {str(file.path)!r} starts from that in {str(path)!r}, which is not "
            f"there. Put that file back in its place."
        ) from error
    finally:
        _loading.reset(token)
    if digest(source) != wanted:
        raise InvalidInput(
            f"The model in {str(file.path)!r} starts from that in {str(path)!r}, which has been "
            f"changed since. Restore that file as it was, or learn these examples anew."
        )
    return source


def digest(estimator: Any) -> str:
    """A digest of what an estimator has learnt: settings and examples, in hexadecimal."""
    kind = kinds.kind_of(estimator)
    if kind not in kinds.LIVING:
        raise damaged(Path(kind), "a source is a classifier")
    settings = {"kind": kind, "parameters": kinds.parameters(estimator)}
    mark = blake2b(dumps(settings | kinds.state(estimator)).encode(), digest_size=32)
    if isinstance(estimator, LinearGP):
        mark.update(estimator.digest().encode())
        return mark.hexdigest()
    examples = estimator._fitted.examples
    for texts in (map(id_text, examples.names), label_texts(examples.labels)):
        mark.update("\0".join(texts).encode())
    for array in (examples.X, examples.weights, examples.side):
        mark.update(bytes_of(array))
    return mark.hexdigest()
