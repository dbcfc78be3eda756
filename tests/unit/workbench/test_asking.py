"""Questions about the examples of an open model."""

from __future__ import annotations

import numpy as np

import knowmore
from knowmore import LinearGPClassifier
from knowmore.insight import suspects
from knowmore.workbench import asking


def test_weights_of_a_linear_model_in_a_file_are_those_of_its_rows(tmp_path):
    """Weights were lost: rows counted as rows of weight one, and were refused or misjudged."""
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(50, 3)), rng.uniform(0.5, 4, 50)
    y = (X[:, 0] > 0).astype(int)
    y[4] = 1 - y[4]
    ids = [f"row {i}" for i in range(50)]
    want = suspects(LinearGPClassifier().fit(X, y, weights, ids=ids))
    with knowmore.open(tmp_path / "m.km", LinearGPClassifier()) as store:
        store.add(X, y, ids, weights)
        found, kept = asking.open_suspects(store)
        np.testing.assert_array_equal(found.ids, want.ids)
        np.testing.assert_array_equal(found.doubts, want.doubts)
        assert kept == 0
        assert asking.evaluate(store).counts.sum() == 50
