"""Memory that runs out: told by the edit, which changes nothing, or by a question, once."""

from __future__ import annotations

import numpy as np
import pytest
from alone import assert_runs
from sklearn.gaussian_process.kernels import RBF

from knowmore import GPClassifier

# Edits under a real limit, one after the other, until one is refused; then questions.
SCRIPT = """
import pickle, resource, sys
import numpy as np
from sklearn.gaussian_process.kernels import RBF
from knowmore import GPClassifier
from knowmore.errors import NotEnoughMemory

def used():
    pages = int(open("/proc/self/statm").read().split()[0])
    return pages * resource.getpagesize()

def limit(more):
    size = resource.RLIM_INFINITY if more is None else used() + more
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))

rng = np.random.default_rng(0)
X, y = rng.normal(size=(3000, 5)), rng.integers(0, 3, 3000)
clf = GPClassifier(RBF(1.0), 0.1, solver=sys.argv[1]).fit(X[:700], y[:700])
clf.remove([3])                     # what is compiled is there
clf.predict(X[:10])
limit(60 * 2**20)
refused = None
EDITS
assert isinstance(refused, NotEnoughMemory), refused
assert "There is not enough memory to apply this edit" in str(refused)
held = clf.ids_.tolist()
for _ in range(2):
    clf.predict(X[:10])
    clf.leave_one_out() if sys.argv[1] == "inverse" else clf.predict_variance(X[:10])
    scores = clf.decision_function(X[:10])
    assert clf.ids_.tolist() == held
limit(None)
rows = clf.model_.examples
want = GPClassifier(RBF(1.0), 0.1, solver=sys.argv[1]).fit(rows.X, rows.labels)
error = abs(scores - want.decision_function(X[:10])).max()
assert error <= 4 * np.finfo(float).eps * len(held) / 0.1 * len(held), error
pickle.dumps(clf)
"""

ONE_LARGE_ADD = """
try:
    clf.add(X[700:], y[700:])
except MemoryError as error:
    refused = error
assert len(clf.ids_) == 699
"""

MANY_SMALL_ADDS = """
for i in range(700, 3000, 20):
    try:
        clf.add(X[i : i + 20], y[i : i + 20])
    except MemoryError as error:
        refused = error
        break
assert 699 <= len(clf.ids_) < 2999
"""

ADDS_AND_REMOVALS = """
for i in range(700, 3000, 20):
    try:
        clf.add(X[i : i + 20], y[i : i + 20])
        clf.remove([i - 690, i - 685])
    except MemoryError as error:
        refused = error
        break
assert 699 <= len(clf.ids_) < 2999
"""


@pytest.mark.slow(fast=["inverse"])
@pytest.mark.parametrize(
    ("solver", "edits"),
    [
        ("cholesky", ONE_LARGE_ADD),
        ("cholesky", MANY_SMALL_ADDS),
        ("cholesky", ADDS_AND_REMOVALS),
        ("inverse", ADDS_AND_REMOVALS),
    ],
    ids=["one large add", "many small adds", "adds and removals", "inverse"],
)
def test_an_edit_that_there_is_no_memory_for_is_refused_and_questions_go_on(solver, edits):
    assert_runs(SCRIPT.replace("EDITS", edits), solver)


QUESTION = """
import resource
import numpy as np
from sklearn.gaussian_process.kernels import RBF
from knowmore import GPClassifier
from knowmore.errors import NotEnoughMemory
rng = np.random.default_rng(0)
X, y = rng.normal(size=(3000, 5)), rng.integers(0, 3, 3000)
clf = GPClassifier(RBF(1.0), 0.1).fit(X[:500], y[:500])
clf.predict(X[:10])
clf.add(X[500:2500], y[500:2500])
# Another part of the process takes it all, even the reserve.
clf._living.reserve.clear()
pages = int(open("/proc/self/statm").read().split()[0])
size = pages * resource.getpagesize() + 20 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
try:
    clf.predict(X[:10])
    raise SystemExit("there was memory")
except NotEnoughMemory as error:
    assert "There is not enough memory to bring the model up to date" in str(error), error
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert len(clf.predict(X[:10])) == 10
assert len(clf.ids_) == 2500
"""


@pytest.mark.slow
def test_a_question_that_there_is_no_memory_for_says_so_and_is_answered_later():
    assert_runs(QUESTION)


MANY_ROWS = """
import resource, sys
import numpy as np
from sklearn.gaussian_process.kernels import RBF
from knowmore import GPClassifier
from knowmore.errors import NotEnoughMemory
rng = np.random.default_rng(0)
X, y = rng.normal(size=(9000, 5)), rng.integers(0, 3, 9000)
clf = GPClassifier(RBF(1.0), 0.1, solver=sys.argv[1]).fit(X[:1000], y[:1000])
want = clf.predict_proba(X[:10])
pages = int(open("/proc/self/statm").read().split()[0])
size = pages * resource.getpagesize() + 5 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
for ask in (clf.predict, clf.predict_proba, clf.decision_function, clf.predict_variance):
    try:
        ask(X)
        raise SystemExit("there was memory")
    except NotEnoughMemory as error:
        assert "There is not enough memory to answer for these rows" in str(error), error
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
assert (clf.predict_proba(X[:10]) == want).all()
"""


@pytest.mark.slow(fast=1)
@pytest.mark.parametrize("solver", ["cholesky", "inverse"])
def test_a_question_about_more_rows_than_there_is_memory_for_says_so(solver):
    assert_runs(MANY_ROWS, solver)


def test_deferred_work_has_memory_reserved_until_it_is_done():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2000, 3)), rng.integers(0, 2, 2000)
    clf = GPClassifier(RBF(1.0), 0.1).fit(X[:10], y[:10])
    clf.add(X[10:20], y[10:20])
    assert reserved(clf) == 0  # too little to matter
    clf.add(X[20:1200], y[20:1200])
    assert reserved(clf) >= 4 * 1200**2
    clf.add(X[1200:], y[1200:])
    assert reserved(clf) >= 4 * 2000**2
    clf.predict(X[:1])
    assert reserved(clf) == 0


def reserved(clf):
    return sum(block.nbytes for block in clf._living.reserve)
