"""What kernels do wrong while they run is found and told apart; what compilers do on purpose is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from argosy.emulation.c_engine.build import engine_reason
from argosy.emulation.kernel import make_kernel
from argosy.emulation.memory import Fault, Memory

pytestmark = pytest.mark.skipif(bool(engine_reason()), reason=engine_reason())

KERNEL = """
\t.amdgcn_target "amdgpu9.42-amd-amdhsa-unknown-{arch}"
\t.text
kernel:
\t{load} s[4:7], s[0:1], 0x0
\tv_lshlrev_b32_e32 v1, 2, v0
\t{wait}
{body}
\ts_endpgm
\t.section\t.rodata
\t.amdhsa_kernel kernel
\t\t.amdhsa_user_sgpr_count 2
\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1
\t\t.amdhsa_system_sgpr_workgroup_id_x 1
\t\t.amdhsa_next_free_vgpr {vectors}
\t\t.amdhsa_next_free_sgpr 32
\t\t.amdhsa_group_segment_fixed_size {local}
\t\t.amdhsa_private_segment_fixed_size {private}
\t.end_amdhsa_kernel
\t.amdgpu_metadata
    .wavefront_size: {lanes}
\t.end_amdgpu_metadata
"""


def run(
    body: str,
    *,
    arch: str = "gfx942",
    groups: int = 1,
    threads: int = 64,
    vectors: int = 16,
    local: int = 1024,
    private: int = 64,
    looks: bool = True,
) -> Any:
    """Run lines: s[4:5] and s[6:7] point to 4 KiB each, s2 is the workgroup, v0 the thread, v1 four times that."""
    lines = "\n".join(line if line.endswith(":") else f"\t{line}" for line in body.replace("; ", "\n").splitlines())
    late = arch.startswith("gfx12")
    text = KERNEL.format(
        arch=arch,
        body=lines,
        vectors=vectors,
        local=local,
        private=private,
        lanes=32 if late else 64,
        load="s_load_b128" if late else "s_load_dwordx4",
        wait="s_wait_kmcnt 0x0" if late else "s_waitcnt lgkmcnt(0)",
    )
    kernel, memory = make_kernel(text, "c"), Memory()
    source, target, kernarg = memory.allocate(4096), memory.allocate(4096), memory.allocate(16)
    given, found = memory.block(source, 4096), memory.block(target, 4096)
    assert given is not None
    assert found is not None
    given[:] = np.arange(1024, dtype=np.uint32).view(np.uint8)
    memory.block(kernarg, 16)[:] = np.array([source, target], np.uint64).view(np.uint8)  # type: ignore[index]
    kernel.run(memory, kernarg, (groups, 1, 1), threads, 0, looks=looks)
    return found.view(np.uint32).copy()


STORE = "global_store_dword v1, v2, s[6:7]"
WAIT = "s_waitcnt vmcnt(0) lgkmcnt(0)"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        # The undefined reaches a store, an address, a condition or the mask of lanes.
        (STORE, "what it stores depends on"),
        (f"v_add_u32_e32 v2, v0, v3; {STORE}", "what it stores"),
        (f"v_pk_add_f16 v2, v3, v0 op_sel_hi:[0,0]; {STORE}", "what it stores"),
        (f"v_mov_b32_e32 v4, 0; v_mul_f32_e32 v2, v4, v3; {STORE}", "what it stores"),  # it may be no number
        (f"v_mov_b32_e32 v2, s20; {STORE}", "what it stores"),
        (f"ds_read_b32 v2, v1; {WAIT}; {STORE}", "what it stores"),
        (f"ds_write_b32 v1, v3; {WAIT}; ds_read_b32 v2, v1; {WAIT}; {STORE}", "what it stores"),
        (f"v_mov_b32_e32 v4, 0; scratch_load_dword v2, v4, off; {WAIT}; {STORE}", "what it stores"),
        (f"ds_bpermute_b32 v2, v1, v3; {WAIT}; {STORE}", "what it stores"),
        (f"v_mov_b32_e32 v3, 0; v_swap_b32 v2, v3; v_mov_b32_e32 v2, v3; {STORE}", "what it stores"),
        (f"ds_add_rtn_u32 v2, v1, v0; {WAIT}; {STORE}", "what it stores"),
        (f"ds_write_b32 v1, v0; ds_add_u32 v1, v3; {WAIT}; ds_read_b32 v2, v1; {WAIT}; {STORE}", "what it stores"),
        ("v_mov_b32_e32 v2, 0; ds_add_u32 v3, v2", "an address"),
        (f"v_readfirstlane_b32 s8, v3; v_mov_b32_e32 v2, s8; {STORE}", "what it stores"),
        # Only the first half of a wave has written it.
        (f"s_mov_b32 exec_hi, 0; v_mov_b32_e32 v2, 0; s_mov_b32 exec_hi, -1; {STORE}", "lane 32"),
        ("v_mov_b32_e32 v2, 0; global_store_dword v3, v2, s[6:7]", "an address depends on"),
        ("global_load_dword v2, v3, s[6:7]", "an address"),
        ("v_mov_b32_e32 v2, 0; ds_write_b32 v3, v2", "an address"),
        ("s_load_dword s8, s[10:11], 0x0", "an address"),
        ("s_cmp_lg_u32 s20, 0; s_cbranch_scc1 .L; .L:", "a condition or the mask"),
        ("s_cbranch_scc0 .L; .L:", "a condition"),
        ("v_cmp_eq_u32_e32 vcc, 0, v3; s_cbranch_vccz .L; .L:", "a condition"),
        ("s_mov_b64 exec, s[20:21]", "the mask"),
        ("v_cmp_eq_f32_e32 vcc, v3, v3; s_and_saveexec_b64 s[8:9], vcc", "the mask"),
        ("v_cmpx_eq_f32_e32 v3, v3", "the mask"),
    ],
)  # fmt: skip
def test_what_is_not_written_is_found_where_it_matters(body: str, told: str) -> None:
    with pytest.raises(Fault, match="that nothing has written") as caught:
        run(body)
    assert told in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        # Compilers read what is undefined where it makes no difference.
        f"v_xor_b32_e32 v2, v3, v3; {STORE}",
        f"v_and_b32_e32 v2, 0, v3; {STORE}",
        f"v_mov_b32_e32 v3, v4; v_mov_b32_e32 v2, 0; {STORE}",
        f"s_mov_b32 s8, 0x3020100; v_perm_b32 v2, v3, v0, s8; {STORE}",
        f"v_lshlrev_b32_e32 v2, 16, v3; v_and_b32_e32 v2, 0xffff, v2; {STORE}",
        f"v_cmp_gt_u32_e32 vcc, 99, v0; v_cndmask_b32_e32 v2, v3, v0, vcc; {STORE}",
        # Lanes that are off.
        f"v_cmp_gt_u32_e32 vcc, 32, v0; s_and_saveexec_b64 s[8:9], vcc; v_mov_b32_e32 v2, 0; {STORE}",
        # A move within a row that writes zero where there is no source; one that leaves what was there.
        f"v_mov_b32_dpp v2, v0 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1; {STORE}",
        f"v_mov_b32_e32 v2, 0; v_mov_b32_dpp v2, v0 row_shr:1 row_mask:0xf bank_mask:0xf; {STORE}",
        # A sum in local memory of what is never used.
        f"v_mov_b32_e32 v2, 0; ds_add_u32 v1, v2; {STORE}",
        # A spill and a store to local memory of what is never used.
        f"v_mov_b32_e32 v4, 0; scratch_store_dword v4, v3, off; ds_write_b32 v1, v3; v_mov_b32_e32 v2, 0; {STORE}",
        f"ds_write_b32 v1, v0; {WAIT}; ds_read_b32 v2, v1; {WAIT}; {STORE}",
        f"v_mov_b32_e32 v2, 0; s_cmp_eq_u32 s2, 0; s_cselect_b32 s8, 1, s20; v_mov_b32_e32 v2, s8; {STORE}",
        f"v_cvt_f16_f32_e32 v2, v0; v_cvt_f16_f32_sdwa v2, v0 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE; {STORE}",
    ],
)  # fmt: skip
def test_what_makes_no_difference_may_be_undefined(body: str) -> None:
    run(body)


def test_plain_runs_do_not_look() -> None:
    run(STORE, looks=False)


MEET = f"v_mov_b32_e32 v2, 0; v_mov_b32_e32 v3, 1; global_atomic_add v5, v2, v3, s[4:5] sc0; {WAIT}"
GROUP = "s_lshl_b32 s8, s2, {0}; v_add_u32_e32 v4, s8, v1"


@pytest.mark.parametrize(
    ("body", "races"),
    [
        # 64 lanes of 4 bytes: 256 apart is right, 128 apart overlaps.
        (f"{GROUP.format(8)}; global_store_dword v4, v4, s[6:7]", False),
        (f"{GROUP.format(7)}; v_mov_b32_e32 v5, s2; global_store_dword v4, v5, s[6:7]", True),
        (f"{GROUP.format(7)}; global_store_dword v4, v4, s[6:7]", False),  # both write the same
        (f"{GROUP.format(8)}; global_load_dword v2, v1, s[4:5]; {WAIT}; global_store_dword v4, v2, s[6:7]", False),
        (f"{GROUP.format(8)}; global_load_dword v2, v1, s[6:7]; {WAIT}; global_store_dword v4, v0, s[6:7]", True),
        (f"{GROUP.format(8)}; s_load_dword s9, s[6:7], 0x0; {WAIT}; global_store_dword v4, v0, s[6:7]", True),
        # Bytes beside each other.
        (f"{GROUP.format(6)}; v_add_u32_e32 v5, s8, v0; global_store_byte v5, v0, s[6:7]", False),
        # Sums by atomic operations are no race; what a workgroup reads that has taken the result of one is not judged.
        ("v_mov_b32_e32 v2, 0; v_mov_b32_e32 v3, 1; global_atomic_add v2, v3, s[6:7]", False),
        (f"{GROUP.format(8)}; global_store_dword v4, v0, s[6:7]; {MEET}; global_load_dword v6, v1, s[6:7]", False),
    ],
)
def test_races_between_workgroups(body: str, races: bool) -> None:
    if races:
        with pytest.raises(Fault, match="a race: two workgroups of one launch touch .* of global memory"):
            run(body, groups=4)
    else:
        run(body, groups=4)


ADD = "v_mov_b32_e32 v3, 0; ds_add_u32 v3, v0"
TAKE = f"v_mov_b32_e32 v3, 0; ds_add_rtn_u32 v4, v3, v0; {WAIT}"


@pytest.mark.parametrize(
    ("body", "races"),
    [
        (ADD, False),
        (f"{ADD}; v_mov_b32_e32 v4, 8; ds_max_i32 v3, v4; {WAIT}; s_barrier; ds_read_b32 v5, v3", False),
        (f"{ADD}; {WAIT}; ds_read_b32 v5, v3", True),
        (f"ds_read_b32 v5, v1; {WAIT}; {ADD}", True),  # 128 threads read what others sum up
        (f"v_mov_b32_e32 v4, 0; ds_write_b32 v4, v4; {WAIT}; {ADD}", True),
        (f"{ADD}; v_mov_b32_e32 v4, 0; {WAIT}; ds_write_b32 v4, v4", True),
        # Each wave its own place.
        (f"v_and_b32_e32 v3, 0xc0, v0; ds_add_u32 v3, v0; {WAIT}; ds_read_b32 v5, v3", False),
        # What a wave touches that has taken the result of one is not judged, up to the next barrier.
        (f"{TAKE}; ds_read_b32 v5, v3", False),
        (f"{TAKE}; s_barrier; ds_write_b32 v3, v0", True),
    ],
)
def test_races_with_atomic_operations_on_local_memory(body: str, races: bool) -> None:
    if races:
        with pytest.raises(Fault, match="a race: two waves touch .* of local memory"):
            run(body, threads=128, looks=False)
    else:
        run(body, threads=128, looks=False)


@pytest.mark.parametrize(
    ("arch", "body", "told"),
    [
        ("gfx942", "v_cmp_gt_u32_e32 vcc, 64, v0; s_cbranch_vccz .L; s_barrier; .L:", "another .* has ended"),
        ("gfx942", "s_barrier; s_barrier", ""),
        ("gfx1201", "s_barrier_signal -1; s_barrier_wait 0xffff", ""),
        ("gfx1201", "s_barrier_wait 0xffff", "that it has not signalled"),
        ("gfx1201", "s_barrier_signal -1; s_barrier_signal -1", "signals a barrier twice"),
        ("gfx1201", "s_barrier_signal_isfirst -1; s_barrier_wait 0xffff", ""),
        ("gfx1201", "s_barrier_signal_isfirst -1; s_barrier_signal -1", "signals a barrier twice"),
    ],
)  # fmt: skip
def test_barriers(arch: str, body: str, told: str) -> None:
    if told:
        with pytest.raises(Fault, match=told):
            run(body, arch=arch, threads=128)
    else:
        run(body, arch=arch, threads=128)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"body": "v_mov_b32_e32 v16, 0"}, "it uses v16, the kernel asks for 16 vector registers"),
        ({"body": "s_mov_b32 s32, 0"}, "it uses s32, the kernel asks for 32 scalar"),
        ({"body": "s_nop 0", "vectors": 520}, "asks for 520 vector registers, gfx942 has 512"),
        ({"body": "s_nop 0", "local": 65540}, "asks for 65540 bytes of local memory, gfx942 has 65536"),
        ({"body": "s_nop 0", "private": 140000}, "asks for 140000 bytes of private memory"),
        ({"body": "s_nop 0", "threads": 1088}, "a workgroup of 1088 threads"),
    ],
)
def test_limits(options: dict[str, Any], told: str) -> None:
    with pytest.raises(Fault, match=told):
        run(**options)


# 128 threads: each wave copies its own 256 bytes to local memory, from M0 on.
OWN = "v_readfirstlane_b32 s8, v1; s_mov_b32 m0, s8"
COPY = f"{OWN}; global_load_lds_dword v1, s[4:5]"
OTHERS = "v_xor_b32_e32 v3, 0x100, v1; ds_read_b32 v4, v3"
# The same where lanes say where their bytes go (gfx1250), with 64 threads.
ASYNC = "global_load_async_to_lds_b32 v1, v1, s[4:5]"
ASYNC_OTHERS = "v_xor_b32_e32 v3, 0x80, v1; ds_load_b32 v4, v3"


@pytest.mark.parametrize(
    ("arch", "body", "missing"),
    [
        ("gfx950", f"{COPY}; s_waitcnt vmcnt(0); ds_read_b32 v4, v1", False),
        ("gfx950", f"{COPY}; ds_read_b32 v4, v1", True),
        ("gfx950", f"{COPY}; ds_write_b32 v1, v0", True),
        ("gfx950", f"{COPY}; s_waitcnt vmcnt(0); s_barrier; {OTHERS}", False),
        ("gfx950", f"{COPY}; s_barrier; {OTHERS}", True),
        ("gfx950", f"{COPY}; s_barrier; s_waitcnt vmcnt(0); {OTHERS}", True),
        # Loads and stores behind it share its counter, and are done after it.
        ("gfx950", f"{COPY}; global_load_dword v5, v1, s[4:5]; s_waitcnt vmcnt(1); ds_read_b32 v4, v1", False),
        ("gfx950", f"{COPY}; global_load_dword v5, v1, s[4:5]; s_waitcnt vmcnt(2); ds_read_b32 v4, v1", True),
        ("gfx950", f"{COPY}; global_store_dword v1, v0, s[6:7]; s_waitcnt vmcnt(1); ds_read_b32 v4, v1", False),
        ("gfx950", f"global_load_dword v5, v1, s[4:5]; {COPY}; s_waitcnt vmcnt(1); ds_read_b32 v4, v1", True),
        ("gfx950", f"{COPY}; s_waitcnt lgkmcnt(0); ds_read_b32 v4, v1", True),
        ("gfx1250", f"{ASYNC}; s_wait_asynccnt 0x0; ds_load_b32 v4, v1", False),
        ("gfx1250", f"{ASYNC}; s_wait_loadcnt 0x0; ds_load_b32 v4, v1", True),
        ("gfx1250", f"{ASYNC}; global_load_b32 v5, v1, s[4:5]; s_wait_asynccnt 0x1; ds_load_b32 v4, v1", True),
        ("gfx1250", f"{ASYNC}; s_wait_asynccnt 0x0; s_barrier_signal -1; s_barrier_wait -1; {ASYNC_OTHERS}", False),
        ("gfx1250", f"{ASYNC}; s_barrier_signal -1; s_wait_asynccnt 0x0; s_barrier_wait -1; {ASYNC_OTHERS}", True),
    ],
)
def test_copies_into_local_memory_are_waited_for(arch: str, body: str, missing: bool) -> None:
    end = "s_waitcnt vmcnt(0) lgkmcnt(0)" if arch == "gfx950" else "s_wait_loadcnt_dscnt 0x0"
    threads = 128 if arch == "gfx950" else 64
    if missing:
        with pytest.raises(Fault, match="before the copy that fills them is known to be done: a wait is missing"):
            run(f"{body}; {end}", arch=arch, threads=threads, looks=False)
    else:
        run(f"{body}; {end}", arch=arch, threads=threads)
