"""Convolutions of every kind on the CPU agree with ONNX Runtime, and none is left to plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

import argosy
from argosy.ir import Builder
from argosy.ops.convolution import ConvTranspose
from argosy.ops.slicing import Pad
from argosy.ops.view import Transpose
from tests.targets.cpu.against_ref import check
from tests.targets.cpu.loops import needs_compiler
from tests.targets.cpu.test_convolution import convolution, image, weights

pytestmark = needs_compiler


def kernel_names(artifact: argosy.Artifact) -> set[str]:
    """What the kernels of a model are called, without their hashes."""
    (variant,) = artifact.variants
    calls = [step for block in artifact.plan(variant.key).body for step in getattr(block, "steps", ())]
    return {call.entry.rsplit("_", 1)[0] for call in calls if hasattr(call, "entry")}


@pytest.mark.parametrize("order", ["turned", "reflected"])
@pytest.mark.parametrize("symbolic", [False, True], ids=["bound", "symbolic"])
@pytest.mark.parametrize("transposed", [False, True], ids=["conv", "transposed"])
def test_an_operand_behind_it_in_another_order(order: str, *, symbolic: bool, transposed: bool) -> None:
    """What no tile can add is added by loops; the convolution is done in tiles all the same."""
    build = Builder()
    x = build.tensor_parameter("x", "float32", [1, 24, "length" if symbolic else 30])
    if transposed:
        made = build.add(ConvTranspose((1,), (1, 1), (1,)), x, build.constant(weights((24, 20, 3))))
    else:
        made = build.add(convolution(3, {"pads": 1}), x, build.constant(weights((20, 24, 3))))
    length = made.shape[2]
    if order == "turned":
        rest = build.tensor_parameter("rest", "float32", [length, 1, 20])
        seen = build.add(Transpose((1, 2, 0)), rest)
        other = image((30, 1, 20))
    else:
        rest = build.tensor_parameter("rest", "float32", [1, 20, length - 1])
        seen = build.add(Pad("reflect", (0, 0, 1, 0, 0, 0)), rest)
        other = image((1, 20, 29))
    module = build.module({"y": build.pointwise(lambda a, b: (a + b).max(0.0) * 1.5, made, seen)})
    check(module, [([image((1, 24, 30)), other], {"length": 30} if symbolic else {})])
    names = kernel_names(argosy.compile(argosy.ir.Program(module), targets=("cpu",), strict=True))
    assert not any("loops" in name for name in names)


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    """A convolution or its transpose: dims and attributes, which axes are open, what follows."""
    axes = draw(st.integers(1, 3))
    largest = (40, 20, 8)[axes - 1]
    transposed = draw(st.booleans())
    kind = draw(st.sampled_from(["one group", "groups", "depthwise", "one output", "one channel"]))
    group = draw(st.integers(2, 18)) if kind in ("groups", "depthwise") else 1
    channels = 1 if kind in ("depthwise", "one channel") else draw(st.integers(1, 20 if group == 1 else 4))
    outputs = 1 if kind == "one output" else draw(st.integers(1, 36 if group == 1 else 4))
    kernel = [draw(st.integers(1, min(size, 11 if axes == 1 else 4))) for size in [largest] * axes]
    dilations = [draw(st.integers(1, 3)) for _ in range(axes)]
    strides = [draw(st.integers(1, 3)) for _ in range(axes)]
    reach = [(taps - 1) * dilation + 1 for taps, dilation in zip(kernel, dilations, strict=True)]
    pads = [draw(st.integers(0, min(far - 1, 3))) for far in reach * 2]
    sizes = [draw(st.integers(1 if transposed else far, largest + far)) for far in reach]
    if transposed:  # the result must have places
        sizes = [max(size, pads[axis] + pads[axis + axes] + 1) for axis, size in enumerate(sizes)]
    batch = draw(st.integers(1, 2))
    attributes = {"strides": strides, "pads": pads, "dilations": dilations, "group": group}
    if transposed and draw(st.booleans()):
        more = [
            draw(st.integers(0, max(stride, dilation) - 1)) for stride, dilation in zip(strides, dilations, strict=True)
        ]
        attributes["output_padding"] = [min(extra, stride - 1) for extra, stride in zip(more, strides, strict=True)]
    each = [group * channels, outputs] if transposed else [group * outputs, channels]
    return {
        "op": "ConvTranspose" if transposed else "Conv",
        "x": [batch, group * channels, *sizes],
        "weight": [*each, *kernel],
        "outputs": group * outputs,
        "attributes": attributes,
        "open": draw(st.sets(st.sampled_from([0, *range(2, axes + 2)]))),
        "fed": draw(st.booleans()),
        "bias": draw(st.booleans()),
        "behind": draw(st.sampled_from(["", "Relu", "Add"])),
        "dtype": draw(st.sampled_from(["float32", "float32", "float16"])),
    }


def model_of(problem: dict[str, Any]) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A model, and what to feed it with."""
    random = np.random.default_rng(5)
    dtype = np.dtype(problem["dtype"])
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    depth = np.prod(problem["weight"]) / problem["outputs"]
    feeds = {"x": random.standard_normal(problem["x"]).astype(dtype)}
    weight = (random.standard_normal(problem["weight"]) / np.sqrt(depth)).astype(dtype)
    dims = [f"d{axis}" if axis in problem["open"] else size for axis, size in enumerate(problem["x"])]
    inputs = [helper.make_tensor_value_info("x", kind, dims)]
    kept = [numpy_helper.from_array(random.standard_normal(problem["outputs"]).astype(dtype), "b")]
    if problem["fed"]:
        inputs.append(helper.make_tensor_value_info("w", kind, problem["weight"]))
        feeds["w"] = weight
    else:
        kept.append(numpy_helper.from_array(weight, "w"))
    operands = ["x", "w", *(["b"] if problem["bias"] else [])]
    behind = problem["behind"]
    nodes = [helper.make_node(problem["op"], operands, ["c" if behind else "y"], **problem["attributes"])]
    if behind:
        nodes.append(helper.make_node(behind, ["c", "c"] if behind == "Add" else ["c"], ["y"]))
    made = helper.make_tensor_value_info("y", kind, [None] * len(dims))
    graph = helper.make_graph(nodes, "convolution", inputs, [made], kept if problem["bias"] else kept[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), feeds


def agree_with_onnxruntime(problem: dict[str, Any]) -> None:
    """One convolution, in native code and by ONNX Runtime."""
    model, feeds = model_of(problem)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, feeds)
    artifact = argosy.compile(argosy.load_onnx(model), targets=("cpu",), strict=True)
    found = argosy.Session(artifact, device="cpu").run(feeds)["y"]
    limit = 4e-3 if problem["dtype"] == "float16" else 2e-5
    np.testing.assert_allclose(
        found.astype(np.float64), expected.astype(np.float64), limit, limit, err_msg=str(problem)
    )
    loops = [name for name in kernel_names(artifact) if name.startswith("conv") and name.endswith("loops")]
    assert not loops or not all(expected.shape), problem


