"""Budgets of the emulated device: a warm product, and a run of ResNet-50 with the start of its session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

import argosy
from benchmarks.fresh_process import measured
from benchmarks.models import catalog

__all__ = ["emulation_rows"]

ARCH: Final = "gfx942"
SIZE: Final = 128
_TIMED: Final = """
import argosy, numpy, statistics, time
session = argosy.Session(sys.argv[1], device="emulated")
feeds = dict(numpy.load(sys.argv[2]))
def once():
    start = time.process_time()
    session.run(feeds)
    return time.process_time() - start
for _ in range(int(sys.argv[3])):
    once()
told = statistics.median(once() for _ in range(int(sys.argv[4])))
"""


def emulation_rows(folder: Path, runs: int) -> list[tuple[str, str, str]]:
    """What was measured, the figure, the bar."""
    half = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [SIZE, SIZE]) for name in "abc"]
    node = helper.make_node("MatMul", ["a", "b"], ["c"])
    model = helper.make_model(helper.make_graph([node], "product", half[:2], half[2:]), ir_version=8)
    random = np.random.default_rng(0)
    feeds = {name: random.standard_normal((SIZE, SIZE)).astype(np.float16) for name in "ab"}
    warm = _run(model, feeds, folder, warmups=5, repeats=4 * runs + 1)
    network = catalog.make("resnet50")
    first = _run(network, catalog.feeds("resnet50", {"batch": 1}), folder, warmups=0, repeats=1)
    return [
        (f"product of {SIZE} x {SIZE} fp16, emulated {ARCH}, warm", f"{warm * 1000:.1f} CPU ms", "under 20 CPU ms"),
        (f"resnet50: run once, batch 1, fp16, emulated {ARCH}", f"{first:.1f} CPU s", "under 180 CPU s"),
    ]


def _run(
    model: onnx.ModelProto, feeds: Mapping[str, NDArray[Any]], folder: Path, *, warmups: int, repeats: int
) -> float:
    """Median CPU seconds of a run."""
    path, inputs = folder / "emulated.argosy", folder / "emulated.npz"
    argosy.compile(model, targets=(ARCH,), precision="fp16", strict=True).save(path)
    np.savez(inputs, allow_pickle=False, **feeds)
    _, _, told = measured(_TIMED, str(path), str(inputs), str(warmups), str(repeats))
    return float(str(told))
