"""How much memory a plan takes, without running it."""

from __future__ import annotations

from collections.abc import Mapping

from argosy.artifact.arena import Placement
from argosy.artifact.decode import Decoder, decode_symbols
from argosy.artifact.plan import PlanRecord
from argosy.artifact.program import LiteralRef
from argosy.errors import InternalError
from argosy.ir.literal import Literal
from argosy.runtime.body import Body
from argosy.runtime.buffers import BufferTable, Sizes
from argosy.runtime.layout import Holdings

__all__ = ["PlannedMemory"]


class PlannedMemory:
    """The arena of a plan. `symbols` are the names of those on which it depends."""

    def __init__(self, plan: PlanRecord, where: str) -> None:
        decoder = Decoder(plan.modules, decode_symbols(plan.symbols), _no_weight, where)
        table = BufferTable(plan, decoder, Sizes(decoder, where), where)
        given = [binding.buffer for binding in plan.inputs]
        kept = [binding.buffer for binding in plan.outputs]
        holdings = Holdings(None, {}, [None] * len(plan.buffers))
        self._body = Body(plan.body, plan.buffers, table, decoder, holdings, where, given=given, kept=kept)
        self.symbols = tuple(self._body.symbols)

    def placement(self, symbols: Mapping[str, int]) -> Placement:
        """The arena for these values of the symbols."""
        return self._body.placement(symbols)


def _no_weight(ref: LiteralRef) -> Literal:
    raise InternalError(f"the weight {ref.sha256} was asked for, and nothing is run")
