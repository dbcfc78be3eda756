"""The verbs of the estimator at the end of a Pipeline."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from inspect import signature
from typing import Any, Self, TypeVar, cast, final

from joblib import hash  # noqa: A004  of the content, and the same in every process
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if

from knowmore._base import Array, by_name, check_aligned, ids_of, is_empty, some
from knowmore.errors import InvalidInput, InvalidType
from knowmore.estimators.checks import declared_classes
from knowmore.estimators.linear import INSTEAD
from knowmore.estimators.living import EditableEstimator, chosen, held_labels
from knowmore.estimators.maps import Landmarks, landmarks_among
from knowmore.estimators.shell import declared_too

F = TypeVar("F", bound=Callable[..., Any])

# Queries of the last step; rows X among their arguments pass through the earlier steps first.
_QUERIES = (
    "predict",
    "predict_proba",
    "predict_variance",
    "decision_function",
    "score",
    "leave_one_out",
    "log_marginal_likelihood",
    "residual",
    "model_groups",
    "digest",
)


def living(pipeline: Pipeline) -> LivingPipeline:
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

    A sampler of imbalanced-learn acts when the pipeline is fitted, and not on rows that come later.
    The rows that it made are nobody's, so `remove`, `replace`, `relabel` and `forget` are refused.

    With a `LinearGPClassifier` or `LinearGPRegressor` at the end that was fitted without ids, the
    verbs are `partial_fit`, `forget`, `merge` and `split`, and `leave_one_out` takes rows.
    """
    last = pipeline.steps[-1][1] if isinstance(pipeline, Pipeline) else None
    if not isinstance(last, EditableEstimator):
        raise InvalidType(
            f"living() takes a Pipeline that ends in, say, a GPClassifier, not {pipeline!r}."
        )
    _ = last.editable_
    return LivingPipeline(pipeline)


def _if_last_has(verb: str) -> Callable[[F], F]:
    """A verb of pipelines whose last step has it. Without it, `__getattr__` says what to do."""
    decorator = available_if(lambda pipeline: hasattr(pipeline.estimator, verb))
    return cast("Callable[[F], F]", decorator)


