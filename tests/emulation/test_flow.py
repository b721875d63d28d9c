"""Where waves go: branches, barriers and ends, and which instructions of that kind are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.emulation.decode import FLOW
from argosy.emulation.refusal import NotEmulated
from tests.emulation.text import ENGINES, registers_after, run

NONE = np.zeros(4, np.uint8)
BRANCHES: dict[str, list[tuple[list[str], bool]]] = {
    "s_branch": [([], True)],
    "s_cbranch_scc0": [(["s_cmp_eq_u32 s4, s4"], False), (["s_cmp_lg_u32 s4, s4"], True)],
    "s_cbranch_scc1": [(["s_cmp_eq_u32 s4, s4"], True), (["s_cmp_lg_u32 s4, s4"], False)],
    "s_cbranch_vccz": [(["s_mov_b64 vcc, 0"], True), (["s_mov_b32 vcc_lo, 0", "s_mov_b32 vcc_hi, 1"], False)],
    "s_cbranch_vccnz": [(["s_mov_b64 vcc, 0"], False), (["s_mov_b32 vcc_lo, 1", "s_mov_b32 vcc_hi, 0"], True)],
    "s_cbranch_execz": [(["s_mov_b64 exec, 0"], True), (["s_mov_b32 exec_lo, 0"], False)],
    "s_cbranch_execnz": [(["s_mov_b64 exec, 0"], False), (["s_mov_b32 exec_hi, 0"], True)],
}
"""Lines before a branch, and whether it is taken."""
BARRIERS = {
    "s_barrier": ("gfx942", ["s_barrier"]),
    "s_barrier_signal": ("gfx1201", ["s_barrier_signal -1", "s_barrier_wait -1"]),
    "s_barrier_signal_isfirst": ("gfx1201", ["s_barrier_signal_isfirst -1", "s_barrier_wait 0xffff"]),
    "s_barrier_wait": ("gfx1201", ["s_barrier_signal -1", "s_nop 0", "s_barrier_wait 0xffff"]),
}
REFUSED = {
    "s_setreg_imm32_b32": "hwreg(HW_REG_MODE, 4, 4), 0",
    "s_setreg_b32": "hwreg(HW_REG_MODE, 0, 4), s4",
    "s_getreg_b32": "s8, hwreg(HW_REG_HW_ID)",
    "s_memtime": "s[8:9]",
    "s_memrealtime": "s[8:9]",
    "s_trap": "2",
    "s_getpc_b64": "s[8:9]",
    "s_setpc_b64": "s[8:9]",
    "s_swappc_b64": "s[8:9], s[10:11]",
}


def test_every_instruction_is_tested() -> None:
    assert set(BRANCHES) | set(BARRIERS) | set(REFUSED) | {"s_endpgm"} == FLOW


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", list(BRANCHES))
def test_branches(name: str, engine: Any) -> None:
    for lines, taken in BRANCHES[name]:
        body = [*lines, "s_mov_b32 s8, 1", f"{name} .Lend", "s_mov_b32 s8, 2", ".Lend:", "s_mov_b64 exec, -1"]
        body.append("v_mov_b32_e32 v3, s8")
        (found,) = registers_after(body, engine, {4: np.zeros(64, np.uint32)}, [3])
        np.testing.assert_array_equal(found, np.full(64, 1 if taken else 2), err_msg=" ".join(lines))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("name", "taken"), [("s_cbranch_vccz", True), ("s_cbranch_vccnz", False)])
def test_waves_of_32_lanes_look_at_half_a_mask(name: str, taken: bool, engine: Any) -> None:
    body = ["s_mov_b32 vcc_lo, 0", "s_mov_b32 vcc_hi, -1", "v_mov_b32_e32 v3, 1", f"{name} .Lend"]
    body += ["v_mov_b32_e32 v3, 2", ".Lend:"]
    (found,) = registers_after(body, engine, {4: np.zeros(32, np.uint32)}, [3], arch="gfx1201")
    np.testing.assert_array_equal(found, np.full(32, 1 if taken else 2))


@pytest.mark.parametrize("engine", ENGINES)
def test_waves_go_round_as_often_as_each_has_to(engine: Any) -> None:
    """Wave i of four sums up the numbers below 3 + i; the number of rounds is the wave's own."""
    body = [
        "v_readfirstlane_b32 s8, v0",
        "s_lshr_b32 s8, s8, 6",
        "s_add_u32 s8, s8, 3",
        "s_mov_b32 s9, 0",
        ".Lagain:",
        "s_sub_u32 s8, s8, 1",
        "s_add_u32 s9, s9, s8",
        "s_cmp_lg_u32 s8, 0",
        "s_cbranch_scc1 .Lagain",
        "v_mov_b32_e32 v3, s9",
        "global_store_dword v1, v3, s[6:7]",
    ]
    found = run(body, engine, NONE, 1024, waves=4).view(np.uint32).reshape(4, 64)
    np.testing.assert_array_equal(found, np.array([3, 6, 10, 15])[:, None].repeat(64, 1))


def _turned(arch: str, barrier: list[str], engine: Any) -> NDArray[np.uint32]:
    """Each of four waves stores its threads' numbers to local memory, and loads those of the next wave."""
    old = arch == "gfx942"
    lanes, size = (64, 1024) if old else (32, 512)
    body = [
        f"ds_{'write' if old else 'store'}_b32 v1, v0",
        *barrier,
        f"v_add_{'' if old else 'nc_'}u32_e32 v2, {4 * lanes}, v1",
        f"v_and_b32_e32 v2, {size - 1}, v2",
        f"ds_{'read' if old else 'load'}_b32 v3, v2",
        f"global_store_{'dword' if old else 'b32'} v1, v3, s[6:7]",
    ]
    return run(body, engine, NONE, size, arch=arch, local=size, waves=4).view(np.uint32)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", list(BARRIERS))
def test_waves_wait_for_each_other(name: str, engine: Any) -> None:
    arch, lines = BARRIERS[name]
    lanes = 64 if arch == "gfx942" else 32
    np.testing.assert_array_equal(_turned(arch, lines, engine), np.roll(np.arange(4 * lanes), -lanes))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_wave_ends_by_itself(engine: Any) -> None:
    """s_endpgm: the second of three waves stores another number, and does not go on to what follows."""
    body = [
        "v_mov_b32_e32 v3, 7",
        "v_readfirstlane_b32 s8, v0",
        "s_cmp_lg_u32 s8, 64",
        "s_cbranch_scc1 .Lstore",
        "v_mov_b32_e32 v3, 5",
        "global_store_dword v1, v3, s[6:7]",
        "s_endpgm",
        ".Lstore:",
        "global_store_dword v1, v3, s[6:7]",
    ]
    found = run(body, engine, NONE, 768, waves=3).view(np.uint32).reshape(3, 64)
    np.testing.assert_array_equal(found, np.array([7, 5, 7])[:, None].repeat(64, 1))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", list(REFUSED))
def test_what_is_not_emulated_is_refused(name: str, engine: Any) -> None:
    with pytest.raises(NotEmulated, match=f"the instruction {name}"):
        run([f"{name} {REFUSED[name]}"], engine, NONE, 4)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("arch", "line"),
    [
        ("gfx942", "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 0"),  # to round to the nearest, as all does
        ("gfx1250", "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), 1"),
        ("gfx1250", "s_round_mode 0x0"),
        ("gfx942", "s_setprio 3"),
    ],
)
def test_modes_that_change_nothing_are_taken(arch: str, line: str, engine: Any) -> None:
    run([line], engine, NONE, 4, arch=arch)
