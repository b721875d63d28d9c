"""Products of states with weights of 8 bits on integers, as exact as float32: states in three bytes.

A state becomes a number of 24 bits in units of about 2^-23 of the greatest one, `u = round(h / unit) + 2^23`. Its
bytes are multiplied apart, four at a time, with exact sums of int32:

    sum(w h) = unit * (65536 (sum(w u2) - 128 sum(w)) + 256 sum(w u1) + sum(w u0))

A panel begins with `-128 sum(w)` of its columns; then `[hidden / 4][gates][16][4]` codes, zeros beyond the last.
"""

from __future__ import annotations

from typing import Final

from argosy.ir.dtype import DTYPES, INT32, UINT8
from argosy.ir.module import Instruction, Module, Parameter
from argosy.ir.types import TensorType
from argosy.targets.cpu.arch import CpuArch
from argosy.targets.cpu.codegen.copying import share
from argosy.targets.cpu.codegen.kernel import Kernel, KernelWriter, chunk_count
from argosy.targets.cpu.codegen.lanes import ACROSS
from argosy.targets.cpu.codegen.products import Products, multiplies_bytes, products_for
from argosy.targets.cpu.codegen.tile import BLOCK

__all__ = ["GROUP", "LIMBS", "limb_products", "pack_limb_rows", "panel_bytes", "split_text"]

GROUP: Final = 4
"""Codes that are multiplied at a time."""
LIMBS: Final = 3
"""Bytes of a state."""
_STEPS: Final = 8388600
"""What the greatest state becomes: a little below 2^23, which the rounding of the quotient must not reach."""
_INT8: Final = DTYPES["int8"]
_LEAST: Final = "0x1p-100f"
"""States below this are taken as zero."""


def limb_products(arch: CpuArch) -> Products | None:
    """How a level multiplies a byte of states with codes; None where floats are as fast."""
    products = products_for(arch, UINT8, _INT8, INT32)
    return products if multiplies_bytes(arch) and not products.flip else None


def panel_bytes(hidden: int, gates: int) -> int:
    """Bytes of a panel of so many gates."""
    return (-(-hidden // GROUP) + 1) * gates * BLOCK * GROUP


def pack_limb_rows(directions: int, gates: int, hidden: int, group: tuple[int, ...]) -> tuple[Kernel, TensorType]:
    """The kernel that writes the panels of a group of gates, from codes `[directions, gates * hidden, hidden]`."""
    kind = TensorType(_INT8, (directions, gates * hidden, hidden))
    parameter = Instruction(Parameter(kind), (), (kind,), (None,), ("x",))
    writer = KernelWriter(Module("limbs", (parameter,), (parameter,), (), ()), [_INT8])
    text, count = writer.text, len(group)
    panels, size = -(-hidden // BLOCK), panel_bytes(hidden, count)
    row = count * BLOCK * GROUP
    with share(writer, "panel", directions * panels):
        text.line(f"int8 *restrict to = y0 + panel * {size};")
        with text.loop("gate", "0", str(count)), text.loop("lane", "0", str(BLOCK)):
            text.line(f"const int64 unit = panel % {panels} * {BLOCK} + lane, at = (gate * {BLOCK} + lane) * {GROUP};")
            line = f"(panel / {panels} * {gates} + {group[0]} + gate) * {hidden} + unit"
            text.line("int32 sum = 0;")
            with text.loop("k", "0", str(-(-hidden // GROUP) * GROUP)):
                text.line(f"const int8 code = unit < {hidden} && k < {hidden} ? x0[({line}) * {hidden} + k] : 0;")
                text.line(f"to[{row} * (1 + k / {GROUP}) + at + k % {GROUP}] = code;")
                text.line("sum -= 128 * code;")
            text.line("__builtin_memcpy(to + at, &sum, sizeof sum);")
    kernel = writer.kernel(chunk_count(directions * gates * hidden * hidden, directions * panels))
    return kernel, TensorType(_INT8, (directions, panels, size))


def split_text(products: Products, hidden: int) -> str:
    """C of the products, of `split`, and of `sum_floats`.

    `split(h, limbs)` writes the bytes of the states and returns their unit: NaN where a state is no finite number. For
    that case `sum_floats(h, panel, gates, sums)` multiplies floats.
    """
    padded = -(-hidden // BLOCK) * BLOCK
    stores = "\n".join(
        f"    store_uint8x16(limbs + {limb * padded} + k, __builtin_convertvector(whole >> {8 * limb}, uint8x16));"
        for limb in range(LIMBS)
    )
    return f"""{products.text}{ACROSS}
static float32 split(const float32 *restrict h, uint8 *restrict limbs) {{
  float32x16 most = 0, nothing = 0;
  for (int64 k = 0; k < {padded}; k += {BLOCK}) {{
    const float32x16 state = *(const float32x16 *)(h + k);
    most = __builtin_elementwise_max(most, __builtin_elementwise_abs(state));
    nothing += state * 0.0f;
  }}
  const float32 top = max_across(most);
  const float32 inverse = top > {_LEAST} ? {_STEPS}.0f / top : 0;
  for (int64 k = 0; k < {padded}; k += {BLOCK}) {{
    const float32x16 steps = __builtin_elementwise_roundeven(*(const float32x16 *)(h + k) * inverse);
    const uint32x16 whole = (uint32x16)(to_int(steps) + 8388608);
{stores}
  }}
  return top / {_STEPS}.0f + sum_across(nothing);
}}
static __attribute__((noinline)) void sum_floats(
    const float32 *restrict h, const int8 *restrict panel, int64 gates, float32x16 *restrict sums) {{
  for (int64 at = 0; at < gates * {BLOCK}; ++at) {{
    float32 sum = 0;
    for (int64 k = 0; k < {hidden}; ++k)
      sum += h[k] * (float32)panel[((1 + k / {GROUP}) * gates * {BLOCK} + at) * {GROUP} + k % {GROUP}];
    sums[at / {BLOCK}][at % {BLOCK}] = sum;
  }}
}}
"""
