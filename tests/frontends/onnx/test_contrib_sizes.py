"""Ops of com.microsoft with symbolic dims, compiled, saved and run at several sizes, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime
import pytest

import argosy
from tests.frontends.onnx.one_node import model

RNG = np.random.default_rng(0)
N, K, H = 4, 2, 16
D = N * H


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def ints(high: int, *shape: int, kind: Any = np.int32) -> Any:
    return RNG.integers(0, high, shape).astype(kind)


@dataclass(frozen=True)
class Op:
    """Inputs by sizes (those without symbolic dims are constants), and the sizes to run at."""

    inputs: Callable[..., list[Any]]
    shapes: list[Any]
    sizes: list[tuple[int, ...]]
    outputs: tuple[str, ...] = ("y",)
    attributes: dict[str, Any] = field(default_factory=dict)


COS, SIN, CODES, SCALES = floats(64, H // 2), floats(64, H // 2), ints(256, 6, 4, 8, kind=np.uint8), floats(6, 4)
W, BIAS, WORDS, PLACES, KINDS, G = floats(D, 3 * D), floats(3 * D), floats(9, 8), floats(30, 8), floats(2, 8), floats(8)

OPS = {
    "GroupQueryAttention": Op(
        lambda b, s, p: [
            floats(b, s, D), floats(b, s, K * H), floats(b, s, K * H), floats(b, K, p, H), floats(b, K, p, H),
            np.full(b, s + p - 1, np.int32), np.array(s + p, np.int32), COS, SIN,
        ],
        [["b", "s", D], ["b", "s", K * H], ["b", "s", K * H], *[["b", K, "p", H]] * 2, ["b"], [], None, None],
        [(2, 1, 5), (1, 3, 2), (3, 1, 9)],
        ("y", "present_key", "present_value"),
        {"num_heads": N, "kv_num_heads": K, "do_rotary": 1},
    ),
    "MultiHeadAttention": Op(
        lambda b, s, t: [floats(b, s, D), floats(b, t, D), floats(b, t, D), BIAS, ints(2, b, t)],
        [["b", "s", D], ["b", "t", D], ["b", "t", D], None, ["b", "t"]],
        [(2, 3, 4), (1, 5, 2)],
        attributes={"num_heads": N},
    ),
    "Attention": Op(
        lambda b, s, p: [floats(b, s, D), W, BIAS, ints(2, b, s + p), floats(2, b, N, p, H)],
        [["b", "s", D], None, None, ["b", "t"], [2, "b", N, "p", H]],
        [(2, 3, 4), (1, 1, 2)],
        ("y", "present"),
        {"num_heads": N, "unidirectional": 1},
    ),
    "EmbedLayerNormalization": Op(
        lambda b, s: [ints(9, b, s), ints(2, b, s), WORDS, PLACES, KINDS, G, G, ints(2, b, s)],
        [["b", "s"], ["b", "s"], None, None, None, None, None, ["b", "s"]],
        [(2, 3), (4, 7)],
        ("y", "mask_index", "sum"),
    ),
    "RotaryEmbedding": Op(
        lambda b, s: [floats(b, s, D), ints(60, b, s, kind=np.int64), COS, SIN],
        [["b", "s", D], ["b", "s"], None, None],
        [(2, 3), (1, 7)],
    ),
    "MatMulNBits": Op(
        lambda b, s: [floats(b, s, 64), CODES, SCALES],
        [["b", "s", 64], None, None],
        [(2, 3), (1, 7)],
        attributes={"N": 6, "K": 64, "bits": 4, "block_size": 16},
    ),
    "SkipLayerNormalization": Op(
        lambda b, s: [floats(b, s, 8), floats(b, s, 8), G, G, G],
        [["b", "s", 8], ["b", "s", 8], None, None, None],
        [(2, 3), (1, 7)],
        ("y", "", "", "sum"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPS)
def test_every_size(name: str) -> None:
    op = OPS[name]
    constant = tuple(index for index, shape in enumerate(op.shapes) if shape is None)
    first = op.inputs(*op.sizes[0])
    proto = model(
        name, first, opset=21, domain="com.microsoft", outputs=op.outputs, constant=constant, shapes=op.shapes,
        **op.attributes,
    )  # fmt: skip
    proto.ir_version = 10
    session = argosy.Session(argosy.compile(proto, targets=("ref",)).to_bytes())
    oracle = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    for sizes in op.sizes:
        feeds = {f"x{index}": value for index, value in enumerate(op.inputs(*sizes)) if index not in constant}
        expected = oracle.run(None, feeds)
        found = session.run(feeds)
        for output, want in zip(filter(None, op.outputs), expected, strict=True):
            np.testing.assert_allclose(found[output], want, rtol=1e-3, atol=1e-4, err_msg=f"{output} at {sizes}")
