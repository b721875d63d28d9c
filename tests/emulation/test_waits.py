"""Missing waits are found in the text of kernels, by the orders that the ISA documents state."""

from __future__ import annotations

import re

import pytest

from argosy.emulation.assembly import read_assembly
from argosy.emulation.checks.waits import find_missing_waits
from argosy.emulation.decode import decode
from argosy.emulation.kernel import make_kernel
from argosy.emulation.memory import Fault

TEXT = """
\t.amdgcn_target "amdgcn-amd-amdhsa-unknown-{arch}"
\t.text
kernel:
{body}
\ts_endpgm
\t.section\t.rodata
\t.amdhsa_kernel kernel
\t\t.amdhsa_next_free_vgpr 64
\t.end_amdhsa_kernel
\t.amdgpu_metadata
    .wavefront_size: {lanes}
\t.end_amdgpu_metadata
"""


def text(arch: str, *lines: str) -> str:
    body = "\n".join(line if line.endswith(":") else f"\t{line}" for line in lines)
    return TEXT.format(arch=arch, body=body, lanes=64 if arch.startswith("gfx9") else 32)


def found(arch: str, *lines: str) -> list[str]:
    return [each.what for each in find_missing_waits(decode(read_assembly(text(arch, *lines))))]


LOAD = "global_load_dword v{0}, v[8:9], off"
STORE = "global_store_dword v[8:9], v{0}, off"
USE = "v_add_f32_e32 v20, v{0}, v{0}"
LDS = "ds_read_b32 v{0}, v10"
BOTH = ("global_load_b32 v1, v[8:9], off", "ds_load_b32 v2, v10")
COPY = "global_load_async_to_lds_b32 v10, v[8:9], off"
LDS_STORE = "ds_write_b32 v10, v11"


def load(register: int) -> str:
    return LOAD.format(register)


def use(register: int) -> str:
    return USE.format(register)


