"""Values whose rank only a run can tell: what reads them goes into a conditional, where each branch knows it.

A conditional whose branches give different ranks (an exported `x.squeeze()`, say) has results of unknown rank, and
nothing after it has a type that a kernel could be written for. So the instructions that depend on it move into both
branches, one by one, until all that crosses the border has one rank again, or to the end. Inside a branch the ranks
are known, and with them often the conditions of later conditionals. Where an instruction contradicts a branch, no run
can take that branch: the other one stays, behind a `require`.

A `squeeze` of all axes of size 1 is such a conditional on each size that is not known.
"""

from __future__ import annotations

import dataclasses
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.errors import ModelError
from argosy.ir.builder import Builder, Namer
from argosy.ir.dim import DimLike, Symbol, equal, symbol_dim
from argosy.ir.module import Instruction, Module, Value
from argosy.ir.types import TensorType, Type
from argosy.ops.control import If, Loop, Scan
from argosy.ops.dim_values import DimValues
from argosy.ops.operands import length
from argosy.ops.requirement import Require
from argosy.ops.view import Squeeze
from argosy.passes.manager import PassContext, register_pass
from argosy.rewrite.branch import Branch, OpenWalk, is_unranked
from argosy.rewrite.tail import Tail

__all__ = ["SplitRanks"]

log = logging.getLogger("argosy.passes")

_GROWTH: Final = 4
"""How many times the program's instructions may be copied in all: conditionals after each other double the rest."""
_LEAST: Final = 256
"""How many may be copied in any program."""
_UNKNOWN_SIZES: Final = 3
"""Most sizes of a squeeze that may each be 1 or not: it becomes as many conditionals inside each other."""


@register_pass
@dataclass(frozen=True, slots=True)
class SplitRanks:
    """f(if(c, x, y)) = if(c, f(x), f(y)), where x and y have different ranks."""

    name = "split_ranks"

    def run(self, module: Module, context: PassContext) -> Module:
        """The module with what reads values of unknown rank moved to where the rank is known."""
        instructions = list(module.walk())
        if not any(map(_splits, instructions)):
            return module
        walk = _Walk(module, context.namer)
        walk.room = _Room(_LEAST + _GROWTH * len(instructions))
        try:
            return walk.run()
        except _PerhapsError as error:
            raise error.cause from None


class _Room:
    """How many instructions may still be copied; one for a whole program."""

    def __init__(self, left: int) -> None:
        self.left = left


class _PerhapsError(Exception):
    """An instruction with bodies does not fit what has become known, yet perhaps no iteration comes to it."""

    def __init__(self, cause: ModelError) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _rank(kind: Type) -> int | None:
    return len(kind.dims) if isinstance(kind, TensorType) and kind.dims is not None else None


def _splits(instruction: Instruction) -> bool:
    return isinstance(instruction.op, (If, Squeeze)) and any(map(is_unranked, instruction.types))