@given(problem=problems())
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None)
def test_any_convolution(problem: dict[str, Any]) -> None:
    agree_with_onnxruntime(problem)


@pytest.mark.nightly
@given(problem=problems())
@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_convolutions(problem: dict[str, Any]) -> None:
    agree_with_onnxruntime(problem)


WAYS: list[tuple[list[int], list[int], int, str]] = [
    ([1, 64, 40, 40], [1, 64, 3, 3], 1, "line"),
    ([1, 24, 40, 40], [24, 2, 3, 3], 12, "line"),
    ([1, 64, 40, 40], [128, 1, 3, 3], 64, "line"),
    ([1, 64, 40, 40], [64, 64, 1, 1], 1, "direct"),
    ([1, 96, 1, 1], [24, 96, 1, 1], 1, "direct"),
]


@pytest.mark.parametrize(("x", "weight", "group", "way"), WAYS, ids=[str(case[:3]) for case in WAYS])
def test_lines_are_taken_where_blocks_would_be_padding(x: list[int], weight: list[int], group: int, way: str) -> None:
    build = Builder()
    given = build.tensor_parameter("x", "float32", x)
    made = build.add(convolution(4, {"group": group}), given, build.constant(weights(weight)))
    artifact = argosy.compile(argosy.ir.Program(build.module({"y": made})), targets=("cpu",), strict=True)
    kernel = "x".join(map(str, weight[2:]))
    assert f"conv{kernel}_{way}" in kernel_names(artifact)
