"""Which kernels may report a fault."""

from __future__ import annotations

import re
from functools import cache

from argosy.targets.cpu.codegen import scalar
from argosy.targets.cpu.codegen.kernel import Kernel

__all__ = ["may_fail"]


def may_fail(kernel: Kernel) -> bool:
    """Whether a kernel may report a fault: it then belongs to the run, which may never come to it."""
    return any(re.search(rf"\b{name}\(", kernel.text) for name in _failing())


@cache
def _failing() -> tuple[str, ...]:
    """The functions by which kernels report faults: those that get the worker's scratch."""
    found = re.findall(r"(\w+)\([^()]*void \*scratch\)", scalar.prelude() + scalar.kernel_prelude())
    return ("argosy_fail", *sorted(set(found)))
