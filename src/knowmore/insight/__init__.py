"""Questions about a model: pure functions of a fitted estimator that return frozen answers.

The answers follow every edit at no extra cost: they use what the model holds anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from knowmore.insight.asking import LINEAR as LINEAR
from knowmore.insight.asking import WITH_VARIANCE as WITH_VARIANCE
from knowmore.insight.asking import count_of as count_of
from knowmore.insight.asking import has_grounds as has_grounds
from knowmore.insight.calibration import Calibrated, Reliability, calibrate, reliability
from knowmore.insight.calibration import binned as binned
from knowmore.insight.displays import (
    LearningCurveDisplay,
    NoveltyDisplay,
    ReliabilityDisplay,
    ScoreFieldDisplay,
    SuspectsDisplay,
    TransferDisplay,
)
from knowmore.insight.explain import Explanation, FeatureExplanation, Transfer, explain, transfer
from knowmore.insight.grounds import Grounds, grounds
from knowmore.insight.novelty import Novelty, novelty
from knowmore.insight.suggest import Suggestion, suggest
from knowmore.insight.suspects import Suspects, suspects
from knowmore.insight.tune import Tuned, due, tune

if TYPE_CHECKING:
    from knowmore.insight.strategy import SuggestQuery

__all__ = [
    "Calibrated",
    "Explanation",
    "FeatureExplanation",
    "Grounds",
    "LearningCurveDisplay",
    "Novelty",
    "NoveltyDisplay",
    "Reliability",
    "ReliabilityDisplay",
    "ScoreFieldDisplay",
    "SuggestQuery",
    "Suggestion",
    "Suspects",
    "SuspectsDisplay",
    "Transfer",
    "TransferDisplay",
    "Tuned",
    "calibrate",
    "due",
    "explain",
    "grounds",
    "novelty",
    "reliability",
    "suggest",
    "suspects",
    "transfer",
    "tune",
]


def __getattr__(name: str) -> Any:
    # It loads scikit-activeml where that is installed, which nothing else needs.
    if name != "SuggestQuery":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from knowmore.insight.strategy import SuggestQuery

    return SuggestQuery
