"""Operations on halves against those on one, with every modifier that picks, negates or clamps them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from argosy.emulation.semantics.arithmetic import TYPES
from argosy.emulation.semantics.table import OPERATIONS
from tests.emulation.floats import agree, by_lane, fused, same, values
from tests.emulation.test_conversions import rounded, side_by_side
from tests.emulation.test_floats import EXPECTED as OF_ONE
from tests.emulation.test_floats import greater, lesser
from tests.emulation.text import ENGINES, registers_after

BFLOAT = ml_dtypes.bfloat16


def wrapped(function: Callable[..., int], kind: str) -> Callable[..., Any]:
    """A function of integers on arrays, of which 16 bits remain."""

    def meant(*arrays: Any) -> Any:
        found = [function(*map(int, each)) & 0xFFFF for each in zip(*arrays, strict=True)]
        return np.array(found, np.uint16).view(TYPES[kind])

    return meant


def held(function: Callable[..., int], kind: str) -> Callable[..., Any]:
    """A function of integers on arrays, held within their type."""
    limits = np.iinfo(TYPES[kind])
    return by_lane(lambda *each: max(limits.min, min(limits.max, function(*each))), TYPES[kind])


def of_bfloats(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numbers on arrays of bfloat16, as bits or as such."""
    meant = by_lane(function, object)

    def on(*arrays: Any) -> Any:
        return side_by_side(meant(*(each.view(BFLOAT).astype(float) for each in arrays)).astype(BFLOAT))

    return on


EXPECTED: dict[str, Callable[..., Any]] = {
    "v_pack_b32_f16": side_by_side,
    "v_pk_mov_b32": lambda a, b: (a, b),
    "v_pk_min_num_f16": OF_ONE["v_min_f16"],
    "v_pk_max_num_f16": OF_ONE["v_max_f16"],
    "v_pk_mul_lo_u16": wrapped(lambda a, b: a * b, "u16"),
    "v_pk_lshlrev_b16": wrapped(lambda by, a: a << (by & 15), "u16"),
    "v_pk_lshrrev_b16": wrapped(lambda by, a: a >> (by & 15), "u16"),
    "v_pk_ashrrev_i16": wrapped(lambda by, a: a >> (by & 15), "i16"),
    "v_fma_mix_f32": by_lane(partial(fused, form=np.float32), np.float32),
}
for _name in ("lo", "hi"):  # the documents round to float32 before
    EXPECTED[f"v_fma_mix{_name}_f16"] = by_lane(
        lambda a, b, c: rounded(float(fused(a, b, c, np.float32)), np.float16), np.float16
    )
for _name in ("add", "mul", "min", "max", "minimum", "maximum", "minimum3", "maximum3", "fma", "fmac"):
    EXPECTED |= {f"v_pk_{_name}_{kind}": OF_ONE[f"v_{_name}_{kind}"] for kind in ("f16", "f32")}
for _kind in ("u16", "i16"):
    EXPECTED |= {
        f"v_pk_add_{_kind}": wrapped(lambda a, b: a + b, _kind),
        f"v_pk_sub_{_kind}": wrapped(lambda a, b: a - b, _kind),
        f"v_pk_min_{_kind}": wrapped(min, _kind),
        f"v_pk_max_{_kind}": wrapped(max, _kind),
        f"v_pk_mad_{_kind}": wrapped(lambda a, b, c: a * b + c, _kind),
        f"v_pk_add_{_kind}@clamp": held(lambda a, b: a + b, _kind),
        f"v_pk_sub_{_kind}@clamp": held(lambda a, b: a - b, _kind),
    }
EXPECTED |= {
    "v_pk_add_bf16": of_bfloats(lambda a, b: fused(a, 1, b, BFLOAT)),
    "v_pk_mul_bf16": of_bfloats(lambda a, b: fused(a, b, -0.0, BFLOAT)),
    "v_pk_fma_bf16": of_bfloats(partial(fused, form=BFLOAT)),
    "v_pk_min_num_bf16": of_bfloats(lesser),
    "v_pk_max_num_bf16": of_bfloats(greater),
    "v_fma_mix_f32_bf16": EXPECTED["v_fma_mix_f32"],
}
for _name in ("lo", "hi"):
    EXPECTED[f"v_fma_mix{_name}_bf16"] = lambda *three: side_by_side(EXPECTED["v_fma_mix_f32"](*three).astype(BFLOAT))
EXPECTED = {name: function for name, function in EXPECTED.items() if name in OPERATIONS}
FORMS = {
    "pbf16": BFLOAT,
    "pf16": np.float16,
    "pf32": np.float32,
    "pu16": np.uint16,
    "pi16": np.int16,
    "pb32": np.uint32,
}


