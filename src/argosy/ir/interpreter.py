"""Evaluates a module instruction by instruction: the meaning of a program.

Symbols get their values as they are met: from the shapes of the arguments, and from the shapes that
data-dependent instructions produce. Values are dropped after their last use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from argosy.errors import ArgosyError, InternalError, ModelError, UsageError
from argosy.ir.builder import KNOWN_LIMIT
from argosy.ir.dim import lone_symbol
from argosy.ir.module import Instruction, Module, Parameter, Value
from argosy.ir.op import Env
from argosy.ir.types import TensorType, Type

__all__ = ["Interpreter", "Observer", "Watcher", "bind_symbols", "evaluate", "run_module"]

_REMEMBERED: Final = 64
"""Sets of shapes of an instruction that are known to follow its rules."""
_ADDRESSABLE: Final = 1 << 47
"""Bytes that a process can address."""

Observer: TypeAlias = Callable[[Instruction, Sequence[Any]], None]
"""Called with an instruction and its results. What kernels wrote is read when it is asked for, in this call only."""


class Watcher:
    """An observer that is also told when an instruction begins, and what is copied into and out of kernels' memory."""

    def begins(self, instruction: Instruction) -> None:
        """An instruction begins."""

    def copies(self, count: int, *, inwards: bool) -> None:
        """Bytes are copied to where kernels read them, or from where they wrote them."""

    def __call__(self, instruction: Instruction, results: Sequence[Any]) -> None:
        """An instruction has ended; see `Observer`."""


def bind_symbols(kind: Type, value: Any, env: Env, what: str) -> None:
    """Give the lone symbols among the dims of `kind` the sizes that `value` has.

    Raises UsageError where a size contradicts a number, an earlier binding or a bound; `what` names the value.
    """
    if not isinstance(kind, TensorType) or kind.dims is None or value is None:
        return
    shape = np.shape(value)
    if len(shape) != len(kind.dims):
        raise UsageError(f"expected {kind}, found the shape {list(shape)}", where=what)
    for axis, (dim, size) in enumerate(zip(kind.dims, shape, strict=True)):
        if isinstance(dim, int):
            if dim != size:
                raise UsageError(f"expected {kind}, found the shape {list(shape)}", where=what)
            continue
        symbol = lone_symbol(dim)
        if symbol is None:
            continue
        bound = env.symbols.setdefault(symbol.name, size)
        if bound != size:
            raise UsageError(f"axis {axis} is {symbol.name} = {bound} elsewhere, found {size} here", where=what)
        if size < symbol.lower or (symbol.upper is not None and size > symbol.upper):
            upper = "" if symbol.upper is None else symbol.upper
            raise UsageError(f"{symbol.name} must be in {symbol.lower}..{upper}, found {size}", where=what)


def _defines_symbols(types: tuple[Type, ...]) -> bool:
    return any(
        lone_symbol(dim) is not None for kind in types if isinstance(kind, TensorType) for dim in kind.dims or ()
    )


class Interpreter:
    """A module prepared for repeated evaluation: operands as slots, last uses known. Holds no values itself."""

    def __init__(self, module: Module) -> None:
        self._parameters = module.parameters  # not the module: `run_module` keeps this as long as that lives
        slots: dict[tuple[Instruction, int], int] = {}
        for instruction in (*module.parameters, *module.instructions):
            for index in range(len(instruction.types)):
                slots[instruction, index] = len(slots)
        self._size = len(slots)
        self._results = [slots[value.instruction, value.index] for value in module.results]
        last: dict[int, int] = {}
        read: list[tuple[int | None, ...]] = []
        for position, instruction in enumerate(module.instructions):
            operands = tuple(None if v is None else slots[v.instruction, v.index] for v in instruction.operands)
            read.append(operands)
            for slot in operands:
                if slot is not None:
                    last[slot] = position
        kept = set(self._results)
        dead: list[list[int]] = [[] for _ in module.instructions]
        for slot, position in last.items():
            if slot not in kept:
                dead[position].append(slot)
        self._steps = [
            (instruction, operands, slots.get((instruction, 0), 0), _defines_symbols(instruction.types), tuple(ends))
            for instruction, operands, ends in zip(module.instructions, read, dead, strict=True)
        ]
        self._open = {instruction: _Rules(instruction) for instruction in module.instructions if _is_open(instruction)}

    def run(self, arguments: Sequence[Any], env: Env, observe: Observer | None = None) -> tuple[Any, ...]:
        """Results of the module for `arguments`, in order.

        Errors of ops come out as ArgosyError naming the node; `observe` is called after each instruction.
        """
        values: list[Any] = [None] * self._size
        for slot, (parameter, argument) in enumerate(zip(self._parameters, arguments, strict=True)):
            bind_symbols(parameter.types[0], argument, env, parameter.names[0])
            values[slot] = argument
        watcher = observe if isinstance(observe, Watcher) else None
        with np.errstate(all="ignore"):
            for instruction, operands, first, defines, dead in self._steps:
                inputs = [None if slot is None else values[slot] for slot in operands]
                if instruction in self._open:
                    self._open[instruction].check(env, inputs)
                if watcher is not None:
                    watcher.begins(instruction)
                results = evaluate(instruction, env, inputs)
                values[first : first + len(results)] = results
                if defines:
                    for kind, result in zip(instruction.types, results, strict=True):
                        bind_symbols(kind, result, env, instruction.source or instruction.op.name)
                if observe is not None:
                    observe(instruction, results)
                for slot in dead:
                    values[slot] = None
        return tuple(values[slot] for slot in self._results)


