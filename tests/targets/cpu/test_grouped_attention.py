"""Heads that share keys and values are one fused kernel that reads these once; results agree with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx.parser
import onnxruntime
import pytest

import argosy
from tests.targets.cpu.loops import needs_compiler

pytestmark = needs_compiler

HEAD = 32
RNG = np.random.default_rng(3)


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def microsoft(attributes: str = "") -> str:
    """GroupQueryAttention of com.microsoft: 8 heads share 2, over a cache with room for C keys."""
    return f"""<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
    g (float[B, S, 256] q, float[B, S, 64] k, float[B, S, 64] v, float[B, 2, C, 32] past_k, float[B, 2, C, 32] past_v,
       int32[B] last, int32[1] total) => (float[B, S, 256] y, float[B, 2, D, 32] new_k, float[B, 2, D, 32] new_v) {{
      y, new_k, new_v = com.microsoft.GroupQueryAttention<num_heads = 8, kv_num_heads = 2{attributes}>(
          q, k, v, past_k, past_v, last, total)
    }}"""


def standard(shared: int, mask: str = "", attributes: str = "is_causal = 1", opset: int = 24) -> str:
    """Attention of ai.onnx with a past: 8 heads share `shared`."""
    given = f"{mask} mask," if mask else ""
    return f"""<ir_version: 11, opset_import: ["": {opset}]>
    g (float[B, 8, S, 32] q, float[B, {shared}, T, 32] k, float[B, {shared}, T, 32] v, {given}
       float[B, {shared}, P, 32] past_k, float[B, {shared}, P, 32] past_v)
      => (float[B, 8, S, 32] y, float[B, {shared}, A, 32] new_k, float[B, {shared}, A, 32] new_v) {{
      y, new_k, new_v = Attention<{attributes}>(q, k, v, {"mask" if mask else ""}, past_k, past_v)
    }}"""


def exported(order: str, mask: str) -> str:
    """As PyTorch exports it: Unsqueeze, Expand and Reshape repeat keys and values, of which past ones come first."""
    shapes = {
        "constant": "wide = Constant<value_ints = [1, 2, 4, 1, 32]>()",
        "shape": """one = Constant<value_ints = [1]>() sizes = Shape<start = 0, end = 1>(q)
            heads = Constant<value_ints = [2, 4]>() keys = Shape<start = 2, end = 3>(all_k)
            size = Constant<value_ints = [32]>() wide = Concat<axis = 0>(sizes, heads, keys, size)""",
    }[order]
    masked = {
        "added": "hidden = Add(scaled, mask)",
        "chosen": """least = Constant<value_float = -1000000000.0>() hidden = Where(mask, scaled, least)""",
    }[mask]
    kind = {"added": "float", "chosen": "bool"}[mask]
    return f"""<ir_version: 8, opset_import: ["": 17]>
    g (float[B, 8, S, 32] q, float[B, 2, S, 32] k, float[B, 2, S, 32] v, {kind}[B, 1, S, M] mask,
       float[B, 2, P, 32] past_k, float[B, 2, P, 32] past_v)
      => (float[B, S, 256] y, float[B, 2, A, 32] all_k, float[B, 2, A, 32] all_v) {{
      all_k = Concat<axis = 2>(past_k, k)
      all_v = Concat<axis = 2>(past_v, v)
      {shapes}
      axis = Constant<value_ints = [2]>()
      flat = Constant<value_ints = [0, 8, -1, 32]>()
      k5 = Unsqueeze(all_k, axis)
      v5 = Unsqueeze(all_v, axis)
      k_wide = Expand(k5, wide)
      v_wide = Expand(v5, wide)
      k_all = Reshape(k_wide, flat)
      v_all = Reshape(v_wide, flat)
      turned = Transpose<perm = [0, 1, 3, 2]>(k_all)
      scores = MatMul(q, turned)
      root = Constant<value_float = 5.656854>()
      scaled = Div(scores, root)
      {masked}
      weights = Softmax<axis = -1>(hidden)
      context = MatMul(weights, v_all)
      rows = Transpose<perm = [0, 2, 1, 3]>(context)
      shape = Constant<value_ints = [0, 0, 256]>()
      y = Reshape(rows, shape)
    }}"""


def folded() -> str:
    """Batch and heads are one axis for the products, two for the mask, as in BART."""
    return """<ir_version: 8, opset_import: ["": 17]>
    g (float[12, S, 32] q, float[12, T, 32] k, float[12, T, 32] v, float[3, 1, S, T] mask) => (float[12, S, 32] y) {
      turned = Transpose<perm = [0, 2, 1]>(k)
      scores = MatMul(q, turned)
      apart = Constant<value_ints = [3, 4, 0, -1]>()
      sizes = Shape(scores)
      both = Shape<start = 1>(scores)
      heads = Constant<value_ints = [3, 4]>()
      wide = Concat<axis = 0>(heads, both)
      four = Reshape(scores, wide)
      masked = Add(four, mask)
      three = Reshape(masked, sizes)
      weights = Softmax<axis = -1>(three)
      y = MatMul(weights, v)
    }"""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Batch, queries, new keys, past keys or room for them."""

    batch: int
    queries: int
    keys: int
    past: int


