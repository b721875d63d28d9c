"""The same models in PyTorch, in fp16: lean modules, under `torch.compile` and by hand under a captured graph.

BERT has one product for queries, keys and values and the fused attention; by hand, ResNet-50 has cuDNN's convolutions
with bias, ReLU and addition in one, channels last. Weights are random: only times are taken.

BERT is timed with its mask and without, which takes torch to faster kernels, and by hand with each library that torch
has for products and attention; the fastest counts, though ours reads the mask. What torch does on the host at a call is
hidden behind other work of the device, so that it does not count.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from benchmarks.gpu.cases import Case
from benchmarks.gpu.ours import graph_time

__all__ = ["replayed", "times"]

_CYCLES = 4_000_000  # of the device, 2 ms: longer than the host takes for a call
_RATIO = 4  # of an outer width to an inner one, in both models
_PRODUCTS: Final = ("cublas", "cublaslt")
_ATTENTIONS: Final = (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION)


class _Layer(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.packed, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, _RATIO * width), nn.Linear(_RATIO * width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.packed(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = self.first(x + self.out(mixed.transpose(1, 2).reshape(batch, length, width)))
        return self.second(x + self.down(functional.gelu(self.up(x))))


class _Bert(nn.Module):
    def __init__(self, width: int = 768, heads: int = 12, layers: int = 12) -> None:
        super().__init__()
        self.words, self.places, self.kinds = (nn.Embedding(size, width) for size in (30522, 512, 2))
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(_Layer(width, heads) for _ in range(layers))
        self.pooler = nn.Linear(width, width)

    def forward(self, tokens: torch.Tensor, kinds: torch.Tensor, mask: torch.Tensor | None = None) -> tuple[Any, Any]:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.norm(self.words(tokens) + self.places(places) + self.kinds(kinds))
        bias = None if mask is None else (1 - mask[:, None, None, :].half()) * -10000.0
        for layer in self.layers:
            x = layer(x, bias)
        return x, torch.tanh(self.pooler(x[:, 0]))


def _conv(x: torch.Tensor, conv: nn.Conv2d, other: torch.Tensor | None = None, *, fused: bool) -> torch.Tensor:
    """A convolution, ReLU behind it, and another tensor added in between."""
    if not fused:
        y = conv(x)
        return functional.relu(y if other is None else y + other)
    sizes = (conv.stride, conv.padding, conv.dilation, conv.groups)
    if other is None:
        return torch.cudnn_convolution_relu(x, conv.weight, conv.bias, *sizes)
    return torch.cudnn_convolution_add_relu(x, conv.weight, other, 1.0, conv.bias, *sizes)


class _Block(nn.Module):
    def __init__(self, channels: int, inner: int, stride: int, *, fused: bool) -> None:
        super().__init__()
        self.fused, outer = fused, _RATIO * inner
        self.a, self.b = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, inner, 3, stride, 1)
        self.c = nn.Conv2d(inner, outer, 1)
        self.side = nn.Conv2d(channels, outer, 1, stride) if channels != outer or stride > 1 else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        side = x if self.side is None else self.side(x)
        inner = _conv(_conv(x, self.a, fused=self.fused), self.b, fused=self.fused)
        return _conv(inner, self.c, side, fused=self.fused)


class _ResNet(nn.Module):
    """ResNet-50 with its norms folded into the convolutions, as in an exported model."""

    def __init__(self, *, fused: bool) -> None:
        super().__init__()
        self.fused, channels = fused, 64
        self.stem = nn.Conv2d(3, 64, 7, 2, 3)
        blocks = []
        for stage, depth in enumerate((3, 4, 6, 3)):
            for place in range(depth):
                blocks.append(_Block(channels, 64 << stage, 2 if stage and not place else 1, fused=fused))
                channels = _RATIO * (64 << stage)
        self.blocks, self.head = nn.Sequential(*blocks), nn.Linear(channels, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.max_pool2d(_conv(x, self.stem, fused=self.fused), 3, 2, 1)
        return self.head(self.blocks(x).mean((2, 3)))


def _made(case: Case, *, fused: bool) -> tuple[nn.Module, list[torch.Tensor]]:
    batch = case.dims["batch"]
    if case.model == "bert_base":
        shape = (batch, case.dims["sequence"])
        tokens = torch.randint(0, 30522, shape, device="cuda")
        return _Bert().cuda().half().eval(), [tokens, torch.zeros_like(tokens), torch.ones_like(tokens)]
    model = _ResNet(fused=fused).cuda().half().eval().to(memory_format=torch.channels_last)
    image = torch.randn(batch, 3, 224, 224, device="cuda", dtype=torch.half)
    return model, [image.to(memory_format=torch.channels_last)]


def replayed(call: Callable[[], Any]) -> float:
    """Median µs of a call, captured."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        call()
    with torch.cuda.stream(stream):
        return graph_time(graph.replay, stream)


@torch.inference_mode()
def times(case: Case) -> dict[str, float]:
    """Median µs by way: `torch.compile` (reduce-overhead), and by hand; of the inputs that do without, the faster."""
    torch.manual_seed(0)
    found = {"compile": float("inf"), "by hand": float("inf")}
    for count in (None, 2) if case.model == "bert_base" else (None,):
        model, inputs = _made(case, fused=False)
        compiled, given = torch.compile(model, mode="reduce-overhead"), inputs[:count]
        for _ in range(4):
            compiled(*given)
        # No public call keeps a device busy and leaves its caches alone.
        ahead = partial(torch.cuda._sleep, _CYCLES)  # noqa: SLF001
        time = graph_time(partial(compiled, *given), torch.cuda.current_stream(), ahead=ahead)
        found["compile"] = min(found["compile"], time)
        model, inputs = _made(case, fused=True)
        for _ in _libraries() if case.model == "bert_base" else ("cuDNN",):
            with contextlib.suppress(RuntimeError):  # flash attention takes no mask
                found["by hand"] = min(found["by hand"], replayed(partial(model, *inputs[:count])))
    return found


def _libraries() -> Iterator[None]:
    """Makes torch use each library for products with each for attention, for what the caller does meanwhile."""
    before = torch.backends.cuda.preferred_blas_library()
    for products, attention in itertools.product(_PRODUCTS, _ATTENTIONS):
        torch.backends.cuda.preferred_blas_library(products)
        with sdpa_kernel(attention):
            yield
    torch.backends.cuda.preferred_blas_library(before)
