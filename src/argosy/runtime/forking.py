"""What must be put right in a forked child: other threads are gone there, and so is what they had borrowed."""

from __future__ import annotations

import os
from typing import Any, Final, Protocol
from weakref import WeakSet

__all__ = ["Survivor", "survive_forks"]


class Survivor(Protocol):
    """Something with locks or threads."""

    def after_fork(self) -> None:
        """Called in the child: make new locks, forget threads."""
        ...


_SURVIVORS: Final[WeakSet[Any]] = WeakSet()


def survive_forks(survivor: Survivor) -> None:
    """Call `survivor.after_fork` in every forked child, as long as it lives."""
    _SURVIVORS.add(survivor)


def _in_child() -> None:
    for survivor in list(_SURVIVORS):
        survivor.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
