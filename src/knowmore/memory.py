"""How much memory there is. Linux hands out more than it has, and kills who uses it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from knowmore.errors import NotEnoughMemory

_UNLIMITED = 2**60


def available_memory() -> int | None:
    """The bytes that can be used now without swapping; None where that cannot be found out."""
    found = [_free_of_machine(), _free_of_container()]
    known = [one for one in found if one is not None]
    return min(known, default=None)


def check_free(needed: int, what: str, remedy: str) -> None:
    """Raise NotEnoughMemory if so many bytes are not free.

    what : a clause on what needs them, which ends before their number
    """
    free = available_memory()
    if free is not None and needed >= free:
        raise NotEnoughMemory(
            f"{what} {needed / 2**30:.1f} GB, but {free / 2**30:.1f} GB of memory are free. "
            f"{remedy} Nothing was changed."
        )


def _free_of_machine() -> int | None:
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "MemAvailable":
                return int(value.split()[0]) * 1024
    return None


def _free_of_container() -> int | None:
    """What the limit of a container leaves, by version two or one of control groups."""
    root = Path("/sys/fs/cgroup")
    for limit, used in (
        (root / "memory.max", root / "memory.current"),
        (root / "memory/memory.limit_in_bytes", root / "memory/memory.usage_in_bytes"),
    ):
        with suppress(OSError, ValueError):
            most = int(limit.read_text())
            if most < _UNLIMITED:
                return max(most - int(used.read_text()), 0)
    return None
