"""What a rewrite did and why it did not do more: the rules that fired and those that declined, by node."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from argosy.ir.module import Instruction

__all__ = ["Event", "Trace", "node_name"]


@dataclass(frozen=True, slots=True)
class Event:
    """A rule met a node: it fired, or it declined for `reason`."""

    rule: str
    node: str
    reason: str = ""

    @property
    def fired(self) -> bool:
        """Whether the rule replaced the node."""
        return not self.reason

    def __str__(self) -> str:
        return f"{self.node}: {self.rule} declined: {self.reason}" if self.reason else f"{self.node}: {self.rule}"


class Trace:
    """Collects events while rules run; an equal event is kept once.

    The rules in `without` are left out. With a `limit`, only as many rules fire, counted from the start.
    """

    def __init__(self, without: Collection[str] = (), limit: int | None = None) -> None:
        self._events: dict[Event, None] = {}
        self._without = without
        self._limit = limit
        self._firings: list[Event] = []

    def allows(self, rule: str) -> bool:
        """Whether a rule may fire now."""
        return rule not in self._without and (self._limit is None or len(self._firings) < self._limit)

    @property
    def firings(self) -> tuple[Event, ...]:
        """Every time that a rule has replaced something, in order: of equal events each."""
        return tuple(self._firings)

    def add(self, event: Event) -> None:
        """Note an event."""
        self._events.setdefault(event)
        if event.fired:
            self._firings.append(event)

    @property
    def fired(self) -> tuple[Event, ...]:
        """Rules that replaced something, in order."""
        return tuple(event for event in self._events if event.fired)

    @property
    def declined(self) -> tuple[Event, ...]:
        """Rules whose pattern matched and that declined, with their reasons, in order."""
        return tuple(event for event in self._events if not event.fired)


def node_name(instruction: Instruction) -> str:
    """How a message names an instruction: the node it came from, else its op and first result's name."""
    if instruction.source:
        return instruction.source
    named = next((name for name in instruction.names if name), "")
    return f"{instruction.op.name} → {named!r}" if named else instruction.op.name
