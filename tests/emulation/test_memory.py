"""Loads and stores of every size in every space, against the same bytes in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.emulation.text import ENGINES, run, some_lanes

Bytes = NDArray[np.uint8]

SHORT_9 = {
    "ubyte": (1, False, ""), "sbyte": (1, True, ""), "ushort": (2, False, ""), "sshort": (2, True, ""),
    "ubyte_d16": (1, False, "low"), "ubyte_d16_hi": (1, False, "high"), "sbyte_d16": (1, True, "low"),
    "sbyte_d16_hi": (1, True, "high"), "short_d16": (2, False, "low"), "short_d16_hi": (2, False, "high"),
}  # fmt: skip
SHORT_LATER = {
    "u8": (1, False, ""), "i8": (1, True, ""), "u16": (2, False, ""), "i16": (2, True, ""),
    "d16_u8": (1, False, "low"), "d16_hi_u8": (1, False, "high"), "d16_i8": (1, True, "low"),
    "d16_hi_i8": (1, True, "high"), "d16_b16": (2, False, "low"), "d16_hi_b16": (2, False, "high"),
}  # fmt: skip
SHORT_LOCAL = {
    "u8": (1, False, ""), "i8": (1, True, ""), "u16": (2, False, ""), "i16": (2, True, ""),
    "u8_d16": (1, False, "low"), "u8_d16_hi": (1, False, "high"), "i8_d16": (1, True, "low"),
    "i8_d16_hi": (1, True, "high"), "u16_d16": (2, False, "low"), "u16_d16_hi": (2, False, "high"),
}  # fmt: skip
"""Bytes, whether they have a sign, and the half of the register that they fill where the other one stays."""
DWORDS = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
WORDS = {"b32": 4, "b64": 8, "b96": 12, "b128": 16}


def _plain(sizes: dict[str, int]) -> dict[str, tuple[int, bool, str]]:
    return {name: (size, False, "") for name, size in sizes.items()}


_HIGH_9 = {"byte_d16_hi": (1, False, "high"), "short_d16_hi": (2, False, "high")}
_HIGH_LATER = {"d16_hi_b8": (1, False, "high"), "d16_hi_b16": (2, False, "high")}
_HIGH_LOCAL = {"b8_d16_hi": (1, False, "high"), "b16_d16_hi": (2, False, "high")}
LOADS = {
    ("gfx942", False): SHORT_9 | _plain(DWORDS),
    ("gfx942", True): SHORT_LOCAL | _plain(WORDS),
    ("gfx1201", False): SHORT_LATER | _plain(WORDS),
    ("gfx1201", True): SHORT_LOCAL | _plain(WORDS),
}
STORES = {
    ("gfx942", False): _plain({"byte": 1, "short": 2} | DWORDS) | _HIGH_9,
    ("gfx942", True): _plain({"b8": 1, "b16": 2} | WORDS) | _HIGH_LOCAL,
    ("gfx1201", False): _plain({"b8": 1, "b16": 2} | WORDS) | _HIGH_LATER,
    ("gfx1201", True): _plain({"b8": 1, "b16": 2} | WORDS) | _HIGH_LOCAL,
}
"""By arch, and whether it is local memory."""
SPACES = ("global", "flat", "buffer", "scratch", "ds")
WAYS = {
    (arch, space): ("read", "write") if (arch, space) == ("gfx942", "ds") else ("load", "store")
    for arch in ("gfx942", "gfx1201")
    for space in SPACES
}


def _names(arch: str, space: str, way: int) -> dict[str, tuple[int, bool, str]]:
    sizes = (LOADS, STORES)[way][arch, space == "ds"]
    return {f"{space}_{WAYS[arch, space][way]}_{size}": each for size, each in sizes.items()}


NAMES = {name for arch, space in WAYS for way in (0, 1) for name in _names(arch, space, way)}


def _registers(number: int, size: int) -> str:
    return f"v{number}" if size <= 4 else f"v[{number}:{number + size // 4 - 1}]"


def _access(name: str, arch: str, size: int, offset: int, *, store: bool, to: str) -> str:
    """An access to a lane's 16 bytes, an offset further, with its data in v4 and the next ones.

    `to` are the registers of the address of the space: that of what is read, s[4:5], or written, s[6:7].
    """
    space, data = name.split("_", maxsplit=1)[0], _registers(4, size)
    buffer = f"v2, s[8:11], {'0' if arch == 'gfx942' else 'null'} offen"
    address = {
        "global": ["v2", data, to] if store else [data, "v2", to],
        "flat": ["v[20:21]", data] if store else [data, "v[20:21]"],
        "buffer": [data, buffer],
        "scratch": ["off", data, "off"] if store else [data, "off", "off"],
        "ds": ["v2", data] if store else [data, "v2"],
    }[space]
    return f"{name} {', '.join(address)} offset:{offset}"


def _words(arch: str, what: str) -> str:
    return f"global_{what}_{'dwordx4' if arch == 'gfx942' else 'b128'}"


def _prepare(space: str, arch: str, to: str) -> list[str]:
    """v2 is the place of a lane's 16 bytes; v[20:21] and s[8:11] tell of them too, for spaces that want it."""
    start = {"s[4:5]": ("s4", "s5"), "s[6:7]": ("s6", "s7")}[to]
    lines = ["v_lshlrev_b32_e32 v2, 4, v0"]
    if space == "flat":
        carry = "s[12:13]" if arch == "gfx942" else "s12"
        name = "v_mad_u64_u32" if arch == "gfx942" else "v_mad_co_u64_u32"
        lines += [f"v_mov_b32_e32 v20, {start[0]}", f"v_mov_b32_e32 v21, {start[1]}"]
        lines += [f"{name} v[20:21], {carry}, v0, 16, v[20:21]"]
    if space == "buffer":
        lines += [
            f"s_mov_b32 s8, {start[0]}",
            f"s_mov_b32 s9, {start[1]}",
            "s_mov_b32 s10, -1",
            "s_mov_b32 s11, 0x27000",
        ]
    return lines


