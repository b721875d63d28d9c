"""Loops for what a transpose leaves: a load walks along one axis, the store along another.

They go by stripes of a cache line, so that all elements of a line are used before it leaves the cache. Where it can be
done in vectors, blocks of 16 x 16 elements are computed along the axis of the load and turned in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from argosy.ir.access import Access, identity
from argosy.ir.dim import DimLike, ceildiv
from argosy.ir.dtype import FLOAT32
from argosy.ir.module import Instruction, Value
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.vector_elements import VectorElements, position
from argosy.targets.cpu.codegen.walking import coefficient
from argosy.targets.lowering.accesses import DeclinedError
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["TURN", "Turned", "crossed_axis", "crossed_loops"]

_STRIPE: Final = 16
"""Elements of a stripe: a cache line of float32."""


def _turn() -> str:
    """Four rounds: round r exchanges, between vectors 2^r apart, the lanes whose numbers differ in bit r."""
    lines = ["INLINE void turn_float32x16(float32x16 *v) {"]
    for step in (1, 2, 4, 8):
        low = ", ".join(str(lane if not lane & step else 16 + lane - step) for lane in range(16))
        high = ", ".join(str(lane + step if not lane & step else 16 + lane) for lane in range(16))
        lines.append("#pragma clang loop unroll(full)")
        lines.append("  for (int64 r = 0; r < 16; ++r) {")
        lines.append(f"    if (r & {step}) continue;")
        lines.append(f"    const float32x16 a = v[r], b = v[r + {step}];")
        lines.append(f"    v[r] = __builtin_shufflevector(a, b, {low});")
        lines.append(f"    v[r + {step}] = __builtin_shufflevector(a, b, {high});")
        lines.append("  }")
    return "\n".join([*lines, "}", ""])


TURN: Final = _turn()
"""C that transposes 16 vectors of 16 lanes."""


class Turned:
    """Blocks of a value computed along one axis of the nest and stored along another, the last."""

    def __init__(self, value: Value, place: Access, pointers: dict[Instruction, str], result: str) -> None:
        self._value = value
        self._place = place
        self._pointers = pointers
        self._result = result

    def applies(self, crossed: int, last: int) -> bool:
        """Whether there are vectors of everything that is read, and of the result."""
        at = position(self._place)
        if self._value.dtype is not FLOAT32 or coefficient(at, last) != 1:
            return False
        try:
            self.write(CText(), crossed, last)
        except DeclinedError:
            return False
        return True

    def write(self, text: CText, crossed: int, last: int) -> None:
        """One block: the variable of the crossed axis is the first of its places, `begin` that of the last axis."""
        along, across = axis_name(crossed), axis_name(last)
        with text.block(""):
            text.line("float32x16 rows[16];")
            text.line("#pragma clang loop unroll(full)")
            with text.loop("row", "0", "16"):
                text.line(f"const int64 {across} = begin + row;")
                elements = VectorElements(text, self._pointers, crossed)
                text.line(f"rows[row] = {elements.of(self._value, identity(self._place.extents))};")
            text.line("turn_float32x16(rows);")
            text.line("#pragma clang loop unroll(full)")
            with text.loop("row", "0", "16"):
                text.line(f"const int64 here = {along} + row;")
                with text.block(""):
                    text.line(f"const int64 {along} = here, {across} = begin;")
                    text.line(f"store_float32x16({self._result} + {text.dim(position(self._place))}, rows[row]);")


def crossed_axis(extents: Sequence[DimLike], offsets: Sequence[DimLike]) -> int | None:
    """The axis along which a load walks element by element while it jumps along the last: that of a transpose."""
    live = [axis for axis, size in enumerate(extents) if not (isinstance(size, int) and size == 1)]
    for offset in offsets[:-1]:  # the last is the store's
        if len(live) > 1 and coefficient(offset, live[-1]) not in (None, 0, 1):
            for axis in live[:-1]:
                if coefficient(offset, axis) == 1:
                    return axis
    return None


def crossed_loops(
    text: CText, extents: Sequence[DimLike], crossed: int, body: Callable[[], None], turned: Turned
) -> tuple[DimLike, bool]:
    """Like `chunked_loops`: the last axis by stripes, the crossed one inside, a stripe last; with `turned` blocks.

    Returns also whether there are such blocks.
    """
    live = [axis for axis, size in enumerate(extents) if not (isinstance(size, int) and size == 1)]
    last = live[-1]
    for axis in range(len(extents)):
        if axis not in live:
            text.line(f"const int64 {axis_name(axis)} = 0;")
    outer = [axis for axis in live[:-1] if axis != crossed]
    size, width = text.dim(extents[last]), text.dim(extents[crossed])
    blocks = ceildiv(extents[last], _STRIPE)
    count = product((*(extents[axis] for axis in outer), blocks))
    in_blocks = turned.applies(crossed, last)
    text.line(f"const int64 stripes = {text.dim(count)};")
    with text.loop("stripe", "stripes * chunk / chunks", "stripes * (chunk + 1) / chunks"):
        text.line(f"int64 left = stripe / {text.dim(blocks)};")
        text.line(f"const int64 begin = stripe % {text.dim(blocks)} * {_STRIPE};")
        text.line(f"const int64 end = min_int64(begin + {_STRIPE}, {size});")
        for axis in reversed(outer):
            extent = text.dim(extents[axis])
            text.line(f"const int64 {axis_name(axis)} = left % {extent}; left /= {extent};")
        text.line("(void)left;")
        begin = "0"
        if in_blocks:
            text.line(f"const int64 whole = end - begin == {_STRIPE} ? {width} / {_STRIPE} * {_STRIPE} : 0;")
            with text.block(
                f"for (int64 {axis_name(crossed)} = 0; {axis_name(crossed)} < whole; {axis_name(crossed)} += 16)"
            ):
                turned.write(text, crossed, last)
            begin = "whole"
        with text.loop(axis_name(crossed), begin, width), text.loop(axis_name(last), "begin", "end"):
            body()
    return count, in_blocks
