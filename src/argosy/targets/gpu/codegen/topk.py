"""The k best of each line: by sorting chunks in registers and then what is left of them, by a radix sort, or by ranks.

An element of up to 32 bits and its position make one number of 63 bits that is the smaller the better the element is,
equal ones by position, so that any sort of these numbers is a stable one. Longer elements of short lines are ranked:
an element's place is the number of those that come before it, which needs no order of work at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from argosy.ir import access as maps
from argosy.ir.access import Access
from argosy.ir.dim import DimLike, Symbol, ceildiv, symbol_dim
from argosy.ir.dtype import BOOL, INT32, INT64, DType
from argosy.ir.module import Instruction, Module
from argosy.ops.shapes import normalize_axis, product
from argosy.ops.sort import TopK
from argosy.targets.gpu.codegen.blocks import power_of_two
from argosy.targets.gpu.codegen.element import Elements
from argosy.targets.gpu.codegen.faults import Fault
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.loops import decompose
from argosy.targets.gpu.codegen.radix import key_of
from argosy.targets.gpu.codegen.reduction import Order
from argosy.targets.gpu.codegen.steering import number
from argosy.targets.lowering.accesses import DeclinedError, op_of, present

__all__ = ["CHUNK", "chunk_kernel", "keys_kernel", "rank_kernel", "taken_kernel", "topk_sizes"]

CHUNK: Final = 2048
"""Elements that are sorted in registers: 16 to a thread of 4 warps."""
_PAIR: Final = 64
_BITS: Final = 31
"""Of a position."""
_ITEMS: Final = 1024


def topk_sizes(elements: Elements, instruction: Instruction) -> Sequence[Sequence[DimLike]]:
    """The dims of the two results; a `k` that is more than there is is a fault."""
    x = present(instruction, 0)
    kept = elements.entries(None, present(instruction, 1))
    if not kept:
        raise DeclinedError("k is not one number")
    axis = normalize_axis(op_of(instruction, TopK).axis, x.rank)
    name = number(elements, kept[0])
    elements.fault(f"{name} > {number(elements, x.shape[axis])}", Fault.SIZE, name)
    shape = [*x.shape[:axis], kept[0], *x.shape[axis + 1 :]]
    return [shape, shape]


def chunk_kernel(module: Module, orders: Sequence[Order], given: DimLike | None, kept: int | None) -> Kernel:
    """Sorts chunks of each line: of the operand, or of `given` numbers for each line that a kernel like it wrote.

    With `kept` the best of each chunk go on as numbers, int64[lines, chunks * kept]; without, there is one chunk, and
    the results are written.
    """
    (instruction,) = module.instructions
    op, x = op_of(instruction, TopK), present(instruction, 0)
    axis = normalize_axis(op.axis, x.rank)
    size = x.shape[axis] if given is None else given
    writer = KernelWriter(module, orders, temporaries=() if given is None else (INT64,))
    text, elements = writer.text, writer.elements
    wide = min(power_of_two(size), CHUNK) if isinstance(size, int) else CHUNK
    _line(writer, x.shape, axis)
    text.root("c", f"tl.program_id(1) * {wide} + tl.arange(0, {wide})[None, :]")
    text.line(f"across = c < {text.dim(size)}")
    elements.masks.append(("across", text.roots["c"]))
    if given is None:
        value = elements.of(x, _at(x.shape, axis, "c"))
        key = f"{_key(value, x.dtype, largest=op.largest)} * {1 << _BITS} + c"
    else:
        at = f"line.to(tl.int64) * {text.dim(size)} + c"
        key = f"tl.load({writer.temporary(0)} + {at}, mask=across, other=0)"
    text.line(f"keys = tl.where(across, {key}, {(1 << 63) - 1})")
    text.line(f"keys = tl.sort(tl.broadcast_to(keys, [1, {wide}]), 1)")
    text.root("rank", f"tl.arange(0, {wide})[None, :]")
    warps = max(min(wide // 512, 4), 1)
    grid = (product(_others(x.shape, axis)), ceildiv(size, wide), 1)
    if kept is not None:
        first = f"(line.to(tl.int64) * tl.num_programs(1) + tl.program_id(1)) * {kept}"
        text.line(f"tl.store({writer.result()} + {first} + rank, keys, mask=rank < {kept})")
        return writer.kernel(Launch(grid, warps), [INT64]).labelled("topk_chunk")
    elements.masks.clear()
    text.derive("from_", f"(keys & {(1 << _BITS) - 1}).to({text.index_type})", "rank")
    _store(writer, instruction, axis, "from_", "rank")
    return writer.kernel(Launch(grid, warps)).labelled("topk")


def rank_kernel(module: Module, orders: Sequence[Order]) -> Kernel:
    """Counts for each element those of its line that come before it, and writes the first ones to their places."""
    (instruction,) = module.instructions
    op, x = op_of(instruction, TopK), present(instruction, 0)
    axis = normalize_axis(op.axis, x.rank)
    size = x.shape[axis]
    writer = KernelWriter(module, orders)
    text, elements = writer.text, writer.elements
    limit = text.dim(size)
    _line(writer, x.shape, axis)
    text.root("own", f"tl.program_id(1) * {_PAIR} + tl.arange(0, {_PAIR})[:, None]")
    text.line(f"inside = own < {limit}")
    elements.masks.append(("inside", text.roots["own"]))
    value = _comparable(elements.of(x, _at(x.shape, axis, "own")), x.dtype)
    text.derive("rank", f"tl.zeros([{_PAIR}, 1], {text.index_type})", "own")
    with text.block(f"for start in range(0, {limit}, {_PAIR}):"), elements.scope():
        text.root("other", f"start + tl.arange(0, {_PAIR})[None, :]")
        text.line(f"across = other < {limit}")
        elements.masks.append(("across", text.roots["other"]))
        against = _comparable(elements.of(x, _at(x.shape, axis, "other")), x.dtype)
        left, right = (value, against) if op.largest else (against, value)
        kind = "float" if x.dtype.compute.is_float else "integer"
        text.line(f"first = less_{kind}({left}, {right})")
        text.line(f"same = (first | less_{kind}({right}, {left})) == 0")
        text.line("before = across & inside & (first | (same & (other < own)))")
        text.line(f"rank = rank + tl.sum(before.to({text.index_type}), 1, keep_dims=True)")
        elements.masks.pop()
    _store(writer, instruction, axis, "own", "rank")
    grid = (product(_others(x.shape, axis)), ceildiv(size, _PAIR), 1)
    return writer.kernel(Launch(grid, 4)).labelled("topk_ranks")


def keys_kernel(module: Module, orders: Sequence[Order]) -> Kernel:
    """Writes the key of each element of each line, for a sort."""
    (instruction,) = module.instructions
    op, x = op_of(instruction, TopK), present(instruction, 0)
    axis = normalize_axis(op.axis, x.rank)
    writer = KernelWriter(module, orders)
    text, elements, size = writer.text, writer.elements, x.shape[axis]
    _part(writer, x.shape, axis, size, "c")
    value = elements.of(x, _at(x.shape, axis, "c"))
    key, bits = key_of(value, x.dtype, largest=op.largest)
    text.line(f"tl.store({writer.result()} + line * {text.dim(size)} + c, {key}, mask=across)")
    grid = (product(_others(x.shape, axis)) * ceildiv(size, _ITEMS), 1, 1)
    return writer.kernel(Launch(grid, 4), [INT32 if bits <= 32 else INT64]).labelled("topk_keys")


def taken_kernel(module: Module, orders: Sequence[Order], places: DType) -> Kernel:
    """Writes the results from its temporary: the positions of all elements of each line, as `places`, best first."""
    (instruction,) = module.instructions
    op, x, result = op_of(instruction, TopK), present(instruction, 0), instruction.result()
    axis = normalize_axis(op.axis, x.rank)
    writer = KernelWriter(module, orders, temporaries=(places,))
    text, size, kept = writer.text, x.shape[axis], result.shape[axis]
    _part(writer, x.shape, axis, kept, "rank")
    at = f"{writer.temporary(0)} + line * {text.dim(size)} + rank"
    text.derive("from_", f"tl.load({at}, mask=across, other=0).to({text.index_type})", "rank")
    _store(writer, instruction, axis, "from_", "rank")
    grid = (product(_others(x.shape, axis)) * ceildiv(kept, _ITEMS), 1, 1)
    return writer.kernel(Launch(grid, 4)).labelled("topk_taken")


def _part(writer: KernelWriter, shape: tuple[DimLike, ...], axis: int, size: DimLike, name: str) -> None:
    """A program's line, and a block of it: `name` goes over a part of its `size`, `across` where that is inside."""
    text = writer.text
    text.line(f"unit, blocks = {writer.program()}, {text.dim(ceildiv(size, _ITEMS))}")
    text.line("line = unit // blocks")
    decompose(writer, "line", _others(shape, axis))
    text.root(name, f"unit % blocks * {_ITEMS} + tl.arange(0, {_ITEMS})")
    text.line(f"across = {name} < {text.dim(size)}")
    writer.elements.masks.append(("across", text.roots[name]))


