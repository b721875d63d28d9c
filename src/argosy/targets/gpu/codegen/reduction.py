"""Reductions: each program reduces some rows, a tile of columns at a time, with an accumulator for each lane.

What makes the operand is computed inside, what takes the result behind it. Sums and means of short floats accumulate
in float32, lane by lane and then in a tree, so that the error grows with the logarithm of the lanes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.ir import access as maps
from argosy.ir.access import Access, axis_index
from argosy.ir.dim import DimLike, Symbol, ceildiv, symbol_dim
from argosy.ir.dtype import INT64, DType
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.operands import length, numbers
from argosy.ops.reduce import ArgReduce, Reduce
from argosy.ops.shapes import normalize_axis, product
from argosy.targets.gpu.codegen import scalar
from argosy.targets.gpu.codegen.blocks import at_most
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.loops import decompose
from argosy.targets.lowering.accesses import DeclinedError, axes_access, op_of, present

__all__ = ["Rows", "fold_start", "fold_step", "reduced", "reduced_axes", "reduction_kernel", "rows_of"]

_TILE: Final = 2048
"""Elements of a tile: 16 to a thread of 4 warps."""
_COMBINE: Final = {"sum": "add_any", "mean": "add_any", "prod": "mul_any", "min": "min_any", "max": "max_any"}
Order = tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a reduction: how its source is read, over axes of the result and names of reduced ones."""

    access: Access
    names: tuple[str, ...]
    sizes: tuple[DimLike, ...]
    inner: bool
    """Whether the innermost axis in memory is reduced, so that lanes go along rows."""

    @property
    def columns(self) -> DimLike:
        """Elements of a row."""
        return product(self.sizes)


def reduced_axes(anchor: Instruction, source: Value) -> tuple[int, ...]:
    """The axes that a `reduce` or `arg_reduce` reduces, in order."""
    op = anchor.op
    if isinstance(op, ArgReduce):
        return (normalize_axis(op.axis, source.rank),)
    if not isinstance(op, Reduce):
        raise DeclinedError(f"{op.name} is no reduction")
    by = anchor.operands[1] if len(anchor.operands) > 1 else None
    given = () if op.axes is None and (by is None or length(by) == 0) else numbers(op.axes, by)
    if given is None:
        raise DeclinedError("the axes are known only when the program runs")
    if not given:
        return () if op.noop_with_empty_axes else tuple(range(source.rank))
    return tuple(sorted({normalize_axis(axis, source.rank) for axis in given}))


def rows_of(anchor: Instruction, source: Value, orders: Sequence[Order]) -> Rows:
    """Where an element of the result reads its source."""
    axes, result = reduced_axes(anchor, source), anchor.result()
    keep = bool(getattr(anchor.op, "keep_dims", True))
    outer = iter(range(result.rank))
    indices: list[DimLike] = []
    names: list[str] = []
    sizes: list[DimLike] = []
    for axis, size in enumerate(source.shape):
        if axis in axes:
            if keep:
                next(outer)
            name = f"r{axis}"
            high = size - 1 if isinstance(size, int) else None
            indices.append(symbol_dim(Symbol(f"@{name}", 0, high)) if size != 1 else 0)
            names.append(name)
            sizes.append(size)
        else:
            place = next(outer)
            indices.append(axis_index(place, result.shape[place]))
    first = next((order for order in orders if order is not None and len(order) == source.rank), None)
    last = first[-1] if first is not None else source.rank - 1
    access = axes_access(result.shape, source.shape, indices)
    return Rows(access, tuple(names), tuple(sizes), not source.rank or last in axes)


