"""Settings of the whole suite."""

from __future__ import annotations

import os
from contextlib import contextmanager

# The suite already runs one process per core. Set before NumPy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings
from slow import slow_items

settings.register_profile(
    "knowmore", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("knowmore")


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the tests marked slow, too")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow(fast): runs with --slow only; see tests/slow.py")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave the slow tests out, unless --slow or a name (`file.py::test`) asks for them."""
    if config.getoption("--slow") or any("::" in argument for argument in config.args):
        return
    slow = set(slow_items(items))
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in slow]


@pytest.fixture
def little_room():
    """`with little_room(n)`: no file can grow beyond n bytes. Writers meet it as a full disk."""
    resource = pytest.importorskip("resource", reason="needs limits of Unix")

    @contextmanager
    def limited(most):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    return limited
