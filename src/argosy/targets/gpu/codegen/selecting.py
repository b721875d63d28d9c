"""Which elements are selected: counted a block to a program, summed over the blocks, then written in their order.

The prefix sums of Blelloch ("Prefix Sums and Their Applications", 1990), a level for blocks and one for their sums.
"""

from __future__ import annotations

from typing import Final

from argosy.ir import access as maps
from argosy.ir.dim import DimLike, ceildiv, dim_max
from argosy.ir.dtype import INT64
from argosy.ir.module import Instruction, Module, Parameter
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen.faults import Fault
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.loops import decompose
from argosy.targets.lowering.accesses import axes_access
from argosy.targets.lowering.kernel_text import strides_of

__all__ = ["BLOCK", "blocks_of", "coordinates_kernel", "count_kernel", "offsets_kernel", "positions_kernel"]

BLOCK: Final = 1024
"""Flags that a program looks at."""


def blocks_of(flags: TensorType) -> DimLike:
    """How many programs look at the flags."""
    return ceildiv(product(flags.shape), BLOCK)


def _flagged(flags: TensorType, limit: DimLike | None) -> tuple[KernelWriter, str]:
    """A kernel in the making, and its variable that says which elements of a block are selected: those not zero.

    One that is, at or behind `limit`, is a fault.
    """
    flat = flags.with_dims((product(flags.shape),))
    parameter = Instruction(Parameter(flat), (), (flat,), (None,), ("x",))
    writer = KernelWriter(Module("flags", (parameter,), (), (), ()), temporaries=(INT64,))
    text, elements = writer.text, writer.elements
    text.root("i0", f"{writer.program()} * {BLOCK} + tl.arange(0, {BLOCK})")
    text.line(f"inside = i0 < {text.dim(flat.shape[0])}")
    elements.masks.append(("inside", text.roots["i0"]))
    value = elements.of(parameter.result(), maps.identity(flat.shape))
    value = text.let(f"tl.broadcast_to({value}, [{BLOCK}])")
    chosen = text.let(f"inside & ({value} != 0)")
    if limit is not None:
        elements.fault(f"{chosen} & (i0 >= {text.dim(limit)})", Fault.INDEX, "i0")
        chosen = text.let(f"{chosen} & (i0 < {text.dim(limit)})")
    return writer, chosen


def count_kernel(flags: TensorType, limit: DimLike | None = None) -> Kernel:
    """Writes how many elements of each block are selected, as int64."""
    writer, chosen = _flagged(flags, limit)
    writer.text.line(f"tl.store({writer.temporary(0)} + tl.program_id(0), tl.sum({chosen}.to(tl.int64), 0))")
    return writer.kernel(Launch((blocks_of(flags), 1, 1), 4)).labelled("count")


def offsets_kernel(blocks: DimLike) -> Kernel:
    """From the counts of blocks to how many are selected before each, and how many in all. One program."""
    writer = KernelWriter(Module("offsets", (), (), (), ()), temporaries=(INT64,))
    text, counts = writer.text, writer.temporary(0)
    text.wide = True
    limit = text.dim(blocks)
    text.line("total = tl.full([], 0, tl.int64)")
    with text.block(f"for start in range(0, {limit}, {BLOCK}):"):
        text.line(f"at = start + tl.arange(0, {BLOCK})")
        text.line(f"own = tl.load({counts} + at, mask=at < {limit}, other=0)")
        text.line(f"tl.store({writer.result()} + at, total + tl.cumsum(own, 0) - own, mask=at < {limit})")
        text.line("total = total + tl.sum(own, 0)")
    text.line(f"tl.store({writer.result(1)}, total)")
    return writer.kernel(Launch((1, 1, 1), 4), [INT64, INT64]).labelled("offsets")


def positions_kernel(flags: TensorType, limit: DimLike | None = None) -> Kernel:
    """Writes the positions of the selected elements in order. Its temporary are the offsets of the blocks."""
    writer, chosen = _flagged(flags, limit)
    text = writer.text
    text.line(f"first = tl.load({writer.temporary(0)} + tl.program_id(0))")
    text.line(f"place = first + tl.cumsum({chosen}.to(tl.int32), 0) - 1")
    text.line(f"tl.store({writer.result()} + place, i0.to(tl.int64), mask={chosen})")
    return writer.kernel(Launch((blocks_of(flags), 1, 1), 4), [INT64]).labelled("positions")


def coordinates_kernel(shape: tuple[DimLike, ...], count: DimLike) -> Kernel:
    """From `count` positions in a tensor to their coordinates, int64[rank, count]."""
    kinds = (TensorType(INT64, (count,)), TensorType(INT64, (len(shape), count)))
    parameter = Instruction(Parameter(kinds[0]), (), (kinds[0],), (None,), ("x",))
    writer = KernelWriter(Module("coordinates", (parameter,), (), (), ()))
    text, elements = writer.text, writer.elements
    text.wide = True
    writer.lanes = ("i",)
    total = product(kinds[1].shape)
    text.root("i", f"{writer.program()} * {BLOCK} + tl.arange(0, {BLOCK})")
    text.line(f"inside = i < {text.dim(total)}")
    elements.masks.append(("inside", text.roots["i"]))
    decompose(writer, "i", kinds[1].shape)
    axis, place = maps.identity(kinds[1].shape).indices
    position = elements.of(parameter.result(), axes_access(kinds[1].shape, (count,), (place,)))
    found = "0"
    for number, (size, step) in enumerate(zip(shape, strides_of(shape), strict=True)):
        # A tensor without elements has no coordinates to compute, but the text must mean something.
        own = text.let(f"{position} // {text.dim(dim_max(step, 1))} % {text.dim(dim_max(size, 1))}")
        found = text.let(f"tl.where({text.dim(axis)} == {number}, {own}, {found})")
    text.line(f"tl.store({writer.result()} + i, {found}, mask=inside)")
    return writer.kernel(Launch((ceildiv(total, BLOCK), 1, 1), 4), [INT64]).labelled("coordinates")