class _Walk(OpenWalk):
    """A walk over one module, with the room for copies that is left."""

    room: _Room

    def __init__(self, module: Module, namer: Namer, substitution: Mapping[str, DimLike] | None = None) -> None:
        super().__init__(module, namer, substitution)
        self._inlining = False
        self._late: set[Instruction] = set()

    def body(self, module: Module) -> Module:
        inner = _Walk(module, self.namer, self.substitution)
        inner.room = self.room
        return inner.run()

    def inline(self, instruction: Instruction, body: Module, arguments: Sequence[Value | None]) -> None:
        # What follows inside `body` is not part of `rest`: conditionals in it wait for the next round.
        before, self._inlining = self._inlining, True
        super().inline(instruction, body, arguments)
        self._inlining = before

    def visit(self, instruction: Instruction) -> None:
        op = instruction.op
        if isinstance(op, Require) and self._is_met(instruction, op):
            return
        if _splits(instruction) and not self._inlining and self._is_put_off(instruction):
            return
        kept = self._conditional(instruction, op) if isinstance(op, If) else self._kept(instruction)
        if kept is not None and isinstance(kept.op, Squeeze) and _splits(kept):
            kept = self._cases(kept, kept.op)
        if kept is not None and isinstance(kept.op, If) and _splits(kept) and not self._inlining:
            self._split(instruction, kept, kept.op)

    def _is_put_off(self, instruction: Instruction) -> bool:
        """Whether an instruction has been put behind all that does not depend on it, which its branches may read."""
        tail = Tail(instruction, self.rest, ())
        if instruction in self._late or not tail.others:
            return False
        self._late.add(instruction)
        self.rest = deque([*(i for i in self.rest if i in tail.others), instruction, *tail.instructions])
        return True

    def _kept(self, instruction: Instruction) -> Instruction | None:
        try:
            if isinstance(instruction.op, (Loop, Scan)):
                return self._iterated(instruction, instruction.op) or self.keep(instruction)
            return self.keep(instruction)
        except ModelError as error:
            if instruction.op.modules():
                raise _PerhapsError(error) from error
            raise

    def _iterated(self, instruction: Instruction, op: Loop | Scan) -> Instruction | None:
        """Keep a loop whose body sees the ranks of what it reads; None where it learns nothing.

        A carried value keeps the rank that it begins with where an iteration then gives one of this rank.
        """
        operands = [None if operand is None else self.value(operand) for operand in instruction.operands]
        first, states = (2, op.carried) if isinstance(op, Loop) else (0, op.states)
        outside = first + states + (0 if isinstance(op, Loop) else len(op.input_axes))
        given = [*[None] * outside, *operands[outside:]]
        carried = {
            place: kind
            for place in range(first, first + states)
            if is_unranked(op.body.parameters[place].types[0])
            and (kind := self._of_same_rank(operands[place])) is not None
        }
        learns = carried or any(
            value is not None and is_unranked(parameter.types[0]) and not is_unranked(value.type)
            for parameter, value in zip(op.body.parameters, given, strict=True)
        )
        if not learns:
            return None
        body = _Branch(self, op.body, given)
        body.enter(carried)
        module = body.finish(body.results)
        results = module.results[1:] if isinstance(op, Loop) else module.results
        if any(_rank(results[place - first].type) != len(kind.dims or ()) for place, kind in carried.items()):
            return None
        changed = dataclasses.replace(op, body=module)
        made = self.tape.redo(instruction, changed, [*operands[:outside], *body.arguments])
        self.replace(instruction, made)
        return made[0].instruction if made else None

    def _of_same_rank(self, value: Value | None) -> TensorType | None:
        """The type of a carried value that has the rank of the initial one, and any sizes."""
        if value is None or not isinstance(value.type, TensorType) or value.type.dims is None:
            return None
        return value.type.with_dims(tuple(symbol_dim(Symbol(self.namer.unique("carried"))) for _ in value.type.dims))

    def _is_met(self, instruction: Instruction, op: Require) -> bool:
        operand = instruction.operands[0]
        known = None if operand is None else self.value(operand).known
        return known is not None and known.size == 1 and bool(known.reshape(-1)[0]) is op.expected

    def _conditional(self, instruction: Instruction, op: If) -> Instruction | None:
        """Keep a conditional, whose branches see what has become known of what they read; None where one goes."""
        condition, *captures = [None if operand is None else self.value(operand) for operand in instruction.operands]
        if condition is None or (condition.known is not None and condition.known.size == 1):
            return self.keep(instruction)
        branches = self._branches(op, captures)
        for place, branch in enumerate(branches):
            try:
                branch.enter()
            except ModelError as error:
                self._refuse(instruction, condition, branches[1 - place], error, expected=place == 1)
                return None
        modules = [b.finish(b.results) for b in branches]
        if modules == [op.then_branch, op.else_branch]:
            return self.keep(instruction)
        operands = (condition, *branches[0].arguments, *branches[1].arguments)
        results = self.tape.redo(instruction, If(*modules), operands)
        self.replace(instruction, results)
        return results[0].instruction if results else None

    def _branches(self, op: If, captures: Sequence[Value | None]) -> tuple[_Branch, _Branch]:
        count = len(op.then_branch.parameters)
        return _Branch(self, op.then_branch, captures[:count]), _Branch(self, op.else_branch, captures[count:])

    def _refuse(
        self, instruction: Instruction, condition: Value, other: _Branch, error: ModelError, *, expected: bool
    ) -> None:
        """Require that the branch which can't run is not taken, and let the `other` take the conditional's place."""
        log.info("%s: only one branch can run: %s", instruction.source or "if", error)
        self.tape.add(Require(expected, error.what), condition, source=error.where or instruction.source)
        self.inline(instruction, other.module, other.given)

    def _cases(self, kept: Instruction, op: Squeeze) -> Instruction | None:
        """A squeeze of unknown axes as a conditional; None where it stays."""
        x, axes = kept.operands[0], next(iter(kept.operands[1:]), None)
        if x is None or is_unranked(x.type) or op.axes is not None or (axes is not None and length(axes) != 0):
            return None
        unknown = [axis for axis, dim in enumerate(x.shape) if equal(dim, 1) is None]
        if len(unknown) > _UNKNOWN_SIZES:
            return None
        made = _squeezed(self.tape, x, [axis for axis, dim in enumerate(x.shape) if equal(dim, 1)], unknown, kept)
        self.replace(kept, [made])
        return made.instruction

    def _split(self, old: Instruction, kept: Instruction, op: If) -> None:
        """Move what depends on a conditional into its branches, as far as one of them is known to gain by it."""
        tail = Tail(old, self.rest, self.needed)
        condition, *captures = kept.operands
        if not tail.ready or condition is None:
            return
        branches = self._branches(op, captures)
        try:
            for branch in branches:
                branch.enter()
                branch.follow(old, tail)
            if all(is_unranked(kind) for branch in branches for kind in branch.given_types(old)):
                return
            count = 0
            crossing: list[Value] | None = None
            while crossing is None or not _agree(branches, crossing):
                if count == len(tail.instructions):
                    break
                if count == tail.ready:
                    return
                count += 1
                self.room.left -= len(branches)
                if self.room.left < 0:
                    log.info("%s: its branches differ in rank, and too much depends on it", old.source or "if")
                    return
                for place, branch in enumerate(branches):
                    try:
                        branch.advance(count)
                    except ModelError as error:
                        self._refuse(kept, condition, branches[1 - place], error, expected=place == 1)
                        return
                crossing = tail.crossing(count)
        except _PerhapsError as error:
            log.info("%s: its branches differ in rank: %s", old.source or "if", error)
            return
        if crossing is not None:
            self._join(old, kept, condition, branches, tail.instructions[:count], crossing)

    def _join(
        self,
        old: Instruction,
        kept: Instruction,
        condition: Value,
        branches: Sequence[_Branch],
        moved: Sequence[Instruction],
        crossing: Sequence[Value],
    ) -> None:
        """Put the conditional that holds what was `moved` in the place of the one that was `kept`."""
        named = [(f"{index}:{value.name}", value) for index, value in enumerate(crossing)]
        op = If(*(branch.finish(named) for branch in branches))
        arguments = [argument for branch in branches for argument in branch.arguments]
        names = tuple(value.name for value in crossing)
        results = self.tape.add_all(op, condition, *arguments, names=names, source=kept.source)
        stood = [kept.result(value.index) if value.instruction is old else value for value in crossing]
        self.redirect(list(zip(stood, results, strict=True)))
        self.gone.update(moved)
        self.rest = deque(instruction for instruction in self.rest if instruction not in self.gone)


