"""Requests that the schema allows, and others, are answered: nothing fails inside."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from sklearn.gaussian_process.kernels import RBF
from studied import enter, studying

import knowmore
from knowmore import GPClassifier

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")
# Server-sent events do not end; they are asked for beside this.
ENDLESS = {"/events"}
SETTINGS = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[*HealthCheck],
)


@pytest.fixture(scope="module")
def visitor(tmp_path_factory):
    path = tmp_path_factory.mktemp("studio") / "plane.km"
    X = np.random.default_rng(0).uniform(-1, 1, (20, 2))
    with knowmore.open(path, GPClassifier(RBF(0.4), noise=0.05)) as store:
        store.add(X, np.where(X[:, 0] > 0, "a", "b"), contributor="ann")
    with studying(path) as door:
        yield enter(door)


@pytest.mark.slow(fast=1)
@pytest.mark.parametrize("mode", ["POSITIVE", "NEGATIVE"])
def test_nothing_fails_inside(visitor, mode):
    where = f"http://127.0.0.1:{visitor.door.port}"
    own = {"Cookie": visitor.cookie, "Origin": where}
    schema = schemathesis.openapi.from_dict(visitor.get("/openapi.json"))
    schema.config.base_url = where
    asked = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path in ENDLESS:
            continue
        cases = operation.as_strategy(generation_mode=schemathesis.GenerationMode[mode])

        @SETTINGS
        @given(cases)
        def answered(case):
            answer = case.call(headers=own, timeout=30)
            assert answer.status_code < 500, (answer.text, case.as_curl_command())
            asked.add(case.path)

        # What takes nothing cannot be asked wrongly.
        with suppress(Unsatisfiable):
            answered()
    told = {one for one in visitor.get("/openapi.json")["paths"] if one not in ENDLESS}
    assert asked == told if mode == "POSITIVE" else asked <= told
    assert visitor.get("/api/state")["n"] >= 0
