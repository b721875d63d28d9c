"""Which registers an instruction reads and writes, as numbers in one space, and what it owes to memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from argosy.emulation.decode import Instruction
from argosy.emulation.memory_forms import MemoryForm
from argosy.emulation.operands import EXEC, M0, NULL, TTMP, VCC, Operand

__all__ = ["Access", "access_of", "register_file", "register_name"]

_FILES: Final = {"v": 0, "a": 1 << 12, "s": 2 << 12}
_SPECIAL: Final = {
    VCC: "vcc_lo", VCC + 1: "vcc_hi", M0: "m0", EXEC: "exec_lo", EXEC + 1: "exec_hi",
    **{TTMP + place: f"ttmp{place}" for place in range(16)},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Access:
    """What one instruction does to registers. `loads` are those that memory fills later; they are not in `writes`."""

    reads: frozenset[int]
    writes: frozenset[int]
    loads: frozenset[int]


def register_file(register: int) -> tuple[str, int]:
    """The file that a register is in, and its number there."""
    for name, base in reversed(_FILES.items()):
        if register >= base:
            return name, register - base
    raise ValueError(register)


def register_name(register: int) -> str:
    """A register as the text calls it."""
    name, number = register_file(register)
    return _SPECIAL.get(number, f"s{number}") if name == "s" else f"{name}{number}"


def access_of(instruction: Instruction) -> Access:
    """The registers of an instruction, of both halves of a dual one."""
    if instruction.memory is not None:
        return _memory_access(instruction, instruction.memory)
    reads, writes = set(_numbers(instruction.sources)), set(_numbers(instruction.results))
    if instruction.name in ("v_swap_b32", "v_permlane32_swap_b32", "v_permlane16_swap_b32"):
        reads |= writes
        writes = set(reads)
    if instruction.second is not None:
        other = access_of(instruction.second)
        reads |= other.reads
        writes |= other.writes
    if instruction.name.startswith("s_cbranch_vcc"):
        reads |= {_FILES["s"] + VCC, _FILES["s"] + VCC + 1}
    if instruction.name.startswith("ds_"):  # moves between lanes, which the hardware of local memory does
        return Access(frozenset(reads), frozenset(), frozenset(writes))
    return Access(frozenset(reads), frozenset(writes), frozenset())


def _memory_access(instruction: Instruction, form: MemoryForm) -> Access:
    operands = instruction.sources
    if form.into:
        result: tuple[Operand, ...] = ()
    elif form.atomic:
        modifiers = instruction.modifiers
        back = form.returns or "glc" in modifiers or "sc0" in modifiers or "RETURN" in modifiers.get("th", "")
        if form.space == "buffer":
            # Data lie where the result comes.
            return Access(frozenset(_numbers(operands)), frozenset(), frozenset(_numbers(operands[:1]) if back else ()))
        result, operands = (operands[:1], operands[1:]) if back else ((), operands)
    elif form.store:
        result = ()
    else:
        result, operands = operands[:1], operands[1:]
    return Access(frozenset(_numbers(operands)), frozenset(), frozenset(_numbers(result)))


def _numbers(operands: Iterable[Operand]) -> Iterator[int]:
    for operand in operands:
        base = _FILES.get(operand.kind)
        if base is None or (operand.kind == "s" and operand.number >= NULL):
            continue
        yield from range(base + operand.number, base + operand.number + operand.count)
