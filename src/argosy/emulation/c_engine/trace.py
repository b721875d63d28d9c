"""C for the operations of the table, by running their meanings on values that note what is done to them."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from argosy.emulation.refusal import NotEmulated
from argosy.emulation.semantics.arithmetic import Traced
from argosy.emulation.semantics.table import Operation, width

__all__ = ["C_TYPES", "handler", "literal", "result_types", "storage", "typed"]

C_TYPES: Final = {
    "u16": "uint16_t", "i16": "int16_t", "f16": "float", "u32": "uint32_t", "i32": "int32_t", "f32": "float",
    "u64": "uint64_t", "i64": "int64_t", "f64": "double", "mask": "uint8_t",
}  # fmt: skip
"""How values of types are held. A float16 is a float that is rounded after each operation."""
_SAME: Final = {
    "b16": "u16", "b32": "u32", "b64": "u64", "scc": "mask", "exec32": "u32", "exec64": "u64", "k16": "i32",
    "ku16": "u32",
    "mix": "f32", "mixb": "f32", "high": "f16", "high16": "u16", "pbf16": "u16",
    "pf16": "f16", "pu16": "u16", "pi16": "i16", "pf32": "f32", "pb32": "u32",
}  # fmt: skip
_FLOATS: Final = frozenset({"f16", "f32", "f64"})


def typed(kind: str) -> str:
    """The type that values of a type of the table have while they are computed."""
    return _SAME.get(kind, kind)


class _Writer:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def value(self, kind: str, text: str) -> _Value:
        """A new variable."""
        name = f"t{len(self.lines)}"
        self.lines.append(f"{C_TYPES[kind]} {name} = {text};")
        return _Value(self, kind, name)


class _Value(Traced):
    """A variable of the function that is written."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, writer: _Writer, kind: str, text: str) -> None:
        self._writer, self.kind, self.text = writer, kind, text

    def _with(self, other: Any) -> str:
        return self._like(other).text

    def _like(self, other: Any) -> _Value:
        if isinstance(other, _Value):
            if other.kind != self.kind and not {other.kind, self.kind} <= {"mask"}:
                raise TypeError(f"{self.kind} meets {other.kind}")
            return other
        return _Value(self._writer, self.kind, literal(other, self.kind))

    def _made(self, text: str, kind: str | None = None) -> _Value:
        kind = kind or self.kind
        if kind == "f16":
            text = f"rounded_half({text})"
        elif kind not in ("f32", "f64"):
            text = f"({C_TYPES[kind]})({text})"
        return self._writer.value(kind, text)

    def _arithmetic(self, other: Any, sign: str, *, turned: bool = False) -> _Value:
        a, b = self.text, self._with(other)
        a, b = (b, a) if turned else (a, b)
        if self.kind in _FLOATS:
            return self._made(f"{a} {sign} {b}")
        wide = "uint64_t" if self.kind.endswith("64") else "uint32_t"
        return self._made(f"({wide}){a} {sign} ({wide}){b}")

    def __add__(self, other: Any) -> _Value:
        return self._arithmetic(other, "+")

    def __radd__(self, other: Any) -> _Value:
        return self._arithmetic(other, "+")

    def __sub__(self, other: Any) -> _Value:
        return self._arithmetic(other, "-")

    def __rsub__(self, other: Any) -> _Value:
        return self._arithmetic(other, "-", turned=True)

    def __mul__(self, other: Any) -> _Value:
        return self._arithmetic(other, "*")

    def __rmul__(self, other: Any) -> _Value:
        return self._arithmetic(other, "*")

    def __truediv__(self, other: Any) -> _Value:
        return self._arithmetic(other, "/")

    def __rtruediv__(self, other: Any) -> _Value:
        return self._arithmetic(other, "/", turned=True)

    def __and__(self, other: Any) -> _Value:
        return self._made(f"{self.text} & {self._with(other)}")

    def __or__(self, other: Any) -> _Value:
        return self._made(f"{self.text} | {self._with(other)}")

    def __xor__(self, other: Any) -> _Value:
        return self._made(f"{self.text} ^ {self._with(other)}")

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __lshift__(self, other: Any) -> _Value:
        wide = "uint64_t" if self.kind.endswith("64") else "uint32_t"
        return self._made(f"({wide}){self.text} << {self._shift(other)}")

    def __rlshift__(self, other: Any) -> _Value:
        return self._like(other).__lshift__(self)

    def __rshift__(self, other: Any) -> _Value:
        return self._made(f"{self.text} >> {self._shift(other)}")

    def _shift(self, other: Any) -> str:
        return other.text if isinstance(other, _Value) else str(int(other))

    def __invert__(self) -> _Value:
        return self._made(f"!{self.text}" if self.kind == "mask" else f"~{self.text}")

    def __neg__(self) -> _Value:
        if self.kind in _FLOATS:
            return self._made(f"-{self.text}")
        return self._made(f"0 - {self.text}")

    def __abs__(self) -> _Value:
        match self.kind:
            case "f64":
                return self._made(f"__builtin_fabs({self.text})")
            case "f16" | "f32":
                return self._made(f"__builtin_fabsf({self.text})")
            case _:
                return self._made(f"{self.text} < 0 ? 0 - (uint64_t){self.text} : (uint64_t){self.text}")

    def _compared(self, other: Any, sign: str) -> _Value:
        return self._made(f"{self.text} {sign} {self._with(other)}", "mask")

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, "<")

    def __le__(self, other: Any) -> Any:
        return self._compared(other, "<=")

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, ">")

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, ">=")

    def __eq__(self, other: object) -> Any:
        return self._compared(other, "==")

    def __ne__(self, other: object) -> Any:
        return self._compared(other, "!=")

    def note(self, name: str, arguments: tuple[Any, ...]) -> Any:
        """See `Traced`."""
        return _PRIMITIVES[name](self, *arguments)


