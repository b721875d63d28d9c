"""Copying elements of a value into packed form: runs of 16, and blocks of 16 by 16 turned over."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

from argosy.ir import access as maps
from argosy.ir.access import Access
from argosy.ir.dim import DimLike
from argosy.ir.dtype import FLOAT32, DType
from argosy.ir.module import Module, Value
from argosy.passes.fuse_loops import VIEWS
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.element import Elements
from argosy.targets.cpu.codegen.kernel import KernelWriter
from argosy.targets.cpu.codegen.tile import BLOCK
from argosy.targets.cpu.codegen.vector_elements import KINDS, VectorElements, store_lanes
from argosy.targets.cpu.codegen.walking import coefficient
from argosy.targets.lowering.accesses import DeclinedError
from argosy.targets.lowering.kernel_text import axis_name

__all__ = [
    "address",
    "copy_block",
    "copy_run",
    "decompose",
    "is_view",
    "lies_along",
    "run_vectors",
    "share",
    "transpose_text",
]

_TRANSPOSE: Final = """\
static inline __attribute__((always_inline)) void transpose_16(KINDx16 *v) {
#pragma clang loop unroll(full)
  for (int round = 0; round < 4; ++round) {
    KINDx16 w[16];
#pragma clang loop unroll(full)
    for (int i = 0; i < 8; ++i) {
      w[2 * i] = __builtin_shufflevector(v[i], v[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      w[2 * i + 1] =
          __builtin_shufflevector(v[i], v[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < 16; ++i) v[i] = w[i];
  }
}
"""


def transpose_text(kind: str) -> str:
    """C by which sixteen vectors become their columns: four perfect shuffles of all elements are a transposition."""
    return _TRANSPOSE.replace("KIND", kind)


def decompose(text: CText, position: str, shape: Sequence[DimLike], first: int = 0) -> None:
    """Declare the places on axes `first` and following from a position in row-major order over `shape`."""
    if not shape:
        return
    rest = position
    if len(shape) > 1:
        rest = text.fresh("left")
        text.line(f"int64 {rest} = {position};")
    for axis in reversed(range(1, len(shape))):
        size = text.dim(shape[axis])
        text.line(f"const int64 {axis_name(first + axis)} = {rest} % {size}; {rest} /= {size};")
    text.line(f"const int64 {axis_name(first)} = {rest};")


@contextlib.contextmanager
def share(writer: KernelWriter, name: str, total: DimLike) -> Iterator[None]:
    """A loop over this chunk's share of `total` pieces."""
    text = writer.text
    count = text.let("int64", text.dim(total))
    with text.loop(name, f"{count} * chunk / chunks", f"{count} * (chunk + 1) / chunks"):
        yield


def lies_along(module: Module, value: Value, axis: int, dtype: DType = FLOAT32) -> bool:
    """Whether neighbours along an axis of a value, computed as `dtype` is, lie side by side in a buffer."""
    if value.dtype.compute is not dtype.compute or dtype not in KINDS:
        return False
    writer = KernelWriter(module, [dtype])
    elements = VectorElements(writer.text, writer.pointers, axis)
    try:
        elements.of(value, maps.identity(value.shape))
    except DeclinedError:
        return False
    return any(coefficient(offset, axis) == 1 for offset in elements.offsets)


def is_view(module: Module) -> bool:
    """Whether a module does no more than look at a parameter in another way."""
    return all(instruction.op.name in VIEWS for instruction in module.instructions)


class _Addresses(Elements):
    """Where elements lie, in place of what they are."""

    def load(self, dtype: DType, pointer: str, access: Access) -> str:
        return f"({pointer} + {self.offset(access)})"


def address(writer: KernelWriter, value: Value) -> str:
    """The address of the element of a view at the places that are variables."""
    return _Addresses(writer.text, writer.pointers).of(value, maps.identity(value.shape))


def copy_run(writer: KernelWriter, value: Value, axis: int, first: str, count: str, to: str, dtype: DType) -> None:
    """Copy `count`, at most 16, elements along `axis` from place `first` on, as `dtype`; then zeros up to 16.

    The places on the other axes are variables.
    """
    text, name = writer.text, axis_name(axis)
    if run_vectors(writer.module, value, axis, dtype):
        with text.block(f"if ({count} >= {BLOCK})"):
            text.line(f"const int64 {name} = {first};")
            elements = VectorElements(text, writer.pointers, axis)
            text.line(store_lanes(dtype, to, elements.of(value, maps.identity(value.shape))))
        text.line("else")
    with text.loop("lane", "0", str(BLOCK)), writer.elements.scope():
        text.line(f"if (lane >= {count}) {{ ({to})[lane] = 0; continue; }}")
        text.line(f"const int64 {name} = {first} + lane;")
        element = writer.elements.of(value, maps.identity(value.shape))
        text.line(f"{scalar.store(dtype, f'({to})', 'lane', f'({scalar.compute_type(dtype)}){element}')};")


def run_vectors(module: Module, value: Value, axis: int, dtype: DType) -> bool:
    """Whether runs along an axis can be computed as vectors that are stored as `dtype`."""
    if value.dtype.compute is not dtype.compute:
        return False
    writer = KernelWriter(module, [dtype])
    try:
        VectorElements(writer.text, writer.pointers, axis).of(value, maps.identity(value.shape))
        store_lanes(dtype, "to", "v")
    except DeclinedError:
        return False
    return True


def copy_block(writer: KernelWriter, value: Value, along: int, across: int, first: str, to: str, pitch: int) -> None:
    """Copy 16 elements `along` the axis on which they lie side by side, from its place on, for 16 places `across`.

    Those across, from place `first` on, become neighbours: rows of 16 that lie `pitch` elements apart.
    """
    text = writer.text
    with text.block(""):
        text.line("float32x16 v[16];")
        text.line("#pragma clang loop unroll(full)")
        with text.loop("lane", "0", str(BLOCK)):
            text.line(f"const int64 {axis_name(across)} = {first} + lane;")
            elements = VectorElements(text, writer.pointers, along)
            text.line(f"v[lane] = {elements.of(value, maps.identity(value.shape))};")
        text.line("transpose_16(v);")
        text.line("#pragma clang loop unroll(full)")
        with text.loop("lane", "0", str(BLOCK)):
            text.line(f"store_float32x16({to} + lane * {pitch}, v[lane]);")
