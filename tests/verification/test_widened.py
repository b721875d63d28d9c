"""`ref64` gives true values: against ONNX's own evaluation of the same model in double, and numpy in float64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import argosy
from argosy.comparison import Agree, compare, is_quantised
from argosy.errors import ArgosyError
from argosy.ir.builder import Builder
from argosy.ir.dtype import FLOAT32, FLOAT64, INT32, dtype
from argosy.ir.program import Program
from argosy.ops.matmul import Dot
from argosy.ops.random import Random
from argosy.ops.view import BitCast
from argosy.verification import Tolerance
from argosy.verification.reference import RefReference
from argosy.verification.widened import WideReference, rounded
from benchmarks.models import real
from tests.conformance.cases import load_cases
from tests.models import real_models

FLOAT, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE
SOURCE = np.random.default_rng(11)


def data(*shape: int) -> Any:
    return SOURCE.normal(size=shape).astype(np.float32)


def branch(name: str, nodes: list[onnx.NodeProto], inputs: list[Any], outputs: list[Any]) -> onnx.GraphProto:
    return helper.make_graph(nodes, name, inputs, outputs)


def info(name: str, element: int, shape: list[Any] | None = None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def loop(element: int) -> list[onnx.NodeProto]:
    """Five times h = tanh(h @ w) * 1.1, and every h."""
    body = branch(
        "body",
        [
            helper.make_node("MatMul", ["h", "w"], ["m"]),
            helper.make_node("Tanh", ["m"], ["t"]),
            helper.make_node("Mul", ["t", "b"], ["next"]),
            helper.make_node("Identity", ["go"], ["again"]),
            helper.make_node("Identity", ["next"], ["all"]),
        ],
        [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, []), info("h", element, [3, 4])],
        [info("again", TensorProto.BOOL, []), info("next", element, [3, 4]), info("all", element, [3, 4])],
    )
    return [helper.make_node("Loop", ["five", "yes", "x"], ["last", "y"], body=body)]


def conditional(element: int) -> list[onnx.NodeProto]:
    parts = [
        branch(op, [helper.make_node(op, ["x"], [f"{op}y"])], [], [info(f"{op}y", element)]) for op in ("Exp", "Sin")
    ]
    return [helper.make_node("If", ["yes"], ["y"], then_branch=parts[0], else_branch=parts[1])]


def scan(element: int) -> list[onnx.NodeProto]:
    body = branch(
        "body",
        [helper.make_node("Add", ["s", "e"], ["o"]), helper.make_node("Mul", ["o", "o"], ["p"])],
        [info("s", element, [4]), info("e", element, [4])],
        [info("o", element, [4]), info("p", element, [4])],
    )
    return [helper.make_node("Scan", ["v", "x"], ["state", "y"], body=body, num_scan_inputs=1)]


def node(op: str, *inputs: str, **attributes: Any) -> list[onnx.NodeProto]:
    return [helper.make_node(op, list(inputs), ["y"], **attributes)]


W, B = data(4, 4), np.float32(1.1)
CASES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "products": (node("Gemm", "x", "w", "v", alpha=0.3, transB=1), {"x": data(3, 4)}, {"w": W, "v": data(4)}),
    "convolution": (node("Conv", "x", "k", pads=[1, 1, 1, 1]), {"x": data(1, 3, 9, 9)}, {"k": data(5, 3, 3, 3)}),
    "transposed convolution": (node("ConvTranspose", "x", "k"), {"x": data(1, 3, 5, 5)}, {"k": data(3, 2, 3, 3)}),
    "softmax": (node("Softmax", "x"), {"x": data(3, 40)}, {}),
    "normalisation": (node("LayerNormalization", "x", "v"), {"x": data(3, 4)}, {"v": data(4)}),
    "reduction": (node("ReduceL2", "x", keepdims=0), {"x": data(5, 60)}, {}),
    "pooling": (node("AveragePool", "x", kernel_shape=[3, 3]), {"x": data(1, 2, 9, 9)}, {}),
    "resizing": (
        node("Resize", "x", "", "s", mode="linear"),
        {"x": data(1, 1, 5, 5)},
        {"s": np.array([1, 1, 2, 2], np.float32)},
    ),
    "long short-term memory": (
        [helper.make_node("LSTM", ["x", "w", "r", "b"], ["y", "h"], hidden_size=4)],
        {"x": data(6, 2, 4)},
        {"w": data(1, 16, 4), "r": data(1, 16, 4), "b": data(1, 32)},
    ),
    "gated recurrence": (
        [helper.make_node("GRU", ["x", "w", "r"], ["y", "h"], hidden_size=4, linear_before_reset=1)],
        {"x": data(6, 2, 4)},
        {"w": data(1, 12, 4), "r": data(1, 12, 4)},
    ),
    "attention": (
        node("Attention", "x", "k", "v", q_num_heads=2, kv_num_heads=2),
        {"x": data(1, 5, 8), "k": data(1, 7, 8), "v": data(1, 7, 8)},
        {},
    ),
    "einsum": (node("Einsum", "x", "w", equation="ij,jk->ik"), {"x": data(3, 4)}, {"w": W}),
    "running sum": (node("CumSum", "x", "one"), {"x": data(3, 50)}, {"one": np.int64(1)}),
    "exponents": (node("Pow", "x", "w"), {"x": np.abs(data(4, 4))}, {"w": W}),
    "mish": (node("Mish", "x"), {"x": data(30)}, {}),
    "loop": (loop, {"x": data(3, 4)}, {"w": W, "b": B, "five": np.int64(5), "yes": np.bool_(True)}),
    "if": (conditional, {"x": data(30), "yes": np.array(True)}, {}),
    "scan": (scan, {"x": data(6, 4)}, {"v": data(4)}),
    "casts": (
        [helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16), *node("Exp", "h")],
        {"x": data(30)},
        {},
    ),
}


def model(case: str, element: int) -> onnx.ModelProto:
    """The model with its floats as `element`; the double one has no cast to float16, which is a rounding alone."""
    made, feeds, constants = CASES[case]
    nodes = made(element) if callable(made) else made
    if case == "casts" and element == DOUBLE:
        nodes = node("Exp", "x")

    def typed(value: Any) -> Any:
        array = np.asarray(value)
        return array.astype(np.float64) if array.dtype == np.float32 and element == DOUBLE else array

    output = TensorProto.FLOAT16 if case == "casts" and element == FLOAT else element
    graph = helper.make_graph(
        nodes,
        "g",
        [info(name, helper.np_dtype_to_tensor_dtype(typed(v).dtype), list(v.shape)) for name, v in feeds.items()],
        [info("y", output)],
        [
            numpy_helper.from_array(np.asarray(value) if name == "s" else typed(value), name)
            for name, value in constants.items()
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


@pytest.mark.parametrize("case", CASES)
def test_values_are_those_of_the_model_in_double(case: str) -> None:
    program = argosy.load_onnx(model(case, FLOAT))
    feeds = CASES[case][1]
    found = WideReference(program).answer(feeds, 0)["y"]
    double = {name: value.astype(np.float64) if value.dtype == np.float32 else value for name, value in feeds.items()}
    evaluator: Any = ReferenceEvaluator(model(case, DOUBLE))
    expected = evaluator.run(None, double)[0]  # a Loop's with one axis less
    assert found.dtype == np.float64
    scale = np.abs(expected).max()
    assert np.abs(found - expected.reshape(found.shape)).max() <= 1e-12 * scale
    single = RefReference(program).answer(feeds, 0)["y"].astype(np.float64)
    assert np.abs(single - expected.reshape(found.shape)).max() > 1e-10 * scale, (
        "float32 is not that good: the test would see it"
    )


def program(build: Builder, **results: Any) -> Program:
    return Program(build.module(results))


@pytest.mark.parametrize("element", ["float16", "bfloat16", "float32"])
def test_products_of_short_floats_are_exact_sums(element: str) -> None:
    build = Builder()
    x, w = (build.tensor_parameter(name, element, dims) for name, dims in (("x", (3, 50)), ("w", (50, 2))))
    made = program(build, y=build.add(Dot(), x, w))
    feeds = {"x": data(3, 50).astype(dtype(element).numpy), "w": data(50, 2).astype(dtype(element).numpy)}
    found = WideReference(made).answer(feeds, 0)
    expected = feeds["x"].astype(np.float64) @ feeds["w"].astype(np.float64)
    np.testing.assert_allclose(found["y"], expected, rtol=1e-13)
    assert rounded(found, made.outputs)["y"].dtype == dtype(element).numpy


def test_quantisation_stays_and_what_is_dequantised_is_exact() -> None:
    graph = helper.make_graph(
        [
            helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
            helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
        ],
        "g",
        [info("x", FLOAT, [50])],
        [info("q", TensorProto.INT8), info("y", FLOAT)],
        [numpy_helper.from_array(np.array(0.1, np.float32), "s"), numpy_helper.from_array(np.array(3, np.int8), "z")],
    )
    loaded = argosy.load_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10))
    x = data(50)
    found = WideReference(loaded).answer({"x": x}, 0)
    scale = np.float64(np.float32(0.1))
    codes = np.clip(np.rint(x / scale) + 3, -128, 127)
    assert found["q"].dtype == np.int8
    np.testing.assert_array_equal(found["q"], codes)
    np.testing.assert_allclose(found["y"], (codes - 3) * scale, rtol=1e-15)


def test_short_casts_that_mean_something_stay() -> None:
    build = Builder()
    x = build.tensor_parameter("x", FLOAT32, (40,))
    made = program(build, y=build.convert(build.convert(x, dtype("float8_e4m3fn")), FLOAT32))
    feeds = {"x": data(40)}
    expected = feeds["x"].astype(dtype("float8_e4m3fn").numpy).astype(np.float64)
    np.testing.assert_array_equal(WideReference(made).answer(feeds, 0)["y"], expected)


def test_bits_and_random_numbers_are_those_of_the_program() -> None:
    build = Builder()
    x = build.tensor_parameter("x", FLOAT32, (20,))
    drawn = build.add(Random("normal", FLOAT32, 0.0, 1.0, 7, 1, None), x)
    made = program(build, bits=build.add(BitCast(INT32), x), y=build.pointwise("add", drawn, x))
    feeds = {"x": data(20)}
    found, single = WideReference(made).answer(feeds, 3), RefReference(made).answer(feeds, 3)
    np.testing.assert_array_equal(found["bits"], feeds["x"].view(np.int32))
    assert found["y"].dtype == np.float64
    np.testing.assert_allclose(found["y"], single["y"], atol=1e-6)
    drawn_there = single["y"] - feeds["x"]
    np.testing.assert_allclose(found["y"] - feeds["x"], drawn_there, atol=1e-6)


def test_verify_takes_it_and_compares_with_true_values() -> None:
    source = model("softmax", FLOAT)
    report = argosy.verify(source, targets=["ref"], against="ref64")
    assert report.passed
    assert report.reference == "ref64"
    (difference,) = report.cases[0].differences
    assert 0 < difference.largest < 1e-7, "ref's own rounding"
    exact = argosy.verify(source, targets=["ref"], against="ref64", tolerance=Tolerance(ulp=0))
    assert not exact.passed, "no float32 is the true value to its last bit"


@pytest.mark.nightly
def test_all_of_onnxs_suite_can_be_widened() -> None:
    """Every model, on its own inputs: the values round to what the model's types give, but for its rounding."""
    met = 0
    for case in load_cases(("node", "simple")):
        try:
            source, (given, *_) = case.read()
            loaded = argosy.load_onnx(source)
            inputs = {name: given.inputs.get(name) for name in loaded.inputs}
            single = RefReference(loaded).answer(inputs, 0)
        except ArgosyError:  # what is wrong on purpose
            continue
        met += 1
        found = WideReference(loaded).answer(inputs, 0)
        expected = rounded(found, loaded.outputs)
        assert compare(expected, single, Agree(is_quantised(loaded)), found) == (), case.name
    assert met > 1500


