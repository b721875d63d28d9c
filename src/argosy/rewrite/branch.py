"""Walks that can stop before the end of a module, or go on beyond it: into what follows a conditional."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from argosy.ir.builder import Namer
from argosy.ir.dim import DimLike
from argosy.ir.module import Constant, Instruction, Module, Value
from argosy.ir.types import TensorType, Type
from argosy.ops.dim_values import DimValues
from argosy.rewrite.rebuild import Rebuild
from argosy.rewrite.tail import Tail

__all__ = ["Branch", "OpenWalk", "is_unranked"]


def is_unranked(kind: Type) -> bool:
    """Whether a type is that of tensors of unknown rank."""
    return isinstance(kind, TensorType) and kind.dims is None


class OpenWalk(Rebuild):
    """A walk over one module. What it has not come to yet is `rest`, of which branches may take a part."""

    def __init__(self, module: Module, namer: Namer, substitution: Mapping[str, DimLike] | None = None) -> None:
        super().__init__(module, namer, substitution)
        self.rest: deque[Instruction] = deque()
        self.needed = set(module.results)
        """What must be known at the end."""
        self.gone: set[Instruction] = set()
        """What went into a conditional; only those of its results that this gives are left."""

    def run(self) -> Module:
        for parameter in self.module.parameters:
            self.adopt(parameter)
        self.visit_all()
        return self.finish(self.results)

    def visit_all(self) -> None:
        """Visit all instructions of the module."""
        self.rest.extend(self.module.instructions)
        while self.rest:
            self.visit(self.rest.popleft())

    @property
    def results(self) -> list[tuple[str, Value]]:
        """Names and old values of the module's results."""
        return list(zip(self.module.result_names, self.module.results, strict=True))

    def finish(self, results: Sequence[tuple[str, Value]]) -> Module:
        """The module as far as the walk has come, with these old values as its results."""
        given = [(name, self.reach(value)) for name, value in results]
        return self.module if given == self.results and self.tape.same_as(self.module) else self.tape.module(given)

    def reach(self, value: Value) -> Value:
        """What an old value has become, here."""
        return self.value(value)


class Branch(OpenWalk):
    """A walk over one branch, which may go on beyond its end into what follows the conditional; or over a loop's body.

    `given` are the arguments of the old module, outside, as far as they are values; `arguments` those of the new one.
    What is read from outside becomes a parameter, or where it is a constant or a size, an instruction here.
    """

    def __init__(self, outer: OpenWalk, module: Module, given: Sequence[Value | None]) -> None:
        super().__init__(module, outer.namer, outer.substitution)
        self.given = given
        self.arguments: list[Value] = []
        self._outer = outer
        self._own = {*module.parameters, *module.instructions}
        self._captured: dict[Value, Value] = {}
        self._places: dict[Instruction, int] = {}
        self._waiting: set[Instruction] = set()
        self._names = set(module.parameter_names)

    def enter(self, kinds: Mapping[int, Type] = MappingProxyType({})) -> None:
        """Walk over the branch itself. `kinds` are new types of parameters, by place."""
        for place, (parameter, argument) in enumerate(zip(self.module.parameters, self.given, strict=True)):
            if place in kinds:
                here = self.tape.parameter(parameter.names[0], kinds[place])
                self.redirect([(parameter.result(), here)])
            elif argument is None:  # what changes from one iteration to the next
                self.adopt(parameter)
            else:
                self._take(parameter, argument)
        self.visit_all()

    def _take(self, parameter: Instruction, argument: Value) -> None:
        """Let the old parameter stand for an argument, of which more may be known than when it was made."""
        here = self._here(argument)
        if here is None and not (is_unranked(parameter.types[0]) and not is_unranked(argument.type)):
            self.adopt(parameter)
            self.arguments.append(argument)
            return
        if here is None:
            here = self.tape.parameter(parameter.names[0], argument.type)
            self.arguments.append(argument)
        self.redirect([(parameter.result(), here)])

    def _here(self, argument: Value) -> Value | None:
        """A value from outside as an instruction of this branch, where it takes no operands."""
        op = argument.instruction.op
        if isinstance(op, Constant):
            return self.tape.constant(op.literal, name=argument.name)
        return self.tape.add(op, names=(argument.name,)) if isinstance(op, DimValues) else None

    def follow(self, old: Instruction, tail: Tail) -> None:
        """Be ready to go on with the tail of the conditional `old`, whose results are those of the branch."""
        self.redirect([(Value(old, index), self.value(value)) for index, value in enumerate(self.module.results)])
        self.needed = set(tail.needed())
        self.rest.extend(tail.instructions)
        self._own.update(tail.instructions)
        self._places = {instruction: place for place, instruction in enumerate(tail.instructions)}
        self._waiting = set(tail.instructions)

    def given_types(self, old: Instruction) -> list[Type]:
        """The types of the conditional's results here, of those whose rank it does not know."""
        return [self.value(value).type for value in old.results if is_unranked(value.type)]

    def advance(self, count: int) -> None:
        """Go on until the first `count` instructions of the tail are done."""
        while self.rest and self._places[self.rest[0]] < count:
            instruction = self.rest.popleft()
            self._waiting.discard(instruction)
            for operand in instruction.operands:
                if operand is not None:
                    self.reach(operand)
            if not instruction.operands:  # an instruction stands in one module only
                copy = dataclasses.replace(instruction)
                self.redirect(list(zip(instruction.results, copy.results, strict=True)))
                instruction = copy
            self.visit(instruction)

    def tells(self, value: Value) -> bool:
        """Whether an old value can be had here by now."""
        return value in self._values or value.instruction not in self.gone | self._waiting

    def reach(self, value: Value) -> Value:
        """What an old value has become, here; one from outside becomes a parameter."""
        if value not in self._values and value.instruction not in self._own:
            outside = self._outer.reach(value)
            if outside not in self._captured:
                self._captured[outside] = self._here(outside) or self._parameter(outside)
            self._values[value] = self._captured[outside]
        return self.value(value)

    def _parameter(self, outside: Value) -> Value:
        self.arguments.append(outside)
        number = len(self.arguments)
        while (name := f"{number}:{outside.name}") in self._names:
            number += 1
        self._names.add(name)
        return self.tape.parameter(name, outside.type)
