"""Reductions: a loop over the reduced axes for each element of the result.

What makes the operand is computed inside it, what takes the result behind it.

Sums, means and products of floats are accumulated in float64 and rounded once, as the op says.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from argosy.ir import access as maps
from argosy.ir.access import Access, axis_index
from argosy.ir.dim import DimLike, Symbol, symbol_dim
from argosy.ir.dtype import FLOAT64, INT64, DType
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.operands import length, numbers
from argosy.ops.reduce import ArgReduce, Reduce
from argosy.ops.shapes import normalize_axis, product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.loops import chunked_loops
from argosy.targets.lowering.accesses import DeclinedError, axes_access, op_of, present

__all__ = ["fold_start", "fold_step", "reduce_each", "reduce_one", "reduced_axes", "reduced_places", "reduction_kernel"]


def reduction_kernel(module: Module, anchor: Instruction) -> Kernel:
    """The kernel of a module whose anchor is a `reduce` or `arg_reduce`."""
    source = present(anchor, 0)
    axes = reduced_axes(anchor, source)
    writer = KernelWriter(module, [module.results[0].dtype])
    return reduce_each(writer, anchor, source, lambda: reduce_one(writer, anchor, source, axes))


def reduce_each(writer: KernelWriter, anchor: Instruction, source: Value, reduce: Callable[[], str]) -> Kernel:
    """Loops over the root; `reduce` writes one reduction of `source` and returns the variable that holds it."""
    root, text = writer.module.results[0], writer.text

    def body() -> None:
        writer.elements.given[anchor.result()] = reduce()
        place = maps.identity(root.shape)
        value = writer.elements.of(root, place)
        text.line(f"{scalar.store(root.dtype, writer.result(), writer.elements.offset(place), value)};")

    with writer.elements.scope():
        pieces = chunked_loops(text, root.shape, body)
    return writer.kernel(chunk_count(product(source.shape), pieces))


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


def reduced_places(
    text: CText, anchor: Instruction, source: Value, axes: tuple[int, ...]
) -> tuple[Access, list[tuple[str, DimLike]]]:
    """Where an element of the result reads its source, and the loops that it takes: names of variables, and sizes."""
    result = anchor.result()
    keep = bool(getattr(anchor.op, "keep_dims", True))
    outer = iter(range(result.rank))
    indices: list[DimLike] = []
    loops: list[tuple[str, DimLike]] = []
    for axis, size in enumerate(source.shape):
        if axis in axes:
            if keep:
                next(outer)
            name = text.fresh("r")
            high = size - 1 if isinstance(size, int) else None
            indices.append(symbol_dim(Symbol(f"@{name}", 0, high)) if size != 1 else 0)
            loops.append((name, size))
        else:
            place = next(outer)
            indices.append(axis_index(place, result.shape[place]))
    return axes_access(result.shape, source.shape, indices), loops


def reduce_one(writer: KernelWriter, anchor: Instruction, source: Value, axes: tuple[int, ...]) -> str:
    """Write the loops over the reduced axes; the variable with the result in its compute type."""
    op = anchor.op
    access, loops = reduced_places(writer.text, anchor, source, axes)
    if isinstance(op, ArgReduce):
        return _position(writer, op, source, access, loops)
    return _fold(writer, op_of(anchor, Reduce), source, access, loops)


def _fold(writer: KernelWriter, op: Reduce, source: Value, access: Access, loops: list[tuple[str, DimLike]]) -> str:
    text, dtype = writer.text, source.dtype
    wide = FLOAT64 if dtype.is_float and op.kind in ("sum", "mean", "prod") else dtype
    ctype = scalar.compute_type(wide)
    total = text.fresh("acc")
    text.line(f"{ctype} {total} = {fold_start(op.kind, wide)};")
    with contextlib.ExitStack() as stack:
        for name, size in loops:
            stack.enter_context(text.loop(name, "0", text.dim(size)))
        stack.enter_context(writer.elements.scope())
        if loops and op.kind in ("sum", "mean", "prod") and dtype.is_float:
            text.line("#pragma clang fp reassociate(on)")
        value = writer.elements.of(source, access)
        text.line(f"{total} = {fold_step(op.kind, total, f'({ctype}){value}', wide)};")
    if op.kind == "mean":
        count = text.dim(product(tuple(size for _, size in loops)))
        if dtype.is_float:
            text.line(f"{total} = {total} / ({ctype}){count};")
        else:
            text.line(f"{total} = {count} == 0 ? 0 : ({ctype})({total} / ({ctype}){count});")
    return text.let(scalar.compute_type(dtype), f"({scalar.compute_type(dtype)}){total}")


def fold_start(kind: str, dtype: DType) -> str:
    """What a fold by `kind` begins with, in C."""
    if kind in ("sum", "mean"):
        return scalar.constant(0, dtype)
    if kind == "prod":
        return scalar.constant(1, dtype)
    return _extreme(dtype, least=kind == "max")


def _extreme(dtype: DType, *, least: bool) -> str:
    """The least or greatest value of a type."""
    if dtype.is_float:
        return scalar.constant(float("-inf") if least else float("inf"), dtype)
    if dtype.kind == "bool":
        return scalar.constant(not least, dtype)
    signed = dtype.kind == "int"
    low = -(1 << (dtype.bits - 1)) if signed else 0
    high = (1 << (dtype.bits - 1)) - 1 if signed else (1 << dtype.bits) - 1
    return scalar.constant(low if least else high, dtype)


def fold_step(kind: str, total: str, value: str, dtype: DType) -> str:
    """The total and one value more, in C."""
    if kind in ("sum", "mean"):
        return scalar.apply("add", [total, value], [dtype, dtype], dtype)
    if kind == "prod":
        return scalar.apply("mul", [total, value], [dtype, dtype], dtype)
    if dtype.kind == "bool":
        return f"{total} {'|' if kind == 'max' else '&'} {value}"
    return scalar.apply(kind, [total, value], [dtype, dtype], dtype)


def _position(
    writer: KernelWriter, op: ArgReduce, source: Value, access: Access, loops: list[tuple[str, DimLike]]
) -> str:
    """Position of the first (or last) greatest or least element; the first NaN counts as the extreme."""
    text, dtype = writer.text, source.dtype
    ctype = scalar.compute_type(dtype)
    best, where = text.fresh("best"), text.fresh("at")
    text.line(f"{ctype} {best} = 0; int64 {where} = 0;")
    ((name, size),) = loops
    compare = {("max", False): ">", ("max", True): ">=", ("min", False): "<", ("min", True): "<="}[
        op.kind, op.select_last
    ]
    with text.loop(name, "0", text.dim(size)), writer.elements.scope():
        value = writer.elements.of(source, access)
        nan = f" || ({value} != {value} && {best} == {best})" if dtype.is_float else ""
        held = f"{best} == {best} && " if dtype.is_float else ""
        with text.block(f"if ({name} == 0 || ({held}{value} {compare} {best}){nan})"):
            text.line(f"{best} = {value}; {where} = {name};")
    return text.let(scalar.compute_type(INT64), where)
