"""What a step of a register tile multiplies: numbers one by one, or short ones in groups, an instruction for each.

Four products of bytes, or two of bfloat16, are summed into a lane of 32 bits at once where the level has an
instruction for it. A group of numbers of a row then stands where one number stood; the packed right operand has the
groups of its columns side by side, so that a tile reads both as words of 32 bits.

Integer sums are exact modulo 2^32 on every level. Where the instructions want other signs than the operands have, the
left one is read with its highest bit turned over, which moves each number by 128; what that adds to a sum, 128 times
the sum of the column, is known when the right operand is packed and lies before its panel as what the sums start from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from argosy.ir.dtype import DTYPES, FLOAT32, INT32, DType
from argosy.targets.cpu.arch import CpuArch

__all__ = ["Products", "multiplies_bytes", "plain", "products_for"]

_BFLOAT16: Final = DTYPES["bfloat16"]


@dataclass(frozen=True, slots=True)
class Products:
    """Operands as a tile reads them, and the sums of their products.

    `group` numbers are multiplied and summed at a time, by the C function `function` that `text` defines. With `flip`
    the left operand must be turned over: when it is packed, or `reading` it. Panels then begin with what their columns
    start from.
    """

    left: DType
    right: DType
    sums: DType
    group: int = 1
    flip: bool = False
    reading: bool = False
    function: str = ""
    text: str = ""

    @property
    def head(self) -> int:
        """Rows before those of a panel."""
        return int(self.flip)

    @property
    def start(self) -> int:
        """What a sum starts from for each unit of the sum of its column, where the left operand is turned over."""
        return -128 if self.left.kind == "int" else 128


def plain(dtype: DType) -> Products:
    """Numbers of one type, one by one."""
    return Products(dtype, dtype, dtype)


def products_for(arch: CpuArch, left: DType, right: DType, sums: DType) -> Products:
    """The fastest way to multiply operands of element types `left` and `right` with sums of type `sums`."""
    if sums is INT32 and left.is_integer and right.is_integer and max(left.bits, right.bits) <= 8:
        return _bytes(arch, left.compute, right.compute)
    if sums is FLOAT32 and left is right is _BFLOAT16:
        text = _pairs(arch)
        if text:
            return Products(left, right, sums, 2, function="dot_pairs", text=text)
    return plain(sums)


def multiplies_bytes(arch: CpuArch) -> bool:
    """Whether a level multiplies bytes without a sign with bytes with one, four at a time, by an instruction."""
    return arch.has("avx512vnni") or arch.has("i8mm")


def _bytes(arch: CpuArch, left: DType, right: DType) -> Products:
    same, flip = left is right, False
    if arch.has("avx512vnni"):
        flip = same
        first, second = ("a", "b") if (left.kind == "uint") != flip else ("b", "a")
        text = _VNNI.format(first=first, second=second)
    elif arch.has("dotprod"):
        flip = not same and not arch.has("i8mm")
        mixed = not same and not flip
        name = "usdot" if mixed else "sdot" if right.kind == "int" else "udot"
        first, second = ("b", "a") if mixed and left.kind == "int" else ("a", "b")
        text = _QUARTERS.format(
            name=name, element="16b", kind="uint32", first=first, second=second, function="dot_bytes"
        )
    else:
        text = _WIDENED.format(left=left.kind, right=right.kind)
    return Products(left, right, INT32, 4, flip, function="dot_bytes", text=text)


def _pairs(arch: CpuArch) -> str:
    """C that multiplies pairs of bfloat16; empty where the level has no instruction for it."""
    if arch.gains("avx512bf16"):
        return _PAIRS
    if arch.gains("bf16"):
        return _QUARTERS.format(name="bfdot", element="8h", kind="float32", first="a", second="b", function="dot_pairs")
    return ""


_VNNI: Final = """\
typedef int32 ints512 __attribute__((vector_size(64)));
typedef char bytes512 __attribute__((vector_size(64)));
INLINE uint32x16 dot_bytes(uint32x16 a, uint32x16 b, uint32x16 sum) {{
    return (uint32x16)__builtin_ia32_vpdpbusd512((ints512)sum, (bytes512){first}, (bytes512){second});
}}
"""
"""Bytes without a sign times bytes with one."""

_PAIRS: Final = """\
typedef float32 floats512 __attribute__((vector_size(64)));
typedef __bf16 pairs512 __attribute__((vector_size(64)));
INLINE float32x16 dot_pairs(uint32x16 a, uint32x16 b, float32x16 sum) {
    return (float32x16)__builtin_ia32_dpbf16ps_512((floats512)sum, (pairs512)a, (pairs512)b);
}
"""

_QUARTERS: Final = """\
INLINE {kind}x16 {function}(uint32x16 a, uint32x16 b, {kind}x16 sum) {{
    typedef uint32 words128 __attribute__((vector_size(16)));
    union {{ uint32x16 whole; words128 quarters[4]; }} x = {{{first}}}, y = {{{second}}}, z = {{(uint32x16)sum}};
#pragma clang loop unroll(full)
    for (int i = 0; i < 4; ++i)
        __asm__("{name} %0.4s, %1.{element}, %2.{element}"
                : "+w"(z.quarters[i])
                : "w"(x.quarters[i]), "w"(y.quarters[i]));
    return ({kind}x16)z.whole;
}}
"""
"""An instruction on registers of 128 bits, four times."""

_WIDENED: Final = """\
typedef int16 int16x32 __attribute__((ext_vector_type(32)));
typedef uint16 uint16x32 __attribute__((ext_vector_type(32)));
#define EVEN_int(v) ((int16x32)(v) << 8 >> 8)
#define ODD_int(v) ((int16x32)(v) >> 8)
#define EVEN_uint(v) ((int16x32)((uint16x32)(v) & 255))
#define ODD_uint(v) ((int16x32)((uint16x32)(v) >> 8))
#if defined(__AVX512BW__)
#define WORDS 1
#define MULTIPLY_ADD __builtin_ia32_pmaddwd512
#elif defined(__AVX2__)
#define WORDS 2
#define MULTIPLY_ADD __builtin_ia32_pmaddwd256
#elif defined(__SSE2__)
#define WORDS 4
#define MULTIPLY_ADD __builtin_ia32_pmaddwd128
#endif
/* Products of 16 bits, the sums of neighbours: exact. */
INLINE uint32x16 add_pairs(int16x32 a, int16x32 b) {{
#ifdef WORDS
    typedef int16 words __attribute__((vector_size(64 / WORDS)));
    union {{ int16x32 whole; words parts[WORDS]; }} x = {{a}}, y = {{b}};
#pragma clang loop unroll(full)
    for (int i = 0; i < WORDS; ++i) x.parts[i] = (words)MULTIPLY_ADD(x.parts[i], y.parts[i]);
    return (uint32x16)x.whole;
#else
    int32x16 low = ((int32x16)a << 16 >> 16) * ((int32x16)b << 16 >> 16);
    return (uint32x16)low + (uint32x16)(((int32x16)a >> 16) * ((int32x16)b >> 16));
#endif
}}
INLINE uint32x16 dot_bytes(uint32x16 a, uint32x16 b, uint32x16 sum) {{
    return sum + add_pairs(EVEN_{left}(a), EVEN_{right}(b)) + add_pairs(ODD_{left}(a), ODD_{right}(b));
}}
"""
"""Without such an instruction: even and odd bytes as 16 bits each."""
