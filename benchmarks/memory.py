"""The child process that grows a model and says how much memory it took at most.

`python -m benchmarks.memory N STEP`: N examples, STEP at a time; prints bytes above the baseline.
"""

from __future__ import annotations

import resource
import sys
from pathlib import Path

from benchmarks.scene import NOISE, data, kernel
from knowmore import GPClassifier


def peak() -> int:
    """The most memory this process ever held, in bytes.

    The kernel hands a parent's `ru_maxrss` down to its children, so a small child of a large
    process would seem large from the start; `VmHWM` is the same count for this program alone.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main(n: int, step: int) -> None:
    """Grow, ask one question, and print the growth of the peak."""
    X, y = data(n)
    question = data(1, seed=3)[0]
    before = peak()
    clf = GPClassifier(kernel(), NOISE).fit(X[:step], y[:step])
    for begin in range(step, n, step):
        clf.add(X[begin : begin + step], y[begin : begin + step])
        _ = clf.model_
    clf.predict(question)
    print(peak() - before)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
