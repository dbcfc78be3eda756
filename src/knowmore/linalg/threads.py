"""Who uses the cores: BLAS, or we.

NumPy and SciPy each bring an OpenBLAS with threads that wait for each other by spinning. Measured
on two cores: small matrices lose more to a second thread than it gives; a loop that alternates
between the two libraries makes their threads fight (a forward substitution with eleven right-hand
sides at n = 8000 took 480 ms so, and 35 ms with one of them held back); and while another program
takes a core, every product waits for a thread that is not running.

A substitution is a long loop of small products. So it runs on one BLAS thread, and if it is large,
its right-hand sides are shared out among threads of ours, which meet once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from threading import Lock
from typing import Any, final

import numpy as np
import numpy.typing as npt
import scipy.linalg.blas  # noqa: F401  the controller must find SciPy's library loaded
from threadpoolctl import ThreadpoolController

Array = npt.NDArray[Any]

# Fewer multiplications than this take less time than to start a thread and wait for it.
FEW = 10_000_000

_lock = Lock()
_users = 0  # how many blocks hold BLAS to one thread now
_before: list[int] = []  # the setting that the first of them found, for each library


@cache
def _libraries() -> list[Any]:
    found = ThreadpoolController().lib_controllers
    return [library for library in found if library.user_api == "blas"]


@final
class one_thread:  # noqa: N801  it reads as a function, and a generator would be slower
    """Run a block on one BLAS thread; gives the number of threads that were allowed before.

    The setting is the process's, so overlapping users are counted: the first notes what was set,
    the last restores it.
    """

    __slots__ = ()

    def __enter__(self) -> int:
        global _users
        with _lock:
            if _users == 0:
                _before[:] = [library.get_num_threads() for library in _libraries()]
                _set([1] * len(_before))
            _users += 1
            return max(_before, default=1)

    def __exit__(self, *_: object) -> None:
        global _users
        with _lock:
            _users -= 1
            if _users == 0:
                _set(_before)


def _set(threads: list[int]) -> None:
    for library, before, wanted in zip(_libraries(), _before, threads, strict=True):
        if before > 1:
            library.set_num_threads(wanted)


def calm(work: int) -> AbstractContextManager[int | None]:
    """One BLAS thread for a block of so few multiplications that a second one would not help."""
    return one_thread() if work < FEW else nullcontext()


def by_columns(solve: Callable[[Array], object], Y: Array, work: int) -> Array:
    """Let `solve` change all columns of Y (n, m) in place, at the cost of `work` for each."""
    with one_thread() as allowed:
        m = Y.shape[1]
        shares = min(allowed, m) if work * m >= FEW else 1
        if shares == 1:
            solve(Y)
            return Y

        def share(columns: Array) -> None:
            part = np.ascontiguousarray(Y[:, columns[0] : columns[-1] + 1])
            solve(part)
            Y[:, columns[0] : columns[-1] + 1] = part

        with ThreadPoolExecutor(shares) as pool:
            list(pool.map(share, np.array_split(np.arange(m), shares)))
        return Y
