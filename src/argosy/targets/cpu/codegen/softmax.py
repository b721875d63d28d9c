"""Softmax and its logarithm along any axis: the greatest, the sum of the powers, then the quotients."""

from __future__ import annotations

from argosy.ir import access as maps
from argosy.ir.access import Access, axis_index
from argosy.ir.dim import DimLike
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.reduce import Softmax
from argosy.ops.shapes import normalize_axis, product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.c_text import axis_name
from argosy.targets.cpu.codegen.element import axes_access, op_of, present
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.loops import chunked_loops

__all__ = ["softmax_loops"]


def softmax_loops(module: Module, anchor: Instruction) -> Kernel:
    """Three passes over each row; what follows the softmax is computed in the third."""
    op = op_of(anchor, Softmax)
    root, source = module.results[0], present(anchor, 0)
    axis = normalize_axis(op.axis, source.rank)
    size = source.shape[axis]
    kind = source.dtype.compute
    writer = KernelWriter(module, [root.dtype])
    text, elements = writer.text, writer.elements
    name = axis_name(axis)
    outer = tuple(1 if place == axis else extent for place, extent in enumerate(source.shape))

    def value(of: Value) -> str:
        return elements.of(of, _along(source.shape))

    def body() -> None:
        limit = text.dim(size)
        text.line(f"{kind} most = {scalar.constant(float('-inf'), kind)};")
        with text.loop(name, "0", limit), elements.scope():
            text.line(f"most = {scalar.apply('max', ['most', value(source)], [kind, kind], kind)};")
        text.line("float64 total = 0;")
        with text.loop(name, "0", limit), elements.scope():
            power = scalar.apply("exp", [f"({value(source)} - most)"], [kind], kind)
            text.line(f"total += (float64){power};")
        if op.log:
            whole = scalar.apply("log", [f"({kind})total"], [kind], kind)
            text.line(f"const {kind} whole = {whole};")
        else:
            text.line(f"const {kind} whole = ({kind})total;")
        with text.loop(name, "0", limit), elements.scope():
            shifted = f"({value(source)} - most)"
            result = f"{shifted} - whole" if op.log else f"{scalar.apply('exp', [shifted], [kind], kind)} / whole"
            elements.given[anchor.result()] = text.let(str(kind), result)
            place = maps.identity(root.shape)
            stored = elements.of(root, place)
            text.line(f"{scalar.store(root.dtype, writer.result(), elements.offset(place), stored)};")

    with elements.scope():
        pieces = chunked_loops(text, outer, body)  # the body's loops along the axis shadow its place of 0
    return writer.kernel(chunk_count(product(source.shape) * 4, pieces))


def _along(shape: tuple[DimLike, ...]) -> Access:
    return axes_access(shape, shape, [axis_index(axis, extent) for axis, extent in enumerate(shape)])
