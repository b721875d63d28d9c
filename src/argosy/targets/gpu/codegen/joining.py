"""Concatenations and splits: each operand goes to its part of the result, each piece comes from its part."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.ir import access as maps
from argosy.ir.access import Access
from argosy.ir.dim import DimLike, ceildiv
from argosy.ir.module import Instruction, Module, Parameter, Value
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.loops import decompose

__all__ = ["place_kernel", "take_kernel"]

Order = tuple[int, ...] | None
_BLOCK = 1024


def place_kernel(part: TensorType, whole: TensorType, axis: int, start: DimLike, order: Order, target: Order) -> Kernel:
    """Copies a tensor to its place along an axis of a larger one. `order` and `target` are how the two lie."""
    starts: list[DimLike] = [0] * len(part.shape)
    starts[axis] = start
    place = maps.slice_by(whole.shape, part.shape, starts, [1] * len(starts))
    return _copy(part, part.shape, maps.identity(part.shape), place, order, target)


def take_kernel(piece: Value, whole: TensorType, access: Access, order: Order, target: Order) -> Kernel:
    """Copies a part of a tensor, read by `access`, to one of its own."""
    return _copy(whole, piece.shape, access, maps.identity(piece.shape), order, target)


def _copy(
    kind: TensorType, extents: Sequence[DimLike], read: Access, place: Access, order: Order, target: Order
) -> Kernel:
    parameter = Instruction(Parameter(kind), (), (kind,), (None,), ("x",))
    module = Module("copy", (parameter,), (), (parameter.result(),), ("y",))
    writer = KernelWriter(module, (order,), (target,))
    text, elements = writer.text, writer.elements
    count = product(tuple(extents))
    text.wide = text.wide or writer.is_large(place.source, kind.dtype)
    writer.lanes = ("i",)
    text.root("i", f"{writer.program()} * {_BLOCK} + tl.arange(0, {_BLOCK})")
    text.line(f"inside = i < {text.dim(count)}")
    elements.masks.append(("inside", text.roots["i"]))
    decompose(writer, "i", extents, target if target is not None else order)
    writer.store(elements.of(parameter.result(), read), kind.dtype, place)
    return writer.kernel(Launch((ceildiv(count, _BLOCK), 1, 1), 4)).labelled("place")