SLOW = (
    *("speechmos-sig", "speechmos-bak", "pipecat", "rapidocr-pp-ocrv6", "basic-pitch", "text2tashkeel-bilstm"),
    *("text2tashkeel-rawi-ensemble", "text2tashkeel-rawi-int8", "text2tashkeel-rawi-v3"),
)
"""Models that take seconds on numpy."""


@pytest.mark.models
@pytest.mark.parametrize(
    "model_id",
    [
        pytest.param(entry.id, marks=[pytest.mark.nightly] if entry.id.startswith(SLOW) else [])
        for entry in real.models("per-change")
    ],
)
def test_a_real_model_differs_by_rounding_only(model_id: str) -> None:
    loaded = argosy.load_onnx(real_models.path(model_id))
    feeds: Mapping[str, Any] = real_models.feeds(model_id)
    expected = WideReference(loaded).answer(feeds, 0)
    share = 1e-2 if real.model(model_id).quantised else 2e-5
    for name, value in RefReference(loaded).answer(feeds, 0).items():
        wide = expected[name]
        assert wide.dtype == (FLOAT64.numpy if value.dtype.kind == "f" else value.dtype)
        assert wide.shape == value.shape
        assert np.abs(wide - value.astype(wide.dtype)).max() <= share * np.abs(wide).max()
