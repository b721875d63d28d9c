"""Parts of the models beside the library that does each alone: products of a BERT layer, convolutions, attention.

Ours are the kernels of a model's own artifact, each alone; attention has artifacts of its own. Where a library has
several ways, the fastest counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper

import argosy
from benchmarks.gpu.cases import Case

__all__ = ["ATTENTIONS", "Attended", "Part", "attention", "pack_attention", "parts_of"]

_LAYERS: Final = 12
_NEAR: Final = 1e-2


@dataclass(frozen=True, slots=True)
class Part:
    """µs of a part of ours and of the best library, by the library's ways; `roofline` is the least time."""

    name: str
    ours: float
    ways: Mapping[str, float]
    roofline: float

    @property
    def ratio(self) -> float:
        """How much faster than the fastest way ours is."""
        return min(self.ways.values()) / self.ours

    def line(self) -> str:
        """As text."""
        ways = "  ".join(f"{way} {time:.1f}" for way, time in sorted(self.ways.items(), key=lambda each: each[1]))
        share = 100 * self.roofline / self.ours
        return f"{self.name:36} ours {self.ours:8.1f}  {self.ratio:.2f}x  roofline {share:3.0f} %  {ways}"


@dataclass(frozen=True, slots=True)
class Attended:
    """Attention over [batch, heads, length, width] in fp16."""

    batch: int
    heads: int
    length: int
    width: int
    causal: bool

    @property
    def name(self) -> str:
        """The name of its artifact."""
        sizes = "x".join(map(str, (self.batch, self.heads, self.length, self.width)))
        return f"attention-{sizes}{'-causal' if self.causal else ''}"

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of queries, keys, values and the result."""
        return self.batch, self.heads, self.length, self.width

    def roofline(self, peak: float, bandwidth: float) -> float:
        """The least time in µs; of a causal one half of the scores count."""
        elements = self.batch * self.heads * self.length * self.width
        flops = 4 * elements * self.length / (2 if self.causal else 1)
        return max(flops / peak, 8 * elements / bandwidth) * 1e6

    def model(self) -> onnx.ModelProto:
        """By its formula, in float32 but for what it takes and gives; masks come from the places of rows and keys."""
        depth = helper.make_tensor("depth", TensorProto.FLOAT, (), [self.width**-0.5])
        none = helper.make_tensor("none", TensorProto.FLOAT, (), [float("-inf")])
        places = helper.make_tensor("places", TensorProto.INT64, (self.length,), range(self.length))
        column = helper.make_tensor("column", TensorProto.INT64, (2,), (self.length, 1))

        def node(op: str, inputs: str, output: str, **attributes: Any) -> onnx.NodeProto:
            return helper.make_node(op, inputs.split(), [output], **attributes)

        scores = "scaled" if not self.causal else "masked"
        nodes = [node("Cast", name, f"{name}32", to=TensorProto.FLOAT) for name in "qkv"]
        nodes += [
            node("Transpose", "k32", "turned", perm=(0, 1, 3, 2)),
            node("MatMul", "q32 turned", "scores"),
            node("Mul", "scores depth", "scaled"),
        ]
        if self.causal:
            nodes += [
                node("Reshape", "places column", "rows"),
                node("Less", "rows places", "later"),
                node("Where", "later none scaled", "masked"),
            ]
        nodes += [
            node("Softmax", scores, "weights", axis=-1),
            node("MatMul", "weights v32", "mixed"),
            node("Cast", "mixed", "y", to=TensorProto.FLOAT16),
        ]
        values = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, self.shape) for name in "qkvy"]
        held = [depth, *((none, places, column) if self.causal else ())]
        graph = helper.make_graph(nodes, "attention", values[:3], values[3:], held)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


ATTENTIONS: Final = tuple(
    Attended(*sizes, causal) for sizes in ((32, 12, 128, 64), (4, 16, 2048, 128)) for causal in (False, True)
)


def pack_attention(folder: Path, arch: str) -> None:
    """Write the artifacts of attention."""
    for each in ATTENTIONS:
        argosy.compile(each.model(), targets=(arch,), precision="fp16", strict=True).save(
            folder / f"{each.name}.argosy"
        )


def attention(folder: Path, each: Attended, peak: float, bandwidth: float) -> Part:
    """Measure one; raises SystemExit where its result is wrong."""
    from benchmarks.gpu.ours import measure  # noqa: PLC0415 - needs torch
    from benchmarks.gpu.part_peers import attended, attention_times  # noqa: PLC0415

    draw = np.random.default_rng(0).standard_normal
    given = {name: draw(each.shape, np.float32).astype(np.float16) for name in "qkv"}
    session = argosy.Session(folder / f"{each.name}.argosy", device="cuda")
    found = session.run(given)["y"].astype(np.float32)
    expected = attended(given, causal=each.causal)
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    if not error < _NEAR:
        raise SystemExit(f"{each.name} is {error} off")
    ours = measure(session, given).alone
    return Part(each.name, ours, attention_times(each), each.roofline(peak, bandwidth))


def parts_of(case: Case, kernels: Mapping[str, tuple[float, int]], peak: float, bandwidth: float) -> list[Part]:
    """The parts of a model that was measured: `kernels` are those of its artifact, as `ours.measure` has them."""
    from benchmarks.gpu import part_peers  # noqa: PLC0415 - needs torch

    batch = case.dims["batch"]
    if case.model == "bert_base":
        rows = batch * case.dims["sequence"]
        ours = _sum(
            kernels, lambda name, count: name.startswith("dot_") and "flash" not in name and not count % _LAYERS
        )
        sizes = ((768, 2304), (768, 768), (768, 3072), (3072, 768))
        least = sum(max(2 * rows * k * n / peak, 2 * (rows * k + k * n + rows * n) / bandwidth) for k, n in sizes) * 1e6
        return [Part(f"{case.name}: products of a layer", ours / _LAYERS, part_peers.product_times(rows), least)]
    ours = _sum(kernels, lambda name, _: name.startswith("conv") and not name.startswith("convert"))
    every, body = part_peers.convolution_times(batch), {}
    least = sum(each.roofline(peak, bandwidth) for each in part_peers.convolutions(batch))
    for way, times in every.items():
        body[way] = sum(times)
    return [Part(f"{case.name}: convolutions", ours, body, least)]


def _sum(kernels: Mapping[str, tuple[float, int]], counts: Callable[[str, int], bool]) -> float:
    return sum(time for name, (time, count) in kernels.items() if counts(name, count))
