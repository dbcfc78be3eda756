"""How long a new process takes to be of use."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.scene import Scale
from benchmarks.table import Benchmark, Row, Target
from benchmarks.timing import interleaved

_FIT = """from knowmore import GPClassifier
import numpy as np
X = np.random.default_rng(0).normal(size=(300, 5))
GPClassifier().fit(X, np.arange(300) % 3).predict(X[:1])"""
_ESTIMATORS, _FIRST = "import sklearn.gaussian_process", "import, a first fit, a first question"

_BOUNDS = {
    "import knowmore": 1.0,
    "from knowmore import GPClassifier": 1.0,
    "knowmore --help": 0.7,
}


def starts(scale: Scale) -> Iterator[Row]:
    """Each command in turn, in its own process; the first round fills the file cache."""
    program = str(Path(sys.executable).with_name("knowmore"))
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        # Every scikit-learn estimator has to wait for its base class.
        "import sklearn.base": [sys.executable, "-c", "import sklearn.base"],
        "import knowmore": [sys.executable, "-c", "import knowmore"],
        "from knowmore import GPClassifier": [
            sys.executable,
            "-c",
            "from knowmore import GPClassifier",
        ],
        _ESTIMATORS: [sys.executable, "-c", _ESTIMATORS],
        _FIRST: [sys.executable, "-c", _FIT],
        "knowmore --help": [program, "--help"],
    }
    failures = {name: why for name in commands if (why := _failure(commands[name]))}
    working = {name: command for name, command in commands.items() if name not in failures}
    times = interleaved(
        scale.starts,
        {name: partial(_failure, command) for name, command in working.items()},
    )
    for name in commands:
        target = Target("<", _BOUNDS[name]) if name in _BOUNDS else None
        if name in failures:
            yield Row(name, target=target, note=f"failed: {failures[name]}")
        else:
            samples = times[name]
            note = f"best {samples.best:.3g} s"
            yield Row(name, samples.median, target=target, note=note, raw=samples.raw())
    if not {_ESTIMATORS, _FIRST} & set(failures):
        beyond = times[_FIRST].median - times[_ESTIMATORS].median
        name = f"{_FIRST}: beyond {_ESTIMATORS}"
        yield Row(name, beyond, target=Target("<=", 1.2))


def _failure(command: list[str]) -> str:
    """Run it; the last line that it said if it failed, else nothing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return (done.stderr.strip() or "no word").splitlines()[-1] if done.returncode else ""


BENCHMARKS: list[Benchmark] = [starts]
