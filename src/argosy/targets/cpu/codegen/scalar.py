"""The scalar vocabulary in C: how the CPU target writes element types, numbers and every primitive of `ir.scalar`.

The C itself, with the edge rules, is in `prelude*.h` beside this file; here are its names. Expressions
compute in the compute types of their element types; `load` and `store` convert from and to storage. All texts
but loads and stores serve vectors of 16 lanes as well, where every argument is float32 or a mask.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, Final

import numpy as np

from argosy.errors import InternalError
from argosy.ir.dtype import FLOAT32, FLOAT64, DType
from argosy.ir.scalar import PRIMITIVES

__all__ = [
    "EXPRESSIONS",
    "apply",
    "compute_type",
    "constant",
    "kernel_prelude",
    "load",
    "load_packed",
    "prelude",
    "storage_type",
    "store",
]

_INCLUDE: Final = re.compile(r'^#include "(.+)"$', re.MULTILINE)
_SHORT_FLOATS: Final = ("float16", "bfloat16")


@lru_cache(maxsize=1)
def prelude() -> str:
    """The C text that goes before generated code: all headers, written out, for sources travel as one text.

    Define `ARGOSY_EXACT` before it for `--accuracy exact`.
    """
    return _written_out("prelude.h")


def kernel_prelude() -> str:
    """What kernels need beyond `prelude`: the parameter block, indices, views. Goes behind it and the host ABI."""
    return _written_out("prelude_kernel.h")


def _written_out(header: str) -> str:
    text = resources.files(__package__).joinpath(header).read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda found: _written_out(found[1]), text)


def compute_type(dtype: DType) -> str:
    """The C type in which formulas on `dtype` are computed; it is called as the element type is."""
    return _on_cpu(dtype).compute.name


def storage_type(dtype: DType) -> str:
    """The C type of one element of a buffer: short floats by their codes, sub-byte types one to a byte."""
    if _on_cpu(dtype).name in _SHORT_FLOATS:
        return "uint16"
    return dtype.name if dtype.compute is dtype and dtype.kind != "bool" else "uint8"


def load(dtype: DType, pointer: str, index: str) -> str:
    """The element at `index`, in the compute type."""
    element = f"{pointer}[{index}]"
    if dtype.kind == "bool":
        return f"({element} != 0)"
    return element if dtype.compute is dtype else f"{dtype}_to_{dtype.compute}({element})"


def load_packed(dtype: DType, pointer: str, index: str) -> str:
    """The element at `index` of a sub-byte type packed as ONNX says: several to a byte, the first in the low bits."""
    return f"{dtype}_to_{dtype.compute}(unpack_{dtype.bits}({pointer}, {index}))"


def store(dtype: DType, pointer: str, index: str, value: str) -> str:
    """The assignment of a value of the compute type to the element at `index`, rounded to nearest even."""
    code = value if dtype.compute is dtype else f"{dtype.compute}_to_{dtype}({value})"
    return f"{pointer}[{index}] = {code}"


def constant(value: Any, dtype: DType, lanes: int = 1) -> str:
    """A number as a C constant of the compute type of `dtype`, or of `lanes` equal ones; floats keep every bit."""
    kind = _on_cpu(dtype).compute
    number = np.asarray(value).astype(kind.numpy)
    if kind.kind == "complex":
        part = FLOAT32 if kind.bits == 64 else FLOAT64
        return f"(({kind}){{{constant(number.real, part)}, {constant(number.imag, part)}}})"
    text = _float_constant(float(number), kind) if kind.is_float else _whole_constant(int(number), kind)
    return text if lanes == 1 else f"(({kind}x{lanes}){text})"


def _float_constant(value: float, kind: DType) -> str:
    suffix = "f" if kind is FLOAT32 else ""
    if math.isnan(value):
        return f'__builtin_nan{suffix}("")'
    if math.isinf(value):
        return f"({'-' if value < 0 else ''}__builtin_inf{suffix}())"
    return f"({value.hex()}{suffix})" if math.copysign(1.0, value) < 0 else f"{value.hex()}{suffix}"


def _whole_constant(value: int, kind: DType) -> str:
    if kind.kind == "bool":
        return "true" if value else "false"
    if kind.kind == "uint":
        return f"(({kind}){value}u{'ll' if kind.bits == 64 else ''})"
    # C has no negative literals: the least value is written as the one above it less 1
    least = value == -(1 << (kind.bits - 1))
    text = f"{value + 1 if least else value}{'ll' if kind.bits == 64 else ''}{' - 1' if least else ''}"
    return f"(({kind})({text}))" if value < 0 else f"(({kind}){text})"


@dataclass(frozen=True, slots=True)
class _Call:
    """One use of a primitive: C expressions, the compute types of their values, and the result's element type."""

    args: Sequence[str]
    types: Sequence[DType]
    result: DType

    @property
    def kind(self) -> DType:
        """The compute type of the operands; of a selection's, the condition apart."""
        return self.types[-1] if self.types[0].kind == "bool" else self.types[0]