def literal(value: Any, kind: str) -> str:
    """A constant in C."""
    if kind in _FLOATS:
        number = float(value)
        if math.isnan(number):
            return '(double)__builtin_nan("")' if kind == "f64" else '__builtin_nanf("")'
        if math.isinf(number):
            text = "__builtin_inf()" if kind == "f64" else "__builtin_inff()"
            return f"(-{text})" if number < 0 else text
        if kind == "f64":
            return number.hex()
        return struct.unpack("<f", struct.pack("<f", number))[0].hex() + "f"
    bits = 64 if kind.endswith("64") else 32
    return f"({C_TYPES[kind]}){int(value) & ((1 << bits) - 1)}{'ull' if bits == 64 else 'u'}"


# ------------------------------------------------------------------------------------------------------ primitives
def _bits(me: _Value, value: _Value, kind: str) -> Any:
    kind = typed(kind)
    if value.kind == kind:
        return value
    if "f" not in value.kind[0] + kind[0]:
        return me._made(value.text, kind)  # noqa: SLF001 - its own kind
    if value.kind == "f16":
        raw = me._writer.value("u16", f"half_bits({value.text})")  # noqa: SLF001
        return _bits(me, raw, kind)
    if kind == "f16":
        return me._writer.value("f16", f"half_value({value.text})")  # noqa: SLF001
    return me._writer.value(kind, f"bits_{value.kind}_{kind}({value.text})")  # noqa: SLF001


def _convert(me: _Value, value: Any, kind: str) -> Any:
    kind = typed(kind)
    if not isinstance(value, _Value):
        return me._writer.value(kind, literal(value, kind))  # noqa: SLF001
    if value.kind == kind:
        return value
    if kind == "f16":
        return me._writer.value("f16", f"double_to_half((double){value.text})")  # noqa: SLF001
    return me._writer.value(kind, f"({C_TYPES[kind]}){value.text}")  # noqa: SLF001


def _select(me: _Value, condition: _Value, yes: Any, no: Any) -> Any:
    known = yes if isinstance(yes, _Value) else no
    if not isinstance(known, _Value):
        raise TypeError("a choice of two constants")
    yes, no = known._like(yes), known._like(no)  # noqa: SLF001
    return me._writer.value(known.kind, f"{condition.text} ? {yes.text} : {no.text}")  # noqa: SLF001


def _called(name: str, *, kind: str | None = None) -> Any:
    def note(me: _Value, *arguments: Any) -> Any:
        first = next(each for each in arguments if isinstance(each, _Value))
        texts = [first._like(each).text for each in arguments]  # noqa: SLF001
        return me._writer.value(kind or first.kind, f"{name}_{first.kind}({', '.join(texts)})")  # noqa: SLF001

    return note


