"""Which numbers the inputs of a program may be: found from what reads them, so that generated inputs mean something.

A program is walked from its end. Each instruction says what it needs of its operands (`readers.py`), and what is
needed of its results goes on to the operands that it takes them from: as it is through views and whatever else moves
elements, by interval arithmetic through pointwise formulas (`backwards.py`), and through the bodies of control ops.
What arrives at an input is its range; an input without one may be anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from argosy.errors import ArgosyError
from argosy.inputs.backwards import Bounds, needs_of_operands
from argosy.inputs.need import Need, meet
from argosy.inputs.readers import Sizes, needs_of_reader, place_of
from argosy.ir.dim import Dim
from argosy.ir.formula import Constant, Formula
from argosy.ir.module import Instruction, Module, Value
from argosy.ops.control import If, Loop, Scan
from argosy.ops.pointwise import Pointwise
from argosy.ops.random import Random

__all__ = ["find_ranges"]

_SAME_ELEMENTS: Final = ("reshape", "squeeze", "unsqueeze", "sequence_construct", "optional", "optional_get_element")
"""Ops whose results are the elements of the first operand, all of them in their order."""
_SOME_ELEMENTS: Final[Mapping[str, tuple[int, ...]]] = {
    **dict.fromkeys(
        (
            *("transpose", "broadcast", "slice", "split", "tile", "gather", "gather_elements", "gather_nd", "compress"),
            *("pad", "reverse_sequence", "triangle", "unique", "topk", "sequence_at", "sequence_erase"),
            *("sequence_concat", "sequence_split"),
        ),
        (0,),
    ),
    "sequence_insert": (0, 1),
    "scatter_elements": (0, 2),
    "scatter_nd": (0, 2),
}
"""Ops whose results hold elements of these operands, in another order or not all."""


def find_ranges(module: Module, sizes: Mapping[str, int]) -> dict[str, Need]:
    """What each input must be, by name, for inputs of which something is asked. `sizes` are those of the run."""
    found = _Walk(Sizes(sizes)).parameters(module, [None] * len(module.results))
    return {name: need for name, need in zip(module.parameter_names, found, strict=True) if need is not None}


class _Walk:
    """One walk through a program and the modules in it."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes

    def parameters(self, module: Module, results: Sequence[Need | None]) -> list[Need | None]:
        """What a module needs of its parameters, where `results` is needed of its results."""
        needs: dict[Value, Need] = {}

        def ask(value: Value | None, need: Need | None) -> None:
            if value is not None and need is not None:
                needs[value] = meet(needs.get(value), need)

        for value, need in zip(module.results, results, strict=True):
            ask(value, need)
        for instruction in reversed(module.instructions):
            of_results = [needs.get(result) for result in instruction.results]
            for position, need in self._needs(instruction, of_results):
                ask(instruction.operands[position] if position < len(instruction.operands) else None, need)
            if isinstance(instruction.op, If):
                for value, wish in _deciding(instruction, self._sizes):
                    ask(value, wish)
        return [needs.get(parameter.result()) for parameter in module.parameters]

    def _needs(self, instruction: Instruction, results: Sequence[Need | None]) -> Iterator[tuple[int, Need | None]]:
        """What an instruction needs of its operands, by position."""
        yield from needs_of_reader(instruction, self._sizes)
        op, name, needed = instruction.op, instruction.op.name, next((need for need in results if need), None)
        if isinstance(op, Pointwise):
            yield from self._of_pointwise(op.formula, instruction, needed)
        elif isinstance(op, (If, Loop, Scan)):
            yield from self._of_bodies(instruction, results)
        elif needed is not None and name == "reduce":
            yield 0, _of_reduced(needed, getattr(op, "kind", ""))
        elif needed is not None and name in _SAME_ELEMENTS:
            yield 0, needed
        elif needed is not None:
            part = needed.within(needed.low, needed.high)
            everything = range(len(instruction.operands)) if name == "concat" else ()
            yield from ((position, part) for position in _SOME_ELEMENTS.get(name, everything))

    def _of_pointwise(
        self, formula: Formula, instruction: Instruction, needed: Need | None
    ) -> Iterator[tuple[int, Need | None]]:
        operands = [operand for operand in instruction.operands if operand is not None]
        known = [_bounds(operand, self._sizes) for operand in operands]
        dtypes = [operand.dtype for operand in operands]
        yield from enumerate(needs_of_operands(formula, needed, known, dtypes, place_of(instruction)))
        yield from _probabilities(formula, operands)
        for position, (low, high) in _equated(formula, operands, self._sizes):
            if low < high:  # a one-hot code, spelled out
                yield position, Need(low, high, f"classes of {place_of(instruction)}", strong=False)

    def _of_bodies(self, instruction: Instruction, results: Sequence[Need | None]) -> Iterator[tuple[int, Need | None]]:
        op = instruction.op
        if isinstance(op, If):
            position = 1
            for branch in op.modules():
                yield from enumerate(self.parameters(branch, results), position)
                position += len(branch.parameters)
        elif isinstance(op, Loop):
            of_body = self.parameters(op.body, [None, *results])
            yield from enumerate(of_body[2:], 2)  # the trip count and the condition are the loop's own
        elif isinstance(op, Scan):
            yield from enumerate(self.parameters(op.body, results))


