"""Softmax and its logarithm along any axis: the greatest, the sum of the powers, then the quotients.

Along the last axis of float32 values rows are walked sixteen elements at a time; all else is element by element.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from argosy.ir import access as maps
from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.reduce import Softmax
from argosy.ops.shapes import normalize_axis, product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.copying import decompose, share
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.lanes import ACROSS
from argosy.targets.cpu.codegen.loops import chunked_loops
from argosy.targets.cpu.codegen.tile import BLOCK
from argosy.targets.cpu.codegen.vector_elements import VectorElements, position, store_lanes
from argosy.targets.cpu.codegen.walking import coefficient
from argosy.targets.lowering.accesses import DeclinedError, op_of, present
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["softmax_loops", "softmax_rows"]

_WORK = 4
"""Elementary operations to an element, beside the three passes: what a power costs on vectors."""
_RUN = 512
"""Elements that are added up in float32, 32 to a lane, before they go into a sum in float64."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """A softmax: the instruction, what it reads, and the axis of its rows."""

    anchor: Instruction

    @property
    def op(self) -> Softmax:
        """Its attributes."""
        return op_of(self.anchor, Softmax)

    @property
    def source(self) -> Value:
        """What it reads."""
        return present(self.anchor, 0)

    @property
    def axis(self) -> int:
        """The axis along which a row lies."""
        return normalize_axis(self.op.axis, self.source.rank)

    @property
    def size(self) -> DimLike:
        """Elements of a row."""
        return self.source.shape[self.axis]

    @property
    def outer(self) -> tuple[DimLike, ...]:
        """The dims with a single place along the rows."""
        return tuple(1 if place == self.axis else extent for place, extent in enumerate(self.source.shape))


def softmax_loops(module: Module, anchor: Instruction) -> Kernel:
    """Three passes over each row; what follows the softmax is computed in the third."""
    rows = _Rows(anchor)
    source, name = rows.source, axis_name(rows.axis)
    kind = source.dtype.compute
    writer = KernelWriter(module, [module.results[0].dtype])
    text, elements = writer.text, writer.elements

    def shifted() -> str:
        return f"({elements.of(source, maps.identity(source.shape))} - most)"

    def body() -> None:
        limit = text.dim(rows.size)
        text.line(f"{kind} most = {scalar.constant(float('-inf'), kind)};")
        with text.loop(name, "0", limit), elements.scope():
            value = elements.of(source, maps.identity(source.shape))
            text.line(f"most = {scalar.apply('max', ['most', value], [kind, kind], kind)};")
        text.line("float64 total = 0;")
        with text.loop(name, "0", limit), elements.scope():
            text.line(f"total += (float64){scalar.apply('exp', [shifted()], [kind], kind)};")
        whole = scalar.apply("log", [f"({kind})total"], [kind], kind) if rows.op.log else f"({kind})total"
        text.line(f"const {kind} whole = {whole};")
        with text.loop(name, "0", limit), elements.scope():
            power = shifted()
            result = f"{power} - whole" if rows.op.log else f"{scalar.apply('exp', [power], [kind], kind)} / whole"
            _store(writer, anchor, text.let(str(kind), result))

    with elements.scope():
        pieces = chunked_loops(text, rows.outer, body)  # the body's loops along the axis shadow its place of 0
    return writer.kernel(chunk_count(product(source.shape) * _WORK, pieces))


def _store(writer: KernelWriter, anchor: Instruction, value: str) -> None:
    """Store an element of the root, from an element of the softmax."""
    root, access = writer.module.results[0], maps.identity(writer.module.results[0].shape)
    writer.elements.given[anchor.result()] = value
    stored = writer.elements.of(root, access)
    writer.text.line(f"{scalar.store(root.dtype, writer.result(), writer.elements.offset(access), stored)};")


def softmax_rows(module: Module, anchor: Instruction) -> Kernel:
    """Vectors along the last axis. The powers wait in the result until their sum is known, or in scratch memory.

    A NaN in a row need not come out as its greatest: by the sum it makes all of the row NaN. Declines where the rows
    lie along another axis, or something is not float32 and side by side.
    """
    rows = _Rows(anchor)
    root, source = module.results[0], rows.source
    if product(source.shape[rows.axis + 1 :]) != 1 or source.dtype is not FLOAT32:
        raise DeclinedError("rows are not along the last axis, or not of float32")
    waiting = 0
    if root.dtype is not FLOAT32:
        if not isinstance(rows.size, int):
            raise DeclinedError("rows of symbolic length that wait beside their result")
        waiting = rows.size * FLOAT32.bits // 8
    writer = KernelWriter(module, [root.dtype])
    text, name = writer.text, axis_name(rows.axis)
    access = maps.identity(source.shape)
    total = product(source.shape[: rows.axis])
    size = text.dim(rows.size)

    def vector() -> VectorElements:
        return VectorElements(text, writer.pointers, rows.axis)

    def blocks() -> AbstractContextManager[None]:
        return text.block(f"for (int64 {name} = 0; {name} < whole; {name} += {BLOCK})")

    with share(writer, "row", total):
        decompose(text, "row", source.shape[: rows.axis])
        text.line(f"const int64 whole = {size} / {BLOCK} * {BLOCK};")
        text.line(f"float32 *restrict to = {'scratch' if waiting else f'y0 + row * {size}'};")
        text.line("float32 most = -__builtin_inff();")
        text.line("float64 total = 0;")
        with text.block("if (whole > 0)"):
            text.line("float32x16 best = (float32x16)(-__builtin_inff());")
            with blocks():
                value = vector().of(source, access)
                text.line(f"best = {value} > best ? {value} : best;")
            text.line("most = max_across(best);")
        with text.loop(name, "whole", size), writer.elements.scope():
            value = writer.elements.of(source, access)
            text.line(f"most = {value} > most ? {value} : most;")
        kept = "low" if rows.op.log else "power"
        with text.block("if (whole > 0)"):
            text.line("float64x16 sums = (float64x16)0;")
            with text.block(f"for (int64 run = 0; run < whole; run += {_RUN})"):
                text.line("float32x16 part = (float32x16)0;")
                text.line(f"const int64 stop = min_int64(run + {_RUN}, whole);")
                with text.block(f"for (int64 {name} = run; {name} < stop; {name} += {BLOCK})"):
                    text.line(f"const float32x16 low = {vector().of(source, access)} - (float32x16)most;")
                    text.line("const float32x16 power = exp_float32(low);")
                    text.line(f"store_float32x16(to + {name}, {kept});")
                    text.line("part += power;")
                text.line("sums += widen(part);")
            text.line("total = sum_across(sums);")
        with text.loop(name, "whole", size), writer.elements.scope():
            text.line(f"const float32 low = {writer.elements.of(source, access)} - most;")
            text.line("const float32 power = exp_float32(low);")
            text.line(f"to[{name}] = {kept};")
            text.line("total += (float64)power;")
        text.line(f"const float32 last = {'log_float32((float32)total)' if rows.op.log else '1.0f / (float32)total'};")
        sign = "-" if rows.op.log else "*"
        with blocks():
            elements = vector()
            value = f"load_float32x16(to + {name}) {sign} (float32x16)last"
            elements.given[anchor.result()] = text.let("float32x16", value)
            stored = elements.of(root, access)
            if coefficient(position(access), rows.axis) != 1:
                raise DeclinedError("elements that do not lie side by side")
            at = f"{writer.result()} + {text.dim(position(access))}"
            text.line(store_lanes(root.dtype, at, stored))
        with text.loop(name, "whole", size), writer.elements.scope():
            _store(writer, anchor, text.let("float32", f"to[{name}] {sign} last"))
    kernel = writer.kernel(chunk_count(product(source.shape) * _WORK, total), waiting)
    return replace(kernel, text=ACROSS + kernel.text)
