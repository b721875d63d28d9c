"""Kernels of an artifact made again: their sources, and every stage on the way to the same bytes.

An artifact keeps code, not where it comes from. What it does keep, the program, the options and the numbers of the
variant, gives the same text, and the same toolchain the same code.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from argosy.artifact.manifest import VariantRecord
from argosy.ir.module import Module
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.targets.gpu.target import GpuTarget
from argosy.targets.gpu.variant import compiled_variant, gpu_code
from argosy.toolchains.triton import CompiledKernel, compile_stages

__all__ = ["RemadeKernel", "remade_kernels"]


@dataclass(frozen=True, slots=True)
class RemadeKernel:
    """`source` is Triton text; `stages` the texts that the toolchain made of it, in order; `code` what came out."""

    source: str
    stages: Mapping[str, str]
    code: bytes


def remade_kernels(
    module: Module, record: VariantRecord, entries: Collection[str] | None = None, *, jobs: int | None = None
) -> dict[str, RemadeKernel]:
    """The kernels of a variant of `module`, the program as imported, by entry; `entries` are those wanted, None all.

    Raises MissingExtraError without the toolchain. Another version of it, or of us, gives other kernels: compare.
    """
    target = GpuTarget.of(record.arch, record.products)
    options = CompileOptions.of_numeric(record.numeric, jobs=jobs)
    piped = PassManager(target.phases(options, record.dims), without_rules=options.leaves_out("rule")).run(module)
    kernels = compiled_variant(piped, target.row, options).lowered.kernels
    sources = {name: kernel.source() for name, kernel in kernels.items() if entries is None or name in entries}
    made = compile_stages(list(sources.values()), gpu_code(target.row), jobs=jobs)
    return {
        name: RemadeKernel(source.text, stages, kernel.code)
        for (name, source), (kernel, stages) in zip(sources.items(), made, strict=True)
        if isinstance(kernel, CompiledKernel)
    }
