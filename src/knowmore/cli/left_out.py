"""What all other examples say of each example of a model."""

from __future__ import annotations

from typing import Any

from knowmore.cli.model import Model
from knowmore.errors import InvalidInput, NoExamples
from knowmore.estimators.shell import unnamed
from knowmore.insight.asking import LINEAR

# Kinds of models that a question is for.
GAUSSIAN = ("gp", "gp-regression", "linear", "linear-regression", "forest", "forest-regression")
CLASSIFYING = ("gp", "lssvm", "linear", "forest", "n-plus-one")
EXPLAINABLE = (*GAUSSIAN, "lssvm", "n-plus-one")
TUNABLE = ("gp", "gp-regression", "lssvm")


def fitted(model: Model, kinds: tuple[str, ...] | None = None) -> Any:
    """The estimator of a model that holds examples, and is of one of these kinds."""
    if kinds is not None and model.kind not in kinds:
        raise InvalidInput(
            f"This model is of kind {model.kind}. The question is for kinds {', '.join(kinds)}."
        )
    if not len(model.store):
        raise NoExamples("The model holds no examples yet. Teach it: knowmore learn.")
    # Sources put columns in the order of the model by name, and give arrays.
    return unnamed(model.store.estimator)


def rows_of(model: Model, estimator: Any) -> tuple[Any, ...]:
    """What questions about examples take beside the estimator: a linear one holds no rows."""
    if not isinstance(estimator, LINEAR):
        return ()
    examples = model.store.examples
    return examples.X, examples.labels