def _in_own_memory(space: str, arch: str, number: int, *, store: bool) -> list[str]:
    """Put 16 bytes of v[number] and the next ones into local or private memory, or take them from there."""
    data = f"v[{number}:{number + 3}]"
    if space == "ds":
        name = f"ds_{WAYS[arch, space][store]}_b128"
        return [f"{name} v2, {data}" if store else f"{name} {data}, v2"]
    name = f"scratch_{WAYS[arch, space][store]}_{'dwordx4' if arch == 'gfx942' else 'b128'}"
    return [f"{name} off, {data}, off" if store else f"{name} {data}, off, off"]


def _moves(target: int, source: int) -> list[str]:
    return [f"v_mov_b32_e32 v{target + place}, v{source + place}" for place in range(4)]


def _loaded(data: Bytes, old: Bytes, size: int, signed: bool, half: str) -> Bytes:
    """A lane's four registers after a load, 16 bytes."""
    found = old.copy()
    if size >= 4:
        found[:size] = data
    else:
        wide = int.from_bytes(data, "little", signed=signed)
        place, room = {"": (0, 4), "low": (0, 2), "high": (2, 2)}[half]
        found[place : place + room] = np.frombuffer(wide.to_bytes(room, "little", signed=signed), np.uint8)
    return found


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("arch", "space"), list(WAYS))
def test_loads(arch: str, space: str, engine: Any) -> None:
    """From the end of a lane's 16 bytes, into registers that hold others; some lanes are off."""
    lanes = 64 if arch == "gfx942" else 32
    data, old = np.random.default_rng(2).integers(0, 256, (2, lanes, 16), np.uint8)
    on, mask = some_lanes(lanes, 12)
    body = [*_prepare(space, arch, "s[4:5]"), "v_mov_b32_e32 v3, v2"]
    body += [f"{_words(arch, 'load')} v[12:15], v2, s[4:5]"]
    body += [f"{_words(arch, 'load')} v[16:19], v2, s[4:5] offset:{16 * lanes}"]
    if space in ("ds", "scratch"):
        body += _in_own_memory(space, arch, 12, store=True)
    names = _names(arch, space, 0)
    for name, (size, _, _) in names.items():
        body += _moves(4, 16)
        body += [*mask, _access(name, arch, size, 16 - size, store=False, to="s[4:5]")]
        body += ["s_mov_b64 exec, -1" if lanes == 64 else "s_mov_b32 exec_lo, -1"]
        body += [
            f"{_words(arch, 'store')} v3, v[4:7], s[6:7]",
            f"v_add_{'nc_' * (lanes == 32)}u32_e32 v3, {16 * lanes}, v3",
        ]
    given = np.concatenate([data, old])
    found = run(body, engine, given, 16 * lanes * len(names), arch=arch, local=16 * lanes).reshape(-1, lanes, 16)
    for got, (name, (size, signed, half)) in zip(found, names.items(), strict=True):
        made = [_loaded(each[16 - size :], before, size, signed, half) for each, before in zip(data, old, strict=True)]
        np.testing.assert_array_equal(got, np.where(on[:, None], made, old), err_msg=name)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("arch", "space"), list(WAYS))