def _of_reduced(needed: Need, kind: str) -> Need | None:
    """What elements must be for their extreme or mean to be what is needed; a sum stays above 0 if they do."""
    if kind in ("max", "min", "mean"):
        return needed.within(needed.low, needed.high)
    return needed.within(0, None) if needed.low == 0 else None


def _deciding(branching: Instruction, sizes: Sizes) -> Iterator[tuple[Value, Need]]:
    """A wish for each number that decides a branch by being equal to a constant: to be that constant."""
    condition = branching.operands[0]
    while condition is not None and condition.instruction.op.name in _SAME_ELEMENTS:
        condition = condition.instruction.operands[0]
    made = None if condition is None else condition.instruction
    if made is not None and isinstance(made.op, Pointwise):
        for position, (low, high) in _equated(made.op.formula, made.operands, sizes):
            value = made.operands[position]
            if low == high and value is not None:
                yield value, Need(low, high, f"what {place_of(branching)} compares it with", strong=False)


def _equated(
    formula: Formula, operands: Sequence[Value | None], sizes: Sizes
) -> Iterator[tuple[int, tuple[float, float]]]:
    """Integer operands that a formula compares for equality, by position, and the bounds of what with."""
    for step in formula.steps:
        for place, ref in enumerate(step.args if step.primitive == "eq" else ()):
            beside = step.args[1 - place]
            value = operands[ref] if isinstance(ref, int) and ref < formula.arity else None
            if value is None or not value.dtype.is_integer or not isinstance(ref, int):
                continue
            other = operands[beside] if isinstance(beside, int) and beside < formula.arity else None
            if isinstance(beside, Constant):
                yield ref, (float(beside.value), float(beside.value))
            elif other is not None and (bounds := _bounds(other, sizes)) is not None:
                yield ref, bounds


def _bounds(value: Value, sizes: Sizes) -> Bounds | None:
    """The least and the greatest element of a value that doesn't come from an input."""
    while value.instruction.op.name in ("reshape", "squeeze", "unsqueeze", "broadcast", "transpose"):
        if value.known is not None or value.instruction.operands[0] is None:
            break
        value = value.instruction.operands[0]
    if value.known is not None and value.known.size:
        found = [sizes.of(entry) if isinstance(entry, Dim) else entry for entry in value.known.flat]
        numbers = [entry for entry in found if entry is not None]
        return (min(numbers), max(numbers)) if len(numbers) == len(found) else None
    literal = value.constant
    if literal is None or not literal.size or not (literal.dtype.is_integer or literal.dtype.is_float):
        return None
    try:
        array = literal.array()
    except ArgosyError:  # its weights are elsewhere
        return None
    wide = array.astype("float64") if literal.dtype.is_float else array
    return wide.min().item(), wide.max().item()


def _probabilities(formula: Formula, operands: Sequence[Value]) -> Iterator[tuple[int, Need]]:
    """What is compared with a uniform random number is a probability: it has the range of those numbers."""
    for step in formula.steps:
        if step.primitive in ("lt", "le"):
            for place, ref in enumerate(step.args):
                other = step.args[1 - place]
                if isinstance(ref, Constant) or isinstance(other, Constant) or max(ref, other) >= formula.arity:
                    continue
                drawn = operands[other].instruction.op
                if isinstance(drawn, Random) and drawn.distribution == "uniform":
                    yield ref, Need(drawn.first, drawn.second, "probabilities")
