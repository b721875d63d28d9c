"""How matrix instructions take the operands of a product: in which type, how they are brought to it, what sums are in.

Both operands come in one type that holds the elements of both exactly, the shortest that the arch multiplies: int8
for integers of at most 8 bits with a sign, 8-bit floats where the arch has the format of both (the finite one without
negative zero, or OCP's), else float16, bfloat16 or float32. Integers on an arch without matrix instructions for them
are multiplied as float32: a step sums few enough products to be exact, and steps are added as integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from argosy.ir.access import Access
from argosy.ir.dtype import DTYPES, FLOAT32, FLOAT64, INT32, DType
from argosy.ir.module import Value
from argosy.targets.gpu.arches.row import GpuArch
from argosy.targets.gpu.codegen.element import Elements

__all__ = ["MatrixWay", "matrix_way", "multiply"]

_FORMATS: Final = {
    "float8_e4m3fn": ("ocp", "float8e4nv"),
    "float8_e5m2": ("ocp", "float8e5"),
    "float8_e4m3fnuz": ("fnuz", "float8e4b8"),
    "float8_e5m2fnuz": ("fnuz", "float8e5b16"),
}
"""8-bit floats: which archs have them, by `GpuArch.fp8`, and Triton's names."""
_SHORT: Final = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}
_IN_HALF: Final = frozenset(
    {"float16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float4_e2m1fn", "float6_e2m3fn",
     "float6_e3m2fn"}
)  # fmt: skip
"""Floats of which every one is a float16."""
_IN_BRAIN: Final = _IN_HALF - {"float16"} | {"bfloat16"}
"""Floats of which every one is a bfloat16."""


@dataclass(frozen=True, slots=True)
class MatrixWay:
    """How two tiles are multiplied: `kind` is the operand type as an arch's row calls it, `width` its bytes.

    `types` are Triton's names of the operands. Where they are `coded`, elements are taken as they lie in memory.
    Where `apart`, each product is made into an integer before it is added to the sums, which are in `sums`. Hopper
    sums products of 8-bit floats with 14 bits: for a `rough` one, all of a step, else none (Triton then multiplies
    them as float16).
    """

    kind: str
    types: tuple[str, str]
    sums: DType
    width: int
    coded: bool = False
    apart: bool = False
    rough: bool = False

    def tile(
        self, elements: Elements, place: int, value: Value, access: Access, shape: tuple[int, int], mask: str,
        lanes: Sequence[str],
    ) -> str:  # fmt: skip
        """A tile of operand `place` in the type that is multiplied; as `Elements.within` otherwise."""
        found = elements.within(value, access, shape, mask, lanes, coded=self.coded)
        return f"{found}.to(tl.{self.types[place]}{', bitcast=True' if self.coded else ''})"


def matrix_way(
    left: DType, right: DType, result: DType, arch: GpuArch | None = None, *, rough: bool = False
) -> MatrixWay | None:
    """How elements of two types are multiplied with sums in `result`; None where only by hand.

    Without an `arch`, by what all of them have. `rough` allows sums of 8-bit floats with fewer bits than float32's.
    """
    if left.is_integer and right.is_integer:
        return _integers(left, right, result, arch)
    if not (left.is_float and right.is_float) or FLOAT64 in (left, right, result):
        return None
    if arch is not None and arch.has("matrix_fp8"):
        formats = [_FORMATS[kind.name] for kind in (left, right) if kind.name in _FORMATS]
        if [format_ for format_, _ in formats] == [arch.fp8] * 2:
            return MatrixWay("fp8", (formats[0][1], formats[1][1]), FLOAT32, 1, coded=True, rough=rough)
    names = {left.name, right.name}
    name = "float16" if names <= _IN_HALF else "bfloat16" if names <= _IN_BRAIN else "float32"
    return MatrixWay(_SHORT[name], (name, name), FLOAT32, DTYPES[name].bits // 8)


def _integers(left: DType, right: DType, result: DType, arch: GpuArch | None) -> MatrixWay | None:
    if result.bits > INT32.bits or not all(kind.bits < 8 or kind.name == "int8" for kind in (left, right)):
        return None
    if arch is not None and not arch.has("matrix_int8"):
        return MatrixWay("fp32", ("float32", "float32"), INT32, 4, apart=True)
    return MatrixWay("int8", ("int8", "int8"), INT32, 1)


def multiply(left: str, right: str, total: str, way: MatrixWay, inner: int, *, tf32: bool) -> str:
    """`total` plus the product of two tiles, over `inner` places, in the types of a way."""
    if way.kind == "int8":
        return f"tl.dot({left}, {right}, {total}, out_dtype=tl.int32)"
    precision = "tf32" if tf32 and not way.apart else "ieee"
    options = f'out_dtype=tl.float32, input_precision="{precision}"'
    if way.kind == "fp8":
        options += f", max_num_imprecise_acc={inner if way.rough else 0}"
    if way.apart:
        return f"{total} + tl.dot({left}, {right}, {options}).to(tl.int32)"
    return f"tl.dot({left}, {right}, {total}, {options})"