@pytest.mark.parametrize(
    ("arch", "lines", "missing"),
    [
        # Vector memory is in order: a wait of n leaves the n latest ones.
        ("gfx942", [load(1), use(1)], "vmcnt(0)"),
        ("gfx942", [load(1), load(2), "s_waitcnt vmcnt(1)", use(1)], ""),
        ("gfx942", [load(1), load(2), "s_waitcnt vmcnt(1)", use(2)], "vmcnt(0)"),
        ("gfx942", [load(1), load(2), load(3), "s_waitcnt vmcnt(2)", use(2)], "vmcnt(1)"),
        # Stores count with loads on gfx9, apart from them later.
        ("gfx942", [load(1), STORE.format(5), "s_waitcnt vmcnt(1)", use(1)], ""),
        ("gfx1100", [load(1), STORE.format(5), "s_waitcnt vmcnt(1)", use(1)], "vmcnt(0)"),
        ("gfx1100", [load(1), STORE.format(5), "s_waitcnt_vscnt null, 0x0", use(1)], "vmcnt(0)"),
        ("gfx1201", ["global_load_b32 v1, v[8:9], off", "s_wait_storecnt 0x0", use(1)], "loadcnt 0x0"),
        ("gfx1201", ["global_load_b32 v1, v[8:9], off", "s_wait_loadcnt 0x0", use(1)], ""),
        # Both counters of one wait: local memory's in the lower bits.
        ("gfx1201", [*BOTH, "s_wait_loadcnt_dscnt 0x100", use(2)], ""),
        ("gfx1201", [*BOTH, "s_wait_loadcnt_dscnt 0x100", use(1)], "loadcnt 0x0"),
        # Waits as numbers: vmcnt in bits 3:0 and 15:14, lgkmcnt in 11:8; on gfx11 in 15:10 and 9:4.
        ("gfx942", [load(1), "s_waitcnt 0xf70", use(1)], ""),
        ("gfx942", [load(1), "s_waitcnt 0xc07f", use(1)], "vmcnt(0)"),
        ("gfx1100", [load(1), "s_waitcnt 0x3f7", use(1)], ""),
        ("gfx1100", [load(1), "s_waitcnt 0xfc07", use(1)], "vmcnt(0)"),
        # Local memory is in order by itself; scalar loads are in none.
        ("gfx942", [LDS.format(1), LDS.format(2), "s_waitcnt lgkmcnt(1)", use(1)], ""),
        ("gfx942", [LDS.format(1), "s_load_dword s4, s[0:1], 0x0", "s_waitcnt lgkmcnt(1)", use(1)], "lgkmcnt(0)"),
        ("gfx942", ["s_load_dword s4, s[0:1], 0x0", LDS.format(1), "s_waitcnt lgkmcnt(1)", use(1)], "lgkmcnt(0)"),
        (
            "gfx1100",
            ["s_load_b32 s4, s[0:1], 0x0", "s_load_b32 s5, s[0:1], 0x4", "s_waitcnt lgkmcnt(1)", "s_mov_b32 s6, s4"],
            "lgkmcnt(0)",
        ),
        ("gfx1201", ["s_load_b32 s4, s[0:1], 0x0", "s_wait_dscnt 0x0", "s_mov_b32 s6, s4"], "kmcnt 0x0"),
        ("gfx1201", ["s_load_b32 s4, s[0:1], 0x0", "s_wait_kmcnt 0x0", "s_mov_b32 s6, s4"], ""),
        # What is loaded last stays, by an order of their own; another instruction must not come first.
        ("gfx942", [load(1), load(1), "s_waitcnt vmcnt(0)", use(1)], ""),
        ("gfx942", [load(1), LDS.format(1), "s_waitcnt vmcnt(0) lgkmcnt(0)"], "vmcnt(0)"),
        ("gfx942", [load(1), "v_mov_b32_e32 v1, 0"], "vmcnt(0)"),
        ("gfx942", ["flat_load_dword v1, v[8:9]", "s_waitcnt vmcnt(0)", use(1)], "lgkmcnt(0)"),
        ("gfx942", ["flat_load_dword v1, v[8:9]", "s_waitcnt vmcnt(0) lgkmcnt(0)", use(1)], ""),
        # An address is read like any other register, a part of what is loaded too.
        ("gfx942", ["global_load_dwordx4 v[0:3], v[8:9], off", STORE.format(2)], "vmcnt(0)"),
        ("gfx942", ["global_load_dwordx2 v[8:9], v[4:5], off", load(1)], "vmcnt(0)"),
        ("gfx942", ["ds_bpermute_b32 v1, v2, v3", use(1)], "lgkmcnt(0)"),
        ("gfx942", ["ds_add_rtn_u32 v1, v2, v3", use(1)], "lgkmcnt(0)"),
        ("gfx942", ["ds_add_rtn_u32 v1, v2, v3", "s_waitcnt lgkmcnt(0)", use(1)], ""),
        ("gfx1201", ["ds_max_u32 v2, v3", "s_barrier_signal_isfirst -1", "s_barrier_wait 0xffff"], "dscnt 0x0"),
        # Copies into local memory count with loads on gfx9, apart from them on gfx1250.
        ("gfx950", [load(1), "global_load_lds_dword v10, s[0:1]", "s_waitcnt vmcnt(1)", use(1)], ""),
        ("gfx950", ["global_load_lds_dword v10, s[0:1]", load(1), "s_waitcnt vmcnt(1)", use(1)], "vmcnt(0)"),
        ("gfx950", ["ds_read_b64_tr_b16 v[0:1], v10", use(1)], "lgkmcnt(0)"),
        ("gfx1250", [BOTH[0], COPY, "s_wait_loadcnt 0x1", use(1)], "loadcnt 0x0"),
        ("gfx1250", [BOTH[0], COPY, "s_wait_loadcnt 0x0", use(1)], ""),
        # Barriers.
        ("gfx942", [LDS_STORE, "s_barrier"], "lgkmcnt(0)"),
        ("gfx942", [LDS_STORE, LDS.format(1), "s_waitcnt lgkmcnt(1)", "s_barrier"], ""),
        ("gfx1201", ["ds_store_b32 v10, v11", "s_barrier_signal -1", "s_barrier_wait 0xffff"], "dscnt 0x0"),
        ("gfx942", [LDS.format(1), "s_barrier", LDS_STORE], "lgkmcnt(0)"),
        ("gfx942", [LDS.format(1), "s_barrier", "s_waitcnt lgkmcnt(0)", LDS_STORE], ""),
        # Ways that meet: what one of them leaves outstanding is.
        ("gfx942", ["s_cbranch_scc1 .L", load(1), ".L:", use(1)], "vmcnt(0)"),
        ("gfx942", ["s_cbranch_scc1 .L", load(1), "s_waitcnt vmcnt(0)", ".L:", use(1)], ""),
        ("gfx942", [load(1), "s_cbranch_scc1 .L", load(2), ".L:", "s_waitcnt vmcnt(1)", use(1)], "vmcnt(0)"),
        ("gfx942", [load(1), ".L:", "s_waitcnt vmcnt(0)", use(1), load(1), "s_cbranch_scc1 .L"], ""),
        ("gfx942", [load(1), "s_waitcnt vmcnt(0)", ".L:", use(1), load(1), "s_cbranch_scc1 .L"], "vmcnt(0)"),
    ],
)  # fmt: skip
def test_orders(arch: str, lines: list[str], missing: str) -> None:
    told = found(arch, *lines)
    assert bool(told) == bool(missing), told
    assert not missing or f"{missing} is missing" in told[0]


def test_a_report_says_what_where_and_which_wait() -> None:
    with pytest.raises(Fault) as caught:
        make_kernel(text("gfx942", load(1), "v_mov_b32_e32 v2, 0", use(1)))
    assert re.search(
        r"kernel, line 7: v_add_f32_e32 v20, v1, v1: it reads v1, which line 5 \(global_load_dword v1, v\[8:9\], off\) "
        r"may not have loaded yet: s_waitcnt vmcnt\(0\) is missing",
        str(caught.value),
    )
