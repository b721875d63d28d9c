"""Which way to convolve the cost model takes, where both ways were measured; and that it says why."""

from __future__ import annotations

import pytest

from argosy.ir.dim import DimLike, Symbol, symbol_dim
from argosy.ir.dtype import FLOAT32
from argosy.targets.cpu.arch import ARCHS
from argosy.targets.cpu.codegen.conv_window import Window
from argosy.targets.cpu.codegen.convolution_cost import direct_cycles, winograd_cycles
from argosy.targets.cpu.codegen.direct_conv import as_a_line, fetches_rows_ahead, walks_panels_first
from argosy.targets.cpu.codegen.products import plain
from argosy.targets.cpu.codegen.tile import tile_for
from argosy.targets.cpu.codegen.winograd import TRANSFORMS, Winograd
from argosy.targets.cpu.layout import Blocked

SIZE = symbol_dim(Symbol("size"))

MEASURED: list[tuple[str, int, int, DimLike, int, str]] = [
    # Milliseconds of one core: direct, F(2 x 2). On Zen 4 from GFLOP/s of the same layers.
    ("sapphirerapids", 512, 512, 7, 2, "direct"),  # 1.65, 1.76: F(2 x 2) waits for weights
    ("sapphirerapids", 256, 256, 14, 2, "winograd"),  # 1.45, 0.78
    ("sapphirerapids", 128, 128, 28, 2, "winograd"),  # 1.45, 0.72
    ("sapphirerapids", 64, 64, 56, 2, "winograd"),  # 1.45, 0.78
    ("znver4", 512, 512, 7, 2, "winograd"),  # 2.1, 1.35
    ("znver4", 64, 64, 56, 4, "winograd"),  # 2.1, 0.7
    ("znver4", 128, 128, 28, 4, "winograd"),  # 2.1, 0.6
    ("znver4", 512, 512, 28, 2, "winograd"),
    ("x86-64-v3", 512, 512, 7, 2, "winograd"),  # 3.6, 1.5
    ("x86-64-v3", 128, 128, 28, 2, "winograd"),
    ("neoverse-n1", 128, 128, 28, 2, "winograd"),
    ("sapphirerapids", 64, 64, SIZE, 2, "winograd"),
    ("sapphirerapids", 16, 16, 2, 2, "direct"),  # a tile of sums is hardly more than the call
]


@pytest.mark.parametrize(("level", "channels", "outputs", "size", "transform", "better"), MEASURED)
def test_the_model_takes_what_is_faster(
    level: str, channels: int, outputs: int, size: DimLike, transform: int, better: str
) -> None:
    arch = ARCHS[level]
    dims = ((1, channels, size, size), (1, outputs, size, size))
    window = Window(*dims, (3, 3), (1, 1), (1, 1), (1, 1), (1, 1))
    tile = tile_for(arch, FLOAT32, outputs)
    winograd = Winograd(window, TRANSFORMS[transform], tile, arch.second_cache)
    cheaper = winograd_cycles(winograd, arch) < direct_cycles(window, tile, arch)
    assert better == ("winograd" if cheaper else "direct")


@pytest.mark.parametrize(
    ("level", "channels", "outputs", "size", "panels_first"),
    [
        # On Zen 4, milliseconds of panels first and of tiles first.
        ("znver4", 64, 256, 56, False),  # 1.40, 1.05
        ("znver4", 256, 128, 56, False),  # 2.2, 2.0
        ("x86-64-v3", 64, 256, 56, False),  # 1.23, 1.01
        ("sapphirerapids", 64, 256, 56, False),  # the image stays in the second cache
        ("sapphirerapids", 256, 64, 56, True),  # its third cache gives half of Zen 4's bytes, and work is half as long
        ("x86-64-v3", 256, 64, SIZE, True),
        ("sapphirerapids", 2048, 512, 7, False),  # the weights are not at hand
    ],
)
def test_panels_come_first_where_the_image_is_read_slowly_and_the_result_is_small(
    level: str, channels: int, outputs: int, size: DimLike, panels_first: bool
) -> None:
    arch = ARCHS[level]
    dims = ((1, channels, size, size), (1, outputs, size, size))
    window = Window(*dims, (1, 1), (1, 1), (1, 1), (0, 0), (0, 0))
    tile = tile_for(arch, FLOAT32, outputs)
    assert walks_panels_first(window, tile, plain(FLOAT32), Blocked.bare(2), arch) is panels_first


@pytest.mark.parametrize(
    ("channels", "outputs", "size", "stride", "fetches"),
    [
        (128, 128, 56, 2, True),  # on Zen 4, milliseconds without and with: 2.24, 2.07
        (256, 64, 56, 1, True),  # 0.99, 0.93
        (48, 192, 56, 1, False),  # half of it would be in vain
        (128, 32, 14, 1, False),  # all is at hand
        (128, 32, SIZE, 1, True),
    ],
)
def test_tiles_fetch_the_next_block_where_it_is_not_at_hand(
    channels: int, outputs: int, size: DimLike, stride: int, fetches: bool
) -> None:
    arch = ARCHS["znver4"]
    result = size // stride if isinstance(size, int) else size
    dims = ((1, channels, size, size), (1, outputs, result, result))
    window = Window(*dims, (1, 1), (stride, stride), (1, 1), (0, 0), (0, 0))
    tile = tile_for(arch, FLOAT32, outputs)
    assert fetches_rows_ahead(window, tile, plain(FLOAT32), Blocked.bare(2), arch) is fetches


@pytest.mark.parametrize(
    ("level", "size", "line"),
    [
        # On Zen 4, milliseconds of 1x1 256 -> 1024 by lines and as one line; of 512 -> 2048.
        ("x86-64-v3", 14, True),  # 1.33, 0.99
        ("x86-64-v3", 7, True),  # 1.55, 1.03
        ("x86-64-v3", 56, False),  # tiles of 5 and 6 pixels are nearly as good
        ("znver4", 14, False),
        ("znver4", 7, False),
        ("znver4", SIZE, False),
    ],
)
def test_short_lines_are_walked_as_one(level: str, size: DimLike, line: bool) -> None:
    dims = ((1, 256, size, size), (1, 1024, size, size))
    window = Window(*dims, (1, 1), (1, 1), (1, 1), (0, 0), (0, 0))
    walked = as_a_line(window, tile_for(ARCHS[level], FLOAT32, 1024), Blocked.bare(2))
    assert (len(walked.kernel) == 1) is line


@pytest.mark.parametrize("level", sorted(ARCHS))
def test_what_lies_between_the_stages_fits(level: str) -> None:
    """What groups of tiles need fits into the second cache, or, where the weights do not, into two."""
    arch = ARCHS[level]
    for channels, outputs, size in ((64, 64, 56), (256, 256, 14), (512, 512, 28), (128, 32, 28), (48, 200, 33)):
        window = Window((1, channels, size, size), (1, outputs, size, size), (3, 3), (1, 1), (1, 1), (1, 1), (1, 1))
        winograd = Winograd(window, TRANSFORMS[2], tile_for(arch, FLOAT32, outputs), arch.second_cache)
        one = winograd.places * (winograd.blocks * 16 + winograd.panels * winograd.tile.columns) * 4
        caches = 1 if 16 * channels * outputs * 4 <= arch.second_cache * 7 // 16 else 2
        assert winograd.together * one <= caches * arch.second_cache or winograd.together <= winograd.tile.rows
