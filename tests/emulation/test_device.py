"""Artifacts with code for AMD GPUs run on the emulated device, and agree with the reference; misuse is refused."""

from __future__ import annotations

import importlib.util
import multiprocessing
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import argosy
from argosy.emulation.assembly import read_assembly
from argosy.emulation.c_engine.build import engine_reason
from argosy.emulation.decode import decode
from argosy.emulation.kernel import make_kernel
from argosy.emulation.memory import Fault, Memory
from argosy.emulation.refusal import NotEmulated
from argosy.errors import ArtifactError, DeviceError
from benchmarks.models import catalog
from tests.emulation.text import ENGINES, kernel_text, run

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="the package triton (extra gpu) is not installed"
)


@lru_cache(maxsize=8)
def compiled(model: str, arch: str, precision: str = "fp16") -> bytes:
    return argosy.compile(catalog.make(model), targets=(arch,), precision=precision, strict=True).to_bytes()


@pytest.mark.parametrize(
    ("model", "arch", "precision"),
    [
        ("bert_small", "gfx942", "fp16"),
        ("mobilenet_small", "gfx1100", "fp16"),
        ("decoder_small", "gfx1201", "fp32"),
        ("lstm_small", "gfx90a", "fp32"),
        ("vit_small", "gfx1151", "fp16"),
        ("vit_small", "gfx950", "fp16"),
        ("decoder_small", "gfx950", "fp32"),
        ("resnet_small", "gfx1250", "fp16"),
        ("mobilenet_small", "gfx1250", "fp32"),
    ],
)
def test_models_agree(model: str, arch: str, precision: str) -> None:
    artifact, feeds = compiled(model, arch, precision), catalog.feeds(model)
    expected = argosy.Session(artifact, device="ref").run(feeds)
    found = argosy.Session(artifact, device=f"emulated:{arch}", checked=True).run(feeds)
    for name, value in expected.items():
        room = (3e-3 if precision == "fp16" else 2e-6) * float(np.abs(value).max())
        np.testing.assert_allclose(np.asarray(found[name], np.float64), value, rtol=0, atol=room, err_msg=name)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_emulates_too() -> None:
    artifact, feeds = compiled("bert_small", "gfx942"), catalog.feeds("bert_small")
    session = argosy.Session(artifact, device="emulated:gfx942")
    expected = session.run(feeds)  # starts threads, which a child does not have
    ours, theirs = multiprocessing.get_context("fork").Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=lambda: theirs.send(session.run(feeds)))
    child.start()
    try:
        assert ours.poll(60), "it hangs"
        found = ours.recv()
    finally:
        child.kill()
        child.join()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


def test_only_what_is_asked_for_is_emulated() -> None:
    artifact = compiled("bert_small", "gfx942")
    with pytest.raises(DeviceError, match="it is for gfx942, gfx1100 is to be emulated"):
        argosy.Session(artifact, device="emulated:gfx1100")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_copy(engine: Any) -> None:
    values = np.arange(64, dtype=np.uint32) * 3
    body = "global_load_dword v2, v1, s[4:5]\ns_waitcnt vmcnt(0)\nglobal_store_dword v1, v2, s[6:7]"
    np.testing.assert_array_equal(run(body, engine, values, 256).view(np.uint32), values)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("line", "told"),
    [
        (
            "global_load_dword v2, v1, s[4:5] offset:4",
            "4 bytes at .* lie in no buffer: 0 bytes past the end of one of 256",
        ),
        ("global_store_dword v1, v2, s[6:7] offset:-4", "4 bytes at .* lie in no buffer: 4 bytes before one of 256"),
        ("ds_read_b64 v[2:3], v1", "8 bytes at 0xfc lie beyond"),
    ],
)
def test_what_lies_out_of_bounds_is_found(line: str, told: str, engine: Any) -> None:
    with pytest.raises(Fault, match=told) as caught:
        run(f"v_mov_b32_e32 v2, 0\n{line}", engine, np.arange(64, dtype=np.uint32), 256)
    assert line in str(caught.value)
    assert "test, line" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("v_unheard_of_b32 v1, v2", "the instruction v_unheard_of_b32"),
        ("v_add_f32_e64 v1, v2, v3 quiet", "the modifier quiet"),
        ("s_branch elsewhere", "a branch to elsewhere"),
        ("v_mov_b32_e32 v1, shape", "the operand 'shape'"),
    ],
)
def test_what_is_not_known_is_refused(line: str, told: str) -> None:
    with pytest.raises(NotEmulated, match=told) as caught:
        decode(read_assembly(kernel_text(line)))
    assert line in str(caught.value)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2", True),
        ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), 1", True),
        ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 2, 2), 0xc000", True),
        ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 2, 2), 1", False),
        ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 4, 4), 0", False),
        ("s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 23, 1), 1", False),
        ("s_round_mode 0x0", True),
        ("s_round_mode 0xf", False),
    ],
)
def test_modes_that_change_results_are_refused(line: str, known: bool, engine: Any) -> None:
    if known:
        run(line, engine, np.zeros(4, np.uint8), 4, arch="gfx1250")
    else:
        with pytest.raises(NotEmulated, match=f"the instruction {line.split(maxsplit=1)[0]}"):
            run(line, engine, np.zeros(4, np.uint8), 4, arch="gfx1250")


