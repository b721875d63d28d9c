"""Emitters of views whose places only the run knows, and of repetition and reversal."""

from __future__ import annotations

from argosy.ir import dim as dims
from argosy.ir.access import Access, identity
from argosy.ir.dim import DimLike
from argosy.ir.module import Instruction
from argosy.ops.joining import Tile
from argosy.ops.shapes import normalize_axis
from argosy.ops.signal import Frames
from argosy.ops.slicing import ReverseSequence, Slice
from argosy.ops.view import Broadcast
from argosy.rewrite.view_chain import view_access
from argosy.targets.cpu.codegen.element import Elements, element
from argosy.targets.cpu.codegen.result_sizes import frame_entries, slice_entries
from argosy.targets.lowering.accesses import axes_access, broadcast_access, op_of, present


@element("slice")
def _slice(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, Slice)
    x, result = present(instruction, 0), instruction.result()
    known = view_access(instruction)
    if known is not None:
        return elements.of(x, elements.compose(access, known))
    text = elements.text
    starts, _, steps = slice_entries(elements, instruction, op)
    indices: list[DimLike] = []
    for index, start, step, size in zip(identity(result.shape).indices, starts, steps, x.shape, strict=True):
        if step == 1 and start == 0:
            indices.append(index)
            continue
        first = elements.local(f"slice_first({text.dim(start)}, {text.dim(step)}, {text.dim(size)})")
        indices.append(first + step * index)
    return elements.of(x, elements.compose(access, axes_access(result.shape, x.shape, indices)))


@element("broadcast")
def _broadcast(elements: Elements, instruction: Instruction, access: Access) -> str:
    op_of(instruction, Broadcast)
    x = present(instruction, 0)
    return elements.of(x, broadcast_access(x, instruction.result(), access))


@element("tile")
def _tile(elements: Elements, instruction: Instruction, access: Access) -> str:
    op_of(instruction, Tile)
    x, result = present(instruction, 0), instruction.result()
    indices = [
        index if dims.equal(size, whole) else dims.mod(index, dims.dim_max(size, 1))
        for index, size, whole in zip(identity(result.shape).indices, x.shape, result.shape, strict=True)
    ]
    return elements.of(x, elements.compose(access, axes_access(result.shape, x.shape, indices)))


@element("reverse_sequence")
def _reverse_sequence(elements: Elements, instruction: Instruction, access: Access) -> str:
    op = op_of(instruction, ReverseSequence)
    x, lengths = present(instruction, 0), present(instruction, 1)
    batch, time = normalize_axis(op.batch_axis, x.rank), normalize_axis(op.time_axis, x.rank)
    length = elements.of(lengths, axes_access(access.extents, lengths.shape, [access.indices[batch]]))
    step = elements.position(access.indices[time])
    size = elements.text.dim(x.shape[time])
    backwards = elements.local(f"reversed_step({step}, (int64){length}, {size}, scratch)", 0)
    indices = list(identity(x.shape).indices)
    indices[time] = backwards
    return elements.of(x, elements.compose(access, axes_access(x.shape, x.shape, indices)))


@element("frames")
def _frames(elements: Elements, instruction: Instruction, access: Access) -> str:
    op, x, result = op_of(instruction, Frames), present(instruction, 0), instruction.result()
    _, step = frame_entries(elements, instruction, op)
    batch, frame, place, part = identity(result.shape).indices
    indices = [batch, frame * step + place if not isinstance(frame, int) else step * frame + place, part]
    return elements.of(x, elements.compose(access, axes_access(result.shape, x.shape, indices)))
