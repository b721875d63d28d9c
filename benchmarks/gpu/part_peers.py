"""The libraries' ways to do parts of the models, through PyTorch, in fp16: cuBLAS, cuDNN, flash attention."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.gpu.ours import graph_time
from benchmarks.gpu.parts import Attended

__all__ = [
    "Convolution", "attended", "attention_times", "convolution_times", "convolutions", "product_times",
]  # fmt: skip

_COPIES: Final = 20
"""Calls in a graph, as for ours."""
_WIDTH: Final = 768


def _alone(call: Callable[..., Any], *given: Any) -> float:
    """Median µs of one of several calls in a graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call(*given)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(_COPIES):
            call(*given)
    with torch.cuda.stream(stream):
        return graph_time(graph.replay, stream, 5) / _COPIES


def _numbers(*shape: int) -> torch.Tensor:
    return torch.randn(shape, device="cuda", dtype=torch.half)


def _product(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, other: torch.Tensor, kind: str) -> torch.Tensor:
    y = functional.linear(x, weight, bias)
    return y + other if kind == "add" else functional.gelu(y) if kind == "gelu" else y


def _fused_gelu(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, other: torch.Tensor, kind: str
) -> torch.Tensor:
    """cuBLASLt's own epilogue, which has the approximation by tanh."""
    del other, kind
    return torch._addmm_activation(bias, x, weight.t(), use_gelu=True)  # noqa: SLF001


@torch.inference_mode()
def product_times(rows: int) -> dict[str, float]:
    """µs of the four products of a BERT layer with what follows each, by way; the last takes the fastest for each."""
    totals = {"cuBLAS, pointwise compiled": 0.0, "cuBLAS, pointwise by hand": 0.0, "best of each": 0.0}
    for inner, columns, kind in ((768, 2304, ""), (768, 768, "add"), (768, 3072, "gelu"), (3072, 768, "add")):
        given = (
            _numbers(rows, inner), _numbers(columns, inner) / 32, _numbers(columns), _numbers(rows, columns), kind
        )  # fmt: skip
        torch._dynamo.reset()  # noqa: SLF001 - else it makes code for any size from the second one on
        times = [_alone(torch.compile(_product, dynamic=False), *given), _alone(_product, *given)]
        best = min(*times, _alone(_fused_gelu, *given)) if kind == "gelu" else min(times)
        for way, time in zip(totals, (*times, best), strict=True):
            totals[way] += time
    return totals


@dataclass(frozen=True, slots=True)
class Convolution:
    """A convolution of square images with ReLU; where `adds`, with another tensor added before that."""

    batch: int
    channels: int
    outputs: int
    size: int
    kernel: int = 1
    stride: int = 1
    adds: bool = False
    pad: int = 0

    @property
    def places(self) -> int:
        """Rows of the result, and columns."""
        return (self.size + 2 * self.pad - self.kernel) // self.stride + 1

    def roofline(self, peak: float, bandwidth: float) -> float:
        """The least time in µs."""
        rows, taps = self.batch * self.places**2, self.kernel**2 * self.channels
        moved = self.batch * self.size**2 * self.channels + taps * self.outputs + rows * self.outputs * (1 + self.adds)
        return max(2 * rows * taps * self.outputs / peak, 2 * moved / bandwidth) * 1e6


def convolutions(batch: int) -> Iterator[Convolution]:
    """Those of ResNet-50 at 224 x 224, in order."""
    yield Convolution(batch, 3, 64, 224, 7, 2, pad=3)
    channels, size = 64, 56
    for stage, depth in enumerate((3, 4, 6, 3)):
        inner = 64 << stage
        for place in range(depth):
            stride = 2 if stage and not place else 1
            yield Convolution(batch, channels, inner, size)
            yield Convolution(batch, inner, inner, size, 3, stride, pad=1)
            if not place:
                yield Convolution(batch, channels, 4 * inner, size, 1, stride)
            size //= stride
            channels = 4 * inner
            yield Convolution(batch, inner, channels, size, adds=True)


def _convolution(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, other: torch.Tensor | None, sizes: Any
) -> torch.Tensor:
    if other is not None:
        return torch.cudnn_convolution_add_relu(x, weight, other, 1.0, bias, *sizes)
    return torch.cudnn_convolution_relu(x, weight, bias, *sizes)


@torch.inference_mode()
def convolution_times(batch: int) -> dict[str, list[float]]:
    """µs of each convolution of ResNet-50, fused with bias, ReLU and addition in cuDNN, channels last."""
    torch.backends.cudnn.benchmark = True
    times: dict[Convolution, float] = {}
    for each in convolutions(batch):
        if each in times:
            continue
        last = torch.channels_last
        x = _numbers(batch, each.channels, each.size, each.size).to(memory_format=last)
        weight = (_numbers(each.outputs, each.channels, each.kernel, each.kernel) / 16).to(memory_format=last)
        bias, other = _numbers(each.outputs), _numbers(batch, each.outputs, each.places, each.places)
        other = other.to(memory_format=last)
        sizes = ((each.stride,) * 2, (each.pad,) * 2, (1, 1), 1)

        times[each] = _alone(_convolution, x, weight, bias, other if each.adds else None, sizes)
    return {"cuDNN fused": [times[each] for each in convolutions(batch)]}


@torch.inference_mode()
def attention_times(each: Attended) -> dict[str, float]:
    """µs by backend of PyTorch's fused attention."""
    q, k, v = (_numbers(*each.shape) for _ in range(3))
    found = {}
    for way, backend in (("flash", SDPBackend.FLASH_ATTENTION), ("cuDNN", SDPBackend.CUDNN_ATTENTION)):
        with sdpa_kernel(backend), contextlib.suppress(RuntimeError):  # a backend may have no kernel for these sizes
            found[way] = _alone(partial(functional.scaled_dot_product_attention, is_causal=each.causal), q, k, v)
    return found


@torch.inference_mode()
def attended(given: Mapping[str, NDArray[Any]], *, causal: bool) -> NDArray[np.float32]:
    """Attention by its formula in float32."""
    q, k, v = (torch.from_numpy(given[name]).cuda().float() for name in "qkv")
    torch.backends.cuda.matmul.allow_tf32 = False
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    if causal:
        scores = scores.masked_fill(torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1), float("-inf"))
    return (scores.softmax(-1) @ v).cpu().numpy()
