"""What is measured: models of the catalogue at fixed sizes, in fp16."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

import argosy
from argosy.ir.types import TensorType
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.targets.gpu.arch import GpuArch, find_gpu
from argosy.targets.gpu.lower import lower_module
from argosy.targets.gpu.pipeline import pipeline
from benchmarks.models import catalog

__all__ = ["CASES", "PRECISION", "Case", "compile_case", "feeds", "known_gpu", "weights"]

PRECISION: Final = "fp16"


@dataclass(frozen=True, slots=True)
class Case:
    """A model at sizes, with how much it computes (multiply-adds twice) and moves at least (weights in fp16)."""

    name: str
    model: str
    dims: Mapping[str, int]
    flops: float
    bytes: float

    def roofline(self, peak: float, bandwidth: float) -> float:
        """The least time in µs on a device of that many operations and bytes a second."""
        return max(self.flops / peak, self.bytes / bandwidth) * 1e6


def _case(name: str, model: str, batch: int, flops: float, weights_: float, **more: int) -> Case:
    return Case(name, model, {"batch": batch, **more}, flops * batch, weights_)


CASES: Final = (
    _case("bert-base-b1", "bert_base", 1, 22.5e9, 170e6, sequence=128),
    _case("bert-base-b32", "bert_base", 32, 22.5e9, 170e6, sequence=128),
    _case("resnet50-b1", "resnet50", 1, 8.2e9, 51e6),
    _case("resnet50-b32", "resnet50", 32, 8.2e9, 51e6),
)


def compile_case(case: Case, arch: str, path: Path) -> None:
    """Write the artifact of a case, without weights: they are made again where it runs."""
    made = argosy.compile(
        catalog.make(case.model),
        targets=(arch,),
        precision=PRECISION,
        dims=dict(case.dims),
        weights="omit",
        strict=True,
    )
    made.save(path, weights="omit")


def known_gpu(arch: str) -> GpuArch:
    """The GPU of that name."""
    row = find_gpu(arch)
    if row is None:
        raise SystemExit(f"there is no GPU named {arch!r}")
    return row


def weights(case: Case, arch: str) -> dict[str, Any]:
    """The weights that an artifact of `compile_case` lacks, by hash."""
    options, row = CompileOptions(precision=PRECISION), known_gpu(arch)
    program = argosy.load_onnx(catalog.make(case.model), dims=dict(case.dims))
    module = PassManager(tuple(pipeline(options))).run(program.main)
    return {name: literal.stored for name, literal in lower_module(module, row, options, {}, {}).weights.items()}


def feeds(case: Case, session: argosy.Session) -> dict[str, Any]:
    """Inputs of a case: those of the catalogue, repeated to its sizes."""
    given = catalog.feeds(case.model, dict(case.dims))
    shapes = {name: kind.dims for name, kind in session.inputs.items() if isinstance(kind, TensorType)}
    return {name: np.resize(value, tuple(shapes[name] or ())) for name, value in given.items()}