Expression = Callable[[_Call], str]


def _named(primitive: str) -> Expression:
    """A function of the prelude, called after the primitive and the type."""
    return lambda call: f"{primitive}_{call.kind}({', '.join(call.args)})"


def _operator(primitive: str, symbol: str) -> Expression:
    """C's own operator for floats and bools, where it has the primitive's rule; a function for the rest."""
    named = _named(primitive)

    def expression(call: _Call) -> str:
        return f"({call.args[0]} {symbol} {call.args[1]})" if call.kind.kind in ("float", "bool") else named(call)

    return expression


def _negative(call: _Call) -> str:
    return f"(-{call.args[0]})" if call.kind.is_float else _named("neg")(call)


def _constants(value: int, dtype: DType) -> tuple[str, str]:
    """How a number is written, alone and in every lane."""
    return constant(value, dtype), constant(value, dtype, 16)


def _power(call: _Call) -> str:
    base, exponent = call.types
    if base.is_integer and exponent.is_integer:
        wide = "uint64" if exponent.kind == "uint" else "int64"
        return f"pow_{base}({call.args[0]}, ({wide}){call.args[1]})"
    if call.args[1] in _constants(2, base):
        return f"({call.args[0]} * {call.args[0]})"
    if base is FLOAT32 and call.args[1] in _constants(3, base):
        return f"cube_float32({call.args[0]})"
    # numpy computes in the wider of both; float32 holds integers of up to 16 bits
    narrow = all(kind is FLOAT32 or (kind.bits <= 16 and not kind.is_float) for kind in call.types)
    wide_type = FLOAT32 if base is FLOAT32 and narrow else FLOAT64
    args = [_converted(arg, kind, wide_type) for arg, kind in zip(call.args, call.types, strict=True)]
    return _converted(f"pow_{wide_type}({', '.join(args)})", wide_type, base)


def _convert(call: _Call) -> str:
    code = _converted(call.args[0], call.types[0], call.result)
    return code if call.result.compute is call.result else f"{call.result}_to_{call.result.compute}({code})"


def _converted(value: str, source: DType, target: DType) -> str:
    """A value of a compute type in another element type, as stored."""
    if source is target:
        return value
    if source.kind == "complex":
        if target.kind == "complex":
            return f"{source}_to_{target}({value})"
        return _converted(f"({value}).re", FLOAT32 if source.bits == 64 else FLOAT64, target)
    if target.kind == "complex":
        part = FLOAT32 if target.bits == 64 else FLOAT64
        return f"(({target}){{{_converted(value, source, part)}, 0}})"
    if target.kind == "bool":
        return f"({value} != 0)"
    if source.kind == "bool" and target is FLOAT32:
        return f"bool_to_float32({value})"  # of masks too
    if target.compute is not target:
        return f"{target.compute}_to_{target}({_to_compute(value, source, target)})"
    if source.is_float and target.is_integer:
        return f"{source}_to_{target}({value})"
    return f"(({target}){value})"


def _to_compute(value: str, source: DType, target: DType) -> str:
    """The compute type on the way to a shorter one: floats are rounded to odd, so that two roundings are one."""
    if target.is_float and (source is FLOAT64 or (source.is_integer and source.bits > 16)):
        return f"{source}_to_odd_float32({value})"
    return _converted(value, source, target.compute)


_OPERATORS: Final = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "lt": "<", "le": "<=", "and": "&", "or": "|",
    "xor": "^",
}  # fmt: skip

EXPRESSIONS: Final[Mapping[str, Expression]] = {
    **{primitive: _named(primitive) for primitive in PRIMITIVES},
    **{primitive: _operator(primitive, symbol) for primitive, symbol in _OPERATORS.items()},
    "neg": _negative,
    "not": lambda call: f"(!{call.args[0]})",
    "select": lambda call: f"({call.args[0]} ? {call.args[1]} : {call.args[2]})",
    "pow": _power,
    "convert": _convert,
}


def apply(primitive: str, args: Sequence[str], types: Sequence[DType], result: DType) -> str:
    """The C expression of a primitive on `args`, the values of elements of `types`; `result` is its element type."""
    return EXPRESSIONS[primitive](_Call(args, [_on_cpu(kind).compute for kind in types], _on_cpu(result)))


def _on_cpu(dtype: DType) -> DType:
    if dtype.kind == "string":
        raise InternalError("strings never reach generated code")
    return dtype