def test_a_text_without_a_kernel_is_refused() -> None:
    with pytest.raises(ArtifactError, match="holds 0 kernels"):
        read_assembly("\t.text\n\ts_endpgm\n")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("modifiers", "meant"),
    [
        ("dst_sel:BYTE_1 dst_unused:UNUSED_PAD", lambda _, new: (new & 0xFF) << 8),
        ("dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE", lambda old, new: (old & 0xFFFF00FF) | ((new & 0xFF) << 8)),
        ("dst_sel:WORD_0 dst_unused:UNUSED_SEXT", lambda _, new: ((new & 0xFFFF) ^ 0x8000) - 0x8000),
        ("dst_sel:DWORD dst_unused:UNUSED_PAD", lambda _, new: new),
    ],
)
def test_results_in_parts_of_registers(modifiers: str, meant: Any, engine: Any) -> None:
    values = np.random.default_rng(5).integers(0, 1 << 32, 64, dtype=np.uint64).astype(np.uint32)
    body = (
        "global_load_dword v2, v1, s[4:5]\ns_waitcnt vmcnt(0)\nv_mov_b32_e32 v3, 0x12345678\n"
        f"v_xor_b32_sdwa v3, v2, v0 {modifiers} src0_sel:DWORD src1_sel:DWORD\nglobal_store_dword v1, v3, s[6:7]"
    )
    found = run(body, engine, values, 256).view(np.uint32)
    expected = [int(meant(0x12345678, int(value) ^ lane)) & 0xFFFFFFFF for lane, value in enumerate(values)]
    np.testing.assert_array_equal(found, np.array(expected, np.uint32))


@pytest.mark.skipif(bool(engine_reason()), reason=engine_reason())
@pytest.mark.parametrize("barrier", [True, False])
def test_a_missing_barrier_is_found(barrier: bool) -> None:
    """Two waves: each stores its lanes and loads those of the other."""
    lines = [
        "global_load_dword v2, v1, s[4:5]",
        "s_waitcnt vmcnt(0)",
        "ds_write_b32 v1, v2",
        *(["s_waitcnt lgkmcnt(0)", "s_barrier"] if barrier else []),
        "v_xor_b32_e32 v3, 0x100, v1",
        "ds_read_b32 v4, v3",
        "s_waitcnt lgkmcnt(0)",
        "global_store_dword v1, v4, s[6:7]",
    ]
    kernel, memory, values = make_kernel(kernel_text(lines, local=512), "c"), Memory(), np.arange(128, dtype=np.uint32)
    source, target, kernarg = memory.allocate(512), memory.allocate(512), memory.allocate(16)
    memory.block(source, 512)[:] = values.view(np.uint8)  # type: ignore[index]
    memory.block(kernarg, 16)[:] = np.array([source, target], np.uint64).view(np.uint8)  # type: ignore[index]
    if barrier:
        kernel.run(memory, kernarg, (1, 1, 1), 128, 0)
        found = memory.block(target, 512)
        assert found is not None
        np.testing.assert_array_equal(found.view(np.uint32), np.roll(values, 64))
    else:
        with pytest.raises(Fault, match="a race: two waves touch 4 bytes of local memory") as caught:
            kernel.run(memory, kernarg, (1, 1, 1), 128, 0)
        # The first wave has read what the second one writes.
        assert "ds_write_b32 v1, v2" in str(caught.value)
        assert "wave 1" in str(caught.value)
