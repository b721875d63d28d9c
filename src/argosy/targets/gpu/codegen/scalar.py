"""The scalar vocabulary in Triton: how the GPU target writes element types, numbers and every primitive of `ir.scalar`.

The edge rules that Triton's own operators don't have are functions of `prelude.py`. Expressions compute in the compute
types of their element types; `load` and `store` convert from and to storage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from argosy.ir.dtype import FLOAT32, FLOAT64, DType
from argosy.targets.lowering.accesses import DeclinedError

__all__ = [
    "EXPRESSIONS",
    "SHORT",
    "apply",
    "compute_type",
    "constant",
    "from_storage",
    "pointer_type",
    "tl_type",
    "to_storage",
]

_NAMES: Final = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"}


def pointer_type(dtype: DType) -> str:
    """The Triton type of a pointer to elements as they lie in memory: short codes and bools are bytes."""
    if dtype.kind in ("string", "complex"):
        raise DeclinedError(f"kernels hold no {dtype}")
    if dtype.name in _NAMES:
        return f"*{_NAMES[dtype.name]}"
    if dtype.kind == "bool" or dtype.bits < 8 or dtype.is_float:
        return "*u8"
    return f"*{'i' if dtype.kind == 'int' else 'u'}{dtype.bits}"


def tl_type(dtype: DType) -> str:
    """A type that formulas are computed in, or float16 or bfloat16, as Triton calls it."""
    return "tl.int1" if dtype.kind == "bool" else f"tl.{dtype.name}"


def compute_type(dtype: DType) -> str:
    """The Triton type in which formulas on `dtype` are computed."""
    if dtype.kind in ("string", "complex"):
        raise DeclinedError(f"kernels hold no {dtype}")
    return tl_type(dtype.compute)


def from_storage(dtype: DType, raw: str) -> str:
    """An element as loaded, in the compute type."""
    if dtype.kind == "bool":
        return f"({raw} != 0)"
    if dtype.compute is dtype:
        return raw
    if dtype.name in _NAMES:
        return f"{raw}.to(tl.float32)"
    return f"from_{dtype.name}({raw})"


def to_storage(dtype: DType, value: str) -> str:
    """A value of the compute type as it is stored, rounded to nearest even."""
    if dtype.kind == "bool":
        return f"({value}).to(tl.uint8)"
    if dtype.compute is dtype:
        return value
    if dtype.name in _NAMES:
        return f"({value}).to({tl_type(dtype)})"
    return f"to_{dtype.name}({value})"


def constant(value: Any, dtype: DType) -> str:
    """A number as a scalar of the compute type of `dtype`."""
    kind = dtype.compute
    if kind.kind in ("string", "complex"):
        raise DeclinedError(f"kernels hold no {dtype}")
    number = np.asarray(value).astype(kind.numpy)
    if kind.is_float:
        text = _float_text(float(number))
    elif kind.kind == "bool":
        text = "1" if number else "0"
    else:
        text = str(int(number))
    return f"tl.full([], {text}, {tl_type(kind)})"


def _float_text(value: float) -> str:
    if math.isnan(value):
        return 'float("nan")'
    if math.isinf(value):
        return 'float("-inf")' if value < 0 else 'float("inf")'
    return repr(value)


@dataclass(frozen=True, slots=True)
class _Call:
    """One use of a primitive: expressions, the compute types of their values, and the result's element type."""

    args: Sequence[str]
    types: Sequence[DType]
    result: DType

    @property
    def kind(self) -> DType:
        """The compute type of the operands; of a selection's, the condition apart."""
        return self.types[-1] if self.types[0].kind == "bool" else self.types[0]


Expression = Callable[[_Call], str]


def _operator(symbol: str) -> Expression:
    return lambda call: f"({call.args[0]} {symbol} {call.args[1]})"


def _arithmetic(symbol: str) -> Expression:
    """Triton's own operator; integers wrap, and short ones stay short."""

    def expression(call: _Call) -> str:
        text = f"({call.args[0]} {symbol} {call.args[1]})"
        return text if call.kind.is_float or call.kind.bits >= 32 else f"{text}.to({tl_type(call.kind)})"

    return expression


def _library(name: str) -> Expression:
    """A function of the vendor's library, the same for float32 and float64."""
    return lambda call: f"libdevice.{name}({', '.join(call.args)})"


def _helper(name: str, *, by_sign: bool = False) -> Expression:
    """A function of the prelude; integers with a sign may have one of their own."""

    def expression(call: _Call) -> str:
        kind = call.kind
        suffix = "" if kind.is_float else "_signed" if kind.kind == "int" or not by_sign else "_unsigned"
        return f"{name}{suffix if by_sign else ''}({', '.join(call.args)})"

    return expression


def _divide(call: _Call) -> str:
    if call.kind is FLOAT32:
        return f"tl.math.div_rn({call.args[0]}, {call.args[1]})"
    if call.kind.is_float:
        return f"({call.args[0]} / {call.args[1]})"
    return _helper("divide", by_sign=True)(call)


