"""Classes with few examples, learnt with the help of others: N+1, one-shot, names of classes.

`n_plus_one` learns one class more than a known classifier has. `one_shot` learns a class with the
help of related ones, which the similarity of their names may choose: `knowmore.semantics`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from knowmore.transfer.choice import Ranking, Rule, Support
    from knowmore.transfer.coding import TransferCoding
    from knowmore.transfer.dependent import OneShot
    from knowmore.transfer.n_plus_one import NPlusOneClassifier, Scores
    from knowmore.transfer.one_shot import OneShotClassifier

__all__ = [
    "NPlusOneClassifier",
    "OneShot",
    "OneShotClassifier",
    "Ranking",
    "Rule",
    "Scores",
    "Support",
    "TransferCoding",
]

_HOMES = {
    "NPlusOneClassifier": "n_plus_one",
    "OneShot": "dependent",
    "OneShotClassifier": "one_shot",
    "Ranking": "choice",
    "Rule": "choice",
    "Scores": "n_plus_one",
    "Support": "choice",
    "TransferCoding": "coding",
}


def __getattr__(name: str) -> Any:
    # Import on first use: names of classes need neither models nor scikit-learn.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
