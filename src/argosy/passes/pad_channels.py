"""Convolutions of images with few channels, an odd number, read images and weights padded with zeros to some more.

    conv(x, w)   =   conv(pad(x), pad(w))

Where channels lie last, three short floats to a pixel can be read only one by one; four are one load. What makes the
image short anyway writes the zeros along, and weights are padded once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from argosy.ir.builder import Builder
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.convolution import Conv
from argosy.ops.slicing import Pad
from argosy.passes.manager import PassContext, register_pass

__all__ = ["PadChannels"]

_FEW: Final = 16
_TOGETHER: Final = 4
_WIDTH: Final = 16
"""Bits of the elements that are too short to be read alone."""


@register_pass
@dataclass(frozen=True, slots=True)
class PadChannels:
    """Pad the channels of images to a multiple of four where they are few and their number is odd, but not one."""

    name = "pad_channels"

    def run(self, module: Module, context: PassContext) -> Module:
        """The module with its convolutions on padded images."""
        del context
        missing = {each: count for each in module.instructions if (count := _missing(each))}
        if not missing:
            return module
        builder, values = Builder(module.name), dict[Value, Value]()
        padded: dict[tuple[Value, int], Value] = {}
        for parameter in module.parameters:
            values[parameter.result()] = builder.adopt(parameter)
        for instruction in module.instructions:
            operands = [None if operand is None else values[operand] for operand in instruction.operands]
            if count := missing.get(instruction, 0):
                for place in (0, 1):
                    value = operands[place]
                    if value is not None and (value, count) not in padded:
                        pad = Pad("constant", (0, count), (1,))
                        padded[value, count] = builder.add(pad, value, source=instruction.source)
                    operands[place] = padded[value, count] if value is not None else None
            for old, new in zip(instruction.results, builder.keep(instruction, operands), strict=True):
                values[old] = new
        results = [values[value] for value in module.results]
        return builder.module(list(zip(module.result_names, results, strict=True)))


def _missing(instruction: Instruction) -> int:
    """How many channels a convolution wants beside its own; 0 where it is fine, and for other ops."""
    x = instruction.operands[0] if instruction.operands else None
    if not isinstance(instruction.op, Conv) or instruction.op.group != 1 or x is None:
        return 0
    channels = x.shape[1]
    if not isinstance(channels, int) or not 1 < channels < _FEW or channels % 2 == 0:
        return 0
    return -channels % _TOGETHER if x.dtype.is_float and x.dtype.bits == _WIDTH else 0