def _square_root(call: _Call) -> str:
    return f"tl.math.sqrt_rn({call.args[0]})" if call.kind is FLOAT32 else f"libdevice.sqrt({call.args[0]})"


def _negative(call: _Call) -> str:
    return f"(-{call.args[0]})" if call.kind.is_float else f"(({call.args[0]}) * (-1)).to({tl_type(call.kind)})"


def _magnitude(call: _Call) -> str:
    return call.args[0] if call.kind.kind == "uint" else f"tl.abs({call.args[0]})"


def _sign(call: _Call) -> str:
    x, kind = call.args[0], tl_type(call.kind)
    if call.kind.is_float:
        return f"sign_float({x})"
    return f"(({x} > 0).to(tl.int8) - ({x} < 0).to(tl.int8)).to({kind})"


def _extreme(name: str) -> Expression:
    def expression(call: _Call) -> str:
        own = f"tl.{name}imum"
        return f"{name}_nan({', '.join(call.args)})" if call.kind.is_float else f"{own}({', '.join(call.args)})"

    return expression


def _power(call: _Call) -> str:
    base, exponent = call.types
    if base.is_integer and exponent.is_integer:
        return f"power_integer({call.args[0]}, {call.args[1]}.to(tl.int64)).to({tl_type(base)})"
    if call.args[1] == constant(2, base):
        return f"({call.args[0]} * {call.args[0]})"
    narrow = all(kind is FLOAT32 or (kind.bits <= 16 and not kind.is_float) for kind in call.types)
    wide = FLOAT32 if base is FLOAT32 and narrow else FLOAT64
    args = [_converted(arg, kind, wide) for arg, kind in zip(call.args, call.types, strict=True)]
    return _converted(f"libdevice.pow({', '.join(args)})", wide, base)


def _convert(call: _Call) -> str:
    text = _converted(call.args[0], call.types[0], call.result)
    if call.result.compute is call.result:
        return text
    return from_storage(call.result, text)


def _converted(value: str, source: DType, target: DType) -> str:
    """A value of a compute type in another element type, as stored."""
    if source is target:
        return value
    if target.kind == "bool":
        return f"({value} != 0)"
    if target.compute is not target:
        if source is FLOAT64 and target.is_float and target.name != "float16":
            return to_storage(target, f"round_to_odd({value})")  # not twice to nearest
        if target.name in _NAMES:
            return f"({value}).to({tl_type(target)})"
        return to_storage(target, _converted(value, source, target.compute))
    if source.is_float and target.is_integer:
        return f"wrap_{64 if target.bits == 64 else 32}({value}).to({tl_type(target)})"
    return f"({value}).to({tl_type(target)})"


EXPRESSIONS: Final[Mapping[str, Expression]] = {
    **{
        name: _library(name)
        for name in (
            "floor",
            "ceil",
            "exp",
            "expm1",
            "log",
            "log1p",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "sinh",
            "cosh",
            "tanh",
            "asinh",
            "acosh",
            "atanh",
            "erf",
        )
    },
    "neg": _negative,
    "abs": _magnitude,
    "sign": _sign,
    "round": _library("rint"),
    "sqrt": _square_root,
    "add": _arithmetic("+"),
    "sub": _arithmetic("-"),
    "mul": _arithmetic("*"),
    "div": _divide,
    "mod": lambda call: (
        f"floor_mod_float({', '.join(call.args)})" if call.kind.is_float else _helper("modulo", by_sign=True)(call)
    ),
    "fmod": lambda call: (
        f"libdevice.fmod({', '.join(call.args)})" if call.kind.is_float else _helper("remainder", by_sign=True)(call)
    ),
    "min": _extreme("min"),
    "max": _extreme("max"),
    "and": _operator("&"),
    "or": _operator("|"),
    "xor": _operator("^"),
    "bitand": _operator("&"),
    "bitor": _operator("|"),
    "bitxor": _operator("^"),
    "shl": lambda call: f"shift_left({', '.join(call.args)}, {call.kind.bits})",
    "shr": lambda call: (
        f"shift_right{'_signed' if call.kind.kind == 'int' else ''}({', '.join(call.args)}, {call.kind.bits})"
    ),
    "eq": _operator("=="),
    "lt": _operator("<"),
    "le": _operator("<="),
    "pow": _power,
    "not": lambda call: f"({call.args[0]} == 0)",
    "bitnot": lambda call: f"(~{call.args[0]})",
    "isnan": lambda call: f"({call.args[0]} != {call.args[0]})",
    "isinf": lambda call: f'(tl.abs({call.args[0]}) == float("inf"))',
    "select": lambda call: f"tl.where({', '.join(call.args)})",
    "convert": _convert,
}


SHORT: Final = {"erf": "erf_short({})", "exp": "tl.exp({})", "div": "({} / {})"}
"""Primitives on float32 that are right to more bits than short floats have, not to all of float32's."""


def apply(primitive: str, args: Sequence[str], types: Sequence[DType], result: DType) -> str:
    """The expression of a primitive on `args`, the values of elements of `types`; `result` is its element type."""
    return EXPRESSIONS[primitive](_Call(args, [kind.compute for kind in types], result))
