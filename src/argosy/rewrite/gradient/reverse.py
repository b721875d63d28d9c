"""The walk backwards: from a value to the gradients of the values that it is computed from."""

from __future__ import annotations

from collections.abc import Sequence

from argosy.errors import InternalError, ModelError, UnsupportedError
from argosy.ir.builder import Builder
from argosy.ir.dim import equal
from argosy.ir.module import Constant, Instruction, Parameter, Value
from argosy.ir.types import TensorType, Type
from argosy.rewrite.gradient.derivative import DERIVATIVES, Backward, filled, reshaped

__all__ = ["gradients"]


def gradients(
    build: Builder, y: Value, xs: Sequence[Value], zs: Sequence[Value] = (), at: Sequence[Value] | None = None
) -> list[Value]:
    """The gradients of the sum of `y` by each of `xs`, as values of the types of `xs`.

    What is differentiated is the part of the program from `xs` and `zs` to `y`: it is cut at them, so that none counts
    as computed from another, and `zs` are constant. `at` gives other values for `xs` and `zs`, in this order, at which
    the gradients are taken; that part of the program is repeated then.

    Raises ModelError where `y` or an x is no tensor of floats, UnsupportedError naming every instruction on the way
    that has no derivative.
    """
    for value, what in ((y, "the differentiated value"), *((x, "a value to differentiate by") for x in xs)):
        if not isinstance(value.type, TensorType) or not value.dtype.is_float:
            raise ModelError(f"{what} is {value.type}, expected a tensor of floats")
    cut = (*xs, *zs)
    path = _path(y, set(cut))
    moved: dict[Value, Value] = {}
    if at is not None:
        path, moved = _replayed(build, path, dict(zip(cut, at, strict=True)))
    walk = _Walk(build, path, [moved.get(x, x) for x in xs], [moved.get(z, z) for z in zs])
    return walk.run(moved.get(y, y))


def _path(y: Value, cut: set[Value]) -> list[Instruction]:
    """The instructions that compute `y` from the cut, each after those that it reads."""
    order: list[Instruction] = []
    state: dict[Instruction, bool] = {}
    pending = [] if y in cut else [y.instruction]
    while pending:
        instruction = pending[-1]
        if state.get(instruction):
            pending.pop()
        elif instruction in state:
            pending.pop()
            state[instruction] = True
            order.append(instruction)
        else:
            state[instruction] = False
            read = (operand for operand in reversed(instruction.operands) if operand is not None and operand not in cut)
            pending.extend(operand.instruction for operand in read if operand.instruction not in state)
    return [instruction for instruction in order if not isinstance(instruction.op, Constant | Parameter)]


def _replayed(
    build: Builder, path: Sequence[Instruction], at: dict[Value, Value]
) -> tuple[list[Instruction], dict[Value, Value]]:
    """The path where the cut has the values `at`, and what its values have become.

    What depends on a value that is another one now is computed again.
    """
    moved = {old: new for old, new in at.items() if old != new}
    for old, new in moved.items():
        if not _alike(old.type, new.type):
            raise ModelError(f"the value given for {old.name or 'a tensor'!r} is {new.type}, expected {old.type}")
    repeated: list[Instruction] = []
    for instruction in path:
        if not any(operand in moved for operand in instruction.operands):
            repeated.append(instruction)
            continue
        operands = [None if operand is None else moved.get(operand, operand) for operand in instruction.operands]
        results = build.add_all(instruction.op, *operands, source=instruction.source)
        repeated.append(results[0].instruction)
        pairs = zip(instruction.results, results, strict=True)
        moved.update((old, new) for old, new in pairs if old not in at)
    return repeated, moved


def _alike(old: Type, new: Type) -> bool:
    if not isinstance(old, TensorType) or not isinstance(new, TensorType) or old.dims is None or new.dims is None:
        return old == new
    sizes = zip(old.dims, new.dims, strict=False)
    return old.dtype is new.dtype and len(old.dims) == len(new.dims) and all(equal(*pair) for pair in sizes)


class _Walk:
    """One walk back along a path; it adds up the gradient of each value on the way."""

    def __init__(self, build: Builder, path: Sequence[Instruction], xs: Sequence[Value], zs: Sequence[Value]) -> None:
        self._build = build
        self._path = path
        self._xs = xs
        self._cut = {*xs, *zs}
        self._found: dict[Value, Value] = {}
        self._active = set(xs)
        for instruction in path:
            if any(operand in self._active for operand in instruction.operands):
                self._active.update(
                    result for result in instruction.results if result not in self._cut and _varies(result.type)
                )

    def run(self, y: Value) -> list[Value]:
        """The gradients of the sum of `y` by the xs."""
        build = self._build
        steps = self._steps(y)
        missing = [step for step in steps if type(step.op) not in DERIVATIVES]
        if missing:
            raise UnsupportedError(
                f"there is no derivative of {len(missing)} instruction(s) that lead to the differentiated value:",
                tuple(f"{step.source or step.op.name}: {step.op.name}" for step in missing),
                hint="name tensors that they compute in 'zs', which are constant, or in 'xs'",
            )
        if y in self._active:
            self._found[y] = filled(build, 1.0, y.dtype, y.shape)
        for instruction in reversed(steps):
            self._step(instruction)
        return [self._found.get(x) or filled(build, 0.0, x.dtype, x.shape) for x in self._xs]

    def _steps(self, y: Value) -> list[Instruction]:
        """The instructions of the path that a gradient goes through."""
        reached = {y}
        steps: list[Instruction] = []
        for instruction in reversed(self._path):
            active = [operand for operand in instruction.operands if operand in self._active]
            if active and any(result in reached for result in instruction.results if result in self._active):
                steps.append(instruction)
                reached.update(operand for operand in active if operand is not None)
        return steps[::-1]

    def _step(self, instruction: Instruction) -> None:
        given = tuple(self._found.get(result) if result not in self._cut else None for result in instruction.results)
        if all(gradient is None for gradient in given):
            return
        rule = DERIVATIVES.get(type(instruction.op))
        if rule is None:
            raise InternalError(f"{instruction.op.name} has no derivative", where=instruction.source)
        wanted = tuple(operand in self._active for operand in instruction.operands)
        made = rule(Backward(self._build, instruction, given, wanted))
        for operand, found in zip(instruction.operands, made, strict=False):
            if operand is None or found is None or operand not in self._active:
                continue
            gradient = self._fitted(found, operand, instruction)
            before = self._found.get(operand)
            self._found[operand] = gradient if before is None else self._build.pointwise("add", before, gradient)

    def _fitted(self, gradient: Value, operand: Value, instruction: Instruction) -> Value:
        """The gradient under the dims of the operand: the op may have said that two symbols are one size."""
        old, new = operand.type, gradient.type
        if isinstance(old, TensorType) and isinstance(new, TensorType) and old.dims is None and old.dtype is new.dtype:
            return gradient
        if isinstance(old, TensorType) and isinstance(new, TensorType) and old.dims is not None:
            same = old.dtype is new.dtype and new.dims is not None and len(old.dims) == len(new.dims)
            if same and not any(equal(*pair) is False for pair in zip(old.dims, gradient.shape, strict=True)):
                return reshaped(self._build, gradient, old.dims)
        found = f"{new} for an operand {old}"
        raise InternalError(f"the derivative of {instruction.op.name} gives {found}", where=instruction.source)


def _varies(kind: Type) -> bool:
    """Whether small changes of other values may change a value of this type by little."""
    return not isinstance(kind, TensorType) or kind.dtype.is_float or kind.dtype.kind == "complex"