def reduction_kernel(module: Module, anchor: Instruction, orders: Sequence[Order], order: Order) -> Kernel:
    """The kernel of a module whose anchor is a `reduce` or `arg_reduce`."""
    source, root = present(anchor, 0), module.results[0]
    rows = rows_of(anchor, source, orders)
    writer = KernelWriter(module, orders, (order,))
    columns, count = rows.columns, product(root.shape)
    if rows.inner:
        wide = at_most(columns, _TILE)
        high = min(max(_TILE // wide, 1), at_most(count, 64))
    else:
        high = at_most(count, 64)
        wide = min(at_most(columns, _TILE), max(_TILE // high, 1))
    text = writer.text
    writer.lanes = ("i",)
    text.root("i", f"{writer.program()} * {high} + tl.arange(0, {high})[:, None]")
    if not (isinstance(count, int) and count % high == 0):
        text.line(f"inside = i < {text.dim(count)}")
        writer.elements.masks.append(("inside", text.roots["i"]))
    decompose(writer, "i", root.shape, order)
    with writer.elements.scope():
        total = reduced(writer, anchor, source, rows, high, wide)
    writer.elements.given[anchor.result()] = total
    value = writer.elements.of(root, maps.identity(root.shape))
    writer.store(value, root.dtype, maps.identity(root.shape))
    return writer.kernel(Launch((ceildiv(count, high), 1, 1), 4 if high * wide >= 1024 else 1))


def reduced(writer: KernelWriter, anchor: Instruction, source: Value, rows: Rows, high: int, wide: int) -> str:
    """The result of a reduction for each of `high` rows, read in tiles of `wide` columns."""
    op = anchor.op
    if isinstance(op, ArgReduce):
        return _position(writer, op, source, rows, (high, wide))
    op = op_of(anchor, Reduce)
    kind, text = source.dtype, writer.text
    start = fold_start(op.kind, kind)
    total = text.fresh("acc")
    text.line(f"{total} = tl.full([{high}, {wide}], {start}, {scalar.compute_type(kind)})")
    with _tiles(writer, rows, wide) as mask:
        value = writer.elements.of(source, rows.access)
        step = fold_step(op.kind, total, value, kind)
        text.line(f"{total} = {f'tl.where({mask}, {step}, {total})' if mask else step}")
    combine = _COMBINE[op.kind]
    if kind.is_float and op.kind in ("min", "max"):
        combine = f"{op.kind}_nan"
    if kind.kind == "bool":
        combine = "or_any" if op.kind == "max" else "and_any"
    name = text.let(f"tl.reduce({total}, 1, {combine}, keep_dims=True)")
    if op.kind != "mean":
        return name
    own = scalar.compute_type(kind)
    count = rows.columns
    number = f"tl.full([], {count}, {own})" if isinstance(count, int) else f"{text.dim(count)}.to({own})"
    return text.let(scalar.apply("div", [name, number], [kind, kind], kind))


@contextlib.contextmanager
def _tiles(writer: KernelWriter, rows: Rows, wide: int) -> Iterator[str]:
    """A loop over the tiles of the rows; gives the mask under which a lane counts, empty where all do."""
    text, columns = writer.text, rows.columns
    limit = text.dim(columns)
    once = isinstance(columns, int) and 0 < columns <= wide
    loop = contextlib.nullcontext() if once else text.block(f"for start in range(0, {limit}, {wide}):")
    with loop, writer.elements.scope():
        text.root("c", f"{'' if once else 'start + '}tl.arange(0, {wide})[None, :]")
        whole = isinstance(columns, int) and columns % wide == 0
        if not whole:
            text.line(f"across = c < {limit}")
            writer.elements.masks.append(("across", text.roots["c"]))
        left = "c"
        live = [place for place, size in enumerate(rows.sizes) if size != 1]
        for place in reversed(live[1:]):
            size = text.dim(rows.sizes[place])
            text.derive(rows.names[place], f"{left} % {size}", left)
            left = text.derive(text.fresh("left"), f"{left} // {size}", left)
        if live:
            text.derive(rows.names[live[0]], left, left)
        yield " & ".join(name for name, _ in writer.elements.masks)
        if not whole:
            writer.elements.masks.pop()


def fold_start(kind: str, dtype: DType) -> str:
    """What a fold by `kind` begins with, as a Python number."""
    if kind in ("sum", "mean"):
        return "0"
    if kind == "prod":
        return "1"
    if dtype.is_float:
        return 'float("-inf")' if kind == "max" else 'float("inf")'
    if dtype.kind == "bool":
        return "0" if kind == "max" else "1"
    low = -(1 << (dtype.compute.bits - 1)) if dtype.kind == "int" else 0
    high = (1 << (dtype.compute.bits - (dtype.kind == "int"))) - 1
    return str(low if kind == "max" else high)


def fold_step(kind: str, total: str, value: str, dtype: DType) -> str:
    """The total and one value more."""
    if dtype.kind == "bool":
        return f"({total} {'|' if kind == 'max' else '&'} {value})"
    name = {"sum": "add", "mean": "add", "prod": "mul"}.get(kind, kind)
    return scalar.apply(name, [total, value], [dtype, dtype], dtype)


def _position(writer: KernelWriter, op: ArgReduce, source: Value, rows: Rows, tile: tuple[int, int]) -> str:
    """Position of the first (or last) greatest or least element; the first NaN counts as the extreme."""
    text, kind = writer.text, source.dtype
    own = scalar.compute_type(kind)
    best, where = text.fresh("best"), text.fresh("at")
    shape = f"[{tile[0]}, {tile[1]}]"
    text.line(f"{best} = tl.full({shape}, {fold_start(op.kind, kind)}, {own})")
    text.line(f"{where} = tl.full({shape}, -1, tl.int64)")
    last = "True" if op.select_last else "False"
    better = f"better_{op.kind}"
    with _tiles(writer, rows, tile[1]) as mask:
        value = writer.elements.of(source, rows.access)
        number = f"({rows.names[0] if rows.sizes[0] != 1 else '0 * c'}).to(tl.int64)"
        text.line(f"place = {number} + tl.zeros({shape}, tl.int64)")
        test = f"{better}({value}, place, {best}, {where}, {last})"
        text.line(f"take = {f'{mask} & {test}' if mask else test}")
        text.line(f"{best} = tl.where(take, {value}, {best})")
        text.line(f"{where} = tl.where(take, place, {where})")
    combine = f"best_{op.kind}{'_last' if op.select_last else ''}"
    text.line(f"{best}, {where} = tl.reduce(({best}, {where}), 1, {combine}, keep_dims=True)")
    return text.let(f"{where}.to({scalar.compute_type(INT64)})")
