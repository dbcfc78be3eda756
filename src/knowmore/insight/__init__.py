"""Questions about a model: pure functions of a fitted estimator that answer with frozen values.

They follow every edit for free: what they ask is the state that the model keeps anyway.
"""

from knowmore.insight.calibration import Calibrated, Reliability, calibrate, reliability
from knowmore.insight.displays import (
    LearningCurveDisplay,
    NoveltyDisplay,
    ReliabilityDisplay,
    ScoreFieldDisplay,
    SuspectsDisplay,
    TransferDisplay,
)
from knowmore.insight.explain import Explanation, explain
from knowmore.insight.novelty import Novelty, novelty
from knowmore.insight.query import SuggestQuery
from knowmore.insight.suggest import Suggestion, suggest
from knowmore.insight.suspects import Suspects, suspects
from knowmore.insight.transfer import Transfer, transfer
from knowmore.insight.tune import Tuned, due, tune

__all__ = [
    "Calibrated",
    "Explanation",
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
    "novelty",
    "reliability",
    "suggest",
    "suspects",
    "transfer",
    "tune",
]
