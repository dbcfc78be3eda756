"""The verbs of the estimator at the end of a Pipeline."""

from __future__ import annotations

from copy import copy
from typing import Any, ClassVar, Generic, Self, TypeVar, final

from joblib import hash  # noqa: A004  of the content, and the same in every process
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from knowmore._base import Array, by_name, check_aligned, ids_of, is_empty, some
from knowmore.errors import InvalidInput, InvalidType
from knowmore.estimators.checks import check_declared
from knowmore.estimators.linear import INSTEAD, LinearGPClassifier, LinearGPRegressor
from knowmore.estimators.living import EditableEstimator, chosen
from knowmore.estimators.maps import Landmarks, landmarks_among
from knowmore.estimators.shell import fitted

E = TypeVar("E", bound=BaseEstimator)

_OF_ROWS = ("predict", "predict_proba", "predict_variance", "decision_function", "score")


def living(pipeline: Pipeline) -> LivingPipeline | LinearPipeline:
    """A fitted Pipeline that ends in a living estimator or a linear one, with its verbs.

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

    With a `LinearGPClassifier` or `LinearGPRegressor` at the end the verbs are `partial_fit`,
    `forget`, `merge` and `split`, and `leave_one_out` takes rows.
    """
    last = pipeline.steps[-1][1] if isinstance(pipeline, Pipeline) else None
    if isinstance(last, (LinearGPClassifier, LinearGPRegressor)):
        fitted(last, "model_")
        return LinearPipeline(pipeline)
    if not isinstance(last, EditableEstimator):
        raise InvalidType(
            f"living() takes a Pipeline that ends in, say, a GPClassifier, not {pipeline!r}."
        )
    fitted(last, "_living")
    return LivingPipeline(pipeline)


class FittedPipeline(Generic[E]):
    """A fitted pipeline that passes rows through its earlier steps to the last one.

    pipeline : the fitted Pipeline
    """

    # Queries about rows X, which the earlier steps transform first, and about the examples held.
    _of_rows: ClassVar[tuple[str, ...]]
    _of_examples: ClassVar[tuple[str, ...]]

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    @property
    def estimator(self) -> E:
        """The last step."""
        last: E = self.pipeline.steps[-1][1]
        return last

    def model_inputs(self, X: Any) -> Any:
        """X as `model_` takes it: see `EditableEstimator.model_inputs`."""
        return self.estimator.model_inputs(self._transformed(X))

    def __getattr__(self, name: str) -> Any:
        """Queries, parameters and fitted attributes of the last step."""
        if name in self._of_rows:
            query = getattr(self.estimator, name)
            return lambda X, *rest, **options: query(self._transformed(X), *rest, **options)
        if name in ("n_features_in_", "feature_names_in_"):
            return getattr(self.pipeline, name)
        # Copies and pickles look up private names and `pipeline` before there is a pipeline.
        public = name[0] != "_" and name != "pipeline"
        is_value = public and (name[-1] == "_" or name in self.estimator.get_params(deep=False))
        if is_value or name in self._of_examples or name in INSTEAD:
            return getattr(self.estimator, name)
        raise AttributeError(f"living(pipeline) has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        values = (name for name in dir(self.estimator) if name[-1] == "_" and name[0] != "_")
        return sorted({*super().__dir__(), *values, *self._of_rows, *self._of_examples})

    def __sklearn_tags__(self) -> Any:
        return self.estimator.__sklearn_tags__()

    def __repr__(self) -> str:
        return f"living({self.pipeline!r})"

    def _transformed(self, X: Any, step: int = -1) -> Any:
        """X as a step sees it, by default the last."""
        earlier = self.pipeline[:step]
        return earlier.transform(X) if len(earlier) else X


@final
class LivingPipeline(FittedPipeline[EditableEstimator[Any]]):
    """A living pipeline that ends in an estimator with examples.

    pipeline : the fitted Pipeline
    """

    _of_rows = _OF_ROWS
    _of_examples = ("leave_one_out", "log_marginal_likelihood", "residual", "model_groups")

    def add(self, X: Any, y: Any, ids: Any = None, sample_weight: Any = None) -> Array:
        """Learn more examples and return their ids, (k,); the index of X is theirs by default."""
        names = ids_of(ids, X=X, y=y, sample_weight=sample_weight)
        return self.estimator.add(self._transformed(X), y, names, sample_weight)

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, classes: Any = None
    ) -> Self:
        """scikit-learn's word for `add`. `classes` may be left out; otherwise y is checked."""
        check_declared(y, classes)
        self.add(X, y, sample_weight=sample_weight)
        return self

    def remove(self, ids: Any) -> Self:
        """Forget these examples exactly: ids, or a Boolean mask in the order of `ids_`."""
        self.estimator.remove(ids)
        return self

    def replace(self, ids: Any, X: Any, y: Any = None) -> Self:
        """Give these examples other features X (k, d), and other labels unless y is None."""
        rows = by_name("X", X, chosen(self.estimator, ids), ids)
        self.estimator.replace(ids, self._transformed(rows), y)
        return self

    def relabel(self, ids: Any, y: Any = None) -> Self:
        """Give these examples other labels."""
        self.estimator.relabel(ids, y)
        return self

    def refitted(self, examples: Any, **parameters: Any) -> LivingPipeline:
        """These earlier steps and a refitted last one: see `LivingEstimator.refitted`."""
        pipeline = copy(self.pipeline)
        name, last = pipeline.steps[-1]
        pipeline.steps = [*pipeline.steps[:-1], (name, last.refitted(examples, **parameters))]
        return LivingPipeline(pipeline)


