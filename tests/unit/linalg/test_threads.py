"""BLAS threads are decided in one place, which restores the earlier number."""

from __future__ import annotations

import re
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from knowmore._base import moment
from knowmore.linalg.threads import FEW, threads_for


def counts():
    """Threads of the libraries that do the work; others, as OpenCV's, may be loaded later on."""
    return {
        info["filepath"]: info["num_threads"]
        for info in threadpool_info()
        if info["user_api"] == "blas"
        and {"numpy", "scipy"} & set(re.split(r"\W", info["filepath"]))
    }


def test_small_work_runs_on_one_thread_and_large_work_on_numpy_s():
    with threadpool_limits(2, user_api="blas"):
        before = counts()
        with threads_for(10, 2):
            assert set(counts().values()) == {1}
        with threads_for(FEW, 2):
            now = counts()
            assert {now[path] for path in now if "numpy" in path} == {2}
            assert {now[path] for path in now if "numpy" not in path} == {1}
            with threads_for(10, 2):
                assert set(counts().values()) == {1}
            assert counts() == now
        assert counts() == before


def test_a_single_column_runs_on_one_thread():
    with threadpool_limits(2, user_api="blas"), threads_for(FEW, 1):
        assert set(counts().values()) == {1}


def test_it_is_restored_after_an_error():
    before = counts()
    with pytest.raises(RuntimeError, match="inside"), threads_for(10, 2):
        raise RuntimeError("inside")
    assert counts() == before


def test_overlapping_users_restore_the_first_setting():
    with threadpool_limits(2, user_api="blas"):
        before = counts()
        meet = Barrier(4)

        def work(numbers):
            for _ in range(50):
                meet.wait()
                with threads_for(numbers, 2):
                    pass

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, [10, FEW, 10, FEW]))
        assert counts() == before


class InterruptAt:
    """Raises KeyboardInterrupt at the `step`-th line of the two doors of `threads_for`."""

    def __init__(self, step):
        self.step, self.lines = step, 0

    def __call__(self, frame, event, _):
        if frame.f_code not in (threads_for.__enter__.__code__, threads_for.__exit__.__code__):
            return None
        # The line on which a function begins, at its call, is where Python looks for signals.
        self.lines += event in ("call", "line")
        if self.lines == self.step:
            sys.settrace(None)
            raise KeyboardInterrupt
        return self


def test_an_interrupt_at_any_line_gives_the_threads_back():
    with threadpool_limits(2, user_api="blas"):
        before = counts()
        for step in range(1, 1000):
            interrupt, traced = InterruptAt(step), sys.gettrace()
            try:
                sys.settrace(interrupt)
                with threads_for(10, 2):
                    pass
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(traced)
                # A trace cuts off a `with` before it lets go of a lock, where no signal arrives.
                while moment._is_owned():
                    moment.release()
            assert counts() == before, step
            with threads_for(10, 2):
                assert set(counts().values()) == {1}
            assert counts() == before, step
            if interrupt.lines < step:
                break
        assert step > 12


def test_no_finaliser_runs_where_ctrl_c_would_be_swallowed():
    called = []

    def note(frame, event, _):
        called.append((event, frame.f_code.co_name))

    traced = sys.getprofile()
    sys.setprofile(note)
    try:
        with threads_for(10, 2):
            pass
    finally:
        sys.setprofile(traced)
    assert ("call", "__exit__") in called
    assert ("call", "__del__") not in called


def test_a_user_that_was_cut_off_does_not_hold_up_the_others():
    with threadpool_limits(2, user_api="blas"):
        before = counts()
        lost = threads_for(10, 2)
        lost.__enter__()
        with threads_for(FEW, 2):
            assert set(counts().values()) == {1}
        del lost
        assert counts() == before
