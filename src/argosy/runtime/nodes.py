"""The blocks of a plan as the executor runs them: ops decoded, runs of calls gathered into one foreign call each."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from argosy.artifact.decode import Decoder
from argosy.artifact.plan import (
    Block,
    CallStep,
    CheckStep,
    CopyStep,
    EvaluateStep,
    HiddenArgument,
    IfBlock,
    LaunchStep,
    LoopBlock,
    PointerArgument,
    RunStep,
    ScalarArgument,
    ScratchArgument,
    ShapeStep,
    Size,
    StraightBlock,
    TensorMapArgument,
)
from argosy.errors import ArtifactError, InternalError
from argosy.ir.module import Instruction, Parameter, Value
from argosy.ir.op import Op
from argosy.ir.types import Type
from argosy.runtime.buffers import BufferTable

__all__ = [
    "Branch",
    "Call",
    "Calls",
    "Evaluation",
    "KernelCall",
    "Launch",
    "Launches",
    "Loop",
    "Node",
    "build_nodes",
    "kernel_family",
]


@dataclass(frozen=True, slots=True)
class KernelCall(Op):
    """What stands for a kernel where a run is watched. It is no op of the IR."""

    name = "call"
    step: CallStep | LaunchStep

    @property
    def entry(self) -> str:
        """The name of the kernel."""
        return self.step.entry

    @property
    def family(self) -> str:
        """What the kernel is called by, without the hash at the end of its name."""
        return kernel_family(self.entry)

    def infer(self, *operands: Value | None) -> tuple[Type, ...]:
        raise InternalError(f"the kernel {self.entry} has no types of its own")


def kernel_family(entry: str) -> str:
    """What kernels that do the same are called by: a name without the hash at its end."""
    return entry.rpartition("_")[0] or entry


class Call(msgspec.Struct, frozen=True):
    """A call step with its arguments by kind. `fixed` says that all of them are known before the run's first step.

    `instruction` stands for it where a run is watched.
    """

    step: CallStep
    pointers: tuple[PointerArgument, ...]
    scalars: tuple[ScalarArgument, ...]
    fixed: bool
    instruction: Instruction


class Calls(msgspec.Struct, frozen=True, eq=False):
    """Calls that follow each other: one foreign call. `number` counts those whose calls are all fixed; None for others.

    `stale` are the buffers that they write whose tensors must be looked up anew, `pooled` those to be allocated.
    """

    calls: tuple[Call, ...]
    number: int | None
    stale: tuple[int, ...]
    pooled: tuple[int, ...]


class Launch(msgspec.Struct, frozen=True):
    """A launch step; see `Call`."""

    step: LaunchStep
    fixed: bool
    instruction: Instruction


class Launches(msgspec.Struct, frozen=True, eq=False):
    """Launches that follow each other; see `Calls`."""

    launches: tuple[Launch, ...]
    number: int | None
    pooled: tuple[int, ...]


class Evaluation(msgspec.Struct, frozen=True, eq=False):
    """An evaluate step. `owned` says that its results outlive the run's memory, so operands there are copied."""

    instruction: Instruction
    operands: tuple[int | None, ...]
    results: tuple[int, ...]
    owned: bool


class Branch(msgspec.Struct, frozen=True, eq=False):
    """An if block."""

    condition: int
    then: tuple[Node, ...]
    otherwise: tuple[Node, ...]


class Loop(msgspec.Struct, frozen=True, eq=False):
    """A loop block."""

    block: LoopBlock
    body: tuple[Node, ...]


Node: TypeAlias = Calls | Launches | Evaluation | CopyStep | ShapeStep | CheckStep | RunStep | Branch | Loop


def build_nodes(
    blocks: Sequence[Block], table: BufferTable, decoder: Decoder, where: str, *, launches: bool = False
) -> tuple[Node, ...]:
    """The nodes of `blocks`, whose kernels are called, or on a GPU launched.

    Raises ArtifactError for ops that this version can't run, and for steps that the device can't.
    """
    return _Builder(table, decoder, where, launches=launches).blocks(blocks)


