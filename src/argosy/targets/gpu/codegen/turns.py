"""Kernels of loops and scans: a number of iterations, and the element whose turn it is."""

from __future__ import annotations

from argosy.ir import access as maps
from argosy.ir.access import axis_index
from argosy.ir.dim import DimLike, Symbol, ceildiv, symbol_dim
from argosy.ir.dtype import INT64
from argosy.ir.module import Instruction, Module, Parameter
from argosy.ir.types import TensorType
from argosy.ops.shapes import product
from argosy.targets.gpu.codegen.kernel import Kernel, KernelWriter, Launch
from argosy.targets.gpu.codegen.loops import decompose
from argosy.targets.gpu.words import words_type
from argosy.targets.lowering.accesses import axes_access
from argosy.targets.lowering.control import Turn

__all__ = ["element_kernel", "length_kernel"]

_BLOCK = 256


def length_kernel(length: DimLike) -> Kernel:
    """Writes a size as an int64."""
    writer = KernelWriter(Module("length", (), (), (), ()))
    writer.text.line(f"tl.store({writer.result()}, {writer.text.dim(length)})")
    return writer.kernel(Launch((1, 1, 1), 1), [INT64]).labelled("length")


def element_kernel(turn: Turn) -> Kernel:
    """Copies the element whose turn it is. Reads the tensor and the iteration."""
    kind = words_type(turn.value.tensor)
    shape = kind.dims or ()
    parameters = [
        Instruction(Parameter(each), (), (each,), (None,), (name,))
        for each, name in ((kind, "x"), (TensorType(INT64, ()), "iteration"))
    ]
    x = parameters[0].result()
    module = Module("element", tuple(parameters), (), (x,), ("y",))
    writer = KernelWriter(module, (None, None))
    text, elements = writer.text, writer.elements
    rest = (*shape[: turn.axis], *shape[turn.axis + 1 :])
    count = product(rest)
    writer.lanes = ("i",)
    text.root("i", f"{writer.program()} * {_BLOCK} + tl.arange(0, {_BLOCK})")
    text.line(f"inside = i < {text.dim(count)}")
    elements.masks.append(("inside", text.roots["i"]))
    decompose(writer, "i", rest)
    text.line(f"turn = tl.load(p1).to({text.index_type})")
    at = symbol_dim(Symbol("@turn", 0))
    size = shape[turn.axis]
    place = size - 1 - at if turn.backwards else at
    indices = [axis_index(axis, extent) for axis, extent in enumerate(rest)]
    indices.insert(turn.axis, place)
    value = elements.of(x, axes_access(rest, shape, indices))
    elements.flat = None
    writer.store(value, kind.dtype, maps.identity(rest))
    return writer.kernel(Launch((ceildiv(count, _BLOCK), 1, 1), 2)).labelled("element")
