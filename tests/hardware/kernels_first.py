"""Compiles the kernels of many models before the models: each once, by workers that live until all is done.

A compile starts workers for its own kernels. For two thousand models of one kernel each, starting them takes longer
than all the rest; after this the models find their kernels in the cache, but for those in the place of refused ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable

import onnx

import argosy
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.targets.gpu.lower import lower_module
from argosy.targets.gpu.target import GpuTarget
from argosy.targets.gpu.variant import gpu_code
from argosy.toolchains.triton import TritonSource, compile_kernels

__all__ = ["compile_kernels_first"]

_BATCH = 128
"""Kernels that are compiled at a time: what the cache holds when it is interrupted."""


def compile_kernels_first(
    models: Iterable[onnx.ModelProto], target: GpuTarget, workers: int, say: Callable[[str], None]
) -> None:
    """Fill the cache with the kernels of models. What goes wrong here is found, and told, when a model is compiled."""
    known: set[str] = set()
    waiting: list[TritonSource] = []
    code = gpu_code(target.row)
    for number, model in enumerate(models):
        for name, source in _sources(model, target).items():
            if name not in known:
                known.add(name)
                waiting.append(source)
        if len(waiting) >= _BATCH:
            compile_kernels(waiting, code, jobs=workers)
            waiting.clear()
            say(f"{len(known)} kernels of {number + 1} models")
    if waiting:
        compile_kernels(waiting, code, jobs=workers)
    say(f"{len(known)} kernels in all")


def _sources(model: onnx.ModelProto, target: GpuTarget) -> dict[str, TritonSource]:
    """The kernels of a model, host steps allowed; none where it can't be lowered."""
    options = CompileOptions()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            module = PassManager(tuple(target.pipeline(options))).run(argosy.load_onnx(model).main)
            lowered = lower_module(module, target.row, options, {}, {})
    except Exception:  # noqa: BLE001 - the compile of the model meets it again, and says so
        return {}
    return {name: kernel.source() for name, kernel in lowered.kernels.items()}
