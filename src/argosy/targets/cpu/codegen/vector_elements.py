"""Sixteen neighbouring elements at a time: `Elements` over vectors.

The lanes run along one axis of the iteration space; the C variable of that axis is the place of the first. There are
vectors of the types in `KINDS`, and of int64 to compute with; short floats are computed in float32. Other types, and
accesses that move by other than 0 or 1 along the axis, decline: the caller then computes one element after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from argosy.ir.access import Access
from argosy.ir.dim import DimLike
from argosy.ir.dtype import BOOL, DTYPES, FLOAT32, INT32, INT64, UINT8, DType
from argosy.ir.module import Instruction, Value
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.element import Elements
from argosy.targets.cpu.codegen.tile import BLOCK
from argosy.targets.cpu.codegen.walking import coefficient
from argosy.targets.lowering.accesses import LEAST, DeclinedError
from argosy.targets.lowering.kernel_text import strides_of

__all__ = [
    "KINDS",
    "VectorElements",
    "lanes_type",
    "load_block",
    "load_lanes",
    "position",
    "store_lanes",
    "stored_lanes",
]

_INT8: Final = DTYPES["int8"]
_SHORT_FLOATS: Final = (DTYPES["float16"], DTYPES["bfloat16"])
_LANES: Final = {
    FLOAT32: "float32x16", BOOL: "int32x16", INT32: "int32x16", INT64: "int64x16", UINT8: "uint8x16", _INT8: "int8x16"
}  # fmt: skip
KINDS: Final = frozenset({FLOAT32, INT32, UINT8, _INT8, *_SHORT_FLOATS})
"""Element types of buffers of which there are vectors."""
_WIDE: Final = (INT32, INT64)
_INTEGER_FUNCTIONS: Final = frozenset(
    {"add", "sub", "mul", "min", "max", "bitand", "bitor", "bitxor", "eq", "lt", "le"}
)
_BYTES: Final = (UINT8, _INT8)


def lanes_type(dtype: DType) -> str:
    """The C type of 16 elements in the compute type of `dtype`."""
    found = _LANES.get(dtype.compute if dtype in _SHORT_FLOATS else dtype)
    if found is None:
        raise DeclinedError(f"vectors of {dtype}")
    return found


def load_lanes(dtype: DType, pointer: str) -> str:
    """Sixteen elements of a buffer at a C pointer, in the compute type."""
    return _computed(dtype, f"load_{scalar.storage_type(dtype)}x16({pointer})")


def load_block(dtype: DType, pointer: str) -> str:
    """The same where a block begins at the pointer, which is aligned to the size of the vector."""
    return _computed(dtype, f"*(const {scalar.storage_type(dtype)}x16 *)({pointer})")


def _computed(dtype: DType, stored: str) -> str:
    if dtype not in KINDS:
        raise DeclinedError(f"vectors of {dtype}")
    return f"{dtype}_to_float32x16({stored})" if dtype in _SHORT_FLOATS else stored


def store_lanes(dtype: DType, pointer: str, value: str) -> str:
    """The statement that puts 16 elements of the compute type at a C pointer."""
    return f"store_{scalar.storage_type(dtype)}x16({pointer}, {stored_lanes(dtype, value)});"


def stored_lanes(dtype: DType, value: str) -> str:
    """Sixteen elements of the compute type as they are stored."""
    if dtype not in KINDS:
        raise DeclinedError(f"vectors of {dtype}")
    return f"float32_to_{dtype}x16({value})" if dtype in _SHORT_FLOATS else value


class VectorElements(Elements):
    """Elements of 16 places along `axis` of the iteration space."""

    def __init__(self, text: CText, pointers: dict[Instruction, str], axis: int) -> None:
        super().__init__(text, pointers)
        self.axis = axis

    def let(self, dtype: DType, expression: str) -> str:
        """A vector variable; masks are vectors of 0 and -1."""
        return self.text.let(lanes_type(dtype), expression)

    def constant(self, value: Any, dtype: DType) -> str:
        """A number in every lane."""
        kind = lanes_type(dtype)
        return (
            scalar.constant(value, dtype, BLOCK)
            if kind == "float32x16"
            else f"(({kind}){scalar.constant(value, dtype)})"
        )

    def expression(self, primitive: str, args: Sequence[str], types: Sequence[DType], result: DType) -> str:
        """A primitive on vectors: on floats and masks as on their scalars, on integers what there is of it."""
        kinds = [kind.compute if kind in _SHORT_FLOATS else kind for kind in types]
        if primitive == "convert":
            return _converted(args[0], kinds[0], result)
        if all(kind in (FLOAT32, BOOL) for kind in kinds):
            return scalar.apply(primitive, args, kinds, result)
        if primitive == "select" and all(kind in (FLOAT32, INT32) for kind in kinds[1:]):
            return scalar.apply(primitive, args, kinds, result)
        if primitive == "select" and all(kind is INT64 for kind in kinds[1:]):
            return f"select_int64x16({', '.join(args)})"
        if primitive in _INTEGER_FUNCTIONS and kinds[0] in _WIDE and len(set(kinds)) == 1:
            return f"{primitive}_{kinds[0]}x16({', '.join(args)})"
        raise DeclinedError(f"vectors of {', '.join(map(str, types))} for {primitive}")

    def load(self, dtype: DType, pointer: str, access: Access) -> str:
        """Sixteen elements of a buffer, or one in every lane."""
        kind = lanes_type(dtype)
        if dtype not in KINDS and dtype not in (BOOL, INT64):
            raise DeclinedError(f"vectors of {dtype}")
        total = position(access)
        move = coefficient(total, self.axis)
        if move not in (0, 1):
            raise DeclinedError("elements that do not lie side by side")
        self.offsets.append(total)
        at = self.text.dim(total)
        if move == 0:
            one = scalar.load(dtype, pointer, at)
            return self.text.let(kind, f"({kind})(-(int32){one})" if dtype is BOOL else f"({kind})({one})")
        if dtype is BOOL:
            bytes_ = f"__builtin_convertvector(load_uint8x16({pointer} + {at}), int32x16)"
            return self.text.let(kind, f"{bytes_} != 0")
        if dtype is INT64:
            return self.text.let(kind, f"load_int64x16({pointer} + {at})")
        return self.text.let(kind, load_lanes(dtype, f"{pointer} + {at}"))

    def index(self, value: Value, access: Access, size: DimLike) -> DimLike:
        """Elements whose place is an element themselves need not lie side by side."""
        raise DeclinedError("an element whose place is read")

    def local(self, expression: str, lower: int = LEAST, upper: int | None = None) -> DimLike:
        """See `index`."""
        raise DeclinedError("a number that steers an op and is read")

    def position(self, index: DimLike) -> str:
        """Places as values would differ from lane to lane."""
        raise DeclinedError("an element that depends on its place")


def _converted(value: str, source: DType, target: DType) -> str:
    if source is target:
        return value
    if target is FLOAT32:
        if source is BOOL:
            return f"bool_to_float32({value})"
        if source in (*_WIDE, *_BYTES):
            return f"{source}_to_float32x16({value})"
    if target is BOOL and source in _WIDE:
        return f"(~eq_{source}x16({value}, ({source}x16)0))"
    if target is INT32 and source in (FLOAT32, *_BYTES):
        return f"{source}_to_int32x16({value})"
    if target in _BYTES and source is FLOAT32:
        return f"int32_to_{target}x16(float32_to_int32x16({value}))"
    if target in _BYTES and source is INT32:
        return f"int32_to_{target}x16({value})"
    if target in _SHORT_FLOATS and source is FLOAT32:
        return f"{target}_to_float32x16(float32_to_{target}x16({value}))"
    raise DeclinedError(f"vectors of {source} as {target}")


def position(access: Access) -> DimLike:
    """The row-major position of an element."""
    total: DimLike = 0
    for index, step in zip(access.indices, strides_of(access.source), strict=True):
        total = step * index + total
    return total
