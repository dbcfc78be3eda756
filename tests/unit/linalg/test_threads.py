"""One place decides who uses the cores, and puts back what was there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, get_ident

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from knowmore.linalg.threads import FEW, by_columns, calm, one_thread


def counts():
    pools = [info for info in threadpool_info() if info["user_api"] == "blas"]
    return {info["filepath"]: info["num_threads"] for info in pools}


def test_one_thread_is_one_in_all_libraries():
    with threadpool_limits(2, user_api="blas"):
        before = counts()
        with one_thread() as allowed:
            assert allowed == 2
            assert set(counts().values()) == {1}
            with one_thread():
                assert set(counts().values()) == {1}
            assert set(counts().values()) == {1}
        assert counts() == before


def test_only_little_work_is_calmed():
    with threadpool_limits(2, user_api="blas"):
        with calm(FEW - 1):
            assert set(counts().values()) == {1}
        with calm(FEW):
            assert set(counts().values()) == {2}


def test_it_is_restored_after_an_error():
    before = counts()
    with pytest.raises(RuntimeError, match="inside"), one_thread():
        raise RuntimeError("inside")
    assert counts() == before


def test_overlapping_users_restore_the_first_setting():
    with threadpool_limits(2, user_api="blas"):
        before = counts()
        meet = Barrier(4)

        def work(_):
            for _ in range(50):
                meet.wait()
                with one_thread():
                    pass

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(work, range(4)))
        assert counts() == before


@pytest.mark.parametrize(("work", "threads"), [(1, 1), (FEW, 2)])
def test_columns_are_shared_out_if_there_is_much_to_do(work, threads):
    seen = []

    def solve(part):
        assert part.flags.c_contiguous
        seen.append((get_ident(), part.shape))
        part += 1

    with threadpool_limits(2, user_api="blas"):
        Y = by_columns(solve, np.zeros((3, 5)), work)
    assert (Y == 1).all()
    assert sorted(shape for _, shape in seen) == ([(3, 5)] if threads == 1 else [(3, 2), (3, 3)])


def test_an_error_in_a_share_is_raised():
    def solve(part):
        raise RuntimeError("in a share")

    before = counts()
    with pytest.raises(RuntimeError, match="in a share"), threadpool_limits(2, user_api="blas"):
        by_columns(solve, np.zeros((3, 5)), FEW)
    assert counts() == before
