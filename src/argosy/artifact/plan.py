"""The Plan of a variant: what the runtime does, step by step, in a form that needs no compiler.

A plan is a tree of blocks (straight, if, loop) of steps over numbered buffers. Sizes and grids are numbers,
or dim expressions (text) over the plan's symbols, which the shape program gives their values once a run;
a symbol that depends on data gets its value from a `ShapeStep`. Any change of a weight is a *prepare module*,
run once at load. Only `EvaluateStep` needs Python. `plan_check` says which plans are valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from argosy.artifact.arguments import (
    Argument,
    HiddenArgument,
    PointerArgument,
    ScalarArgument,
    ScratchArgument,
    Size,
    TensorMapArgument,
)
from argosy.artifact.program import (
    LiteralRef,
    LiteralValue,
    ModuleRecord,
    SymbolRecord,
    Value,
    literal_refs,
    values_in,
)
from argosy.artifact.record import Codec, Record

__all__ = [
    "HOST_FORMS",
    "PLAN",
    "ArenaRecord",
    "Argument",
    "BindingRecord",
    "Block",
    "BufferKind",
    "BufferRecord",
    "CallStep",
    "CarriedRecord",
    "CheckDim",
    "CheckStep",
    "CodeRecord",
    "CollectedRecord",
    "ComputeDim",
    "CopyStep",
    "EvaluateStep",
    "HiddenArgument",
    "IfBlock",
    "InputDim",
    "LaunchStep",
    "LoopBlock",
    "PlanRecord",
    "PointerArgument",
    "PrepareRecord",
    "RunStep",
    "ScalarArgument",
    "ScratchArgument",
    "ShapeEntry",
    "ShapeStep",
    "Size",
    "SizeDemand",
    "Step",
    "StraightBlock",
    "TensorMapArgument",
    "plan_refs",
    "steps_in",
]


# -------------------------------------------------------------------------------------------- buffers

BufferKind: TypeAlias = Literal["input", "value", "weight", "prepared", "planned", "pooled", "view"]


class ArenaRecord(Record, frozen=True):
    """A block of memory that holds planned buffers, each at a multiple of `alignment`.

    Neither its size nor where a buffer lies in it is written down: `argosy.artifact.lifetimes` tells how long each
    buffer is needed, and the runtime packs them once for each set of sizes that it meets (docs/adr/0003).
    """

    space: Literal["host", "device"]
    alignment: int


class BufferRecord(Record, frozen=True):
    """Where a value lies. Its number is its place in the plan's list.

    input: given by the caller · value: a Python object that an evaluate step makes · weight: `literal`, as in
    the file · prepared: made by a prepare module at load · planned: in arena number `arena` · pooled: taken from
    a caching pool when written, because its size depends on data · view: a part of buffer `base` (a lower
    number), `shift` bytes after its start.

    `size` is in bytes and may exceed what the type takes (padding, blocked layouts); 0 stands for what the dense
    row-major tensor takes, sub-byte elements packed. `order` is how the axes of a tensor lie, outermost first; empty
    where that is row-major, or told by the size. What a view writes, its base holds: a concatenation is
    written through views, a split or a reshape reads through them, an op in place writes a view of its operand.
    """

    kind: BufferKind
    type: str
    literal: LiteralValue | None = None
    arena: int | None = None
    size: Size = 0
    base: int | None = None
    shift: Size = 0
    order: tuple[int, ...] = ()


class BindingRecord(Record, frozen=True):
    """An input or output of the plan: its name, and the buffer that holds it."""

    name: str
    buffer: int


HOST_FORMS: Final = frozenset({"elf", "macho", "pe"})
"""Forms of code that call steps call."""


class CodeRecord(Record, frozen=True):
    """A code object: its entry in the variant's folder (`code/…`), its form, and its assembly's entry if kept."""

    path: str
    form: Literal["elf", "macho", "pe", "hsaco", "cubin", "ptx"]
    assembly: str = ""


# ------------------------------------------------------------------------------------- shape program


class InputDim(Record, frozen=True, tag_field="kind", tag="input"):
    """Bind `symbol` to dim `axis` of input number `input`."""

    symbol: str
    input: int
    axis: int


class ComputeDim(Record, frozen=True, tag_field="kind", tag="compute"):
    """Bind `symbol` to the value of an expression over symbols bound before."""

    symbol: str
    size: Size


class CheckDim(Record, frozen=True, tag_field="kind", tag="check"):
    """Refuse the run unless dim `axis` of input number `input` equals `size`."""

    input: int
    axis: int
    size: Size


ShapeEntry: TypeAlias = InputDim | ComputeDim | CheckDim


# ---------------------------------------------------------------------------------------------- steps


class EvaluateStep(Record, frozen=True, tag_field="kind", tag="evaluate"):
    """Evaluate an op on buffers; operands of None are absent. Modules in attributes are the plan's."""

    op: str
    version: int
    results: tuple[int, ...]
    operands: tuple[int | None, ...] = ()
    attributes: dict[str, Value] = msgspec.field(default_factory=dict)
    source: str = ""


