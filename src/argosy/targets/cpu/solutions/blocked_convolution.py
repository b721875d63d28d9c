"""Convolutions over blocked images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final

from argosy.ir.dim import equal
from argosy.ir.dtype import FLOAT32, INT32
from argosy.ir.module import Instruction, Module, Value
from argosy.ir.types import TensorType
from argosy.targets.cpu.codegen.blocked_elements import Image, images_of
from argosy.targets.cpu.codegen.conv_packing import pack_weights
from argosy.targets.cpu.codegen.conv_window import Channels, Window, source_of, weights_type
from argosy.targets.cpu.codegen.convolution_cost import direct_cycles, winograd_cycles
from argosy.targets.cpu.codegen.depthwise import (
    LONGEST,
    depthwise_kernel,
    depthwise_rows,
    depthwise_type,
    pack_depthwise,
    sums_exactly,
)
from argosy.targets.cpu.codegen.direct_conv import conv_kernel
from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.codegen.part import part_of
from argosy.targets.cpu.codegen.products import Products, products_for
from argosy.targets.cpu.codegen.tile import Tile, tile_for
from argosy.targets.cpu.codegen.transposed_conv import Scatter, pack_scatter, scatter_kernel, scatter_type
from argosy.targets.cpu.codegen.winograd import TRANSFORMS, Winograd, pack_winograd, winograd_kernel, winograd_type
from argosy.targets.cpu.layout import LANES, Blocked, Planar
from argosy.targets.cpu.solution import Problem, Solution, Steps, register_solution
from argosy.targets.cpu.solutions.blocked_steps import (
    BYTES,
    blocked_images,
    finish,
    image,
    packed,
    packed_bias,
    planar_image,
    preferred_image,
    preferred_source,
)
from argosy.targets.lowering.accesses import DeclinedError, present

__all__ = [
    "DepthwiseConvolution",
    "DirectConvolution",
    "PlanarConvolution",
    "TransposedConvolution",
    "WinogradConvolution",
]


_FEW: Final = 4
"""Channels up to which an image is convolved planar: with eight, half of each block, the blocked way is faster."""


class _BlockedConvolution(Solution):
    """What the ways to convolve blocked images share: their conditions, and all but the kernel itself."""

    anchors = frozenset({"conv"})
    takes_short: ClassVar[bool] = False
    """Whether operands and result may be short floats."""

    def applies(self, problem: Problem) -> str:
        anchor = problem.anchor_instruction
        kinds = [value.dtype for value in (*anchor.operands, anchor.result()) if value is not None]
        if equal(present(anchor, 1).shape[1], 0):
            return "it sums over no channels"
        try:
            codes = kinds[0] in BYTES and kinds[1] in BYTES and kinds[2:] == [INT32]
            floats = all(kind is FLOAT32 or (self.takes_short and kind.compute is FLOAT32) for kind in kinds)
            if not floats and not (codes and self.takes_codes(problem)):
                return f"there are no tiles of {', '.join(map(str, kinds))}"
            images_of(part_of(problem.module, [problem.module.results[0]], {anchor}).module, anchor.result())
            return self.declines(problem)
        except DeclinedError as declined:
            return str(declined)

    def declines(self, problem: Problem) -> str:
        """Why a convolution that could be blocked is none for this solution; may raise DeclinedError too."""
        raise NotImplementedError

    def takes_codes(self, problem: Problem) -> bool:
        """Whether the operands may be bytes, and the result their sums, without a bias."""
        del problem
        return False

    def halo(self, problem: Problem, config: Any) -> Blocked | Planar:
        """The layout, with its halo, in which the kernel reads the image."""
        raise NotImplementedError

    def pack(self, problem: Problem, config: Any, module: Module, weight: Value) -> tuple[Kernel, TensorType]:
        """The kernel that packs the weights, which `module` computes, and the type of what it makes."""
        raise NotImplementedError

    def kernel(
        self, problem: Problem, config: Any, module: Module, source: Any, images: dict[str, Image], layout: Blocked
    ) -> Kernel:
        """The kernel, from the source, the packed weights and the bias; `module` is what follows the anchor."""
        raise NotImplementedError

    def prefers(self, problem: Problem, index: int) -> Blocked | None:
        if self.applies(problem):
            return None
        anchor = problem.anchor_instruction
        halo = self.halo(problem, self.configs(problem)[0])
        if halo.dtype is not _slid(anchor).dtype:
            return None  # it is widened on the way
        liked = preferred_source(problem.module, _slid(anchor), index, halo)
        if liked is not None:
            return liked if isinstance(liked, Blocked) else None
        part = part_of(problem.module, [problem.module.results[0]], {anchor})
        return preferred_image(part, anchor.result(), index)

    def lower(self, problem: Problem, config: Any, steps: Steps) -> None:
        module, anchor = problem.module, problem.anchor_instruction
        rank = anchor.result().rank
        x, need = _slid(anchor), self.halo(problem, config)
        source: Blocked | Planar = need
        if isinstance(need, Planar):
            buffer = planar_image(steps, module, x, need)
        else:
            buffer, source = image(steps, module, x, need, problem.layouts)
        weight = present(anchor, 1)
        part = part_of(module, [weight])
        temporaries = [buffer, packed(steps, part, *self.pack(problem, config, part.module, weight))]
        bias = anchor.operands[2] if len(anchor.operands) > 2 else None
        if bias is not None:
            temporaries.append(packed_bias(steps, module, bias, rank))
        rest = part_of(module, [module.results[0]], {anchor})
        reads, images = blocked_images(steps, rest, anchor.result())
        layout = steps.wanted() or Blocked.bare(rank - 2, module.results[0].dtype)
        kernel = self.kernel(problem, config, rest.module, source, images, layout)
        finish(steps, module, kernel, [*reads, *temporaries], layout)


@register_solution
class DirectConvolution(_BlockedConvolution):
    """Tiles of pixels times panels of weights; what follows on the tiles."""

    name = "direct convolution"
    rank = 1
    takes_short = True

    def declines(self, problem: Problem) -> str:
        window = Window.of(problem.anchor_instruction)
        counts = (window.source[1], window.result[1])
        if window.group > 1 and any(not isinstance(count, int) for count in counts):
            return "it has groups of symbolic size"
        return ""

    def takes_codes(self, problem: Problem) -> bool:
        return True

    def configs(self, problem: Problem) -> Sequence[Tile]:
        window, sums = Window.of(problem.anchor_instruction), _products(problem).sums
        wide = tile_for(problem.arch, sums, window.result[1])
        if window.group == 1:
            return (wide,)
        # Narrow panels cut fewer groups in two, so that less is multiplied by zero.
        tiles = {wide, tile_for(problem.arch, sums, LANES)}
        return sorted(tiles, key=lambda tile: (_multiplications(window, tile), -tile.columns))

    def halo(self, problem: Problem, config: Tile) -> Blocked | Planar:
        return replace(Window.of(problem.anchor_instruction).halo, dtype=_products(problem).left)

    def pack(self, problem: Problem, config: Tile, module: Module, weight: Value) -> tuple[Kernel, TensorType]:
        window, lanes = Window.of(problem.anchor_instruction), self.halo(problem, config).lanes
        products = _products(problem)
        kernel = pack_weights(module, weight, window, config, products, lanes)
        return kernel, weights_type(window, weight.shape[0], config, products)

    def kernel(
        self, problem: Problem, config: Tile, module: Module, source: Blocked | Planar, images: dict[str, Image],
        layout: Blocked,
    ) -> Kernel:  # fmt: skip
        anchor, arch = problem.anchor_instruction, problem.arch
        return conv_kernel(module, anchor, Window.of(anchor), config, _products(problem), source, images, layout, arch)


@register_solution
class PlanarConvolution(DirectConvolution):
    """Of an image of few channels, as a program gets it: blocked, it would be mostly padding."""

    name = "planar convolution"
    rank = 3
    takes_short = False

    def takes_codes(self, problem: Problem) -> bool:
        return False

    def declines(self, problem: Problem) -> str:
        anchor = problem.anchor_instruction
        window, source = Window.of(anchor), _slid(anchor).instruction
        if window.group > 1 or not isinstance(window.source[1], int) or window.source[1] > _FEW:
            return "it has groups or more than a few channels"
        if window.dilations[-1] > 1:
            return "what a pixel reads of a line does not lie side by side"
        if problem.layouts and source in problem.module.parameters:
            return "its image lies blocked" if problem.layouts[problem.module.parameters.index(source)] else ""
        return ""

    def halo(self, problem: Problem, config: Tile) -> Planar:
        halo = Window.of(problem.anchor_instruction).halo
        return Planar(halo.halo, halo.dtype, halo.fill)


@register_solution
class DepthwiseConvolution(_BlockedConvolution):
    """Each channel with a window of its own, sixteen at a time. A config is the number of pixels to a tile."""

    name = "depthwise convolution"
    rank = 3
    takes_short = True

    def declines(self, problem: Problem) -> str:
        window = Window.of(problem.anchor_instruction)
        if window.group == 1 or not window.group == window.source[1] == window.result[1]:
            return "a channel of the result is a sum over several channels, or shares one"
        return "the window is too wide" if window.kernel[-1] > LONGEST else ""

    def takes_codes(self, problem: Problem) -> bool:
        anchor = problem.anchor_instruction
        return sums_exactly(Window.of(anchor), present(anchor, 0).dtype, present(anchor, 1).dtype)

    def configs(self, problem: Problem) -> Sequence[int]:
        return (depthwise_rows(problem.arch, Window.of(problem.anchor_instruction)),)

    def halo(self, problem: Problem, config: int) -> Blocked:
        return Window.of(problem.anchor_instruction).halo

    def pack(self, problem: Problem, config: int, module: Module, weight: Value) -> tuple[Kernel, TensorType]:
        return pack_depthwise(module, weight), depthwise_type(Window.of(problem.anchor_instruction))

    def kernel(
        self, problem: Problem, config: int, module: Module, source: Blocked, images: dict[str, Image], layout: Blocked
    ) -> Kernel:
        anchor = problem.anchor_instruction
        return depthwise_kernel(module, anchor, Window.of(anchor), config, source, images, layout)


@register_solution
class WinogradConvolution(_BlockedConvolution):
    """F(2 x 2, 3 x 3), and under relaxed accuracy F(4 x 4, 3 x 3)."""

    name = "Winograd convolution"
    rank = 2

    def declines(self, problem: Problem) -> str:
        window = Window.of(problem.anchor_instruction)
        if problem.options.accuracy == "exact":
            return "exact sums are asked for"
        if window.kernel != (3, 3) or {*window.strides, *window.dilations} != {1}:
            return "the window is not 3 x 3, or moves by more than a pixel"
        if window.group != 1:
            return "it is grouped"
        counts = (window.source[1], window.result[1])
        if any(not isinstance(count, int) or count < LANES for count in counts):
            return "it has too few channels"
        tile, arch = tile_for(problem.arch, FLOAT32, window.result[1]), problem.arch
        mine, direct = winograd_cycles(self.configs(problem)[0], arch), direct_cycles(window, tile, arch)
        return f"it takes about {mine} cycles, the direct sum {direct}" if direct <= mine else ""

    def configs(self, problem: Problem) -> Sequence[Winograd]:
        window, arch = Window.of(problem.anchor_instruction), problem.arch
        tile = tile_for(arch, FLOAT32, window.result[1])
        sizes = (4, 2) if problem.options.accuracy == "relaxed" else (2,)
        found = (Winograd(window, TRANSFORMS[size], tile, arch.second_cache) for size in sizes)
        return sorted(found, key=lambda config: winograd_cycles(config, arch))

    def halo(self, problem: Problem, config: Winograd) -> Blocked:
        return config.halo

    def pack(self, problem: Problem, config: Winograd, module: Module, weight: Value) -> tuple[Kernel, TensorType]:
        return pack_winograd(module, weight, config), winograd_type(config)

    def kernel(
        self, problem: Problem, config: Winograd, module: Module, source: Blocked, images: dict[str, Image],
        layout: Blocked,
    ) -> Kernel:  # fmt: skip
        return winograd_kernel(module, problem.anchor_instruction, config, source, images, layout)


@register_solution
class TransposedConvolution(_BlockedConvolution):
    """A direct convolution for each phase of the strides."""

    name = "transposed convolution"
    anchors = frozenset({"conv_transpose"})
    rank = 1
    takes_short = True

    def declines(self, problem: Problem) -> str:
        return "" if Scatter.of(problem.anchor_instruction).halo else "it has no halo"

    def configs(self, problem: Problem) -> Sequence[Tile]:
        return (tile_for(problem.arch, FLOAT32, problem.anchor_instruction.result().shape[1]),)

    def halo(self, problem: Problem, config: Tile) -> Blocked:
        return Scatter.of(problem.anchor_instruction).halo

    def pack(self, problem: Problem, config: Tile, module: Module, weight: Value) -> tuple[Kernel, TensorType]:
        scatter = Scatter.of(problem.anchor_instruction)
        return pack_scatter(module, weight, scatter, config), scatter_type(scatter, config)

    def kernel(
        self, problem: Problem, config: Tile, module: Module, source: Blocked, images: dict[str, Image], layout: Blocked
    ) -> Kernel:
        anchor = problem.anchor_instruction
        return scatter_kernel(module, anchor, Scatter.of(anchor), config, source, images, layout)


def _products(problem: Problem) -> Products:
    """What a tile of a convolution multiplies; images are not packed anew, so codes are turned over while read."""
    anchor = problem.anchor_instruction
    kinds = (present(anchor, 0).dtype, present(anchor, 1).dtype, anchor.result().dtype.compute)
    products = products_for(problem.arch, *kinds)
    return replace(products, reading=products.flip)


def _slid(anchor: Instruction) -> Value:
    """What slides under the window: without what a convolution pads."""
    return source_of(anchor) if anchor.op.name == "conv" else present(anchor, 0)


def _multiplications(window: Window, tile: Tile) -> int:
    """Multiplications for each place of the window and pixel of the result, those by zero too."""
    return sum(depth * tile.columns for _, depth in Channels.of(window, tile).spans)