def _is_open(instruction: Instruction) -> bool:
    """Whether an operand has dims that only the run knows, so that some rules of the op are left to it."""
    kinds = (operand.type for operand in instruction.operands if operand is not None)
    return any(
        isinstance(kind, TensorType) and not all(isinstance(d, int) for d in kind.dims or ("",)) for kind in kinds
    )


class _Rules:
    """The rules of one instruction about the shapes of its operands. Shapes that followed them are remembered."""

    def __init__(self, instruction: Instruction) -> None:
        self._instruction = instruction
        self._followed: set[tuple[Any, ...]] = set()

    def check(self, env: Env, inputs: Sequence[Any]) -> None:
        """Raise ModelError where the op's own rules have something against the real shapes."""
        instruction = self._instruction
        key = tuple([_fingerprint(value) for value in inputs])
        if key in self._followed:
            return
        objection = _objection(instruction, env, inputs)
        if objection is not None:
            raise objection.at(instruction.source or instruction.op.name).advise(_read(inputs)) from None
        if len(self._followed) < _REMEMBERED:
            self._followed.add(key)


def _fingerprint(value: Any) -> Any:
    """What the rules of ops see of a value: its shape, and few integers themselves."""
    if not isinstance(value, np.ndarray):
        return None
    return (value.shape, value.tobytes()) if value.size <= KNOWN_LIMIT and value.dtype.kind in "iub" else value.shape


def evaluate(instruction: Instruction, env: Env, inputs: Sequence[Any]) -> tuple[Any, ...]:
    """Results of one instruction; errors come out as ArgosyError naming the node."""
    try:
        results = instruction.op.evaluate_in(env, *inputs)
    except ArgosyError as error:
        raise error.at(instruction.source or instruction.op.name).advise(_read(inputs)) from None
    except MemoryError:
        raise
    except Exception as error:
        objection = _objection(instruction, env, inputs)
        if objection is not None:
            raise objection.at(instruction.source or instruction.op.name).advise(_read(inputs)) from None
        shapes = ", ".join("absent" if value is None else str(list(np.shape(value))) for value in inputs)
        raise InternalError(
            f"evaluating {instruction.op.name} failed: {type(error).__name__}: {error} (operand shapes: {shapes})",
            where=instruction.source,
        ) from error
    if len(results) != len(instruction.types):
        raise InternalError(f"{instruction.op.name} gave {len(results)} results, declared {len(instruction.types)}")
    return results


def _read(inputs: Sequence[Any]) -> str:
    """What an instruction read, for an error that has nothing better to say."""
    told = [f"{value.dtype}{list(value.shape)}" for value in inputs if isinstance(value, np.ndarray)]
    return f"it read {', '.join(told)}" if told else ""


def _objection(instruction: Instruction, env: Env, inputs: Sequence[Any]) -> ModelError | None:
    """What the op's own rules have against the real shapes: some of them may not have been known before."""
    values = [
        None if operand is None else _actual(operand.type, value)
        for operand, value in zip(instruction.operands, inputs, strict=True)
    ]
    try:
        types = instruction.op.bind(env.symbols).result_types(*values)
    except ModelError as error:
        return error
    except Exception:  # noqa: BLE001 - then the first error is the one to tell
        return None
    for kind in types:
        if isinstance(kind, TensorType) and _bytes(kind) > _ADDRESSABLE:
            return ModelError(f"the result {kind} is larger than memory can be")
    return None


def _bytes(kind: TensorType) -> int:
    sizes = [size for size in kind.dims or () if isinstance(size, int)]
    return math.prod(max(size, 1) for size in sizes) * kind.dtype.numpy.itemsize  # as numpy counts it


def _actual(kind: Type, value: Any) -> Value:
    """A parameter whose type, and whose known value, are those of `value`."""
    known = None
    if isinstance(kind, TensorType):
        array = np.asarray(value)
        kind = kind.with_dims(array.shape)
        if array.size <= KNOWN_LIMIT and array.dtype.kind in "iub":
            known = array.astype(object)
    return Instruction(Parameter(kind), (), (kind,), (known,), ("",)).result()


_PREPARED: WeakKeyDictionary[Module, Interpreter] = WeakKeyDictionary()


def run_module(module: Module, arguments: Sequence[Any], env: Env) -> tuple[Any, ...]:
    """Evaluate the body of a control op; its preparation is kept as long as the module lives."""
    prepared = _PREPARED.get(module)
    if prepared is None:
        prepared = _PREPARED.setdefault(module, Interpreter(module))
    return prepared.run(arguments, env)
