"""What steps say of their work, on CPU and GPU, beside counts by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import argosy
from argosy.artifact.plan import CallStep, LaunchStep, steps_in
from argosy.options import CompileOptions
from argosy.passes.manager import PassManager
from argosy.profiling.work import operations
from argosy.targets.cpu.arch import ARCHS
from argosy.targets.cpu.lower import lower_module as lower_on_cpu
from argosy.targets.cpu.pipeline import pipeline as cpu_pipeline
from argosy.targets.gpu.arch import find_gpu
from argosy.targets.gpu.lower import lower_module as lower_on_gpu
from argosy.targets.gpu.pipeline import pipeline as gpu_pipeline
from benchmarks.models import catalog

Kernels = Sequence[CallStep | LaunchStep]
Lower = Callable[..., Kernels]


def on_cpu(model: ModelProto, **dims: int) -> Kernels:
    """The kernels of a run on a CPU with AVX2."""
    options = CompileOptions()
    module = PassManager(tuple(cpu_pipeline(options, ARCHS["x86-64-v3"]))).run(argosy.load_onnx(model, dims=dims).main)
    return kernels(lower_on_cpu(module, ARCHS["x86-64-v3"], options).plan)


def on_gpu(model: ModelProto, **dims: int) -> Kernels:
    """The kernels of a run on an H200, as they are before the toolchain has seen them."""
    options, row = CompileOptions(precision="fp16"), find_gpu("h200")
    assert row is not None
    module = PassManager(tuple(gpu_pipeline(options))).run(argosy.load_onnx(model, dims=dims).main)
    return kernels(lower_on_gpu(module, row, options, {}, {}).plan)


def kernels(plan: Any) -> Kernels:
    """The kernels of its body."""
    return [step for step in steps_in(plan.body) if isinstance(step, CallStep | LaunchStep)]


def summed(steps: Kernels) -> int:
    """All operations, which are numbers here."""
    return sum(int(count) for step in steps for count in step.operations.values())


BOTH = pytest.mark.parametrize(("lower", "kind"), [(on_cpu, "float32"), (on_gpu, "float16")], ids=["cpu", "gpu"])


def made(nodes: Sequence[Any], shape: Sequence[Any], result: Sequence[Any], **weights: Any) -> ModelProto:
    """A model y = f(x) in float32."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, result)
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def seeded(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


@BOTH
def test_a_convolution_does_two_operations_for_each_tap(lower: Lower, kind: str) -> None:
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4), helper.make_node("Relu", ["c"], ["y"])]
    steps = lower(made(nodes, [2, 16, 10, 10], [2, 32, 10, 10], w=seeded(32, 16, 3, 3)))
    (product,) = [step for step in steps if step.operations]
    assert product.operations == {kind: 2 * (2 * 32 * 10 * 10) * (16 * 3 * 3)}
    assert product.whole


@BOTH
def test_a_symbol_stays_in_the_count(lower: Lower, kind: str) -> None:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    steps = lower(made(nodes, ["N", 64], ["N", 48], w=seeded(64, 48)))
    (product,) = [step for step in steps if step.operations]
    assert product.operations == {kind: f"{2 * 64 * 48}*N"}


@BOTH
def test_a_stride_beyond_the_window_and_a_gather_touch_a_part(lower: Lower, kind: str) -> None:
    del kind
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], strides=[2, 2])]
    steps = lower(made(nodes, [1, 16, 8, 8], [1, 16, 4, 4], w=seeded(16, 16, 1, 1)))
    (product,) = [step for step in steps if step.operations]
    assert product.whole
    assert [part for part in product.parts if part is not None] == [16 * 4 * 4], "a quarter of the image"
    nodes = [helper.make_node("Gather", ["x", "rows"], ["y"])]
    (gather,) = lower(made(nodes, ["N", 8], [2, 8], rows=np.array([5, 7])))
    assert gather.whole
    assert gather.parts[0] == "min(16, 8*N)", "two rows, if there are as many"
    assert set(gather.parts[1:]) == {None}
    assert not gather.operations


def test_pieces_that_kernels_copy_apart_are_told_apart() -> None:
    """Of what is split, each reads its own; of what is joined, each writes its own."""
    nodes = [
        helper.make_node("Split", ["x"], ["a", "b"], axis=1, num_outputs=2),
        helper.make_node("Softmax", ["a"], ["s"]),
        helper.make_node("Concat", ["b", "s", "x"], ["y"], axis=1),
    ]
    steps = on_gpu(made(nodes, [6, 20], [6, 40]))
    joined = [step for step in steps if step.writes == steps[-1].writes]
    assert [step.parts for step in joined] == [(None, 60), (None, 60), (None, 120)]
    pieces = [step for step in steps if step.parts and step not in joined]
    assert pieces
    assert {part for step in pieces for part in step.parts} == {60, None}
    assert all(step.whole for step in steps)


