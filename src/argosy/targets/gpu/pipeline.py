"""The passes of the GPU target, in named phases: its table of contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.options import CompileOptions
from argosy.passes import NORMALISE
from argosy.passes.eliminate_common import EliminateCommon
from argosy.passes.fold_constants import FoldConstants
from argosy.passes.fold_scales import FoldScales
from argosy.passes.fuse_loops import ELEMENTWISE, TRANSFORMS, FuseLoops
from argosy.passes.hoist_constant_steps import HoistConstantSteps
from argosy.passes.lower_einsum import LowerEinsum
from argosy.passes.lower_precision import LowerPrecision
from argosy.passes.lower_quantize import LowerQuantize
from argosy.passes.manager import Phase
from argosy.passes.merge_products import MergeProducts
from argosy.passes.narrow_attention import NarrowAttention
from argosy.passes.pad_channels import PadChannels
from argosy.passes.spell_masks import SpellMasks
from argosy.passes.store_short import StoreShort

__all__ = ["pipeline"]

_SHORT: Final = {"fp16": "float16", "bf16": "bfloat16"}


def pipeline(options: CompileOptions) -> Sequence[Phase]:
    """The phases for some options."""
    phases = [
        NORMALISE,
        Phase("optimise", (LowerEinsum(), HoistConstantSteps(), FoldConstants(), EliminateCommon(), MergeProducts())),
    ]
    quantize = LowerQuantize(exact=options.accuracy == "exact", signed=True)
    phases.append(
        Phase("codes", (quantize, HoistConstantSteps(), FoldConstants(dequantizes=True), EliminateCommon())),
    )
    if options.accuracy != "exact":
        phases.append(Phase("weights", (FoldScales(),)))
    narrow = NarrowAttention(exact=options.accuracy == "exact")
    phases.append(Phase("attention", (narrow, EliminateCommon())))
    if options.precision in _SHORT:
        lower = LowerPrecision(_SHORT[options.precision], codes=True)
        phases.append(Phase("short", (lower, FoldConstants(dequantizes=True), EliminateCommon(), PadChannels())))
    loops = FuseLoops(
        elementwise=ELEMENTWISE | {"frames"}, transforms=TRANSFORMS, rows=True, short_codes=True, places=True
    )
    fuse = Phase("fuse", (SpellMasks(), loops))
    if options.precision not in _SHORT:
        return (*phases, fuse)
    return (*phases, fuse, Phase("stores", (StoreShort(_SHORT[options.precision]),)))
