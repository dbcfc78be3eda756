"""Threads, forks and Ctrl-C: nothing waits for ever, nothing is left half done."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from alone import assert_runs

from knowmore._base import cached_property, uninterrupted

# The parent's other thread is held inside `kernel` while it forks; the child does all of it again.
FORKED = """
import os, signal, sys, threading
import numpy as np
from sklearn.gaussian_process.kernels import RBF
from knowmore import EigenspaceLDA, EigenspacePCA, GPClassifier, LSSVMClassifier
inside, leave = threading.Event(), threading.Event()
main, calls = threading.get_ident(), []
pid = os.getpid()

def kernel(A, B):
    if os.getpid() == pid and threading.get_ident() != main:
        calls.append(1)
    if len(calls) == CALL and os.getpid() == pid:
        inside.set()
        leave.wait()
    return RBF(1.0)(A, B)

rng = np.random.default_rng(0)
X, y = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)

def everything():
    for kind in (GPClassifier, LSSVMClassifier):
        clf = kind(kernel)
        clf.add(X, y)
        clf.remove([3]).predict(X)
        clf.leave_one_out()
    EigenspacePCA().partial_fit(X).partial_fit(X).transform(X)
    EigenspaceLDA().partial_fit(X, y).partial_fit(X, y).predict(X)

other = threading.Thread(target=WORK)
other.start()
inside.wait()
child = os.fork()
if child == 0:
    signal.alarm(100)
    everything()
    os._exit(0)
_, status = os.waitpid(child, 0)
leave.set()
other.join()
sys.exit(status)
"""

# What the other thread does, and at which call of the kernel it is held.
IN_THE_OTHER_THREAD = {
    "a first add": ("lambda: GPClassifier(kernel).add(X, y)", 1),
    "a fit": ("lambda: GPClassifier(kernel).fit(X, y)", 1),
    "a derived value": ("lambda: GPClassifier(kernel).fit(X, y)", 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("work", IN_THE_OTHER_THREAD)
def test_a_child_forked_during_work_of_another_thread_does_not_hang(work):
    act, call = IN_THE_OTHER_THREAD[work]
    assert_runs(FORKED.replace("WORK", act).replace("CALL", str(call)))


FORKED_AT_EVERY_STEP = """
import os, signal, sys, threading
import numpy as np
from sklearn.gaussian_process.kernels import RBF
from knowmore import GPClassifier
rng = np.random.default_rng(0)
X, y = rng.normal(size=(30, 3)), rng.integers(0, 3, 30)
GPClassifier(RBF(1.0)).fit(X, y).remove([3]).predict(X)
done = threading.Event()

def edit():
    clf = GPClassifier(RBF(1.0)).fit(X, y)
    while not done.is_set():
        clf.remove(clf.add(X[:2], y[:2])).predict(X[:1])

sys.setswitchinterval(1e-5)
others = [threading.Thread(target=edit) for _ in range(3)]
for each in others:
    each.start()
bad = 0
for _ in range(40):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        clf = GPClassifier(RBF(1.0)).fit(X[:9], y[:9])
        clf.remove(clf.add(X[:2], y[:2])).predict(X[:1])
        os._exit(0)
    bad |= os.waitpid(child, 0)[1]
done.set()
sys.exit(bad)
"""


@pytest.mark.slow
def test_a_child_forked_at_any_moment_of_other_threads_edits_does_not_hang():
    assert_runs(FORKED_AT_EVERY_STEP)


def test_work_goes_on_when_its_caller_is_interrupted():
    script = """
import signal, time
from knowmore._base import uninterrupted
done = []
def work():
    for i in range(20):
        time.sleep(0.01)
    done.append(True)
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    uninterrupted(work)
    raise SystemExit("nothing was interrupted")
except KeyboardInterrupt:
    assert not done
uninterrupted(lambda: None)
time.sleep(0.5)
assert done
"""
    assert_runs(script)


def test_what_the_work_raises_is_raised():
    with pytest.raises(ZeroDivisionError):
        uninterrupted(lambda: 1 // 0)


def test_a_cached_property_is_kept_and_blocks_nobody():
    both = Barrier(2, timeout=60)

    class Value:
        @cached_property
        def slow(self):
            both.wait()
            return object()

    one, other = Value(), Value()
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda value: value.slow, [one, other])
    assert one.slow is first
    assert other.slow is second
    assert isinstance(Value.slow, cached_property)
