"""The steps that solutions over blocked images share: their operands as images, packed weights, the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from argosy.ir.dtype import DTYPES, UINT8
from argosy.ir.module import Module, Parameter, Value
from argosy.ir.types import TensorType
from argosy.targets.cpu.codegen.blocked_elements import Image, images_of
from argosy.targets.cpu.codegen.channel_gather import first_of_blocks, gather_channels, gathers_channels
from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.codegen.part import Part, part_of
from argosy.targets.cpu.codegen.reorder import from_blocked, image_shape, to_blocked, to_planar
from argosy.targets.cpu.layout import Blocked, Planar
from argosy.targets.cpu.solution import Steps

__all__ = [
    "BYTES",
    "blocked_images",
    "finish",
    "image",
    "packed",
    "packed_bias",
    "planar_image",
    "preferred_image",
    "preferred_source",
    "read_images",
]

BYTES: Final = (UINT8, DTYPES["int8"])


def preferred_image(part: Part, given: Value | None, index: int) -> Blocked | None:
    """The bare layout, where parameter `index` of the op is read in its own axes as a blocked image."""
    if index not in part.parameters:
        return None
    axes = images_of(part.module, given).get(part.parameters.index(index))
    rank = part.module.results[0].rank
    kind = part.module.parameters[part.parameters.index(index)].result().dtype
    return Blocked.bare(rank - 2, kind) if axes == tuple(range(rank)) else None


def preferred_source(module: Module, value: Value, index: int, need: Blocked | Planar) -> Blocked | Planar | None:
    """The layout for parameter `index` where it is `value`, which must cover `need`, or its channels are."""
    if module.parameters[index].result() == value:
        return need
    part = part_of(module, [value])
    if isinstance(need, Blocked) and index in part.parameters and gathers_channels(part.module):
        return need if first_of_blocks(part.module) is not None else Blocked.bare(value.rank - 2, value.dtype)
    return None


def image(
    steps: Steps, module: Module, value: Value, need: Blocked, layouts: Sequence[Blocked | None]
) -> tuple[int, Blocked]:
    """A value of an op as a blocked image that covers `need`: the buffer and its layout.

    `layouts` are those in which parameters lie already.
    """
    if isinstance(value.instruction.op, Parameter):
        return steps.blocked(module.parameters.index(value.instruction), need)
    part = part_of(module, [value])
    if any(layouts[index] for index in part.parameters) and gathers_channels(part.module):
        reads, sources = [], {}
        for number, index in enumerate(part.parameters):
            buffer, layout = steps.blocked(index, Blocked.bare(value.rank - 2, value.dtype))
            sources[f"x{number}"] = layout
            reads.append(buffer)
        if first_of_blocks(part.module) is not None and layout.covers(need):
            need = layout  # so that it is a piece of the operand
        made = steps.temporary(need.kind(value.shape))
        steps.call(gather_channels(part.module, sources, need), reads, [made])
        return made, need
    return packed(steps, part, to_blocked(part.module, need), need.kind(value.shape)), need


def planar_image(steps: Steps, module: Module, value: Value, need: Planar) -> int:
    """The buffer of a value of an op as a planar image; without a halo that is the operand itself."""
    if need.is_bare and isinstance(value.instruction.op, Parameter):
        return steps.operand(module.parameters.index(value.instruction))
    part = part_of(module, [value])
    return packed(steps, part, to_planar(part.module, need), need.kind(value.shape))


def packed(steps: Steps, part: Part, kernel: Kernel, kind: TensorType) -> int:
    """The buffer of what a kernel makes of a part of an op: made once where it comes from weights alone."""
    reads = [steps.operand(index) for index in part.parameters]
    if all(steps.is_weight(index) for index in part.parameters):
        return steps.prepared(kernel, reads, kind)
    buffer = steps.temporary(kind)
    steps.call(kernel, reads, [buffer])
    return buffer


def packed_bias(steps: Steps, module: Module, bias: Value, rank: int) -> int:
    """The buffer of a value for each channel in blocks."""
    part = part_of(module, [bias])
    axes = (None, 0, *(None,) * (rank - 2))
    layout = Blocked.bare(rank - 2)
    return packed(steps, part, to_blocked(part.module, layout, axes), layout.kind(image_shape(bias.shape, axes)))


def blocked_images(steps: Steps, part: Part, given: Value | None) -> tuple[list[int], dict[str, Image]]:
    """The buffers of a part's parameters, and how those that must be blocked are read, by pointer."""
    return read_images(steps, part, images_of(part.module, given))


def read_images(
    steps: Steps, part: Part, wanted: Mapping[int, tuple[int | None, ...]]
) -> tuple[list[int], dict[str, Image]]:
    """Like `blocked_images`, for the parameters `wanted` blocked: their numbers in the part, and their axes."""
    reads, images = [], {}
    for number, index in enumerate(part.parameters):
        if number in wanted:
            axes = wanted[number]
            kind = part.module.parameters[number].result().dtype
            buffer, layout = steps.blocked(index, Blocked.bare(len(axes) - 2, kind), axes)
            images[f"x{number}"] = Image(axes, layout)
        else:
            buffer = steps.operand(index)
        reads.append(buffer)
    return reads, images


def finish(steps: Steps, module: Module, kernel: Kernel, reads: Sequence[int], layout: Blocked) -> None:
    """Call a kernel that writes a blocked result; it is taken back to row-major order where no reader wants it so."""
    if steps.wanted() is not None:
        steps.call(kernel, reads, [steps.blocked_result(layout)])
        return
    result = module.results[0]
    buffer = steps.temporary(layout.kind(result.shape))
    steps.call(kernel, reads, [buffer])
    steps.call(from_blocked(result.tensor, layout), [buffer], [steps.result()])
