"""What slides over an image: sizes of a convolution or a pooling, and the channels and weights that tiles read."""

from __future__ import annotations

from dataclasses import dataclass

from argosy.ir.dim import DimLike, ceildiv
from argosy.ir.dtype import FLOAT32, DType
from argosy.ir.module import Instruction, Value
from argosy.ir.types import Dims, TensorType
from argosy.ops.convolution import Conv
from argosy.ops.shapes import product
from argosy.ops.slicing import Pad
from argosy.ops.window import extents, resolve_pads
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.products import Products
from argosy.targets.cpu.codegen.tile import Tile
from argosy.targets.cpu.layout import LANES, Blocked
from argosy.targets.lowering.accesses import DeclinedError, op_of, present

__all__ = ["Channels", "Window", "panel_rows", "source_of", "weights_type"]


@dataclass(frozen=True, slots=True)
class Window:
    """A convolution or a pooling: sizes of the image and of what slides over it."""

    source: Dims
    result: Dims
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: Dims
    """Pixels before and behind each axis that are taken as zero, or as `fill`."""
    group: int = 1
    dtype: DType = FLOAT32
    fill: int = 0

    @staticmethod
    def of(anchor: Instruction) -> Window:
        """The window of a conv. Raises DeclinedError where its size or its pads are known only when it runs."""
        op = op_of(anchor, Conv)
        x, weight, result = source_of(anchor), present(anchor, 1), anchor.result()
        kernel = tuple(size for size in weight.shape[2:] if isinstance(size, int))
        pads = resolve_pads(op.auto_pad, x.shape[2:], extents(weight.shape[2:], op.dilations), op.strides, op.pads)
        fill, before = 0, present(anchor, 0).instruction
        if isinstance(before.op, Pad):
            if any(pad != 0 for pad in pads):
                raise DeclinedError("what it convolves is padded twice")
            pads, fill = _padding(before, before.op)
        begins, ends = tuple(pad for pad in pads[: x.rank - 2] if isinstance(pad, int)), pads[x.rank - 2 :]
        if len(kernel) + len(begins) != 2 * (x.rank - 2):
            raise DeclinedError("the size of the window or its padding is known only when the program runs")
        # The weights tell the channels where the input leaves them open, so that packed ones have a known size.
        channels = weight.shape[1] * op.group if isinstance(weight.shape[1], int) else x.shape[1]
        source = (x.shape[0], channels, *x.shape[2:])
        return Window(source, result.shape, kernel, op.strides, op.dilations, begins, ends, op.group, x.dtype, fill)

    @property
    def halo(self) -> Blocked:
        """A blocked image with the halo that the windows reach into."""
        pairs = []
        for axis, (size, count, begin) in enumerate(zip(self.source[2:], self.result[2:], self.begins, strict=True)):
            reach = (self.kernel[axis] - 1) * self.dilations[axis]
            over = (count - 1) * self.strides[axis] + reach + 1 - begin - size
            if not isinstance(over, int):
                # How far the last window reaches depends on the size; never further than the padding.
                end = self.ends[axis]
                over = end if isinstance(end, int) else reach
            pairs.append((begin, max(over, 0)))
        return Blocked(tuple(pairs), self.dtype, self.fill)


def source_of(anchor: Instruction) -> Value:
    """What a convolution slides over: its first operand, or what that pads."""
    x = present(anchor, 0)
    return present(x.instruction, 0) if isinstance(x.instruction.op, Pad) else x


def _padding(instruction: Instruction, op: Pad) -> tuple[Dims, int]:
    """The pads of the spatial axes, all begins and then all ends, and what is there."""
    rank = instruction.result().rank
    value = instruction.operands[2] if len(instruction.operands) > 2 else None
    fill = 0 if value is None else value.constant.item() if value.constant is not None else None
    if op.mode != "constant" or op.axes is not None or op.pads is None or not isinstance(fill, (int, float)):
        raise DeclinedError("what it convolves is padded in a way that no halo is")
    begins, ends = op.pads[:rank], op.pads[rank:]
    if any(pad != 0 for pad in (*begins[:2], *ends[:2])) or any(not isinstance(pad, int) or pad < 0 for pad in op.pads):
        raise DeclinedError("what it convolves is padded in a way that no halo is")
    if fill != int(fill) or (fill and instruction.result().dtype.is_float):
        raise DeclinedError("what it convolves is padded with other numbers than zero")
    return (*begins[2:], *ends[2:]), int(fill)


@dataclass(frozen=True, slots=True)
class Channels:
    """Which input channels the columns of a panel are sums over.

    Of a grouped convolution a panel reads the channels of the groups in which its columns lie, from the begin of a
    block on; those of other groups among them get weights of zero. Otherwise it reads all channels.
    """

    source: DimLike
    outputs: DimLike
    group: int
    columns: int

    @staticmethod
    def of(window: Window, tile: Tile) -> Channels:
        """The channels of a convolution by panels of `tile`."""
        return Channels(window.source[1], window.result[1], window.group, tile.columns)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """For each panel of a grouped convolution the first block that it reads, and how many channels from there."""
        if not isinstance(self.source, int) or not isinstance(self.outputs, int):
            raise DeclinedError("groups of symbolic size")
        mine, its = self.source // self.group, self.outputs // self.group
        spans = []
        for first in range(0, self.outputs, self.columns):
            last = min(first + self.columns, self.outputs) - 1
            block = first // its * mine // LANES
            spans.append((block, (last // its + 1) * mine - block * LANES))
        return spans

    @property
    def depth(self) -> DimLike:
        """The most channels that a panel reads."""
        return self.source if self.group == 1 else max((count for _, count in self.spans), default=0)

    def declare(self, text: CText) -> None:
        """Declare for the panel `panel` the first block that it reads, `base`, and its channels, `depth`."""
        if self.group == 1:
            text.line(f"const int64 base = 0, depth = {text.dim(self.source)};")
            return
        blocks, depths = (", ".join(map(str, column)) for column in zip(*self.spans, strict=True))
        text.line(f"static const int32 bases[] = {{{blocks}}}, depths[] = {{{depths}}};")
        text.line("const int64 base = bases[panel], depth = depths[panel];")


def panel_rows(window: Window, tile: Tile, products: Products) -> DimLike:
    """Rows of a panel: of channels or groups of them, at each place of the window, and what sums start from."""
    return product(window.kernel) * ceildiv(Channels.of(window, tile).depth, products.group) + products.head


def weights_type(window: Window, outputs: DimLike, tile: Tile, products: Products) -> TensorType:
    """The packed weights: `[panels][channels x window][columns]`, with groups of channels where there was one."""
    rows = panel_rows(window, tile, products)
    return TensorType(products.right, (ceildiv(outputs, tile.columns), rows, tile.columns * products.group))
