"""Which products and convolutions can be pipelined, and how: their operands as the copy engine sees them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from argosy.ir import access as maps
from argosy.ir.access import axis_index
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Instruction, Module, Parameter, Value
from argosy.ops.convolution import Conv
from argosy.ops.view import Reshape, Transpose
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.dot_shape import shape_of
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter
from argosy.targets.gpu.codegen.loops import decompose
from argosy.targets.gpu.codegen.pipelined import DEEP, PipelinedTile, pipelined_kernel
from argosy.targets.gpu.codegen.tensor_map import TensorMap
from argosy.targets.gpu.codegen.window import geometry
from argosy.targets.lowering.accesses import DeclinedError, axes_access, present
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["pipelined_convolution", "pipelined_product", "read_whole"]

Order = tuple[int, ...] | None
_FURTHEST = 128
"""How far a window of two inner axes may begin from the image's ends (`cuTensorMapEncodeIm2col`)."""
_LONGEST_STEP = 8


def read_whole(value: Value) -> tuple[Instruction, Order] | None:
    """The parameter that a value shows without a gap, and the order in which its axes must lie for that."""
    while isinstance(value.instruction.op, Reshape):
        value = present(value.instruction, 0)
    op = value.instruction.op
    if isinstance(op, Parameter):
        return value.instruction, None
    if not isinstance(op, Transpose):
        return None
    source = present(value.instruction, 0)
    if not isinstance(source.instruction.op, Parameter):
        return None
    order = op.permutation or tuple(reversed(range(source.rank)))
    return source.instruction, None if order == tuple(range(source.rank)) else order


def _pointer(module: Module, value: Value, orders: Sequence[Order], what: str) -> int:
    """The place of the parameter that a value shows as it lies."""
    found = read_whole(value)
    if found is None:
        raise DeclinedError(f"{what} is computed")
    place = list(module.parameters).index(found[0])
    if orders[place] != found[1]:
        raise DeclinedError(f"{what} lies in another order")
    return place


def _fixed(sizes: Sequence[object]) -> list[int]:
    numbers = [size for size in sizes if isinstance(size, int)]
    if len(numbers) != len(sizes):
        raise DeclinedError("its sizes are symbolic")
    return numbers


