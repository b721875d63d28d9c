"""How much arithmetic this CPU could do at most."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from argosy.targets.cpu.arch import CpuArch
from argosy.toolchains.zig import Source, compile_objects, link

__all__ = ["peak_meter"]

_TURNS: Final = 40_000
"""Turns of the loop that a measurement of the peak makes: about half a millisecond."""


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
