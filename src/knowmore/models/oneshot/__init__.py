"""One-shot learning: a class with few examples, with the help of a related one."""

from knowmore.models.oneshot.choice import Ranking, Rule, Support
from knowmore.models.oneshot.model import OneShot

__all__ = ["OneShot", "Ranking", "Rule", "Support"]