class _Branch(Branch, _Walk):
    """A walk over one branch, or over a loop's body."""

    def __init__(self, outer: _Walk, module: Module, given: Sequence[Value | None]) -> None:
        super().__init__(outer, module, given)
        self.room = outer.room


def _agree(branches: Sequence[_Branch], values: Sequence[Value]) -> bool:
    """Whether all branches give these values, each in one rank."""
    for value in values:
        if not all(branch.tells(value) for branch in branches):
            return False
        first, *others = (branch.reach(value).type for branch in branches)
        for other in others:
            if isinstance(first, TensorType) and isinstance(other, TensorType):
                if first.dims is None or other.dims is None or len(first.dims) != len(other.dims):
                    return False
            elif first != other:
                return False
    return True


def _squeezed(
    build: Builder, x: Value, axes: Sequence[int], unknown: Sequence[int], origin: Instruction, *, inside: bool = False
) -> Value:
    """`x` without `axes`, and without those of the `unknown` ones that turn out to be of size 1."""
    names = () if inside else origin.names
    if not unknown:
        kept = tuple(sorted(axes))
        return build.add(Squeeze(kept), x, names=names, source=origin.source) if kept else x
    first, *others = unknown
    size = build.add(DimValues((x.shape[first],), scalar=True), source=origin.source)
    condition = build.pointwise("eq", size, build.constant(1, size.dtype), source=origin.source)
    branches = []
    for name, removed in (("then", [*axes, first]), ("else", axes)):
        body = Builder(name, namer=build.namer)
        parameter = body.parameter("x", x.type)
        result = _squeezed(body, parameter, removed, others, origin, inside=True)
        branches.append(body.module([("squeezed", result)]))
    return build.add(If(*branches), condition, x, x, names=names, source=origin.source)