class CopyStep(Record, frozen=True, tag_field="kind", tag="copy"):
    """Make buffer `destination` hold what `origin` holds, across memory spaces where they differ."""

    origin: int
    destination: int


class ShapeStep(Record, frozen=True, tag_field="kind", tag="shape"):
    """Bind `symbol` to dim `axis` of the value in `buffer`, or (`axis` None) to its element number `element`."""

    symbol: str
    buffer: int
    axis: int | None = None
    element: int = 0


class SizeDemand(Record, frozen=True):
    """What must hold of two sizes: that they are equal, or as `ones` says, that one of them is 1.

    Where they are `planned` as the larger of two that were unknown, 1 and 0 do not fit. `axis` is told, -1 for none.
    """

    left: Size
    right: Size
    axis: int = -1
    ones: Literal["none", "left", "right", "both", "planned"] = "none"


class CheckStep(Record, frozen=True, tag_field="kind", tag="check"):
    """Refuse the run unless sizes that it knows by now fit each other, as the node `source` needs it."""

    demands: tuple[SizeDemand, ...]
    source: str = ""


class RunStep(Record, frozen=True, tag_field="kind", tag="run"):
    """Put the number of the draw, 64 bits as an int64, into `buffer`: random numbers depend on it.

    It is the number of the run; in a loop, that of the iterations around the step is mixed in (docs/adr/0004).
    """

    buffer: int