@final
class LivingPipeline:
    """A fitted pipeline that passes rows through its earlier steps to the last one.

    pipeline : the fitted Pipeline
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    @property
    def estimator(self) -> Any:
        """The last step."""
        return self.pipeline.steps[-1][1]

    def model_inputs(self, X: Any) -> Any:
        """X as `model_` takes it: see `EditableEstimator.model_inputs`."""
        return self.estimator.model_inputs(self._transformed(X))

    def __getattr__(self, name: str) -> Any:
        """Queries, parameters and fitted attributes of the last step."""
        if name in ("n_features_in_", "feature_names_in_"):
            return getattr(self.pipeline, name)
        # Copies and pickles look up private names and `pipeline` before there is a pipeline.
        public = name[0] != "_" and name != "pipeline"
        is_value = public and (name[-1] == "_" or name in self.estimator.get_params(deep=False))
        if is_value or name in INSTEAD:
            return getattr(self.estimator, name)
        if name in _QUERIES:
            query = getattr(self.estimator, name)
            return self._of_rows(query) if "X" in signature(query).parameters else query
        raise AttributeError(f"living(pipeline) has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        values = (name for name in dir(self.estimator) if name[-1] == "_" and name[0] != "_")
        queries = (name for name in _QUERIES if hasattr(self.estimator, name))
        return sorted({*super().__dir__(), *values, *queries})

    def __sklearn_tags__(self) -> Any:
        return self.estimator.__sklearn_tags__()

    def __repr__(self) -> str:
        return f"living({self.pipeline!r})"

    def _of_rows(self, query: Callable[..., Any]) -> Callable[..., Any]:
        """The query about rows of the pipeline, or about the rows that the last step keeps."""
        return lambda X=None, *rest, **options: query(
            X if X is None else self._transformed(X), *rest, **options
        )

    def _transformed(self, X: Any, step: int = -1) -> Any:
        """X as a step sees it, by default the last. Samplers act only in `fit`."""
        earlier = [one for one in self.pipeline.steps[:step] if not is_sampler(one[1])]
        return Pipeline(earlier).transform(X) if earlier else X

    def _check_rows(self) -> None:
        """Raise InvalidInput if rows of the last step are not those that were given."""
        sampler = next((name for name, one in self.pipeline.steps if is_sampler(one)), None)
        if sampler is not None:
            raise InvalidInput(
                f"The step {sampler!r} is a sampler: the rows that it left, repeated or made of "
                f"others are numbered anew, so nobody knows whose they are, and nothing was "
                f"changed. Leave it out, and let GPClassifier(class_weight='balanced') weigh the "
                f"classes alike. Or change the rows of the last step by its own ids: pipeline[-1]."
            )

    # -- verbs -------------------------------------------------------------------------------

    @_if_last_has("add")
    def add(self, X: Any, y: Any, ids: Any = None, sample_weight: Any = None) -> Array:
        """Learn more examples and return their ids, (k,); the index of X is theirs by default."""
        names = ids_of(ids, X=X, y=y, sample_weight=sample_weight)
        new: Array = self.estimator.add(self._transformed(X), y, names, sample_weight)
        return new

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, classes: Any = None
    ) -> Self:
        """Learn more rows. `classes` are declared to the last step, as by its own `partial_fit`."""
        names = declared_classes(y, classes, held_labels(self.estimator))
        with declared_too(self.estimator, names):
            if hasattr(self.estimator, "add"):
                self.add(X, y, sample_weight=sample_weight)
                return self
            check_aligned(X=X, y=y, sample_weight=sample_weight)
            if not is_empty(X, y):
                self.estimator.partial_fit(self._transformed(X), y, sample_weight=sample_weight)
        return self

    @_if_last_has("remove")
    def remove(self, ids: Any) -> Self:
        """Forget these examples exactly: ids, or a Boolean mask in the order of `ids_`."""
        self._check_rows()
        self.estimator.remove(ids)
        return self

    @_if_last_has("replace")
    def replace(self, ids: Any, X: Any, y: Any = None) -> Self:
        """Give these examples other features X (k, d), and other labels unless y is None."""
        self._check_rows()
        rows = by_name("X", X, chosen(self.estimator, ids), ids)
        self.estimator.replace(ids, self._transformed(rows), y)
        return self

    @_if_last_has("relabel")
    def relabel(self, ids: Any, y: Any = None) -> Self:
        """Give these examples other labels."""
        self._check_rows()
        self.estimator.relabel(ids, y)
        return self

    def refitted(self, examples: Any, **parameters: Any) -> LivingPipeline:
        """A pipeline of these earlier steps and a refitted last one."""
        pipeline = copy(self.pipeline)
        name, last = pipeline.steps[-1]
        pipeline.steps = [*pipeline.steps[:-1], (name, last.refitted(examples, **parameters))]
        return LivingPipeline(pipeline)

    @_if_last_has("forget")
    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Remove rows that were learnt, as if never there.

        A row that is a landmark of an earlier step is refused: that step would go on holding it.
        """
        check_aligned(X=X, y=y, sample_weight=sample_weight)
        if is_empty(X, y):
            return self
        self._check_rows()
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

    @_if_last_has("split")
    def merge(self, other: Pipeline | LivingPipeline) -> Self:
        """Learn all that another one has learnt, with the same earlier steps."""
        self.estimator.merge(self._alike(other))
        return self

    @_if_last_has("split")
    def split(self, other: Pipeline | LivingPipeline) -> Self:
        """Forget all that another one has learnt, and this one too: the reverse of `merge`."""
        self.estimator.split(self._alike(other))
        return self

    def _alike(self, other: Any) -> Any:
        """The last step of another pipeline whose earlier steps equal these."""
        other = living(other) if isinstance(other, Pipeline) else other
        if not (isinstance(other, LivingPipeline) and hasattr(other, "split")):
            raise InvalidType(f"Give a Pipeline that ends in a linear model, not {other!r}.")
        if [*map(_content, self.pipeline[:-1])] != [*map(_content, other.pipeline[:-1])]:
            raise InvalidInput(
                "The earlier steps of the two pipelines differ, so their last steps have learnt "
                "different features. Fit these steps once, and give each pipeline a copy of them."
            )
        return other.estimator


def is_sampler(step: Any) -> bool:
    """Whether a step chooses or makes rows, as those of imbalanced-learn do, when it is fitted."""
    return hasattr(step, "fit_resample")


def _content(step: Any) -> str:
    """A hash of all that decides what a step computes."""
    return step.digest() if isinstance(step, Landmarks) else str(hash(step))
