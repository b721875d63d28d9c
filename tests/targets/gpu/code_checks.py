"""What code objects say of themselves, against the arch that they are for and the plan that starts them.

Sources of the facts: `argosy.toolchains.gpu_code_object`; of the numbers of AMD's processors: `test_toolchain.MACH`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from argosy.artifact.plan import (
    Block,
    HiddenArgument,
    IfBlock,
    LaunchStep,
    LoopBlock,
    PlanRecord,
    PointerArgument,
    ScalarArgument,
    ScratchArgument,
    StraightBlock,
    TensorMapArgument,
)
from argosy.targets.gpu.arch import GpuArch
from argosy.toolchains.gpu_code_object import CodeFacts, facts_of, matrix_instructions
from tests.targets.gpu.test_toolchain import MACH

__all__ = ["all_launches", "check_code", "check_matrix", "launches"]

_DOT: Final = re.compile(r"tl\.dot\(\w+(?:\.to\(tl\.(\w+)(?:, bitcast=True)?\))?,")
_NAMES: Final = {
    "float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "int8": "int8", "float8e4nv": "fp8", "float8e5": "fp8",
    "float8e4b8": "fp8", "float8e5b16": "fp8", "": "fp32",
}  # fmt: skip
"""What arch rows call the operand types of `tl.dot`; recurrent layers, whose operands are float32, convert none."""
_WIDTHS: Final = {"int32": 4, "int64": 8}


def launches(blocks: Sequence[Block]) -> Iterator[LaunchStep]:
    for block in blocks:
        match block:
            case StraightBlock():
                yield from (step for step in block.steps if isinstance(step, LaunchStep))
            case IfBlock():
                yield from launches((*block.then, *block.otherwise))
            case LoopBlock():
                yield from launches(block.body)


def all_launches(plan: PlanRecord) -> list[LaunchStep]:
    return list(launches((*(block for record in plan.prepare for block in record.body), *plan.body)))


def check_code(plan: PlanRecord, entry: Callable[[str], bytes], row: GpuArch) -> dict[str, CodeFacts]:
    """Every kernel is for the arch, fits it, and takes the parameters that its launch gives; the facts by entry.

    `entry` gives the content of a plan's code by its path.
    """
    found: dict[str, CodeFacts] = {}
    for step in all_launches(plan):
        code = plan.code[step.code]
        if step.entry not in found:
            found[step.entry] = facts_of(code.form, entry(code.path))
            check_form(found[step.entry], row)
        facts = found[step.entry]
        assert facts.entry == step.entry
        assert step.block[0] % row.wave_size == 0
        assert step.block[0] <= row.max_threads_per_block
        assert step.shared + (facts.shared or 0) <= row.shared_memory_per_block
        check_parameters(step, facts)
    return found


def check_form(facts: CodeFacts, row: GpuArch) -> None:
    assert facts.wave_size == row.wave_size
    if row.vendor == "amd":
        assert facts.form == "hsaco"
        assert facts.flags is not None
        assert facts.flags & 0xFF == MACH[row.name]
        assert facts.arch == row.name
    elif row.portable:
        assert (facts.form, facts.arch) == ("ptx", row.name.replace("compute_", "sm_"))
        return
    else:
        assert (facts.form, facts.arch) == ("cubin", row.name)
    assert facts.registers is not None
    assert 0 < facts.registers <= row.registers_per_thread


def check_parameters(step: LaunchStep, facts: CodeFacts) -> None:
    """Arguments of the plan lie where the code has its parameters, pointers where it has pointers."""
    assert facts.parameter_bytes == step.parameter_bytes
    places = {parameter.offset: parameter for parameter in facts.parameters}
    assert len(places) == len(facts.parameters)
    for argument in step.arguments:
        parameter = places[argument.offset]
        if isinstance(argument, ScalarArgument):
            assert (parameter.size, parameter.pointer) in [(_WIDTHS[argument.dtype], known) for known in (None, False)]
        elif isinstance(argument, TensorMapArgument):
            assert (parameter.size, parameter.pointer) in [(128, known) for known in (None, False)]
        else:  # a buffer, scratch memory, or the word that faults are written to
            assert isinstance(argument, (PointerArgument, ScratchArgument, HiddenArgument))
            assert (parameter.size, parameter.pointer) in [(8, known) for known in (None, True)]
    # The two last are scratch memory and a profiler's, which a launch may leave empty.
    given = {argument.offset for argument in step.arguments}
    assert {parameter.offset for parameter in facts.parameters[:-2]} <= given


def check_matrix(sources: Mapping[str, str], assembly: Mapping[str, str], row: GpuArch) -> Counter[str]:
    """Products use the row's matrix instructions for their operands, where it has some, and no other kernel has any.

    `sources` are Triton texts and `assembly` what came of them, by entry. How often each instruction stands there.
    """
    total: Counter[str] = Counter()
    for name, source in sources.items():
        kinds = {_NAMES[found[1] or ""] for found in _DOT.finditer(source)}
        assert len(_DOT.findall(source)) == source.count("tl.dot("), name
        kinds |= {"fp16"} if "warpgroup_mma(" in source else set()  # or bf16: the same instruction
        ops = [op for kind in kinds if (op := row.matrix_op(kind)) is not None]
        counted = matrix_instructions(assembly[name])
        assert bool(counted) == bool(ops), f"{name}: {sorted(kinds)} are multiplied by {counted or 'no instruction'}"
        # Tiles of few rows take the smaller instructions of the generation before.
        known = (*(op.mnemonic for op in ops), "mma.sync.")
        assert all(each.startswith(known) for each in counted), f"{name}: {counted}"
        total.update(counted)
    return total