def _scale(me: _Value, value: _Value, by: Any) -> Any:
    text = by.text if isinstance(by, _Value) else str(int(by))
    return me._writer.value(value.kind, f"scale_{value.kind}({value.text}, (int32_t)({text}))")  # noqa: SLF001


def _segment(me: _Value, value: _Value, which: _Value) -> Any:
    return me._writer.value("f64", f"segment({value.text}, {which.text})")  # noqa: SLF001


def _to_integer(me: _Value, value: _Value, kind: str) -> Any:
    return me._writer.value(kind, f"to_{kind}((double){value.text})")  # noqa: SLF001


_PRIMITIVES: Final[dict[str, Any]] = {
    "bits": _bits,
    "convert": _convert,
    "select": _select,
    "scale": _scale,
    "segment": _segment,
    "to_integer": _to_integer,
    "fused": _called("fused"),
    "least": _called("least"),
    "greatest": _called("greatest"),
    "is_nan": _called("is_nan", kind="mask"),
    "round_down": _called("round_down"),
    "round_up": _called("round_up"),
    "towards_zero": _called("towards_zero"),
    "nearest": _called("nearest"),
    "square_root": _called("square_root"),
    "invert": _called("invert"),
    "power": _called("power"),
    "hyperbolic": _called("hyperbolic"),
    "logarithm": _called("logarithm"),
    "sine": _called("sine"),
    "cosine": _called("cosine"),
    "mantissa": _called("mantissa"),
    "exponent": _called("exponent", kind="i32"),
    "next_power": _called("next_power", kind="i32"),
    "truncated_half": _called("truncated_half", kind="f16"),
    "count_ones": _called("count_ones", kind="u32"),
    "count_trailing": _called("count_trailing", kind="u32"),
    "count_leading": _called("count_leading", kind="u32"),
    "reverse": _called("reverse"),
}


def result_types(operation: Operation) -> list[str]:
    """The types of what the function of an operation gives."""
    return ["f32", "f32"] if operation.results == ("pair",) else [typed(kind) for kind in operation.results]


def storage(kind: str) -> np.dtype[Any]:
    """How a value of a type of the table is held in an array between engine and function."""
    plain = typed(kind)
    return np.dtype(np.uint8) if plain == "mask" else np.dtype(f"u{width(plain) // 8}")


def handler(operation: Operation, number: int) -> str:
    """The C function of an operation: arrays of `n` sources to arrays of `n` results.

    Arrays hold values as registers do, 16-bit ones in 16 bits each; a mask is a byte for each lane.
    """
    writer = _Writer()
    sources: Sequence[str] = [typed(kind) for kind in operation.sources]
    results = result_types(operation)
    arguments = [
        writer.value(kind, f"half_value(s{place}[i])" if kind == "f16" else f"s{place}[i]")
        for place, kind in enumerate(sources)
    ]
    found = operation.meaning(*arguments)
    found = found if isinstance(found, tuple) else (found,)
    if operation.name == "v_pk_mov_b32":
        found = found[:1]
    if len(found) != len(results):
        raise NotEmulated(f"the operation {operation.name}, which has {len(found)} results of {len(results)},")
    stores = []
    for place, (kind, value) in enumerate(zip(results, found, strict=True)):
        made = _convert(arguments[0], value, kind) if kind not in (value.kind, "mask") else value
        stores.append(f"r{place}[i] = {f'half_bits({made.text})' if kind == 'f16' else made.text};")

    def array(kind: str) -> str:
        return "uint16_t" if kind == "f16" else C_TYPES[kind]

    heads = [f"const {array(kind)} *s{place} = in[{place}];" for place, kind in enumerate(sources)]
    heads += [f"{array(kind)} *r{place} = out[{place}];" for place, kind in enumerate(results)]
    body = " ".join(writer.lines + stores)
    return (
        f"/* {operation.name} */\nstatic void op_{number}(int n, const void *const *in, void *const *out) {{\n"
        f"  {' '.join(heads)}\n  for (int i = 0; i < n; i++) {{ {body} }}\n}}\n"
    )
