"""Ctrl-C at any inner call of a process's first edit: nothing is stuck, nothing is wrong."""

from __future__ import annotations

import pytest
from alone import assert_runs

pytestmark = pytest.mark.slow

SETTING = """
import os, pickle, signal, sys, traceback
from copy import deepcopy
import numpy as np
assert "numba" not in sys.modules
rng = np.random.default_rng(0)
X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
"""
REMOVAL = """
from sklearn.gaussian_process.kernels import RBF
from knowmore import GPClassifier
settings = {"noise": float(sys.argv[1])}

def fitted(keep):
    return GPClassifier(RBF(0.7), **settings).fit(X[keep], y[keep], np.flatnonzero(keep))

everything = np.ones(40, bool)
without = everything.copy()
without[[3, 20]] = False
batch = {True: fitted(everything), False: fitted(without)}

def start():
    return fitted(everything)

def act(clf):
    clf.remove([3, 20])
    clf.decision_function(X)

def check(clf):
    want = batch[len(clf.ids_) == 40]
    K = RBF(0.7)(X) + settings["noise"] * np.eye(40)
    near = 100 * np.finfo(float).eps * np.linalg.cond(K)
    for each in (clf, deepcopy(clf), pickle.loads(pickle.dumps(clf))):
        assert set(each.ids_) == set(want.ids_)
        assert abs(each.decision_function(X) - want.decision_function(X)).max() <= near
        assert abs(each.predict_variance(X) - want.predict_variance(X)).max() <= near
        each.leave_one_out(), each.log_marginal_likelihood(), each.predict_proba(X)
        assert each.residual() <= near
    clf.remove([5]).add(X[5:6], y[5:6], ids=[5])
    assert abs(clf.decision_function(X) - want.decision_function(X)).max() <= near
"""
SUMS = """
from knowmore import LinearGPClassifier

def start():
    return LinearGPClassifier(float(sys.argv[1]))

def act(clf):
    clf.fit(X.astype("f4"), y)
    clf.forget(X[:5].astype("f4"), y[:5])
    clf.decision_function(X)

def check(clf):
    everything = start().fit(X.astype("f4"), y)
    some = start().set_params(resolution=everything.grid_).fit(X[5:].astype("f4"), y[5:])
    if hasattr(clf, "model_"):
        want = everything if clf.n_samples_ == 40 else some
        for each in (clf, deepcopy(clf), pickle.loads(pickle.dumps(clf))):
            assert each.digest() == want.digest()
            assert (each.decision_function(X) == want.decision_function(X)).all()
    assert clf.fit(X.astype("f4"), y).digest() == everything.digest()
    assert clf.forget(X[:5].astype("f4"), y[:5]).digest() == some.digest()
"""
# Each trial is a child of its own, for only one edit of a process is its first.
TRIALS = """
class Interrupt:
    def __init__(self, step):
        self.step, self.calls = step, 0

    def __call__(self, frame, event, _):
        if event == "call" and frame.f_code.co_name != "__del__":
            self.calls += 1
            if self.calls == self.step:
                sys.setprofile(None)
                raise KeyboardInterrupt

def trial(step):
    # What the steps are counted over: the edit and the first question after it.
    clf, interrupt = start(), Interrupt(step)
    try:
        sys.setprofile(interrupt)
        act(clf)
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return clf, interrupt.calls

def timed(seconds):
    clf = start()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        act(clf)
    except KeyboardInterrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return clf, 0

def in_a_child(act):
    child = os.fork()
    if child == 0:
        try:
            clf, calls = act()
            check(clf)
            os._exit(min(calls // 10, 250))
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(255)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert 0 <= code < 255, act
    return 10 * code

calls = in_a_child(lambda: trial(10**9))
assert calls > 100
# The first trial filled numba's cache. Later ones load from it.
for step in sorted({1, *np.linspace(3, calls, int(sys.argv[2])).astype(int)}):
    in_a_child(lambda: trial(step))
for seconds in map(float, sys.argv[3:]):
    in_a_child(lambda: timed(seconds))
"""


# With so little noise as in the second the removal is not put off until the question.
@pytest.mark.parametrize(
    ("noise", "steps", "seconds"), [(0.1, 4, (0.02, 0.15, 0.4)), (1e-13, 2, ())]
)
def test_an_interrupt_at_any_call_of_the_first_removal_leaves_nothing_stuck(
    noise, steps, seconds, tmp_path
):
    env = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert_runs(SETTING + REMOVAL + TRIALS, noise, steps, *seconds, env=env)


def test_an_interrupt_at_any_call_of_the_first_sums_leaves_nothing_stuck():
    assert_runs(SETTING + SUMS + TRIALS, 0.1, 2, 0.15)
