"""Runs a Plan: its blocks of steps over a table of buffers.

What a plan needs is decoded once; a run holds its values in a list of its own, so that runs may go on side
by side. This version executes evaluate, copy and shape steps, and if and loop blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from argosy.artifact.decode import Decoder, decode_symbols
from argosy.artifact.plan import (
    Block,
    CheckDim,
    ComputeDim,
    CopyStep,
    EvaluateStep,
    IfBlock,
    InputDim,
    LoopBlock,
    PlanRecord,
    ShapeStep,
    Step,
    StraightBlock,
)
from argosy.errors import ArtifactError, InternalError
from argosy.ir import dim as dims
from argosy.ir.interpreter import Observer, bind_symbols, evaluate
from argosy.ir.module import Instruction, Value
from argosy.ir.op import Env
from argosy.ir.types import Type

__all__ = ["Executor", "Runnable"]


class Runnable(Protocol):
    """What a session runs: the program itself, or a variant's plan."""

    def run(self, arguments: Sequence[Any], env: Env, observe: Observer | None = None) -> tuple[Any, ...]:
        """Results in the order of the model's outputs."""
        ...


class Executor:
    """A plan prepared for running: ops decoded, weights at hand, prepare modules run. Holds no run's values."""

    def __init__(self, plan: PlanRecord, decoder: Decoder, where: str) -> None:
        self._plan = plan
        self._decoder = decoder
        self._where = where
        self._types = [decoder.type(buffer.type) for buffer in plan.buffers]
        self._symbols = decode_symbols(plan.symbols)
        self._steps: dict[int, Instruction] = {}
        self._initial: list[Any] = [None] * len(plan.buffers)
        for number, buffer in enumerate(plan.buffers):
            if buffer.kind == "weight" and buffer.literal is not None:
                self._initial[number] = decoder.literal(buffer.literal).array()
        self._decode(plan.body)
        for entry in plan.prepare:
            self._decode(entry.body)
            with np.errstate(all="ignore"):
                self._blocks(entry.body, self._initial, Env(), None)
            for number in entry.results:
                self._initial[number] = _frozen(self._initial[number])

    def run(self, arguments: Sequence[Any], env: Env, observe: Observer | None = None) -> tuple[Any, ...]:
        """Results for the arguments, both in the order of the model's inputs and outputs."""
        values = list(self._initial)
        for binding, argument in zip(self._plan.inputs, arguments, strict=True):
            bind_symbols(self._types[binding.buffer], argument, env, binding.name)
            values[binding.buffer] = argument
        self._bind_shapes(arguments, env)
        with np.errstate(all="ignore"):
            self._blocks(self._plan.body, values, env, observe)
        return tuple(values[binding.buffer] for binding in self._plan.outputs)

    def _bind_shapes(self, arguments: Sequence[Any], env: Env) -> None:
        for entry in self._plan.shapes:
            match entry:
                case InputDim():
                    env.symbols[entry.symbol] = np.shape(arguments[entry.input])[entry.axis]
                case ComputeDim():
                    env.symbols[entry.symbol] = self._size(entry.size, env)
                case CheckDim():
                    size = np.shape(arguments[entry.input])[entry.axis]
                    if size != self._size(entry.size, env):
                        raise ArtifactError(
                            f"axis {entry.axis} must be {entry.size}, found {size}",
                            where=self._plan.inputs[entry.input].name,
                        )

    def _size(self, size: int | str, env: Env) -> int:
        if isinstance(size, int):
            return size
        return dims.evaluate(self._decoder.dim(size), env.symbols)

    def _decode(self, blocks: Sequence[Block]) -> None:
        """Decode the ops of all evaluate steps; each becomes an instruction that errors and observers can name."""
        for block in blocks:
            match block:
                case StraightBlock():
                    for step in block.steps:
                        self._decode_step(step)
                case IfBlock():
                    self._decode(block.then)
                    self._decode(block.otherwise)
                case LoopBlock():
                    self._decode(block.body)

    def _decode_step(self, step: Step) -> None:
        if isinstance(step, (CopyStep, ShapeStep)):
            return
        if not isinstance(step, EvaluateStep):
            raise ArtifactError(
                f"its plan has a {type(step).__name__}, which this version can't execute", where=self._where
            )
        op = self._decoder.op_from(step.op, step.version, step.attributes, step.source)
        types: tuple[Type, ...] = tuple(self._types[number] for number in step.results)
        operands: tuple[Value | None, ...] = ()
        self._steps[id(step)] = Instruction(op, operands, types, (None,) * len(types), (), step.source)

    def _blocks(self, blocks: Sequence[Block], values: list[Any], env: Env, observe: Observer | None) -> None:
        for block in blocks:
            match block:
                case StraightBlock():
                    for step in block.steps:
                        self._step(step, values, env, observe)
                case IfBlock():
                    taken = block.then if bool(np.reshape(values[block.condition], ())) else block.otherwise
                    self._blocks(taken, values, env, observe)
                case LoopBlock():
                    self._loop(block, values, env, observe)

    def _step(self, step: Step, values: list[Any], env: Env, observe: Observer | None) -> None:
        match step:
            case EvaluateStep():
                instruction = self._steps[id(step)]
                inputs = [None if number is None else values[number] for number in step.operands]
                results = evaluate(instruction, env, inputs)
                for number, result in zip(step.results, results, strict=True):
                    values[number] = result
                if observe is not None:
                    observe(instruction, results)
            case CopyStep():
                values[step.destination] = values[step.origin]
            case ShapeStep():
                self._bind(step, values, env)
            case _:
                raise InternalError(f"a {type(step).__name__} came through decoding", where=self._where)

    def _bind(self, step: ShapeStep, values: list[Any], env: Env) -> None:
        value = values[step.buffer]
        size = np.shape(value)[step.axis] if step.axis is not None else int(np.reshape(value, -1)[step.element])
        symbol = self._symbols.get(step.symbol)
        if symbol is not None and (size < symbol.lower or (symbol.upper is not None and size > symbol.upper)):
            raise ArtifactError(f"{step.symbol} = {size} is out of its bounds", where=self._where)
        env.symbols[step.symbol] = size

    def _loop(self, block: LoopBlock, values: list[Any], env: Env, observe: Observer | None) -> None:
        limit = None if block.trip_count is None else int(np.reshape(values[block.trip_count], ()))
        go = block.condition is None or bool(np.reshape(values[block.condition], ()))
        for carried in block.carried:
            values[carried.current] = values[carried.initial]
        collected: list[list[Any]] = [[] for _ in block.collected]
        iteration = 0
        while go and (limit is None or iteration < limit):
            if block.iteration is not None:
                values[block.iteration] = np.asarray(iteration, np.int64)
            self._blocks(block.body, values, env, observe)
            for store, entry in zip(collected, block.collected, strict=True):
                store.append(values[entry.element])
            following = [values[carried.next] for carried in block.carried]
            for carried, value in zip(block.carried, following, strict=True):
                values[carried.current] = value
            go = block.next_condition is None or bool(np.reshape(values[block.next_condition], ()))
            iteration += 1
        for carried in block.carried:
            values[carried.final] = values[carried.current]
        for store, entry in zip(collected, block.collected, strict=True):
            values[entry.result] = self._stacked(store[::-1] if entry.reverse else store, entry.axis, entry.result)

    def _stacked(self, elements: list[Any], axis: int, result: int) -> Any:
        if elements:
            return np.stack(elements, axis)
        kind = self._types[result]
        shape = [size if isinstance(size, int) else 0 for size in getattr(kind, "dims", None) or (0,)]
        shape[axis] = 0
        return np.empty(shape, getattr(kind, "dtype").numpy)  # noqa: B009 - a collected value is a tensor


def _frozen(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value
