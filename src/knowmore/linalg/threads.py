"""The number of BLAS threads for a piece of work.

NumPy and SciPy each bring an OpenBLAS with a pool of busy-waiting threads of its own. Two things
follow, both measured on two cores. Small matrices lose more to waking a second thread than it
gives. And a loop that alternates between the two libraries makes their threads fight for the same
cores: a panelled forward substitution with eleven right-hand sides took 480 ms, and 35 ms with
SciPy's library held to one thread. So the large products run in NumPy's library on all threads,
the small triangular solves in SciPy's on one, and work that is small as a whole on one in both.
Products with a single column are bound by memory, on one thread as on two. They get one: that stays
fast while another program takes a core, when two would wait for each other.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from threading import get_ident
from typing import Any, final

import scipy.linalg.blas  # noqa: F401  the controller must find SciPy's library loaded
from threadpoolctl import ThreadpoolController

from knowmore._base import moment

# Fewer multiplications than this are faster on one thread. Measured: a solve for ten classes takes
# about the same time on one and on two at twelve hundred examples.
FEW = 10_000_000
# Fewer than this OpenBLAS itself leaves to one thread.
TINY = 9_000

_users: dict[int, tuple[bool, int]] = {}  # blocks that run now: whether on one thread, and whose
_before: list[int] = []  # the setting that the first of them found, for each library
_now: list[int | None] = []  # the setting in force, None while it is being changed


@cache
def _libraries() -> list[tuple[Callable[[], int], Callable[[int], object], bool]]:
    """The BLAS libraries: how their threads are read and set, and whether it is NumPy's."""
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return [(*_doors(library), "numpy" in str(library.filepath)) for library in found]


def _doors(library: Any) -> tuple[Callable[[], int], Callable[[int], object]]:
    """OpenBLAS's own functions: a controller looks them up at every call.

    And it sets nothing for any other thread than the first that did. Here users are counted.
    """
    get, change = library.get_num_threads, library.set_num_threads
    if getattr(library, "threading_layer", "") == "pthreads":
        name = "{}openblas_{}_num_threads{}".format
        before, after = (getattr(library, f"_symbol_{part}", "") for part in ("prefix", "suffix"))
        get = getattr(library.dynlib, name(before, "get", after), get)
        change = getattr(library.dynlib, name(before, "set", after), change)
    return get, change


def blas_threads() -> int:
    """The number of threads for NumPy's products now."""
    return max((get() for get, _, is_numpy in _libraries() if is_numpy), default=1)


def _limit(but: int | None = None) -> None:
    """Set every library to what the strictest of the users, `but` one, asks for."""
    single = [one for user, (one, _) in _users.items() if user != but]
    strict = any(single)
    for i, (_, change, is_numpy) in enumerate(_libraries()):
        wanted = 1 if strict or (single and not is_numpy) else _before[i]
        if wanted != _now[i]:
            _now[i] = None
            change(wanted)
            _now[i] = wanted


@final
class threads_for:  # noqa: N801  it reads as a function, and is one call less than a generator
    """Run the block with the threads for a matrix of `numbers` entries times `columns`.

    The setting is the process's, so overlapping users in several threads are counted: the first
    saves the setting, the last restores it. A user that Ctrl-C interrupts while it enters or leaves
    the block is counted until its object is deleted.
    """

    __slots__ = ("_single",)

    def __init__(self, numbers: int, columns: int) -> None:
        self._single = columns == 1 or numbers * columns < FEW

    def __enter__(self) -> None:
        try:
            with moment:
                if not _users:
                    _before[:] = [get() for get, _, _ in _libraries()]
                    _now[:] = _before
                _users[id(self)] = self._single, get_ident()
                _limit()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        with moment:
            if id(self) in _users:
                # In this order: if it is interrupted in between, __del__ still finds it.
                _limit(but=id(self))
                del _users[id(self)]
        # Python swallows a Ctrl-C that arrives in a finaliser: who has left needs none.
        self.__class__ = _Left  # type: ignore[assignment]

    def __del__(self) -> None:
        if id(self) in _users:
            self.__exit__()


class _Left:
    """A user that has left its block, without a finaliser."""

    __slots__ = threads_for.__slots__


def _forget_other_threads() -> None:
    """Forget the users of other threads, which a forked child does not have."""
    gone = [user for user, (_, thread) in _users.items() if thread != get_ident()]
    for user in gone:
        del _users[user]
    if gone:
        _limit()


os.register_at_fork(after_in_child=_forget_other_threads)
