"""Atomic operations on local and global memory, and which wave signals a barrier first, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from argosy.emulation.refusal import NotEmulated
from tests.emulation.text import ENGINES, run

_32 = (1 << 32) - 1
COMMUTATIVE: dict[str, np.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
KINDS = {"add": "u", "sub": "u", "min": "iu", "max": "iu", "and": "b", "or": "b", "xor": "b"}
NAMED = [(what, f"{sign}{bits}") for what, signs in KINDS.items() for sign in signs for bits in (32, 64)]
NAMES = {f"ds_{what}_{kind}" for what, kind in NAMED}
WORDS: dict[str, Any] = {
    "u32": np.uint32, "i32": np.int32, "b32": np.uint32, "u64": np.uint64, "i64": np.int64, "b64": np.uint64,
}  # fmt: skip


def _words(arch: str, what: str) -> str:
    """The name that an arch has for an access to local memory."""
    return what if arch == "gfx942" else {"ds_write": "ds_store", "ds_read": "ds_load"}[what]


def _rows(arch: str, bits: int, rows: int) -> list[str]:
    """Load so many rows of numbers, a number for each lane, to v[4:5], v[6:7] and so on; v2 is a lane's place."""
    lanes, size = 64 if arch == "gfx942" else 32, bits // 8
    kind = {32: "dword", 64: "dwordx2"}[bits] if arch == "gfx942" else f"b{bits}"
    return [
        f"v_mul_u32_u24_e32 v2, {size}, v0",
        *(
            f"global_load_{kind} {_register(4 + 2 * row, bits)}, v2, s[4:5] offset:{row * lanes * size}"
            for row in range(rows)
        ),
    ]


def _register(number: int, bits: int) -> str:
    return f"v{number}" if bits == 32 else f"v[{number}:{number + 1}]"


def _stored(arch: str, bits: int, number: int, row: int) -> str:
    lanes, size = 64 if arch == "gfx942" else 32, bits // 8
    kind = {32: "dword", 64: "dwordx2"}[bits] if arch == "gfx942" else f"b{bits}"
    return f"global_store_{kind} v2, {_register(number, bits)}, s[6:7] offset:{row * lanes * size}"