def test_stores(arch: str, space: str, engine: Any) -> None:
    """To the end of a lane's 16 bytes; what lies before it, and what belongs to lanes that are off, stays."""
    lanes = 64 if arch == "gfx942" else 32
    data, old = np.random.default_rng(3).integers(0, 256, (2, lanes, 16), np.uint8)
    on, mask = some_lanes(lanes, 13)
    own = space in ("ds", "scratch")
    every = "s_mov_b64 exec, -1" if lanes == 64 else "s_mov_b32 exec_lo, -1"
    for name, (size, _, half) in _names(arch, space, 1).items():
        body = [*_prepare(space, arch, "s[6:7]")]
        body += [f"{_words(arch, 'load')} v[4:7], v2, s[4:5]"]
        body += [f"{_words(arch, 'load')} v[16:19], v2, s[4:5] offset:{16 * lanes}"]
        body += (
            _in_own_memory(space, arch, 16, store=True) if own else [f"{_words(arch, 'store')} v2, v[16:19], s[6:7]"]
        )
        body += [*mask, _access(name, arch, size, 16 - size, store=True, to="s[6:7]"), every]
        if own:
            body += [*_in_own_memory(space, arch, 8, store=False), f"{_words(arch, 'store')} v2, v[8:11], s[6:7]"]
        found = run(body, engine, np.concatenate([data, old]), 16 * lanes, arch=arch, local=16 * lanes)
        expected = old.copy()
        first = 2 if half else 0
        expected[on, 16 - size :] = data[on, first : first + size]
        np.testing.assert_array_equal(found.reshape(lanes, 16), expected, err_msg=name)


PAIRS = {
    "gfx942": ("ds_write2_", "ds_read2_", "ds_write2st64_", "ds_read2st64_"),
    "gfx1201": ("ds_store_2addr_", "ds_load_2addr_", "ds_store_2addr_stride64_", "ds_load_2addr_stride64_"),
}
NAMES |= {f"{name}b{bits}" for names in PAIRS.values() for name in names for bits in (32, 64)}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("arch", list(PAIRS))
def test_two_places_at_once(arch: str, bits: int, engine: Any) -> None:
    """Offsets count elements, or rows of 64 of them: two rows are stored, and loaded in the other order."""
    lanes, size = 64 if arch == "gfx942" else 32, bits // 8
    data = np.random.default_rng(4).integers(0, 256, (2, lanes, size), np.uint8)
    kind = f"dword{'x2' * (bits == 64)}" if arch == "gfx942" else f"b{bits}"
    first, second, loaded, again = (_registers(each, 2 * size if each > 6 else size) for each in (4, 6, 8, 12))
    write, read, write_rows, read_rows = (f"{name}b{bits}" for name in PAIRS[arch])
    row = 64 * size
    body = [
        f"v_mul_u32_u24_e32 v2, {size}, v0",
        f"v_mul_u32_u24_e32 v3, {2 * size}, v0",
        f"global_load_{kind} {first}, v2, s[4:5]",
        f"global_load_{kind} {second}, v2, s[4:5] offset:{lanes * size}",
        f"{write_rows} v2, {first}, {second} offset0:1 offset1:3",
        f"{read_rows} {loaded}, v2 offset0:3 offset1:1",
        f"{write} v3, {first}, {second} offset1:1",
        f"{read} {again}, v3 offset0:1",
    ]
    wide = f"dwordx{size // 2}" if arch == "gfx942" else f"b{2 * bits}"
    body += [f"global_store_{wide} v3, {loaded}, s[6:7]"]
    body += [f"global_store_{wide} v3, {again}, s[6:7] offset:{2 * lanes * size}"]
    found = run(body, engine, data, 4 * lanes * size, arch=arch, local=4 * row)
    expected = np.stack([data[1], data[0]], 1)
    np.testing.assert_array_equal(found.reshape(2, lanes, 2, size), np.stack([expected, expected]))