class LaunchStep(Record, frozen=True, tag_field="kind", tag="launch"):
    """Start a GPU kernel. `arguments` cover the whole parameter block, hidden arguments included.

    `grid` counts blocks, `block` threads; `shared` is dynamic shared memory and `private` scratch per thread, both
    in bytes. It waits for the `waits` events and records the event `signal`.

    For those who measure, `operations` are the multiplications and additions of the products that it does, by element
    type of their operands, as the ops mean them; `whole` says that it touches every element of its buffers, but where
    `parts` says for each of `reads`, then of `writes`, how many it touches at least (None: all).
    """

    code: int
    entry: str
    grid: tuple[Size, Size, Size]
    block: tuple[int, int, int]
    parameter_bytes: int
    arguments: tuple[Argument, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    shared: int = 0
    private: int = 0
    cluster: tuple[int, int, int] | None = None
    cooperative: bool = False
    programmatic: bool = False
    stream: int = 0
    waits: tuple[int, ...] = ()
    signal: int | None = None
    source: str = ""
    operations: dict[str, Size] = msgspec.field(default_factory=dict)
    whole: bool = False
    parts: tuple[Size | None, ...] = ()


class CallStep(Record, frozen=True, tag_field="kind", tag="call"):
    """Call a CPU function for chunks 0 … `chunks`-1, which workers claim; its one argument is the parameter block."""

    code: int
    entry: str
    chunks: Size
    parameter_bytes: int
    arguments: tuple[Argument, ...]
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    scratch: int = 0
    """Bytes of scratch memory for each worker."""
    source: str = ""
    operations: dict[str, Size] = msgspec.field(default_factory=dict)
    """See `LaunchStep`, as for `whole` and `parts`."""
    whole: bool = False
    parts: tuple[Size | None, ...] = ()


Step: TypeAlias = EvaluateStep | CopyStep | ShapeStep | CheckStep | RunStep | LaunchStep | CallStep


# --------------------------------------------------------------------------------------------- blocks


class StraightBlock(Record, frozen=True, tag_field="kind", tag="straight"):
    """Steps in order. `capture` says that shapes are fixed, so that the block is one graph capture."""

    steps: tuple[Step, ...]
    capture: bool = False


class IfBlock(Record, frozen=True, tag_field="kind", tag="if"):
    """One of two sequences of blocks, by the bool in buffer `condition`. What both write is written after it."""

    condition: int
    then: tuple[Block, ...]
    otherwise: tuple[Block, ...]
    source: str = ""


class CarriedRecord(Record, frozen=True):
    """A value that goes round a loop, by buffer.

    `initial` is copied to `current` before the first iteration, `next` after each; `final` gets the last one.
    """

    initial: int
    current: int
    next: int
    final: int


class CollectedRecord(Record, frozen=True):
    """A value of each iteration, stacked along a new axis `axis`; `reverse` stacks the last iteration first."""

    element: int
    result: int
    axis: int = 0
    reverse: bool = False


class LoopBlock(Record, frozen=True, tag_field="kind", tag="loop"):
    """Repeat `body` while fewer than `trip_count` iterations ran and the condition holds; either may be absent.

    All fields are buffers: `trip_count` an integer, `condition` a bool read before the first iteration,
    `next_condition` read after each; `iteration` receives the number of the iteration.
    """

    body: tuple[Block, ...]
    trip_count: int | None = None
    condition: int | None = None
    next_condition: int | None = None
    iteration: int | None = None
    carried: tuple[CarriedRecord, ...] = ()
    collected: tuple[CollectedRecord, ...] = ()
    source: str = ""


Block: TypeAlias = StraightBlock | IfBlock | LoopBlock


class PrepareRecord(Record, frozen=True):
    """Makes the `results` (prepared buffers) from weights and earlier prepared buffers, once at load."""

    name: str
    results: tuple[int, ...]
    body: tuple[Block, ...]


class PlanRecord(Record, frozen=True):
    """Everything that a session does for one variant."""

    inputs: tuple[BindingRecord, ...]
    outputs: tuple[BindingRecord, ...]
    buffers: tuple[BufferRecord, ...]
    body: tuple[Block, ...]
    symbols: tuple[SymbolRecord, ...] = ()
    shapes: tuple[ShapeEntry, ...] = ()
    arenas: tuple[ArenaRecord, ...] = ()
    code: tuple[CodeRecord, ...] = ()
    prepare: tuple[PrepareRecord, ...] = ()
    modules: tuple[ModuleRecord, ...] = ()
    streams: int = 0
    events: int = 0


PLAN: Final = Codec(PlanRecord)


def steps_in(blocks: Sequence[Block]) -> Iterator[Step]:
    """Every step in `blocks` and the blocks inside them, in order."""
    for block in blocks:
        if isinstance(block, StraightBlock):
            yield from block.steps
        elif isinstance(block, IfBlock):
            yield from steps_in(block.then)
            yield from steps_in(block.otherwise)
        else:
            yield from steps_in(block.body)


def plan_refs(plan: PlanRecord) -> Iterator[LiteralRef]:
    """Every reference to a weight in a plan: of its buffers, its modules and its steps, repeated ones too."""
    yield from (buffer.literal for buffer in plan.buffers if isinstance(buffer.literal, LiteralRef))
    yield from literal_refs(plan.modules)
    for blocks in (*(module.body for module in plan.prepare), plan.body):
        for step in steps_in(blocks):
            if isinstance(step, EvaluateStep):
                for attribute in step.attributes.values():
                    yield from (value for value in values_in(attribute) if isinstance(value, LiteralRef))
