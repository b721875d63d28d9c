"""How much memory a plan takes, without running it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from argosy.artifact.arena import Placement, place
from argosy.artifact.decode import Decoder, decode_symbols
from argosy.artifact.lifetimes import Lifetime, lifetimes
from argosy.artifact.plan import LaunchStep, PlanRecord, steps_in
from argosy.artifact.program import LiteralRef
from argosy.errors import InternalError
from argosy.ir.literal import Literal
from argosy.runtime.body import Body
from argosy.runtime.buffers import BufferTable, Sizes
from argosy.runtime.layout import Holdings

__all__ = ["DEVICE_ALIGNMENT", "PlannedMemory"]

DEVICE_ALIGNMENT: Final = 256
"""Bytes to a multiple of which buffers in the memory of a device are aligned."""


class PlannedMemory:
    """The arena of a plan. `symbols` are the names of those on which it depends."""

    def __init__(self, plan: PlanRecord, where: str) -> None:
        decoder = Decoder(plan.modules, decode_symbols(plan.symbols), _no_weight, where)
        table = BufferTable(plan, decoder, Sizes(decoder, where), where)
        given = [binding.buffer for binding in plan.inputs]
        kept = [binding.buffer for binding in plan.outputs]
        self._table = table
        self._body: Body | None = None
        self._lives: dict[int, Lifetime] = {}
        if any(isinstance(step, LaunchStep) for step in steps_in(plan.body)):
            # On a device inputs lie in the arena, too.
            lives = lifetimes(plan.buffers, plan.body, given, kept)
            self._lives = {root: life for root, life in lives.items() if table[root].kind == "planned" or root in given}
            needed = frozenset[str]().union(*(table.room_symbols(root) for root in self._lives))
            self.symbols = tuple(sorted(needed - table.late))
        else:
            holdings = Holdings(None, {}, [None] * len(plan.buffers))
            self._body = Body(plan.body, plan.buffers, table, decoder, holdings, where, given=given, kept=kept)
            self.symbols = tuple(self._body.symbols)

    def placement(self, symbols: Mapping[str, int]) -> Placement:
        """The arena for these values of the symbols."""
        if self._body is not None:
            return self._body.placement(symbols)
        sizes = [self._table.bytes(root, symbols) for root in self._lives]
        lives = self._lives.values()
        return place(sizes, [life.start for life in lives], [life.end for life in lives], DEVICE_ALIGNMENT)


def _no_weight(ref: LiteralRef) -> Literal:
    raise InternalError(f"the weight {ref.sha256} was asked for, and nothing is run")