def pipelined_product(
    module: Module, anchor: Instruction, orders: Sequence[Order], order: Order, tile: PipelinedTile, programs: int
) -> Kernel:
    """The kernel of a module whose anchor is a `dot` with one right matrix."""
    left, right, result = present(anchor, 0), present(anchor, 1), anchor.result()
    shape = shape_of(anchor)
    if right.rank != 2 or shape.row_axis is None or shape.column_axis is None:
        raise DeclinedError("its right operand is no matrix")
    *batch, high, columns, inner = _fixed((*shape.batch, shape.rows, shape.columns, shape.inner))
    if inner % DEEP:
        raise DeclinedError("steps do not fill its inner axis")
    rows = math.prod(batch) * high
    a, b = _pointer(module, left, orders, "its left operand"), _pointer(module, right, orders, "its right operand")
    writer = KernelWriter(module, orders, (order,))
    column = shape.column_axis

    def body() -> None:
        decompose(writer, "row", (*batch, high))
        writer.text.derive(axis_name(column), "column", "column")
        _finish(writer, result, None)

    return pipelined_kernel(
        writer, tile,
        (TensorMap(a, left.dtype, (rows, inner), (tile.rows, DEEP)), (),
         f"hopper.tma.async_load(map0, [down * {tile.rows}, step * {DEEP}], full.index(slot), a_ring.index(slot))"),
        (TensorMap(b, right.dtype, (inner, columns), ()), f"step * {DEEP}"),
        (rows, columns, inner // DEEP), programs, body, dense=order is None,
    )  # fmt: skip


def pipelined_convolution(
    module: Module, anchor: Instruction, orders: Sequence[Order], order: Order, tile: PipelinedTile, programs: int
) -> Kernel:
    """The kernel of a `conv` of images with channels last, whose weight has its taps outermost."""
    x, weight, result = present(anchor, 0), present(anchor, 1), anchor.result()
    op, window = anchor.op, geometry(anchor)
    if not isinstance(op, Conv) or op.group != 1 or x.rank != 4:
        raise DeclinedError("it is no convolution of images in one group")
    images, channels, *extent = _fixed(x.shape)
    _, columns, *places = _fixed(result.shape)
    taps, before = _fixed(window.kernel), _fixed(window.before)
    if channels % DEEP:
        raise DeclinedError("steps do not fill its channels")
    where: Mapping[Instruction, int] = {each: place for place, each in enumerate(module.parameters)}
    if x.instruction not in where or weight.instruction not in where:
        raise DeclinedError("its operands are computed")
    a, b = where[x.instruction], where[weight.instruction]
    if orders[a] != (0, 2, 3, 1) or orders[b] != (2, 3, 1, 0):
        raise DeclinedError("its channels do not lie last")
    rows, each = images * math.prod(places), channels // DEEP
    plain = taps == [1, 1] and before == [0, 0] and tuple(window.strides) == (1, 1) and places == extent
    if plain:
        image = TensorMap(a, x.dtype, (rows, channels), (tile.rows, DEEP))
        lines: Sequence[str] = ()
        copy = f"hopper.tma.async_load(map0, [down * {tile.rows}, step * {DEEP}], full.index(slot), a_ring.index(slot))"
    else:
        strides, apart = tuple(window.strides), tuple(window.dilations)
        lower = tuple(-pad for pad in before)
        upper = tuple(
            (count - 1) * stride - pad - (size - 1)
            for count, stride, pad, size in zip(places, strides, before, extent, strict=True)
        )
        if max(map(abs, (*lower, *upper))) >= _FURTHEST or max(strides) > _LONGEST_STEP:
            raise DeclinedError("its windows lie too far outside")
        image = TensorMap(a, x.dtype, (images, *extent, channels), (tile.rows, DEEP), (1, *strides, 1), lower, upper)
        down, across = places
        lines = (
            f"place = down * {tile.rows}",
            f"image = place // {down * across}",
            f"top = place // {across} % {down} * {strides[0]} - {before[0]}",
            f"side = place % {across} * {strides[1]} - {before[1]}",
        )
        copy = (
            f"hopper.tma.async_load_im2col(map0, [image, top, side, step % {each} * {DEEP}], "
            f"[(step // {each * taps[1]} * {apart[0]}).to(tl.int16), "
            f"(step // {each} % {taps[1]} * {apart[1]}).to(tl.int16)], full.index(slot), a_ring.index(slot))"
        )
    writer = KernelWriter(module, orders, (order,))

    def body() -> None:
        decompose(writer, "row", (images, 1, *places))
        writer.text.derive(axis_name(1), "column", "column")
        _finish(writer, result, present(anchor, 2) if len(anchor.operands) > 2 else None)

    count = math.prod(taps) * channels
    # One with fewer results than operands follows one with more: it begins with what that wrote last, which is cached.
    return pipelined_kernel(
        writer, tile, (image, lines, copy), (TensorMap(b, weight.dtype, (count, columns), ()), f"step * {DEEP}"),
        (rows, columns, count // DEEP), programs, body, dense=order == (0, 2, 3, 1),
        backwards=channels > columns,
    )  # fmt: skip


def _finish(writer: KernelWriter, result: Value, bias: Value | None) -> None:
    """What follows the sums of a tile, from `acc` to memory."""
    elements, root = writer.elements, writer.module.results[0]
    if root.shape != result.shape:
        raise DeclinedError("its result is moved")
    given = "acc" if result.dtype.compute is FLOAT32 else f"acc.to({scalar.compute_type(result.dtype)})"
    if bias is not None:
        along = axes_access(result.shape, bias.shape, (axis_index(1, result.shape[1]),))
        given = f"{given} + {elements.of(bias, along)}"
    elements.given[result] = elements.let(given)
    place = maps.identity(root.shape)
    writer.store(elements.of(root, place), root.dtype, place)
