"""Whether a file holds what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from knowmore.store.store import Store


def verify(store: Store, fast: bool = False) -> Any:
    """Check a store."""
    raise NotImplementedError
