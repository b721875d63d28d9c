"""The passes of the CPU target, in named phases: its table of contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.passes import NORMALISE
from argosy.passes.eliminate_common import EliminateCommon
from argosy.passes.fold_constants import FoldConstants
from argosy.passes.fuse_loops import FuseLoops
from argosy.passes.hoist_constant_steps import HoistConstantSteps
from argosy.passes.lower_einsum import LowerEinsum
from argosy.passes.manager import Phase

__all__ = ["PIPELINE"]

PIPELINE: Final[Sequence[Phase]] = (
    NORMALISE,
    Phase("optimise", (LowerEinsum(), HoistConstantSteps(), FoldConstants(), EliminateCommon())),
    Phase("fuse", (FuseLoops(),)),
)
