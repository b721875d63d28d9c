"""The C sources of a variant: each kernel behind the host ABI and the prelude, and the host runtime."""

from __future__ import annotations

from collections.abc import Iterable

from argosy.options import CompileOptions
from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.kernel import Kernel
from argosy.targets.cpu.host import host_abi, host_runtime
from argosy.toolchains.zig import Source

__all__ = ["variant_sources"]


def variant_sources(kernels: Iterable[Kernel], options: CompileOptions) -> list[Source]:
    """One source for each kernel, and the host runtime."""
    exact = "#define ARGOSY_EXACT 1\n" if options.accuracy == "exact" else ""
    head = f"{exact}{host_abi()}\n{scalar.prelude()}\n{scalar.kernel_prelude()}\n"
    return [Source(kernel.entry, kernel.source, head=head) for kernel in kernels] + [host_runtime()]
