"""The oldest driver that loads the code of a variant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from argosy.toolchains.triton import CompiledKernel

__all__ = ["minimum_driver"]

_VERSION: Final = re.compile(r"^\s*\.version\s+(\d+)\.(\d+)", re.MULTILINE)
_RELEASES: Final = {(8, 6): (12, 7), (8, 7): (12, 8), (8, 8): (12, 9)}
"""Versions of the PTX ISA whose minor is not that of the CUDA release that came with it."""
_ISA_TO_CUDA: Final = 4
"""The major version of CUDA less that of the PTX ISA which came with it: 7 with 11, 8 with 12, 9 with 13."""


def minimum_driver(kernels: Iterable[CompiledKernel]) -> str:
    """`major.minor` of the CUDA interface that a driver must have for kernels; empty where nothing public says it.

    PTX needs a driver that knows its ISA (PTX ISA 9, table of the release history). A code object runs with every
    driver of the toolkit's major release (CUDA Compatibility, minor version compatibility); the toolkit's is that of
    the ISA of the PTX that it was made from. AMD says of no driver which code objects it loads.
    """
    needed: list[tuple[int, int]] = []
    for kernel in kernels:
        text = kernel.code.decode("ascii", "replace") if kernel.form == "ptx" else kernel.assembly
        found = _VERSION.search(text) if kernel.form in ("ptx", "cubin") else None
        if found is not None:
            isa = int(found[1]), int(found[2])
            major, minor = _RELEASES.get(isa, (isa[0] + _ISA_TO_CUDA, isa[1]))
            needed.append((major, minor if kernel.form == "ptx" else 0))
    return "{}.{}".format(*max(needed)) if needed else ""
