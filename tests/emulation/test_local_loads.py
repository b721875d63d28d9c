"""Loads that end in local memory, and those from it that transpose, against what numpy makes of the same bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.emulation.memory import Fault
from tests.emulation.text import ENGINES, run

RANDOM = np.random.default_rng(11)


def fill_local(words: int) -> list[str]:
    """Each lane of 64 copies that many words to local memory, at its number times their size."""
    lines = [f"v_mul_u32_u24_e32 v2, {4 * words}, v0"]
    for place in range(words):
        lines += [f"global_load_dword v3, v2, s[4:5] offset:{4 * place}", f"ds_write_b32 v2, v3 offset:{4 * place}"]
    return lines


def shown(data: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Elements of up to 8 bits, one after the other from the lowest bit on, along the last axis."""
    fields = np.unpackbits(data, axis=-1, bitorder="little").reshape(*data.shape[:-1], -1, bits)
    return (fields << np.arange(bits, dtype=np.uint8)).sum(-1, dtype=np.uint8)


COLUMNS = (4, 8, 16)
SLOTS = [
    ("ubyte", 1, 4, 4, False), ("sbyte", 1, 4, 4, True), ("ushort", 2, 4, 4, False), ("sshort", 2, 4, 4, True),
    ("dword", 4, 4, 4, False), ("dwordx3", 12, 12, 16, False), ("dwordx4", 16, 16, 16, False),
]  # fmt: skip
ADDRESSES = [("b8", 1), ("b32", 4), ("b64", 8), ("b128", 16)]
NAMES = {
    *(f"ds_read_b64_tr_b{bits}" for bits in COLUMNS),
    *(f"{space}_load_{what}" for space in ("ds", "global") for what in ("tr8_b64", "tr16_b128")),
    *(f"global_load_lds_{size}" for size, *_ in SLOTS),
    *(f"global_load_async_to_lds_{size}" for size, _ in ADDRESSES),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bits", COLUMNS)
def test_sixteen_lanes_receive_columns(bits: int, engine: Any) -> None:
    """gfx950: 16 lanes read a matrix of rows of 16 elements, as many as 64 bits hold, and lane i receives column i."""
    data = RANDOM.integers(0, 256, 512, dtype=np.uint8)
    body = [
        *fill_local(2),
        "v_lshlrev_b32_e32 v4, 3, v0",
        "v_sub_u32_e32 v4, 504, v4",  # lanes read backwards, so that it is lanes that are exchanged and no addresses
        f"ds_read_b64_tr_b{bits} v[6:7], v4",
        "v_lshlrev_b32_e32 v2, 3, v0",
        "global_store_dwordx2 v2, v[6:7], s[6:7]",
    ]
    found = run(body, engine, data, 512, arch="gfx950", local=512)
    read = data.reshape(64, 8)[::-1].reshape(4, 128)
    whole = read.view(np.uint16) if bits == 16 else shown(read, bits)
    columns = whole.reshape(4, -1, 16).transpose(0, 2, 1)
    got = found.view(np.uint16) if bits == 16 else shown(found.reshape(4, 128), bits)
    np.testing.assert_array_equal(got.reshape(columns.shape), columns)


def transposed(engine: Any, instruction: str, data: NDArray[np.uint8], *, local: bool) -> NDArray[np.uint8]:
    """What 32 lanes receive, each of which reads its row of the data."""
    size = data.nbytes // 32
    words = size // 4
    body = [f"v_mul_u32_u24_e32 v2, {size}, v0"]
    if local:
        for place in range(words):
            at = f"offset:{4 * place}"
            body += [f"global_load_b32 v3, v2, s[4:5] {at}", f"ds_store_b32 v2, v3 {at}"]
    body.append(f"ds_load_{instruction} v[8:{7 + words}], v2" if local else
                f"global_load_{instruction} v[8:{7 + words}], v2, s[4:5]")  # fmt: skip
    body += [f"global_store_b32 v2, v{8 + place}, s[6:7] offset:{4 * place}" for place in range(words)]
    return run(body, engine, data, data.nbytes, arch="gfx1250", local=1024)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("local", [True, False])
def test_eight_lanes_exchange_halves(engine: Any, local: bool) -> None:
    """gfx1250: lanes 0 to 7 read rows of 8 elements of 16 bits and receive columns; so do the others, 8 at a time."""
    data = RANDOM.integers(0, 256, 512, dtype=np.uint8)
    found = transposed(engine, "tr16_b128", data, local=local).view(np.uint16).reshape(4, 8, 8)
    np.testing.assert_array_equal(found, data.view(np.uint16).reshape(4, 8, 8).transpose(0, 2, 1))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("local", [True, False])
def test_eight_lanes_exchange_bytes(engine: Any, local: bool) -> None:
    """gfx1250: of 16 lanes, 0 to 3 and 8 to 11 hold rows whose columns lanes 0 to 7 receive; the others likewise."""
    data = RANDOM.integers(0, 256, 256, dtype=np.uint8)
    found = transposed(engine, "tr8_b64", data, local=local).reshape(32, 8)
    rows = data.reshape(32, 8)
    for first in (0, 16):
        for half, holders in enumerate(([0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15])):
            receivers = slice(first + 8 * half, first + 8 * half + 8)
            np.testing.assert_array_equal(found[receivers], rows[[first + each for each in holders]].T)


@pytest.mark.parametrize("engine", ENGINES)
def test_exchanges_need_all_lanes(engine: Any) -> None:
    body = ["v_lshlrev_b32_e32 v2, 3, v0", "s_mov_b64 exec, 0xff", "ds_read_b64_tr_b16 v[6:7], v2"]
    with pytest.raises(Fault, match="a load that transposes needs all lanes on"):
        run(body, engine, np.zeros(512, np.uint8), 512, arch="gfx950", local=512)


READ_LOCAL = [
    "s_mov_b64 exec, -1",
    "v_lshlrev_b32_e32 v3, 4, v0",
    "ds_read_b128 v[8:11], v3",
    "global_store_dwordx4 v3, v[8:11], s[6:7]",
]


def local_after(engine: Any, lines: list[str], data: NDArray[np.uint8], arch: str = "gfx950") -> NDArray[np.uint8]:
    """1024 bytes of local memory, which was zero, after some lines."""
    clear = ["v_mov_b32_e32 v9, 0", "v_lshlrev_b32_e32 v3, 2, v0"]
    clear += [f"ds_write_b32 v3, v9 offset:{256 * place}" for place in range(4)]
    return run([*clear, *lines, *READ_LOCAL], engine, data, 1024, arch=arch, local=1024)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("size", "read", "written", "slot", "signed"), SLOTS)
