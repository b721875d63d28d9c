"""Kernels written for a test: a few lines of assembly around which the rest is the same, run by either engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.emulation.c_engine.build import engine_reason
from argosy.emulation.kernel import make_kernel
from argosy.emulation.memory import Memory

__all__ = ["ENGINES", "kernel_text", "registers_after", "run", "some_lanes"]

ENGINES = ["numpy", pytest.param("c", marks=pytest.mark.skipif(bool(engine_reason()), reason=engine_reason()))]

_TEXT = """
\t.amdgcn_target "amdgcn-amd-amdhsa-unknown-{arch}"
\t.text
test:
\t{load} s[4:7], s[0:1], 0x0
	v_lshlrev_b32_e32 v1, 2, v0
{body}
\ts_endpgm
\t.section\t.rodata
\t.amdhsa_kernel test
\t\t.amdhsa_user_sgpr_count 2
\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1
\t\t.amdhsa_system_sgpr_workgroup_id_x 1
{registers}
\t\t.amdhsa_group_segment_fixed_size {local}
\t\t.amdhsa_private_segment_fixed_size 64
\t.end_amdhsa_kernel
\t.amdgpu_metadata
    .wavefront_size: {lanes}
\t.end_amdgpu_metadata
"""


def kernel_text(body: str | Sequence[str], arch: str = "gfx942", local: int = 256, lanes: int = 0) -> str:
    """A kernel of a body, with `local` bytes of local memory, of waves as the arch has them or of so many lanes.

    s[4:5] and s[6:7] are the addresses of what it reads and writes, v0 is the lane and v1 four times that. Each line is
    waited for.
    """
    lines = body.splitlines() if isinstance(body, str) else body
    old = arch.startswith("gfx9")
    waits = ("s_waitcnt vmcnt(0) lgkmcnt(0)",) if old else ("s_wait_idle",)
    return _TEXT.format(
        arch=arch,
        load="s_load_dwordx4" if old else "s_load_b128",
        body="\n".join(f"\t{each}" for line in ("s_nop 0", *lines) for each in (line, *waits)),
        registers="\t\t.amdhsa_next_free_vgpr 136\n\t\t.amdhsa_accum_offset 128"
        if old
        else "\t\t.amdhsa_next_free_vgpr 128",
        local=local,
        lanes=lanes or (64 if old else 32),
    )


def run(
    body: str | Sequence[str],
    engine: Any,
    values: NDArray[Any],
    room: int,
    *,
    arch: str = "gfx942",
    local: int = 256,
    waves: int = 1,
    groups: int = 1,
    looks: bool = False,
    lanes: int = 0,
) -> NDArray[np.uint8]:
    """What a kernel leaves in `room` bytes, given the bytes of `values`. `looks` is the C engine's."""
    kernel, memory = make_kernel(kernel_text(body, arch, local, lanes), engine), Memory()
    source, target, kernarg = memory.allocate(values.nbytes), memory.allocate(room), memory.allocate(16)
    for address, content in ((source, values), (kernarg, np.array([source, target], np.uint64))):
        block = memory.block(address, content.nbytes)
        assert block is not None
        block[:] = np.ascontiguousarray(content).reshape(-1).view(np.uint8)
    threads = waves * (lanes or (64 if arch.startswith("gfx9") else 32))
    kernel.run(memory, kernarg, (groups, 1, 1), threads, 0, looks=looks and engine == "c")
    found = memory.block(target, room)
    assert found is not None
    return found.copy()


def registers_after(
    body: Sequence[str],
    engine: Any,
    given: Mapping[int, NDArray[Any]],
    shown: Sequence[int],
    *,
    arch: str = "gfx942",
) -> NDArray[np.uint32]:
    """Vector registers after a body, shape (shown, lanes), given those before: 32 bits for each lane, up to 15 of them.

    The body must keep v1; where it changes the mask of lanes, all are on again when registers are read.
    """
    lanes, word = len(next(iter(given.values()))), "dword" if arch.startswith("gfx9") else "b32"
    lines = [
        *(f"global_load_{word} v{number}, v1, s[4:5] offset:{4 * lanes * place}" for place, number in enumerate(given)),
        *body,
        "s_mov_b64 exec, -1" if lanes == 64 else "s_mov_b32 exec_lo, -1",
        *(
            f"global_store_{word} v1, v{number}, s[6:7] offset:{4 * lanes * place}"
            for place, number in enumerate(shown)
        ),
    ]
    values = np.stack([np.ascontiguousarray(each).view(np.uint32) for each in given.values()])
    found = run(lines, engine, values, 4 * lanes * len(shown), arch=arch, lanes=lanes)
    return found.view(np.uint32).reshape(len(shown), lanes)


def some_lanes(lanes: int, seed: int) -> tuple[NDArray[np.bool_], list[str]]:
    """A mask of lanes, most of them on, and the lines that set it."""
    on = np.random.default_rng(seed).random(lanes) < 0.7
    words = np.packbits(on, bitorder="little").view(np.uint32)
    return on, [f"s_mov_b32 exec_{half}, {word:#x}" for half, word in zip(("lo", "hi"), words, strict=False)]
