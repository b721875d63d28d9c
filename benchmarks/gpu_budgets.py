"""Budgets of compiling for GPUs, with an empty cache: two models for one arch, and one for nine beside each alone."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Final

from argosy.host_cpu import usable_cores
from benchmarks.fresh_process import measured
from benchmarks.models import catalog

__all__ = ["gpu_rows"]

ARCH: Final = "gfx942"
MODELS: Final = {"resnet50": ({"batch": 1}, 90), "bert_base": ({"batch": 1, "sequence": 128}, 60)}
"""Sizes, and the bar in CPU seconds."""
NINE: Final = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250", "sm_80", "sm_90", "sm_120")
"""Archs that are compiled for at once, and each alone."""
SMALL: Final = "bert_small"

_COMPILE: Final = """
import os
os.environ["ARGOSY_CACHE"] = sys.argv[2]
import argosy
argosy.compile(sys.argv[1], targets=sys.argv[3].split(","), precision="fp16", dims=json.loads(sys.argv[4]), strict=True)
told = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
"""


def _compiled(model: Path, archs: str, sizes: str) -> tuple[float, int]:
    """CPU seconds with an empty cache, workers included, and the bytes that the largest worker took."""
    with tempfile.TemporaryDirectory() as cache:
        seconds, _, largest = measured(_COMPILE, str(model), cache, archs, sizes)
    return seconds, int(str(largest))


def gpu_rows(folder: Path, runs: int) -> list[tuple[str, str, str]]:
    """What was measured, the figure, the bar."""
    rows = []
    for name, (sizes, bar) in MODELS.items():
        path = _written(name, folder)
        words = str(sizes).replace("'", '"')
        seconds = statistics.median(_compiled(path, ARCH, words)[0] for _ in range(runs))
        rows.append((f"{name}: compile for {ARCH}, fp16, empty cache", f"{seconds:.1f} CPU s", f"under {bar} CPU s"))
    path = _written(SMALL, folder)
    alone = sum(_compiled(path, arch, "{}")[0] for arch in NINE)
    together, largest = _compiled(path, ",".join(NINE), "{}")
    words = f"{SMALL}: {len(NINE)} GPU archs at once, {together:.1f} CPU s, over the sum of each alone"
    rows.append((words, f"{together / alone:.2f} x", "at most 0.90"))
    memory = (f"... the largest Triton process of {usable_cores()}", f"{largest >> 20} MiB", "8 GiB in all")
    return [*rows, memory]


def _written(name: str, folder: Path) -> Path:
    path = folder / f"gpu-{name}.onnx"
    path.write_bytes(catalog.make(name).SerializeToString())
    return path
