"""Values that nobody means to give, and what may come of them."""

from __future__ import annotations

import warnings

import numpy as np
from scipy import sparse

from knowmore import Grid, KnowmoreError, LinearGPClassifier
from knowmore.linalg import Sums

X = abs(np.random.default_rng(0).normal(size=(12, 3)))
Y = np.arange(12) % 3
GRID = Grid.covering(X)
SUMS = Sums.of(GRID, X, Y)


class Anything:
    """An object that is nothing in particular."""


VALUES = {
    "None": None,
    "True": True,
    "zero": 0,
    "negative": -1,
    "huge": 10**400,
    "float": 0.5,
    "NaN": np.nan,
    "infinity": np.inf,
    "complex": 1 + 2j,
    "text": "text",
    "bytes": b"bytes",
    "NUL": "a\0b",
    "object": Anything(),
    "class": LinearGPClassifier,
    "estimator": LinearGPClassifier(),
    "grid": GRID,
    "sums": SUMS,
    "empty list": [],
    "empty tuple": (),
    "empty dict": {},
    "empty table": np.zeros((0, 3)),
    "no columns": np.zeros((12, 0)),
    "list": X.tolist(),
    "ragged": [[1.0], [2.0, 3.0]],
    "vector": X[:, 0],
    "cube": np.zeros((2, 3, 4)),
    "other width": np.ones((12, 5)),
    "zeros": np.zeros((12, 3)),
    "negatives": -X,
    "huge table": np.full((12, 3), 1e308),
    "tiny table": np.full((12, 3), 5e-324),
    "NaN table": np.full((12, 3), np.nan),
    "infinite table": np.full((12, 3), -np.inf),
    "complex table": X + 1j,
    "list of complex": [[1j, 2, 3]] * 12,
    "objects": X.astype(object),
    "objects and None": np.array([[None, 1.0, 2.0]] * 12, dtype=object),
    "huge integers": np.array([[10**400] * 3] * 12, dtype=object),
    "words": np.array([["a", "b", "c"]] * 12),
    "list of words": ["a", "b", "c"] * 4,
    "mixed list": [1, "a", None] * 4,
    "dates": np.array([["2020-01-01"] * 3] * 12, dtype="M8[D]"),
    "masked": np.ma.masked_greater(X, 1.0),
    "booleans": X > 1,
    "long doubles": X.astype(np.longdouble),
    "half": X.astype(np.float16),
    "unsigned": np.full((12, 3), 2**64 - 1, np.uint64),
    "sparse": sparse.csr_array(X),
    "sparse NaN": sparse.coo_array(np.full((12, 3), np.nan)),
    "labels": Y,
    "lambda": lambda *_: None,
    "ragged objects": np.array([[1.0], [2.0, 3.0]], dtype=object),
    "number in an array": np.array(1.0),
    "records": np.zeros(12, dtype=[("a", float), ("b", int)]),
    "list of None": [None] * 12,
    "unsigned labels": [2**64 - 1] * 12,
    "dict": {"a": 1, 2: None},
    "set": {1, 2},
    "range": range(12),
}


def assert_sound(call):
    """For each value, the call answers with finite numbers or raises an error of the library."""
    wrong = {}
    for name, value in VALUES.items():
        try:
            _assert_sound(call, value)
        except Exception as error:
            wrong[name] = repr(error)
    assert not wrong


def _assert_sound(call, value):
    with warnings.catch_warnings():
        # scikit-learn and knowmore may warn; NumPy must not.
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", FutureWarning)
        try:
            answer = call(value)
        except KnowmoreError:
            return
    if isinstance(answer, np.ndarray) and answer.dtype.kind == "f":
        assert np.isfinite(answer).all()
    if hasattr(answer, "variance") and hasattr(answer, "scores"):
        assert np.isfinite(answer.scores).all()
        assert np.isfinite(answer.variance).all()
