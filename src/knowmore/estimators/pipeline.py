"""The verbs of a living estimator at the end of a Pipeline."""

from __future__ import annotations

from copy import copy
from typing import Any, Self, final

from sklearn.pipeline import Pipeline

from knowmore.arrays import Array
from knowmore.errors import InvalidType
from knowmore.estimators.living import LivingEstimator
from knowmore.estimators.shell import fitted
from knowmore.tables import by_name, names_of

# Questions about rows X, which the earlier steps transform first, and about the examples held.
_OF_ROWS = (
    "predict",
    "decision_function",
    "predict_proba",
    "predict_variance",
    "score",
    "model_inputs",
)
_OF_EXAMPLES = ("leave_one_out", "log_marginal_likelihood", "residual", "model_groups")


def living(pipeline: Pipeline) -> LivingPipeline:
    """A fitted Pipeline that ends in a living estimator, with that estimator's verbs.

    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from knowmore import GPClassifier
    >>> pipe = make_pipeline(StandardScaler(), GPClassifier())
    >>> pipe = pipe.fit([[150.0], [160.0], [170.0], [180.0]], ["a", "a", "b", "b"])
    >>> living(pipe).add([[240.0]], ["c"], ids=["tall"])
    array(['tall'], dtype='<U4')
    >>> pipe.predict([[235.0]])
    array(['c'], dtype='<U1')

    Parameters
    ----------
    pipeline : the Pipeline, which every edit changes

    Notes
    -----
    Rows pass through the earlier steps before they reach the last one. These steps keep what they
    learnt when the pipeline was fitted: edits are exact for features made in that way. Fit the
    pipeline again to change how features are made.

    Besides `add`, `partial_fit`, `remove`, `replace` and `relabel`, it answers what the last step
    answers: `predict`, `decision_function`, `predict_proba`, `predict_variance`, `score`,
    `leave_one_out`, `log_marginal_likelihood`, `residual` and all questions of `knowmore.insight`.
    Leave-one-out leaves an example out of the last step only. Parameters and learnt attributes
    (`ids_`, `classes_`, ...) are those of the last step; `n_features_in_` and `feature_names_in_`
    are those of the pipeline.
    """
    return LivingPipeline(pipeline)


@final
class LivingPipeline:
    """What `living` returns.

    pipeline : the fitted Pipeline
    """

    def __init__(self, pipeline: Pipeline) -> None:
        if not isinstance(pipeline, Pipeline):
            raise InvalidType(
                f"living() takes a Pipeline, but was given an object of type "
                f"{type(pipeline).__name__}. An estimator of knowmore has these verbs itself."
            )
        last = pipeline.steps[-1][1]
        if not isinstance(last, LivingEstimator):
            raise InvalidType(
                f"The last step of this pipeline is a {type(last).__name__}, which cannot add and "
                f"remove single examples. Let it end in one that can, such as GPClassifier."
            )
        fitted(last, "_living")
        self.pipeline = pipeline

    @property
    def estimator(self) -> Any:
        """The last step."""
        return self.pipeline.steps[-1][1]

    def add(self, X: Any, y: Any, ids: Any = None, sample_weight: Any = None) -> Array:
        """Learn more examples and return their ids, (k,); the index of X is theirs by default."""
        names = names_of(ids, X=X, y=y, sample_weight=sample_weight)
        new: Array = self.estimator.add(self._transformed(X), y, names, sample_weight)
        return new

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """scikit-learn's word for `add`."""
        self.add(X, y, sample_weight=sample_weight)
        return self

    def remove(self, ids: Any) -> Self:
        """Forget these examples exactly: ids, or a Boolean mask in the order of `ids_`."""
        self.estimator.remove(ids)
        return self

    def replace(self, ids: Any, X: Any, y: Any = None) -> Self:
        """Give these examples other features X (k, d), and other labels unless y is None."""
        rows = by_name("X", X, self.estimator._chosen(ids), ids)
        self.estimator.replace(ids, self._transformed(rows), y)
        return self

    def relabel(self, ids: Any, y: Any = None) -> Self:
        """Give these examples other labels."""
        self.estimator.relabel(ids, y)
        return self

    def __getattr__(self, name: str) -> Any:
        """Questions, parameters and learnt attributes of the last step; none that skips a step."""
        if name in _OF_ROWS:
            ask = getattr(self.estimator, name)
            return lambda X, *rest, **options: ask(self._transformed(X), *rest, **options)
        if name in ("n_features_in_", "feature_names_in_"):
            return getattr(self.pipeline, name)
        # A copy or a pickle asks for private names and `pipeline` before there is a pipeline.
        public = name[0] != "_" and name != "pipeline"
        learnt = public and (name[-1] == "_" or name in self.estimator.get_params(deep=False))
        if learnt or name in _OF_EXAMPLES:
            return getattr(self.estimator, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        learnt = (name for name in dir(self.estimator) if name[-1] == "_" and name[0] != "_")
        return sorted({*super().__dir__(), *learnt, *_OF_ROWS, *_OF_EXAMPLES})

    def __sklearn_tags__(self) -> Any:
        return self.estimator.__sklearn_tags__()

    def __repr__(self) -> str:
        return f"living({self.pipeline!r})"

    def _transformed(self, X: Any) -> Any:
        """X as the last step sees it."""
        return self.pipeline[:-1].transform(X) if len(self.pipeline) > 1 else X

    def refitted(self, examples: Any, **parameters: Any) -> LivingPipeline:
        """The same earlier steps before another last one: see `LivingEstimator.refitted`."""
        pipeline = copy(self.pipeline)
        name, last = pipeline.steps[-1]
        pipeline.steps = [*pipeline.steps[:-1], (name, last.refitted(examples, **parameters))]
        return LivingPipeline(pipeline)
