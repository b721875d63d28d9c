"""A variant for one GPU arch: lowered, its kernels compiled, and each launch completed by what the code says of itself.

Threads of a block, shared memory and scratch are known when a kernel is compiled. One that the toolchain refuses, or
that needs what the arch does not have, is named to the lowering, which then takes the next way.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from msgspec.structs import replace

from argosy.artifact.plan import (
    Argument,
    Block,
    CodeRecord,
    IfBlock,
    LaunchStep,
    LoopBlock,
    PlanRecord,
    ScratchArgument,
    Step,
    StraightBlock,
    TensorMapArgument,
)
from argosy.errors import CompileError
from argosy.ir.module import Module
from argosy.options import CompileOptions
from argosy.targets.gpu.arches.row import GpuArch
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.codegen.tensor_map import completed_map
from argosy.targets.gpu.drivers import minimum_driver
from argosy.targets.gpu.lower import SPILLS, LoweredModule, lower_module
from argosy.toolchains.triton import CompiledKernel, GpuCode, Refused, compile_kernels
from argosy.toolchains.triton_crew import TritonCrew

__all__ = ["CompiledModule", "compiled_variant", "gpu_code"]

log = logging.getLogger("argosy.gpu")

_ROUNDS: Final = 20
"""How often a module is lowered again because of kernels that the toolchain refused."""
_SPILL_ROUNDS: Final = 6
"""How often, at most, because of kernels that spill: they run, so in the end one of them is taken."""


@dataclass(frozen=True, slots=True)
class CompiledModule:
    """What a variant is made of: `plan` with its code objects, whose content `entries` hold, and the driver needed."""

    lowered: LoweredModule
    plan: PlanRecord
    entries: dict[str, bytes]
    minimum_driver: str


def compiled_variant(
    module: Module, arch: GpuArch, options: CompileOptions, crew: TritonCrew | None = None
) -> CompiledModule:
    """A module that has gone through the pipeline, lowered and compiled, by the processes of `crew` or its own.

    Raises CompileError for a host step under `strict`, MissingExtraError without the toolchain.
    """
    texts: dict[str, str] = {}
    try:
        return _compiled(module, arch, options, crew, texts)
    except CompileError as error:
        if texts:
            error.attach("triton", partial(_evidence, texts))
        raise


def _compiled(
    module: Module, arch: GpuArch, options: CompileOptions, crew: TritonCrew | None, texts: dict[str, str]
) -> CompiledModule:
    """The same; `texts` takes those of the kernels that were refused, under the reason."""
    target = gpu_code(arch)
    refused: dict[str, str] = {}
    spilled: dict[str, int] = {}
    cached = "cache" not in options.leaves_out("stage")
    for turn in range(_ROUNDS):
        lowered = lower_module(module, arch, options, refused, spilled)
        names = list(lowered.kernels)
        sources = [lowered.kernels[name].source() for name in names]
        made = compile_kernels(sources, target, crew=crew, jobs=options.jobs, cached=cached)
        compiled: dict[str, CompiledKernel] = {}
        for name, source, answer in zip(names, sources, made, strict=True):
            why = answer.reason if isinstance(answer, Refused) else _why_not(answer, arch)
            if why or isinstance(answer, Refused):
                log.info("the kernel %s is not taken: %s", name, why)
                refused[name] = why
                texts[name] = f"# {arch.name}: {' '.join(why.split())}\n{source.text}"
            else:
                compiled[name] = answer
        met = {} if turn >= _SPILL_ROUNDS else _spills(compiled.values())
        if len(compiled) == len(names) and met.keys() <= spilled.keys():
            plan, entries = _completed(lowered.plan, lowered.kernels, compiled)
            return CompiledModule(lowered, plan, entries, minimum_driver(compiled.values()))
        spilled |= met
    raise CompileError(f"Triton refused kernels {_ROUNDS} times: {next(reversed(refused.values()))}", where=arch.name)


def gpu_code(arch: GpuArch) -> GpuCode:
    """What the toolchain makes code for: a code object for the arch, or PTX of the version of a portable one."""
    triton = arch.triton
    generic = arch.name if arch.stand_in else ""
    backend: Literal["cuda", "hip"] = "hip" if arch.vendor == "amd" else "cuda"
    portable = arch.portable and not generic
    return GpuCode(backend, triton.arch, triton.warp_size, portable, generic, arch.ptx_version, arch.llvm_features)


def _evidence(texts: Mapping[str, str]) -> dict[str, bytes]:
    return {f"{name}.py": text.encode() for name, text in texts.items()}


def _why_not(kernel: CompiledKernel, arch: GpuArch) -> str:
    """Why an arch can't run a kernel, or had better not."""
    if kernel.shared > arch.shared_memory_per_block:
        return f"it needs {kernel.shared} bytes of shared memory, {arch.name} has {arch.shared_memory_per_block}"
    if kernel.threads > arch.max_threads_per_block:
        return f"it needs {kernel.threads} threads, {arch.name} has {arch.max_threads_per_block}"
    return ""


