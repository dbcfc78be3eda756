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

import os
from functools import cache
from threading import get_ident
from typing import Any, Literal, final

import scipy.linalg.blas  # noqa: F401  the controller must find SciPy's library loaded
from threadpoolctl import ThreadpoolController

from knowmore.concurrency import moment

# Fewer multiplications than this are faster on one thread. Measured: a solve for ten classes takes
# about the same time on one and on two at twelve hundred examples.
FEW = 10_000_000

Level = Literal["one", "numpy"]

_users: dict[int, tuple[Level, int]] = {}  # who is at work now: what they asked for, their thread
_before: list[int] = []  # the setting that the first of them found, for each library
_now: list[int | None] = []  # the setting in force, None while it is being changed


@cache
def _libraries() -> list[Any]:
    found = ThreadpoolController().lib_controllers
    return [library for library in found if library.user_api == "blas"]


@cache
def _is_numpy(i: int) -> bool:
    return "numpy" in str(_libraries()[i].filepath)


def _limit(but: int | None = None) -> None:
    """Give every library what the strictest of the users asks for, `but` one."""
    levels = [level for user, (level, _) in _users.items() if user != but]
    for i, library in enumerate(_libraries()):
        alone = "one" in levels or (levels and not _is_numpy(i))
        wanted = 1 if alone else _before[i]
        if wanted != _now[i]:
            _now[i] = None
            library.set_num_threads(wanted)
            _now[i] = wanted


@final
class threads_for:  # noqa: N801  it reads as a function, and is one call less than a generator
    """Run the block with the threads that a matrix of `numbers` entries times `columns` deserves.

    The setting is the process's, so overlapping users in several threads are counted: the first
    notes what was set, the last restores it. A user that Ctrl-C cut off at the door, before the
    block or behind it, is counted no longer than it lives.
    """

    __slots__ = ("_level",)

    def __init__(self, numbers: int, columns: int) -> None:
        few = columns == 1 or numbers * columns < FEW
        self._level: Level = "one" if few else "numpy"

    def __enter__(self) -> None:
        try:
            with moment:
                if not _users:
                    _before[:] = [library.get_num_threads() for library in _libraries()]
                    _now[:] = _before
                _users[id(self)] = self._level, get_ident()
                _limit()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        with moment:
            if id(self) in _users:
                # In this order: cut off in between, it is still there to be cleared away.
                _limit(but=id(self))
                del _users[id(self)]

    def __del__(self) -> None:
        if id(self) in _users:
            self.__exit__()


def _alone() -> None:
    """In a forked child the other threads, and their users, are no more."""
    gone = [user for user, (_, thread) in _users.items() if thread != get_ident()]
    for user in gone:
        del _users[user]
    if gone:
        _limit()


os.register_at_fork(after_in_child=_alone)