def test_lanes_load_into_slots(size: str, read: int, written: int, slot: int, signed: bool, engine: Any) -> None:
    """gfx950: from M0 on, an offset further, lanes that are on fill their slots; bytes and shorts are widened."""
    data = RANDOM.integers(0, 256, 64 * 16 + 8, dtype=np.uint8)
    on, start = 0x0000_0000_00F3_0001, 64
    lines = [
        f"v_mul_u32_u24_e32 v2, {read}, v0",
        f"s_mov_b32 m0, {start}",
        f"s_mov_b64 exec, {on:#x}",
        f"global_load_lds_{size} v2, s[4:5] offset:8",
    ]
    expected = np.zeros(1024, np.uint8)
    for lane in range(64):
        if on >> lane & 1:
            raw = data[8 + read * lane : 8 + read * lane + read]
            wide = np.frombuffer(
                int.from_bytes(raw, "little", signed=signed).to_bytes(written, "little", signed=signed), np.uint8
            )
            expected[start + 8 + slot * lane :][:written] = wide
    np.testing.assert_array_equal(local_after(engine, lines, data), expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("size", "each", "slot"), [("dword", 4, 4), ("dwordx4", 16, 16)])
def test_buffers_load_into_slots(size: str, each: int, slot: int, engine: Any) -> None:
    """What lies beyond the size of a buffer is zero in local memory too."""
    data = RANDOM.integers(1, 256, 64 * 16, dtype=np.uint8)
    held = 20 * each
    lines = [
        f"v_mul_u32_u24_e32 v2, {each}, v0",
        "s_mov_b32 s8, s4",
        "s_mov_b32 s9, s5",
        f"s_mov_b32 s10, {held}",
        "s_mov_b32 s11, 0x27000",
        "s_mov_b32 m0, 0",
        *(["v_mov_b32_e32 v9, -1", "v_lshlrev_b32_e32 v3, 2, v0", "ds_write_b32 v3, v9"]),
        f"buffer_load_{size} v2, s[8:11], 0 offen lds",
    ]
    expected = np.zeros(1024, np.uint8)
    expected[: 64 * slot].reshape(64, slot)[:20, :each] = data[:held].reshape(20, each)
    np.testing.assert_array_equal(local_after(engine, lines, data), expected)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("load", ["global_load_lds_dword v9, s[4:5]", "buffer_load_dword v9, s[8:11], 0 offen lds"])
def test_the_largest_integer_names_no_slots(load: str, engine: Any) -> None:
    """What is loaded to there goes nowhere, from wherever it is."""
    resource = ["s_mov_b32 s8, s4", "s_mov_b32 s9, s5", "s_mov_b32 s10, -1", "s_mov_b32 s11, 0x27000"]
    lines = [*resource, "s_mov_b32 m0, 0x7fffffff", "v_mov_b32_e32 v9, 0x100000", load]
    np.testing.assert_array_equal(local_after(engine, lines, np.ones(4, np.uint8)), np.zeros(1024, np.uint8))


