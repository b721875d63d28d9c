"""The passes of the CPU target, in named phases: its table of contents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from argosy.options import CompileOptions
from argosy.passes import NORMALISE
from argosy.passes.eliminate_common import EliminateCommon
from argosy.passes.fold_constants import FoldConstants
from argosy.passes.fold_scales import FoldScales
from argosy.passes.fuse_loops import FuseLoops
from argosy.passes.hoist_constant_steps import HoistConstantSteps
from argosy.passes.lower_einsum import LowerEinsum
from argosy.passes.lower_quantize import LowerQuantize
from argosy.passes.manager import Phase

__all__ = ["PIPELINE", "pipeline"]

PIPELINE: Final[Sequence[Phase]] = (
    NORMALISE,
    Phase("optimise", (LowerEinsum(), HoistConstantSteps(), FoldConstants(), EliminateCommon())),
    Phase(
        "precision",
        (LowerQuantize(), HoistConstantSteps(), FoldConstants(dequantizes=True), EliminateCommon()),
    ),
    Phase("weights", (FoldScales(),)),
    Phase("fuse", (FuseLoops(),)),
)


def pipeline(options: CompileOptions) -> Sequence[Phase]:
    """The phases for some options: exact sums are rounded where the model says, exact quotients are divided."""
    if options.accuracy != "exact":
        return PIPELINE
    return [
        replace(
            phase, passes=tuple(LowerQuantize(exact=True) if p.name == "lower_quantize" else p for p in phase.passes)
        )
        for phase in PIPELINE
        if phase.name != "weights"
    ]