@BOTH
def test_a_scan_touches_an_element_at_a_time(lower: Lower, kind: str) -> None:
    del kind
    body = helper.make_graph(
        [helper.make_node("Tanh", ["before"], ["after"]), helper.make_node("Add", ["after", "one"], ["out"])],
        "body",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [6]) for name in ("before", "one")],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [6]) for name in ("after", "out")],
    )
    nodes = [
        helper.make_node("ReduceSum", ["x", "axis"], ["begin"], keepdims=0),
        helper.make_node("Scan", ["begin", "x"], ["last", "y"], body=body, num_scan_inputs=1),
    ]
    steps = lower(made(nodes, ["N", 6], ["N", 6], axis=np.array([0])))
    (element,) = [step for step in steps if step.parts]
    assert element.parts == (6, None, None)
    assert all(step.whole for step in steps)


@BOTH
def test_softmax_and_a_transposed_copy_touch_everything_and_multiply_nothing(lower: Lower, kind: str) -> None:
    del kind
    nodes = [helper.make_node("Add", ["x", "x"], ["a"]), helper.make_node("Softmax", ["a"], ["y"])]
    for model in (
        made(nodes, [32, 100], [32, 100]),
        made([helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0])], [32, 100], [100, 32]),
    ):
        steps = lower(model)
        assert steps
        assert all(step.whole and not step.operations for step in steps)


def _attention(rows: Any, keys: int = 64) -> ModelProto:
    """Queries, keys and values are parts of one tensor where `keys` is their number too; no mask."""
    nodes = [
        helper.make_node("Split", ["x"], ["q", "k", "v"], axis=0, num_outputs=3),
        helper.make_node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]),
        helper.make_node("MatMul", ["q", "t"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    return made(nodes, [3, 4, rows, 32], [1, 4, rows, 32])


@BOTH
def test_both_products_of_attention_are_those_of_the_kernel_that_has_all_operands(lower: Lower, kind: str) -> None:
    steps = lower(_attention(64))
    (product,) = [step for step in steps if step.operations]
    assert product.operations == {kind: 2 * 2 * 4 * 64 * 64 * 32}
    assert product.writes == steps[-1].writes


def test_of_alternatives_both_tell_what_they_would_do() -> None:
    steps = [step for step in on_cpu(_attention("N")) if step.operations]
    assert len(steps) == 2, "few queries, and many"
    assert steps[0].operations == steps[1].operations
    assert "min" in f"{steps[0].chunks}{steps[1].chunks}", "of which a run does one"  # type: ignore[union-attr]


def test_a_product_with_itself_is_no_packing() -> None:
    nodes = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "t"], ["y"]),
    ]
    steps = on_cpu(made(nodes, [64, 48], [64, 64]))
    (product,) = [step for step in steps if step.operations]
    assert product.operations == {"float32": 2 * 64 * 64 * 48}
    assert product.writes == steps[-1].writes


@pytest.mark.parametrize(
    ("model", "dims"),
    [
        ("mobilenet_small", {"batch": 2}),
        ("bert_small", {"batch": 2, "sequence": 16}),
        ("vit_small", {"batch": 2}),
        ("lstm_small", {"batch": 2, "sequence": 5}),
        ("decoder_small", {"batch": 1, "sequence": 4, "past": 8, "total": 12}),
        ("two_branches_small", {"batch": 2}),
    ],
)
@BOTH
def test_the_sum_over_steps_is_what_the_model_does(lower: Lower, kind: str, model: str, dims: dict[str, int]) -> None:
    del kind
    file = catalog.make(model)
    steps = lower(file, **dims)
    expected = operations(argosy.load_onnx(file, dims=dims))
    assert expected
    assert summed(steps) == expected


def test_channels_of_zeros_do_not_count() -> None:
    """GPUs read four channels where the model has three."""
    dims = {"batch": 2}
    file = catalog.make("resnet_small")
    steps = on_gpu(file, **dims)
    assert steps[0].entry.startswith("convert_pad")
    assert summed(steps) == summed(on_cpu(file, **dims)) == operations(argosy.load_onnx(file, dims=dims))


@BOTH
@pytest.mark.parametrize("empty", ["batch", "channels", "filters"])
def test_a_convolution_of_nothing_does_nothing(lower: Lower, kind: str, empty: str) -> None:
    batch, channels, filters = (0 if name == empty else 4 for name in ("batch", "channels", "filters"))
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], pads=[1] * 4)]
    given, result = [batch, channels, 6, 6], [batch, filters, 6, 6]
    steps = lower(made(nodes, given, result, w=seeded(filters, channels, 3, 3)))
    assert sum(int(count) for step in steps for count in step.operations.values()) == 0
    assert all(each == kind for step in steps for each in step.operations)
