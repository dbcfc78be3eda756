"""Tasks run once each, wait for those before them, and pass on the first error."""

from __future__ import annotations

import time
from threading import Barrier, Lock, get_ident

import numpy as np
import pytest
from alone import assert_runs
from threadpoolctl import threadpool_info, threadpool_limits

from knowmore.linalg import tasks
from knowmore.linalg.tasks import in_turn, side_by_side, workers
from knowmore.linalg.threads import FEW


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


def test_every_step_runs_once_and_after_those_that_it_waits_for():
    ran, lock = [], Lock()

    def step(i, ended):
        ended(i - 1)
        with lock:
            ran.append(i)

    for threads in (1, 2, 3, 50):
        ran.clear()
        in_turn(step, 20, threads)
        assert ran == list(range(20))


def test_two_threads_are_at_work_at_once_with_one_blas_thread_each():
    meet, seen = Barrier(2), set()

    def work(part):
        meet.wait(60)
        seen.add(get_ident())
        return part**2, {info["num_threads"] for info in threadpool_info() if "numpy" in str(info)}

    assert side_by_side(work, [3, 4]) == [(9, {1}), (16, {1})]
    assert len(seen) == 2


def test_the_first_error_is_raised_and_who_waits_is_let_go():
    def step(i, ended):
        if i == 1:
            time.sleep(0.01)
            raise ValueError("second")
        ended(i - 1)
        if i > 2:
            raise AssertionError("a step after the one that failed")

    with pytest.raises(ValueError, match="second"):
        in_turn(step, 9, 3)


def test_an_interrupt_ends_all():
    def step(i, ended):
        if i == 4:
            raise KeyboardInterrupt
        ended(i - 1)

    with pytest.raises(KeyboardInterrupt):
        in_turn(step, 100, 2)


@pytest.mark.slow
def test_ctrl_c_is_never_lost_and_nobody_waits_for_ever():
    script = """
import random, signal, time
from knowmore.linalg.tasks import in_turn
def interrupted(*_):
    raise KeyboardInterrupt
def step(i, ended):
    ended(i - 1)
    time.sleep(0.0003)
signal.signal(signal.SIGALRM, interrupted)
chance, count = random.Random(1), 0
for _ in range(800):
    try:
        signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-4, 6e-3))
        in_turn(step, 8, 3)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        count += 1
    signal.setitimer(signal.ITIMER_REAL, 0)
assert count > 100, count
"""
    assert_runs(script)


def test_without_more_threads_one_does_it_all(monkeypatch):
    def full(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(tasks, "start_new_thread", full)
    assert side_by_side(lambda part: -part, [1, 2, 3]) == [-1, -2, -3]


def test_small_work_and_single_columns_are_worth_one_thread():
    assert [workers(10, 2), workers(FEW, 1), workers(FEW, 2)] == [1, 1, 2]
    with threadpool_limits(1, user_api="blas"):
        assert workers(FEW, 2) == 1


def test_no_parts_have_no_results():
    assert side_by_side(np.sum, []) == []