class _Builder:
    def __init__(self, table: BufferTable, decoder: Decoder, where: str, *, launches: bool) -> None:
        self._table = table
        self._decoder = decoder
        self._where = where
        self._launches = launches
        self._fixed_runs = 0

    def blocks(self, blocks: Sequence[Block]) -> tuple[Node, ...]:
        nodes: list[Node] = []
        for block in blocks:
            match block:
                case StraightBlock():
                    nodes += self._straight(block)
                case IfBlock():
                    nodes.append(Branch(block.condition, self.blocks(block.then), self.blocks(block.otherwise)))
                case LoopBlock():
                    nodes.append(Loop(block, self.blocks(block.body)))
        return tuple(nodes)

    def _straight(self, block: StraightBlock) -> list[Node]:
        nodes: list[Node] = []
        waiting: list[Call | Launch] = []

        def flush() -> None:
            if waiting:
                nodes.append(self._together(waiting))
                waiting.clear()

        for step in block.steps:
            if isinstance(step, (CallStep, LaunchStep)):
                kernel = self._kernel(step)
                if waiting and waiting[0].fixed != kernel.fixed:
                    flush()
                waiting.append(kernel)
                continue
            if isinstance(step, CheckStep):
                nodes.append(step)  # before what waits: sizes do not change by it, and it stays one run of kernels
                continue
            flush()
            match step:
                case EvaluateStep():
                    nodes.append(self._evaluation(step))
                case CopyStep() | ShapeStep() | RunStep():
                    nodes.append(step)
        flush()
        return nodes

    def _kernel(self, step: CallStep | LaunchStep) -> Call | Launch:
        if isinstance(step, LaunchStep) != self._launches:
            what = "calls functions of a CPU" if self._launches else "starts GPU kernels"
            raise ArtifactError(f"its plan {what}, which this device can't", where=self._where)
        pointers: list[PointerArgument] = []
        scalars: list[ScalarArgument] = []
        maps: list[TensorMapArgument] = []
        for argument in step.arguments:
            match argument:
                case PointerArgument():
                    pointers.append(argument)
                case ScalarArgument():
                    scalars.append(argument)
                case ScratchArgument() | HiddenArgument(name="fault") if self._launches:
                    pass
                case TensorMapArgument() if self._launches:
                    maps.append(argument)
                case _:
                    kind = type(argument).__name__
                    raise ArtifactError(f"the call of {step.entry} takes a {kind}", where=self._where)
        counts = step.grid if isinstance(step, LaunchStep) else (step.chunks,)
        sizes: list[Size] = [*counts, *(p.shift for p in pointers), *(s.value for s in scalars)]
        sizes += [size for each in maps for size in (*each.dims, *each.strides)]
        symbols: set[str] = set().union(*(self._table.sizes.symbols(size) for size in sizes))
        placed = [*(pointer.buffer for pointer in pointers), *(each.buffer for each in maps)]
        symbols = symbols.union(*map(self._table.place_symbols, placed))
        pooled = any(self._table[number].kind == "pooled" for number in (*step.reads, *step.writes))
        fixed = not pooled and not symbols & self._table.late
        read = tuple(_typed(self._table[number].type) for number in step.reads)
        instruction = dataclasses.replace(self._instruction(KernelCall(step), step), operands=read)
        if isinstance(step, LaunchStep):
            return Launch(step, fixed, instruction)
        return Call(step, tuple(pointers), tuple(scalars), fixed, instruction)

    def _together(self, kernels: Sequence[Call | Launch]) -> Calls | Launches:
        number = None
        if kernels[0].fixed:
            number, self._fixed_runs = self._fixed_runs, self._fixed_runs + 1
        roots = dict.fromkeys(self._table[number].root for kernel in kernels for number in kernel.step.writes)
        pooled = tuple(root for root in roots if self._table[root].kind == "pooled")
        launches = tuple(kernel for kernel in kernels if isinstance(kernel, Launch))
        if launches:
            return Launches(launches, number, pooled)
        calls = tuple(kernel for kernel in kernels if isinstance(kernel, Call))
        return Calls(calls, number, tuple(number for root in roots for number in self._table.unsettled(root)), pooled)

    def _evaluation(self, step: EvaluateStep) -> Evaluation:
        op = self._decoder.op_from(step.op, step.version, step.attributes, step.source)
        # Where numpy fails, the op's own rules say what is wrong with the operands.
        operands = tuple(None if number is None else _typed(self._table[number].type) for number in step.operands)
        instruction = dataclasses.replace(self._instruction(op, step), operands=operands)
        owned = any(self._table.is_kept(number) for number in step.results)
        return Evaluation(instruction, step.operands, step.results, owned)

    def _instruction(self, op: Op, step: EvaluateStep | CallStep | LaunchStep) -> Instruction:
        """What errors and observers name a step by."""
        results = step.results if isinstance(step, EvaluateStep) else step.writes
        types = tuple(self._table[number].type for number in results)
        return Instruction(op, (), types, (None,) * len(types), (), step.source)


def _typed(kind: Type) -> Value:
    """A value that has a type and nothing else."""
    return Instruction(Parameter(kind), (), (kind,), (None,), ("",)).result()
