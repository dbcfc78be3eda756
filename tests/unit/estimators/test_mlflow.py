"""MLflow keeps a model in the format of skops, and serves it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from knowmore import ForestGPClassifier, GPClassifier, GPRegressor, LinearGPClassifier, living

mlflow = pytest.importorskip(
    "mlflow.sklearn", reason="needs mlflow 3, in an environment of its own"
)
pytest.importorskip("skops", reason="needs skops")

X = np.random.default_rng(0).normal(size=(60, 3))
Y = np.where(X[:, 0] > 0, "yes", "no")
# MLflow reports what it does not find, and what it will do another day.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize(
    "model",
    [
        GPClassifier().fit(X, Y),
        GPRegressor().fit(X, X[:, 0]),
        ForestGPClassifier(capacity=16).fit(X, Y),
        LinearGPClassifier().fit(X, Y),
        make_pipeline(StandardScaler(), GPClassifier()).fit(X, Y),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_come_back(model, tmp_path):
    path, skops = tmp_path / "model", pytest.importorskip("skops.io")
    trusted = skops.get_untrusted_types(data=skops.dumps(model))
    mlflow.save_model(
        model,
        path,
        serialization_format="skops",
        skops_trusted_types=trusted,
        pip_requirements=["knowmore"],
    )
    found = mlflow.load_model(str(path))
    assert np.array_equal(found.predict(X), model.predict(X))
    served = pytest.importorskip("mlflow.pyfunc").load_model(str(path))
    assert np.array_equal(served.predict(X), model.predict(X))
    if hasattr(model, "steps"):
        assert living(found).remove(0).ids_.tolist() == [*range(1, 60)]
