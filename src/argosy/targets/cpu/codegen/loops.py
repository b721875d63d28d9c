"""Loop nests over the result of a fused module: one loop per axis, outer ones shared out by chunk.

Neighbouring axes that every access walks as one are merged, so that a copy or a sum of two tensors is a
single loop, and a bias a loop over channels with one over pixels inside. The innermost axis stays a plain
loop for the vectoriser.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from argosy.ir import access as maps
from argosy.ir.access import Access
from argosy.ir.dim import DimLike, dim_max
from argosy.ir.dtype import DTYPES, DType
from argosy.ir.module import Module, Value
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.crossing import TURN, Turned, crossed_axis, crossed_loops
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.walking import merged_extents
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["Nest", "chunked_loops", "copy_code", "elementwise_kernel", "store_kernel"]


def elementwise_kernel(module: Module) -> Kernel:
    """A module of views and elementwise ops: one loop nest that stores each element of the result."""
    result = module.results[0]
    place = maps.identity(result.shape)
    return store_kernel(module, [result.dtype], [Nest(result, result.shape, 0, place)])


_STRIPE: Final = 16
"""Elements of a stripe: a cache line of float32."""
_INDEPENDENT: Final = "#pragma clang loop vectorize(assume_safety)"


@dataclass(frozen=True, slots=True)
class Nest:
    """Loops over `extents` that put the elements of `value`, each at its own place, into result number `result`."""

    value: Value
    extents: tuple[DimLike, ...]
    result: int
    place: Access


def store_kernel(module: Module, results: Sequence[DType], nests: Sequence[Nest]) -> Kernel:
    """One nest after the other; every chunk takes its share of each."""
    writer = KernelWriter(module, results)
    pieces: DimLike = 1
    work: DimLike = 0
    turns = False
    for nest in nests:
        trial = KernelWriter(module, results)
        _store(trial, nest)
        whole = nest.extents if trial.elements.positional else merged_extents(nest.extents, trial.elements.offsets)
        with contextlib.ExitStack() as stack:
            if len(nests) > 1:
                stack.enter_context(writer.text.block(""))
            stack.enter_context(writer.elements.scope())
            crossed = crossed_axis(whole, trial.elements.offsets)

            def body(nest: Nest = nest) -> None:
                _store(writer, nest)

            if crossed is None:
                independent = len(nests) == 1 and bool(trial.read_in_place())
                count = chunked_loops(writer.text, whole, body, independent=independent)
            else:
                turned = Turned(nest.value, nest.place, writer.pointers, writer.result(nest.result))
                count, in_blocks = crossed_loops(writer.text, whole, crossed, body, turned)
                turns = turns or in_blocks
        pieces = dim_max(pieces, count)
        work = product(nest.extents) + work
    if len(nests) == 1:
        writer.in_place = writer.read_in_place()
    kernel = writer.kernel(chunk_count(work, pieces))
    return replace(kernel, text=TURN + kernel.text) if turns else kernel


def _store(writer: KernelWriter, nest: Nest) -> None:
    value = writer.elements.of(nest.value, maps.identity(nest.extents))
    at = writer.elements.offset(nest.place)
    writer.stored = writer.elements.offsets[-1]
    writer.text.line(f"{scalar.store(nest.value.dtype, writer.result(nest.result), at, value)};")


def copy_code(dtype: DType) -> DType:
    """The type as which elements are copied: an integer of their width, so that all bits stay, those of NaNs too."""
    return DTYPES.get(f"uint{max(dtype.bits, 8)}", dtype)


def chunked_loops(
    text: CText, extents: Sequence[DimLike], body: Callable[[], None], *, independent: bool = False
) -> DimLike:
    """Loops over `extents` with `body` inside; returns into how many pieces the outermost can be cut.

    The last axis of more than one place is the inner loop; all before it are one flattened counter, which chunks
    share out. A nest of one axis is cut itself. `independent` says that no element needs what was stored for another,
    which the compiler can't see of a result that may lie where an operand does.
    """
    live = [axis for axis, size in enumerate(extents) if not (isinstance(size, int) and size == 1)]
    for axis in range(len(extents)):
        if axis not in live:
            text.line(f"const int64 {axis_name(axis)} = 0;")
    if not live:
        with text.block("if (chunk == 0)"):
            body()
        return 1
    if len(live) == 1:
        total = text.dim(extents[live[0]])
        name = axis_name(live[0])
        if independent:
            text.line(_INDEPENDENT)
        with text.loop(name, f"{total} * chunk / chunks", f"{total} * (chunk + 1) / chunks"):
            body()
        return extents[live[0]]
    outer = live[:-1]
    count = product(tuple(extents[axis] for axis in outer))
    text.line(f"const int64 outer_total = {text.dim(count)};")
    with text.loop("outer", "outer_total * chunk / chunks", "outer_total * (chunk + 1) / chunks"):
        if len(outer) > 1:
            text.line("int64 left = outer;")
        for axis in reversed(outer[1:]):
            size = text.dim(extents[axis])
            text.line(f"const int64 {axis_name(axis)} = left % {size}; left /= {size};")
        text.line(f"const int64 {axis_name(outer[0])} = {'left' if len(outer) > 1 else 'outer'};")
        if independent:
            text.line(_INDEPENDENT)
        with text.loop(axis_name(live[-1]), "0", text.dim(extents[live[-1]])):
            body()
    return count
