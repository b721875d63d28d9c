"""How much arithmetic a model does, and how much this CPU could do at most."""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from argosy.ir.module import Instruction
from argosy.ir.program import Program
from argosy.ops.control import If, Loop, Scan
from argosy.ops.convolution import Conv, ConvTranspose
from argosy.ops.einsum import Einsum
from argosy.ops.matmul import Dot
from argosy.ops.recurrent import GATES, Recurrent
from argosy.passes import NORMALISE
from argosy.passes.manager import PassManager
from argosy.targets.cpu.arch import CpuArch
from argosy.toolchains.zig import Source, compile_objects, link

__all__ = ["operations", "peak_meter"]

_TURNS: Final = 40_000
"""Turns of the loop that a measurement of the peak makes: about half a millisecond."""


def operations(program: Program) -> int | None:
    """Multiplications and additions of products, convolutions and recurrences; None where sizes or ways are open."""
    total = 0
    for instruction in PassManager((NORMALISE,)).run(program.main).instructions:
        if isinstance(instruction.op, If | Loop | Scan | Einsum):
            return None
        found = _operations(instruction)
        if found is None:
            return None
        total += found
    return total


def _operations(instruction: Instruction) -> int | None:
    op = instruction.op
    if not isinstance(op, Conv | ConvTranspose | Dot | Recurrent):
        return 0
    shapes = [operand.shape if operand is not None else () for operand in instruction.operands]
    made = instruction.result().shape
    sizes: list[int] = []
    for dim in (*shapes[0], *shapes[1], *made):
        if not isinstance(dim, int):
            return None
        sizes.append(dim)
    first, second = sizes[: len(shapes[0])], sizes[len(shapes[0]) : len(shapes[0]) + len(shapes[1])]
    result = sizes[len(first) + len(second) :]
    match op:
        case Conv():
            return 2 * math.prod(result) * math.prod(second[1:])
        case ConvTranspose():
            return 2 * math.prod(first) * math.prod(second[1:])
        case Dot():
            return 2 * math.prod(result) * first[-1]
        case _:
            directions, rows, width = second
            hidden = rows // GATES[op.kind]
            return 2 * first[0] * first[1] * directions * rows * (width + hidden)


_LOOP: Final = """
typedef float vector __attribute__((vector_size({bytes})));
__attribute__((visibility("default"))) void spin(long turns, float *place) {{
  vector x = (vector){{}} + place[0], y = (vector){{}} + place[1];
  {declared}
  for (long turn = 0; turn < turns; turn++) {{ {step} }}
  vector sum = {summed};
  place[2] = sum[0];
}}
"""


def peak_meter(arch: CpuArch, folder: Path) -> Callable[[], float]:
    """A function that measures the fp32 FMA peak of one core, in operations per second of CPU time.

    The loop multiplies and adds in registers alone, with all but eight of them.
    """
    names = [f"a{number}" for number in range(arch.vector_registers - 8)]
    text = _LOOP.format(
        bytes=arch.vector_bits // 8,
        declared=" ".join(f"vector {name} = x * {number + 1}.0f;" for number, name in enumerate(names)),
        step=" ".join(f"{name} = __builtin_elementwise_fma({name}, x, y);" for name in names),
        summed=" + ".join(names),
    )
    path = folder / "peak.so"
    path.write_bytes(link(compile_objects([Source("peak", text)], arch.code), arch.code))
    library = ctypes.CDLL(str(path))
    place = (ctypes.c_float * 3)(0.5, 0.25, 0.0)
    done = 2 * len(names) * arch.lanes(32) * _TURNS

    def measured() -> float:
        begin = time.process_time()
        library.spin(ctypes.c_long(_TURNS), place)
        return done / (time.process_time() - begin)

    return measured
