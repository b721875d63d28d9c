"""Decorator registries that find their entries by folder.

A registry is a table from key to entry. Entries register themselves by a decorator; the modules that
hold them are imported on first use by walking one package, so that there is no central list to edit.
"""

from __future__ import annotations

import importlib
import pkgutil
import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

from argosy.errors import InternalError

__all__ = ["Registry", "did_you_mean"]

K = TypeVar("K")
V = TypeVar("V")


def did_you_mean(word: str, known: list[str]) -> str:
    """`did you mean 'x'?` for the nearest known word, or an empty string."""
    import difflib  # noqa: PLC0415 - only a mistake gets here

    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    if not near:
        folded = {name.lower(): name for name in known}
        near = [folded[name] for name in difflib.get_close_matches(word.lower(), list(folded), n=1, cutoff=0.6)]
    return f"did you mean {near[0]!r}?" if near else ""


class Registry(Generic[K, V]):
    """A table that fills itself from the modules of `package` when it is first read."""

    def __init__(self, noun: str, package: str) -> None:
        self._noun = noun
        self._package = package
        self._entries: dict[K, V] = {}
        self._loaded = False
        self._lock = threading.RLock()

    def add(self, key: K, entry: V) -> None:
        """Register `entry`; a second entry under the same key is a defect."""
        if key in self._entries and self._entries[key] is not entry:
            raise InternalError(f"{self._noun} {key!r} is registered twice", where=self._package)
        self._entries[key] = entry

    def load(self) -> None:
        """Import every module of the package once."""
        if self._loaded:
            return
        with self._lock:
            if self._loaded:
                return
            package = importlib.import_module(self._package)
            for found in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"{self._package}.{found.name}")
            self._loaded = True

    def get(self, key: K) -> V | None:
        """The entry under `key`, or None."""
        self.load()
        return self._entries.get(key)

    def items(self) -> Iterator[tuple[K, V]]:
        """All entries, in no particular order."""
        self.load()
        return iter(list(self._entries.items()))

    def walk(self) -> Iterator[tuple[K, V]]:
        """All entries, module by module in the order of their names; each is imported when its turn comes.

        Who finds what he looks for in the first pays for no other.
        """
        seen: set[K] = set()
        names = [found.name for found in pkgutil.iter_modules(importlib.import_module(self._package).__path__)]
        for name in sorted(names):
            importlib.import_module(f"{self._package}.{name}")
            here = f"{self._package}.{name}"
            entries = list(self._entries.items())
            for key, entry in entries:
                if key not in seen and f"{getattr(entry, '__module__', here)}.".startswith(f"{here}."):
                    seen.add(key)
                    yield key, entry
        yield from ((key, entry) for key, entry in self.items() if key not in seen)

    def __contains__(self, key: object) -> bool:
        self.load()
        return key in self._entries
