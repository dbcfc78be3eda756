"""Questions about a model: pure functions of a fitted estimator that return frozen answers.

The answers follow every edit at no extra cost: they use what the model holds anyway.
"""

from knowmore.insight.asking import LINEAR as LINEAR
from knowmore.insight.asking import WITH_VARIANCE as WITH_VARIANCE
from knowmore.insight.asking import count_of as count_of
from knowmore.insight.asking import has_grounds as has_grounds
from knowmore.insight.calibration import Calibrated, Reliability, calibrate, reliability
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
from knowmore.insight.suggest import Suggestion, SuggestQuery, suggest
from knowmore.insight.suspects import Suspects, suspects
from knowmore.insight.tune import Tuned, due, tune

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
