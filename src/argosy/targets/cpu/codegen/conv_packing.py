"""Packing the weights of direct convolutions."""

from __future__ import annotations

from argosy.ir import access as maps
from argosy.ir.dim import ceildiv
from argosy.ir.dtype import DType
from argosy.ir.module import Module, Value
from argosy.ops.shapes import product
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.conv_window import Channels, Window, panel_rows
from argosy.targets.cpu.codegen.copying import decompose, share
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.products import Products
from argosy.targets.cpu.codegen.short_panels import start_sums
from argosy.targets.cpu.codegen.tile import Tile
from argosy.targets.cpu.layout import LANES

__all__ = ["pack_weights"]


def pack_weights(module: Module, weight: Value, window: Window, tile: Tile, products: Products, lanes: int) -> Kernel:
    """Weights `[M, C / group, *kernel]` in panels, in the order in which a tile sums; columns beyond M are zeros.

    `lanes` are the channels that lie side by side in the image.
    """
    kind, group, width = products.right, products.group, tile.columns
    writer = KernelWriter(module, [kind])
    text, stored = writer.text, scalar.storage_type(kind)
    channels = Channels.of(window, tile)
    kernel = weight.shape[2:]
    taps = product(kernel)
    total = ceildiv(weight.shape[0], width)
    with share(writer, "panel", total):
        channels.declare(text)
        size = text.dim(panel_rows(window, tile, products))
        text.line(f"{stored} *restrict head = y0 + panel * {size} * {width * group};")
        text.line(f"{stored} *restrict rows = head + {products.head * width * group};")
        with text.block(f"for (int64 channel = 0; channel < depth; channel += {group})"):
            text.line(f"const int64 begin = channel / {lanes} * {lanes}, size = min_int64({lanes}, depth - begin);")
            with text.loop("tap", "0", text.dim(taps)):
                decompose(text, "tap", kernel, 2)
                row = f"tap * ((size + {group - 1}) / {group}) + (channel - begin) / {group}"
                text.line(
                    f"{stored} *restrict to = rows + (begin / {group} * {text.dim(taps)} + {row}) * {width * group};"
                )
                with text.loop("lane", "0", str(width)), text.loop("part", "0", str(group)), writer.elements.scope():
                    _pack_element(writer, weight, window, kind, group, width)
        if products.head:
            start_sums(text, products, "head", "rows", f"(depth + {group - 1}) / {group} * {text.dim(taps)}", width)
    return writer.kernel(chunk_count(product(weight.shape), total))


def _pack_element(writer: KernelWriter, weight: Value, window: Window, kind: DType, group: int, width: int) -> None:
    """Put the weight of a column, `lane`, and a channel, `channel + part`, in its place; zero where there is none."""
    text = writer.text
    outputs, own = text.dim(weight.shape[0]), text.dim(weight.shape[1])
    each = text.dim(weight.shape[0] // window.group)
    before = f" - i0 / {each} * {own}" if window.group > 1 else ""
    text.line(f"const int64 i0 = panel * {width} + lane, i1 = base * {LANES} + channel + part{before};")
    outside = f"i0 >= {outputs} || channel + part >= depth || i1 < 0 || i1 >= {own}"
    text.line(f"if ({outside}) {{ to[lane * {group} + part] = 0; continue; }}")
    element = writer.elements.of(weight, maps.identity(weight.shape))
    number = f"({scalar.compute_type(kind)}){element}"
    text.line(f"{scalar.store(kind, 'to', f'lane * {group} + part', number)};")
