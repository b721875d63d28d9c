"""What a plan demands of sizes that a run knows: the steps that refuse it where they do not fit each other."""

from __future__ import annotations

from collections.abc import Mapping

from argosy.artifact.plan import CheckStep, SizeDemand
from argosy.runtime.buffers import Sizes
from argosy.runtime.host_abi import SHAPES_FAULT, fault_error

__all__ = ["check_demands"]


def check_demands(step: CheckStep, sizes: Sizes, symbols: Mapping[str, int]) -> None:
    """Raise UsageError, naming the node, where a demand does not hold."""
    for demand in step.demands:
        left, right = sizes.number(demand.left, symbols), sizes.number(demand.right, symbols)
        if left != right and not _repeats(demand, left, right):
            sides = zip((demand.left, demand.right), (left, right), strict=True)
            told = ", ".join(f"{side} = {size}" for side, size in sides if isinstance(side, str))
            raise fault_error(SHAPES_FAULT, demand.axis, step.source).advise(f"it read {told}")


def _repeats(demand: SizeDemand, left: int, right: int) -> bool:
    """Whether one of two sizes that differ repeats its only element."""
    match demand.ones:
        case "none":
            return False
        case "left":
            return left == 1
        case "right":
            return right == 1
    return 1 in (left, right) and not (demand.ones == "planned" and 0 in (left, right))
