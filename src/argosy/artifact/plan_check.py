"""Which plans are valid: what the runtime may rely on before it runs one.

Every index is in range, every buffer is written before it is read (on every path through the blocks), weights,
inputs and prepared buffers are written by nobody else, arguments lie within their parameter block without overlap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from argosy.artifact.plan import (
    HOST_FORMS,
    PLAN,
    Argument,
    Block,
    BufferKind,
    BufferRecord,
    CallStep,
    CheckDim,
    CheckStep,
    CopyStep,
    EvaluateStep,
    HiddenArgument,
    IfBlock,
    InputDim,
    LaunchStep,
    LoopBlock,
    PlanRecord,
    PointerArgument,
    RunStep,
    ScalarArgument,
    ScratchArgument,
    ShapeStep,
    Step,
    StraightBlock,
    TensorMapArgument,
)
from argosy.artifact.program_check import attributes_modules, check_attributes, check_modules, check_symbols
from argosy.artifact.record import check_dtype, check_size, check_text, refuse
from argosy.artifact.zipformat import name_fault
from argosy.ir.dtype import DTYPES

__all__ = ["check_plan", "read_plan"]

MAX_BLOCK_DEPTH: Final = 64
"""Depth of blocks within blocks."""
_GIVEN: Final = frozenset({"input", "weight", "prepared"})
"""Buffers that the steps of the body may only read."""


def read_plan(raw: bytes, *, where: str, exact: bool = True) -> PlanRecord:
    """The valid plan in MessagePack `raw`; raises ArtifactError naming the spot where it is not valid."""
    plan = PLAN.from_msgpack(raw, where=where, exact=exact)
    check_plan(plan, where)
    return plan


def check_plan(plan: PlanRecord, where: str) -> None:
    """Raise ArtifactError, naming the spot, unless `plan` is valid."""
    check_symbols(plan.symbols, where)
    held = check_modules(plan.modules, f"{where}: modules")
    _check_buffers(plan, where)
    _check_code(plan, where)
    _check_shapes(plan, where)
    flow = _Flow(plan, held)
    flow.check_prepare(f"{where}: prepare")
    flow.check_body(where)


def _check_index(index: int, count: int, spot: str, what: str) -> None:
    if not 0 <= index < count:
        raise refuse(spot, f"{what} is number {index} of {count}")


def _check_buffers(plan: PlanRecord, where: str) -> None:
    for number, arena in enumerate(plan.arenas):
        if not 0 < arena.alignment <= 1 << 20 or arena.alignment & (arena.alignment - 1):
            raise refuse(f"{where}: arena {number}", f"its alignment is {arena.alignment}, not a power of two")
    for number, buffer in enumerate(plan.buffers):
        spot = f"{where}: buffer {number}"
        check_text(buffer.type, spot, "its type")
        check_size(buffer.size, spot, "its size")
        check_size(buffer.shift, spot, "its shift")
        if (buffer.literal is not None) != (buffer.kind == "weight"):
            raise refuse(spot, "a weight has a literal, and no other buffer has one")
        if (buffer.arena is not None) != (buffer.kind == "planned"):
            raise refuse(spot, "a planned buffer lies in an arena, and no other buffer does")
        if (buffer.base is not None) != (buffer.kind == "view") or (buffer.shift and buffer.base is None):
            raise refuse(spot, "a view has a base, and no other buffer has one")
        if sorted(buffer.order) != [*range(len(buffer.order))]:
            raise refuse(spot, f"its order {list(buffer.order)} does not name each axis once")
        if buffer.literal is not None:
            check_attributes({"literal": buffer.literal}, spot)
        if buffer.arena is not None:
            _check_index(buffer.arena, len(plan.arenas), spot, "its arena")
        if buffer.base is not None:
            _check_index(buffer.base, number, spot, "its base")
            _check_view(buffer, plan.buffers[buffer.base], spot)
    for what, bindings in (("input", plan.inputs), ("output", plan.outputs)):
        names: set[str] = set()
        for number, binding in enumerate(bindings):
            spot = f"{where}: {what} {number}"
            check_text(binding.name, spot, "its name")
            if binding.name in names:
                raise refuse(spot, f"another {what} is called {binding.name[:80]!r}")
            names.add(binding.name)
            _check_index(binding.buffer, len(plan.buffers), spot, "its buffer")
            if what == "input" and plan.buffers[binding.buffer].kind != "input":
                raise refuse(spot, f"its buffer {binding.buffer} is not an input buffer")
    given = [binding.buffer for binding in plan.inputs]
    if sorted(given) != [number for number, buffer in enumerate(plan.buffers) if buffer.kind == "input"]:
        raise refuse(where, "the input buffers are not those of the inputs, each once")


def _check_view(view: BufferRecord, base: BufferRecord, spot: str) -> None:
    if base.kind == "value":
        raise refuse(spot, f"its base is buffer {view.base}, a Python object")
    if isinstance(view.shift, int) and isinstance(view.size, int) and isinstance(base.size, int) and base.size:
        end = view.shift + view.size
        if end > base.size:
            raise refuse(spot, f"it ends at {end}, its base at {base.size}")


def _check_code(plan: PlanRecord, where: str) -> None:
    for number, code in enumerate(plan.code):
        for path, folder in ((code.path, "code/"), (code.assembly, "asm/")):
            if (path or folder == "code/") and (not path.startswith(folder) or name_fault(path)):
                raise refuse(f"{where}: code object {number}", f"{path[:80]!r} is not the name of an entry in {folder}")


def _check_shapes(plan: PlanRecord, where: str) -> None:
    declared = {symbol.name for symbol in plan.symbols}
    bound: set[str] = set()
    for number, entry in enumerate(plan.shapes):
        spot = f"{where}: shape program, entry {number}"
        if isinstance(entry, (InputDim, CheckDim)):
            _check_index(entry.input, len(plan.inputs), spot, "its input")
            _check_index(entry.axis, 64, spot, "its axis")
        if not isinstance(entry, InputDim):
            check_size(entry.size, spot, "its size")
        if not isinstance(entry, CheckDim):
            if entry.symbol not in declared:
                raise refuse(spot, f"the symbol {entry.symbol[:80]!r} is not declared")
            if entry.symbol in bound:
                raise refuse(spot, f"the symbol {entry.symbol[:80]!r} is bound twice")
            bound.add(entry.symbol)


class _Flow:
    """Follows the blocks of a plan and knows which buffers are written at each point.

    `written` is one set for the whole walk; a branch records what it adds and takes it back at its end, so
    the cost is linear in the steps, however many branches there are.
    """

    def __init__(self, plan: PlanRecord, held: set[int]) -> None:
        self._plan = plan
        self._held = held
        self._bases = [buffer.base for buffer in plan.buffers]
        # A view is as its base: what may be written through it, and what it needs.
        self._kinds: list[BufferKind] = []
        for buffer in plan.buffers:
            self._kinds.append(buffer.kind if buffer.base is None else self._kinds[buffer.base])
        self._declared = {symbol.name for symbol in plan.symbols}
        self._written = {number for number, buffer in enumerate(plan.buffers) if buffer.kind == "weight"}
        self._added: list[int] = []
        self._preparing = False

    def check_prepare(self, where: str) -> None:
        """Check the prepare modules in order; afterwards weights and prepared buffers are written, no others."""
        self._preparing = True
        for module in self._plan.prepare:
            spot = f"{where} module {module.name[:80]!r}"
            check_text(module.name, spot, "its name")
            with self._branch() as added:
                self._check_blocks(module.body, spot, 0)
                self._read(module.results, spot)
                if any(self._plan.buffers[result].kind != "prepared" for result in module.results):
                    raise refuse(spot, "a result is not a prepared buffer")
            prepared = {number for number in added if self._plan.buffers[number].kind == "prepared"}
            if prepared != set(module.results):
                raise refuse(spot, "it does not write its results, all of them and no other prepared buffer")
            self._written |= prepared
        self._preparing = False
        for number, buffer in enumerate(self._plan.buffers):
            if buffer.kind == "prepared" and number not in self._written:
                raise refuse(where, f"no prepare module makes buffer {number}")

    def check_body(self, where: str) -> None:
        """Check the blocks of the plan, and that its outputs are written when they end."""
        self._written |= {binding.buffer for binding in self._plan.inputs}
        self._check_blocks(self._plan.body, f"{where}: body", 0)
        self._read((binding.buffer for binding in self._plan.outputs), f"{where}: outputs")

    # ------------------------------------------------------------------------------------- state

    @contextmanager
    def _branch(self) -> Iterator[list[int]]:
        """What is written inside counts as unwritten again afterwards; the list then holds it."""
        outer, self._added = self._added, []
        try:
            yield self._added
        finally:
            self._written.difference_update(self._added)
            self._added = outer

    def _read(self, buffers: Iterable[int], spot: str) -> None:
        for number in buffers:
            _check_index(number, len(self._kinds), spot, "a buffer")
            if not any(buffer in self._written for buffer in self._with_bases(number)):
                raise refuse(spot, f"it reads buffer {number}, which is not written on every path to it")

    def _write(self, buffers: Iterable[int], spot: str) -> None:
        for number in buffers:
            _check_index(number, len(self._kinds), spot, "a buffer")
            kind = self._kinds[number]
            if kind in _GIVEN and not (self._preparing and kind == "prepared" and self._is_new(number)):
                raise refuse(spot, f"it writes buffer {number}, which is of kind {kind}")
            # Whoever writes a part of a buffer is trusted to write all of it that is read.
            for buffer in self._with_bases(number):
                if buffer not in self._written:
                    self._written.add(buffer)
                    self._added.append(buffer)

    def _with_bases(self, number: int) -> Iterator[int]:
        """A buffer and what it is a view of."""
        base: int | None = number
        while base is not None:
            yield base
            base = self._bases[base]

    def _is_new(self, number: int) -> bool:
        """Whether the prepared buffer that holds `number` was not made by an earlier module."""
        root = max(self._with_bases(number), key=lambda buffer: -buffer)
        return root not in self._written or root in self._added

    # ------------------------------------------------------------------------------------ blocks

    def _check_blocks(self, blocks: Sequence[Block], spot: str, depth: int) -> None:
        if depth > MAX_BLOCK_DEPTH:
            raise refuse(spot, f"blocks nest deeper than {MAX_BLOCK_DEPTH}")
        for number, block in enumerate(blocks):
            place = f"{spot}, block {number}"
            if isinstance(block, StraightBlock):
                for position, step in enumerate(block.steps):
                    self._check_step(step, f"{place}, step {position} ({_step_words(step)})")
            elif isinstance(block, IfBlock):
                self._check_if(block, f"{place} (if)", depth)
            else:
                self._check_loop(block, f"{place} (loop)", depth)

    def _check_if(self, block: IfBlock, spot: str, depth: int) -> None:
        self._read((block.condition,), spot)
        check_text(block.source, spot, "its source", empty=True)
        with self._branch() as then:
            self._check_blocks(block.then, f"{spot}, then", depth + 1)
        with self._branch() as otherwise:
            self._check_blocks(block.otherwise, f"{spot}, else", depth + 1)
        both = set(then).intersection(otherwise)
        self._write(sorted(both), spot)

    def _check_loop(self, block: LoopBlock, spot: str, depth: int) -> None:
        check_text(block.source, spot, "its source", empty=True)
        self._read((n for n in (block.trip_count, block.condition) if n is not None), spot)
        self._read((carried.initial for carried in block.carried), spot)
        half = block.condition is None and block.next_condition is not None
        if half or (block.trip_count is None and block.next_condition is None):
            raise refuse(spot, "it has neither a trip count nor a condition that changes")
        with self._branch():
            self._write((carried.current for carried in block.carried), spot)
            self._write((n for n in (block.iteration,) if n is not None), spot)
            self._check_blocks(block.body, f"{spot}, body", depth + 1)
            self._read((carried.next for carried in block.carried), spot)
            self._read((collected.element for collected in block.collected), spot)
            self._read((n for n in (block.next_condition,) if n is not None), spot)
        self._write((carried.final for carried in block.carried), spot)
        self._write((collected.result for collected in block.collected), spot)
        for collected in block.collected:
            _check_index(collected.axis, 64, spot, "the axis of a collected value")

    # ------------------------------------------------------------------------------------- steps

    def _check_step(self, step: Step, spot: str) -> None:
        if isinstance(step, EvaluateStep):
            check_text(step.op, spot, "its op")
            check_text(step.source, spot, "its source", empty=True)
            check_attributes(step.attributes, spot)
            for index in attributes_modules(step.attributes):
                _check_index(index, len(self._plan.modules), spot, "a module")
                if index in self._held:
                    raise refuse(spot, f"it holds module {index}, which is held already")
                self._held.add(index)
            self._read((number for number in step.operands if number is not None), spot)
            self._write(step.results, spot)
        elif isinstance(step, CopyStep):
            self._read((step.origin,), spot)
            self._write((step.destination,), spot)
        elif isinstance(step, CheckStep):
            check_text(step.source, spot, "its source", empty=True)
            for demand in step.demands:
                check_size(demand.left, spot, "a size")
                check_size(demand.right, spot, "a size")
                _check_index(demand.axis + 1, 65, spot, "an axis, counted from -1,")
        elif isinstance(step, RunStep):
            self._write((step.buffer,), spot)
        elif isinstance(step, ShapeStep):
            self._read((step.buffer,), spot)
            if step.symbol not in self._declared:
                raise refuse(spot, f"the symbol {step.symbol[:80]!r} is not declared")
            if step.axis is not None:
                _check_index(step.axis, 64, spot, "its axis")
            check_size(step.element, spot, "its element")
        else:
            self._check_code_step(step, spot)

    def _check_code_step(self, step: LaunchStep | CallStep, spot: str) -> None:
        _check_index(step.code, len(self._plan.code), spot, "its code object")
        check_text(step.entry, spot, "the name of its function")
        check_text(step.source, spot, "its source", empty=True)
        form = self._plan.code[step.code].form
        if (form in HOST_FORMS) != isinstance(step, CallStep):
            raise refuse(spot, f"its code object is of the form {form}")
        self._check_arguments(step, spot)
        self._read(step.reads, spot)
        self._write(step.writes, spot)
        for number in (*step.reads, *step.writes):
            if self._kinds[number] == "value":
                raise refuse(spot, f"it takes buffer {number}, a Python object")
        for dtype, count in step.operations.items():
            check_dtype(dtype, spot)
            check_size(count, spot, "its number of operations")
        if len(step.parts) not in (0, len(step.reads) + len(step.writes)):
            raise refuse(spot, f"it tells parts of {len(step.parts)} buffers, not of each that it reads and writes")
        for part in step.parts:
            check_size(part or 0, spot, "its part of a buffer")
        if isinstance(step, CallStep):
            check_size(step.chunks, spot, "its number of chunks")
            check_size(step.scratch, spot, "its scratch")
            return
        for size in step.grid:
            check_size(size, spot, "its grid")
        for count in (*step.block, *(step.cluster or ())):
            _check_index(count - 1, 1024, spot, "a block or cluster dim")
        check_size(step.shared, spot, "its shared memory")
        check_size(step.private, spot, "its private memory")
        _check_index(step.stream, max(1, self._plan.streams), spot, "its stream")
        for event in (*step.waits, *(() if step.signal is None else (step.signal,))):
            _check_index(event, self._plan.events, spot, "an event")

    def _check_arguments(self, step: LaunchStep | CallStep, spot: str) -> None:
        """Arguments ascend within the parameter block, and point to buffers that the step declares."""
        touched = {*step.reads, *step.writes}
        end = 0
        for number, argument in enumerate(step.arguments):
            place = f"{spot}, argument {number}"
            size = _argument_size(argument, place)
            if not end <= argument.offset <= step.parameter_bytes - size or step.parameter_bytes >= 1 << 16:
                raise refuse(place, f"it lies at {argument.offset} of {step.parameter_bytes} bytes, after {end}")
            end = argument.offset + size
            if isinstance(argument, (PointerArgument, TensorMapArgument)) and argument.buffer not in touched:
                raise refuse(place, f"it points to buffer {argument.buffer}, which the step neither reads nor writes")


def _argument_size(argument: Argument, spot: str) -> int:
    """Bytes that a checked argument takes in the parameter block."""
    if isinstance(argument, ScalarArgument):
        check_dtype(argument.dtype, spot)
        check_size(argument.value, spot, "its value")
        return DTYPES[argument.dtype].byte_size(1)
    if isinstance(argument, HiddenArgument):
        check_text(argument.name, spot, "its name")
        _check_index(argument.size - 1, 256, spot, "its size")
        return argument.size
    if isinstance(argument, PointerArgument):
        check_size(argument.shift, spot, "its shift")
        return 8
    if isinstance(argument, ScratchArgument):
        check_size(argument.bytes, spot, "its size")
        return 8
    check_dtype(argument.dtype, spot)
    rank = len(argument.dims)
    windows = [len(each) for each in (argument.steps, argument.lower, argument.upper)]
    fit = len(argument.strides) == rank - 1 and len(argument.box) == rank
    if not (1 <= rank <= 5 and fit and windows in ([0, 0, 0], [rank, rank - 2, rank - 2])):
        raise refuse(spot, f"a tensor map of {rank} dims whose strides, box or windows have other numbers of them")
    for size in (*argument.dims, *argument.strides, *argument.box, *argument.steps):
        check_size(size, spot, "a size of the tensor map")
    return 128


def _step_words(step: Step) -> str:
    if isinstance(step, EvaluateStep):
        return step.op[:80]
    if isinstance(step, (LaunchStep, CallStep)):
        return step.entry[:80]
    return {CopyStep: "copy", ShapeStep: "shape", CheckStep: "check", RunStep: "run"}[type(step)]
