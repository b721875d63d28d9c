"""The kernel that checks demands on sizes before an op runs: one for all programs, the demands are its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.ir.dim import DimLike
from argosy.ops.demands import BOTH, Demand
from argosy.targets.cpu.codegen.kernel import ENTRY, Kernel

__all__ = ["DEMAND_CHECK", "demand_words"]

_PLANNED: Final = 4
"""Beside the sides that may be 1: that neither size was known."""

DEMAND_CHECK: Final = Kernel(
    f"""\
ARGOSY_EXPORT void {ENTRY}(const void *params, int64_t chunk, int64_t chunks, void *scratch) {{
  (void)chunk, (void)chunks;
  const int64 *demand = (const int64 *)params + 1;
  for (int64 left = ARGOSY_SYMBOL(params, 0); left > 0; --left, demand += 4) {{
    if (demand[0] == demand[1]) continue;
    /* Where only the run knows both sizes, 0 and 1 do not fit: the result was planned as the larger one. */
    const bool planned = demand[3] & {_PLANNED} && demand[0] * demand[1] == 0;
    if (!planned && ((demand[3] & 1 && demand[0] == 1) || (demand[3] & 2 && demand[1] == 1))) continue;
    argosy_fail(scratch, ARGOSY_SHAPES, demand[2] - 1);
  }}
}}
""",
    (),
    1,
    label="check_sizes",
)
"""Reads their number, and for each the two sizes, its axis plus 1, and which of them may be 1."""


def demand_words(demands: Sequence[Demand]) -> list[DimLike]:
    """What the kernel reads, none of it negative."""
    words: list[DimLike] = [len(demands)]
    for demand in demands:
        sides = (demand.left, demand.right)
        planned = _PLANNED if demand.spreads == BOTH and not any(isinstance(side, int) for side in sides) else 0
        words += [*sides, demand.axis + 1, demand.spreads + planned]
    return words
