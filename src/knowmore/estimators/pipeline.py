"""The verbs of a living estimator at the end of a Pipeline."""

from __future__ import annotations

from copy import copy
from typing import Any, Self, cast, final

from sklearn.pipeline import Pipeline

from knowmore.arrays import Array
from knowmore.errors import InvalidType
from knowmore.estimators.living import EditableEstimator
from knowmore.estimators.shell import fitted
from knowmore.tables import by_name, names_of

# Queries about rows X, which the earlier steps transform first, and about the examples held.
_OF_ROWS = ("predict", "predict_proba", "predict_variance", "decision_function", "score")
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
    Rows pass through the earlier steps before they reach the last one. These steps stay as they
    were when the pipeline was fitted: edits are exact for the features that they compute. To change
    them, fit the pipeline again.

    Besides `add`, `partial_fit`, `remove`, `replace` and `relabel`, it has the queries of the last
    step: `predict`, `decision_function`, `predict_proba`, `predict_variance`, `score`,
    `leave_one_out`, `log_marginal_likelihood`, `residual` and all questions of `knowmore.insight`.
    Leave-one-out leaves an example out of the last step only. Parameters and fitted attributes
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
        last = pipeline.steps[-1][1] if isinstance(pipeline, Pipeline) else None
        if not isinstance(last, EditableEstimator):
            wanted = "a Pipeline that ends in, say, a GPClassifier"
            raise InvalidType(f"living() takes {wanted}, not {pipeline!r}.")
        fitted(last, "_living")
        self.pipeline = pipeline

    @property
    def estimator(self) -> EditableEstimator[Any]:
        """The last step."""
        return cast("EditableEstimator[Any]", self.pipeline.steps[-1][1])

    def add(self, X: Any, y: Any, ids: Any = None, sample_weight: Any = None) -> Array:
        """Learn more examples and return their ids, (k,); the index of X is theirs by default."""
        names = names_of(ids, X=X, y=y, sample_weight=sample_weight)
        return self.estimator.add(self._transformed(X), y, names, sample_weight)

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

    def model_inputs(self, X: Any) -> tuple[Array, Array | None]:
        """X as `model_` takes it: see `EditableEstimator.model_inputs`."""
        return self.estimator.model_inputs(self._transformed(X))

    def __getattr__(self, name: str) -> Any:
        """Queries, parameters and fitted attributes of the last step."""
        if name in _OF_ROWS:
            query = getattr(self.estimator, name)
            return lambda X, *rest, **options: query(self._transformed(X), *rest, **options)
        if name in ("n_features_in_", "feature_names_in_"):
            return getattr(self.pipeline, name)
        # Copies and pickles look up private names and `pipeline` before there is a pipeline.
        public = name[0] != "_" and name != "pipeline"
        is_value = public and (name[-1] == "_" or name in self.estimator.get_params(deep=False))
        if is_value or name in _OF_EXAMPLES:
            return getattr(self.estimator, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        values = (name for name in dir(self.estimator) if name[-1] == "_" and name[0] != "_")
        return sorted({*super().__dir__(), *values, *_OF_ROWS, *_OF_EXAMPLES})

    def __sklearn_tags__(self) -> Any:
        return self.estimator.__sklearn_tags__()

    def __repr__(self) -> str:
        return f"living({self.pipeline!r})"

    def _transformed(self, X: Any) -> Any:
        """X as the last step sees it."""
        return self.pipeline[:-1].transform(X) if len(self.pipeline) > 1 else X

    def refitted(self, examples: Any, **parameters: Any) -> LivingPipeline:
        """The same earlier steps with another last one: see `LivingEstimator.refitted`."""
        pipeline = copy(self.pipeline)
        name, last = pipeline.steps[-1]
        pipeline.steps = [*pipeline.steps[:-1], (name, last.refitted(examples, **parameters))]
        return LivingPipeline(pipeline)
