"""How many BLAS threads a piece of work deserves.

NumPy and SciPy each bring an OpenBLAS with a pool of busy-waiting threads of its own. Two things
follow, both measured on two cores. Small matrices lose more to waking a second thread than it
gives. And a loop that alternates between the two libraries makes their threads fight for the same
cores: a panelled forward substitution with eleven right-hand sides took 480 ms so, and 35 ms with
SciPy's library held to one thread. So the large products run in NumPy's library on all threads,
the small triangular solves in SciPy's on one, and work that is small as a whole on one in both.
Products with a single column are as fast as memory is, on one thread as on two. They get one: it
stays fast while another program takes a core, when two would wait for each other.
"""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any, Literal, final

import scipy.linalg.blas  # noqa: F401  the controller must find SciPy's library loaded
from threadpoolctl import ThreadpoolController

# Fewer multiplications than this are faster on one thread. Measured: a solve for ten classes takes
# about the same time on one and on two at twelve hundred examples.
FEW = 10_000_000

Level = Literal["one", "numpy"]

_lock = Lock()
_users: list[Level] = []  # who is at work now
_before: list[int] = []  # the setting that the first of them found, for each library
_now: list[int] = []  # the setting in force


@cache
def _libraries() -> list[Any]:
    found = ThreadpoolController().lib_controllers
    return [library for library in found if library.user_api == "blas"]


@cache
def _is_numpy(i: int) -> bool:
    return "numpy" in str(_libraries()[i].filepath)


def _limit() -> None:
    """Give every library what the strictest of the present users asks for."""
    for i, library in enumerate(_libraries()):
        alone = "one" in _users or (_users and not _is_numpy(i))
        wanted = 1 if alone else _before[i]
        if wanted != _now[i]:
            library.set_num_threads(wanted)
            _now[i] = wanted


@final
class threads_for:  # noqa: N801  it reads as a function, and is one call less than a generator
    """Run the block with the threads that a matrix of `numbers` entries times `columns` deserves.

    The setting is the process's, so overlapping users in several threads are counted: the first
    notes what was set, the last restores it.
    """

    __slots__ = ("_level",)

    def __init__(self, numbers: int, columns: int) -> None:
        few = columns == 1 or numbers * columns < FEW
        self._level: Level = "one" if few else "numpy"

    def __enter__(self) -> None:
        with _lock:
            if not _users:
                _before[:] = _now[:] = [library.get_num_threads() for library in _libraries()]
            _users.append(self._level)
            try:
                _limit()
            except BaseException:
                _users.remove(self._level)
                raise

    def __exit__(self, *_: object) -> None:
        with _lock:
            _users.remove(self._level)
            _limit()
