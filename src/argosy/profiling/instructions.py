"""Times of instructions, one by one and in groups, and how fast that is. Times are seconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from argosy.ir.formula import Formula
from argosy.ir.module import Instruction
from argosy.runtime.nodes import KernelCall

__all__ = ["InstructionTime", "OpTime", "Rated", "ShapeTime", "by_op", "by_shape", "node_of", "op_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """Seconds of a run, their share of all instructions', and what is done in them.

    `operations` and `bytes` are those of a run, as `work` counts them, `least` the seconds that they take at the
    roofline of the device's product; None where they are not known.
    """

    seconds: float
    share: float
    operations: int | None = None
    bytes: int | None = None
    least: float | None = None

    @property
    def rates(self) -> dict[str, float | None]:
        """Billions of operations and of bytes a second, and `least` as a share of its time: that of the roofline."""
        counts = {
            "gflops": self.operations and self.operations / 1e9,
            "gbytes": self.bytes and self.bytes / 1e9,
            "roofline": self.least,
        }
        return {name: count / self.seconds if count and self.seconds else None for name, count in counts.items()}

    @property
    def rates_text(self) -> str:
        """What is known of them, for people."""
        forms = {"gflops": "{:.1f} GFLOP/s", "gbytes": "{:.1f} GB/s", "roofline": "{:.0%} of the roofline"}
        return "".join(f"  {forms[name].format(rate)}" for name, rate in self.rates.items() if rate is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionTime(Rated):
    """One instruction: its seconds are the median of those in a run.

    `operands` and `type` are what it reads and gives, with the sizes of the run. `calls` is how often a run executes
    it, more than once inside a loop. What `is_kernel` is compiled; all else is evaluated by numpy.
    """

    node: str
    op: str
    operands: str
    type: str
    calls: int
    is_kernel: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OpTime(Rated):
    """All instructions of one op together."""

    op: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeTime(Rated):
    """All instructions of one op with operands and results of one type together."""

    op: str
    operands: str
    type: str
    count: int


def node_of(instruction: Instruction) -> str:
    """The node of the model that an instruction is for, or a name of what it gives."""
    return instruction.source or next(filter(None, instruction.names), "")


def op_of(instruction: Instruction) -> str:
    """The op; a formula of one primitive is called by that too, a kernel by what it does."""
    if isinstance(instruction.op, KernelCall):
        return instruction.op.family
    formula = getattr(instruction.op, "formula", None)
    if isinstance(formula, Formula) and formula.primitive:
        return f"{instruction.op.name} {formula.primitive}"
    return instruction.op.name


def by_op(instructions: Sequence[InstructionTime]) -> tuple[OpTime, ...]:
    """Instructions by op, the slowest first."""
    groups: dict[str, list[InstructionTime]] = {}
    for entry in instructions:
        groups.setdefault(entry.op, []).append(entry)
    found = [OpTime(op=op, count=len(group), **_together(group)) for op, group in groups.items()]
    return tuple(sorted(found, key=lambda entry: -entry.seconds))


def by_shape(instructions: Sequence[InstructionTime]) -> tuple[ShapeTime, ...]:
    """Instructions by op, operands and results, the slowest first."""
    groups: dict[tuple[str, str, str], list[InstructionTime]] = {}
    for entry in instructions:
        groups.setdefault((entry.op, entry.operands, entry.type), []).append(entry)
    found = [
        ShapeTime(op=op, operands=operands, type=kind, count=len(group), **_together(group))
        for (op, operands, kind), group in groups.items()
    ]
    return tuple(sorted(found, key=lambda entry: -entry.seconds))


def _together(group: Sequence[InstructionTime]) -> dict[str, Any]:
    """The sums of a group; None of what is not known of all."""
    found: dict[str, Any] = {}
    for name in ("seconds", "share", "operations", "bytes", "least"):
        values = [getattr(entry, name) for entry in group]
        found[name] = None if None in values else sum(values)
    return found
