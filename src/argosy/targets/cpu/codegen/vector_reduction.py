"""Reductions of float32 by vectors: along the last axis, and along others, where sixteen results lie side by side.

Sums are in float64, as in the plain loops (`reduction`). Positions of extremes are kept lane by lane; of equal ones the
first counts, or the last, and of all the first NaN.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Final

from argosy.ir.access import Access, axis_index
from argosy.ir.dim import DimLike, bounds, ceildiv, substitute
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.reduce import ArgReduce, Reduce
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.copying import decompose, share
from argosy.targets.cpu.codegen.epilogue import Epilogue
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.reduction import (
    fold_start,
    fold_step,
    reduce_each,
    reduce_one,
    reduced_axes,
    reduced_places,
)
from argosy.targets.cpu.codegen.tile import BLOCK
from argosy.targets.cpu.codegen.vector_elements import VectorElements
from argosy.targets.lowering.accesses import DeclinedError, present
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["reduce_across", "reduce_along"]

_WIDE: Final = 4
"""Vectors of a stripe of results: several lines of a row are read together."""
_COMPARE: Final = {("max", False): ">", ("max", True): ">=", ("min", False): "<", ("min", True): "<="}


@dataclass(frozen=True, slots=True)
class _Fold:
    """What is done with each vector, for accumulator number `j`: C statements."""

    anchor: Instruction
    axis: DimLike

    @property
    def kind(self) -> str:
        """sum, mean, max or min."""
        return str(getattr(self.anchor.op, "kind", ""))

    @property
    def sums(self) -> bool:
        """Whether it adds up."""
        return self.kind in ("sum", "mean")

    @property
    def position(self) -> bool:
        """Whether the place of an extreme is wanted."""
        return isinstance(self.anchor.op, ArgReduce)

    @property
    def places(self) -> str:
        """The type of sixteen places along the axis."""
        most = bounds(self.axis)[1]
        return "int32x16" if most is not None and most < 1 << 31 else "int64x16"

    def start(self, j: int) -> str:
        """Begin."""
        if self.position:
            return f"float32x16 best{j} = (float32x16)0; {self.places} at{j} = ({self.places})0;"
        if self.sums:
            return f"float64x16 best{j} = (float64x16)0;"
        return f"float32x16 best{j} = (float32x16){fold_start(self.kind, FLOAT32)};"

    def step(self, j: int, value: str, place: str, first: str) -> str:
        """Take in a vector that lies at `place`; `first` says in C whether there was none before."""
        best = f"best{j}"
        if self.sums:
            return f"{best} += widen({value});"
        if not self.position:
            return f"{best} = {fold_step(self.kind, best, value, FLOAT32)};"
        compare = _COMPARE[self.kind, bool(getattr(self.anchor.op, "select_last", False))]
        taken = f"({best} == {best}) & (({value} {compare} {best}) | ({value} != {value})) | (int32x16)-({first})"
        wide = "taken" if self.places == "int32x16" else "__builtin_convertvector(taken, int64x16)"
        return (
            f"const int32x16 taken = {taken};"
            f" {best} = taken ? {value} : {best}; at{j} = {wide} ? ({self.places})({place}) : at{j};"
        )


def _fold_of(module: Module, anchor: Instruction) -> tuple[_Fold, Value, tuple[int, ...]]:
    """What is done, the source, and the reduced axes. Declines what is not float32, and products."""
    source = present(anchor, 0)
    axes = reduced_axes(anchor, source)
    if not isinstance(anchor.op, (Reduce, ArgReduce)) or source.dtype is not FLOAT32 or not axes or not module.results:
        raise DeclinedError("no reduction of float32")
    fold = _Fold(anchor, product(tuple(source.shape[axis] for axis in axes)))
    if fold.kind == "prod":
        raise DeclinedError("products go by plain loops")
    return fold, source, axes


def reduce_across(module: Module, anchor: Instruction) -> Kernel:
    """The kernel where the last axis stays: vectors of results, in stripes of a few lines."""
    fold, source, axes = _fold_of(module, anchor)
    root, result = module.results[0], anchor.result()
    if source.rank - 1 in axes or (isinstance(source.shape[-1], int) and source.shape[-1] < BLOCK):
        raise DeclinedError("results do not lie side by side")
    writer = KernelWriter(module, [root.dtype])
    text, epilogue, last = writer.text, Epilogue(module, result), result.rank - 1
    access, loops = reduced_places(text, anchor, source, axes)
    stripe = _WIDE * BLOCK
    size, stripes = text.let("int64", text.dim(result.shape[-1])), ceildiv(result.shape[-1], stripe)
    count = text.let("int64", text.dim(stripes))
    units = product(result.shape[:-1]) * stripes
    with share(writer, "unit", units):
        text.line(f"const int64 column = unit % {count} * {stripe}, have = min_int64({size} - column, {stripe});")
        decompose(text, f"unit / {count}", result.shape[:-1])
        kind = scalar.compute_type(result.dtype)
        text.line(f"{kind} found[{stripe}] __attribute__((aligned(64)));")
        with text.block(f"if (have == {stripe})"):
            _stripe(writer, fold, (source, access), loops, _WIDE, "0")
        with text.block("else"):
            with text.block(f"for (int64 v = 0; v + {BLOCK} <= have; v += {BLOCK})"):
                _stripe(writer, fold, (source, access), loops, 1, "v")
            with text.loop("lane", f"have / {BLOCK} * {BLOCK}", "have"), writer.elements.scope():
                text.line(f"const int64 {axis_name(last)} = column + lane;")
                text.line(f"found[lane] = {reduce_one(writer, anchor, source, axes)};")
        with text.block(f"for (int64 v = 0; v < have; v += {BLOCK})"):
            text.line("const int64 from = column + v;")
            epilogue.store(writer, "(found + v)", "from", vectors=epilogue.vectorises(last))
    return writer.kernel(chunk_count(product(source.shape), units))


def _stripe(
    writer: KernelWriter,
    fold: _Fold,
    read: tuple[Value, Access],
    loops: list[tuple[str, DimLike]],
    vectors: int,
    begin: str,
) -> None:
    """Reduce the columns of some vectors, from `begin` of the stripe on."""
    text, (source, access) = writer.text, read
    last = fold.anchor.result().rank - 1
    for j in range(vectors):
        text.line(fold.start(j))
    with contextlib.ExitStack() as stack:
        for name, size in loops:
            stack.enter_context(text.loop(name, "0", text.dim(size)))
        for j in range(vectors):
            with text.block(""):
                text.line(f"const int64 {axis_name(last)} = column + {begin} + {j * BLOCK};")
                value = VectorElements(text, writer.pointers, last).of(source, access)
                name = loops[-1][0]
                text.line(fold.step(j, value, f"(int64){name}", f"{name} == 0"))
    for j in range(vectors):
        if fold.kind == "mean" and not fold.position:
            text.line(f"best{j} = best{j} / (float64x16)(float64){text.dim(fold.axis)};")
        value = f"at{j}" if fold.position else f"narrow(best{j})" if fold.sums else f"best{j}"
        with text.loop("lane", "0", str(BLOCK)):
            text.line(f"found[{begin} + {j * BLOCK} + lane] = ({value})[lane];")


def reduce_along(module: Module, anchor: Instruction) -> Kernel:
    """The kernel of an extreme, or of its position, where the last axis goes. (Sums go by plain loops as fast.)"""
    fold, source, axes = _fold_of(module, anchor)
    if fold.sums or source.rank - 1 not in axes:
        raise DeclinedError("no extreme along the last axis")
    writer = KernelWriter(module, [module.results[0].dtype])

    def reduce() -> str:
        access, loops = reduced_places(writer.text, anchor, source, axes)
        if not loops or loops[-1][1] == 1:
            raise DeclinedError("there is one element only")
        return _along(writer, fold, source, access, loops)

    return reduce_each(writer, anchor, source, reduce)


def _along(writer: KernelWriter, fold: _Fold, source: Value, access: Access, loops: list[tuple[str, DimLike]]) -> str:
    """Write the loops over the reduced axes, the last one by vectors; the variable with the result."""
    text = writer.text
    (last, size), outer = loops[-1], loops[:-1]
    # The lanes run along the variable of the last loop, under the name of an axis of its own.
    lane = fold.anchor.result().rank
    own = {f"@{last}": axis_index(lane, size)}
    moved = Access((*access.extents, size), access.source, tuple(substitute(index, own) for index in access.indices))
    ways = 1 if fold.position else _WIDE
    kind = scalar.compute_type(FLOAT32)
    text.line(f"const int64 whole = {text.dim(size)} / {BLOCK} * {BLOCK};")
    text.line(f"const int64 many = whole / {ways * BLOCK} * {ways * BLOCK};")
    for j in range(ways):
        text.line(fold.start(j))
    text.line(f"{kind} best = {fold_start(fold.kind, FLOAT32)}; int64 at = -1;")
    iota = ", ".join(map(str, range(BLOCK)))
    name = axis_name(lane)

    def take(j: int) -> None:
        value = VectorElements(text, writer.pointers, lane).of(source, moved)
        place = f"({fold.places}){{{iota}}} + ({fold.places}){name}" if fold.position else "0"
        text.line(fold.step(j, value, place, f"{name} == 0"))

    with contextlib.ExitStack() as stack:
        for outer_name, extent in outer:
            stack.enter_context(text.loop(outer_name, "0", text.dim(extent)))
        with text.block(f"for (int64 begin = 0; begin < many; begin += {ways * BLOCK})"):
            for j in range(ways):
                with text.block(""):
                    text.line(f"const int64 {name} = begin + {j * BLOCK};")
                    take(j)
        with text.block(f"for (int64 {name} = many; {name} < whole; {name} += {BLOCK})"):
            take(0)
        with text.loop(last, "whole", text.dim(size)), writer.elements.scope():
            value = writer.elements.of(source, access)
            _one(writer, fold, value, last)
    with text.block("if (whole > 0)"):
        for j in range(ways):
            with text.loop("lane", "0", str(BLOCK)):
                _one(writer, fold, f"best{j}[lane]", f"(int64)at{j}[lane]")
    return text.let("int64", "at < 0 ? 0 : at") if fold.position else "best"


def _one(writer: KernelWriter, fold: _Fold, value: str, place: str) -> None:
    """Take in one element, in any order of places."""
    text = writer.text
    if not fold.position:
        text.line(f"best = {fold_step(fold.kind, 'best', value, FLOAT32)};")
        return
    compare, later = _COMPARE[fold.kind, False], ">" if getattr(fold.anchor.op, "select_last", False) else "<"
    name = text.let("float32", value)
    other = text.let("int64", place)
    ahead = f"({name} {compare} best) | ({name} == best & {other} {later} at)"
    nan = f"({name} != {name} & (best == best | {other} < at))"
    with text.block(f"if (at < 0 || {nan} || (best == best & ({ahead})))"):
        text.line(f"best = {name}; at = {other};")
