"""Scripts in processes of their own: for what happens once in a process, or ends it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import knowmore


def run(script, *arguments, **settings):
    """The script run to its end; `env` is added to a bare environment."""
    environment = {
        "OMP_NUM_THREADS": "1",
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(knowmore.__file__).parents[1]),
    }
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        env=environment | settings.pop("env", {}),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        **settings,
    )


def assert_runs(script, *arguments, **settings):
    """The script ends well; what it printed."""
    done = run(script, *arguments, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