def test_the_families_are_there() -> None:
    assert len(EXPECTED) > 35


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_one_half(name: str) -> None:
    agree(name, EXPECTED[name])


def test_sums_of_bfloat_are_rounded_once() -> None:
    """A product halfway between two numbers, and a summand far below any bit of float32."""
    third = np.array([0.0, 2.0**-60, -(2.0**-60), 2.0**-100], BFLOAT)
    first, second = np.full(4, 1 + 2.0**-7, BFLOAT), np.full(4, 1.5, BFLOAT)
    found = OPERATIONS["v_pk_fma_bf16"].meaning(*(each.view(np.uint16) for each in (first, second, third)))
    np.testing.assert_array_equal(found.view(BFLOAT).astype(float), [1.515625, 1.515625, 1.5078125, 1.515625])


def bits(picked: NDArray[Any]) -> str:
    return f"[{','.join(str(int(each)) for each in picked)}]"


def given(kinds: list[str], seed: int) -> list[NDArray[Any]]:
    """Two halves for each of 64 lanes of each source."""
    return [values(kind, seed + place, 128).reshape(64, 2) for place, kind in enumerate(kinds)]


def placed(sources: list[NDArray[Any]]) -> tuple[dict[int, NDArray[np.uint32]], list[str]]:
    """Sources in registers from v4 on, two for each, and what these are called."""
    contents: dict[int, NDArray[np.uint32]] = {}
    names = []
    for at, source in zip(range(4, 12, 2), sources, strict=False):
        words = np.ascontiguousarray(source).view(np.uint32).reshape(64, -1).T
        contents |= {at + place: word for place, word in enumerate(words)}
        names.append(f"v[{at}:{at + 1}]" if len(words) == 2 else f"v{at}")
    return contents, names


MODIFIED = sorted(
    name for name in EXPECTED if OPERATIONS[name].sources[0] in FORMS and not OPERATIONS[name].keeps and "@" not in name
)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", MODIFIED)
def test_halves_are_picked_and_negated(name: str, engine: Any) -> None:
    kind, count = OPERATIONS[name].sources[0], len(OPERATIONS[name].sources)
    form, random = FORMS[kind], np.random.default_rng(sum(map(ord, name)))
    sources = [each.view(form) for each in given([kind] * count, 3)]
    contents, names = placed(sources)
    words, lines, expected = 2 if kind in ("pf32", "pb32") else 1, [], []
    for variant in range(6):
        picked, turned = random.integers(0, 2, (2, 2, count))
        turned *= kind[1] == "f"  # integers have no signs to turn
        at = 14 + words * variant
        ends = f"op_sel:{bits(picked[0])} op_sel_hi:{bits(picked[1])}"
        ends += f" neg_lo:{bits(turned[0])} neg_hi:{bits(turned[1])}" if turned.any() else ""
        lines.append(f"{name} {f'v[{at}:{at + 1}]' if words == 2 else f'v{at}'}, {', '.join(names)} {ends}")
        if name == "v_pk_mov_b32":  # the low result is of the first source, the high one of the second
            expected.append(np.stack([sources[half][:, picked[0][half]] for half in (0, 1)], -1))
            continue
        halves = []
        for half in (0, 1):
            chosen = [source[:, picked[half][place]] for place, source in enumerate(sources)]
            with np.errstate(all="ignore"):
                signed = [-each if turned[half][place] else each for place, each in enumerate(chosen)]
                halves.append(np.asarray(EXPECTED[name](*signed)).astype(form).reshape(64))
        expected.append(np.stack(halves, -1))
    found = registers_after(lines, engine, contents, range(14, 14 + 6 * words)).reshape(6, words, 64)
    for one, other in zip(found, expected, strict=True):
        same(np.ascontiguousarray(one.T).view(form), other)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", sorted(name for name in EXPECTED if "_mix" in name))
