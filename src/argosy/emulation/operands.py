"""Operands as they are written: registers, constants and what hardware calls by name.

Scalar registers have one numbering here: s0 to s105, then the named ones of `NAMED`, each 32 bits; a pair is two
numbers in a row. Source: LLVM's "Syntax of AMDGPU Instruction Operands".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from argosy.emulation.refusal import NotEmulated

__all__ = ["EXEC", "M0", "NAMED", "NULL", "SCALARS", "TTMP", "VCC", "Operand", "read_operand"]

VCC: Final = 106
TTMP: Final = 108
M0: Final = 124
EXEC: Final = 126
NULL: Final = 128
"""Where what is written is lost, and zero is read; two numbers, for pairs."""
SCALARS: Final = 132

NAMED: Final = {
    "vcc": (VCC, 2),
    "vcc_lo": (VCC, 1),
    "vcc_hi": (VCC + 1, 1),
    "exec": (EXEC, 2),
    "exec_lo": (EXEC, 1),
    "exec_hi": (EXEC + 1, 1),
    "m0": (M0, 1),
    "null": (NULL, 4),
}

Kind = Literal["v", "a", "s", "constant", "scc", "off", "label", "call"]

_REGISTER: Final = re.compile(r"^(v|a|s|ttmp)(?:(\d+)(?:\.([lh]))?|\[(\d+):(\d+)\])$")
_INTEGER: Final = re.compile(r"^-?(?:0x[0-9a-fA-F]+|\d+)$")
_FLOAT: Final = re.compile(r"^-?\d+\.\d*(?:[eE][-+]?\d+)?$")
_CALL: Final = re.compile(r"^(\w+)\((.*)\)$")


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand. `number` is its first register, `count` how many; `half` is "l" or "h" of a 16-bit one.

    A constant is an `int` or a `float` in `value`. `text` is what was written, for labels, calls and messages.
    """

    kind: Kind
    text: str
    number: int = 0
    count: int = 1
    half: str = ""
    value: int | float = 0
    negative: bool = False
    absolute: bool = False
    sign_extended: bool = False


def read_operand(text: str) -> Operand:
    """Read one operand. Raises NotEmulated for what has no meaning here."""
    inner, negative, absolute, extended = text, False, False, False
    if inner.startswith("-") and not inner[1:2].isdigit():
        inner, negative = inner[1:], True
    for name in ("neg", "abs", "sext"):
        if inner.startswith(f"{name}(") and inner.endswith(")"):
            inner = inner[len(name) + 1 : -1]
            negative, absolute, extended = negative or name == "neg", absolute or name == "abs", name == "sext"
            break
    if inner.startswith("|") and inner.endswith("|"):
        inner, absolute = inner[1:-1], True
    kind, number, count, half, value = _core(inner, text)
    return Operand(kind, text, number, count, half, value, negative, absolute, extended)


def _core(inner: str, text: str) -> tuple[Kind, int, int, str, int | float]:
    register = _REGISTER.match(inner)
    if register:
        file, one, half, first, last = register.groups()
        number = int(one if one is not None else first)
        count = 1 if one is not None else int(last) - number + 1
        if file == "ttmp":
            return "s", TTMP + number, count, "", 0
        return ("v" if file == "v" else "a" if file == "a" else "s"), number, count, half or "", 0
    if inner in NAMED:
        number, count = NAMED[inner]
        return "s", number, count, "", 0
    if _INTEGER.match(inner):
        return "constant", 0, 1, "", int(inner, 0)
    if _FLOAT.match(inner):
        return "constant", 0, 1, "", float(inner)
    if inner in ("scc", "src_scc"):
        return "scc", 0, 1, "", 0
    if inner == "off":
        return "off", 0, 0, "", 0
    if inner.startswith("."):
        return "label", 0, 0, "", 0
    if _CALL.match(inner):
        return "call", 0, 0, "", 0
    raise NotEmulated(f"the operand {text!r}")