@final
class LinearPipeline(FittedPipeline[LinearGPClassifier | LinearGPRegressor]):
    """A living pipeline that ends in a linear model, which holds no examples.

    pipeline : the fitted Pipeline
    """

    _of_rows = (*_OF_ROWS, "leave_one_out")
    _of_examples = ("log_marginal_likelihood", "residual", "digest")

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, classes: Any = None
    ) -> Self:
        """Learn more rows. `classes` may be left out; otherwise y is checked."""
        check_aligned(X=X, y=y, sample_weight=sample_weight)
        check_declared(y, classes)
        if not is_empty(X, y):
            self.estimator.partial_fit(self._transformed(X), y, sample_weight=sample_weight)
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows that were learnt, as if never there.

        A row that is a landmark of an earlier step is refused: that step would go on holding it.
        """
        check_aligned(X=X, y=y, sample_weight=sample_weight)
        if is_empty(X, y):
            return self
        for at, (name, step) in enumerate(self.pipeline.steps[:-1]):
            if isinstance(step, Landmarks) and (
                ids := landmarks_among(step, self._transformed(X, at))
            ):
                raise InvalidInput(
                    f"Among these rows are landmarks of the step {name!r}: {some(ids)}. It would "
                    f"still hold them, so nothing was changed. Withdraw them first, "
                    f"pipeline[{at}].forget(ids=...).renew(), and fit the last step again to the "
                    f"rows that are left: pipeline[-1].fit(pipeline[:-1].transform(X), y). Or fit "
                    f"the pipeline again without them. To forget them in the last step alone, call "
                    f"pipeline[-1].forget(pipeline[:-1].transform(X), y)."
                )
        self.estimator.forget(self._transformed(X), y, sample_weight)
        return self

    def merge(self, other: Pipeline | LinearPipeline) -> Self:
        """Learn all that another one has learnt, with the same earlier steps."""
        self.estimator.merge(self._alike(other))
        return self

    def split(self, other: Pipeline | LinearPipeline) -> Self:
        """Forget all that another one has learnt, and this one too: the reverse of `merge`."""
        self.estimator.split(self._alike(other))
        return self

    def _alike(self, other: Any) -> Any:
        """The last step of another pipeline whose earlier steps equal these."""
        other = living(other) if isinstance(other, Pipeline) else other
        if not isinstance(other, LinearPipeline):
            raise InvalidType(f"Give a Pipeline that ends in a linear model, not {other!r}.")
        if [*map(_content, self.pipeline[:-1])] != [*map(_content, other.pipeline[:-1])]:
            raise InvalidInput(
                "The earlier steps of the two pipelines differ, so their last steps have learnt "
                "different features. Fit these steps once, and give each pipeline a copy of them."
            )
        return other.estimator


def _content(step: Any) -> str:
    """A hash of all that decides what a step computes."""
    return step.digest() if isinstance(step, Landmarks) else str(hash(step))
