"""Blocks of keys that a mask hides from all queries of a tile: neither their scores nor their values are computed.

What a model does to a score, whatever mask it reads, is asked what becomes of the greatest and the least score. Where
both are so far below what a query has seen that their powers are 0, so are those of all scores between: the result is
the same, bit by bit. So the half of a causal mask that lies above the diagonal costs a look at the mask.
"""

from __future__ import annotations

from typing import Final

from argosy.ir import access as maps
from argosy.ir.module import Instruction
from argosy.ops.pointwise import Pointwise
from argosy.rewrite.attention import Attention
from argosy.targets.cpu.codegen.attention_rows import Tiles, row_places
from argosy.targets.cpu.codegen.c_text import CText
from argosy.targets.cpu.codegen.kernel import KernelWriter
from argosy.targets.cpu.codegen.tile import BLOCK
from argosy.targets.cpu.codegen.vector_elements import VectorElements
from argosy.targets.lowering.accesses import DeclinedError
from argosy.targets.lowering.kernel_text import axis_name

__all__ = ["may_hide", "skip_hidden"]

_GREATEST: Final = "0x1p100f"
"""A score beyond all that sums of products of a model give; added to the least float32 it vanishes."""
_BELOW: Final = 128
"""How far below the greatest score of a row another is whose power is 0: e^-104 is half the least float32."""
_MONOTONIC: Final = frozenset({"add", "sub", "mul", "div", "select", "min", "max", "tanh", "neg", "convert"})


def may_hide(attention: Attention) -> bool:
    """Whether scores grow or fall with what the product gives, and depend on something else, as a mask is."""
    changed = {attention.scores}
    masked = False
    while not _reads(attention.softmax, changed):
        ready = [step for step in attention.steps if step not in changed and _reads(step, changed)]
        if not all(step.op.name == "reshape" or _is_monotonic(step, changed) for step in ready):
            return False
        others = [operand for step in ready for operand in step.operands if operand is not None]
        masked |= any(other.instruction not in changed and other.constant is None for other in others)
        changed |= set(ready)
    return masked


def _reads(step: Instruction, changed: set[Instruction]) -> bool:
    return any(operand is not None and operand.instruction in changed for operand in step.operands)


def _is_monotonic(step: Instruction, changed: set[Instruction]) -> bool:
    """Whether a step grows or falls with the score: only one number at a time depends on it."""
    if not isinstance(step.op, Pointwise):
        return False
    depends = [operand is not None and operand.instruction in changed for operand in step.operands]
    for formula in step.op.formula.steps:
        places = [place for place, arg in enumerate(formula.args) if isinstance(arg, int) and depends[arg]]
        depends.append(bool(places))
        if not places:
            continue
        if formula.primitive == "select":
            fits = 0 not in places
        elif formula.primitive == "div":
            fits = places == [0]
        else:
            fits = len(places) == 1
        if not fits or formula.primitive not in _MONOTONIC:
            return False
    return True


def skip_hidden(writer: KernelWriter, tiles: Tiles) -> None:
    """Go on to the next block where no query of the tile sees a key of this one."""
    if not may_hide(tiles.attention):
        return
    text = writer.text
    last = axis_name(tiles.changed.rank - 1)
    try:
        _is_hidden(CText(), writer, tiles)
    except DeclinedError:
        return
    text.line("int64 hidden = 1;")
    # The last row sees most behind a causal mask.
    with text.block("for (int64 row = rows - 1; row >= 0 && hidden; --row)"):
        row_places(text, tiles)
        text.line(f"const float32 limit = most[row] - {_BELOW};")
        text.line(f"int64 {last} = begin;")
        with text.block(f"for (; {last} + {BLOCK} <= begin + depth && hidden; {last} += {BLOCK})"):
            text.line(f"hidden = __builtin_reduce_and({_is_hidden(text, writer, tiles)}) != 0;")
        with text.block(f"for (; {last} < begin + depth && hidden; ++{last})"):
            bounds = []
            for sign in ("", "-"):
                with writer.elements.scope():
                    writer.elements.given[tiles.scores.result] = text.let("float32", f"{sign}{_GREATEST}")
                    bounds.append(writer.elements.of(tiles.changed, maps.identity(tiles.changed.shape)))
            writer.elements.given.pop(tiles.scores.result)
            text.line(f"hidden = {' & '.join(f'({bound} <= limit)' for bound in bounds)};")
    text.line("if (hidden) continue;")


def _is_hidden(text: CText, writer: KernelWriter, tiles: Tiles) -> str:
    """Which of 16 keys a row does not see, whatever their scores are."""
    found = []
    for sign in ("", "-"):
        elements = VectorElements(text, writer.pointers, tiles.changed.rank - 1)
        elements.given[tiles.scores.result] = text.let("float32x16", f"(float32x16)({sign}{_GREATEST})")
        found.append(elements.of(tiles.changed, maps.identity(tiles.changed.shape)))
    return " & ".join(f"({bound} <= (float32x16)limit)" for bound in found)
