"""Pictures of answers, each from an estimator in one line."""

from knowmore.insight.displays.learning_curve import LearningCurveDisplay
from knowmore.insight.displays.novelty import NoveltyDisplay
from knowmore.insight.displays.reliability import ReliabilityDisplay
from knowmore.insight.displays.score_field import ScoreFieldDisplay
from knowmore.insight.displays.suspects import SuspectsDisplay
from knowmore.insight.displays.transfer import TransferDisplay

__all__ = [
    "LearningCurveDisplay",
    "NoveltyDisplay",
    "ReliabilityDisplay",
    "ScoreFieldDisplay",
    "SuspectsDisplay",
    "TransferDisplay",
]