def _others(shape: tuple[DimLike, ...], axis: int) -> tuple[DimLike, ...]:
    return (*shape[:axis], 1, *shape[axis + 1 :])


def _line(writer: KernelWriter, shape: tuple[DimLike, ...], axis: int) -> None:
    """The place of a program's line on all axes but one, as scalars."""
    writer.text.line(f"line = {writer.program()}")
    decompose(writer, "line", _others(shape, axis))


def _at(shape: tuple[DimLike, ...], axis: int, name: str) -> Access:
    """An access at a variable along one axis, and at the line's place on all others."""
    indices = list(maps.identity(shape).indices)
    indices[axis] = symbol_dim(Symbol(f"@{name}", 0))
    return Access(shape, shape, tuple(indices))


def _store(writer: KernelWriter, instruction: Instruction, axis: int, source: str, rank: str) -> None:
    """Write the elements at `source` to the places `rank` of the results, as far as these reach."""
    text, elements = writer.text, writer.elements
    x, result = present(instruction, 0), instruction.result()
    text.line(f"kept = {rank} < {text.dim(result.shape[axis])}")
    elements.masks.append(("kept", text.roots[rank]))
    writer.lanes = tuple(sorted(text.roots[rank]))
    place = _at(result.shape, axis, rank)
    with elements.scope():
        value = elements.of(x, _at(x.shape, axis, source))
    writer.store(value, x.dtype, place)
    writer.store(f"{source}.to(tl.int64)", INT64, place, 1)


def _comparable(value: str, dtype: DType) -> str:
    return f"{value}.to(tl.int32)" if dtype is BOOL else value


def _key(value: str, dtype: DType, *, largest: bool) -> str:
    """A number from 0 to 2^32 - 1 that is the smaller the earlier an element of up to 32 bits comes."""
    kind = dtype.compute
    if kind.bits > 32:
        raise DeclinedError(f"a key of {dtype} has more than 32 bits")
    if kind.is_float:
        key = f"order_float({value})"
    else:
        key = f"({value}.to(tl.int64) + {1 << 31 if kind.kind == 'int' else 0})"
    return f"({(1 << 32) - 1} - {key})" if largest else key
