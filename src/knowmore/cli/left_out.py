"""What all other examples say of each example of a model."""

from __future__ import annotations

from typing import Any

from knowmore.cli.model import Model
from knowmore.errors import NoExamples
from knowmore.insight.asking import LINEAR


def fitted(model: Model) -> Any:
    """The estimator of a model that holds examples."""
    if not len(model.store):
        raise NoExamples("The model holds no examples yet. Teach it: knowmore learn.")
    return model.store.estimator


def rows_of(model: Model, estimator: Any) -> tuple[Any, ...]:
    """What questions about examples take beside the estimator: a linear one holds no rows."""
    if not isinstance(estimator, LINEAR):
        return ()
    examples = model.store.examples
    return examples.X, examples.labels
