"""Attention of models in float16 and bfloat16 is the one kernel, in the forms in which exporters write it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper, parser

import argosy
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.targets.gpu.arch import find_gpu
from argosy.targets.gpu.codegen.kernel import Kernel
from argosy.targets.gpu.lower import lower_module
from argosy.targets.gpu.pipeline import pipeline
from tests.targets.gpu.interpreted import interpreted_run

_KINDS = {"float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
_ALLOWED = {"float16": 1e-3, "bfloat16": 8e-3}
"""What rounding inputs of a product and its result may make of averages of values of 1."""
BATCH, HEADS, LENGTH, WIDTH = 2, 3, 72, 16
_HEAD = '<ir_version: 10, opset_import: ["" : 18]>\n'
_QKV = "KIND[B,3,S,16] q, KIND[B,3,S,16] k, KIND[B,3,S,16] v, KIND[B,1,1,S] mask"
_SDPA = """
  half = Constant<value = float {0.5}>()
  root = CastLike(half, q)
  qs = Mul(q, root)
  kt = Transpose<perm=[0,1,3,2]>(k)
  ks = Mul(kt, root)
  scores = MatMul(qs, ks)
"""
_BERT = """
  kt = Transpose<perm=[0,1,3,2]>(k)
  product = MatMul(q, kt)
  four = Constant<value = float {4}>()
  root = CastLike(four, q)
  scores = Div(product, root)
