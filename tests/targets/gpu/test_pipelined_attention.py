"""Attention by the copy engine and warp groups: what its text means, when it is taken, and that it compiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.ir.module import Instruction, Module
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.targets.gpu import lower
from argosy.targets.gpu.arch import find_gpu
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.pipelined_attention import FlashTile, pipelined_attention
from argosy.targets.gpu.pipeline import pipeline
from argosy.targets.gpu.solutions import pipelined_attention as solution
from argosy.targets.gpu.variant import gpu_code
from argosy.toolchains.triton import CompiledKernel, compile_kernels
from benchmarks.gpu.parts import Attended
from tests.targets.gpu.interpreted_gluon import run_gluon

_TILES = [
    FlashTile(128, 2),
    FlashTile(64, 4, split=True),
    FlashTile(64, 3, turns=False),
    FlashTile(128, 2, pinned=False, split=True),
]


def _kernel(monkeypatch: pytest.MonkeyPatch, attended: Attended, tile: FlashTile, programs: int = 3) -> Kernel:
    arch, options = find_gpu("h200"), CompileOptions(precision="fp16", strict=True)
    assert arch is not None
    monkeypatch.setattr(solution.PipelinedAttention, "applies", lambda *_: "")
    monkeypatch.setattr(solution.PipelinedAttention, "configs", lambda *_: (tile,))
    module = PassManager(tuple(pipeline(options))).run(argosy.load_onnx(attended.model()).main)
    if programs:
        monkeypatch.setattr(solution, "pipelined_attention", _on(programs))
    (kernel,) = lower.lower_module(module, arch, options, {}, {}).kernels.values()
    assert kernel.label == "dot_pipelined_attention"
    return kernel


def _on(programs: int) -> Callable[..., Kernel]:
    def made(module: Module, anchor: Instruction, orders: Any, order: Any, tile: FlashTile, units: int) -> Kernel:
        assert units > programs
        return pipelined_attention(module, anchor, orders, order, tile, programs)

    return made


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("tile", _TILES, ids=str)
@pytest.mark.parametrize("shape", [(2, 1, 512, 64), (1, 3, 256, 128), (1, 2, 128, 64)], ids=str)
def test_what_it_means(
    monkeypatch: pytest.MonkeyPatch, tile: FlashTile, shape: tuple[int, int, int, int], causal: bool
) -> None:
    kernel = _kernel(monkeypatch, Attended(*shape, causal), tile)
    draw = np.random.default_rng(sum(shape)).standard_normal
    given = {name: (2 * draw(shape)).astype(np.float16) for name in "qkv"}
    places = [kernel.maps[number].pointer for number in range(len(kernel.maps))]
    found = np.full(shape, np.nan, np.float16)
    # Parameters of the module are in the order in which it reads them: keys, queries, values.
    flat = [given[name].reshape(-1) for name in "kqv"]
    maps = [(flat[place].reshape(each.sizes), each.box) for place, each in zip(places, kernel.maps, strict=True)]
    run_gluon(kernel.text, kernel.launch.grid[0], maps, [*flat, found.reshape(-1)])  # type: ignore[arg-type]
    q, k, v = (given[name].astype(np.float64) for name in "qkv")
    scores = q @ k.swapaxes(-1, -2) * shape[3] ** -0.5
    if causal:
        scores = np.where(np.tri(shape[2], dtype=bool), scores, -np.inf)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    right = powers / powers.sum(-1, keepdims=True) @ v
    assert np.abs(found - right).max() <= 4e-3


@pytest.mark.parametrize(
    ("arch", "length", "label"),
    [
        ("h200", 2048, "dot_pipelined_attention"),
        ("h200", 128, "dot_flash"),
        ("a100", 2048, "dot_flash"),
        ("b200", 2048, "dot_flash"),
        ("mi300x", 2048, "dot_flash"),
    ],
)
def test_long_ones_are_pipelined_on_hopper_alone(arch: str, length: int, label: str) -> None:
    row, options = find_gpu(arch), CompileOptions(precision="fp16", strict=True)
    assert row is not None
    program = argosy.load_onnx(Attended(4, 16, length, 128, True).model())
    module = PassManager(tuple(pipeline(options))).run(program.main)
    (kernel,) = lower.lower_module(module, row, options, {}, {}).kernels.values()
    assert kernel.label == label


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("tile", _TILES[:2], ids=str)
def test_it_compiles_and_keeps_no_registers_in_memory(
    monkeypatch: pytest.MonkeyPatch, tile: FlashTile, causal: bool
) -> None:
    kernel = _kernel(monkeypatch, Attended(4, 16, 2048, 128, causal), tile, programs=0)
    arch = find_gpu("h200")
    assert arch is not None
    (made,) = compile_kernels([kernel.source()], gpu_code(arch))
    assert isinstance(made, CompiledKernel), made
    assert made.spilled == 0
    assert made.shared <= arch.shared_memory_per_block
    # Two groups: scores of the first step; scores and values of all others; values of the last: 16 deep at a time.
    # Where a mask is split off, steps with and without it.
    inner = 2 if causal and tile.split else 1
    assert made.assembly.count("wgmma.mma_async") == 2 * (1 + inner) * (128 + tile.keys) // 16