def _spills(kernels: Iterable[CompiledKernel]) -> dict[str, int]:
    """The kernels that keep more registers in memory than is good, by entry, with how many."""
    found: dict[str, int] = {}
    for kernel in kernels:
        if kernel.spilled > SPILLS[0]:
            log.info("the kernel %s keeps %d registers in memory", kernel.entry, kernel.spilled)
            found[kernel.entry] = kernel.spilled
    return found


def _completed(
    plan: PlanRecord, kernels: Mapping[str, Kernel], compiled: Mapping[str, CompiledKernel]
) -> tuple[PlanRecord, dict[str, bytes]]:
    """The plan with its code objects, and what they hold."""
    code: list[CodeRecord] = []
    numbers: dict[str, int] = {}
    entries: dict[str, bytes] = {}
    for name in kernels:
        kernel = compiled[name]
        path = f"code/{name}.{kernel.form}"
        assembly = f"asm/{name}.s" if kernel.form == "hsaco" else ""
        numbers[name] = len(code)
        code.append(CodeRecord(path, kernel.form, assembly))
        entries[path] = kernel.code
        if assembly:
            entries[assembly] = kernel.assembly.encode()

    def completed(step: Step) -> Step:
        if not isinstance(step, LaunchStep):
            return step
        kernel = compiled[step.entry]
        placed = _placed(step.arguments, kernel)
        first = kernel.offsets[-2] if kernel.offsets else -(-step.parameter_bytes // 8) * 8
        # Behind the kernel's own parameters come two pointers: to scratch memory, and to that of a profiler.
        room = kernel.scratch and _bytes(step, kernel.scratch)
        arguments = (*placed, ScratchArgument(first, room)) if room else placed
        return replace(
            step,
            code=numbers[step.entry],
            block=(kernel.threads, 1, 1),
            parameter_bytes=first + 16,
            arguments=arguments,
            shared=kernel.shared,
        )

    body = _mapped(plan.body, completed)
    prepare = tuple(replace(record, body=_mapped(record.body, completed)) for record in plan.prepare)
    return replace(plan, body=body, prepare=prepare, code=tuple(code)), entries


def _placed(arguments: Sequence[Argument], kernel: CompiledKernel) -> tuple[Argument, ...]:
    """The arguments where the code looks for them, tensor maps as it expects them."""
    if not kernel.offsets:
        return tuple(arguments)
    about = iter(kernel.maps)
    found = (
        completed_map(argument, next(about)) if isinstance(argument, TensorMapArgument) else argument
        for argument in arguments
    )
    return tuple(replace(argument, offset=offset) for argument, offset in zip(found, kernel.offsets, strict=False))


def _bytes(step: LaunchStep, each: int) -> int | str:
    x, y, z = step.grid
    numbers = [size for size in (x, y, z) if isinstance(size, int)]
    if len(numbers) == 3:
        return numbers[0] * numbers[1] * numbers[2] * each
    return " * ".join([str(each), *(f"({size})" for size in (x, y, z))])


def _mapped(blocks: Sequence[Block], step: Callable[[Step], Step]) -> tuple[Block, ...]:
    """The same blocks with each step changed."""
    found: list[Block] = []
    for block in blocks:
        match block:
            case StraightBlock():
                found.append(replace(block, steps=tuple(step(each) for each in block.steps)))
            case IfBlock():
                then, otherwise = _mapped(block.then, step), _mapped(block.otherwise, step)
                found.append(replace(block, then=then, otherwise=otherwise))
            case LoopBlock():
                found.append(replace(block, body=_mapped(block.body, step)))
    return tuple(found)