"""
_FORMS = {
    "scaled dot product": _SDPA + "weights = Softmax<axis=-1>(scores)\n y = MatMul(weights, v)",
    "scaled, with a mask": (
        _SDPA + "masked = Add(scores, mask)\n weights = Softmax<axis=-1>(masked)\n y = MatMul(weights, v)"
    ),
    "divided scores": _BERT
    + "masked = Add(scores, mask)\n weights = Softmax<axis=-1>(masked)\n y = MatMul(weights, v)",
    "a softmax in float32": (
        _BERT + "masked = Add(scores, mask)\n wide = Cast<to=1>(masked)\n sure = Softmax<axis=-1>(wide)\n"
        "weights = CastLike(sure, v)\n y = MatMul(weights, v)"
    ),
    "all in float32": (
        "q32 = Cast<to=1>(q)\n k32 = Cast<to=1>(k)\n v32 = Cast<to=1>(v)\n kt = Transpose<perm=[0,1,3,2]>(k32)\n"
        "product = MatMul(q32, kt)\n quarter = Constant<value = float {0.25}>()\n scores = Mul(product, quarter)\n"
        "mask32 = Cast<to=1>(mask)\n masked = Add(scores, mask32)\n sure = Softmax<axis=-1>(masked)\n"
        "mixed = MatMul(sure, v32)\n y = CastLike(mixed, v)"
    ),
    "a scale of the shape": (
        "size = Shape<start=-1>(q)\n width = Cast<to=1>(size)\n deep = Sqrt(width)\n"
        "one = Constant<value = float {1}>()\n"
        "scale = Div(one, deep)\n part = Sqrt(scale)\n root = CastLike(part, q)\n qs = Mul(q, root)\n"
        "kt = Transpose<perm=[0,1,3,2]>(k)\n ks = Mul(kt, root)\n scores = MatMul(qs, ks)\n"
        "masked = Add(scores, mask)\n weights = Softmax<axis=-1>(masked)\n y = MatMul(weights, v)"
    ),
}


def _model(form: str, kind: str) -> onnx.ModelProto:
    text = f"g ({_QKV}) => (KIND[B,3,S,16] y) {{{_FORMS[form]}}}".replace("KIND", kind)
    return parser.parse_model(_HEAD + text)


def _feeds(kind: str) -> dict[str, NDArray[Any]]:
    draw = np.random.default_rng(5).standard_normal
    feeds = {name: draw((BATCH, HEADS, LENGTH, WIDTH)).astype(_KINDS[kind]) for name in "qkv"}
    mask = np.where(np.random.default_rng(6).random((BATCH, 1, 1, LENGTH)) < 0.7, 0, -3e4).astype(_KINDS[kind])
    return feeds | {"mask": mask}


def _expected(q: Any, k: Any, v: Any, mask: Any = 0.0, scale: float = 0.25) -> NDArray[np.float64]:
    q, k, v, mask = (np.asarray(each).astype(np.float64) for each in (q, k, v, mask))
    scores = q @ k.swapaxes(-1, -2) * scale + mask
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True) @ v)


def _kernels(model: onnx.ModelProto, dims: Mapping[str, int] | None = None) -> list[Kernel]:
    arch, options = find_gpu("h200"), CompileOptions(strict=True)
    assert arch is not None
    module = PassManager(tuple(pipeline(options))).run(argosy.load_onnx(model, dims=dict(dims or {})).main)
    return list(lower_module(module, arch, options, {}, {}).kernels.values())


def _run(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[NDArray[np.float64]]:
    run = interpreted_run(argosy.load_onnx(model), options=CompileOptions(strict=True))
    return [np.asarray(found).astype(np.float64) for found in run(feeds).values()]


@pytest.mark.parametrize("kind", _KINDS)
@pytest.mark.parametrize("form", _FORMS)
def test_it_is_the_one_kernel(form: str, kind: str) -> None:
    model, feeds = _model(form, kind), _feeds(kind)
    assert [kernel.label for kernel in _kernels(model)] == ["dot_flash"]
    (found,) = _run(model, feeds)
    right = _expected(feeds["q"], feeds["k"], feeds["v"], 0.0 if form == "scaled dot product" else feeds["mask"])
    assert np.abs(found - right).max() <= 2 * _ALLOWED[kind]


def _node(
    op: str, inputs: Mapping[str, tuple[tuple[int, ...], int]], results: Sequence[str], domain: str = "", **given: Any
) -> onnx.ModelProto:
    """A model of one node; an input called `-` is absent."""
    known = [
        helper.make_tensor_value_info(name, kind, shape) for name, (shape, kind) in inputs.items() if name[0] != "-"
    ]
    names = ["" if name[0] == "-" else name for name in inputs]
    made = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, None) for name in results]
    node = helper.make_node(op, names, results, domain=domain, **given)
    graph = helper.make_graph([node], "g", known, made)
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _drawn(*shape: int) -> NDArray[np.float16]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float16)


@pytest.mark.parametrize(("queries", "keys"), [(160, 160), (20, 160)])
def test_the_op_of_onnx_passes_over_what_is_causal(queries: int, keys: int) -> None:
    shapes = {"q": (1, 2, queries, 16), "k": (1, 2, keys, 16), "v": (1, 2, keys, 16)}
    model = _node("Attention", {name: (each, TensorProto.FLOAT16) for name, each in shapes.items()}, ["y"], is_causal=1)
    kernels = _kernels(model)
    assert [kernel.label for kernel in kernels if kernel.label not in ("reduce_max", "dot_flash")] == []
    feeds = {name: _drawn(*shape) for name, shape in shapes.items()}
    mask = np.triu(np.full((queries, keys), -np.inf), 1)
    right = _expected(feeds["q"], feeds["k"], feeds["v"], mask)
    feeds["v"][..., 128:, :] = np.nan  # behind the first step of the first rows
    (found,) = _run(model, feeds)
    first = slice(min(queries, 112))
    assert np.abs(found[:, :, first] - right[:, :, first]).max() <= 2 * _ALLOWED["float16"]


@pytest.mark.parametrize("causal", [False, True])
def test_multi_head_attention(causal: bool) -> None:
    half = TensorProto.FLOAT16
    inputs: dict[str, tuple[tuple[int, ...], int]] = dict.fromkeys("qkv", ((2, LENGTH, 48), half))
    inputs |= {"b": ((144,), half), "pad": ((2, LENGTH), TensorProto.INT32)}
    model = _node("MultiHeadAttention", inputs, ["y"], "com.microsoft", num_heads=3, unidirectional=int(causal))
    (flash,) = [kernel for kernel in _kernels(model) if "dot" in kernel.label]
    assert flash.label == "dot_flash"
    assert flash.pointers[:3] == ("*fp16",) * 3, "its operands are widened"
    feeds: dict[str, Any] = {name: _drawn(2, LENGTH, 48) * np.float16(0.5) for name in "qkv"}
    feeds |= {"b": _drawn(144), "pad": np.ones((2, LENGTH), np.int32)}
    feeds["pad"][1, 60:] = 0
    added = [feeds[name].astype(np.float64) + part for name, part in zip("qkv", np.split(feeds["b"], 3), strict=True)]
    q, k, v = (each.reshape(2, LENGTH, 3, 16).swapaxes(1, 2) for each in added)
    mask = np.where(feeds["pad"][:, None, None] > 0, 0.0, -10000.0)
    if causal:
        mask = np.where(np.tri(LENGTH, dtype=bool), mask, -np.inf)
    (found,) = _run(model, feeds)
    right = _expected(q, k, v, mask).swapaxes(1, 2).reshape(2, LENGTH, 48)
    assert np.abs(found - right).max() <= 4 * _ALLOWED["float16"]


@pytest.mark.parametrize(("length", "window"), [(1, -1), (3, -1), (3, 16)])
def test_grouped_queries_go_through_the_keys_that_there_are(length: int, window: int) -> None:
    half, capacity, totals = TensorProto.FLOAT16, 160, [100, 57]
    inputs: dict[str, tuple[tuple[int, ...], int]]
    inputs = {"q": ((2, length, 64), half), "k": ((2, length, 32), half), "v": ((2, length, 32), half)}
    inputs |= {"pk": ((2, 2, capacity, 16), half), "pv": ((2, 2, capacity, 16), half)}
    inputs |= {"sl": ((2,), TensorProto.INT32), "-total": ((1,), TensorProto.INT32)}
    model = _node(
        "GroupQueryAttention", inputs, ["y", "a", "b"], "com.microsoft", num_heads=4, kv_num_heads=2,
        local_window_size=window,
    )  # fmt: skip
    model.graph.node[0].input[6] = "total"
    model.graph.initializer.append(numpy_helper.from_array(np.array([max(totals)], np.int32), "total"))
    (kernel,) = [kernel for kernel in _kernels(model) if "flash" in kernel.label]
    assert " seen" in kernel.text
    feeds = {name: _drawn(*inputs[name][0]) for name in ("q", "k", "v", "pk", "pv")}
    feeds["pk"][:, :, 128:] = np.nan  # behind all that there is
    feeds["pv"][:, :, 128:] = np.nan
    found = _run(model, feeds | {"sl": np.array(totals, np.int32) - 1})[0]
    for batch, total in enumerate(totals):
        q = feeds["q"][batch].reshape(length, 4, 16).swapaxes(0, 1)
        own = [feeds[name][batch].reshape(length, 2, 16).swapaxes(0, 1) for name in "kv"]
        past = total - length
        k, v = (
            np.concatenate([feeds[name][batch, :, :past], new], 1).repeat(2, 0)
            for name, new in zip(("pk", "pv"), own, strict=True)
        )
        apart = past + np.arange(length)[:, None] - np.arange(total)
        mask = np.where((apart >= 0) & ((apart < window) | (window < 0)), 0.0, -np.inf)
        right = _expected(q, k, v, mask).swapaxes(0, 1).reshape(length, 64)
        assert np.abs(found[batch] - right).max() <= 2 * _ALLOWED["float16"]
