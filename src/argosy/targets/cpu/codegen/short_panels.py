"""Panels of short numbers: groups of neighbours along the sum lie side by side for every column.

`[panels][groups][columns][group]`, zeros beyond the ends, before each panel what its sums start from where the
products ask for it.
"""

from __future__ import annotations

from dataclasses import replace

from argosy.ir import access as maps
from argosy.ir.dim import DimLike, ceildiv
from argosy.ir.module import Module, Value
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.copying import decompose, run_vectors, share
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.products import Products
from argosy.targets.cpu.codegen.tile import BLOCK, Tile
from argosy.targets.cpu.codegen.vector_elements import VectorElements, stored_lanes
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["pack_groups", "start_sums"]


def pack_groups(module: Module, right: Value, products: Products, tile: Tile, depth: DimLike) -> Kernel:
    """The right operand `[*batch, depth, columns]` of a product, a panel at a time."""
    kind, group, width = products.right, products.group, tile.columns
    writer = KernelWriter(module, [kind])
    text = writer.text
    lead = right.shape[:-2]
    panels = ceildiv(right.shape[-1], width)
    total = product(lead) * panels
    along, across = axis_name(right.rank - 2), axis_name(right.rank - 1)
    deep, columns, count = (text.dim(size) for size in (depth, right.shape[-1], panels))
    groups = text.dim(ceildiv(depth, group))
    vectors = run_vectors(module, right, right.rank - 1, kind)
    with share(writer, "panel", total):
        text.line(f"const int64 first = panel % {count} * {width};")
        decompose(text, f"panel / {count}", lead)
        size = f"({groups} + {products.head}) * {width * group}"
        text.line(f"{scalar.storage_type(kind)} *restrict whole = y0 + panel * ({size});")
        text.line(f"{scalar.storage_type(kind)} *restrict to = whole + {products.head * width * group};")
        with text.loop("row", "0", groups), text.loop("v", "0", str(tile.vectors)):
            text.line(f"const int64 column = first + v * {BLOCK};")
            text.line(f"{scalar.storage_type(kind)} *restrict at = to + (row * {width} + v * {BLOCK}) * {group};")
            if vectors:
                with text.block(f"if (column + {BLOCK} <= {columns} && (row + 1) * {group} <= {deep})"):
                    _interleave(writer, right, products)
                    text.line("continue;")
            with text.loop("lane", "0", str(BLOCK)), text.loop("part", "0", str(group)), writer.elements.scope():
                text.line(f"const int64 {across} = column + lane, {along} = row * {group} + part;")
                text.line(
                    f"if ({across} >= {columns} || {along} >= {deep}) {{ at[lane * {group} + part] = 0; continue; }}"
                )
                element = writer.elements.of(right, maps.identity(right.shape))
                text.line(f"{scalar.store(kind, 'at', f'lane * {group} + part', element)};")
        if products.head:
            start_sums(text, products, "whole", "to", groups, width)
    kernel = writer.kernel(chunk_count(product(right.shape), total))
    return replace(kernel, text=_interleaved(scalar.storage_type(kind), group) + kernel.text) if vectors else kernel


def start_sums(text: CText, products: Products, head: str, panel: str, rows: str, width: int) -> None:
    """Write what the sums of a panel of `rows` groups start from, by the sums of its columns."""
    group = products.group
    with text.loop("lane", "0", str(width)):
        text.line("int32 sum = 0;")
        with text.loop("row", "0", rows), text.loop("part", "0", str(group)):
            text.line(f"sum += {panel}[(row * {width} + lane) * {group} + part];")
        text.line(f"sum *= {products.start};")
        text.line(f"__builtin_memcpy({head} + lane * {group}, &sum, sizeof sum);")


def _interleave(writer: KernelWriter, right: Value, products: Products) -> None:
    """Copy sixteen columns of a group of rows."""
    text, kind = writer.text, scalar.storage_type(products.right)
    text.line(f"const int64 {axis_name(right.rank - 1)} = column;")
    names = [text.fresh("rows") for _ in range(products.group)]
    for part, name in enumerate(names):
        text.line(f"{kind}x16 {name};")
        with text.block(""):
            text.line(f"const int64 {axis_name(right.rank - 2)} = row * {products.group} + {part};")
            elements = VectorElements(text, writer.pointers, right.rank - 1)
            value = elements.of(right, maps.identity(right.shape))
            text.line(f"{name} = {stored_lanes(products.right, value)};")
    text.line(f"interleave(at, {', '.join(names)});")


def _interleaved(kind: str, parts: int) -> str:
    """C that stores `parts` vectors of sixteen numbers so that those of a lane lie side by side."""
    lines = [f"INLINE void interleave({kind} *to, {', '.join(f'{kind}x16 v{part}' for part in range(parts))}) {{"]
    names, size = [f"v{part}" for part in range(parts)], 16
    unit = 1
    for length in (32, 64):
        if len(names) == 1:
            break
        order = [
            place
            for lane in range(0, size, unit)
            for begin in (0, size)
            for place in range(begin + lane, begin + lane + unit)
        ]
        lines.append(f"    typedef {kind} vector{length} __attribute__((ext_vector_type({length})));")
        pairs = list(zip(names[::2], names[1::2], strict=True))
        names = [f"w{length}_{number}" for number in range(len(pairs))]
        for name, (left, right) in zip(names, pairs, strict=True):
            shuffled = f"__builtin_shufflevector({left}, {right}, {', '.join(map(str, order))})"
            lines.append(f"    const vector{length} {name} = {shuffled};")
        size, unit = length, unit * 2
    lines.append(f"    __builtin_memcpy(to, &{names[0]}, sizeof {names[0]});")
    return "\n".join([*lines, "}", ""])