EVERY = (Sizes(2, 1, 1, 70), Sizes(1, 3, 3, 20), Sizes(2, 5, 5, 20), Sizes(1, 40, 40, 0), Sizes(1, 300, 300, 290))


def feeds(model: Any, sizes: Sizes) -> dict[str, Any]:
    """Values for the inputs by their names."""
    seen = sizes.past + sizes.queries
    numbers = {"B": sizes.batch, "S": sizes.queries, "T": sizes.keys, "P": sizes.past, "C": seen, "M": seen}
    found: dict[str, Any] = {}
    for value in model.graph.input:
        kind = value.type.tensor_type
        shape = [numbers[dim.dim_param] if dim.dim_param else dim.dim_value for dim in kind.shape.dim]
        if value.name == "last":
            found["last"] = np.full(shape, seen - 1, np.int32)
        elif value.name == "total":
            found["total"] = np.array([seen], np.int32)
        elif value.name == "mask":
            kept = np.tril(np.ones(shape[-2:], bool), seen - sizes.queries) & (RNG.random(shape) > 0.2)
            kept[..., 0] = True
            as_floats = np.where(kept, 0, np.finfo(np.float32).min).astype(np.float32)
            found["mask"] = kept if kind.elem_type == onnx.TensorProto.BOOL else as_floats
        else:
            found[value.name] = floats(*shape)
    return found


def check(text: str, several: Sequence[Sizes], symbols: str) -> None:
    """Native code without a host step agrees with ONNX Runtime, and holds no scores and no repeated keys or values."""
    model = onnx.parser.parse_model(text)
    artifact = argosy.compile(model, targets=("cpu",), strict=True)
    (variant,) = artifact.variants
    for buffer in artifact.plan(variant.key).buffers:
        dims = str(buffer.type).partition("[")[2].rstrip("]").split(", ")
        keys = [place for place, dim in enumerate(dims) if any(symbol in dim for symbol in symbols)]
        # Panels of keys and values end in the width of a head, or in a vector of that.
        wide = any("S" in dim for dim in dims[:-1]) and len(dims) > 2 and not dims[-1].isdigit()
        assert not (wide and keys and "input" not in buffer.kind), f"scores in memory: {buffer.type}"
        assert not (keys and "8" in dims and "S" not in dims), f"repeated keys or values: {buffer.type}"
    session = argosy.Session(artifact, device="cpu")
    other = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for sizes in several:
        given = feeds(model, sizes)
        for (name, found), wanted in zip(session.run(given).items(), other.run(None, given), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-5, err_msg=f"{name}, {sizes}")


@pytest.mark.parametrize("attributes", ["", ", softcap = 2.0", ", local_window_size = 9", ", scale = 0.3"])
def test_group_query_attention(attributes: str) -> None:
    # ONNX Runtime takes several queries behind a past in a batch of 1 only.
    check(microsoft(attributes), [sizes for sizes in EVERY if 1 in (sizes.batch, sizes.queries)], "CD")


@pytest.mark.parametrize("shared", [1, 2])
def test_attention(shared: int) -> None:
    check(standard(shared), EVERY, "TPA")


@pytest.mark.parametrize("mask", ["float[S, M]", "bool[S, M]", "float[B, 1, S, M]", "bool[B, 1, S, M]"])
def test_attention_masks(mask: str) -> None:
    check(standard(2, mask, "softcap = 3.0, scale = 0.2", 23), EVERY, "TPA")


@pytest.mark.parametrize("order", ["constant", "shape"])
@pytest.mark.parametrize("mask", ["added", "chosen"])
def test_exported(order: str, mask: str) -> None:
    check(exported(order, mask), EVERY, "PA")


def test_batch_and_heads_as_one() -> None:
    check(folded(), [replace(sizes, batch=3) for sizes in EVERY[1:4]], "T")


def run(text: str, given: Mapping[str, Any]) -> Any:
    """The first result."""
    artifact = argosy.compile(onnx.parser.parse_model(text), targets=("cpu",), strict=True)
    return next(iter(argosy.Session(artifact, device="cpu").run(given).values()))


@pytest.mark.parametrize("shared", [1, 2, 4])
def test_grouped_is_as_repeated(shared: int) -> None:
    """Keys given once, and repeated by the caller for each of the heads, give the same."""
    given = feeds(onnx.parser.parse_model(standard(shared)), Sizes(2, 5, 7, 30))
    wide = {name: x if name == "q" else np.repeat(x, 8 // shared, axis=1) for name, x in given.items()}
    np.testing.assert_allclose(run(standard(shared), given), run(standard(8), wide), rtol=1e-5, atol=1e-6)