@pytest.mark.parametrize("engine", ENGINES)
def test_slots_beyond_local_memory_are_found(engine: Any) -> None:
    lines = ["s_movk_i32 m0, 0x304", "global_load_lds_dword v1, s[4:5]"]
    with pytest.raises(Fault, match="4 bytes at 0x400 lie beyond"):
        local_after(engine, lines, np.zeros(256, np.uint8))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("size", "each"), ADDRESSES)
def test_lanes_load_to_their_addresses(size: str, each: int, engine: Any) -> None:
    """gfx1250: an offset counts in both memories; lanes whose address there is the largest integer do nothing."""
    data = RANDOM.integers(1, 256, 32 * 16 + 4 * 16, dtype=np.uint8)
    offset = 3 * each
    body = [
        "v_mov_b32_e32 v9, 0",
        *(f"ds_store_b32 v1, v9 offset:{128 * place}" for place in range(8)),
        f"v_mul_u32_u24_e32 v2, {each}, v0",
        "v_sub_nc_u32_e32 v3, 31, v0",  # in reverse
        f"v_mul_u32_u24_e32 v3, {each}, v3",
        "v_cmp_gt_u32_e32 vcc_lo, 5, v0",
        f"v_mov_b32_e32 v4, {0x7FFFFFFF - offset:#x}",
        "v_cndmask_b32_e32 v3, v3, v4, vcc_lo",
        "v_mov_b32_e32 v5, 0x100000",  # what these lanes would read lies in no buffer
        "v_cndmask_b32_e32 v2, v2, v5, vcc_lo",
        f"global_load_async_to_lds_{size} v3, v2, s[4:5] offset:{offset}",
        "s_wait_asynccnt 0x0",
        *(f"ds_load_b32 v{8 + place}, v1 offset:{128 * place}" for place in range(8)),
        *(f"global_store_b32 v1, v{8 + place}, s[6:7] offset:{128 * place}" for place in range(8)),
    ]
    expected = np.zeros(1024, np.uint8)
    for lane in range(5, 32):
        expected[offset + each * (31 - lane) :][:each] = data[offset + each * lane :][:each]
    np.testing.assert_array_equal(run(body, engine, data, 1024, arch="gfx1250", local=1024), expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_addresses_in_local_memory_have_32_bits(engine: Any) -> None:
    """A base below zero and an offset that brings it back."""
    lines = ["v_subrev_u32_e32 v2, 512, v1", "v_mov_b32_e32 v4, 7", "ds_write_b32 v2, v4 offset:768"]
    expected = np.zeros(256, np.uint32)
    expected[64:128] = 7
    np.testing.assert_array_equal(local_after(engine, lines, np.zeros(4, np.uint8)).view(np.uint32), expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_buffers_of_gfx1250(engine: Any) -> None:
    """57 bits of address and 45 of size: beyond it, zeros are loaded."""
    data = RANDOM.integers(1, 1 << 30, 64, dtype=np.uint32)
    body = [
        "s_mov_b32 s8, s4",
        "s_or_b32 s9, s5, 0x92000000",  # size 73 and 1 << 7: its 7 lowest bits, above those of the address
        "s_mov_b32 s10, 1",
        "s_mov_b32 s11, 0",
        "v_lshlrev_b32_e32 v2, 3, v0",
        "buffer_load_b64 v[4:5], v2, s[8:11], null offen",
        "global_store_b64 v2, v[4:5], s[6:7]",
    ]
    found = run(body, engine, data, 256, arch="gfx1250").view(np.uint32)
    np.testing.assert_array_equal(found, np.where(np.arange(64) < 50, data, 0))


@pytest.mark.parametrize("engine", ENGINES)
def test_scalar_offsets_are_scaled(engine: Any) -> None:
    data = np.arange(64, dtype=np.uint32) * 11
    body = [
        "s_mov_b32 s8, 5",
        "s_load_b32 s9, s[4:5], s8 offset:0x4 scale_offset",
        "v_mov_b32_e32 v2, s9",
        "global_store_b32 v1, v2, s[6:7]",
    ]
    found = run(body, engine, data, 128, arch="gfx1250").view(np.uint32)
    np.testing.assert_array_equal(found, np.full(32, data[6]))


@pytest.mark.parametrize("engine", ENGINES)
def test_lanes_send_to_others(engine: Any) -> None:
    """ds_permute: each lane names the one that receives; of two that name one, the higher counts."""
    targets = RANDOM.integers(0, 64, 64, dtype=np.uint32)
    body = [
        "global_load_dword v2, v1, s[4:5]",
        "v_lshlrev_b32_e32 v2, 2, v2",
        "v_add_u32_e32 v3, 100, v0",
        "ds_permute_b32 v4, v2, v3",
        "global_store_dword v1, v4, s[6:7]",
    ]
    expected = np.zeros(64, np.uint32)
    for lane, target in enumerate(targets):
        expected[target] = 100 + lane
    np.testing.assert_array_equal(run(body, engine, targets, 256).view(np.uint32), expected)
