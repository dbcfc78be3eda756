"""The verbs of a living estimator at the end of a Pipeline."""

from __future__ import annotations

from copy import copy
from typing import Any, Self, final

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags

from knowmore.arrays import Array
from knowmore.errors import InvalidType, RepeatedId
from knowmore.estimators.living import LivingEstimator
from knowmore.models import LeftOut
from knowmore.tables import by_name, names_of, of_index


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
    """
    return LivingPipeline(pipeline)


@final
class LivingPipeline:
    """A fitted Pipeline, its last step living: what is given goes through the earlier steps first.

    These transform as they learnt to when the pipeline was fitted, and learn nothing more: edits
    are exact for features that are made in one way. To have them made in another way, fit the
    pipeline anew.

    Questions of `knowmore.insight` are asked of this as of an estimator. The parameters and what
    was learnt (`ids_`, `classes_`, ...) are those of the last step; the features that go in are
    those of the pipeline.

    pipeline : the Pipeline itself, which every edit changes
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
        self.pipeline = pipeline
        last._check_fitted()

    @property
    def estimator(self) -> Any:
        """The last step."""
        return self.pipeline.steps[-1][1]

    # -- learning ----------------------------------------------------------------------------

    def add(self, X: Any, y: Any, ids: Any = None, sample_weight: Any = None) -> Array:
        """Learn more examples and return their ids, (k,); the index of X is theirs by default."""
        names = names_of(ids, X=X, y=y, sample_weight=sample_weight)
        try:
            new: Array = self.estimator.add(self._transformed(X), y, names, sample_weight)
            return new
        except RepeatedId as error:
            if ids is not None:
                raise
            raise of_index(error) from error

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
        chosen = self.estimator._chosen(ids)
        X = self._transformed(by_name("X", X, chosen, ids))
        self.estimator.replace(ids, X, y)
        return self

    def relabel(self, ids: Any, y: Any = None) -> Self:
        """Give these examples other labels."""
        self.estimator.relabel(ids, y)
        return self

    # -- asking ------------------------------------------------------------------------------

    def predict(self, X: Any, **options: Any) -> Any:
        """As the last step predicts, with its options: `unknown`, `return_std`, ..."""
        return self.estimator.predict(self._transformed(X), **options)

    def decision_function(self, X: Any) -> Array:
        """As the last step has it."""
        return np.asarray(self.estimator.decision_function(self._transformed(X)))

    def predict_proba(self, X: Any) -> Array:
        """As the last step has it."""
        return np.asarray(self.estimator.predict_proba(self._transformed(X)))

    def predict_variance(self, X: Any) -> Array:
        """As the last step has it."""
        return np.asarray(self.estimator.predict_variance(self._transformed(X)))

    def score(self, X: Any, y: Any) -> float:
        """As the last step has it."""
        return float(self.estimator.score(self._transformed(X), y))

    def leave_one_out(self, groups: Any = None) -> LeftOut:
        """What would be said of each example had the last step never seen it.

        The earlier steps saw it when they were fitted, and stay as they are.
        """
        left: LeftOut = self.estimator.leave_one_out(groups)
        return left

    def log_marginal_likelihood(self) -> float:
        """As the last step has it."""
        return float(self.estimator.log_marginal_likelihood())

    def residual(self) -> float:
        """How far the last step is from the batch fit of its examples."""
        return float(self.estimator.residual())

    @property
    def model_(self) -> Any:
        """The frozen value behind the last step."""
        return self.estimator.model_

    def __getattr__(self, name: str) -> Any:
        """Parameters of the last step and what it learnt; none of these takes features."""
        if name in ("n_features_in_", "feature_names_in_"):
            return getattr(self.pipeline, name)
        if not name.startswith("_") and name != "pipeline":
            parameters = self.estimator.get_params(deep=False)
            if name.endswith("_") or name in parameters:
                return getattr(self.estimator, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        learnt = (name for name in dir(self.estimator) if name[-1] == "_" and name[0] != "_")
        return sorted({*super().__dir__(), *learnt})

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = self.estimator.__sklearn_tags__()
        return tags

    def __repr__(self) -> str:
        return f"living({self.pipeline!r})"

    # -- inside ------------------------------------------------------------------------------

    def _transformed(self, X: Any) -> Any:
        """X as the last step sees it."""
        return self.pipeline[:-1].transform(X) if len(self.pipeline) > 1 else X

    def model_inputs(self, X: Any) -> tuple[Array, Array | None]:
        """X as the model takes it, (m, d), and its side information: see `LivingEstimator`."""
        inputs: tuple[Array, Array | None] = self.estimator.model_inputs(self._transformed(X))
        return inputs

    def model_groups(self, groups: Any) -> Array | None:
        """The groups of those examples that count: see `LivingEstimator`."""
        names: Array | None = self.estimator.model_groups(groups)
        return names

    def refitted(self, examples: Any, **parameters: Any) -> LivingPipeline:
        """The same earlier steps before another last one: see `LivingEstimator.refitted`."""
        pipeline = copy(self.pipeline)
        name = pipeline.steps[-1][0]
        last = self.estimator.refitted(examples, **parameters)
        pipeline.steps = [*pipeline.steps[:-1], (name, last)]
        return LivingPipeline(pipeline)
