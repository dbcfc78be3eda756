"""Compiled code loads whole or not at all, and without a cache where there can be none."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from alone import assert_runs, run

import knowmore
from knowmore._base import compiled

SOURCE = Path(knowmore.__file__).parent

FORGET = """
import numpy as np, sys
import knowmore
assert knowmore.__file__.startswith(sys.argv[1]), knowmore.__file__
from knowmore import GPClassifier
from knowmore.kernels import HistogramIntersection
rng = np.random.default_rng(0)
X, y = rng.uniform(size=(40, 5)), rng.integers(0, 3, 40)
for kernel in (None, HistogramIntersection()):
    clf = GPClassifier(kernel).fit(X, y).remove([3, 7])
    print(clf.predict(X[:5]), clf.leave_one_out().predicted[:5])
"""


def installed(folder):
    """A copy of the package in a folder, without what Python and numba left beside it."""
    leave = shutil.ignore_patterns("__pycache__")
    shutil.copytree(SOURCE, folder / "knowmore", ignore=leave)
    return folder


def without_privilege():
    """Permissions bind root too from here on: CAP_DAC_OVERRIDE is dropped from what it may have."""
    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)


@pytest.mark.slow
def test_a_read_only_installation_without_a_home_forgets_too(tmp_path):
    folder = installed(tmp_path / "installed")
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    bound = {"cwd": folder, "preexec_fn": without_privilege if os.geteuid() == 0 else None}
    env = {"PYTHONPATH": str(folder), "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    if run("open('written', 'w')", env=env, **bound).returncode == 0:
        pytest.skip("nothing is read-only to this user")
    assert_runs(FORGET, folder, env=env, **bound)
    assert not list(folder.rglob("*.nb*"))


@pytest.mark.slow
def test_a_damaged_cache_is_ignored(tmp_path):
    folder = installed(tmp_path / "installed")
    env = {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    first = assert_runs(FORGET, folder, env=env)
    files = list((tmp_path / "cache").rglob("*.nb*"))
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[:100])
    assert assert_runs(FORGET, folder, env=env) == first


def test_what_fails_without_a_cache_too_is_raised():
    def trial(function):
        raise OSError("no room on the disk")

    with pytest.raises(OSError, match="no room"):
        compiled(trial, lambda x: x)


@pytest.mark.parametrize("char", ["d", "f"])
def test_a_deletion_compiles_nothing_beyond_the_trial(char):
    from knowmore.linalg import Cholesky
    from knowmore.linalg.sweep import sweep

    loops = vars(sweep(np.dtype(char))).values()
    before = [loop.signatures for loop in loops]
    A = np.eye(300) + 1
    factor = Cholesky(np.dtype(char)).append(np.empty((0, 300)), A)
    factor.delete(np.array([5])).delete(np.arange(3, 40)).delete(np.array([0, 200]))
    assert [loop.signatures for loop in loops] == before
    assert [len(each) for each in before] == [1] * len(loops)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_histogram_kernels_compile_nothing_beyond_the_trial(dtype):
    from scipy.sparse import csr_array

    from knowmore.kernels import ChiSquared, HistogramIntersection
    from knowmore.kernels.histograms import _loop

    X = np.random.default_rng(0).uniform(size=(70, 3)).astype(dtype)
    for kernel in (HistogramIntersection(), ChiSquared()):
        for table in (X, X[:, :1], csr_array(X), np.asfortranarray(X)):
            kernel(table), kernel(table, table[:2]), kernel(table[:2], table)
    for is_sparse in (False, True):
        assert len(_loop(is_sparse, np.dtype(dtype)).signatures) == 1