@pytest.mark.parametrize("engine", ENGINES)
def test_what_lies_beyond_a_buffer(engine: Any) -> None:
    """Lanes there load zeros, and store nothing."""
    data = np.random.default_rng(5).integers(1, 256, (64, 16), np.uint8)
    body = [*_prepare("buffer", "gfx942", "s[4:5]"), "s_movk_i32 s10, 0x88"]
    body += ["v_mov_b32_e32 v4, 7", "buffer_load_dwordx2 v[4:5], v2, s[8:11], 0 offen offset:8"]
    body += ["global_store_dwordx2 v2, v[4:5], s[6:7]", "s_mov_b32 s8, s6", "s_mov_b32 s9, s7"]
    body += ["v_mov_b32_e32 v6, 0", "v_mov_b32_e32 v7, 0", "global_store_dwordx2 v2, v[6:7], s[6:7] offset:8"]
    body += ["buffer_store_dwordx2 v[4:5], v2, s[8:11], 0 offen offset:8"]
    found = run(body, engine, data, 1024).reshape(64, 2, 8)
    inside = np.arange(64)[:, None] * 16 + 16 <= 0x88
    expected = np.where(inside, data[:, 8:], 0)
    np.testing.assert_array_equal(found, np.stack([expected, expected], 1))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("arch", ["gfx942", "gfx1100", "gfx1250"])
def test_a_lane_that_starts_before_a_buffer(arch: str, engine: Any) -> None:
    """Its offset is 4 below 0 and that of the instruction 4 above; on gfx1250 both are added in more than 32 bits."""
    lanes, word, add, none = (64, "dword", "add", "0") if arch == "gfx942" else (32, "b32", "add_nc", "null")
    data = np.random.default_rng(6).integers(1, 256, (lanes, 16), np.uint8)
    body = [*_prepare("buffer", arch, "s[4:5]"), f"v_{add}_u32_e32 v3, -4, v2"]
    body += ["s_movk_i32 s10, 0x7f", "s_mov_b32 s11, 0"] if arch == "gfx1250" else []  # 16256 bytes
    body += [f"buffer_load_{word} v4, v3, s[8:11], {none} offen offset:4", f"global_store_{word} v2, v4, s[6:7]"]
    found = run(body, engine, data, 16 * lanes, arch=arch).reshape(lanes, 16)[:, :4]
    expected = np.where((arch == "gfx1250") & (np.arange(lanes)[:, None] == 0), 0, data[:, :4])
    np.testing.assert_array_equal(found, expected)


SCALARS = {
    "s_load_dword": 4, "s_load_dwordx2": 8, "s_load_dwordx4": 16, "s_load_dwordx8": 32, "s_load_dwordx16": 64,
    "s_load_b32": 4, "s_load_b64": 8, "s_load_b96": 12, "s_load_b128": 16, "s_load_b256": 32, "s_load_b512": 64,
    "s_load_u8": 1, "s_load_i8": 1, "s_load_u16": 2, "s_load_i16": 2,
}  # fmt: skip
NAMES |= set(SCALARS)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", list(SCALARS))
def test_scalar_loads(name: str, engine: Any) -> None:
    """From an offset on, in words; single bytes and shorts are widened."""
    arch, size = "gfx942" if "dword" in name else "gfx1201", SCALARS[name]
    data = np.random.default_rng(sum(map(ord, name))).integers(0, 256, 256, np.uint8)
    count = max(size // 4, 1)
    target = f"s[16:{15 + count}]" if count > 1 else "s16"
    body = [f"{name} {target}, s[4:5], 0x14"]
    word = "dword" if arch == "gfx942" else "b32"
    for place in range(count):
        body += [f"v_mov_b32_e32 v4, s{16 + place}", f"global_store_{word} v1, v4, s[6:7] offset:{256 * place}"]
    found = run(body, engine, data, 256 * count, arch=arch).view(np.uint32).reshape(count, 64)[:, :32]
    raw = data[20 : 20 + size].tobytes()
    expected = int.from_bytes(raw, "little", signed="_i" in name) & ((1 << 32 * count) - 1)
    words = [expected >> (32 * place) & 0xFFFFFFFF for place in range(count)]
    np.testing.assert_array_equal(found, np.array(words, np.uint32)[:, None].repeat(32, 1))
