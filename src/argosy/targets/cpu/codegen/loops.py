"""Loop nests over the result of a fused module: one loop per axis, outer ones shared out by chunk.

Neighbouring axes that every access walks as one are merged, so that a copy or a sum of two tensors is a
single loop, and a bias a loop over channels with one over pixels inside. The innermost axis stays a plain
loop for the vectoriser.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from argosy.ir import access as maps
from argosy.ir.dim import Dim, DimLike, Symbol, symbols_in
from argosy.ir.module import Module
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.c_text import CText, axis_name
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter, chunk_count

__all__ = ["chunked_loops", "elementwise_kernel", "merged_extents"]


def elementwise_kernel(module: Module) -> Kernel:
    """A module of views and elementwise ops: one loop nest that stores each element of the result."""
    result = module.results[0]
    shape = result.shape

    def write(writer: KernelWriter) -> None:
        place = maps.identity(shape)
        value = writer.elements.of(result, place)
        at = writer.elements.offset(place)
        writer.text.line(f"{scalar.store(result.dtype, writer.result(), at, value)};")

    trial = KernelWriter(module, [result.dtype])
    write(trial)
    extents = shape if trial.elements.positional else merged_extents(shape, trial.elements.offsets)
    writer = KernelWriter(module, [result.dtype])
    with writer.elements.scope():
        pieces = chunked_loops(writer.text, extents, lambda: write(writer))
    return writer.kernel(chunk_count(product(shape), pieces))


def merged_extents(extents: Sequence[DimLike], offsets: Sequence[DimLike]) -> tuple[DimLike, ...]:
    """The extents with merged axes: where axis a and the next are walked as one, a gets extent 1 and that its product.

    `offsets` are the positions of all accesses, over the axes of the nest. An axis of extent 1 stays at place 0, so
    that the positions remain right as they are.
    """
    merged = list(extents)
    for axis in range(len(merged) - 1):
        if all(_walks_as_one(offset, axis, merged[axis + 1]) for offset in offsets):
            merged[axis + 1] = (
                merged[axis + 1] * merged[axis]
                if isinstance(merged[axis + 1], Dim)
                else (merged[axis] * merged[axis + 1])
            )
            merged[axis] = 1
    return tuple(merged)


def _walks_as_one(offset: DimLike, axis: int, inner: DimLike) -> bool:
    """Whether a step along `axis` moves `offset` as far as `inner` steps along the next axis do."""
    left, right = _coefficient(offset, axis), _coefficient(offset, axis + 1)
    if left is None or right is None:
        return False
    return left == (right * inner if isinstance(right, Dim) else inner * right)


def _coefficient(offset: DimLike, axis: int) -> DimLike | None:
    """What a step along `axis` adds to `offset`; None where that is no fixed amount."""
    if isinstance(offset, int):
        return 0
    name = f"@{axis}"
    total: DimLike = 0
    for monomial, coefficient in offset.terms:
        mentions = [atom for atom in monomial if _mentions(atom, name)]
        if not mentions:
            continue
        if len(mentions) > 1 or not isinstance(mentions[0], Symbol):
            return None
        rest = tuple(atom for atom in monomial if atom is not mentions[0])
        total = total + (Dim(((rest, coefficient),)) if rest else coefficient)
    return total


def _mentions(atom: object, name: str) -> bool:
    if isinstance(atom, Symbol):
        return atom.name == name
    return any(symbol.name == name for symbol in symbols_in(Dim((((atom,), 1),))))  # type: ignore[arg-type]


def chunked_loops(text: CText, extents: Sequence[DimLike], body: Callable[[], None]) -> DimLike:
    """Loops over `extents` with `body` inside; returns into how many pieces the outermost can be cut.

    The last axis of more than one place is the inner loop; all before it are one flattened counter, which chunks
    share out. A nest of one axis is cut itself.
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
        with text.loop(axis_name(live[-1]), "0", text.dim(extents[live[-1]])):
            body()
    return count
