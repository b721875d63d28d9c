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
from argosy.passes.group_queries import GroupQueries
from argosy.passes.hoist_constant_steps import HoistConstantSteps
from argosy.passes.lower_einsum import LowerEinsum
from argosy.passes.lower_precision import LowerPrecision
from argosy.passes.lower_quantize import LowerQuantize
from argosy.passes.manager import Phase
from argosy.targets.cpu.arch import CpuArch

__all__ = ["PIPELINE", "pipeline"]

PIPELINE: Final[Sequence[Phase]] = (
    NORMALISE,
    Phase("optimise", (LowerEinsum(), HoistConstantSteps(), FoldConstants(), EliminateCommon())),
    Phase(
        "precision",
        (LowerQuantize(), HoistConstantSteps(), FoldConstants(dequantizes=True), EliminateCommon()),
    ),
    Phase("weights", (FoldScales(),)),
    Phase("fuse", (GroupQueries(), FuseLoops())),
)


_SHORT: Final = {"fp16": "float16", "bf16": "bfloat16"}


def pipeline(options: CompileOptions, arch: CpuArch) -> Sequence[Phase]:
    """The phases for some options and a level.

    Exact sums are rounded where the model says, exact quotients are divided. A short precision is that of weights, and
    of all that products read where the level multiplies it faster.
    """
    phases = list(PIPELINE)
    if options.accuracy == "exact":
        phases = [
            replace(
                phase,
                passes=tuple(LowerQuantize(exact=True) if p.name == "lower_quantize" else p for p in phase.passes),
            )
            for phase in phases
            if phase.name != "weights"
        ]
    if options.precision in _SHORT:
        pairs = options.precision == "bf16" and (arch.gains("avx512bf16") or arch.gains("bf16"))
        lower = LowerPrecision(_SHORT[options.precision], weights_only=not pairs)
        phases.insert(len(phases) - 1, Phase("short", (lower, FoldConstants(dequantizes=True), EliminateCommon())))
    return phases