def _numbers(kind: str, shape: tuple[int, ...]) -> Any:
    """Arbitrary numbers and edges of a type."""
    form, random = WORDS[kind], np.random.default_rng(5)
    wide = random.integers(0, (1 << 64) - 1, shape, np.uint64, endpoint=True)
    edges = np.array([0, 1, 2, (1 << 31) - 1, 1 << 31, _32, 1 << 63, (1 << 64) - 1], np.uint64)
    return (
        np.where(random.random(shape) < 0.4, random.choice(edges, shape), wide).astype(f"u{form().itemsize}").view(form)
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
@pytest.mark.parametrize(("what", "kind"), NAMED)
def test_all_lanes_change_a_few_places(what: str, kind: str, arch: str, engine: Any) -> None:
    """Sixteen lanes of 64, or 32, at a place each; one lane of three is off."""
    lanes, bits = 64 if arch == "gfx942" else 32, int(kind[1:])
    numbers = _numbers(kind, (2, lanes))
    write, read = _words(arch, "ds_write"), _words(arch, "ds_read")
    mask = "exec" if lanes == 64 else "exec_lo"
    on = int("100" * 22, 2) & ((1 << lanes) - 1) ^ ((1 << lanes) - 1)
    body = [
        *_rows(arch, bits, 2),
        f"{write}_b{bits} v2, {_register(4, bits)}",
        "v_and_b32_e32 v3, 3, v0",
        f"v_mul_u32_u24_e32 v3, {bits // 8}, v3",
        f"s_mov_b{min(lanes, 32)} exec_lo, {on & _32:#x}",
        *([f"s_mov_b32 exec_hi, {on >> 32:#x}"] if lanes == 64 else []),
        f"ds_{what}_{kind} v3, {_register(6, bits)} offset:{bits // 8}",
        f"s_mov_b{lanes} {mask}, -1",
        f"{read}_b{bits} {_register(8, bits)}, v2",
        _stored(arch, bits, 8, 0),
    ]
    found = run(body, engine, numbers, lanes * bits // 8, arch=arch, local=lanes * bits // 8).view(WORDS[kind])
    expected, chosen = numbers[0].copy(), np.array([lane for lane in range(lanes) if on >> lane & 1])
    COMMUTATIVE[what].at(expected, chosen % 4 + 1, numbers[1][chosen])
    np.testing.assert_array_equal(found, expected)


def _of_two(function: np.ufunc) -> Callable[[Any, Any, Any], Any]:
    return lambda old, given, _: function(old, given)


CHANGES: dict[str, Callable[[Any, Any, Any], Any]] = {
    **{what: _of_two(function) for what, function in COMMUTATIVE.items()},
    "inc": lambda old, most, _: np.where(old >= most, 0, old + 1),
    "dec": lambda old, most, _: np.where((old == 0) | (old > most), most, old - 1),
    "swap": lambda _, given, __: given,
    "cmpswap": lambda old, new, expected: np.where(old == expected, new, old),
}
"""From what is there and one or two operands to what is there afterwards."""
LOCAL_NAMES = {
    "gfx942": {"add_rtn_u": "add", "sub_rtn_u": "sub", "inc_rtn_u": "inc", "dec_rtn_u": "dec", "wrxchg_rtn_b": "swap",
               "cmpst_rtn_b": "cmpswap"},
    "gfx1201": {"min_rtn_i": "min", "max_rtn_u": "max", "and_rtn_b": "and", "or_rtn_b": "or", "xor_rtn_b": "xor",
                "storexchg_rtn_b": "swap", "cmpstore_rtn_b": "cmpswap"},
}  # fmt: skip
SINGLE = {
    f"ds_{name}{bits}": (arch, f"{name[-1]}{bits}", what)
    for arch, names in LOCAL_NAMES.items()
    for name, what in names.items()
    for bits in (32, 64)
}
for _space in ("global", "flat"):
    for _bits, _end in ((32, ""), (64, "_x2"))[: 2 if _space == "global" else 1]:
        for _what in ("add", "sub", "and", "or", "xor", "inc", "dec", "swap", "cmpswap"):
            SINGLE[f"{_space}_atomic_{_what}{_end}"] = ("gfx942", f"u{_bits}", _what)
            _kind = f"{'b' if _what in ('and', 'or', 'xor', 'swap', 'cmpswap') else 'u'}{_bits}"
            SINGLE[f"{_space}_atomic_{_what}_{_kind}"] = ("gfx1201", _kind, _what)
        for _what in ("min", "max"):
            for _sign, _word in (("i", "s"), ("u", "u")):
                SINGLE[f"{_space}_atomic_{_word}{_what}{_end}"] = ("gfx942", f"{_sign}{_bits}", _what)
                SINGLE[f"{_space}_atomic_{_what}_{_sign}{_bits}"] = ("gfx1201", f"{_sign}{_bits}", _what)
    for _name, _kind in (("add_f32", "f32"), ("pk_add_f16", "f16"), ("add_f64", "f64"), ("min_f64", "f64"),
                         ("max_f64", "f64")):  # fmt: skip
        SINGLE[f"{_space}_atomic_{_name}"] = ("gfx942", _kind, _name.removeprefix("pk_")[:3])
    for _what in ("min", "max"):
        SINGLE[f"{_space}_atomic_{_what}_num_f32"] = ("gfx1201", "f32", _what)
"""By name: the arch, the type, and what is done."""
NAMES |= set(SINGLE)


def _order(name: str, bits: int) -> tuple[list[str], str]:
    """Lines before an operation, and its data: v6 on, and of a comparison what is expected in v8 on too."""
    if "cmp" not in name:
        return [], _register(6, bits)
    if name.startswith("ds_"):  # of the older name, what is expected comes first
        first, second = (8, 6) if "cmpst_" in name else (6, 8)
        return [], f"{_register(first, bits)}, {_register(second, bits)}"
    return ([] if bits == 64 else ["v_mov_b32_e32 v7, v8"]), f"v[6:{7 if bits == 32 else 9}]"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", list(SINGLE))
def test_what_was_there_is_given_back(name: str, engine: Any) -> None:
    """Each lane at its place; of a comparison, half of the lanes find what they expect."""
    arch, kind, what = SINGLE[name]
    lanes, bits = 64 if arch == "gfx942" else 32, max(32, int(kind[1:]))
    if kind[0] == "f":
        count = lanes * bits // int(kind[1:])
        numbers = np.random.default_rng(6).standard_normal((3, count)).astype(f"f{int(kind[1:]) // 8}")
    else:
        numbers = _numbers(kind, (3, lanes))
        numbers[2, ::2] = numbers[0, ::2]
    before, data = _order(name, bits)
    back = "" if name.startswith("ds_") else "sc0" if arch == "gfx942" else "th:TH_ATOMIC_RETURN"
    load = "dword" + "x2" * (bits == 64) if arch == "gfx942" else f"b{bits}"
    room = lanes * bits // 8
    if name.startswith("ds_"):
        put = f"{_words(arch, 'ds_write')}_b{bits} v2, {_register(4, bits)}"
        place, take = "v2", f"{_words(arch, 'ds_read')}_b{bits} {_register(12, bits)}, v2"
    else:
        put, take = _stored(arch, bits, 4, 1), f"global_load_{load} {_register(12, bits)}, v2, s[6:7] offset:{room}"
        place = "v2"
        before += [f"v_add_{'nc_' * (lanes == 32)}u32_e32 v3, {room}, v2"]
        if name.startswith("flat"):
            mad, carry = ("v_mad_u64_u32", "s[12:13]") if arch == "gfx942" else ("v_mad_co_u64_u32", "s12")
            before += ["v_mov_b32_e32 v20, s6", "v_mov_b32_e32 v21, s7", f"{mad} v[20:21], {carry}, v3, 1, v[20:21]"]
            place = "v[20:21]"
        else:
            place, data = "v3", f"{data}, s[6:7]"
    body = [
        *_rows(arch, bits, 3),
        put,
        *before,
        f"{name} {_register(10, bits)}, {place}, {data} {back}",
        take,
        _stored(arch, bits, 10, 0),
        _stored(arch, bits, 12, 1),
    ]
    found = run(body, engine, numbers, 2 * room, arch=arch, local=room, looks=True).view(numbers.dtype)
    np.testing.assert_array_equal(found[: len(numbers[0])], numbers[0])
    np.testing.assert_array_equal(found[len(numbers[0]) :], CHANGES[what](*numbers))


@pytest.mark.parametrize("engine", ENGINES)
def test_one_wave_of_a_workgroup_signals_first(engine: Any) -> None:
    """At two barriers, of all that ask; at the third, the only one that does not ask comes before them."""
    waves, groups = 4, 3
    asked = ["s_barrier_signal_isfirst -1", "s_cselect_b32 s8, 1, 0", "v_add_nc_u32_e32 v3, s8, v3"]
    body = [
        "v_mov_b32_e32 v3, 0",
        *asked,
        "s_barrier_wait 0xffff",
        *asked,
        "s_barrier_wait -1",
        "s_bfe_u32 s8, ttmp8, 0x50019",  # the wave's number
        "s_cmp_lg_u32 s8, 0",
        "s_cbranch_scc1 .Lask",
        "s_barrier_signal -1",
        "s_branch .Lwait",
        ".Lask:",
        *asked,
        ".Lwait:",
        "s_barrier_wait -1",
        f"s_mul_i32 s9, ttmp9, {128 * waves}",
        "v_add_nc_u32_e32 v1, s9, v1",
        "global_store_b32 v1, v3, s[6:7]",
    ]
    room = 128 * waves * groups
    found = run(body, engine, np.zeros(4, np.uint8), room, arch="gfx1201", waves=waves, groups=groups, looks=True)
    counts = found.view(np.uint32).reshape(groups, waves, 32)
    assert (counts == counts[..., :1]).all()
    np.testing.assert_array_equal(counts[..., 0].sum(1), [2] * groups)


def test_other_barriers_are_refused() -> None:
    with pytest.raises(NotEmulated, match="the barrier -3"):
        run(["s_barrier_signal -3"], "numpy", np.zeros(4, np.uint8), 4, arch="gfx1250")