def test_sources_are_mixed(name: str, engine: Any) -> None:
    """op_sel_hi makes a source a short float, op_sel its upper half; signs are changed as elsewhere."""
    random, lines, expected = np.random.default_rng(5), [], []
    form = BFLOAT if "bf16" in name else np.float16
    sources = [each.view(form) for each in given(["pbf16" if "bf16" in name else "f16"] * 3, 9)]
    for source in sources:
        source[:32].reshape(-1).view(np.float32)[:] = random.standard_normal(32)
    contents, names = placed(sources)
    for variant in range(8):
        short, upper, absolute, negative = random.integers(0, 2, (4, 3))
        upper &= short
        texts, read = [], []
        for place, (register, source) in enumerate(zip(names, sources, strict=True)):
            value = source[:, upper[place]].astype(np.float32) if short[place] else source.reshape(-1).view(np.float32)
            text = f"|{register}|" if absolute[place] else register
            texts.append(f"-{text}" if negative[place] else text)
            value = np.abs(value) if absolute[place] else value
            read.append(-value if negative[place] else value)
        lines.append(f"v_mov_b32_e32 v{14 + variant}, 0x12345678")
        lines.append(f"{name} v{14 + variant}, {', '.join(texts)} op_sel:{bits(upper)} op_sel_hi:{bits(short)}")
        with np.errstate(all="ignore"):
            expected.append(EXPECTED[name](*read))
    found = registers_after(lines, engine, contents, range(14, 22))
    if "_mix_f32" in name:
        same(found.view(np.float32), np.stack(expected))
        return
    halves = found.view(np.uint16).reshape(8, 64, 2)
    kept, written = (0, 1) if "hi" in name else (1, 0)
    assert (halves[..., kept] == (0x5678, 0x1234)[kept]).all()
    same(np.ascontiguousarray(halves[..., written]).view(form), np.stack(expected).reshape(8, 64))


@pytest.mark.parametrize("engine", ENGINES)
def test_constants_are_mixed(engine: Any) -> None:
    """A float16 lies in the low half alone; a bfloat16 is the upper half of a float32, as LLVM writes it."""
    numbers = np.random.default_rng(6).standard_normal(64).astype(np.float32)
    ends = ("op_sel_hi:[0,0,0]", "op_sel_hi:[0,1,0]", "op_sel:[0,1,0] op_sel_hi:[0,1,0]")
    lines = [f"v_fma_mix_f32 v{5 + at}, v3, -2.0, v3 {end}" for at, end in enumerate(ends)]
    found = registers_after(lines, engine, {3: numbers}, [5, 6, 7]).view(np.float32)
    np.testing.assert_array_equal(found, [-numbers, -numbers, numbers])
    lines = [f"v_fma_mix_f32_bf16 v{5 + at}, v3, -2.0, v3 {end}" for at, end in enumerate(ends)]
    found = registers_after(lines, engine, {3: numbers}, [5, 6, 7]).view(np.float32)
    np.testing.assert_array_equal(found, [-numbers, numbers, -numbers])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "name", ["v_pk_add_f16", "v_pk_fma_f16", "v_pk_mul_f32", *sorted(n for n in EXPECTED if "@" in n)]
)
def test_results_are_clamped(name: str, engine: Any) -> None:
    """Floats between 0 and 1, where what is no number is 0; integers within their type."""
    plain, form = name.partition("@")[0], FORMS[OPERATIONS[name].sources[0]]
    sources = given(list(OPERATIONS[name].sources), 12)
    contents, names = placed(sources)
    shown = [14, 15] if form == np.float32 else [14]
    line = f"{plain} {'v[14:15]' if len(shown) == 2 else 'v14'}, {', '.join(names)} clamp"
    found = np.ascontiguousarray(registers_after([line], engine, contents, shown).T).view(form)
    with np.errstate(all="ignore"):
        expected = EXPECTED[name](*sources)
        if plain == name:
            expected = np.where(expected > 0, np.minimum(expected, 1), 0).astype(form)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_packed_sums_keep_their_last_source(engine: Any) -> None:
    sources = given(["pf16"] * 3, 21)
    contents, names = placed(sources)
    found = registers_after([f"v_pk_fmac_f16 {names[2]}, {names[0]}, {names[1]}"], engine, contents, [8])
    with np.errstate(all="ignore"):
        same(found.view(np.float16).reshape(64, 2), EXPECTED["v_pk_fmac_f16"](*sources))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("arch", "read"), [("gfx942", (4, 5)), ("gfx1250", (4, 4))])
def test_scalars_of_pairs(arch: str, read: tuple[int, int], engine: Any) -> None:
    """gfx1250 reads one register of a scalar source for both halves, gfx942 two (LLVM's pull request 152465)."""
    lines = [f"s_mov_b32 s{10 + place}, {np.float32(4 + place).view(np.uint32):#x}" for place in (0, 1)]
    ones = np.ones(64 if arch == "gfx942" else 32, np.float32)
    lines.append("v_pk_mul_f32 v[8:9], v[4:5], s[10:11]")
    found = registers_after(lines, engine, {4: ones, 5: ones}, [8, 9], arch=arch).view(np.float32)
    np.testing.assert_array_equal(found, np.outer(np.array(read, np.float32), ones))
